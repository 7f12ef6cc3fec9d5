"""Warp functions of interpreted PTX (limbd.harness.ptx): the threads of a warp that wait for each other.

A thread is a generator. Where it reaches a warp function it yields what it brings (opcode, mask of lanes, value), and gets the
values of all lanes of the mask once all of them have come to such a function with that mask. PTX allows them to come from
different places of the code.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import suppress

WARP = 32

Request = tuple[str, int, int]
Values = Mapping[int, int]
Thread = Generator[Request, Values | None, None]


class Divergent(Exception):
    """A lane waits for lanes that will never come."""


def run_warp(threads: Mapping[int, Thread], stand: Callable[[int], None]) -> None:
    """Runs the threads of a warp, by lane, to their ends. stand: called with a lane before it goes on. Raises Divergent."""
    waiting: dict[int, Request] = {}
    answers: dict[int, Values | None] = dict.fromkeys(threads)
    while answers:
        for lane, answer in answers.items():
            stand(lane)
            with suppress(StopIteration):
                waiting[lane] = threads[lane].send(answer)
        answers = _meet(waiting)
    if waiting:
        raise Divergent(", ".join(f"lane {lane}: {opcode} {mask:#x}" for lane, (opcode, mask, _) in waiting.items()))


def _meet(waiting: dict[int, Request]) -> dict[int, Values | None]:
    """Takes those out that have all come, with what they get."""
    answers: dict[int, Values | None] = {}
    for lane, (opcode, mask, _) in list(waiting.items()):
        members = [other for other in range(WARP) if mask >> other & 1]
        if lane not in answers and all(waiting.get(other, ())[:2] == (opcode, mask) for other in members):
            values = {other: waiting[other][2] for other in members}
            answers.update(dict.fromkeys(members, values))
            for other in members:
                del waiting[other]
    return answers


def source_lane(mode: str, lane: int, b: int, c: int) -> tuple[int, int]:
    """The lane that shfl.sync reads, and whether it is in the segment (PTX ISA 9.0, shfl.sync); else its own."""
    b, segment = b % WARP, c >> 8 & 31
    bound = lane & segment | c & 31 & ~segment
    if mode == "up":
        source, inside = lane - b, lane - b >= bound
    else:
        source = {"down": lane + b, "bfly": lane ^ b, "idx": lane & segment | b & ~segment}[mode]
        inside = source <= bound
    return (source if inside else lane), int(inside)
