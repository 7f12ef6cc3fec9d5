"""One request of a client and its answer, as data: values -> arrays -> the wire's bytes, and back. No I/O.

The client's side of hops 1 and 8: numpy arrays go to the wire as they lie in memory, Python integers through one pass
of GMP.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, SupportsIndex

import numpy as np
import numpy.typing as npt

from limbd.ops import by_id as op_by_id
from limbd.ops import by_name as op_by_name
from limbd.ops.base import LIMB_BYTES, Call, Op
from limbd.ops.params import fields
from limbd.ops.params.base import LIMB_BITS
from limbd.ops.params.layout import PLAIN_LIMBS, from_ints, pack, to_ints
from limbd.ops.status import LimbdError, RequestError, ServiceError, Status
from limbd.worker import wire
from limbd.worker.link import Report

Limbs = npt.NDArray[np.uint32]
Values = SupportsIndex | Sequence[SupportsIndex] | Limbs
Modulus = int | str

ELEMENT_BYTES = 32

# What the same request will meet again, whoever answers it; every other status is the service's own.
_CLIENT_FAULTS = frozenset(range(Status.BAD_MAGIC, Status.DUPLICATE_ID + 1)) | {
    Status.UNAUTHENTICATED,
    Status.FORBIDDEN,
}


class Form(Enum):
    """The kind of value that was given, which the answer takes too."""

    ARRAY = "array"
    LIST = "list"
    NUMBER = "number"


@dataclass
class Exchange:
    """A request on its way. buffers: the frame, piece by piece; result: where the answer's elements are received.

    explained: the error says all that is known of it. report: the worker's line about it, once it was read. param: the
    header's. convert: makes of an array of results what the caller is given.
    """

    op: Op
    n: int
    form: Form
    buffers: list[memoryview]
    result: Limbs
    seq: int = 0
    error: LimbdError | None = None
    done: bool = False
    explained: bool = False
    report: Report | None = None
    param: int = 0
    convert: Callable[[Limbs], Any] | None = None

    def body(self) -> memoryview:
        """The result's bytes, to be written by the transport."""
        return self.result.data.cast("B") if self.result.size else memoryview(b"")

    def values(self) -> Any:
        """The answer in the form of the question: an array (n, 8) uint32, a list of ints, or one int."""
        if self.convert is not None:
            return self.convert(self.result)
        if self.form is Form.ARRAY:
            return self.result
        values = to_ints(self.result)
        return values[0] if self.form is Form.NUMBER else values


def exchange(
    op_name: str, operands: Sequence[Values], modulus: Modulus, *, param: int = 0, domain: Sequence[int] = ()
) -> Exchange:
    """A question for the worker.

    op_name: "mod-mul" or "mod_mul". operands: for each operand of the op a sequence of ints, a uint32 array of shape
    (n, 8), or one int, which stands for every element. modulus: an int or a field's name. param: the header's
    param word. domain: numbers that stand between the modulus and the operands, as many as param announces.
    ValueError or TypeError where a value cannot be written in 256 bits or lengths differ, RequestError for an
    unknown op; what the wire can carry is judged by the worker alone (modulus 0, for example).
    """
    op = op_by_name(op_name.replace("_", "-"))
    if not op.modulus_in_payload:
        raise ValueError(f"{op.name} is asked for by the client's msm: it has no modulus")
    if len(operands) != len(op.operands):
        raise ValueError(f"{op.name} takes {len(op.operands)} operands ({', '.join(op.operands)}), got {len(operands)}")
    plain = modulus_value(modulus)
    arrays, form = _arrays(op, operands)
    n = len(arrays[0])
    if not 0 <= param < 1 << 32:
        raise ValueError(f"param {param} is not in 0..2^32 - 1")
    call = Call(n, param)
    header = wire.request_header(op.id, n, param)
    numbers = pack((plain, *domain), ELEMENT_BYTES)
    expected = op.payload_bytes(call)
    given = len(numbers) + sum(array.nbytes for array in arrays)
    if expected is not None and given != expected:
        # The worker would wait for the rest, or take the surplus for the next frame.
        raise ValueError(
            f"{op.name} with param {param:#x} takes {expected} bytes for n = {n}, and these are {given}: "
            f"{len(domain)} numbers between the modulus and the operands do not fit that param"
        )
    head = memoryview(header + numbers)
    buffers = [head, *(array.data.cast("B") for array in arrays if array.size)]
    return Exchange(op, n, form, buffers, _result_array(op, call), param=param)


def exchange_of_arrays(
    op: Op, n: int, param: int, arrays: Iterable[Limbs], convert: Callable[[Limbs], Any] | None = None
) -> Exchange:
    """A question of an op whose payload is its operands alone, as the wire has them. n, param: of the header."""
    head = memoryview(wire.request_header(op.id, n, param))
    buffers = [head, *(np.ascontiguousarray(array, "<u4").data.cast("B") for array in arrays if array.size)]
    return Exchange(op, n, Form.ARRAY, buffers, _result_array(op, Call(n, param)), param=param, convert=convert)


def _result_array(op: Op, call: Call) -> Limbs:
    """Room for the results of a call, a row for each."""
    count = op.result_count(call)
    width = op.result_bytes(call) // count if count else ELEMENT_BYTES
    return np.empty((count, width // LIMB_BYTES), dtype="<u4")


def modulus_value(modulus: Modulus) -> int:
    """The modulus as an integer of at most 256 bits; ValueError for an unknown field, or one above 256 bits."""
    if isinstance(modulus, str):
        found = fields.by_name(modulus)
        if found is None:
            raise ValueError(f"there is no field named {modulus!r}")
        value, name = found.modulus, found.name
    else:
        value, name = operator.index(modulus), "the modulus"
    if value < 0 or value >> 256:
        raise ValueError(f"{name} is not in 0..2^256 - 1, which is what version 1 of the wire carries")
    return value


def exchange_of_frame(frame: bytes) -> Exchange:
    """The question that a kept frame is; its answer is an array. ValueError where it is no whole frame of version 1: the
    worker would wait for the rest."""
    layout = wire.VERSION_1.request
    if len(frame) < layout.size or not frame.startswith(wire.MAGIC_V1):
        raise ValueError("it is no request of version 1 (BCGB)")
    told = layout.unpack(frame)
    op = op_by_id(told["op"])
    call = Call(told["n"], told["param"])
    expected = op.payload_bytes(call)
    if expected is None or len(frame) != layout.size + expected:
        raise ValueError(f"it has {len(frame)} bytes, which is not one {op.name} of n = {call.n}")
    return Exchange(op, call.n, Form.ARRAY, [memoryview(frame)], _result_array(op, call), param=call.param)


def read_header(asked: Exchange, header: bytes | bytearray) -> LimbdError | None:
    """The error that an answer's header stands for, or None where the results follow it.

    ConnectionAbortedError where what follows the header cannot be understood.
    """
    if not header.startswith(wire.MAGIC_V1):
        raise ConnectionAbortedError("its answer is no limbd frame")
    told = wire.VERSION_1.response.unpack(header)
    error = judge(asked, told["status"], told["n"])
    if error is not None and told["n"]:
        raise ConnectionAbortedError(error.message)
    return error


def judge(asked: Exchange, code: int, count: int) -> LimbdError | None:
    """What an answer's status and n mean: an error, or None."""
    try:
        status = Status(code)
    except ValueError:
        return ServiceError(Status.INTERNAL, f"{_told(asked)}: the worker answered with the unknown status {code}")
    if status is not Status.OK:
        return error_of(status, _told(asked))
    if count != asked.op.result_count(Call(asked.n, asked.param)):
        return ServiceError(Status.INTERNAL, f"{_told(asked)}: the answer announces {count} results")
    return None


def error_of(status: Status, message: str, index: int | None = None) -> LimbdError:
    """The error class that a status belongs to."""
    kind = RequestError if status in _CLIENT_FAULTS else ServiceError
    return kind(status, message, index=index)


def _told(asked: Exchange) -> str:
    return f"{asked.op.name}, n={asked.n}"


def _arrays(op: Op, operands: Sequence[Values]) -> tuple[list[Limbs], Form]:
    given = [_array(value, name) for name, value in zip(op.operands, operands, strict=True)]
    forms = {form for _, form in given}
    form = next(kind for kind in (Form.ARRAY, Form.LIST, Form.NUMBER) if kind in forms)
    lengths = {len(array) for array, kind in given if kind is not Form.NUMBER} or {1}
    if len(lengths) != 1:
        told = ", ".join(f"{name} has {len(a)}" for name, (a, _) in zip(op.operands, given, strict=True))
        raise ValueError(f"the operands of {op.name} differ in length: {told}")
    n = lengths.pop()
    return [np.repeat(a, n, axis=0) if kind is Form.NUMBER and n != 1 else a for a, kind in given], form


def _array(value: Values, name: str) -> tuple[Limbs, Form]:
    if isinstance(value, np.ndarray):
        if value.dtype != np.uint32 or value.ndim != 2 or value.shape[1] != PLAIN_LIMBS:
            raise ValueError(f"operand {name}: expected uint32 of shape (n, 8), got {value.dtype} of {value.shape}")
        return np.ascontiguousarray(value, dtype="<u4"), Form.ARRAY
    if isinstance(value, str | bytes):
        raise TypeError(f"operand {name}: expected integers or an array, got {type(value).__name__}")
    if isinstance(value, Sequence):
        return integer_limbs(value, f"operand {name}"), Form.LIST
    check_integer(value, f"operand {name}")
    return from_ints([operator.index(value)]), Form.NUMBER


def integer_limbs(values: Iterable[SupportsIndex], what: str) -> Limbs:
    """Integers as (n, 8) limbs. Raises TypeError or ValueError for the first that is none of 256 bits, as what[its index]."""
    try:
        return from_ints(map(operator.index, values))
    except (TypeError, ValueError):
        for i, value in enumerate(values):
            check_integer(value, f"{what}[{i}]")
        raise


def check_integer(value: Any, what: str, limbs: int = PLAIN_LIMBS) -> None:
    """Raises TypeError or ValueError unless it is an integer that so many limbs hold."""
    allowed = f"0..2^{LIMB_BITS * limbs} - 1"
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{what}: expected an integer in {allowed}, got {type(value).__name__}") from None
    if number < 0 or number >> LIMB_BITS * limbs:
        raise ValueError(f"{what} is not in {allowed}")
