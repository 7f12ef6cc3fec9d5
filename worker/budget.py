"""Who may have how many bytes in the worker: one total, of which every connection is sure of a share. No I/O."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(eq=False)
class Share:
    """One connection's account. used: bytes of its requests, from their reservation until their answer is sent. giant:
    bytes of the one that was too large for the rule, 0 where there is none."""

    used: int = 0
    giant: int = 0


class Budget:
    """total is the bound. A request that keeps its connection within `sure` may use all of it; one that goes beyond
    has to leave free what the other connections have not used of their sure shares (for as many of them as half the
    total serves: 1,024 times 16 MiB would be more than there is). A request too large for that rule altogether, a giant, is
    granted when the total alone allows it, so that the payload limit holds whoever else is connected; while it is there the
    others' sure shares lie beyond the total, up to half of it, so that nobody waits for the giant's client."""

    def __init__(self, total: int, sure: int) -> None:
        self.total = total
        self.sure = sure
        self.used = 0
        self._giants = 0
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
        sure = share.used + nbytes <= self.sure
        if self.used + nbytes > self.total + (self.total // 2 if sure and self._giants else 0):
            return False
        if not sure:
            room = self.total - self._promised(share)
            if nbytes <= room < self.used + nbytes:
                return False
            if nbytes > room:
                share.giant = nbytes
                self._giants += 1
        share.used += nbytes
        self.used += nbytes
        return True

    def give(self, share: Share, nbytes: int) -> None:
        if share.giant and nbytes == share.giant:
            share.giant = 0
            self._giants -= 1
        share.used -= nbytes
        self.used -= nbytes
        assert share.used >= 0 <= self.used, "more given back than taken"

    def _promised(self, asking: Share) -> int:
        """Bytes that the others may still claim."""
        unused = sum(max(0, self.sure - other.used) for other in self._shares if other is not asking)
        return min(unused, self.total // 2)
