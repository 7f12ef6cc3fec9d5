"""Cuts an element-wise batch into pieces that stream through a device's memory budget."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from limbd.ops.base import Buffer, Launch, LaunchPlan, Piece, Request, Traits, Transfer
from limbd.ops.status import ServiceError, Status

# Both copy engines and the compute units are busy at once: one piece going in, one running, one going out. A fourth lane
# takes up the slack where the three take equally long.
LANES = 4

# What a batch takes above its copies is the first piece's way in and its kernels, and the gaps between copies out, which
# are some microseconds a piece. Of 4, 5, 5.5, 6.5, 8 and 12 MiB this was the best or next to it for three ops on an H200
# (for mod-inv it makes pieces of one whole wave); smaller first and last pieces, 8 lanes, or bringing two pieces ahead of
# the kernels changed nothing. The shipped form's times are in plans/results (worker), the trials' were not kept.
PIECE_BYTES = 13 << 19

# Pieces start at multiples of this, so that every piece but the last fills whole blocks.
PIECE_ALIGN = 1024


def elementwise_plan(request: Request, traits: Traits, launch: Callable[[int], Launch]) -> LaunchPlan:
    """A plan for an op whose result i depends on element i of each operand alone.

    launch: n -> the launch that computes n elements; its struct has one pointer member for each operand and "out".
    Raises ServiceError(OUT_OF_DEVICE_MEMORY) where the budget does not hold one element.
    """
    width = request.element_bytes
    operands = tuple(request.arrays)
    if request.n == 0:
        return LaunchPlan((), 1, ())
    lanes, size = piece_size(request.n, (len(operands) + 1) * width, traits)
    buffers = (*(Buffer(a, "in", size * width) for a in operands), Buffer("out", "out", size * width))
    pieces = tuple(
        Piece(
            tuple(Transfer(a, a, start * width, count * width) for a in operands),
            (launch(count),),
            (Transfer("out", "result", start * width, count * width),),
        )
        for start, count in _ranges(request.n, size)
    )
    return LaunchPlan(buffers, min(lanes, len(pieces)), pieces)


def piece_size(n: int, element_bytes: int, traits: Traits) -> tuple[int, int]:
    """Lanes, and elements a piece. element_bytes: device memory that one element needs."""
    if traits.memory < element_bytes:
        raise ServiceError(
            Status.OUT_OF_DEVICE_MEMORY,
            f"the device's budget of {traits.memory} bytes does not hold one element ({element_bytes} bytes)",
            hint="raise --device-memory",
        )
    fits = traits.memory // element_bytes
    if traits.whole or traits.kind == "cpu" or n * element_bytes <= PIECE_BYTES:
        if n <= fits:
            return 1, n
        if traits.whole:
            raise ServiceError(Status.OUT_OF_DEVICE_MEMORY, f"{n} elements do not fit {traits.memory} bytes whole")
    lanes = min(LANES, fits)
    size = min(fits // lanes, max(-(-n // 16), PIECE_BYTES // element_bytes))
    if size > PIECE_ALIGN:
        size -= size % PIECE_ALIGN
    return lanes, size


def _ranges(n: int, size: int) -> Iterator[tuple[int, int]]:
    """(start, count) of each piece: as few as possible, of about the same size, and none above `size`."""
    equal = -(-n // -(-n // size))
    if size > PIECE_ALIGN:
        equal = min(size, -(-equal // PIECE_ALIGN) * PIECE_ALIGN)
    for start in range(0, n, equal):
        yield start, min(equal, n - start)
