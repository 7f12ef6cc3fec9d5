"""mod-inv-batch: x^-1 mod m by Montgomery's trick, one inversion a block; 0 where there is no inverse."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from limbd.ops.base import LIMB_BYTES, Kernel, Launch, Member, Request, Struct, Traits, Unit
from limbd.ops.constants import LIMB_BITS, barrett_any, montgomery
from limbd.ops.mod_inv import MOD_INV, limbs30, odd_modulus
from limbd.ops.mod_mul import FOLD_BITS, FOLD_LIMIT
from limbd.ops.modular import ModularOp
from limbd.ops.params.fields import FIELDS
from limbd.ops.params.layout import PLAIN_LIMBS
from limbd.ops.reference.mod_inv_batch import mod_inv_batch
from limbd.ops.tuning import BatchRow, Storage, batch_tuning


class Product(IntEnum):
    """Which product of residues a unit is made for (kernels/entry/mod_inv_batch.cu has the same numbers)."""

    MONTGOMERY = 0
    FOLD = 1
    EVEN = 2


def product_of(modulus: int) -> Product:
    """The cheapest product for this modulus."""
    if modulus % 2 == 0:
        return Product.EVEN
    return Product.FOLD if 0 < (1 << FOLD_BITS) - modulus < FOLD_LIMIT else Product.MONTGOMERY


def unit(product: Product, words: int, row: BatchRow) -> Unit:
    """The unit for elements, and moduli, of up to `words` limbs (an even number)."""
    count = limbs30(words)
    odd = (Member("modulus30", "limbs", count), Member("negated_inverse4", "u32"))
    modulus = Member("modulus", "limbs", words)
    own: dict[Product, tuple[Member, ...]] = {
        Product.MONTGOMERY: (modulus, Member("one", "limbs", words), Member("n0inv", "u32"), *odd),
        Product.FOLD: (Member("complement", "limbs", 2), *odd),
        Product.EVEN: (
            modulus,
            Member("normalised", "limbs", words),
            Member("negated", "limbs", words + 1),
            Member("reciprocal", "limbs", words),
            Member("shift", "u32"),
        ),
    }
    arrays = (Member("x", "in"), Member("out", "out"), Member("n", "u64"), Member("elements", "u32"))
    constants = (
        ("LIMBS", words),
        ("LIMBS30", count),
        ("PRODUCT", int(product)),
        ("STORAGE", int(row.storage)),
        ("HELD", row.elements if row.storage == Storage.REGISTERS else 0),
        ("THREADS", row.block),
        ("RESIDENT", row.resident),
    )
    return Unit("mod_inv_batch", (Struct("mod_inv_batch_args", (*arrays, *own[product])),), constants)


@dataclass(frozen=True)
class ModInvBatch(ModularOp):
    """Small batches go to mod-inv's kernel, others to the batch kernel by the tuning row for their n."""

    def launch(self, request: Request, n: int, traits: Traits) -> Launch:
        row = batch_tuning(traits.kind, traits.arch).row(n)
        return MOD_INV.launch(request, n, traits) if row is None else launch_with(row, request, n, traits)

    def units(self, traits: Traits) -> tuple[Unit, ...]:
        """mod-inv's, and every product with every row; fields above 256 bits are odd, and not of fold's form."""
        rows = batch_tuning(traits.kind, traits.arch).rows
        shapes = [(product, PLAIN_LIMBS) for product in Product] + [(Product.MONTGOMERY, words) for words in _wide()]
        batched = (unit(product, words, row) for product, words in shapes for row in rows)
        return tuple(dict.fromkeys((*MOD_INV.units(traits), *batched)))

    def reference(self, request: Request, result: memoryview) -> None:
        mod_inv_batch(request, result)


def launch_with(row: BatchRow, request: Request, n: int, traits: Traits) -> Launch:
    """The batch kernel for n elements as one row of tuning says, whatever n: what a sweep over rows tries."""
    words = request.element_bytes // LIMB_BYTES
    product = product_of(request.modulus)
    compiled = unit(product, words, row)
    elements = share(row, n, traits.multiprocessors)
    kernel = Kernel(compiled, "mod_inv_batch", compiled.structs[0], row.block, synchronises=True)
    values = {"n": n, "elements": elements, **_constants(product, request.modulus, words)}
    shared = row.block * elements * request.element_bytes if row.storage == Storage.SHARED else 0
    return Launch(kernel, -(-n // (row.block * elements)), row.block, values, shared)


def share(row: BatchRow, n: int, multiprocessors: int) -> int:
    """Elements of a thread."""
    return max(1, min(row.elements, -(-n // (multiprocessors * row.resident * row.block))))


def _wide() -> tuple[int, ...]:
    """Limbs of the elements of registered fields above 256 bits."""
    words = {field.element_bytes // LIMB_BYTES for field in FIELDS}
    return tuple(sorted(words - {PLAIN_LIMBS}))


def _constants(product: Product, modulus: int, words: int) -> dict[str, int]:
    """The members of the unit's struct that depend on the modulus."""
    if product == Product.EVEN:
        values = barrett_any(modulus, words)
        return {**values, "negated": (1 << LIMB_BITS * (words + 1)) - values["normalised"]}
    inversion = odd_modulus(modulus, words)
    if product == Product.FOLD:
        return {"complement": (1 << FOLD_BITS) - modulus, **inversion}
    values = montgomery(modulus, words)
    return {name: values[name] for name in ("modulus", "one", "n0inv")} | inversion


MOD_INV_BATCH = ModInvBatch(0x0A, "mod-inv-batch", "x^-1 mod m for many x at once, 0 where there is none", ("x",))
