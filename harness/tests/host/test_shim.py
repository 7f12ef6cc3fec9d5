"""The host shim: what kernels may rely on (barriers, warp functions, shared memory), and that broken rules end the
process with a message instead of hanging or computing garbage."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from limbd.kernels.source import ROOT, Sources
from limbd.ops.base import Buffer, Kernel, Launch, LaunchPlan, Member, Piece, Request, Struct, Transfer, Unit
from limbd.worker.device import host_compiler
from limbd.worker.device.cache import Cache
from limbd.worker.device.cpu import CpuBackend
from limbd.worker.device.host_compiler import HostCompiler, Variant

ARGS = Struct("shim_args", (Member("in", "in"), Member("out", "out"), Member("n", "u32")))
UNIT = Unit("shim", (ARGS,))
MAX_BLOCK = 1024

ENTRY = """
#include "base/platform.cuh"
#include "unit.cuh"

__device__ __forceinline__ uint32_t index() { return blockIdx.x * blockDim.x + threadIdx.x; }

// Inclusive scan of each block: shuffles within warps, shared memory between them.
extern "C" __global__ void __launch_bounds__(1024) block_scan(const shim_args args) {
    __shared__ uint32_t sums[32];
    DYNAMIC_SHARED(uint32_t, scanned);
    const uint32_t i = index(), lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    uint32_t value = i < args.n ? args.in[i] : 0;
    for (uint32_t step = 1; step < 32; step *= 2) {
        const uint32_t other = __shfl_up_sync(0xffffffffu, value, step);
        value += lane >= step ? other : 0;
    }
    if (lane == 31) sums[warp] = value;
    __syncthreads();
    for (uint32_t w = 0; w < warp; ++w) value += sums[w];
    scanned[threadIdx.x] = value;
    __syncthreads();
    if (i < args.n) args.out[i] = scanned[threadIdx.x];
}

// Every shuffle, vote and match in halves of a warp, mixed into one word a thread.
extern "C" __global__ void warp_functions(const shim_args args) {
    const uint32_t i = index(), lane = threadIdx.x % 32;
    const uint32_t value = args.in[i];
    const uint32_t mask = lane < 16 ? 0xffffu : 0xffff0000u;
    uint32_t mix = 0;
    mix = 31 * mix + __shfl_sync(mask, value, int(lane / 4), 16);
    mix = 31 * mix + __shfl_xor_sync(mask, value, 5, 16);
    mix = 31 * mix + __shfl_down_sync(mask, value, 3, 16);
    mix = 31 * mix + uint32_t(__shfl_up_sync(mask, uint64_t(value) << 32, 2, 16) >> 32);
    mix = 31 * mix + __ballot_sync(mask, value % 3 == 0);
    mix = 31 * mix + uint32_t(__any_sync(mask, value % 64 == 0));
    mix = 31 * mix + uint32_t(__all_sync(mask, value % 64 != 1));
    mix = 31 * mix + __match_any_sync(mask, value % 4);
    __syncwarp(mask);
    args.out[i] = mix;
}

extern "C" __global__ void block_votes(const shim_args args) {
    const int odd = int(args.in[index()] % 2);
    const int count = __syncthreads_count(odd), any = __syncthreads_or(odd), all = __syncthreads_and(odd);
    args.out[index()] = uint32_t(count * 4 + any * 2 + all);
}

// Blocks on several threads add to one word.
extern "C" __global__ void histogram(const shim_args args) {
    if (index() < args.n) atomicAdd(&args.out[args.in[index()] % 16], 1u);
    if (index() < args.n) atomicMax(&args.out[16], args.in[index()]);
}

extern "C" __global__ void intrinsics(const shim_args args) {
    const uint32_t i = index(), x = args.in[i];
    uint32_t mix = 0;
    mix = 31 * mix + uint32_t(__clz(int(x)));
    mix = 31 * mix + uint32_t(__ffs(int(x)));
    mix = 31 * mix + uint32_t(__popc(x));
    mix = 31 * mix + __brev(x);
    mix = 31 * mix + __umulhi(x, 0x9e3779b9u);
    mix = 31 * mix + __funnelshift_l(x, ~x, 37);
    mix = 31 * mix + __funnelshift_r(x, ~x, 37);
    mix = 31 * mix + uint32_t(__umul64hi(uint64_t(x) << 32 | x, 0xfedcba9876543210ull) >> 7);
    mix = 31 * mix + min(x, 1000u) + max(x, 1000u);
    args.out[i] = mix;
}

// --- kernels that break a rule ---

extern "C" __global__ void divergent_barrier(const shim_args args) {
    if (threadIdx.x < args.n) __syncthreads();
}
extern "C" __global__ void two_barriers(const shim_args args) {
    if (threadIdx.x < args.n) {
        __syncthreads();
    } else {
        __syncthreads();
    }
}
extern "C" __global__ void mask_without_caller(const shim_args args) { __shfl_sync(0xfffffffeu, args.n, 1); }
extern "C" __global__ void mask_beyond_block(const shim_args args) { __shfl_sync(0xffffffffu, args.n, 1); }
extern "C" __global__ void different_masks(const shim_args args) {
    args.out[0] = __ballot_sync(threadIdx.x == 3 ? 0xffu : 0xffffffffu, 1);
}
extern "C" __global__ void exited_lane(const shim_args args) {
    if (threadIdx.x == 0) return;
    __syncwarp(0xffffffffu);
    args.out[0] = 1;
}
extern "C" __global__ void source_outside_mask(const shim_args args) {
    if (threadIdx.x < 16) args.out[0] = __shfl_sync(0xffffu, args.n, 20);
}
extern "C" __global__ void trap(const shim_args args) {
    if (threadIdx.x == args.n) __trap();
}
extern "C" __global__ void broken_contract(const shim_args args) { VERIFY(threadIdx.x < args.n); }
extern "C" __global__ void stale_shared(const shim_args args) {
    __shared__ uint32_t kept;
    DYNAMIC_SHARED(uint32_t, dynamic);
    args.out[index()] = kept == 0xa5a5a5a5u && dynamic[threadIdx.x] == 0xa5a5a5a5u;
    kept = dynamic[threadIdx.x] = 7;
}

__device__ __noinline__ uint32_t deep(volatile uint32_t* above, uint32_t depth) {
    volatile uint32_t here[256];
    here[0] = above[0] + 1;
    return depth == 0 ? here[0] : deep(here, depth - 1) + here[0];
}
extern "C" __global__ void deep_stack(const shim_args args) {
    volatile uint32_t start = 0;
    args.out[index()] = deep(&start, args.n);
    __syncthreads();
}
"""


def make_backend(folder: Path, *options: str, threads: int = 2, variant: Variant = Variant.VERIFY) -> CpuBackend:
    (folder / "entry").mkdir(exist_ok=True)
    (folder / "entry" / "shim.cu").write_text(ENTRY)
    found = host_compiler.find()
    compiler = HostCompiler((*found.command, *options), found.version)
    return CpuBackend(
        cache=Cache(folder / "cache"),
        compiler=compiler,
        sources=Sources((folder, ROOT)),
        variant=variant,
        threads=threads,
    )


def launch(
    backend: CpuBackend,
    name: str,
    data: np.ndarray[Any, Any],
    *,
    n: int,
    grid: int,
    block: int,
    shared: int = 0,
    synchronises: bool = True,
    out: int | None = None,
) -> np.ndarray[Any, Any]:
    """The words that the kernel wrote (zero before it) for these inputs."""
    result = np.zeros(data.size if out is None else out, np.uint32)
    kernel = Kernel(UNIT, name, ARGS, MAX_BLOCK, synchronises)
    piece = Piece(
        (Transfer("in", "in", 0, data.nbytes),),
        (Launch(kernel, grid, block, {"n": n}, shared),),
        (Transfer("out", "result", 0, result.nbytes),),
    )
    plan = LaunchPlan((Buffer("in", "in", data.nbytes), Buffer("out", "out", result.nbytes)), 1, (piece,))
    op: Any = None
    backend.run(Request(op, n, 0, 1, 4, {"in": data}), plan, result.data.cast("B"))
    return result


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("shim")


@pytest.fixture(scope="module")
def backend(folder: Path) -> Iterator[CpuBackend]:
    backend = make_backend(folder)
    yield backend
    backend.close()


def words(n: int, seed: int = 1) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).integers(0, 2**32, n, dtype=np.uint32)


@pytest.mark.parametrize("block", [32, 96, 256, 1024])
@pytest.mark.parametrize("n", [1, 31, 1000, 5000])
def test_block_scan(backend: CpuBackend, block: int, n: int) -> None:
    data, grid = words(n), -(-n // block)
    result = launch(backend, "block_scan", data, n=n, grid=grid, block=block, shared=4 * block)
    expected = [np.cumsum(data[i : i + block], dtype=np.uint32) for i in range(0, n, block)]
    assert (result == np.concatenate(expected)).all()


def test_block_scan_with_posix_contexts(folder: Path) -> None:
    """The switch of processors that have no assembly one."""
    backend, data = make_backend(folder, "-DLIMBD_UCONTEXT"), words(1000)
    result = launch(backend, "block_scan", data, n=1000, grid=4, block=256, shared=1024)
    backend.close()
    expected = [np.cumsum(data[i : i + 256], dtype=np.uint32) for i in range(0, 1000, 256)]
    assert (result == np.concatenate(expected)).all()


def test_warp_functions(backend: CpuBackend) -> None:
    data = words(256)
    result = launch(backend, "warp_functions", data, n=256, grid=4, block=64)
    for i in range(256):
        first = i - i % 16
        half, lane = [int(v) for v in data[first : first + 16]], i % 16
        shift, value = 16 * (i // 16 % 2), int(data[i])
        up = half[lane - 2] if lane >= 2 else value
        down = half[lane + 3] if lane + 3 < 16 else value
        bits = [
            half[(i % 32) // 4 % 16],
            half[lane ^ 5],
            down,
            up,
            sum(1 << k + shift for k, v in enumerate(half) if v % 3 == 0),
            int(any(v % 64 == 0 for v in half)),
            int(all(v % 64 != 1 for v in half)),
            sum(1 << k + shift for k, v in enumerate(half) if v % 4 == value % 4),
        ]
        mix = 0
        for word in bits:
            mix = (31 * mix + word) % 2**32
        assert result[i] == mix, i


@pytest.mark.parametrize("odd", ["none", "some", "all"])
def test_block_votes(backend: CpuBackend, odd: str) -> None:
    data = words(96) & np.uint32(0xFFFFFFFE)
    data |= np.uint32({"none": 0, "some": 0, "all": 1}[odd])
    if odd == "some":
        data[5] |= np.uint32(1)
    count = int((data % 2).sum())
    result = launch(backend, "block_votes", data, n=96, grid=1, block=96)
    assert (result == count * 4 + (count > 0) * 2 + (count == 96)).all()


def test_atomics_of_blocks_on_several_threads(backend: CpuBackend) -> None:
    data = words(50_000)
    result = launch(backend, "histogram", data, n=data.size, grid=782, block=64, synchronises=False, out=17)
    assert (result[:16] == np.bincount(data % 16, minlength=16)).all()
    assert result[16] == data.max()


def test_intrinsics(backend: CpuBackend) -> None:
    data = np.concatenate([words(60), np.array([0, 1, 0x80000000, 0xFFFFFFFF], np.uint32)])
    result = launch(backend, "intrinsics", data, n=64, grid=1, block=64, synchronises=False)
    for x, got in zip((int(v) for v in data), result, strict=True):
        inverted, wide = ~x & 0xFFFFFFFF, x << 32 | x
        values = [
            32 - x.bit_length(),
            (x & -x).bit_length(),
            x.bit_count(),
            int(f"{x:032b}"[::-1], 2),
            x * 0x9E3779B9 >> 32,
            ((inverted << 32 | x) << 5 >> 32) & 0xFFFFFFFF,
            (inverted << 32 | x) >> 5,
            (wide * 0xFEDCBA9876543210 >> 64) >> 7,
            min(x, 1000) + max(x, 1000),
        ]
        mix = 0
        for value in values:
            mix = (31 * mix + value) % 2**32
        assert got == mix, hex(x)


def test_shared_memory_is_poisoned_before_each_block(backend: CpuBackend) -> None:
    result = launch(backend, "stale_shared", words(64), n=64, grid=64, block=1, shared=4, synchronises=False)
    assert (result == 1).all()


def test_a_deep_call_fits_its_stack(backend: CpuBackend) -> None:
    depth = 40  # about 40 KiB: below a fiber's stack
    result = launch(backend, "deep_stack", words(64), n=depth, grid=1, block=64)
    assert (result == (depth + 1) * (depth + 2) // 2).all()


BROKEN = {
    "divergent_barrier": (64, 5, "divergent synchronisation"),
    "two_barriers": (64, 5, "divergent synchronisation"),
    "mask_without_caller": (32, 0, "does not name the calling lane 0"),
    "mask_beyond_block": (20, 0, r"names lanes that the warp (20 lanes) lacks"),
    "different_masks": (32, 0, "warp function"),
    "exited_lane": (32, 0, "divergent synchronisation"),
    "source_outside_mask": (32, 0, "reads lane 20, which is not in the mask"),
    "trap": (32, 7, "thread 7: __trap()"),
    "broken_contract": (32, 9, "VERIFY(threadIdx.x < args.n) failed"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_rule_ends_the_process_with_a_message(name: str, folder: Path, backend: CpuBackend) -> None:
    block, n, message = BROKEN[name]
    done = run_alone(folder, name, block, n, synchronises=True)
    assert done.returncode == -6, (done.returncode, done.stderr)
    assert f"limbd kernel {name}, block 0" in done.stderr
    assert message in done.stderr


def test_a_kernel_declared_without_synchronisation_may_not_synchronise(folder: Path, backend: CpuBackend) -> None:
    done = run_alone(folder, "block_votes", 32, 32, synchronises=False)
    assert done.returncode == -6
    assert "declared as one that does not synchronise" in done.stderr


def test_a_stack_overflow_is_a_fault_at_once(folder: Path, backend: CpuBackend) -> None:
    done = run_alone(folder, "deep_stack", 64, 10_000, synchronises=True)
    assert done.returncode == -11, (done.returncode, done.stderr)


def test_a_stack_overflow_into_a_neighbour_is_found(folder: Path, backend: CpuBackend) -> None:
    """140 KiB of 128: the last thread of a block runs into the stack of the one before, which has ended its own work."""
    done = run_alone(folder, "deep_stack", 8, 140, synchronises=True)
    assert done.returncode in (-6, -11), (done.returncode, done.stderr)


def test_units_and_threads_do_not_use_up_the_mappings(folder: Path) -> None:
    """A process may have 65,530 of them; a worker has a thread a processor, and units by the dozen."""
    backend = make_backend(folder, threads=1)
    before = len(Path("/proc/self/maps").read_text().splitlines())
    launch(backend, "deep_stack", words(256), n=1, grid=1, block=256)
    assert len(Path("/proc/self/maps").read_text().splitlines()) - before < 100
    backend.close()


def test_fibers_under_the_sanitizers(folder: Path) -> None:
    """AddressSanitizer follows the switches between stacks: a clean kernel is not reported."""
    backend = make_backend(folder, variant=Variant.SANITIZE)
    backend.compile([UNIT])
    environment = {**os.environ, **backend.compiler.sanitizer_environment()}
    backend.close()
    command = (sys.executable, __file__, str(folder), "sanitized")
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=200)
    assert (done.returncode, done.stdout) == (0, "clean\n"), done.stderr[-4000:]


def run_alone(folder: Path, name: str, block: int, n: int, *, synchronises: bool) -> subprocess.CompletedProcess[str]:
    command = (sys.executable, __file__, str(folder), name, str(block), str(n), str(int(synchronises)))
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def main(where: str, kernel: str, *shape: str) -> None:
    if kernel == "sanitized":
        backend = make_backend(Path(where), variant=Variant.SANITIZE)
        test_block_scan(backend, 256, 5000)
        test_warp_functions(backend)
        test_a_deep_call_fits_its_stack(backend)
        backend.close()
        print("clean")
    else:
        block, n, fibers = map(int, shape)
        backend = make_backend(Path(where), threads=1)
        launch(backend, kernel, words(1024), n=n, grid=1, block=block, synchronises=bool(fibers))


if __name__ == "__main__":
    main(*sys.argv[1:])
