"""The candidate of plan 0012: additions into buckets of G1 by chunks of buckets."""

from __future__ import annotations

from dataclasses import replace

from limbd.harness.candidates import Candidate, Options
from limbd.ops.base import LaunchPlan, Request, Traits
from limbd.ops.msm import Msm
from limbd.ops.msm_plan import plan_of
from limbd.ops.msm_tuning import MsmRow, msm_row
from limbd.ops.msm_units import MAX_CHUNK

# Those of the plan, and the one whose points are all tried.
CURVES = ("bn254", "bls12_381", "toy_7_13")


def chunks(request: Request, traits: Traits, options: Options) -> LaunchPlan:
    """The shipped row, but for what a thread adds up."""
    op = request.op
    assert isinstance(op, Msm)
    question = op.question(request)

    def row_of(count: int) -> MsmRow:
        return replace(msm_row(traits.kind, traits.arch, question.curve, op.group, count), chunk=MAX_CHUNK)

    return plan_of(question, traits, row_of)


# Four blocks of additions leave 128 registers: a few words of a point or of a sum spill.
CANDIDATES = {"chunks": Candidate(chunks, curves=CURVES, spills=64)}
