"""The worker's threads: results come back on the loop, each for itself, and nothing is left behind."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable

import pytest

from limbd.harness.live import descriptors, wait_until
from limbd.worker.threads import Threads

LIMIT = 2
OWN = "limbd-transfer"


def alive() -> int:
    return sum(thread.name == OWN for thread in threading.enumerate())


def run(body: Callable[[Threads], Awaitable[None]]) -> None:
    async def main() -> None:
        threads = Threads(asyncio.get_running_loop(), LIMIT)
        try:
            await asyncio.wait_for(body(threads), 30)
        finally:
            threads.close()

    asyncio.run(main())
    wait_until(lambda: not alive(), "the threads have ended")


def result_of(threads: Threads, work: Callable[[], object]) -> asyncio.Future[object]:
    future = asyncio.get_running_loop().create_future()
    threads.run(work, future.set_result)
    return future


def test_results_and_exceptions_come_back_on_the_loop() -> None:
    async def body(threads: Threads) -> None:
        where = await result_of(threads, threading.get_ident)
        assert where != threading.get_ident()
        error = await result_of(threads, lambda: 1 // 0)
        assert isinstance(error, ZeroDivisionError)
        assert alive() == 1, "one after another needs one thread"

    run(body)


def test_no_more_threads_than_the_limit() -> None:
    async def body(threads: Threads) -> None:
        go = threading.Event()
        futures = [result_of(threads, go.wait) for _ in range(3 * LIMIT)]
        assert alive() == LIMIT
        go.set()
        assert await asyncio.gather(*futures) == [True] * (3 * LIMIT)

    run(body)


def test_a_callback_that_fails_leaves_the_others_their_turn() -> None:
    async def body(threads: Threads) -> None:
        told: list[dict[str, object]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))
        done: list[asyncio.Future[object]] = []
        for _ in range(5):
            threads.run(lambda: 1, lambda _: pytest.fail("this callback fails"))
            done.append(result_of(threads, lambda: 2))
        assert await asyncio.gather(*done) == [2] * 5
        assert len(told) == 5

    run(body)


def test_where_no_further_thread_can_be_started_those_there_are_do_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    async def body(threads: Threads) -> None:
        def refuse(_: threading.Thread) -> None:
            raise RuntimeError("can't start new thread")

        monkeypatch.setattr(threading.Thread, "start", refuse)
        done = [result_of(threads, lambda i=i: i) for i in range(3 * LIMIT)]  # type: ignore[misc]
        assert await asyncio.gather(*done) == list(range(3 * LIMIT))
        assert alive() == 1

    run(body)


def test_closing_drops_what_has_not_begun_and_keeps_no_descriptor() -> None:
    before = descriptors(os.getpid())
    go, begun, ran = threading.Event(), threading.Semaphore(0), []

    def work() -> None:
        begun.release()
        go.wait()
        ran.append(1)

    async def main() -> None:
        threads = Threads(asyncio.get_running_loop(), LIMIT)
        for _ in range(3 * LIMIT):
            threads.run(work, lambda _: pytest.fail("nobody is told after close"))
        for _ in range(LIMIT):
            begun.acquire()
        threads.close()

    asyncio.run(main())
    go.set()
    wait_until(lambda: not alive(), "the threads have ended")
    assert len(ran) == LIMIT
    assert descriptors(os.getpid()) == before
