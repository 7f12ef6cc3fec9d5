"""The two ways to run a worker: `run_pipe` over standard streams, `run_serve` on addresses; both return an exit status.

SIGTERM or SIGINT: no further frames, what is in flight is finished, exit status 0. A second one: stop at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import signal
import socket
from collections.abc import Awaitable, Callable

from limbd.ops.status import Status
from limbd.worker.config import Config
from limbd.worker.connection import Connection
from limbd.worker.executor import StartError
from limbd.worker.listeners import AddressError, Listener
from limbd.worker.service import Service
from limbd.worker.sockets import SCRATCH_BYTES, SocketTransport
from limbd.worker.streams import StreamTransport, open_standard_streams
from limbd.worker.wire import response_header

EXIT_OK, EXIT_FAILED = 0, 1
STDIN, STDOUT, STDERR = 0, 1, 2

# Beside one a connection: listeners, the event loop, the children's sockets, log and failed frames.
SPARE_DESCRIPTORS = 256


def run_pipe(config: Config) -> int:
    """Frames on stdin, answers on stdout. 0: the input ended between frames, or nobody reads the output any more, or
    the worker was told to stop. 1: the input ended inside a frame or was refused for good, a stream failed, or no
    backend works."""
    return _run(config, _pipe)


def run_serve(config: Config) -> int:
    """Serve every address of config.listen until told to stop. 0: stopped by a signal. 1: could not start."""
    return _run(config, _serve)


def _run(config: Config, body: Callable[[Config], Awaitable[int]]) -> int:
    open_standard_streams()
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)

    async def main() -> int:
        return await body(config)

    try:
        return asyncio.run(main())
    except (StartError, AddressError) as error:
        message = str(error)
    except OSError as error:
        message = f"cannot start: {error}"
    # Not print: where stderr was closed, sys.stderr is None, and print would then write among the frames.
    with contextlib.suppress(OSError):
        os.write(STDERR, f"limbd: error: {message}\n".encode(errors="replace"))
    return EXIT_FAILED


async def _pipe(config: Config) -> int:
    service = Service(config)
    stop = _stop_on_signal(service, [])
    try:
        if not await _started(service, stop):
            return EXIT_OK
        closed = service.loop.create_future()
        connection = Connection(service, None, closed.set_result)
        StreamTransport(service, connection, STDIN, STDOUT)
        await asyncio.wait([closed, stop], return_when=asyncio.FIRST_COMPLETED)
        if stop.done():
            await service.drain()
        return EXIT_FAILED if connection.truncated or connection.refused or connection.failed else EXIT_OK
    finally:
        await service.close()


async def _serve(config: Config) -> int:
    if not config.listen:
        raise AddressError("nothing to listen on: name at least one address (tcp://HOST:PORT or unix:PATH)")
    _raise_descriptor_limit(config.limits.connections + SPARE_DESCRIPTORS)
    listeners: list[Listener] = []
    try:
        for address in config.listen:
            listeners.append(Listener(address))
        service = Service(config)
        stop = _stop_on_signal(service, listeners)
        try:
            if await _started(service, stop):
                door = _Door(service)
                for listener in listeners:
                    listener.accept(door.take, service.say_limited)
                    service.log.put(f"limbd: listening on {listener.address}")
                await stop
                for listener in listeners:
                    listener.close()
                await service.drain()
            return EXIT_OK
        finally:
            await service.close()
    finally:
        for listener in listeners:
            listener.close()


def _raise_descriptor_limit(wanted: int) -> None:
    """The usual soft limit of 1,024 is below the connections that are announced, and leaves none for a new child."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    enough = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < enough:
        resource.setrlimit(resource.RLIMIT_NOFILE, (enough, hard))


class _Door:
    """Takes clients in, up to the limit."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._count = 0
        self._scratch = memoryview(bytearray(SCRATCH_BYTES))

    def take(self, client: socket.socket) -> None:
        limit = self._service.config.limits.connections
        if len(self._service.guests) >= limit:
            self._service.say_limited(f"limbd: a connection is refused: {limit} are open")
            _refuse(client)
            return
        self._count += 1
        connection = Connection(self._service, self._count, lambda _: None)
        SocketTransport(self._service, client, connection, self._scratch)


def _refuse(client: socket.socket) -> None:
    """BUSY, in the 12 bytes that fit any socket's buffer. Input that has already come would turn the close into a reset
    that may overtake them, so it is read."""
    with client, contextlib.suppress(OSError):
        client.setblocking(False)
        client.send(response_header(Status.BUSY, 0))
        client.shutdown(socket.SHUT_WR)
        client.recv(SCRATCH_BYTES)


async def _started(service: Service, stop: asyncio.Future[None]) -> bool:
    """Whether the children are up; False if the worker was told to stop before. Raises StartError."""
    start = asyncio.ensure_future(service.start())
    await asyncio.wait([start, stop], return_when=asyncio.FIRST_COMPLETED)
    if start.done():
        start.result()
        return True
    start.cancel()
    return False


def _stop_on_signal(service: Service, listeners: list[Listener]) -> asyncio.Future[None]:
    """Done at the first SIGTERM or SIGINT; the second ends the process."""
    stop: asyncio.Future[None] = service.loop.create_future()

    def on_signal(number: int) -> None:
        if not stop.done():
            stop.set_result(None)
            return
        for executor in service.executors:
            executor.kill()
        for listener in listeners:
            listener.close()
        os._exit(128 + number)

    for number in (signal.SIGTERM, signal.SIGINT):
        service.loop.add_signal_handler(number, on_signal, number)
    return stop
