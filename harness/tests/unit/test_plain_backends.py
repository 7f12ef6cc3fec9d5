"""The backends without a device: the reference measures itself, null zeroes what it is given."""

from __future__ import annotations

import pytest

from limbd.ops import OPS
from limbd.ops.base import Call, Op
from limbd.ops.msm import MSM_G1, MSM_G2, param_of
from limbd.ops.params.curves import CURVES
from limbd.ops.params.layout import from_ints, unpack
from limbd.worker.device.base import Backend
from limbd.worker.device.null import NullBackend
from limbd.worker.device.reference import ReferenceBackend

EVERY_OP = pytest.mark.parametrize("op", [op for op in OPS if op.modulus_in_payload], ids=lambda op: op.name)
MULTIPLICATIONS = pytest.mark.parametrize("op", [MSM_G1, MSM_G2], ids=lambda op: op.name)
# Prime, with transforms, and above every operand.
MODULUS = 257

BACKENDS = pytest.mark.parametrize("backend", [ReferenceBackend(), NullBackend()], ids=["reference", "null"])


def ask(backend: Backend, op: Op, n: int) -> bytearray:
    payload = from_ints([MODULUS, *range(n * len(op.operands))]).tobytes()
    request = op.decode(Call(n), memoryview(payload))
    result = bytearray(b"\xa5") * op.result_bytes(Call(n))
    outcome = backend.run(request, op.plan(request, backend.traits()), memoryview(result))
    assert outcome.kernel_ms >= 0
    return result


@EVERY_OP
@BACKENDS
def test_no_elements_are_no_trouble(op: Op, backend: Backend) -> None:
    assert ask(backend, op, 0) == b""


@EVERY_OP
def test_null_zeroes_all_it_is_given(op: Op) -> None:
    assert ask(NullBackend(), op, 33) == bytes(32 * 33)


@EVERY_OP
def test_the_reference_fills_all_it_is_given(op: Op) -> None:
    results = unpack(ask(ReferenceBackend(), op, 33))
    assert len(results) == 33
    assert max(results) < MODULUS


@MULTIPLICATIONS
@BACKENDS
def test_infinity_is_zeros(op: Op, backend: Backend) -> None:
    """The sum of no points, for each of three vectors; null answers nothing else."""
    call = Call(0, param_of(CURVES[0], vectors=3))
    request = op.decode(call, memoryview(b""))
    result = bytearray(b"\xa5") * op.result_bytes(call)
    backend.run(request, op.plan(request, backend.traits()), memoryview(result))
    assert len(result) == 3 * request.element_bytes
    assert not any(result)


@BACKENDS
def test_they_say_who_they_are(backend: Backend) -> None:
    info = backend.describe()
    assert info.name in ("reference", "null")
    assert info.memory > 0
    assert info.device
    assert info.compiler
    assert backend.traits().memory == info.memory
    backend.register(memoryview(bytearray(16)))
    backend.close()


def test_the_reference_takes_its_own_time() -> None:
    op = next(op for op in OPS if op.name == "mod-exp")
    request = op.decode(Call(200), memoryview(from_ints([2**255 - 19, *[2**250 + 1] * 400]).tobytes()))
    result = memoryview(bytearray(op.result_bytes(Call(200))))
    backend = ReferenceBackend()
    outcome = backend.finish(backend.start(request, op.plan(request, backend.traits()), result))
    assert outcome.kernel_ms > 0.01
    assert outcome.launches == 0
