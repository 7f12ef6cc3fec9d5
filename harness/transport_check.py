"""What the worker's own transport costs, on the null backend: `python -m limbd.harness.transport_check`.

Prints three figures, each with its limit where there is one: the round trip of a 100-element mod-mul, the parent's own
processor time for a 64 MB frame, and the memory above idle while it is in the worker. Each worker is a process; the
client is this one.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from limbd.harness.live import RawClient, Serving, children, element, memory_bytes, serving
from limbd.worker.wire import VERSION_1, request_header

MODULUS = 2**255 - 19
SMALL_N = 100
LARGE_N = 1 << 20  # mod-mul: 64 MiB of payload, 32 MiB of results
MILLISECONDS = 1e3


@dataclass(frozen=True)
class Figure:
    """One measurement. limit: what it may be at most, None where it only informs."""

    name: str
    value: float
    unit: str
    limit: float | None = None

    def line(self) -> str:
        bound = "" if self.limit is None else f" (at most {self.limit:g})"
        return f"{self.name}: {self.value:.3f} {self.unit}{bound}"


def payload(n: int) -> bytes:
    return element(MODULUS) + bytes(64 * n)


def round_trip(address: str, repetitions: int = 2000) -> Figure:
    """Median of a 100-element mod-mul, after warm-up."""
    request, answer = request_header(1, SMALL_N, 0) + payload(SMALL_N), VERSION_1.response.size + 32 * SMALL_N
    samples = []
    with RawClient(address) as client:
        client.sock.settimeout(None)
        for _ in range(repetitions + repetitions // 10):
            begin = time.perf_counter()
            client.send(request)
            client.exactly(answer)
            samples.append(time.perf_counter() - begin)
    median = statistics.median(samples[repetitions // 10 :])
    return Figure(f"round trip, {address.split(':')[0]}", median * MILLISECONDS, "ms", 0.3)


def own_seconds(pid: int) -> float:
    """Processor time of a worker that is not the kernel's copying: all of its event loop's thread (kernel included, and
    interrupts that hit it, such as the timers by which TCP paces either end: so this is an upper bound), and user mode
    of its other threads (told in ticks of 10 ms, so that it takes many frames to see it)."""
    loop = Path(f"/proc/{pid}/task/{pid}/schedstat").read_text()
    others = 0.0
    for task in Path(f"/proc/{pid}/task").iterdir():
        if int(task.name) != pid:
            ticks = (task / "stat").read_text().rsplit(")", 1)[1].split()[11]
            others += int(ticks) / os.sysconf("SC_CLK_TCK")
    return int(loop.split()[0]) / 1e9 + others


def large_frames(server: Serving, address: str, repetitions: int) -> list[Figure]:
    """The parent's own time a 64 MB frame, and the peak of memory above idle as a multiple of payload + result."""
    body = payload(LARGE_N)
    head = request_header(1, LARGE_N, 0)
    # The client reads into memory that it has: fresh pages and copies of its own would empty the worker's caches.
    answer = memoryview(bytearray(VERSION_1.response.size + 32 * LARGE_N))
    parent = server.process.pid
    everyone = [parent, *children(parent)]
    idle = sum(memory_bytes(pid, "Pss") for pid in everyone)
    with RawClient(address) as client:
        client.sock.settimeout(None)
        samples = []
        before = 0.0
        for i in range(repetitions + 1):
            if i == 1:  # the first one reserves the memory
                before = own_seconds(parent)
            begin = time.perf_counter()
            client.send(head)
            client.send(body)
            client.read_into(answer)
            samples.append(time.perf_counter() - begin)
        own = (own_seconds(parent) - before) / repetitions
        peak = sum(memory_bytes(pid, "Pss") for pid in everyone)
    kind = address.split(":")[0]
    whole = len(body) + 32 * LARGE_N
    return [
        Figure(f"64 MB frame, {kind}: round trip", statistics.median(samples) * MILLISECONDS, "ms"),
        Figure(f"64 MB frame, {kind}: parent's own time", own * MILLISECONDS, "ms", 1.0),
        Figure(f"64 MB frame, {kind}: memory above idle / (payload + result)", (peak - idle) / whole, "", 1.2),
    ]


def measure(repetitions: int = 2000, frames: int = 100) -> list[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        figures = []
        for listen in ("tcp://127.0.0.1:0", f"unix:{folder}/s"):
            with serving("--quiet", backend="null", listen=(listen,)) as server:
                figures.append(round_trip(server.addresses[0], repetitions))
                figures += large_frames(server, server.addresses[0], frames)
        return figures


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--repetitions", type=int, default=2000, help="small round trips")
    parser.add_argument("--frames", type=int, default=100, help="large frames")
    options = parser.parse_args()
    figures = measure(options.repetitions, options.frames)
    for figure in figures:
        print(figure.line())
    return int(any(figure.limit is not None and figure.value > figure.limit for figure in figures))


if __name__ == "__main__":
    sys.exit(main())
