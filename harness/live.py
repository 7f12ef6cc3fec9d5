"""Real workers for tests and measurements: `limbd pipe` and `limbd serve` as processes, and raw version-1 clients."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from limbd.worker.wire import VERSION_1, request_header

WAIT_SECONDS = 60.0
ELEMENT = 32


def command(*arguments: str) -> list[str]:
    """The command line of this interpreter's limbd."""
    return [sys.executable, "-m", "limbd.cli", *arguments]


def element(value: int) -> bytes:
    return value.to_bytes(ELEMENT, "little")


def frame(op: int, modulus: int, *operands: Sequence[int], param: int = 0) -> bytes:
    """A request of version 1; the operands have equally many elements."""
    payload = element(modulus) + b"".join(element(value) for operand in operands for value in operand)
    return request_header(op, len(operands[0]), param) + payload


def wait_until(condition: Callable[[], bool], what: str, seconds: float = WAIT_SECONDS) -> None:
    """Raises TimeoutError."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(f"not within {seconds:g} s: {what}")
        time.sleep(0.01)


class RawClient:
    """A blocking version-1 client that sends whatever bytes it is given."""

    def __init__(self, address: str) -> None:
        """address: as printed by `limbd serve`."""
        if address.startswith("unix:"):
            self.sock = socket.socket(socket.AF_UNIX)
            self.sock.connect(address.removeprefix("unix:"))
        else:
            host, _, port = address.removeprefix("tcp://").rpartition(":")
            self.sock = socket.create_connection((host.strip("[]"), int(port)))
            self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sock.settimeout(WAIT_SECONDS)

    def __enter__(self) -> RawClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.sock.close()

    def send(self, data: bytes | memoryview) -> None:
        self.sock.sendall(data)

    def exactly(self, count: int) -> bytes:
        """Raises EOFError if the connection ends before."""
        data = bytearray(count)
        self.read_into(memoryview(data))
        return bytes(data)

    def read_into(self, view: memoryview) -> None:
        """Fill the view. Raises EOFError if the connection ends before."""
        count = len(view)
        while view:
            got = self.sock.recv_into(view)
            if not got:
                raise EOFError(f"{len(view)} of {count} bytes are missing")
            view = view[got:]

    def answer(self) -> tuple[int, bytes]:
        """Status and results of the next answer."""
        head = VERSION_1.response.unpack(self.exactly(VERSION_1.response.size))
        return head["status"], self.exactly(ELEMENT * head["n"])

    def ask(self, request: bytes) -> tuple[int, bytes]:
        self.send(request)
        return self.answer()

    def ended(self) -> bool:
        """Whether the worker sends no more; waits for it."""
        try:
            return self.sock.recv(1) == b""
        except ConnectionResetError:
            return True


class Serving:
    """A running `limbd serve`. lines: what it has said on stderr."""

    def __init__(self, process: subprocess.Popen[bytes], count: int) -> None:
        self.process = process
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        wait_until(lambda: len(self.addresses) == count or process.poll() is not None, "listening")
        if process.poll() is not None:
            self._reader.join(WAIT_SECONDS)
            raise RuntimeError("\n".join(self.lines))

    @property
    def addresses(self) -> list[str]:
        found = (re.match(r"limbd: listening on (\S+)", line) for line in self.lines)
        return [match[1] for match in found if match]

    def children(self) -> list[int]:
        """Process ids of the children that are alive."""
        return children(self.process.pid)

    def child(self) -> int:
        """The one child's process id; waits for it."""
        wait_until(lambda: len(self.children()) == 1, "one child")
        return self.children()[0]

    def stop(self) -> int:
        """SIGTERM; the exit status."""
        self.process.terminate()
        status = self.process.wait(WAIT_SECONDS)
        self._reader.join(WAIT_SECONDS)
        return status

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.lines.append(line.decode(errors="replace").rstrip("\n"))


@contextmanager
def serving(
    *options: str, backend: str = "reference", listen: Sequence[str] = ("tcp://127.0.0.1:0",)
) -> Iterator[Serving]:
    """`limbd serve` for the length of a with block; it has to end well."""
    flags = [flag for address in listen for flag in ("--listen", address)]
    arguments = command("serve", "--backend", backend, *flags, *options)
    process = subprocess.Popen(arguments, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        server = Serving(process, len(listen))
        yield server
        if process.poll() is None:
            server.stop()
    finally:
        process.kill()
        process.wait()


def pipe(data: bytes, backend: str = "reference", *options: str) -> subprocess.CompletedProcess[bytes]:
    """`limbd pipe` fed with `data` through a pipe, to its end."""
    return subprocess.run(
        command("pipe", "--backend", backend, *options), input=data, capture_output=True, timeout=WAIT_SECONDS
    )


def children(pid: int) -> list[int]:
    """Process ids of a process's children (Linux)."""
    found = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        try:
            found += [int(child) for child in (task / "children").read_text().split()]
        except FileNotFoundError:
            continue
    return found


def descriptors(pid: int) -> int:
    return sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())


def memory_bytes(pid: int, kind: str) -> int:
    """A line of /proc/PID/smaps_rollup, such as Rss, Pss or Pss_Shmem, in bytes."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith(kind + ":"):
            return int(line.split()[1]) << 10
    raise KeyError(kind)
