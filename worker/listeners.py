"""Addresses to listen on: parsed, checked, bound, accepted from, removed."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import ipaddress
import os
import socket
import stat
from collections.abc import Callable
from pathlib import Path

# How long accepting pauses when there is no descriptor left for a further connection.
PAUSE_SECONDS = 0.5

BACKLOG = 1024

# Clients that connect at once are taken in up to this number a wake-up, so that those already connected are served too.
ACCEPTS = 16


class AddressError(Exception):
    """An address that cannot be listened on; the text says why and what to do."""


class Listener:
    """One bound address. Raises AddressError."""

    def __init__(self, address: str) -> None:
        self._path: Path | None = None
        self._identity: tuple[int, int] | None = None
        if address.startswith("unix:"):
            self._path = Path(address.removeprefix("unix:"))
            self.sock = _listen_unix(self._path)
            status = self._path.stat()
            self._identity = (status.st_dev, status.st_ino)
            self.address = address
        else:
            host, port = parse_tcp(address)
            self.sock = _listen_tcp(address, host, port)
            name, number = self.sock.getsockname()[:2]
            self.address = f"tcp://[{name}]:{number}" if ":" in name else f"tcp://{name}:{number}"
        self.sock.setblocking(False)
        self._loop: asyncio.AbstractEventLoop | None = None

    def accept(self, take: Callable[[socket.socket], None], say: Callable[[str], None]) -> None:
        """Call `take` with every client's socket, on the event loop."""
        loop = self._loop = asyncio.get_running_loop()

        def on_readable() -> None:
            for _ in range(ACCEPTS):
                try:
                    client, _ = self.sock.accept()
                except BlockingIOError:
                    return
                except OSError as error:
                    if error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM):
                        say(f"limbd: {self.address}: accepting pauses: {error.strerror}")
                        loop.remove_reader(self.sock)
                        loop.call_later(PAUSE_SECONDS, again)
                    return
                take(client)

        def again() -> None:
            if self.sock.fileno() >= 0:
                loop.add_reader(self.sock, on_readable)

        again()

    def close(self) -> None:
        """Stop listening; the socket's file goes, unless somebody has put another one in its place."""
        if self.sock.fileno() >= 0:
            if self._loop is not None:
                self._loop.remove_reader(self.sock)
            self.sock.close()
        if self._path is not None:
            with contextlib.suppress(OSError):
                status = self._path.stat()
                if (status.st_dev, status.st_ino) == self._identity:
                    self._path.unlink()
            self._path = None


def parse_tcp(address: str) -> tuple[str, int]:
    """Host and port of tcp://HOST:PORT or HOST:PORT, an IPv6 host in brackets; port 0 lets the system choose one.
    Raises AddressError."""
    host, colon, port = address.removeprefix("tcp://").rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535 or not host:
        raise AddressError(f"cannot listen on {address!r}: write tcp://HOST:PORT or unix:PATH")
    return host.removeprefix("[").removesuffix("]"), int(port)


def _listen_tcp(address: str, host: str, port: int) -> socket.socket:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError as error:
        raise AddressError(f"cannot listen on {address}: {error.strerror}") from error
    except UnicodeError as error:  # a label that is empty or longer than a host name's may be
        raise AddressError(f"cannot listen on {address}: {error}") from error
    for *_, name in found:
        if not _is_loopback(str(name[0])):
            raise AddressError(
                f"will not listen on {address}: {name[0]} is reachable from other machines and clients are not "
                "authenticated; listen on tcp://127.0.0.1:PORT or unix:PATH, and let ssh -L carry it further"
            )
    family, _, _, _, name = found[0]
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(name)
        sock.listen(BACKLOG)
    except OSError as error:
        sock.close()
        remedy = "; another process listens there: choose another port" if error.errno == errno.EADDRINUSE else ""
        raise AddressError(f"cannot listen on {address}: {error.strerror}{remedy}") from error
    return sock


def _is_loopback(host: str) -> bool:
    address = ipaddress.ip_address(host.partition("%")[0])
    mapped = getattr(address, "ipv4_mapped", None)
    return bool((mapped or address).is_loopback)


def _listen_unix(path: Path) -> socket.socket:
    """The socket is its owner's alone. A stale file is removed, but only if nobody answers on it."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        _remove_stale(path)
        before = os.umask(0o177)
        try:
            sock.bind(str(path))
        finally:
            os.umask(before)
        sock.listen(BACKLOG)
    except (OSError, AddressError) as error:
        sock.close()
        if isinstance(error, AddressError):
            raise
        raise AddressError(f"cannot listen on unix:{path}: {error.strerror or error}") from error
    return sock


def _remove_stale(path: Path) -> None:
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise AddressError(f"cannot listen on unix:{path}: there is a file that is no socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            path.unlink(missing_ok=True)
            return
    raise AddressError(f"cannot listen on unix:{path}: another process answers there")
