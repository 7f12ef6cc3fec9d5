"""The fields of curves' coordinates against Python's integers: on the host, as interpreted PTX and (marked gpu) on the
device, with range checks compiled in."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import product

import pytest

from limbd.harness.groups import (
    GROUPS,
    coordinate_limbs,
    group_of,
    pack_coordinate,
    unit_text,
    unpack_coordinate,
)
from limbd.harness.inputs import hard_integer
from limbd.harness.layer_check import LayerCheck
from limbd.ops.base import Member
from limbd.ops.params.coordinates import Coordinate, add, inverse, multiply, scale, subtract
from limbd.ops.params.curves import Curve, GroupName
from limbd.worker.device.base import Backend

CASES = 16

EVERY_GROUP = pytest.mark.parametrize(("curve", "name"), GROUPS, ids=[f"{c.name}-{n}" for c, n in GROUPS])

Model = Callable[[int, Coordinate, Coordinate, Coordinate, Coordinate], Coordinate]

OPERATIONS: dict[str, tuple[int, Model]] = {
    "add": (0, lambda p, x, y, z, w: add(x, y, p)),
    "subtract": (1, lambda p, x, y, z, w: subtract(x, y, p)),
    "negate": (2, lambda p, x, y, z, w: scale(x, -1, p)),
    "multiply": (3, lambda p, x, y, z, w: multiply(x, y, p)),
    "square": (4, lambda p, x, y, z, w: multiply(x, x, p)),
    "difference_of_products": (5, lambda p, x, y, z, w: subtract(multiply(x, y, p), multiply(z, w, p), p)),
    "inverse": (6, lambda p, x, y, z, w: inverse(x, p)),
    "is_zero": (7, lambda p, x, y, z, w: (int(not any(x)), *[0] * (len(x) - 1))),
}


def part(rng: random.Random, p: int, limbs: int, r: int) -> int:
    """Small, near p, near a power of R, or of hard limbs."""
    kind = rng.randrange(3)
    corners = [0, 1, p - 1, p - 2, r % p, -r % p, pow(r, -1, p), -pow(r, -1, p) % p, p // 2]
    return rng.choice(corners) if kind == 0 else hard_integer(rng, limbs) % p if kind == 1 else rng.randrange(p)


def operands(rng: random.Random, curve: Curve, degree: int) -> list[Coordinate]:
    base = curve.base
    return [tuple(part(rng, base.modulus, base.limbs, base.r) for _ in range(degree)) for _ in range(CASES)]


@EVERY_GROUP
@pytest.mark.parametrize("operation", OPERATIONS)
def test_an_operation(layers: Backend, curve: Curve, name: GroupName, operation: str) -> None:
    group, p = group_of(curve, name), curve.base.modulus
    number, model = OPERATIONS[operation]
    rng = random.Random(f"{curve.name} {name} {operation}")
    columns = [operands(rng, curve, group.degree) for _ in range(4)]
    if operation == "inverse":
        columns[0] = [x if any(x) else (1,) * group.degree for x in columns[0]]
    if operation == "is_zero":
        columns[0] += [(0,) * group.degree]
        columns[1:] = [[*column, column[0]] for column in columns[1:]]
    scalars = (Member("operation", "u32"), Member("lifted", "u32"))
    row = coordinate_limbs(curve, group)
    check = LayerCheck("coordinate_check", tuple("xyzw"), scalars, {}, row, params=unit_text(curve, name))
    packed = {key: [pack_coordinate(x, curve) for x in column] for key, column in zip("xyzw", columns, strict=True)}
    expected = [model(p, *row) for row in zip(*columns, strict=True)]
    for lifted in (0, 15, 6):
        got = check.run(layers, packed, {"operation": number, "lifted": lifted})
        assert [unpack_coordinate(value, curve, group) for value in got] == expected, lifted


@pytest.mark.parametrize("operation", ["add", "subtract", "multiply"])
def test_all_pairs_of_a_toy(layers: Backend, operation: str) -> None:
    from limbd.ops.params.curves import by_name

    curve = by_name("toy_7_13")
    assert curve is not None
    p, group = curve.base.modulus, group_of(curve, "g2")
    everything = list(product(range(p), repeat=2))
    if type(layers).__name__ == "PtxBackend":
        everything = everything[::5]
    pairs = list(product(everything, everything))
    number, model = OPERATIONS[operation]
    scalars = (Member("operation", "u32"), Member("lifted", "u32"))
    check = LayerCheck(
        "coordinate_check", tuple("xyzw"), scalars, {}, coordinate_limbs(curve, group), params=unit_text(curve, "g2")
    )
    x, y = ([pack_coordinate(pair[i], curve) for pair in pairs] for i in range(2))
    got = check.run(layers, {"x": x, "y": y, "z": x, "w": y}, {"operation": number, "lifted": 0})
    assert [unpack_coordinate(value, curve, group) for value in got] == [model(p, a, b, a, b) for a, b in pairs]
