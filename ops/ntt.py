"""ntt: transforms of 2^k elements in a registered field, forward or inverse, plain or on a coset, in any of four orders."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from limbd.ops import lane_transform, transform
from limbd.ops.base import Buffer, LaunchPlan, Piece, Request, Role, Traits, Transfer, Unit
from limbd.ops.domain import ELEMENT_BYTES
from limbd.ops.lane_transform import LaneTransform
from limbd.ops.params.base import Field
from limbd.ops.reference.ntt import ntt
from limbd.ops.transform import Transform
from limbd.ops.transform_op import LOG_N, OWN_DOMAIN, Question, TransformOp, fitting, served, table_bytes
from limbd.ops.transform_shape import Order
from limbd.ops.tuning import LANE_ARCHITECTURES, LaneRow, Row, TransformRow, has_clusters, lane_row, serving

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

    def units(self, traits: Traits) -> tuple[Unit, ...]:
        if traits.kind == "cpu":
            return super().units(traits)
        fields = (field for field in served() if lane_transform.serves(field))
        small = (lane_transform.units(field, clusters=has_clusters(traits.arch)) for field in fields)
        return (*super().units(traits), *(unit for units in small for unit in units))

    def tuned_for(self, traits: Traits) -> set[str]:
        lanes = set() if traits.kind == "cpu" else {serving(traits.kind, traits.arch, LANE_ARCHITECTURES)}
        return super().tuned_for(traits) | lanes

    def reference(self, request: Request, result: memoryview) -> None:
        ntt(request, result)

    def row(self, request: Request, traits: Traits) -> Row:
        small = None
        if request.field is not None and lane_transform.serves(request.field):
            small = lane_row(traits.kind, traits.arch, request.param & LOG_N, (request.n - 1).bit_length())
        return small or self.pass_row(request, traits)

    def make_plan(self, question: Question, traits: Traits, row: Row) -> LaunchPlan:
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
        made = [_transform(question, 1, row) for row in rows]
        transforms = [replace(each, table=f"table {i}") for i, each in enumerate(made) if isinstance(each, Transform)]
        pieces = tuple(_piece(each, i, 1) for i, each in enumerate(transforms))
        tables = tuple(table for each in transforms for table in each.tables())
        return LaunchPlan((*buffers, transform.CHECKED), 1, pieces, tables)


_ROLES: dict[str, Role] = {"in": "in", "between": "scratch", "out": "out"}


def _piece(whole: Transform | LaneTransform, start: int, count: int) -> Piece:
    """`count` of the transforms from number `start` on."""
    at, nbytes = start * ELEMENT_BYTES << whole.k, count * ELEMENT_BYTES << whole.k
    middle = "out" if whole.stays else "between"
    buffers = ("in", *(middle,) * (whole.pass_count() - 1), "out")
    launches = replace(whole, count=count).passes(buffers, offset=start << whole.k)
    return Piece((Transfer("in", "x", at, nbytes),), launches, (Transfer("out", "result", at, nbytes),))


def _transform(question: Question, count: int, row: Row) -> Transform | LaneTransform:
    """On a coset, shift^i before a forward transform and shift^-i after an inverse one, which has 1/2^k as well."""
    order, m = Order(question.param >> ORDER_SHIFT & 3), question.field.modulus
    facts = (question.field, question.k, question.omega, count)
    made = (
        partial(LaneTransform, *facts, row, order)
        if isinstance(row, LaneRow)
        else partial(Transform, *facts, row, order, check=True)
    )
    shift = question.shift if question.param & COSET else 1
    if not question.param & INVERSE:
        return made(before=shift)
    return made(inverse=True, after=pow(shift, -1, m), scale=pow(1 << question.k, -1, m))


NTT = Ntt(0x20, "ntt", "number-theoretic transforms of 2^k elements", ("x",))
