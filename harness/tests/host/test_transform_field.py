"""Sums, differences and products of a transform's residues against Python's integers, at both ends of their ranges."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from limbd.harness.inputs import hard_integer
from limbd.harness.layer_check import LayerCheck
from limbd.ops.base import Member
from limbd.ops.params.base import Field
from limbd.ops.params.fields import FIELDS
from limbd.ops.params.render import render, struct_name
from limbd.ops.transform import is_lazy, transforms
from limbd.worker.device.base import Backend

ROW = 8
CASES = 80

# Beside the registered ones: the largest moduli that are lazy, and that are not, and a modulus of all its bits.
OTHERS = (
    Field(0x7F60, "lazy_most", 2**254 - 9 * 2**30 + 1, "the largest prime of 254 bits that is 1 mod 2^30", generator=3),
    Field(
        0x7F61, "exact_least", 2**255 - 205 * 2**40 + 1, "the largest prime of 255 bits that is 1 mod 2^40", generator=3
    ),
    Field(0x7F62, "full", 2**256 - 43 * 2**32 + 1, "the largest prime of 256 bits that is 1 mod 2^32", generator=7),
    Field(0x7F63, "three_limbs", 2**90 - 2**20 + 1, "a prime of 90 bits", generator=7),
)
MODULI = (*(field for field in FIELDS if transforms(field)), *OTHERS)

# name: (number, bounds of x, y and the result in multiples of m, lazy and exact alike; model)
TIGHT, LOOSE, CANONICAL = "tight", "loose", "canonical"
OPERATIONS: dict[str, tuple[int, str, str, str, Callable[[int, int], int]]] = {
    "add": (0, TIGHT, TIGHT, TIGHT, lambda x, y: x + y),
    "subtract": (1, TIGHT, TIGHT, TIGHT, lambda x, y: x - y),
    "add_loose": (2, TIGHT, TIGHT, LOOSE, lambda x, y: x + y),
    "subtract_loose": (3, TIGHT, TIGHT, LOOSE, lambda x, y: x - y),
    "multiply": (4, LOOSE, CANONICAL, TIGHT, lambda x, w: x * w),
    "finish": (5, LOOSE, CANONICAL, CANONICAL, lambda x, _: x),
    "product": (6, TIGHT, TIGHT, TIGHT, lambda x, y: x * y),
}


def bound(field: Field, kind: str) -> int:
    """The first integer beyond a range of kernels/field/transform.cuh."""
    multiples = {CANONICAL: 1, TIGHT: 2, LOOSE: 4} if is_lazy(field) else dict.fromkeys((CANONICAL, TIGHT, LOOSE), 1)
    return multiples[kind] * field.modulus


def values(rng: random.Random, field: Field, kind: str) -> list[int]:
    """Ends and multiples of m within the range, hard limbs, any."""
    end, m = bound(field, kind), field.modulus
    near = [v + d for v in range(0, end + 1, m) for d in (-2, -1, 0, 1)]
    edges = [v for v in near if 0 <= v < end]
    draws = (lambda: rng.choice(edges), lambda: hard_integer(rng) % end, lambda: rng.randrange(end))
    return [*edges, *(rng.choice(draws)() for _ in range(CASES - len(edges)))]


@pytest.mark.parametrize("field", MODULI, ids=lambda field: field.name)
def test_every_operation(field: Field, layers: Backend) -> None:
    scalars = (Member("operation", "u32"), Member("n0inv", "u32"), Member("modulus", "limbs", field.montgomery_limbs))
    params = f"{render(field)}\nusing PARAMS = {struct_name(field)};\n"
    check = LayerCheck("transform_check", ("x", "y"), scalars, {}, ROW, params=params)
    for name, (number, of_x, of_y, of_result, model) in OPERATIONS.items():
        rng = random.Random(f"{name} {field.name}")
        xs, ys = values(rng, field, of_x), values(rng, field, of_y)
        rng.shuffle(ys)
        if name == "subtract_loose":  # both ends meet: 0 - (2m - 1), (2m - 1) - 0
            xs += [0, bound(field, of_x) - 1]
            ys += [bound(field, of_y) - 1, 0]
        scalar = {"operation": number, "n0inv": field.n0inv, "modulus": field.modulus}
        for x, y, got in zip(xs, ys, check.run(layers, {"x": xs, "y": ys}, scalar), strict=True):
            assert got < bound(field, of_result), f"{name}({x:#x}, {y:#x}) = {got:#x}"
            assert (got - model(x, y)) % field.modulus == 0, f"{name}({x:#x}, {y:#x}) = {got:#x}"


def test_both_forms_are_there() -> None:
    assert {is_lazy(field) for field in MODULI if field.bits > 250} == {False, True}
