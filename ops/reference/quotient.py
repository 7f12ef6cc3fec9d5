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
