"""Multi-scalar multiplication with points over groups of lanes after the additions into buckets, which is how a GPU does it:
every cut of merging and of the reduction, the special cases side by side in one warp, and the GPU's own rows. On the host
with range checks, and (marked gpu) on the device."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import pytest

from limbd.harness.groups import GROUPS, group_of
from limbd.harness.multiplications import Multiples, Multiplication
from limbd.ops.base import Launch
from limbd.ops.msm_tuning import LaneRow, MsmRow, msm_row, with_width
from limbd.ops.params.curves import Curve, GroupName, by_name
from limbd.ops.reference.curve import Point, negate
from limbd.ops.reference.msm import decode_points, proof_points, sum_of
from limbd.worker.device.base import Backend

EVERY_GROUP = pytest.mark.parametrize(("curve", "name"), GROUPS, ids=[f"{c.name}-{n}" for c, n in GROUPS])
BOTH_MODES = pytest.mark.parametrize("constant", [False, True], ids=["variable", "constant"])
SHORT = LaneRow(log_chunk=2, rounds=1)
BY_ROWS = replace(SHORT, trees=0)


def named(name: str) -> Curve:
    curve = by_name(name)
    assert curve is not None
    return curve


TOY = named("toy_7_13")
BN254 = named("bn254")


def rows(
    width: int, slice_length: int, merge: int, log_segment: int, lanes: LaneRow = SHORT
) -> Callable[[int], MsmRow]:
    made = with_width(width, slice_length, merge, log_segment, 1, "a test's")
    made = replace(made, lanes=lanes, chunk=slice_length)
    return lambda count: made


def launches(asked: Multiplication, backend: Backend, row_of: Callable[[int], MsmRow], *names: str) -> list[Launch]:
    plan = asked.plan(asked.request(), backend.traits(), row_of)
    return [launch for launch in plan.launches() if launch.kernel.name in names]


@EVERY_GROUP
@BOTH_MODES
def test_edges_of_every_group(kernels: Backend, curve: Curve, name: GroupName, constant: bool) -> None:
    scalars, points = proof_points(curve, group_of(curve, name))
    asked = Multiplication(curve, name, scalars, points, constant_work=constant)
    expected = [sum_of([s % curve.order for s in scalars], points, curve)]
    assert asked.answer(kernels, rows(6, 3, 2, 3)) == expected


@EVERY_GROUP
def test_the_rows_of_a_gpu(kernels: Backend, curve: Curve, name: GroupName) -> None:
    known = Multiples(curve, name, f"rows {curve.name} {name}", 300)
    rng = random.Random("rows")
    scalars = [rng.choice((0, 1, curve.order - 1, rng.randrange(2**256))) for _ in range(300)]
    got = Multiplication(curve, name, scalars, known.points).answer(
        kernels, lambda count: msm_row("cuda", "sm_90", curve, name, count)
    )
    assert got == [known.total(scalars)]


@BOTH_MODES
@pytest.mark.parametrize("name", ["g1", "g2"])
@pytest.mark.parametrize("slice_length", [1, 2, 7])
@pytest.mark.parametrize("merge", [2, 8])
@pytest.mark.parametrize(
    ("log_segment", "lanes"), [(1, SHORT), (2, LaneRow(3, 4, 0)), (1, LaneRow(5, 4)), (9, LaneRow(1, 2, 3))]
)
def test_any_cut_gives_the_same_sum(
    kernels: Backend, name: GroupName, slice_length: int, merge: int, log_segment: int, lanes: LaneRow, constant: bool
) -> None:
    """Few different points and scalars, so that buckets and sums meet equal and opposite ones, and infinity."""
    known = Multiples(TOY, name, "cuts", 90)
    rng = random.Random(f"cuts {name}")
    for width in (3, 5):
        scalars = [rng.choice((0, 1, rng.randrange(13))) for _ in range(90)]
        asked = Multiplication(TOY, name, scalars, known.points, constant_work=constant)
        row_of = rows(width, slice_length, merge, log_segment, lanes)
        assert asked.answer(kernels, row_of) == [known.total(scalars)]


@BOTH_MODES
def test_long_runs_of_spills(kernels: Backend, constant: bool) -> None:
    """One bucket over hundreds of slices, by many levels, of which one block does the last ones, by rows in turns."""
    known = Multiples(BN254, "g1", "runs", 1)
    n = 3000
    asked = Multiplication(BN254, "g1", [77] * n, known.points * n, constant_work=constant)
    forms = set()
    for lanes in (replace(SHORT, trees=1 << 20), BY_ROWS, LaneRow(5, 60, 0), LaneRow(5, 4, 16)):
        row_of = rows(8, 2, 3, 3, lanes)
        merges = launches(asked, kernels, row_of, "msm_merge", "msm_merge_trees")
        forms.add(tuple(dict.fromkeys(merge.kernel.name for merge in merges)))
        assert (merges[0].grid, merges[-1].grid) == (max(merge.grid for merge in merges), 1)
        assert merges[-1].values["levels"] > 1
        assert asked.answer(kernels, row_of) == [known.point(77 * n * known.logarithms[0])]
    assert forms == {("msm_merge_trees",), ("msm_merge",), ("msm_merge", "msm_merge_trees")}


@BOTH_MODES
def test_a_reduction_of_several_launches(kernels: Backend, constant: bool) -> None:
    known = Multiples(BN254, "g1", "stages", 40)
    rng = random.Random("stages")
    scalars = [rng.randrange(BN254.order) for _ in range(40)]
    asked = Multiplication(BN254, "g1", scalars, known.points, constant_work=constant)
    for lanes, count in ((LaneRow(4, 4), 2), (SHORT, 3)):
        row_of = rows(9, 8, 8, 2, lanes)
        assert len(launches(asked, kernels, row_of, "msm_segments_next")) == count
        assert asked.answer(kernels, row_of) == [known.total(scalars)]


@BOTH_MODES
def test_opposite_points(kernels: Backend, constant: bool) -> None:
    known = Multiples(BN254, "g1", "opposite", 20)
    points: list[Point] = [*known.points, *(negate(point, BN254.base.modulus) for point in known.points)]
    for slice_length in (1, 3, 20):
        asked = Multiplication(BN254, "g1", [77] * 40, points, constant_work=constant)
        assert asked.answer(kernels, rows(5, slice_length, 3, 2)) == [None]
        asked = replace(asked, points=[*points, known.points[0]], scalars=[77] * 41)
        assert asked.answer(kernels, rows(5, slice_length, 3, 2)) == [known.point(77 * known.logarithms[0])]


@BOTH_MODES
def test_vectors_and_pieces(kernels: Backend, constant: bool) -> None:
    known = Multiples(TOY, "g2", "pieces", 50)
    rng = random.Random("pieces")
    scalars = [rng.randrange(13) for _ in range(7 * 50)]
    asked = Multiplication(TOY, "g2", scalars, known.points, vectors=7, constant_work=constant)
    expected = [known.total(scalars[v * 50 : (v + 1) * 50]) for v in range(7)]
    pieces = set()
    for memory in (1 << 30, 25_000, 14_000):
        plan = asked.plan(asked.request(), replace(kernels.traits(), memory=memory), rows(3, 8, 3, 1))
        pieces.add(len(plan.pieces))
        result = bytearray(asked.op.result_bytes(asked.call()))
        kernels.run(asked.request(), plan, memoryview(result))
        assert decode_points(bytes(result), asked.curve, asked.group) == expected, memory
    assert len(pieces) == 3
