"""The CPU backend: plans bound to host arrays, on one core and on several."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from limbd.kernels.source import ROOT, Sources
from limbd.ops.base import (
    Buffer,
    Kernel,
    Launch,
    LaunchPlan,
    Member,
    Part,
    Piece,
    Request,
    Struct,
    Transfer,
    Unit,
)
from limbd.ops.status import ServiceError, Status
from limbd.worker.device import host_compiler
from limbd.worker.device.cache import Cache
from limbd.worker.device.cpu import CpuBackend
from limbd.worker.device.host_compiler import Variant

ENTRY = """
#include "host/shim.hpp"
#include "unit.cuh"

extern "C" __global__ void add_words(const words_args args) {
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < args.n) args.out[i] = args.a[i] + args.b[i];
}

// Four words a thread through scratch memory, as 16-byte loads and stores.
extern "C" __global__ void stage(const stage_args args) {
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < args.n / 4) reinterpret_cast<uint4*>(args.tmp)[i] = reinterpret_cast<const uint4*>(args.a)[i];
}
extern "C" __global__ void unstage(const stage_args args) {
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < args.n / 4) reinterpret_cast<uint4*>(args.out)[i] = reinterpret_cast<const uint4*>(args.tmp)[i];
}
"""
WORDS = Struct("words_args", (Member("a", "in"), Member("b", "in"), Member("out", "out"), Member("n", "u32")))
STAGE = Struct("stage_args", (Member("a", "in"), Member("tmp", "scratch"), Member("out", "out"), Member("n", "u32")))
UNIT = Unit("basics", (WORDS, STAGE))
ADD = Kernel(UNIT, "add_words", WORDS, 1024)


@pytest.fixture(scope="module")
def backend(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CpuBackend]:
    folder = tmp_path_factory.mktemp("kernels")
    (folder / "entry").mkdir()
    (folder / "entry" / "basics.cu").write_text(ENTRY)
    backend = CpuBackend(
        cache=Cache(folder / "cache"), sources=Sources((folder, ROOT)), variant=Variant.VERIFY, threads=3, poison=True
    )
    yield backend
    backend.close()


def request_of(**arrays: np.ndarray[Any, Any]) -> Request:
    op: Any = None  # a backend reads the plan and the arrays alone
    return Request(op, len(next(iter(arrays.values()))), 0, 1, 4, arrays)


def sum_plan(n: int, size: int, *, lanes: int = 2, block: int = 64) -> LaunchPlan:
    buffers = tuple(Buffer(b, r, 4 * size) for b, r in (("a", "in"), ("b", "in"), ("out", "out")))  # type: ignore[arg-type]
    pieces = []
    for start in range(0, n, size):
        count = min(size, n - start)
        copies = tuple(Transfer(x, x, 4 * start, 4 * count) for x in "ab")
        launch = Launch(ADD, -(-count // block), block, {"n": count})
        pieces.append(Piece(copies, (launch,), (Transfer("out", "result", 4 * start, 4 * count),)))
    return LaunchPlan(buffers, lanes, tuple(pieces))


def words(n: int, seed: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).integers(0, 2**32, n, dtype=np.uint32)


@pytest.mark.parametrize(("n", "size"), [(1, 1), (63, 64), (64, 64), (65, 64), (10_000, 10_000), (10_007, 1024)])
def test_sum_in_pieces(backend: CpuBackend, n: int, size: int) -> None:
    a, b, result = words(n, 1), words(n, 2), np.zeros(n, np.uint32)
    outcome = backend.run(request_of(a=a, b=b), sum_plan(n, size), result.data.cast("B"))
    assert (result == a + b).all()
    assert outcome.launches == -(-n // size)
    assert outcome.kernel_ms > 0


@pytest.mark.parametrize("offset", [1, 4, 8])
def test_host_arrays_that_are_not_aligned(backend: CpuBackend, offset: int) -> None:
    n = 256
    blob, out = bytearray(4 * n + 16), bytearray(b"\x11" * (4 * n + 16))
    a = np.frombuffer(blob, np.uint32, n, offset)
    a[:] = words(n, 3)
    buffers = (Buffer("a", "in", 4 * n), Buffer("tmp", "scratch", 4 * n), Buffer("out", "out", 4 * n))
    launches = tuple(Launch(Kernel(UNIT, name, STAGE, 64), 1, 64, {"n": n}) for name in ("stage", "unstage"))
    piece = Piece((Transfer("a", "a", 0, 4 * n),), launches, (Transfer("out", "result", 0, 4 * n),))
    backend.run(request_of(a=a), LaunchPlan(buffers, 1, (piece,)), memoryview(out)[offset : offset + 4 * n])
    assert bytes(out[offset : offset + 4 * n]) == a.tobytes()
    assert out[:offset] == b"\x11" * offset
    assert out[offset + 4 * n :] == b"\x11" * (16 - offset)


def test_two_arrays_in_one_buffer(backend: CpuBackend) -> None:
    """The second begins behind the first; the host's arrays stay as they are."""
    n = 100
    a, b, result = words(n, 1), words(n, 2), np.zeros(n, np.uint32)
    buffers = (Buffer("both", "in", 8 * n), Buffer("out", "out", 4 * n))
    copies = (Transfer("both", "b", 0, 4 * n, at=4 * n), Transfer("both", "a", 0, 4 * n))
    launch = Launch(ADD, 2, 64, {"n": n}, pointers={"a": "both", "b": Part("both", 4 * n)})
    piece = Piece(copies, (launch,), (Transfer("out", "result", 0, 4 * n),))
    backend.run(request_of(a=a, b=b), LaunchPlan(buffers, 1, (piece,)), result.data.cast("B"))
    assert (result == a + b).all()
    assert (a == words(n, 1)).all() and (b == words(n, 2)).all()
    beyond = Piece((copies[0], Transfer("both", "a", 0, 4 * n, at=4 * n + 4)), (launch,), piece.copies_out)
    with pytest.raises(ServiceError, match="out of range"):
        backend.run(request_of(a=a, b=b), LaunchPlan(buffers, 1, (beyond,)), result.data.cast("B"))


def test_bytes_that_no_kernel_wrote_are_poisoned(backend: CpuBackend) -> None:
    """A short launch leaves the poison, never what the memory held before."""
    n = 128
    a, b, result = words(n, 1), words(n, 2), np.zeros(n, np.uint32)
    plan = sum_plan(n, n)
    piece = plan.pieces[0]
    short = Piece(piece.copies_in, (Launch(ADD, 1, 64, {"n": 64}),), piece.copies_out)
    backend.run(request_of(a=a, b=b), LaunchPlan(plan.buffers, 1, (short,)), result.data.cast("B"))
    assert (result[:64] == (a + b)[:64]).all()
    assert (result[64:] == 0xA5A5A5A5).all()


def test_several_batches_in_flight(backend: CpuBackend) -> None:
    n = 5000
    batches = [(words(n, s), words(n, s + 100), np.zeros(n, np.uint32)) for s in range(8)]
    tickets = [backend.start(request_of(a=a, b=b), sum_plan(n, 777), r.data.cast("B")) for a, b, r in batches]
    for ticket, (a, b, result) in zip(tickets, batches, strict=True):
        backend.finish(ticket)
        assert (result == a + b).all()


def test_nothing_to_do(backend: CpuBackend) -> None:
    outcome = backend.run(request_of(a=words(0, 1)), LaunchPlan((), 1, ()), memoryview(bytearray()))
    assert outcome.launches == 0


def test_a_plan_out_of_range_is_refused(backend: CpuBackend) -> None:
    n = 64
    a, b, result = words(n, 1), words(n, 2), np.zeros(n - 1, np.uint32)
    with pytest.raises(ServiceError) as caught:
        backend.run(request_of(a=a, b=b), sum_plan(n, n), result.data.cast("B"))
    assert caught.value.status is Status.INTERNAL


def test_a_unit_that_does_not_compile_names_itself(backend: CpuBackend) -> None:
    with pytest.raises(ServiceError, match=r"basics\.cpp"):
        backend.library(Unit("basics", (WORDS,)))
    with pytest.raises(ServiceError, match=r"entry/absent\.cu"):
        backend.library(Unit("absent", ()))


def test_no_compiler_gives_the_remedy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(host_compiler, "find_spec", lambda name: None)
    with pytest.raises(ServiceError, match=r"limbd\[zig\]") as caught:
        CpuBackend(cache=Cache(tmp_path))
    assert caught.value.status is Status.NO_DEVICE


def test_a_chosen_compiler_is_used_or_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "/nonexistent/c++")
    with pytest.raises(ServiceError, match=r"\$CXX"):
        host_compiler.find()


def test_each_thread_keeps_to_a_processor_of_its_own() -> None:
    """Where there is one for each: threads that share one take twice as long, and the scheduler does not see it in time."""
    processors = os.sched_getaffinity(0)
    assert _processors_of_threads(CpuBackend()) == [{processor} for processor in sorted(processors)]
    assert os.sched_getaffinity(0) == processors, "the caller's thread is left alone"
    more = len(processors) + 1
    assert _processors_of_threads(CpuBackend(threads=more)) == [processors] * more


def _processors_of_threads(backend: CpuBackend) -> list[set[int]]:
    """Of all the threads that work on launches; each waits for the others, so that none is asked twice."""
    threads = backend.traits().multiprocessors
    together = threading.Barrier(threads)

    def processors() -> set[int]:
        together.wait(timeout=10)
        return os.sched_getaffinity(0)

    found = [backend._workers.submit(processors) for _ in range(threads)]
    try:
        return sorted((each.result() for each in found), key=min)
    finally:
        backend.close()
