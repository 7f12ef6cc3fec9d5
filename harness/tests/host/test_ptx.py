"""Every element-wise op through the PTX that NVRTC makes of it, interpreted: the carry chains of a GPU without a GPU."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from limbd.harness.inputs import Residues, known_residues, operands
from limbd.harness.ptx import Memory, Trapped, UnknownInstruction, load
from limbd.harness.ptx_warp import Divergent
from limbd.harness.targets import BackendTarget
from limbd.harness.vectors.peers import OPERANDS, PYTHON
from limbd.ops import OPS
from limbd.ops.base import Op
from limbd.ops.params.layout import from_ints, to_ints

CASES = {"mod-mul": 12, "mod-add": 12, "mod-sub": 12, "mod-exp": 2, "mod-inv": 4, "mod-inv-batch": 4}
EXPONENT_BITS = 18


@pytest.fixture(scope="module")
def ptx() -> BackendTarget:
    pytest.importorskip("cuda.bindings.nvrtc")
    from limbd.harness.ptx_backend import PtxBackend

    return BackendTarget(PtxBackend())


def assert_right(target: BackendTarget, op: str, residues: Residues, columns: list[list[int]]) -> None:
    words = residues.bits // 32
    arrays = {name: from_ints(column, words) for name, column in zip(OPERANDS[op], columns, strict=True)}
    got = to_ints(target.answer(op, residues, arrays))
    expected = [PYTHON[op](residues.modulus, *row) for row in zip(*columns, strict=True)]
    assert got == expected, f"{op} mod {residues.modulus:#x}: {columns}"


@pytest.mark.parametrize("op", [op for op in OPS if op.elementwise], ids=lambda op: op.name)
def test_every_op_modulo_every_known_modulus(ptx: BackendTarget, op: Op) -> None:
    rng = random.Random(op.name)
    for residues in known_residues():
        columns = [operands(rng, residues.modulus, CASES[op.name], residues.bits) for _ in OPERANDS[op.name]]
        if op.name == "mod-exp":
            columns[1] = [e % 2**EXPONENT_BITS for e in columns[1]]
        assert_right(ptx, op.name, residues, columns)


@pytest.mark.parametrize("modulus", [2**256 - 2**32 - 977, 2**256 - 2**32, 2**225 - 1, 2**96 + 2])
def test_exponents_of_256_bits(ptx: BackendTarget, modulus: int) -> None:
    assert_right(ptx, "mod-exp", Residues(modulus), [[modulus - 2, 2**256 - 1], [2**256 - 1, 2**255 + 1]])


def test_block_edges(ptx: BackendTarget) -> None:
    """The last block is not full: nothing is written past the results (BackendTarget guards them)."""
    for n in (1, 255, 256, 257):
        assert_right(ptx, "mod-add", Residues(2**255 - 19), [list(range(n)), list(range(7, n + 7))])


# --- the interpreter itself -----------------------------------------------------------------------------------------------


def run_binary(body: str, x: int, y: int) -> int:
    """r of a one-thread kernel with 32-bit x, y in %r1, %r2 and the result in %r0."""
    text = (
        ".version 8.0\n.visible .entry k(.param .align 8 .b8 k_param_0[16])\n{\n .reg .b32 %r<9>;\n"
        " ld.param.u64 %rd1, [k_param_0];\n ld.param.u32 %r1, [k_param_0+8];\n ld.param.u32 %r2, [k_param_0+12];\n"
        f" {body}\n st.global.u32 [%rd1], %r0;\n ret;\n}}\n"
    )
    memory = Memory()
    out = bytearray(4)
    arguments = memory.place(out).to_bytes(8, "little") + x.to_bytes(4, "little") + y.to_bytes(4, "little")
    load(text, "k").launch(memory, arguments, 1, 1)
    return int.from_bytes(out, "little")


FULL = 2**32 - 1


@pytest.mark.parametrize(
    ("body", "model"),
    [
        ("add.cc.u32 %r3, %r1, %r2; addc.u32 %r0, 0, 0;", lambda x, y: (x + y) >> 32),
        ("sub.cc.u32 %r3, %r1, %r2; subc.u32 %r0, 0, 0;", lambda x, y: FULL if x < y else 0),
        ("sub.cc.u32 %r3, %r1, %r2; subc.cc.u32 %r0, %r1, %r2;", lambda x, y: (x - y - (x < y)) & FULL),
        ("mad.lo.cc.u32 %r3, %r1, %r2, %r1; madc.hi.u32 %r0, %r1, %r2, 0;", lambda x, y: (x * y + x) >> 32),
        ("mul.hi.s32 %r0, %r1, %r2;", lambda x, y: (signed(x) * signed(y) >> 32) & FULL),
        ("shf.l.wrap.b32 %r0, %r1, %r2, %r1;", lambda x, y: ((y << 32 | x) << (x & 31) >> 32) & FULL),
        ("shr.s32 %r0, %r1, 4;", lambda x, y: (signed(x) >> 4) & FULL),
        ("setp.lt.s32 %p1, %r1, %r2; selp.b32 %r0, 1, 2, %p1;", lambda x, y: 1 if signed(x) < signed(y) else 2),
        (
            "mov.u32 %r0, 7; setp.ne.u32 %p1, %r1, %r2; @%p1 bra L1; mov.u32 %r0, 9;\nL1:",
            lambda x, y: 7 if x != y else 9,
        ),
        (
            "mov.b64 %rd2, {%r1, %r2}; shr.u64 %rd3, %rd2, 16; cvt.u32.u64 %r0, %rd3;",
            lambda x, y: ((y << 32 | x) >> 16) & FULL,
        ),
        ("prmt.b32 %r0, %r1, %r2, 0x7014;", lambda x, y: (y & 255) | (x & 0xFF00) | (x & 255) << 16 | (y >> 24) << 24),
        ("clz.b32 %r0, %r1;", lambda x, y: 32 - x.bit_length()),
    ],
)
def test_an_instruction(body: str, model: Callable[[int, int], int]) -> None:
    values = (0, 1, 2, 0x7FFFFFFF, 0x80000000, 0x80000001, FULL, 0x12345678)
    for x in values:
        for y in values:
            assert run_binary(body, x, y) == model(x, y), (body, hex(x), hex(y))


def signed(x: int) -> int:
    return x - (x >> 31 << 32)


def run_lanes(body: str, lanes: int = 32) -> list[int]:
    """%r0 of each thread of one block, where %r1 is its number."""
    text = (
        ".version 8.0\n.visible .entry k(.param .align 8 .b8 k_param_0[8])\n{\n .reg .b32 %r<9>;\n"
        " ld.param.u64 %rd1, [k_param_0];\n mov.u32 %r1, %tid.x;\n"
        f" {body}\n mul.wide.u32 %rd2, %r1, 4;\n add.s64 %rd3, %rd1, %rd2;\n st.global.u32 [%rd3], %r0;\n ret;\n}}\n"
    )
    memory, out = Memory(), bytearray(4 * lanes)
    load(text, "k").launch(memory, memory.place(out).to_bytes(8, "little"), 1, lanes)
    return [int.from_bytes(out[4 * i : 4 * i + 4], "little") for i in range(lanes)]


SQUARE = "mul.lo.s32 %r2, %r1, %r1;"
ODD = "and.b32 %r3, %r1, 1; setp.ne.u32 %p1, %r3, 0;"


@pytest.mark.parametrize(
    ("body", "model"),
    [
        (f"{SQUARE} shfl.sync.bfly.b32 %r0|%p2, %r2, 5, 31, -1;", lambda i: (i ^ 5) ** 2),
        (f"{SQUARE} shfl.sync.idx.b32 %r0|%p2, %r2, 3, 31, -1;", lambda i: 9),
        (f"{SQUARE} shfl.sync.idx.b32 %r0, %r2, 3, 0x181f, -1;", lambda i: (i & 24 | 3) ** 2),
        (f"{SQUARE} shfl.sync.up.b32 %r0|%p2, %r2, 4, 0, -1;", lambda i: (i - 4 if i >= 4 else i) ** 2),
        (f"{SQUARE} shfl.sync.down.b32 %r0|%p2, %r2, 4, 31, -1;", lambda i: (i + 4 if i < 28 else i) ** 2),
        ("shfl.sync.down.b32 %r2|%p2, %r1, 4, 31, -1; selp.b32 %r0, 1, 0, %p2;", lambda i: int(i < 28)),
        (f"{ODD} vote.sync.ballot.b32 %r0, %p1, -1;", lambda i: 0xAAAAAAAA),
        (f"{ODD} vote.sync.any.pred %p2, %p1, -1; selp.b32 %r0, 1, 0, %p2;", lambda i: 1),
        (f"{ODD} vote.sync.all.pred %p2, %p1, -1; selp.b32 %r0, 1, 0, %p2;", lambda i: 0),
        (
            # Pairs by masks of their own, by as many turns as their number.
            "shr.u32 %r4, %r1, 1; and.b32 %r3, %r1, 30; shl.b32 %r5, 3, %r3; mov.u32 %r0, %r1;"
            "\nL1: setp.eq.u32 %p1, %r4, 0; @%p1 bra L2; shfl.sync.bfly.b32 %r2|%p2, %r0, 1, 31, %r5; add.u32 %r0, %r2, 1;"
            " sub.u32 %r4, %r4, 1; bra L1;\nL2:",
            lambda i: (i ^ (i >> 1 & 1)) + (i >> 1),
        ),
    ],
)
def test_a_warp_function(body: str, model: Callable[[int], int]) -> None:
    assert run_lanes(body) == [model(i) for i in range(32)]


def test_lanes_that_do_not_come() -> None:
    with pytest.raises(Divergent, match=r"lane 0: shfl\.bfly 0xffffffff"):
        run_lanes(
            "mov.u32 %r0, 0; setp.eq.u32 %p1, %r1, 7; @%p1 bra L1; shfl.sync.bfly.b32 %r0|%p2, %r1, 1, 31, -1;\nL1:"
        )
    with pytest.raises(Divergent):
        run_lanes("shfl.sync.bfly.b32 %r0|%p2, %r1, 1, 31, -1;", 31)


def test_what_it_refuses() -> None:
    with pytest.raises(UnknownInstruction):
        run_binary("bar.sync 0;", 0, 0)
    with pytest.raises(Trapped):
        run_binary("trap;", 0, 0)
    with pytest.raises(IndexError):
        run_binary("mov.u32 %r0, 0; st.global.u32 [%rd1+4], %r0;", 0, 0)
    with pytest.raises(IndexError):
        run_binary("mov.u32 %r0, 0; st.global.u16 [%rd1+1], %r0;", 0, 0)
