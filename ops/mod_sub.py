"""mod-sub: a - b mod m, element by element."""

from __future__ import annotations

from dataclasses import dataclass

from limbd.ops.additive import AdditiveOp
from limbd.ops.base import Request
from limbd.ops.reference.mod_sub import mod_sub


@dataclass(frozen=True)
class ModSub(AdditiveOp):
    """a - b mod m."""

    def reference(self, request: Request, result: memoryview) -> None:
        mod_sub(request, result)


MOD_SUB = ModSub(0x03, "mod-sub", "a-b mod m", ("a", "b"))
