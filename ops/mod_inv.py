"""mod-inv (0x05): x^-1 mod m, one inversion an element; 0 where there is no inverse."""

from __future__ import annotations

from functools import cache

from limbd.ops.base import LIMB_BYTES, Kernel, Launch, Member, Request, Struct, Traits, Unit
from limbd.ops.modular import ModularOp
from limbd.ops.params.base import LIMB_BITS
from limbd.ops.reference.mod_inv import mod_inv_elements
def block_size(name: str, traits: Traits) -> int:
    return 128

# kernels/field/signed30.cuh
LIMB30_BITS = 30

# Bits that a modulus in 30-bit limbs leaves free, for the inverse on its way (OddModulus in signed30.cuh).
HEADROOM_BITS = 6

MAX_BLOCK = 256


class ModInv(ModularOp):
    """Every modulus runs one of two kernels of one unit; there is one unit for each element width."""

    def launch(self, request: Request, n: int, traits: Traits) -> Launch:
        limbs = request.element_bytes // LIMB_BYTES
        block = block_size(self.name, traits)
        odd = request.modulus % 2 == 1
        values = odd_values(request.modulus, limbs) if odd else {"modulus": request.modulus}
        kernel = (odd_kernel if odd else even_kernel)(limbs)
        return Launch(kernel, -(-n // block), block, {"n": n, **values})

    def reference(self, request: Request, result: memoryview) -> None:
        mod_inv_elements(request.arrays["x"], request.modulus, result)


def limbs30(limbs: int) -> int:
    """30-bit limbs for an element of `limbs` 32-bit limbs and the headroom."""
    return -(-(limbs * LIMB_BITS + HEADROOM_BITS) // LIMB30_BITS)


def odd_values(modulus: int, limbs: int) -> dict[str, int]:
    """What mod_inv_odd needs to know of an odd modulus: its 30-bit limbs, one a word, and 4 (-m^-1 mod 2^30)."""
    mask = (1 << LIMB30_BITS) - 1
    words = sum((modulus >> LIMB30_BITS * i & mask) << LIMB_BITS * i for i in range(limbs30(limbs)))
    return {"modulus30": words, "negated_inverse4": 4 * (-pow(modulus, -1, 1 << LIMB30_BITS) & mask)}


@cache
def odd_kernel(limbs: int) -> Kernel:
    return Kernel(_unit(limbs), "mod_inv_odd", _odd_struct(limbs), MAX_BLOCK)


@cache
def even_kernel(limbs: int) -> Kernel:
    return Kernel(_unit(limbs), "mod_inv_even", _even_struct(limbs), MAX_BLOCK)


@cache
def _unit(limbs: int) -> Unit:
    return Unit("mod_inv", (_odd_struct(limbs), _even_struct(limbs)), (("LIMBS", limbs), ("LIMBS30", limbs30(limbs))))


def _odd_struct(limbs: int) -> Struct:
    modulus = (Member("modulus30", "limbs", limbs30(limbs)), Member("negated_inverse4", "u32"))
    return Struct("mod_inv_odd_args", (Member("x", "in"), Member("out", "out"), Member("n", "u64"), *modulus))


def _even_struct(limbs: int) -> Struct:
    modulus = Member("modulus", "limbs", limbs)
    return Struct("mod_inv_even_args", (Member("x", "in"), Member("out", "out"), Member("n", "u64"), modulus))


MOD_INV = ModInv(0x05, "mod-inv", "x^-1 mod m, 0 where there is none", ("x",))
