"""ntt's plans with an element a thread: where they are taken, launches, blocks, tables, and the self-test."""

from __future__ import annotations

import dataclasses
from itertools import pairwise

import numpy as np
import pytest

from limbd.kernels.source import Sources
from limbd.ops.base import Launch, LaunchPlan, Part, Request, Traits
from limbd.ops.lane_transform import CONSTANT_BYTES, Flag, levels, row_of, serves
from limbd.ops.ntt import NTT, param_of
from limbd.ops.params.base import Field
from limbd.ops.params.fields import FIELDS
from limbd.ops.transform_op import LOG_N, OWN_DOMAIN
from limbd.ops.transform_shape import Order
from limbd.ops.tuning import CLUSTER_BLOCKS, LANE_CLUSTERS, LANE_PASSES, LANE_TOTAL, PAIRS_FROM, lane_row

H200 = Traits("cuda", "sm_90", 132, 139 << 30)
TURING = dataclasses.replace(H200, arch="sm_75")
CPU = Traits("cpu", "x86_64", 2, 1 << 34)
NAMED = {field.name: field for field in FIELDS}
BN254, BLS, GOLDILOCKS, TOY = (NAMED[name] for name in ("bn254_fr", "bls12_381_fr", "goldilocks", "toy_97"))

# Without opting in to more; and the largest cluster that every device with clusters takes.
SHARED_LIMIT = 48 << 10
PORTABLE_CLUSTER = 8


def plan_of(field: Field, param: int, count: int = 1, traits: Traits = H200) -> LaunchPlan:
    """A request whose elements take no memory."""
    k = param & LOG_N
    zeros = np.broadcast_to(np.zeros(1, np.uint32), (count << k, 8))
    constants = {"omega": field.omega(k), "shift": field.generator or 1}
    return NTT.plan(Request(NTT, count << k, param, field.modulus, 32, {"x": zeros}, field, constants), traits)


def launches(plan: LaunchPlan) -> tuple[Launch, ...]:
    (piece,) = plan.pieces
    return piece.launches


def names(plan: LaunchPlan) -> list[str]:
    return [launch.kernel.name for launch in launches(plan)]


@pytest.mark.parametrize("field", [BN254, BLS], ids=lambda field: field.name)
def test_one_launch_up_to_2_10_and_two_up_to_2_16(field: Field) -> None:
    for k in range(1, LANE_TOTAL + 1):
        for order in Order:
            for inverse, coset in ((False, False), (True, False), (False, True), (True, True)):
                found = names(plan_of(field, param_of(k, order=order, inverse=inverse, coset=coset)))
                if k in (9, 10):
                    assert found == ["ntt_lanes_cluster"]
                else:
                    pairs = k >= PAIRS_FROM and not inverse
                    name = "ntt_lane_pairs_pass" if pairs else "ntt_lanes_pass"
                    assert found == [name] * (1 if k < 9 else 2)


def test_where_threads_hold_several_elements() -> None:
    """Many elements, a field of other limbs, a device without clusters, the host, and a transform that does nothing."""
    assert serves(BN254) and serves(BLS) and not serves(GOLDILOCKS) and not serves(TOY)
    assert not serves(Field(0x7F54, "full", 2**256 - 43 * 2**32 + 1, "a test", generator=7))
    for plan in (
        plan_of(BN254, LANE_TOTAL + 1),
        plan_of(BN254, 4, (1 << 12) + 1),
        plan_of(GOLDILOCKS, 8),
        plan_of(BN254, 9, traits=TURING),
        plan_of(BN254, 10, traits=TURING),
        plan_of(BN254, 8, traits=CPU),
        plan_of(BN254, 0),
    ):
        assert set(names(plan)) == {"ntt_pass"} and len(launches(plan)) <= 2 and row_of(plan) is None
    assert names(plan_of(BN254, 4, 1 << 12)) == ["ntt_lanes_pass"]
    assert names(plan_of(BN254, 8, traits=TURING)) == ["ntt_lanes_pass"]
    assert len(launches(plan_of(BN254, 10, traits=TURING))) == 1


def test_blocks() -> None:
    """Whole columns a block and whole warps; a thread an element, and no more blocks than that takes."""
    for k in range(1, LANE_TOTAL + 1):
        for count in (1, 3):
            if (count << k) >> LANE_TOTAL:
                continue
            for launch in launches(plan_of(BLS, k, count)):
                constants = dict(launch.kernel.unit.constants)
                assert launch.block == launch.kernel.max_block == constants["THREADS"] and launch.block % 32 == 0
                assert launch.shared <= SHARED_LIMIT and launch.grid % launch.kernel.cluster == 0
                each = 2 if launch.kernel.name == "ntt_lane_pairs_pass" else 1
                assert (launch.grid - 1) * each * launch.block < count << k <= launch.grid * each * launch.block
                largest = constants.get("BITS", constants.get("FIRST"))
                assert largest is not None and 1 << largest <= each * launch.block
                assert launch.shared // 32 // launch.block == max(0, largest - 6) + (launch.kernel.cluster > 1)
    assert CLUSTER_BLOCKS <= PORTABLE_CLUSTER
    for digits, block in LANE_CLUSTERS.items():
        assert 1 << sum(digits) == CLUSTER_BLOCKS * block.threads and digits[1] <= 5
    assert all(0 <= block.ahead[0] <= (bits + 1) // 2 for bits, block in LANE_PASSES.items())


def test_levels_fill_the_table_in_order() -> None:
    """Every constant is made once, and each pass finds its own where its levels have been made."""
    for k in (1, 3, 6, 9, 10, 13, 16):
        for inverse, coset in ((False, False), (False, True), (True, True)):
            plan = plan_of(BN254, param_of(k, inverse=inverse, coset=coset))
            (table,) = plan.tables
            at = 0
            for build in table.builds[2:]:
                assert build.pointers["out"] == Part("table", at)
                constants = 1 << (build.values["log_entries"] + build.values["log_constants"])
                assert build.grid * build.block >= constants
                at += constants * CONSTANT_BYTES
            assert at == table.nbytes
            row = row_of(plan)
            assert row is not None and sum(row.digits) == k
            assert row.pairs == (k >= PAIRS_FROM and not inverse)
            starts = [each[0].at for each in levels(row.digits, pairs=row.pairs)]
            first = launches(plan)[0]
            end = Part("table", table.nbytes - (CONSTANT_BYTES << k))
            assert first.pointers["before"] == (end if coset and not inverse else None)
            found = [
                launch.pointers[name]
                for launch in launches(plan)
                for name in ("table", "second")
                if name in launch.pointers
            ]
            assert found == [Part("table", start) for start in starts]
            assert [level.done for each in levels(row.digits, pairs=row.pairs) for level in each][-1] < k


def test_first_and_last_passes_know_it() -> None:
    for order in Order:
        first, last = launches(plan_of(BN254, param_of(12, order=order)))
        assert first.values["flags"] == Flag.FIRST | (Flag.REVERSED_IN if order.reversed_in else 0)
        assert last.values["flags"] == Flag.LAST | (Flag.REVERSED_OUT if order.reversed_out else 0)
        assert (first.pointers["bad"], last.pointers["bad"]) == ("bad", None)
        assert [launch.pointers[end] for launch in (first, last) for end in ("in", "out")] == [
            *("in", "between"),
            *("between", "out"),
        ]


def test_the_last_level_is_plain_where_nothing_follows_it() -> None:
    """Not with factors after the transform, not where it is the first level and scaled, not where it has radix 2."""
    for k in range(1, LANE_TOTAL + 1):
        for inverse, coset in ((False, False), (True, False), (False, True), (True, True)):
            passes = launches(plan_of(BLS, param_of(k, inverse=inverse, coset=coset)))
            pairs = k >= PAIRS_FROM and not inverse
            name = "LAST_PASS" if pairs else "PLAIN_END"
            ends = [dict(launch.kernel.unit.constants)[name] for launch in passes]
            plain = k > 1 and not (inverse and (coset or k == 2))
            assert ends == [0] * (len(passes) - 1) + [int(plain)], (k, inverse, coset)


def test_the_second_pass_overlaps_the_first() -> None:
    """It waits by itself, before it loads and stores; the first, which comes after a copy, may not."""
    for k in range(1, LANE_TOTAL + 1):
        passes = launches(plan_of(BN254, k))
        assert [launch.overlaps for launch in passes] == [False, True][: len(passes)]
        for launch in passes[1:]:
            text = Sources().read(f"entry/{launch.kernel.unit.entry}.cu")
            assert text.index("grid_order::wait_for_previous()") < min(
                text.index(f"ends.{use}") for use in ("load", "store")
            )
    (piece,) = plan_of(BN254, 12).pieces
    with pytest.raises(ValueError, match="comes after copies"):
        dataclasses.replace(piece, launches=piece.launches[1:])


def test_levels_of_a_pass() -> None:
    ((one,), (two, three)) = levels((2, 3), pairs=False)
    assert (one.rho, one.digits, one.span, one.done, one.at) == (2, 2, 3, 0, 0)
    assert (two.rho, two.digits, two.span, two.done) == (1, 3, 0, 2)
    assert (three.rho, three.digits, three.span, three.done) == (2, 2, 0, 3)
    assert (one.constants, two.constants, three.constants) == (64, 8, 8)
    for digits in ((1,), (8,), (6, 4), (8, 8)):
        found = [level for each in levels(digits, pairs=False) for level in each]
        assert sum(level.rho for level in found) == sum(digits)
        assert all(b.at - a.at == a.constants * CONSTANT_BYTES for a, b in pairwise(found))


def test_a_cluster_is_launched_whole() -> None:
    (launch,) = launches(plan_of(BN254, 10, 3))
    assert launch.kernel.cluster == CLUSTER_BLOCKS and launch.grid == 3 * CLUSTER_BLOCKS
    with pytest.raises(ValueError, match="whole clusters"):
        dataclasses.replace(launch, grid=3 * CLUSTER_BLOCKS - 1)


def test_the_self_test_runs_the_plan_s_kernels() -> None:
    for k, inverse in ((1, True), (4, True), (8, True), (9, True), (10, True), (13, True), (15, True), (15, False)):
        zeros = np.broadcast_to(np.zeros(1, np.uint32), (1 << k, 8))
        constants = {"omega": BLS.omega(k), "shift": BLS.generator or 1}
        param = param_of(k, inverse=inverse, coset=True, order=Order.NR)
        request = Request(NTT, 1 << k, param, BLS.modulus, 32, {"x": zeros}, BLS, constants)
        plan = NTT.plan(request, H200)
        small = NTT.proof_request(request, plan)
        assert small.n == 1 << k and small.param == param | OWN_DOMAIN
        again = NTT.proof_plan(small, plan, H200)
        assert {launch.kernel for launch in again.launches()} == {launch.kernel for launch in plan.launches()}


def test_every_unit_is_made_ahead() -> None:
    for traits in (H200, TURING):
        units = set(NTT.units(traits))
        for k in range(1, LANE_TOTAL + 1):
            for launch in plan_of(BLS, k, traits=traits).launches():
                assert launch.kernel.unit in units
        assert any(unit.entry == "ntt_lanes_cluster" for unit in units) == (traits is H200)
    assert not any("lanes" in unit.entry for unit in NTT.units(CPU))
    assert lane_row("cuda", "sm_120", 10, 10) and not lane_row("cuda", "sm_89", 10, 10)
