"""Threads for work that blocks: large transfers, large pieces of memory, failed frames.

A hand-over is one queue and one eventfd each way. concurrent.futures and call_soon_threadsafe do the same with a future,
three locks and a socket pair, which a large frame, whose copying has emptied the caches, pays for in tenths of a
millisecond.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import queue
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

Work = Callable[[], Any]
Done = Callable[[Any], None]


class Threads:
    """At most `limit` threads, started as they are needed. All methods belong to the event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, limit: int) -> None:
        """Raises OSError (no descriptor left)."""
        self._loop = loop
        self._limit = limit
        self._orders: queue.SimpleQueue[tuple[Work, Done] | None] = queue.SimpleQueue()
        self._results: deque[tuple[Done, Any]] = deque()
        # One result a reading, so that a callback that fails leaves the others their turn.
        self._bell = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK | os.EFD_SEMAPHORE)
        loop.add_reader(self._bell, self._deliver)
        self._unfinished = 0
        self._crew = 0
        # Who may still ring the bell, this object among them: its descriptor's number may be another's once it is closed.
        self._ringers = 1
        self._lock = threading.Lock()

    def run(self, work: Work, done: Done) -> None:
        """Run `work` in a thread, then `done` with its result or exception on the event loop."""
        self._unfinished += 1
        if self._crew < min(self._unfinished, self._limit):
            self._start()
        self._orders.put((work, done))

    def close(self) -> None:
        """Nobody is told of results any more. What has begun is finished before the process ends; the rest is dropped."""
        self._loop.remove_reader(self._bell)
        with contextlib.suppress(queue.Empty):
            while True:
                self._orders.get_nowait()
        for _ in range(self._crew):
            self._orders.put(None)
        self._leave()

    def _start(self) -> None:
        thread = threading.Thread(target=self._serve, name="limbd-transfer")
        thread.start()
        self._crew += 1
        with self._lock:
            self._ringers += 1

    def _leave(self) -> None:
        with self._lock:
            self._ringers -= 1
            if self._ringers == 0:
                os.close(self._bell)

    def _serve(self) -> None:
        while (order := self._orders.get()) is not None:
            work, done = order
            try:
                result = work()
            except Exception as error:
                result = error
            self._results.append((done, result))
            os.eventfd_write(self._bell, 1)
            del order, work, done, result  # an idle thread holds on to no request
        self._leave()

    def _deliver(self) -> None:
        os.eventfd_read(self._bell)
        self._unfinished -= 1
        done, result = self._results.popleft()
        done(result)
