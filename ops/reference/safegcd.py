"""Modular inversion by divsteps ("safegcd"), in runnable Python: what kernels/field/inverse.cuh does, and why it is right.

Sources. D. J. Bernstein, B.-Y. Yang, "Fast constant-time gcd computation and modular inversion", 2019: divsteps
(section 8), their transition matrices (section 9), jumping over many divsteps by the low bits alone (section 10), gcds
and inverses of integers (section 11). The half-delta start and the form with small signed limbs are those of
bitcoin-core/secp256k1, doc/safegcd_implementation.md; the convex-hull bound is P. Wuille's ("Bounds on divsteps
iterations in safegcd"). For the other family, which compares leading bits: T. Pornin, "Optimized Binary GCD for Modular
Inversion", 2020; it needs the leading words of both numbers in every batch, which costs more here than it saves.

1. Divsteps. For an odd f and any g, divstep (below) keeps gcd(f, g), keeps f odd, and moves (f, g) towards (+-gcd, 0).
   It looks at delta and at the lowest bit of g only, never at the size of the numbers: so it needs no comparison.

2. Jumping. k divsteps depend on the low k bits of f and g and are linear in f and g: 2^k (f', g') = t (f, g) with an
   integer matrix t. So a batch of 30 divsteps runs on one word of f and one of g, and the long numbers are touched once
   a batch, by four products of a long number and a word.

3. The inverse. Beside f and g go d and e with d x = f and e x = g (mod m), at first (0, 1) for (f, g) = (m, x). They
   take the same matrix, and the division by 2^30 is made exact by adding a multiple of the odd m. When g = 0,
   f = +-gcd(m, x): if that is +-1 the inverse is +-d, else there is none. f = +-1 alone is already the end.

4. Any x. Nothing above asks for x < m, so that larger x need no reduction.

5. Even m. Divsteps need an odd number to start from, and an x that has an inverse is odd: so x takes the place of the
   modulus (inverse_even).
"""

from __future__ import annotations

from typing import NamedTuple

BATCH = 30
PACKED = 15

# -2 delta for delta = 1/2.
INITIAL_Y = -1


class Transition(NamedTuple):
    """2^k times what k divsteps do: (f, g) become (u f + v g, q f + r g) / 2^k.

    |u| + |v| <= 2^k and |q| + |r| <= 2^k: a divstep at most doubles a row's sum. |u r - v q| = 2^k: each step
    multiplies the determinant by +-2.
    """

    u: int
    v: int
    q: int
    r: int


# --- divsteps -------------------------------------------------------------------------------------------------------


def divstep(y: int, f: int, g: int) -> tuple[int, int, int]:
    """One divstep. y = -2 delta is odd, so that delta is never 0 and delta > 0 is a test of y's sign.

    In terms of delta: a swap replaces it by 1 - delta, any other step by 1 + delta.
    """
    if g % 2 and y < 0:
        return -y - 2, g, (g - f) // 2
    return y - 2, f, (g + g % 2 * f) // 2


def gcd(f: int, g: int) -> int:
    """gcd of an odd f and any g."""
    y = INITIAL_Y
    while g:
        y, f, g = divstep(y, f, g)
    return abs(f)


# --- batches --------------------------------------------------------------------------------------------------------


def transition(y: int, f: int, g: int, count: int = BATCH) -> tuple[int, Transition]:
    """`count` divsteps from the low `count` bits of f and g: y afterwards, and their matrix.

    g is halved in each step while its row is not: doubling f's row instead keeps the rows integers.
    """
    f, g = f % 2**count, g % 2**count
    u, v, q, r = 1, 0, 0, 1
    for _ in range(count):
        swap = g % 2 == 1 and y < 0
        sign = -1 if swap else 1
        if g % 2:
            g, q, r = g + sign * f, q + sign * u, r + sign * v
        if swap:
            f, u, v = f + g, u + q, v + r  # f + (g - f): the old g
        y = sign * y - 2
        g, u, v = g // 2, 2 * u, 2 * v
    return y, Transition(u, v, q, r)


def transition_packed(y: int, f: int, g: int) -> tuple[int, Transition]:
    """The same for 30 divsteps as the kernels compute it: two halves of 15 whose rows are one 32-bit word each.

    The word a + 2^16 b mod 2^32 holds a row (a, b); a step is linear, so that one operation serves both.
    """
    word = 2**32
    halves = []
    f, g = f % 2**BATCH, g % 2**BATCH
    for _ in range(2):
        f_row, g_row = 1, 2**16
        for step in range(PACKED):
            if step:
                f_row = 2 * f_row % word
            sign = -1 if g % 2 and y < 0 else 1
            if g % 2:
                g, g_row = (g + sign * f) % word, (g_row + sign * f_row) % word
            if sign < 0:
                f, f_row = (f + g) % word, (f_row + g_row) % word
            g, y = g // 2, sign * y - 2
        u, v = _unpack(f_row)
        halves.append(Transition(2 * u, 2 * v, *_unpack(g_row)))
    a, b = halves
    return y, Transition(b.u * a.u + b.v * a.q, b.u * a.v + b.v * a.r, b.q * a.u + b.r * a.q, b.q * a.v + b.r * a.r)


def _unpack(row: int) -> tuple[int, int]:
    """(a, b) of a + 2^16 b mod 2^32, for a and b in [-2^15, 2^15).

    They fit: before its last step a half has |a| + |b| <= 2^14 in both rows. f's row keeps that (its last doubling comes
    after the unpacking). g's row has |q| + |r| <= 2^15 and an odd r, since r starts as 1 and f's row is even from the
    second step on: so neither is 2^15.
    """
    low = _signed16(row)
    return low, _signed16((row - low) >> 16)


def _signed16(word: int) -> int:
    return (word + 2**15) % 2**16 - 2**15


def transition_rounds(y: int, f: int, g: int, width: int, count: int = BATCH) -> tuple[int, Transition, int]:
    """The same by rounds: count the zeros of g, shift them out, then cancel up to `width` bits of g with one multiple
    of f. Also returns the number of rounds.

    This is the usual form where a branch is cheap: about 10 rounds a batch. The lanes of a warp wait for the slowest,
    however: the sum over the batches of the largest count in 32 lanes is about 290 for a 256-bit modulus. A round takes
    some 30 instructions, the 540 divsteps of such a run take 10 each without a branch: so the kernels do not count
    zeros.
    """
    f, g = f % 2**count, g % 2**count
    u, v, q, r = 1, 0, 0, 1
    left, rounds = count, 0
    while True:
        zeros = min(trailing_zeros(g), left) if g else left
        g, u, v = g >> zeros, u << zeros, v << zeros
        y, left = y - 2 * zeros, left - zeros
        if left == 0:
            return y, Transition(u, v, q, r), rounds
        rounds += 1
        if y < 0:
            y, f, g, u, v, q, r = -y, g, -f, q, r, -u, -v
        # The next steps do not swap while y > 0, and y falls by 2 in each.
        bits = min((y + 1) // 2, left, width)
        multiple: int = -g * pow(f, -1, 2**bits) % 2**bits
        g, q, r = g + multiple * f, q + multiple * u, r + multiple * v


def trailing_zeros(a: int) -> int:
    return (a & -a).bit_length() - 1


# --- long numbers ---------------------------------------------------------------------------------------------------


def update_fg(f: int, g: int, t: Transition) -> tuple[int, int]:
    """Exact: the batch's steps made both sums multiples of 2^30. |f| and |g| stay below the larger of them."""
    return (t.u * f + t.v * g) >> BATCH, (t.q * f + t.r * g) >> BATCH


def update_de(d: int, e: int, t: Transition, m: int) -> tuple[int, int]:
    """The same modulo m, for odd m.

    |d|, |e| <= B m before gives (B + 1/2) m: the sum of a row is at most 2^30, and the multiple of m that makes a sum
    divisible is chosen in [-2^29, 2^29). So nothing has to be corrected on the way, only at the end (reduce).
    """
    return _divide(t.u * d + t.v * e, m), _divide(t.q * d + t.r * e, m)


def _divide(a: int, m: int) -> int:
    half = 2 ** (BATCH - 1)
    multiple: int = (-a * pow(m, -1, 2**BATCH) + half) % 2**BATCH - half
    assert (a + multiple * m) % 2**BATCH == 0
    return (a + multiple * m) >> BATCH


def reduce(d: int, m: int) -> int:
    """d mod m in [0, m) for |d| < 32 m, by additions alone: 16 m, 8 m, ... m against the sign."""
    assert abs(d) < 32 * m
    for multiple in (16, 8, 4, 2, 1):
        d += multiple * m if d < 0 else -multiple * m
    return d + m if d < 0 else d


# --- inversion ------------------------------------------------------------------------------------------------------


def inverse_var(x: int, m: int) -> int | None:
    """x^-1 mod m in [0, m) for odd m >= 1 and any x >= 0; None where gcd(x, m) != 1. Modulo 1: 0.

    Stops at the first batch after which f = +-1 or g = 0.
    """
    f, g, d, e, y = m, x, 0, 1, INITIAL_Y
    while True:
        y, t = transition(y, f, g)
        d, e = update_de(d, e, t, m)
        f, g = update_fg(f, g, t)
        if abs(f) == 1:
            return reduce(f * d, m)
        if g == 0:
            return None


# divsteps_bound(bits, unreduced=True), by bits.
DIVSTEPS = {256: 591, 384: 886}


def inverse(x: int, m: int, bits: int = 256) -> int | None:
    """The same for x and m below 2^bits in a fixed number of batches, whatever they are."""
    f, g, d, e, y = m, x, 0, 1, INITIAL_Y
    for _ in range(-(-DIVSTEPS[bits] // BATCH)):
        y, t = transition(y, f, g)
        d, e = update_de(d, e, t, m)
        f, g = update_fg(f, g, t)
    assert g == 0
    return reduce(f * d, m) if abs(f) == 1 else None


def inverse_even(x: int, m: int, bits: int = 256) -> int | None:
    """x^-1 mod m in [1, m) for even m >= 2 and any x >= 0, both below 2^bits; None where gcd(x, m) != 1.

    With v = m^-1 mod x, taken in [1, x] (x = 1 has v = 1), the number k = (m v - 1) / x is an integer in [0, m) and
    x k = -1 (mod m): the inverse is m - k. A quotient that is known to be an integer below 2^bits is its residue, so
    that the division is a multiplication by x^-1 mod 2^bits; the kernel does it one word at a time.
    """
    if x % 2 == 0:
        return None
    v = inverse_var(m, x)
    if v is None:
        return None
    k: int = (m * (v or 1) - 1) * pow(x, -1, 2**bits) % 2**bits
    return m - k


# --- how many divsteps ----------------------------------------------------------------------------------------------

Point = tuple[int, int]


def divsteps_bound(bits: int, *, unreduced: bool = False) -> int:
    """A number of divsteps after which g = 0, for every odd f and every g with 0 <= g <= f <= 2^bits; unreduced: for
    0 <= f, g <= 2^bits. Minutes of work for 256 bits.

    A divstep maps the plane linearly once delta and g's parity are known. So a convex polygon that holds every (f, g)
    with a given delta goes to (at most) two polygons; those that meet in the same delta are joined to their convex hull.
    A polygon within |g| < 1 has ended with g = 0 and is dropped. Coordinates are kept as integers, 2^steps times their
    value.
    """
    size = 2**bits
    corners = [(0, 0), (size, 0), (size, size), *([(0, size)] if unreduced else [])]
    polygons = {INITIAL_Y: corners}
    steps = 0
    while polygons:
        steps += 1
        following: dict[int, list[Point]] = {}
        for y, polygon in polygons.items():
            following.setdefault(y - 2, []).extend((2 * f, g) for f, g in polygon)
            if y < 0:
                following.setdefault(-y - 2, []).extend((2 * g, g - f) for f, g in polygon)
            else:
                following[y - 2].extend((2 * f, g + f) for f, g in polygon)
        polygons = {y: _hull(points) for y, points in following.items() if any(abs(g) >= 2**steps for _, g in points)}
    return steps


def _hull(points: list[Point]) -> list[Point]:
    """Convex hull, by monotone chains."""
    points = sorted(set(points))
    return points if len(points) < 3 else _chain(points)[:-1] + _chain(points[::-1])[:-1]


def _chain(points: list[Point]) -> list[Point]:
    chain: list[Point] = []
    for f, g in points:
        while len(chain) >= 2:
            (f0, g0), (f1, g1) = chain[-2:]
            if (f1 - f0) * (g - g0) - (g1 - g0) * (f - f0) > 0:
                break
            chain.pop()
        chain.append((f, g))
    return chain
