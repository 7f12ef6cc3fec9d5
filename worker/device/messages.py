"""What parent and child say to each other over their two SOCK_SEQPACKET socketpairs: one packed message a packet.

work: the child's first message is its hello (JSON); then jobs one way, answers the other.
control: beats, sent back as they are; when it closes, the child exits.
"""

from __future__ import annotations

import json
import struct
from dataclasses import asdict, dataclass, field, fields
from operator import attrgetter

from limbd.ops.status import Status
from limbd.worker.device.base import BackendInfo, Outcome

# Characters of a text; what is longer loses its beginning (a traceback's end tells most). As JSON each may take six
# bytes, and no message is longer than MESSAGE_BYTES.
TEXT_BYTES = 16 << 10
MESSAGE_BYTES = 128 << 10

_JOB = struct.Struct("<QIIQIQQQQ")
_ANSWER = struct.Struct("<QIIdddq")


@dataclass(frozen=True)
class Job:
    """One request for a child. field: id of the registered field, 0 where the modulus stands in the payload.

    The offsets are the arena's.
    """

    id: int
    op: int
    field: int
    n: int
    param: int
    payload_offset: int
    payload_bytes: int
    result_offset: int
    result_bytes: int

    def pack(self) -> bytes:
        return _JOB.pack(*_job_fields(self))

    @classmethod
    def unpack(cls, message: bytes) -> Job:
        return cls(*_JOB.unpack(message))


# Made once: a job is packed for every request.
_job_fields = attrgetter(*(each.name for each in fields(Job)))


@dataclass(frozen=True)
class Answer:
    """What became of a job. text: the error's message for the client's side, then for INTERNAL the traceback."""

    id: int
    status: Status
    outcome: Outcome = field(default_factory=Outcome)
    text: str = ""

    def pack(self) -> bytes:
        outcome = self.outcome
        bad_index = -1 if outcome.bad_index is None else outcome.bad_index
        head = _ANSWER.pack(
            self.id,
            self.status,
            outcome.launches,
            outcome.kernel_ms,
            outcome.h2d_ms,
            outcome.d2h_ms,
            bad_index,
        )
        if not (self.text or outcome.counts):
            return head
        return head + json.dumps({"text": self.text[-TEXT_BYTES:], "counts": outcome.counts}).encode()

    @classmethod
    def unpack(cls, message: bytes) -> Answer:
        number, status, launches, kernel, h2d, d2h, bad = _ANSWER.unpack_from(message)
        counts, text = {}, ""
        if len(message) > _ANSWER.size:
            tail = json.loads(message[_ANSWER.size :])
            counts, text = tail["counts"], tail["text"]
        return cls(number, Status(status), Outcome(kernel, h2d, d2h, launches, None if bad < 0 else bad, counts), text)


@dataclass(frozen=True)
class Hello:
    """The child's first message: who will answer and why it was chosen, or why nobody will (info is None)."""

    info: BackendInfo | None
    reason: str

    def pack(self) -> bytes:
        return json.dumps({"info": self.info and asdict(self.info), "reason": self.reason[-TEXT_BYTES:]}).encode()

    @classmethod
    def unpack(cls, message: bytes) -> Hello:
        told = json.loads(message)
        return cls(BackendInfo(**told["info"]) if told["info"] else None, told["reason"])


@dataclass(frozen=True)
class Orders:
    """The child's command line, one JSON argument: its inherited descriptors, its backend, its memory."""

    work_fd: int
    control_fd: int
    arena_fd: int
    arena_bytes: int
    lasting_bytes: int
    backend: str
    device: int
    device_memory: int | None
    cache: str | None

    def dump(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def load(cls, text: str) -> Orders:
        return cls(**json.loads(text))
