"""What a worker is told once, at its start: transports, backend, limits, folders."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30

BACKENDS = ("auto", "cuda", "cpu", "reference", "null")


@dataclass(frozen=True)
class Limits:
    """What one client, and all together, may have in the worker at a time. All are announced to clients.

    payload: bytes of one frame's payload. connections: open at a time.
    in_flight: bytes of payloads and results in all, from the first payload byte until the last result byte is sent.
    sure: bytes of these that a connection gets whatever the others hold (worker/budget.py).
    outstanding: requests of one connection that are not yet answered; beyond it the connection is not read, so that a
    client that pipelines refusals without reading them costs no memory without bound.
    """

    payload: int = GIB
    connections: int = 1024
    in_flight: int = 2 * GIB
    sure: int = 16 * MIB
    outstanding: int = 1024

    def __post_init__(self) -> None:
        if not 0 < self.sure <= self.in_flight:
            raise ValueError(f"the sure share of {self.sure} bytes is not in 1..{self.in_flight}")
        if min(self.payload, self.connections, self.outstanding) < 1:
            raise ValueError("every limit has to be at least 1")


@dataclass(frozen=True)
class Supervision:
    """How the children are watched; all in seconds.

    start: until a child must have said hello (a first cuda context on a busy machine takes several).
    heartbeat: between two pings; silent_beats of them unanswered in a row and the child is killed. Counted in beats,
    not by the clock, so that a machine that was suspended does not wake up to a massacre.
    back_off, back_off_limit: the pause after a child that died without having answered anything, doubled each time.
    start_attempts: starts that fail in a row before queued requests are answered NO_DEVICE.
    """

    start: float = 120.0
    heartbeat: float = 2.0
    silent_beats: int = 5
    back_off: float = 0.1
    back_off_limit: float = 10.0
    start_attempts: int = 3


@dataclass(frozen=True)
class KeepFailed:
    """Where failing frames are kept, and how many: the first ones stay, they tell most."""

    folder: Path
    files: int = 100
    nbytes: int = GIB


@dataclass(frozen=True)
class Config:
    """One worker.

    backend: one of BACKENDS; auto takes the first of cuda, cpu, reference that works.
    devices: device indices, one child process each. device_memory: bytes a child may use on its device, None: all.
    listen: addresses for run_serve, `tcp://HOST:PORT` or `unix:PATH`. cache: folder of compiled kernels, None: the
    user's cache folder. keep_memory: bytes of host memory kept for reuse between requests.
    drain_seconds: how long SIGTERM lets requests in flight finish. linger_seconds: how long input is drained after an
    error that ends the connection, so that a reset does not lose the error. transfer_threads: large transfers that
    have a thread of their own at a time; further ones go through the event loop. log_requests: one line a request on
    stderr; errors are written in any case. toys: serve the toy parameters too.
    """

    backend: str = "auto"
    devices: tuple[int, ...] = (0,)
    device_memory: int | None = None
    listen: tuple[str, ...] = ()
    limits: Limits = field(default_factory=Limits)
    supervision: Supervision = field(default_factory=Supervision)
    cache: Path | None = None
    keep_failed: KeepFailed | None = None
    keep_memory: int = 512 * MIB
    drain_seconds: float = 30.0
    linger_seconds: float = 1.0
    transfer_threads: int = 16
    log_requests: bool = True
    toys: bool = False

    def __post_init__(self) -> None:
        if self.backend not in BACKENDS:
            raise ValueError(f"unknown backend {self.backend!r}: one of {', '.join(BACKENDS)}")
        if not self.devices or min(self.devices) < 0 or len(set(self.devices)) != len(self.devices):
            raise ValueError(f"devices have to be different indices from 0 on, got {list(self.devices)}")
