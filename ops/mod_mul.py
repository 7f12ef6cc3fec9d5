"""mod-mul: a b mod m, element by element."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from limbd.ops.base import LIMB_BYTES, Kernel, Launch, Member, Request, Struct, Traits, Unit
from limbd.ops.constants import LIMB_BITS, barrett, limbs_of_modulus
from limbd.ops.modular import ModularOp
from limbd.ops.reference.mod_mul import mod_mul
from limbd.ops.tuning import tuning

MAX_BLOCK = 256

# kernels/field/fold.cuh: m = 2^256 - c with such c; MONIC is true for those of the second range.
FOLD_BITS = 256
FOLD_COMPLEMENTS = range(1, 1 << 64)
MONIC_COMPLEMENTS = range(1 << 32, 3 << 31)

FOLD_STRUCT = Struct(
    "mod_mul_fold_args",
    (Member("a", "in"), Member("b", "in"), Member("out", "out"), Member("n", "u64"), Member("complement", "limbs", 2)),
)


@cache
def fold_kernel(monic: bool) -> Kernel:
    """The kernel for moduli 2^256 - c, c monic or not."""
    compiled = Unit("mod_mul_fold", (FOLD_STRUCT,), (("MONIC", int(monic)),))
    return Kernel(compiled, "mod_mul_fold", FOLD_STRUCT, MAX_BLOCK)


@cache
def unit(limbs: int, words: int) -> Unit:
    """The unit for moduli of exactly `limbs` limbs and elements of `words` limbs."""
    struct = Struct(
        "mod_mul_args",
        (
            Member("a", "in"),
            Member("b", "in"),
            Member("out", "out"),
            Member("n", "u64"),
            Member("modulus", "limbs", limbs),
            Member("negated", "limbs", limbs + 1),
            Member("reciprocal", "limbs", limbs),
            Member("shift", "u32"),
        ),
    )
    return Unit("mod_mul", (struct,), (("LIMBS", limbs), ("WORDS", words)))


@dataclass(frozen=True)
class ModMul(ModularOp):
    """Barrett reduction for every modulus, one compile unit for each number of its limbs; folding for 2^256 - c."""

    def launch(self, request: Request, n: int, traits: Traits) -> Launch:
        limbs = limbs_of_modulus(request.modulus)
        block = tuning(self.name, limbs, traits.kind, traits.arch).block
        grid = -(-n // block)
        complement = (1 << FOLD_BITS) - request.modulus
        if complement in FOLD_COMPLEMENTS:
            kernel = fold_kernel(complement in MONIC_COMPLEMENTS)
            return Launch(kernel, grid, block, {"n": n, "complement": complement})
        compiled = unit(limbs, request.element_bytes // LIMB_BYTES)
        name = "mod_mul_full" if request.modulus.bit_length() == LIMB_BITS * limbs else "mod_mul"
        kernel = Kernel(compiled, name, compiled.structs[0], MAX_BLOCK)
        return Launch(kernel, grid, block, {"n": n, **barrett(request.modulus, limbs)})

    def reference(self, request: Request, result: memoryview) -> None:
        mod_mul(request, result)


MOD_MUL = ModMul(0x01, "mod-mul", "a*b mod m", ("a", "b"))
