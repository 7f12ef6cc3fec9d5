"""Sums of products with one reduction (kernels/field/prime_sums.cuh) against Python's integers, at the ends of the ranges that
they allow: on the host, as interpreted PTX and (marked gpu) on the device, with range checks compiled in."""

from __future__ import annotations

import random

import pytest

from limbd.harness.inputs import hard_integer
from limbd.harness.layer_check import LayerCheck
from limbd.ops.params.base import LIMB_BITS, Field
from limbd.ops.params.fields import FIELDS
from limbd.ops.params.render import render, struct_name
from limbd.worker.device.base import Backend

CASES = 60

NAMED = {field.name: field for field in FIELDS}


def below(name: str, share: tuple[int, int], limbs: int) -> Field:
    """Of limbs that are full but for the top one, which is as high as m <= share R allows. No proof of primality is needed:
    nothing here inverts but modulo powers of two."""
    numerator, denominator = share
    unit = 1 << LIMB_BITS * (limbs - 1)
    return Field(0x7F73, name, (numerator << LIMB_BITS) // denominator * unit - 1, "a test")


# Where the value needs a word more, and where it has to be brought down once more: 1/8, 3/16 and 1/5 end the ranges of 2m's
# that are taken off, 1/9 that of sums of four without a word above.
MODULI = (
    *(NAMED[name] for name in ("toy_7", "bn254_fp", "bls12_381_fp")),
    *(
        below(f"most_{n}_{d}_{limbs}", (n, d), limbs)
        for n, d in ((1, 9), (1, 8), (3, 16), (1, 5))
        for limbs in (2, 8, 12)
    ),
)
EVERY = pytest.mark.parametrize("field", MODULI, ids=lambda field: field.name)


def check_of(field: Field, products: int) -> LayerCheck:
    text = f"{render(field)}using FIELD = {struct_name(field)};\n"
    constants = {"P": products}
    return LayerCheck("prime_sums_check", ("x", "y"), (), constants, 4 * field.montgomery_limbs, params=text)


def factor(rng: random.Random, field: Field) -> int:
    """At most 2m."""
    m = field.modulus
    corners = (0, 1, m - 1, m, m + 1, 2 * m - 1, 2 * m)
    drawn = (hard_integer(rng, field.montgomery_limbs) % (2 * m), rng.randrange(2 * m))
    return rng.choice(corners) if rng.randrange(2) else rng.choice(drawn)


@EVERY
@pytest.mark.parametrize("products", [2, 4])
def test_sums_of_products(layers: Backend, field: Field, products: int) -> None:
    m, width = field.modulus, LIMB_BITS * field.montgomery_limbs
    rng = random.Random(f"{field.name} {products}")
    cases = [[[factor(rng, field) for _ in range(products)] for _ in range(CASES)] for _ in range(2)]
    for side in cases:
        side += [[value] * products for value in (0, m, 2 * m - 1, 2 * m)]
    x, y = ([sum(value << width * i for i, value in enumerate(row)) for row in side] for side in cases)
    got = check_of(field, products).run(layers, {"x": x, "y": y}, {})
    for a, b, r in zip(*cases, got, strict=True):
        total = sum(u * v for u, v in zip(a, b, strict=True))
        assert r < 2 * m and ((r << width) - total) % m == 0, (a, b)


@EVERY
def test_opposites(layers: Backend, field: Field) -> None:
    m = field.modulus
    x = [0, 1, m - 1, m, m + 1, 2 * m - 1]
    assert check_of(field, 0).run(layers, {"x": x, "y": x}, {}) == [2 * m - value for value in x]
