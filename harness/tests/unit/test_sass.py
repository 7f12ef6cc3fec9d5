"""Counting machine code: a listing as cuobjdump writes it, with a loop, predicates and the padding after the end."""

from __future__ import annotations

import dataclasses
import sys
from types import ModuleType

import pytest

from limbd.harness import sass
from limbd.ops import by_name
from limbd.ops.base import Traits

# Line by line: opcode and operands; the second word of each has its stall count in bits 41 to 44.
LINES = (
    ("MOV R1, c[0x0][0x28]", 2),
    ("IMAD.WIDE.U32 R4, R2, R3, RZ", 5),
    ("@!P0 IMAD.HI.U32 R6, R2, R3, R5", 4),
    ("IADD3.X R7, P1, PT, R4, R6, RZ, P0, !PT", 1),
    ("@P1 BRA 0x10", 5),
    ("EXIT", 5),
    ("BRA 0x60", 0),
    ("NOP", 0),
)


def listing(name: str) -> str:
    lines = [f"\t\tFunction : {name}", '\t.headerflags\t@"EF_CUDA_SM90"']
    for at, (text, stall) in enumerate(LINES):
        lines.append(f"        /*{16 * at:04x}*/  {text} ;   /* 0x00000a00ff017b82 */")
        lines.append(f"                                  /* 0x{0xFE << 48 | stall << 41 | 1 << 45:016x} */")
    return "\n".join(lines) + "\n"


def test_a_kernel_and_its_loop() -> None:
    found = sass.kernels("header\n" + listing("first") + listing("second"))
    assert list(found) == ["first", "second"]
    whole, loop = sass.stretches(found["second"])
    assert (whole.name, whole.instructions, whole.clocks) == ("whole", 6, 22)
    assert (loop.name, loop.instructions, loop.clocks) == ("loop 0x10", 4, 15)
    assert whole.counts["MOV"] == 1 and loop.counts["MOV"] == 0
    assert (loop.counts["IMAD.WIDE"], loop.counts["IMAD.HI"], loop.counts["IADD3"], loop.counts["other"]) == (
        1,
        1,
        1,
        1,
    )


def test_moves_on_the_multiplier_are_no_products() -> None:
    lines = [sass.Instruction(16 * i, op, "", 1) for i, op in enumerate(("IMAD.MOV.U32", "IMAD", "IMAD.X", "NOP"))]
    (whole,) = sass.stretches(lines)
    assert dict(whole.counts) == {"IMAD.MOV": 1, "IMAD": 1, "IMAD.X": 1}
    assert dataclasses.replace(whole, clocks=0).instructions == 3


def test_the_units_of_an_op_and_of_a_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    units = sass.units_of("mod-mul", "sm_90")
    assert tuple(units.values()) == by_name("mod-mul").units(Traits("cuda", "sm_90", 1, 1 << 30))
    assert {"mod_mul_fold MONIC=0", "mod_mul_fold MONIC=1"} <= units.keys()
    module = ModuleType("limbd.harness.candidates.plan_9001")
    vars(module)["sass_units"] = lambda: {"first": units["mod_mul_fold MONIC=1"]}
    monkeypatch.setitem(sys.modules, module.__name__, module)
    assert list(sass.units_of("9001", "sm_90")) == ["first"]
