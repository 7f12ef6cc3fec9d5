"""The CUDA backend on a real device: plans, budgets, threads, poison, refused launches, and what a fault does."""

from __future__ import annotations

import dataclasses
import random
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from limbd.harness.inputs import operands
from limbd.kernels.source import ROOT, Sources
from limbd.ops import by_name
from limbd.ops.base import Buffer, Kernel, Launch, LaunchPlan, Member, Piece, Request, Struct, Transfer, Unit
from limbd.ops.params.layout import from_ints
from limbd.ops.status import LimbdError, ServiceError, Status
from limbd.worker.device.cache import Cache
from limbd.worker.device.cuda import CudaBackend

pytestmark = pytest.mark.gpu

MODULUS = (1 << 255) - 31
ARGS = Struct("raw_args", (Member("in", "in"), Member("out", "out"), Member("n", "u64")))
UNIT = Unit("raw", (ARGS,))
WILD_ADDRESS = 0x10  # never mapped
ENTRY = """
#include "base/platform.cuh"
#include "unit.cuh"

extern "C" __global__ void copy(const raw_args args) {
    const uint64_t i = uint64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < args.n) args.out[i] = args.in[i];
}
// Reverses a block's words through all the dynamic shared memory that the launch was given.
extern "C" __global__ void reverse(const raw_args args) {
    DYNAMIC_SHARED(uint32_t, words);
    for (uint64_t i = threadIdx.x; i < args.n; i += blockDim.x) words[i] = args.in[i];
    __syncthreads();
    for (uint64_t i = threadIdx.x; i < args.n; i += blockDim.x) args.out[i] = words[args.n - 1 - i];
}
extern "C" __global__ void wild(const raw_args args) { *reinterpret_cast<uint32_t*>(args.n) = 1; }
extern "C" __global__ void trap(const raw_args) { __trap(); }
"""


def make_backend(folder: Path, **options: Any) -> CudaBackend:
    (folder / "entry").mkdir(exist_ok=True)
    (folder / "entry" / "raw.cu").write_text(ENTRY)
    return CudaBackend(cache=Cache(folder / "cache"), sources=Sources((folder, ROOT)), **options)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cuda")


@pytest.fixture(scope="module")
def backend(folder: Path) -> Iterator[CudaBackend]:
    backend = make_backend(folder, poison=True)
    yield backend
    backend.close()


class Batch:
    """A random mod-mul batch with what its result has to be."""

    def __init__(self, n: int, seed: int, op: str = "mod-mul") -> None:
        self.op = by_name(op)
        rng = random.Random(f"{op} {n} {seed}")
        arrays = {name: from_ints(operands(rng, MODULUS, n)) for name in self.op.operands}
        self.request = Request(self.op, n, 0, MODULUS, 32, arrays)
        self.result = np.zeros((n, 8), np.uint32)
        self.expected = np.zeros((n, 8), np.uint32)
        self.op.reference(self.request, self.expected.data.cast("B"))

    def run(self, backend: CudaBackend) -> Any:
        plan = self.op.plan(self.request, backend.traits())
        outcome = backend.run(self.request, plan, self.result.data.cast("B"))
        self.check()
        return outcome

    def check(self) -> None:
        assert (self.result == self.expected).all()


def raw(
    backend: CudaBackend,
    name: str,
    data: np.ndarray[Any, Any],
    *,
    n: int,
    grid: int = 1,
    block: int = 64,
    shared: int = 0,
) -> np.ndarray[Any, Any]:
    """The words that a kernel of ENTRY wrote."""
    result = np.zeros(data.size, np.uint32)
    launch = Launch(Kernel(UNIT, name, ARGS, 2048), grid, block, {"n": n}, shared)
    piece = Piece((Transfer("in", "in", 0, data.nbytes),), (launch,), (Transfer("out", "result", 0, result.nbytes),))
    plan = LaunchPlan((Buffer("in", "in", data.nbytes), Buffer("out", "out", result.nbytes)), 1, (piece,))
    op: Any = None
    backend.run(Request(op, n, 0, 1, 4, {"in": data}), plan, result.data.cast("B"))
    return result


def words(n: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(1).integers(0, 2**32, n, dtype=np.uint32)


@pytest.mark.parametrize("n", [1, 255, 256, 257, 100_003])
def test_a_batch(backend: CudaBackend, n: int) -> None:
    outcome = Batch(n, 1).run(backend)
    assert outcome.kernel_ms > 0 and outcome.h2d_ms > 0 and outcome.d2h_ms > 0


def test_a_shorter_batch_after_a_longer_one(backend: CudaBackend) -> None:
    for n in (5000, 3, 4999, 1):
        Batch(n, 2).run(backend)


@pytest.mark.parametrize("op", ["mod-mul", "mod-inv"])
def test_pieces_of_a_small_budget(folder: Path, op: str) -> None:
    budget = 1 << 20
    backend = make_backend(folder, poison=True, memory=budget)
    batch = Batch(50_000, 3, op)
    outcome = batch.run(backend)
    assert outcome.launches > 4
    assert 0 < backend.peak_memory() <= budget
    backend.close()


def test_pinned_and_pageable_memory_give_the_same(backend: CudaBackend) -> None:
    batch = Batch(50_000, 4)
    pinned = np.zeros((3, 50_000, 8), np.uint32)
    backend.register(pinned.data.cast("B"))
    for i, name in enumerate(("a", "b")):
        pinned[i] = batch.request.arrays[name]
    request = dataclasses.replace(batch.request, arrays={"a": pinned[0], "b": pinned[1]})
    backend.run(request, batch.op.plan(request, backend.traits()), pinned[2].data.cast("B"))
    assert (pinned[2] == batch.expected).all()
    batch.run(backend)


def test_threads_with_batches_in_flight(folder: Path) -> None:
    """Each thread keeps two batches going; the budget holds three; every thread is new to the context."""
    backend = make_backend(folder, poison=True, memory=3 * 96 * 20_000 * 65 // 64)
    failures: list[BaseException] = []

    def work(seed: int) -> None:
        try:
            for i in range(5):
                pair = [Batch(20_000, 10 * seed + i), Batch(777, 10 * seed + i)]
                plans = [batch.op.plan(batch.request, backend.traits()) for batch in pair]
                tickets = [
                    backend.start(b.request, plan, b.result.data.cast("B")) for b, plan in zip(pair, plans, strict=True)
                ]
                for ticket, batch in zip(reversed(tickets), reversed(pair), strict=True):
                    backend.finish(ticket)
                    batch.check()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures
    backend.close()


def test_words_that_no_thread_wrote_are_poison(backend: CudaBackend) -> None:
    data = words(1000)
    result = raw(backend, "copy", data, n=600, grid=16)
    assert (result[:600] == data[:600]).all()
    assert (result[600:] == 0xA5A5A5A5).all()


def test_dynamic_shared_memory_above_the_plain_limit(backend: CudaBackend) -> None:
    """64 KiB is the most that every supported card allows a block (sm_75)."""
    data = words(16384)
    assert (raw(backend, "reverse", data, n=data.size, shared=data.nbytes) == data[::-1]).all()


@pytest.mark.parametrize(("block", "shared"), [(2048, 0), (64, 1 << 30)])
def test_a_refused_launch_is_an_error_and_the_next_batch_is_right(
    backend: CudaBackend, block: int, shared: int
) -> None:
    with pytest.raises(ServiceError) as caught:
        raw(backend, "copy", words(64), n=64, block=block, shared=shared)
    assert caught.value.status is Status.INTERNAL
    Batch(1000, 5).run(backend)


def test_a_grid_that_is_too_large_is_refused_before_the_launch() -> None:
    with pytest.raises(ValueError, match="grid"):
        Launch(Kernel(UNIT, "copy", ARGS, 1024), 2**31, 64, {"n": 1})


def test_a_device_that_is_full_gives_a_clean_error(folder: Path, backend: CudaBackend) -> None:
    """A budget far above the device's memory lets a plan through that cannot be allocated."""
    greedy = make_backend(folder, memory=1 << 50)
    size = backend.describe().memory * 2
    piece = Piece((), (Launch(Kernel(UNIT, "copy", ARGS, 1024), 1, 64, {"n": 0}),), ())
    plan = LaunchPlan((Buffer("in", "in", 4096), Buffer("out", "out", size)), 1, (piece,))
    op: Any = None
    with pytest.raises(ServiceError) as caught:
        greedy.run(Request(op, 1, 0, 1, 4, {}), plan, memoryview(bytearray()))
    assert caught.value.status is Status.OUT_OF_DEVICE_MEMORY
    Batch(1000, 6).run(greedy)
    greedy.close()


def test_measuring(backend: CudaBackend) -> None:
    batches = [Batch(10_000, seed) for seed in (7, 8)]
    plan = batches[0].op.plan(batches[0].request, dataclasses.replace(backend.traits(), whole=True))
    requests, results = [b.request for b in batches], [b.result.data.cast("B") for b in batches]
    samples = backend.measure(requests, plan, results, repeats=20, warmup=2, back_to_back=3)
    for batch in batches:
        batch.check()
    assert len(samples) == 20 and 0 < min(samples) < 1


def test_a_second_start_compiles_nothing(folder: Path, backend: CudaBackend) -> None:
    Batch(10, 9).run(backend)
    again = make_backend(folder)
    Batch(10, 9).run(again)
    assert again.cache.builds == 0
    again.close()


@pytest.mark.parametrize("kernel", ["wild", "trap"])
def test_a_fault_is_sticky(kernel: str, folder: Path) -> None:
    """In a process of its own, as the context is lost: the batch fails, and so does everything after it."""
    done = subprocess.run((sys.executable, __file__, str(folder), kernel), capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "DEVICE_FAULT DEVICE_FAULT\n"


def fault(folder: Path, kernel: str) -> None:
    backend = make_backend(folder)
    Batch(100, 1).run(backend)
    statuses = []
    for name, n in ((kernel, WILD_ADDRESS), ("copy", 64)):
        try:
            raw(backend, name, words(64), n=n)
            statuses.append("OK")
        except LimbdError as error:
            statuses.append(error.status.name)
    print(*statuses)
    backend.close()


if __name__ == "__main__":
    fault(Path(sys.argv[1]), sys.argv[2])
