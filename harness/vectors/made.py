"""The vectors that this project makes itself: edges and seeded operands over chosen moduli, for every op."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import product

from limbd.harness.inputs import SPECIAL_MODULI, edges, hard_integer, modulus_of_bits, operands
from limbd.harness.vectors import Vectors
from limbd.harness.vectors.peers import OPERANDS, agreed, as_arrays
from limbd.ops.base import LIMB_BYTES
from limbd.ops.params.base import LIMB_BITS, Field
from limbd.ops.params.fields import FIELDS
from limbd.ops.params.layout import PLAIN_LIMBS, from_ints

SEED = "limbd vectors 1"

# Rows beyond the edges; the edges matter more, and fuzzing draws any number of the others.
SEEDED_ROWS = 8

PLAIN_BITS = LIMB_BITS * PLAIN_LIMBS

Rows = list[list[int]]


def plain_batches(op: str) -> Iterator[Vectors]:
    """One batch for each chosen modulus, with the modulus in the payload."""
    for name, modulus in chosen_moduli():
        rng = random.Random(f"{SEED} {op} {name}")
        yield make(op, "made", name, modulus, cases(rng, op, modulus, SEEDED_ROWS, PLAIN_BITS))


def field_batches(field: Field) -> list[Vectors]:
    """One batch for each op, by the field's parameters."""
    bits = 8 * field.element_bytes
    batches = []
    for op in OPERANDS:
        rng = random.Random(f"{SEED} {op} {field.name}")
        batches.append(
            make(op, "made", field.name, field.modulus, cases(rng, op, field.modulus, SEEDED_ROWS, bits), field)
        )
    return batches


def chosen_moduli() -> list[tuple[str, int]]:
    """Fields that fit 256 bits, the special moduli, and random ones of the bit lengths around each limb boundary."""
    rng = random.Random(f"{SEED} moduli")
    lengths = [bits + step for bits in range(LIMB_BITS, PLAIN_BITS + 1, LIMB_BITS) for step in (-1, 0, 1)]
    named = [(field.name, field.modulus) for field in FIELDS if field.bits <= PLAIN_BITS and not field.toy]
    special = [(f"special_{at}", modulus) for at, modulus in enumerate(SPECIAL_MODULI)]
    sized = [(f"bits_{bits}", modulus_of_bits(rng, bits)) for bits in lengths if bits <= PLAIN_BITS]
    return [*named, *special, *sized]


def cases(rng: random.Random, op: str, modulus: int, count: int, bits: int) -> Rows:
    """One list for each operand: the op's own edges, then `count` seeded rows."""
    rows: list[tuple[int, ...]]
    if op == "mod-exp":
        rows = list(_power_edges(rng, modulus, bits))
    elif len(OPERANDS[op]) == 2:
        corners = (0, 1, modulus - 1, modulus, (1 << bits) - 1)
        rows = list(product(corners, corners))
    else:
        rows = [(x,) for x in edges(modulus, bits)]
    columns = [list(column) for column in zip(*rows, strict=True)]
    return [column + operands(rng, modulus, count, bits) for column in columns]


def make(op: str, source: str, name: str, modulus: int, rows: Rows, field: Field | None = None) -> Vectors:
    """Answers by both definitions; raises peers.Disagreement where they differ."""
    limbs = field.element_bytes // LIMB_BYTES if field else PLAIN_LIMBS
    expected = from_ints(agreed(op, modulus, rows), limbs)
    return Vectors(op, source, name, modulus, limbs * LIMB_BYTES, as_arrays(op, rows, limbs), expected, field)


def _power_edges(rng: random.Random, modulus: int, bits: int) -> Iterator[tuple[int, int]]:
    """0^0 and its neighbours; every edge base with every edge exponent that differ in what they exercise."""
    top = (1 << bits) - 1
    bases = (0, 1, 2, modulus - 1, modulus, top)
    exponents = (0, 1, 2, modulus - 1, modulus, top)
    yield from product(bases, exponents)
    for exponent in (3, 0x10001, 1 << (bits - 1), 0xF0F0F0F0, 1 << LIMB_BITS, hard_integer(rng)):
        yield rng.randrange(modulus), exponent
