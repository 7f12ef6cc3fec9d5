"""The frame codec: bytes <-> frames (wire.md). No I/O, no clock.

Layouts are tables, so that a further version is a further row. A Decoder takes bytes as they come and gives events:

    Frame    a small frame, whole
    Head     a large frame's header; its payload follows as Part ... Part, End. A transport may read the payload straight
             to where it belongs: `remaining` says how much is missing, `advance` tells the decoder that it was read
    Refusal  a frame that is not served. Its body is dropped here; after a `final` one nothing more is decoded

Magic, op, param, limits and length are checked, in Python's own integers, before anyone allocates anything.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass

from limbd.ops.base import Call, Op
from limbd.ops.status import RequestError, Status

MAGIC_BYTES = 4
MAGIC_V1 = b"BCGB"

# Frames up to this length are gathered before anything is reserved for them, so that a client that sends drop by drop
# holds no slot; above it the payload goes straight into its slot.
SMALL_FRAME = 64 << 10


class Layout:
    """A header as a table: one row (offset, struct code, name) a field, little-endian, without gaps."""

    def __init__(self, size: int, rows: tuple[tuple[int, str, str], ...]) -> None:
        self._struct = struct.Struct("<" + "".join(code for _, code, _ in rows))
        ends = [at + struct.calcsize("<" + code) for at, code, _ in rows]
        if self._struct.size != size or [0, *ends[:-1]] != [at for at, _, _ in rows]:
            raise ValueError("the table leaves a gap or does not add up to its size")
        self.size = size
        self.names = tuple(name for _, _, name in rows)

    def pack(self, **fields: int | bytes) -> bytes:
        return self._struct.pack(*(fields[name] for name in self.names))

    def unpack(self, buffer: bytes | bytearray | memoryview) -> dict[str, int]:
        """The fields at the buffer's start by name (the magic is bytes; no caller reads it from here)."""
        return dict(zip(self.names, self._struct.unpack_from(buffer), strict=True))


@dataclass(frozen=True)
class Version:
    """One version of the wire: how its connections begin, and its two headers."""

    number: int
    magic: bytes
    request: Layout
    response: Layout


VERSION_1 = Version(
    1,
    MAGIC_V1,
    Layout(16, ((0, "4s", "magic"), (4, "I", "op"), (8, "I", "n"), (12, "I", "param"))),
    Layout(12, ((0, "4s", "magic"), (4, "I", "status"), (8, "I", "n"))),
)
VERSIONS = (VERSION_1,)


def request_header(op: int, n: int, param: int) -> bytes:
    """Version 1's 16 bytes before the payload."""
    return VERSION_1.request.pack(magic=MAGIC_V1, op=op, n=n, param=param)


def response_header(status: int, n: int) -> bytes:
    """Version 1's 12 bytes before the results."""
    return VERSION_1.response.pack(magic=MAGIC_V1, status=status, n=n)


@dataclass(frozen=True)
class Head:
    """A header that passed every check that needs no payload. raw: its bytes as they came."""

    op: Op
    call: Call
    payload_bytes: int
    result_bytes: int
    raw: bytes


@dataclass
class Frame:
    """A small frame. payload: a view of the bytes fed, valid until the next feed unless owned (see `own`)."""

    head: Head
    payload: memoryview

    def own(self) -> None:
        self.payload = memoryview(bytes(self.payload))


@dataclass
class Part:
    """The next bytes of the payload of the Head before; as for Frame, a view."""

    data: memoryview

    def own(self) -> None:
        self.data = memoryview(bytes(self.data))


@dataclass(frozen=True)
class End:
    """The payload of the Head before is complete."""


@dataclass(frozen=True)
class Refusal:
    """A frame that gets an error instead of an answer. op, n: as far as the header was understood.

    final: the body's length is unknown or beyond the limit: answer, then end the connection.
    """

    error: RequestError
    op: str = "-"
    n: int = 0
    final: bool = False


Event = Frame | Head | Part | End | Refusal


class Decoder:
    """One connection's input. find_op: op id -> Op, or
    RequestError(UNKNOWN_OP). payload_limit: bytes of one payload;
    frame_limit: bytes of payload and result together. toys: toy fields are served."""

    def __init__(
        self,
        find_op: Callable[[int], Op],
        payload_limit: int,
        frame_limit: int,
        small_frame: int = SMALL_FRAME,
        *,
        toys: bool = False,
    ) -> None:
        self._toys = toys
        self._find_op = find_op
        self._payload_limit = payload_limit
        self._frame_limit = frame_limit
        self._small_frame = small_frame
        self._version: Version | None = None
        self._held = bytearray()
        self._small: Head | None = None
        self._dropping = 0
        self.remaining = 0
        self.ended = False

    @property
    def inside(self) -> bool:
        """Input that ends now would end inside a frame."""
        return bool(self._held or self._small or self._dropping or self.remaining)

    def advance(self, count: int) -> list[Event]:
        """The transport has read `count` bytes of the current payload itself."""
        if count > self.remaining:
            raise ValueError(f"{count} bytes read, {self.remaining} were missing")
        self.remaining -= count
        return [] if self.remaining else [End()]

    def drop_body(self) -> None:
        """Whoever got the last Head does not want its payload: what is missing of it will be dropped."""
        self._dropping, self.remaining = self._dropping + self.remaining, 0

    def feed(self, data: bytes | bytearray | memoryview) -> list[Event]:
        """Decode what came. Views in the events are into `data`."""
        events: list[Event] = []
        view = memoryview(data)
        while len(view) and not self.ended:
            if self._dropping:
                count = min(self._dropping, len(view))
                self._dropping -= count
            elif self.remaining:
                count = min(self.remaining, len(view))
                events.append(Part(view[:count]))
                events += self.advance(count)
            elif self._small is not None:
                count = self._gather_payload(view, self._small, events)
            else:
                count = self._gather_header(view, events)
            view = view[count:]
        return events

    def _gather_payload(self, view: memoryview, head: Head, events: list[Event]) -> int:
        count = min(head.payload_bytes - len(self._held), len(view))
        if not self._held and count == head.payload_bytes:
            payload = view[:count]
        else:
            self._held += view[:count]
            if len(self._held) < head.payload_bytes:
                return count
            payload, self._held = memoryview(self._held), bytearray()
        self._small = None
        events.append(Frame(head, payload))
        return count

    def _gather_header(self, view: memoryview, events: list[Event]) -> int:
        """Bytes of a header; the magic is judged as soon as one byte of it is wrong."""
        held = len(self._held)
        version = self._version or VERSION_1
        count = min(version.request.size - held, len(view))
        raw = bytes(self._held + view[:count]) if held else bytes(view[:count])
        if not self._magic_fits(raw):
            self._refuse(events, RequestError(Status.BAD_MAGIC, _resemblance(raw)), final=True)
        elif len(raw) < version.request.size:
            self._held[:] = raw
        else:
            self._held.clear()
            self._version = version
            self._open(raw, version, events)
        return count

    def _magic_fits(self, raw: bytes) -> bool:
        """The first four bytes lock the version; until they are complete every version that fits is possible."""
        start = raw[:MAGIC_BYTES]
        candidates = VERSIONS if self._version is None else (self._version,)
        return any(version.magic.startswith(start) for version in candidates)

    def _open(self, raw: bytes, version: Version, events: list[Event]) -> None:
        """Order of checks: op, param, length known, limits (wire.md section 3)."""
        fields = version.request.unpack(raw)
        number, n = fields["op"], fields["n"]
        try:
            op = self._find_op(number)
        except RequestError as error:
            self._refuse(events, error, f"{number:#x}", n, final=True)
            return
        call = Call(n, fields["param"], toys=self._toys)
        payload = op.payload_bytes(call)
        try:
            op.check(call)
            self._check_limits(op, call, payload)
        except RequestError as error:
            # Read on or close: a body of known length within the limit is dropped, and the connection goes on.
            final = payload is None or payload > self._payload_limit
            self._refuse(events, error, op.name, n, final)
            self._dropping = 0 if payload is None or final else payload
            return
        assert payload is not None
        self._begin(Head(op, call, payload, op.result_bytes(call), raw), events)

    def _check_limits(self, op: Op, call: Call, payload: int | None) -> None:
        if payload is None:
            raise RequestError(Status.BAD_LENGTH, f"{op.name}: no payload has n = {call.n} with this param")
        if payload > self._payload_limit:
            raise RequestError(Status.TOO_LARGE, f"{op.name}: payload of {payload} bytes, limit {self._payload_limit}")
        whole = payload + op.result_bytes(call)
        if whole > self._frame_limit:
            raise RequestError(Status.TOO_LARGE, f"{op.name}: {whole} bytes with the result, limit {self._frame_limit}")

    def _begin(self, head: Head, events: list[Event]) -> None:
        if head.payload_bytes == 0:
            events.append(Frame(head, memoryview(b"")))
        elif head.payload_bytes <= self._small_frame:
            self._small = head
        else:
            self.remaining = head.payload_bytes
            events.append(head)

    def _refuse(self, events: list[Event], error: RequestError, op: str = "-", n: int = 0, final: bool = False) -> None:
        events.append(Refusal(error, op, n, final))
        if final:
            self.ended = True
            self._held.clear()


def _resemblance(start: bytes) -> str:
    """What wrong first bytes look like, for the one line in the log."""
    if start[:4] in (b"GET ", b"POST", b"PUT ", b"HEAD", b"OPTI", b"DELE", b"PATC", b"CONN", b"PRI "):
        return "this looks like an HTTP request"
    if start[:1] == b"\x16":
        return "this looks like a TLS hello"
    if start[:4] == b"SSH-":
        return "this looks like an SSH client"
    return f"a frame starts with {MAGIC_V1!r}, not with {start[:MAGIC_BYTES]!r}"
