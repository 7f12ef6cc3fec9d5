"""All operands of tiny moduli through a backend's real kernels: every modulus from 1 to 64, all combinations of values;
transforms: all vectors of toy fields up to a size.

The expected answers come from CPython's integers, not from the code that is shipped as reference.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import product

from limbd.harness import exhaustive_multiplications, exhaustive_transforms, long_batches
from limbd.harness.inputs import PLAIN_BITS, Residues
from limbd.harness.kat import first_difference
from limbd.harness.targets import BackendTarget
from limbd.harness.vectors.peers import OPERANDS, PYTHON
from limbd.ops.base import Limbs, Op
from limbd.ops.msm import Msm
from limbd.ops.params.layout import from_ints, to_ints
from limbd.worker.device.base import Backend

MODULI = range(1, 65)

Columns = list[list[int]]


def all_rows(op: str, modulus: int) -> Columns:
    """Columns of operands: every combination of the values 0..m + 1, so that m and m + 1 are reduced too."""
    values = range(modulus + 2)
    return [list(column) for column in zip(*product(values, repeat=len(OPERANDS[op])), strict=True)]


def raised_rows(op: str, modulus: int, rng: random.Random) -> Columns:
    """The same residues, each raised by a random multiple of the modulus below 2^256 (an exponent is no residue)."""
    multiples = 2**PLAIN_BITS // modulus - 1
    return [
        column if name == "e" else [value % modulus + modulus * rng.randrange(multiples) for value in column]
        for name, column in zip(OPERANDS[op], all_rows(op, modulus), strict=True)
    ]


def differences(backend: Backend, op: str, residues: Residues, columns: Columns) -> Iterator[str]:
    """The first wrong answer of each batch as a text: all rows, and for mod-inv-batch longer batches of them."""
    for arrays, expected in _batches(backend, op, residues, columns):
        results = BackendTarget(backend).answer(op, residues, arrays)
        bad = first_difference(results, expected)
        if bad is not None:
            case = [hex(to_ints(array[bad : bad + 1])[0]) for array in arrays.values()]
            got, right = to_ints(results[bad : bad + 1]), to_ints(expected[bad : bad + 1])
            yield f"{op}({', '.join(case)}) mod {residues.modulus} at {bad} of {len(expected)}: got {got}, expected {right}"


def _batches(
    backend: Backend, op: str, residues: Residues, columns: Columns
) -> Iterator[tuple[dict[str, Limbs], Limbs]]:
    define = PYTHON[op]
    expected = from_ints(define(residues.modulus, *row) for row in zip(*columns, strict=True))
    arrays = dict(zip(OPERANDS[op], map(from_ints, columns), strict=True))
    yield arrays, expected
    if op == long_batches.OP:
        for n in long_batches.lengths(backend.traits(), expected.shape[1]):
            for x, answers in long_batches.arrangements(arrays["x"], expected, residues.modulus, n):
                yield {"x": x}, answers


def run(backend: Backend, op: Op) -> tuple[list[str], int]:
    """Every modulus, small and raised operands; all transforms (exhaustive_transforms), all pairs of points and scalars of
    a toy curve (exhaustive_multiplications). Returns what is wrong, and how many different answers were compared."""
    if isinstance(op, Msm):
        return exhaustive_multiplications.run(backend, op)
    if not op.elementwise:
        return exhaustive_transforms.run(backend, op)
    rng = random.Random("representatives")
    wrong: list[str] = []
    compared = 0
    for modulus in MODULI:
        for columns in (all_rows(op.name, modulus), raised_rows(op.name, modulus, rng)):
            wrong += differences(backend, op.name, Residues(modulus), columns)
            compared += len(columns[0])
    return wrong, compared
