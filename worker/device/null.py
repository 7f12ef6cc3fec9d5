"""The null backend: zeros of the right length, for measuring and testing everything above it."""

from __future__ import annotations

import platform

import numpy as np

from limbd.ops.base import LaunchPlan, Request, Traits
from limbd.worker.device.base import BackendInfo, Outcome
from limbd.worker.device.host_memory import host_memory_bytes


class NullBackend:
    """Computes nothing. The answer is zeroed all the same: a reused slot must never show another request's bytes."""

    def describe(self) -> BackendInfo:
        return BackendInfo("null", "none", platform.machine(), host_memory_bytes(), "none")

    def traits(self) -> Traits:
        return Traits("cpu", platform.machine(), 1, host_memory_bytes())

    def register(self, memory: memoryview) -> None:
        """Host memory is written in place."""

    def unregister(self, memory: memoryview) -> None:
        """Nothing was registered."""

    def start(self, request: Request, plan: LaunchPlan, result: memoryview) -> Outcome:
        if len(result):
            np.frombuffer(result, dtype=np.uint8)[:] = 0
        return Outcome()

    def finish(self, ticket: Outcome) -> Outcome:
        return ticket

    def run(self, request: Request, plan: LaunchPlan, result: memoryview) -> Outcome:
        return self.finish(self.start(request, plan, result))

    def forget(self, key: str) -> None:
        """No tables are kept."""

    def close(self) -> None:
        """Nothing is held."""
