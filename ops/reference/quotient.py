"""quotient as it is defined: A, B and C from their values on the domain, A B - C on the coset, and on request its quotient by Z.

Z is the polynomial X^(2^k) - 1, which is 0 on the domain and the same number everywhere on the coset. Source: J. Groth, On
the size of pairing-based non-interactive arguments (2016), where h = (A B - C) / Z is the prover's quotient.
"""

from __future__ import annotations

from collections.abc import Sequence

import gmpy2

from limbd.ops.base import Request
from limbd.ops.params.layout import pack, to_mpz
from limbd.ops.reference.ntt import backward, checked, forward

# Bits of param (wire.md section 4); ops/quotient.py has the same.
_LOG_N, _COEFFICIENTS = 0xFF, 1 << 13


def quotient(request: Request, result: memoryview) -> None:
    """Writes n elements. Raises RequestError(BAD_ELEMENT) with the lowest index of an element, counted through a, b and c,
    that is not below m."""
    m, n, size = gmpy2.mpz(request.modulus), request.n, 1 << (request.param & _LOG_N)
    omega, shift = (gmpy2.mpz(request.constants[name]) for name in ("omega", "shift"))
    abc = checked([value for name in "abc" for value in to_mpz(request.arrays[name])], m)
    out: list[gmpy2.mpz] = []
    for start in range(0, n, size):
        a, b, c = (on_coset(abc[i * n + start :][:size], omega, shift, m) for i in range(3))
        values = [(x * y - z) % m for x, y, z in zip(a, b, c, strict=True)]
        out += divided(values, omega, shift, m) if request.param & _COEFFICIENTS else values
    result[:] = pack(out, request.element_bytes)


def on_coset(x: Sequence[gmpy2.mpz], omega: gmpy2.mpz, shift: gmpy2.mpz, m: gmpy2.mpz) -> list[gmpy2.mpz]:
    """Values at shift omega^j of the polynomial whose values at omega^j are x."""
    return forward(backward(x, omega, gmpy2.mpz(1), m), omega, shift, m)


def divided(x: Sequence[gmpy2.mpz], omega: gmpy2.mpz, shift: gmpy2.mpz, m: gmpy2.mpz) -> list[gmpy2.mpz]:
    """Coefficients of the polynomial whose values at shift omega^j are x[j] / Z."""
    by_z = gmpy2.invert(gmpy2.powmod(shift, len(x), m) - 1, m)
    return backward([value * by_z % m for value in x], omega, shift, m)


def holds_at(request: Request, abc: Sequence[Sequence[gmpy2.mpz]], out: Sequence[gmpy2.mpz], j: int) -> bool:
    """Whether one transform's answer is right at t = shift omega^j: the value of A B - C there, or Z times that of the
    polynomial whose coefficients it has, so that any single wrong one is seen."""
    m = gmpy2.mpz(request.modulus)
    omega, shift = (gmpy2.mpz(request.constants[name]) for name in ("omega", "shift"))
    t = shift * gmpy2.powmod(omega, j, m) % m
    a, b, c = values_at(abc, t, omega, m)
    if not request.param & _COEFFICIENTS:
        return bool(out[j] == (a * b - c) % m)
    total = gmpy2.mpz(0)
    for coefficient in reversed(out):
        total = (total * t + coefficient) % m
    vanishing = gmpy2.powmod(shift, len(out), m) - 1
    return bool((total * vanishing - (a * b - c)) % m == 0 and max(out) < m)


def values_at(abc: Sequence[Sequence[gmpy2.mpz]], t: gmpy2.mpz, omega: gmpy2.mpz, m: gmpy2.mpz) -> list[gmpy2.mpz]:
    """At t, of the polynomials whose values at omega^i are given: the barycentric formula, (t^n - 1) / n times the sum of
    a_i omega^i / (t - omega^i). Source: Berrut and Trefethen, Barycentric Lagrange interpolation (2004), section 3."""
    point, totals = gmpy2.mpz(1), [gmpy2.mpz(0)] * len(abc)
    for row in zip(*abc, strict=True):
        if point == t:
            return list(row)
        weight = point * gmpy2.invert(t - point, m) % m
        totals = [total + weight * value for total, value in zip(totals, row, strict=True)]
        point = point * omega % m
    n = len(abc[0])
    share = (gmpy2.powmod(t, n, m) - 1) * gmpy2.invert(n, m) % m
    return [total * share % m for total in totals]
