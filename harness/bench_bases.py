"""Multi-scalar multiplications with points that stay on the device, as a caller in the same process makes them: whole
calls of what limbd.local's Worker.bases gives, with scalars in pinned memory and the answer on the host.

A sample is the span from before the first copy of scalars to after the answer's copy, between two events of the device;
where a backend has none, by the host's clock around the call. Bases are made, and multiplied by windows, outside of it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from types import TracebackType

import numpy as np

from limbd.harness import bench_multiplications
from limbd.harness.bench_multiplications import SKEW, WITNESS
from limbd.harness.inputs import UNIFORM
from limbd.harness.multiplications import Multiples
from limbd.harness.report import Record
from limbd.local import Worker
from limbd.ops.base import LaunchPlan, Limbs
from limbd.ops.msm import VECTORS_SHIFT
from limbd.ops.msm_tuning import MsmRow
from limbd.ops.params.curves import Curve, GroupName
from limbd.ops.params.layout import PLAIN_LIMBS
from limbd.ops.reference.msm import encode_points
from limbd.worker.device.base import Outcome
from limbd.worker.device.measurement import Measurable

PLAIN, PRECOMPUTED = "plain", "precomputed"
KINDS = (PLAIN, PRECOMPUTED)

# Sets of scalars that calls take by turns, so that an answer which was left from the call before is a wrong one.
SETS = 2

# Different bases; more are these again. Two equal ones begin a sum once in so many sums, which takes its slow path.
DISTINCT = 1 << 16

EVENTS, HOST_CLOCK = "events of the device", "the host's clock around the call"

GROUPS: tuple[tuple[str, GroupName], ...] = (
    ("bn254", "g1"),
    ("bn254", "g2"),
    ("bls12_381", "g1"),
    ("bls12_381", "g2"),
)
LOG_N, LONG_LOG_N = range(10, 23, 2), 24

_SKEWED_LOG_N = (16, 18, 20)


def measured() -> Iterator[tuple[str, str, int, int, str, str]]:
    """(op, curve, n, param but for the curve, inputs, bases) of the cases that speed claims rest on, group by group."""
    for curve, group in GROUPS:
        for k in LOG_N:
            for kind in KINDS:
                yield f"msm-{group}", curve, 1 << k, 0, UNIFORM, kind
    for k in _SKEWED_LOG_N:
        for inputs in (SKEW, WITNESS):
            yield "msm-g1", "bn254", 1 << k, 0, inputs, PLAIN
    for kind in KINDS:
        yield "msm-g1", "bn254", 16 << 12, (16 - 1) << VECTORS_SHIFT, UNIFORM, kind


def long() -> Iterator[tuple[str, str, int, int, str, str]]:
    """The same of those that take gigabytes on the host, and seconds to make."""
    for curve, group in GROUPS:
        if group == "g1":
            for kind in KINDS:
                yield f"msm-{group}", curve, 1 << LONG_LOG_N, 0, UNIFORM, kind


@dataclass(frozen=True)
class Sample:
    """One call. span_ms: see above, 0 where the backend has no events. wall_ms: the whole call by the host's clock, with what
    Python checks and plans. right: the answer is the sum that the bases' logarithms give."""

    wall_ms: float
    right: bool
    outcome: Outcome

    @property
    def span_ms(self) -> float:
        return self.outcome.span_ms or self.wall_ms

    @property
    def clock(self) -> str:
        return EVENTS if self.outcome.span_ms else HOST_CLOCK


class Kept:
    """Bases on a device and scalars to multiply them by; a context manager, whose end gives the memory back.

    plan, row: of each call. checked_ms: by the host's clock what Worker.bases takes, which copies and checks the points and
    compiles the kernels of that.
    """

    def __init__(
        self,
        backend: Measurable,
        curve: Curve,
        group: GroupName,
        count: int,
        vectors: int,
        inputs: str,
        kind: str,
    ) -> None:
        """count: points, and scalars of each of the vectors. inputs: of bench_multiplications.KINDS, or uniform. kind: of KINDS."""
        self._backend, self._calls = backend, 0
        known, rows = chain(curve, group, min(count, DISTINCT))
        self._scalars = np.empty((SETS, vectors, count, PLAIN_LIMBS), "<u4")
        for seed, scalars in enumerate(self._scalars):
            drawn = bench_multiplications.scalars(curve, vectors * count, inputs, seed)
            scalars[:] = drawn.reshape(scalars.shape)
        self._right = [_sums(scalars, known) for scalars in self._scalars]
        begin = time.perf_counter()
        points = np.resize(rows, (count, rows.shape[1]))
        self._bases = Worker(backend).bases(points, curve.name, group, precompute=kind == PRECOMPUTED)
        self.checked_ms = 1e3 * (time.perf_counter() - begin)
        self.plan: LaunchPlan = self._bases.plan(vectors)
        self.row: MsmRow = self._bases.row(count)

    def __enter__(self) -> Kept:
        self._backend.register(self._scalars.data.cast("B"))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._backend.unregister(self._scalars.data.cast("B"))
        self._bases.close()

    def make(self) -> list[Sample]:
        """Two calls that have to make the bases first; the first of them compiles the kernels too."""
        first = self.sample()
        self._bases.close()
        return [first, self.sample()]

    def sample(self) -> Sample:
        chosen = self._calls % SETS
        self._calls += 1
        begin = time.perf_counter()
        answer = self._bases.msm(self._scalars[chosen])
        wall = 1e3 * (time.perf_counter() - begin)
        assert self._bases.last is not None
        return Sample(wall, np.array_equal(answer, self._right[chosen]), self._bases.last)

    def memory(self) -> Record:
        """Device memory in bytes: of what is copied, of scratch, of the bases, and of the bases while they are made."""
        copied = sum(buffer.nbytes for buffer in self.plan.buffers if buffer.role in ("in", "out"))
        return {
            "copied": self.plan.lanes * copied,
            "scratch": self.plan.device_bytes() - self.plan.lanes * copied,
            "bases": sum(table.nbytes for table in self.plan.tables),
            "bases_making": sum(table.building_bytes() for table in self.plan.tables),
        }


def run(kept: Kept, backend: Measurable, samples: int, warmup: int) -> tuple[list[Sample], Record] | None:
    """Samples, and what else is told of them; None where an answer was wrong."""
    peak: Callable[..., int] | None = getattr(backend, "peak_memory", None)
    taken = kept.make()
    made = taken[-1]
    if peak:
        peak(reset=True)
    taken += (kept.sample() for _ in range(warmup + samples))
    if not all(each.right for each in taken):
        return None
    counted = taken[2 + warmup :]
    told: Record = {
        "span": made.clock,
        "kernel_ms": [each.outcome.kernel_ms for each in counted],
        "h2d_ms": [each.outcome.h2d_ms for each in counted],
        "checked_ms": kept.checked_ms,
        "making_ms": made.wall_ms,
        "memory": {**kept.memory(), **({"peak": peak()} if peak else {})},
    }
    return counted, told


@lru_cache(maxsize=1)
def chain(curve: Curve, group: GroupName, count: int) -> tuple[Multiples, Limbs]:
    """Points whose logarithms are known, and as rows of the wire."""
    known = Multiples(curve, group, "kept", count)
    return known, np.frombuffer(encode_points(known.points, curve, known.group), "<u4").reshape(count, -1)


def _sums(vectors: Limbs, known: Multiples) -> Limbs:
    """(vectors, limbs): what is right."""
    points = [known.point(bench_multiplications.logarithm(vector, known)) for vector in vectors]
    return np.frombuffer(encode_points(points, known.curve, known.group), "<u4").reshape(len(points), -1)
