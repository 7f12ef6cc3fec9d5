"""A connection's transport over standard streams: two threads, because asyncio refuses regular files.

stdin may be a file, a pipe, a terminal, a socket or /dev/null, and so may stdout. The reading thread moves a large
payload straight into its slot; the writing thread sends the slot's view. The reading thread waits in poll(2) with a
wake-up pipe at hand, so that it can be told to stop; one that is stuck in a write ends with the process.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import queue
import select
import socket
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from limbd.worker.connection import Connection
from limbd.worker.service import Service

SCRATCH_BYTES = 256 << 10

# Asked of the kernel for pipes: 64 KiB would mean a system call for each.
PIPE_BYTES = 1 << 20

# The other side has hung up (EIO: a terminal), or there was no stream to begin with: no failures of this machine.
INPUT_ENDED = (errno.EIO, errno.ECONNRESET)
OUTPUT_CLOSED = (errno.EPIPE, errno.ECONNRESET, errno.EBADF)


class StreamTransport:
    """Owns the descriptors `source` and `sink`, as far as to redirect them to /dev/null at the end."""

    def __init__(self, service: Service, connection: Connection, source: int, sink: int) -> None:
        self._loop = service.loop
        self._connection = connection
        self._source = source
        self._sink = sink
        self._scratch = memoryview(bytearray(SCRATCH_BYTES))
        self._wake, self._wake_end = os.pipe()
        self._orders: queue.SimpleQueue[memoryview | None] = queue.SimpleQueue()
        self._answers: queue.SimpleQueue[tuple[int, bytes, memoryview] | None] = queue.SimpleQueue()
        self._reading = self._ended = False
        self._writing = 0
        self._lingering = self._closing = self._closed = False
        for fd in (source, sink):
            with contextlib.suppress(OSError):
                fcntl.fcntl(fd, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        for name, run in (("stdin", self._run_reader), ("stdout", self._run_writer)):
            threading.Thread(target=run, name=name, daemon=True).start()
        connection.attach(self)

    # --- Transport ---

    def update(self) -> None:
        wanted = self._connection.wants_input or self._lingering
        if wanted and not (self._reading or self._ended or self._closing):
            self._reading = True
            target = None if self._lingering else self._connection.target
            self._orders.put(self._scratch if target is None else target)

    def send(self, seq: int, header: bytes, body: memoryview) -> None:
        if not self._closing:
            self._writing += 1
            self._answers.put((seq, header, body))

    def linger(self, seconds: float) -> None:
        self._lingering = True
        _close_stream(self._sink)
        self._loop.call_later(seconds, self.close)
        if self._ended:
            self.close()
        else:
            self.update()

    def close(self) -> None:
        """Stop both threads; closed when neither has a slot's view."""
        if not self._closing:
            self._closing = True
            os.write(self._wake_end, b"x")
            self._orders.put(None)
            self._answers.put(None)
        if not self._closed and not self._reading and not self._writing:
            self._closed = True
            self._connection.closed()

    def abort(self) -> None:
        self.close()

    # --- the event loop's side of the threads ---

    def _on_read(self, order: memoryview, count: int, ended: bool, why: str) -> None:
        self._reading = False
        if self._closing:
            self.close()
        elif why:
            self._ended = True
            self._connection.lost(f"cannot read the standard input: {why}")
        elif self._lingering:
            self._ended = ended
            if ended:
                self.close()
        elif count:
            if order is self._scratch:
                self._connection.feed(order[:count])
            else:
                self._connection.filled(count)
        if ended and not self._ended:
            self._ended = True
            self._connection.ended()
        self.update()

    def _on_written(self, seq: int, error: OSError | None) -> None:
        self._writing -= 1
        if self._closing:
            self.close()
        elif error is not None:
            gone = error.errno in OUTPUT_CLOSED
            self._connection.lost("" if gone else f"cannot write the standard output: {error.strerror}")
        else:
            self._connection.sent(seq)

    # --- threads ---

    def _run_reader(self) -> None:
        while (order := self._orders.get()) is not None:
            try:
                count, ended = self._fill(order, whole=order is not self._scratch)
            except OSError as error:
                self._tell(self._on_read, order, 0, True, str(error.strerror))
            else:
                self._tell(self._on_read, order, count, ended, "")

    def _fill(self, order: memoryview, whole: bool) -> tuple[int, bool]:
        """Bytes read, and whether the input has ended (one whose writer broke off has). whole: not before the view is
        full. Raises OSError if it cannot be read."""
        count = 0
        while count < len(order) and self._wait_for_input():
            try:
                read = os.readv(self._source, [order[count:]])
            except BlockingIOError:
                continue
            except OSError as error:
                if error.errno not in INPUT_ENDED:
                    raise
                read = 0
            count += read
            if not read:
                return count, True
            if not whole:
                break
        return count, False

    def _wait_for_input(self) -> bool:
        """False: the thread is to stop."""
        poll = select.poll()
        poll.register(self._source, select.POLLIN)
        poll.register(self._wake, select.POLLIN)
        return all(fd != self._wake for fd, _ in poll.poll())

    def _run_writer(self) -> None:
        error: OSError | None = None
        while (answer := self._answers.get()) is not None:
            seq, header, body = answer
            if error is None and not self._closing:
                error = self._write([memoryview(header), body])
            self._tell(self._on_written, seq, error)

    def _write(self, parts: Sequence[memoryview]) -> OSError | None:
        """What ended the output."""
        left = [part for part in parts if part]
        while left:
            try:
                count = os.writev(self._sink, left)
            except BlockingIOError:
                _wait_for_output(self._sink)
                continue
            except OSError as error:
                return error
            while left and count >= len(left[0]):
                count -= len(left.pop(0))
            if count:
                left[0] = left[0][count:]
        return None

    def _tell(self, *call: Any) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: the process is ending
            self._loop.call_soon_threadsafe(*call)


def _wait_for_output(fd: int) -> None:
    """Until a descriptor that somebody made non-blocking takes more."""
    poll = select.poll()
    poll.register(fd, select.POLLOUT)
    poll.poll()


def _close_stream(fd: int) -> None:
    """The reader sees the end; the descriptor's number stays taken."""
    with contextlib.suppress(OSError), socket.socket(fileno=os.dup(fd)) as shared:
        shared.shutdown(socket.SHUT_WR)  # where stdin and stdout are one socket, closing one would tell nobody
    with Path(os.devnull).open("wb") as nothing:
        os.dup2(nothing.fileno(), fd)


def open_standard_streams() -> None:
    """Make sure that descriptors 0 to 2 are open, so that no socket or arena takes the place of a standard stream."""
    while (fd := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(fd, True)
    os.close(fd)
