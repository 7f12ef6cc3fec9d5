"""Plan 0002's candidate against mod-inv's definition: sizes around a warp, zeros, non-units, every kind of modulus."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from limbd.harness.candidates import plan_0002
from limbd.harness.inputs import operands
from limbd.harness.textio import InputError
from limbd.ops import by_name
from limbd.ops.base import Request
from limbd.ops.params import fields
from limbd.ops.params.base import Field
from limbd.ops.params.layout import from_ints, to_mpz
from limbd.worker.device.base import Backend

PRIME = (1 << 256) - (1 << 32) - 977
MODULI = (1, 2, 3, 15, 16, 1 << 32, (1 << 32) + 1, (1 << 64) - 59, PRIME, 1 << 255, (1 << 256) - 2, (1 << 256) - 1)


def inverses(backend: Backend, modulus: int, values: list[int], field: Field | None = None) -> list[int]:
    words = field.element_bytes // 4 if field else 8
    arrays = {"x": from_ints(values, words)}
    request = Request(by_name("mod-inv"), len(values), 0, modulus, 4 * words, arrays, field)
    result = np.full((request.n, words), 0xA5A5A5A5, np.uint32)
    (side,) = plan_0002.CANDIDATES.values()
    backend.run(request, side.plan(request, backend.traits(), {}), result.data.cast("B"))
    return [int(x) for x in to_mpz(result)]


def right(modulus: int, values: list[int]) -> list[int]:
    return [pow(x, -1, modulus) if math.gcd(x, modulus) == 1 else 0 for x in values]


@pytest.mark.parametrize("n", [1, 2, 31, 32, 33, 63, 64, 65, 127, 257, 1000])
def test_sizes(kernels: Backend, n: int) -> None:
    rng = random.Random(n)
    values = [rng.randrange(1, PRIME) for _ in range(n)]
    assert inverses(kernels, PRIME, values) == right(PRIME, values)


@pytest.mark.parametrize("n", [1, 2, 33, 96])
def test_zeros_stay_alone(kernels: Backend, n: int) -> None:
    rng = random.Random(n)
    for zeros in ([0], [n - 1], range(0, n, 3), range(n)):
        values = [rng.randrange(1, 1 << 256) for _ in range(n)]
        for i in zeros:
            values[i] = rng.choice((0, PRIME))
        assert inverses(kernels, PRIME, values) == right(PRIME, values)


@pytest.mark.parametrize("modulus", MODULI, ids=hex)
def test_moduli_with_operands_of_every_kind(kernels: Backend, modulus: int) -> None:
    values = operands(random.Random(modulus), modulus, 70, 256)
    assert inverses(kernels, modulus, values) == right(modulus, values)


def test_two_non_units_whose_product_is_zero(kernels: Backend) -> None:
    values = [3, 5, 2, 7, 9, 10, 15, 0, 1] * 5
    assert inverses(kernels, 15, values) == right(15, values)


def test_a_field_above_256_bits(kernels: Backend) -> None:
    field = fields.by_name("bls12_381_fp")
    assert field is not None
    values = operands(random.Random(12), field.modulus, 40, 384)
    assert inverses(kernels, field.modulus, values, field) == right(field.modulus, values)


def test_it_takes_no_options(kernels: Backend) -> None:
    request = Request(by_name("mod-inv"), 1, 0, 7, 32, {"x": from_ints([1], 8)})
    with pytest.raises(InputError, match="no options, not rounds"):
        plan_0002.plan(request, kernels.traits(), {"rounds": 1})
