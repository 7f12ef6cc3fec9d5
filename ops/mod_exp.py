"""mod-exp: a^e mod m, element by element; the exponent is a plain integer and is never reduced."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from limbd.ops.base import LIMB_BYTES, Kernel, Launch, Member, Request, Struct, Traits, Unit
from limbd.ops.constants import LIMB_BITS, barrett, limbs_of_modulus, montgomery
from limbd.ops.modular import ModularOp
from limbd.ops.reference.mod_exp import mod_exp
from limbd.ops.tuning import tuning

_ARRAYS = (Member("a", "in"), Member("e", "in"), Member("out", "out"), Member("n", "u64"))


@cache
def odd_unit(limbs: int, words: int, threads: int) -> Unit:
    """The unit for odd moduli of up to `limbs` limbs (an even number); threads: the largest block."""
    constants = tuple(Member(name, "limbs", limbs) for name in ("modulus", "r2", "one"))
    struct = Struct("mod_exp_args", (*_ARRAYS, *constants, Member("n0inv", "u32")))
    return Unit("mod_exp", (struct,), (("LIMBS", limbs), ("WORDS", words), ("THREADS", threads)))


@cache
def even_unit(limbs: int, words: int, threads: int) -> Unit:
    """The unit for moduli of exactly `limbs` limbs by Barrett reduction; threads: the largest block."""
    constants = (
        Member("modulus", "limbs", limbs),
        Member("negated", "limbs", limbs + 1),
        Member("reciprocal", "limbs", limbs),
        Member("one", "limbs", limbs),
        Member("shift", "u32"),
    )
    struct = Struct("mod_exp_even_args", (*_ARRAYS, *constants))
    return Unit("mod_exp_even", (struct,), (("LIMBS", limbs), ("WORDS", words), ("THREADS", threads)))


@dataclass(frozen=True)
class ModExp(ModularOp):
    """Fixed windows of 4 bits: Montgomery products for odd moduli, Barrett reduction for even ones."""

    def launch(self, request: Request, n: int, traits: Traits) -> Launch:
        modulus, words = request.modulus, request.element_bytes // LIMB_BYTES
        limbs = limbs_of_modulus(modulus)
        block = tuning(self.name, limbs, traits.kind, traits.arch).block
        if modulus % 2 == 1:
            limbs += limbs % 2
            compiled = odd_unit(limbs, words, block)
            name, values = "mod_exp", montgomery(modulus, limbs)
        else:
            compiled = even_unit(limbs, words, block)
            name = "mod_exp_even_full" if modulus.bit_length() == LIMB_BITS * limbs else "mod_exp_even"
            values = {**barrett(modulus, limbs), "one": 1}
        kernel = Kernel(compiled, name, compiled.structs[0], block)
        return Launch(kernel, -(-n // block), block, {"n": n, **values})

    def reference(self, request: Request, result: memoryview) -> None:
        mod_exp(request, result)


MOD_EXP = ModExp(0x04, "mod-exp", "a^e mod m", ("a", "e"))
