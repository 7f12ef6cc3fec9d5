"""Batches of an element-wise op: memory, errors, threads, the cache."""

from __future__ import annotations

import ctypes
import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import product

from limbd.harness import bench_bases
from limbd.harness.bench import Case, run_case
from limbd.harness.tests.host.simulated.simulation import (
    ILLEGAL_ADDRESS,
    INVALID_VALUE,
    NOT_PERMITTED,
    WIDTH,
    Batch,
    Bench,
    Transforms,
)
from limbd.ops.base import Buffer, LaunchPlan, Part, Transfer
from limbd.ops.msm import VECTORS_SHIFT
from limbd.ops.split import LANES
from limbd.ops.status import LimbdError, Status


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


def the_next_pieces_copies_go_ahead(bench: Bench) -> None:
    """They are enqueued before a piece's kernels, which the host takes a while to launch."""
    backend, batch = bench.backend(memory=256 << 10), Batch(20_000, 3)
    first, second, *_ = batch.plan(backend).pieces
    before = bench.calls("cuMemcpyHtoDAsync")
    bench.fail("cuLaunchKernel", INVALID_VALUE)
    assert batch.refused(backend) is Status.INTERNAL
    assert bench.calls("cuMemcpyHtoDAsync") - before == len(first.copies_in) + len(second.copies_in)
    backend.finish(batch.start(backend))
    batch.check()
    assert bench.used() == 0


def shared_memory_that_has_to_be_asked_for(bench: Bench) -> None:
    """What a kernel declares counts: a launch that adds a little less than 48 KB has to ask as well, and each larger one again."""
    backend, batch = bench.backend(), Batch(100, 4)
    plan = batch.plan(backend)
    before = bench.calls("cuFuncSetAttribute")
    for kib, asked in ((47, 0), (48, 1), (47, 1), (64, 2), (48, 2)):
        pieces = tuple(
            replace(piece, launches=tuple(replace(launch, shared=kib << 10) for launch in piece.launches))
            for piece in plan.pieces
        )
        backend.run(batch.request, replace(plan, pieces=pieces), memoryview(batch.result))
        batch.check()
        assert bench.calls("cuFuncSetAttribute") - before == asked


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


SCENARIOS = (
    *(
        pieces,
        many_pieces,
        the_next_pieces_copies_go_ahead,
        shared_memory_that_has_to_be_asked_for,
        one_thread_starts_more_than_fits,
        threads,
        out_of_memory,
        sticky,
        rejected_launch,
    ),
    *(poison, parts, measure, host_memory, second_start, missing_units, a_benchmark_of_bases_that_stay),
)
