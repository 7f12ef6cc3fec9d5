"""A connection's transport over a stream socket, TCP or Unix.

The socket is in blocking mode, and the event loop uses MSG_DONTWAIT: so a thread can move a large payload with one
system call, straight between the kernel and the slot, while small frames never leave the loop. A thread gives up after
TRANSFER_SECONDS without the whole of it, so that a slow peer goes back to the loop and occupies none.
"""

from __future__ import annotations

import contextlib
import select
import socket
import struct
from collections import deque
from dataclasses import dataclass

from limbd.worker.connection import Connection
from limbd.worker.service import Service

# Transfers from this length on have a thread of their own: the loop would need a wake-up for every buffer's worth.
TRANSFER_BYTES = 512 << 10
TRANSFER_SECONDS = 1

# One read of small frames: many at once. What it takes of a large one is copied once more, so it is not larger.
SCRATCH_BYTES = 64 << 10

# The same, after a large frame: most likely another one follows, whose payload belongs to a thread from its start.
HEADER_BYTES = 4 << 10


@dataclass
class _Outgoing:
    """An answer on its way. position: bytes of header and body that the kernel has. slow: a thread has sent little of
    it in its time, so the event loop sends the rest."""

    seq: int
    header: bytes
    body: memoryview
    position: int = 0
    slow: bool = False

    @property
    def left(self) -> int:
        return len(self.header) + len(self.body) - self.position

    def parts(self) -> list[bytes | memoryview]:
        if self.position < len(self.header):
            return [self.header[self.position :], self.body]
        return [self.body[self.position - len(self.header) :]]


class SocketTransport:
    """Owns `sock`. scratch: a buffer shared by all transports of the loop, used within one callback only."""

    def __init__(self, service: Service, sock: socket.socket, connection: Connection, scratch: memoryview) -> None:
        self._service = service
        self._loop = service.loop
        self._sock = sock
        self._fd = sock.fileno()
        self._connection = connection
        self._scratch = scratch
        self._outgoing: deque[_Outgoing] = deque()
        self._reader = self._writer = False
        self._receiving = self._sending = False
        self._slow = False
        self._first_read = scratch
        self._lingering = self._closing = self._closed = False
        _prepare(sock)
        connection.attach(self)

    # --- Transport ---

    def update(self) -> None:
        if self._closing or self._lingering:
            return
        self._read_when_ready(self._connection.wants_input and not self._receiving)

    def send(self, seq: int, header: bytes, body: memoryview) -> None:
        if self._closing:
            return
        self._outgoing.append(_Outgoing(seq, header, body))
        if len(self._outgoing) == 1:
            self._flush()

    def linger(self, seconds: float) -> None:
        self._lingering = True
        self._read_when_ready(False)
        try:
            self._sock.shutdown(socket.SHUT_WR)
        except OSError:
            self.close()
            return
        self._loop.call_later(seconds, self.close)
        if not self._receiving:
            self._read_when_ready(True)

    def close(self) -> None:
        """Close the descriptor, once no thread uses it: its number may be another connection's right after."""
        self._closing = True
        self._read_when_ready(False)
        self._write_when_ready(False)
        if self._receiving or self._sending:
            with contextlib.suppress(OSError):
                self._sock.shutdown(socket.SHUT_RDWR)
            return
        if not self._closed:
            self._closed = True
            self._outgoing.clear()
            self._sock.close()
            self._connection.closed()

    def abort(self) -> None:
        self.close()

    # --- reading ---

    def _on_readable(self) -> None:
        if self._lingering:
            self._drain_input()
            return
        target = self._connection.target
        try:
            count = self._sock.recv_into(self._first_read if target is None else target, 0, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return
        except OSError:
            self._lost()
            return
        if count == 0:
            self._on_end()
        elif target is None:
            self._slow = False
            self._connection.feed(self._first_read[:count])
            self._first_read = self._scratch
        else:
            self._connection.filled(count)
        self._read_on()

    def _read_on(self) -> None:
        target = self._connection.target if self._connection.wants_input and not self._closing else None
        if target is None or len(target) < TRANSFER_BYTES or self._slow or not self._service.begin_transfer():
            self.update()
            return
        self._receiving = True
        self._first_read = self._scratch[:HEADER_BYTES]
        self._read_when_ready(False)
        self._service.in_thread(lambda: _receive(self._sock, target), self._received)

    def _received(self, result: tuple[int, bool] | Exception) -> None:
        self._receiving = False
        self._service.end_transfer()
        if self._closing:
            self.close()
            return
        if isinstance(result, Exception):
            self._lost()
            return
        count, ended = result
        self._slow = count < TRANSFER_BYTES and not ended
        if count:
            self._connection.filled(count)
        if self._lingering:
            self._read_when_ready(not self._closing)
        elif ended:
            self._on_end()
        else:
            self._read_on()

    def _on_end(self) -> None:
        """The peer sends no more. Whether it still reads, only a Unix socket tells."""
        if _hung_up(self._sock):
            self._lost()
        else:
            self._connection.ended()

    def _drain_input(self) -> None:
        try:
            if self._sock.recv_into(self._scratch, 0, socket.MSG_DONTWAIT):
                return
        except BlockingIOError:
            return
        except OSError:
            pass
        self.close()

    # --- writing ---

    def _flush(self) -> None:
        """Send what waits, as far as the kernel takes it at once. `sent` may lead back here, by a further answer."""
        while self._outgoing and not (self._closing or self._sending):
            first = self._outgoing[0]
            if self._hand_to_thread(first):
                return
            try:
                first.position += self._sock.sendmsg(first.parts(), (), socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
            except BlockingIOError:
                pass
            except OSError:
                self._lost()
                return
            if first.left:
                self._write_when_ready(True)
                return
            self._outgoing.popleft()
            self._connection.sent(first.seq)
        if not self._outgoing:
            self._write_when_ready(False)

    def _hand_to_thread(self, first: _Outgoing) -> bool:
        """Whether a thread sends it: where it is large, the peer is not known to be slow, and a thread is free."""
        if first.left < TRANSFER_BYTES or first.slow or not self._service.begin_transfer():
            return False
        self._write_when_ready(False)
        self._sending = True
        self._service.in_thread(lambda: _send(self._sock, first), lambda result: self._sent_rest(first, result))
        return True

    def _sent_rest(self, first: _Outgoing, result: int | Exception) -> None:
        self._sending = False
        self._service.end_transfer()
        if self._closing:
            self.close()
        elif isinstance(result, Exception):
            self._lost()
        else:
            first.slow = result < TRANSFER_BYTES
            if first.left:
                self._flush()
                return
            self._outgoing.popleft()
            self._connection.sent(first.seq)
            self._flush()

    def _lost(self) -> None:
        self._read_when_ready(False)
        self._write_when_ready(False)
        self._connection.lost()

    def _read_when_ready(self, wanted: bool) -> None:
        if wanted and not self._reader:
            self._loop.add_reader(self._fd, self._on_readable)
        elif self._reader and not wanted:
            self._loop.remove_reader(self._fd)
        self._reader = wanted

    def _write_when_ready(self, wanted: bool) -> None:
        if wanted and not self._writer:
            self._loop.add_writer(self._fd, self._flush)
        elif self._writer and not wanted:
            self._loop.remove_writer(self._fd)
        self._writer = wanted


def _prepare(sock: socket.socket) -> None:
    sock.setblocking(True)
    patience = struct.pack("ll", TRANSFER_SECONDS, 0)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, patience)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, patience)
    if sock.family != socket.AF_UNIX:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def _receive(sock: socket.socket, view: memoryview) -> tuple[int, bool]:
    """In a thread: bytes read to the view's start, and whether the input has ended. One call reads all of it, unless
    the peer is slow. Raises OSError if the connection is broken."""
    try:
        count = sock.recv_into(view, 0, socket.MSG_WAITALL)
    except BlockingIOError:
        return 0, False
    return count, count == 0


def _send(sock: socket.socket, outgoing: _Outgoing) -> int:
    """In a thread: bytes sent of what is left, all of them unless the peer is slow."""
    try:
        count = sock.sendmsg(outgoing.parts(), (), socket.MSG_NOSIGNAL)
    except BlockingIOError:
        return 0
    outgoing.position += count
    return count


def _hung_up(sock: socket.socket) -> bool:
    poll = select.poll()
    poll.register(sock, 0)
    return any(event & (select.POLLHUP | select.POLLERR) for _, event in poll.poll(0))
