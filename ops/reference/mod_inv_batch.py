"""mod-inv-batch as it is defined: Montgomery's trick, for the price of one inversion and three products an element.

Source: P. L. Montgomery, "Speeding the Pollard and elliptic curve methods of factorization", 1987, section 10.3.1. The
kernels (kernels/algo/batch_inverse.cuh) do the same over a block: absorb along a thread, products over the threads,
one inversion, release on the way back.
"""

from __future__ import annotations

from collections.abc import Sequence

import gmpy2

from limbd.ops.base import Request
from limbd.ops.params.layout import pack, to_mpz
from limbd.ops.reference.mod_inv import inverse

# Elements that share an inversion: as in a kernel, an element without an inverse costs its own group the gain, no other.
GROUP = 1024


def mod_inv_batch(request: Request, result: memoryview) -> None:
    """Writes n elements, each as wide as the operands' own."""
    m = gmpy2.mpz(request.modulus)
    elements = list(to_mpz(request.arrays["x"]))
    inverses: list[gmpy2.mpz] = []
    for start in range(0, len(elements), GROUP):
        inverses += batch_inverse(elements[start : start + GROUP], m)
    result[:] = pack(inverses, request.element_bytes)


def batch_inverse(elements: Sequence[gmpy2.mpz], m: gmpy2.mpz) -> list[gmpy2.mpz]:
    """x^-1 mod m for each x, 0 where there is none. m >= 1."""
    # prefixes[i]: the product of the elements before i; an element that would make it 0 is left out.
    prefixes, product = [], 1 % m
    for x in elements:
        prefixes.append(product)
        product = absorb(product, x, m)
    u = inverse(product, m)
    if u == 0:
        # Modulo 1, or some element that was not left out has no inverse: nothing is known of any of them.
        return [inverse(x, m) for x in elements]
    inverses = []
    for x, prefix in zip(reversed(elements), reversed(prefixes), strict=True):
        one, u = release(u, prefix, x, m)
        inverses.append(one)
    return inverses[::-1]


def absorb(product: gmpy2.mpz, x: gmpy2.mpz, m: gmpy2.mpz) -> gmpy2.mpz:
    """product x mod m, or the product as it was where that is 0."""
    return product * x % m or product


def release(u: gmpy2.mpz, prefix: gmpy2.mpz, x: gmpy2.mpz, m: gmpy2.mpz) -> tuple[gmpy2.mpz, gmpy2.mpz]:
    """From u = (prefix x)^-1: x^-1 and prefix^-1. Where u x = 0, x is 0 mod m (u is a unit): it was left out."""
    before = u * x % m
    return (prefix * u % m, before) if before else (gmpy2.mpz(0), u)
