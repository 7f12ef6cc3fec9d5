"""The incumbent of plan 0015: multiplications on G1 as they were before it."""

from __future__ import annotations

from dataclasses import replace

from limbd.harness.candidates import Candidate, Options
from limbd.ops.base import LaunchPlan, Request, Traits
from limbd.ops.msm import Msm
from limbd.ops.msm_plan import plan_of
from limbd.ops.msm_tuning import MsmRow, msm_row, with_width

# log2 of the points, rounded up -> window.
WIDTHS = {
    "bn254": ((13, 8), (15, 10), (17, 13), (19, 15), (21, 16), (23, 17), (24, 20)),
    "bls12_381": ((13, 8), (15, 10), (18, 13), (23, 16), (24, 20)),
    "secp256k1": ((13, 8), (15, 10), (17, 13), (20, 15), (23, 17), (24, 20)),
    "toy_7_13": ((24, 4),),
}


def slices(request: Request, traits: Traits, options: Options) -> LaunchPlan:
    """Additions by slices of all entries, scalars as they are."""
    op = request.op
    assert isinstance(op, Msm)
    question = op.question(request)

    def row_of(count: int) -> MsmRow:
        row = msm_row(traits.kind, traits.arch, question.curve, op.group, count)
        log, widths = (count - 1).bit_length(), WIDTHS[question.curve.name]
        width = next((width for up_to, width in widths if log <= up_to), widths[-1][1])
        other = with_width(width, row.slice, row.merge, 3, row.resident, "plan 0015", fill=row.fill)
        return replace(other, lanes=row.lanes)

    return plan_of(question, traits, row_of)


# Four blocks of additions leave 128 registers: a few words of a point or of a sum spill.
CANDIDATES = {"slices": Candidate(slices, curves=tuple(WIDTHS), spills=64)}
