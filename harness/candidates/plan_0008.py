"""The sides of plan 0008: additions by chunks, of whole scalars and of halves by the endomorphism."""

from __future__ import annotations

from dataclasses import replace

from limbd.harness.candidates import Candidate, Options
from limbd.ops.base import LaunchPlan, Request, Traits
from limbd.ops.msm import Msm
from limbd.ops.msm_plan import plan_of
from limbd.ops.msm_tuning import MsmRow, msm_row, with_width
from limbd.ops.msm_units import MAX_CHUNK

# Curves without a cofactor.
CURVES = ("bn254", "secp256k1", "toy_7_13")

# log2 of the points, rounded up -> window of a half of up to 127 bits, none of which has bits to spare: 13, 10, 9, 8, 7 windows.
WIDTHS = ((13, 10), (17, 13), (18, 15), (21, 16), (24, 19))


def whole(request: Request, traits: Traits, options: Options) -> LaunchPlan:
    return _plan(request, traits, halves=False)


def halves(request: Request, traits: Traits, options: Options) -> LaunchPlan:
    return _plan(request, traits, halves=True)


def _plan(request: Request, traits: Traits, *, halves: bool) -> LaunchPlan:
    op = request.op
    assert isinstance(op, Msm)
    question = op.question(request)

    def row_of(count: int) -> MsmRow:
        row = msm_row(traits.kind, traits.arch, question.curve, op.group, count)
        if halves and traits.kind == "cuda":
            log = (count - 1).bit_length()
            width = min(next((w for up_to, w in WIDTHS if log <= up_to), WIDTHS[-1][1]), question.curve.scalar.bits)
            other = with_width(width, row.slice, row.merge, row.log_segment, row.resident, "plan 0008", fill=row.fill)
            row = replace(other, lanes=row.lanes)
        return replace(row, chunk=MAX_CHUNK, halves=halves)

    return plan_of(question, traits, row_of)


CANDIDATES = {
    "whole": Candidate(whole, curves=CURVES, spills=64),
    "halves": Candidate(halves, curves=CURVES, spills=64),
}
