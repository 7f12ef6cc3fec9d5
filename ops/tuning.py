"""Tuning values by op, limbs of the modulus and architecture. Each row names the plan and the result that set it.

A row without a limb count or architecture ("*") serves those that have none of their own.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Tuning:
    """block: threads a block. source: the plan and result that set the row, or "unmeasured" with the reason for it."""

    block: int
    source: str


ANY = "*"

TABLE: dict[tuple[str, int | str, str], Tuning] = {
    ("mod-mul", ANY, ANY): Tuning(256, "unmeasured: whole waves of blocks at 48 registers"),
    ("mod-add", ANY, ANY): Tuning(256, "unmeasured: memory-bound"),
    ("mod-sub", ANY, ANY): Tuning(256, "unmeasured: memory-bound"),
    # The window tables of 64 threads fill 32 KB of shared memory (48 KB for 12 limbs), the most that needs no opt-in.
    ("mod-exp", ANY, ANY): Tuning(64, "unmeasured: shared memory without opt-in"),
    # 80 registers: 24 warps an SM, which is one wave at n = 1e5; small blocks spread a small n over more SMs.
    ("mod-inv", ANY, ANY): Tuning(64, "unmeasured: one wave at n = 1e5, 157 blocks at 1e4"),
}


def tuning(op: str, limbs: int, arch: str) -> Tuning:
    """The most exact row. Raises KeyError for an op without any."""
    for key in ((op, limbs, arch), (op, ANY, arch), (op, limbs, ANY)):
        if key in TABLE:
            return TABLE[key]
    return TABLE[(op, ANY, ANY)]
