"""What ntt and quotient share as ops: the payload `m, (omega, shift)?, arrays`, its checks, and the self-test's request."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from limbd.ops import domain, transform
from limbd.ops.base import LIMB_BYTES, Call, LaunchPlan, Op, Request, Table, Traits, Unit, check_length
from limbd.ops.domain import ELEMENT_BYTES
from limbd.ops.params.base import Field
from limbd.ops.params.fields import registered
from limbd.ops.params.layout import pack
from limbd.ops.status import RequestError, Status
from limbd.ops.tuning import TransformRow, transform_row, transform_rows

# Bits of param that both ops have (wire.md section 4).
LOG_N = 0xFF
OWN_DOMAIN = 1 << 12

# A self-test's transforms: long enough for steps of every width.
PROOF_LOG_N = 7
PROOF_TRANSFORMS = 3


@dataclass(frozen=True)
class TransformOp(Op):
    """An op on whole transforms in a registered field."""

    @property
    @abstractmethod
    def known_bits(self) -> int:
        """Of param."""

    @abstractmethod
    def default_shift(self, field: Field, k: int) -> int:
        """The coset's shift where the caller gives none. Raises RequestError(BAD_DOMAIN) where there is none."""

    def check(self, call: Call) -> None:
        if call.param & ~self.known_bits:
            raise RequestError(
                Status.BAD_PARAM, f"{self.name}: unknown bits in param {call.param:#x}, {self.known_bits:#x} are known"
            )
        if call.field is not None and not domain.transforms(call.field):
            raise RequestError(Status.BAD_PARAM, f"{self.name}: {call.field.name} has no registered generator")
        if call.field is not None and call.field.toy and not call.toys:
            raise RequestError(Status.BAD_PARAM, f"{self.name}: {call.field.name} is served with --toys alone")

    def payload_bytes(self, call: Call) -> int:
        head = (call.field is None) + 2 * bool(call.param & OWN_DOMAIN)
        return (head + len(self.operands) * call.n) * ELEMENT_BYTES

    def result_bytes(self, call: Call) -> int:
        return call.n * ELEMENT_BYTES

    def decode(self, call: Call, payload: memoryview) -> Request:
        self.check(call)
        check_length(self, call, payload)
        k = call.param & LOG_N
        if call.n % (1 << k):
            raise RequestError(Status.BAD_LENGTH, f"{self.name}: {call.n} elements are no whole transforms of 2^{k}")
        at, field = 0, call.field
        if field is None:
            field, at = domain.field_of(self.name, _number(payload, 0), toys=call.toys), ELEMENT_BYTES
        if call.param & OWN_DOMAIN:
            omega, shift = _number(payload, at), _number(payload, at + ELEMENT_BYTES)
            at += 2 * ELEMENT_BYTES
            domain.check_own(self.name, field, k, omega, shift)
        else:
            omega, shift = domain.default_omega(self.name, field, k), self.default_shift(field, k)
        words = np.frombuffer(payload[at:], dtype="<u4").reshape(
            len(self.operands), call.n, ELEMENT_BYTES // LIMB_BYTES
        )
        arrays = dict(zip(self.operands, words, strict=True))
        constants = {"omega": omega, "shift": shift}
        return Request(self, call.n, call.param, field.modulus, ELEMENT_BYTES, arrays, field, constants)

    def row(self, request: Request, traits: Traits) -> TransformRow:
        """By all the elements that go through the same launches."""
        log_total = (len(self.operands) * request.n - 1).bit_length()
        return transform_row(traits.kind, traits.arch, request.param & LOG_N, log_total)

    # --- self-test ---

    def proof_request(self, request: Request, plan: LaunchPlan) -> Request:
        return self.short_request(request, min(request.param & LOG_N, PROOF_LOG_N), PROOF_TRANSFORMS)

    def short_request(self, request: Request, short: int, count: int) -> Request:
        """`count` transforms of 2^short edge elements, asked for as the request asks."""
        k, field = request.param & LOG_N, _field(request)
        omega = pow(request.constants["omega"], 1 << (k - short), field.modulus)
        numbers = [field.modulus, omega, request.constants["shift"]]
        m, n = field.modulus, count << short
        edges = [0, 1, m - 1, m // 2, m // 3]
        for turn in range(len(self.operands)):
            numbers += [edges[(i + i // 5 * turn) % 5] * (i + 1) % m for i in range(n)]
        payload = np.frombuffer(pack(numbers, ELEMENT_BYTES), np.uint8).copy()
        param = (request.param & ~LOG_N) | OWN_DOMAIN | short
        return self.decode(Call(n, param), payload.data)

    def units(self, traits: Traits) -> tuple[Unit, ...]:
        rows = transform_rows(traits.kind, traits.arch)
        passes = (
            transform.pass_unit(field, row, coset=coset)
            for field in served()
            for row in rows
            for coset in (False, True)
        )
        return tuple(dict.fromkeys((*passes, *(transform.table_unit(field) for field in served()))))


def served() -> list[Field]:
    """The fields whose kernels are made ahead."""
    return [field for field in registered() if domain.transforms(field) and not field.toy]


def _field(request: Request) -> Field:
    assert request.field is not None, "decode names the field"
    return request.field


def _number(payload: memoryview, at: int) -> int:
    return int.from_bytes(payload[at : at + ELEMENT_BYTES], "little")


def fitting(op: Op, transforms: int, each: int, fixed: int, traits: Traits) -> int:
    """How many transforms fit the device's memory at once. each, fixed: bytes for every one, and in any case.

    Raises RequestError(TOO_LARGE) where not even one does.
    """
    fits = (traits.memory - fixed) // each
    if fits < 1:
        raise RequestError(
            Status.TOO_LARGE,
            f"{op.name}: one transform takes {each + fixed} bytes on the device, which may use {traits.memory}",
            hint="raise --device-memory",
        )
    return min(transforms, fits)


def table_bytes(tables: tuple[Table, ...]) -> int:
    """Of all of them, and of what making them takes."""
    return sum(table.building_bytes() for table in tables)
