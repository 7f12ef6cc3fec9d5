"""The sides of plan 0005: rows of the tuning, by which the kernels that are shipped run."""

from __future__ import annotations

from dataclasses import replace

from limbd.harness.candidates import Candidate, Options
from limbd.ops import transform
from limbd.ops.base import LaunchPlan, Request, Traits
from limbd.ops.ntt import NTT
from limbd.ops.transform_op import LOG_N
from limbd.ops.tuning import TransformRow

# Three compiled passes each of the sizes that are measured; shorter transforms go through the kernel of all shapes.
COMPILED_FROM = 19

GENERAL = TransformRow(None, None, 3, 10, 10, 128, 4, "plan 0005", splits=((8, 6, 6), (8, 8, 6)))
COMPILED = replace(GENERAL, compiled=(0, 1, 2))
# A digit of 11 bits is a tile of 2048 elements: 256 threads, and more shared memory than needs no opt-in.
TWO_PASSES = replace(GENERAL, largest=11, threads=256, resident=2, splits=())
# As many threads a multiprocessor as GENERAL has; a tile is what they hold.
RADIX_4 = TransformRow(None, None, 2, 9, 9, 128, 4, "plan 0005")
RADIX_2 = TransformRow(None, None, 1, 8, 8, 128, 4, "plan 0005")


def by_row(row: TransformRow) -> Candidate:
    """ntt by one row; where threads hold more than the smallest transforms have, and where no shape can be compiled in, as
    ntt is shipped or by GENERAL."""

    def plan(request: Request, traits: Traits, options: Options) -> LaunchPlan:
        assert request.field is not None, "decode names the field"
        k = request.param & LOG_N
        if k + 1 < row.log_e:
            return NTT.plan(request, traits)
        compiled = k >= COMPILED_FROM and transform.compiles(request.field)
        return NTT.plan_by(request, traits, row if compiled else replace(row, compiled=()))

    return Candidate(plan)


CANDIDATES = {
    "general": by_row(GENERAL),
    "compiled": by_row(COMPILED),
    "two-passes": by_row(TWO_PASSES),
    "radix-4": by_row(RADIX_4),
    "radix-2": by_row(RADIX_2),
}
