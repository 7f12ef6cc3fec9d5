"""Plan 0004's candidates against GMP: every form on operands that take it longest, every grid and block, what they refuse."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import gmpy2
import numpy as np
import pytest

from limbd.harness import exhaustive
from limbd.harness.candidates.plan_0004 import (
    BLOCK_WARPS,
    CANDIDATES,
    RESIDENT,
    WARP,
    WARPS_FORMS,
    blocks,
    branch_free_unit,
    hard,
    sass_units,
)
from limbd.harness.compile_check import ARCHITECTURES, check
from limbd.harness.halt_run import Substituted
from limbd.harness.inputs import SPECIAL_MODULI, hard_integer, modulus_of_bits, operands
from limbd.harness.textio import InputError
from limbd.ops.base import Call, LaunchPlan, Request, Traits
from limbd.ops.mod_inv import MOD_INV
from limbd.ops.params.fields import FIELDS
from limbd.ops.params.layout import from_ints, pack, to_ints, unpack
from limbd.ops.reference.mod_inv import inverse
from limbd.ops.reference.warp_inverse import Shape, Transition, jump, make_table
from limbd.worker.device.base import Backend
from limbd.worker.device.cache import Cache
from limbd.worker.device.cpu import CpuBackend
from limbd.worker.device.host_compiler import Variant

SECP256K1 = 2**256 - 2**32 - 977
ED25519 = 2**255 - 19

# Primes, products of large and of small primes, moduli that are +-1 in their lowest limb, short ones, 1.
ODD = (SECP256K1, ED25519, 2**255 + 1, 2**255 - 1, 2**256 - 1, (2**128 - 159) * (2**127 - 1), 3**161, 2**24 - 1, 15, 1)
EVEN = (2**256 - 2, 2**40, 30)

EVERY = pytest.mark.parametrize("name", CANDIDATES)
EVERY_WARP = pytest.mark.parametrize("name", WARPS_FORMS)

H200 = Traits("cuda", "sm_90", 132, 1 << 40, whole=True)


def expected(xs: Sequence[int], m: int) -> list[int]:
    return [int(inverse(gmpy2.mpz(x), gmpy2.mpz(m))) for x in xs]


def request_of(m: int, xs: Sequence[int]) -> Request:
    return MOD_INV.decode(Call(len(xs)), memoryview(pack([m]) + pack(xs)))


def answers_of(backend: Backend, request: Request, plan: LaunchPlan) -> list[int]:
    result = bytearray(request.element_bytes * request.n)
    backend.run(request, plan, memoryview(result))
    return [int(x) for x in unpack(result, request.element_bytes)]


def answers(backend: Backend, name: str, m: int, xs: Sequence[int]) -> list[int]:
    request = request_of(m, xs)
    plan = CANDIDATES[name].plan(request, dataclasses.replace(backend.traits(), whole=True), {})
    return answers_of(backend, request, plan)


def kernel_of(name: str, request: Request) -> str:
    (piece,) = CANDIDATES[name].plan(request, H200, {}).pieces
    return piece.launches[0].kernel.name


# --- right answers ------------------------------------------------------------------------------------------------------


@EVERY
@pytest.mark.parametrize("m", [*ODD, *EVEN], ids=hex)
def test_hard_operands(kernels: Backend, name: str, m: int) -> None:
    xs = [*hard(m)["x"], *operands(random.Random(f"{name} {m}"), m, 150)]
    assert answers(kernels, name, m, xs) == expected(xs, m)


@EVERY
def test_special_moduli_and_every_length(kernels: Backend, name: str) -> None:
    rng = random.Random(name)
    for m in (*SPECIAL_MODULI, *(modulus_of_bits(rng, bits) | 1 for bits in range(2, 257, 5))):
        xs = operands(rng, m, 40)
        assert answers(kernels, name, m, xs) == expected(xs, m), hex(m)


@EVERY
def test_tiny_moduli_exhaustively(kernels: Backend, name: str) -> None:
    wrong, compared = exhaustive.run(Substituted(kernels, CANDIDATES[name]), MOD_INV)  # type: ignore[arg-type]
    assert not wrong and compared > 4000


@EVERY
def test_a_field_of_384_bits(kernels: Backend, name: str) -> None:
    field = next(field for field in FIELDS if field.name == "bls12_381_fp")
    rng = random.Random(name)
    xs = [0, 1, field.modulus - 1, field.modulus, 2**384 - 1, *(2**k for k in range(384))]
    xs += [hard_integer(rng, 12) for _ in range(60)]
    request = MOD_INV.decode(Call(len(xs), field=field), memoryview(pack(xs, 48)))
    plan = CANDIDATES[name].plan(request, dataclasses.replace(kernels.traits(), whole=True), {})
    assert answers_of(kernels, request, plan) == expected(xs, field.modulus)
    assert kernel_of(name, request) == ("mod_inv_branch_free" if name == "branch-free" else "mod_inv_odd")


@EVERY
@pytest.mark.parametrize("m", [SECP256K1, 15], ids=hex)
def test_results_may_replace_the_operands(name: str, m: int, tmp_path: Path, pytestconfig: pytest.Config) -> None:
    """One array in and out. Not with poisoned results, which would be poisoned operands."""
    folder = Path(pytestconfig.cache.mkdir("kernels")) if pytestconfig.cache else tmp_path
    backend = CpuBackend(cache=Cache(folder), variant=Variant.VERIFY, poison=False)
    xs = operands(random.Random(m), m, 200)
    memory = np.zeros(200 * 8 + 4, np.uint32)
    start = -memory.ctypes.data // 4 % 4  # the CPU backend works in place where memory is aligned to 16 bytes
    array = memory[start : start + 200 * 8].reshape(200, 8)
    array[:] = from_ints(xs)
    request = dataclasses.replace(request_of(m, xs), arrays={"x": array})
    plan = CANDIDATES[name].plan(request, dataclasses.replace(backend.traits(), whole=True), {})
    backend.run(request, plan, array.reshape(-1).view(np.uint8).data)
    backend.close()
    assert to_ints(array) == expected(xs, m)


@EVERY_WARP
@pytest.mark.parametrize("warps", range(1, BLOCK_WARPS + 1))
def test_every_grid_and_block(kernels: Backend, name: str, warps: int) -> None:
    """Warps without an element, with one and with several; more blocks than elements too."""
    rng = random.Random(f"{name} {warps}")
    for n, grid in ((1, 1), (1, 3), (warps, 1), (warps + 1, 1), (2 * warps, 2), (2 * warps + 1, 2), (3 * warps + 1, 1)):
        request = request_of(SECP256K1, xs := operands(rng, SECP256K1, n))
        plan = CANDIDATES[name].plan(request, H200, {})
        (piece,) = plan.pieces
        launch = dataclasses.replace(piece.launches[0], grid=grid, block=WARP * warps)
        plan = dataclasses.replace(plan, pieces=(dataclasses.replace(piece, launches=(launch,)),))
        assert answers_of(kernels, request, plan) == expected(xs, SECP256K1), (n, grid)


# --- operands -----------------------------------------------------------------------------------------------------------


@cache
def table(steps: int) -> list[Transition]:
    return make_table(steps)


def batches(x: int, m: int, shape: Shape, *, exact: bool = True) -> tuple[int, int]:
    """Batches until f = +-1 (not exact: until f looks so in its lowest limb), and the f of the end."""
    size, f, g, count = 1 << shape.batch, m, x, 0
    while g and (abs(f) != 1 if exact else f % size not in (1, size - 1)):
        t = jump(table(shape.steps), shape, f % size, g % size)
        f, g = (t.u * f + t.v * g) >> shape.batch, (t.q * f + t.r * g) >> shape.batch
        count += 1
    return count, f


@pytest.mark.parametrize("shape", [Shape(12, 2), Shape(8, 3)], ids=str)
@pytest.mark.parametrize("m", [SECP256K1, ED25519], ids=hex)
def test_hard_operands_are_hard(shape: Shape, m: int) -> None:
    """They take two and three times as long as usual ones, and most of them look like an end before it is one; usual ones
    never do."""
    xs, rng = [x for x in hard(m)["x"] if 0 < x < m], random.Random(m)
    assert {1, m - 1, *(2**k for k in range(255)), *(m - 2**k for k in range(255)), 2**192} <= set(xs)
    usual = [rng.randrange(m) for _ in range(300)]
    longest = max(batches(x, m, shape)[0] for x in xs)
    assert longest >= 2 * max(batches(x, m, shape)[0] for x in usual)
    false_ends = [sum(abs(batches(x, m, shape, exact=False)[1]) != 1 for x in each) for each in (xs, usual)]
    assert false_ends[0] > len(xs) // 3 and false_ends[1] == 0
    assert abs(batches(2**192, m, shape, exact=False)[1]) != 1


# --- launches -----------------------------------------------------------------------------------------------------------


@EVERY
def test_odd_moduli_go_to_the_candidate_and_even_ones_to_the_incumbent(name: str) -> None:
    own = "mod_inv_branch_free" if name == "branch-free" else "mod_inv_warp"
    assert {kernel_of(name, request_of(m, [1])) for m in ODD} == {own}
    for m in EVEN:
        assert CANDIDATES[name].plan(request_of(m, [1]), H200, {}) == MOD_INV.plan(request_of(m, [1]), H200)


def test_a_multiprocessor_has_one_block_until_its_warps_are_busy() -> None:
    full = 132 * BLOCK_WARPS
    assert [blocks(n, 132) for n in (1, 131, 132, 133, full, full + 1)] == [1, 131, 132, 132, 132, 264]
    assert [blocks(n, 132) for n in (2 * full, 2 * full + 1, 10**6)] == [264, 396, 132 * RESIDENT]


@EVERY
def test_there_are_no_options(name: str) -> None:
    with pytest.raises(InputError, match="no options, not warps"):
        CANDIDATES[name].plan(request_of(15, [1]), H200, {"warps": 2})


def test_an_empty_batch_needs_no_launch() -> None:
    assert all(not side.plan(request_of(15, []), H200, {}).pieces for side in CANDIDATES.values())


# --- what NVRTC makes of them -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_nothing_spills(arch: str) -> None:
    """Nor lies in local memory; and registers allow as many warps as are meant to run."""
    pytest.importorskip("cuda.bindings.nvrtc")
    from limbd.worker.device.nvrtc import Nvrtc

    checked = check(arch, Nvrtc(), [branch_free_unit(12), *sass_units().values()])
    assert not [problem for one in checked for problem in one.problems()]
    used = {usage.function: usage for one in checked[1:] for usage in one.usage}
    assert all(usage.stack == 0 for usage in used.values())
    assert used["mod_inv_branch_free"].registers <= 80  # 24 warps of 65,536 registers
    assert max(usage.registers for one in checked[2:] for usage in one.usage) <= 48  # 40 warps


@pytest.mark.parametrize("m", [SECP256K1, 21], ids=hex)
def test_the_ptx_of_the_branch_free_form(m: int) -> None:
    """Interpreted, which the forms of a warp cannot be."""
    pytest.importorskip("cuda.bindings.nvrtc")
    from limbd.harness.ptx_backend import PtxBackend

    xs = [*operands(random.Random(m), m, 6), 0, 1, 2, m - 1, 2**192 % m, 2**256 - 1]
    assert answers(PtxBackend(verify=True), "branch-free", m, xs) == expected(xs, m)
