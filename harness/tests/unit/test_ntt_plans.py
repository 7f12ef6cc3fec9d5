"""ntt's plans: launches a transform, blocks and shared memory within a GPU's limits, memory within the budget, tables."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from limbd.ops.base import Launch, LaunchPlan, Request, Traits
from limbd.ops.ntt import NTT, param_of
from limbd.ops.params.base import Field
from limbd.ops.params.fields import FIELDS
from limbd.ops.status import RequestError, Status
from limbd.ops.transform import MAX_LOG_N, Order, near_equal, row_of
from limbd.ops.transform_op import LOG_N, OWN_DOMAIN
from limbd.ops.tuning import transform_rows

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


def launches(plan: LaunchPlan) -> tuple[Launch, ...]:
    (piece,) = plan.pieces
    return piece.launches


@pytest.mark.parametrize("field", [BN254, BLS, GOLDILOCKS], ids=lambda field: field.name)
def test_launches_of_a_transform(field: Field) -> None:
    """One would do up to 2^10. A block that holds all of it is slower than two passes, though, on an H200, where 2^10 took
    0.0136 ms in two and 0.0247 ms in one: so digits of small transforms have up to 8 bits, and two passes are the most
    here. Three reach 2^24, four everything."""
    for k in range(min(field.two_adicity, MAX_LOG_N) + 1):
        for order in Order:
            count = len(launches(plan_of(field, param_of(k, order=order, coset=True), 1 << k, ROOMY)))
            assert count <= (1 if k <= 8 else 2 if k <= 10 else 3 if k <= 24 else 4), (k, order)


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
    traits = dataclasses.replace(H200, arch=arch)
    for field in (BN254, BLS, GOLDILOCKS):
        for k in (0, 1, 5, 8, 9, 10, 13, 17, 22, min(28, field.two_adicity)):
            for launch in launches(plan_of(field, k, 1 << k, traits)):
                assert launch.shared <= SHARED_LIMIT
                assert launch.block <= launch.kernel.max_block
                local, columns = launch.values["local"], launch.values["columns"]
                radix = dict(launch.kernel.unit.constants)["LOG_RADIX"]
                assert launch.block << radix >= 1 << (local + columns), "a thread an element group"
                assert launch.grid << (local + columns) >= 1 << k


def test_digits_and_steps_add_up() -> None:
    assert near_equal(10, 3) == (4, 3, 3) and near_equal(0, 0) == () and near_equal(8, 2) == (4, 4)
    for k in range(29):
        found = launches(plan_of(BN254, k, 1 << k))
        assert sum(launch.values["local"] for launch in found) == k
        assert [launch.values["done"] for launch in found] == [
            sum(launch.values["local"] for launch in found[:i]) for i in range(len(found))
        ]
        for launch in found:
            steps, bits = launch.values["steps"], 0
            while steps:
                bits, steps = bits + (steps & 3), steps >> 2
            assert bits == launch.values["local"]
    fourth = launches(plan_of(BN254, 28, 1 << 28))[3].values
    assert fourth["third_digit"] == launches(plan_of(BN254, 28, 1 << 28))[2].values["local"]


def test_indices_beyond_32_bits_stay_whole() -> None:
    """Batches of more than 2^31 elements: counts and offsets are 64-bit members."""
    plan = plan_of(BN254, 20, 3 << 31, dataclasses.replace(H200, memory=1 << 40))
    members = {member.name: member.kind for member in launches(plan)[0].kernel.struct.members}
    assert members["transforms"] == members["offset"] == "u64"
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
            assert memory < 3 * (32 << k) + (5 * 64 << k)
            continue
        tables = sum(table.nbytes for table in plan.tables)
        assert plan.device_bytes() + tables <= memory + 8
        sizes = [piece.copies_in[0].nbytes for piece in plan.pieces]
        assert sum(sizes) == count * 32 << k and all(size % (32 << k) == 0 for size in sizes)
        assert [piece.copies_in[0].offset for piece in plan.pieces] == [sum(sizes[:i]) for i in range(len(sizes))]


def test_tables_depend_on_the_domain_and_the_direction_does_not_matter() -> None:
    def keys(param: int, omega: int | None = None) -> set[str]:
        return {table.key for table in NTT.plan(blank(BN254, param, 1 << 12, omega), H200).tables}

    other = pow(BN254.omega(12), 3, BN254.modulus)
    assert keys(12) == keys(param_of(12, order=Order.RR))
    assert keys(12) < keys(param_of(12, inverse=True))  # the inverse walks the same twiddles backwards, and has a scale
    assert not keys(12) & keys(12, other)
    assert keys(12) < keys(param_of(12, coset=True))
    for table in NTT.plan(blank(BN254, param_of(12, coset=True), 1 << 12), H200).tables:
        assert table.build.values["n"] * 64 == table.nbytes


def test_the_self_test_runs_the_plan_s_kernels() -> None:
    for k in (0, 3, 9, 20):
        request = blank(BLS, param_of(k, inverse=True, coset=True, order=Order.NR), 1 << k)
        plan = NTT.plan(request, H200)
        small = NTT.proof_request(request, plan)
        again = NTT.proof_plan(small, plan, H200)
        assert {launch.kernel for launch in again.launches()} >= {launch.kernel for launch in plan.launches()}
        assert small.param & ~LOG_N == (request.param | OWN_DOMAIN) & ~LOG_N and small.n < 1000
        assert row_of(plan).log_radix in {row.log_radix for row in transform_rows("cuda", "sm_90")}
        if k >= 9:
            assert len(again.pieces[0].launches) > 1
