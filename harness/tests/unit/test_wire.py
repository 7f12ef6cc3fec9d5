"""The codec against golden bytes, and the decoder however its input is cut."""

from __future__ import annotations

import struct

import pytest

from limbd.ops import by_id
from limbd.ops.status import Status
from limbd.worker.wire import (
    VERSION_1,
    Decoder,
    End,
    Event,
    Frame,
    Head,
    Layout,
    Part,
    Refusal,
    request_header,
    response_header,
)

# mod-mul of one element: 3 * 5 mod 7.
GOLDEN_REQUEST = bytes.fromhex("42434742 01000000 01000000 00000000") + b"".join(
    value.to_bytes(32, "little") for value in (7, 3, 5)
)
GOLDEN_ANSWER_HEAD = bytes.fromhex("42434742 00000000 01000000")
GOLDEN_ERROR = bytes.fromhex("42434742 07000000 00000000")

PAYLOAD_LIMIT = 1 << 20


def decoder(payload_limit: int = PAYLOAD_LIMIT, frame_limit: int = 1 << 30, small_frame: int = 64 << 10) -> Decoder:
    return Decoder(by_id, payload_limit, frame_limit, small_frame)


def request(op: int, n: int, payload: bytes, param: int = 0) -> bytes:
    return b"BCGB" + struct.pack("<III", op, n, param) + payload


def collected(events: list[Event]) -> list[tuple[str, bytes]]:
    """Frames and large payloads put together again; refusals by their status."""
    found: list[tuple[str, bytes]] = []
    body = b""
    for event in events:
        if isinstance(event, Frame):
            found.append((event.head.op.name, bytes(event.payload)))
        elif isinstance(event, Part):
            body += event.data
        elif isinstance(event, End):
            found.append(("end", body))
            body = b""
        elif isinstance(event, Refusal):
            found.append((event.error.status.name, bytes([event.final])))
    return found


def fed_in_pieces(to: Decoder, data: bytes, size: int) -> list[Event]:
    events: list[Event] = []
    for start in range(0, len(data), size):
        for event in to.feed(data[start : start + size]):
            events.append(event)
    return events


def test_golden_bytes() -> None:
    assert request_header(1, 1, 0) == GOLDEN_REQUEST[:16]
    assert response_header(Status.OK, 1) == GOLDEN_ANSWER_HEAD
    assert response_header(Status.BAD_MODULUS, 0) == GOLDEN_ERROR
    (frame,) = decoder().feed(GOLDEN_REQUEST)
    assert isinstance(frame, Frame)
    assert (frame.head.op.id, frame.head.call.n, frame.head.call.param) == (1, 1, 0)
    assert (frame.head.payload_bytes, frame.head.result_bytes, frame.head.raw) == (96, 32, GOLDEN_REQUEST[:16])
    assert frame.payload == GOLDEN_REQUEST[16:]


def test_a_header_table_may_not_leave_gaps() -> None:
    with pytest.raises(ValueError, match="gap"):
        Layout(8, ((0, "I", "a"), (5, "I", "b")))
    with pytest.raises(ValueError, match="gap"):
        Layout(12, ((0, "I", "a"), (4, "I", "b")))
    assert (VERSION_1.request.size, VERSION_1.response.size) == (16, 12)


@pytest.mark.parametrize("size", [1, 3, 15, 16, 17, 97, 4096])
def test_small_frames_however_they_are_cut(size: int) -> None:
    data = GOLDEN_REQUEST + request(5, 0, bytes(32)) + request(1, 2, bytes(range(160)), param=9) + GOLDEN_REQUEST
    to = decoder()
    assert collected(fed_in_pieces(to, data, size)) == [
        ("mod-mul", GOLDEN_REQUEST[16:]),
        ("mod-inv", bytes(32)),
        ("BAD_PARAM", b"\0"),
        ("mod-mul", GOLDEN_REQUEST[16:]),
    ]
    assert not to.inside and not to.ended


@pytest.mark.parametrize("size", [1, 15, 16, 100, 1 << 20])
def test_large_frames_come_in_parts(size: int) -> None:
    payload = bytes(i % 251 for i in range(32 + 64 * 40))
    to = decoder(small_frame=100)
    events = fed_in_pieces(to, request(1, 40, payload) + GOLDEN_REQUEST, size)
    assert isinstance(events[0], Head)
    assert collected(events) == [("end", payload), ("mod-mul", GOLDEN_REQUEST[16:])]


def test_a_transport_may_read_the_payload_itself() -> None:
    to = decoder(small_frame=100)
    payload = bytes(32 + 64 * 40)
    head, part = to.feed(request(1, 40, payload)[: 16 + 50])
    assert isinstance(head, Head) and isinstance(part, Part) and len(part.data) == 50
    assert to.remaining == len(payload) - 50 and to.inside
    assert to.advance(10) == []
    with pytest.raises(ValueError, match="missing"):
        to.advance(to.remaining + 1)
    assert to.advance(to.remaining) == [End()]
    assert collected(to.feed(GOLDEN_REQUEST)) == [("mod-mul", GOLDEN_REQUEST[16:])]


def test_a_payload_nobody_wants_is_dropped() -> None:
    to = decoder(small_frame=100)
    payload = bytes(32 + 64 * 40)
    to.feed(request(1, 40, payload)[:500])
    to.drop_body()
    assert to.inside and to.remaining == 0
    assert collected(to.feed(payload[484:] + GOLDEN_REQUEST)) == [("mod-mul", GOLDEN_REQUEST[16:])]


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", Status.BAD_MAGIC),
        (b"\x16\x03\x01\x02\x00", Status.BAD_MAGIC),
        (b"BCGC", Status.BAD_MAGIC),
        (b"hi\n", Status.BAD_MAGIC),
        (request(0x63, 1, b""), Status.UNKNOWN_OP),
        (request(1, 1 << 20, b""), Status.TOO_LARGE),
        (request(1, 2**32 - 1, b""), Status.TOO_LARGE),
        (request(5, 2**32 - 1, b"", param=7), Status.BAD_PARAM),
    ],
)
def test_refusals_that_end_the_connection(data: bytes, status: Status) -> None:
    to = decoder()
    (refusal,) = to.feed(data + GOLDEN_REQUEST)
    assert isinstance(refusal, Refusal)
    assert (refusal.error.status, refusal.final) == (status, True)
    assert to.ended and to.feed(GOLDEN_REQUEST) == []


def test_the_first_magic_locks_the_version() -> None:
    to = decoder()
    events = to.feed(GOLDEN_REQUEST + b"BCG2" + bytes(60))
    assert collected(events) == [("mod-mul", GOLDEN_REQUEST[16:]), ("BAD_MAGIC", b"\1")]


def test_what_wrong_first_bytes_look_like() -> None:
    for data, words in ((b"GET /", "HTTP"), (b"\x16\x03", "TLS"), (b"SSH-2.0", "SSH")):
        (refusal,) = decoder().feed(data)
        assert isinstance(refusal, Refusal) and words in refusal.error.message


def test_too_large_with_its_result_is_read_and_dropped() -> None:
    to = decoder(frame_limit=200)
    payload = bytes(32 + 128)
    assert collected(to.feed(request(1, 2, payload) + GOLDEN_REQUEST)) == [
        ("TOO_LARGE", b"\0"),
        ("mod-mul", GOLDEN_REQUEST[16:]),
    ]


def test_input_that_ends_inside_a_frame_is_noticed() -> None:
    for cut in (1, 4, 15, 16, 17, len(GOLDEN_REQUEST) - 1):
        to = decoder()
        to.feed(GOLDEN_REQUEST[:cut])
        assert to.inside, cut
    refused = decoder()
    refused.feed(request(1, 2, bytes(159), param=1))
    assert refused.inside
