"""What a benchmark's operands are: uniform below the modulus, or with one element in every block that has no inverse."""

from __future__ import annotations

import dataclasses

import numpy as np

from limbd.harness.inputs import UNIFORM
from limbd.harness.textio import InputError
from limbd.ops.base import Limbs, Request, Traits
from limbd.ops.mod_inv_batch import MOD_INV_BATCH, block_elements
from limbd.ops.params.base import LIMB_BITS
from limbd.ops.params.layout import from_ints

ZERO, NON_UNIT = PER_BLOCK = ("zero-per-block", "non-unit-per-block")
KINDS = (UNIFORM, *PER_BLOCK)

# Odd factors below this are looked for: products with their powers of 2^32 fit 64 bits, eight or twelve of them too.
FACTOR_LIMIT = 1 << 16

# 65521 is the largest prime below FACTOR_LIMIT, the other factor a prime near 2^240: all but one of 65521 uniform
# operands have an inverse.
COMPOSITE = 65521 * ((1 << 240) - 467)


def place(request: Request, kind: str, traits: Traits, seed: int) -> int | None:
    """Makes one element of each block of uniform operands 0, or a multiple of a factor of the modulus, at a place of its
    own; of that factor no other element is a multiple then. Blocks are those of mod-inv-batch's plan for as many elements
    on such a device, whole, whichever op is asked; the whole batch where that plan has none.

    Returns the elements of a block, None for operands of another kind. Raises InputError where the op inverts nothing, or no odd
    factor of the modulus is found.
    """
    if kind not in PER_BLOCK:
        return None
    if tuple(request.arrays) != MOD_INV_BATCH.operands:
        raise InputError(f"{kind}: {request.op.name} inverts nothing")
    x = request.arrays["x"]
    generator = np.random.Generator(np.random.Philox([seed, 1]))
    every = _block(request, traits)
    starts = np.arange(0, request.n, every)
    rows = starts + generator.integers(0, np.minimum(every, request.n - starts))
    if kind == ZERO:
        x[rows] = 0
        return every
    factor = odd_factor(request.modulus)
    x[_multiples(x, factor), 0] ^= np.uint32(1)
    most = min(request.modulus // factor, 1 << 62)
    x[rows] = from_ints((factor * int(k) for k in generator.integers(1, most, len(rows))), x.shape[1])
    return every


def odd_factor(modulus: int) -> int:
    """The smallest odd prime factor. Raises InputError where there is none below FACTOR_LIMIT, or nothing else is left."""
    found = next((d for d in range(3, FACTOR_LIMIT, 2) if modulus % d == 0), modulus)
    if found == modulus:
        raise InputError(
            f"{NON_UNIT}: {modulus:#x} is no multiple of an odd number below {FACTOR_LIMIT}; {COMPOSITE:#x} is"
        )
    return found


def _block(request: Request, traits: Traits) -> int:
    asked = dataclasses.replace(request, op=MOD_INV_BATCH)
    return block_elements(MOD_INV_BATCH.plan(asked, dataclasses.replace(traits, whole=True))) or request.n


def _multiples(x: Limbs, factor: int) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Which rows are multiples of an odd factor below FACTOR_LIMIT: x ^ 1 is none then."""
    weights = np.array([pow(2, LIMB_BITS * i, factor) for i in range(x.shape[1])], dtype=np.uint64)
    residues = (x % np.uint32(factor)).astype(np.uint64) @ weights
    multiples: np.ndarray[tuple[int], np.dtype[np.bool_]] = residues % np.uint64(factor) == 0
    return multiples
