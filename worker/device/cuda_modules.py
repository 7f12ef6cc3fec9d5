"""Kernels on a device: a unit's source -> cubin (compiled or from the cache) -> module -> functions."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from limbd.kernels.source import MissingSource, Source, Sources
from limbd.ops.base import Launch, LaunchPlan, Unit
from limbd.ops.status import ServiceError, Status
from limbd.worker.device.cache import Cache
from limbd.worker.device.cuda_context import CudaContext
from limbd.worker.device.nvrtc import Nvrtc, Target

# A block's shared memory above this, what the kernel declares and what the launch adds, has to be asked for (CUDA C++
# Programming Guide, compute capabilities).
PLAIN_SHARED_BYTES = 48 << 10


class CudaModules:
    """The units that this process has loaded; each is compiled and loaded once, at its first use or by prepare()."""

    def __init__(
        self, context: CudaContext, nvrtc: Nvrtc, target: Target, cache: Cache, sources: Sources, *, verify: bool
    ) -> None:
        self._context = context
        self._nvrtc = nvrtc
        self._target = target
        self._cache = cache
        self._sources = sources
        self._verify = verify
        self._lock = threading.Lock()
        self._unit_locks: dict[Unit, threading.Lock] = {}
        self._modules: dict[Unit, Any] = {}
        self._loose: list[Any] = []
        self._functions: dict[tuple[Unit, str], Any] = {}
        self._shared_allowed: dict[tuple[Unit, str], int] = {}

    def prepare(self, units: Iterable[Unit], threads: int) -> None:
        """Compiles and loads units, several at a time."""
        with ThreadPoolExecutor(threads, "limbd-compile") as pool:
            for done in [pool.submit(self._load_here, unit) for unit in units]:
                done.result()

    def load(self, plan: LaunchPlan) -> None:
        """Everything that the plan launches, so that nothing is compiled between its launches; what is missing, several at a
        time, because a compile takes seconds."""
        units = {launch.kernel.unit for launch in plan.launches()}
        missing = [unit for unit in units if unit not in self._modules]
        if len(missing) > 1:
            self.prepare(missing, len(os.sched_getaffinity(0)))
        for launch in plan.launches():
            self.function(launch)

    def function(self, launch: Launch) -> Any:
        """The kernel's handle, allowed the launch's shared memory. Raises ServiceError."""
        key = (launch.kernel.unit, launch.kernel.name)
        function = self._functions.get(key)
        if function is None:
            name = launch.kernel.name.encode()
            function = self._context.call("cuModuleGetFunction", self._module(launch.kernel.unit), name)
            self._functions[key] = function
            attribute = self._context.call.api.CUfunction_attribute.CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES
            declared = int(self._context.call("cuFuncGetAttribute", attribute, function))
            self._shared_allowed[key] = PLAIN_SHARED_BYTES - declared
        if launch.shared > self._shared_allowed[key]:
            attribute = self._context.call.api.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            self._context.call("cuFuncSetAttribute", function, attribute, launch.shared)
            self._shared_allowed[key] = launch.shared
        return function

    def image(self, unit: Unit) -> bytes:
        """What is loaded: a cubin, or PTX text with a zero behind it. Raises ServiceError."""
        try:
            return self._compile(self._sources.cuda(unit.entry, unit.header()))
        except MissingSource as error:
            raise ServiceError(Status.INTERNAL, str(error)) from error

    def loose_function(self, path: str, name: str) -> Any:
        """A kernel of a file that belongs to no op and includes nothing."""
        source = Source(Path(path).name, self._sources.read(path), (), (name,))
        module = self._context.call("cuModuleLoadData", self._compile(source))
        with self._lock:
            self._loose.append(module)
        return self._context.call("cuModuleGetFunction", module, name.encode())

    def close(self) -> None:
        for module in (*self._modules.values(), *self._loose):
            self._context.call("cuModuleUnload", module)
        self._modules.clear()
        self._loose.clear()
        self._functions.clear()

    def _load_here(self, unit: Unit) -> None:
        self._context.bind()
        self._module(unit)

    def _module(self, unit: Unit) -> Any:
        with self._lock:
            lock = self._unit_locks.setdefault(unit, threading.Lock())
        with lock:
            if unit not in self._modules:
                self._modules[unit] = self._context.call("cuModuleLoadData", self.image(unit))
            return self._modules[unit]

    def _compile(self, source: Source) -> bytes:
        target, verify = self._target, self._verify
        key = self._nvrtc.key(source, target, verify=verify)
        image = self._cache.load(key, lambda: self._nvrtc.compile(source, target, verify=verify).data)
        return image if target.form == "cubin" else image + b"\0"
