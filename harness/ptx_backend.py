"""A backend that interprets the PTX of the kernels: the device's own carry chains, checked without a device.

About a millisecond an element of mod-mul, so it is for tests. Kernels with barriers of blocks or atomics are refused.
"""

from __future__ import annotations

import platform

import numpy as np

from limbd.harness.ptx import Memory, PtxKernel, load
from limbd.kernels.source import Sources
from limbd.ops.base import Kernel, LaunchPlan, Piece, Request, Traits
from limbd.worker.device.base import BackendInfo, Outcome
from limbd.worker.device.nvrtc import Nvrtc, Target

# The lowest architecture that is compiled for: its PTX is what the others run too.
ARCH = 75

POISON = b"\xa5"


class PtxBackend:
    """Runs plans one piece after the other. Raises ServiceError(NO_DEVICE) where NVRTC is not installed."""

    def __init__(self, *, arch: int = ARCH, verify: bool = False, sources: Sources | None = None) -> None:
        self._nvrtc = Nvrtc()
        self._target = Target(arch, "ptx")
        self._verify = verify
        self._sources = sources or Sources()
        self._kernels: dict[Kernel, PtxKernel] = {}

    def describe(self) -> BackendInfo:
        return BackendInfo("ptx", platform.machine(), self._target.name, self.traits().memory, self._nvrtc.full_version)

    def traits(self) -> Traits:
        return Traits("cuda", f"sm_{self._target.arch}", 1, 1 << 30)

    def register(self, memory: memoryview) -> None:
        """Buffers are copied."""

    def unregister(self, memory: memoryview) -> None:
        """Nothing was registered."""

    def start(self, request: Request, plan: LaunchPlan, result: memoryview) -> Outcome:
        arrays = {name: array.tobytes() for name, array in request.arrays.items()}
        for piece in plan.pieces:
            self._run_piece(plan, piece, arrays, result)
        return Outcome(launches=sum(len(piece.launches) for piece in plan.pieces))

    def finish(self, ticket: Outcome) -> Outcome:
        return ticket

    def run(self, request: Request, plan: LaunchPlan, result: memoryview) -> Outcome:
        return self.finish(self.start(request, plan, result))

    def forget(self, key: str) -> None:
        """No tables are kept."""

    def close(self) -> None:
        """Nothing is held."""

    def kernel(self, kernel: Kernel) -> PtxKernel:
        """The translated kernel, compiled at its first use. Raises UnknownInstruction."""
        if kernel not in self._kernels:
            source = self._sources.cuda(kernel.unit.entry, kernel.unit.header())
            ptx = self._nvrtc.compile(source, self._target, verify=self._verify).data.decode()
            self._kernels[kernel] = load(ptx, kernel.name)
        return self._kernels[kernel]

    def _run_piece(self, plan: LaunchPlan, piece: Piece, arrays: dict[str, bytes], result: memoryview) -> None:
        memory = Memory()
        held = {buffer.name: bytearray(POISON * buffer.nbytes) for buffer in plan.buffers}
        addresses = {name: memory.place(data) for name, data in held.items()}
        for copy in piece.copies_in:
            data = arrays[copy.array][copy.offset : copy.offset + copy.nbytes]
            held[copy.buffer][copy.at : copy.at + copy.nbytes] = data
        for launch in piece.launches:
            packed = launch.pack(addresses)
            self.kernel(launch.kernel).launch(memory, packed, launch.grid, launch.block)
        out = np.frombuffer(result, np.uint8)
        for copy in piece.copies_out:
            out[copy.offset : copy.offset + copy.nbytes] = np.frombuffer(held[copy.buffer], np.uint8, copy.nbytes)
