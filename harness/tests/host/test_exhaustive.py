"""All inputs of tiny moduli through the real kernels: every modulus from 1 to 64, every toy field that small."""

from __future__ import annotations

import pytest

from limbd.harness import exhaustive
from limbd.harness.inputs import Residues
from limbd.ops import OPS
from limbd.ops.base import Op
from limbd.ops.params.base import Field
from limbd.ops.params.fields import FIELDS
from limbd.ops.params.layout import PLAIN_LIMBS
from limbd.worker.device.base import Backend

SMALL_FIELDS = [field for field in FIELDS if field.modulus < 300]

EVERY_OP = pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)


@EVERY_OP
def test_all_operands_of_every_modulus_up_to_64(op: Op, kernels: Backend) -> None:
    """Small ones, and the same residues from anywhere below 2^256."""
    wrong, compared = exhaustive.run(kernels, op)
    assert wrong == []
    assert compared >= 2 * sum(m + 2 for m in exhaustive.MODULI)


@pytest.mark.parametrize("op", [op for op in OPS if op.elementwise], ids=lambda op: op.name)
@pytest.mark.parametrize("field", SMALL_FIELDS, ids=lambda field: field.name)
def test_all_operands_of_a_toy_field(op: Op, field: Field, kernels: Backend) -> None:
    """By the field's parameters (all vectors of toy fields are part of the test above)."""
    assert field.element_bytes == 4 * PLAIN_LIMBS
    columns = exhaustive.all_rows(op.name, field.modulus)
    assert list(exhaustive.differences(kernels, op.name, Residues(field.modulus, field), columns)) == []
