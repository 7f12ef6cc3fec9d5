"""Supervision: which jobs are run again when a child dies, and what happens when none starts."""

from __future__ import annotations

import asyncio
import os
import random
import signal
from collections.abc import Awaitable, Callable

import pytest

from limbd.ops import by_name
from limbd.ops.status import Status
from limbd.worker import executor as executor_module
from limbd.worker.arena import Arena
from limbd.worker.child import Events
from limbd.worker.config import Config, Supervision
from limbd.worker.device.base import BackendInfo, Outcome
from limbd.worker.device.messages import Answer, Hello, Job
from limbd.worker.executor import IN_CHILD, Executor, Health, StartError, Task
from limbd.worker.service import Service

HASTY = Supervision(start=20, heartbeat=0.05, silent_beats=4, back_off=0.01, back_off_limit=0.05)


class FakeChild:
    """A child under the test's control. born: all that were started, in order."""

    born: list[FakeChild]
    greets = True

    def __init__(self, config: Config, device: int, arena: Arena, events: Events) -> None:
        self.events = events
        self.jobs: list[int] = []
        self.killed: str | None = None
        self.pid = 1
        self.born.append(self)
        info = BackendInfo("fake", "none", "none", 0, "none") if self.greets else None
        asyncio.get_running_loop().call_soon(events.hello, Hello(info, "because"))

    def send(self, job: Job) -> None:
        self.jobs.append(job.id)

    def kill(self, cause: str) -> None:
        self.killed = cause
        asyncio.get_running_loop().call_soon(self.events.died, cause)

    def answer(self, job: int, status: Status = Status.OK) -> None:
        self.jobs.remove(job)
        self.events.answer(Answer(job, status))


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> type[FakeChild]:
    class Fresh(FakeChild):
        born: list[FakeChild] = []  # noqa: RUF012

    monkeypatch.setattr(executor_module, "Child", Fresh)
    return Fresh


class Bench:
    """An executor, and what became of the jobs given to it."""

    def __init__(self) -> None:
        self.arena = Arena(1 << 20, 1 << 20)
        self.said: list[str] = []
        self.executor = Executor(Config(backend="reference", supervision=HASTY), 0, self.arena, self.said.append)
        self.answers: dict[int, Status] = {}

    def submit(self, *numbers: int) -> list[Task]:
        def done(answer: Answer) -> None:
            assert answer.id not in self.answers, "answered twice"
            self.answers[answer.id] = answer.status

        tasks = [Task(Job(number, 1, 0, 1, 0, 0, 96, 128, 32), done) for number in numbers]
        for task in tasks:
            self.executor.submit(task)
        return tasks


def run(body: Callable[[Bench], Awaitable[None]]) -> None:
    async def main() -> None:
        bench = Bench()
        try:
            await body(bench)
        finally:
            await bench.executor.close()
            bench.arena.close()

    asyncio.run(asyncio.wait_for(main(), 30))


async def until(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0.001)


def test_a_few_jobs_are_in_the_child_and_the_rest_wait(fake: type[FakeChild]) -> None:
    async def body(bench: Bench) -> None:
        await bench.executor.start()
        tasks = bench.submit(*range(1, 8))
        (child,) = fake.born
        assert child.jobs == list(range(1, IN_CHILD + 1))
        assert not bench.executor.cancel(tasks[0])
        assert bench.executor.cancel(tasks[IN_CHILD]) and not bench.executor.cancel(tasks[IN_CHILD])
        child.answer(2)
        assert child.jobs == [1, 3, 4, 6]
        for job in (1, 3, 4, 6, 7):
            child.answer(job)
        assert bench.answers == dict.fromkeys((1, 2, 3, 4, 6, 7), Status.OK)

    run(body)


def test_after_a_death_each_suspect_is_run_alone_once(fake: type[FakeChild]) -> None:
    async def body(bench: Bench) -> None:
        await bench.executor.start()
        bench.submit(*range(1, 7))
        fake.born[0].answer(1)
        fake.born[0].events.died("killed by SIGKILL")
        await until(lambda: len(fake.born) == 2 and fake.born[1].jobs != [])
        assert fake.born[1].jobs == [2]
        fake.born[1].answer(2)
        assert fake.born[1].jobs == [3]
        fake.born[1].events.died("killed by SIGSEGV")  # 3 was there twice, and the second time alone
        assert bench.answers == {1: Status.OK, 2: Status.OK, 3: Status.POISON_REQUEST}
        await until(lambda: len(fake.born) == 3 and fake.born[2].jobs != [])
        for job in (4, 5):
            assert fake.born[2].jobs == [job]
            fake.born[2].answer(job)
        assert fake.born[2].jobs == [6]
        fake.born[2].answer(6)
        assert [bench.answers[job] for job in (4, 5, 6)] == [Status.OK] * 3

    run(body)


def test_nothing_counts_after_a_device_fault(fake: type[FakeChild]) -> None:
    async def body(bench: Bench) -> None:
        await bench.executor.start()
        bench.submit(1, 2)
        fake.born[0].answer(1, Status.DEVICE_FAULT)
        assert bench.answers == {} and fake.born[0].killed is not None
        bench.submit(3)
        assert fake.born[0].jobs == [2], "no further job may reach a context that is lost"
        await until(lambda: len(fake.born) == 2 and fake.born[1].jobs == [1])
        fake.born[1].answer(1, Status.DEVICE_FAULT)
        await until(lambda: len(fake.born) == 3 and fake.born[2].jobs == [2])
        fake.born[2].answer(2)
        fake.born[2].answer(3)
        assert bench.answers == {1: Status.POISON_REQUEST, 2: Status.OK, 3: Status.OK}

    run(body)


def test_a_device_that_no_longer_starts_is_down_until_it_does(fake: type[FakeChild]) -> None:
    async def body(bench: Bench) -> None:
        await bench.executor.start()
        fake.greets = False
        bench.submit(1)
        fake.born[0].events.died("killed by SIGKILL")
        await until(lambda: bench.executor.health is Health.DOWN)
        assert bench.answers == {1: Status.NO_DEVICE}
        bench.submit(2)
        assert bench.answers[2] is Status.NO_DEVICE
        fake.greets = True
        await until(lambda: bench.executor.health is Health.READY)
        bench.submit(3)
        fake.born[-1].answer(3)
        assert bench.answers[3] is Status.OK

    run(body)


def test_a_first_start_that_fails_says_why(fake: type[FakeChild]) -> None:
    async def body(bench: Bench) -> None:
        fake.greets = False
        with pytest.raises(StartError, match="because"):
            await bench.executor.start()
        assert len(fake.born) == 1

    run(body)


def test_pauses_between_fruitless_children_grow(fake: type[FakeChild]) -> None:
    async def body(bench: Bench) -> None:
        loop = asyncio.get_running_loop()
        await bench.executor.start()
        pauses = []
        for number in range(1, 6):
            died = loop.time()
            fake.born[-1].events.died("exit status 1")
            await until(lambda number=number: len(fake.born) == number + 1)  # type: ignore[misc]
            pauses.append(loop.time() - died)
            await until(lambda: bench.executor.health is Health.READY)
        limits = (0.01, 0.02, 0.04, 0.05, 0.05)
        assert all(pause >= limit - 0.005 for pause, limit in zip(pauses, limits, strict=True)), pauses

    run(body)


def test_a_real_child_that_falls_silent_is_replaced() -> None:
    async def body(bench: Bench) -> None:
        info = await bench.executor.start()
        assert info.name == "reference"
        first = bench.executor.pid
        assert first is not None
        os.kill(first, signal.SIGSTOP)
        await until(lambda: bench.executor.pid not in (first, None) and bench.executor.health is Health.READY)
        assert any("has not answered 4 beats" in line for line in bench.said), bench.said
        with pytest.raises(ProcessLookupError):
            os.kill(first, 0)

    run(body)


def test_a_child_that_works_for_long_is_not_taken_for_dead() -> None:
    """The batch takes several times what the beats allow."""

    async def body(bench: Bench) -> None:
        await bench.executor.start()
        op, n = by_name("mod-exp"), 20_000
        slot = bench.arena.reserve(32 + 64 * n, 32 * n)
        bench.arena.back(slot)
        bench.arena.payload(slot)[:] = random.Random(1).randbytes(slot.payload_bytes)
        done: list[Answer] = []
        job = Job(
            *(1, op.id, 0, n, 0, slot.offset, slot.payload_bytes, slot.result_offset, slot.result_bytes),
        )
        bench.executor.submit(Task(job, done.append))
        first = bench.executor.pid
        await until(lambda: done != [])
        assert done[0].status is Status.OK
        assert done[0].outcome.kernel_ms > 1e3 * HASTY.heartbeat * HASTY.silent_beats, "the batch was too short to tell"
        assert bench.executor.pid == first

    run(body)


def test_a_backend_that_does_not_exist_here_is_an_error(tmp_path: object) -> None:
    async def body(bench: Bench) -> None:
        bench.executor = Executor(Config(backend="cuda", devices=(4096,), supervision=HASTY), 4096, bench.arena, print)
        with pytest.raises(StartError, match="cuda"):
            await bench.executor.start()

    run(body)


def test_work_goes_to_the_device_with_least_of_it(fake: type[FakeChild]) -> None:
    async def main() -> None:
        service = Service(Config(backend="null", devices=(0, 1), supervision=HASTY))
        await service.start()
        tasks = [Task(Job(number, 1, 0, 1, 0, 0, 96, 128, 32), lambda _: None) for number in range(6)]
        assert [service.submit(task).device for task in tasks] == [0, 1, 0, 1, 0, 1]
        fake.greets = False
        fake.born[0].events.died("killed")
        await until(lambda: service.executors[0].health is not Health.READY)
        more = [Task(Job(number, 1, 0, 1, 0, 0, 96, 128, 32), lambda _: None) for number in range(6, 10)]
        assert {service.submit(task).device for task in more} == {1}
        await service.close()

    asyncio.run(asyncio.wait_for(main(), 30))


def test_messages_survive_their_packing() -> None:
    job = Job(2**63, 5, 0x104, 2**33, 7, 1 << 40, 1 << 33, 1 << 41, 1 << 32)
    assert Job.unpack(job.pack()) == job
    for answer in (
        Answer(9, Status.OK, Outcome(1.5, 0.25, 0.125, 3)),
        Answer(10, Status.BAD_ELEMENT, Outcome(bad_index=2**40, counts={"non_invertible": 2}), "text with \n and ü"),
    ):
        assert Answer.unpack(answer.pack()) == answer
    hello = Hello(BackendInfo("cuda", "H200", "sm_90", 1 << 37, "nvrtc 13.0", 3), "why")
    assert Hello.unpack(hello.pack()) == hello
    assert Hello.unpack(Hello(None, "why not").pack()) == Hello(None, "why not")
