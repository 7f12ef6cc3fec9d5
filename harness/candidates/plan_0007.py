"""The candidates of plan 0007: additions into buckets by chunks of buckets, and by a thread for each bucket."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from limbd.harness.candidates import Candidate, Options
from limbd.ops.base import Kernel, Launch, LaunchPlan, Member, Piece, Request, Struct, Traits, Unit
from limbd.ops.msm import Msm
from limbd.ops.msm_plan import plan_of
from limbd.ops.msm_tuning import MsmRow, msm_row
from limbd.ops.msm_units import MAX_CHUNK

# Those of the plan, and the one whose points are all tried.
CURVES = ("bn254", "bls12_381", "toy_7_13")


def chunks(request: Request, traits: Traits, options: Options) -> LaunchPlan:
    """The shipped row, but for what a thread adds up."""
    return _with_chunk(request, traits, MAX_CHUNK)


def bucket_threads(request: Request, traits: Traits, options: Options) -> LaunchPlan:
    """The shipped sort and reduction. Constant work, which goes by slices, is as it is shipped."""
    assert isinstance(request.op, Msm)
    plan = _with_chunk(request, traits, 0)
    if request.op.question(request).constant:
        return plan
    return replace(plan, pieces=tuple(_without_slices(piece) for piece in plan.pieces))


def _with_chunk(request: Request, traits: Traits, chunk: int) -> LaunchPlan:
    op = request.op
    assert isinstance(op, Msm)
    question = op.question(request)

    def row_of(count: int) -> MsmRow:
        return replace(msm_row(traits.kind, traits.arch, question.curve, op.group, count), chunk=chunk)

    return plan_of(question, traits, row_of)


_STRUCT = Struct(
    "msm_add_buckets_args",
    (
        *(Member(name, "in") for name in ("points", "entries", "starts")),
        Member("buckets", "scratch"),
        Member("n", "u64"),
    ),
)


def _without_slices(piece: Piece) -> Piece:
    return replace(piece, launches=tuple(_launches(piece)))


def _launches(piece: Piece) -> Iterator[Launch]:
    for launch in piece.launches:
        if launch.kernel.name == "msm_accumulate":
            yield _by_buckets(launch, piece)
        elif not launch.kernel.name.startswith("msm_merge"):
            yield launch


def _by_buckets(slices: Launch, piece: Piece) -> Launch:
    """In place of a launch by slices: the same points and entries."""
    unit, block = slices.kernel.unit, slices.block
    constants = tuple(each for each in unit.constants if each[0] in ("THREADS", "RESIDENT"))
    own = Unit("candidate/0007/bucket_threads", (_STRUCT,), constants, unit.params)
    kernel = Kernel(own, "msm_add_buckets", _STRUCT, slices.kernel.max_block, False)
    (segments,) = (launch.values for launch in piece.launches if launch.kernel.name == "msm_segments")
    buckets = segments["n"] // segments["segments"] * segments["row_buckets"]
    pointers = {name: slices.pointers[name] for name in ("points", "entries")}
    return Launch(kernel, -(-buckets // block), block, {"n": buckets}, 0, pointers)


# Four blocks of additions leave 128 registers: a few words of a point or of a sum spill.
CANDIDATES = {
    "chunks": Candidate(chunks, curves=CURVES, spills=64),
    "bucket-threads": Candidate(bucket_threads, curves=CURVES, spills=16),
}
