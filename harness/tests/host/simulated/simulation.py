"""What the scenarios have in common: the simulated driver with real kernels in it, and batches with the check of their results."""

from __future__ import annotations

import ctypes
import random
from pathlib import Path
from typing import Any

import numpy as np

from limbd.ops import by_name
from limbd.ops.base import Call, LaunchPlan, Request, Struct, Traits, Unit
from limbd.ops.ntt import NTT, param_of
from limbd.ops.params.fields import FIELDS
from limbd.ops.params.layout import pack
from limbd.ops.status import LimbdError, Status
from limbd.ops.tuning import LaneRow
from limbd.worker.device.cache import Cache
from limbd.worker.device.cpu import CpuBackend
from limbd.worker.device.cuda import CudaBackend

# CUDA's codes.
ILLEGAL_ADDRESS, INVALID_VALUE, NOT_PERMITTED = 700, 1, 800

MODULUS = (1 << 255) - 31  # eight limbs, odd, not 2^256 - c
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
