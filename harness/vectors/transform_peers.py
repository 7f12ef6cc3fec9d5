"""Two definitions of ntt that share no step, by which shipped answers are made and checked.

by_definition: GMP, each value of the polynomial by itself. by_steps: CPython, halving from the top (Gentleman, Sande, Fast
Fourier transforms for fun and profit, 1966), which leaves the values in bit-reversed order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gmpy2

from limbd.harness.inputs import Residues
from limbd.ops.ntt import COSET, INVERSE, ORDER_SHIFT
from limbd.ops.params.fields import by_modulus
from limbd.ops.transform_op import LOG_N
from limbd.ops.transform_shape import Order

Column = Sequence[int]


def by_definition(residues: Residues, x: Column) -> list[int]:
    """Each result as the sum that defines it."""
    m = gmpy2.mpz(residues.modulus)

    def evaluate(values: Column, omega: int, shift: int) -> list[int]:
        points = [gmpy2.powmod(omega, j, m) * shift % m for j in range(len(values))]
        return [int(_horner(values, point, m)) for point in points]

    def interpolate(values: Column, omega: int, shift: int) -> list[int]:
        inverse, back = gmpy2.invert(omega, m), gmpy2.invert(shift, m)
        scale = gmpy2.invert(len(values), m)
        sums = [_horner(values, gmpy2.powmod(inverse, i, m), m) for i in range(len(values))]
        return [int(value * scale * gmpy2.powmod(back, i, m) % m) for i, value in enumerate(sums)]

    return _each(residues, x, interpolate if residues.param & INVERSE else evaluate)


def _horner(values: Column, point: Any, m: Any) -> Any:
    total = gmpy2.mpz(0)
    for value in reversed(values):
        total = (total * point + value) % m
    return total


def by_steps(residues: Residues, x: Column) -> list[int]:
    """By log n steps over Python's integers."""
    m = residues.modulus

    def evaluate(values: Column, omega: int, shift: int) -> list[int]:
        return _steps([value * pow(shift, i, m) % m for i, value in enumerate(values)], omega, m)

    def interpolate(values: Column, omega: int, shift: int) -> list[int]:
        sums, scale, back = _steps(list(values), pow(omega, -1, m), m), pow(len(values), -1, m), pow(shift, -1, m)
        return [value * scale * pow(back, i, m) % m for i, value in enumerate(sums)]

    return _each(residues, x, interpolate if residues.param & INVERSE else evaluate)


def _steps(a: list[int], omega: int, m: int) -> list[int]:
    half = len(a) // 2
    while half:
        for start in range(0, len(a), 2 * half):
            twiddle = 1
            for i in range(start, start + half):
                a[i], a[i + half] = (a[i] + a[i + half]) % m, (a[i] - a[i + half]) * twiddle % m
                twiddle = twiddle * omega % m
        omega, half = omega * omega % m, half // 2
    return _reversed(a)


def _each(residues: Residues, x: Column, transform: Any) -> list[int]:
    """The transforms of a frame one by one, their elements put into natural order and back."""
    param, k = residues.param, residues.param & LOG_N
    omega, shift = residues.domain or _registered(residues)
    order = Order(param >> ORDER_SHIFT & 3)
    out: list[int] = []
    for start in range(0, len(x), 1 << k):
        values = list(x[start : start + (1 << k)])
        values = _reversed(values) if order.reversed_in else values
        values = transform(values, omega, shift if param & COSET else 1)
        out += _reversed(values) if order.reversed_out else values
    return out


def _registered(residues: Residues) -> tuple[int, int]:
    """The default domain of the registered field with this modulus."""
    field = residues.field or by_modulus(residues.modulus)
    assert field is not None and field.generator is not None
    return pow(field.generator, field.modulus - 1 >> (residues.param & LOG_N), field.modulus), field.generator


def _reversed(a: Sequence[int]) -> list[int]:
    bits = len(a).bit_length() - 1
    return [a[sum((i >> b & 1) << (bits - 1 - b) for b in range(bits))] for i in range(len(a))]
