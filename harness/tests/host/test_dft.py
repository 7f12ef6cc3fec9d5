"""Transforms in registers (kernels/algo/dft.cuh) against the definition, operands up to the bound that the contract allows."""

from __future__ import annotations

import random

import pytest

from limbd.harness.layer_check import LayerCheck
from limbd.ops.base import Member
from limbd.ops.constant_product import SLACK, fits, roomy
from limbd.ops.params.base import Field
from limbd.ops.params.fields import FIELDS
from limbd.ops.params.render import render, struct_name
from limbd.ops.transform import root_constants
from limbd.worker.device.base import Backend

ROW = 120
CASES = 24

NAMED = {field.name: field for field in FIELDS}
FULL = Field(0x7F71, "full", 2**256 - 43 * 2**32 + 1, "the largest prime of 256 bits that is 1 mod 2^32", generator=7)


@pytest.mark.parametrize(
    "field", [*(NAMED[n] for n in ("bn254_fr", "bls12_381_fr", "goldilocks", "toy_97")), FULL], ids=lambda f: f.name
)
def test_dft(field: Field, layers: Backend) -> None:
    room = roomy(field)
    m, bits = field.modulus, 32 * room.montgomery_limbs
    e = 1 << (bits - 32)
    bound = (2 if fits(room, 4, SLACK) else 1) * m + (0 if m // e < 2**16 else 8) * e
    text = f"{render(room)}using FIELD = {struct_name(room)};\n"
    check = LayerCheck("dft_check", ("x", "y"), (Member("operation", "u32"),), {}, ROW, params=text)
    for rho in (0, 1, 2, 3):
        size = 1 << rho
        for power in (1, 3):
            w = pow(field.omega(rho), power, m)
            rng = random.Random(f"{field.name} {rho} {power}")
            edges = (0, 1, m - 1, bound - 1, bound - 2)
            rows = [[rng.choice((*edges, rng.randrange(bound))) for _ in range(size)] for _ in range(CASES)]
            # Sums and differences at their ends, in every stage.
            rows += [[bound - 1 if i & mask else 0 for i in range(size)] for mask in range(size)]
            rows += [[0 if i & mask else bound - 1 for i in range(size)] for mask in range(size)]
            x = [sum(value << bits * i for i, value in enumerate(row)) for row in rows]
            y = [root_constants(field, rho, w)] * len(x)
            for row, got in zip(rows, check.run(layers, {"x": x, "y": y}, {"operation": rho}), strict=True):
                want = [sum(value * pow(w, t * d, m) for t, value in enumerate(row)) % m for d in range(size)]
                assert [got >> bits * d & (1 << bits) - 1 for d in range(size)] == want, (rho, power, row)
