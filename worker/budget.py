"""Who may have how many bytes in the worker: one total, of which every connection is sure of a share. No I/O."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(eq=False)
class Share:
    """One connection's account. used: bytes of its requests, from their reservation until their answer is sent."""

    used: int = 0


class Budget:
    """total is a hard bound. A request that keeps its connection within `sure` may use all of it; one that goes beyond
    has to leave free what the other connections have not used of their sure shares (for as many of them as half the
    total serves: 1,024 times 16 MiB would be more than there is). A request too large for that rule altogether is
    granted when the total alone allows it, so that the payload limit holds whoever else is connected."""

    def __init__(self, total: int, sure: int) -> None:
        self.total = total
        self.sure = sure
        self.used = 0
        self._shares: set[Share] = set()

    def open(self) -> Share:
        share = Share()
        self._shares.add(share)
        return share

    def close(self, share: Share) -> None:
        """The connection is gone; what it still uses stays counted until it is given back."""
        self._shares.discard(share)

    def take(self, share: Share, nbytes: int) -> bool:
        """Whether the share has got `nbytes`; if not, nothing has changed, and asking again after a `give` may work."""
        if self.used + nbytes > self.total:
            return False
        if share.used + nbytes > self.sure:
            room = self.total - self._promised(share)
            if nbytes <= room < self.used + nbytes:
                return False
        share.used += nbytes
        self.used += nbytes
        return True

    def give(self, share: Share, nbytes: int) -> None:
        share.used -= nbytes
        self.used -= nbytes
        assert share.used >= 0 <= self.used, "more given back than taken"

    def _promised(self, asking: Share) -> int:
        """Bytes that the others may still claim."""
        unused = sum(max(0, self.sure - other.used) for other in self._shares if other is not asking)
        return min(unused, self.total // 2)
