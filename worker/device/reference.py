"""The reference backend: each op's living definition, run on the host by gmpy2. It ignores the plan."""

from __future__ import annotations

import platform
import time
from collections.abc import Sequence

import gmpy2

from limbd.ops.base import LaunchPlan, Request, Traits, Unit
from limbd.worker.device.base import BackendInfo, Outcome
from limbd.worker.device.host_memory import host_memory_bytes
from limbd.worker.device.measurement import HostMeasurement


class ReferenceBackend:
    """Slow and obvious: the oracle of every comparison, and what answers where there is neither GPU nor compiler.

    start() does all the work, so nothing overlaps; its kernel time is wall time, by a monotonic clock.
    """

    def describe(self) -> BackendInfo:
        version = f"gmpy2 {gmpy2.version()} ({gmpy2.mp_version()})"
        return BackendInfo(
            "reference", platform.processor() or platform.machine(), platform.machine(), host_memory_bytes(), version
        )

    def traits(self) -> Traits:
        return Traits("cpu", platform.machine(), 1, host_memory_bytes())

    def register(self, memory: memoryview) -> None:
        """Host memory is read in place."""

    def unregister(self, memory: memoryview) -> None:
        """Nothing was registered."""

    def start(self, request: Request, plan: LaunchPlan, result: memoryview) -> Outcome:
        begin = time.perf_counter()
        request.op.reference(request, result)
        return Outcome(kernel_ms=1e3 * (time.perf_counter() - begin))

    def finish(self, ticket: Outcome) -> Outcome:
        return ticket

    def run(self, request: Request, plan: LaunchPlan, result: memoryview) -> Outcome:
        return self.finish(self.start(request, plan, result))

    def measuring(
        self, requests: Sequence[Request], plan: LaunchPlan, results: Sequence[memoryview]
    ) -> HostMeasurement:
        """See limbd.worker.device.measurement; the time is wall time."""
        return HostMeasurement(lambda request, result: self.run(request, plan, result).kernel_ms, requests, results)

    def image(self, unit: Unit) -> bytes:
        """Nothing is compiled."""
        return b""

    def forget(self, key: str) -> None:
        """No tables are kept."""

    def close(self) -> None:
        """Nothing is held."""
