"""What mod-add and mod-sub have in common: one unit for every modulus, named by the op's stem."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from limbd.ops.base import LIMB_BYTES, Kernel, Launch, Member, Request, Struct, Traits, Unit
from limbd.ops.constants import barrett_any
from limbd.ops.modular import ModularOp
from limbd.ops.tuning import tuning

MAX_BLOCK = 256


@cache
def unit(stem: str, words: int) -> Unit:
    """The op's unit for elements, and moduli, of up to `words` limbs."""
    struct = Struct(
        f"{stem}_args",
        (
            Member("a", "in"),
            Member("b", "in"),
            Member("out", "out"),
            Member("n", "u64"),
            Member("modulus", "limbs", words),
            Member("normalised", "limbs", words),
            Member("reciprocal", "limbs", words),
            Member("shift", "u32"),
        ),
    )
    return Unit(stem, (struct,), (("LIMBS", words),))


@dataclass(frozen=True)
class AdditiveOp(ModularOp):
    """Operands >= m go through the universal reducer of kernels/field/barrett.cuh."""

    def launch(self, request: Request, n: int, traits: Traits) -> Launch:
        words = request.element_bytes // LIMB_BYTES
        block = tuning(self.name, words, traits.kind, traits.arch).block
        compiled = unit(self.stem, words)
        kernel = Kernel(compiled, self.stem, compiled.structs[0], MAX_BLOCK)
        return Launch(kernel, -(-n // block), block, {"n": n, **barrett_any(request.modulus, words)})
