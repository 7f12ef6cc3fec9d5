"""Seeded operands and moduli for tests, fuzzing and benchmarks: half of all operands are drawn from the edges."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass

from limbd.ops.params.base import LIMB_BITS, Field
from limbd.ops.params.fields import registered

# Where carries are born and die.
HARD_LIMBS = (0, 1, 2**31 - 1, 2**31, 2**31 + 1, 2**32 - 1)

PLAIN_BITS = 256


def tight_modulus(limbs: int, bits: int, step: int) -> int:
    """A modulus m for which the quotient that Barrett's method estimates for (m-1)^2 is as wrong as it can be: two short.

    With B = 2^(32 limbs), m = B - d and v = B + d + j, m v = B^2 + h where h = j B - d^2 - j d. Where h is small and
    not negative, the reciprocal floor((B^2 - 1) / m) = v - 1 loses almost a whole unit; a product just below m B with a
    tiny remainder (and (m-1)^2 leaves 1) adds what the truncated low limbs are worth. d is taken `step` below the
    largest with h >= 0, near 2^bits; 16 limbs < bits < 32 (limbs - 1) and step 4 or 5 (odd and even m) do it.
    """
    base = 1 << (LIMB_BITS * limbs)
    near = 1 << bits
    j = -(-near * near // (base - near))
    return base - ((math.isqrt(j * j + 4 * j * base) - j) // 2 - step)


# 1 and 2 are degenerate; even, powers of two and all-ones stress reduction; some have zero limbs in their middle;
# the last ones have quotients that are as far from their estimate as it gets.
SPECIAL_MODULI = (
    1,
    2,
    3,
    4,
    5,
    6,
    15,
    16,
    2**31 - 1,
    2**32 - 1,
    2**32,
    2**32 + 1,
    2**64 - 1,
    2**64,
    2**96 + 1,
    2**127 - 1,
    2**128,
    2**192 - 2**64 - 1,
    2**224,
    2**224 - 1,
    2**224 + 1,
    2**255,
    2**255 - 1,
    2**255 + 1,
    2**256 - 1,
    2**256 - 2,
    2**256 - 2**32,
    2**256 - 2**63,
    2**256 - 2**64,
    2**256 - 2**64 + 1,
    0xC0 << 248 | 1,
    1 << 255 | 1 << 64 | 1,
    0x80000000_00000000_FFFFFFFF_FFFFFFFF_00000000_00000000_FFFFFFFF_00000001,
    *(tight_modulus(limbs, 16 * limbs + 6, 4 + limbs % 2) for limbs in range(3, 9)),
    *(tight_modulus(8, bits, step) for bits, step in ((134, 5), (200, 4), (200, 5))),
)


def hard_integer(rng: random.Random, limbs: int = PLAIN_BITS // LIMB_BITS) -> int:
    """An integer of `limbs` limbs, each drawn from HARD_LIMBS."""
    return sum(rng.choice(HARD_LIMBS) << (LIMB_BITS * i) for i in range(limbs))


def edges(modulus: int, bits: int = PLAIN_BITS) -> tuple[int, ...]:
    """0, 1, m-1, m, m+1 and R mod m and their neighbours and multiples, as far as they fit `bits` bits."""
    r = (1 << bits) % modulus
    top = (1 << bits) - 1
    near = (0, 1, 2, modulus - 2, modulus - 1, modulus, modulus + 1, r, modulus - r, r * r % modulus)
    far = (2 * modulus - 1, 2 * modulus, top - top % modulus, top - top % modulus - 1, top, top - 1, 1 << (bits - 1))
    return tuple(sorted({value for value in (*near, *far) if 0 <= value <= top}))


def operands(rng: random.Random, modulus: int, n: int, bits: int = PLAIN_BITS) -> list[int]:
    """n operands below 2^bits: a quarter of them from hard limbs, a quarter from edges(), a quarter reduced, a quarter
    of any size."""
    corners = edges(modulus, bits)

    def draw() -> int:
        kind = rng.randrange(4)
        if kind == 0:
            return hard_integer(rng, bits // LIMB_BITS)
        if kind == 1:
            return rng.choice(corners)
        return rng.randrange(modulus) if kind == 2 else rng.getrandbits(bits)

    return [draw() for _ in range(n)]


def ones(modulus: int) -> list[int]:
    """1 and -1 mod m."""
    return [1 % modulus, -1 % modulus]


def powers_of_two(modulus: int) -> list[int]:
    """2^k and -2^k mod m for every k below its length in bits."""
    powers = [(1 << k) % modulus for k in range(modulus.bit_length())]
    return [*powers, *(-power % modulus for power in powers)]


# What a measured batch can be drawn from, besides all values below the modulus.
UNIFORM = "uniform"
STRUCTURED: dict[str, Callable[[int], list[int]]] = {"ones": ones, "powers-of-two": powers_of_two}


def modulus_of_bits(rng: random.Random, bits: int) -> int:
    """A random modulus of exactly `bits` bits; every second one has hard limbs below its top bit."""
    below = bits - 1
    rest = rng.getrandbits(below) if rng.randrange(2) else hard_integer(rng) & ((1 << below) - 1)
    return 1 << below | rest


@dataclass(frozen=True)
class Residues:
    """What a batch is computed modulo. field: asked for by its parameters; None: the modulus stands in the payload.

    param: the request's param word. domain: numbers that stand before the operands in the payload (a transform's own omega
    and shift).
    """

    modulus: int
    field: Field | None = None
    param: int = 0
    domain: tuple[int, ...] = ()

    @property
    def bits(self) -> int:
        """Bits of an element on the wire."""
        return PLAIN_BITS if self.field is None else 8 * self.field.element_bytes


def known_residues() -> tuple[Residues, ...]:
    """SPECIAL_MODULI and every registered field, toys too: by its parameters, and in the payload where it fits."""
    special = tuple(Residues(modulus) for modulus in SPECIAL_MODULI)
    named = tuple(Residues(field.modulus, field) for field in registered())
    plain = tuple(Residues(field.modulus) for field in registered() if field.bits <= PLAIN_BITS)
    return tuple(dict.fromkeys((*special, *named, *plain)))


def residues_at(seed: str, index: int) -> Residues:
    """The index-th of an endless stream, without those before it: known_residues() in random order, each once, then a
    random modulus of every bit length 1..256 in random order, over and over."""
    known = known_residues()
    if index < len(known):
        order = random.Random(f"{seed} known").sample(range(len(known)), len(known))
        return known[order[index]]
    lap, place = divmod(index - len(known), PLAIN_BITS)
    lengths = random.Random(f"{seed} lap {lap}").sample(range(1, PLAIN_BITS + 1), PLAIN_BITS)
    return Residues(modulus_of_bits(random.Random(f"{seed} {index}"), lengths[place]))
