"""The interface that every backend implements; a backend knows no algorithm, only plans."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

from limbd.ops.base import NONE_BAD, LaunchPlan, Op, Request, Traits


@dataclass(frozen=True)
class BackendInfo:
    """Who answers. name: cuda, cpu, reference or null. memory: bytes of the device. compiler: name and version."""

    name: str
    device: str
    arch: str
    memory: int
    compiler: str
    index: int = 0


@dataclass(frozen=True)
class Outcome:
    """What a batch took, in milliseconds of the device's own clock; launches counts kernels.

    kernel_ms is the sum over the kernels. h2d_ms and d2h_ms are from the beginning of the first copy in that direction to
    the end of the last; with several pieces they overlap each other and the kernels, and have waits in them. span_ms is
    from the first copy in's beginning to the last copy out's end.
    """

    kernel_ms: float = 0.0
    h2d_ms: float = 0.0
    d2h_ms: float = 0.0
    launches: int = 0
    bad_index: int | None = None
    counts: dict[str, int] = field(default_factory=dict)
    span_ms: float = 0.0


def refuse_bad(op: Op, word: int) -> None:
    """For the word of a plan whose kernels check elements. Raises RequestError(BAD_ELEMENT) unless it is NONE_BAD."""
    if word != NONE_BAD:
        raise op.bad_element(word)


Ticket = Any  # what start() hands to finish(); private to each backend


class Backend(Protocol):
    """start() may return before the work is done, so that one batch's copies overlap another's kernels; finish()
    waits. Any failure raises LimbdError: DEVICE_FAULT is sticky, the process has to end after it."""

    def describe(self) -> BackendInfo: ...

    def traits(self) -> Traits: ...

    def register(self, memory: memoryview) -> None:
        """Host memory that batches will be read from and written to (pinned where that helps)."""
        ...

    def unregister(self, memory: memoryview) -> None:
        """Undo `register` of exactly this memory, while no batch is in flight."""
        ...

    def start(self, request: Request, plan: LaunchPlan, result: memoryview) -> Ticket: ...

    def finish(self, ticket: Ticket) -> Outcome: ...

    def run(self, request: Request, plan: LaunchPlan, result: memoryview) -> Outcome: ...

    def forget(self, key: str) -> None:
        """Give up the table (limbd.ops.base.Table) with this key, where one is kept."""
        ...

    def close(self) -> None: ...
