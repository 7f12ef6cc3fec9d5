"""The runnable explanation of the inversion on one warp, against gmpy2; its own assertions check every bound on the way."""

from __future__ import annotations

import random
from functools import cache

import gmpy2
import pytest

from limbd.harness.inputs import SPECIAL_MODULI, hard_integer, ones, operands, powers_of_two
from limbd.ops.reference import warp_inverse as model
from limbd.ops.reference.warp_inverse import NORMALISE_EVERY, Shape, Transition

SHAPES = (Shape(12, 2), Shape(11, 2), Shape(10, 2), Shape(8, 3))
EVERY_SHAPE = pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: f"{shape.steps}x{shape.lookups}")

ED25519 = 2**255 - 19


@cache
def table(steps: int) -> list[Transition]:
    return model.make_table(steps)


def expected(x: int, m: int) -> int | None:
    if m == 1:
        return 0
    return int(gmpy2.invert(x, m)) if gmpy2.gcd(x, m) == 1 else None


@EVERY_SHAPE
def test_inverses_of_reduced_and_unreduced_operands(shape: Shape) -> None:
    rng = random.Random(f"{shape}")
    for m in (m for m in (*SPECIAL_MODULI, 2**256 - 2**32 - 977, ED25519, 3**161) if m % 2):
        for x in [*operands(rng, m, 12), hard_integer(rng), 0, m, 2**256 - 1]:
            assert model.warp_inverse(x, m, table(shape.steps), shape)[0] == expected(x, m), (x, m)


@EVERY_SHAPE
def test_every_inverse_modulo_small_numbers(shape: Shape) -> None:
    for m in range(1, 24, 2):
        for x in range(2 * m + 2):
            assert model.warp_inverse(x, m, table(shape.steps), shape)[0] == expected(x, m), (x, m)


@EVERY_SHAPE
def test_how_many_batches(shape: Shape) -> None:
    """What the explanation says of usual and of structured operands; some of these are carried on their way."""
    rng = random.Random(f"{shape}")
    usual = [model.warp_inverse(rng.randrange(ED25519), ED25519, table(shape.steps), shape)[1] for _ in range(60)]
    assert max(usual) * shape.batch <= 26 * 24
    xs = [*ones(ED25519), *powers_of_two(ED25519)[::5]]
    structured = [model.warp_inverse(x, ED25519, table(shape.steps), shape) for x in xs]
    assert [inverse for inverse, _ in structured] == [expected(x, ED25519) for x in xs]
    most = max(batches for _, batches in structured)
    assert NORMALISE_EVERY < most <= 89
    if shape == Shape(12, 2):
        assert [batches for _, batches in structured[:2]] == [62, 70]


@EVERY_SHAPE
def test_every_entry_but_one_makes_the_numbers_smaller(shape: Shape) -> None:
    assert model.contraction(table(shape.steps), shape.steps, 1.55) <= 0.6315


def test_the_table_as_bytes() -> None:
    entries = table(8)
    for size in (2, 4):
        data = model.table_bytes(8, 4 * size)
        words = [int.from_bytes(data[at : at + size], "little", signed=True) for at in range(0, len(data), size)]
        assert words == [coefficient for entry in entries for coefficient in entry]
