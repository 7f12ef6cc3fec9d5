"""A field as its chosen values; everything else is derived from them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

LIMB_BITS = 32

# The widest element on the wire is 48 bytes (wire.md section 4).
MAX_FIELD_BITS = 384


@dataclass(frozen=True)
class Field:
    """A residue field of integers modulo a prime.

    id: the wire's number (0x7F01 and up are toys). generator: of the multiplicative group's two-adic part as the wire
    defines its default roots of unity, or None where no transform is registered. source: where the values come from.

    Nothing is checked here, so that a test can hold a wrong field; limbd.ops.params.check does it at registration.
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

    # --- Montgomery form -------------------------------------------------------------------------------------------

    @cached_property
    def montgomery_limbs(self) -> int:
        """Limbs of an element in Montgomery form: an even number, because the kernels' products go by pairs of limbs."""
        return self.limbs + self.limbs % 2

    @cached_property
    def r(self) -> int:
        """R = 2^(32 montgomery_limbs) mod p: the Montgomery form of 1."""
        return (1 << (LIMB_BITS * self.montgomery_limbs)) % self.modulus

    @cached_property
    def r2(self) -> int:
        """R^2 mod p: a Montgomery product by it brings a plain integer into Montgomery form."""
        return self.r * self.r % self.modulus

    @cached_property
    def n0inv(self) -> int:
        """-p^-1 mod 2^32."""
        return -pow(self.modulus, -1, 1 << LIMB_BITS) % (1 << LIMB_BITS)

    def montgomery(self, value: int) -> int:
        """value * R mod p."""
        return value * self.r % self.modulus

    # --- roots of unity --------------------------------------------------------------------------------------------

    @cached_property
    def two_adicity(self) -> int:
        """The largest k with 2^k | p - 1."""
        order = self.modulus - 1
        return (order & -order).bit_length() - 1

    def omega(self, k: int) -> int:
        """The default root of unity of exact order 2^k: generator^((p - 1) / 2^k).

        Raises ValueError where no generator is registered, or k is not in 0..two_adicity.
        """
        if self.generator is None:
            raise ValueError(f"{self.name} has no registered generator")
        if not 0 <= k <= self.two_adicity:
            raise ValueError(f"{self.name}: no root of order 2^{k}, the two-adicity is {self.two_adicity}")
        return pow(self.generator, (self.modulus - 1) >> k, self.modulus)
