"""Parts of buffers in plans: what a launch's pointer may point to, and where a copy may begin."""

from __future__ import annotations

import struct

import pytest

from limbd.ops.base import Kernel, Launch, Member, Part, Place, Struct, Transfer, Unit

ARGS = Struct("args", (Member("x", "in"), Member("table", "table"), Member("tmp", "scratch"), Member("out", "out")))
KERNEL = Kernel(Unit("entry", (ARGS,)), "kernel", ARGS, 64)


def test_a_pointer_is_a_buffer_or_a_part_of_one_or_nothing() -> None:
    pointers: dict[str, Place | None] = {"x": Part("data", 96), "table": "powers", "tmp": None}
    packed = Launch(KERNEL, 1, 64, {}, pointers=pointers).pack({"data": 1 << 40, "powers": 512, "out": 7 << 33})
    assert struct.unpack("<4Q", packed) == ((1 << 40) + 96, 512, 0, 7 << 33)


@pytest.mark.parametrize(
    ("copy", "inside"),
    [
        (Transfer("b", "a", 0, 100), True),
        (Transfer("b", "a", 40, 60, at=140), True),
        (Transfer("b", "a", 41, 60), False),
        (Transfer("b", "a", 0, 60, at=141), False),
        (Transfer("b", "a", -1, 60), False),
        (Transfer("b", "a", 0, 60, at=-1), False),
        (Transfer("b", "a", 50, -1, at=50), False),
    ],
)
def test_a_copy_stays_inside_its_array_and_its_buffer(copy: Transfer, inside: bool) -> None:
    assert copy.within(array_bytes=100, buffer_bytes=200) is inside
