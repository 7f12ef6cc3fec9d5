"""The connection's state machine: every row of its table, and the order of answers."""

from __future__ import annotations

import pytest

from limbd.ops.status import Status
from limbd.worker.session import TABLE, Action, Input, ProtocolError, Session, State
from limbd.worker.wire import response_header


def session_in(state: State) -> Session:
    session = Session()
    session.state = state
    return session


def test_every_input_has_a_row_or_is_an_error() -> None:
    frames = {Input.REQUEST, Input.REFUSED, Input.REFUSED_FINALLY}
    for state in State:
        for event in Input:
            expected = (state, event) in TABLE
            # Frames come while the session is open; the rest may come at any time, but input ends once.
            assert expected == (
                state is State.OPEN if event in frames else not (state is State.FINISHING and event is Input.ENDED)
            ), (state, event)


@pytest.mark.parametrize(
    ("state", "event", "then", "action"),
    [
        (State.OPEN, "ended", State.CLOSED, Action.CLOSE),
        (State.OPEN, "drain", State.CLOSED, Action.LINGER),
        (State.OPEN, "lost", State.CLOSED, Action.ABANDON),
        (State.FINISHING, "drain", State.CLOSED, Action.CLOSE),
        (State.FINISHING, "lost", State.CLOSED, Action.ABANDON),
        (State.REFUSING, "ended", State.CLOSED, Action.CLOSE),
        (State.REFUSING, "lost", State.CLOSED, Action.ABANDON),
        (State.CLOSED, "ended", State.CLOSED, Action.NOTHING),
        (State.CLOSED, "drain", State.CLOSED, Action.NOTHING),
        (State.CLOSED, "lost", State.CLOSED, Action.NOTHING),
    ],
)
def test_with_nothing_outstanding(state: State, event: str, then: State, action: Action) -> None:
    session = session_in(state)
    assert getattr(session, event)() is action
    assert session.state is then


@pytest.mark.parametrize(
    ("event", "between", "action"),
    [("ended", State.FINISHING, Action.CLOSE), ("drain", State.REFUSING, Action.LINGER)],
)
def test_what_is_outstanding_is_finished_first(event: str, between: State, action: Action) -> None:
    session = Session()
    assert session.receive(Input.REQUEST) == (1, Action.SERVE)
    assert getattr(session, event)() is Action.NOTHING
    assert session.state is between and not session.reading
    with pytest.raises(ProtocolError):
        session.receive(Input.REQUEST)
    assert [reply.seq for reply in session.reply(1, Status.OK, 4)] == [1]
    assert session.sent() is action
    assert session.state is State.CLOSED


def test_a_final_refusal_is_the_last_answer() -> None:
    session = Session()
    session.receive(Input.REQUEST)
    assert session.receive(Input.REFUSED_FINALLY) == (2, Action.ANSWER)
    assert session.reply(2, Status.BAD_MAGIC, 0) == []
    first, last = session.reply(1, Status.OK, 3)
    assert first.header == response_header(0, 3)
    assert last.header == response_header(Status.BAD_MAGIC, 0)
    assert session.sent() is Action.NOTHING
    assert session.sent() is Action.LINGER


def test_answers_leave_in_the_order_of_their_requests() -> None:
    session = Session()
    for _ in range(5):
        session.receive(Input.REQUEST)
    assert session.reply(3, Status.OK, 30) == []
    assert session.reply(2, Status.BAD_MODULUS, 20) == []
    due = session.reply(1, Status.OK, 10)
    assert [(reply.seq, reply.header) for reply in due] == [
        (1, response_header(0, 10)),
        (2, response_header(Status.BAD_MODULUS, 0)),
        (3, response_header(0, 30)),
    ]
    assert session.outstanding == 5
    assert [reply.seq for reply in session.reply(4, Status.OK, 1)] == [4]
    for _ in range(4):
        assert session.sent() is Action.NOTHING
    assert session.outstanding == 1


def test_an_answer_nobody_asked_for_is_a_mistake() -> None:
    session = Session()
    with pytest.raises(ProtocolError):
        session.reply(1, Status.OK, 0)
    session.receive(Input.REQUEST)
    session.reply(1, Status.OK, 0)
    with pytest.raises(ProtocolError):
        session.reply(1, Status.OK, 0)
    session.sent()
    with pytest.raises(ProtocolError):
        session.sent()
