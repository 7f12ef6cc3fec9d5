"""Which parts of the shared memory a backend has registered: those that batches have used, and no more.

A driver that pins memory makes all of it resident, so the arena is not registered whole; and it refuses a copy that
reaches from one registered range into another, so a batch's memory has to lie in a single one.
"""

from __future__ import annotations

from collections.abc import Callable

from limbd.worker.device.base import Backend

# Ranges are rounded out to this, so that batches of similar sizes end up with the same range.
STEP = 2 << 20

# Registered from the start: small batches never wait for the driver.
FIRST_BYTES = 16 << 20


class PinnedMemory:
    """The lasting part of the arena, whose pages never change (worker/arena.py)."""

    def __init__(self, backend: Backend, memory: memoryview, first_bytes: int = FIRST_BYTES) -> None:
        self._backend = backend
        self._memory = memory
        self._ranges: list[tuple[int, int]] = []
        if memory:
            self.cover(0, min(first_bytes, len(memory)), lambda: None)

    def cover(self, start: int, end: int, settle: Callable[[], None]) -> None:
        """Make bytes start..end lie in one registered range. Memory beyond the lasting part is left alone.

        settle: waits until no batch is in flight; called before ranges that batches may be using are joined.
        """
        if end > len(self._memory) or any(low <= start and end <= high for low, high in self._ranges):
            return
        low, high = start - start % STEP, min(-(-end // STEP) * STEP, len(self._memory))
        touched = [known for known in self._ranges if known[0] < high and low < known[1]]
        if touched:
            settle()
            low, high = min(low, *(known[0] for known in touched)), max(high, *(known[1] for known in touched))
        for known in touched:
            self._backend.unregister(self._memory[slice(*known)])
            self._ranges.remove(known)
        self._backend.register(self._memory[low:high])
        self._ranges.append((low, high))
