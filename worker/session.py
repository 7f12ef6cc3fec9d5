"""One connection's state machine as a table: frames in, actions out. No I/O, no clock.

It numbers the requests, keeps version 1's order of answers, and says when a connection has come to its end. The caller
carries out the actions and reports what happened as further inputs.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from enum import Enum, auto

from limbd.ops.status import Status
from limbd.worker.wire import response_header


class State(Enum):
    """OPEN: frames are read. FINISHING: input has ended, answers are outstanding. REFUSING: input has not ended but is
    no longer wanted (a final refusal, or the worker drains); answers are outstanding. CLOSED: nothing is owed."""

    OPEN = auto()
    FINISHING = auto()
    REFUSING = auto()
    CLOSED = auto()


class Input(Enum):
    """What can happen. REQUEST: a frame to serve. REFUSED, REFUSED_FINALLY: a frame that gets an error. ENDED: end of
    input. DRAIN: the worker stops. SETTLED: every request received has its answer sent. LOST: the peer is gone."""

    REQUEST = auto()
    REFUSED = auto()
    REFUSED_FINALLY = auto()
    ENDED = auto()
    DRAIN = auto()
    SETTLED = auto()
    LOST = auto()


class Action(Enum):
    """What the caller has to do. SERVE: run the request. ANSWER: reply with the error. NOTHING.

    LINGER: flush, shut the write side, drain input for a moment, close. CLOSE: flush and close. ABANDON: close at once;
    queued requests leave the queue, running ones are finished and dropped.
    """

    SERVE = auto()
    ANSWER = auto()
    NOTHING = auto()
    LINGER = auto()
    CLOSE = auto()
    ABANDON = auto()


TABLE: dict[tuple[State, Input], tuple[State, Action]] = {
    (State.OPEN, Input.REQUEST): (State.OPEN, Action.SERVE),
    (State.OPEN, Input.REFUSED): (State.OPEN, Action.ANSWER),
    (State.OPEN, Input.REFUSED_FINALLY): (State.REFUSING, Action.ANSWER),
    (State.OPEN, Input.ENDED): (State.FINISHING, Action.NOTHING),
    (State.OPEN, Input.DRAIN): (State.REFUSING, Action.NOTHING),
    (State.OPEN, Input.SETTLED): (State.OPEN, Action.NOTHING),
    (State.OPEN, Input.LOST): (State.CLOSED, Action.ABANDON),
    (State.FINISHING, Input.DRAIN): (State.FINISHING, Action.NOTHING),
    (State.FINISHING, Input.SETTLED): (State.CLOSED, Action.CLOSE),
    (State.FINISHING, Input.LOST): (State.CLOSED, Action.ABANDON),
    (State.REFUSING, Input.ENDED): (State.FINISHING, Action.NOTHING),
    (State.REFUSING, Input.DRAIN): (State.REFUSING, Action.NOTHING),
    (State.REFUSING, Input.SETTLED): (State.CLOSED, Action.LINGER),
    (State.REFUSING, Input.LOST): (State.CLOSED, Action.ABANDON),
    (State.CLOSED, Input.ENDED): (State.CLOSED, Action.NOTHING),
    (State.CLOSED, Input.DRAIN): (State.CLOSED, Action.NOTHING),
    (State.CLOSED, Input.SETTLED): (State.CLOSED, Action.NOTHING),
    (State.CLOSED, Input.LOST): (State.CLOSED, Action.NOTHING),
}


class ProtocolError(Exception):
    """An input that the caller must not give in this state: a mistake in this program, not the client's."""


@dataclass(frozen=True)
class Reply:
    """One answer whose turn has come: `header`, then the request's results if `status` is OK."""

    seq: int
    status: Status
    header: bytes


class Session:
    """State of one connection. Requests are numbered from 1 in the order of their frames, refusals too."""

    def __init__(self) -> None:
        self.state = State.OPEN
        self._last = 0
        self._next_reply = 1
        self._waiting: dict[int, Reply] = {}
        self._unsent = 0

    @property
    def reading(self) -> bool:
        return self.state is State.OPEN

    @property
    def outstanding(self) -> int:
        """Requests received whose answer has not been handed to the kernel whole."""
        return self._unsent

    def receive(self, event: Input) -> tuple[int, Action]:
        """A frame: its number, and SERVE or ANSWER."""
        action = self._step(event)
        if action not in (Action.SERVE, Action.ANSWER):
            raise ProtocolError(f"{event.name} is no frame")
        self._last += 1
        self._unsent += 1
        return self._last, action

    def reply(self, seq: int, status: Status, n: int) -> list[Reply]:
        """The answer to request `seq` is known: the answers whose turn has come now, in order.

        n: what the answer's header says, ignored unless status is OK.
        """
        if not self._next_reply <= seq <= self._last or seq in self._waiting:
            raise ProtocolError(f"no answer is owed to request {seq}")
        header = response_header(status, n if status is Status.OK else 0)
        self._waiting[seq] = Reply(seq, status, header)
        due: deque[Reply] = deque()
        while self._next_reply in self._waiting:
            due.append(self._waiting.pop(self._next_reply))
            self._next_reply += 1
        return list(due)

    def sent(self) -> Action:
        """The next answer has been handed over whole."""
        if not self._unsent:
            raise ProtocolError("more answers sent than requests received")
        self._unsent -= 1
        return self._settle(Action.NOTHING)

    def ended(self) -> Action:
        return self._settle(self._step(Input.ENDED))

    def drain(self) -> Action:
        return self._settle(self._step(Input.DRAIN))

    def lost(self) -> Action:
        return self._step(Input.LOST)

    def _settle(self, action: Action) -> Action:
        return action if self._unsent else self._step(Input.SETTLED)

    def _step(self, event: Input) -> Action:
        try:
            self.state, action = TABLE[self.state, event]
        except KeyError:
            raise ProtocolError(f"{event.name} in state {self.state.name}") from None
        return action
