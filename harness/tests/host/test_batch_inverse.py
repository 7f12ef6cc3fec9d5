"""mod-inv-batch's kernel by every storage, product and inversion, whatever n: edges of blocks, and what has no inverse."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from pathlib import Path

import gmpy2
import numpy as np
import pytest

from limbd.harness.inputs import SPECIAL_MODULI, hard_integer, modulus_of_bits, ones, operands, powers_of_two
from limbd.ops.base import Call, LaunchPlan, Request
from limbd.ops.mod_inv_batch import MOD_INV_BATCH, Product, launch_with, product_of
from limbd.ops.params.fields import FIELDS
from limbd.ops.params.layout import from_ints, pack, to_ints, unpack
from limbd.ops.reference.mod_inv import inverse
from limbd.ops.split import elementwise_plan
from limbd.ops.tuning import BatchRow, Storage
from limbd.worker.device.base import Backend
from limbd.worker.device.cache import Cache
from limbd.worker.device.cpu import CpuBackend
from limbd.worker.device.host_compiler import Variant

SECP256K1 = 2**256 - 2**32 - 977
P128, Q127 = 2**128 - 159, 2**127 - 1

# Every storage; one to eight warps; the total inverted by a thread and by a warp with each size of table.
ROWS = (
    BatchRow(None, 32, 1, 2, Storage.REGISTERS, 0, "a test"),
    BatchRow(None, 64, 1, 3, Storage.REGISTERS, 8, "a test"),
    BatchRow(None, 128, 1, 4, Storage.SHARED, 12, "a test"),
    BatchRow(None, 32, 1, 9, Storage.SHARED, 0, "a test"),
    BatchRow(None, 256, 1, 2, Storage.OUTPUT, 8, "a test"),
    BatchRow(None, 32, 1, 4, Storage.OUTPUT, 12, "a test"),
)
EVERY_ROW = pytest.mark.parametrize(
    "row", ROWS, ids=lambda row: f"{row.block}x{row.elements}-{row.storage.name}-{row.steps}"
)

BLOCK_EDGES = (1, 2, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257, 511, 512, 513, 1023, 1024, 1025)

# One for each product, with and without non-units but 0.
MODULI = {
    Product.MONTGOMERY: (2**255 - 19, P128 * Q127, 15),
    Product.FOLD: (2**256 - 189, 2**256 - 1),
    Product.FOLD_MONIC: (SECP256K1, 2**256 - 2**32 - 75),
    Product.EVEN: (2**256 - 2, 2**40, 30),
}
ALL_MODULI = tuple(m for moduli in MODULI.values() for m in moduli)


def expected(xs: Iterable[int], m: int) -> list[int]:
    return [int(inverse(gmpy2.mpz(x), gmpy2.mpz(m))) for x in xs]


def request_of(m: int, xs: Sequence[int]) -> Request:
    return MOD_INV_BATCH.decode(Call(len(xs)), memoryview(pack([m]) + pack(xs)))


def plan_of(row: BatchRow, request: Request, backend: Backend, multiprocessors: int = 1) -> LaunchPlan:
    """One launch by this row. More multiprocessors: fewer elements a thread, and more blocks."""
    traits = type(backend.traits())("cuda", "any", multiprocessors, 1 << 40, whole=True)
    return elementwise_plan(request, traits, lambda n: launch_with(row, request, n, traits))


def answers(backend: Backend, row: BatchRow, m: int, xs: Sequence[int], multiprocessors: int = 1) -> list[int]:
    request = request_of(m, xs)
    result = bytearray(32 * len(xs))
    backend.run(request, plan_of(row, request, backend, multiprocessors), memoryview(result))
    return [int(x) for x in unpack(result)]


def units_mod(rng: random.Random, m: int, n: int) -> list[int]:
    found: list[int] = []
    while len(found) < n:
        x = rng.getrandbits(256)
        if gmpy2.gcd(x, m) == 1:
            found.append(x)
    return found


def test_the_moduli_are_of_every_product() -> None:
    assert {product: {product_of(m) for m in moduli} for product, moduli in MODULI.items()} == {
        product: {product} for product in Product
    }


@EVERY_ROW
@pytest.mark.parametrize("m", ALL_MODULI, ids=hex)
def test_block_edges(row: BatchRow, m: int, kernels: Backend) -> None:
    rng = random.Random(f"{row} {m}")
    for n in BLOCK_EDGES:
        xs = operands(rng, m, n) if n % 2 else units_mod(rng, m, n)
        assert answers(kernels, row, m, xs) == expected(xs, m), n


@EVERY_ROW
@pytest.mark.parametrize("m", [2**255 - 19, SECP256K1, 2**256 - 2, 1155], ids=hex)
def test_one_zero_anywhere_costs_no_other_element(row: BatchRow, m: int, kernels: Backend) -> None:
    """As 0, as m and as a multiple of it."""
    n = row.block * row.elements
    rng = random.Random(f"{row} {m}")
    xs = units_mod(rng, m, n)
    right = expected(xs, m)
    for at in (0, 1, row.block - 1, row.block % n, n // 2, n - row.block, n - 1):
        for zero in (0, m, m * (2**256 // m) if m * (2**256 // m) < 2**256 else m):
            changed = [*xs[:at], zero, *xs[at + 1 :]]
            assert answers(kernels, row, m, changed) == [*right[:at], 0, *right[at + 1 :]], at


@EVERY_ROW
def test_nothing_but_zeros(row: BatchRow, kernels: Backend) -> None:
    for m in (SECP256K1, 2**255 - 19, 6):
        for n in (1, row.block + 1, 300):
            assert answers(kernels, row, m, [0, m] * n) == [0] * (2 * n)


@EVERY_ROW
@pytest.mark.parametrize("m", [15, 2**256 - 1, 2**256 - 2**32 - 75, P128 * Q127, 30, 2 * P128], ids=hex)
def test_non_units_whose_product_is_zero(row: BatchRow, m: int, kernels: Backend) -> None:
    """Neither they nor anything else in their block is taken for what it is not; the next block is left alone."""
    rng = random.Random(f"{row} {m}")
    factor = {15: 3, 2**256 - 1: 3, 2**256 - 2**32 - 75: 7, P128 * Q127: P128, 30: 5, 2 * P128: 2}[m]
    n = row.block * row.elements
    xs = units_mod(rng, m, 2 * n)
    for first, second in ((0, 1), (0, row.block % n), (n - 1, 0), (1, n // 2), (n - 1, n)):
        changed = list(xs)
        changed[first], changed[second] = factor, m // factor
        assert answers(kernels, row, m, changed) == expected(changed, m), (first, second)


@EVERY_ROW
def test_a_block_without_a_redo_is_next_to_one_with(row: BatchRow, kernels: Backend) -> None:
    m, n = P128 * Q127, row.block * row.elements
    rng = random.Random(f"{row}")
    xs = units_mod(rng, m, 5 * n)
    for at in (n + 1, 3 * n + n // 2):
        xs[at] = 5 * P128
    assert answers(kernels, row, m, xs) == expected(xs, m)


@EVERY_ROW
def test_small_moduli_exhaustively(row: BatchRow, kernels: Backend) -> None:
    for m in range(1, 36):
        xs = [x + m * k for k in (0, 1, 2**240) for x in range(m)]
        assert answers(kernels, row, m, xs) == expected(xs, m), m


@EVERY_ROW
def test_special_moduli_and_every_length(row: BatchRow, kernels: Backend) -> None:
    rng = random.Random(f"{row}")
    lengths = [modulus_of_bits(rng, bits) for bits in range(2, 257, 7)]
    for m in (*SPECIAL_MODULI, *lengths):
        for xs in (operands(rng, m, 100), [x or 1 for x in units_mod(rng, m, 100)]):
            assert answers(kernels, row, m, xs) == expected(xs, m), hex(m)


@EVERY_ROW
def test_more_multiprocessors_get_smaller_shares(row: BatchRow, kernels: Backend) -> None:
    rng = random.Random(f"{row}")
    xs = units_mod(rng, SECP256K1, 700)
    launches = set()
    for multiprocessors in (1, 2, 5, 100):
        assert answers(kernels, row, SECP256K1, xs, multiprocessors) == expected(xs, SECP256K1)
        (piece,) = plan_of(row, request_of(SECP256K1, xs), kernels, multiprocessors).pieces
        launches.add((piece.launches[0].values["elements"], piece.launches[0].grid))
    assert max(launches)[0] > 1 and (1, -(-700 // row.block)) in launches


@EVERY_ROW
@pytest.mark.parametrize("m", [2**255 - 19, SECP256K1, 2**256 - 189], ids=hex)
def test_totals_that_take_a_warp_longest(row: BatchRow, m: int, kernels: Backend) -> None:
    """Powers of two and their negatives, one a block: its other elements are 1, but for two whose product is."""
    others = [1] * (row.block - 3)
    hard = [*ones(m), *powers_of_two(m)[::9], 2**192]
    xs = [x for each in hard for x in (*others, each, 3, pow(3, -1, m))]
    assert answers(kernels, row, m, xs, multiprocessors=len(hard)) == expected(xs, m)
    (piece,) = plan_of(row, request_of(m, xs), kernels, len(hard)).pieces
    assert piece.launches[0].grid == len(hard)


@EVERY_ROW
@pytest.mark.parametrize("even", [False, True])
def test_moduli_of_384_bits(row: BatchRow, even: bool, kernels: Backend) -> None:
    """bls12_381_fp, and an even modulus such as no field has."""
    field = next(field for field in FIELDS if field.name == "bls12_381_fp")
    rng = random.Random(f"{row} 384")
    m = hard_integer(rng, 12) | 2 if even else field.modulus
    m -= even and m % 2
    for n in (1, 33, 150):
        xs = [rng.getrandbits(384) for _ in range(n - n // 2)] + [hard_integer(rng, 12) for _ in range(n // 2)]
        request = MOD_INV_BATCH.decode(Call(n, field=field), memoryview(pack(xs, 48)))
        request = type(request)(**{**vars(request), "modulus": m})
        result = bytearray(48 * n)
        kernels.run(request, plan_of(row, request, kernels), memoryview(result))
        assert unpack(result, 48) == expected(xs, m)


@pytest.mark.parametrize("m", [SECP256K1, 2**255 - 19, 2**256 - 2, P128 * Q127], ids=hex)
@pytest.mark.parametrize(
    "row", [row for row in ROWS if row.storage != Storage.OUTPUT], ids=lambda row: row.storage.name
)
def test_results_may_replace_the_operands(row: BatchRow, m: int, tmp_path: Path, pytestconfig: pytest.Config) -> None:
    """One array in and out, but for Storage.OUTPUT. Not with poisoned results, which would be poisoned operands."""
    folder = Path(pytestconfig.cache.mkdir("kernels")) if pytestconfig.cache else tmp_path
    backend = CpuBackend(cache=Cache(folder), variant=Variant.VERIFY, poison=False)
    xs = operands(random.Random(m), m, 600)
    memory = np.zeros(600 * 8 + 4, np.uint32)
    start = -memory.ctypes.data // 4 % 4  # the CPU backend works in place where memory is aligned to 16 bytes
    array = memory[start : start + 600 * 8].reshape(600, 8)
    array[:] = from_ints(xs)
    request = type(request_of(m, xs))(**{**vars(request_of(m, xs)), "arrays": {"x": array}})
    backend.run(request, plan_of(row, request, backend), array.reshape(-1).view(np.uint8).data)
    backend.close()
    assert to_ints(array) == expected(xs, m)
