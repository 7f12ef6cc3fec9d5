"""Cuts an element-wise batch into pieces that stream through a device's memory budget."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from limbd.ops.base import Buffer, Launch, LaunchPlan, Piece, Request, Traits, Transfer
from limbd.ops.status import ServiceError, Status

# Both copy engines and the compute units are busy at once: one piece going in, one running, one going out. A fourth lane
# takes up the slack where the three take equally long.
LANES = 4

# Each piece costs about 20 us of calls and of gaps between copies; at about 55 GB/s this is 90 to 100 us of copying. Cutting
# the first or the last piece smaller was tried on an H200, and so were more lanes: neither was faster (those samples were
# not kept; the shipped form's are in plans/results/2026-11-30-worker.jsonl).
PIECE_BYTES = 8 << 20

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
