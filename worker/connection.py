"""One client, whatever its transport: bytes in, requests to the executors, answers out in order.

The transport owns the descriptor and calls in with what happened; the connection owns every request's memory from its
reservation until the last byte of its answer has left, and tells the transport what to do.
"""

from __future__ import annotations

import asyncio
import time
import traceback
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from limbd.ops import by_id
from limbd.ops.status import LimbdError, ServiceError, Status
from limbd.worker.arena import Slot
from limbd.worker.budget import Share
from limbd.worker.device.base import Outcome
from limbd.worker.device.messages import Answer, Job
from limbd.worker.executor import Executor, Task
from limbd.worker.request_log import Record
from limbd.worker.service import THREAD_MEMORY, Service
from limbd.worker.session import Action, Input, Reply, Session, State
from limbd.worker.wire import Decoder, End, Event, Frame, Head, Part, Refusal

EMPTY = memoryview(b"")

# A client that asks one request after another may send the next before the worker knows that the last answer has left.
# That answer's slot serves again, if it is free within about the time that the system takes for new memory of this size.
NEW_MEMORY_RATE = 2e9  # bytes a second


class Transport(Protocol):
    """Each of linger, close and abort leads to one call of Connection.closed, when no thread touches a slot any more."""

    def update(self) -> None:
        """Whether input is wanted may have changed."""
        ...

    def send(self, seq: int, header: bytes, body: memoryview) -> None:
        """Send both, after what was sent before; Connection.sent(seq) when the kernel has it all."""
        ...

    def linger(self, seconds: float) -> None:
        """Everything is sent: shut the write side, drain input until its end or for `seconds`, close."""
        ...

    def close(self) -> None: ...

    def abort(self) -> None:
        """Close without sending what waits."""
        ...


@dataclass(eq=False)
class Request:
    """One frame, from its header to its answer's last byte.

    whole: all of its payload is in the slot. holds: how many still need the slot: the connection until the answer has
    left, the executor while the job is its, a thread that works on the memory.
    """

    op: str
    n: int
    head: Head | None = None
    slot: Slot | None = None
    charge: int = 0
    began: float = field(default_factory=time.perf_counter)
    filled: int = 0
    whole: bool = False
    seq: int = 0
    holds: int = 1
    task: Task | None = None
    executor: Executor | None = None
    answer: Answer | None = None


class Connection:
    """number: for the log, and None where there is only one. on_closed: called last."""

    def __init__(self, service: Service, number: int | None, on_closed: Callable[[Connection], None]) -> None:
        limits = service.config.limits
        self._service = service
        self._number = number
        self._on_closed = on_closed
        self._decoder = Decoder(by_id, limits.payload, limits.in_flight, toys=service.config.toys)
        self._session = Session()
        self._share = Share()
        self._events: deque[Event] = deque()
        self._incoming: Request | None = None
        self._admitted: Request | None = None
        self._backing = False
        self._patience: asyncio.TimerHandle | None = None
        self._impatient = False
        self._pumping = False
        self._requests: dict[int, Request] = {}
        self._transport: Transport | None = None
        self.truncated = False
        self.refused = False
        self.failed = False
        service.enter(self)

    def attach(self, transport: Transport) -> None:
        self._transport = transport
        transport.update()

    # --- what the transport asks and tells ---

    @property
    def wants_input(self) -> bool:
        return self._session.reading and not self._events

    @property
    def target(self) -> memoryview | None:
        """Where the rest of a large payload belongs; None: any buffer, then `feed`."""
        request = self._incoming
        if request is None or request.slot is None or not self._decoder.remaining:
            return None
        return self._service.arena.payload(request.slot)[request.filled :]

    def feed(self, data: memoryview) -> None:
        """Bytes came; they are the transport's again after this."""
        self._events += self._decoder.feed(data)
        try:
            self._pump()
        finally:  # whatever happened: the buffer is every connection's
            for event in self._events:
                if isinstance(event, Frame | Part):
                    event.own()

    def filled(self, count: int) -> None:
        """`count` bytes were read to the start of `target`."""
        assert self._incoming is not None
        self._incoming.filled += count
        events = self._decoder.advance(count)
        if self._session.reading:
            self._events += events
            self._pump()

    def ended(self) -> None:
        """End of input."""
        self.truncated = self._session.reading and self._decoder.inside
        if self.truncated:
            self._say(f"limbd: error: the input{self._whose} ended inside a frame")
        self._act(self._session.ended())

    def lost(self, why: str = "") -> None:
        """The peer is gone: nobody reads answers any more. why: what has failed, where it did not leave by itself."""
        if why:
            self.failed = True
            self._say(f"limbd: error: {why}{self._whose}")
        self._act(self._session.lost())

    def sent(self, seq: int) -> None:
        """The answer to `seq` has left."""
        self._let_go(self._requests.pop(seq))
        self._act(self._session.sent())
        self._resume()

    def closed(self) -> None:
        """The transport is closed, and no thread of it touches a slot."""
        for request in [*self._requests.values(), self._incoming, self._admitted]:
            if request is not None:
                self._let_go(request)
        self._requests.clear()
        self._incoming = self._admitted = None
        self._forget_patience()
        self._service.leave(self)
        self._on_closed(self)

    # --- what the service tells ---

    def room_again(self) -> None:
        self._resume()

    def drain(self) -> None:
        """No further frames; one that is not here whole is dropped."""
        self._events.clear()
        self._act(self._session.drain())
        self._update()

    def expire(self) -> None:
        """The time for what is in flight is over: its answers are DRAINING."""
        for request in list(self._requests.values()):
            if request.answer is None:
                self._cancel(request)
                self._finish(request, Answer(0, Status.DRAINING, text="the worker is stopping"))

    def abandon(self) -> None:
        self._act(self._session.lost())

    # --- input ---

    def _resume(self) -> None:
        if self._session.reading and self._events:
            self._pump()
        self._update()

    def _update(self) -> None:
        if self._transport is not None:
            self._transport.update()

    def _pump(self) -> None:
        """Take events until none is left, or until one has to wait for memory or for answers to leave."""
        if self._pumping:
            return
        self._pumping = True
        try:
            while self._events and self._session.reading and self._take(self._events[0]):
                self._events.popleft()
            if not self._session.reading:
                self._events.clear()
        finally:
            self._pumping = False

    def _take(self, event: Event) -> bool:
        """False: not now."""
        if isinstance(event, Part | End):
            self._continue(event)
            return True
        if self._session.outstanding >= self._service.config.limits.outstanding:
            return False
        if isinstance(event, Refusal):
            self._refuse(event)
            return True
        head = event.head if isinstance(event, Frame) else event
        request = self._admitted or self._admit(head)
        if request is None or self._backing:
            return False
        self._admitted = None
        if request.answer is not None:
            if isinstance(event, Head) and not any(isinstance(later, End) for later in self._events):
                self._decoder.drop_body()
            self._receive(request, Input.REFUSED)
            self._finish(request, request.answer)
        elif isinstance(event, Frame):
            assert request.slot is not None
            self._service.arena.payload(request.slot)[:] = event.payload
            self._complete(request)
        else:
            self._incoming = request
        return True

    def _continue(self, event: Part | End) -> None:
        """More of the frame that was let in last; of one that was refused meanwhile, nothing is kept."""
        request = self._incoming
        if request is None or request.slot is None:
            return
        if isinstance(event, Part):
            end = request.filled + len(event.data)
            self._service.arena.payload(request.slot)[request.filled : end] = event.data
            request.filled = end
        else:
            self._incoming = None
            self._complete(request)

    def _admit(self, head: Head) -> Request | None:
        """A request with its memory, or with an answer that says why it gets none; None: it has to wait."""
        charge = head.payload_bytes + head.result_bytes
        if not self._service.budget.take(self._share, charge):
            self._service.wait_for_room(self)
            return None
        request = Request(head.op.name, head.call.n, head, charge=charge)
        arena = self._service.arena
        try:
            slot = request.slot = arena.reserve(head.payload_bytes, head.result_bytes)
            if not arena.is_backed(slot):
                if slot.nbytes < THREAD_MEMORY:
                    arena.back(slot)
                elif self._is_patient(slot.nbytes):
                    arena.release(slot)
                    self._service.budget.give(self._share, charge)
                    return None
                else:
                    self._backing = True
                    request.holds += 1
                    self._service.in_thread(lambda: arena.back(slot), lambda result: self._backed(request, result))
        except ServiceError as error:
            request.answer = _failure(error)
        self._admitted = request
        self._forget_patience()
        return request

    def _is_patient(self, nbytes: int) -> bool:
        """Whether to wait a moment for the slot of an answer that is leaving, rather than to reserve new memory."""
        if self._impatient or all(each.answer is None or each.slot is None for each in self._requests.values()):
            return False
        if self._patience is None:
            self._patience = self._service.loop.call_later(nbytes / NEW_MEMORY_RATE, self._lose_patience)
        return True

    def _lose_patience(self) -> None:
        self._impatient = True
        self._resume()

    def _forget_patience(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
        self._patience, self._impatient = None, False

    def _backed(self, request: Request, result: Exception | None) -> None:
        self._backing = False
        if isinstance(result, Exception):
            request.answer = _failure(result)
        self._let_go(request)
        self._resume()

    def _refuse(self, refusal: Refusal) -> None:
        request = Request(refusal.op, refusal.n)
        self._receive(request, Input.REFUSED_FINALLY if refusal.final else Input.REFUSED)
        if refusal.final:
            self.refused = True
            self._say(f"limbd: the input{self._whose} is refused: {refusal.error}")
        self._finish(request, _failure(refusal.error))

    def _receive(self, request: Request, event: Input) -> None:
        request.seq, _ = self._session.receive(event)
        self._requests[request.seq] = request

    # --- the request's way ---

    def _complete(self, request: Request) -> None:
        """The frame is here whole."""
        head, slot = request.head, request.slot
        assert head is not None and slot is not None
        request.whole = True
        self._receive(request, Input.REQUEST)
        try:
            head.op.decode(head.call, self._service.arena.payload(slot))
        except LimbdError as error:
            self._finish(request, _failure(error))
            return
        if head.result_bytes == 0:
            self._finish(request, Answer(0, Status.OK))
            return
        job = Job(
            self._service.next_job(),
            head.op.id,
            0 if head.call.field is None else head.call.field.id,
            head.call.n,
            head.call.param,
            slot.offset,
            slot.payload_bytes,
            slot.result_offset,
            slot.result_bytes,
        )
        task = request.task = Task(job, lambda answer: self._done(request, answer))
        request.holds += 1
        request.executor = self._service.submit(task)

    def _done(self, request: Request, answer: Answer) -> None:
        """The executor no longer needs the slot. The answer is wanted unless the client has left or the worker's time
        to stop was over before."""
        request.task = None
        if request.answer is None and self._session.state is not State.CLOSED:
            self._finish(request, answer)
        self._let_go(request)

    def _cancel(self, request: Request) -> None:
        """Take it out of the queue, if it is still there."""
        if request.task is not None and request.executor is not None and request.executor.cancel(request.task):
            request.task = None
            self._let_go(request)

    def _finish(self, request: Request, answer: Answer) -> None:
        """The answer is known; it leaves when its turn comes."""
        request.answer = answer
        if answer.status is not Status.OK:
            self._keep(request, answer)
        count = 0 if request.head is None else request.head.op.result_count(request.head.call)
        for reply in self._session.reply(request.seq, answer.status, count):
            self.send(reply)

    def send(self, reply: Reply) -> None:
        """One answer whose turn has come. Its slot is released only after the kernel has the last byte."""
        request = self._requests[reply.seq]
        self._record(request)
        body = EMPTY
        if reply.status is Status.OK and request.slot is not None:
            body = self._service.arena.result(request.slot)
        assert self._transport is not None
        self._transport.send(reply.seq, reply.header, body)

    def _record(self, request: Request) -> None:
        answer = request.answer
        assert answer is not None
        service = self._service
        if answer.text:
            service.log.put(f"limbd: seq={request.seq} op={request.op}{self._whose}: {answer.text.rstrip()}")
        if not service.config.log_requests and answer.status is Status.OK:
            return
        executor = request.executor or service.executors[0]
        index = answer.outcome.bad_index
        service.log.put(
            Record(
                request.seq,
                request.op,
                request.n,
                executor.info.name if executor.info else "none",
                executor.device,
                answer.outcome,
                time.perf_counter() - request.began,
                answer.status,
                index if answer.status is not Status.OK else None,
                self._number,
            )
        )

    def _keep(self, request: Request, answer: Answer) -> None:
        """Failed frames that are here whole go to their folder, if one is configured."""
        keeper, head, slot = self._service.keep_failed, request.head, request.slot
        if keeper is None or head is None or slot is None or not request.whole:
            return
        payload = self._service.arena.payload(slot)
        request.holds += 1
        self._service.in_thread(
            lambda: keeper.keep(self._number or 0, request.seq, request.op, answer.status, head.raw, payload),
            lambda _: self._let_go(request),
        )

    def _let_go(self, request: Request) -> None:
        request.holds -= 1
        if request.holds == 0:
            self._service.release(request.slot, self._share, request.charge)

    # --- the end ---

    def _act(self, action: Action) -> None:
        transport = self._transport
        if transport is None:
            return
        if action is Action.LINGER:
            transport.linger(self._service.config.linger_seconds)
        elif action is Action.CLOSE:
            transport.close()
        elif action is Action.ABANDON:
            self._events.clear()
            for request in self._requests.values():
                self._cancel(request)
            transport.abort()

    def _say(self, line: str) -> None:
        """What any client of many could provoke again and again is written at a limited rate."""
        if self._number is None:
            self._service.log.put(line)
        else:
            self._service.say_limited(line)

    @property
    def _whose(self) -> str:
        return "" if self._number is None else f" of connection {self._number}"


def _failure(error: Exception) -> Answer:
    """The answer for an exception of ours, or for one that should not have happened."""
    if isinstance(error, LimbdError):
        return Answer(0, error.status, Outcome(bad_index=error.index), str(error))
    return Answer(0, Status.INTERNAL, text="".join(traceback.format_exception(error)))
