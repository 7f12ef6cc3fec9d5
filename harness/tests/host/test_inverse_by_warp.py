"""The inversion on one warp by each table, against GMP: operands that take it longest, every length, tiny moduli."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path

import gmpy2
import pytest

from limbd.harness.inputs import SPECIAL_MODULI, edges, hard_integer, modulus_of_bits, ones, operands, powers_of_two
from limbd.kernels.source import ROOT, Sources
from limbd.ops.base import Buffer, Kernel, Launch, LaunchPlan, Member, Piece, Request, Struct, Transfer, Unit
from limbd.ops.constants import montgomery
from limbd.ops.mod_inv_batch import warp_table
from limbd.ops.mod_mul import MOD_MUL
from limbd.ops.params.layout import from_ints, unpack
from limbd.ops.reference.warp_inverse import ENTRY_BYTES, TABLES
from limbd.worker.device.base import Backend

LAYERS = Sources((Path(__file__).parent / "layers", ROOT))
NAME = "warp_inverse_check"
STRUCT = Struct(
    f"{NAME}_args",
    (
        Member("x", "in"),
        Member("out", "out"),
        Member("n", "u64"),
        Member("modulus", "limbs", 8),
        Member("n0inv", "u32"),
    ),
)
ROW = 12
WARPS = 2

SECP256K1 = 2**256 - 2**32 - 977
ED25519 = 2**255 - 19

# Primes, products of large and of small primes, moduli that are +-1 in their lowest limb, short ones, 1.
MODULI = (
    SECP256K1,
    ED25519,
    2**255 + 1,
    2**255 - 1,
    2**256 - 1,
    (2**128 - 159) * (2**127 - 1),
    3**161,
    2**24 - 1,
    15,
    1,
)

EVERY_TABLE = pytest.mark.parametrize("steps", TABLES)


@pytest.fixture(scope="module", params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def layers(request: pytest.FixtureRequest, make_backend: Callable[[str, Sources | None], Backend]) -> Backend:
    """Not as interpreted PTX, which knows no barriers."""
    return make_backend(request.param, LAYERS)


def inverses(backend: Backend, steps: int, m: int, xs: Sequence[int]) -> list[int | None]:
    unit = Unit(NAME, (STRUCT,), (("STEPS", steps), ("WARPS", WARPS)), warp_table(steps))
    kernel = Kernel(unit, NAME, STRUCT, 32 * WARPS, synchronises=True)
    values = {"n": len(xs), "modulus": m, "n0inv": montgomery(m, 8)["n0inv"]}
    launch = Launch(kernel, -(-len(xs) // WARPS), 32 * WARPS, values, ENTRY_BYTES << steps)
    arrays = {"x": from_ints(xs)}
    taken, given = 32 * len(xs), 4 * ROW * len(xs)
    buffers = (Buffer("x", "in", taken), Buffer("out", "out", given))
    piece = Piece((Transfer("x", "x", 0, taken),), (launch,), (Transfer("out", "result", 0, given),))
    result = bytearray(given)
    backend.run(Request(MOD_MUL, len(xs), 0, 1, 4 * ROW, arrays), LaunchPlan(buffers, 1, (piece,)), memoryview(result))
    return [int(row) - (1 << 256) if row else None for row in unpack(result, 4 * ROW)]


def expected(m: int, xs: Sequence[int]) -> list[int | None]:
    return [0 if m == 1 else int(gmpy2.invert(x, m)) if gmpy2.gcd(x, m) == 1 else None for x in xs]


@EVERY_TABLE
@pytest.mark.parametrize("m", MODULI, ids=hex)
def test_operands_that_take_longest(layers: Backend, steps: int, m: int) -> None:
    """Powers of two and their negatives, some of which are carried on their way, or look like an end long before it; and the
    modulus, its neighbours and multiples, which nothing reduces first."""
    xs = [*ones(m), *powers_of_two(m), *edges(m), *operands(random.Random(m), m, 150)]
    assert inverses(layers, steps, m, xs) == expected(m, xs)


@EVERY_TABLE
def test_special_moduli_and_every_length(layers: Backend, steps: int) -> None:
    rng = random.Random(steps)
    for m in (*(m | 1 for m in SPECIAL_MODULI), *(modulus_of_bits(rng, bits) | 1 for bits in range(2, 257, 5))):
        xs = [*operands(rng, m, 40), hard_integer(rng)]
        assert inverses(layers, steps, m, xs) == expected(m, xs), hex(m)


@EVERY_TABLE
def test_tiny_moduli_exhaustively(layers: Backend, steps: int) -> None:
    for m in range(1, 64, 2):
        xs = [x + m * k for k in (0, 1, 2**240) for x in range(m)]
        assert inverses(layers, steps, m, xs) == expected(m, xs), m
