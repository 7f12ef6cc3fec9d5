"""Spills merged into buckets with points over groups of lanes, by rows and by trees, against the group law: given spills, cut
in every way, with equal, opposite and infinite points in a run. On the host with range checks, and (marked gpu) on the device."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

import numpy as np
import pytest

from limbd.harness.groups import group_of
from limbd.ops.base import Buffer, Launch, LaunchPlan, Limbs, Piece, Request, Transfer
from limbd.ops.mod_mul import MOD_MUL
from limbd.ops.msm_shape import Shape
from limbd.ops.msm_tails import merges
from limbd.ops.msm_tuning import LaneRow, with_width
from limbd.ops.params.base import LIMB_BITS
from limbd.ops.params.coordinates import Coordinate, inverse, multiply
from limbd.ops.params.curves import GroupName, by_name
from limbd.ops.params.layout import LIMB_BYTES, from_ints, unpack
from limbd.ops.reference.curve import Point, times
from limbd.worker.device.base import Backend

_toy = by_name("toy_7_13")
assert _toy is not None
TOY = _toy

BOTH_GROUPS = pytest.mark.parametrize("name", ["g1", "g2"])
BOTH_MODES = pytest.mark.parametrize("constant", [False, True], ids=["variable", "constant"])
# Most slices by trees; in between, a merge begins by rows and ends by trees.
FORMS = pytest.mark.parametrize("trees", [0, 1, 5, 1 << 11])

NO_BUCKET = 0xFFFFFFFF
MERGE = 3

# A spill: its bucket, if there is one, and the logarithm of its point.
Spill = tuple[int | None, int]

# Logarithms of a bucket's spills, or a number of places without one.
Run = list[int] | int


@dataclass(frozen=True)
class Given(Shape):
    """With a number of spills of its own."""

    given: int = 1

    @property
    def spills(self) -> int:
        return self.given

    @property
    def spill_room(self) -> int:
        return self.given


def shape_of(name: GroupName, constant: bool, trees: int, count: int) -> Given:
    row = replace(with_width(3, 8, MERGE, 1, 1, "a test's"), lanes=LaneRow(2, 1, trees))
    return Given(TOY, name, 1, 1, row, constant, given=count)


# --- points in memory -----------------------------------------------------------------------------------------------


def multiple(name: GroupName, k: int) -> Point:
    return times(k % TOY.order, group_of(TOY, name).generator, TOY.base.modulus)


def packed(coordinates: Sequence[Coordinate]) -> int:
    bits = LIMB_BITS * TOY.base.montgomery_limbs
    parts = [TOY.base.montgomery(part) for coordinate in coordinates for part in coordinate]
    return sum(part << bits * i for i, part in enumerate(parts))


def stored(point: Point, shape: Shape, rng: random.Random) -> int:
    """In XYZZ or projective coordinates with any factor."""
    p, degree = TOY.base.modulus, shape.group.degree
    f: Coordinate = (rng.randrange(1, p), *(rng.randrange(p) for _ in range(degree - 1)))
    zero = (0,) * degree
    if point is None:
        return packed((zero, f, zero)) if shape.constant else packed((f, f, zero, zero))
    x, y = point
    if shape.constant:
        return packed((multiply(x, f, p), multiply(y, f, p), f))
    f2 = multiply(f, f, p)
    f3 = multiply(f2, f, p)
    return packed((multiply(x, f2, p), multiply(y, f3, p), f2, f3))


def read(value: int, shape: Shape) -> Point:
    base, degree = TOY.base, shape.group.degree
    bits = LIMB_BITS * base.montgomery_limbs
    parts = [(value >> bits * i & (1 << bits) - 1) * pow(base.r, -1, base.modulus) for i in range(4 * degree)]
    x, y, z, zzz = (tuple(part % base.modulus for part in parts[i : i + degree]) for i in range(0, 4 * degree, degree))
    if not any(z):
        return None
    over = inverse(z, base.modulus), inverse(z if shape.constant else zzz, base.modulus)
    return multiply(x, over[0], base.modulus), multiply(y, over[1], base.modulus)


# --- a run of merging -----------------------------------------------------------------------------------------------


def first_merge(shape: Shape, own: int) -> Launch:
    """By which so many buckets get what they have already: one spill each, by one block, in turns."""
    names = {"spills": "own", "spill_buckets": "own_buckets"}
    # What it leaves is nowhere a spill.
    names |= {"next_spills": "own_next", "next_spill_buckets": "own_next_buckets"}
    return Launch(shape.kernels["msm_merge_trees"], 1, 128, {"count": own, "levels": 1}, 0, names)


def plan_of(shape: Given, own: int, arrays: Mapping[str, Limbs]) -> LaunchPlan:
    """own: buckets."""
    point, left = shape.sum_limbs * LIMB_BYTES, shape.merged_room
    clear = Launch(
        shape.kernels["msm_clear"], -(-own * point // 1024), 256, {"n": own * point // 4}, 0, {"counts": "buckets"}
    )
    scratch = {"own_next": own * point, "own_next_buckets": own * LIMB_BYTES}
    scratch |= {"spills_1": left * point, "spill_buckets_1": left * LIMB_BYTES}
    buffers = (
        *(Buffer(name, "in", array.nbytes) for name, array in arrays.items()),
        *(Buffer(name, "scratch", nbytes) for name, nbytes in scratch.items()),
        Buffer("buckets", "out", own * point),
    )
    copies = tuple(Transfer(name, name, 0, array.nbytes) for name, array in arrays.items())
    launches = (clear, first_merge(shape, own), *merges(shape))
    return LaunchPlan(buffers, 1, (Piece(copies, launches, (Transfer("buckets", "result", 0, own * point),)),))


def merged(backend: Backend, shape: Given, own: Sequence[int], spills: Sequence[Spill]) -> list[Point]:
    """What buckets have after they had the multiples `own`."""
    rng = random.Random("forms")

    def points(logarithms: Sequence[int]) -> Limbs:
        rows = [stored(multiple(shape.name, k), shape, rng) for k in logarithms]
        return from_ints(rows, shape.sum_limbs).copy()

    arrays = {
        "own": points(own),
        "own_buckets": np.arange(len(own), dtype=np.uint32),
        "spills_0": points([k for _, k in spills]),
        "spill_buckets_0": np.array([NO_BUCKET if b is None else b for b, _ in spills], dtype=np.uint32),
    }
    # Nobody may read a spill that is not there: all ones are in no range.
    arrays["spills_0"][[b is None for b, _ in spills]] = 0xFFFFFFFF
    result = bytearray(len(own) * shape.sum_limbs * LIMB_BYTES)
    request = Request(MOD_MUL, len(own), 0, 1, shape.sum_limbs * LIMB_BYTES, arrays)
    backend.run(request, plan_of(shape, len(own), arrays), memoryview(result))
    return [read(int(value), shape) for value in unpack(result, shape.sum_limbs * LIMB_BYTES)]


def check(backend: Backend, name: GroupName, constant: bool, trees: int, runs: Sequence[Run]) -> None:
    """runs: each of another bucket."""
    spills: list[Spill] = []
    buckets = 0
    for run in runs:
        if isinstance(run, int):
            spills += [(None, 0)] * run
        else:
            spills += [(buckets, k) for k in run]
            buckets += 1
    rng = random.Random(f"own {spills}")
    # One more bucket than has spills.
    own = [rng.choice((0, 1, 5, rng.randrange(TOY.order))) for _ in range(buckets + 1)]
    sums = Counter(dict(enumerate(own)))
    for bucket, k in spills:
        if bucket is not None:
            sums[bucket] += k
    expected = [multiple(name, sums[bucket]) for bucket in range(buckets + 1)]
    assert merged(backend, shape_of(name, constant, trees, len(spills)), own, spills) == expected, runs


# --- the cases ------------------------------------------------------------------------------------------------------


@BOTH_GROUPS
@BOTH_MODES
@FORMS
def test_short_ones(kernels: Backend, name: GroupName, constant: bool, trees: int) -> None:
    """One spill, equal, opposite and infinite ones; one bucket alone begins with a merge of one spill, by trees."""
    few: list[list[Run]] = [
        [2],
        [1, [3]],
        [[3], 1],
        [[3, 3]],
        [[3, 10]],
        [[3, 10, 3]],
        [[0, 0]],
        [[3], [3]],
        [5, [0, 2]],
    ]
    for runs in few:
        check(kernels, name, constant, trees, runs)
    for count in range(2, 19):
        check(kernels, name, constant, trees, [[1] * count])
        check(kernels, name, constant, trees, [2, [4, 9] * count])


@BOTH_GROUPS
@BOTH_MODES
@FORMS
def test_every_place_of_a_run(kernels: Backend, name: GroupName, constant: bool, trees: int) -> None:
    """Runs that begin and end anywhere in slices, beside others and beside empty places; over several levels."""
    for start in range(10):
        check(kernels, name, constant, trees, [start, [1, 2, 3, 4, 5, 6, 7], [7, 6], 3, [2] * 9, [11]])
    for length in (8, 9, 31, 65, 200):
        check(kernels, name, constant, trees, [[5], [2] * length, [5], 4, [3] * length, length])


@BOTH_GROUPS
@BOTH_MODES
@FORMS
def test_any_runs(kernels: Backend, name: GroupName, constant: bool, trees: int) -> None:
    rng = random.Random(f"runs {name}")
    for longest in (1, 2, 4, 30):
        check(kernels, name, constant, trees, list(random_runs(rng, longest)))


def random_runs(rng: random.Random, longest: int) -> Iterator[Run]:
    for _ in range(300 // longest):
        if rng.randrange(3) == 0:
            yield rng.randrange(1, 12)
        yield [rng.choice((0, 1, 12, rng.randrange(TOY.order))) for _ in range(rng.randrange(1, longest + 1))]


# --- how levels are cut ---------------------------------------------------------------------------------------------


@BOTH_GROUPS
@FORMS
def test_the_form_of_a_level_follows_from_its_spills(name: GroupName, trees: int) -> None:
    """Every level once and in order, each slice with a group or a warp, or all by one block; none that is by rows after one by
    trees."""
    for count in (2, 9, 33, 100, 1000, 20_000, 1 << 18):
        shape = shape_of(name, False, trees, count)
        launches = list(merges(shape))
        levels = [launch.values["levels"] for launch in launches]
        counts = shape.spill_counts()[:-1]
        assert sum(levels) == len(counts) and all(level == 1 for level in levels[:-1]) and launches[-1].grid == 1
        assert [launch.values["count"] for launch in launches] == [counts[i] for i in [0, *accumulate(levels[:-1])]]
        per_warp = 32 // shape.group_lanes
        for launch, at in zip(launches, [0, *accumulate(levels[:-1])], strict=True):
            warps = -(-counts[at] // per_warp)
            by_trees = warps <= trees
            assert launch.kernel.name == ("msm_merge_trees" if by_trees else "msm_merge")
            assert "length" not in launch.values if by_trees else launch.values["length"] == MERGE
            slices = warps if by_trees else -(-counts[at] // MERGE)
            at_once = launch.block // 32 * (1 if by_trees else per_warp)
            is_last = at + launch.values["levels"] == len(counts)
            assert launch.grid == (1 if is_last else -(-slices // at_once))
            assert {shape.by_trees(n) for n in counts[at : at + launch.values["levels"]]} == {by_trees}


@BOTH_GROUPS
@FORMS
def test_there_is_room_for_what_any_number_of_spills_leaves(name: GroupName, trees: int) -> None:
    """A shorter piece has as many as there is room for, or fewer, and not always fewer slices."""
    for room in (1, 7, 20, 29, 61, 200):
        shape = shape_of(name, False, trees, room)
        assert shape.merged_room == max(shape.merge_slices(count) for count in range(1, room + 1))
