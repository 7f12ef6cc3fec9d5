"""Who may have how many bytes in the worker: one total, beyond which every connection is sure of a share. No I/O."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(eq=False)
class Share:
    """One connection's account. used: bytes of its requests, from their reservation until their answer is sent."""

    used: int = 0


class Budget:
    """A request is granted while all of them stay within the total. One that keeps its connection within `sure` is granted
    beyond it too, so that nobody waits for a connection that holds much and does not go on; all together they stay within
    one and a half times the total (1,024 times 16 MiB would be more than there is)."""

    def __init__(self, total: int, sure: int) -> None:
        self.total = total
        self.sure = sure
        self.used = 0

    @property
    def bound(self) -> int:
        """The most that is ever in use."""
        return self.total + self.total // 2

    def take(self, share: Share, nbytes: int) -> bool:
        """Whether the share has got `nbytes`; if not, nothing has changed, and asking again after a `give` may work."""
        if self.used + nbytes > (self.bound if share.used + nbytes <= self.sure else self.total):
            return False
        share.used += nbytes
        self.used += nbytes
        return True

    def give(self, share: Share, nbytes: int) -> None:
        share.used -= nbytes
        self.used -= nbytes
        assert share.used >= 0 <= self.used, "more given back than taken"
