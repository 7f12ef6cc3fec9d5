"""stderr: one line a request (wire.md section 5) and the worker's own words, written by a thread of its own.

A reader that stalls holds up this thread and nothing else: lines wait in bounded memory, then are dropped and counted.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections import deque
from dataclasses import dataclass

from limbd.ops.status import Status
from limbd.worker.device.base import Outcome

WAITING_LINES = 100_000
CLOSE_SECONDS = 1.0

# After the first line the thread waits this long for more: waking it for each would cost a small request a tenth of its
# time.
GATHER_SECONDS = 0.002
BATCH_LINES = 1000


@dataclass(frozen=True)
class Record:
    """What a request's line says. total: seconds from its header's arrival to its answer's turn.

    connection: number of the connection where there are several, else None.
    """

    seq: int
    op: str
    n: int
    backend: str
    device: int
    outcome: Outcome
    total: float
    status: Status
    index: int | None = None
    connection: int | None = None

    def line(self) -> str:
        o = self.outcome
        text = (
            f"seq={self.seq} op={self.op} n={self.n} backend={self.backend} device={self.device} "
            f"kernel={o.kernel_ms:.4f}ms h2d={o.h2d_ms:.4f}ms d2h={o.d2h_ms:.4f}ms total={1e3 * self.total:.4f}ms "
            f"status={self.status.name}"
        )
        if self.index is not None:
            text += f" index={self.index}"
        if self.connection is not None:
            text += f" conn={self.connection}"
        return text


class RequestLog:
    """put() never waits and never fails."""

    def __init__(self, fd: int = 2, waiting_lines: int = WAITING_LINES) -> None:
        self._fd = fd
        self._limit = waiting_lines
        self._lines: deque[str | Record] = deque()
        self._dropped = 0
        self._wake = threading.Event()
        self._asleep = False
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="stderr", daemon=True)
        self._thread.start()

    def put(self, line: str | Record) -> None:
        """One line, without its end."""
        if len(self._lines) >= self._limit:
            self._dropped += 1
        else:
            self._lines.append(line)
        if self._asleep:
            self._asleep = False
            self._wake.set()

    def close(self, seconds: float = CLOSE_SECONDS) -> None:
        """Write what is waiting, but wait no longer than `seconds` for a reader that stalls."""
        self._closing = True
        self._wake.set()
        self._thread.join(seconds)

    def _run(self) -> None:
        while True:
            while self._lines:
                self._write(self._batch())
            if self._closing:
                return
            self._wake.clear()
            self._asleep = True
            # A line that was put before `_asleep` was seen has woken nobody, so look again.
            if not self._lines and not self._closing:
                self._wake.wait()
            self._asleep = False
            if not self._closing:
                time.sleep(GATHER_SECONDS)

    def _batch(self) -> bytes:
        lines: list[str] = []
        while self._lines and len(lines) < BATCH_LINES:
            line = self._lines.popleft()
            lines.append(line if isinstance(line, str) else line.line())
        if self._dropped:
            dropped, self._dropped = self._dropped, 0
            lines.append(f"dropped={dropped}")
        return ("\n".join(lines) + "\n").encode(errors="replace")

    def _write(self, data: bytes) -> None:
        with contextlib.suppress(OSError):  # a closed stderr: there is nobody to tell
            while data:
                data = data[os.write(self._fd, data) :]
