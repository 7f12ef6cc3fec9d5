"""A field that is defined here, not in the tree: it works by its parameters with no file of the tree changed."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from limbd.harness.inputs import Residues, operands
from limbd.harness.kat import first_difference
from limbd.harness.targets import BackendTarget
from limbd.harness.vectors.peers import OPERANDS, agreed
from limbd.kernels.source import ROOT, Sources
from limbd.ops import OPS, by_name
from limbd.ops.base import (
    LIMB_BYTES,
    Buffer,
    Call,
    Kernel,
    Launch,
    LaunchPlan,
    Member,
    Op,
    Piece,
    Struct,
    Transfer,
    Unit,
)
from limbd.ops.params.base import Field
from limbd.ops.params.fields import FIELDS, by_id, register, unregister
from limbd.ops.params.layout import from_ints, unpack
from limbd.ops.params.render import render, struct_name
from limbd.ops.status import ServiceError
from limbd.worker.device.base import Backend
from limbd.worker.device.nvrtc import Nvrtc, Target

OUTSIDE = (
    Field(0x7F70, "mersenne_61", 2**61 - 1, "Mersenne prime 2^61 - 1"),
    Field(0x7F71, "below_2_255", 2**255 - 31, "the largest prime of 255 bits but one"),
    Field(0x7F72, "below_2_381", 2**381 - 313, "the largest prime of 381 bits"),
    Field(0x7F73, "below_2_384", 2**384 - 317, "the largest prime of 384 bits"),
)


@pytest.fixture(params=OUTSIDE, ids=lambda field: field.name)
def field(request: pytest.FixtureRequest) -> Iterator[Field]:
    added = register(request.param)
    yield added
    unregister(added)


@pytest.mark.parametrize("op", [op for op in OPS if op.elementwise], ids=lambda op: op.name)
def test_every_op_by_its_parameters(op: Op, field: Field, backend: Backend) -> None:
    assert by_id(field.id) is field
    bits = 8 * field.element_bytes
    rng = random.Random(f"outside {op.name} {field.name}")
    columns = [operands(rng, field.modulus, 200, bits) for _ in OPERANDS[op.name]]
    limbs = field.element_bytes // LIMB_BYTES
    arrays = {name: from_ints(column, limbs) for name, column in zip(OPERANDS[op.name], columns, strict=True)}
    results = BackendTarget(backend).answer(op.name, Residues(field.modulus, field), arrays)
    expected = from_ints(agreed(op.name, field.modulus, columns), limbs)
    assert first_difference(results, expected) is None


def test_its_payload_has_no_modulus(field: Field) -> None:
    call = Call(3, field=field)
    assert by_name("mod-mul").payload_bytes(call) == 6 * field.element_bytes
    assert by_name("mod-mul").result_bytes(call) == 3 * field.element_bytes


# --- a modulus known at compile time --------------------------------------------------------------------------------

ENTRY = """
#include "base/element.cuh"
#include "field/mont.cuh"
#include "unit.cuh"

// a^2 b + a - b, by way of Montgomery form.
extern "C" __global__ void outside(const outside_args args) {
    using F = mont::Field<Parameters>;
    const uint64_t index = element::own_index();
    if (index >= args.n) return;
    uint32_t a[WORDS], b[WORDS], t[F::LIMBS];
    element::load<WORDS>(a, args.a, index);
    element::load<WORDS>(b, args.b, index);
    F::enter(a, a);
    F::enter(b, b);
    F::square(t, a);
    F::multiply(t, t, b);
    F::add(t, t, a);
    F::subtract(t, t, b);
    F::leave(t, t);
    element::store<WORDS, F::LIMBS>(args.out, index, t);
}
"""
STRUCT = Struct("outside_args", (Member("a", "in"), Member("b", "in"), Member("out", "out"), Member("n", "u64")))


@pytest.fixture(scope="module", params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def compile_time(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    make_backend: Callable[[str, Sources | None], Backend],
) -> Backend:
    """A backend that also finds the entry above."""
    folder = tmp_path_factory.mktemp("kernels")
    (folder / "entry").mkdir()
    (folder / "entry" / "outside.cu").write_text(ENTRY)
    return make_backend(request.param, Sources((folder, ROOT)))


def unit_of(field: Field) -> Unit:
    alias = f"using Parameters = {struct_name(field)};\n"
    words = ("WORDS", field.element_bytes // LIMB_BYTES)
    return Unit("outside", (STRUCT,), (words,), render(field) + alias)


@pytest.mark.parametrize("any_field", (*OUTSIDE, *FIELDS), ids=lambda field: field.name)
def test_rendered_parameters_drive_a_kernel(any_field: Field, compile_time: Backend) -> None:
    """Every registered field and the toys too: the constants mean what the kernels take them for."""
    p, width = any_field.modulus, any_field.element_bytes
    rng = random.Random(f"compile time {any_field.name}")
    columns = [[value % p for value in operands(rng, p, 130, 8 * width)] for _ in "ab"]
    n = len(columns[0])
    arrays = {name: from_ints(column, width // LIMB_BYTES) for name, column in zip("ab", columns, strict=True)}
    request = by_name("mod-mul").decode(
        Call(n, field=any_field), memoryview(b"".join(array.tobytes() for array in arrays.values()))
    )
    buffers = (Buffer("a", "in", n * width), Buffer("b", "in", n * width), Buffer("out", "out", n * width))
    copies = tuple(Transfer(name, name, 0, n * width) for name in "ab")
    launch = Launch(Kernel(unit_of(any_field), "outside", STRUCT, 128), -(-n // 128), 128, {"n": n})
    plan = LaunchPlan(buffers, 1, (Piece(copies, (launch,), (Transfer("out", "result", 0, n * width),)),))
    result = bytearray(n * width)
    compile_time.run(request, plan, memoryview(result))
    expected = [(a * a * b + a - b) % p for a, b in zip(*columns, strict=True)]
    assert unpack(result, width) == expected


@pytest.mark.parametrize("arch", [75, 90])
def test_rendered_parameters_compile_for_cuda(arch: int, tmp_path: Path) -> None:
    """NVRTC evaluates the same proofs, and knows limbs of a constant array at compile time."""
    (tmp_path / "entry").mkdir()
    (tmp_path / "entry" / "outside.cu").write_text(ENTRY)
    sources = Sources((tmp_path, ROOT))
    nvrtc = Nvrtc()
    for any_field in (*OUTSIDE, FIELDS[0]):
        compiled = nvrtc.compile(sources.cuda("outside", unit_of(any_field).header()), Target(arch))
        assert compiled.data[:4] == b"\x7fELF"
        assert [use.spill_stores for use in compiled.usage] == [0] * len(compiled.usage)


def test_a_wrong_constant_does_not_compile_for_cuda(tmp_path: Path) -> None:
    (tmp_path / "entry").mkdir()
    (tmp_path / "entry" / "outside.cu").write_text(ENTRY)
    unit = unit_of(OUTSIDE[0])
    header = re.sub(r"(R2\[N\] = \{0x\w{7})(\w)", lambda found: f"{found[1]}{int(found[2], 16) ^ 1:x}", unit.header())
    assert header != unit.header()
    with pytest.raises(ServiceError, match="mersenne_61: R2"):
        Nvrtc().compile(Sources((tmp_path, ROOT)).cuda("outside", header), Target(90))
