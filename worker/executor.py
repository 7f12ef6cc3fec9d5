"""One device's queue: jobs go to its child a few at a time, and the child is started again when it dies.

Jobs are pure, so those that were in a child when it died are run again, once: each alone, so that a second death is
certain to be its own. A job that was there twice when a child died gets POISON_REQUEST and no third try.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum, auto

from limbd.ops.status import Status
from limbd.worker.arena import Arena
from limbd.worker.child import Child, Events
from limbd.worker.config import Config
from limbd.worker.device.base import BackendInfo
from limbd.worker.device.messages import Answer, Hello, Job

# Jobs in the child at a time: one copied in, one computed, one copied out, and one at hand for the first that is done.
IN_CHILD = 4

FATAL_JOB = 2  # deaths that a job may have seen


class Health(Enum):
    """STARTING: a child is on its way, or the next one waits for its back-off. READY. DOWN: starts keep failing; it is
    still tried, but requests are refused meanwhile. CLOSED."""

    STARTING = auto()
    READY = auto()
    DOWN = auto()
    CLOSED = auto()


@dataclass(eq=False)
class Task:
    """A job and what is to happen with its answer. The slot that the job names is lent to the executor until `done` is
    called, exactly once, on the event loop; or until `Executor.cancel` has returned True."""

    job: Job
    done: Callable[[Answer], None]
    deaths: int = field(default=0)


class Executor:
    """The parent's handle on the child that owns device `device`. All methods belong to the event loop."""

    def __init__(self, config: Config, device: int, arena: Arena, say: Callable[[str], None]) -> None:
        """say: takes one line for stderr, without its end."""
        self._config = config
        self.device = device
        self._arena = arena
        self._say = say
        self._child: Child | None = None
        self._waiting: deque[Task] = deque()
        self._suspects: deque[Task] = deque()
        self._running: dict[int, Task] = {}
        self._fault = False
        self._fruitless = 0
        self._answered = False
        self._retry: asyncio.TimerHandle | None = None
        self._first_start: asyncio.Future[BackendInfo] | None = None
        self._closing: asyncio.Future[None] | None = None
        self.health = Health.STARTING
        self.info: BackendInfo | None = None

    @property
    def load(self) -> int:
        """Jobs queued and running."""
        return len(self._waiting) + len(self._suspects) + len(self._running)

    @property
    def pid(self) -> int | None:
        """The child's process id, while there is a child."""
        return None if self._child is None else self._child.pid

    async def start(self) -> BackendInfo:
        """Start the first child. Raises StartError if it does not come up: nothing is retried then."""
        self._first_start = asyncio.get_running_loop().create_future()
        self._spawn()
        return await self._first_start

    def submit(self, task: Task) -> None:
        """Queue a task. Its answer comes by `done`, at once if the device is down."""
        if self.health in (Health.DOWN, Health.CLOSED):
            task.done(Answer(task.job.id, Status.NO_DEVICE, text=f"device {self.device} is down"))
            return
        self._waiting.append(task)
        self._pump()

    def cancel(self, task: Task) -> bool:
        """Take a task back that is still queued; False if it is running (it will be finished) or done."""
        for queued in (self._waiting, self._suspects):
            if task in queued:
                queued.remove(task)
                return True
        return False

    def kill(self) -> None:
        """Have no child when this process ends."""
        if self._child is not None:
            self._child.kill("the worker stops")

    async def close(self) -> None:
        """End the child. Tasks that are not answered stay so: whoever closes has no use for their answers."""
        self.health = Health.CLOSED
        if self._retry is not None:
            self._retry.cancel()
        if self._child is not None:
            self._closing = asyncio.get_running_loop().create_future()
            self._child.kill("closed")
            await self._closing

    # --- the queue ---

    def _pump(self) -> None:
        if self._child is None or self.health is not Health.READY or self._fault:
            return
        if self._suspects:
            if not self._running:
                self._hand_over(self._suspects.popleft())
            return
        while self._waiting and len(self._running) < IN_CHILD and not self._retrying:
            self._hand_over(self._waiting.popleft())

    @property
    def _retrying(self) -> bool:
        """The job in the child has seen a death before, and so runs alone."""
        return any(task.deaths for task in self._running.values())

    def _hand_over(self, task: Task) -> None:
        assert self._child is not None
        self._running[task.job.id] = task
        self._child.send(task.job)

    def _on_answer(self, answer: Answer) -> None:
        if answer.status is Status.DEVICE_FAULT:
            # The child ends now. Nothing it held counts as answered; its jobs are run again in a new one.
            self._fault = True
            if self._child is not None:
                self._child.kill(answer.text)
            return
        task = self._running.pop(answer.id)
        self._answered = True
        self._fruitless = 0
        task.done(answer)
        self._pump()

    # --- the child's life ---

    def _spawn(self) -> None:
        self._retry = None
        self._answered = False
        self._fault = False
        events = Events(self._on_hello, self._on_answer, self._on_death)
        try:
            self._child = Child(self._config, self.device, self._arena, events)
        except OSError as error:
            self._child = None
            self._start_failed(f"cannot start a child process: {error}")

    def _on_hello(self, hello: Hello) -> None:
        if hello.info is None:
            assert self._child is not None
            self._child.kill(hello.reason)
            return
        self.info = hello.info
        self.health = Health.READY
        self._say(
            f"limbd: backend={hello.info.name} device={self.device} ({hello.info.device}, {hello.info.arch}): "
            f"{hello.reason}"
        )
        if self._first_start is not None:
            if not self._first_start.done():
                self._first_start.set_result(hello.info)
            self._first_start = None
        self._pump()

    def _on_death(self, how: str) -> None:
        self._child = None
        if self.health is Health.CLOSED:
            if self._closing is not None:
                self._closing.set_result(None)
            return
        was_ready = self.health is Health.READY
        self._blame(how)
        if not was_ready:
            self._start_failed(how)
            return
        self._say(f"limbd: device={self.device}: the child process has died: {how}; starting another")
        self.health = Health.STARTING
        self._fruitless = 0 if self._answered else self._fruitless + 1
        self._start_later()

    def _blame(self, cause: str) -> None:
        """Every job that was in the child is a suspect; one that was there twice is guilty."""
        tasks, self._running = list(self._running.values()), {}
        for task in tasks:
            task.deaths += 1
        self._suspects.extend(task for task in tasks if task.deaths < FATAL_JOB)
        for task in tasks:
            if task.deaths >= FATAL_JOB:
                text = f"this request has ended two worker processes: {cause}"
                task.done(Answer(task.job.id, Status.POISON_REQUEST, text=text))

    def _start_failed(self, how: str) -> None:
        if self._first_start is not None:
            self.health = Health.DOWN
            if not self._first_start.done():
                self._first_start.set_exception(StartError(how))
            self._first_start = None
            return
        self._fruitless += 1
        self._say(f"limbd: device={self.device}: a child process did not start: {how}")
        if self._fruitless >= self._config.supervision.start_attempts:
            self.health = Health.DOWN
            self._refuse_all(f"device {self.device} does not start: {how}")
        self._start_later()

    def _refuse_all(self, text: str) -> None:
        tasks = [*self._suspects, *self._waiting]
        self._suspects.clear()
        self._waiting.clear()
        for task in tasks:
            task.done(Answer(task.job.id, Status.NO_DEVICE, text=text))

    def _start_later(self) -> None:
        """At once after a child that had done some work, after a doubling pause otherwise."""
        supervision = self._config.supervision
        pause = 0.0
        if self._fruitless:
            pause = min(supervision.back_off * 2 ** (self._fruitless - 1), supervision.back_off_limit)
        self._retry = asyncio.get_running_loop().call_later(pause, self._spawn)


class StartError(Exception):
    """The first child did not come up; the text says why."""
