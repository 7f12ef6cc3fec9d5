"""ntt: transforms of 2^k elements in a registered field, forward or inverse, plain or on a coset, in any of four orders."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from limbd.ops import transform
from limbd.ops.base import (
    BAD_ELEMENT,
    LIMB_BYTES,
    Buffer,
    Call,
    LaunchPlan,
    Op,
    Piece,
    Request,
    Table,
    Traits,
    Transfer,
    Unit,
    check_length,
)
from limbd.ops.params.base import Field
from limbd.ops.params.fields import registered
from limbd.ops.params.layout import PLAIN_LIMBS, from_ints
from limbd.ops.reference.ntt import ntt
from limbd.ops.status import RequestError, ServiceError, Status
from limbd.ops.transform import ELEMENT_BYTES, Order, Scale, Transform
from limbd.ops.tuning import TransformRow, transform_row

# Bits of param (wire.md section 4).
LOG_N = 0xFF
INVERSE = 1 << 8
COSET = 1 << 9
ORDER_SHIFT = 10
OWN_DOMAIN = 1 << 12
KNOWN = LOG_N | INVERSE | COSET | 3 << ORDER_SHIFT | OWN_DOMAIN

# A self-test's transforms: long enough for every step of the widest radix.
PROOF_LOG_N = 7


def param_of(
    k: int, *, inverse: bool = False, coset: bool = False, order: Order = Order.NN, own: bool = False
) -> int:
    """The param word. own: the payload carries omega and shift."""
    return k | inverse * INVERSE | coset * COSET | order << ORDER_SHIFT | own * OWN_DOMAIN


@dataclass(frozen=True)
class Ntt(Op):
    """One launch a pass; all transforms of a frame go through the same launches, as many as the memory holds."""

    def check(self, call: Call) -> None:
        check_param(self, call, KNOWN)

    def payload_bytes(self, call: Call) -> int:
        return domain_bytes(call) + call.n * ELEMENT_BYTES

    def result_bytes(self, call: Call) -> int:
        return call.n * ELEMENT_BYTES

    def decode(self, call: Call, payload: memoryview) -> Request:
        return decode(self, call, payload, self.operands, lambda field, k: field.generator or 0)

    def plan(self, request: Request, traits: Traits) -> LaunchPlan:
        if request.n == 0:
            return LaunchPlan((), 1, ())
        k, field = request.param & LOG_N, field_of(request)
        tables = self._transform(request, field, 1, traits).tables()
        count = fitting(self, request.n >> k, 3 * ELEMENT_BYTES << k, tables, traits)
        buffers = tuple(Buffer(name, role, count * ELEMENT_BYTES << k) for name, role in _BUFFERS)
        pieces = tuple(self._piece(request, field, start, min(count, (request.n >> k) - start), traits)
                       for start in range(0, request.n >> k, count))
        return LaunchPlan(buffers, 1, pieces, tables, checked=True)

    def _piece(self, request: Request, field: Field, start: int, count: int, traits: Traits) -> Piece:
        k = request.param & LOG_N
        at, nbytes = start * ELEMENT_BYTES << k, count * ELEMENT_BYTES << k
        own = self._transform(request, field, count, traits)
        launches = own.passes(route("x", "between", "out", own.pass_count()), offset=start << k)
        return Piece((Transfer("x", "x", at, nbytes),), launches, (Transfer("out", "result", at, nbytes),))

    def _transform(self, request: Request, field: Field, count: int, traits: Traits) -> Transform:
        """The transform of `count` of the request's; its tuning is that of the whole request."""
        k, param, m = request.param & LOG_N, request.param, field.modulus
        inverse, shift = bool(param & INVERSE), request.constants["shift"] if param & COSET else 1
        before = after = None
        if inverse:
            scale = pow(1 << k, -1, m)
            after = (
                transform.coset_scale(field, k, pow(shift, -1, m), scale)
                if shift != 1
                else transform.constant_scale(field, scale)
            )
        elif shift != 1:
            before = transform.coset_scale(field, k, shift)
        row = transform_row(traits.kind, traits.arch, (request.n - 1).bit_length())
        order = Order(param >> ORDER_SHIFT & 3)
        return Transform(field, k, request.constants["omega"], count, row, order, inverse, before, after, check=True)

    def proof_request(self, request: Request) -> Request:
        """A few transforms of edge elements, of the same kind."""
        return proof_request(self, request, KNOWN)

    def proof_plan(self, small: Request, plan: LaunchPlan, traits: Traits) -> LaunchPlan:
        return proof_plan(self, small, plan, traits)

    def units(self, traits: Traits) -> tuple[Unit, ...]:
        return units(traits)

    def reference(self, request: Request, result: memoryview) -> None:
        ntt(request, result)


_BUFFERS = (("x", "in"), ("between", "scratch"), ("out", "out"))
