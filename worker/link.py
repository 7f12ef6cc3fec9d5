"""How a client reaches a worker: an address, or a process of its own, whose stderr lines it reads."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
import threading
from collections import OrderedDict, deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import IO

from limbd.ops.status import ServiceError, Status

# Reports that nobody has asked for are forgotten after as many later ones.
KEPT_REPORTS = 4096
KEPT_LINES = 40
CLOSE_SECONDS = 10.0

_REPORT = re.compile(r"seq=\d+ ")


@dataclass(frozen=True)
class Report:
    """A request's line on the worker's stderr (wire.md section 5); times in milliseconds."""

    seq: int
    op: str
    n: int
    status: str
    backend: str
    device: str
    kernel_ms: float
    h2d_ms: float
    d2h_ms: float
    total_ms: float
    index: int | None = None


def parse_report(line: str) -> Report | None:
    """None for a line that is no report."""
    if not _REPORT.match(line):
        return None
    told = dict(word.split("=", 1) for word in line.split() if "=" in word)

    def milliseconds(name: str) -> float:
        return float(told.get(name, "0").removesuffix("ms"))

    try:
        return Report(
            int(told["seq"]),
            told["op"],
            int(told["n"]),
            told["status"],
            told.get("backend", ""),
            told.get("device", ""),
            milliseconds("kernel"),
            milliseconds("h2d"),
            milliseconds("d2h"),
            milliseconds("total"),
            int(told["index"]) if "index" in told else None,
        )
    except (KeyError, ValueError):
        return None


class Address:
    """ "tcp://host:port", "host:port" or "unix:PATH", taken apart. ValueError says what is wrong with it.

    listening: it is to be listened on, where port 0 means any free one.
    """

    def __init__(self, text: str, *, listening: bool = False) -> None:
        self.text = text
        self.path = self.host = ""
        self.port = 0
        if text.startswith("unix:"):
            self.path = text.removeprefix("unix:").removeprefix("//")
            if not self.path:
                raise ValueError(f"{text!r} names no path: unix:PATH")
            return
        host, colon, port = text.removeprefix("tcp://").rpartition(":")
        if not colon or not host or not port.isdigit() or not (0 if listening else 1) <= int(port) <= 65535:
            raise ValueError(f"{text!r} is no address: tcp://HOST:PORT, HOST:PORT or unix:PATH")
        self.host, self.port = host.strip("[]"), int(port)

    def __str__(self) -> str:
        return f"unix:{self.path}" if self.path else f"tcp://{self.text.removeprefix('tcp://')}"

    def connect(self, timeout: float | None) -> socket.socket:
        """A connected socket in blocking mode; ServiceError where nobody answers."""
        try:
            if self.path:
                connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
                connection.settimeout(timeout)
                connection.connect(self.path)
            else:
                connection = socket.create_connection((self.host, self.port), timeout)
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except (OSError, UnicodeError) as error:  # UnicodeError: a host name that no resolver is asked about
            raise ServiceError(
                Status.NO_DEVICE,
                f"cannot connect to {self.text}: {getattr(error, 'strerror', None) or error}",
                hint=f"is a worker running there? limbd serve --listen {self}",
            ) from None
        connection.settimeout(None)
        return connection


class LocalWorker:
    """A `limbd pipe` of the client's own; it ends when the socket is closed, or when this process dies.

    Its standard input and output are one socket pair, so that the client has one kind of connection.
    """

    def __init__(self, arguments: Sequence[str] = (), *, echo: bool = False) -> None:
        self.socket, theirs = socket.socketpair()
        command = [sys.executable, "-m", "limbd.cli", "pipe", *arguments]
        with theirs:
            end = theirs.fileno()
            self.process = subprocess.Popen(command, stdin=end, stdout=end, stderr=subprocess.PIPE)
        assert self.process.stderr is not None
        self.journal = Journal(self.process.stderr, echo=echo)

    def epitaph(self) -> str:
        """Why it ended, as far as it told: exit status and last words."""
        try:
            code: object = self.process.wait(timeout=2)
        except subprocess.TimeoutExpired:
            return "the local worker closed its output"
        self.journal.join(2)
        words = "; ".join(self.journal.remarks()[-4:])
        return f"the local worker ended with exit status {code}" + (f": {words}" if words else "")

    def close(self) -> None:
        self.socket.close()
        try:
            self.process.wait(timeout=CLOSE_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.journal.join(2)


class Journal:
    """Reads a worker's stderr in a thread of its own: one report a request, and remarks (everything else)."""

    def __init__(self, stream: IO[bytes], *, echo: bool) -> None:
        self._stream = stream
        self._echo = echo
        self._reports: OrderedDict[int, Report] = OrderedDict()
        self._remarks: deque[str] = deque(maxlen=KEPT_LINES)
        self._changed = threading.Condition()
        self._ended = False
        self._thread = threading.Thread(target=self._read, name="limbd-journal", daemon=True)
        self._thread.start()

    def report(self, seq: int, timeout: float) -> Report | None:
        """The report of request `seq` (counted from 1), waiting for it; None where it does not come."""
        with self._changed:
            self._changed.wait_for(lambda: seq in self._reports or self._ended, timeout)
            return self._reports.pop(seq, None)

    def remarks(self) -> list[str]:
        """The last lines that are no reports."""
        with self._changed:
            return list(self._remarks)

    def join(self, timeout: float) -> None:
        self._thread.join(timeout)

    def _read(self) -> None:
        with self._stream as stream:
            for raw in stream:
                self._take(raw.decode(errors="replace").rstrip())
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def _take(self, line: str) -> None:
        if self._echo:
            print(line, file=sys.stderr, flush=True)
        report = parse_report(line)
        with self._changed:
            if report is None:
                self._remarks.append(line)
            else:
                self._reports[report.seq] = report
                while len(self._reports) > KEPT_REPORTS:
                    self._reports.popitem(last=False)
            self._changed.notify_all()
