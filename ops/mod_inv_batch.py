"""mod-inv-batch: x^-1 mod m by Montgomery's trick, one inversion a block; 0 where there is no inverse."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntEnum
from functools import cache

from limbd.ops.base import LIMB_BYTES, Kernel, Launch, LaunchPlan, Member, Request, Struct, Traits, Unit
from limbd.ops.constants import LIMB_BITS, barrett_any, montgomery
from limbd.ops.mod_inv import MOD_INV, limbs30, odd_modulus
from limbd.ops.mod_mul import FOLD_BITS, FOLD_COMPLEMENTS, MONIC_COMPLEMENTS
from limbd.ops.modular import ModularOp
from limbd.ops.params.fields import FIELDS
from limbd.ops.params.layout import PLAIN_LIMBS
from limbd.ops.reference.mod_inv_batch import mod_inv_batch
from limbd.ops.reference.warp_inverse import ENTRY_BYTES, table_bytes
from limbd.ops.split import elementwise_plan
from limbd.ops.tuning import BatchRow, Storage, all_batch_tuned_for, batch_tuning

NAME = "mod_inv_batch"

# Threads of a multiprocessor at which elements above 256 bits, and even moduli, do without spills.
WIDE_THREADS = 384
EVEN_THREADS = 512

TABLE_WORD = 4


class Product(IntEnum):
    """Which product of residues a unit is made for (kernels/entry/mod_inv_batch.cu has the same numbers)."""

    MONTGOMERY = 0
    FOLD = 1
    EVEN = 2
    FOLD_MONIC = 3


def product_of(modulus: int) -> Product:
    """The cheapest product for this modulus."""
    if modulus % 2 == 0:
        return Product.EVEN
    complement = (1 << FOLD_BITS) - modulus
    if complement in MONIC_COMPLEMENTS:
        return Product.FOLD_MONIC
    return Product.FOLD if complement in FOLD_COMPLEMENTS else Product.MONTGOMERY


def unit(product: Product, words: int, row: BatchRow) -> Unit:
    """The unit for elements, and moduli, of up to `words` limbs (an even number)."""
    count = limbs30(words)
    steps = lookup_steps(product, words, row)
    modulus, n0inv = Member("modulus", "limbs", words), Member("n0inv", "u32")
    odd = (Member("modulus30", "limbs", count), Member("negated_inverse4", "u32"))
    by_warp = (modulus, n0inv) if steps else ()
    folding = (*by_warp, Member("complement", "limbs", 2), *odd)
    own: dict[Product, tuple[Member, ...]] = {
        Product.MONTGOMERY: (modulus, n0inv, Member("one", "limbs", words), *odd),
        Product.FOLD: folding,
        Product.FOLD_MONIC: folding,
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
        ("HELD", row.elements if row.storage == Storage.REGISTERS else 1),
        ("THREADS", row.block),
        ("RESIDENT", resident(product, words, row)),
        ("STEPS", steps),
    )
    return Unit(NAME, (Struct(f"{NAME}_args", (*arrays, *own[product])),), constants, warp_table(steps))


def lookup_steps(product: Product, words: int, row: BatchRow) -> int:
    """The row's, where a warp can invert the total."""
    return row.steps if product != Product.EVEN and words == PLAIN_LIMBS else 0


def resident(product: Product, words: int, row: BatchRow) -> int:
    """Blocks that a multiprocessor holds: the row's, as far as their threads have the registers that inversion takes."""
    threads = (
        WIDE_THREADS if words > PLAIN_LIMBS else EVEN_THREADS if product == Product.EVEN else row.block * row.resident
    )
    return max(1, min(row.resident, threads // row.block))


@cache
def warp_table(steps: int) -> str:
    """The unit's WARP_TABLE, as field/warp_inverse.cuh looks entries up; one word of 16 bytes where there is no lookup."""
    data = table_bytes(steps) if steps else bytes(4 * TABLE_WORD)
    words = (int.from_bytes(data[at : at + TABLE_WORD], "little") for at in range(0, len(data), TABLE_WORD))
    text = ",".join(f"{word:#x}" for word in words)
    return f"__device__ const __align__(128) uint32_t WARP_TABLE[{len(data) // TABLE_WORD}] = {{{text}}};\n"


@dataclass(frozen=True)
class ModInvBatch(ModularOp):
    """Small batches go to mod-inv's kernel, others to the batch kernel by the tuning row for their n."""

    def launch(self, request: Request, n: int, traits: Traits) -> Launch:
        row = batch_tuning(traits.kind, traits.arch, request.element_bytes // LIMB_BYTES).row(n)
        return MOD_INV.launch(request, n, traits) if row is None else launch_with(row, request, n, traits)

    def proof_elements(self, plan: LaunchPlan) -> int:
        """For a batch launch, a few elements a thread, so that there are first, middle and last ones, but for one."""
        launch = _batch_launch(plan)
        return super().proof_elements(plan) if launch is None else launch.block * _proof_share(launch) - 1

    def proof_plan(self, small: Request, plan: LaunchPlan, traits: Traits) -> LaunchPlan:
        """The plan's own batch kernel, which the small request would not get."""
        launch = _batch_launch(plan)
        if launch is None:
            return super().proof_plan(small, plan, traits)
        values = {**launch.values, "n": small.n, "elements": _proof_share(launch)}
        return elementwise_plan(small, replace(traits, whole=True), lambda n: replace(launch, grid=1, values=values))

    def units(self, traits: Traits) -> tuple[Unit, ...]:
        """mod-inv's, and every product with every row; fields above 256 bits are odd, and not of fold's form."""
        shapes = [(product, PLAIN_LIMBS) for product in Product] + [(Product.MONTGOMERY, words) for words in _wide()]
        batched = (
            unit(product, words, row)
            for product, words in shapes
            for row in batch_tuning(traits.kind, traits.arch, words).rows
        )
        return tuple(dict.fromkeys((*MOD_INV.units(traits), *batched)))

    def tuned_for(self, traits: Traits) -> set[str]:
        return MOD_INV.tuned_for(traits) | all_batch_tuned_for(traits.kind, traits.arch)

    def reference(self, request: Request, result: memoryview) -> None:
        mod_inv_batch(request, result)


# Elements of a thread in a self-test.
PROOF_SHARE = 3


def _batch_launch(plan: LaunchPlan) -> Launch | None:
    """The first launch of the batch kernel; None where every element is inverted by itself."""
    launches = (launch for piece in plan.pieces for launch in piece.launches)
    return next((launch for launch in launches if launch.kernel.name == NAME), None)


def block_elements(plan: LaunchPlan) -> int | None:
    """Elements that share an inversion in the first piece; None where none do."""
    launch = _batch_launch(plan)
    return None if launch is None else launch.block * launch.values["elements"]


def _proof_share(launch: Launch) -> int:
    """No more than the launch's, whose shared memory is for so many."""
    return min(PROOF_SHARE, launch.values["elements"])


def launch_with(row: BatchRow, request: Request, n: int, traits: Traits) -> Launch:
    """The batch kernel for n elements as one row of tuning says, whatever n: what a sweep over rows tries."""
    words = request.element_bytes // LIMB_BYTES
    product = product_of(request.modulus)
    compiled = unit(product, words, row)
    elements = share(row, n, traits.multiprocessors * dict(compiled.constants)["RESIDENT"])
    kernel = Kernel(compiled, NAME, compiled.structs[0], row.block, synchronises=True)
    values = {"n": n, "elements": elements, **_constants(product, request.modulus, words)}
    shared = row.block * elements * request.element_bytes if row.storage == Storage.SHARED else 0
    shared += _inversion_bytes(lookup_steps(product, words, row))
    return Launch(kernel, -(-n // (row.block * elements)), row.block, values, shared)


def share(row: BatchRow, n: int, blocks: int) -> int:
    """Elements of a thread. blocks: those that the device holds at once."""
    return max(1, min(row.elements, -(-n // (blocks * row.block))))


def _inversion_bytes(steps: int) -> int:
    """Shared memory of total_inverse::ByWarp: the table, and a modulus."""
    return (ENTRY_BYTES << steps) + PLAIN_LIMBS * LIMB_BYTES if steps else 0


def _wide() -> tuple[int, ...]:
    """Limbs of the elements of registered fields above 256 bits."""
    words = {field.element_bytes // LIMB_BYTES for field in FIELDS}
    return tuple(sorted(words - {PLAIN_LIMBS}))


def _constants(product: Product, modulus: int, words: int) -> dict[str, int]:
    """The members of the units' structs that depend on the modulus; each unit has some of them."""
    if product == Product.EVEN:
        values = barrett_any(modulus, words)
        return {**values, "negated": (1 << LIMB_BITS * (words + 1)) - values["normalised"]}
    inversion = odd_modulus(modulus, words)
    return {**montgomery(modulus, words), "complement": max(0, (1 << FOLD_BITS) - modulus), **inversion}


MOD_INV_BATCH = ModInvBatch(0x0A, "mod-inv-batch", "x^-1 mod m for many x at once, 0 where there is none", ("x",))
