"""Additions of points over pairs of lanes (kernels/curve/xyzz_pairs.cuh) against the group law in Python: runs of different
lengths side by side in one warp, with warps that stay together and pairs that go their own ways; equal and opposite points.
On the host, as interpreted PTX and (marked gpu) on the device."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import accumulate

import pytest

from limbd.harness.groups import GROUPS, group_of, unit_text
from limbd.harness.layer_check import LayerCheck
from limbd.ops.params.base import LIMB_BITS
from limbd.ops.params.coordinates import inverse, multiply
from limbd.ops.params.curves import Curve, GroupName
from limbd.ops.reference.curve import Point, negate, plus, times
from limbd.worker.device.base import Backend

EXTENDED = [(curve, name) for curve, name in GROUPS if group_of(curve, name).degree == 2]
EVERY_EXTENDED = pytest.mark.parametrize(("curve", "name"), EXTENDED, ids=[f"{c.name}-{n}" for c, n in EXTENDED])
BOTH_CONTRACTS = pytest.mark.parametrize("together", [0, 1], ids=["own-ways", "together"])

OPPOSITE = 1 << 31
RUNS = 3  # of a pair, one after the other


def packed(values: Sequence[int], bits: int) -> int:
    return sum(value << bits * i for i, value in enumerate(values))


def stored(point: Point, curve: Curve, rng: random.Random) -> int:
    """As it lies in memory: Montgomery form, each part in either of its two forms below 2 m."""
    assert point is not None
    base = curve.base
    parts = [base.montgomery(part) + base.modulus * rng.randrange(2) for x in point for part in x]
    return packed(parts, LIMB_BITS * base.montgomery_limbs)


def read(row: int, curve: Curve) -> Point:
    """The affine form of a stored sum; None where ZZ = 0."""
    base, p = curve.base, curve.base.modulus
    bits = LIMB_BITS * base.montgomery_limbs
    parts = [row >> bits * i & (1 << bits) - 1 for i in range(8)]
    assert max(parts) < 2 * p
    plain = [part * pow(base.r, -1, p) % p for part in parts]
    x, y, zz, zzz = (tuple(plain[i : i + 2]) for i in range(0, 8, 2))
    assert multiply(multiply(zz, zz, p), zz, p) == multiply(zzz, zzz, p)
    if not any(zz):
        return None
    return multiply(x, inverse(zz, p), p), multiply(y, inverse(zzz, p), p)


def unchecked_sum(points: Sequence[Point], p: int) -> Point:
    """What the unchecked additions leave: None, infinity, from the first pair with the same x on."""
    total, *others = points
    for point in others:
        if total is None or point is None or total[0] == point[0]:
            return None
        total = plus(total, point, p)
    return total


def entry_point(points: Sequence[Point], entry: int, p: int) -> Point:
    point = points[entry & ~OPPOSITE]
    return negate(point, p) if entry & OPPOSITE else point


def check_runs(
    layers: Backend,
    curve: Curve,
    name: GroupName,
    together: int,
    points: Sequence[Point],
    runs: Sequence[Sequence[int]],
) -> list[Point]:
    """Sums the runs of entries on pairs of lanes, and compares with the group law."""
    p, rng = curve.base.modulus, random.Random(f"forms {curve.name}")
    row = 8 * curve.base.montgomery_limbs
    rows = [stored(point, curve, rng) for point in points]
    ends = list(accumulate(len(run) for run in runs))
    columns = {
        "runs": [packed((end - len(run), end), LIMB_BITS) for run, end in zip(runs, ends, strict=True)],
        "points": [packed(rows[i : i + 2], LIMB_BITS * row // 2) for i in range(0, len(rows), 2)],
        "entries": [entry for run in runs for entry in run],
    }
    check = LayerCheck(
        "pair_check",
        ("runs", "points", "entries"),
        (),
        {"TOGETHER": together, "RUNS": RUNS},
        row,
        narrow=("runs", "entries"),
        params=unit_text(curve, name),
        lanes=2,
    )
    got = [read(value, curve) for value in check.run(layers, columns, {})]
    assert got == [unchecked_sum([entry_point(points, entry, p) for entry in run], p) for run in runs]
    return got


@EVERY_EXTENDED
@BOTH_CONTRACTS
def test_runs_of_different_lengths(layers: Backend, curve: Curve, name: GroupName, together: int) -> None:
    """In two blocks, the last pair with a run less, and beside it pairs without any."""
    rng = random.Random(f"runs {curve.name}")
    g, p = group_of(curve, name).generator, curve.base.modulus
    points = [times(rng.randrange(1, curve.order), g, p) for _ in range(12)]
    lengths = [1, 7, 2, 2, 1, 3, 5, 4, *(rng.randrange(1, 7) for _ in range(99))]
    runs = [[rng.randrange(12) | rng.choice((0, OPPOSITE)) for _ in range(length)] for length in lengths]
    got = check_runs(layers, curve, name, together, points, runs)
    assert any(got)


@EVERY_EXTENDED
@BOTH_CONTRACTS
def test_points_with_the_same_x(layers: Backend, curve: Curve, name: GroupName, together: int) -> None:
    """Equal and opposite points leave ZZ = 0, and nothing that is added makes a point of it again; beside sums that are."""
    g, p = group_of(curve, name).generator, curve.base.modulus
    points = [times(k, g, p) for k in (1, 2, 3, 5)]
    runs = [
        [0, 0],
        [0, 0 | OPPOSITE],
        [0, 1],
        [0, 0, 1, 3],
        [1, 0, 2],
        [1, 0, 2 | OPPOSITE, 0],
        [1 | OPPOSITE, 2],
        [3, 1 | OPPOSITE, 2 | OPPOSITE, 0, 1],
    ]
    got = check_runs(layers, curve, name, together, points, runs)
    assert [point is None for point in got] == [True, True, False, True, True, True, False, True]
