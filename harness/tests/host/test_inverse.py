"""Modular inversion: structured operands through the op on every backend, and the layer's other forms."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from pathlib import Path

import gmpy2
import numpy as np
import pytest

from limbd.harness.inputs import PLAIN_BITS, SPECIAL_MODULI, Residues, hard_integer, modulus_of_bits, operands
from limbd.harness.layer_check import LayerCheck
from limbd.harness.ptx_backend import PtxBackend
from limbd.harness.targets import BackendTarget
from limbd.kernels.source import ROOT, Sources
from limbd.ops.base import Call, Member
from limbd.ops.mod_inv import MOD_INV, limbs30, odd_modulus
from limbd.ops.params.fields import FIELDS
from limbd.ops.params.layout import from_ints, pack, to_ints, unpack
from limbd.ops.reference.mod_inv import inverse
from limbd.worker.device.base import Backend
from limbd.worker.device.cache import Cache
from limbd.worker.device.cpu import CpuBackend
from limbd.worker.device.host_compiler import Variant

SECP256K1 = 2**256 - 2**32 - 977
WORDS = 8

# Two primes of 128 bits: a modulus whose non-units are large, so that f ends as a long gcd.
P128, Q128 = 2**128 - 159, 2**127 - 1

MODULI = (
    SECP256K1,
    SECP256K1 - 1,
    P128 * Q128,
    2 * P128,
    3**161,
    5 * (2**253 - 1),
    *(2**k for k in (1, 2, 3, 29, 30, 31, 32, 60, 64, 255)),
    *(2**k - 1 for k in (2, 29, 30, 31, 32, 60, 64, 120, 240, 255, 256)),
    *(2**k + 1 for k in (29, 30, 31, 60, 240, 255)),
    2**256 - 2,
)


def expected(xs: Sequence[int], m: int) -> list[int]:
    return [int(inverse(gmpy2.mpz(x), gmpy2.mpz(m))) for x in xs]


def structured(m: int) -> list[int]:
    """Powers of two and their neighbours, fractions of m, multiples of its factors: divsteps in their extreme orders."""
    powers = [2**k for k in range(PLAIN_BITS)]
    near = [p - 1 for p in powers] + [p + 1 for p in powers]
    of_m = (
        [m - p for p in powers if p <= m]
        + [m // k for k in (2, 3, 5, 7)]
        + [(m + 1) // 2, m - 1, m, m + 1, 2 * m, 3 * m]
    )
    factors = [k * f for f in (3, 5, P128, Q128, 2**64) for k in (1, 2, 3, m // f - 1 if m > f else 1)]
    values = (0, *powers, *near, *of_m, *factors, 2**256 - 1)
    return sorted({value for value in values if 0 <= value < 2**PLAIN_BITS})


def answers(backend: Backend, residues: Residues, xs: Sequence[int]) -> list[int]:
    arrays = {"x": from_ints(xs, residues.bits // 32)}
    return to_ints(BackendTarget(backend).answer("mod-inv", residues, arrays))


@pytest.mark.parametrize("m", MODULI, ids=hex)
def test_structured_operands(m: int, kernels: Backend) -> None:
    xs = structured(m)
    assert answers(kernels, Residues(m), xs) == expected(xs, m)


def test_a_product_of_result_and_operand_is_one(kernels: Backend) -> None:
    """By the definition of an inverse rather than by another library."""
    rng = random.Random("definition")
    for _ in range(60):
        m = modulus_of_bits(rng, rng.randrange(2, 257))
        xs = operands(rng, m, 40)
        for x, got in zip(xs, answers(kernels, Residues(m), xs), strict=True):
            assert 0 <= got < m
            assert x * got % m == 1 if math.gcd(x, m) == 1 else got == 0


def test_a_field_of_384_bits(kernels: Backend) -> None:
    field = next(field for field in FIELDS if field.name == "bls12_381_fp")
    rng = random.Random(field.name)
    xs = [0, 1, 2, field.modulus - 1, field.modulus, field.modulus + 1, 2**384 - 1, 2**383]
    xs += [2**k for k in range(384)] + [hard_integer(rng, 12) for _ in range(60)]
    assert answers(kernels, Residues(field.modulus, field), xs) == expected(xs, field.modulus)


def test_any_odd_and_even_modulus_of_384_bits(kernels: Backend) -> None:
    """No field has one yet: what the same unit does for the widest moduli."""
    rng = random.Random("384")
    field = next(field for field in FIELDS if field.name == "bls12_381_fp")
    for m in (2**384 - 1, 2**384 - 2, 2**383, hard_integer(rng, 12) | 1, hard_integer(rng, 12) | 2):
        xs = [rng.getrandbits(384) for _ in range(30)] + [hard_integer(rng, 12) for _ in range(30)]
        request = MOD_INV.decode(Call(len(xs), field=field), memoryview(pack(xs, 48)))
        request = type(request)(**{**vars(request), "modulus": m})
        result = bytearray(48 * len(xs))
        kernels.run(request, MOD_INV.plan(request, kernels.traits()), memoryview(result))
        assert unpack(result, 48) == expected(xs, m)


@pytest.mark.parametrize("m", [SECP256K1, 2**256 - 2, 15], ids=hex)
def test_results_may_replace_the_operands(m: int, tmp_path: Path, pytestconfig: pytest.Config) -> None:
    """One array in and out. Not with poisoned results, which would be poisoned operands."""
    folder = Path(pytestconfig.cache.mkdir("kernels")) if pytestconfig.cache else tmp_path
    backend = CpuBackend(cache=Cache(folder), variant=Variant.VERIFY, poison=False)
    rng = random.Random(m)
    xs = operands(rng, m, 300)
    memory = np.zeros(300 * WORDS + 4, np.uint32)
    start = -memory.ctypes.data // 4 % 4  # the CPU backend works in place where memory is aligned to 16 bytes
    array = memory[start : start + 300 * WORDS].reshape(300, WORDS)
    array[:] = from_ints(xs)
    request = MOD_INV.decode(Call(300), memoryview(pack([m]) + pack(xs)))
    request = type(request)(**{**vars(request), "arrays": {"x": array}})
    backend.run(request, MOD_INV.plan(request, backend.traits()), array.reshape(-1).view(np.uint8).data)
    backend.close()
    assert to_ints(array) == expected(xs, m)


# --- the layer --------------------------------------------------------------------------------------------------------


LAYERS = Sources((Path(__file__).parent / "layers", ROOT))


@pytest.mark.parametrize("words", [8, 12])
def test_the_fixed_number_of_batches(words: int, pytestconfig: pytest.Config, tmp_path: Path) -> None:
    folder = Path(pytestconfig.cache.mkdir("kernels")) if pytestconfig.cache else tmp_path
    backend = CpuBackend(cache=Cache(folder), variant=Variant.VERIFY, sources=LAYERS)
    bits, count = 32 * words, limbs30(words)
    check = LayerCheck(
        "inverse_fixed",
        ("x",),
        (Member("modulus30", "limbs", count), Member("negated_inverse4", "u32")),
        {"LIMBS": words, "LIMBS30": count},
        words + 4,
    )
    rng = random.Random(words)
    special = [m for m in SPECIAL_MODULI if m % 2]
    for m in (*range(1, 40, 2), *special, SECP256K1, 2**bits - 1, hard_integer(rng, words) | 1):
        xs = [*operands(rng, m, 30, bits), 0, 1, m - 1, m, 2**192, 2**bits - 1]
        right = [
            value + (1 << bits) if math.gcd(x, m) == 1 else 0 for x, value in zip(xs, expected(xs, m), strict=True)
        ]
        assert check.run(backend, {"x": xs}, odd_modulus(m, words)) == right
    backend.close()


@pytest.mark.parametrize("m", [SECP256K1, 2**256 - 2, 21], ids=hex)
def test_the_instructions_for_cuda(m: int) -> None:
    """The divstep and the wide sums that are written in PTX, interpreted."""
    pytest.importorskip("cuda.bindings.nvrtc")
    backend = PtxBackend(verify=True)
    rng = random.Random(m)
    xs = [*operands(rng, m, 8), 0, 1, 2, m - 1, 2**192 % m, 2**256 - 1]
    assert answers(backend, Residues(m), xs) == expected(xs, m)
