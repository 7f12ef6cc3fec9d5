"""ntt: transforms of 2^k elements in a registered field, forward or inverse, plain or on a coset, in any of four orders."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from limbd.ops import transform
from limbd.ops.base import Buffer, LaunchPlan, Piece, Request, Role, Traits, Transfer
from limbd.ops.domain import ELEMENT_BYTES
from limbd.ops.params.base import Field
from limbd.ops.reference.ntt import ntt
from limbd.ops.transform import Transform
from limbd.ops.transform_op import LOG_N, OWN_DOMAIN, Question, TransformOp, fitting, table_bytes
from limbd.ops.transform_shape import Order
from limbd.ops.tuning import TransformRow

# Bits of param (wire.md section 4).
INVERSE = 1 << 8
COSET = 1 << 9
ORDER_SHIFT = 10


def param_of(k: int, *, inverse: bool = False, coset: bool = False, order: Order = Order.NN, own: bool = False) -> int:
    """The param word. own: the payload carries omega and shift."""
    return k | inverse * INVERSE | coset * COSET | order << ORDER_SHIFT | own * OWN_DOMAIN


@dataclass(frozen=True)
class Ntt(TransformOp):
    """A launch a pass; all transforms of a frame go through the same launches, as many at once as the memory holds."""

    @property
    def known_bits(self) -> int:
        return LOG_N | INVERSE | COSET | 3 << ORDER_SHIFT | OWN_DOMAIN

    def default_shift(self, field: Field, k: int) -> int:
        return field.generator or 1

    def reference(self, request: Request, result: memoryview) -> None:
        ntt(request, result)

    def make_plan(self, question: Question, traits: Traits, row: TransformRow) -> LaunchPlan:
        k, count = question.k, question.transforms
        whole = _transform(question, count, row)
        tables = whole.tables()
        names = ("in", "out") if whole.stays else ("in", "between", "out")
        at_once = fitting(self, count, len(names) * ELEMENT_BYTES << k, table_bytes(tables), traits)
        buffers = tuple(Buffer(name, _ROLES[name], at_once * ELEMENT_BYTES << k) for name in names)
        pieces = tuple(_piece(whole, start, min(at_once, count - start)) for start in range(0, count, at_once))
        return LaunchPlan((*buffers, transform.CHECKED), 1, pieces, tables)

    def one_by_each(self, question: Question, rows: Sequence[TransformRow]) -> LaunchPlan:
        buffers = tuple(Buffer(name, role, ELEMENT_BYTES << question.k) for name, role in _ROLES.items())
        transforms = [replace(_transform(question, 1, row), table=f"table {i}") for i, row in enumerate(rows)]
        pieces = tuple(_piece(each, i, 1) for i, each in enumerate(transforms))
        tables = tuple(table for each in transforms for table in each.tables())
        return LaunchPlan((*buffers, transform.CHECKED), 1, pieces, tables)


_ROLES: dict[str, Role] = {"in": "in", "between": "scratch", "out": "out"}


def _piece(whole: Transform, start: int, count: int) -> Piece:
    """`count` of the transforms from number `start` on."""
    at, nbytes = start * ELEMENT_BYTES << whole.k, count * ELEMENT_BYTES << whole.k
    middle = "out" if whole.stays else "between"
    buffers = ("in", *(middle,) * (whole.pass_count() - 1), "out")
    launches = replace(whole, count=count).passes(buffers, offset=start << whole.k)
    return Piece((Transfer("in", "x", at, nbytes),), launches, (Transfer("out", "result", at, nbytes),))


def _transform(question: Question, count: int, row: TransformRow) -> Transform:
    """On a coset, shift^i before a forward transform and shift^-i after an inverse one, which has 1/2^k as well."""
    field, k, omega = question.field, question.k, question.omega
    order, m = Order(question.param >> ORDER_SHIFT & 3), field.modulus
    shift = question.shift if question.param & COSET else 1
    if not question.param & INVERSE:
        return Transform(field, k, omega, count, row, order, before=shift, check=True)
    back, share = pow(shift, -1, m), pow(1 << k, -1, m)
    return Transform(field, k, omega, count, row, order, inverse=True, after=back, scale=share, check=True)


NTT = Ntt(0x20, "ntt", "number-theoretic transforms of 2^k elements", ("x",))
