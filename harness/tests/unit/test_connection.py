"""One connection with a transport that does what the test says: when a large frame's memory is new, and when not."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from limbd.harness.live import element
from limbd.worker.config import Config
from limbd.worker.connection import Connection
from limbd.worker.service import Service
from limbd.worker.wire import request_header

N = 1 << 16  # mod-mul: 4 MiB of payload, 2 MiB of results
HEADER = memoryview(request_header(1, N, 0))
PAYLOAD = element(7) + bytes(64 * N)


class HeldTransport:
    """Answers stay here until the test says that they have left."""

    def __init__(self) -> None:
        self.answers: list[int] = []

    def update(self) -> None: ...

    def send(self, seq: int, header: bytes, body: memoryview) -> None:
        self.answers.append(seq)

    def linger(self, seconds: float) -> None: ...

    def close(self) -> None: ...

    def abort(self) -> None: ...


def run(body: Callable[[Service, Connection, HeldTransport], Awaitable[None]]) -> None:
    """`body` with a worker on the null backend."""

    async def main() -> None:
        service = Service(Config(backend="null", log_requests=False))
        try:
            await service.start()
            transport = HeldTransport()
            connection = Connection(service, None, lambda _: None)
            connection.attach(transport)
            await body(service, connection, transport)
            connection.closed()
            assert service.arena.reserved == service.budget.used == 0
        finally:
            await service.close()

    asyncio.run(asyncio.wait_for(main(), 30))


async def until(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0.001)


async def send_frame(connection: Connection) -> None:
    connection.feed(HEADER)
    await fill(connection)


async def fill(connection: Connection) -> None:
    """The payload, once there is memory for it."""
    await until(lambda: connection.wants_input and connection.target is not None)
    target = connection.target
    assert target is not None
    target[:] = PAYLOAD
    connection.filled(len(PAYLOAD))


def test_the_slot_of_an_answer_that_is_leaving_serves_the_next_frame() -> None:
    async def body(service: Service, connection: Connection, transport: HeldTransport) -> None:
        await send_frame(connection)
        await until(lambda: transport.answers == [1])
        one = service.arena.reserved
        connection.feed(HEADER)
        assert connection.target is None
        assert service.arena.reserved == one
        connection.sent(1)
        assert connection.target is not None
        assert service.arena.reserved == one
        await fill(connection)
        await until(lambda: transport.answers == [1, 2])
        connection.sent(2)

    run(body)


def test_a_client_that_reads_no_answers_yet_gets_new_memory_for_the_next_frame() -> None:
    async def body(service: Service, connection: Connection, transport: HeldTransport) -> None:
        await send_frame(connection)
        await until(lambda: len(transport.answers) == 1)
        await send_frame(connection)
        await until(lambda: len(transport.answers) == 2)
        assert service.arena.reserved >= 2 * len(PAYLOAD)
        for seq in transport.answers:
            connection.sent(seq)

    run(body)


def test_a_client_that_leaves_meanwhile() -> None:
    async def body(service: Service, connection: Connection, transport: HeldTransport) -> None:
        await send_frame(connection)
        await until(lambda: transport.answers == [1])
        connection.feed(HEADER)
        connection.lost()

    run(body)
