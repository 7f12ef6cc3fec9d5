"""The compile units of multi-scalar multiplication, and their kernels: one sort for all curves, and for each group of a
curve the check of points, the additions into buckets, and what follows them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from limbd.ops.base import LIMB_BYTES, Kernel, Member, Struct, Unit
from limbd.ops.params.curves import Curve, GroupName
from limbd.ops.params.render import group_struct_name, render_group

SCALAR_LIMBS = 8
# Of a scalar with the digits' offset (kernels/algo/digits.cuh).
OFFSET_LIMBS = SCALAR_LIMBS + 2

# Of what half a scalar is computed in (kernels/algo/halves.cuh).
HALF_LIMBS = 6

# A tile of the sort: the items that a block puts in order.
SORT_BLOCK = 256
SORT_ITEMS = 24
TILE = SORT_BLOCK * SORT_ITEMS
SMALLEST_TILE = 2 * SORT_BLOCK

# Tiles that a block counts, where there are many (kernels/algo/counting_sort.cuh).
MOST_COUNTED = 8

# Buckets of which a thread, and a block, puts the chunks in order: few, as it takes longest where there are few buckets.
CHUNK_ITEMS = 2
CHUNKS_TILE = SORT_BLOCK * CHUNK_ITEMS

# Counts that a thread, and a block, of a scan adds up at a time.
SCAN_SHARE = 4
SCAN_TILE = SORT_BLOCK * SCAN_SHARE

# Of the low bits of a bucket's number, as the sort keeps them.
LOW_BYTES = 2


def digit_bytes(width: int) -> int:
    """Of a digit of a window of so many bits, as the sort keeps it; a row has at most 2^(width - 1) + 1 buckets."""
    return 2 if width <= 16 else 4


DIGITS_BLOCK = 256
POINTS_BLOCK = 128


def _words(*names: str) -> tuple[Member, ...]:
    return tuple(Member(name, "u32") for name in names)


def _in(*names: str) -> tuple[Member, ...]:
    return tuple(Member(name, "in") for name in names)


def _out(*names: str) -> tuple[Member, ...]:
    return tuple(Member(name, "scratch") for name in names)


_ROW = _words("count", "spans", "span", "keys", "width", "low_bits", "spare")
_PARTITION = (*_in("tile_starts", "starts", "low_keys"), *_words("partitions", "keys", "low_bits", "buckets"))

_SORT: dict[str, tuple[Member, ...]] = {
    "msm_digits": (
        *_in("scalars", "infinite"),
        *_out("digits", "counts"),
        *(Member(name, "limbs", SCALAR_LIMBS) for name in ("order", "r2")),
        Member("offset", "limbs", OFFSET_LIMBS),
        *_words("n0inv", "count", "vectors", "windows", "width", "cleared", "halves", "shift"),
        *(Member(name, "limbs", SCALAR_LIMBS) for name in ("quotient_c", "quotient_d")),
        *(Member(name, "limbs", HALF_LIMBS) for name in ("c0", "c1", "d0", "d1")),
    ),
    "msm_clear": (*_out("counts"), Member("n", "u64")),
    "msm_count": (*_in("digits"), *_out("counts"), *_ROW),
    "msm_scatter": (
        *_in("digits"),
        *_out("cursors", "entries", "low_keys", "spill_buckets"),
        *_ROW,
        *_words("points", "first", "stride", "slots"),
    ),
    "msm_count_low": (*_PARTITION, *_out("counts")),
    "msm_scatter_low": (*_PARTITION, *_in("entries"), *_out("cursors", "sorted")),
    "msm_scan_sums": (*_in("counts"), *_out("sums"), Member("n", "u64"), *_words("chunk", "form")),
    "msm_scan_apply": (
        *_in("counts", "sums"),
        *_out("starts", "cursors", "seconds", "totals"),
        Member("n", "u64"),
        *_words("chunk", "form", "length", "fill"),
    ),
    "msm_chunks": (
        *_in("starts", "classes"),
        *_out("cursors", "chunks", "totals"),
        Member("buckets", "u64"),
        *_words("length", "fill"),
    ),
}

# What a scan leaves besides starts: Form of kernels/entry/msm_sort.cu.
TILES, RUNS, CHUNKS = 0, 1, 2

# Words of a chunk, and entries of the longest one (kernels/algo/bucket_chunks.cuh).
CHUNK_WORDS = 4
MAX_CHUNK = 256

_POINTS: dict[str, tuple[Member, ...]] = {
    "msm_points": (
        *_in("wire"),
        *_out("points", "infinite", "bad"),
        *(Member(name, "u64") for name in ("n", "offset", "images")),
    ),
    "msm_subgroup": (
        *_in("points", "infinite"),
        *_out("bad"),
        Member("n", "u64"),
        Member("offset", "u64"),
        Member("order", "limbs", SCALAR_LIMBS),
    ),
}

_BASES: dict[str, tuple[Member, ...]] = {
    "msm_multiples": (*_out("points"), Member("n", "u64"), *_words("width", "levels")),
}

_ACCUMULATE: dict[str, tuple[Member, ...]] = {
    "msm_accumulate": (
        *_in("points", "entries", "runs", "totals"),
        *_out("buckets", "spills", "spill_buckets"),
        *_words("slices", "shortest"),
    )
}

_ADD_CHUNKS: dict[str, tuple[Member, ...]] = {
    "msm_add_chunks": (
        *_in("points", "entries", "chunks", "totals"),
        *_out("buckets", "spills", "spill_buckets"),
        *_words("goes_on"),
    )
}

_REDUCE: dict[str, tuple[Member, ...]] = {
    "msm_merge": (
        *_in("spills", "spill_buckets"),
        *_out("buckets", "next_spills", "next_spill_buckets"),
        *_words("count", "length"),
    ),
    "msm_segments": (
        *_in("starts", "buckets"),
        *_out("sums", "weighted"),
        Member("n", "u64"),
        *_words("row_buckets", "segments", "log_segment", "cleared"),
    ),
    "msm_segments_next": (
        *_in("sums", "weighted"),
        *_out("next_sums", "next_weighted"),
        Member("n", "u64"),
        *_words("log_segment", "weight"),
    ),
    "msm_fold": (
        *_in("weighted"),
        *_out("kept", "out"),
        *_words("vectors", "windows", "width", "is_first", "is_last"),
    ),
}

# The same with points over groups of lanes (kernels/algo/bucket_lanes.cuh).
_REDUCE_LANES: dict[str, tuple[Member, ...]] = {
    "msm_merge": (
        *_out("spills", "spill_buckets", "buckets", "next_spills", "next_spill_buckets"),
        *_words("count", "length", "levels"),
    ),
    "msm_merge_trees": (
        *_out("spills", "spill_buckets", "buckets", "next_spills", "next_spill_buckets"),
        *_words("count", "levels"),
    ),
    "msm_segments": (
        *_in("starts", "buckets"),
        *_out("sums", "weighted"),
        Member("n", "u64"),
        *_words("row_buckets", "segments", "log_segment", "cleared", "doublings"),
    ),
    "msm_segments_next": (
        *_in("sums", "weighted"),
        *_out("next_sums", "next_weighted"),
        *_words("log_chunk", "doublings"),
    ),
    "msm_fold": _REDUCE["msm_fold"],
}

_SYNCHRONISING = frozenset(_SORT) - {"msm_digits", "msm_clear"}


@dataclass(frozen=True)
class Kernels:
    """What one multiplication launches: by name."""

    by_name: dict[str, Kernel]

    def __getitem__(self, name: str) -> Kernel:
        return self.by_name[name]

    def units(self) -> tuple[Unit, ...]:
        return tuple(dict.fromkeys(kernel.unit for kernel in self.by_name.values()))


@cache
def kernels(
    curve: Curve,
    name: GroupName,
    width: int,
    accumulate_block: int,
    resident: int,
    reduce_block: int,
    constant: bool,
    lanes: bool,
    chunks: bool,
    pairs: bool,
) -> Kernels:
    """width: bits of a window. constant: of the kernels for constant work. lanes: points of the reduction over groups of lanes.
    chunks: additions by chunks of buckets instead of slices of all entries, with pairs by two lanes each. The blocks are the largest that the two units are compiled for, resident
    the blocks of additions that a multiprocessor holds at once, which bounds their registers."""
    group, plain = _group(curve, name)
    mode = ("CONSTANT_WORK", int(constant))
    items = (("ITEMS", SORT_ITEMS), ("CHUNK_ITEMS", CHUNK_ITEMS), ("SHARE", SCAN_SHARE))
    sort = (("THREADS", SORT_BLOCK), *items, ("DIGIT_BITS", 8 * digit_bytes(width)))
    found = {
        **_kernels("msm_sort", _SORT, SORT_BLOCK, sort, ""),
        **_points(group, plain),
        **_additions(
            (("THREADS", accumulate_block), ("RESIDENT", resident)), mode, group, accumulate_block, chunks, pairs
        ),
        **(_lane_reduction if lanes else _reduction)((plain, ("THREADS", reduce_block), mode), group, reduce_block),
    }
    return Kernels(found)


@cache
def bases_kernels(curve: Curve, name: GroupName) -> Kernels:
    """Those that make points that stay on the device."""
    group, plain = _group(curve, name)
    return Kernels({**_points(group, plain), **_kernels("msm_bases", _BASES, POINTS_BLOCK, (), group)})


def _group(curve: Curve, name: GroupName) -> tuple[str, tuple[str, int]]:
    """The group's constants, and the limbs of a plain coordinate's part."""
    group = f"{render_group(curve, name)}using GROUP = {group_struct_name(curve, name)};\n"
    return group, ("WORDS", curve.base.element_bytes // LIMB_BYTES)


def _points(group: str, plain: tuple[str, int]) -> dict[str, Kernel]:
    return _kernels("msm_points", _POINTS, POINTS_BLOCK, (plain,), group)


def _additions(
    constants: tuple[tuple[str, int], ...], mode: tuple[str, int], group: str, block: int, chunks: bool, pairs: bool
) -> dict[str, Kernel]:
    if chunks:
        together = frozenset(_ADD_CHUNKS) if pairs else frozenset()
        return _kernels("msm_chunks", _ADD_CHUNKS, block, (*constants, ("PAIRS", int(pairs))), group, together)
    return _kernels("msm", _ACCUMULATE, block, (*constants, mode), group)


def _reduction(constants: tuple[tuple[str, int], ...], group: str, block: int) -> dict[str, Kernel]:
    return _kernels("msm_reduce", _REDUCE, block, constants, group)


def _lane_reduction(constants: tuple[tuple[str, int], ...], group: str, block: int) -> dict[str, Kernel]:
    return _kernels("msm_reduce_lanes", _REDUCE_LANES, block, constants, group, frozenset(_REDUCE_LANES))


def _kernels(
    entry: str,
    members: dict[str, tuple[Member, ...]],
    block: int,
    constants: tuple[tuple[str, int], ...],
    params: str,
    synchronising: frozenset[str] = _SYNCHRONISING,
) -> dict[str, Kernel]:
    structs = {name: Struct(f"{name}_args", each) for name, each in members.items()}
    unit = Unit(entry, tuple(structs.values()), constants, params)
    return {name: Kernel(unit, name, struct, block, name in synchronising) for name, struct in structs.items()}
