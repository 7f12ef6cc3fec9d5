"""How a multi-scalar multiplication is cut, by the number of points and by the device."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

from limbd.ops.msm_bases import Bases
from limbd.ops.msm_units import MAX_CHUNK, TILE
from limbd.ops.params.curves import Curve, GroupName
from limbd.ops.tuning import CPU, MEASURED, serving


@dataclass(frozen=True)
class LaneRow:
    """log_chunk: log2 of the pairs that a block brings down to one. rounds: most turns of a block in the first level of the
    launch that merges by rows all the spills that are left. trees: most slices of a level that is merged by trees, a warp
    each; 0, all are merged by rows."""

    log_chunk: int = 5
    rounds: int = 4
    # A turn of all warps that an H200's multiprocessors hold, 16 each, and a few more, which find nothing.
    trees: int = 17 << 7


@dataclass(frozen=True)
class MsmRow:
    """width: bits of a window. low_bits: of a bucket's number, which the sort's second pass takes; 0, one pass is all.
    slice: entries that a thread adds up, at most, where additions go by slices of all entries. chunk: the same where they go by
    chunks of buckets in the order of their sizes; 0, they go by slices, as they do for constant work. halves: scalars are
    halved by the endomorphism where the group has one, and points have their images beside them. pairs: in the extension field
    two lanes add up a chunk. fill: threads of additions that fill the device. merge: spills that a
    thread adds up. log_segment: log2 of the buckets or pairs that a thread of the reduction adds up. lanes: None, where points
    after the additions into buckets are a thread's; else they lie over groups of lanes, and it says how the stages after the
    reduction's first are cut. accumulate_block, reduce_block: threads a block. resident: blocks of additions that a
    multiprocessor holds at once, which bounds their registers. source: as in limbd.ops.tuning.
    """

    width: int
    low_bits: int
    slice: int
    fill: int
    merge: int
    log_segment: int
    accumulate_block: int
    resident: int
    reduce_block: int
    source: str
    lanes: LaneRow | None = None
    chunk: int = 0
    halves: bool = False
    pairs: bool = False


@dataclass(frozen=True)
class Growth:
    """How a multiplication is cut where copies overlap kernels: the first piece, whose copy nothing hides, has at least
    FIRST_PIECE points, and n / firsts, and each later one `times` as many as the one before: as long as its copy takes no longer
    than that one's kernels."""

    firsts: int
    times: int


FIRST_PIECE = 1 << 16


def growth(curve: Curve, group: GroupName, *, kept: bool) -> Growth:
    """On an H200 with a link of 55 GB/s kernels take about twice as long as the copies of points and scalars, and four times
    (bn254 g1) to 26 times (bls12_381 g2) as long as those of scalars alone (2026-12-01-msm-bases-bench.jsonl). Fewer pieces
    cost less; what one costs by itself has no samples."""
    if not kept:
        return Growth(48, 2)
    return Growth(24, 4 if group == "g1" and curve.base.montgomery_limbs <= 8 else 8)


# Of an H200, whose architecture the rows are for.
MULTIPROCESSORS = 132

BLOCK = 128

# Above this many bits of bucket number the sort takes two passes, of which the second takes half of them, and of many as
# many as leave the first FIRST_BITS: its runs should be long, as it writes to all of memory, while the second writes to what
# the cache holds. But no more than LOW_BITS, whose counts and tile fill the shared memory of small GPUs.
ONE_PASS_BITS = 10
FIRST_BITS, LOW_BITS = 8, 11
FEWEST_BITS = 1

MAX_WIDTH = 22

MODEL = "unmeasured: the fewest products by count"

# On a host a block of the sort takes about as long as so many products, however few its items: its threads are fibers, which
# wait for each other time and again. So few points have wider windows, which are fewer rows. Fits a sweep of windows with
# 2, 16 and 64 points of bn254 g1 on two cores of an EPYC, samples not kept.
SORT_PRODUCTS = 2048


@dataclass(frozen=True)
class Cut:
    """Of multiplications of up to 2^up_to points on a GPU, the last one's of all longer ones too: what a sweep decides. As in
    MsmRow."""

    up_to: int
    width: int
    log_segment: int = 3
    halves: bool = False


Cuts = dict[tuple[str, GroupName], tuple[Cut, ...]]

SWEPT = "msm-sweep files and plans 0013 to 0016; unmeasured where no sweep has the group and size"

# Windows waste as few bits as there can be of 254, 255 and 256, or of a half's 127 or 128 and the carry's: the last window of
# what does not divide well has few buckets for as many entries. Of 2^24 points windows were not swept.
_FEW = (Cut(13, 8), Cut(15, 10), Cut(17, 13, 4))
_OTHERS = (*_FEW, Cut(19, 15, 4), Cut(21, 16, 5), Cut(23, 17, 4), Cut(24, 20, 5))
_HALVED = (Cut(11, 8, halves=True), Cut(13, 10, halves=True), Cut(15, 11, halves=True), Cut(17, 13, 4, halves=True))
_PLAIN: Cuts = {
    ("bn254", "g1"): (*_HALVED, Cut(21, 16, 4, halves=True), Cut(23, 17, 4), Cut(24, 20, 5)),
    ("secp256k1", "g1"): (*_HALVED, Cut(20, 15, 4), Cut(23, 17, 4), Cut(24, 20, 5)),
    ("bls12_381", "g1"): (*_FEW, Cut(19, 15, 5), Cut(21, 16, 6), Cut(23, 18, 6), Cut(24, 20, 6)),
    ("bls12_381", "g2"): (
        Cut(13, 8),
        Cut(15, 12),
        Cut(17, 13, 4),
        Cut(19, 15, 4),
        Cut(21, 16, 5),
        Cut(23, 17, 4),
        Cut(24, 20, 5),
    ),
}

# The same where multiples of the points by every window are kept: one set of buckets for all windows.
_KEPT_FEW = (Cut(11, 10, 2), Cut(13, 11, 2), Cut(15, 12, 2))
_KEPT_MANY = (Cut(23, 20, 5), Cut(24, 22, 5))
_KEPT_OTHERS = (*_KEPT_FEW, Cut(17, 16), Cut(19, 16), Cut(21, 19, 4), *_KEPT_MANY)
_KEPT: Cuts = {
    ("bn254", "g1"): (Cut(13, 11, 2), Cut(15, 13, 2), Cut(17, 16), Cut(19, 18, 4), Cut(23, 20, 6), Cut(24, 22, 6)),
    ("bn254", "g2"): (*_KEPT_FEW, Cut(17, 17), Cut(19, 17, 4), *_KEPT_MANY),
    ("bls12_381", "g1"): (
        Cut(11, 10, 2),
        Cut(13, 11, 2),
        Cut(15, 13, 2),
        Cut(17, 16),
        Cut(19, 17, 4),
        Cut(23, 20, 7),
        Cut(24, 22, 7),
    ),
    ("bls12_381", "g2"): (*_KEPT_FEW, Cut(17, 16), Cut(19, 16), *_KEPT_MANY),
}


@dataclass(frozen=True)
class Tables:
    """Of an architecture. pairs: groups whose chunks two lanes add up, and blocks of them that a multiprocessor holds."""

    plain: Cuts
    kept: Cuts
    pairs: dict[tuple[str, GroupName], int]

    def cut(self, curve: Curve, group: GroupName, count: int, *, kept: bool = False) -> Cut:
        cuts = (self.kept if kept else self.plain).get((curve.name, group), _KEPT_OTHERS if kept else _OTHERS)
        log = (count - 1).bit_length()
        found = next((cut for cut in cuts if log <= cut.up_to), cuts[-1])
        return replace(found, width=min(found.width, curve.scalar.bits + 1))


# By architecture (limbd.ops.tuning.serving).
MSM_TABLE = {MEASURED: Tables(_PLAIN, _KEPT, {("bls12_381", "g2"): 2})}


def msm_tuned_for(kind: str, arch: str) -> str:
    """The architecture of a device's rows; a host's compiler has its own."""
    return CPU if kind == "cpu" else serving(kind, arch, MSM_TABLE)


def msm_row(
    kind: str, arch: str, curve: Curve, group: GroupName, count: int, *, multiprocessors: int = MULTIPROCESSORS
) -> MsmRow:
    """kind, arch, multiprocessors: of limbd.ops.base.Traits. count: points of one piece, at least 1."""
    if kind == "cpu":
        its_group = curve.group(group)
        halves = its_group is not None and its_group.endomorphism is not None
        row = with_width(_fewest_products(curve.scalar.bits, count, halves=halves), 1024, 64, 6, 1, MODEL)
        return replace(row, chunk=MAX_CHUNK, halves=halves)
    tables = MSM_TABLE[msm_tuned_for(kind, arch)]
    cut, pairs = tables.cut(curve, group, count), tables.pairs.get((curve.name, group), 0)
    # 128 registers do for eight limbs of a prime field; twelve, or the extension, take what there is.
    resident = pairs or (4 if group == "g1" and curve.base.montgomery_limbs <= 8 else 2)
    fill = multiprocessors * resident * BLOCK
    row = with_width(cut.width, 64, 8, cut.log_segment, resident, SWEPT, fill=fill)
    return replace(row, lanes=LaneRow(), chunk=MAX_CHUNK, halves=cut.halves, pairs=bool(pairs))


def with_width(
    width: int, slice_length: int, merge: int, log_segment: int, resident: int, source: str, *, fill: int = 1
) -> MsmRow:
    """A row whose sort is chosen by the window's width."""
    bits = width - 1
    low_bits = 0 if bits <= ONE_PASS_BITS else min(LOW_BITS, max(bits // 2, bits - FIRST_BITS))
    return MsmRow(max(2, width), low_bits, slice_length, fill, merge, log_segment, BLOCK, resident, BLOCK, source)


def constant_row(row: MsmRow) -> MsmRow:
    """The same for constant work: the sort's first pass has FEWEST_BITS where that can be. Its partitions end in tiles that are not
    full, which take their time nevertheless, and are the more, the more different scalars are."""
    return replace(row, low_bits=max(row.low_bits, min(LOW_BITS, row.width - 1 - FEWEST_BITS))) if row.low_bits else row


def bases_width(kind: str, arch: str, curve: Curve, group: GroupName, count: int) -> int:
    """Bits of a window for so many points with their multiples."""
    if kind == "cpu":
        return _fewest_products(curve.scalar.bits, count, rows_share=True)
    return MSM_TABLE[msm_tuned_for(kind, arch)].cut(curve, group, count, kept=True).width


def bases_row(kind: str, arch: str, bases: Bases, count: int, *, multiprocessors: int = MULTIPROCESSORS) -> MsmRow:
    """For points that stay on the device."""
    row = msm_row(kind, arch, bases.curve, bases.name, count, multiprocessors=multiprocessors)
    if not bases.width:
        return row
    log_segment = row.log_segment
    if kind != "cpu":
        log_segment = MSM_TABLE[msm_tuned_for(kind, arch)].cut(bases.curve, bases.name, count, kept=True).log_segment
    other = with_width(bases.width, row.slice, row.merge, log_segment, row.resident, row.source, fill=row.fill)
    return replace(row, width=other.width, low_bits=other.low_bits, log_segment=log_segment)


@cache
def _fewest_products(bits: int, count: int, *, rows_share: bool = False, halves: bool = False) -> int:
    """By additions into buckets (10 products) and of buckets (2 of 14 each), and by the blocks of the sort. rows_share: windows
    have one set of buckets. halves: of each scalar there are two."""
    if halves:
        bits, count = bits // 2 + 1, 2 * count

    def products(width: int) -> int:
        windows = -(-(bits + 1) // width)
        rows, entries = (1, windows * count) if rows_share else (windows, count)
        return rows * (10 * entries + (28 << (width - 1)) + SORT_PRODUCTS * -(-entries // TILE))

    return min(range(2, MAX_WIDTH), key=products)
