"""What can be put to the test: a backend in this process, or a worker behind a client."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from limbd.harness.inputs import PLAIN_BITS, Residues
from limbd.ops import by_name
from limbd.ops.base import LIMB_BYTES, Call, Limbs, Op, Traits
from limbd.ops.msm import CURVE, Msm
from limbd.ops.params import curves
from limbd.ops.params.curves import Curve
from limbd.ops.params.fields import by_modulus
from limbd.ops.params.layout import pack
from limbd.worker.config import Limits
from limbd.worker.device.base import Backend
from limbd.worker.exchange import exchange_of_arrays

# Results that a backend left alone, or wrote past their end, must not look right by chance.
POISON = 0xA5
GUARD_BYTES = 4096

# A modulus and a domain before the operands.
HEAD_BYTES = 3 * 32


class Target(Protocol):
    """Answers one batch. name: as in `--backend` or `--connect`, for reproducers. fields: it can be asked by a field's
    parameters; if not, the modulus has to stand in the payload. toys: it serves toy fields where an op takes registered
    fields alone. curves: of multi-scalar multiplications, the names of those that it serves; none named: all.
    traits: what plans are made for, where that is known. most_bytes: of operands in one question, as a worker of
    usual limits takes them; None: any."""

    name: str
    fields: bool
    toys: bool
    curves: tuple[str, ...]
    most_bytes: int | None

    @property
    def traits(self) -> Traits | None: ...

    def answer(self, op: str, residues: Residues, operands: Mapping[str, Limbs]) -> Limbs:
        """The results, shape (n, W); operands in the payload's order. Raises LimbdError."""
        ...


class BackendTarget:
    """A Backend object: decode, plan and run, as the worker's child does it."""

    fields = True
    toys = True
    curves: tuple[str, ...] = ()
    most_bytes: int | None = None

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self.name = f"--backend {backend.describe().name}"

    @property
    def traits(self) -> Traits:
        return self.backend.traits()

    def answer(self, op: str, residues: Residues, operands: Mapping[str, Limbs]) -> Limbs:
        n = len(next(iter(operands.values())))
        return self.answer_payload(
            by_name(op), Call(n, residues.param, residues.field), payload_of(op, residues, operands)
        )

    def answer_payload(self, op: Op, call: Call, payload: Limbs) -> Limbs:
        """The same from the payload's bytes. Raises GuardError where the backend wrote past the end of the results."""
        request = op.decode(call, payload.data.cast("B"))
        size = op.result_bytes(call)
        memory = np.full(size + GUARD_BYTES, POISON, dtype=np.uint8)
        plan = op.plan(request, self.backend.traits())
        self.backend.run(request, plan, memory.data[:size])
        if not (memory[size:] == POISON).all():
            raise GuardError(f"{op.name}, n = {call.n}: {self.name[10:]} wrote past the end of the results")
        return memory[:size].view("<u4").reshape(-1, request.element_bytes // LIMB_BYTES)


class ClientTarget:
    """A worker behind a synchronous client (limbd.Client), over frames of version 1."""

    fields = False
    toys = False
    curves: tuple[str, ...] = ()
    traits = None
    most_bytes: int | None = Limits().payload - HEAD_BYTES

    def __init__(self, client: Any, name: str) -> None:
        self.client = client
        self.name = name

    def answer(self, op: str, residues: Residues, operands: Mapping[str, Limbs]) -> Limbs:
        if not by_name(op).modulus_in_payload:
            scalars = next(iter(operands.values()))
            asked = exchange_of_arrays(by_name(op), len(scalars), residues.param, operands.values())
            points: Limbs = self.client.ask(asked)
            return points
        more = {"param": residues.param, "domain": residues.domain} if residues.param else {}
        answer: Limbs = self.client.call(op, list(operands.values()), residues.modulus, **more)
        return answer


class GuardError(AssertionError):
    """A backend touched memory that is not its own."""


def payload_of(op: str, residues: Residues, operands: Mapping[str, Limbs]) -> Limbs:
    """A request's payload as one array of words: the modulus unless a field names it or the op has none, the domain, then the
    operands."""
    first = () if residues.field or not by_name(op).modulus_in_payload else (residues.modulus,)
    head = np.frombuffer(pack((*first, *residues.domain), residues.bits // 8), dtype="<u4")
    return np.concatenate([head, *(array.reshape(-1) for array in operands.values())])


def can_ask(target: Target, op: str, residues: Residues) -> bool:
    """Whether the target can be asked at all."""
    if isinstance(by_name(op), Msm):
        return _serves(target, curves.by_low_byte(residues.param & CURVE))
    field = by_modulus(residues.modulus)
    served = target.toys or field is None or not field.toy or by_name(op).elementwise
    return served and (target.fields or residues.modulus.bit_length() <= PLAIN_BITS)


def _serves(target: Target, curve: Curve | None) -> bool:
    """Curves that there are not are for the target to refuse."""
    if curve is None:
        return True
    return (target.toys or not curve.toy) and (not target.curves or curve.name in target.curves)


def asked_as(target: Target, residues: Residues) -> Residues:
    """The same residues as the target can be asked for them."""
    return residues if target.fields else replace(residues, field=None)
