"""What all connections of one worker share: memory, budget, executors, threads for large transfers, stderr."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import Protocol, TypeVar

from limbd.worker.arena import Arena, Slot
from limbd.worker.budget import Budget, Share
from limbd.worker.config import MIB, Config
from limbd.worker.executor import Executor, Health, Task
from limbd.worker.keep_failed import FailedFrames
from limbd.worker.request_log import RequestLog
from limbd.worker.threads import Threads

T = TypeVar("T")

# Below this the system reserves or takes back memory faster than a thread is woken.
THREAD_MEMORY = MIB

# A line that a client can provoke as often as it likes is written at most this often.
LIMITED_SECONDS = 1.0


class Guest(Protocol):
    """What the service knows of a connection."""

    def room_again(self) -> None: ...

    def drain(self) -> None: ...

    def expire(self) -> None: ...

    def abandon(self) -> None: ...


class Service:
    """One worker without its transports. All methods belong to the event loop."""

    def __init__(self, config: Config) -> None:
        """Raises OSError (no memory for the arena, no folder for failed frames)."""
        self.config = config
        self.loop = asyncio.get_running_loop()
        self.log = RequestLog()
        self.keep_failed = None
        if config.keep_failed is not None:
            self.keep_failed = FailedFrames(config.keep_failed, self.log.put)
        self.arena = Arena(min(config.keep_memory, config.limits.in_flight), config.limits.in_flight)
        self.budget = Budget(config.limits.in_flight, config.limits.sure)
        self.executors = [Executor(config, device, self.arena, self.log.put) for device in config.devices]
        self.guests: set[Guest] = set()
        self.draining = False
        self._empty: asyncio.Future[None] | None = None
        self._waiting: deque[Guest] = deque()
        # Transfers, and the memory they need, share the pool; memory and failed frames are quick and may queue.
        self._threads = Threads(self.loop, config.transfer_threads + 2)
        self._transfers = 0
        self._last_limited = -LIMITED_SECONDS
        self._jobs = 0

    async def start(self) -> None:
        """Start every child. Raises StartError."""
        await asyncio.gather(*(executor.start() for executor in self.executors))

    async def close(self) -> None:
        """End the children and write what stderr is still owed."""
        for executor in self.executors:
            await executor.close()
        self._threads.close()
        self.log.close()

    # --- connections ---

    def enter(self, guest: Guest) -> None:
        self.guests.add(guest)

    def leave(self, guest: Guest, share: Share) -> None:
        """The guest is gone, and with it its claim on memory: what was kept free for it may be another's now."""
        self.guests.discard(guest)
        self.budget.close(share)
        self._ask_waiting()
        if not self.guests and self._empty is not None and not self._empty.done():
            self._empty.set_result(None)

    async def drain(self) -> None:
        """Let every connection finish what it has in flight, within the drain limit; then answer what is left with
        DRAINING, and after a last moment abandon it."""
        self.draining = True
        grace = self.config.linger_seconds + 1.0
        for step, seconds in (("drain", self.config.drain_seconds), ("expire", grace), ("abandon", grace)):
            for guest in list(self.guests):
                getattr(guest, step)()
            if self.guests:
                self._empty = self.loop.create_future()
                await asyncio.wait([self._empty], timeout=seconds)

    # --- jobs ---

    def next_job(self) -> int:
        """A number that no job has had."""
        self._jobs += 1
        return self._jobs

    def submit(self, task: Task) -> Executor:
        """Give the task to the executor that is most likely to be done with it first."""
        order = (Health.READY, Health.STARTING, Health.DOWN, Health.CLOSED)
        chosen = min(self.executors, key=lambda executor: (order.index(executor.health), executor.load))
        chosen.submit(task)
        return chosen

    # --- memory ---

    def wait_for_room(self, guest: Guest) -> None:
        """`guest.room_again` is called when memory has been given back; guests are asked in the order they came."""
        if guest not in self._waiting:
            self._waiting.append(guest)

    def release(self, slot: Slot | None, share: Share, nbytes: int) -> None:
        """The request is over: its slot and what its connection was charged for it are free again."""
        if slot is None:
            self._released(None, share, nbytes)
        elif slot.passing and slot.nbytes >= THREAD_MEMORY:
            self.in_thread(lambda: self.arena.give_back(slot), lambda _: self._released(slot, share, nbytes))
        else:
            self.arena.give_back(slot)
            self._released(slot, share, nbytes)

    def _released(self, slot: Slot | None, share: Share, nbytes: int) -> None:
        if slot is not None:
            self.arena.release(slot)
        self.budget.give(share, nbytes)
        self._ask_waiting()

    def _ask_waiting(self) -> None:
        for _ in range(len(self._waiting)):
            self._waiting.popleft().room_again()

    # --- threads ---

    def in_thread(self, work: Callable[[], T], done: Callable[[T | Exception], None]) -> None:
        """Run `work` in a thread, then `done` with its result or exception on the event loop."""
        self._threads.run(work, done)

    def begin_transfer(self) -> bool:
        """Whether a thread may be occupied by a large transfer; `end_transfer` when it is over."""
        if self._transfers >= self.config.transfer_threads:
            return False
        self._transfers += 1
        return True

    def end_transfer(self) -> None:
        self._transfers -= 1

    # --- words ---

    def say_limited(self, line: str) -> None:
        now = time.monotonic()
        if now - self._last_limited >= LIMITED_SECONDS:
            self._last_limited = now
            self.log.put(line)
