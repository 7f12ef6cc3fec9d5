"""ntt: transforms of 2^k elements in a registered field, forward or inverse, plain or on a coset, in any of four orders."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from limbd.ops import lane_transform, transform
from limbd.ops.base import Buffer, LaunchPlan, Piece, Request, Role, Traits, Transfer, Unit
from limbd.ops.domain import ELEMENT_BYTES
from limbd.ops.lane_transform import LaneTransform
from limbd.ops.params.base import Field
from limbd.ops.reference.ntt import ntt
from limbd.ops.transform import Transform
from limbd.ops.transform_op import LOG_N, OWN_DOMAIN, TransformOp, fitting, served, table_bytes
from limbd.ops.transform_shape import Order
from limbd.ops.tuning import LaneRow, TransformRow, has_clusters, lane_row

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

    def plan(self, request: Request, traits: Traits) -> LaunchPlan:
        return self._plan(request, traits, self._lane_row(request, traits) or self.row(request, traits))

    def proof_request(self, request: Request, plan: LaunchPlan) -> Request:
        """Transforms with an element a thread are short: one as long as the request's has all of the plan's kernels."""
        return (
            self.short_request(request, request.param & LOG_N, 1)
            if lane_transform.row_of(plan)
            else super().proof_request(request, plan)
        )

    def proof_plan(self, small: Request, plan: LaunchPlan, traits: Traits) -> LaunchPlan:
        return self._plan(small, traits, lane_transform.row_of(plan) or transform.row_of(plan))

    def units(self, traits: Traits) -> tuple[Unit, ...]:
        if traits.kind == "cpu":
            return super().units(traits)
        fields = (field for field in served() if lane_transform.serves(field))
        small = (lane_transform.units(field, clusters=has_clusters(traits.arch)) for field in fields)
        return (*super().units(traits), *(unit for units in small for unit in units))

    def reference(self, request: Request, result: memoryview) -> None:
        ntt(request, result)

    def _lane_row(self, request: Request, traits: Traits) -> LaneRow | None:
        """By all the elements that go through the same launches."""
        if request.field is None or not lane_transform.serves(request.field):
            return None
        return lane_row(traits.kind, traits.arch, request.param & LOG_N, (request.n - 1).bit_length())

    def _plan(self, request: Request, traits: Traits, row: TransformRow | LaneRow) -> LaunchPlan:
        if request.n == 0:
            return LaunchPlan((), 1, ())
        k = request.param & LOG_N
        whole = _transform(request, request.n >> k, row)
        tables = whole.tables()
        names = ("in", "out") if whole.stays else ("in", "between", "out")
        at_once = fitting(self, request.n >> k, len(names) * ELEMENT_BYTES << k, table_bytes(tables), traits)
        buffers = tuple(Buffer(name, _ROLES[name], at_once * ELEMENT_BYTES << k) for name in names)
        starts = range(0, request.n >> k, at_once)
        pieces = tuple(_piece(request, row, start, min(at_once, (request.n >> k) - start)) for start in starts)
        return LaunchPlan((*buffers, transform.CHECKED), 1, pieces, tables)


_ROLES: dict[str, Role] = {"in": "in", "between": "scratch", "out": "out"}


def _piece(request: Request, row: TransformRow | LaneRow, start: int, count: int) -> Piece:
    """`count` of the request's transforms from number `start` on."""
    k = request.param & LOG_N
    at, nbytes = start * ELEMENT_BYTES << k, count * ELEMENT_BYTES << k
    own = _transform(request, count, row)
    middle = "out" if own.stays else "between"
    buffers = ("in", *(middle,) * (own.pass_count() - 1), "out")
    launches = own.passes(buffers, offset=start << k)
    return Piece((Transfer("in", "x", at, nbytes),), launches, (Transfer("out", "result", at, nbytes),))


def _transform(request: Request, count: int, row: TransformRow | LaneRow) -> Transform | LaneTransform:
    """On a coset, shift^i before a forward transform and shift^-i after an inverse one, which has 1/2^k as well."""
    k, param, field = request.param & LOG_N, request.param, request.field
    assert field is not None, "decode names the field"
    order, omega = Order(param >> ORDER_SHIFT & 3), request.constants["omega"]
    shift, m = request.constants["shift"] if param & COSET else 1, field.modulus
    transform_of = (
        partial(LaneTransform, field, k, omega, count, row, order)
        if isinstance(row, LaneRow)
        else partial(Transform, field, k, omega, count, row, order, check=True)
    )
    if not param & INVERSE:
        return transform_of(before=shift)
    return transform_of(inverse=True, after=pow(shift, -1, m), scale=pow(1 << k, -1, m))


NTT = Ntt(0x20, "ntt", "number-theoretic transforms of 2^k elements", ("x",))
