"""ntt as it is defined, X[j] = sum of x[i] omega^(i j): by the definition for small sizes, by radix 2 above.

Forward on a coset: x[i] is multiplied by shift^i first, so that X[j] is the polynomial's value at shift omega^j. The inverse
undoes it: x[i] = shift^-i / 2^k times the sum of X[j] omega^(-i j). Indices are natural; an order only says where an element
lies. Sources: J. W. Cooley, J. W. Tukey, An algorithm for the machine calculation of complex Fourier series (1965); J. M.
Pollard, The fast Fourier transform in a finite field (1971).
"""

from __future__ import annotations

from collections.abc import Sequence

import gmpy2

from limbd.ops.base import Request
from limbd.ops.params.layout import pack, to_mpz
from limbd.ops.status import RequestError, Status

# Up to this k the sum is taken as it stands.
DEFINITION_LOG_N = 4

# Bits of param (wire.md section 4); ops/ntt.py has the same.
_LOG_N, _INVERSE, _COSET, _REVERSED_OUT, _REVERSED_IN = 0xFF, 1 << 8, 1 << 9, 1 << 10, 1 << 11


def ntt(request: Request, result: memoryview) -> None:
    """Writes n elements. Raises RequestError(BAD_ELEMENT) with the lowest index of an element that is not below m."""
    m, param = gmpy2.mpz(request.modulus), request.param
    k, omega = param & _LOG_N, gmpy2.mpz(request.constants["omega"])
    shift = gmpy2.mpz(request.constants["shift"] if param & _COSET else 1)
    x = checked(to_mpz(request.arrays["x"]), m)
    out: list[gmpy2.mpz] = []
    for start in range(0, len(x), 1 << k):
        one = x[start : start + (1 << k)]
        one = bit_reversed(one, k) if param & _REVERSED_IN else one
        one = backward(one, omega, shift, m) if param & _INVERSE else forward(one, omega, shift, m)
        out += bit_reversed(one, k) if param & _REVERSED_OUT else one
    result[:] = pack(out, request.element_bytes)


def checked(x: list[gmpy2.mpz], m: gmpy2.mpz) -> list[gmpy2.mpz]:
    """x, if all of it is below m. Raises RequestError(BAD_ELEMENT)."""
    bad = next((i for i, value in enumerate(x) if value >= m), None)
    if bad is not None:
        raise RequestError(Status.BAD_ELEMENT, "an element is not below the modulus", index=bad)
    return x


def forward(x: Sequence[gmpy2.mpz], omega: gmpy2.mpz, shift: gmpy2.mpz, m: gmpy2.mpz) -> list[gmpy2.mpz]:
    """Values of the polynomial with coefficients x at shift omega^j, natural order."""
    return transform(scaled(x, shift, gmpy2.mpz(1), m), omega, m)


def backward(x: Sequence[gmpy2.mpz], omega: gmpy2.mpz, shift: gmpy2.mpz, m: gmpy2.mpz) -> list[gmpy2.mpz]:
    """Coefficients of the polynomial whose values at shift omega^j are x, natural order."""
    summed = transform(list(x), gmpy2.invert(omega, m), m)
    return scaled(summed, gmpy2.invert(shift, m), gmpy2.invert(gmpy2.mpz(len(x)), m), m)


def scaled(x: Sequence[gmpy2.mpz], base: gmpy2.mpz, start: gmpy2.mpz, m: gmpy2.mpz) -> list[gmpy2.mpz]:
    """x[i] start base^i mod m."""
    out, factor = [], start
    for value in x:
        out.append(value * factor % m)
        factor = factor * base % m
    return out


def transform(x: list[gmpy2.mpz], omega: gmpy2.mpz, m: gmpy2.mpz) -> list[gmpy2.mpz]:
    """The sums of x[i] omega^(i j) mod m for j = 0..n-1; omega has order n = 2^k."""
    n = len(x)
    if n <= 1 << DEFINITION_LOG_N:
        powers = [gmpy2.powmod(omega, e, m) for e in range(n)]
        return [sum((x[i] * powers[i * j % n] for i in range(n)), gmpy2.mpz(0)) % m for j in range(n)]
    even, odd = transform(x[::2], omega * omega % m, m), transform(x[1::2], omega * omega % m, m)
    out, twiddle = [gmpy2.mpz(0)] * n, gmpy2.mpz(1)
    for j in range(n // 2):
        turned = odd[j] * twiddle % m
        out[j], out[j + n // 2] = (even[j] + turned) % m, (even[j] - turned) % m
        twiddle = twiddle * omega % m
    return out


def result_at(request: Request, x: Sequence[gmpy2.mpz], place: int) -> gmpy2.mpz:
    """One result of a transform of x, as it lies in the request, by the definition: what stands at `place` of the answer."""
    m, param = gmpy2.mpz(request.modulus), request.param
    k, omega = param & _LOG_N, gmpy2.mpz(request.constants["omega"])
    shift = gmpy2.mpz(request.constants["shift"] if param & _COSET else 1)
    j = reverse(place, k) if param & _REVERSED_OUT else place
    x = bit_reversed(x, k) if param & _REVERSED_IN else x
    if not param & _INVERSE:
        return _horner(x, gmpy2.powmod(omega, j, m) * shift % m, m)
    summed = _horner(x, gmpy2.powmod(omega, -j, m), m)
    return summed * gmpy2.powmod(shift, -j, m) * gmpy2.invert(len(x), m) % m


def _horner(x: Sequence[gmpy2.mpz], point: gmpy2.mpz, m: gmpy2.mpz) -> gmpy2.mpz:
    """The value at a point of the polynomial with coefficients x."""
    total = gmpy2.mpz(0)
    for value in reversed(x):
        total = (total * point + value) % m
    return total


def bit_reversed(x: Sequence[gmpy2.mpz], k: int) -> list[gmpy2.mpz]:
    """out[i] = x[the k bits of i in reverse]."""
    return [x[reverse(i, k)] for i in range(len(x))]


def reverse(index: int, k: int) -> int:
    """The k bits of an index in reverse."""
    return int(f"{index:0{k}b}"[::-1], 2) if k else index
