"""quotient: A B - C on a coset from the values of A, B and C on the domain, as Groth16's prover needs it.

The three arrays lie behind each other in one buffer and go through the same launches: an inverse transform that multiplies
coefficient i by shift^i / 2^k, so that the coset costs nothing of its own, and a forward one, whose last pass runs for A and B
first, then for C, where it stores A B - C (kernels/entry/quotient.cu). Coefficients stay bit-reversed, and all passes after
the first one store where they load.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product

from limbd.ops import transform
from limbd.ops.base import Buffer, Call, Launch, LaunchPlan, Part, Piece, Request, Role, Table, Traits, Transfer, Unit
from limbd.ops.constant_product import roomy
from limbd.ops.domain import ELEMENT_BYTES
from limbd.ops.params.base import Field
from limbd.ops.reference.quotient import quotient
from limbd.ops.status import RequestError, Status
from limbd.ops.transform import Transform
from limbd.ops.transform_op import LOG_N, OWN_DOMAIN, SAMPLE_LOG_N, Question, TransformOp, fitting, served, table_bytes
from limbd.ops.transform_shape import Order
from limbd.ops.tuning import Row, TransformRow, transform_rows

# Bit of param (wire.md section 4): the coefficients of (A B - C) / Z instead of values of A B - C.
COEFFICIENTS = 1 << 13

ARRAYS = ("a", "b", "c")


def param_of(k: int, *, own: bool = False, coefficients: bool = False) -> int:
    """The param word. own: the payload carries omega and shift."""
    return k | own * OWN_DOMAIN | coefficients * COEFFICIENTS


@dataclass(frozen=True)
class Quotient(TransformOp):
    """5 launches where a transform has two passes, 7 with the coefficients; a frame is cut where the memory holds less."""

    @property
    def known_bits(self) -> int:
        return LOG_N | OWN_DOMAIN | COEFFICIENTS

    def default_shift(self, field: Field, k: int) -> int:
        """A root of unity of order 2^(k + 1), so that Z is -2."""
        if k >= field.two_adicity:
            raise RequestError(
                Status.BAD_DOMAIN,
                f"{self.name}: {field.name} has no default shift for 2^{k}, its two-adicity",
                hint=f"send omega and shift (bit {OWN_DOMAIN.bit_length() - 1} of param)",
            )
        return field.omega(k + 1)

    def decode(self, call: Call, payload: memoryview) -> Request:
        request = super().decode(call, payload)
        zero = vanishing(request.modulus, request.param & LOG_N, request.constants["shift"]) == 0
        if request.param & COEFFICIENTS and zero:
            raise RequestError(Status.BAD_DOMAIN, f"{self.name}: shift^(2^k) is 1, so that Z is 0 on the coset")
        return request

    def units(self, traits: Traits) -> tuple[Unit, ...]:
        rows = transform_rows(traits.kind, traits.arch)
        found = [transform.pass_unit(field, row, combines=True) for field in served() for row in rows]
        for field, row in product(served(), rows):
            if row.compiled and transform.compiles(field):
                outward = Transform(
                    field, SAMPLE_LOG_N, field.omega(SAMPLE_LOG_N), 1, row, Order.RN, combine=("a", "b")
                )
                found.append(outward.one_pass(outward.pass_count() - 1, "in", "out").kernel.unit)
        return (*super().units(traits), *dict.fromkeys(found))

    def reference(self, request: Request, result: memoryview) -> None:
        quotient(request, result)

    def make_plan(self, question: Question, traits: Traits, row: Row) -> LaunchPlan:
        assert isinstance(row, TransformRow), "its elements are in threads' registers, several in each"
        k, count, steps = question.k, question.transforms, _Steps.of(question, row)
        tables = _tables(steps)
        each = sum(arrays for _, _, arrays in _LAYOUT) * ELEMENT_BYTES << k
        at_once = fitting(self, count, each, table_bytes(tables), traits)
        buffers = tuple(Buffer(name, role, arrays * at_once * ELEMENT_BYTES << k) for name, role, arrays in _LAYOUT)
        starts = range(0, count, at_once)
        pieces = tuple(_piece(question, steps, start, min(at_once, count - start)) for start in starts)
        return LaunchPlan((*buffers, transform.CHECKED), 1, pieces, tables)

    def one_by_each(self, question: Question, rows: Sequence[TransformRow]) -> LaunchPlan:
        nbytes = ELEMENT_BYTES << question.k
        buffers = tuple(Buffer(name, role, arrays * nbytes) for name, role, arrays in _LAYOUT)
        steps = [_Steps.of(question, row, f" {i}") for i, row in enumerate(rows)]
        pieces = tuple(_piece(question, own, i, 1) for i, own in enumerate(steps))
        return LaunchPlan((*buffers, transform.CHECKED), 1, pieces, _tables(*steps))


def vanishing(modulus: int, k: int, shift: int) -> int:
    """Z on the coset: shift^(2^k) - 1."""
    return (pow(shift, 1 << k, modulus) - 1) % modulus


# Buffers and how many arrays each holds.
_LAYOUT: tuple[tuple[str, Role, int], ...] = (("in", "in", 3), ("work", "scratch", 3), ("out", "out", 1))


@dataclass(frozen=True)
class _Steps:
    """One transform of each kind. inward: from the domain to coefficients, which are left multiplied by shift^i R, so that the
    product of A and B costs no more than Montgomery's. outward: to the coset. back: from (A B - C) / Z there to coefficients, if
    they are asked for."""

    inward: Transform
    outward: Transform
    back: Transform | None

    @staticmethod
    def of(question: Question, row: TransformRow, suffix: str = "") -> _Steps:
        """suffix: of the names of its tables."""
        field, k, omega, shift = question.field, question.k, question.omega, question.shift
        m = field.modulus
        share = pow(1 << k, -1, m)
        whole = Transform(
            field, k, omega, 1, row, Order.NR, inverse=True, after=shift, scale=roomy(field).montgomery(share)
        )
        inward = replace(whole, check=True, table=f"inward{suffix}")
        outward = Transform(field, k, omega, 1, row, Order.RN, table=f"outward{suffix}")
        if not question.param & COEFFICIENTS:
            return _Steps(inward, outward, None)
        share = share * pow(vanishing(m, k, shift), -1, m) % m
        back = replace(whole, order=Order.NN, after=pow(shift, -1, m), scale=share, table=f"back{suffix}")
        return _Steps(inward, outward, back)

    def all(self) -> tuple[Transform, ...]:
        return (self.inward, self.outward, *((self.back,) if self.back else ()))

    def pass_count(self) -> int:
        """The same for all of them."""
        return self.inward.pass_count()


def _tables(*steps: _Steps) -> tuple[Table, ...]:
    return tuple(table for own in steps for step in own.all() for table in step.tables())


def _piece(question: Question, steps: _Steps, start: int, count: int) -> Piece:
    """`count` of the transforms of each array from number `start` on."""
    k, n = question.k, question.n
    at, nbytes = start * ELEMENT_BYTES << k, count * ELEMENT_BYTES << k
    copies = tuple(Transfer("in", name, at, nbytes, i * nbytes) for i, name in enumerate(ARRAYS))
    # Where the arrays lie in the buffer as they do in the request, an element's index there is the one that an error names.
    whole = count << k == n
    parts = [(0, 3)] if whole else [(i, 1) for i in range(3)]
    inward: list[Launch] = []
    for first, arrays in parts:
        source, target = (Part(name, first * nbytes) for name in ("in", "work"))
        own = replace(steps.inward, count=arrays * count)
        inward += own.passes((source, *(target,) * steps.pass_count()), offset=first * n + (start << k))
    return Piece(copies, (*inward, *_on_coset(steps, count, nbytes)), (Transfer("out", "result", at, nbytes),))


def _on_coset(steps: _Steps, count: int, nbytes: int) -> list[Launch]:
    """From coefficients to the end, in place but for the result. nbytes: of an array."""
    last, third = steps.pass_count() - 1, Part("work", 2 * nbytes)
    outward = replace(steps.outward, count=3 * count)
    launches = [outward.one_pass(i, "work", "work") for i in range(last)]
    launches.append(replace(outward, count=2 * count).one_pass(last, "work", "work"))
    combining = replace(outward, count=count, combine=("work", Part("work", nbytes)))
    launches.append(combining.one_pass(last, third, third if steps.back else "out"))
    if steps.back:
        launches += replace(steps.back, count=count).passes((*(third,) * steps.pass_count(), "out"))
    return launches


QUOTIENT = Quotient(0x21, "quotient", "A B - C on a coset, or (A B - C) / Z: the quotient of Groth16", ARRAYS)
