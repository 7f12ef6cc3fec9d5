"""Transforms: the tables that they keep on the device, passes that overlap, and elements that may not be."""

from __future__ import annotations

import ctypes
import threading

from limbd.harness.tests.host.simulated.simulation import INVALID_VALUE, Bench, Transforms
from limbd.ops.base import LaunchPlan
from limbd.ops.ntt import COSET, INVERSE
from limbd.ops.status import LimbdError, Status
from limbd.ops.tuning import LaneRow
from limbd.worker.device.cuda import PLAN_SHARE
from limbd.worker.device.cuda_context import OVERLAPS_FROM


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


SCENARIOS = (
    *(tables_outlive_batches, tables_leave_by_least_recent_use, tables_make_room_for_batches),
    *(a_table_that_cannot_be_built, tables_and_threads, passes_that_overlap),
    a_bad_element_is_told_and_costs_nothing,
)
