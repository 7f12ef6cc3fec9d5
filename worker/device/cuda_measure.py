"""Times launches on the device's own clock, for benchmarks."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Mapping, Sequence
from typing import Any

from limbd.ops.base import Piece
from limbd.worker.device.cuda_context import CudaContext
from limbd.worker.device.cuda_lane import HostArray, Lane, Prepared
from limbd.worker.device.cuda_modules import CudaModules

HOLD = ("bench/hold.cu", "hold")

# Cycles that the stream is held while a sample is enqueued: a launch takes about 5 us to enqueue from here, 10,000
# cycles at 2 GHz, and the events some more. The driver queues about 1000 launches.
HOLD_CYCLES = 60_000
HOLD_CYCLES_A_LAUNCH = 10_000
HELD_LAUNCHES = 500


def sample_launches(
    context: CudaContext,
    modules: CudaModules,
    lanes: Sequence[Lane],
    piece: Piece,
    *,
    repeats: int,
    warmup: int,
    rounds: int,
) -> list[float]:
    """Milliseconds of the piece's launches, one sample a repeat: `rounds` rounds between two events, divided by rounds.

    Round k works on lane k mod len(lanes), all on the first one's stream. Outputs are poisoned once, before the first
    launch: a write between samples would leave dirty cache lines for the sample to pay for.
    """
    stream = lanes[0].stream
    prepared = [[lane.prepare(launch, modules.function(launch)) for launch in piece.launches] for lane in lanes]
    hold = _prepare_hold(modules, rounds * len(piece.launches))
    for lane in lanes:
        lane.on(stream).poison()
    begin, end = context.take_event(), context.take_event()
    samples = []
    for sample in range(warmup + repeats):
        order = [prepared[k % len(lanes)] for k in range(sample * rounds, (sample + 1) * rounds)]
        hold.enqueue(context, stream)
        context.call("cuEventRecord", begin, stream)
        for launches in order:
            for launch in launches:
                launch.enqueue(context, stream)
        context.call("cuEventRecord", end, stream)
        context.call("cuEventSynchronize", end)
        samples.append(context.call("cuEventElapsedTime", begin, end) / rounds)
    context.give_events((begin, end))
    return samples[warmup:]


def sample_copies(
    context: CudaContext, lanes: tuple[Lane, Lane], piece: Piece, arrays: Mapping[str, HostArray], *, repeats: int
) -> list[float]:
    """Milliseconds that the piece's copies take by themselves, both directions at once, by the host's clock: copies in
    on the first lane's stream, copies out on the second's, of that lane's poisoned memory."""
    into, out = lanes
    samples = []
    for _ in range(repeats):
        out.poison()
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


def _prepare_hold(modules: CudaModules, launches: int) -> Prepared:
    cycles = ctypes.c_uint64(HOLD_CYCLES + HOLD_CYCLES_A_LAUNCH * min(launches, HELD_LAUNCHES))
    function: Any = modules.loose_function(*HOLD)
    return Prepared(function, (1, 1, 1, 1, 1, 1, 0), cycles)
