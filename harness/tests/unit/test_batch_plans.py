"""Which kernel mod-inv-batch gets for a batch, in which grid, and that a self-test runs the same."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from limbd.ops import by_name, tuning
from limbd.ops.base import Call, Launch, LaunchPlan, Request, Traits
from limbd.ops.mod_inv_batch import MOD_INV_BATCH, Product, launch_with, lookup_steps, product_of, resident, share, unit
from limbd.ops.params.fields import FIELDS
from limbd.ops.params.layout import from_ints
from limbd.ops.reference.mod_inv_batch import batch_inverse
from limbd.ops.reference.warp_inverse import TABLES
from limbd.ops.tuning import BATCH_TABLE, BatchRow, Storage, batch_tuning
from limbd.worker.device.self_test import edge_request

H200 = Traits("cuda", "sm_90", 132, 1 << 34, whole=True)
HOST = Traits("cpu", "x86_64", 2, 1 << 34)
SECP256K1 = 2**256 - 2**32 - 977

# Shared memory of a multiprocessor; a block has 1 KB of it that no kernel sees. An sm_75 has 64 KB: it holds one block of the
# rows with two tables of 32 KB, and the others as they say.
SHARED_OF = {"sm_80": 164 << 10, "sm_86": 100 << 10, "sm_89": 100 << 10, "sm_90": 228 << 10, "sm_100": 228 << 10}
RESERVED = 1 << 10
STATIC = 384  # of a block of 256 threads (batch_inverse::Memory), the largest

EVERY_ROW = pytest.mark.parametrize(
    "row", dict.fromkeys(row for entry in BATCH_TABLE.values() for row in entry.rows), ids=lambda row: row.storage.name
)


def request_of(modulus: int, n: int) -> Request:
    """Of zeros that take no memory."""
    zeros = np.broadcast_to(np.zeros(1, np.uint32), (n, 8))
    return Request(MOD_INV_BATCH, n, 0, modulus, 32, {"x": zeros})


def only_launch(plan: LaunchPlan) -> Launch:
    (piece,) = plan.pieces
    (launch,) = piece.launches
    return launch


@pytest.mark.parametrize("traits", [H200, HOST], ids=["cuda", "cpu"])
def test_small_batches_are_mod_invs(traits: Traits) -> None:
    alone = batch_tuning(traits.kind, traits.arch, 8).alone
    small, large = request_of(SECP256K1, alone), request_of(SECP256K1, alone + 1)
    assert only_launch(MOD_INV_BATCH.plan(small, traits)) == only_launch(by_name("mod-inv").plan(small, traits))
    assert only_launch(MOD_INV_BATCH.plan(large, traits)).kernel.name == "mod_inv_batch"


def test_rows_are_in_order_and_name_their_source() -> None:
    for entry in BATCH_TABLE.values():
        bounds = [row.up_to for row in entry.rows]
        limits = [bound for bound in bounds[:-1] if bound is not None]
        assert bounds == [*limits, None] and limits == sorted(set(limits))
        assert all(limit > entry.alone for limit in limits)
        assert entry.source and all(row.source for row in entry.rows)
        assert all(row.block in (32, 64, 128, 256) and row.steps in (0, *TABLES) for row in entry.rows)
        assert entry.row(entry.alone) is None
        for row in entry.rows:
            assert entry.row(row.up_to or 10**9) is row


@EVERY_ROW
@pytest.mark.parametrize("modulus", [1, 2, 15, SECP256K1, 2**255 - 19, 2**256 - 2, 2**256 - 1])
def test_the_blocks_cover_the_batch_and_none_is_empty(row: BatchRow, modulus: int) -> None:
    for n in (1, 31, 32, 33, 255, 256, 257, 10_000, 100_000, 1_000_000, 10_000_000):
        launch = launch_with(row, request_of(modulus, n), n, H200)
        of_block = launch.block * launch.values["elements"]
        assert (launch.grid - 1) * of_block < n <= launch.grid * of_block
        assert 1 <= launch.values["elements"] <= row.elements
        assert launch.kernel.synchronises and launch.kernel.max_block == launch.block
        # Every product of every thread has its place.
        rows = of_block * 32 if row.storage == Storage.SHARED else 0
        steps = lookup_steps(product_of(modulus), 8, row)
        assert launch.shared == rows + ((8 << steps) + 32 if steps else 0)


@pytest.mark.parametrize("arch", [*SHARED_OF, "sm_120"])
def test_a_multiprocessor_has_room_for_the_tables_of_its_blocks(arch: str) -> None:
    room = SHARED_OF.get(arch, 100 << 10)
    for row in batch_tuning("cuda", arch, 8).rows:
        for modulus in (SECP256K1, 2**255 - 19, 2**256 - 189):
            launch = launch_with(row, request_of(modulus, 10**7), 10**7, H200)
            held = dict(launch.kernel.unit.constants)["RESIDENT"]
            assert held == row.resident and held * (launch.shared + STATIC + RESERVED) <= room


def test_a_share_grows_only_when_every_multiprocessor_has_its_blocks() -> None:
    row = BatchRow(None, 128, 5, 32, Storage.OUTPUT, 0, "a test")
    assert [share(row, n, 132 * 5) for n in (1, 84_480, 84_481, 10**6, 10**7)] == [1, 1, 2, 12, 32]


def test_the_product_is_the_cheapest_that_serves_the_modulus() -> None:
    cases = {
        Product.FOLD: (2**256 - 1, 2**256 - 2**32 + 1, 2**256 - 2**33 - 977, 2**256 - 2**64 + 1),
        Product.FOLD_MONIC: (SECP256K1, 2**256 - 2**32 - 1, 2**256 - 3 * 2**31 + 1),
        Product.MONTGOMERY: (1, 3, 2**256 - 2**64 - 1, 2**255 - 19, FIELDS[3].modulus),
        Product.EVEN: (2, 2**255, 2**256 - 2, 2**256 - 2**64),
    }
    for product, moduli in cases.items():
        assert {product_of(modulus) for modulus in moduli} == {product}


@EVERY_ROW
def test_a_warp_inverts_what_it_can(row: BatchRow) -> None:
    by_warp = replace(row, steps=12)
    for product in (Product.FOLD, Product.FOLD_MONIC, Product.MONTGOMERY):
        assert lookup_steps(product, 8, by_warp) == 12
    assert lookup_steps(Product.EVEN, 8, by_warp) == lookup_steps(Product.MONTGOMERY, 12, by_warp) == 0
    assert resident(Product.EVEN, 8, row) <= row.resident and resident(Product.MONTGOMERY, 12, row) >= 1
    assert f"WARP_TABLE[{2 << 12}]" in unit(Product.FOLD, 8, by_warp).params


@pytest.mark.parametrize("traits", [H200, HOST], ids=["cuda", "cpu"])
def test_every_plan_uses_listed_units(traits: Traits) -> None:
    listed = set(MOD_INV_BATCH.units(traits))
    rng = random.Random("plans")
    for n in (1, 300, 10_000, 100_000, 300_000, 3_000_000):
        for modulus in (1, 2, 15, SECP256K1, 2**256 - 1, rng.getrandbits(256) | 1, rng.getrandbits(200) & ~1):
            for tight in (traits, replace(traits, whole=False, memory=1 << 20)):
                plan = MOD_INV_BATCH.plan(request_of(modulus, n), tight)
                assert {launch.kernel.unit for piece in plan.pieces for launch in piece.launches} <= listed


@pytest.mark.parametrize("traits", [H200, HOST], ids=["cuda", "cpu"])
@pytest.mark.parametrize("n", [10, 10_000, 1_000_000])
def test_a_self_test_runs_the_plans_kernel(traits: Traits, n: int) -> None:
    request = request_of(SECP256K1, n)
    plan = MOD_INV_BATCH.plan(request, traits)
    small = edge_request(request, MOD_INV_BATCH.proof_elements(plan))
    proof = MOD_INV_BATCH.proof_plan(small, plan, traits)
    launch = only_launch(proof)
    assert launch.kernel == only_launch(plan).kernel
    assert launch.values["n"] == small.n <= 1000
    assert launch.grid * launch.block * launch.values.get("elements", 1) >= small.n
    assert launch.shared <= only_launch(plan).shared or not launch.shared


@pytest.mark.parametrize("m", [1, 2, 15, 36, 2**255 - 19, 2**256 - 2])
def test_the_reference_by_montgomerys_trick(m: int) -> None:
    import gmpy2

    from limbd.ops.reference.mod_inv import inverse

    rng = random.Random(m)
    for n in (0, 1, 2, 50):
        for xs in ([rng.getrandbits(256) for _ in range(n)], [0] * n, [*[1] * n, 3, 5]):
            numbers = [gmpy2.mpz(x) for x in xs]
            assert batch_inverse(numbers, gmpy2.mpz(m)) == [inverse(x, gmpy2.mpz(m)) for x in numbers]


@pytest.mark.parametrize("n", [10_000, 100_000, 1_000_000])
def test_rows_may_differ_by_limbs(n: int) -> None:
    field = next(field for field in FIELDS if field.name == "bls12_381_fp")
    wide = Request(
        MOD_INV_BATCH, n, 0, field.modulus, 48, {"x": np.broadcast_to(np.zeros(1, np.uint32), (n, 12))}, field
    )
    for request, limbs in ((request_of(2**255 - 19, n), 8), (wide, 12)):
        launch = only_launch(MOD_INV_BATCH.plan(request, H200))
        row = batch_tuning("cuda", "sm_90", limbs).row(n)
        assert row is not None
        assert launch == launch_with(row, request, n, H200) and dict(launch.kernel.unit.constants)["LIMBS"] == limbs
    assert batch_tuning("cuda", "sm_90", 8).row(100_000) != batch_tuning("cuda", "sm_90", 12).row(100_000)


def test_the_most_exact_entry_serves(monkeypatch: pytest.MonkeyPatch) -> None:
    some = batch_tuning("cuda", "sm_90", 8)
    table = {
        key: replace(some, source=str(key)) for key in ((8, "sm_90"), ("*", "sm_90"), (8, "sm_75"), ("*", "sm_75"))
    }
    monkeypatch.setattr(tuning, "BATCH_TABLE", {**table, ("*", "cpu"): replace(some, source="cpu")})
    asked = (("cuda", "sm_90", 8), ("cuda", "sm_90", 12), ("cuda", "sm_80", 8), ("cuda", "sm_80", 12))
    assert [batch_tuning(*each).source for each in asked] == [str(key) for key in table]
    assert {batch_tuning("cpu", "x86_64", limbs).source for limbs in (8, 12)} == {"cpu"}


def test_a_wide_field_gets_twelve_limbs() -> None:
    field = next(field for field in FIELDS if field.name == "bls12_381_fp")
    n = 20_000
    request = MOD_INV_BATCH.decode(Call(n, field=field), memoryview(from_ints([0] * n, 12).tobytes()))
    constants = dict(only_launch(MOD_INV_BATCH.plan(request, H200)).kernel.unit.constants)
    assert constants["LIMBS"] == 12 and constants["STEPS"] == 0 and constants["PRODUCT"] == Product.MONTGOMERY
