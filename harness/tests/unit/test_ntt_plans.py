"""ntt's plans: launches a transform, blocks and shared memory within a GPU's limits, memory within the budget, tables."""

from __future__ import annotations

import dataclasses
import random
from itertools import product

import numpy as np
import pytest

from limbd.ops.base import Launch, LaunchPlan, Part, Request, Traits
from limbd.ops.domain import MAX_LOG_N
from limbd.ops.ntt import NTT, param_of
from limbd.ops.params.base import Field
from limbd.ops.params.fields import FIELDS
from limbd.ops.status import RequestError, Status
from limbd.ops.transform_op import LOG_N, OWN_DOMAIN
from limbd.ops.transform_proof import proof_of
from limbd.ops.transform_shape import Flag, Order, level_bits
from limbd.ops.tuning import LANE_TOTAL, TransformRow, near_equal, transform_rows

H200 = Traits("cuda", "sm_90", 132, 139 << 30)
# Beyond any device: a transform of 2^30 on a coset has tables of 64 GiB.
ROOMY = dataclasses.replace(H200, memory=1 << 40)
NAMED = {field.name: field for field in FIELDS}
BN254, BLS, GOLDILOCKS = NAMED["bn254_fr"], NAMED["bls12_381_fr"], NAMED["goldilocks"]

# Without opting in to more.
SHARED_LIMIT = 48 << 10


def blank(field: Field, param: int, n: int, omega: int | None = None) -> Request:
    """A request whose elements take no memory."""
    zeros = np.broadcast_to(np.zeros(1, np.uint32), (n, 8))
    constants = {"omega": field.omega(param & LOG_N) if omega is None else omega, "shift": field.generator or 1}
    return Request(NTT, n, param, field.modulus, 32, {"x": zeros}, field, constants)


def plan_of(field: Field, param: int, n: int, traits: Traits = H200) -> LaunchPlan:
    return NTT.plan(blank(field, param, n), traits)


def passes_of(field: Field, param: int, n: int, traits: Traits = H200) -> LaunchPlan:
    """By threads that hold several elements, whatever the size."""
    request = blank(field, param, n)
    return NTT.plan_by(request, traits, NTT.pass_row(request, traits))


def launches(plan: LaunchPlan) -> tuple[Launch, ...]:
    (piece,) = plan.pieces
    return piece.launches


@pytest.mark.parametrize("field", [BN254, BLS, GOLDILOCKS], ids=lambda field: field.name)
def test_launches_of_a_transform(field: Field) -> None:
    """One up to 2^10, two up to 2^19, three for everything: what there is of a size is said where it is asked for."""
    for k in range(min(field.two_adicity, MAX_LOG_N) + 1):
        for order in Order:
            count = len(launches(plan_of(field, param_of(k, order=order, coset=True), 1 << k, ROOMY)))
            assert count == (1 if k <= 10 else 2 if k <= 19 else 3), (k, order)


def test_scales_and_orders_cost_no_launch() -> None:
    for k in (6, 9, 14, 20):
        counts = {
            len(launches(plan_of(BN254, param_of(k, inverse=i, coset=c, order=order), 1 << k)))
            for order in Order
            for i in (False, True)
            for c in (False, True)
        }
        assert len(counts) == 1


def test_many_transforms_take_as_many_launches_as_one() -> None:
    assert len(launches(plan_of(BN254, 12, 64 << 12))) == len(launches(plan_of(BN254, 12, 2 << 14))) <= 2
    assert plan_of(BN254, 12, 0).pieces == ()


@pytest.mark.parametrize("arch", ["sm_75", "sm_90", "sm_120"])
def test_blocks_fit_every_gpu(arch: str) -> None:
    """The tile is what threads hold, and what shared memory has room for (kernels/algo/ntt.cuh: pass)."""
    traits = dataclasses.replace(H200, arch=arch)
    for field in (BN254, BLS, GOLDILOCKS):
        for k in (0, 1, 2, 5, 8, 9, 10, 13, 17, 18, 22, min(28, field.two_adicity)):
            for count in (1, 64):
                for launch in launches(passes_of(field, k, count << k, dataclasses.replace(traits, memory=1 << 45))):
                    values, constants = launch.values, dict(launch.kernel.unit.constants)
                    tile = 1 << values["log_tile"]
                    assert values["bits"] <= values["log_tile"] and launch.block << constants.get("LOG_E", 3) == tile
                    assert 32 <= launch.block <= launch.kernel.max_block == constants["THREADS"]
                    last = tile - 1
                    assert launch.shared == (last + last // 8 + last // 64 + last // 512 + 1) * (
                        16 if field is GOLDILOCKS else 32
                    )
                    assert launch.shared <= SHARED_LIMIT
                    assert values["columns"] << values["bits"] == count << k
                    assert (launch.grid - 1) * tile < count << k <= launch.grid * tile


def test_levels_fill_the_table_in_order() -> None:
    """Every constant is made once, by the launch for its level, and each pass begins where the one before has ended."""
    for k, coset, inverse in (
        (5, True, False),
        (10, False, True),
        (13, False, False),
        (20, True, False),
        (22, True, True),
    ):
        plan = passes_of(BN254, param_of(k, coset=coset, inverse=inverse), 1 << k)
        (table,) = plan.tables
        at = 0
        for build in table.builds[2:]:
            place = build.pointers["out"]
            assert isinstance(place, Part) and place.offset == at
            at += build.values["n"] * 64
            assert build.grid * build.block >= build.values["n"]
        assert at == table.nbytes
        offsets = [part.offset for launch in launches(plan) if isinstance(part := launch.pointers["table"], Part)]
        assert offsets[0] == 0 and offsets == sorted(set(offsets)) and offsets[-1] < at
        # n - 1 constants; n / 8 more where the first level's digit 0 has one.
        scaled = coset != inverse
        assert table.nbytes // 64 == (1 << k) - (1 << shape_of(plan)[-1]) + (scaled << (k - shape_of(plan)[0]))


def shape_of(plan: LaunchPlan) -> tuple[int, int]:
    """Bits of the first level and of the last."""
    ends = []
    for launch, place in ((launches(plan)[0], 0), (launches(plan)[-1], -1)):
        ends.append(level_bits(launch.values["bits"], dict(launch.kernel.unit.constants).get("LOG_E", 3))[place])
    return ends[0], ends[1]


def test_levels_of_a_pass() -> None:
    assert level_bits(10, 3) == (3, 3, 2, 2) and level_bits(9, 3) == (3, 3, 3) and level_bits(8, 3) == (3, 3, 2)
    assert level_bits(5, 2) == (2, 2, 1) and level_bits(3, 1) == (1, 1, 1) and level_bits(0, 1) == (0,)
    for log_e in (1, 2, 3):
        for bits in range(log_e - 1, 14):
            assert sum(level_bits(bits, log_e)) == bits
            assert all(log_e - 1 <= rho <= log_e for rho in level_bits(bits, log_e))


def test_digits_add_up() -> None:
    assert near_equal(10, 3) == (4, 3, 3) and near_equal(8, 2) == (4, 4)
    for row in (*transform_rows("cuda", "sm_90"), *transform_rows("cpu", "")):
        for k in range(row.log_e - 1, MAX_LOG_N + 1):
            digits = row.digits(k)
            assert sum(digits) == k and max(digits) <= row.largest
            assert row.threads << row.log_e >= 1 << max(row.log_tile, *digits)
        assert len({sum(split) for split in row.splits}) == len(row.splits)


def test_indices_beyond_32_bits_stay_whole() -> None:
    """Batches of more than 2^31 elements: counts and offsets are 64-bit members."""
    plan = plan_of(BN254, 20, 3 << 31, dataclasses.replace(H200, memory=1 << 40))
    members = {member.name: member.kind for member in launches(plan)[0].kernel.struct.members}
    assert members["columns"] == members["offset"] == "u64"
    assert launches(plan)[0].values["columns"] > 1 << 22
    cut = plan_of(BN254, 20, 3 << 31, dataclasses.replace(H200, memory=100 << 30))
    assert len(cut.pieces) > 1
    assert max(piece.launches[0].values["offset"] for piece in cut.pieces) > 1 << 31
    assert sum(copy.nbytes for piece in cut.pieces for copy in piece.copies_in) == 3 << 36


@pytest.mark.parametrize("k", [4, 9, 12, 20])
def test_memory_is_within_the_budget_or_it_is_too_large(k: int) -> None:
    """Data, scratch and tables together; whole transforms a piece."""
    count = 37
    for memory in (1 << 16, 1 << 20, 1 << 24, 1 << 28, 1 << 32):
        try:
            plan = plan_of(BN254, k, count << k, dataclasses.replace(H200, memory=memory))
        except RequestError as error:
            assert error.status is Status.TOO_LARGE
            assert f"may use {memory}" in error.message
            assert memory < 3 * (32 << k) + (64 << k) + 8 * (32 << (k + 1) // 2)
            continue
        tables = sum(table.building_bytes() for table in plan.tables)
        assert plan.device_bytes() + tables <= memory + 8
        sizes = [piece.copies_in[0].nbytes for piece in plan.pieces]
        assert sum(sizes) == count * 32 << k and all(size % (32 << k) == 0 for size in sizes)
        assert [piece.copies_in[0].offset for piece in plan.pieces] == [sum(sizes[:i]) for i in range(len(sizes))]


@pytest.mark.parametrize("k", [8, 13, 16, 20, 24, 28])
def test_memory_by_the_element(k: int) -> None:
    """As README tells it: data, factors, and little beside them."""
    for order, inverse, coset in ((Order.NR, False, False), (Order.NN, True, False), (Order.RR, False, True)):
        param = param_of(k, order=order, inverse=inverse, coset=coset)
        plan = passes_of(BN254, param, 1 << k, ROOMY)
        moves = order in (Order.NN, Order.RR) and k > 10
        assert plan.device_bytes() - 8 == (96 if moves else 64) << k
        (table,) = plan.tables
        scaled = inverse or order is Order.RR
        assert table.nbytes <= (64 + (scaled and (8 if k > 18 else 32))) << k
        assert table.building_bytes() - table.nbytes == 4 * 32 << (k + 1) // 2
        if k <= LANE_TOTAL:
            plan = plan_of(BN254, param, 1 << k, ROOMY)
            assert plan.device_bytes() - 8 <= 96 << k and plan.tables[0].nbytes <= 240 << k
    if k in (24, 28):
        plan = plan_of(BN254, param_of(k, order=Order.NR), 1 << k)
        assert plan.device_bytes() - 8 == {24: 1, 28: 16}[k] << 30
        assert 0 <= ({24: 1, 28: 16}[k] << 30) - plan.tables[0].nbytes < 1 << 16


def test_the_largest_sizes() -> None:
    """On an H200: every variant of bn254_fr's 2^28 and bls12_381_fr's 2^29; of 2^30 what its memory holds, else the limit is told."""
    for field, k in ((BN254, 28), (BLS, 29)):
        for order in Order:
            for inverse in (False, True):
                param = param_of(k, order=order, inverse=inverse, coset=True)
                assert len(launches(plan_of(field, param, 1 << k))) == 3
    assert len(launches(plan_of(BLS, param_of(30, order=Order.NR), 1 << 30))) == 3
    for param in (param_of(30), param_of(30, coset=True, order=Order.RN)):
        tight = dataclasses.replace(H200, memory=135 << 30)
        with pytest.raises(RequestError, match=f"may use {135 << 30}") as refused:
            plan_of(BLS, param, 1 << 30, tight)
        assert refused.value.status is Status.TOO_LARGE


def test_tables_of_equal_keys_have_equal_contents() -> None:
    """A key has everything that the building kernels are told; two domains never share one, and two batches do."""
    made: dict[str, list[object]] = {}
    rng = random.Random("keys")
    for _ in range(300):
        field, k = rng.choice((BN254, BLS)), rng.choice((2, 9, 11, 12, 18))
        order, inverse, coset = Order(rng.randrange(4)), rng.random() < 0.5, rng.random() < 0.5
        omega = pow(field.omega(k), rng.choice((1, 3)), field.modulus)
        shift = rng.choice((field.generator or 1, field.modulus - 1))
        request = blank(field, param_of(k, inverse=inverse, coset=coset, order=order), rng.choice((1, 3)) << k, omega)
        request = dataclasses.replace(request, constants={"omega": omega, "shift": shift})
        for table in NTT.plan(request, H200).tables:
            lanes = table.key.startswith("ntt lanes")
            depends = (field.name, k, omega, shift if coset else 1, inverse, lanes or order.reversed_in)
            contents = [(build.kernel, build.values) for build in table.builds]
            known = made.setdefault(table.key, [depends, contents])
            assert known[1] == contents
            assert known[0] == depends
    assert len({str(depends) for depends, _ in made.values()}) > 40


def test_tables_are_shared_where_they_can_be() -> None:
    def keys(param: int, omega: int | None = None, count: int = 1) -> set[str]:
        k = param & LOG_N
        return {table.key for table in NTT.plan(blank(BN254, param, count << k, omega), H200).tables}

    for k in (12, 18):
        other = pow(BN254.omega(k), 3, BN254.modulus)
        assert keys(k) == keys(param_of(k, order=Order.NR)) == keys(k, count=3)
        assert keys(param_of(k, order=Order.RN)) == keys(param_of(k, order=Order.RR))
        assert (keys(k) == keys(param_of(k, order=Order.RN))) == (k == 12), "an element a thread"
        variants = [k, param_of(k, inverse=True), param_of(k, coset=True), param_of(k, inverse=True, coset=True)]
        assert len({key for param in variants for key in keys(param) | keys(param, other)}) == 2 * len(variants)


def test_the_self_test_runs_the_plan_s_kernels() -> None:
    for k in (0, 3, 9, 17):
        request = blank(BLS, param_of(k, inverse=True, coset=True, order=Order.NR), 1 << k)
        plan = passes_of(BLS, request.param, request.n)
        small = NTT.proof_request(request, plan)
        again = NTT.proof_plan(small, plan, H200)
        assert {launch.kernel for launch in again.launches()} >= {launch.kernel for launch in plan.launches()}
        assert small.param & ~LOG_N == (request.param | OWN_DOMAIN) & ~LOG_N and small.n < 1000
        row = proof_of(plan).rows[0]
        assert isinstance(row, TransformRow) and row.log_e in {row.log_e for row in transform_rows("cuda", "sm_90")}
        if k >= 9:
            assert len(again.pieces[0].launches) > 1


# --- shapes that are compiled in --------------------------------------------------------------------------------------


def compiled_in(plan: LaunchPlan) -> list[Launch]:
    return [launch for launch in launches(plan) if launch.kernel.unit.entry == "ntt_compiled"]


def test_where_shapes_are_compiled_in() -> None:
    """From 2^18 on, one device's architecture, fields of eight limbs; tiles are full and each unit has its launch's shape."""
    for k in (17, 18, 20, 22, 24, 28):
        for order, inverse, coset in product(Order, (False, True), (False, True)):
            plan = plan_of(BN254, param_of(k, inverse=inverse, coset=coset, order=order), 1 << k, ROOMY)
            assert len(compiled_in(plan)) == (len(launches(plan)) if k > 17 else 0)
            for launch in compiled_in(plan):
                constants, values = dict(launch.kernel.unit.constants), launch.values
                assert (constants["BITS"], constants["FLAGS"]) == (values["bits"], values["flags"])
                assert constants["LOG_TILE"] == values["log_tile"] and launch.block == constants["THREADS"]
                assert values["columns"] << values["bits"] == launch.grid << values["log_tile"] == 1 << k
                members = {member.name for member in launch.kernel.struct.members}
                assert ("factors" in members) == bool(values["flags"] & (Flag.BEFORE | Flag.AFTER))
    assert not compiled_in(plan_of(GOLDILOCKS, 20, 1 << 20))
    assert not compiled_in(plan_of(BN254, 20, 1 << 20, dataclasses.replace(H200, arch="sm_80")))
    assert not compiled_in(plan_of(BN254, 16, 64 << 16))


def test_middle_passes_serve_several_variants() -> None:
    """Factors are in the table: only the first pass of an inverse transform differs, and the last one of a coset's."""
    plain, inverse, coset = (
        compiled_in(plan_of(BN254, param_of(20, inverse=bool(i), coset=bool(c)), 1 << 20))
        for i, c in ((0, 0), (1, 0), (1, 1))
    )
    same = [a.kernel == b.kernel for a, b in zip(plain, inverse, strict=True)]
    assert same == [False, True, True]
    assert [a.kernel == b.kernel for a, b in zip(plain, coset, strict=True)] == [True, True, False]


@pytest.mark.parametrize("order", Order, ids=lambda order: order.name)
def test_the_self_test_runs_compiled_shapes(order: Order) -> None:
    """In transforms that are as short as they can be."""
    for k in range(19, BN254.two_adicity + 1):
        request = blank(BN254, param_of(k, inverse=True, coset=True, order=order), 1 << k)
        plan = NTT.plan(request, ROOMY)
        small = NTT.proof_request(request, plan)
        again = NTT.proof_plan(small, plan, ROOMY)
        assert {launch.kernel for launch in again.launches()} > {launch.kernel for launch in plan.launches()}
        assert small.n <= 3 << 14
        assert (
            len({table.name for table in again.tables}) == len(again.tables) == len(again.pieces) == len(launches(plan))
        )
