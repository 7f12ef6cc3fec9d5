"""The sides of plan 0013: additions by chunks, of whole scalars, and of halves by the endomorphism up to some number of points."""

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

# log2 of the points, rounded up -> window of a half; above the last one scalars are whole. Halves have 127 bits, those of
# secp256k1 128, and a carry: 13, 10 and 8 windows have next to none to spare.
WIDTHS = {
    "bn254": ((13, 10), (17, 13), (21, 16)),
    "secp256k1": ((13, 10), (18, 13)),
    "toy_7_13": ((24, 3),),
}


def whole(request: Request, traits: Traits, options: Options) -> LaunchPlan:
    return _plan(request, traits, halves=False)


def halves(request: Request, traits: Traits, options: Options) -> LaunchPlan:
    return _plan(request, traits, halves=True)


def _plan(request: Request, traits: Traits, *, halves: bool) -> LaunchPlan:
    op = request.op
    assert isinstance(op, Msm)
    question = op.question(request)

    def row_of(count: int) -> MsmRow:
        row = replace(msm_row(traits.kind, traits.arch, question.curve, op.group, count), chunk=MAX_CHUNK, halves=False)
        log = (count - 1).bit_length()
        width = next((width for up_to, width in WIDTHS[question.curve.name] if log <= up_to), 0)
        if not (halves and width):
            return row
        other = with_width(width, row.slice, row.merge, row.log_segment, row.resident, "plan 0013", fill=row.fill)
        return replace(row, width=other.width, low_bits=other.low_bits, halves=True)

    return plan_of(question, traits, row_of)


CANDIDATES = {
    "whole": Candidate(whole, curves=CURVES, spills=64),
    "halves": Candidate(halves, curves=CURVES, spills=64),
}
