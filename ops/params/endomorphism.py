"""The endomorphism (x, y) -> (beta x, y) of a curve y^2 = x^3 + b, which is multiplication by an integer on points of the
curve's order r, and halves of scalars that it makes of one.

Source: R. Gallant, R. Lambert, S. Vanstone, Faster Point Multiplication on Elliptic Curves with Efficient Endomorphisms,
CRYPTO 2001; the short basis by the extended Euclidean algorithm is theirs too.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import isqrt

from limbd.ops.params.base import LIMB_BITS

# Quotients are scaled by so many bits more than the order has, at least, and by whole limbs: what rounding them costs is below
# 2^-GUARD_BITS of a coordinate.
GUARD_BITS = 64


@dataclass(frozen=True)
class Endomorphism:
    """beta: a cube root of unity in G1's field. eigenvalue: the cube root of unity modulo r with (beta x, y) = eigenvalue (x, y)
    for every point of order r."""

    beta: int
    eigenvalue: int


@dataclass(frozen=True)
class Halving:
    """k = k_1 + k_2 eigenvalue mod r with short k_1 and k_2 of either sign.

    first, second: a short basis of the lattice of (a, b) with a + b eigenvalue = 0 mod r, first[0] second[1] - first[1] second[0]
    = r. quotients: of 2^shift second[1] and -2^shift first[1] by r, rounded: k times them are the coordinates of (k, 0), scaled.
    bound: no half's absolute value is above it.
    """

    first: tuple[int, int]
    second: tuple[int, int]
    quotients: tuple[int, int]
    shift: int
    bound: int

    def halves(self, k: int) -> tuple[int, int]:
        """Of 0 <= k < r."""
        c, d = (k * quotient + (1 << self.shift - 1) >> self.shift for quotient in self.quotients)
        return k - c * self.first[0] - d * self.second[0], -c * self.first[1] - d * self.second[1]


@cache
def halving(order: int, eigenvalue: int) -> Halving:
    """For scalars below the order."""
    first, second = _basis(order, eigenvalue)
    shift = LIMB_BITS * -(-(order.bit_length() + GUARD_BITS) // LIMB_BITS)
    quotients = _rounded(second[1] << shift, order), _rounded(-first[1] << shift, order)
    # A coordinate is off by the 1/2 of its rounding and by k times the 1/2 of its quotient's, which is below 2^-GUARD_BITS.
    largest = max(abs(a) + abs(b) for a, b in zip(first, second, strict=True))
    return Halving(first, second, quotients, shift, largest // 2 + (largest >> GUARD_BITS) + 2)


def _basis(order: int, eigenvalue: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """Remainders r_i of (order, eigenvalue) with r_i - t_i eigenvalue = 0 mod order: the first below the square root, and the
    shorter one of its neighbours. Signs such that both quotients are positive."""
    rows = [(order, 0), (eigenvalue, 1)]
    while rows[-1][0]:
        (r0, t0), (r1, t1) = rows[-2:]
        rows.append((r0 % r1, t0 - r0 // r1 * t1))
    at = next(i for i, (r, _) in enumerate(rows) if r <= isqrt(order))
    first = rows[at][0], -rows[at][1]
    second = min(((rows[i][0], -rows[i][1]) for i in (at - 1, at + 1)), key=lambda v: max(map(abs, v)))
    if first[1] > 0:
        first = -first[0], -first[1]
    if second[1] < 0:
        second = -second[0], -second[1]
    if first[0] * second[1] - first[1] * second[0] < 0:
        # Both coordinates change sign then; swapped vectors keep them positive.
        first, second = (-second[0], -second[1]), (-first[0], -first[1])
    assert first[0] * second[1] - first[1] * second[0] == order
    return first, second


def _rounded(numerator: int, denominator: int) -> int:
    return (2 * numerator + denominator) // (2 * denominator)
