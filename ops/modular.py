"""What the element-wise ops modulo m have in common: the payload `m, a[n], ...`, its checks and its streaming plan."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from limbd.ops.base import LIMB_BYTES, Call, Launch, LaunchPlan, Op, Request, Traits, Unit, check_length
from limbd.ops.params.fields import FIELDS
from limbd.ops.split import elementwise_plan
from limbd.ops.status import RequestError, Status
from limbd.ops.tuning import all_tuned_for

# An element on the wire when the modulus stands in the payload (wire.md section 4).
PLAIN_ELEMENT_BYTES = 32

# Made once: numpy would parse the name for every request.
WORD = np.dtype("<u4")


@dataclass(frozen=True)
class ModularOp(Op):
    """An op on plain integers modulo any m with 1 <= m < 2^256, or modulo a registered field's modulus."""

    @property
    def elementwise(self) -> bool:
        return True

    def check(self, call: Call) -> None:
        if call.param != 0:
            raise RequestError(Status.BAD_PARAM, f"{self.name} takes no param, got {call.param:#x}")

    def payload_bytes(self, call: Call) -> int:
        width = _element_bytes(call)
        return (width if call.field is None else 0) + len(self.operands) * call.n * width

    def result_bytes(self, call: Call) -> int:
        return call.n * _element_bytes(call)

    def decode(self, call: Call, payload: memoryview) -> Request:
        self.check(call)
        check_length(self, call, payload)
        width = _element_bytes(call)
        start = width if call.field is None else 0
        modulus = int.from_bytes(payload[:start], "little") if call.field is None else call.field.modulus
        if modulus == 0:
            raise RequestError(Status.BAD_MODULUS, f"{self.name}: the modulus is 0", hint="any m >= 1 works")
        words = np.ndarray((len(self.operands), call.n, width // LIMB_BYTES), WORD, payload, start)
        arrays = dict(zip(self.operands, words, strict=True))
        return Request(self, call.n, call.param, modulus, width, arrays, call.field)

    def plan(self, request: Request, traits: Traits) -> LaunchPlan:
        return elementwise_plan(request, traits, lambda n: self.launch(request, n, traits))

    def tuned_for(self, traits: Traits) -> set[str]:
        return all_tuned_for(self.name, traits.kind, traits.arch)

    def units(self, traits: Traits) -> tuple[Unit, ...]:
        """Found by planning for moduli of every shape, every registered field and small to large n."""
        calls = [(Call(n, field=f), f.modulus) for n in _SIZES for f in FIELDS]
        calls += [(Call(n), m) for n in _SIZES for m in _moduli_of_every_shape()]
        roomy = replace(traits, memory=_ROOM)
        plans = (self.plan(self._blank(call, modulus), roomy) for call, modulus in calls)
        return tuple(
            dict.fromkeys(launch.kernel.unit for plan in plans for piece in plan.pieces for launch in piece.launches)
        )

    def _blank(self, call: Call, modulus: int) -> Request:
        """A request whose elements are all zero and take no memory."""
        width = _element_bytes(call)
        zeros = np.broadcast_to(np.zeros(1, np.uint32), (call.n, width // LIMB_BYTES))
        return Request(self, call.n, call.param, modulus, width, dict.fromkeys(self.operands, zeros), call.field)

    @abstractmethod
    def launch(self, request: Request, n: int, traits: Traits) -> Launch:
        """The kernel and its arguments for n elements of this request (the pointers come from the plan's buffers)."""


# What units() plans for: an op may choose its kernel by the size of the batch.
_SIZES = (1, 1000, 100_000, 4_000_000)
_ROOM = 1 << 40


def _moduli_of_every_shape() -> Iterator[int]:
    """For each limb count the longest and a short modulus, odd and even, and a full one that is not 2^256 - c."""
    yield from (1, 2)
    for bits in range(32, 257, 32):
        top = 1 << bits - 1
        yield from ((1 << bits) - 1, (1 << bits) - 2, top + 1, top, (top >> 7) + 1, top >> 7)


def _element_bytes(call: Call) -> int:
    return PLAIN_ELEMENT_BYTES if call.field is None else call.field.element_bytes
