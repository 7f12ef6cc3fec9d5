"""Tuning values by op, limbs of the modulus and architecture. Each row names the plan and the result that set it.

A row without a limb count ("*") serves those that have none of their own. Rows are an architecture's: a GPU without its own
takes another's, always by `serving`, and `limbd info` says whose.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import IntEnum

ANY = "*"

# A host's compiler, among architectures.
CPU = "cpu"

# An H200, on which rows were measured unless they say otherwise.
MEASURED = "sm_90"


def serving(kind: str, arch: str, having: Iterable[str]) -> str:
    """The architecture whose rows a device takes, of those that have any: its own; else the nearest older one's; where none is
    older, the oldest's. A host's compiler takes the oldest GPU's where it has none.

    kind, arch: of limbd.ops.base.Traits, "sm_80". having: "sm_90", and CPU.
    """
    found = set(having)
    if kind == "cpu" and CPU in found:
        return CPU
    gpus = sorted(found - {CPU}, key=sm_number)
    older = [each for each in gpus if kind != "cpu" and sm_number(each) <= sm_number(arch)]
    return older[-1] if older else gpus[0]


def sm_number(arch: str) -> int:
    """90 of "sm_90". arch: of a CUDA device."""
    return int(arch.removeprefix("sm_"))


# --- element-wise ops -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Tuning:
    """block: threads a block. source: the plan and result that set the row, or "unmeasured" with the reason for it."""

    block: int
    source: str


TABLE: dict[tuple[str, int | str, str], Tuning] = {
    ("mod-mul", ANY, MEASURED): Tuning(
        256, "2026-11-30-bench.jsonl has its times; others unmeasured: whole waves at 48 registers"
    ),
    ("mod-add", ANY, MEASURED): Tuning(256, "2026-11-30-bench.jsonl has its times; others unmeasured: memory-bound"),
    ("mod-sub", ANY, MEASURED): Tuning(256, "2026-11-30-bench.jsonl has its times; others unmeasured: memory-bound"),
    # The window tables of 64 threads fill 32 KB of shared memory (48 KB for 12 limbs), the most that needs no opt-in.
    ("mod-exp", ANY, MEASURED): Tuning(
        64, "2026-11-30-bench.jsonl has its times; others unmeasured: no opt-in for shared memory"
    ),
    # 80 registers: 24 warps an SM, which is one wave at n = 1e5; small blocks spread a small n over more SMs.
    ("mod-inv", ANY, MEASURED): Tuning(
        64, "2026-11-30-bench.jsonl has its times; others unmeasured: one wave at n = 1e5"
    ),
}


def tuning(op: str, limbs: int, kind: str, arch: str) -> Tuning:
    """The row for so many limbs, or for any. Raises KeyError for an op without any."""
    own = tuned_for(op, limbs, kind, arch)
    return TABLE[(op, limbs, own)] if (op, limbs, own) in TABLE else TABLE[(op, ANY, own)]


def tuned_for(op: str, limbs: int | str, kind: str, arch: str) -> str:
    """The architecture of that row."""
    having = {own for name, count, own in TABLE if name == op and count in (limbs, ANY)}
    if not having:
        raise KeyError(op)
    return serving(kind, arch, having)


def all_tuned_for(op: str, kind: str, arch: str) -> set[str]:
    """The architectures of an op's rows for any number of limbs."""
    return {tuned_for(op, limbs, kind, arch) for name, limbs, _ in TABLE if name == op}


# --- mod-inv-batch --------------------------------------------------------------------------------------------------


class Storage(IntEnum):
    """Where a thread's prefix products wait (kernels/algo/batch_inverse.cuh has the same numbers)."""

    REGISTERS = 0
    SHARED = 1
    OUTPUT = 2


@dataclass(frozen=True)
class BatchRow:
    """How mod-inv-batch runs for n up to `up_to` (None: any n).

    block: threads a block: 32, 64, 128 or 256. resident: blocks that a multiprocessor holds at once, which bounds the
    registers. elements: the most that a thread takes; fewer where they would not reach every multiprocessor `resident`
    times. steps: 0, one thread inverts the block's total; else its first warp does, by plan 0004's form, with a table for so
    many halvings a lookup: 12 (32 KB, the faster one), or 8 (2 KB) where `resident` tables of 32 KB would not fit a
    multiprocessor (kernels/field/warp_inverse.cuh; odd moduli of up to 256 bits, others by a thread). source: as in Tuning.
    """

    up_to: int | None
    block: int
    resident: int
    elements: int
    storage: Storage
    steps: int
    source: str


@dataclass(frozen=True)
class BatchTuning:
    """alone: up to this n every element is inverted by mod-inv's kernel. rows: by ascending up_to, the last None."""

    alone: int
    rows: tuple[BatchRow, ...]
    source: str

    def row(self, n: int) -> BatchRow | None:
        """None where mod-inv's kernel is the faster one."""
        if n <= self.alone:
            return None
        return next(row for row in self.rows if row.up_to is None or n <= row.up_to)


# Made with the warp inversion before plan 0004's, which is the faster one for every row that has it.
SWEPT = "2026-11-30-batch-sweep.jsonl: "

# On each of an H200's 132 multiprocessors two blocks first.
_SPREAD = BatchRow(30_000, 64, 2, 2, Storage.REGISTERS, 12, SWEPT + "first or second of the rows from 1e3 to 3e4")
_FULL = BatchRow(None, 128, 4, 128, Storage.OUTPUT, 8, SWEPT + "within 0.7 % of the first of the rows at 1e6 and 1e7")
_CROSSOVER = SWEPT + "at 1,000 1.3 times as fast as mod-inv; fewer were not measured"

# By limbs of an element and architecture, as in TABLE; CPU for the host's compiler.
BATCH_TABLE: dict[tuple[int | str, str], BatchTuning] = {
    (8, MEASURED): BatchTuning(
        999,
        (
            _SPREAD,
            # As long as the pieces that a million elements are cut into (ops/split.py).
            BatchRow(100_352, 64, 2, 6, Storage.REGISTERS, 12, SWEPT + "first of the rows at 1e5"),
            _FULL,
        ),
        _CROSSOVER,
    ),
    # Six products of 12 limbs in registers spill.
    (ANY, MEASURED): BatchTuning(
        999,
        (
            _SPREAD,
            BatchRow(100_000, 256, 1, 4, Storage.REGISTERS, 12, "unmeasured: 12 limbs spill nothing with it"),
            _FULL,
        ),
        _CROSSOVER,
    ),
    # A block's fibers cost by their number, and a scan by its shuffles.
    (ANY, CPU): BatchTuning(
        96,
        (
            BatchRow(
                None,
                32,
                1,
                64,
                Storage.SHARED,
                0,
                "one warp, so that few fibers change seldom; 16, 128 elements or OUTPUT are no faster",
            ),
        ),
        "level with mod-inv between n = 64 and 128, on two cores",
    ),
}

# Up to this n mod-inv-batch runs mod-inv's kernel wherever it runs; above it the worker's own row decides. So a client,
# which does not know its worker's device, may ask for mod-inv-batch above it and is never slower for it.
NEVER_BATCHED = min(row.alone for row in BATCH_TABLE.values())


def batch_tuning(kind: str, arch: str, limbs: int) -> BatchTuning:
    """kind, arch: of Traits. limbs: of an element. The entry for so many, or for any."""
    own = batch_tuned_for(kind, arch, limbs)
    return BATCH_TABLE[(limbs, own)] if (limbs, own) in BATCH_TABLE else BATCH_TABLE[(ANY, own)]


def batch_tuned_for(kind: str, arch: str, limbs: int | str) -> str:
    """The architecture of that entry."""
    return serving(kind, arch, {own for count, own in BATCH_TABLE if count in (limbs, ANY)})


def all_batch_tuned_for(kind: str, arch: str) -> set[str]:
    """The architectures of the entries for any number of limbs."""
    return {batch_tuned_for(kind, arch, limbs) for limbs, _ in BATCH_TABLE}


# --- transforms -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TransformRow:
    """How ntt and quotient run for transforms of up to 2^log_n elements, and up to 2^log_total in all (None: any).

    log_e: a thread holds 2^log_e elements in registers, the radix; 1 to 3. log_tile: bits of a block's elements; more where a
    digit has more. largest: bits of the largest digit where k is cut into near-equal ones. threads, resident: the launch
    bounds. splits: digits of the k that they add up to, before near-equal ones. compiled: numbers of the passes whose shape is
    compiled in (radix 8, several passes, eight limbs; a tile is threads 2^log_e). source: as in Tuning.
    """

    log_n: int | None
    log_total: int | None
    log_e: int
    log_tile: int
    largest: int
    threads: int
    resident: int
    source: str
    splits: tuple[tuple[int, ...], ...] = ()
    compiled: tuple[int, ...] = ()

    def serves(self, k: int, log_total: int) -> bool:
        """log_total: of the elements of all transforms together, rounded up."""
        of_one, of_all = self.log_n is None or k <= self.log_n, self.log_total is None or log_total <= self.log_total
        return of_one and of_all

    def digits(self, k: int) -> tuple[int, ...]:
        """Bits of each pass."""
        near = near_equal(k, max(1, -(-k // self.largest)))
        return next((split for split in self.splits if sum(split) == k), near)


def near_equal(bits: int, parts: int) -> tuple[int, ...]:
    """`bits` as a sum of `parts` numbers that differ by one at the most, the larger ones first."""
    least, more = divmod(bits, parts)
    return (least + 1,) * more + (least,) * (parts - more)


# Of an H200 with bn254_fr, the first kernel of this design; 2^10 in two passes of 32 took 0.0117 ms, one pass 0.0161.
_FIRST = "first measurement of this design on an H200: "

# A level of radix 8 takes three bits; four bits are two levels, and so are five and six. Measured: 18, 20, 22 and 24.
_RADIX_8 = (
    *((6, 5), (6, 6), (7, 6), (8, 6), (9, 6), (8, 8), (9, 8), (9, 9), (10, 9)),
    *((8, 6, 6), (9, 6, 6), (8, 8, 6), (9, 8, 6), (9, 6, 9), (9, 8, 8), (9, 9, 8), (9, 9, 9), (10, 9, 9)),
)

_LARGE = TransformRow(
    None, None, 3, 10, 10, 128, 4, _FIRST + "2^20 0.196, 2^22 0.759, 2^24 3.09 ms, first of the splits", _RADIX_8
)
# A unit is a pass of one size, order and direction: only where they are measured.
_COMPILED = replace(
    _LARGE,
    compiled=(0, 1, 2),
    source=_FIRST + "2^18 0.0484, 2^20 0.177, 2^22 0.680 ms; passes whose shape is an argument 0.0545, 0.196, 0.761",
)
_ROWS = (
    TransformRow(1, None, 1, 8, 8, 128, 4, "unmeasured: no other threads hold so little"),
    # One pass up to 2^10 is asked for; a butterfly a thread where the digit's elements leave multiprocessors idle.
    TransformRow(8, 16, 1, 6, 8, 128, 4, "unmeasured: as the next sizes"),
    TransformRow(10, 18, 2, 9, 10, 256, 2, _FIRST + "2^10 in one pass 0.0161 ms, 0.0188 with log_e 1, 0.0214 with 3"),
    TransformRow(
        16, 16, 1, 6, 8, 128, 4, _FIRST + "2^12 0.0138, 2^14 0.0164, 2^16 0.0233 ms, first or level with log_e 2"
    ),
    TransformRow(17, 18, 2, 9, 9, 256, 2, _FIRST + "64 of 2^12 0.0336 ms, 0.0382 with log_e 3"),
    TransformRow(18, 18, 3, 10, 10, 128, 3, _FIRST + "2^18 0.0499 ms, 0.0504 with 4 blocks", _RADIX_8),
)

# Four blocks spill on most of the others.
_OTHERS = (*_ROWS, replace(_LARGE, resident=3, source="unmeasured: spills the least"))

TRANSFORM_TABLE: dict[str, tuple[TransformRow, ...]] = {
    "sm_75": _OTHERS,
    MEASURED: (*_ROWS[:-1], replace(_LARGE, log_n=17, source="as the next sizes; unmeasured"), _COMPILED),
    "sm_100": _OTHERS,
    # A block's fibers cost by their number.
    CPU: (
        TransformRow(1, None, 1, 8, 8, 128, 1, "no other threads hold so little"),
        TransformRow(None, None, 3, 10, 10, 128, 1, "unmeasured: fewest fibers an element"),
    ),
}


def transform_rows(kind: str, arch: str) -> tuple[TransformRow, ...]:
    """kind, arch: of Traits."""
    return TRANSFORM_TABLE[transform_tuned_for(kind, arch)]


def transform_tuned_for(kind: str, arch: str) -> str:
    """The architecture of those rows."""
    return serving(kind, arch, TRANSFORM_TABLE)


def transform_row(kind: str, arch: str, k: int, log_total: int) -> TransformRow:
    """log_total: of the elements of all transforms together, rounded up."""
    return next(row for row in transform_rows(kind, arch) if row.serves(k, log_total))


# --- small transforms, an element a thread ---------------------------------------------------------------------------


@dataclass(frozen=True)
class LaneRow:
    """How ntt runs with an element a thread (kernels/algo/ntt_lanes.cuh). digits: bits of each pass. cluster: both passes in
    one launch, by clusters of blocks. source: as in Tuning. pairs: two elements a thread, where the transform has no factors
    after it (kernels/algo/ntt_lane_pairs.cuh)."""

    digits: tuple[int, ...]
    cluster: bool
    source: str
    pairs: bool = False


# All that have such rows.
LANE_ARCHITECTURES = (MEASURED,)

# How a transform runs.
Row = TransformRow | LaneRow


@dataclass(frozen=True)
class LaneBlock:
    """Of a pass, or of a cluster: threads a block, blocks that a multiprocessor holds at once, and levels of each pass whose
    constants are fetched before its elements."""

    threads: int
    resident: int
    ahead: tuple[int, ...]


# By bits of a pass. A block holds whole columns.
LANE_PASSES: dict[int, LaneBlock] = {
    **{bits: LaneBlock(64, 1, ((bits + 1) // 2,)) for bits in range(1, 6)},
    6: LaneBlock(64, 1, (1,)),
    7: LaneBlock(128, 1, (1,)),
    8: LaneBlock(256, 2, (0,)),
}

# As LANE_PASSES, with two elements a thread: half as many threads, and half of the constants.
LANE_PAIRS: dict[int, LaneBlock] = {
    7: LaneBlock(64, 4, (2,)),
    8: LaneBlock(128, 2, (2,)),
}

# By the digits of a transform that is one cluster: eight blocks, the most that every device takes.
CLUSTER_BLOCKS = 8
LANE_CLUSTERS: dict[tuple[int, int], LaneBlock] = {
    (5, 4): LaneBlock(64, 1, (1, 2)),
    (6, 4): LaneBlock(128, 1, (1, 2)),
}
CLUSTERS_FROM = 90

_LANES = "first measurement of this design on an H200: "
_ONE = LaneRow((), False, "unmeasured: as the sizes of two passes")
_CLUSTER = LaneRow((), True, _LANES + "2^10 0.0048 ms, 0.0052 by two launches")
_TWO = LaneRow(
    (), False, _LANES + "2^12 0.0059, 2^14 0.0080, 2^16 0.0184 ms; the passes of more elements a thread 14, 16, 23"
)
_PAIRS = LaneRow((), False, _FIRST + "2^15 0.0129, 2^16 0.0170 ms; an element a thread 0.0133, 0.0202", pairs=True)

# From this k on.
PAIRS_FROM = 15

# Up to so many elements in all, log2.
LANE_TOTAL = 16


def lane_row(kind: str, arch: str, k: int, log_total: int) -> LaneRow | None:
    """None where threads that hold several elements are the faster ones, or 2^k would take a second launch up to 2^10."""
    if kind == "cpu" or k == 0 or log_total > LANE_TOTAL:
        return None
    if k <= max(LANE_PASSES):
        return replace(_ONE, digits=(k,))
    cluster = next((digits for digits in LANE_CLUSTERS if sum(digits) == k), None)
    if cluster:
        return replace(_CLUSTER, digits=cluster) if has_clusters(arch) else None
    return replace(_PAIRS if k >= PAIRS_FROM else _TWO, digits=near_equal(k, 2))


def has_clusters(arch: str) -> bool:
    """arch: of a CUDA device."""
    return sm_number(arch) >= CLUSTERS_FROM
