"""A lane on a device: a stream, the memory of the plan's buffers, and what is enqueued on them."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from limbd.ops.base import Buffer, Launch, Request, Transfer
from limbd.ops.status import ServiceError, Status
from limbd.worker.device.cuda_context import CudaContext

Bytes = npt.NDArray[np.uint8]

# Buffers start at multiples of this in their lane's block: whole cache lines and sectors.
ALIGNMENT = 256

POISON_WORD = 0xA5A5A5A5


@dataclass(frozen=True)
class Prepared:
    """A kernel with its grid, block and shared bytes, and its one parameter."""

    function: Any
    shape: tuple[int, int, int, int, int, int, int]
    parameter: Any

    def enqueue(self, context: CudaContext, stream: Any) -> None:
        # The driver copies the parameter before it returns: the array of pointers has to live only until then.
        pointers = (ctypes.c_void_p * 1)(ctypes.addressof(self.parameter))
        context.call("cuLaunchKernel", self.function, *self.shape, stream, ctypes.addressof(pointers), 0)


@dataclass(frozen=True)
class Lane:
    """blocks: the addresses of its allocations, `addresses` those of the buffers in them, which `buffers` describes."""

    context: CudaContext
    stream: Any
    blocks: tuple[int, ...]
    buffers: Mapping[str, Buffer]
    addresses: Mapping[str, int]

    @classmethod
    def create(cls, context: CudaContext, buffers: Sequence[Buffer], *, separate: bool = False) -> Lane:
        """separate: an allocation of its own and of its exact size for each buffer, so that a memory checker sees where
        it ends; else one block for all. Raises CudaError with code OUT_OF_MEMORY; nothing is held then."""
        groups = [(buffer,) for buffer in buffers] if separate else [buffers]
        stream = context.take_stream()
        blocks: list[int] = []
        addresses: dict[str, int] = {}
        try:
            for group in groups:
                offsets, size = layout(group)
                blocks.append(context.allocate(group[0].nbytes if separate else size, stream))
                addresses |= {name: blocks[-1] + offset for name, offset in offsets.items()}
        except BaseException:
            for block in blocks:
                context.free(block, stream)
            context.give_stream(stream)
            raise
        return cls(context, stream, tuple(blocks), {b.name: b for b in buffers}, addresses)

    def on(self, stream: Any) -> Lane:
        """The same memory on another stream."""
        return replace(self, stream=stream)

    def release(self) -> None:
        for block in self.blocks:
            self.context.free(block, self.stream)
        self.context.give_stream(self.stream)

    def wait(self) -> None:
        self.context.call("cuStreamSynchronize", self.stream)

    def record(self, event: Any) -> None:
        self.context.call("cuEventRecord", event, self.stream)

    def copy_in(self, copy: Transfer, arrays: Mapping[str, Bytes]) -> None:
        host = self._host_address(copy, arrays)
        self.context.call("cuMemcpyHtoDAsync", self.addresses[copy.buffer], host, copy.nbytes, self.stream)

    def copy_out(self, copy: Transfer, arrays: Mapping[str, Bytes]) -> None:
        host = self._host_address(copy, arrays)
        self.context.call("cuMemcpyDtoHAsync", host, self.addresses[copy.buffer], copy.nbytes, self.stream)

    def prepare(self, launch: Launch, function: Any) -> Prepared:
        """The launch with its struct packed for this lane's buffers."""
        packed = launch.kernel.struct.pack(launch.values, self.addresses)
        shape = (launch.grid, 1, 1, launch.block, 1, 1, launch.shared)
        return Prepared(function, shape, ctypes.create_string_buffer(packed, len(packed)))

    def launch(self, launch: Launch, function: Any) -> None:
        self.prepare(launch, function).enqueue(self.context, self.stream)

    def poison(self) -> None:
        """Fills what kernels write, so that bytes which no kernel wrote show. The layout leaves room for whole words."""
        for buffer in self.buffers.values():
            if buffer.role != "in" and buffer.nbytes:
                words = -(-buffer.nbytes // 4)
                self.context.call("cuMemsetD32Async", self.addresses[buffer.name], POISON_WORD, words, self.stream)

    def _host_address(self, copy: Transfer, arrays: Mapping[str, Bytes]) -> int:
        """Raises ServiceError(INTERNAL) if the plan reaches beyond an array or a buffer."""
        array = arrays[copy.array]
        beyond = copy.offset + copy.nbytes > array.nbytes or copy.nbytes > self.buffers[copy.buffer].nbytes
        if copy.offset < 0 or beyond:
            raise ServiceError(Status.INTERNAL, f"plan: {copy} is out of range of its array or buffer")
        return int(array.__array_interface__["data"][0]) + copy.offset


def layout(buffers: Sequence[Buffer]) -> tuple[dict[str, int], int]:
    """Offsets of a lane's buffers in its block, and the block's size, both multiples of ALIGNMENT."""
    offsets, at = {}, 0
    for buffer in buffers:
        offsets[buffer.name] = at
        at += -(-buffer.nbytes // ALIGNMENT) * ALIGNMENT
    return offsets, max(at, ALIGNMENT)


def host_arrays(request: Request, result: memoryview) -> dict[str, Bytes]:
    """The host memory that Transfers name, as flat bytes."""
    arrays = {name: np.ascontiguousarray(a).reshape(-1).view(np.uint8) for name, a in request.arrays.items()}
    arrays["result"] = np.frombuffer(result, np.uint8) if len(result) else np.empty(0, np.uint8)
    return arrays
