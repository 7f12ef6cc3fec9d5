"""The CPU backend: the same kernel sources, compiled by the host's C++ compiler, on all cores.

A plan's in and out buffers are the host arrays themselves, unless several arrays fill one buffer: a Transfer only says which. So the copies out of a piece
must cover what its launches write, which holds for every plan that a device could run too.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from limbd.kernels.source import MissingSource, Sources
from limbd.ops.base import NONE_BAD, SHARED, Buffer, Launch, LaunchPlan, Piece, Request, Table, Traits, Transfer, Unit
from limbd.ops.status import LimbdError, ServiceError, Status
from limbd.worker.device import host_compiler
from limbd.worker.device.base import BackendInfo, Outcome, refuse_bad
from limbd.worker.device.cache import Cache
from limbd.worker.device.host_compiler import HostCompiler, Variant
from limbd.worker.device.measurement import POISON_BYTE, HostMeasurement, take_samples

Bytes = npt.NDArray[np.uint8]

# The kernels load and store 16 bytes at a time.
ALIGNMENT = 16

# Chunks of blocks that each thread takes in one launch: few enough to cost nothing, many enough that the last threads
# to finish differ by little.
CHUNKS_PER_THREAD = 8

# Tables may take this part of the memory that plans are told.
TABLE_SHARE = 4

# With LIMBD_POISON=1 results are filled with POISON_BYTE before each batch.
POISON_VARIABLE = "LIMBD_POISON"


class Job(ctypes.Structure):
    """One launch, shared by the threads that run it (kernels/host/launch.hpp)."""

    _fields_ = (
        ("arguments", ctypes.c_void_p),
        ("argument_bytes", ctypes.c_uint64),
        ("next", ctypes.c_uint64),
        ("grid", ctypes.c_uint32),
        ("block", ctypes.c_uint32),
        ("shared", ctypes.c_uint32),
        ("chunk", ctypes.c_uint32),
        ("synchronises", ctypes.c_uint32),
        ("cluster", ctypes.c_uint32),
    )


@dataclass
class _Lane:
    """What a lane's buffers are bound to: addresses by buffer name, and whatever keeps that memory alive."""

    buffers: Mapping[str, Buffer]
    addresses: dict[str, int] = field(default_factory=dict)
    alive: dict[str, Bytes] = field(default_factory=dict)

    def bind(self, name: str, memory: Bytes) -> None:
        self.addresses[name] = _address(memory)
        self.alive[name] = memory


class CpuBackend:
    """Runs plans on the cores that this process may use. Batches run one after another, each on all of them."""

    def __init__(
        self,
        *,
        cache: Cache | None = None,
        compiler: HostCompiler | None = None,
        variant: Variant = Variant.FAST,
        threads: int | None = None,
        sources: Sources | None = None,
        memory: int | None = None,
        poison: bool | None = None,
    ) -> None:
        """threads: default, the processors this process may run on. memory: what plans are told; default, all RAM.
        Raises ServiceError(NO_DEVICE) without a compiler."""
        self.compiler = compiler or host_compiler.find()
        self.cache = cache or Cache()
        self._variant = variant
        self._sources = sources or Sources()
        self._threads = threads or len(os.sched_getaffinity(0))
        self._memory = memory or os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        self._poison = os.environ.get(POISON_VARIABLE) == "1" if poison is None else poison
        self._libraries: dict[Unit, ctypes.CDLL] = {}
        self._tables: dict[str, Bytes] = {}  # the conductor's; least recently used first
        self._lock = threading.Lock()
        self._conductor = ThreadPoolExecutor(1, "limbd-cpu-batch")
        self._workers = _workers(self._threads)

    def describe(self) -> BackendInfo:
        return BackendInfo(
            "cpu", host_compiler.processor_model(), platform.machine(), self._memory, self.compiler.describe()
        )

    def traits(self) -> Traits:
        return Traits("cpu", platform.machine(), self._threads, self._memory)

    def register(self, memory: memoryview) -> None:
        """Nothing to do: the kernels work in host memory."""

    def unregister(self, memory: memoryview) -> None:
        """Nothing was registered."""

    def prepare(self, units: Iterable[Unit]) -> None:
        """Compiles units, several at a time, and loads them, so that no batch waits for them."""
        wanted = tuple(units)
        self.compile(wanted)
        for unit in wanted:
            self.library(unit)

    def compile(self, units: Iterable[Unit]) -> None:
        """Puts units into the cache without loading them (a sanitized library loads only beside its runtime)."""
        with ThreadPoolExecutor(self._threads, "limbd-compile") as pool:
            for done in [pool.submit(self._library_file, unit) for unit in units]:
                done.result()

    def start(self, request: Request, plan: LaunchPlan, result: memoryview) -> Future[Outcome]:
        return self._conductor.submit(self._run, request, plan, result)

    def finish(self, ticket: Future[Outcome]) -> Outcome:
        return ticket.result()

    def run(self, request: Request, plan: LaunchPlan, result: memoryview) -> Outcome:
        return self.finish(self.start(request, plan, result))

    def measuring(
        self, requests: Sequence[Request], plan: LaunchPlan, results: Sequence[memoryview]
    ) -> HostMeasurement:
        """See limbd.worker.device.measurement; the time is wall time of the launches alone."""
        return HostMeasurement(lambda request, result: self.run(request, plan, result).kernel_ms, requests, results)

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
            return take_samples(measurement, repeats=repeats, warmup=warmup, back_to_back=back_to_back)

    def image(self, unit: Unit) -> bytes:
        """The unit's shared library as the cache keeps it, compiled at its first use."""
        return self._library_file(unit).read_bytes()

    def forget(self, key: str) -> None:
        self._conductor.submit(self._tables.pop, key, None).result()

    def close(self) -> None:
        self._conductor.shutdown()
        self._workers.shutdown()
        self.cache.close()

    def library(self, unit: Unit) -> ctypes.CDLL:
        """The unit's loaded library, compiled at its first use. Raises ServiceError(INTERNAL)."""
        with self._lock:
            if unit in self._libraries:
                return self._libraries[unit]
        file = self._library_file(unit)
        try:
            library = ctypes.CDLL(str(file))
        except OSError as error:
            raise ServiceError(Status.INTERNAL, f"{unit.entry}: its host library does not load: {error}") from error
        with self._lock:
            return self._libraries.setdefault(unit, library)

    def _library_file(self, unit: Unit) -> Path:
        try:
            source = self._sources.host(unit.entry, unit.header())
        except MissingSource as error:
            raise ServiceError(Status.INTERNAL, str(error)) from error
        key = self.compiler.key(source, self._variant)
        return self.cache.load_file(key, lambda: self.compiler.compile(source, self._variant))

    # --- a batch ---

    def _run(self, request: Request, plan: LaunchPlan, result: memoryview) -> Outcome:
        try:
            return self._run_plan(request, plan, result)
        except LimbdError:
            raise
        except Exception as error:
            raise ServiceError(Status.INTERNAL, f"cpu backend: {type(error).__name__}: {error}") from error

    def _run_plan(self, request: Request, plan: LaunchPlan, result: memoryview) -> Outcome:
        for launch in plan.launches():
            self.library(launch.kernel.unit)
        arrays = {name: _flat(array) for name, array in request.arrays.items()}
        arrays["result"] = np.frombuffer(result, np.uint8) if len(result) else np.empty(0, np.uint8)
        if self._poison:
            arrays["result"][:] = POISON_BYTE
        buffers = {b.name: b for b in plan.buffers}
        lanes = [_Lane(buffers) for _ in range(plan.lanes)]
        found = np.full(1, NONE_BAD, np.uint64)
        common = {b.name: self._scratch(b) for b in plan.buffers if b.role == SHARED}
        for lane in lanes:
            self._bind_shared(plan, lane, found, arrays)
            for name, memory in common.items():
                lane.bind(name, memory)
        seconds = 0.0
        for i, piece in enumerate(plan.pieces):
            seconds += self._run_piece(piece, lanes[i % plan.lanes], arrays)
        refuse_bad(request.op, int(found[0]))
        return Outcome(kernel_ms=seconds * 1e3, launches=sum(len(p.launches) for p in plan.pieces))

    def _bind_shared(
        self, plan: LaunchPlan, lane: _Lane, found: npt.NDArray[np.uint64], arrays: Mapping[str, Bytes]
    ) -> None:
        """The tables, and the word that checks lower."""
        if plan.first_bad is not None:
            lane.bind(plan.first_bad, found.view(np.uint8))
        for table in plan.tables:
            lane.bind(table.name, self._table(table, arrays))

    def _table(self, table: Table, arrays: Mapping[str, Bytes]) -> Bytes:
        """Kept under its key, or built; the ones that were used least recently leave where they take too much memory."""
        memory = self._tables.pop(table.key, None)
        if memory is None:
            memory = _aligned_empty(table.nbytes)
            building = _Lane({buffer.name: buffer for buffer in table.workspace})
            building.bind(table.name, memory)
            for buffer in table.workspace:
                building.bind(buffer.name, self._scratch(buffer))
            for copy in table.copies_in:
                building.alive[copy.buffer][copy.at : copy.at + copy.nbytes] = _part(copy, building, arrays)
            for build in table.builds:
                self._launch(build, building)
        self._tables[table.key] = memory
        while (
            sum(kept.nbytes for kept in self._tables.values()) > self._memory // TABLE_SHARE and len(self._tables) > 1
        ):
            del self._tables[next(iter(self._tables))]
        return memory

    def _run_piece(self, piece: Piece, lane: _Lane, arrays: Mapping[str, Bytes]) -> float:
        """Seconds that the launches took."""
        for name in {copy.buffer: None for copy in piece.copies_in}:
            copies = [copy for copy in piece.copies_in if copy.buffer == name]
            lane.bind(name, _input([(copy.at, _part(copy, lane, arrays)) for copy in copies]))
        late = self._bind_outputs(piece, lane, arrays)
        begin = time.perf_counter()
        for launch in piece.launches:
            self._launch(launch, lane)
        seconds = time.perf_counter() - begin
        for target, source in late:
            target[:] = source
        return seconds

    def _bind_outputs(self, piece: Piece, lane: _Lane, arrays: Mapping[str, Bytes]) -> list[tuple[Bytes, Bytes]]:
        """Binds what the launches write. Returns the copies to make afterwards, where the host array is not aligned."""
        late = []
        outputs = {copy.buffer: copy for copy in piece.copies_out}
        for name, buffer in lane.buffers.items():
            if name in outputs:
                part = _part(outputs[name], lane, arrays)
                bound = part if _aligned(part) else _aligned_empty(part.nbytes)
                if bound is not part:
                    late.append((part, bound))
                lane.bind(name, bound)
            elif buffer.role == "out" or name not in lane.addresses or (self._poison and buffer.role == "scratch"):
                lane.bind(name, self._scratch(buffer))
        return late

    def _scratch(self, buffer: Buffer) -> Bytes:
        memory = _aligned_empty(buffer.nbytes)
        if self._poison:
            memory[:] = POISON_BYTE
        return memory

    def _launch(self, launch: Launch, lane: _Lane) -> None:
        kernel = launch.kernel
        packed = launch.pack(lane.addresses)
        arguments = _aligned_empty(len(packed))
        arguments[:] = np.frombuffer(packed, np.uint8)
        clusters = launch.grid // kernel.cluster
        chunk = max(1, clusters // (self._threads * CHUNKS_PER_THREAD))
        job = Job(
            arguments=_address(arguments),
            argument_bytes=len(packed),
            grid=launch.grid,
            block=launch.block,
            shared=launch.shared,
            chunk=chunk,
            synchronises=kernel.synchronises,
            cluster=kernel.cluster,
        )
        function = self.library(kernel.unit)[f"limbd_run_{kernel.name}"]
        function.restype = None
        self._share(function, job, min(self._threads, -(-clusters // chunk)))

    def _share(self, function: Any, job: Job, threads: int) -> None:
        """Runs the job on `threads` workers; where one is enough, on this thread, which saves waking it."""
        if threads == 1:
            function(ctypes.byref(job))
            return
        shares = [self._workers.submit(function, ctypes.byref(job)) for _ in range(threads)]
        wait(shares)
        for share in shares:
            share.result()


def _workers(threads: int) -> ThreadPoolExecutor:
    """Where there is a processor for each thread, each keeps to its own: else the scheduler, when it wakes them, often puts
    two on the processor of the one who woke them, and takes longer to see it than a batch takes."""
    processors = sorted(os.sched_getaffinity(0))
    if threads != len(processors):
        return ThreadPoolExecutor(threads, "limbd-cpu")
    turn = iter(processors)
    return ThreadPoolExecutor(threads, "limbd-cpu", initializer=lambda: _keep_to(next(turn)))


def _keep_to(processor: int) -> None:
    """Of the calling thread. A processor that was taken away since is no reason to fail."""
    with contextlib.suppress(OSError):
        os.sched_setaffinity(0, {processor})


def _flat(array: npt.NDArray[np.uint32]) -> Bytes:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def _part(copy: Transfer, lane: _Lane, arrays: Mapping[str, Bytes]) -> Bytes:
    """The host bytes of a Transfer. Raises ServiceError(INTERNAL) if the plan reaches beyond an array or a buffer."""
    array = arrays[copy.array]
    if not copy.within(array.nbytes, lane.buffers[copy.buffer].nbytes):
        raise ServiceError(Status.INTERNAL, f"plan: {copy} is out of range of its array or buffer")
    return array[copy.offset : copy.offset + copy.nbytes]


def _address(memory: Bytes) -> int:
    return int(memory.__array_interface__["data"][0])


def _aligned(memory: Bytes) -> bool:
    return _address(memory) % ALIGNMENT == 0


def _aligned_empty(nbytes: int) -> Bytes:
    memory = np.empty(nbytes, np.uint8)
    if _aligned(memory):
        return memory  # its end is the allocation's, where AddressSanitizer watches
    memory = np.empty(nbytes + ALIGNMENT, np.uint8)
    start = -_address(memory) % ALIGNMENT
    return memory[start : start + nbytes]


def _input(parts: Sequence[tuple[int, Bytes]]) -> Bytes:
    """Host arrays with the bytes of the buffer where they begin: the only one as it is, if it can be; else a copy of all."""
    if len(parts) == 1 and parts[0][0] == 0 and _aligned(parts[0][1]):
        return parts[0][1]
    whole = _aligned_empty(max(at + part.nbytes for at, part in parts))
    for at, part in parts:
        whole[at : at + part.nbytes] = part
    return whole
