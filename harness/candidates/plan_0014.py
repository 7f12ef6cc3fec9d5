"""The candidate of plan 0014: points of G2 added into buckets by chunks, those of bls12_381 by two lanes each."""

from __future__ import annotations

from dataclasses import replace

from limbd.harness.candidates import Candidate, Options
from limbd.ops.base import LaunchPlan, Request, Traits
from limbd.ops.msm import Msm
from limbd.ops.msm_plan import plan_of
from limbd.ops.msm_tuning import BLOCK, MsmRow, msm_row
from limbd.ops.msm_units import MAX_CHUNK

CURVES = ("bn254", "bls12_381", "toy_7_13")

# Blocks of pairs that a multiprocessor holds.
RESIDENT = 2


def chunks(request: Request, traits: Traits, options: Options) -> LaunchPlan:
    """The shipped windows."""
    return _plan(request, traits, pairs=False)


def pairs(request: Request, traits: Traits, options: Options) -> LaunchPlan:
    """The same, by two lanes each on bls12_381."""
    return _plan(request, traits, pairs=True)


def _plan(request: Request, traits: Traits, *, pairs: bool) -> LaunchPlan:
    op = request.op
    assert isinstance(op, Msm)
    question = op.question(request)

    def row_of(count: int) -> MsmRow:
        row = replace(msm_row(traits.kind, traits.arch, question.curve, op.group, count), chunk=MAX_CHUNK)
        if not pairs or question.curve.name == "bn254":
            return row
        fill = traits.multiprocessors * RESIDENT * BLOCK // 2 if traits.kind == "cuda" else row.fill
        return replace(row, pairs=True, resident=RESIDENT, fill=fill)

    return plan_of(question, traits, row_of)


# Of a thread's addition in bls12_381's extension; of pairs what spills is outside of the loop.
CANDIDATES = {
    "chunks": Candidate(chunks, curves=CURVES, spills=1400),
    "pairs": Candidate(pairs, curves=CURVES, spills=600),
}
