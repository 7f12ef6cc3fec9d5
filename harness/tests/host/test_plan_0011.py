"""The candidate of plan 0011 beyond what every candidate is put to: each number of levels, places for a group of lanes, both
groups, pieces, and on the toy curve every case of a sum of two affine points."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from limbd.harness.candidate_units import H200
from limbd.harness.candidates import plan_0011
from limbd.harness.candidates.plan_0011 import by_levels
from limbd.harness.multiplications import Multiples, Multiplication
from limbd.ops.base import LaunchPlan, Traits
from limbd.ops.msm_tuning import LaneRow, with_width
from limbd.ops.params.curves import CURVES, GroupName
from limbd.ops.reference.curve import Point
from limbd.ops.reference.msm import decode_points
from limbd.worker.device.base import Backend

TOY = next(curve for curve in CURVES if curve.toy)

GROUPS: tuple[GroupName, ...] = ("g1", "g2")


@pytest.fixture
def cpu(made_once: Callable[[str], Backend]) -> Backend:
    return made_once("cpu")


def answer(
    cpu: Backend, asked: Multiplication, traits: Traits, levels: int, most: int
) -> tuple[list[Point], LaunchPlan]:
    request = asked.request()
    plan = by_levels(request, traits, levels=levels, most=most)
    result = bytearray(asked.op.result_bytes(asked.call()))
    cpu.run(request, plan, memoryview(result))
    return decode_points(bytes(result), asked.curve, asked.group), plan


def check(
    cpu: Backend,
    group: GroupName,
    logarithms: Sequence[int],
    vectors: Sequence[Sequence[int]],
    *,
    levels: int,
    most: int = 32,
    traits: Traits | None = None,
) -> LaunchPlan:
    known = Multiples.of(TOY, group, logarithms)
    asked = Multiplication(TOY, group, [s for scalars in vectors for s in scalars], known.points, len(vectors))
    got, plan = answer(cpu, asked, traits or cpu.traits(), levels, most)
    assert got == [known.total(scalars) for scalars in vectors]
    return plan


@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("levels", [1, 2, 3, 5])
@pytest.mark.parametrize("most", [1, 3, 32])
def test_points_that_meet_equal_and_opposite_ones(cpu: Backend, group: GroupName, levels: int, most: int) -> None:
    """A dozen points, infinity too, in few buckets: sums of every kind in every level, and buckets that end as infinity."""
    rng = random.Random(f"{group} {levels} {most}")
    for n in (1, 2, 3, 64, 257):
        logarithms = [rng.randrange(13) for _ in range(n)]
        vectors = [[rng.randrange(13) for _ in range(n)] for _ in range(2)]
        for traits in (cpu.traits(), H200):
            check(cpu, group, logarithms, vectors, levels=levels, most=most, traits=traits)


@pytest.mark.parametrize("group", GROUPS)
def test_every_four_points_of_one_bucket(cpu: Backend, group: GroupName) -> None:
    """Each of the subgroup's, in two levels: all sums of two, and all sums of those."""
    quadruples = [(a, b, c, 1) for a in range(1, 13) for b in range(1, 13) for c in range(1, 13, 4)]
    for logarithms in quadruples if group == "g1" else quadruples[::7]:
        check(cpu, group, logarithms, [[1] * 4, [12] * 4], levels=2)


@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("levels", [1, 3, 6])
def test_one_bucket_has_everything(cpu: Backend, group: GroupName, levels: int) -> None:
    """Of one point's copies, of a point and its opposite, and of both beside others."""
    for logarithms in ([5] * 300, [4, 9] * 150, [1, 2, 11, 12, 3] * 61):
        check(cpu, group, logarithms, [[1] * len(logarithms)], levels=levels, traits=H200)


@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("fill", [1, 40, 1000])
def test_a_sort_of_two_passes(cpu: Backend, group: GroupName, fill: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The length of chunks follows from the number of points that are left."""
    row = replace(with_width(12, 64, 8, 3, 1, "tested", fill=fill), lanes=LaneRow())
    assert row.low_bits > 0
    monkeypatch.setattr(plan_0011, "msm_row", lambda *_: row)
    rng = random.Random(f"{group} {fill}")
    logarithms = [rng.randrange(13) for _ in range(900)]
    vectors = [[1] * 900, [rng.randrange(13) for _ in range(900)]]
    for levels in (1, 2, 4):
        check(cpu, group, logarithms, vectors, levels=levels)


@pytest.mark.parametrize("group", GROUPS)
def test_no_entries(cpu: Backend, group: GroupName) -> None:
    """Scalars that are 0, points that are infinity, and none at all."""
    check(cpu, group, [3] * 40, [[0] * 40], levels=2)
    check(cpu, group, [0] * 40, [[7] * 40], levels=2)
    check(cpu, group, [], [[]], levels=2)


@pytest.mark.parametrize("group", GROUPS)
def test_pieces(cpu: Backend, group: GroupName) -> None:
    """Of fewer vectors, the last of still fewer but with more entries, and of fewer points, which share buckets."""
    rng = random.Random(group)
    logarithms = [rng.randrange(13) for _ in range(230)]
    vectors = [[rng.randrange(13) * (turn > 2) for _ in range(230)] for turn in range(5)]
    pieces = set()
    for memory in (1 << 17, 1 << 16, 1 << 15):
        traits = replace(cpu.traits(), memory=memory)
        plan = check(cpu, group, logarithms, vectors, levels=2, traits=traits)
        pieces.add(len(plan.pieces))
    assert len(pieces) == 3 and max(pieces) > 5
