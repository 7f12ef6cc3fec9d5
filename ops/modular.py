"""What the element-wise ops modulo m have in common: the payload `m, a[n], ...`, its checks and its streaming plan."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from limbd.ops.base import LIMB_BYTES, Call, Launch, LaunchPlan, Op, Request, Traits, check_length
from limbd.ops.split import elementwise_plan
from limbd.ops.status import RequestError, Status

# An element on the wire when the modulus stands in the payload (wire.md section 4).
PLAIN_ELEMENT_BYTES = 32


@dataclass(frozen=True)
class ModularOp(Op):
    """An op on plain integers modulo any m with 1 <= m < 2^256, or modulo a registered field's modulus."""

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
        words = np.frombuffer(payload[start:], dtype="<u4").reshape(len(self.operands), call.n, width // LIMB_BYTES)
        arrays = dict(zip(self.operands, words, strict=True))
        return Request(self, call.n, call.param, modulus, width, arrays, call.field)

    def plan(self, request: Request, traits: Traits) -> LaunchPlan:
        return elementwise_plan(request, traits, lambda n: self.launch(request, n, traits))

    @abstractmethod
    def launch(self, request: Request, n: int, traits: Traits) -> Launch:
        """The kernel and its arguments for n elements of this request (the pointers come from the plan's buffers)."""


def _element_bytes(call: Call) -> int:
    return PLAIN_ELEMENT_BYTES if call.field is None else call.field.element_bytes
