"""The clients: values in, a worker's answer out; against an address, or a worker process of their own.

Both speak version 1 of the wire. Requests may be pipelined: they are answered in order. numpy arrays are sent from
where they lie and results are received straight into the array that is returned.
"""

from __future__ import annotations

import asyncio
import contextlib
import select
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from limbd.ops.status import ServiceError, Status
from limbd.worker import wire
from limbd.worker.calls import Calls
from limbd.worker.exchange import Exchange, Modulus, Values, error_of, exchange, exchange_of_frame, read_header
from limbd.worker.inverse_op import InverseOp
from limbd.worker.link import Address, LocalWorker, Report

# sendmsg takes at most 1024 pieces (IOV_MAX).
_PIECES = 512
# A local worker writes a request's line on stderr right after its answer.
_REPORT_SECONDS = 5.0
_EXPLANATION_SECONDS = 0.5
# Below this many bytes a frame's pieces are joined, where each piece would cost a system call.
_JOINED_BYTES = 64 << 10


def pipe_arguments(
    backend: str = "auto",
    devices: Sequence[int] = (0,),
    device_memory: int | None = None,
    cache: str | Path | None = None,
) -> list[str]:
    """The arguments of `limbd pipe` for a local worker."""
    arguments = ["--backend", backend, "--device", ",".join(map(str, devices))]
    arguments += ["--device-memory", str(device_memory)] if device_memory is not None else []
    return arguments + (["--cache-dir", str(cache)] if cache is not None else [])


class Pending:
    """A request that was submitted."""

    def __init__(self, client: Client, asked: Exchange) -> None:
        self._client = client
        self._asked = asked

    @property
    def seq(self) -> int:
        """Its number on the connection, from 1."""
        return self._asked.seq

    def done(self) -> bool:
        """Whether the answer is there already (it is only looked for while some call of the client waits)."""
        return self._asked.done

    def result(self) -> Any:
        """The answer, waiting for it; raises what the worker answered instead (RequestError, ServiceError)."""
        self._client._await(self._asked)
        if self._asked.error is not None:
            raise self._asked.error
        return self._asked.values()

    def report(self) -> Report | None:
        """Timings and backend, from the local worker's stderr; None for a worker at an address (version 1's answers
        carry no timings)."""
        self._client._await(self._asked)
        return self._client._report(self._asked)


class Client(Calls):
    """A synchronous client; a context manager. Calls from several threads are carried out one after the other.

    address: "tcp://HOST:PORT", "HOST:PORT", "unix:PATH", or None for a worker process of its own, to which backend,
    devices (GPU indices), device_memory (bytes) and cache (folder of compiled kernels) apply. timeout: seconds to wait for a connection, and for an answer.
    verbose: pass a local worker's stderr on.

        with Client() as client:
            client.mod_mul([3, 4], [5, 6], 7)        # [1, 3]
    """

    def __init__(
        self,
        address: str | None = None,
        *,
        backend: str = "auto",
        devices: Sequence[int] = (0,),
        device_memory: int | None = None,
        cache: str | Path | None = None,
        timeout: float | None = None,
        verbose: bool = False,
    ) -> None:
        self._lock = threading.RLock()
        self._timeout = timeout
        self._local: LocalWorker | None = None
        target = Address(address) if address is not None else None
        self._inverse = InverseOp(target, timeout)
        if target is None:
            self._local = LocalWorker(pipe_arguments(backend, devices, device_memory, cache), echo=verbose)
            self._channel = _Channel(self._local.socket)
        else:
            self._channel = _Channel(target.connect(timeout))
        self._name = address or "the local worker"

    def call(
        self, op: str, operands: Sequence[Values], modulus: Modulus, *, param: int = 0, domain: Sequence[int] = ()
    ) -> Any:
        """One request and its answer. op: the wire's name, such as "mod-mul". param, domain: as the wire has them."""
        return self.submit(op, operands, modulus, param=param, domain=domain).result()

    def inverse_op(self, n: int) -> str:
        """The op that mod_inv asks for n elements, for `submit`. A worker at an address is asked once whether it knows
        mod-inv-batch, on a connection of its own."""
        return self._inverse.name(n)

    def submit(
        self, op: str, operands: Sequence[Values], modulus: Modulus, *, param: int = 0, domain: Sequence[int] = ()
    ) -> Pending:
        """Sends a request and returns at once when its last byte has left; answers that come meanwhile are taken in.
        An array may be changed again as soon as this returns."""
        return self.send(exchange(op, operands, modulus, param=param, domain=domain))

    def send(self, asked: Exchange) -> Pending:
        """As submit, for a question that is made already."""
        with self._lock:
            self._channel.queue(asked)
            self._pump(lambda: self._channel.sent)
            asked.buffers.clear()
        return Pending(self, asked)

    def replay(self, frame: bytes) -> Any:
        """Sends a kept frame as it is; the answer is an array. ValueError where it is no frame of version 1."""
        return self.ask(exchange_of_frame(frame))

    def ask(self, asked: Exchange) -> Any:
        """A question that is made already, and its answer."""
        return self.send(asked).result()

    def remarks(self) -> list[str]:
        """What a local worker said on stderr besides the reports, last lines only."""
        return self._local.journal.remarks() if self._local else []

    def close(self) -> None:
        """Ends the connection; a local worker ends with it. Requests without an answer fail."""
        with self._lock:
            self._channel.fail("the client was closed")
            self._channel.socket.close()
            if self._local:
                self._local.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _invert(self, n: int, x: Values, modulus: Modulus) -> Any:
        return self.call(self.inverse_op(n), [x], modulus)

    def _await(self, asked: Exchange) -> None:
        with self._lock:
            if not asked.done:
                self._pump(lambda: asked.done)
            if asked.error is not None and self._local and not asked.explained:
                _explain(asked, self._local)

    def _report(self, asked: Exchange) -> Report | None:
        if asked.report is None and self._local:
            asked.report = self._local.journal.report(asked.seq, _REPORT_SECONDS)
        return asked.report

    def _pump(self, finished: Callable[[], bool]) -> None:
        try:
            self._channel.pump(finished, self._timeout)
        except ConnectionError as error:
            self._channel.fail(_reason(error, self._local, self._name))


def _reason(error: Exception, local: LocalWorker | None, name: str) -> str:
    """Why a connection is of no more use. ConnectionAbortedError is this side's own verdict on what it read."""
    if local is not None and not isinstance(error, ConnectionAbortedError):
        return local.epitaph()
    return f"the connection to {name} ended: {error}"


def _explain(asked: Exchange, local: LocalWorker) -> None:
    """Version 1's answers carry a status alone; a local worker's stderr says what was wrong, and where."""
    error = asked.error
    assert error is not None
    report = asked.report = local.journal.report(asked.seq, _EXPLANATION_SECONDS)
    mark = f"{error.status.name}: "
    words = [line.partition(mark)[2] for line in local.journal.remarks() if line.startswith(f"limbd: seq={asked.seq} ")]
    message = next(filter(None, words), error.message)
    index = report.index if report is not None else None
    asked.error = error_of(error.status, message.replace(f" (index {index})", ""), index)
    asked.explained = True


class _Channel:
    """The frames of one connection on a non-blocking socket: what waits to be sent, and who waits for an answer.

    Sending and receiving share one loop, so that a request larger than the socket's buffers cannot block against
    answers that nobody reads.
    """

    def __init__(self, connection: socket.socket) -> None:
        self.socket = connection
        connection.setblocking(False)
        self._poll = select.poll()
        self._unsent: deque[memoryview] = deque()
        self._waiting: deque[Exchange] = deque()
        self._header = bytearray(wire.VERSION_1.response.size)
        self._target = memoryview(self._header)
        self._in_body = False
        self._count = 0
        self._lost: str | None = None

    @property
    def sent(self) -> bool:
        return not self._unsent

    def queue(self, asked: Exchange) -> None:
        if self._lost is not None:
            raise ServiceError(Status.INTERNAL, self._lost, hint="open a new client")
        self._count += 1
        asked.seq = self._count
        self._unsent.extend(asked.buffers)
        self._waiting.append(asked)

    def fail(self, reason: str) -> None:
        """The connection is of no more use: everybody who waits gets an error."""
        self._lost = self._lost or reason
        self._unsent.clear()
        while self._waiting:
            asked = self._waiting.popleft()
            asked.error = ServiceError(Status.INTERNAL, f"no answer to request {asked.seq}: {self._lost}")
            asked.done = True

    def pump(self, finished: Callable[[], bool], timeout: float | None) -> None:
        """Sends and receives until finished(). ConnectionError where the peer is gone; ServiceError after `timeout`
        seconds without it."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while not finished():
            moved = self._send()
            moved |= self._receive()
            if not moved and not finished():
                self._wait(deadline, timeout)

    def _wait(self, deadline: float | None, timeout: float | None) -> None:
        left = None if deadline is None else deadline - time.monotonic()
        if left is not None and left <= 0:
            raise ServiceError(Status.DEADLINE_EXCEEDED, f"no answer within {timeout} s")
        self._poll.register(self.socket, select.POLLIN | (select.POLLOUT if self._unsent else 0))
        self._poll.poll(None if left is None else 1000 * left)

    def _send(self) -> bool:
        if not self._unsent:
            return False
        try:
            count = self.socket.sendmsg([self._unsent[i] for i in range(min(len(self._unsent), _PIECES))])
        except BlockingIOError:
            return False
        except ConnectionError:
            # The worker may have answered before it closed: the answer, or the end, is found by reading.
            self._unsent.clear()
            return True
        while count:
            piece = self._unsent.popleft()
            if count < len(piece):
                self._unsent.appendleft(piece[count:])
                break
            count -= len(piece)
        return True

    def _receive(self) -> bool:
        """One recv at most a target; True where bytes came."""
        moved = False
        while self._waiting:
            try:
                count = self.socket.recv_into(self._target)
            except BlockingIOError:
                return moved
            if count == 0:
                raise ConnectionResetError("closed by the worker")
            moved = True
            self._target = self._target[count:]
            if not self._target:
                self._advance()
        return moved

    def _advance(self) -> None:
        """A header, or a body, is complete."""
        asked = self._waiting[0]
        if not self._in_body:
            asked.error = read_header(asked, self._header)
            if asked.error is None and asked.result.size:
                self._in_body = True
                self._target = asked.body()
                return
        self._waiting.popleft().done = True
        self._in_body = False
        self._target = memoryview(self._header)


class AsyncClient(Calls):
    """The same for asyncio: `await client.mod_mul(...)`; several calls may be in flight at once, from any task.

    async with AsyncClient("tcp://127.0.0.1:9091") as client:
        products = await client.mod_mul(a, b, "secp256k1")

    Arrays must not be changed until their call has returned. A cancelled call's answer is read and dropped.
    """

    def __init__(
        self,
        address: str | None = None,
        *,
        backend: str = "auto",
        devices: Sequence[int] = (0,),
        device_memory: int | None = None,
        cache: str | Path | None = None,
        timeout: float | None = None,
        verbose: bool = False,
    ) -> None:
        self._address = Address(address) if address is not None else None
        self._inverse = InverseOp(self._address, timeout)
        self._arguments = pipe_arguments(backend, devices, device_memory, cache)
        self._timeout = timeout
        self._verbose = verbose
        self._local: LocalWorker | None = None
        self._socket: socket.socket | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._unsent: asyncio.Queue[Exchange] = asyncio.Queue()
        self._waiting: deque[tuple[Exchange, asyncio.Future[None]]] = deque()
        self._opening = asyncio.Lock()
        self._arrived = asyncio.Event()
        self._count = 0
        self._lost: str | None = None

    async def call(
        self, op: str, operands: Sequence[Values], modulus: Modulus, *, param: int = 0, domain: Sequence[int] = ()
    ) -> Any:
        """One request and its answer. op: the wire's name, such as "mod-mul". param, domain: as the wire has them."""
        return await self.ask(exchange(op, operands, modulus, param=param, domain=domain))

    async def ask(self, asked: Exchange) -> Any:
        """A question that is made already, and its answer."""
        await self.open()
        if self._lost is not None:
            raise ServiceError(Status.INTERNAL, self._lost, hint="open a new client")
        self._count += 1
        asked.seq = self._count
        answered: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((asked, answered))
        self._unsent.put_nowait(asked)
        self._arrived.set()
        try:
            await asyncio.wait_for(answered, self._timeout)
        except TimeoutError:
            raise ServiceError(Status.DEADLINE_EXCEEDED, f"no answer within {self._timeout} s") from None
        if asked.error is not None:
            if self._local is not None:
                await asyncio.to_thread(_explain, asked, self._local)
            raise asked.error
        return asked.values()

    async def open(self) -> None:
        """Connects, where it is not connected yet; call() does it too."""
        async with self._opening:
            if self._socket is not None or self._lost is not None:
                return
            self._socket = await asyncio.to_thread(self._connect)
            self._socket.setblocking(False)
            self._tasks = [asyncio.create_task(self._guard(part)) for part in (self._send_all, self._receive_all)]

    async def close(self) -> None:
        """Ends the connection; a local worker ends with it. Calls without an answer fail."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._fail("the client was closed")
        if self._socket is not None:
            self._socket.close()
        if self._local is not None:
            await asyncio.to_thread(self._local.close)

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _invert(self, n: int, x: Values, modulus: Modulus) -> Any:
        if not self._inverse.known(n):
            await asyncio.to_thread(self._inverse.name, n)
        return await self.call(self._inverse.name(n), [x], modulus)

    def _connect(self) -> socket.socket:
        if self._address is not None:
            return self._address.connect(self._timeout)
        self._local = LocalWorker(self._arguments, echo=self._verbose)
        return self._local.socket

    async def _guard(self, part: Callable[[], Any]) -> None:
        try:
            await part()
        except (OSError, EOFError) as error:
            if part == self._send_all and isinstance(error, ConnectionError):
                return  # the worker's last answers, and then the end, are found by reading
            name = self._address.text if self._address else "the local worker"
            self._fail(await asyncio.to_thread(_reason, error, self._local, name))

    async def _send_all(self) -> None:
        loop, connection = asyncio.get_running_loop(), self._socket
        assert connection is not None
        while True:
            asked = await self._unsent.get()
            pieces: list[memoryview] | list[bytes] = asked.buffers
            if sum(map(len, asked.buffers)) <= _JOINED_BYTES:
                pieces = [b"".join(asked.buffers)]
            for piece in pieces:
                await loop.sock_sendall(connection, piece)
            asked.buffers.clear()

    async def _receive_all(self) -> None:
        header = bytearray(wire.VERSION_1.response.size)
        while True:
            while not self._waiting:
                self._arrived.clear()
                await self._arrived.wait()
            await self._receive(memoryview(header))
            asked, answered = self._waiting[0]
            asked.error = read_header(asked, header)
            if asked.error is None:
                await self._receive(asked.body())
            self._waiting.popleft()
            asked.done = True
            if not answered.done():
                answered.set_result(None)

    async def _receive(self, target: memoryview) -> None:
        loop = asyncio.get_running_loop()
        assert self._socket is not None
        while target:
            count = await loop.sock_recv_into(self._socket, target)
            if count == 0:
                raise EOFError("closed by the worker")
            target = target[count:]

    def _fail(self, reason: str) -> None:
        self._lost = self._lost or reason
        while self._waiting:
            asked, answered = self._waiting.popleft()
            if not answered.done():
                answered.set_exception(ServiceError(Status.INTERNAL, f"no answer to request {asked.seq}: {self._lost}"))
        for task in self._tasks:
            if task is not asyncio.current_task():
                with contextlib.suppress(RuntimeError):
                    task.cancel()
