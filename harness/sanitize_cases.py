"""One case per kernel and block-edge n on a CUDA device, small enough to run under compute-sanitizer.

`python -m limbd.harness.sanitize_cases` is what gpu_check runs under each of its tools; alone it is a quick test.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice, product
from typing import TypeVar

import numpy as np

from limbd.harness import transforms
from limbd.harness.groups import GROUPS, group_of
from limbd.harness.inputs import PLAIN_BITS, Residues, operands
from limbd.harness.kat import first_difference
from limbd.harness.multiplications import Multiples, Multiplication
from limbd.harness.targets import BackendTarget, payload_of
from limbd.ops import OPS
from limbd.ops.base import LIMB_BYTES, Call, LaunchPlan, Limbs, Request, Traits
from limbd.ops.mod_inv_batch import MOD_INV_BATCH, launch_with
from limbd.ops.msm_tuning import MsmRow, with_width
from limbd.ops.ntt import NTT
from limbd.ops.params.base import LIMB_BITS
from limbd.ops.params.fields import FIELDS
from limbd.ops.params.layout import from_ints
from limbd.ops.quotient import QUOTIENT
from limbd.ops.reference.msm import proof_points, sum_of
from limbd.ops.split import elementwise_plan
from limbd.ops.tuning import BatchRow, batch_tuning, transform_rows
from limbd.worker.device.cuda import CudaBackend
from limbd.worker.device.reference import ReferenceBackend

T = TypeVar("T")

# Around a warp and the blocks of 64, 128 and 256 threads; a single element; a last block of one element.
SIZES = (1, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257)

SECP256K1 = 2**256 - 2**32 - 977

# One modulus for each kernel that some op has: every limb count, a full and a short top limb, even, folded, 1.
MODULI = (
    1,
    6,
    SECP256K1,
    2**256 - 189,
    2**256 - 2**200 - 1,
    2**256 - 2**200 - 2,
    *(2 ** (32 * limbs) - 5 for limbs in range(1, 8)),
    *(2 ** (32 * limbs - 3) - 6 for limbs in range(1, 9)),
)


# One for each product of the batch kernel (folded both ways, Montgomery, even), one with many non-units, and every field that is
# wider than 256 bits.
BATCH_RESIDUES = (
    *map(Residues, (SECP256K1, 2**256 - 189, 2**255 - 19, 2**256 - 2**200 - 2, 3 * 5 * 7 * 11)),
    *(Residues(field.modulus, field) for field in FIELDS if field.bits > PLAIN_BITS),
)


# Products by constants in parts, and Shoup's; 2^17 is digits of 9 and 8 bits, 2^15 and 2^16 have two elements a thread or one.
TRANSFORM_FIELDS = tuple(field for field in FIELDS if field.name in ("bn254_fr", "bls12_381_fr"))
ODD_SPLIT_LOG_N = 17
LONGER_LOG_N = (13, 15, 16, ODD_SPLIT_LOG_N)

# Of a transform whose passes are compiled in.
COMPILED_LOG_N = 20


@dataclass(frozen=True)
class Share:
    """One of `of` parts of the cases: each of'th, from the one at index on."""

    index: int = 0
    of: int = 1

    def __post_init__(self) -> None:
        if not 0 <= self.index < self.of:
            raise ValueError(f"no share {self.index} of {self.of}")

    def take(self, cases: Iterable[T]) -> Iterator[T]:
        return islice(cases, self.index, None, self.of)


WHOLE = Share()


def failures(backend: CudaBackend, share: Share = WHOLE) -> list[str]:
    """Every case whose answer is not the reference's. Small batches of mod-inv-batch run mod-inv's kernel: its own
    kernel is launched here by each row of its tuning, several elements a thread."""
    return [
        *_by_op(backend, share),
        *_by_batch_row(backend, share),
        *transform_failures(backend, share),
        *multiplication_failures(backend, share),
    ]


# What a run may be confined to, beside everything.
ALONE = ("transforms", "multiplications")


def chosen(backend: CudaBackend, alone: str | None, share: Share = WHOLE) -> list[str]:
    """The failures of everything, or of one of ALONE."""
    of = {"transforms": transform_failures, "multiplications": multiplication_failures}
    return (of[alone] if alone else failures)(backend, share)


def transform_failures(backend: CudaBackend, share: Share = WHOLE) -> list[str]:
    """Those of ntt and quotient."""
    return [*_by_transform(backend, share), *_by_transform_row(backend, share), *_by_compiled_row(backend, share)]


def multiplication_failures(backend: CudaBackend, share: Share = WHOLE) -> list[str]:
    """Those of msm-g1 and msm-g2."""
    return list(_by_multiplication(backend, share))


# Around a warp and the sort's tiles of one and of many blocks; pairs of points that are equal, opposite and infinite.
MULTIPLIED = (0, 1, 2, 31, 32, 33, 237, 1025)


def _by_multiplication(backend: CudaBackend, share: Share) -> Iterator[str]:
    """Every group, in variable and constant work, in one vector and in two; windows of one pass of the sort and of two."""
    kinds = product(GROUPS, (False, True), MULTIPLIED)
    for (curve, name), constant, n in share.take(kinds):
        rng = random.Random(f"{curve.name} {name} {constant} {n}")
        edge_scalars, edge_points = proof_points(curve, group_of(curve, name))
        known = Multiples(curve, name, "sanitized", n)
        points = [rng.choice((point, *edge_points)) for point in known.points]
        vectors = 2 if n in (33, 237) else 1
        scalars = [rng.choice((rng.randrange(2**256), *edge_scalars)) for _ in range(n * vectors)]
        asked = Multiplication(curve, name, scalars, points, vectors, True, constant)
        right = [sum_of([s % curve.order for s in part], points, curve) for part in _vectors(scalars, vectors)]
        # A short one has narrow windows; wide ones sort in two passes.
        for row_of in (None, _wide) if n in (33, 1025) else (None,):
            if asked.answer(backend, row_of) != right:
                yield f"msm-{name} {curve.name} n={n} vectors={vectors} constant={constant} wide={row_of is not None}"


def _wide(count: int) -> MsmRow:
    return with_width(13, 8, 4, 3, 2, "sanitized")


def _vectors(scalars: Sequence[int], vectors: int) -> list[Sequence[int]]:
    size = len(scalars) // vectors
    return [scalars[v * size : (v + 1) * size] for v in range(vectors)]


def _by_transform(backend: CudaBackend, share: Share) -> Iterator[str]:
    """Every size up to 2^12 in every order, and a split into digits of unequal bits; a field of each kind of residue."""
    target, oracle = BackendTarget(backend), BackendTarget(ReferenceBackend())
    ops = [op for op in OPS if op.name in transforms.VARIANTS]
    for op, field, k in share.take(product(ops, TRANSFORM_FIELDS, (*range(13), *LONGER_LOG_N))):
        rng = random.Random(f"{op.name} {field.name} {k}")
        variants = (0, transforms.VARIANTS[op.name], rng.getrandbits(32) & transforms.VARIANTS[op.name])
        for variant in variants if k < LONGER_LOG_N[0] else variants[k % 2 :: 2]:
            n = (3 if k < 8 else 1) << k
            residues = Residues(field.modulus, None, k | variant)
            arrays = {name: from_ints(transforms.elements(rng, field.modulus, n)) for name in op.operands}
            got = target.answer(op.name, residues, arrays)
            bad = first_difference(got, oracle.answer(op.name, residues, arrays))
            if bad is not None:
                yield f"{op.name} {field.name} n={n} param={residues.param:#x} at index {bad}"


def _by_transform_row(backend: CudaBackend, share: Share) -> Iterator[str]:
    """Every row of the tuning, which more elements would choose: one pass, and three of short digits."""
    traits = backend.traits()
    rows = [row for row in transform_rows(traits.kind, traits.arch) if not row.compiled]
    for row, op, field in share.take(product(rows, (NTT, QUOTIENT), TRANSFORM_FIELDS)):
        three = replace(row, largest=4, splits=())
        for k, by in ((1, row),) if row.log_n == 1 else ((2, row), (row.largest, row), (11, three)):
            rng = random.Random(f"{op.name} {field.name} {k}")
            residues = Residues(field.modulus, None, k | rng.getrandbits(32) & transforms.VARIANTS[op.name])
            arrays = {name: from_ints(transforms.elements(rng, field.modulus, 3 << k)) for name in op.operands}
            request = op.decode(Call(3 << k, residues.param), payload_of(op.name, residues, arrays).data.cast("B"))
            bad = _difference(backend, request, op.plan_by(request, traits, by))
            if bad is not None:
                yield f"{op.name} {field.name} param={residues.param:#x} by {by} at index {bad}"


def _by_compiled_row(backend: CudaBackend, share: Share) -> Iterator[str]:
    """The passes of a long transform, each in one that is as short as the pass can be."""
    traits = backend.traits()
    rows = [row for row in transform_rows(traits.kind, traits.arch) if row.compiled]
    for row, op, field in share.take(product(rows, (NTT, QUOTIENT), TRANSFORM_FIELDS)):
        for variant in (0, transforms.VARIANTS[op.name]):
            residues = Residues(field.modulus, None, COMPILED_LOG_N | variant)
            arrays = {name: np.zeros((1 << COMPILED_LOG_N, PLAIN_BITS // LIMB_BITS), "<u4") for name in op.operands}
            call = Call(1 << COMPILED_LOG_N, residues.param)
            request = op.decode(call, payload_of(op.name, residues, arrays).data.cast("B"))
            plan = op.plan_by(request, traits, row)
            small = op.proof_request(request, plan)
            bad = _difference(backend, small, op.proof_plan(small, plan, traits))
            if bad is not None:
                yield f"{op.name} {field.name} param={residues.param:#x}, compiled passes, at index {bad}"


def _by_op(backend: CudaBackend, share: Share) -> Iterator[str]:
    target, oracle = BackendTarget(backend), BackendTarget(ReferenceBackend())
    for op, modulus in share.take(product([op for op in OPS if op.elementwise], MODULI)):
        for n in SIZES if modulus == SECP256K1 else SIZES[-3:]:
            residues, arrays = Residues(modulus), _operands(op.name, op.operands, modulus, n)
            got = target.answer(op.name, residues, arrays)
            bad = first_difference(got, oracle.answer(op.name, residues, arrays))
            if bad is not None:
                yield f"{op.name} mod {modulus:#x} n={n} at index {bad}"


def _by_batch_row(backend: CudaBackend, share: Share) -> Iterator[str]:
    # As if the device had one multiprocessor: then a thread takes as many elements as the row allows.
    traits = replace(backend.traits(), multiprocessors=1, whole=True)
    for residues in share.take(BATCH_RESIDUES):
        for row in batch_tuning(traits.kind, traits.arch, residues.bits // LIMB_BITS).rows:
            full = row.block * row.elements
            for n in (1, row.block - 1, row.block, row.block + 1, full - 1, full, full + 1):
                bad = _batch_difference(backend, row, residues, n, traits)
                if bad is not None:
                    yield (
                        f"mod-inv-batch mod {residues.modulus:#x} n={n} block={row.block} {row.storage.name} "
                        f"at index {bad}"
                    )


def _batch_difference(backend: CudaBackend, row: BatchRow, residues: Residues, n: int, traits: Traits) -> int | None:
    names = MOD_INV_BATCH.operands
    payload = payload_of(
        MOD_INV_BATCH.name, residues, _operands(MOD_INV_BATCH.name, names, residues.modulus, n, residues.bits)
    )
    request = MOD_INV_BATCH.decode(Call(n, field=residues.field), payload.data.cast("B"))
    return _difference(
        backend, request, elementwise_plan(request, traits, lambda count: launch_with(row, request, count, traits))
    )


def _difference(backend: CudaBackend, request: Request, plan: LaunchPlan) -> int | None:
    got, expected = (np.empty((request.n, request.element_bytes // LIMB_BYTES), dtype="<u4") for _ in range(2))
    backend.run(request, plan, got.data.cast("B"))
    request.op.reference(request, expected.data.cast("B"))
    return first_difference(got, expected)


def _operands(op: str, names: tuple[str, ...], modulus: int, n: int, bits: int = PLAIN_BITS) -> dict[str, Limbs]:
    rng = random.Random(f"{op} {modulus} {n}")
    return {name: from_ints(operands(rng, modulus, n, bits), bits // LIMB_BITS) for name in names}


def main(arguments: list[str] | None = None) -> int:
    """Exit status 1 and the cases on stdout where an answer is not the reference's."""
    parser = argparse.ArgumentParser(prog="python -m limbd.harness.sanitize_cases", description=__doc__.split("\n")[0])
    parser.add_argument("--alone", choices=ALONE, help="ntt and quotient alone, or msm-g1 and msm-g2")
    parser.add_argument("--share", type=int, nargs=2, default=(0, 1), metavar=("INDEX", "OF"), help="a part of them")
    options = parser.parse_args(arguments)
    share = Share(*options.share)
    backend = CudaBackend(poison=True, separate=True)
    found = chosen(backend, options.alone, share)
    backend.close()
    for text in found:
        print(f"FAILED {text}")
    print(f"sanitize cases: {len(found)} failed")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
