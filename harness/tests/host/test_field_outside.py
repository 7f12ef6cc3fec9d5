"""A field that is defined here, not in the tree: it works by its parameters with no file of the tree changed."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from limbd.harness.inputs import Residues, operands
from limbd.harness.kat import first_difference
from limbd.harness.targets import BackendTarget
from limbd.harness.vectors.peers import OPERANDS, agreed
from limbd.ops import OPS, by_name
from limbd.ops.base import LIMB_BYTES, Call, Op
from limbd.ops.params.base import Field
from limbd.ops.params.fields import by_id, register, unregister
from limbd.ops.params.layout import from_ints
from limbd.worker.device.base import Backend

OUTSIDE = (
    Field(0x7F70, "mersenne_61", 2**61 - 1, "Mersenne prime 2^61 - 1"),
    Field(0x7F71, "below_2_255", 2**255 - 31, "the largest prime of 255 bits but one"),
    Field(0x7F72, "below_2_381", 2**381 - 313, "the largest prime of 381 bits"),
    Field(0x7F73, "below_2_384", 2**384 - 317, "the largest prime of 384 bits"),
)


@pytest.fixture(params=OUTSIDE, ids=lambda field: field.name)
def field(request: pytest.FixtureRequest) -> Iterator[Field]:
    added = register(request.param)
    yield added
    unregister(added)


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_every_op_by_its_parameters(op: Op, field: Field, backend: Backend) -> None:
    assert by_id(field.id) is field
    bits = 8 * field.element_bytes
    rng = random.Random(f"outside {op.name} {field.name}")
    columns = [operands(rng, field.modulus, 200, bits) for _ in OPERANDS[op.name]]
    limbs = field.element_bytes // LIMB_BYTES
    arrays = {name: from_ints(column, limbs) for name, column in zip(OPERANDS[op.name], columns, strict=True)}
    results = BackendTarget(backend).answer(op.name, Residues(field.modulus, field), arrays)
    expected = from_ints(agreed(op.name, field.modulus, columns), limbs)
    assert first_difference(results, expected) is None


def test_its_payload_has_no_modulus(field: Field) -> None:
    call = Call(3, field=field)
    assert by_name("mod-mul").payload_bytes(call) == 6 * field.element_bytes
    assert by_name("mod-mul").result_bytes(call) == 3 * field.element_bytes
