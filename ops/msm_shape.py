"""One piece of a multi-scalar multiplication in numbers: how its entries are cut, and what memory it takes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from limbd.ops.base import FIRST_BAD, FIRST_BAD_BYTES, LIMB_BYTES, SHARED, Buffer, LaunchPlan, Role
from limbd.ops.msm_bases import Bases
from limbd.ops.msm_tuning import MsmRow
from limbd.ops.msm_units import (
    CHUNK_WORDS,
    LOW_BYTES,
    SCALAR_LIMBS,
    TILE,
    Kernels,
    digit_bytes,
    kernels,
)
from limbd.ops.params.curves import Curve, Group, GroupName
from limbd.ops.params.endomorphism import Halving, halving

# The most blocks of a scan.
SCAN_BLOCKS = 1024

# Entries of a slice or chunk, where there are so few that they do not fill the device: shorter ones would leave more spills
# than sums.
SHORTEST_SLICE = 8
SHORTEST_CHUNK = 4

SCALAR_BYTES = SCALAR_LIMBS * LIMB_BYTES

WARP = 32

# Coordinates of a point over lanes (kernels/algo/bucket_lanes.cuh).
COORDINATES = 4

# Entries are counted in 32 bits, and a point's index leaves one for its sign.
MAX_ENTRIES = 2**32 - 2 * TILE
MAX_COUNT = 2**31 - 1

CHECKED = Buffer("bad", FIRST_BAD, FIRST_BAD_BYTES)


def window_count(order: int, width: int) -> int:
    """Windows that hold every scalar below the order as signed digits: one bit more than the order's, so that no carry
    leaves the top window (kernels/algo/digits.cuh)."""
    return -(-(order.bit_length() + 1) // width)


def half_window_count(bound: int, width: int) -> int:
    """Windows that hold every number of either sign that is not above the bound: the digits' offset is not below it, and leaves
    room for it above."""
    count = 1
    while True:
        offset, end = offset_of(count, width), 1 << width * count
        if bound <= offset and offset + bound < end:
            return count
        count += 1


def offset_of(windows: int, width: int) -> int:
    """O of kernels/algo/digits.cuh."""
    return sum(((1 << (width - 1)) - 1) << width * w for w in range(windows))


@dataclass(frozen=True)
class Shape:
    """One piece: count points, `vectors` vectors of as many scalars. bases: where the points stay on the device.

    in_turns: pieces of other points come before or after it and share its buckets, which begin as infinity. length: of its
    chunks, where they are as those of a larger piece.
    """

    curve: Curve
    name: GroupName
    count: int
    vectors: int
    row: MsmRow
    constant: bool
    bases: Bases | None = None
    in_turns: bool = False
    length: int = 0

    @cached_property
    def group(self) -> Group:
        group = self.curve.group(self.name)
        assert group is not None, "decode refuses others"
        return group

    @cached_property
    def kernels(self) -> Kernels:
        row = self.row
        blocks = row.accumulate_block, row.resident, row.reduce_block
        return kernels(
            self.curve, self.name, row.width, *blocks, self.constant, row.lanes is not None, self.chunked, self.paired
        )

    @property
    def chunked(self) -> bool:
        """Whether additions go by chunks of buckets; how many there are depends on the scalars."""
        return self.row.chunk > 0 and not self.constant

    # --- numbers ---

    @cached_property
    def halving(self) -> Halving | None:
        """How scalars are halved, where they are: not where the points' multiples by every window are there."""
        endomorphism = self.group.endomorphism
        if endomorphism is None or not (self.bases.images if self.bases else self.row.halves):
            return None
        return halving(self.curve.order, endomorphism.eigenvalue)

    @cached_property
    def windows(self) -> int:
        """Of a scalar, or of half a one."""
        if self.halving:
            return half_window_count(self.halving.bound, self.row.width)
        return window_count(self.curve.order, self.row.width)

    @property
    def levels(self) -> int:
        """Digits of a scalar that share a row of buckets: those by whose weights multiples of the points are there."""
        if self.halving:
            return 2
        return self.bases.levels if self.bases else 1

    @property
    def row_windows(self) -> int:
        """Windows of a vector that have a row of buckets each."""
        return self.windows if self.halving else self.windows // self.levels

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
        return -(-self.entries // max(self.shortest_slice, -(-self.entries // self._filling)))

    @property
    def _filling(self) -> int:
        """Threads that fill the device as often as it takes for slices of the row's length."""
        return -(-self.entries // (self.row.slice * self.row.fill)) * self.row.fill

    @property
    def paired(self) -> bool:
        """Whether two lanes add up a chunk."""
        return self.chunked and self.row.pairs and self.group.degree == 2

    @property
    def chunk_length(self) -> int:
        """Entries of the longest: of kernels/algo/bucket_chunks.cuh's choice where all entries are there."""
        share, mean = self.entries // self._chunks_at_once, self.entries // (self.rows * self.row_buckets)
        usual = min(share + share // 4 + 1, 2 * mean + 1)
        return self.length or min(self.row.chunk, max(SHORTEST_CHUNK, share // 2 + 1, usual))

    @property
    def chunk_fill(self) -> int:
        """Chunks that fill the device, by which they are cut where there are fewer entries than there could be, which a sort of
        two passes knows in time; 0: chunks keep their length."""
        return self._chunks_at_once if self.row.low_bits > 0 else 0

    @property
    def _chunks_at_once(self) -> int:
        return max(1, self.row.fill >> self.paired)

    @property
    def chunks(self) -> int:
        """At most: a short one for each bucket that there is, and whole ones."""
        return min(self.rows * self.row_buckets, self.entries) + self._whole_chunks

    @property
    def _whole_chunks(self) -> int:
        """At most: of the longest, or two a thread, as those that there are have more than half its share of the entries."""
        shortest = self.entries // min(self.chunk_length, SHORTEST_CHUNK)
        return min(shortest, max(self.entries // self.chunk_length, 2 * self.chunk_fill))

    @property
    def spills(self) -> int:
        """That the additions leave, at most: of chunks, the places for them."""
        return self._whole_chunks + 1 if self.chunked else self.slices

    @property
    def spill_room(self) -> int:
        """Places for them in memory: a shorter piece may have more slices, where its own are shorter."""
        return self.spills if self.chunked else min(-(-self.entries // self.shortest_slice), self._filling)

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

    @property
    def group_lanes(self) -> int:
        """Of a point over lanes."""
        return COORDINATES * self.group.degree

    def by_trees(self, count: int) -> bool:
        """Whether so many spills are merged by trees over the groups of a warp, not by rows of one thread's or group's."""
        return self.row.lanes is not None and -(-count // self._tree) <= self.row.lanes.trees

    def merge_slices(self, count: int) -> int:
        """Slices of so many spills, each of which leaves one place for a spill."""
        return -(-count // (self._tree if self.by_trees(count) else self.row.merge))

    @property
    def _tree(self) -> int:
        """Spills of a slice by trees: one for each group of a warp."""
        return WARP // self.group_lanes

    def spill_counts(self) -> list[int]:
        """Spills of the additions, then of each merge that leaves more than one."""
        counts = [self.spills]
        while counts[-1] > 1:
            counts.append(self.merge_slices(counts[-1]))
        return counts

    @property
    def merged_room(self) -> int:
        """Places for spills of a merge, of any number that there is room for."""
        most_by_trees = min(self.spill_room, self._tree * self.row.lanes.trees) if self.row.lanes else 0
        return max(self.merge_slices(self.spill_room), self.merge_slices(most_by_trees))

    @property
    def sort_counts(self) -> int:
        """Of the sort's passes: by partition, then by bucket."""
        partitions, buckets = self.rows * self.keys, self.rows * self.row_buckets
        return partitions + (buckets if self.row.low_bits > 0 else 0)

    @property
    def class_counts(self) -> int:
        """Of chunks by their size, and how many places of each are taken."""
        return 2 * self.chunk_length if self.chunked else 0

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
        spills = self.spill_room, self.merged_room
        pairs = [self.rows << left for _, left in self.stages()] + [1]
        point, pair = self.sum_limbs, self.pair_limbs
        if self.chunked:
            order = {"chunks": self.chunks * CHUNK_WORDS}
        else:
            order = {"runs": 2 * min(buckets, self.entries) + 1}
        own_points = {"points": self.levels * self.count * self.curve.point_limbs(self.group), "infinite": self.count}
        words = {
            **({} if self.bases else own_points),
            "digits": -(-self.entries * digit_bytes(self.row.width) // LIMB_BYTES),
            "counts": self.sort_counts + self.class_counts,
            "cursors": max(partitions, buckets),
            "partition_starts": partitions + 1 if two_passes else 1,
            "tile_starts": partitions + 1 if two_passes else 1,
            "entries": self.entries,
            "low_keys": -(-self.entries * LOW_BYTES // LIMB_BYTES) if two_passes else 1,
            "sorted": self.entries if two_passes else 1,
            "starts": buckets + 1,
            **order,
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
            *(Buffer(name, self._role(name), size * LIMB_BYTES) for name, size in words.items()),
            Buffer("out", "out", self.vectors * wire),
        )

    def _role(self, name: str) -> Role:
        """Where pieces share buckets they share all that kernels alone use; where each is reduced, the sum that is kept."""
        return SHARED if self.in_turns or name == "kept" else "scratch"

    @property
    def lanes(self) -> int:
        """Sets of the buffers for copies: one to fill while kernels read the other."""
        return 2 if self.in_turns else 1

    def device_bytes(self) -> int:
        return LaunchPlan(self.buffers(), self.lanes, ()).device_bytes()

    def fits(self, memory: int) -> bool:
        """In memory, and in the numbers that the kernels count with."""
        return (
            self.entries <= MAX_ENTRIES
            and self.levels * (self.bases.count if self.bases else self.count) <= MAX_COUNT
            and self.rows * self.row_buckets < MAX_COUNT
            and self.device_bytes() <= memory
        )
