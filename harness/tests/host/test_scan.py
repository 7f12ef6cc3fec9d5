"""Scans over a block's threads, for every number of warps: against a loop over the elements."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from limbd.kernels.source import ROOT, Sources
from limbd.ops.base import Buffer, Kernel, Launch, LaunchPlan, Member, Piece, Request, Struct, Transfer, Unit
from limbd.ops.mod_mul import MOD_MUL
from limbd.ops.params.layout import from_ints, unpack
from limbd.worker.device.base import Backend

LAYERS = Sources((Path(__file__).parent / "layers", ROOT))
STRUCT = Struct("scan_check_args", (Member("x", "in"), Member("out", "out"), Member("complement", "limbs", 2)))
INCLUSIVE, EXCLUSIVE, OTHERS = range(3)
COMPLEMENT = 2**32 + 977
MODULUS = 2**256 - COMPLEMENT
BLOCKS = 3

Matrix = tuple[int, int, int, int]


@pytest.fixture(scope="module", params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def layers(request: pytest.FixtureRequest, make_backend: Callable[[str, Sources | None], Backend]) -> Backend:
    """Not as interpreted PTX, which knows no barriers."""
    return make_backend(request.param, LAYERS)


def scanned(backend: Backend, operation: int, warps: int, xs: Sequence[int]) -> list[tuple[int, int]]:
    """(result, total of its block) for each x."""
    unit = Unit("scan_check", (STRUCT,), (("OPERATION", operation), ("WARPS", warps)))
    kernel = Kernel(unit, "scan_check", STRUCT, 32 * warps, synchronises=True)
    launch = Launch(kernel, len(xs) // (32 * warps), 32 * warps, {"complement": COMPLEMENT})
    arrays = {"x": from_ints(xs)}
    size = 64 * len(xs)
    buffers = (Buffer("x", "in", size // 2), Buffer("out", "out", size))
    piece = Piece((Transfer("x", "x", 0, size // 2),), (launch,), (Transfer("out", "result", 0, size),))
    result = bytearray(size)
    request = Request(MOD_MUL, len(xs), 0, 1, 32, arrays)
    backend.run(request, LaunchPlan(buffers, 1, (piece,)), memoryview(result))
    rows = [int(row) for row in unpack(result)]
    return list(zip(rows[::2], rows[1::2], strict=True))


def to_matrix(x: int) -> Matrix:
    a, b, c, d = (x >> 32 * i & 0xFFFFFFFF for i in range(4))
    return a, b, c, d


def to_int(a: Matrix) -> int:
    return sum(entry << 32 * i for i, entry in enumerate(a))


def product(a: Matrix, b: Matrix) -> Matrix:
    rows = ((0, 1), (2, 3))
    p, q, r, s = ((a[i] * b[k] + a[j] * b[k + 2]) % 2**32 for i, j in rows for k in (0, 1))
    return p, q, r, s


WARPS = pytest.mark.parametrize("warps", [1, 2, 4, 8])


@WARPS
@pytest.mark.parametrize("operation", [INCLUSIVE, EXCLUSIVE])
def test_prefixes_keep_the_order_of_what_does_not_commute(operation: int, warps: int, layers: Backend) -> None:
    rng = random.Random(f"{operation} {warps}")
    xs = [rng.getrandbits(128) for _ in range(BLOCKS * 32 * warps)]
    right: list[tuple[int, int]] = []
    for start in range(0, len(xs), 32 * warps):
        value: Matrix = (1, 0, 0, 1)
        prefixes = []
        for x in xs[start : start + 32 * warps]:
            before, value = value, product(value, to_matrix(x))
            prefixes.append(value if operation == INCLUSIVE else before)
        right += [(to_int(prefix), to_int(value)) for prefix in prefixes]
    assert scanned(layers, operation, warps, xs) == right


@WARPS
def test_all_elements_but_the_own_one(warps: int, layers: Backend) -> None:
    rng = random.Random(warps)
    size = 32 * warps
    xs = [rng.randrange(1, MODULUS) for _ in range(BLOCKS * size)]
    right: list[tuple[int, int]] = []
    for start in range(0, len(xs), size):
        total = 1
        for x in xs[start : start + size]:
            total = total * x % MODULUS
        right += [(total * pow(x, -1, MODULUS) % MODULUS, total) for x in xs[start : start + size]]
    assert scanned(layers, OTHERS, warps, xs) == right


@WARPS
def test_a_zero_is_missing_from_its_own_product_alone(warps: int, layers: Backend) -> None:
    size = 32 * warps
    for at in (0, 31, size - 1, size // 2):
        xs = [2] * size
        xs[at] = 0
        assert scanned(layers, OTHERS, warps, xs) == [
            (pow(2, size - 1, MODULUS) if i == at else 0, 0) for i in range(size)
        ]
