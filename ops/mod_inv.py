"""mod-inv: x^-1 mod m, one inversion an element; 0 where there is no inverse."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from limbd.ops.base import LIMB_BYTES, Kernel, Launch, Member, Request, Struct, Traits, Unit
from limbd.ops.constants import LIMB_BITS
from limbd.ops.modular import ModularOp
from limbd.ops.reference.mod_inv import mod_inv
from limbd.ops.tuning import tuning

# kernels/field/signed30.cuh: the limbs, and the bits that a modulus leaves free for the inverse on its way.
LIMB30_BITS = 30
HEADROOM_BITS = 6

MAX_BLOCK = 256

_ARRAYS = (Member("x", "in"), Member("out", "out"), Member("n", "u64"))


@cache
def unit(words: int) -> Unit:
    """The unit for elements, and moduli, of up to `words` limbs: one kernel for odd moduli, one for even ones."""
    count = limbs30(words)
    odd = (Member("modulus30", "limbs", count), Member("negated_inverse4", "u32"))
    structs = (
        Struct("mod_inv_odd_args", (*_ARRAYS, *odd)),
        Struct("mod_inv_even_args", (*_ARRAYS, Member("modulus", "limbs", words))),
    )
    return Unit("mod_inv", structs, (("LIMBS", words), ("LIMBS30", count)))


@dataclass(frozen=True)
class ModInv(ModularOp):
    """Operands >= m need no reduction here: the kernels take any x."""

    def launch(self, request: Request, n: int, traits: Traits) -> Launch:
        modulus, words = request.modulus, request.element_bytes // LIMB_BYTES
        block = tuning(self.name, words, traits.kind, traits.arch).block
        compiled = unit(words)
        if modulus % 2 == 1:
            kernel = Kernel(compiled, "mod_inv_odd", compiled.structs[0], MAX_BLOCK)
            values = odd_modulus(modulus, words)
        else:
            kernel = Kernel(compiled, "mod_inv_even", compiled.structs[1], MAX_BLOCK)
            values = {"modulus": modulus}
        return Launch(kernel, -(-n // block), block, {"n": n, **values})

    def reference(self, request: Request, result: memoryview) -> None:
        mod_inv(request, result)


def limbs30(words: int) -> int:
    """30-bit limbs that hold `words` 32-bit limbs and the headroom."""
    return -(-(LIMB_BITS * words + HEADROOM_BITS) // LIMB30_BITS)


def odd_modulus(modulus: int, words: int) -> dict[str, int]:
    """Members of a parameter struct for signed30.cuh's OddModulus: modulus30 (one 30-bit limb a word) and
    negated_inverse4 = 4 (-m^-1 mod 2^30). The modulus is odd."""
    mask = (1 << LIMB30_BITS) - 1
    limbs = (modulus >> LIMB30_BITS * i & mask for i in range(limbs30(words)))
    return {
        "modulus30": sum(limb << LIMB_BITS * i for i, limb in enumerate(limbs)),
        "negated_inverse4": 4 * (-pow(modulus, -1, 1 << LIMB30_BITS) & mask),
    }


MOD_INV = ModInv(0x05, "mod-inv", "x^-1 mod m, 0 where there is none", ("x",))
