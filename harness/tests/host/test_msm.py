"""msm-g1 and msm-g2 through the kernels: every window, slice and path of the sort on small numbers, and the inputs on which
others were wrong. On the host with range checks, and (marked gpu) on the device."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import replace
from itertools import product

import pytest

from limbd.harness.groups import GROUPS, group_of
from limbd.harness.multiplications import Multiples, Multiplication
from limbd.ops.msm_shape import SHORTEST_CHUNK, SHORTEST_SLICE, Shape, window_count
from limbd.ops.msm_tuning import MsmRow, msm_row, with_width
from limbd.ops.msm_units import MAX_CHUNK, TILE
from limbd.ops.params.curves import Curve, GroupName, by_name
from limbd.ops.params.endomorphism import halving
from limbd.ops.reference.curve import Point, negate, plus
from limbd.ops.reference.msm import encode_points, proof_points, sum_of
from limbd.ops.status import RequestError, Status
from limbd.worker.device.base import Backend

EVERY_GROUP = pytest.mark.parametrize(("curve", "name"), GROUPS, ids=[f"{c.name}-{n}" for c, n in GROUPS])
BOTH_MODES = pytest.mark.parametrize("constant", [False, True], ids=["variable", "constant"])


def named(name: str) -> Curve:
    curve = by_name(name)
    assert curve is not None
    return curve


TOY = named("toy_7_13")
BN254 = named("bn254")


def row(
    width: int,
    length: int = 8,
    merge: int = 3,
    log_segment: int = 2,
    low_bits: int | None = None,
    chunks: bool = True,
    halves: bool = True,
) -> MsmRow:
    """length: of a slice, and of a chunk, which variable work goes by unless chunks is False. halves: where there are any."""
    made = with_width(width, length, merge, log_segment, 1, "a test's")
    made = replace(made, chunk=min(length, MAX_CHUNK) if chunks else 0, halves=halves)
    return made if low_bits is None else replace(made, low_bits=low_bits)


def always(made: MsmRow) -> Callable[[int], MsmRow]:
    return lambda count: made


MANY = 2 * TILE + 11


@pytest.fixture(scope="module")
def many() -> Multiples:
    return Multiples(BN254, "g1", "many", MANY)


# --- all groups -----------------------------------------------------------------------------------------------------


@EVERY_GROUP
@BOTH_MODES
def test_edges_of_every_group(kernels: Backend, curve: Curve, name: GroupName, constant: bool) -> None:
    scalars, points = proof_points(curve, group_of(curve, name))
    asked = Multiplication(curve, name, scalars, points, check_subgroup=True, constant_work=constant)
    assert asked.answer(kernels) == [sum_of([s % curve.order for s in scalars], points, curve)]


@EVERY_GROUP
@pytest.mark.parametrize("n", [0, 1, 2, 3, 31, 32, 33, 237, 1025])
def test_lengths(kernels: Backend, curve: Curve, name: GroupName, n: int) -> None:
    known = Multiples(curve, name, f"lengths {curve.name} {name}", n)
    rng = random.Random(n)
    scalars = [rng.randrange(2**256) for _ in range(n)]
    assert Multiplication(curve, name, scalars, known.points).answer(kernels) == [known.total(scalars)]


# --- windows --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("curve", [BN254, named("bls12_381"), named("secp256k1"), TOY], ids=lambda curve: curve.name)
@pytest.mark.parametrize("width", [2, 3, 4, 5, 8])
@BOTH_MODES
def test_the_last_carry_has_a_window(kernels: Backend, curve: Curve, width: int, constant: bool) -> None:
    """Widths that divide the order's bits too (255: 3, 5; 256: 2, 4, 8), scalars of the most carries."""
    bits, r = curve.scalar.bits, curve.order
    assert window_count(r, width) * width > bits
    known = Multiples(curve, "g1", f"carries {curve.name}", 9)
    full = sum(1 << width * w + width - 1 for w in range(-(-bits // width))) % r
    scalars = [r - 1, r - 2, r // 2, r // 2 + 1, full, full + 1, full - 1, (1 << bits - 1) - 1, 1 << bits - 1]
    asked = Multiplication(curve, "g1", scalars, known.points, constant_work=constant)
    for halves in (False, True):
        assert asked.answer(kernels, always(row(width, halves=halves))) == [known.total(scalars)]


@pytest.mark.parametrize("curve", [BN254, named("secp256k1"), TOY], ids=lambda curve: curve.name)
@pytest.mark.parametrize("width", [2, 3, 5, 8, 16])
@BOTH_MODES
def test_halves_at_their_bounds(kernels: Backend, curve: Curve, width: int, constant: bool) -> None:
    """Scalars whose halves are as large as they get, of either sign, and those around 0 and the eigenvalue."""
    endomorphism, r = curve.g1.endomorphism, curve.order
    assert endomorphism is not None
    known = halving(r, endomorphism.eigenvalue)
    corners = product(*([-known.bound, -1, 0, 1, known.bound] for _ in range(2)))
    scalars = [(a + b * endomorphism.eigenvalue) % r for a, b in corners]
    # Half a step beside the lattice's points: what rounding leaves is largest there.
    for (a, b), sign in product(
        (known.first, known.second, tuple(map(sum, zip(known.first, known.second, strict=True)))), (1, -1)
    ):
        scalars += [(sign * (a // 2 + off) + sign * (b // 2) * endomorphism.eigenvalue) % r for off in (-1, 0, 1)]
    points = Multiples(curve, "g1", f"halves {curve.name}", len(scalars))
    asked = Multiplication(curve, "g1", scalars, points.points, constant_work=constant)
    assert asked.answer(kernels, always(row(width))) == [points.total(scalars)]
    for scalar, point in zip(scalars[:10], points.points, strict=False):
        alone = Multiplication(curve, "g1", [scalar], [point], constant_work=constant)
        assert alone.answer(kernels, always(row(width))) == [sum_of([scalar], [point], curve)]


@pytest.mark.parametrize(
    ("curve_name", "width"), [("bls12_381", 3), ("bls12_381", 5), ("secp256k1", 4), ("secp256k1", 8)]
)
def test_all_r_minus_one_near_powers_of_two(kernels: Backend, curve_name: str, width: int) -> None:
    """Widths that divide the bits of the order, or of a scalar; each digit but the last carries."""
    curve = named(curve_name)
    known = Multiples(curve, "g1", "near powers", 257)
    for n in sorted({(1 << k) + off for k in range(1, 9) for off in (-1, 0, 1)}):
        asked = Multiplication(curve, "g1", [curve.order - 1] * n, known.points[:n])
        expected = known.point(-sum(known.logarithms[:n]))
        assert asked.answer(kernels, always(row(width, 16))) == [expected], n


@pytest.mark.parametrize("width", [15, 16, 17])
def test_wide_windows_that_divide_the_orders_bits(kernels: Backend, width: int) -> None:
    """255 = 15 17, 256 = 16 16: two passes of the sort, and scalars that are all r - 1."""
    curve = named("secp256k1" if width == 16 else "bls12_381")
    known = Multiples(curve, "g1", "wide", 5)
    scalars = [curve.order - 1] * 5
    made = row(width, log_segment=9)
    assert made.low_bits > 0
    assert Multiplication(curve, "g1", scalars, known.points).answer(kernels, always(made)) == [known.total(scalars)]


@EVERY_GROUP
@pytest.mark.parametrize("log", [12, 16])
def test_rows_of_a_gpu(kernels: Backend, curve: Curve, name: GroupName, log: int) -> None:
    """As they are for 2^log points, with few points."""
    known = Multiples(curve, name, f"a GPU's rows {curve.name} {name}", 150)
    rng = random.Random(log)
    scalars = [rng.choice((0, 1, 7, curve.order - 1, rng.randrange(2**256))) for _ in range(150)]
    made = msm_row("cuda", "sm_90", curve, name, 1 << log)
    assert Multiplication(curve, name, scalars, known.points).answer(kernels, always(made)) == [known.total(scalars)]


@pytest.mark.parametrize("log", [12, 16])
def test_chunks_by_rows_of_a_gpu(kernels: Backend, log: int) -> None:
    known = Multiples(BN254, "g1", "chunks by a GPU's rows", 150)
    rng = random.Random(log)
    scalars = [rng.choice((0, 1, 1, BN254.order - 1, rng.randrange(2**256))) for _ in range(150)]
    made = replace(msm_row("cuda", "sm_90", BN254, "g1", 1 << log), chunk=MAX_CHUNK)
    assert Multiplication(BN254, "g1", scalars, known.points).answer(kernels, always(made)) == [known.total(scalars)]


@pytest.mark.parametrize("width", [16, 17])
@BOTH_MODES
def test_many_points_in_wide_windows(kernels: Backend, many: Multiples, width: int, constant: bool) -> None:
    """Digits of 16 and of 32 bits, over several tiles of both passes; windows of few partitions among the others."""
    rng = random.Random(width)
    few = [rng.randrange(1 << width) for _ in range(3)]
    digits = -(-254 // width)
    scalars = [
        sum(rng.choice((0, rng.choice(few), rng.randrange(1 << width))) << width * w for w in range(digits))
        for _ in range(MANY)
    ]
    made = row(width, 64, 16, log_segment=8)
    assert made.low_bits > 0
    asked = Multiplication(BN254, "g1", [scalar % 2**256 for scalar in scalars], many.points, constant_work=constant)
    assert asked.answer(kernels, always(made)) == [many.total([scalar % 2**256 for scalar in scalars])]


def test_a_bit_at_every_position(kernels: Backend) -> None:
    known = Multiples(BN254, "g1", "bits", 1)
    vectors = 256
    scalars = [1 << bit for bit in range(vectors)]
    got = Multiplication(BN254, "g1", scalars, known.points, vectors=vectors).answer(kernels, always(row(7)))
    assert got == [known.point(known.logarithms[0] * scalar) for scalar in scalars]


# --- skew -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("low_bits", [0, 2])
@pytest.mark.parametrize("scalar", [0, 1, 2, BN254.order - 1, 2**256 - 1, 0xF0F0F0F1 << 99])
def test_equal_scalars(kernels: Backend, many: Multiples, scalar: int, low_bits: int) -> None:
    """One bucket a window: many tiles of one key, and runs over thousands of slices."""
    scalars = [scalar] * MANY
    asked = Multiplication(BN254, "g1", scalars, many.points)
    assert asked.answer(kernels, always(row(8, 4, 4, 3, low_bits))) == [many.total(scalars)]


@BOTH_MODES
@pytest.mark.parametrize("low_bits", [0, 3])
def test_mixed_scalars(kernels: Backend, many: Multiples, low_bits: int, constant: bool) -> None:
    """40 % zero, 20 % one, 20 % one repeated value, 20 % uniform."""
    rng = random.Random("mixed")
    repeated = rng.randrange(BN254.order)
    scalars = [rng.choice((0, 0, 1, repeated, rng.randrange(BN254.order))) for _ in range(MANY)]
    asked = Multiplication(BN254, "g1", scalars, many.points, constant_work=constant)
    assert asked.answer(kernels, always(row(9, 16, 5, 3, low_bits))) == [many.total(scalars)]


@BOTH_MODES
@pytest.mark.parametrize("n", [3, 8192])
def test_one_base_over_and_over(kernels: Backend, n: int, constant: bool) -> None:
    known = Multiples(BN254, "g1", "one base", 1)
    asked = Multiplication(BN254, "g1", [5] * n, known.points * n, constant_work=constant)
    assert asked.answer(kernels) == [known.point(5 * n * known.logarithms[0])]


@BOTH_MODES
def test_opposite_points_in_one_bucket(kernels: Backend, constant: bool) -> None:
    known = Multiples(BN254, "g1", "opposite", 20)
    points: list[Point] = [*known.points, *(negate(point, BN254.base.modulus) for point in known.points)]
    scalars = [77] * 40
    asked = Multiplication(BN254, "g1", scalars, points, constant_work=constant)
    assert asked.answer(kernels, always(row(8, 40))) == [None]
    # P, -P, P again: what is left after the special case counts.
    asked = replace(asked, points=[*points, known.points[0]], scalars=[77] * 41)
    assert asked.answer(kernels, always(row(8, 64))) == [known.point(77 * known.logarithms[0])]


@BOTH_MODES
def test_infinity_does_not_spoil_a_sum(kernels: Backend, constant: bool) -> None:
    known = Multiples(BN254, "g1", "infinity", 5)
    for places in ([0], [4], [1, 2], [0, 1, 2, 3, 4]):
        points: list[Point] = [None if i in places else point for i, point in enumerate(known.points)]
        scalars = [0 if i in places else 3 * i + 1 for i in range(5)]
        asked = Multiplication(BN254, "g1", [9 * i + 1 for i in range(5)], points, constant_work=constant)
        weights = [0 if i in places else 9 * i + 1 for i in range(5)]
        assert asked.answer(kernels) == [known.total(weights)], (places, scalars)


@BOTH_MODES
@pytest.mark.parametrize("name", ["g1", "g2"])
def test_lanes_that_go_different_ways(kernels: Backend, name: GroupName, constant: bool) -> None:
    """Whole warps of the reduction in which some lanes double, some meet infinity, and some just add
    (kernels/base/own_memory.cuh)."""
    known = Multiples(TOY, name, "different ways", 12)
    rng = random.Random("different ways")
    vectors = 24
    scalars = [rng.choice((0, rng.randrange(13))) for _ in range(12 * vectors)]
    expected = [known.total(scalars[12 * v : 12 * v + 12]) for v in range(vectors)]
    asked = Multiplication(TOY, name, scalars, known.points, vectors, constant_work=constant)
    for width, log_segment in ((5, 3), (4, 1), (3, 2)):
        assert asked.answer(kernels, always(row(width, 32, 8, log_segment))) == expected


def test_dependent_bases(kernels: Backend) -> None:
    """A chain of k G, where bucket sums meet each other."""
    g = BN254.g1.generator
    chain: list[Point] = [g]
    for _ in range(63):
        chain.append(plus(chain[-1], g, BN254.base.modulus))
    known = Multiples(BN254, "g1", "chain", 1)
    for width, length, chunks in product((2, 4, 7), (1, 3, 64), (False, True)):
        scalars = [(1 << width) * i + 1 for i in range(64)]
        expected = known.point(sum(s * (i + 1) for i, s in enumerate(scalars)))
        made = row(width, length, chunks=chunks)
        assert Multiplication(BN254, "g1", scalars, chain).answer(kernels, always(made)) == [expected], made


# --- cuts -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["slices", "chunks", "pairs", "constant"])
@pytest.mark.parametrize("length", [1, 2, 7, 500])
@pytest.mark.parametrize("merge", [2, 8])
@pytest.mark.parametrize("log_segment", [1, 4])
def test_any_cut_gives_the_same_sum(kernels: Backend, length: int, merge: int, log_segment: int, mode: str) -> None:
    known = Multiples(TOY, "g2", "cuts", 70)
    rng = random.Random("cuts")
    scalars = [rng.choice((0, 1, rng.randrange(13))) for _ in range(70)]
    asked = Multiplication(TOY, "g2", scalars, known.points, constant_work=mode == "constant")
    made = replace(row(3, length, merge, log_segment, chunks=mode != "slices"), pairs=mode == "pairs")
    assert asked.answer(kernels, always(made)) == [known.total(scalars)]


@pytest.mark.parametrize("chunks", [False, True], ids=["slices", "chunks"])
@pytest.mark.parametrize("length", [1, 3, 8, MAX_CHUNK])
def test_chunks_of_buckets_of_every_size(kernels: Backend, length: int, chunks: bool) -> None:
    """Buckets of 0, 1, .. entries, and one with a thousand: each size falls into another class, next to whole chunks."""
    sizes = [0, 1, length - 1, length, length + 1, 2 * length, 3 * length + 2, 40, 1000]
    # A scalar below 16 is the lowest digit of a window of 5 bits, whose bucket is the scalar's less 1.
    scalars = [digit for digit, size in enumerate(sizes, 1) for _ in range(size)]
    many = Multiples(BN254, "g1", "sizes", len(scalars))
    random.Random(length).shuffle(scalars)
    asked = Multiplication(BN254, "g1", scalars, many.points)
    assert asked.answer(kernels, always(row(5, length, chunks=chunks))) == [many.total(scalars)]


def test_more_buckets_of_many_chunks_than_a_block_writes_together(kernels: Backend) -> None:
    """HUGE and MANY of kernels/algo/bucket_chunks.cuh: the rest of them is a warp's each."""
    scalars = [digit for digit in range(1, 36) for _ in range(520)]
    few = Multiples(BN254, "g1", "huge", 50)
    random.Random("huge").shuffle(scalars)
    points = [few.points[i % 50] for i in range(len(scalars))]
    logarithm = sum(s * few.logarithms[i % 50] for i, s in enumerate(scalars))
    asked = Multiplication(BN254, "g1", scalars, points)
    assert asked.answer(kernels, always(row(8, 1))) == [few.point(logarithm)]


@pytest.mark.parametrize(
    ("curve", "name"), [group for group in GROUPS if group[1] == "g2"], ids=lambda p: getattr(p, "name", p)
)
def test_pairs_of_lanes(kernels: Backend, curve: Curve, name: GroupName) -> None:
    """Chunks of every length in one warp, and among them sums that are infinity, doubled points, and buckets that go on."""
    known = Multiples(curve, name, f"pairs {curve.name}", 300)
    rng = random.Random("pairs")
    p = known.points
    points = [*p, *(negate(point, curve.base.modulus) for point in p[:100]), *p[:50], *p[:50]]
    scalars = [
        rng.choice((0, 1, 2, 3, 7, curve.order - 1, rng.randrange(16), rng.randrange(curve.order))) for _ in points
    ]
    made = replace(row(5, 9), pairs=True)
    asked = Multiplication(curve, name, scalars, points)
    expected = [sum_of([s % curve.order for s in scalars], points, curve)]
    assert asked.answer(kernels, always(made)) == expected
    # In pieces: every bucket goes on.
    memory = asked.plan(asked.request(), kernels.traits(), always(made)).device_bytes() // 3
    traits = replace(kernels.traits(), memory=memory)
    plan = asked.plan(asked.request(), traits, always(made))
    assert len(plan.pieces) >= 3
    result = bytearray(asked.op.result_bytes(asked.call()))
    kernels.run(asked.request(), plan, memoryview(result))
    assert bytes(result) == encode_points(expected, curve, group_of(curve, name))


@pytest.mark.parametrize("fill", [3, 40, 5000, 1 << 17])
@pytest.mark.parametrize("length", [2, 8, MAX_CHUNK])
def test_chunks_are_shorter_where_there_are_fewer_entries(kernels: Backend, length: int, fill: int) -> None:
    """A sort of two passes knows how many there are: zeros and ones alone, which leave 200 entries of thousands."""
    many = Multiples(BN254, "g1", "fewer", 300)
    scalars = [int(i % 3 > 0) for i in range(300)]
    made = replace(row(5, length, low_bits=2), fill=fill)
    shape = Shape(BN254, "g1", 300, 1, made, False)
    assert shape.chunk_fill == fill
    assert Multiplication(BN254, "g1", scalars, many.points).answer(kernels, always(made)) == [many.total(scalars)]


@pytest.mark.parametrize("log", [0, 4, 10, 12, 16, 18, 20, 22, 24])
def test_chunks_fit_their_places(log: int) -> None:
    """A place for each spill, and one for every chunk however entries are spread."""
    made = replace(msm_row("cuda", "sm_90", BN254, "g1", 1 << log), chunk=MAX_CHUNK)
    shape = Shape(BN254, "g1", 1 << log, 1, made, False)
    assert SHORTEST_CHUNK <= shape.chunk_length <= MAX_CHUNK
    assert shape.spills > (shape.entries - 1) // shape.chunk_length
    full, rest = divmod(shape.entries, shape.rows * shape.row_buckets)
    for total in (1, *(shape.entries >> i for i in range(shape.entries.bit_length()))):
        length = shape.chunk_length
        if shape.chunk_fill:  # bucket_chunks::length_of
            share = total // shape.chunk_fill
            usual = min(share + share // 4 + 1, 2 * (total // (shape.rows * shape.row_buckets)) + 1)
            length = min(length, max(SHORTEST_CHUNK, share // 2 + 1, usual))
        assert (total - 1) // length < shape.spills
    even = shape.rows * shape.row_buckets * -(-full // shape.chunk_length) + rest
    assert shape.chunks >= max(even, min(shape.entries, shape.rows * shape.row_buckets))


@BOTH_MODES
def test_vectors_and_pieces(kernels: Backend, constant: bool) -> None:
    """What does not fit the device's memory is cut by vectors, then by points."""
    known = Multiples(TOY, "g1", "pieces", 50)
    rng = random.Random("pieces")
    scalars = [rng.randrange(13) for _ in range(7 * 50)]
    expected = [known.total(scalars[v * 50 : (v + 1) * 50]) for v in range(7)]
    asked = Multiplication(TOY, "g1", scalars, known.points, vectors=7, constant_work=constant)
    request = asked.request()
    pieces = set()
    for memory in (1 << 30, 60_000, 30_000, 14_000):
        traits = replace(kernels.traits(), memory=memory)
        plan = asked.plan(request, traits, always(row(3)))
        assert plan.device_bytes() <= memory
        pieces.add(len(plan.pieces))
        result = bytearray(asked.op.result_bytes(asked.call()))
        kernels.run(request, plan, memoryview(result))
        reference = bytearray(len(result))
        asked.op.reference(request, memoryview(reference))
        assert result == reference
        assert asked.answer(kernels) == expected
    assert len(pieces) >= 3


@pytest.mark.parametrize("log", [0, 4, 10, 12, 16, 18, 20, 22, 24])
def test_slices_fill_a_gpu(log: int) -> None:
    """Threads of additions come in whole turns of the device, within 4 %, where a slice is not the shortest already."""
    made = msm_row("cuda", "sm_90", BN254, "g1", 1 << log)
    shape = Shape(BN254, "g1", 1 << log, 1, made, False)
    length, turns = -(-shape.entries // shape.slices), shape.slices / made.fill
    assert min(SHORTEST_SLICE, shape.entries) <= length <= made.slice
    assert length == SHORTEST_SLICE or math.ceil(turns) - turns < 0.04 * turns


# --- bad points -----------------------------------------------------------------------------------------------------


def bad_points(curve: Curve, name: GroupName) -> list[tuple[Point, str]]:
    """A point for each reason that there can be, and what is said of it."""
    group, p = group_of(curve, name), curve.base.modulus
    x, y = group.generator
    rest = (0,) * (group.degree - 1)
    found: list[tuple[Point, str]] = [(((x[0] + p, *x[1:]), y), "below"), ((x, (*y[:-1], y[-1] + p)), "below")]
    found += [((x, ((y[0] + 1) % p, *y[1:])), "curve"), (((p, *rest), (p, *rest)), "below")]
    # x + p is above what the wire carries where p has 256 bits.
    top = 1 << 8 * curve.base.element_bytes
    return [(point, why) for point, why in found if point and all(part < top for c in point for part in c)]


@EVERY_GROUP
def test_bad_points_are_found(backend: Backend, curve: Curve, name: GroupName) -> None:
    known = Multiples(curve, name, "bad", 6)
    for bad, reason in bad_points(curve, name):
        points = [*known.points[:4], bad, known.points[5], bad]
        with pytest.raises(RequestError, match=reason) as caught:
            Multiplication(curve, name, [0] * 7, points).answer(backend)
        assert (caught.value.status, caught.value.index) == (Status.BAD_ELEMENT, 4)


OUTSIDE: list[tuple[str, GroupName, Point]] = [
    ("bls12_381", "g1", ((0,), (2,))),
    ("toy_7_13", "g2", ((5, 0), (2, 2))),
]


@pytest.mark.parametrize(("curve_name", "name", "point"), OUTSIDE, ids=["order 3", "toy"])
def test_the_subgroup_is_checked_on_request(backend: Backend, curve_name: str, name: GroupName, point: Point) -> None:
    curve = named(curve_name)
    known = Multiples(curve, name, "outside", 3)
    asked = Multiplication(curve, name, [1, 2, 3, 4], [*known.points, point], check_subgroup=True)
    with pytest.raises(RequestError, match="subgroup") as caught:
        asked.answer(backend)
    assert caught.value.index == 3
    # Without the check it is the sum in the curve's whole group.
    expected = plus(known.total([1, 2, 3]), sum_of([4], [point], curve), curve.base.modulus)
    assert replace(asked, check_subgroup=False).answer(backend) == [expected]


def test_the_first_check_that_fails_gives_the_reason(backend: Backend) -> None:
    """A lower index wins over an earlier check."""
    curve = named("bls12_381")
    known = Multiples(curve, "g1", "order of checks", 2)
    off: Point = (known.points[0][0], (3,)) if known.points[0] else None
    for points, reason in (
        ([((0,), (2,)), off], "subgroup"),
        ([off, ((0,), (2,))], "not on the curve"),
        ([((curve.base.modulus,), (2,)), off], "below"),
    ):
        with pytest.raises(RequestError, match=reason) as caught:
            Multiplication(curve, "g1", [1, 1], points, check_subgroup=True).answer(backend)
        assert caught.value.index == 0
