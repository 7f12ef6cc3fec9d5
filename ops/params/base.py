"""A field as its chosen values; everything else is derived from them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

LIMB_BITS = 32


@dataclass(frozen=True)
class Field:
    """A residue field of integers modulo a prime.

    id: the wire's number (0x7F01 and up are toys). generator: of the multiplicative group's two-adic part as the wire
    defines its default roots of unity, or None where no transform is registered. source: where the values come from.
    """

    id: int
    name: str
    modulus: int
    source: str
    generator: int | None = None
    toy: bool = False

    @cached_property
    def bits(self) -> int:
        return self.modulus.bit_length()

    @cached_property
    def limbs(self) -> int:
        """32-bit limbs of the modulus."""
        return -(-self.bits // LIMB_BITS)

    @property
    def element_bytes(self) -> int:
        """Bytes of an element on the wire: 32, or 48 above 256 bits."""
        return 32 if self.bits <= 256 else 48
