"""What ntt and quotient share as ops: the payload `m, (omega, shift)?, arrays`, its checks, and the self-test's request."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product

import numpy as np

from limbd.ops import domain, transform
from limbd.ops.base import LIMB_BYTES, Call, LaunchPlan, Op, Request, Table, Traits, Unit, check_length
from limbd.ops.domain import ELEMENT_BYTES
from limbd.ops.params.base import Field
from limbd.ops.params.fields import registered
from limbd.ops.params.layout import pack
from limbd.ops.status import RequestError, Status
from limbd.ops.transform import Transform
from limbd.ops.transform_proof import proof_of
from limbd.ops.transform_shape import Order
from limbd.ops.tuning import Row, TransformRow, transform_row, transform_rows, transform_tuned_for

# Bits of param that both ops have (wire.md section 4).
LOG_N = 0xFF
OWN_DOMAIN = 1 << 12

# Of the compiled shapes that are checked ahead.
SAMPLE_LOG_N = 20

# Plans that are kept: clients ask the same again and again, and short transforms take less time than their plan.
KEPT_PLANS = 64


@dataclass(frozen=True)
class Question:
    """A request without its elements: what its plan depends on."""

    field: Field
    param: int
    n: int
    omega: int
    shift: int

    @staticmethod
    def of(request: Request) -> Question:
        constants = request.constants
        return Question(_field(request), request.param, request.n, constants["omega"], constants["shift"])

    @property
    def k(self) -> int:
        return self.param & LOG_N

    @property
    def transforms(self) -> int:
        """How many there are of each array."""
        return self.n >> self.k


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

    @abstractmethod
    def make_plan(self, question: Question, traits: Traits, row: Row) -> LaunchPlan:
        """For one transform or more."""

    @abstractmethod
    def one_by_each(self, question: Question, rows: Sequence[TransformRow]) -> LaunchPlan:
        """As many transforms as rows, each by one of them."""

    def plan(self, request: Request, traits: Traits) -> LaunchPlan:
        return self.plan_by(request, traits, self.row(request, traits))

    def proof_plan(self, small: Request, plan: LaunchPlan, traits: Traits) -> LaunchPlan:
        rows = proof_of(plan).rows
        if len(rows) == 1:
            return self.plan_by(small, traits, rows[0])
        return self.one_by_each(Question.of(small), [row for row in rows if isinstance(row, TransformRow)])

    def plan_by(self, request: Request, traits: Traits, row: Row) -> LaunchPlan:
        """The plan by a row of the tuning."""
        return _planned(self, Question.of(request), traits, row) if request.n else LaunchPlan((), 1, ())

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

    def row(self, request: Request, traits: Traits) -> Row:
        return self.pass_row(request, traits)

    def pass_row(self, request: Request, traits: Traits) -> TransformRow:
        """By all the elements that go through the same launches."""
        log_total = (len(self.operands) * request.n - 1).bit_length()
        row = transform_row(traits.kind, traits.arch, request.param & LOG_N, log_total)
        return row if transform.compiles(_field(request)) else replace(row, compiled=())

    # --- self-test ---

    def proof_request(self, request: Request, plan: LaunchPlan) -> Request:
        """A few short transforms of edge elements, asked for as the request asks."""
        k, field = request.param & LOG_N, _field(request)
        proof = proof_of(plan)
        short = min(k, proof.log_n)
        omega = pow(request.constants["omega"], 1 << (k - short), field.modulus)
        numbers = [field.modulus, omega, request.constants["shift"]]
        m, n = field.modulus, proof.count << short
        edges = [0, 1, m - 1, m // 2, m // 3]
        for turn in range(len(self.operands)):
            numbers += [edges[(i + i // 5 * turn) % 5] * (i + 1) % m for i in range(n)]
        payload = np.frombuffer(pack(numbers, ELEMENT_BYTES), np.uint8).copy()
        param = (request.param & ~LOG_N) | OWN_DOMAIN | short
        return self.decode(Call(n, param), payload.data)

    def tuned_for(self, traits: Traits) -> set[str]:
        return {transform_tuned_for(traits.kind, traits.arch)}

    def units(self, traits: Traits) -> tuple[Unit, ...]:
        """Of shapes that are compiled in, a sample: there is one for each size, order and direction."""
        rows = transform_rows(traits.kind, traits.arch)
        found = [transform.pass_unit(field, row, coset=c) for field in served() for row in rows for c in (False, True)]
        found += [transform.table_unit(field) for field in served()]
        for field, row in product(served(), rows):
            if row.compiled and transform.compiles(field):
                sample = Transform(field, SAMPLE_LOG_N, field.omega(SAMPLE_LOG_N), 1, row, Order.NN, check=True)
                found += [launch.kernel.unit for launch in sample.passes(["in"] * (sample.pass_count() + 1))]
        return tuple(dict.fromkeys(found))


@lru_cache(maxsize=KEPT_PLANS)
def _planned(op: TransformOp, question: Question, traits: Traits, row: Row) -> LaunchPlan:
    return op.make_plan(question, traits, row)


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
