"""The child: owns one device, receives jobs, runs a backend, answers. Started by worker/child.py as
`python -m limbd.worker.device.main ORDERS`; it ends as soon as its parent's end of the control socket closes.

Threads: the main thread receives a job and starts it (and answers it, if the backend was done at once); a completion
thread waits for the others in their order; a control thread sends beats back, so that a long kernel is not taken for
death, and ends the process when the parent is gone.
"""

from __future__ import annotations

import faulthandler
import mmap
import os
import queue
import signal
import socket
import sys
import threading
import traceback
from pathlib import Path

from limbd.ops import by_id
from limbd.ops.base import Call, Request
from limbd.ops.params.base import Field
from limbd.ops.status import LimbdError, Status
from limbd.worker.device.base import Backend, BackendInfo, Outcome, Ticket
from limbd.worker.device.choose import NoBackend, choose
from limbd.worker.device.messages import MESSAGE_BYTES, Answer, Hello, Job, Orders
from limbd.worker.device.pinned import PinnedMemory
from limbd.worker.device.self_test import SelfTest

BEAT_BYTES = 16

# The child's exit statuses, for the parent's log.
EXIT_OK, EXIT_NO_BACKEND, EXIT_DEVICE_FAULT = 0, 3, 4

# These ignore the kernels or are the oracle itself: there is nothing to prove.
UNTESTED = ("null", "reference")


class Worker:
    """One backend at work. memory: the arena's mapping. pinned: its lasting part, registered as far as it is used."""

    def __init__(
        self, backend: Backend, info: BackendInfo, memory: memoryview, pinned: PinnedMemory, work: socket.socket
    ) -> None:
        self._backend = backend
        self._pinned = pinned
        self._traits = backend.traits()
        self._self_test = None if info.name in UNTESTED else SelfTest(backend)
        self._memory = memory
        self._work = work
        self._started: queue.SimpleQueue[tuple[Job, Ticket]] = queue.SimpleQueue()
        self._completion: threading.Thread | None = None
        self._unfinished = 0
        self._finished = threading.Condition()

    def serve(self) -> None:
        """Until the parent closes its end."""
        while message := self._work.recv(MESSAGE_BYTES):
            job = Job.unpack(message)
            try:
                ticket = self._start(job)
            except Exception as error:
                self._fail(job, error)
            else:
                if isinstance(ticket, Outcome):
                    self._answer(Answer(job.id, _status(ticket), ticket))
                else:
                    self._complete_later(job, ticket)

    def _start(self, job: Job) -> Ticket:
        op, field = by_id(job.op), _field(job.field)
        payload = self._memory[job.payload_offset : job.payload_offset + job.payload_bytes]
        result = self._memory[job.result_offset : job.result_offset + job.result_bytes]
        request: Request = op.decode(Call(job.n, job.param, field), payload)
        plan = op.plan(request, self._traits)
        self._pinned.cover(job.payload_offset, job.result_offset + job.result_bytes, self._settle)
        if self._self_test is not None:
            self._self_test.check(request, plan)
        return self._backend.start(request, plan, result)

    def _complete_later(self, job: Job, ticket: Ticket) -> None:
        if self._completion is None:
            self._completion = threading.Thread(target=self._complete, name="completion", daemon=True)
            self._completion.start()
        with self._finished:
            self._unfinished += 1
        self._started.put((job, ticket))

    def _complete(self) -> None:
        while True:
            job, ticket = self._started.get()
            try:
                outcome = self._backend.finish(ticket)
            except Exception as error:
                self._fail(job, error)
            else:
                self._answer(Answer(job.id, _status(outcome), outcome))
            with self._finished:
                self._unfinished -= 1
                self._finished.notify()

    def _settle(self) -> None:
        """Wait until no batch is in flight."""
        with self._finished:
            self._finished.wait_for(lambda: self._unfinished == 0)

    def _fail(self, job: Job, error: Exception) -> None:
        """A failed job's answer. A device fault is sticky: the process ends with it, before anything else can be
        answered from the same context."""
        if isinstance(error, LimbdError):
            self._answer(Answer(job.id, error.status, Outcome(bad_index=error.index), str(error)))
            if error.status is Status.DEVICE_FAULT:
                os._exit(EXIT_DEVICE_FAULT)
        else:
            trace = "".join(traceback.format_exception(error))
            self._answer(Answer(job.id, Status.INTERNAL, text=trace))

    def _answer(self, answer: Answer) -> None:
        try:
            self._work.send(answer.pack())
        except OSError:
            os._exit(EXIT_OK)  # the parent is gone: nobody wants the answer


def _status(outcome: Outcome) -> Status:
    return Status.OK if outcome.bad_index is None else Status.BAD_ELEMENT


def _field(number: int) -> Field | None:
    if number == 0:
        return None
    from limbd.ops.params.fields import by_id as field_by_id

    return field_by_id(number)


def _beat(control: socket.socket) -> None:
    """The control thread: send each beat back; leave when the parent does."""
    try:
        while beat := control.recv(BEAT_BYTES):
            control.send(beat)
    except OSError:
        pass
    os._exit(EXIT_OK)


def main(argument: str) -> int:
    orders = Orders.load(argument)
    # The parent decides when a child ends: a signal to the whole process group must not take it away mid-batch.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    faulthandler.enable()
    control = socket.socket(fileno=orders.control_fd)
    threading.Thread(target=_beat, args=(control,), name="control", daemon=True).start()
    work = socket.socket(fileno=orders.work_fd)
    memory = memoryview(mmap.mmap(orders.arena_fd, orders.arena_bytes))
    os.close(orders.arena_fd)
    cache = None if orders.cache is None else Path(orders.cache)
    try:
        backend, reason = choose(orders.backend, orders.device, orders.device_memory, cache)
        pinned = PinnedMemory(backend, memory[: orders.lasting_bytes])
        info = backend.describe()
    except NoBackend as error:
        work.send(Hello(None, str(error)).pack())
        return EXIT_NO_BACKEND
    except Exception as error:
        work.send(Hello(None, "".join(traceback.format_exception(error))).pack())
        return EXIT_NO_BACKEND
    work.send(Hello(info, reason).pack())
    Worker(backend, info, memory, pinned, work).serve()
    return EXIT_OK


if __name__ == "__main__":
    status = main(sys.argv[1])
    sys.stderr.flush()
    os._exit(status)
