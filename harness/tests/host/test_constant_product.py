"""Products by constants and lazy sums (kernels/field/constant_product.cuh and lazy.cuh) against Python's integers, at the ends of
the ranges that they allow."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

import pytest

from limbd.harness.inputs import hard_integer
from limbd.harness.layer_check import LayerCheck
from limbd.ops.base import Member
from limbd.ops.constant_product import SLACK, constant, fits, roomy
from limbd.ops.params.base import Field
from limbd.ops.params.fields import FIELDS
from limbd.ops.params.render import render, struct_name
from limbd.worker.device.base import Backend

W = 2**32
ROW = 40
CASES = 60

NAMED = {field.name: field for field in FIELDS}


def odd(name: str, modulus: int) -> Field:
    """No proof of primality is needed: nothing here inverts but modulo powers of two."""
    return Field(0x7F70, name, modulus, "a test")


# The largest moduli that leave two bits and one; more limbs because all bits are taken; other lengths; short ones.
MODULI = (
    *(NAMED[name] for name in ("bn254_fr", "bls12_381_fr", "goldilocks", "toy_97")),
    odd("two_spare_bits", 2**254 - 129 * 2**224 + 0x17F),
    odd("one_spare_bit", 2**255 - 257 * 2**224 - 19),
    odd("no_spare_bit", 2**255 - 19),
    odd("full", 2**256 - 43 * 2**32 + 1),
    odd("four_limbs", 2**126 - 129 * 2**96 - 137),
    odd("six_limbs", 2**190 + 5),
    odd("exact_most", (2**16 - 1) * 2**224 + 1),
    odd("exact_least", 2**16 * 2**224 + 1),
    odd("ones", 2**253 - 1),
)
EVERY = pytest.mark.parametrize("field", MODULI, ids=lambda field: field.name)


class Case:
    """A modulus, the bounds of its lazy values, and how its operands are drawn. r, e: W^N and W^(N-1); c: K = c m."""

    def __init__(self, field: Field) -> None:
        self.field = roomy(field)
        self.m, self.n = self.field.modulus, self.field.montgomery_limbs
        self.r, self.e = 1 << 32 * self.n, 1 << 32 * (self.n - 1)
        self.c = 2 if fits(self.field, 4, SLACK) else 1
        self.slack = 0 if self.m // self.e < 2**16 else 64
        text = f"{render(self.field)}using FIELD = {struct_name(self.field)};\n"
        operation = (Member("operation", "u32"),)
        self.check = LayerCheck("constant_product_check", ("x", "y"), operation, {}, ROW, params=text)

    def forms(self) -> Iterator[tuple[int, int, int]]:
        """Parts (0: Shoup's), bound and slack of the forms that this field can take."""
        if fits(self.field, 2, 4):
            yield 0, 2, 4
        for parts in range(1, min(4, self.n) + 1):
            bound, slack = (parts, 1) if -(-self.n // parts) * parts > self.n else (parts + 1, 0)
            if fits(self.field, bound, slack):
                yield parts, bound, slack

    def any(self, rng: random.Random) -> int:
        half = W ** -(-self.n // 2)
        corners = [0, 1, self.m - 1, self.m, self.m + 1, 2 * self.m, self.r - 1, self.r - 2, self.r // 2]
        corners += [self.r - self.r % self.m, half - 1, self.r - half, half]
        return (rng.choice(corners), hard_integer(rng, self.n), rng.randrange(self.r))[rng.randrange(3)] % self.r

    def residue(self, rng: random.Random) -> int:
        corners = (0, 1, self.m - 1, self.m - 2, self.r % self.m, pow(self.r, -1, self.m))
        return (rng.choice(corners), hard_integer(rng, self.n), rng.randrange(self.m))[rng.randrange(3)] % self.m

    def below(self, rng: random.Random, multiple: int, slack: int) -> int:
        """Below multiple m + slack e; the ends, and what lies about K's top limb."""
        bound, k = multiple * self.m + slack * self.e, self.c * self.m
        corners = [0, 1, bound - 1, bound - 2, self.m, k, k - 1, k + slack * self.e - 1]
        corners += [k // self.e * self.e, (k // self.e + 1) * self.e - 1, (k // self.e + 1) * self.e]
        return (rng.choice(corners) if rng.randrange(2) else rng.randrange(bound)) % bound

    def run(self, backend: Backend, operation: int, xs: Sequence[int], ys: Sequence[int]) -> list[int]:
        return self.check.run(backend, {"x": xs, "y": ys}, {"operation": operation})


@EVERY
def test_products(field: Field, layers: Backend) -> None:
    """Of any x, within the form's own bound, and reduced."""
    case = Case(field)
    m = case.m
    for parts, bound, slack in case.forms():
        rng = random.Random(f"{field.name} {parts}")
        w = [case.residue(rng) for _ in range(CASES - 2)] + [pow(case.r, -1, m) * (m - 1) % m, m - 1]
        x = [case.any(rng) for _ in range(CASES - 4)] + [case.r - 1] * 4
        constants = [constant(case.field, v, parts) for v in w]
        for a, v, got in zip(x, w, case.run(layers, 10 * parts, x, constants), strict=True):
            assert (got - a * v) % m == 0 and got < bound * m + slack * case.e, (parts, hex(a), hex(v), hex(got))
        if bound <= 3 * case.c:
            limit = case.c * m + (max(1, slack) if case.slack else 0) * case.e
            for a, v, got in zip(x, w, case.run(layers, 10 * parts + 2, x, constants), strict=True):
                assert (got - a * v) % m == 0 and got < limit, (parts, hex(a), hex(v), hex(got))


@EVERY
def test_products_by_any_words(field: Field, layers: Backend) -> None:
    """Not only constants that belong to some w: any below m, the largest together."""
    case = Case(field)
    m = case.m
    for parts, bound, slack in case.forms():
        rng = random.Random(f"{field.name} {parts} any")
        x = [case.any(rng) for _ in range(CASES - 4)] + [case.r - 1] * 4
        free = [sum((m - 1 - rng.randrange(2) * rng.randrange(m)) * case.r**i for i in range(parts)) for _ in x]
        step = W ** -(-case.n // max(1, parts))
        for a, c, got in zip(x, free, case.run(layers, 10 * parts, x, free) if parts else (), strict=bool(parts)):
            total = sum((a // step**i % step) * (c // case.r**i % case.r) for i in range(parts))
            assert (got * step - total) % m == 0 and got < bound * m + slack * case.e, (parts, hex(a), hex(c))


@EVERY
def test_prepared_constants(field: Field, layers: Backend) -> None:
    case = Case(field)
    for parts, _, _ in case.forms():
        rng = random.Random(f"{field.name} {parts} prepare")
        w = [case.residue(rng) for _ in range(CASES)]
        got = case.run(layers, 10 * parts + 1, [case.field.montgomery(v) for v in w], [0] * CASES)
        assert got == [constant(case.field, v, parts) for v in w], parts


@EVERY
def test_sums(field: Field, layers: Backend) -> None:
    case = Case(field)
    m, c, e, slack = case.m, case.c, case.e, case.slack
    rng = random.Random(f"{field.name} sums")
    x, y = ([case.below(rng, c, slack) for _ in range(4 * CASES)] for _ in range(2))
    y[:8] = x[:8]
    assert case.run(layers, 50, x, y) == [a + b for a, b in zip(x, y, strict=True)]
    for a, b, got in zip(x, y, case.run(layers, 51, x, y), strict=True):
        assert (got - a + b) % m == 0 and got < (c + 1) * m, (hex(a), hex(b), hex(got))
    none = [0] * len(x)
    for s in (0, 1, 8, 128) if slack else (0,):
        x = [case.below(rng, 2 * c, s) for _ in x]
        for operation, bound, left in ((52, c, max(1, s) if slack else 0), (53, c, 1 if slack else 0), (54, 1, 0)):
            for a, got in zip(x, case.run(layers, operation, x, none), strict=True):
                assert (got - a) % m == 0 and got < bound * m + left * e, (operation, s, hex(a), hex(got))


def test_every_form_is_there() -> None:
    """Two spare bits and one, exact comparisons and by the top limb, and limbs added."""
    cases = [Case(field) for field in MODULI]
    assert {(case.c, bool(case.slack)) for case in cases} == {(2, True), (2, False), (1, True)}
    assert {case.n - field.limbs - field.limbs % 2 for case, field in zip(cases, MODULI, strict=True)} == {0, 2}
