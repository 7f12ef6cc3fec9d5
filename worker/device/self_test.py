"""A known-answer test of each compile unit before its first job in a process: a wrong kernel must not answer."""

from __future__ import annotations

from itertools import cycle, islice

import numpy as np

from limbd.ops.base import PROOF_ELEMENTS, Call, LaunchPlan, Request, Unit
from limbd.ops.status import ServiceError, Status
from limbd.worker.device.base import Backend

WORD = 2**32


class SelfTest:
    """Remembers which units of a backend have given right answers."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._passed: set[Unit] = set()

    def check(self, request: Request, plan: LaunchPlan) -> None:
        """Run a few edge elements through the plan's op, modulus and param, if the plan has a unit not yet proven.

        Raises ServiceError(SELF_CHECK_FAILED) if the backend and the reference differ. A unit that the op's proof_plan
        does not run is taken on trust once that has passed.
        """
        units = {launch.kernel.unit for launch in plan.launches()}
        if units <= self._passed:
            return
        small = request.op.proof_request(request, plan) or edge_request(request, request.op.proof_elements(plan))
        small_plan = request.op.proof_plan(small, plan, self._backend.traits())
        answer, expected = (bytearray(small.op.result_bytes(_call(small))) for _ in range(2))
        self._backend.run(small, small_plan, memoryview(answer))
        request.op.reference(small, memoryview(expected))
        if answer != expected:
            width = small.element_bytes
            at = next(i for i in range(0, len(expected), width) if answer[i : i + width] != expected[i : i + width])
            raise ServiceError(
                Status.SELF_CHECK_FAILED,
                f"{request.op.name} modulo {small.modulus:#x}: element {at // width} of the self-test is "
                f"{answer[at : at + width][::-1].hex()}, not {expected[at : at + width][::-1].hex()}",
                hint="kernel, compiler or device is at fault; the reference backend still answers",
            )
        self._passed |= units


def edge_request(request: Request, n: int = PROOF_ELEMENTS) -> Request:
    """The request's op on n elements from 0, 1, m - 1, m, m + 1, the largest element and two with bits throughout, over
    and over: all operands equal in the first eight of sixteen, neighbours of each other in the others."""
    width = request.element_bytes
    top = WORD ** (width // 4) - 1
    m = request.modulus
    edges = [0, 1, m - 1, min(m, top), min(m + 1, top), top, top // 3, 1 << (8 * width - 1)]
    payload = bytearray(m.to_bytes(width, "little") if request.field is None else b"")
    for turn in range(len(request.arrays)):
        for edge in islice(cycle((*edges, *edges[turn:], *edges[:turn])), n):
            payload += edge.to_bytes(width, "little")
    memory = np.frombuffer(payload, dtype=np.uint8).copy()
    return request.op.decode(Call(n, request.param, request.field), memoryview(memory.data))


def _call(request: Request) -> Call:
    return Call(request.n, request.param, request.field)
