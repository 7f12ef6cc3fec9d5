"""The curve layer against the group law in Python: every function, with equal, opposite and infinite operands, in
coordinates that are scaled by random factors. On the host, as interpreted PTX and (marked gpu) on the device."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import product

import pytest

from limbd.harness.groups import (
    GROUPS,
    LONG,
    coordinate_limbs,
    group_of,
    pack_coordinate,
    pack_point,
    unit_text,
    unpack_point,
)
from limbd.harness.layer_check import LayerCheck
from limbd.ops.base import Member
from limbd.ops.params.coordinates import Coordinate, on_curve
from limbd.ops.params.curves import Curve, Group, GroupName, by_name
from limbd.ops.reference.curve import Point, negate, plus, times
from limbd.worker.device.base import Backend

EVERY_GROUP = pytest.mark.parametrize(("curve", "name"), GROUPS, ids=[f"{c.name}-{n}" for c, n in GROUPS])

XYZZ, PROJECTIVE, AFFINE, UNCHECKED, LANES, DOUBLINGS = range(6)

# Groups of lanes that work on one case.
GROUPS_OF_LANES = {LANES: 1, DOUBLINGS: 2}

# name: (form, number, whether it takes a second point that may be infinity)
OPERATIONS: dict[str, tuple[int, int]] = {
    "xyzz::add": (XYZZ, 0),
    "xyzz::add_affine": (XYZZ, 1),
    "xyzz::twice": (XYZZ, 2),
    "xyzz::add_unchecked": (UNCHECKED, 0),
    "xyzz::add_affine_unchecked": (UNCHECKED, 1),
    "jacobian::twice": (XYZZ, 5),
    "xyzz::set_affine": (XYZZ, 6),
    "projective::add": (PROJECTIVE, 0),
    "projective::add_affine": (PROJECTIVE, 1),
    "projective::twice": (PROJECTIVE, 2),
    "xyzz_lanes::add": (LANES, 0),
    "xyzz_lanes::add, constant work": (LANES, 1),
    "xyzz_lanes::twice": (LANES, 2),
    "xyzz_lanes::from_projective": (LANES, 3),
    "xyzz_lanes::to_projective": (LANES, 4),
    "xyzz_lanes::twice_often, 1": (DOUBLINGS, 1),
    "xyzz_lanes::twice_often, 2": (DOUBLINGS, 2),
    "xyzz_lanes::twice_often, 7": (DOUBLINGS, 7),
}


# Forms of one thread: groups of lanes take minutes to interpret.
INTERPRETED = (XYZZ, PROJECTIVE, UNCHECKED)


def operations_on(layers: Backend, turn: int | None = None) -> dict[str, tuple[int, int]]:
    """turn: of the forms that are interpreted the one whose turn it is, instead of all."""
    if type(layers).__name__ != "PtxBackend":
        return OPERATIONS
    forms = INTERPRETED if turn is None else (INTERPRETED[turn % len(INTERPRETED)],)
    return {name: case for name, case in OPERATIONS.items() if case[0] in forms}


def model(operation: str, a: Point, b: Point, p: int) -> Point:
    """What the operation leaves; unchecked additions of points with the same x leave infinity."""
    if operation.endswith("twice"):
        return plus(a, a, p)
    if operation.endswith("set_affine"):
        return b
    if "twice_often" in operation:
        return times(1 << int(operation.split(", ")[1]), a, p)
    if operation.endswith("_projective"):
        return a
    if operation.endswith("unchecked") and a is not None and b is not None and a[0] == b[0]:
        return None
    return plus(a, b, p)


def suits(operation: str, a: Point, b: Point) -> bool:
    """Whether the operation takes such points at all."""
    if operation.endswith("unchecked"):
        return a is not None and b is not None
    return b is not None or operation != "projective::add_affine"


def pairs_of(curve: Curve, group: Group, rng: random.Random) -> list[tuple[Point, Point]]:
    """Equal, opposite, infinite, dependent and unrelated points."""
    p, g = curve.base.modulus, group.generator
    a, b = (times(rng.randrange(3, curve.order), g, p) for _ in range(2))
    others: list[Point] = [a, negate(a, p), plus(a, a, p), negate(plus(a, a, p), p), b, None, g]
    return [(a, other) for other in others] + [(None, a), (None, None), (g, negate(g, p)), (b, plus(a, b, p))]


def check_of(curve: Curve, name: GroupName, form: int) -> LayerCheck:
    group = group_of(curve, name)
    return LayerCheck(
        "curve_check",
        ("p", "q", "factors"),
        (Member("operation", "u32"),),
        {"FORM": form},
        2 * coordinate_limbs(curve, group),
        params=unit_text(curve, name),
        lanes=4 * group.degree * GROUPS_OF_LANES[form] if form in GROUPS_OF_LANES else 1,
    )


def factor(rng: random.Random, curve: Curve, group: Group) -> Coordinate:
    """Not 0."""
    p = curve.base.modulus
    return (rng.randrange(1, p), *(rng.randrange(p) for _ in range(group.degree - 1)))


def run(
    layers: Backend, curve: Curve, name: GroupName, form: int, number: int, pairs: Sequence[tuple[Point, Point]]
) -> list[Point]:
    group, rng = group_of(curve, name), random.Random(f"factors {curve.name} {name} {number}")
    width = 32 * coordinate_limbs(curve, group)
    factors = [[pack_coordinate(factor(rng, curve, group), curve) for _ in pairs] for _ in range(2)]
    columns = {key: [pack_point(pair[i], curve, group) for pair in pairs] for i, key in enumerate("pq")}
    columns["factors"] = [f | g << width for f, g in zip(*factors, strict=True)]
    got = check_of(curve, name, form).run(layers, columns, {"operation": number})
    return [unpack_point(value, curve, group) for value in got]


@EVERY_GROUP
def test_every_operation(layers: Backend, curve: Curve, name: GroupName, day: int | None) -> None:
    """NVRTC takes up to a minute for a form in wide coordinates: one of them a day, a round of the long groups each, and all of
    the toys."""
    group, p = group_of(curve, name), curve.base.modulus
    turn = None if day is None or curve.toy else day // len(LONG)
    for operation, (form, number) in operations_on(layers, turn).items():
        rng = random.Random(f"{curve.name} {name} {operation}")
        pairs = [pair for pair in pairs_of(curve, group, rng) if suits(operation, *pair)]
        got = run(layers, curve, name, form, number, pairs)
        for pair, result in zip(pairs, got, strict=True):
            assert result == model(operation, *pair, p), (operation, pair)


def all_points(curve: Curve, group: Group) -> list[Point]:
    """Every point of a toy curve, those outside the subgroup too."""
    p = curve.base.modulus
    values = list(product(range(p), repeat=group.degree))
    return [None, *((x, y) for x in values for y in values if on_curve(x, y, group.b, p))]


@pytest.mark.parametrize("name", ["g1", "g2"])
def test_all_pairs_of_the_toy_curve(layers: Backend, name: GroupName) -> None:
    curve = by_name("toy_7_13")
    assert curve is not None
    group, p = group_of(curve, name), curve.base.modulus
    points = all_points(curve, group)
    assert len(points) == group.cofactor * curve.order
    step = 11 if type(layers).__name__ == "PtxBackend" else 1
    every = list(product(points, points))[::step]
    for operation, (form, number) in operations_on(layers).items():
        pairs = [pair for pair in every if suits(operation, *pair)]
        expected = [model(operation, *pair, p) for pair in pairs]
        assert run(layers, curve, name, form, number, pairs) == expected, operation


@EVERY_GROUP
def test_affine_points(layers: Backend, curve: Curve, name: GroupName) -> None:
    group, p = group_of(curve, name), curve.base.modulus
    rng = random.Random(f"affine {curve.name} {name}")
    a = times(rng.randrange(3, curve.order), group.generator, p)
    assert a is not None
    moved = ((a[0][0] + 1) % p, *a[0][1:])
    points: list[Point] = [a, group.generator, (a[0], a[1][::-1]) if group.degree == 2 else (a[1], a[0]), (moved, a[1])]
    one = (1, *[0] * (group.degree - 1))
    expected = [(one, (0,) * group.degree) if q and on_curve(*q, group.b, p) else None for q in points]
    got = run(layers, curve, name, AFFINE, 0, [(q, None) for q in points])
    assert got == expected
    both = [(a, None), (None, None)]
    assert run(layers, curve, name, AFFINE, 1, both) == [negate(a, p), None]
    assert run(layers, curve, name, AFFINE, 2, both) == [a, None]
