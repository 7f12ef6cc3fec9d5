"""Measurements on a CUDA device: inputs in device memory, samples between two events."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any

from limbd.ops.base import Piece
from limbd.worker.device.cuda_calls import NOT_READY, CudaError
from limbd.worker.device.cuda_context import CudaContext
from limbd.worker.device.cuda_lane import HostArray, Lane, Prepared
from limbd.worker.device.cuda_modules import CudaModules

HOLD = ("bench/hold.cu", "hold")

# Cycles that the stream is held while a sample is enqueued: a launch takes about 5 us to enqueue from here, 10,000
# cycles at 2 GHz, and the events some more; one with a configuration of its own longer: 10,000 were too few for pairs of
# passes that overlap. The driver queues about 1000 launches.
HOLD_CYCLES = 60_000
HOLD_CYCLES_A_LAUNCH = 30_000
HELD_LAUNCHES = 500


class CudaMeasurement:
    """See limbd.worker.device.measurement. lanes: one an input set; all work is on the first one's stream.

    A sample: the outputs of its sets are poisoned; the round before is launched once more, uncounted; the stream is held
    while the rest is enqueued; then the launches between two events. The uncounted round wakes a device that idled while
    the host checked results, and leaves the caches as any round leaves them: with its own outputs to be written back, not
    the poison. So there should be two sets at least, else it writes what the sample has to write.
    """

    def __init__(
        self,
        context: CudaContext,
        modules: CudaModules,
        piece: Piece,
        lanes: Sequence[Lane],
        arrays: Sequence[Mapping[str, HostArray]],
        end: Callable[[], None],
    ) -> None:
        """arrays: the host memory of each set. end: gives back the lanes."""
        self._context = context
        self._modules = modules
        self._piece = piece
        self._stream = lanes[0].stream
        self._arrays = arrays
        self._end = end
        for lane, host in zip(lanes, arrays, strict=True):
            for copy in piece.copies_in:
                lane.copy_in(copy, host)
            lane.wait()
        self._lanes = [lane.on(self._stream) for lane in lanes]
        self._prepared = [
            [lane.prepare(launch, modules.function(launch)) for launch in piece.launches] for lane in self._lanes
        ]
        for lane in self._lanes:
            lane.poison(shared=True)
        self._hold: Any = modules.loose_function(*HOLD)
        self._begin, self._finish = context.time_events.take(), context.time_events.take()
        self._round = 0
        self._reached: tuple[int, ...] = ()
        self.held = True

    def __enter__(self) -> CudaMeasurement:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if not self._context.lost:
                self._lanes[0].wait()
                self._context.time_events.give((self._begin, self._finish))
        finally:
            self._end()

    def sample(self, rounds: int = 1) -> float:
        sets = [(self._round + k) % len(self._lanes) for k in range(rounds)]
        before = (self._round - 1) % len(self._lanes)
        self._round += rounds
        self._reached = tuple(sorted(set(sets)))
        for chosen in self._reached:
            self._lanes[chosen].poison(shared=True)
        self._enqueue(self._prepared[before])
        self._prepared_hold(rounds * len(self._piece.launches)).enqueue(self._context, self._stream)
        self._context.call("cuEventRecord", self._begin, self._stream)
        for chosen in sets:
            self._enqueue(self._prepared[chosen])
        self._context.call("cuEventRecord", self._finish, self._stream)
        self.held = self.held and self._still_held()
        self._context.call("cuEventSynchronize", self._finish)
        return float(self._context.call("cuEventElapsedTime", self._begin, self._finish)) / rounds

    def collect(self) -> tuple[int, ...]:
        for reached in self._reached:
            for copy in self._piece.copies_out:
                self._lanes[reached].copy_out(copy, self._arrays[reached])
        self._lanes[0].wait()
        return self._reached

    def _enqueue(self, launches: Sequence[Prepared]) -> None:
        for launch in launches:
            launch.enqueue(self._context, self._stream)

    def _prepared_hold(self, launches: int) -> Prepared:
        cycles = ctypes.c_uint64(HOLD_CYCLES + HOLD_CYCLES_A_LAUNCH * min(launches, HELD_LAUNCHES))
        return Prepared(self._hold, (1, 1, 1, 1, 1, 1, 0), cycles)

    def _still_held(self) -> bool:
        """Whether the device has not yet come to the sample's beginning."""
        try:
            self._context.call("cuEventQuery", self._begin)
        except CudaError as error:
            if error.code != NOT_READY:
                raise
            return True
        return False


def sample_copies(
    context: CudaContext, lanes: tuple[Lane, Lane], piece: Piece, arrays: Mapping[str, HostArray], *, repeats: int
) -> list[float]:
    """Milliseconds that the piece's copies take by themselves, both directions at once, by the host's clock: copies in
    on the first lane's stream, copies out on the second's, of that lane's poisoned memory."""
    into, out = lanes
    samples = []
    for _ in range(repeats):
        out.poison(shared=True)
        out.wait()
        begin = time.perf_counter()
        for copy in piece.copies_in:
            into.copy_in(copy, arrays)
        for copy in piece.copies_out:
            out.copy_out(copy, arrays)
        into.wait()
        out.wait()
        samples.append((time.perf_counter() - begin) * 1e3)
    return samples
