"""mod-add: a + b mod m, element by element."""

from __future__ import annotations

from dataclasses import dataclass

from limbd.ops.additive import AdditiveOp
from limbd.ops.base import Request
from limbd.ops.reference.mod_add import mod_add


@dataclass(frozen=True)
class ModAdd(AdditiveOp):
    """a + b mod m."""

    def reference(self, request: Request, result: memoryview) -> None:
        mod_add(request, result)


MOD_ADD = ModAdd(0x02, "mod-add", "a+b mod m", ("a", "b"))
