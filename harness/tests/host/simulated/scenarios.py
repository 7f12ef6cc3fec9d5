"""What test_cuda_host_side.py runs, each scenario in a process of its own: the CUDA backend on the simulated driver.

    python scenarios.py NAME LIBRARY CACHE

Kernels are the real ones, compiled for the host; plans and results are the real op's.
"""

from __future__ import annotations

import ctypes
import logging
import random
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from limbd.harness import bench_bases
from limbd.harness.bench import Case, run_case
from limbd.ops import by_name
from limbd.ops.base import Buffer, Call, LaunchPlan, Part, Request, Struct, Traits, Transfer, Unit
from limbd.ops.msm import VECTORS_SHIFT
from limbd.ops.ntt import COSET, INVERSE, NTT, param_of
from limbd.ops.params.fields import FIELDS
from limbd.ops.params.layout import pack
from limbd.ops.split import LANES
from limbd.ops.status import LimbdError, Status
from limbd.ops.tuning import LaneRow
from limbd.worker.device.cache import Cache
from limbd.worker.device.cpu import CpuBackend
from limbd.worker.device.cuda import PLAN_SHARE, CudaBackend
from limbd.worker.device.cuda_context import OVERLAPS_FROM

MODULUS = (1 << 255) - 31  # eight limbs, odd, not 2^256 - c
ILLEGAL_ADDRESS, INVALID_VALUE, NOT_PERMITTED = 700, 1, 800
OP = by_name("mod-mul")
BN254 = FIELDS[0]
WIDTH = 32


class Bench:
    """The simulated driver with the op's kernels registered in it."""

    def __init__(self, library: str, cache: Path) -> None:
        self.driver = ctypes.CDLL(library)  # from here on the bindings find it as libcuda.so.1
        self.driver.simulated_used.restype = ctypes.c_uint64
        self.driver.simulated_calls.restype = ctypes.c_uint64
        self.idle = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda job: None)
        self.driver.simulate_kernel(b"hold", self.idle, ctypes.c_uint64(8))
        self.cache = cache
        self.host = CpuBackend(cache=Cache(cache), threads=1)
        for unit in OP.units(Traits("cuda", "sm_90", 4, 1 << 30)):
            if ("LIMBS", 8) in unit.constants:
                self.register_unit(unit)

    def register_unit(self, unit: Unit) -> None:
        for name in ("mod_mul", "mod_mul_full"):
            self.register_kernel(unit, name, unit.structs[0])

    def register_kernel(self, unit: Unit, name: str, struct: Struct) -> None:
        run = ctypes.cast(self.host.library(unit)[f"limbd_run_{name}"], ctypes.c_void_p)
        self.driver.simulate_kernel(name.encode(), run, ctypes.c_uint64(struct.size))

    def backend(self, **options: Any) -> CudaBackend:
        return CudaBackend(cache=Cache(self.cache), poison=True, **options)

    def fail(self, name: str, code: int, after: int = 0) -> None:
        self.driver.simulate_failure(name.encode(), after, code)

    def used(self) -> int:
        return int(self.driver.simulated_used())

    def calls(self, name: str) -> int:
        return int(self.driver.simulated_calls(name.encode()))


class Transforms:
    """Transforms of 2^k elements with a root and shift of their own, their plan for a backend, and the check of the result."""

    def __init__(self, bench: Bench, k: int, count: int, root: int, *, bad: int | None = None, param: int = 0) -> None:
        self.bench = bench
        m, n = BN254.modulus, count << k
        rng = random.Random(n * root)
        x = [rng.randrange(m) for _ in range(n)]
        if bad is not None:
            x[bad] = m
        omega = pow(BN254.omega(k), 2 * root + 1, m)
        self.request: Request = NTT.decode(
            Call(n, param_of(k, own=True) | param, BN254), memoryview(pack([omega, 1 + root, *x]))
        )
        self.result = bytearray(n * WIDTH)

    def plan(self, backend: CudaBackend, row: LaneRow | None = None) -> LaunchPlan:
        """By threads that hold several elements, unless a row is given: their tables have the sizes that the scenarios are
        made for."""
        traits = backend.traits()
        plan = NTT.plan_by(
            self.request, Traits(traits.kind, traits.arch, 4, traits.memory), row or NTT.pass_row(self.request, traits)
        )
        for launch in plan.launches():
            self.bench.register_kernel(launch.kernel.unit, launch.kernel.name, launch.kernel.struct)
        return plan

    def start(self, backend: CudaBackend, row: LaneRow | None = None) -> Any:
        return backend.start(self.request, self.plan(backend, row), memoryview(self.result))

    def check(self) -> None:
        right = bytearray(len(self.result))
        NTT.reference(self.request, memoryview(right))
        assert self.result == right

    def answer(self, backend: CudaBackend) -> None:
        backend.finish(self.start(backend))
        self.check()

    def refused(self, backend: CudaBackend) -> LimbdError:
        try:
            backend.finish(self.start(backend))
        except LimbdError as error:
            return error
        raise AssertionError("the batch succeeded")


class Batch:
    """A random batch, its plan for a backend, and the check of its result."""

    def __init__(self, n: int, seed: int) -> None:
        rng = random.Random(seed)
        self.a = [rng.getrandbits(256) for _ in range(n)]
        self.b = [rng.getrandbits(256) for _ in range(n)]
        payload = b"".join(v.to_bytes(WIDTH, "little") for v in [MODULUS, *self.a, *self.b])
        self.request: Request = OP.decode(Call(n), memoryview(payload))
        self.result = bytearray(n * WIDTH)

    def plan(self, backend: CudaBackend, **changes: Any) -> LaunchPlan:
        traits = backend.traits()
        return OP.plan(self.request, Traits(traits.kind, traits.arch, 4, traits.memory, **changes))

    def start(self, backend: CudaBackend) -> Any:
        return backend.start(self.request, self.plan(backend), memoryview(self.result))

    def check(self) -> None:
        words = np.frombuffer(self.result, np.uint8).reshape(-1, WIDTH)
        for x, y, row in zip(self.a, self.b, words, strict=True):
            assert int.from_bytes(row.tobytes(), "little") == x * y % MODULUS

    def refused(self, backend: CudaBackend) -> Status:
        """The status that this batch fails with."""
        try:
            backend.finish(self.start(backend))
        except LimbdError as error:
            return error.status
        raise AssertionError("the batch succeeded")


def pieces(bench: Bench) -> None:
    """A budget far below the batch: the same answers, memory below the budget, nothing held afterwards."""
    budget = 256 << 10
    backend, batch = bench.backend(memory=budget), Batch(20_000, 1)
    plan = batch.plan(backend)
    assert plan.lanes == LANES and len(plan.pieces) > 6
    outcome = backend.run(batch.request, plan, memoryview(batch.result))
    batch.check()
    assert 0 < backend.peak_memory(reset=True) <= budget
    assert outcome.launches == len(plan.pieces)
    assert outcome.kernel_ms == 0.5 * len(plan.pieces)  # the simulated clock gives every pair of events 0.5 ms
    assert outcome.h2d_ms == outcome.d2h_ms == outcome.span_ms == 0.5
    assert bench.used() == 0
    assert backend.peak_memory() == 0


def many_pieces(bench: Bench) -> None:
    """More pieces than may be enqueued at once: events are reused, times still add up."""
    backend, batch = bench.backend(memory=LANES * 96 * 10), Batch(3000, 2)
    plan = batch.plan(backend)
    assert len(plan.pieces) > 300
    outcome = backend.run(batch.request, plan, memoryview(batch.result))
    batch.check()
    assert outcome.kernel_ms == 0.5 * len(plan.pieces)
    assert bench.calls("cuEventCreate") <= 4 * 64 + 4


def one_thread_starts_more_than_fits(bench: Bench) -> None:
    """The budget holds one batch at a time: starting more settles the oldest, and finishing in any order works."""
    backend = bench.backend(memory=100 * 96 * 3 // 2)
    batches = [Batch(100, seed) for seed in range(5)]
    tickets = [batch.start(backend) for batch in batches]
    for ticket in reversed(tickets):
        backend.finish(ticket)
    for batch in batches:
        batch.check()
    assert bench.used() == 0


def threads(bench: Bench) -> None:
    """Several threads with a budget for two batches; every one of them has the context bound by the backend."""
    backend = bench.backend(memory=100 * 96 * 5 // 2)
    failures: list[BaseException] = []

    def work(seed: int) -> None:
        try:
            for i in range(20):
                batch = Batch(100, 100 * seed + i)
                backend.finish(batch.start(backend))
                batch.check()
        except BaseException as error:
            failures.append(error)

    workers = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not failures, failures
    assert bench.used() == 0


def out_of_memory(bench: Bench) -> None:
    """A full device: what is in flight ends and gives its memory to the next; else a clean error, and life goes on."""
    backend = bench.backend()
    first, second, large = Batch(1000, 1), Batch(1000, 2), Batch(5000, 3)
    bench.driver.simulate_capacity(ctypes.c_size_t(150_000))
    tickets = [first.start(backend), second.start(backend)]
    assert bench.calls("cuMemPoolTrimTo") == 1
    assert large.refused(backend) is Status.OUT_OF_DEVICE_MEMORY
    for ticket, batch in zip(tickets, (first, second), strict=True):
        backend.finish(ticket)
        batch.check()
    assert bench.used() == 0


def sticky(bench: Bench) -> None:
    """After an illegal access nothing of this context is ever a success again."""
    backend, batch = bench.backend(), Batch(100, 1)
    other = Batch(100, 2)
    bench.fail("cuEventSynchronize", ILLEGAL_ADDRESS)
    tickets = [batch.start(backend), other.start(backend)]
    for ticket in tickets:
        try:
            backend.finish(ticket)
        except LimbdError as error:
            assert error.status is Status.DEVICE_FAULT and "ILLEGAL_ADDRESS" in str(error)
        else:
            raise AssertionError("a success after a fault")
    assert batch.refused(backend) is Status.DEVICE_FAULT
    backend.close()


def rejected_launch(bench: Bench) -> None:
    """A launch that the driver refuses: an error, nothing held, and the next batch is right."""
    backend, batch = bench.backend(memory=256 << 10), Batch(20_000, 1)
    bench.fail("cuLaunchKernel", INVALID_VALUE, after=3)
    assert batch.refused(backend) is Status.INTERNAL
    assert bench.used() == 0
    backend.finish(batch.start(backend))
    batch.check()


def poison(bench: Bench) -> None:
    """A launch that computes nothing leaves the poison in the result, not an earlier batch's values."""
    backend, batch = bench.backend(), Batch(100, 1)
    backend.finish(batch.start(backend))
    plan = batch.plan(backend)
    idle = LaunchPlan(plan.buffers, 1, (type(plan.pieces[0])(plan.pieces[0].copies_in, (), plan.pieces[0].copies_out),))
    backend.run(batch.request, idle, memoryview(batch.result))
    assert bytes(batch.result) == b"\xa5" * len(batch.result)


def parts(bench: Bench) -> None:
    """Both operands in one buffer, which the launch reads in two places; a copy beyond its end is refused."""
    backend, batch, size = bench.backend(), Batch(100, 1), 100 * WIDTH
    (piece,) = batch.plan(backend, whole=True).pieces
    (launch,) = piece.launches
    buffers = (Buffer("both", "in", 2 * size), Buffer("out", "out", size))
    copies = (Transfer("both", "a", 0, size, at=size), Transfer("both", "b", 0, size))
    joined = replace(launch, pointers={"a": Part("both", size), "b": "both"})
    plan = LaunchPlan(buffers, 1, (replace(piece, copies_in=copies, launches=(joined,)),))
    backend.run(batch.request, plan, memoryview(batch.result))
    batch.check()
    beyond = replace(plan.pieces[0], copies_in=(replace(copies[0], at=size + 1),))
    try:
        backend.run(batch.request, replace(plan, pieces=(beyond,)), memoryview(batch.result))
    except LimbdError as error:
        assert error.status is Status.INTERNAL and "out of range" in str(error)
    else:
        raise AssertionError("a copy beyond its buffer")
    assert bench.used() == 0


def measure(bench: Bench) -> None:
    """Raw samples of one launch, over two input sets in turn, with the last results copied back."""
    backend, batches = bench.backend(), [Batch(500, 1), Batch(500, 2)]
    plan = batches[0].plan(backend, whole=True)
    results = [memoryview(batch.result) for batch in batches]
    requests = [batch.request for batch in batches]
    samples = backend.measure(requests, plan, results, repeats=5, warmup=2, back_to_back=4)
    assert samples == [0.125] * 5
    assert bench.calls("cuLaunchKernel") == 7 * (4 + 2)  # the uncounted round, and the one that holds the stream
    for batch in batches:
        batch.check()
    assert bench.used() == 0


def host_memory(bench: Bench) -> None:
    """Host memory is pinned; where the system forbids it, a warning is logged and batches work."""
    messages: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: messages.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger("limbd.device").addHandler(handler)
    backend = bench.backend()
    backend.register(memoryview(bytearray(4096)))
    bench.fail("cuMemHostRegister", NOT_PERMITTED)
    assert not messages
    backend.register(memoryview(bytearray(4096)))
    assert len(messages) == 1 and "not pinned" in messages[0]
    batch = Batch(10, 1)
    backend.finish(batch.start(backend))
    batch.check()
    backend.close()
    assert bench.calls("cuMemHostUnregister") == 1


def second_start(bench: Bench) -> None:
    """With a filled cache nothing is compiled, and a corrupt entry is."""
    batch = Batch(10, 1)
    backend = bench.backend()
    backend.finish(batch.start(backend))
    again = bench.backend()
    again.finish(batch.start(again))
    assert again.cache.builds == 0 and again.cache.hits == 1
    for entry in bench.cache.glob("*.cubin"):
        entry.write_bytes(entry.read_bytes()[:-100])
    rebuilt = bench.backend()
    rebuilt.finish(batch.start(rebuilt))
    assert rebuilt.cache.builds == 1


def missing_units(bench: Bench) -> None:
    """Those of a plan are loaded several at a time, each once, whichever of two threads comes first; one that the driver
    refuses is an error, and it alone is loaded again."""
    batches = [Transforms(bench, 5, 3, root) for root in (0, 1)]
    backend = bench.backend()
    units = {launch.kernel.unit for batch in batches for launch in batch.plan(backend).launches()}
    assert len(units) > 1
    bench.fail("cuModuleLoadData", INVALID_VALUE, after=1)
    assert batches[0].refused(backend).status is Status.INTERNAL
    assert bench.used() == 0 and bench.calls("cuModuleLoadData") == len(units)
    with ThreadPoolExecutor(len(batches)) as pool:
        list(pool.map(lambda batch: batch.answer(backend), batches))
    assert bench.calls("cuModuleLoadData") == len(units) + 1
    assert backend.cache.builds + backend.cache.hits == len(units) + 1
    backend.close()
    assert bench.calls("cuModuleUnload") == len(units)


# --- tables, and elements that may not be ---


def builds(plan: LaunchPlan) -> int:
    """Launches that make its tables."""
    return sum(len(table.builds) for table in plan.tables)


def kept(plan: LaunchPlan) -> int:
    """Bytes of its tables."""
    return sum(table.nbytes for table in plan.tables)


def making(plan: LaunchPlan) -> int:
    """Bytes beside these while they are made."""
    return sum(table.building_bytes() for table in plan.tables) - kept(plan)


def tables_outlive_batches(bench: Bench) -> None:
    """A domain's factors are made at its first use; two domains in turns are both right, and stay."""
    backend = bench.backend()
    one, other = (Transforms(bench, 5, 3, root) for root in (0, 1))
    one.answer(backend)
    held = bench.used()
    assert held == kept(one.plan(backend)) > 0
    launches = bench.calls("cuLaunchKernel")
    one.answer(backend)
    passes = len(one.plan(backend).pieces[0].launches)
    assert bench.calls("cuLaunchKernel") == launches + passes
    for batch in (other, one, other):
        batch.answer(backend)
    assert bench.used() == 2 * held
    assert bench.calls("cuLaunchKernel") == launches + 4 * passes + builds(other.plan(backend))
    backend.close()
    assert bench.used() == 0


def tables_leave_by_least_recent_use(bench: Bench) -> None:
    """The budget holds the tables of two domains beside a batch: of three, the one that was not used for longest goes."""
    batches = [Transforms(bench, 5, 1, root) for root in range(3)]
    plan = batches[0].plan(bench.backend())
    table = kept(plan)
    budget = plan.device_bytes() + 2 * table + making(plan)
    backend = bench.backend(memory=budget)

    def launches(batch: Transforms) -> int:
        before = bench.calls("cuLaunchKernel")
        batch.answer(backend)
        return bench.calls("cuLaunchKernel") - before - len(plan.pieces[0].launches)

    built = builds(plan)
    assert [launches(batches[i]) for i in (0, 1, 0, 2, 0, 1, 2)] == [built, built, 0, built, 0, built, built]
    assert bench.used() == 2 * table
    assert backend.peak_memory() <= budget


def tables_make_room_for_batches(bench: Bench) -> None:
    """Idle tables leave before a batch is refused memory, by the budget or by the device; its own stay."""
    small, large = Transforms(bench, 8, 1, 0), Transforms(bench, 6, 8, 1)
    plan = large.plan(bench.backend())
    needed = plan.device_bytes() + kept(plan) + making(plan)
    backend = bench.backend(memory=-(-needed * PLAN_SHARE[1] // PLAN_SHARE[0]))
    small.answer(backend)
    large.answer(backend)
    assert bench.used() == kept(plan)
    backend.close()
    wide = bench.backend()
    small.answer(wide)
    bench.driver.simulate_capacity(ctypes.c_size_t(needed + 512))
    large.answer(wide)
    small.answer(wide)


def a_table_that_cannot_be_built(bench: Bench) -> None:
    """The driver refuses a builder's launch, or memory for it: an error, nothing is held or kept, and the next batch is right."""
    backend, batch = bench.backend(), Transforms(bench, 5, 3, 0)
    assert builds(batch.plan(backend)) > 2 and making(batch.plan(backend)) > 0
    for name, after in (("cuLaunchKernel", 0), ("cuLaunchKernel", 2), ("cuMemAllocFromPoolAsync", 3)):
        bench.fail(name, INVALID_VALUE, after)
        assert batch.refused(backend).status is Status.INTERNAL
        assert bench.used() == 0
    batch.answer(backend)


def tables_and_threads(bench: Bench) -> None:
    """Four threads with three domains, and memory for fewer: nothing is taken away that somebody reads."""
    plan = Transforms(bench, 5, 3, 0).plan(bench.backend())
    backend = bench.backend(memory=2 * (plan.device_bytes() + kept(plan) + making(plan)))
    failures: list[BaseException] = []

    def work(seed: int) -> None:
        try:
            for i in range(12):
                Transforms(bench, 5, 3, (seed + i) % 3).answer(backend)
        except BaseException as error:
            failures.append(error)

    workers = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not failures, failures
    backend.close()
    assert bench.used() == 0


def passes_that_overlap(bench: Bench) -> None:
    """The second pass of a transform is launched so, with its own grid and parameters, where kernels are compiled for it."""
    transforms = Transforms(bench, 8, 3, 1, param=INVERSE | COSET)
    row = LaneRow((4, 4), False, "both passes are one kernel: the simulated driver knows kernels by their names")
    for arch, launches in ((90, 1), (89, 0)):
        backend = bench.backend()
        backend._context.overlaps = arch >= OVERLAPS_FROM
        before = bench.calls("cuLaunchKernelEx")
        backend.finish(transforms.start(backend, row))
        transforms.check()
        assert bench.calls("cuLaunchKernelEx") == before + launches
    plain = bench.backend()
    assert plain._context.overlaps  # as the simulated device, an sm_90
    bench.fail("cuLaunchKernelEx", INVALID_VALUE)
    try:
        plain.finish(transforms.start(plain, row))
    except LimbdError as error:
        assert error.status is Status.INTERNAL and "cuLaunchKernelEx" in str(error)
    else:
        raise AssertionError("the batch succeeded")


def a_bad_element_is_told_and_costs_nothing(bench: Bench) -> None:
    """Its index within the frame, from any piece; memory is given back, and batches in flight beside it are right."""
    plan = Transforms(bench, 5, 1, 0).plan(bench.backend())
    each, tables = plan.device_bytes(), kept(plan)
    backend, good = bench.backend(memory=3 * each + tables + making(plan)), Transforms(bench, 5, 2, 0)
    good.answer(backend)
    for bad in (0, 33, 5 * 32 + 7, 10 * 32 - 1):
        batch = Transforms(bench, 5, 10, 0, bad=bad)
        assert len(batch.plan(backend).pieces) > 2
        ticket = good.start(backend)
        error = batch.refused(backend)
        assert (error.status, error.index) == (Status.BAD_ELEMENT, bad)
        backend.finish(ticket)
        good.check()
        assert bench.used() == tables
    good.answer(backend)
    assert bench.calls("cuMemHostAlloc") == 1


def a_benchmark_of_bases_that_stay(bench: Bench) -> None:
    """Its span is the device's, its host memory is pinned meanwhile, and the bases are given back. A toy's windows are all of
    one width, so that there is one kernel of each name."""
    backend = bench.backend()
    load = backend._modules.load

    def register_and_load(plan: LaunchPlan) -> None:
        for launch in plan.launches():
            bench.register_kernel(launch.kernel.unit, launch.kernel.name, launch.kernel.struct)
        load(plan)

    backend._modules.load = register_and_load  # type: ignore[method-assign]
    for kind, vectors in product(bench_bases.KINDS, (1, 3)):
        case = Case("msm-g1", "toy_7_13", 40 * vectors, samples=4, param=(vectors - 1) << VECTORS_SHIFT, bases=kind)
        found = run_case(backend, case)
        assert found["samples"] == found["kernel_ms"] == [0.5] * 4 and found["span"] == bench_bases.EVENTS
        memory = found["memory"]
        assert memory["peak"] >= memory["bases"] + memory["copied"] + memory["scratch"]
        assert bench.used() == 0 and bench.calls("cuMemHostRegister") == bench.calls("cuMemHostUnregister") > 0


SCENARIOS: dict[str, Callable[[Bench], None]] = {
    scenario.__name__: scenario
    for scenario in (
        *(pieces, many_pieces, one_thread_starts_more_than_fits, threads, out_of_memory, sticky, rejected_launch),
        *(poison, parts, measure, host_memory, second_start, missing_units),
        *(tables_outlive_batches, tables_leave_by_least_recent_use, tables_make_room_for_batches),
        *(a_table_that_cannot_be_built, tables_and_threads, passes_that_overlap),
        *(a_bad_element_is_told_and_costs_nothing, a_benchmark_of_bases_that_stay),
    )
}


if __name__ == "__main__":
    SCENARIOS[sys.argv[1]](Bench(sys.argv[2], Path(sys.argv[3])))
    print("done")
