"""Timing a plan's launches: what a backend that can be measured offers, and the loop that takes the samples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Protocol

import numpy as np

from limbd.ops.base import LaunchPlan, Request, Unit
from limbd.ops.status import ServiceError, Status
from limbd.worker.device.base import Backend

# Fills outputs before each sample, so that bytes which no kernel wrote show.
POISON_BYTE = 0xA5


class Measurement(Protocol):
    """One plan over several input sets that lie where its kernels read them. Round k of launches works on set
    k mod sets. A context manager, whose end gives the memory back."""

    @property
    def held(self) -> bool:
        """Whether the device began every sample so far only when it was enqueued, so that no launch waited for the
        host. False where the host itself computes."""
        ...

    def __enter__(self) -> Measurement: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None: ...

    def sample(self, rounds: int = 1) -> float:
        """Poisons every output, then carries out `rounds` rounds: milliseconds of a round by the device's clock."""
        ...

    def collect(self) -> tuple[int, ...]:
        """Copies the results of the sets that the last sample reached to their host arrays; returns these sets."""
        ...


class Measurable(Backend, Protocol):
    """A backend that can be measured."""

    def measuring(self, requests: Sequence[Request], plan: LaunchPlan, results: Sequence[memoryview]) -> Measurement:
        """A measurement of a plan that serves every one of these requests, with a result's memory for each."""
        ...

    def image(self, unit: Unit) -> bytes:
        """The unit's binary as it is loaded; nothing where nothing is compiled."""
        ...


class HostMeasurement:
    """A measurement of what runs on the host: every round is a whole batch, of which `run` tells the milliseconds that
    count."""

    held = False

    def __init__(
        self, run: Callable[[Request, memoryview], float], requests: Sequence[Request], results: Sequence[memoryview]
    ) -> None:
        if not requests or len(results) != len(requests):
            raise ServiceError(Status.INTERNAL, "measure: one result for each request")
        self._run = run
        self._batches = list(zip(requests, results, strict=True))
        self._round = 0
        self._reached: tuple[int, ...] = ()

    def __enter__(self) -> HostMeasurement:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is held."""

    def sample(self, rounds: int = 1) -> float:
        sets = [(self._round + k) % len(self._batches) for k in range(rounds)]
        self._round += rounds
        self._reached = tuple(sorted(set(sets)))
        for chosen in self._reached:
            np.frombuffer(self._batches[chosen][1], np.uint8)[:] = POISON_BYTE
        return sum(self._run(*self._batches[chosen]) for chosen in sets) / rounds

    def collect(self) -> tuple[int, ...]:
        """The results are where they have to be already."""
        return self._reached


def take_samples(
    measurement: Measurement,
    *,
    repeats: int,
    warmup: int,
    back_to_back: int,
    after_each: Callable[[], object] | None = None,
) -> list[float]:
    """One raw sample a repeat, in milliseconds of a round, after `warmup` that do not count.

    after_each: called after every sample, those of the warm-up too.
    """
    samples = []
    for _ in range(warmup + repeats):
        samples.append(measurement.sample(back_to_back))
        if after_each:
            after_each()
    return samples[warmup:]
