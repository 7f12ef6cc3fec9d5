"""A lane on a device: a stream, the memory of the plan's buffers, and what is enqueued on them."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from limbd.ops.base import Buffer, Launch, LaunchPlan, Request, Transfer
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
    """blocks: allocations that it gives back, `addresses`: where its buffers are, which `buffers` describes."""

    context: CudaContext
    stream: Any
    blocks: tuple[int, ...]
    buffers: Mapping[str, Buffer]
    addresses: Mapping[str, int]

    def on(self, stream: Any) -> Lane:
        """The same memory on another stream."""
        return replace(self, stream=stream)

    def release(self) -> None:
        """Gives back its memory and stream; every lane of the plan has ended."""
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


def create_lanes(context: CudaContext, plan: LaunchPlan, *, separate: bool) -> list[Lane]:
    """The plan's lanes. One block holds the buffers of all of them: an allocation costs as much as a launch.

    separate: an allocation of its own and of its exact size for each buffer instead, so that a memory checker sees where
    it ends. Raises CudaError with code OUT_OF_MEMORY; nothing is held then.
    """
    offsets, size = layout(plan.buffers)
    streams = [context.take_stream() for _ in range(plan.lanes)]
    blocks: list[int] = []
    try:
        if separate:
            blocks = _allocate_each(context, plan, streams[0])
            starts = dict(zip(((i, b.name) for i in range(plan.lanes) for b in plan.buffers), blocks, strict=True))
        else:
            blocks.append(context.allocate(size * plan.lanes, streams[0]))
            starts = {(i, name): blocks[0] + i * size + at for i in range(plan.lanes) for name, at in offsets.items()}
        _order_after(context, streams[0], streams[1:])
    except BaseException:
        for block in blocks:
            context.free(block, streams[0])
        for stream in streams:
            context.give_stream(stream)
        raise
    buffers = {b.name: b for b in plan.buffers}
    return [
        Lane(context, stream, tuple(blocks) if i == 0 else (), buffers, {name: starts[i, name] for name in buffers})
        for i, stream in enumerate(streams)
    ]


def _allocate_each(context: CudaContext, plan: LaunchPlan, stream: Any) -> list[int]:
    """One allocation for each buffer of each lane, or none."""
    blocks: list[int] = []
    try:
        for _ in range(plan.lanes):
            for buffer in plan.buffers:
                blocks.append(context.allocate(buffer.nbytes, stream))
    except BaseException:
        for block in blocks:
            context.free(block, stream)
        raise
    return blocks


def _order_after(context: CudaContext, first: Any, others: Sequence[Any]) -> None:
    """Makes other streams wait for what the first has enqueued: memory is usable in the order of its stream."""
    if others:
        event = context.take_event()
        context.call("cuEventRecord", event, first)
        for stream in others:
            context.call("cuStreamWaitEvent", stream, event, 0)
        context.give_events((event,))


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
