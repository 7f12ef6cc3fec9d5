"""A lane on a device: a stream, the memory of the plan's buffers, and what is enqueued on them."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from limbd.ops.base import (
    FIRST_BAD,
    FIRST_BAD_BYTES,
    NONE_BAD,
    SHARED,
    Buffer,
    Launch,
    LaunchPlan,
    Piece,
    Request,
    Transfer,
)
from limbd.ops.status import ServiceError, Status
from limbd.worker.device.cuda_context import CudaContext

Bytes = npt.NDArray[np.uint8]

# Buffers start at multiples of this in their lane's block: whole cache lines and sectors.
ALIGNMENT = 256

POISON_WORD = 0xA5A5A5A5

# Stands for the number of a lane where a buffer is of all of them.
COMMON = -1


Shape = tuple[int, int, int, int, int, int, int]


class Prepared(NamedTuple):
    """A kernel with its grid, block and shared bytes, and its one parameter. overlaps: it may begin before the launch before it in
    the stream has ended."""

    function: Any
    shape: Shape
    parameter: Any
    overlaps: bool = False

    def enqueue(self, context: CudaContext, stream: Any) -> None:
        # The driver copies the parameter before it returns: the array of pointers has to live only until then.
        pointers = (ctypes.c_void_p * 1)(ctypes.addressof(self.parameter))
        if self.overlaps:
            config = context.overlapping(self.shape, stream)
            context.call("cuLaunchKernelEx", config, self.function, ctypes.addressof(pointers), 0)
        else:
            context.call("cuLaunchKernel", self.function, *self.shape, stream, ctypes.addressof(pointers), 0)


class HostArray(NamedTuple):
    """Host memory and where it lies: asking numpy for the address of each copy costs as much as the copy's call."""

    memory: Bytes
    address: int
    nbytes: int


class Marks(NamedTuple):
    """Events of a piece: after its copies in, before and after its kernels, after its copies out.

    Two keep time, those on the stream of the kernels. On a stream of copies an event that keeps time holds up the next
    copy, so that the others only order. Where there is one stream, `copied` and `started` are one event, and
    `done` is none.
    """

    copied: Any
    started: Any
    computed: Any
    done: Any


@dataclass(frozen=True)
class Lane:
    """One set of a plan's buffers, and the streams that work on it.

    The lanes of a plan share three streams: copies in, kernels, copies out. Copies on streams of their own would run at the
    same time, each at a fraction of the link's rate, and all of them would end late; kernels on two streams or more were
    slower in trials on an H200. A plan of one lane has one stream for everything. owned, blocks: streams and allocations that this lane gives back. addresses: where the buffers are.
    """

    context: CudaContext
    stream: Any
    into: Any
    out: Any
    owned: tuple[Any, ...]
    blocks: tuple[int, ...]
    buffers: Mapping[str, Buffer]
    addresses: Mapping[str, int]

    def with_tables(self, tables: Mapping[str, int]) -> Lane:
        return replace(self, addresses={**self.addresses, **tables})

    def on(self, stream: Any) -> Lane:
        """The same memory on another stream."""
        return replace(self, stream=stream, into=stream, out=stream)

    def release(self) -> None:
        """Gives back what it owns; every lane of the plan has ended."""
        for block in self.blocks:
            self.context.free(block, self.stream)
        for stream in self.owned:
            self.context.give_stream(stream)

    def wait(self) -> None:
        for stream in {int(stream): stream for stream in (self.into, self.stream, self.out)}.values():
            self.context.call("cuStreamSynchronize", stream)

    @property
    def apart(self) -> bool:
        """Whether copies have streams of their own."""
        return self.into is not self.stream

    def bring(self, piece: Piece, arrays: Mapping[str, HostArray], marks: Marks, after: Any | None) -> None:
        """Enqueues a piece's copies in. after: the last mark of the piece that had these buffers before."""
        if after is not None and self.apart:
            self.context.call("cuStreamWaitEvent", self.into, after, 0)
        for copy in piece.copies_in:
            self.copy_in(copy, arrays)
        self.context.call("cuEventRecord", marks.copied, self.into)

    def compute(
        self, piece: Piece, prepared: Iterable[Prepared], arrays: Mapping[str, HostArray], marks: Marks
    ) -> None:
        """Enqueues the kernels, each as it comes, and the copies out of a piece that `bring` has brought."""
        call = self.context.call
        if self.apart:
            call("cuStreamWaitEvent", self.stream, marks.copied, 0)
            call("cuEventRecord", marks.started, self.stream)
        for launch in prepared:
            launch.enqueue(self.context, self.stream)
        call("cuEventRecord", marks.computed, self.stream)
        if self.apart:
            call("cuStreamWaitEvent", self.out, marks.computed, 0)
        for copy in piece.copies_out:
            self.copy_out(copy, arrays)
        if self.apart:
            call("cuEventRecord", marks.done, self.out)

    def copy_in(self, copy: Transfer, arrays: Mapping[str, HostArray]) -> None:
        host = host_address(copy, arrays, self.buffers[copy.buffer].nbytes)
        self.context.call("cuMemcpyHtoDAsync", self.addresses[copy.buffer] + copy.at, host, copy.nbytes, self.into)

    def copy_out(self, copy: Transfer, arrays: Mapping[str, HostArray]) -> None:
        host = host_address(copy, arrays, self.buffers[copy.buffer].nbytes)
        self.context.call("cuMemcpyDtoHAsync", host, self.addresses[copy.buffer] + copy.at, copy.nbytes, self.out)

    def prepare(self, launch: Launch, function: Any) -> Prepared:
        """The launch for this lane's buffers."""
        return prepare(self.context, launch, function, self.addresses)

    def poison(self, *, shared: bool) -> None:
        """Fills what kernels write, so that bytes which no kernel wrote show; what all lanes share where `shared` is set. The
        layout leaves room for whole words."""
        roles = ("out", "scratch", SHARED) if shared else ("out", "scratch")
        for buffer in self.buffers.values():
            if buffer.role in roles and buffer.nbytes:
                words = -(-buffer.nbytes // 4)
                self.context.call("cuMemsetD32Async", self.addresses[buffer.name], POISON_WORD, words, self.into)


def host_address(copy: Transfer, arrays: Mapping[str, HostArray], buffer_bytes: int) -> int:
    """Raises ServiceError(INTERNAL) if the plan reaches beyond an array or a buffer of so many bytes."""
    array = arrays[copy.array]
    if not copy.within(array.nbytes, buffer_bytes):
        raise ServiceError(Status.INTERNAL, f"plan: {copy} is out of range of its array or buffer")
    return array.address + copy.offset


def prepare(context: CudaContext, launch: Launch, function: Any, addresses: Mapping[str, int]) -> Prepared:
    """A launch with its struct packed. addresses: of its buffers and tables by name."""
    packed = launch.pack(addresses)
    shape = (launch.grid, 1, 1, launch.block, 1, 1, launch.shared)
    overlaps = launch.overlaps and context.overlaps
    return Prepared(function, shape, ctypes.create_string_buffer(packed, len(packed)), overlaps)


def create_lanes(context: CudaContext, plan: LaunchPlan, *, separate: bool) -> list[Lane]:
    """The plan's lanes. One block holds the buffers of all of them: an allocation costs as much as a launch.

    separate: an allocation of its own and of its exact size for each buffer instead, so that a memory checker sees where
    it ends. Raises CudaError with code OUT_OF_MEMORY; nothing is held then.
    """
    own = [b for b in plan.buffers if b.role not in (SHARED, FIRST_BAD)]
    offsets, size = layout(own)
    common = [b for b in plan.buffers if b.role == SHARED]
    common_offsets, common_size = layout(common) if common else ({}, 0)
    streams = [context.take_stream() for _ in range(3 if plan.lanes > 1 else 1)]
    stream, into, out = streams if plan.lanes > 1 else streams * 3
    blocks: list[int] = []
    try:
        if separate:
            names = [(i, b.name) for i in range(plan.lanes) for b in own] + [(COMMON, b.name) for b in common]
            nbytes = [b.nbytes for b in own] * plan.lanes + [b.nbytes for b in common]
            blocks = _allocate_each(context, [*nbytes, *([FIRST_BAD_BYTES] if plan.first_bad else [])], stream)
            starts = dict(zip(names, blocks, strict=plan.first_bad is None))
        else:
            whole = size * plan.lanes + common_size
            blocks.append(context.allocate(whole + FIRST_BAD_BYTES * bool(plan.first_bad), stream))
            starts = {(i, name): blocks[0] + i * size + at for i in range(plan.lanes) for name, at in offsets.items()}
            first_common = blocks[0] + size * plan.lanes
            starts |= {(COMMON, name): first_common + at for name, at in common_offsets.items()}
        shared = {b.name: starts[COMMON, b.name] for b in common}
        shared |= _begin_first_bad(context, plan, stream, blocks[-1] if separate else blocks[0] + whole)
        # Everything in a plan begins with a copy in, or waits for one.
        _order_after(context, stream, into)
    except BaseException:
        for block in blocks:
            context.free(block, stream)
        for each in streams:
            context.give_stream(each)
        raise
    buffers = {b.name: b for b in plan.buffers}
    first = {"owned": tuple(streams), "blocks": tuple(blocks)}
    return [
        Lane(
            context=context,
            stream=stream,
            into=into,
            out=out,
            buffers=buffers,
            addresses={**{b.name: starts[i, b.name] for b in own}, **shared},
            **(first if i == 0 else {"owned": (), "blocks": ()}),
        )
        for i in range(plan.lanes)
    ]


def _allocate_each(context: CudaContext, sizes: Sequence[int], stream: Any) -> list[int]:
    """One allocation for each size; or none."""
    blocks: list[int] = []
    try:
        for nbytes in sizes:
            blocks.append(context.allocate(nbytes, stream))
    except BaseException:
        for block in blocks:
            context.free(block, stream)
        raise
    return blocks


def _begin_first_bad(context: CudaContext, plan: LaunchPlan, stream: Any, address: int) -> dict[str, int]:
    """Sets the word that checks lower to ones, where the plan has one. Returns its address by name."""
    if plan.first_bad is None:
        return {}
    context.call("cuMemsetD32Async", address, NONE_BAD & 0xFFFFFFFF, FIRST_BAD_BYTES // 4, stream)
    return {plan.first_bad: address}


def _order_after(context: CudaContext, first: Any, following: Any) -> None:
    """Makes a stream wait for what another has enqueued: memory is usable in the order of its stream."""
    if following is not first:
        event = context.order_events.take()
        context.call("cuEventRecord", event, first)
        context.call("cuStreamWaitEvent", following, event, 0)
        context.order_events.give((event,))


def layout(buffers: Sequence[Buffer]) -> tuple[dict[str, int], int]:
    """Offsets of a lane's buffers in its block, and the block's size, both multiples of ALIGNMENT."""
    offsets, at = {}, 0
    for buffer in buffers:
        offsets[buffer.name] = at
        at += -(-buffer.nbytes // ALIGNMENT) * ALIGNMENT
    return offsets, max(at, ALIGNMENT)


def host_arrays(request: Request, result: memoryview) -> dict[str, HostArray]:
    """The host memory that Transfers name, as flat bytes."""
    arrays = {name: np.ascontiguousarray(a).reshape(-1).view(np.uint8) for name, a in request.arrays.items()}
    arrays["result"] = np.frombuffer(result, np.uint8) if len(result) else np.empty(0, np.uint8)
    return {name: HostArray(a, int(a.__array_interface__["data"][0]), a.nbytes) for name, a in arrays.items()}
