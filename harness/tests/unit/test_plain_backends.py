"""The backends without a device: the reference measures itself, null zeroes what it is given."""

from __future__ import annotations

import pytest

from limbd.harness.groups import group_of
from limbd.ops import OPS
from limbd.ops.base import Call, Op
from limbd.ops.msm import MSM_G1, MSM_G2, Msm, param_of
from limbd.ops.params.coordinates import Coordinate
from limbd.ops.params.curves import CURVES, Group
from limbd.ops.params.layout import from_ints, unpack
from limbd.ops.reference.curve import times
from limbd.ops.reference.msm import encode_points
from limbd.worker.device.base import Backend
from limbd.worker.device.null import NullBackend
from limbd.worker.device.reference import ReferenceBackend

EVERY_OP = pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
MULTIPLICATIONS = pytest.mark.parametrize("op", [MSM_G1, MSM_G2], ids=lambda op: op.name)
CURVE = CURVES[0]
# Prime, with transforms, and above every operand.
MODULUS = 257

BACKENDS = pytest.mark.parametrize("backend", [ReferenceBackend(), NullBackend()], ids=["reference", "null"])


def question(op: Op, n: int) -> tuple[Call, bytes]:
    """Operands that count up; multiples of a generator."""
    if not isinstance(op, Msm):
        return Call(n), from_ints([MODULUS, *range(n * len(op.operands))]).tobytes()
    group = group_of(CURVE, op.group)
    points = encode_points([group.generator] * n, CURVE, group)
    return Call(n, param_of(CURVE)), from_ints(range(n)).tobytes() + points


def ask(backend: Backend, op: Op, n: int) -> bytearray:
    call, payload = question(op, n)
    request = op.decode(call, memoryview(payload))
    result = bytearray(b"\xa5") * op.result_bytes(call)
    outcome = backend.run(request, op.plan(request, backend.traits()), memoryview(result))
    assert outcome.kernel_ms >= 0
    return result


@EVERY_OP
@BACKENDS
def test_no_elements_are_no_trouble(op: Op, backend: Backend) -> None:
    assert ask(backend, op, 0) == bytes(op.result_bytes(question(op, 0)[0]))


@EVERY_OP
def test_null_zeroes_all_it_is_given(op: Op) -> None:
    assert ask(NullBackend(), op, 33) == bytes(op.result_bytes(question(op, 33)[0])) != b""


@EVERY_OP
def test_the_reference_fills_all_it_is_given(op: Op) -> None:
    results = unpack(ask(ReferenceBackend(), op, 33))
    if isinstance(op, Msm):
        group = group_of(CURVE, op.group)
        assert results == [part for coordinate in multiple(33 * 16, group) for part in coordinate]
        return
    assert len(results) == 33
    assert max(results) < MODULUS


def multiple(k: int, group: Group) -> tuple[Coordinate, Coordinate]:
    point = times(k, group.generator, CURVE.base.modulus)
    assert point is not None
    return point


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
