"""Every kernel under AddressSanitizer and UBSan together, with the kernels' own range checks, in a process of its own.

Each array is an allocation of exactly its size, so that one word read or written beyond it is reported.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from limbd.harness.groups import group_of
from limbd.harness.inputs import Residues, known_residues, operands
from limbd.harness.multiplications import Multiplication
from limbd.harness.transforms import VARIANTS, elements, fields
from limbd.ops import OPS
from limbd.ops.base import Call, Op, Request, Unit
from limbd.ops.msm import Msm
from limbd.ops.msm_shape import Shape
from limbd.ops.msm_tuning import LaneRow, MsmRow, with_width
from limbd.ops.params.curves import CURVES, Curve
from limbd.ops.params.layout import from_ints, to_ints
from limbd.ops.reference.msm import proof_points, sum_of
from limbd.worker.device import host_compiler
from limbd.worker.device.cache import Cache
from limbd.worker.device.cpu import CpuBackend
from limbd.worker.device.host_compiler import Variant

# One element, a part of a warp, a block and one more than a block of 64 or 256 threads.
SIZES = (1, 31, 64, 257)


def run_sanitized(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **host_compiler.find().sanitizer_environment()}
    command = (sys.executable, __file__, *arguments)
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=1200)


@pytest.fixture(scope="module")
def folder(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache that holds every unit: compilers are slow when they inherit the sanitizer's runtime."""
    folder = Path(pytestconfig.cache.mkdir("kernels")) if pytestconfig.cache else tmp_path_factory.mktemp("kernels")
    backend = CpuBackend(cache=Cache(folder), variant=Variant.SANITIZE)
    backend.compile(unit for op in OPS if not isinstance(op, Msm) for unit in op.units(backend.traits()))
    backend.compile(unit for op in OPS if isinstance(op, Msm) for unit in units_of(op))
    backend.close()
    return folder


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("op", [op.name for op in OPS])
def test_every_kernel_is_clean(op: str, folder: Path) -> None:
    done = run_sanitized("clean", op, str(folder))
    assert done.returncode == 0, done.stderr[-6000:]
    assert done.stdout == "clean\n"


def test_a_word_too_far_is_reported(folder: Path) -> None:
    """The proof that the runs above would have noticed: an array one element shorter than the kernel is told."""
    done = run_sanitized("short", OPS[0].name, str(folder))
    assert done.returncode != 0
    assert "AddressSanitizer: heap-buffer-overflow" in done.stderr


# What is sanitized of multi-scalar multiplications: the toys. Wider curves take the compilers many minutes; what they do that
# toys do not is to load and store by four limbs, which the kernels of other ops do here.
def sanitized_curves(op: Msm) -> list[Curve]:
    return [curve for curve in CURVES if curve.toy and curve.group(op.group)]


def units_of(op: Msm) -> set[Unit]:
    curves = sanitized_curves(op)
    cases = product(curves, (False, True), (4, 13))
    shapes = (Shape(curve, op.group, 1, 1, sanitized_row(width), constant) for curve, constant, width in cases)
    return {unit for shape in shapes for unit in shape.kernels.units()}


def sanitized_row(width: int) -> MsmRow:
    """With points over lanes after the additions into buckets, and where the sort takes two passes without."""
    return replace(with_width(width, 4, 3, 3, 1, "sanitized"), lanes=LaneRow(2, 1, trees=2) if width == 4 else None)


# --- in the sanitized process ---


def exact_request(op: Op, residues: Residues, n: int, rng: random.Random) -> tuple[Request, list[list[int]]]:
    """A request whose arrays are allocations of their own, and the operands."""
    columns = [operands(rng, residues.modulus, n, residues.bits) for _ in op.operands]
    width = residues.bits // 32
    arrays = dict(zip(op.operands, (from_ints(column, width).copy() for column in columns), strict=True))
    call = Call(n, field=residues.field)
    return Request(op, n, 0, residues.modulus, residues.bits // 8, arrays, call.field), columns


def check(op: Op, residues: Residues, n: int, backend: CpuBackend) -> None:
    request, _ = exact_request(op, residues, n, random.Random(f"{op.name} {residues} {n}"))
    compare(request, backend, f"{residues}")


def compare(request: Request, backend: CpuBackend, told: str) -> None:
    op, n = request.op, request.n
    result, expected = (np.empty((n, request.element_bytes // 4), np.uint32) for _ in range(2))
    backend.run(request, op.plan(request, backend.traits()), result.data.cast("B"))
    op.reference(request, expected.data.cast("B"))
    if (result != expected).any():
        row = int(np.flatnonzero((result != expected).any(axis=1))[0])
        raise AssertionError(f"{op.name} {told} n={n} row {row}: {to_ints(result[row : row + 1])}")


def clean_transforms(op: Op, backend: CpuBackend) -> None:
    """Every size up to 2^11 in a field of each kind of residue, every order, with scales and without."""
    for field, k in product((f for f in fields() if not f.toy), range(12)):
        rng = random.Random(f"{op.name} {field.name} {k}")
        for variant in (0, VARIANTS[op.name], rng.getrandbits(32) & VARIANTS[op.name]):
            n = rng.randrange(1, 4) << k
            arrays = {name: from_ints(elements(rng, field.modulus, n)).copy() for name in op.operands}
            constants = {"omega": field.omega(k), "shift": field.generator or 1}
            request = Request(op, n, k | variant, field.modulus, 32, arrays, field, constants)
            compare(request, backend, f"{field.name} {k} {variant:#x}")
    assert backend.cache.builds == 0
    print("clean")


def clean_multiplications(op: Msm, backend: CpuBackend) -> None:
    """Every array of a plan is an allocation of its own: one and two passes of the sort, pieces, vectors."""
    for curve in sanitized_curves(op):
        scalars, points = proof_points(curve, group_of(curve, op.group))
        for constant, width in product((False, True), (4, 13)):
            asked = Multiplication(curve, op.group, scalars * 2, points, 2, True, constant)
            row = sanitized_row(width)
            got = asked.answer(backend, lambda count, row=row: row)  # type: ignore[misc]
            assert got == [sum_of([s % curve.order for s in scalars], points, curve)] * 2, (curve.name, constant, width)
    assert backend.cache.builds == 0
    print("clean")


def clean(op: Op, backend: CpuBackend) -> None:
    if isinstance(op, Msm):
        clean_multiplications(op, backend)
        return
    if not op.elementwise:
        clean_transforms(op, backend)
        return
    for i, residues in enumerate(known_residues()):
        for n in SIZES if i % 16 == 0 else SIZES[1:2]:
            check(op, residues, n, backend)
    assert backend.cache.builds == 0
    print("clean")


def short(op: Op, backend: CpuBackend) -> None:
    """One element fewer than the launch is told to compute. n is large enough to leave numpy's cache of small arrays."""
    n = 257
    request, _ = exact_request(op, Residues(2**255 - 19), n, random.Random(1))
    plan = op.plan(request, backend.traits())
    arrays = {name: array[:-1].copy() for name, array in request.arrays.items()}
    copies = plan.pieces[0].copies_in
    shorter = tuple(type(c)(c.buffer, c.array, c.offset, c.nbytes - request.element_bytes) for c in copies)
    piece = type(plan.pieces[0])(shorter, plan.pieces[0].launches, plan.pieces[0].copies_out)
    request = Request(op, n, 0, request.modulus, request.element_bytes, arrays)
    result = np.empty((n, 8), np.uint32)
    backend.run(request, type(plan)(plan.buffers, 1, (piece,)), result.data.cast("B"))


if __name__ == "__main__":
    scenario, name, cache = sys.argv[1:]
    sanitized = CpuBackend(cache=Cache(Path(cache)), variant=Variant.SANITIZE, poison=True)
    {"clean": clean, "short": short}[scenario](next(op for op in OPS if op.name == name), sanitized)
    sanitized.close()
