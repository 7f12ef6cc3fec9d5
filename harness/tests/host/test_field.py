"""The field layer against Python's integers: Barrett, fold and Montgomery, on the host, as interpreted PTX and (marked gpu) on the device.

All are compiled with KERNEL_VERIFY, so that the functions check the ranges they promise as well.
"""

from __future__ import annotations

import operator
import random
from collections.abc import Callable

import pytest

from limbd.harness.inputs import hard_integer, tight_modulus
from limbd.harness.layer_check import LayerCheck
from limbd.ops.base import Member
from limbd.ops.constants import barrett, barrett_any, limbs_of_modulus, montgomery
from limbd.ops.params.base import Field
from limbd.ops.params.fields import FIELDS
from limbd.ops.params.render import render, struct_name
from limbd.worker.device.base import Backend

ROW = 28
ELEMENT_LIMBS = 12  # of reduce_element and enter_element in field_check.cu
CASES = 25
W = 2**32

Draw = Callable[[random.Random, int, int], int]  # generator, modulus, limbs -> operand
Model = Callable[[int, int, int, int], int]  # modulus, limbs, x, y -> result


# --- operands -----------------------------------------------------------------------------------------------------------


def below(rng: random.Random, bound: int, *corners: int) -> int:
    """In 0..bound-1: a corner, from hard limbs, or of any size."""
    kind = rng.randrange(3)
    fitting = [c for c in (0, 1, bound - 1, bound - 2, *corners) if 0 <= c < bound]
    if kind == 0:
        return rng.choice(fitting)
    return hard_integer(rng, limbs_of_modulus(bound)) % bound if kind == 1 else rng.randrange(bound)


def residue(rng: random.Random, m: int, n: int) -> int:
    r = W**n % m
    return below(rng, m, r, m - r, r * r % m)


def residue_below_2m(rng: random.Random, m: int, n: int) -> int:
    return below(rng, 2 * m, m, m - 1, 2 * m - W**n % m)


def any_integer(rng: random.Random, m: int, n: int) -> int:
    top = W**n
    return below(rng, top, m, m - 1, m + 1, top - top % m, top - top % m - 1)


def any_element(rng: random.Random, m: int, n: int) -> int:
    return any_integer(rng, m, ELEMENT_LIMBS)


def double(rng: random.Random, m: int, n: int) -> int:
    """Any t < m W^n: products, multiples of m and their neighbours, the largest quotients."""
    multiple = rng.randrange(1, W**n) * m
    return below(rng, m * W**n, (m - 1) ** 2, multiple, multiple - 1, (W**n - 1) * m, (W**n - 1) * m - 1)


def double_any(rng: random.Random, m: int, n: int) -> int:
    return below(rng, W ** (2 * n), m * m, (m - 1) ** 2, W**n * (W**n - 1))


def double_folded(rng: random.Random, m: int, n: int) -> int:
    """Half of them with a residue at which the fold's second sum leaves 256 bits, or only just does not."""
    if rng.randrange(2):
        return double_any(rng, m, n)
    c = W**n - m
    v = rng.choice((c, c - 1, c + 1, rng.randrange(2 * c), c + rng.randrange(c * c)))
    return rng.randrange((W ** (2 * n) - v) // m) * m + v


# --- what field_check.cu calls: number, operands, model, which moduli ---------------------------------------------------------


def always(m: int, n: int) -> bool:
    return True


def exact(m: int, n: int) -> bool:
    return limbs_of_modulus(m) == n


def partial(m: int, n: int) -> bool:
    return exact(m, n) and m.bit_length() < 32 * n


def full(m: int, n: int) -> bool:
    return m.bit_length() == 32 * n


def odd(m: int, n: int) -> bool:
    return m % 2 == 1 and n % 2 == 0


def lazy(m: int, n: int) -> bool:
    return odd(m, n) and 4 * m < W**n


def folding(m: int, n: int) -> bool:
    return n == 8 and 0 < 2**256 - m < 2**64


def monic(m: int, n: int) -> bool:
    return n == 8 and 2**32 <= 2**256 - m < 3 * 2**31


def inverse_of_r(m: int, n: int) -> int:
    return pow(1 << 32 * n, -1, m)


OPERATIONS: dict[str, tuple[int, tuple[Draw, ...], Model, Callable[[int, int], bool]]] = {
    "barrett::reduce": (0, (double,), lambda m, n, x, y: x % m, exact),
    "barrett::reduce_any": (1, (double,), lambda m, n, x, y: x % m, always),
    "barrett::reduce_element": (2, (any_element,), lambda m, n, x, y: x % m, exact),
    "mont::add": (3, (residue, residue), lambda m, n, x, y: (x + y) % m, always),
    "mont::subtract": (4, (residue, residue), lambda m, n, x, y: (x - y) % m, always),
    "mont::multiply": (5, (any_integer, residue), lambda m, n, x, y: x * y * inverse_of_r(m, n) % m, odd),
    "mont::square": (6, (residue,), lambda m, n, x, y: x * x * inverse_of_r(m, n) % m, odd),
    "mont::enter": (7, (any_integer,), lambda m, n, x, y: x * W**n % m, odd),
    "mont::leave": (8, (any_integer,), lambda m, n, x, y: x * inverse_of_r(m, n) % m, odd),
    "mont::enter_element": (10, (any_element,), lambda m, n, x, y: x * W**n % m, odd),
    "barrett::multiply": (11, (residue, residue), lambda m, n, x, y: x * y % m, partial),
    "barrett::square": (12, (residue,), lambda m, n, x, y: x * x % m, partial),
    "barrett::multiply, full": (13, (residue, residue), lambda m, n, x, y: x * y % m, full),
    "barrett::square, full": (14, (residue,), lambda m, n, x, y: x * x % m, full),
    "fold::reduce": (15, (double_folded,), lambda m, n, x, y: x % m, folding),
    "fold::reduce, monic": (16, (double_folded,), lambda m, n, x, y: x % m, monic),
}


def moduli(n: int) -> list[int]:
    rng = random.Random(f"moduli {n}")
    top = W**n
    edges = [
        1,
        2,
        3,
        top - 1,
        top - 2,
        top // 2,
        top // 2 + 1,
        top // 2 - 1,
        top // 4 + 1,
        W ** (n - 1) + 1,
        W ** (n - 1),
    ]
    edges += [top - rng.randrange(1, 2**31), 0xC0 << (32 * n - 8) | 1]
    if n == 8:
        edges += [2**256 - 2**32 - 977, 2**256 - 2**32, 2**256 - 3 * 2**31 + 1, 2**256 - 3 * 2**31, 2**256 - 2**64 + 1]
        edges += [tight_modulus(8, 134, 4), tight_modulus(8, 134, 5)]
    shorter = [rng.getrandbits(bits) | 1 << (bits - 1) for bits in (32 * n - 31, 32 * n - 17, 32 * n - 1, 16 * n + 1)]
    hard = [hard_integer(rng, n) or 1 for _ in range(6)]
    return [m for m in dict.fromkeys((*edges, *shorter, *hard)) if 1 <= m < top]


def check(n: int) -> LayerCheck:
    scalars = (
        *(Member(name, "limbs", n) for name in ("modulus", "reciprocal", "normalised", "reciprocal_any", "r2")),
        Member("negated", "limbs", n + 1),
        Member("complement", "limbs", 2),
        *(Member(name, "u32") for name in ("operation", "shift", "shift_any", "n0inv")),
    )
    return LayerCheck("field_check", ("x", "y"), scalars, {"N": n}, ROW)


def constants(m: int, n: int) -> dict[str, int]:
    """Zeros where the modulus does not suit: those operations are not run then."""
    values = dict.fromkeys(("negated", "reciprocal", "shift", "r2", "n0inv"), 0)
    anyway = barrett_any(m, n)
    values |= {"normalised": anyway["normalised"], "reciprocal_any": anyway["reciprocal"], "shift_any": anyway["shift"]}
    values |= barrett(m, n) if exact(m, n) else {}
    values |= {k: v for k, v in montgomery(m, n).items() if k != "one"} if odd(m, n) else {}
    return {**values, "modulus": m, "complement": (2**256 - m) if folding(m, n) else 0}


def run(backend: Backend, n: int, m: int, number: int, columns: list[list[int]]) -> list[int]:
    x, y = (*columns, [0] * len(columns[0]))[:2]
    return check(n).run(backend, {"x": x, "y": y}, {**constants(m, n), "operation": number})


@pytest.mark.parametrize("n", [1, 2, 3, 5, 8, 12])
def test_every_operation(layers: Backend, n: int) -> None:
    for m in moduli(n):
        for name, (number, draws, model, suits) in OPERATIONS.items():
            if not suits(m, n):
                continue
            rng = random.Random(f"{name} {m}")
            columns = [[draw(rng, m, n) for _ in range(CASES)] for draw in draws]
            pairs = list(zip(*(*columns, [0] * CASES)[:2], strict=True))
            for (x, y), got in zip(pairs, run(layers, n, m, number, columns), strict=True):
                assert got == model(m, n, x, y), f"{name}<{n}>({x:#x}, {y:#x}) mod {m:#x}"


def test_lazy_products_stay_below_2m(layers: Backend) -> None:
    for n in (2, 8):
        for m in (m for m in moduli(n) if lazy(m, n)):
            rng = random.Random(f"lazy {m}")
            columns = [[residue_below_2m(rng, m, n) for _ in range(CASES)] for _ in range(2)]
            for x, y, got in zip(*columns, run(layers, n, m, 9, columns), strict=True):
                assert got < 2 * m, f"{x:#x} {y:#x} mod {m:#x}"
                assert (got * W**n - x * y) % m == 0, f"{x:#x} {y:#x} mod {m:#x}"


@pytest.mark.parametrize(
    "field",
    [f for f in FIELDS if f.name in ("bn254_fr", "secp256k1_fp", "bls12_381_fp", "goldilocks")],
    ids=lambda field: field.name,
)
def test_a_modulus_known_at_compile_time(layers: Backend, field: Field) -> None:
    m, n = field.modulus, field.limbs
    text = f"{render(field)}#define PARAMS {struct_name(field)}\n"
    compiled = LayerCheck("constant_field_check", ("x", "y"), (Member("operation", "u32"),), {}, ROW, params=text)
    rng = random.Random(field.name)
    x, y = ([residue(rng, m, n) for _ in range(4 * CASES)] for _ in range(2))
    models: tuple[Callable[[int, int], int], ...] = (
        operator.mul,
        lambda a, _: a * a,
        operator.add,
        operator.sub,
        operator.mul,
    )
    for number, model in enumerate(models):
        expected = [model(a, b) % m for a, b in zip(x, y, strict=True)]
        assert compiled.run(layers, {"x": x, "y": y}, {"operation": number}) == expected, number
