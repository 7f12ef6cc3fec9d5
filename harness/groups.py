"""The registered groups, and their points as rows of plain limbs."""

from __future__ import annotations

from limbd.ops.params.base import LIMB_BITS
from limbd.ops.params.coordinates import Coordinate
from limbd.ops.params.curves import CURVES, Curve, Group, GroupName
from limbd.ops.params.render import group_struct_name, render_group
from limbd.ops.reference.curve import Point

NAMES: tuple[GroupName, ...] = ("g1", "g2")

GROUPS: list[tuple[Curve, GroupName]] = [(curve, name) for curve in CURVES for name in NAMES if curve.group(name)]


# The kernels of these keep a host's compiler busy for minutes: tests on the CPU take one of them a day, by turns, and the
# others always, unless all are asked for (harness/tests/host/conftest.py).
LONG: list[tuple[str, GroupName]] = [("bn254", "g2"), ("bls12_381", "g1"), ("bls12_381", "g2"), ("secp256k1", "g1")]


def is_tested(curve: str, name: GroupName, day: int) -> bool:
    """Whether it is the day (a number that grows by one a day) of this group."""
    return (curve, name) not in LONG or LONG[day % len(LONG)] == (curve, name)


def group_of(curve: Curve, name: GroupName) -> Group:
    group = curve.group(name)
    assert group is not None
    return group


def unit_text(curve: Curve, name: GroupName) -> str:
    """What a layer entry needs to know of its group."""
    return f"{render_group(curve, name)}#define GROUP {group_struct_name(curve, name)}\n"


def coordinate_limbs(curve: Curve, group: Group) -> int:
    """Limbs of a plain coordinate in a row."""
    return group.degree * curve.base.element_bytes // 4


def pack_coordinate(coordinate: Coordinate, curve: Curve) -> int:
    """As one integer, first part lowest."""
    bits = 8 * curve.base.element_bytes
    return sum(int(part) << bits * i for i, part in enumerate(coordinate))


def unpack_coordinate(value: int, curve: Curve, group: Group) -> Coordinate:
    bits = 8 * curve.base.element_bytes
    return tuple(value >> bits * i & (1 << bits) - 1 for i in range(group.degree))


def pack_point(point: Point, curve: Curve, group: Group) -> int:
    if point is None:
        return 0
    x, y = (pack_coordinate(coordinate, curve) for coordinate in point)
    return x | y << LIMB_BITS * coordinate_limbs(curve, group)


def unpack_point(value: int, curve: Curve, group: Group) -> Point:
    if value == 0:
        return None
    width = LIMB_BITS * coordinate_limbs(curve, group)
    x, y = value & (1 << width) - 1, value >> width
    return unpack_coordinate(x, curve, group), unpack_coordinate(y, curve, group)
