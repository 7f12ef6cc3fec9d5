"""The sides of plan 0009: points of bls12_381 G2 added into buckets by one thread each, and by two lanes."""

from __future__ import annotations

from dataclasses import replace

from limbd.harness.candidates import Candidate, Options
from limbd.ops.base import LaunchPlan, Request, Traits
from limbd.ops.msm import Msm
from limbd.ops.msm_plan import plan_of
from limbd.ops.msm_tuning import BLOCK, MsmRow, msm_row
from limbd.ops.msm_units import MAX_CHUNK

CURVES = ("bls12_381", "toy_7_13")


def threads(request: Request, traits: Traits, options: Options) -> LaunchPlan:
    return by_chunks(request, traits, None)


def pairs(request: Request, traits: Traits, options: Options) -> LaunchPlan:
    return by_chunks(request, traits, 2)


def by_chunks(request: Request, traits: Traits, resident: int | None) -> LaunchPlan:
    """The shipped windows. resident: blocks of pairs that a multiprocessor holds; None: a thread an addition."""
    op = request.op
    assert isinstance(op, Msm)
    question = op.question(request)

    def row_of(count: int) -> MsmRow:
        row = replace(msm_row(traits.kind, traits.arch, question.curve, op.group, count), chunk=MAX_CHUNK)
        if resident is None or traits.kind != "cuda":
            return replace(row, pairs=resident is not None)
        fill = traits.multiprocessors * resident * BLOCK // 2
        return replace(row, pairs=True, resident=resident, fill=fill)

    return plan_of(question, traits, row_of)


# Of pairs what spills is outside of the loop.
CANDIDATES = {
    "threads": Candidate(threads, curves=CURVES, spills=1400),
    "pairs": Candidate(pairs, curves=CURVES, spills=600),
}
