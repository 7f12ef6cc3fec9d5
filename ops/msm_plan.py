"""The launches of a multi-scalar multiplication: Pippenger's bucket method (kernels/entry/msm_sort.cu, msm.cu,
msm_reduce.cu say what each kernel does).

A piece takes some of the points with some of the vectors of scalars, whatever the scalars are: grids are for the most that
there can be, and the threads that find nothing end at once. The pieces of one range of vectors follow each other and keep
their sum on the device; the last of them writes the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from limbd.ops.base import (
    FIRST_BAD,
    FIRST_BAD_BYTES,
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
from limbd.ops.msm_tails import fold, merges, stages
from limbd.ops.msm_tuning import MsmRow
from limbd.ops.msm_units import (
    DIGITS_BLOCK,
    LOW_BYTES,
    POINTS_BLOCK,
    SCALAR_LIMBS,
    SCAN_TILE,
    SORT_BLOCK,
    TILE,
    Kernels,
    digit_bytes,
    kernels,
)
from limbd.ops.params.curves import Curve, Group, GroupName
from limbd.ops.status import ServiceError, Status

# Blocks of a scan: each adds up the sums of those before it.
SCAN_BLOCKS = 1024

# So many counts that one block does it alone.
ONE_BLOCK_SCAN = 8 * SCAN_TILE

# Entries of a slice, where there are so few that they do not fill the device: shorter ones would leave more spills than sums.
SHORTEST_SLICE = 8

SCALAR_BYTES = SCALAR_LIMBS * LIMB_BYTES

# Entries are counted in 32 bits, and a point's index leaves one for its sign.
MAX_ENTRIES = 2**32 - 2 * TILE
MAX_COUNT = 2**31 - 1


def window_count(order: int, width: int) -> int:
    """Windows that hold every scalar below the order as signed digits: one bit more than the order's, so that no carry
    leaves the top window (kernels/algo/digits.cuh)."""
    return -(-(order.bit_length() + 1) // width)


@dataclass(frozen=True)
class Shape:
    """One piece: count points, `vectors` vectors of as many scalars. bases: where the points stay on the device."""

    curve: Curve
    name: GroupName
    count: int
    vectors: int
    row: MsmRow
    constant: bool
    bases: Bases | None = None

    @cached_property
    def group(self) -> Group:
        group = self.curve.group(self.name)
        assert group is not None, "decode refuses others"
        return group

    @cached_property
    def kernels(self) -> Kernels:
        row = self.row
        blocks = row.accumulate_block, row.resident, row.reduce_block
        return kernels(self.curve, self.name, row.width, *blocks, self.constant, row.lanes is not None)

    # --- numbers ---

    @property
    def windows(self) -> int:
        return window_count(self.curve.order, self.row.width)

    @property
    def levels(self) -> int:
        """Windows whose digits share a row of buckets, as the points' multiples by them are there."""
        return self.bases.levels if self.bases else 1

    @property
    def row_windows(self) -> int:
        """Windows of a vector that have a row of buckets each."""
        return self.windows // self.levels

    @property
    def row_entries(self) -> int:
        """At most."""
        return self.levels * self.count

    @property
    def rows(self) -> int:
        return self.vectors * self.row_windows

    @property
    def half(self) -> int:
        """Buckets of a row that count: digits of either sign share one."""
        return 1 << (self.row.width - 1)

    @property
    def row_buckets(self) -> int:
        """With the one for zeros, where the work is constant."""
        return self.half + self.constant

    @property
    def keys(self) -> int:
        """Of the sort's first pass."""
        return -(-self.row_buckets >> self.row.low_bits)

    @property
    def entries(self) -> int:
        """At most."""
        return self.rows * self.row_entries

    @property
    def shortest_slice(self) -> int:
        return min(self.row.slice, SHORTEST_SLICE)

    @property
    def slices(self) -> int:
        """Of at most the row's length, and such that they fill the device a whole number of times."""
        fill = self.row.fill
        turns = -(-self.entries // (self.row.slice * fill))
        return -(-self.entries // max(self.shortest_slice, -(-self.entries // (turns * fill))))

    @property
    def sum_limbs(self) -> int:
        """Limbs of a stored point of kernels/algo/bucket_sums.cuh's mode."""
        return self._limbs(3 if self.constant else 4)

    @property
    def pair_limbs(self) -> int:
        """Of the reduction's: over lanes it has XYZZ coordinates in both modes."""
        return self._limbs(4) if self.row.lanes else self.sum_limbs

    def _limbs(self, coordinates: int) -> int:
        return -(-coordinates * self.group.degree * self.curve.base.montgomery_limbs // 4) * 4

    def spill_counts(self) -> list[int]:
        """Spills of the additions, then of each merge that leaves more than one."""
        counts = [self.slices]
        while counts[-1] > 1:
            counts.append(-(-counts[-1] // self.row.merge))
        return counts

    def stages(self) -> list[tuple[int, int]]:
        """Of the reduction, one a launch: log2 of a segment or chunk, and of the pairs of a row that the stage leaves."""
        left = self.row.width - 1
        found: list[tuple[int, int]] = []
        while left > 0 or not found:
            most = self.row.lanes.log_chunk if self.row.lanes and found else self.row.log_segment
            step = min(most, left)
            left -= step
            found.append((step, left))
        return found

    # --- memory ---

    def buffers(self) -> tuple[Buffer, ...]:
        partitions, buckets = self.rows * self.keys, self.rows * self.row_buckets
        two_passes = self.row.low_bits > 0
        spills = [*self.spill_counts(), 1]
        pairs = [self.rows << left for _, left in self.stages()] + [1]
        point, pair = self.sum_limbs, self.pair_limbs
        own_points = {"points": self.count * self.curve.point_limbs(self.group), "infinite": self.count}
        words = {
            **({} if self.bases else own_points),
            "digits": -(-self.entries * digit_bytes(self.row.width) // LIMB_BYTES),
            "counts": partitions + (buckets if two_passes else 0),
            "cursors": max(partitions, buckets),
            "partition_starts": partitions + 1 if two_passes else 1,
            "tile_starts": partitions + 1 if two_passes else 1,
            "entries": self.entries,
            "low_keys": -(-self.entries * LOW_BYTES // LIMB_BYTES) if two_passes else 1,
            "sorted": self.entries if two_passes else 1,
            "starts": buckets + 1,
            "runs": 2 * min(buckets, self.entries) + 1,
            "scan": 2 * SCAN_BLOCKS,
            "totals": 2,
            "buckets": buckets * point,
            "spills_0": spills[0] * point,
            "spills_1": spills[1] * point,
            "spill_buckets_0": spills[0],
            "spill_buckets_1": spills[1],
            "sums_0": pairs[0] * pair,
            "sums_1": pairs[1] * pair,
            "weighted_0": pairs[0] * pair,
            "weighted_1": pairs[1] * pair,
            "kept": self.vectors * pair,
        }
        wire = self.curve.point_bytes(self.group)
        return (
            Buffer("scalars", "in", self.vectors * self.count * SCALAR_BYTES),
            *(() if self.bases else (Buffer("wire", "in", self.count * wire), CHECKED)),
            *(Buffer(name, "scratch", size * LIMB_BYTES) for name, size in words.items()),
            Buffer("out", "out", self.vectors * wire),
        )

    def device_bytes(self) -> int:
        return sum(buffer.nbytes for buffer in self.buffers())

    def fits(self, memory: int) -> bool:
        """In memory, and in the numbers that the kernels count with."""
        return (
            self.entries <= MAX_ENTRIES
            and self.row_entries <= MAX_COUNT
            and self.rows * self.row_buckets < MAX_COUNT
            and self.device_bytes() <= memory
        )


CHECKED = Buffer("bad", FIRST_BAD, FIRST_BAD_BYTES)


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
    yield _launch(shape, "msm_points", shape.count, POINTS_BLOCK, values)
    if subgroup and shape.group.cofactor != 1:
        values["order"] = shape.curve.order
        yield _launch(shape, "msm_subgroup", shape.count, POINTS_BLOCK, values)


def sort_launches(shape: Shape) -> Iterator[Launch]:
    """Scalars -> `starts`, `runs`, `totals`, and entries by bucket."""
    row, order = shape.row, shape.curve.order
    width, windows = row.width, shape.windows
    numbers = montgomery(order, SCALAR_LIMBS)
    offset = sum(((1 << (width - 1)) - 1) << width * w for w in range(windows))
    partitions, buckets = shape.rows * shape.keys, shape.rows * shape.row_buckets
    two_passes, tiles = row.low_bits > 0, -(-shape.row_entries // TILE)
    digits = {"order": order, "r2": numbers["r2"], "n0inv": numbers["n0inv"], "offset": offset}
    digits |= {"count": shape.count, "vectors": shape.vectors, "windows": windows, "width": width}
    digits["cleared"] = partitions + (buckets if two_passes else 0)
    places = {"infinite": shape.bases.infinite} if shape.bases else {}
    yield _launch(shape, "msm_digits", shape.count * shape.vectors, DIGITS_BLOCK, digits, pointers=places)

    first = {"count": shape.row_entries, "tiles": tiles, "keys": shape.keys, "width": width}
    first |= {"low_bits": row.low_bits, "spare": int(shape.constant)}
    threads = shape.rows * tiles * SORT_BLOCK
    yield _launch(shape, "msm_count", threads, SORT_BLOCK, first, shared=LIMB_BYTES * shape.keys)
    if two_passes:
        yield from _scan(shape, partitions, "partition_starts", "tile_starts", compact=False)
    else:
        yield from _scan(shape, partitions, "starts", "runs", compact=True)
    yield _launch(shape, "msm_scatter", threads, SORT_BLOCK, first, shared=_tile_bytes(shape.keys, digit_bytes(width)))
    if not two_passes:
        return
    second = {"partitions": partitions, "keys": shape.keys, "low_bits": row.low_bits, "buckets": shape.row_buckets}
    threads, keys = (partitions + shape.entries // TILE) * SORT_BLOCK, 1 << row.low_bits
    starts, counts = {"starts": "partition_starts"}, Part("counts", LIMB_BYTES * partitions)
    pointers: dict[str, Place | None] = {**starts, "counts": counts}
    yield _launch(shape, "msm_count_low", threads, SORT_BLOCK, second, shared=LIMB_BYTES * keys, pointers=pointers)
    yield from _scan(shape, buckets, "starts", "runs", compact=True, counts=counts)
    shared = _tile_bytes(keys, LOW_BYTES)
    yield _launch(shape, "msm_scatter_low", threads, SORT_BLOCK, second, shared=shared, pointers=starts)


def _tile_bytes(keys: int, key_bytes: int) -> int:
    """Shared memory in which a block orders its tile: two numbers for each key, and the items with their keys."""
    return 2 * LIMB_BYTES * keys + TILE * (LIMB_BYTES + key_bytes)


def _clear(shape: Shape, n: int, **pointers: str) -> Launch:
    return _launch(shape, "msm_clear", n, SORT_BLOCK, {"n": n}, pointers=pointers)


def _scan(
    shape: Shape, n: int, starts: str, seconds: str, *, compact: bool, counts: Place = "counts"
) -> Iterator[Launch]:
    chunk = n if n <= ONE_BLOCK_SCAN else -(-n // SCAN_BLOCKS // SCAN_TILE) * SCAN_TILE
    values = {"n": n, "chunk": chunk, "compact": int(compact)}
    threads = -(-n // chunk) * SORT_BLOCK
    pointers = {"counts": counts, "sums": "scan"}
    if threads > SORT_BLOCK:
        yield _launch(shape, "msm_scan_sums", threads, SORT_BLOCK, values, pointers=pointers)
    pointers |= {"starts": starts, "seconds": seconds}
    yield _launch(shape, "msm_scan_apply", threads, SORT_BLOCK, values, pointers=pointers)


def sum_launches(shape: Shape) -> Iterator[Launch]:
    """Entries -> buckets."""
    row = shape.row
    values = {"slices": shape.slices, "shortest": shape.shortest_slice}
    pointers = {"entries": "sorted" if row.low_bits else "entries", "points": TABLE if shape.bases else "points"}
    pointers |= {"spills": "spills_0", "spill_buckets": "spill_buckets_0"}
    yield _launch(shape, "msm_accumulate", shape.slices, row.accumulate_block, values, pointers=pointers)
    yield from merges(shape)


def reduction_launches(shape: Shape, *, is_first: bool, is_last: bool) -> Iterator[Launch]:
    """Buckets -> the sum that is kept, and with the last piece the answer."""
    yield from stages(shape)
    yield fold(shape, is_first=is_first, is_last=is_last)


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

    Raises ServiceError(OUT_OF_DEVICE_MEMORY) where the budget does not hold one point.
    """
    if question.count == 0:
        return nothing_plan(question, row_of(1))
    shape = _fitting(question, traits, row_of)
    pieces = tuple(
        _piece(question, shape, vectors, points)
        for vectors in _ranges(question.vectors, shape.vectors)
        for points in _ranges(question.count, shape.count)
    )
    tables = (question.bases.table(),) if question.bases else ()
    return LaunchPlan(shape.buffers(), 1, pieces, tables)


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
    memory = traits.memory - (bases.table().building_bytes() if bases else 0)
    while True:
        shape = Shape(question.curve, question.name, count, vectors, row_of(count), question.constant, bases)
        if shape.fits(memory):
            return shape
        if vectors == 1 and bases:
            raise _does_not_fit(traits, f"the buckets of {count} points beside them", shape)
        if count == vectors == 1:
            raise _does_not_fit(traits, "the buckets of one point", shape)
        count, vectors = (count, -(-vectors // 2)) if vectors > 1 else (-(-count // 2), 1)


def _does_not_fit(traits: Traits, what: str, shape: Shape) -> ServiceError:
    return ServiceError(
        Status.OUT_OF_DEVICE_MEMORY,
        f"the device's budget of {traits.memory} bytes does not hold {what} ({shape.device_bytes()} bytes)",
        hint="raise --device-memory",
    )


def _ranges(n: int, size: int) -> list[tuple[int, int]]:
    """(start, count) of each part."""
    return [(start, min(size, n - start)) for start in range(0, n, size)]


def _piece(question: Question, largest: Shape, vectors: tuple[int, int], points: tuple[int, int]) -> Piece:
    (first_vector, vector_count), (start, count) = vectors, points
    shape = replace(largest, count=count, vectors=vector_count)
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
        *sort_launches(shape),
        *sum_launches(shape),
        *reduction_launches(shape, is_first=is_first, is_last=is_last),
    )
    answer = Transfer("out", "result", first_vector * wire, vector_count * wire)
    points_in = () if shape.bases else (Transfer("wire", "points", start * wire, count * wire),)
    copies = (*points_in, *_joined(scalars))
    return Piece(copies, launches, (answer,) if is_last else ())


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
