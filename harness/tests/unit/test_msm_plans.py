"""Plans of msm-g1 and msm-g2: launches, memory for each point, pieces, what does not fit."""

from __future__ import annotations

import dataclasses
import re
from dataclasses import replace
from functools import partial
from itertools import pairwise, product

import pytest

from limbd.harness.groups import GROUPS
from limbd.kernels.source import ROOT
from limbd.ops.base import FIRST_BAD, POINTERS, LaunchPlan, Part, Traits
from limbd.ops.msm import MSM_G1, MSM_G2
from limbd.ops.msm_bases import Bases
from limbd.ops.msm_plan import Question, growing, plan_of
from limbd.ops.msm_shape import MAX_COUNT, MAX_ENTRIES, SCALAR_BYTES, SHORTEST_CHUNK, Shape, window_count
from limbd.ops.msm_tuning import FIRST_PIECE, Growth, MsmRow, bases_row, msm_row, with_width
from limbd.ops.msm_units import MAX_CHUNK
from limbd.ops.params import curves
from limbd.ops.params.curves import Curve, GroupName
from limbd.ops.status import ServiceError, Status

H200 = Traits("cuda", "sm_90", 132, 139 << 30)
# That a block of sm_75 may have, which has the least: 64 KB, of which kernels declare a little.
SMALL_SHARED = 63 << 10
SMALL = dataclasses.replace(H200, memory=2 << 30)
HOST = Traits("cpu", "x86_64", 2, 1 << 36)

BOTH = pytest.mark.parametrize("traits", [H200, HOST], ids=["cuda", "cpu"])
EVERY_GROUP = pytest.mark.parametrize(("curve", "name"), GROUPS, ids=[f"{c.name}-{n}" for c, n in GROUPS])


def named(name: str) -> Curve:
    curve = curves.by_name(name)
    assert curve is not None
    return curve


BN254, BLS = named("bn254"), named("bls12_381")


def plan(
    count: int,
    vectors: int = 1,
    *,
    curve: Curve = BN254,
    name: GroupName = "g1",
    traits: Traits = H200,
    constant: bool = False,
    subgroup: bool = False,
    row: MsmRow | None = None,
) -> LaunchPlan:
    asked = Question(curve, name, count, vectors, constant, subgroup)
    return plan_of(asked, traits, lambda n: row or msm_row(traits.kind, traits.arch, curve, name, n))


def names(made: LaunchPlan) -> list[str]:
    (piece,) = made.pieces
    return [launch.kernel.name for launch in piece.launches]


# --- launches -------------------------------------------------------------------------------------------------------


def test_the_launches_of_a_short_one() -> None:
    """Each is said once where it is made; the subgroup is checked on request, where the curve has more than the subgroup."""
    one_pass = ["msm_count", "msm_scan_apply", "msm_scatter"]
    row = with_width(8, 64, 8, 7, 1, "a test's")
    expected = ["msm_points", "msm_digits", *one_pass, "msm_accumulate", "msm_segments", "msm_fold"]
    assert names(plan(1, traits=HOST, row=row)) == expected
    assert names(plan(1, traits=HOST, row=row, subgroup=True)) == expected
    checked = ["msm_points", "msm_subgroup", *expected[1:]]
    assert names(plan(1, traits=HOST, row=row, curve=BLS, subgroup=True)) == checked


@EVERY_GROUP
@BOTH
@pytest.mark.parametrize("constant", [False, True], ids=["variable", "constant"])
def test_launches_fit_their_kernels_and_buffers(curve: Curve, name: GroupName, traits: Traits, constant: bool) -> None:
    """Every pointer is to a buffer of the plan, every number fits its member, and all that is packed has a place."""
    for count, vectors in ((1, 1), (5, 3), (1000, 1), (1 << 14, 2), (1 << 20, 1)):
        made = plan(count, vectors, curve=curve, name=name, traits=traits, constant=constant, subgroup=True)
        addresses = {buffer.name: 256 * (i + 1) for i, buffer in enumerate(made.buffers)}
        for launch in made.launches():
            packed = launch.pack(addresses)
            assert len(packed) == launch.kernel.struct.size
            for member in launch.kernel.struct.members:
                if member.kind in POINTERS:
                    place = launch.pointers.get(member.name, member.name)
                    assert (place.buffer if isinstance(place, Part) else place) in addresses
            assert launch.shared <= SMALL_SHARED


def test_constant_work_has_few_partitions() -> None:
    """Two of a row, and the one of zeros: those of different scalars end in few tiles that are not full."""
    for constant, keys in ((False, 64), (True, 3)):
        made = plan(1 << 16, constant=constant, row=replace(msm_row("cuda", "sm_90", BLS, "g1", 1 << 16), halves=False))
        first = next(launch for launch in made.launches() if launch.kernel.name == "msm_scatter")
        assert first.values["keys"] == keys


@pytest.mark.parametrize("width", [*range(2, 23)])
@pytest.mark.parametrize("kept", [False, True])
def test_windows_of_any_width_fit_small_gpus(width: int, kept: bool) -> None:
    row = msm_row("cuda", "sm_90", BN254, "g1", 1 << 20)
    cut = with_width(width, row.slice, row.merge, row.log_segment, row.resident, row.source, fill=row.fill)
    row = dataclasses.replace(row, width=cut.width, low_bits=cut.low_bits)
    bases = Bases(BN254, "g1", 1 << 20, "any", width, window_count(BN254.order, width)) if kept else None
    asked = Question(BN254, "g1", 1 << 20, 1, False, False, bases)
    for launch in plan_of(asked, H200, lambda n: row).launches():
        assert launch.shared <= SMALL_SHARED


@EVERY_GROUP
@pytest.mark.parametrize("chunk", [0, MAX_CHUNK])
def test_a_launch_that_may_overlap_waits_for_its_turn(curve: Curve, name: GroupName, chunk: int) -> None:
    """All but a piece's first, which follows copies."""
    row = replace(msm_row("cuda", "sm_90", curve, name, 1 << 20), chunk=chunk)
    for constant in (False, True):
        made = plan(1 << 20, traits=H200, row=row, curve=curve, name=name, constant=constant)
        for piece in made.pieces:
            assert [launch.overlaps for launch in piece.launches] == [i > 0 for i in range(len(piece.launches))]
        for kernel in {launch.kernel for launch in made.launches()}:
            text = (ROOT / "entry" / f"{kernel.unit.entry}.cu").read_text()
            assert re.search(rf"\b{kernel.name}\([^)]*\) {{\n    grid_order::take_turn\(\);\n", text), kernel.name


@EVERY_GROUP
def test_the_work_does_not_depend_on_scalars(curve: Curve, name: GroupName) -> None:
    """A plan is made of counts alone; constant work has its own kernels, and a bucket more in each row."""
    for count in (1, 1000, 1 << 16):
        variable, constant = (plan(count, curve=curve, name=name, constant=c, row=None) for c in (False, True))
        units = [{launch.kernel.unit for launch in made.launches()} for made in (variable, constant)]
        shared = {unit.entry for unit in units[0] & units[1]}
        assert shared == {"msm_sort", "msm_points"}
        row = msm_row("cuda", "sm_90", curve, name, count)
        shapes = [Shape(curve, name, count, 1, row, c) for c in (False, True)]
        assert shapes[1].row_buckets == shapes[0].row_buckets + 1 == (1 << row.width - 1) + 1


def test_no_points_are_one_launch() -> None:
    made = plan(0, 5)
    (piece,) = made.pieces
    assert names(made) == ["msm_clear"] and not piece.copies_in
    assert [copy.nbytes for copy in piece.copies_out] == [5 * 64]
    assert made.device_bytes() == 5 * 64


# --- windows --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("curve", [BN254, BLS, named("secp256k1"), named("toy_7_13")], ids=lambda c: c.name)
def test_windows_hold_one_bit_more_than_the_order(curve: Curve) -> None:
    bits = curve.order.bit_length()
    for width in range(2, 23):
        assert bits + 1 <= window_count(curve.order, width) * width < bits + 1 + width


@EVERY_GROUP
@pytest.mark.parametrize(("kind", "arch"), [("cuda", "sm_90"), ("cuda", "sm_75"), ("cpu", "x86_64")])
def test_every_count_has_a_row(curve: Curve, name: GroupName, kind: str, arch: str) -> None:
    """Windows do not get narrower with more points, and no row has more partitions than a block can count."""
    widths = []
    for k in range(27):
        for count in (1 << k, (1 << k) + 1):
            row = msm_row(kind, arch, curve, name, count)
            shape = Shape(curve, name, count, 1, row, True)
            assert 2 <= row.width <= curve.scalar.bits + 1 and shape.keys <= 4096 and shape.stages()[-1][1] == 0
            widths.append(row.width)
    assert all(a <= b for a, b in pairwise(widths))


# --- memory ---------------------------------------------------------------------------------------------------------

# Device memory of a whole plan in one piece, in bytes for each point at 2^16, 2^20 and 2^24: scalar and point as they come,
# the point in Montgomery form, digits, entries and the sort's copies of them, buckets, spills. What README states.
MEMORY = {
    ("bn254", "g1"): (920, 500, 460),
    ("bn254", "g2"): (1260, 750, 690),
    ("bls12_381", "g1"): (1030, 620, 580),
    ("bls12_381", "g2"): (1550, 1000, 910),
}


@pytest.mark.parametrize(("group", "limits"), MEMORY.items(), ids=[f"{c}-{n}" for c, n in MEMORY])
def test_memory_for_each_point(group: tuple[str, GroupName], limits: tuple[int, int, int]) -> None:
    for k, limit in zip((16, 20, 24), limits, strict=True):
        made = plan(1 << k, curve=named(group[0]), name=group[1], traits=replace(H200, whole=True))
        assert len(made.pieces) == 1
        assert made.device_bytes() / (1 << k) <= limit


# --- pieces ---------------------------------------------------------------------------------------------------------


def test_the_kernels_have_the_same_limits_of_chunks() -> None:
    """Room for chunks and spills is counted with them."""
    text = (ROOT / "algo" / "bucket_chunks.cuh").read_text()
    found = {name: int(value) for name, value in re.findall(r"\b(SHORTEST|MAX_LENGTH) = (\d+)", text)}
    assert found == {"SHORTEST": SHORTEST_CHUNK, "MAX_LENGTH": MAX_CHUNK}


def test_a_row_of_points_with_their_multiples_differs_in_its_window_and_segments() -> None:
    own = msm_row("cuda", "sm_90", BN254, "g2", 1000)
    found = bases_row("cuda", "sm_90", Bases(BN254, "g2", 1000, "-", 13, 20), 1000)
    assert (found.width, found.low_bits > 0, found.log_segment) == (13, True, 2)
    assert replace(found, width=own.width, low_bits=own.low_bits, log_segment=own.log_segment) == own


@pytest.mark.parametrize(("firsts", "times"), [(48, 2), (24, 4), (24, 8)])
def test_parts_grow(firsts: int, times: int) -> None:
    for n in (1, 2, FIRST_PIECE, 3 * FIRST_PIECE - 1, 3 * FIRST_PIECE, 1 << 20, (1 << 22) + 1, 1 << 26):
        parts = growing(n, Growth(firsts, times))
        sizes = [count for _, count in parts]
        assert [start for start, _ in parts] == [sum(sizes[:i]) for i in range(len(sizes))] and sum(sizes) == n
        assert len(parts) == 1 or sizes[0] >= min(FIRST_PIECE, n)
        assert all(abs(b - times * a) <= times + 1 for a, b in pairwise(sizes))
        assert sizes[0] <= n // 5 or n < 1 << 20
    assert [len(growing(n, Growth(48, 2))) for n in (1 << 16, 1 << 18, 1 << 20)] == [1, 2, 4]


@EVERY_GROUP
@pytest.mark.parametrize("count", [1, 1000, 1 << 16, 1 << 18, 1 << 20, (1 << 22) + 3])
def test_plans_by_chunks_of_a_gpu(curve: Curve, name: GroupName, count: int) -> None:
    """Long ones are cut into pieces that share the buckets: cleared by the first, reduced by the last. One is one piece where a
    measurement asks for that."""
    row = replace(msm_row("cuda", "sm_90", curve, name, count), chunk=MAX_CHUNK)
    made = plan(count, traits=H200, row=row, curve=curve, name=name)
    whole = plan(count, traits=replace(H200, whole=True), row=row, curve=curve, name=name)
    assert len(whole.pieces) == whole.lanes == 1 and (len(made.pieces) > 1) == (count >= 1 << 18) == (made.lanes == 2)
    covered = spans(made, "scalars")
    assert covered[0][0] == 0 and covered[-1][1] == count * SCALAR_BYTES
    assert all(a[1] == b[0] for a, b in pairwise(covered))
    kernels = [[launch.kernel.name for launch in piece.launches] for piece in made.pieces]
    assert all("msm_add_chunks" in each and "msm_chunks" in each for each in kernels)
    assert [("msm_clear" in each, "msm_fold" in each) for each in kernels] == [
        (len(kernels) > 1 and i == 0, i == len(kernels) - 1) for i in range(len(kernels))
    ]
    addresses = {buffer.name: 256 * (i + 1) for i, buffer in enumerate(made.buffers)}
    assert all(len(launch.pack(addresses)) == launch.kernel.struct.size for launch in made.launches())
    assert len({launch.values["length"] for launch in made.launches() if launch.kernel.name == "msm_chunks"}) == 1
    sizes = {buffer.name: buffer.nbytes for buffer in made.buffers}
    for launch in made.launches():
        if launch.kernel.name == "msm_scatter":
            assert launch.values["slots"] * 4 <= sizes["spill_buckets_0"]
        if launch.kernel.name == "msm_add_chunks":
            lanes = 2 if row.pairs and name == "g2" else 1
            assert launch.grid * launch.block < lanes * (sizes["chunks"] // 16) + launch.block


SLICES = replace(msm_row("cuda", "sm_90", BN254, "g1", 1 << 20), chunk=0)


def test_pairs_of_lanes_are_half_as_many_chunks_and_as_many_slices() -> None:
    """Constant work goes by slices of a thread each, also where chunks are a pair's."""
    row = msm_row("cuda", "sm_90", BLS, "g2", 1 << 20)
    assert row.pairs
    for constant in (False, True):
        by_pairs, by_threads = (
            Shape(BLS, "g2", 1 << 20, 1, replace(row, pairs=pairs), constant) for pairs in (True, False)
        )
        assert by_pairs.chunk_fill == by_threads.chunk_fill // (1 if constant else 2) > 0
        assert by_pairs.slices == by_threads.slices


def spans(made: LaunchPlan, array: str) -> list[tuple[int, int]]:
    """Byte ranges of a host array that pieces copy, in order."""
    return [(c.offset, c.offset + c.nbytes) for piece in made.pieces for c in piece.copies_in if c.array == array]


@pytest.mark.parametrize(
    ("count", "vectors"), [(1 << 22, 1), ((1 << 22) + 1, 1), (1 << 20, 16), (3, 1 << 14), (1 << 26, 1)]
)
@pytest.mark.parametrize("constant", [False, True], ids=["variable", "constant"])
def test_pieces_cover_everything_once(count: int, vectors: int, constant: bool) -> None:
    made = plan(count, vectors, traits=SMALL, constant=constant)
    assert made.device_bytes() <= SMALL.memory and (made.lanes == 1 or not constant)
    covered = sorted(spans(made, "scalars"))
    assert covered[0][0] == 0 and covered[-1][1] == count * vectors * SCALAR_BYTES
    assert all(a[1] == b[0] for a, b in pairwise(covered))
    answers = [(c.offset, c.offset + c.nbytes) for piece in made.pieces for c in piece.copies_out]
    assert answers[0][0] == 0 and answers[-1][1] == vectors * 64
    assert all(a[1] == b[0] for a, b in pairwise(answers))
    sizes = {buffer.name: buffer.nbytes for buffer in made.buffers}
    for piece in made.pieces:
        for copy in (*piece.copies_in, *piece.copies_out):
            assert copy.at + copy.nbytes <= sizes[copy.buffer]


def test_pieces_of_one_sum_by_slices_keep_it_on_the_device() -> None:
    made = plan(1 << 24, traits=SMALL, row=SLICES)
    folds = [piece.launches[-1] for piece in made.pieces]
    assert len(folds) > 2 and {fold.kernel.name for fold in folds} == {folds[0].kernel.name}
    assert [fold.values["is_first"] for fold in folds] == [1, *[0] * (len(folds) - 1)]
    assert [fold.values["is_last"] for fold in folds] == [*[0] * (len(folds) - 1), 1]
    assert [len(piece.copies_out) for piece in made.pieces] == [*[0] * (len(folds) - 1), 1]
    points = [launch for piece in made.pieces for launch in piece.launches if launch.kernel.name == "msm_points"]
    starts = [launch.values["offset"] for launch in points]
    assert starts == sorted(set(starts)) and starts[0] == 0, "a bad point's index is that in the request"


def test_vectors_are_cut_before_points() -> None:
    made = plan(1 << 18, 16, traits=dataclasses.replace(H200, memory=1 << 30), row=SLICES)
    assert len(made.pieces) > 1
    assert {b - a for a, b in spans(made, "points")} == {(1 << 18) * 64}


def test_entries_are_counted_in_32_bits() -> None:
    """Whatever the memory: numbers of entries, buckets and points fit those that the kernels count with."""
    roomy = dataclasses.replace(H200, memory=1 << 50)
    for count, vectors in ((1 << 31, 1), (MAX_COUNT, 1), (1 << 28, 1), (1 << 20, 1 << 12)):
        made = plan(count, vectors, traits=roomy)
        for piece in made.pieces:
            (digits,) = (launch for launch in piece.launches if launch.kernel.name == "msm_digits")
            entries = digits.values["count"] * digits.values["vectors"] * digits.values["windows"]
            assert entries <= MAX_ENTRIES and digits.values["count"] <= MAX_COUNT


@EVERY_GROUP
def test_what_does_not_fit_is_refused(curve: Curve, name: GroupName) -> None:
    with pytest.raises(ServiceError, match="budget") as caught:
        plan(1000, curve=curve, name=name, traits=dataclasses.replace(H200, memory=1000))
    assert caught.value.status is Status.OUT_OF_DEVICE_MEMORY and caught.value.hint


def test_the_least_budget_that_holds_a_point_does() -> None:
    row = with_width(2, 8, 3, 2, 1, "a test's")
    needed = Shape(BN254, "g1", 1, 1, row, False).device_bytes()
    tight = dataclasses.replace(H200, memory=needed)
    assert len(plan(9, 2, traits=tight, row=row).pieces) == 18
    with pytest.raises(ServiceError):
        plan(9, 2, traits=dataclasses.replace(tight, memory=needed - 1), row=row)


# --- buffers and units ----------------------------------------------------------------------------------------------


@EVERY_GROUP
def test_bad_points_have_their_word(curve: Curve, name: GroupName) -> None:
    made = plan(10, curve=curve, name=name)
    assert made.first_bad == "bad" and [b.role for b in made.buffers].count(FIRST_BAD) == 1


@BOTH
def test_the_units_of_an_op_are_those_of_its_plans(traits: Traits) -> None:
    """What is compiled beforehand is all that requests of any length need; toys are compiled where they are asked for."""
    for op, (curve, name) in product((MSM_G1, MSM_G2), GROUPS):
        if op.group != name or curve.toy:
            continue
        units = set(op.units(traits))
        for count, constant in product((1, 1000, 1 << 15, 1 << 22), (False, True)):
            made = plan(count, curve=curve, name=name, traits=traits, constant=constant, subgroup=True)
            assert {launch.kernel.unit for launch in made.launches()} <= units


def test_what_does_not_fit_beside_kept_points_is_told_with_them() -> None:
    """Where the points alone do not fit, nothing is said of buckets."""
    for levels, told in ((1, ""), (20, " with their multiples")):
        bases = Bases(BN254, "g1", 1000, "k", 13 if levels > 1 else 0, levels)
        kept = bases.table().building_bytes()
        question = Question(BN254, "g1", 1000, 1, False, False, bases)
        for memory, what in ((kept, "hold the 1000 points kept on it"), (kept + 1000, "hold the buckets of")):
            traits = dataclasses.replace(H200, memory=memory)
            with pytest.raises(ServiceError, match=what) as caught:
                plan_of(question, traits, partial(bases_row, "cuda", "sm_90", bases))
            assert f"the 1000 points kept on it{told}" in caught.value.message
            assert "--device-memory" in caught.value.hint
            assert ("precompute=False" in caught.value.hint) == (levels > 1)


def test_on_a_host_few_points_have_few_rows() -> None:
    """A row is a block of the sort, which costs the same however few its entries."""
    groups: tuple[tuple[Curve, GroupName], ...] = ((BN254, "g1"), (BLS, "g2"))
    for curve, name in groups:
        for count in (1, 2, 16, 64):
            width = msm_row("cpu", "x86_64", curve, name, count).width
            assert 5 <= width <= 7, (curve.name, name, count)
    assert msm_row("cpu", "x86_64", BN254, "g1", 1 << 20).width >= 15
