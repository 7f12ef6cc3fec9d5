"""The CUDA backend: carries out plans on one device.

The pieces of a plan are enqueued in turn on its lanes (cuda_lane.py), so that one piece's copies overlap another's
kernels, and each batch has streams of its own, so that batches overlap too. All memory comes from one pool, and batches
in flight never need more than the budget together.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from limbd.kernels.source import Sources
from limbd.ops.base import FIRST_BAD_BYTES, Launch, LaunchPlan, Op, Piece, Request, Table, Traits, Unit
from limbd.ops.status import LimbdError, ServiceError, Status
from limbd.worker.device import driver
from limbd.worker.device.base import BackendInfo, Outcome, refuse_bad
from limbd.worker.device.cache import Cache
from limbd.worker.device.cuda_calls import OUT_OF_MEMORY, CudaError
from limbd.worker.device.cuda_context import CudaContext
from limbd.worker.device.cuda_lane import HostArray, Lane, Marks, create_lanes, host_arrays, prepare
from limbd.worker.device.cuda_measure import CudaMeasurement, sample_copies
from limbd.worker.device.cuda_modules import CudaModules
from limbd.worker.device.cuda_tables import CudaTables
from limbd.worker.device.measurement import take_samples
from limbd.worker.device.nvrtc import Nvrtc, choose_target

# Plans are told a little less than the budget: alignment and the pool's rounding come on top of their buffers.
PLAN_SHARE = (63, 64)

# Of the device's memory, when no budget is given: the context, the modules and other processes need some.
DEFAULT_SHARE = (9, 10)

# Pieces of one batch that may be enqueued and not yet done: bounds the events that a batch holds.
# It is above the lanes of any plan: a lane's piece is harvested only when the lane has had another.
PIECES_IN_FLIGHT = 64

POISON_VARIABLE = "LIMBD_POISON"


@dataclass(eq=False)
class CudaTicket:
    """A batch in flight. lock: held by whoever enqueues or settles it. arrays: the host memory that its copies use.
    marks: of the pieces that are enqueued, oldest first; complete: how many of them are in whole.
    began, brought, returning, ended: before the first copy in and after the last, before the first copy out and after the
    last. tables: what it reads beside its buffers. word: where the plan's word of the first bad element is copied to,
    which op explains."""

    op: Op
    nbytes: int = 0
    lanes: list[Lane] = field(default_factory=list)
    marks: list[Marks] = field(default_factory=list)
    complete: int = 0
    arrays: dict[str, HostArray] = field(default_factory=dict)
    began: Any = None
    brought: Any = None
    returning: Any = None
    ended: Any = None
    tables: tuple[Table, ...] = ()
    word: int = 0
    kernel_ms: float = 0.0
    h2d_ms: float = 0.0
    d2h_ms: float = 0.0
    span_ms: float = 0.0
    launches: int = 0
    settled: bool = False
    error: LimbdError | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)


class CudaBackend:
    """One device. Methods may be called from any thread."""

    def __init__(
        self,
        index: int = 0,
        *,
        memory: int | None = None,
        cache: Cache | None = None,
        poison: bool | None = None,
        verify: bool = False,
        separate: bool = False,
        sources: Sources | None = None,
    ) -> None:
        """memory: the budget in bytes. poison: fill outputs and scratch before each piece, and what lanes share before the first (default:
        $LIMBD_POISON is 1). verify: compile the kernels' range checks in. separate: an allocation for each buffer (for memory checkers). Kernels are compiled and loaded at their first use.

        Raises ServiceError(NO_DEVICE) with the reason, or what the driver says of the device.
        """
        self._device = _device(index)
        self._nvrtc = Nvrtc()
        target = choose_target(
            self._device.capability, self._nvrtc.supported, self._nvrtc.version, driver.probe().version
        )
        self.cache = cache or Cache()
        self._budget = memory or self._device.memory * DEFAULT_SHARE[0] // DEFAULT_SHARE[1]
        self._poison = os.environ.get(POISON_VARIABLE) == "1" if poison is None else poison
        self._separate = separate
        self._context = CudaContext(index, self._budget, target.arch)
        self._modules = CudaModules(self._context, self._nvrtc, target, self.cache, sources or Sources(), verify=verify)
        self._tables = CudaTables(self._context, self._launch_alone)
        self._admission = threading.Lock()  # held while memory is found for a batch; guards the tables
        self._state = threading.Lock()  # guards the two below
        self._in_flight: list[CudaTicket] = []
        self._in_use = 0

    def describe(self) -> BackendInfo:
        device = self._device
        return BackendInfo("cuda", device.name, device.arch, device.memory, self._nvrtc.full_version, device.index)

    def traits(self) -> Traits:
        memory = self._budget * PLAN_SHARE[0] // PLAN_SHARE[1]
        return Traits("cuda", self._device.arch, self._device.multiprocessors, memory)

    def register(self, memory: memoryview) -> None:
        """Pins host memory, so that copies from and to it run at full speed and beside kernels."""
        self._context.bind()
        self._context.register(memory)

    def unregister(self, memory: memoryview) -> None:
        """Unpins what `register` has pinned; no batch may be in flight."""
        self._context.bind()
        self._context.unregister(memory)

    def prepare(self, units: Iterable[Unit]) -> None:
        """Compiles and loads units, as many at a time as there are processors, so that no batch waits for them."""
        self._modules.prepare(units, len(os.sched_getaffinity(0)))

    def run(self, request: Request, plan: LaunchPlan, result: memoryview) -> Outcome:
        return self.finish(self.start(request, plan, result))

    def start(self, request: Request, plan: LaunchPlan, result: memoryview) -> CudaTicket:
        """Enqueues the batch. The request's arrays and the result belong to the backend until finish() returns."""
        ticket = CudaTicket(request.op, launches=sum(len(piece.launches) for piece in plan.pieces))
        if not plan.pieces:
            ticket.settled = True
            return ticket
        self._context.bind()
        self._modules.load(plan)
        ticket.arrays = host_arrays(request, result)
        with ticket.lock:
            self._admit(ticket, plan, self._budget)
            try:
                self._enqueue(ticket, plan)
            except Exception as error:
                # What is already enqueued reads and writes the caller's memory: it has to end before the caller knows.
                ticket.error = _as_limbd(error)
                self._settle_locked(ticket)
                raise ticket.error from error
        return ticket

    def finish(self, ticket: CudaTicket) -> Outcome:
        if not ticket.settled:
            self._context.bind()
            self._settle(ticket)
        if ticket.error is not None:
            raise ticket.error
        return Outcome(ticket.kernel_ms, ticket.h2d_ms, ticket.d2h_ms, ticket.launches, span_ms=ticket.span_ms)

    def peak_memory(self, *, reset: bool = False) -> int:
        """The most device memory, in bytes, that batches held at once since the last reset."""
        self._context.bind()
        return self._context.peak_memory(reset=reset)

    def forget(self, key: str) -> None:
        """Gives up the table with this key, after the batches that read it."""
        self._context.bind()
        with self._admission:
            while not self._tables.forget(key):
                self._settle(self._flying()[0])

    def close(self) -> None:
        """Waits for what is in flight and gives everything back. A lost context is left to the end of the process."""
        self.cache.close()
        if self._context.lost:
            return
        with suppress(LimbdError):
            self._context.bind()
            for ticket in self._flying():
                self._settle(ticket)
            self._tables.close()
            self._modules.close()
            self._context.close()

    # --- benchmarks ---

    def measuring(
        self, requests: Sequence[Request], plan: LaunchPlan, results: Sequence[memoryview]
    ) -> CudaMeasurement:
        """A measurement of a one-piece plan; inputs are copied to the device once. See limbd.worker.device.measurement."""
        if len(plan.pieces) != 1 or not requests or len(results) != len(requests):
            raise ServiceError(Status.INTERNAL, "measure: one piece, and one result for each request")
        self._context.bind()
        self._modules.load(plan)
        alone = replace(plan, lanes=1)
        tickets = [CudaTicket(q.op, arrays=host_arrays(q, r)) for q, r in zip(requests, results, strict=True)]
        admitted: list[CudaTicket] = []

        def end() -> None:
            for ticket in admitted:
                self._settle(ticket)

        try:
            for ticket in tickets:
                self._admit(ticket, alone, budget=None)
                admitted.append(ticket)
            lanes, arrays = [t.lanes[0] for t in tickets], [t.arrays for t in tickets]
            return CudaMeasurement(self._context, self._modules, plan.pieces[0], lanes, arrays, end)
        except BaseException:
            end()
            raise

    def measure(
        self,
        requests: Sequence[Request],
        plan: LaunchPlan,
        results: Sequence[memoryview],
        *,
        repeats: int,
        warmup: int = 3,
        back_to_back: int = 1,
    ) -> list[float]:
        """Raw samples in milliseconds of a round, `back_to_back` rounds in a sample; results are those of the last one."""
        with self.measuring(requests, plan, results) as measurement:
            samples = take_samples(measurement, repeats=repeats, warmup=warmup, back_to_back=back_to_back)
            measurement.collect()
        return samples

    def image(self, unit: Unit) -> bytes:
        """The unit's cubin (PTX where the driver compiles it), compiled or from the cache."""
        return self._modules.image(unit)

    def usage(self, launch: Launch) -> dict[str, int]:
        """What the loaded kernel takes: registers of a thread, local memory (spills) in bytes of a thread, static shared
        memory in bytes of a block."""
        self._context.bind()
        function, names = self._modules.function(launch), self._context.call.api.CUfunction_attribute
        attributes = {
            "registers": names.CU_FUNC_ATTRIBUTE_NUM_REGS,
            "local_bytes": names.CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES,
            "static_shared": names.CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES,
        }
        return {
            key: int(self._context.call("cuFuncGetAttribute", value, function)) for key, value in attributes.items()
        }

    def measure_copies(self, request: Request, plan: LaunchPlan, result: memoryview, *, repeats: int) -> list[float]:
        """Milliseconds of a one-piece plan's copies alone, in and out at the same time. `result` holds poison then."""
        self._context.bind()
        ticket = CudaTicket(request.op, arrays=host_arrays(request, result))
        self._admit(ticket, replace(plan, lanes=2), budget=None)
        try:
            into, out = ticket.lanes
            return sample_copies(self._context, (into, out), plan.pieces[0], ticket.arrays, repeats=repeats)
        finally:
            self._settle(ticket)

    # --- admission ---

    def _admit(self, ticket: CudaTicket, plan: LaunchPlan, budget: int | None) -> None:
        """Waits until the plan fits the budget beside what is in flight, and gives the ticket its lanes.

        A plan always fits alone. Only memory is found under the admission lock: a batch that is being enqueued never
        waits for another, so that waiting for it here ends.
        """
        needed = plan.device_bytes()
        with self._admission:
            while (
                budget is not None
                and self._in_use + self._tables.nbytes + needed + self._tables.missing(plan.tables) > budget
            ):
                if not self._make_room(plan):
                    break
            ticket.lanes = self._create_lanes(plan, ticket.arrays)
            ticket.tables = plan.tables
            with self._state:
                ticket.nbytes = needed
                self._in_use += needed
                self._in_flight.append(ticket)

    def _make_room(self, plan: LaunchPlan) -> bool:
        """Ends a batch in flight, or gives up a table that the plan does not read. False where there is neither."""
        if self._tables.drop(plan.tables):
            return True
        flying = self._flying()
        if flying:
            self._settle(flying[0])
        return bool(flying)

    def _create_lanes(self, plan: LaunchPlan, arrays: Mapping[str, HostArray]) -> list[Lane]:
        """Lanes for a plan; where the device is full, once more after everything else has ended and the pool is empty.

        Raises ServiceError(OUT_OF_DEVICE_MEMORY).
        """
        try:
            return self._try_lanes(plan, arrays)
        except CudaError as error:
            if error.code != OUT_OF_MEMORY:
                raise
        while self._make_room(plan):
            pass
        self._context.trim()
        try:
            return self._try_lanes(plan, arrays)
        except CudaError as error:
            if error.code != OUT_OF_MEMORY:
                raise
            message = f"the device does not have {plan.device_bytes()} bytes free"
            raise ServiceError(Status.OUT_OF_DEVICE_MEMORY, message, hint="lower --device-memory") from error

    def _try_lanes(self, plan: LaunchPlan, arrays: Mapping[str, HostArray]) -> list[Lane]:
        lanes = create_lanes(self._context, plan, separate=self._separate)
        try:
            tables = self._tables.take(plan.tables, arrays, lanes[0].stream)
        except BaseException:
            for lane in lanes:
                lane.wait()
                lane.release()
            raise
        return [lane.with_tables(tables) for lane in lanes]

    def _launch_alone(self, launch: Launch, addresses: dict[str, int], stream: Any) -> None:
        """A launch that belongs to no lane."""
        prepare(self._context, launch, self._modules.function(launch), addresses).enqueue(self._context, stream)

    def _flying(self) -> tuple[CudaTicket, ...]:
        with self._state:
            return tuple(self._in_flight)

    # --- a batch ---

    def _enqueue(self, ticket: CudaTicket, plan: LaunchPlan) -> None:
        first, pieces = ticket.lanes[0], plan.pieces
        ticket.began = self._mark(first.into)
        self._bring(ticket, plan, 0)
        for i, piece in enumerate(pieces):
            marks = ticket.marks[-1]
            # Where copies have streams of their own, the next piece's begin before the host has launched this one's kernels.
            if first.apart and i + 1 < len(pieces):
                self._bring(ticket, plan, i + 1)
            self._compute(ticket, piece, ticket.lanes[i % plan.lanes], marks)
            if not first.apart and i + 1 < len(pieces):
                self._bring(ticket, plan, i + 1)
        if plan.first_bad is not None:
            ticket.word = self._context.words.take()
            self._context.call(
                "cuMemcpyDtoHAsync", ticket.word, first.addresses[plan.first_bad], FIRST_BAD_BYTES, first.out
            )
        ticket.ended = self._mark(first.out)

    def _mark(self, stream: Any) -> Any:
        event = self._context.time_events.take()
        self._context.call("cuEventRecord", event, stream)
        return event

    def _bring(self, ticket: CudaTicket, plan: LaunchPlan, i: int) -> None:
        """Copies in of piece i; all pieces up to the one that had its lane before are enqueued in whole."""
        if len(ticket.marks) == PIECES_IN_FLIGHT:
            self._harvest(ticket)
        lane = ticket.lanes[i % plan.lanes]
        # The piece that had this lane before is in flight still, or done and its marks harvested.
        after = ticket.marks[-plan.lanes].done if len(ticket.marks) >= plan.lanes else None
        if self._poison:
            self._poison_lane(lane, after, shared=i == 0)
        marks = self._take_marks(apart=lane.apart)
        ticket.marks.append(marks)
        lane.bring(plan.pieces[i], ticket.arrays, marks, after)
        if i == len(plan.pieces) - 1:
            ticket.brought = self._mark(lane.into) if lane.apart else marks.copied

    def _take_marks(self, *, apart: bool) -> Marks:
        time, order = self._context.time_events.take, self._context.order_events.take
        if apart:
            return Marks(order(), time(), time(), order())
        copied = time()
        return Marks(copied, copied, time(), None)

    def _compute(self, ticket: CudaTicket, piece: Piece, lane: Lane, marks: Marks) -> None:
        """Kernels and copies out of a piece that has been brought. marks: the piece's."""
        # The device begins with the first while the next is prepared.
        prepared = (lane.prepare(launch, self._modules.function(launch)) for launch in piece.launches)
        lane.compute(piece, prepared, ticket.arrays, marks)
        ticket.complete += 1
        ticket.returning = ticket.returning or marks.computed

    def _poison_lane(self, lane: Lane, after: Any | None, *, shared: bool) -> None:
        if after is not None:
            self._context.call("cuStreamWaitEvent", lane.into, after, 0)
        lane.poison(shared=shared)

    def _settle(self, ticket: CudaTicket) -> None:
        with ticket.lock:
            if not ticket.settled:
                self._settle_locked(ticket)

    def _settle_locked(self, ticket: CudaTicket) -> None:
        """Waits for the batch, reads its times, gives back what it held. Its error is kept for finish()."""
        try:
            while ticket.complete:
                self._harvest(ticket)
            # A batch that failed on the way holds pieces in part: their copies end with the streams.
            for lane in ticket.lanes:
                lane.wait()
            self._read_times(ticket)
            for lane in ticket.lanes:
                lane.release()
            self._read_first_bad(ticket)
        except LimbdError as error:
            ticket.error = ticket.error or error
        self._tables.give(ticket.tables)
        with self._state:
            self._in_flight.remove(ticket)
            self._in_use -= ticket.nbytes
        ticket.lanes, ticket.marks, ticket.complete, ticket.arrays, ticket.tables = [], [], 0, {}, ()
        ticket.settled = True

    def _harvest(self, ticket: CudaTicket) -> None:
        """Waits for the kernels of the ticket's oldest piece, which is enqueued in whole, and adds their time."""
        marks = ticket.marks.pop(0)
        ticket.complete -= 1
        self._context.call("cuEventSynchronize", marks.computed)
        ticket.kernel_ms += self._context.call("cuEventElapsedTime", marks.started, marks.computed)
        kept = (ticket.brought, ticket.returning)
        self._context.time_events.give(
            event for event in (marks.started, marks.computed) if not any(event is other for other in kept)
        )
        if marks.done is not None:
            self._context.order_events.give((marks.copied, marks.done))

    def _read_first_bad(self, ticket: CudaTicket) -> None:
        """Raises RequestError(BAD_ELEMENT) where the batch that has ended found a bad element."""
        if ticket.word:
            refuse_bad(ticket.op, self._context.words.give(ticket.word))

    def _read_times(self, ticket: CudaTicket) -> None:
        """The times of a batch that has ended. One that failed, or that only measured, has none."""
        ends = (ticket.began, ticket.brought, ticket.returning, ticket.ended)
        if ticket.ended is not None:
            call = self._context.call
            ticket.h2d_ms = call("cuEventElapsedTime", ticket.began, ticket.brought)
            ticket.d2h_ms = call("cuEventElapsedTime", ticket.returning, ticket.ended)
            ticket.span_ms = call("cuEventElapsedTime", ticket.began, ticket.ended)
        self._context.time_events.give(event for event in ends if event is not None)
        ticket.began = ticket.brought = ticket.returning = ticket.ended = None


def _device(index: int) -> driver.Device:
    state = driver.probe()
    if not state.devices:
        raise ServiceError(Status.NO_DEVICE, f"no CUDA device: {state.reason}")
    if not 0 <= index < len(state.devices):
        raise ServiceError(Status.NO_DEVICE, f"there is no device {index}: the driver reports {len(state.devices)}")
    return state.devices[index]


def _as_limbd(error: Exception) -> LimbdError:
    if isinstance(error, LimbdError):
        return error
    return ServiceError(Status.INTERNAL, f"cuda backend: {type(error).__name__}: {error}")
