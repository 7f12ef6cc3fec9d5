"""Two definitions of quotient that share no step, by which shipped answers are made and checked.

by_definition: GMP, A B - C value by value on the coset. by_product: CPython, the polynomial A B - C itself, multiplied out and
taken modulo X^n - shift^n, which has the same values on the coset.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import gmpy2

from limbd.harness.inputs import Residues
from limbd.harness.vectors import transform_peers
from limbd.ops import ntt
from limbd.ops.params.fields import registered
from limbd.ops.quotient import COEFFICIENTS
from limbd.ops.transform_op import LOG_N

Column = Sequence[int]


def by_definition(residues: Residues, a: Column, b: Column, c: Column) -> list[int]:
    """Transforms by their definition, and the products and differences of values."""
    m, (_, shift) = gmpy2.mpz(residues.modulus), domain_of(residues)
    back, there = _transform(residues, inverse=True, coset=False), _transform(residues, inverse=False, coset=True)
    on_coset = (transform_peers.by_definition(there, transform_peers.by_definition(back, x)) for x in (a, b, c))
    values = [int((x * y - z) % m) for x, y, z in zip(*on_coset, strict=True)]
    if not residues.param & COEFFICIENTS:
        return values
    by_z = gmpy2.invert(gmpy2.powmod(shift, 1 << (residues.param & LOG_N), m) - 1, m)
    divided = [int(value * by_z % m) for value in values]
    return transform_peers.by_definition(_transform(residues, inverse=True, coset=True), divided)


def by_product(residues: Residues, a: Column, b: Column, c: Column) -> list[int]:
    """Coefficients of A B - C modulo X^n - shift^n, divided by shift^n - 1 or evaluated."""
    m, n, (_, shift) = residues.modulus, 1 << (residues.param & LOG_N), domain_of(residues)
    back = _transform(residues, inverse=True, coset=False)
    of_a, of_b, of_c = (transform_peers.by_steps(back, x) for x in (a, b, c))
    out: list[int] = []
    for at in range(0, len(a), n):
        product = _folded(of_a[at : at + n], of_b[at : at + n], pow(shift, n, m))
        out += [(x - y) % m for x, y in zip(product, of_c[at : at + n], strict=True)]
    if residues.param & COEFFICIENTS:
        by_z = pow(pow(shift, n, m) - 1, -1, m)
        return [value * by_z % m for value in out]
    return transform_peers.by_steps(_transform(residues, inverse=False, coset=True), out)


def domain_of(residues: Residues) -> tuple[int, int]:
    """omega and shift, or the default ones: roots of unity of order 2^k and 2^(k + 1)."""
    if residues.domain:
        return residues.domain[0], residues.domain[1]
    field = residues.field or next(field for field in registered() if field.modulus == residues.modulus)
    assert field.generator is not None
    m, k = field.modulus, residues.param & LOG_N
    return pow(field.generator, m - 1 >> k, m), pow(field.generator, m - 1 >> (k + 1), m)


def _transform(residues: Residues, *, inverse: bool, coset: bool) -> Residues:
    """Of the same domain, as an ntt."""
    param = ntt.param_of(residues.param & LOG_N, inverse=inverse, coset=coset, own=True)
    return replace(residues, param=param, domain=domain_of(residues))


def _folded(a: Column, b: Column, wrap: int) -> list[int]:
    """The product of two polynomials of n coefficients modulo X^n - wrap, not reduced."""
    n = len(a)
    out = [0] * (2 * n)
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            out[i + j] += x * y
    return [low + wrap * high for low, high in zip(out[:n], out[n:], strict=True)]
