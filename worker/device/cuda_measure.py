"""Measurements on a CUDA device: inputs in device memory, samples between two events."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any

from limbd.ops.base import Launch, Piece
from limbd.ops.status import Status
from limbd.worker.device.cuda_calls import CudaError
from limbd.worker.device.cuda_context import CudaContext
from limbd.worker.device.cuda_lane import Bytes, Lane, PreparedLaunch

# Launches that are enqueued before a gate opens: more would fill the stream's queue, and the host would wait for ever.
ENQUEUED_AHEAD = 64

_GATE_BYTES = 64


class Gate:
    """Holds a stream until the host opens it: a word of pinned memory that the stream waits for.

    Without it the device begins a sample while Python is still enqueuing the rest, and short kernels are measured with
    the host's time between them. works: false where the driver has no such waiting; hold() then does nothing.
    """

    def __init__(self, context: CudaContext) -> None:
        self._call = context.call
        self._host = int(self._call("cuMemHostAlloc", _GATE_BYTES, self._call.api.CU_MEMHOSTALLOC_DEVICEMAP))
        self._device = self._call("cuMemHostGetDevicePointer", self._host, 0)
        self._word = ctypes.c_uint32.from_address(self._host)
        self._word.value = 0
        self._held = 0
        self.works = True

    def hold(self, stream: Any) -> None:
        """What is enqueued on the stream from here on waits for open()."""
        if not self.works:
            return
        self._held += 1
        at_least = self._call.api.CUstreamWaitValue_flags.CU_STREAM_WAIT_VALUE_GEQ
        try:
            self._call("cuStreamWaitValue32", stream, self._device, self._held, int(at_least))
        except CudaError as error:
            if error.status is Status.DEVICE_FAULT:
                raise
            self.works = False

    def open(self) -> None:
        """Lets pass what is held; may be called again."""
        self._word.value = self._held

    def close(self) -> None:
        """Nothing may be held any more."""
        self._call("cuMemFreeHost", self._host)


class CudaMeasurement:
    """See limbd.worker.device.measurement. lanes: one an input set, all on the first one's stream."""

    def __init__(
        self,
        context: CudaContext,
        piece: Piece,
        lanes: Sequence[Lane],
        arrays: Sequence[Mapping[str, Bytes]],
        function: Callable[[Launch], Any],
        end: Callable[[], None],
    ) -> None:
        """function: the loaded kernel of a launch. end: gives back the lanes."""
        self._context = context
        self._piece = piece
        self._stream = lanes[0].stream
        self._arrays = arrays
        self._end = end
        for lane, host in zip(lanes, arrays, strict=True):
            for copy in piece.copies_in:
                lane.copy_in(copy, host)
            lane.wait()
        self._lanes = [lane.on(self._stream) for lane in lanes]
        self._prepared: list[list[PreparedLaunch]] = [
            [lane.prepare(launch, function(launch)) for launch in piece.launches] for lane in self._lanes
        ]
        self._events = (context.take_event(), context.take_event())
        self._gate = Gate(context)
        self._round = 0
        self._reached: tuple[int, ...] = ()

    @property
    def gated(self) -> bool:
        return self._gate.works

    def __enter__(self) -> CudaMeasurement:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if not self._context.lost:
                self._lanes[0].wait()
                self._gate.close()
                self._context.give_events(self._events)
        finally:
            self._end()

    def sample(self, rounds: int = 1) -> float:
        # While the host checked results the device idled, and may have lowered its clock: the round before once more,
        # which does not count and leaves the caches as that round left them.
        self._enqueue([(self._round - 1) % len(self._lanes)])
        sets = [(self._round + k) % len(self._lanes) for k in range(rounds)]
        self._round += rounds
        self._reached = tuple(sorted(set(sets)))
        for lane in self._lanes:
            lane.poison()
        begin, end = self._events
        self._gate.hold(self._stream)
        try:
            self._lanes[0].record(begin)
            self._enqueue(sets)
            self._lanes[0].record(end)
        finally:
            self._gate.open()
        self._context.call("cuEventSynchronize", end)
        return float(self._context.call("cuEventElapsedTime", begin, end)) / rounds

    def collect(self) -> tuple[int, ...]:
        for reached in self._reached:
            for copy in self._piece.copies_out:
                self._lanes[reached].copy_out(copy, self._arrays[reached])
        self._lanes[0].wait()
        return self._reached

    def _enqueue(self, sets: Sequence[int]) -> None:
        launches = [launch for chosen in sets for launch in self._prepared[chosen]]
        for number, launch in enumerate(launches):
            if number == ENQUEUED_AHEAD:
                self._gate.open()
            launch.enqueue(self._stream)
