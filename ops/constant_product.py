"""Products by constants that are known beforehand, as kernels/field/constant_product.cuh takes them: which form a field's
constants have, and the constants themselves."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property

from limbd.ops.params.base import LIMB_BITS, Field

# The spare part of W^N that sums of lazy values need, in units of W^(N - 1) (kernels/field/lazy.cuh: 256 E).
SLACK = 256


def fits(field: Field, multiple: int, slack: int) -> bool:
    """Whether multiple m + slack W^(N - 1) stays inside N limbs, told from the top limb alone as the kernels do."""
    return (_top(field) + 1) * multiple + slack <= 1 << LIMB_BITS


@dataclass(frozen=True)
class WideField(Field):
    """A field in two limbs more than it needs."""

    @cached_property
    def montgomery_limbs(self) -> int:
        return self.limbs + self.limbs % 2 + 2


@cache
def roomy(field: Field) -> Field:
    """The field in as many limbs as lazy sums need: two more where the modulus fills its own."""
    if fits(field, 2, SLACK):
        return field
    return WideField(field.id, field.name, field.modulus, field.source, field.generator, field.toy)


@dataclass(frozen=True)
class Constants:
    """Constants of a roomy field. Parts: of Montgomery's product cut apart (2, or 4 for roots); 0 is Shoup's product."""

    field: Field

    @property
    def twiddle_parts(self) -> int:
        return 2 if fits(self.field, 4, SLACK) else 0

    @property
    def root_parts(self) -> int:
        """Of the few constants of a transform itself, which can be longer."""
        longer = self.field.montgomery_limbs >= 4 and fits(self.field, 5, 0)
        return 4 if self.twiddle_parts and longer else self.twiddle_parts

    @property
    def twiddle_words(self) -> int:
        return 2 * self.field.montgomery_limbs

    @property
    def root_words(self) -> int:
        return (self.root_parts or 2) * self.field.montgomery_limbs

    def root(self, w: int) -> int:
        """The stored constant of w as one integer."""
        return constant(self.field, w, self.root_parts)

    def roots(self, values: tuple[int, ...]) -> int:
        """Several, one after the other."""
        return sum(self.root(w) << LIMB_BITS * self.root_words * i for i, w in enumerate(values))


def constant(field: Field, w: int, parts: int) -> int:
    """What Split<M, parts>::prepare stores for w, or Shoup<M>'s for parts = 0, as one integer."""
    limbs, m = field.montgomery_limbs, field.modulus
    if parts == 0:
        return w | (w << LIMB_BITS * limbs) // m << LIMB_BITS * limbs
    step = LIMB_BITS * -(-limbs // parts)
    return sum((w << step * (i + 1)) % m << LIMB_BITS * limbs * i for i in range(parts))


def _top(field: Field) -> int:
    return field.modulus >> LIMB_BITS * (field.montgomery_limbs - 1)
