"""The limb layer against Python's integers: its host twin, the PTX that NVRTC makes, and (marked gpu) the device."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from limbd.harness.inputs import HARD_LIMBS, hard_integer
from limbd.harness.layer_check import LayerCheck
from limbd.ops.base import Member
from limbd.worker.device.base import Backend

ROW = 28
CASES = 60
W = 2**32

Case = tuple[int, int, int, int]  # x, y, z, s
Model = Callable[[int, Case], int]


# --- operands -----------------------------------------------------------------------------------------------------------


def any_value(rng: random.Random, limbs: int) -> int:
    """Half from hard limbs, some of it all-ones: the longest carries."""
    kind = rng.randrange(4)
    if kind == 0:
        return (1 << 32 * limbs) - 1 - rng.randrange(2)
    return hard_integer(rng, limbs) if kind < 3 else rng.getrandbits(32 * limbs)


def any_word(rng: random.Random) -> int:
    return rng.choice((*HARD_LIMBS, rng.getrandbits(32)))


def any_case(rng: random.Random, n: int) -> Case:
    return any_value(rng, n), any_value(rng, n), any_value(rng, n + 1), any_word(rng)


def subtract_once_case(rng: random.Random, n: int) -> Case:
    m = any_value(rng, n) or 1
    carry, x = divmod(rng.choice((rng.randrange(2 * m), m, m - 1, 2 * m - 1, 0)), W**n)
    return x, m, 0, carry


def estimate_case(rng: random.Random, n: int) -> Case:
    """A normalised modulus M and its reciprocal y; x < M is what stands above t's lower half."""
    m = any_value(rng, n) | 1 << (32 * n - 1)
    return rng.choice((m - 1, any_value(rng, n) % m, 0)), (W ** (2 * n) - 1) // m - W**n, 0, any_word(rng)


def montgomery_case(rng: random.Random, n: int) -> Case:
    m = any_value(rng, n) | 1
    return any_value(rng, n), rng.choice((m - 1, any_value(rng, n) % m, 0)), m, n0inv(m)


def montgomery_small_case(rng: random.Random, n: int) -> Case:
    m = any_value(rng, n) >> 2 | 1
    bound = rng.choice((m, 2 * m))
    return (
        rng.choice((bound - 1, any_value(rng, n) % bound)),
        rng.choice((bound - 1, any_value(rng, n) % bound)),
        m,
        n0inv(m),
    )


def montgomery_reduce_case(rng: random.Random, n: int) -> Case:
    m = any_value(rng, n) | 1
    return rng.choice((any_value(rng, 2 * n) % (W**n * m), (m - 1) ** 2, m - 1, 0)), 0, m, n0inv(m)


def n0inv(m: int) -> int:
    return -pow(m, -1, W) % W


# --- models: the low limbs of the result's row, the rest keeps x's limbs and is not looked at -----------------------------


def montgomery(n: int, product: int, m: int) -> int:
    r = 1 << 32 * n
    k = product * -pow(m, -1, r) % r
    return (product + k * m) // r


OPERATIONS: dict[str, tuple[int, int, Callable[[random.Random, int], Case], Model]] = {
    # name: (number, limbs of the result, operands, model); the limbs are a multiple of n and more: n * whole + more
    "add": (0, 1, any_case, lambda n, c: c[0] + c[1]),
    "subtract": (1, 1, any_case, lambda n, c: (c[0] - c[1]) % W**n + (c[0] < c[1]) * W**n),
    "multiply_accumulate": (2, 1, any_case, lambda n, c: c[0] + c[1] * c[3]),
    "shift_left": (3, 0, any_case, lambda n, c: ((c[0] << 32 | c[1] % W) << c[3] % 32 >> 32) % W**n),
    "shift_right": (4, 0, any_case, lambda n, c: c[0] >> c[3] % 32),
    "barrel_left": (5, 0, any_case, lambda n, c: (c[0] << c[3] % (32 * n)) % W**n),
    "barrel_right": (6, 0, any_case, lambda n, c: c[0] >> c[3] % (32 * n)),
    "subtract_once": (7, 0, subtract_once_case, lambda n, c: (c[0] + c[3] * W**n) % c[1]),
    "wide_product": (9, -1, any_case, lambda n, c: c[0] * c[1]),
    "wide_square": (10, -1, any_case, lambda n, c: c[0] ** 2),
    "low_multiply_add_long": (11, 1, any_case, lambda n, c: (c[0] + c[1] * c[2]) % W ** (n + 1)),
    "montgomery_product_full": (13, 1, montgomery_case, lambda n, c: montgomery(n, c[0] * c[1], c[2])),
    "montgomery_product": (14, 1, montgomery_small_case, lambda n, c: montgomery(n, c[0] * c[1], c[2])),
    "montgomery_reduce": (15, 1, montgomery_reduce_case, lambda n, c: montgomery(n, c[0], c[2])),
    "monic_multiply_add": (18, 2, any_case, lambda n, c: c[0] + c[1] * (W + c[3])),
    "low_multiply_add": (16, 0, any_case, lambda n, c: (c[0] + c[1] * c[2]) % W**n),
}

LIMBS = (1, 2, 3, 4, 5, 7, 8, 12)


def check(n: int) -> LayerCheck:
    return LayerCheck("limb_check", ("x", "y", "z", "s"), (Member("operation", "u32"),), {"N": n}, ROW, narrow=("s",))


def run(backend: Backend, n: int, operation: int, cases: list[Case]) -> list[int]:
    return check(n).run(backend, dict(zip("xyzs", zip(*cases, strict=True), strict=True)), {"operation": operation})


@pytest.mark.parametrize("n", LIMBS)
def test_every_operation(layers: Backend, n: int) -> None:
    for name, (number, more, operands, model) in OPERATIONS.items():
        if name.startswith(("montgomery", "monic")) and n % 2:
            continue
        rng = random.Random(f"{name} {n}")
        cases = [operands(rng, n) for _ in range(CASES)]
        limbs = 2 * n if more < 0 else n + more
        for case, got in zip(cases, run(layers, n, number, cases), strict=True):
            assert got % W**limbs == model(n, case), f"{name}<{n}>({', '.join(map(hex, case))})"


@pytest.mark.parametrize("n", LIMBS)
def test_comparisons(layers: Backend, n: int) -> None:
    rng = random.Random(f"less {n}")
    pairs = [any_case(rng, n)[:2] for _ in range(CASES)]
    pairs += [(x, x) for x, _ in pairs[:5]] + [(0, 0), (0, 1), (1, 0)]
    expected = [(x < y) | (x == y) << 1 | (x == 0) << 2 for x, y in pairs]
    assert [r % W for r in run(layers, n, 8, [(*pair, 0, 0) for pair in pairs])] == expected


@pytest.mark.parametrize("n", LIMBS)
def test_the_sum_of_two_accumulators(layers: Backend, n: int) -> None:
    rng, limbs = random.Random(f"sum {n}"), 2 * n - 1
    cases = [(any_value(rng, limbs), any_value(rng, limbs), 0, 0) for _ in range(CASES)]
    assert [r % W**limbs for r in run(layers, n, 17, cases)] == [(x + y) % W**limbs for x, y, _, _ in cases]


@pytest.mark.parametrize("n", LIMBS)
def test_the_difference_of_two_products(layers: Backend, n: int) -> None:
    rng, limbs = random.Random(f"difference {n}"), 2 * n
    cases = [(any_value(rng, limbs), any_value(rng, limbs), 0, 0) for _ in range(CASES)]
    cases += [(x, x + step, 0, 0) for x in (0, 2 ** (32 * n) - 1) for step in (0, 1)]
    expected = [(x - y) % W**limbs + (x < y) * W**limbs for x, y, _, _ in cases]
    assert [r % W ** (limbs + 1) for r in run(layers, n, 20, cases)] == expected


@pytest.mark.parametrize("n", LIMBS)
def test_estimate_quotient_keeps_its_bound(layers: Backend, n: int) -> None:
    rng = random.Random(f"estimate {n}")
    cases = [estimate_case(rng, n) for _ in range(4 * CASES)]
    for (x, y, _, lo), row in zip(cases, run(layers, n, 12, cases), strict=True):
        top = y // W ** (n - 1)
        numerator = (x * y * W + lo * (W + top) * W ** (n - 1)) * W  # over W^(n + 2)
        q = row % W**n - x
        assert q * W ** (n + 2) <= numerator, (hex(x), hex(y), lo)
        assert (q + 1) * W ** (n + 2) > numerator - n * W ** (n + 1), (hex(x), hex(y), lo)
