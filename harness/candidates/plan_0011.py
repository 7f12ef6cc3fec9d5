"""The sides of plan 0011: entries of buckets added in XYZZ coordinates, and by pairs in affine ones, level by level
(kernels/candidate/0011/levels.cuh), until few points a bucket are left for XYZZ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from math import log2

from limbd.harness.candidates import Candidate, Options
from limbd.ops.base import (
    LIMB_BYTES,
    Buffer,
    Kernel,
    Launch,
    LaunchPlan,
    Member,
    Part,
    Piece,
    Place,
    Request,
    Struct,
    Traits,
    Unit,
)
from limbd.ops.msm import Msm
from limbd.ops.msm_plan import plan_of
from limbd.ops.msm_tuning import BLOCK, MsmRow, msm_row
from limbd.ops.msm_units import CHUNKS, MAX_CHUNK, SORT_BLOCK

CURVES = ("bn254", "bls12_381", "toy_7_13")

# Blocks that a multiprocessor holds without spills in the loops: of additions by chunks, and of those by levels.
PAIR_BLOCKS = {"bn254": 3, "bls12_381": 2}
LEVEL_BLOCKS = {"bn254": 4, "bls12_381": 3}
FEW_BLOCKS = 2

# So many points a bucket are about left for XYZZ; in places of the last level one in five would be empty.
LEFT = 4

# Places of a level that its lanes take, at most; of the list of what is left, a thread (kernels/candidate/0011).
MOST_PLACES = 32
LISTED_PLACES = 8


def threads(request: Request, traits: Traits, options: Options) -> LaunchPlan:
    return _by_chunks(request, traits, pairs=False)


def pairs(request: Request, traits: Traits, options: Options) -> LaunchPlan:
    return _by_chunks(request, traits, pairs=True)


def affine(request: Request, traits: Traits, options: Options) -> LaunchPlan:
    return by_levels(request, traits)


def by_levels(request: Request, traits: Traits, *, levels: int = 0, most: int = MOST_PLACES) -> LaunchPlan:
    """levels: so many; 0: by the numbers of entries and buckets. most: places of a level for a group of lanes. Constant work is
    as by chunks."""
    op = request.op
    assert isinstance(op, Msm)
    plan, question = _by_chunks(request, traits, pairs=True), op.question(request)
    if question.count == 0 or question.constant:
        return plan
    group = question.curve.group(op.group)
    assert group is not None
    words = {buffer.name: buffer.nbytes // LIMB_BYTES for buffer in plan.buffers}
    resident = LEVEL_BLOCKS.get(question.curve.name, FEW_BLOCKS)
    fill = traits.multiprocessors * resident * BLOCK // group.degree if traits.kind == "cuda" else 1
    cut = _Cut(
        words["entries"],
        words["starts"] - 1,
        levels or _levels(words["entries"] / (words["starts"] - 1)),
        question.curve.point_limbs(group),
        group.degree,
        resident,
        fill,
        most,
    )
    role = next(buffer.role for buffer in plan.buffers if buffer.name == "starts")
    buffers = (Buffer(name, role, size * LIMB_BYTES) for name, size in cut.words().items())
    pieces = tuple(replace(piece, launches=tuple(_launches(piece, cut))) for piece in plan.pieces)
    return replace(plan, buffers=(*plan.buffers, *buffers), pieces=pieces)


def _by_chunks(request: Request, traits: Traits, *, pairs: bool) -> LaunchPlan:
    """The shipped windows."""
    op = request.op
    assert isinstance(op, Msm)
    question = op.question(request)

    def row_of(count: int) -> MsmRow:
        row = replace(msm_row(traits.kind, traits.arch, question.curve, op.group, count), chunk=MAX_CHUNK)
        if not pairs or op.group == "g1" or traits.kind != "cuda":
            return replace(row, pairs=pairs)
        resident = PAIR_BLOCKS.get(question.curve.name, FEW_BLOCKS)
        fill = traits.multiprocessors * resident * BLOCK // 2
        return replace(row, pairs=True, resident=resident, fill=fill)

    return plan_of(question, traits, row_of)


def _levels(mean: float) -> int:
    """mean: entries of a bucket. At least one, so that every multiplication is put to the test."""
    return max(1, round(log2(max(1.0, mean / LEFT))))


@dataclass(frozen=True)
class _Cut:
    """entries, buckets: of the largest piece. limbs, degree: of a point, and of its coordinates. fill: groups of lanes that
    fill the device. most: places of a level for one of them."""

    entries: int
    buckets: int
    levels: int
    limbs: int
    degree: int
    resident: int
    fill: int
    most: int

    def places(self, level: int) -> int:
        """At most."""
        return self.entries + self.buckets * ((1 << level) - 1) >> level

    def groups(self, level: int) -> int:
        """At most, of pair_sums::share_of."""
        places = self.places(level)
        return min(places, self.fill * -(-places // (self.fill * self.most)))

    def words(self) -> dict[str, int]:
        """Of buffers. Where buckets have less than a point each, a later level has more places."""
        by_turns = {self.sums(level): range(level, self.levels + 1, 2) for level in range(1, min(self.levels, 2) + 1)}
        return {
            **{name: self.limbs * max(map(self.places, levels)) for name, levels in by_turns.items()},
            "left": self.places(self.levels),
            "left_counts": self.buckets + 2 * MAX_CHUNK + 2,
            "left_starts": self.buckets + 1,
            "left_cursors": self.buckets,
        }

    def sums(self, level: int) -> str:
        return f"pair_sums_{level % 2}"


def _launches(piece: Piece, cut: _Cut) -> Iterator[Launch]:
    """cut: of the largest piece, to which the others' buckets are those that they have."""
    (order,) = (launch for launch in piece.launches if launch.kernel.name == "msm_chunks")
    cut = replace(cut, buckets=order.values["buckets"])
    for launch in piece.launches:
        if launch.kernel.name == "msm_add_chunks":
            yield from _add_levels(launch, cut)
            yield from _order_left(piece, launch, order, cut)
            yield _of_left(launch, {"points": cut.sums(cut.levels), "entries": "left", "totals": _left(cut, "totals")})
        elif launch.kernel.name == "msm_segments":
            yield _of_left(launch, {"starts": "left_starts"})
        elif launch.kernel.name != "msm_chunks":
            yield launch


def _of_left(launch: Launch, pointers: Mapping[str, Place]) -> Launch:
    return replace(launch, pointers={**launch.pointers, **pointers})


def _left(cut: _Cut, name: str) -> Part:
    """Of the buffer of counts that begin as 0: by bucket, by class of chunks, how many places of it are taken, and of all."""
    before = {"counts": 0, "classes": 0, "cursors": MAX_CHUNK, "totals": 2 * MAX_CHUNK}[name]
    return Part("left_counts", LIMB_BYTES * (before + (0 if name == "counts" else cut.buckets)))


def _add_levels(chunks: Launch, cut: _Cut) -> Iterator[Launch]:
    for level in range(1, cut.levels + 1):
        values = {"buckets": cut.buckets, "level": level, "fill": cut.fill, "most": cut.most}
        pointers: dict[str, Place | None] = {"sums": cut.sums(level)}
        if level == 1:
            kernel = _kernel(chunks, "msm_pair_entries", cut.resident)
            pointers |= {name: chunks.pointers[name] for name in ("points", "entries")}
        else:
            kernel = _kernel(chunks, "msm_pair_sums", cut.resident)
            pointers["points"] = cut.sums(level - 1)
        yield Launch(kernel, -(-cut.groups(level) * cut.degree // BLOCK), BLOCK, values, 0, pointers)


def _order_left(piece: Piece, chunks: Launch, order: Launch, cut: _Cut) -> Iterator[Launch]:
    """The scan over buckets and the order of their chunks, as of the entries, of the last level's finite points."""
    cleared, unit = cut.buckets + 2 * MAX_CHUNK + 2, order.kernel.unit
    (struct,) = (struct for struct in unit.structs if struct.name == "msm_clear_args")
    clear = Kernel(unit, "msm_clear", struct, SORT_BLOCK, False)
    yield Launch(clear, -(-cleared // SORT_BLOCK), SORT_BLOCK, {"n": cleared}, 0, {"counts": "left_counts"})

    grid = -(-cut.places(cut.levels) // (LISTED_PLACES * BLOCK))
    values = {"buckets": cut.buckets, "level": cut.levels}
    points: dict[str, Place] = {"points": cut.sums(cut.levels)}
    kernel = _kernel(chunks, "msm_count_left", cut.resident)
    counts: dict[str, Place] = {name: _left(cut, name) for name in ("counts", "totals")}
    yield Launch(kernel, grid, BLOCK, values, 0, {**points, **counts})

    scanned: dict[str, Place] = {"starts": "left_starts", "cursors": "left_cursors", "seconds": _left(cut, "classes")}
    for launch in piece.launches:
        if launch.values.get("form") == CHUNKS:
            yield _of_left(launch, {**scanned, **counts})
    classes: dict[str, Place] = {name: _left(cut, name) for name in ("classes", "cursors", "totals")}
    yield _of_left(order, {"starts": "left_starts", **classes})

    kernel = _kernel(chunks, "msm_list_left", cut.resident)
    yield Launch(kernel, grid, BLOCK, values, 0, {**points, "cursors": "left_cursors", "left": "left"})


def _struct(name: str, pointers_in: str, pointers_out: str, words: str) -> Struct:
    members = (
        *(Member(each, "in") for each in pointers_in.split()),
        *(Member(each, "scratch") for each in pointers_out.split()),
        *(Member(each, "u32") for each in words.split()),
    )
    return Struct(f"{name}_args", members)


_STRUCTS = {
    "msm_pair_entries": _struct("msm_pair_entries", "points entries starts", "sums", "buckets level fill most"),
    "msm_pair_sums": _struct("msm_pair_sums", "points starts", "sums", "buckets level fill most"),
    "msm_count_left": _struct("msm_count_left", "points starts", "counts totals", "buckets level"),
    "msm_list_left": _struct("msm_list_left", "points starts", "cursors left", "buckets level"),
}


def _kernel(chunks: Launch, name: str, resident: int) -> Kernel:
    """chunks: a launch of the same group."""
    constants = (("THREADS", BLOCK), ("RESIDENT", resident))
    structs = tuple(_STRUCTS.values())
    unit = Unit("candidate/0011/affine_levels", structs, constants, chunks.kernel.unit.params)
    return Kernel(unit, name, _STRUCTS[name], BLOCK, name != "msm_list_left")


CANDIDATES = {
    "threads": Candidate(threads, curves=CURVES, spills=1400),
    "pairs": Candidate(pairs, curves=CURVES, spills=600),
    "affine": Candidate(affine, curves=CURVES, spills=600),
}
