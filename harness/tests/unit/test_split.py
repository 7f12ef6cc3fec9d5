"""Pieces of an element-wise batch: they cover it once and keep to the budget."""

from __future__ import annotations

import dataclasses

import pytest

from limbd.ops import by_name
from limbd.ops.base import Call, LaunchPlan, Traits
from limbd.ops.split import LANES, PIECE_BYTES
from limbd.ops.status import ServiceError, Status

TRAITS = Traits("cuda", "sm_90", 132, 64 << 20)
ELEMENT = 96  # mod-mul: two operands and a result


def plan_of(n: int, **changes: object) -> LaunchPlan:
    op = by_name("mod-mul")
    payload = (7).to_bytes(32, "little") + bytes(64 * n)
    return op.plan(op.decode(Call(n), memoryview(payload)), dataclasses.replace(TRAITS, **changes))  # type: ignore[arg-type]


def counts(plan: LaunchPlan) -> list[int]:
    return [piece.launches[0].values["n"] for piece in plan.pieces]


@pytest.mark.parametrize("n", [1, 2, 3, 100, 1023, 1024, 1025, 54_321, 300_000])
@pytest.mark.parametrize("memory", [ELEMENT, 3 * ELEMENT, 10_000 * ELEMENT, 64 << 20])
def test_pieces_cover_the_batch_once_within_the_budget(n: int, memory: int) -> None:
    if n * ELEMENT > 3000 * memory:
        pytest.skip("thousands of tiny pieces say no more than hundreds")
    plan = plan_of(n, memory=memory)
    assert plan.device_bytes() <= memory
    at = 0
    for piece, count in zip(plan.pieces, counts(plan), strict=True):
        assert count > 0
        for copy in (*piece.copies_in, *piece.copies_out):
            assert (copy.offset, copy.nbytes) == (32 * at, 32 * count)
        at += count
    assert at == n


def test_a_small_batch_stays_whole() -> None:
    plan = plan_of(PIECE_BYTES // ELEMENT)
    assert (plan.lanes, len(plan.pieces)) == (1, 1)


def test_a_large_batch_uses_every_lane_in_equal_pieces() -> None:
    plan = plan_of(1_000_000)
    sizes = counts(plan)
    assert plan.lanes == LANES
    assert len(set(sizes[:-1])) == 1
    assert sizes[0] * ELEMENT <= PIECE_BYTES


def test_whole_plans_are_never_cut() -> None:
    assert len(plan_of(600_000, whole=True).pieces) == 1
    with pytest.raises(ServiceError) as caught:
        plan_of(1_000_000, whole=True)
    assert caught.value.status is Status.OUT_OF_DEVICE_MEMORY


def test_a_budget_below_one_element_is_refused() -> None:
    with pytest.raises(ServiceError) as caught:
        plan_of(1, memory=ELEMENT - 1)
    assert caught.value.status is Status.OUT_OF_DEVICE_MEMORY
