"""Sums of two products by constants (kernels/limb/dot.cuh and field/dot.cuh) against Python's integers, at the ends of the
ranges that they allow."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from limbd.harness.inputs import HARD_LIMBS, hard_integer
from limbd.harness.layer_check import LayerCheck
from limbd.ops.base import Member
from limbd.ops.constant_product import constant, fits
from limbd.ops.params.base import Field
from limbd.ops.params.fields import FIELDS
from limbd.ops.params.render import render, struct_name
from limbd.worker.device.base import Backend

W = 2**32
N = 8
R, E, HALF = W**N, W ** (N - 1), W ** (N // 2)
ROW = 40
CASES = 60

NAMED = {field.name: field for field in FIELDS}


def odd(name: str, modulus: int) -> Field:
    """No proof of primality is needed: nothing here inverts but modulo powers of two."""
    return Field(0x7F72, name, modulus, "a test")


# The largest moduli of both forms, the smallest, and ones whose multiples have full limbs.
MODULI = (
    *(NAMED[name] for name in ("bn254_fr", "bls12_381_fr")),
    odd("roomy_most", (R - 2 * E) // 5 // E * E - 51),
    odd("roomy_least", 2**16 * E + 1),
    odd("spare_least", (R - 2 * E) // 5 // E * E + 0x10001),
    odd("spare_most", 2**255 - 128 * E - 19),
    odd("ones", 2**254 - 3),
    odd("ones_below", 2**253 - 1),
)
EVERY = pytest.mark.parametrize("field", MODULI, ids=lambda field: field.name)


class Case:
    """A modulus, its form, and how its operands are drawn."""

    def __init__(self, field: Field) -> None:
        self.field, self.m = field, field.modulus
        assert field.montgomery_limbs == N
        self.roomy = fits(field, 5, 2)
        self.element = 2 * self.m + E if self.roomy else self.m
        text = f"{render(field)}using FIELD = {struct_name(field)};\n"
        self.check = LayerCheck("dot_check", ("x", "y"), (Member("operation", "u32"),), {}, ROW, params=text)

    def any(self, rng: random.Random) -> int:
        corners = (0, 1, self.m - 1, self.m, R - 1, R - 2, R - R % self.m, HALF - 1, R - HALF, HALF)
        return (rng.choice(corners), hard_integer(rng, N), rng.randrange(R))[rng.randrange(3)]

    def residue(self, rng: random.Random) -> int:
        corners = (0, 1, self.m - 1, self.m - 2, R % self.m, pow(R, -1, self.m))
        return (rng.choice(corners), hard_integer(rng, N) % self.m, rng.randrange(self.m))[rng.randrange(3)]

    def an_element(self, rng: random.Random) -> int:
        corners = [0, 1, self.element - 1, self.element - 2, self.m - 1, self.m % self.element]
        return rng.choice(corners) if rng.randrange(2) else rng.randrange(self.element)

    def run(self, backend: Backend, operation: int, xs: Sequence[int], ys: Sequence[int]) -> list[int]:
        return self.check.run(backend, {"x": xs, "y": ys}, {"operation": operation})


def joined(parts: Sequence[int], width: int) -> int:
    return sum(part * width**i for i, part in enumerate(parts))


@EVERY
def test_sums_of_products(field: Field, layers: Backend) -> None:
    """Of any parts and any constants below m, with the word above and, where the sum fits, without."""
    case = Case(field)
    m = case.m
    for parts in (2, 3, 4):
        rng = random.Random(f"{field.name} {parts}")
        x = [
            [rng.choice((HALF - 1, hard_integer(rng, N // 2), rng.randrange(HALF))) for _ in range(parts)]
            for _ in range(CASES)
        ]
        w = [[case.residue(rng) for _ in range(parts)] for _ in range(CASES)]
        x += [[HALF - 1] * parts] * 4
        w += [[m - 1 - i] * parts for i in range(4)]
        rows = [joined(row, HALF) for row in x], [joined(row, R) for row in w]
        for wide in (False, True):
            if not wide and not fits(field, parts + 1, 0):
                continue
            for a, c, got in zip(x, w, case.run(layers, parts - 2 + 3 * wide, *rows), strict=True):
                total = sum(u * v for u, v in zip(a, c, strict=True))
                q = total * -pow(m, -1, HALF) % HALF
                assert got % (W * R) == (total + q * m) // HALF, (parts, wide, a, c)


@EVERY
def test_brackets_and_sums(field: Field, layers: Backend) -> None:
    case = Case(field)
    rng = random.Random(f"{field.name} brackets")
    x, y = ([case.an_element(rng) for _ in range(4 * CASES)] for _ in range(2))
    x[:4] = y[:4] = [0, case.element - 1, case.m % case.element, 1]
    x[4:6], y[4:6] = [0, case.element - 1], [case.element - 1, 0]
    multiple = 3 if case.roomy else 1
    assert [got % R for got in case.run(layers, 6, x, y)] == [a + b for a, b in zip(x, y, strict=True)]
    assert [got % R for got in case.run(layers, 7, x, y)] == [
        b - a + multiple * case.m for a, b in zip(x, y, strict=True)
    ]
    for sign, operation in ((1, 11), (-1, 12)):
        for a, b, got in zip(x, y, case.run(layers, operation, x, y), strict=True):
            assert (got % R - b - sign * a) % case.m == 0 and got % R < case.element, (sign, a, b)


@EVERY
def test_products_are_elements(field: Field, layers: Backend) -> None:
    case = Case(field)
    m = case.m
    for terms in (1, 2):
        rng = random.Random(f"{field.name} {terms} terms")
        x = [[case.any(rng) for _ in range(terms)] for _ in range(4 * CASES)] + [[R - 1] * terms] * 8
        w = [[case.residue(rng) for _ in range(terms)] for _ in x]
        constants = [joined([constant(case.field, v, 2) for v in row], R * R) for row in w]
        got = case.run(layers, 7 + terms, [joined(row, R) for row in x], constants)
        for a, v, r in zip(x, w, got, strict=True):
            want = sum(b * c for b, c in zip(a, v, strict=True))
            assert (r % R - want) % m == 0 and r % R < case.element, (terms, a, v)
        # Any constants, so that sums come near their bound.
        free = [joined([m - 1 - rng.randrange(2) * rng.randrange(m) for _ in range(2 * terms)], R) for _ in x]
        rows = [joined(row, R) for row in x]
        for row, c, r in zip(rows, free, case.run(layers, 7 + terms, rows, free), strict=True):
            total = sum((row // HALF**i % HALF) * (c // R**i % R) for i in range(2 * terms))
            assert (r % R * HALF - total) % m == 0 and r % R < case.element, (terms, hex(row), hex(c))


@EVERY
def test_canonical(field: Field, layers: Backend) -> None:
    case = Case(field)
    rng = random.Random(f"{field.name} canonical")
    x = [0, case.m - 1, *((case.m, case.m + 1, 2 * case.m - 1, 2 * case.m) if case.roomy else ()), case.element - 1]
    x += [rng.randrange(case.element) for _ in range(CASES)]
    assert [got % R for got in case.run(layers, 10, x, x)] == [value % case.m for value in x]


def test_masks(layers: Backend) -> None:
    case = Case(MODULI[0])
    pairs = [(x, y) for x in HARD_LIMBS for y in HARD_LIMBS]
    assert case.run(layers, 13, *zip(*pairs, strict=True)) == [(W - 1) * (x > y) for x, y in pairs]


def test_both_forms_are_there() -> None:
    assert {Case(field).roomy for field in MODULI} == {True, False}
    assert not fits(odd("", MODULI[2].modulus + E), 5, 2) and fits(MODULI[5], 2, 256)
