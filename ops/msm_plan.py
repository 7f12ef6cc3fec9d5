"""The launches of a multi-scalar multiplication: Pippenger's bucket method (kernels/entry/msm_sort.cu, msm.cu,
msm_reduce.cu say what each kernel does).

A piece takes some of the points with some of the vectors of scalars, whatever the scalars are: grids are for the most that
there can be, and the threads that find nothing end at once. The pieces of one range of vectors follow each other; the last of
them writes the answer. Where additions go by chunks they share the buckets, which the last one reduces, and the copies of one
piece overlap the kernels of the one before: so a long multiplication is cut although it would fit, the first piece
shortest. Where additions go by slices each piece is reduced, and their sum is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

from limbd.ops.base import (
    LIMB_BYTES,
    Buffer,
    Launch,
    LaunchPlan,
    Part,
    Piece,
    Place,
    Traits,
    Transfer,
)
from limbd.ops.constants import montgomery
from limbd.ops.msm_bases import TABLE, Bases
from limbd.ops.msm_shape import SCALAR_BYTES, SCAN_BLOCKS, Shape, offset_of
from limbd.ops.msm_tails import fold, merges, stages
from limbd.ops.msm_tuning import FIRST_PIECE, Growth, MsmRow, constant_row, growth
from limbd.ops.msm_units import (
    CHUNKS,
    CHUNKS_TILE,
    DIGITS_BLOCK,
    HALF_LIMBS,
    LOW_BYTES,
    MOST_COUNTED,
    POINTS_BLOCK,
    RUNS,
    SCALAR_LIMBS,
    SCAN_TILE,
    SMALLEST_TILE,
    SORT_BLOCK,
    TILE,
    TILES,
    digit_bytes,
)
from limbd.ops.params.base import LIMB_BITS
from limbd.ops.params.curves import Curve, GroupName
from limbd.ops.params.endomorphism import Halving
from limbd.ops.status import ServiceError, Status

# For each half of a multiprocessor, where blocks count more than a tile.
BLOCKS_IN_TURN = 4

# So many counts that one block does it alone.
ONE_BLOCK_SCAN = 8 * SCAN_TILE


# --- launches -------------------------------------------------------------------------------------------------------


def _launch(
    shape: Shape,
    name: str,
    threads: int,
    block: int,
    values: Mapping[str, int],
    *,
    shared: int = 0,
    pointers: Mapping[str, Place | None] | None = None,
) -> Launch:
    return Launch(shape.kernels[name], -(-threads // block), block, values, shared, pointers or {})


def point_launches(shape: Shape, offset: int, subgroup: bool) -> Iterator[Launch]:
    """offset: of the piece's first point in the request."""
    values = {"n": shape.count, "offset": offset}
    images = shape.count if shape.halving else 0
    yield _launch(shape, "msm_points", shape.count, POINTS_BLOCK, {**values, "images": images})
    if subgroup and shape.group.cofactor != 1:
        values["order"] = shape.curve.order
        yield _launch(shape, "msm_subgroup", shape.count, POINTS_BLOCK, values)


def sort_launches(shape: Shape, start: int) -> Iterator[Launch]:
    """Scalars -> `starts`, `runs` or `chunks`, `totals`, and entries by bucket. start: of the piece's points in the request."""
    row, order = shape.row, shape.curve.order
    width, windows = row.width, shape.windows
    numbers = montgomery(order, SCALAR_LIMBS)
    partitions = shape.rows * shape.keys
    two_passes, tile = row.low_bits > 0, _row_tile(shape)
    digits = {"order": order, "r2": numbers["r2"], "n0inv": numbers["n0inv"], "offset": offset_of(windows, width)}
    digits |= _halving(shape.halving)
    digits |= {"count": shape.count, "vectors": shape.vectors, "windows": windows, "width": width}
    digits["cleared"] = shape.sort_counts + shape.class_counts
    places = {"infinite": shape.bases.infinite_from(start)} if shape.bases else {}
    yield _launch(shape, "msm_digits", shape.count * shape.vectors, DIGITS_BLOCK, digits, pointers=places)

    first = {"count": shape.row_entries, "keys": shape.keys, "width": width}
    first |= {"low_bits": row.low_bits, "spare": int(shape.constant)}

    def spans(span: int) -> tuple[int, dict[str, int]]:
        """Threads of blocks that take so many items of a row, and what they are told of it."""
        count = -(-shape.row_entries // span)
        return shape.rows * count * SORT_BLOCK, {**first, "spans": count, "span": span}

    threads, values = spans(tile * _counted(shape, tile))
    yield _launch(shape, "msm_count", threads, SORT_BLOCK, values, shared=LIMB_BYTES * shape.keys)
    if two_passes:
        yield from _scan(shape, partitions, "partition_starts", "tile_starts", TILES)
    else:
        yield from _last_scan(shape, "counts")
    threads, values = spans(tile)
    values |= {"points": shape.count, "first": 0, "stride": shape.count, "slots": shape.spills if shape.chunked else 0}
    if shape.bases:
        values |= {"first": start, "stride": shape.bases.count}
    shared, spilled = _tile_bytes(shape.keys, digit_bytes(width)), {"spill_buckets": "spill_buckets_0"}
    yield _launch(shape, "msm_scatter", threads, SORT_BLOCK, values, shared=shared, pointers=spilled)
    if not two_passes:
        return
    second = {"partitions": partitions, "keys": shape.keys, "low_bits": row.low_bits, "buckets": shape.row_buckets}
    threads, keys = (partitions + shape.entries // TILE) * SORT_BLOCK, 1 << row.low_bits
    starts, counts = {"starts": "partition_starts"}, Part("counts", LIMB_BYTES * partitions)
    pointers: dict[str, Place | None] = {**starts, "counts": counts}
    yield _launch(shape, "msm_count_low", threads, SORT_BLOCK, second, shared=LIMB_BYTES * keys, pointers=pointers)
    yield from _last_scan(shape, counts)
    shared = _tile_bytes(keys, LOW_BYTES)
    yield _launch(shape, "msm_scatter_low", threads, SORT_BLOCK, second, shared=shared, pointers=starts)


def _row_tile(shape: Shape) -> int:
    """Items of a block of the first pass: fewer where there are too few for a block on each half of a multiprocessor."""
    tile, blocks = TILE, shape.row.fill // SORT_BLOCK
    while tile > SMALLEST_TILE and shape.rows * -(-shape.row_entries // tile) < blocks:
        tile //= 2
    return tile


def _counted(shape: Shape, tile: int) -> int:
    """Tiles that a block counts: many as long as there are some blocks in turn for each place, as they do not end all at
    once."""
    tiles = shape.rows * -(-shape.row_entries // tile)
    return max(1, min(MOST_COUNTED, tiles * SORT_BLOCK // (BLOCKS_IN_TURN * shape.row.fill)))


def _halving(found: Halving | None) -> dict[str, int]:
    """Of msm_digits: the constants of kernels/algo/halves.cuh."""
    names = ("quotient_c", "quotient_d", "c0", "c1", "d0", "d1")
    if found is None:
        return {"halves": 0, "shift": 0, **dict.fromkeys(names, 0)}
    signed = (value % (1 << LIMB_BITS * HALF_LIMBS) for value in (*found.first, *found.second))
    constants = dict(zip(names, (*found.quotients, *signed), strict=True))
    return {"halves": 1, "shift": found.shift // LIMB_BITS, **constants}


def _tile_bytes(keys: int, key_bytes: int) -> int:
    """Shared memory in which a block orders a tile: two numbers for each key, and the items with their keys."""
    return 2 * LIMB_BYTES * keys + TILE * (LIMB_BYTES + key_bytes)


def _clear(shape: Shape, n: int, **pointers: str) -> Launch:
    return _launch(shape, "msm_clear", n, SORT_BLOCK, {"n": n}, pointers=pointers)


def _last_scan(shape: Shape, counts: Place) -> Iterator[Launch]:
    """The one over buckets, which also says where additions begin."""
    buckets = shape.rows * shape.row_buckets
    if not shape.chunked:
        yield from _scan(shape, buckets, "starts", "runs", RUNS, counts)
        return
    classes = Part("counts", LIMB_BYTES * shape.sort_counts)
    yield from _scan(shape, buckets, "starts", classes, CHUNKS, counts)
    cursors = Part("counts", LIMB_BYTES * (shape.sort_counts + shape.chunk_length))
    values = {"buckets": buckets, "length": shape.chunk_length, "fill": shape.chunk_fill}
    pointers: dict[str, Place | None] = {"classes": classes, "cursors": cursors}
    threads = -(-buckets // CHUNKS_TILE) * SORT_BLOCK
    yield _launch(shape, "msm_chunks", threads, SORT_BLOCK, values, pointers=pointers)


def _scan(shape: Shape, n: int, starts: str, seconds: Place, form: int, counts: Place = "counts") -> Iterator[Launch]:
    chunk = n if n <= ONE_BLOCK_SCAN else -(-n // SCAN_BLOCKS // SCAN_TILE) * SCAN_TILE
    values = {"n": n, "chunk": chunk, "form": form}
    threads = -(-n // chunk) * SORT_BLOCK
    pointers: dict[str, Place | None] = {"counts": counts, "sums": "scan"}
    if threads > SORT_BLOCK:
        yield _launch(shape, "msm_scan_sums", threads, SORT_BLOCK, values, pointers=pointers)
    pointers |= {"starts": starts, "seconds": seconds}
    values |= {"length": shape.chunk_length, "fill": shape.chunk_fill if form == CHUNKS else 0}
    yield _launch(shape, "msm_scan_apply", threads, SORT_BLOCK, values, pointers=pointers)


def sum_launches(shape: Shape, *, is_first: bool) -> Iterator[Launch]:
    """Entries -> buckets."""
    if shape.in_turns and is_first:
        buckets = shape.rows * shape.row_buckets
        yield _clear(shape, buckets * shape.sum_limbs, counts="buckets")
    row = shape.row
    pointers = {"entries": "sorted" if row.low_bits else "entries", "points": TABLE if shape.bases else "points"}
    pointers |= {"spills": "spills_0", "spill_buckets": "spill_buckets_0"}
    if shape.chunked:
        values = {"goes_on": int(shape.in_turns)}
        threads = shape.chunks << shape.paired
        yield _launch(shape, "msm_add_chunks", threads, row.accumulate_block, values, pointers=pointers)
    else:
        values = {"slices": shape.slices, "shortest": shape.shortest_slice}
        yield _launch(shape, "msm_accumulate", shape.slices, row.accumulate_block, values, pointers=pointers)
    yield from merges(shape)


def reduction_launches(shape: Shape, *, is_first: bool, is_last: bool) -> Iterator[Launch]:
    """Buckets -> the sum that is kept, and with the last piece the answer."""
    if shape.in_turns and not is_last:
        return
    yield from stages(shape)
    yield fold(shape, is_first=is_first or shape.in_turns, is_last=is_last)


# --- pieces ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Question:
    """What is asked, as far as launches depend on it. count: points, and scalars of each of the vectors. bases: the points,
    where they stay on the device; nothing is checked then."""

    curve: Curve
    name: GroupName
    count: int
    vectors: int
    constant: bool
    subgroup: bool
    bases: Bases | None = None


def plan_of(question: Question, traits: Traits, row_of: Callable[[int], MsmRow]) -> LaunchPlan:
    """row_of: the row for so many points.

    Raises ServiceError(OUT_OF_DEVICE_MEMORY) where the budget does not hold one point, or the bases.
    """
    if question.count == 0:
        return nothing_plan(question, row_of(1))
    shape, parts = _overlapping(question, traits, _fitting(question, traits, row_of))
    pieces = tuple(
        _piece(question, shape, vectors, points)
        for vectors in _ranges(question.vectors, shape.vectors)
        for points in parts
    )
    tables = (question.bases.table(),) if question.bases else ()
    return LaunchPlan(shape.buffers(), shape.lanes, pieces, tables)


def nothing_plan(question: Question, row: MsmRow) -> LaunchPlan:
    """Infinity for each vector."""
    shape = Shape(question.curve, question.name, 1, question.vectors, row, question.constant)
    nbytes = question.vectors * question.curve.point_bytes(shape.group)
    zeros = _clear(shape, nbytes // LIMB_BYTES, counts="out")
    piece = Piece((), (zeros,), (Transfer("out", "result", 0, nbytes),))
    return LaunchPlan((Buffer("out", "out", nbytes),), 1, (piece,))


def _fitting(question: Question, traits: Traits, row_of: Callable[[int], MsmRow]) -> Shape:
    """The largest piece that fits: fewer vectors first, which costs nothing but launches, then fewer points."""
    count, vectors, bases = question.count, question.vectors, question.bases
    memory = _memory(question, traits)
    while True:
        row = constant_row(row_of(count)) if question.constant else row_of(count)
        shape = Shape(question.curve, question.name, count, vectors, row, question.constant, bases)
        shape = replace(shape, in_turns=shape.chunked and count < question.count)
        if shape.fits(memory):
            return shape
        if count == vectors == 1 or (vectors == 1 and bases and not shape.chunked):
            raise _does_not_fit(traits, shape)
        count, vectors = (count, -(-vectors // 2)) if vectors > 1 else (-(-count // 2), 1)


def _memory(question: Question, traits: Traits) -> int:
    """For the plan's buffers. Raises ServiceError(OUT_OF_DEVICE_MEMORY) where the bases leave nothing."""
    if question.bases is None:
        return traits.memory
    memory = traits.memory - question.bases.table().building_bytes()
    if memory <= 0:
        what = f"the {question.bases.count} points kept on it{_multiples(question.bases)} while they are made"
        raise _out_of_memory(traits, what, question.bases.table().building_bytes(), question.bases)
    return memory


def _overlapping(question: Question, traits: Traits, shape: Shape) -> tuple[Shape, list[tuple[int, int]]]:
    """The largest piece and the points of each, where a multiplication that would fit is cut so that its copies overlap its
    kernels."""
    whole = _ranges(question.count, shape.count)
    if len(whole) > 1 or not shape.chunked or traits.whole or traits.kind != "cuda":
        return shape, whole
    parts = growing(question.count, growth(question.curve, question.name, kept=question.bases is not None))
    turned = replace(shape, count=parts[-1][1], in_turns=len(parts) > 1)
    return (turned, parts) if turned.fits(_memory(question, traits)) else (shape, whole)


def growing(n: int, by: Growth) -> list[tuple[int, int]]:
    """(start, count) of each part: as many as there can be."""
    sums = [0, 1]
    while sums[-1] * by.times + 1 <= n // max(FIRST_PIECE, n // by.firsts):
        sums.append(sums[-1] * by.times + 1)
    ends = [n * part // sums[-1] for part in sums]
    return [(start, end - start) for start, end in pairwise(ends)]


def _does_not_fit(traits: Traits, shape: Shape) -> ServiceError:
    """Not even the smallest piece's buffers, beside the bases where there are any."""
    bases = shape.bases
    what = "the buckets of one point" if shape.count == 1 else f"the buckets of {shape.count} points"
    beside = f" beside the {bases.count} points kept on it{_multiples(bases)}" if bases else ""
    kept = bases.table().building_bytes() if bases else 0
    return _out_of_memory(traits, what + beside, shape.device_bytes() + kept, bases)


def _multiples(bases: Bases) -> str:
    return " with their multiples" if bases.levels > 1 else ""


def _out_of_memory(traits: Traits, what: str, nbytes: int, bases: Bases | None) -> ServiceError:
    less = ", or keep the points without multiples (precompute=False)" if bases and bases.levels > 1 else ""
    return ServiceError(
        Status.OUT_OF_DEVICE_MEMORY,
        f"the device's budget of {traits.memory} bytes does not hold {what} ({nbytes} bytes)",
        hint=f"raise --device-memory{less}",
    )


def _ranges(n: int, size: int) -> list[tuple[int, int]]:
    """(start, count) of each part."""
    return [(start, min(size, n - start)) for start in range(0, n, size)]


def _piece(question: Question, largest: Shape, vectors: tuple[int, int], points: tuple[int, int]) -> Piece:
    (first_vector, vector_count), (start, count) = vectors, points
    shape = replace(largest, count=count, vectors=vector_count, length=largest.chunk_length)
    wire = question.curve.point_bytes(shape.group)
    is_first, is_last = start == 0, start + count == question.count
    scalars = (
        Transfer(
            "scalars",
            "scalars",
            ((first_vector + v) * question.count + start) * SCALAR_BYTES,
            count * SCALAR_BYTES,
            v * count * SCALAR_BYTES,
        )
        for v in range(vector_count)
    )
    launches = (
        *(() if shape.bases else point_launches(shape, start, question.subgroup)),
        *sort_launches(shape, start),
        *sum_launches(shape, is_first=is_first),
        *reduction_launches(shape, is_first=is_first, is_last=is_last),
    )
    answer = Transfer("out", "result", first_vector * wire, vector_count * wire)
    points_in = () if shape.bases else (Transfer("wire", "points", start * wire, count * wire),)
    copies = (*points_in, *_joined(scalars))
    # Every kernel waits by itself for the one before it.
    ordered = (replace(launch, overlaps=i > 0) for i, launch in enumerate(launches))
    return Piece(copies, tuple(ordered), (answer,) if is_last else ())


def _joined(transfers: Iterable[Transfer]) -> tuple[Transfer, ...]:
    """Neighbours as one: a piece with all points takes its vectors in one copy."""
    joined: list[Transfer] = []
    for each in transfers:
        last = joined[-1] if joined else None
        if last and last.offset + last.nbytes == each.offset and last.at + last.nbytes == each.at:
            joined[-1] = replace(last, nbytes=last.nbytes + each.nbytes)
        else:
            joined.append(each)
    return tuple(joined)
