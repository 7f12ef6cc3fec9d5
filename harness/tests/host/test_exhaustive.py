"""All inputs of tiny moduli through the real kernels: every modulus from 1 to 64, every toy field that small."""

from __future__ import annotations

import random
from itertools import product

import pytest

from limbd.harness.inputs import PLAIN_BITS, Residues
from limbd.harness.kat import first_difference
from limbd.harness.targets import BackendTarget
from limbd.harness.vectors.peers import OPERANDS, PYTHON
from limbd.ops import OPS
from limbd.ops.base import Op
from limbd.ops.params.base import Field
from limbd.ops.params.fields import FIELDS
from limbd.ops.params.layout import PLAIN_LIMBS, from_ints, to_ints
from limbd.worker.device.base import Backend

MODULI = range(1, 65)

SMALL_FIELDS = [field for field in FIELDS if field.modulus < 300]

EVERY_OP = pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)


def all_rows(op: str, modulus: int) -> list[list[int]]:
    """Columns of operands: every combination of the values 0..m + 1, so that m and m + 1 are reduced too."""
    values = range(modulus + 2)
    return [list(column) for column in zip(*product(values, repeat=len(OPERANDS[op])), strict=True)]


def assert_right(backend: Backend, op: str, residues: Residues, columns: list[list[int]]) -> None:
    """The backend's answers are CPython's."""
    define = PYTHON[op]
    expected = from_ints(define(residues.modulus, *row) for row in zip(*columns, strict=True))
    arrays = dict(zip(OPERANDS[op], map(from_ints, columns), strict=True))
    results = BackendTarget(backend).answer(op, residues, arrays)
    bad = first_difference(results, expected)
    if bad is not None:
        case = [hex(column[bad]) for column in columns]
        got, right = to_ints(results[bad : bad + 1]), to_ints(expected[bad : bad + 1])
        pytest.fail(f"{op}({', '.join(case)}) mod {residues.modulus}: got {got}, expected {right}")


@EVERY_OP
def test_all_operands_of_every_modulus_up_to_64(op: Op, kernels: Backend) -> None:
    for modulus in MODULI:
        assert_right(kernels, op.name, Residues(modulus), all_rows(op.name, modulus))


@EVERY_OP
def test_all_residues_from_anywhere_below_2_256(op: Op, kernels: Backend) -> None:
    """The same residues, each operand raised by a random multiple of the modulus (an exponent is no residue)."""
    rng = random.Random("representatives")
    for modulus in MODULI:
        multiples = 2**PLAIN_BITS // modulus - 1
        columns = [
            column if name == "e" else [value % modulus + modulus * rng.randrange(multiples) for value in column]
            for name, column in zip(OPERANDS[op.name], all_rows(op.name, modulus), strict=True)
        ]
        assert_right(kernels, op.name, Residues(modulus), columns)


@EVERY_OP
@pytest.mark.parametrize("field", SMALL_FIELDS, ids=lambda field: field.name)
def test_all_operands_of_a_toy_field(op: Op, field: Field, kernels: Backend) -> None:
    """By the field's parameters."""
    assert field.element_bytes == 4 * PLAIN_LIMBS
    assert_right(kernels, op.name, Residues(field.modulus, field), all_rows(op.name, field.modulus))
