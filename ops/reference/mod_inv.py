"""mod-inv, the living definition: gmpy2's invert, 0 where it raises."""

from __future__ import annotations

import gmpy2

from limbd.ops.base import Limbs


def mod_inv(x: int, modulus: int) -> int:
    """x^-1 mod modulus in [0, modulus), or 0 where gcd(x, modulus) != 1. Modulo 1 everything is 0.

    x: any integer >= 0. modulus: >= 1.
    """
    if modulus == 1:
        return 0
    try:
        return int(gmpy2.invert(x, modulus))
    except ZeroDivisionError:
        return 0


def mod_inv_elements(x: Limbs, modulus: int, result: memoryview) -> None:
    """mod_inv of every element. x: uint32 of shape (n, limbs), little-endian; result: n elements of the same width."""
    width = x.shape[1] * x.itemsize
    for i, row in enumerate(x):
        inverse = mod_inv(int.from_bytes(row.tobytes(), "little"), modulus)
        result[i * width : (i + 1) * width] = inverse.to_bytes(width, "little")
