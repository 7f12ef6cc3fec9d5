"""mod-add: a + b mod m, element by element."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from limbd.ops.base import LIMB_BYTES, Kernel, Launch, Member, Request, Struct, Traits, Unit
from limbd.ops.constants import barrett_any
from limbd.ops.modular import ModularOp
from limbd.ops.reference.mod_add import mod_add
from limbd.ops.tuning import tuning

MAX_BLOCK = 256


@cache
def unit(words: int) -> Unit:
    """The unit for elements, and moduli, of up to `words` limbs."""
    struct = Struct(
        "mod_add_args",
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
    return Unit("mod_add", (struct,), (("LIMBS", words),))


@dataclass(frozen=True)
class ModAdd(ModularOp):
    """One unit for every modulus; operands >= m go through the universal reducer of kernels/field/barrett.cuh."""

    def launch(self, request: Request, n: int, traits: Traits) -> Launch:
        words = request.element_bytes // LIMB_BYTES
        block = tuning(self.name, words, traits.arch).block
        compiled = unit(words)
        kernel = Kernel(compiled, "mod_add", compiled.structs[0], MAX_BLOCK)
        return Launch(kernel, -(-n // block), block, {"n": n, **barrett_any(request.modulus, words)})

    def reference(self, request: Request, result: memoryview) -> None:
        mod_add(request, result)


MOD_ADD = ModAdd(0x02, "mod-add", "a+b mod m", ("a", "b"))
