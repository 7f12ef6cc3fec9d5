"""mod-inv as it is defined: gmpy2's invert, and 0 where it raises. ops/reference/safegcd.py explains the kernels' way."""

from __future__ import annotations

import gmpy2

from limbd.ops.base import Request
from limbd.ops.params.layout import pack, to_mpz


def mod_inv(request: Request, result: memoryview) -> None:
    """Writes n elements, each as wide as the operands' own."""
    m = gmpy2.mpz(request.modulus)
    result[:] = pack((inverse(x, m) for x in to_mpz(request.arrays["x"])), request.element_bytes)


def inverse(x: gmpy2.mpz, modulus: gmpy2.mpz) -> gmpy2.mpz:
    """x^-1 mod modulus in [0, modulus), or 0 where gcd(x, modulus) != 1; modulo 1 everything is 0. modulus >= 1."""
    if modulus == 1:
        return gmpy2.mpz(0)
    try:
        return gmpy2.invert(x, modulus)
    except ZeroDivisionError:
        return gmpy2.mpz(0)
