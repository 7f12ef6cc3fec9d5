"""Modular inversion on one warp, in runnable Python: what field/warp_inverse.cuh does, and why it is right.

Sources. D. J. Bernstein, B.-Y. Yang, "Fast constant-time gcd computation and modular inversion", 2019, sections 9 and 10
(transition matrices; jumping by the low bits alone). D. Stehle, P. Zimmermann, "A binary recursive gcd algorithm", 2004
(division from the low end). Lagrange-Gauss reduction: J. Hoffstein, J. Pipher, J. Silverman, "An Introduction to
Mathematical Cryptography", section 7.13.

1. A jump. For an odd f let rho = -g/f mod 2^s. The pairs (a, b) with a f + b g = 0 mod 2^s are those with
   a = b rho mod 2^s: a lattice L(s) in the plane, which depends on rho alone. Take (q, r) in L(s) and (c, e) in L(s-1)
   but not in L(s), together a basis of L(s-1). Then

       f' = (c f + e g) / 2^(s-1)   is an odd integer,        g' = (q f + r g) / 2^s   is an integer,

   and (2c, 2e; q, r) has determinant +-2^s: gcd(f', g') = gcd(f, g). Any such basis would do; a short one makes f' and g'
   small. So the table has 2^s entries, and nothing has to be carried from one jump to the next. s divsteps that start with
   delta = 1/2 are one such basis, a slightly longer one.

2. The basis. Lagrange-Gauss reduction of L(s-1) gives w1, w2. Exactly one of w1, w2, w1 + w2 lies in L(s) (it has index 2
   and contains 2 L(s-1)): that one is (q, r) (of w1 + w2 and w1 - w2 the shorter), and (c, e) the shorter of the others.
   Lengths are measured by a^2 + WEIGHT b^2, because g, whose row has half the weight, is the smaller number on average:
   WEIGHT = 1/2 needs 2.16 (s = 8), 2.12 (s = 12) halvings for a bit of m, with 1 it is one in a hundred more.
   Divsteps with their delta need 2.06.

3. Long numbers. A batch of 24 halvings, two or three lookups, is one matrix. f, g, d, e have limbs of 24 bits that are
   signed and never normalised: each batch every limb is split once, its low part goes one limb down (that is the division
   by 2^24). With L a bound of the limbs, a batch gives

       |limb| <= ((|u| + |v|) L + 2^23 2^24) / 2^24 + 2^24 <= L + 3/2 2^24,

   so that from 2^24 + 2^7 after a carry, 64 batches stay below 2^31. Every 64th batch carries once: its carries are at most
   2^7. The sums before the split are below 2^55 + 2^47 < 2^56.

4. The end. Every entry but rho = 0 makes N = sqrt(f^2 + W g^2) smaller: with W = 1.55 by a factor of 0.631 or less
   (contraction() computes it from the table), so that 2^257 is used up by fewer than 390 of them. rho = 0 keeps f and divides
   g by 2^s: at most 256/s of these stand in a row before g = 0. So every run ends, after fewer than 2^13 batches, and
   carry_once keeps the limbs small as long as it lasts. Once g = 0 it stays 0, and so does f, so that an end that is looked
   for every TURN batches is not missed. Random inputs take
   23.1 batches on average (s = 12; s = 8: 23.8), none seen above 26. Numbers of very different length take more, because
   nothing here knows the lengths: modulo 2^255 - 19, x = 1 takes 62, x = -1 takes 70, and 2^k and -2^k up to 76 (s = 8: 86).

5. The inverse. (d, e) starts as (0, 2^24), so that d x = 2^24 f mod m. One more division by 2^24 with a centred multiple of
   m at the end brings d into (-m, m): |d| <= 2^24 + n/2 m after n batches, and (2^24 + n/2 m) / 2^24 + m/2 < m for m >= 3
   and n < 2^17.
   The same division applied to sign f - 1 gives 0 just when f = sign: the exact check costs nothing. The test that leads
   here looks at 24 bits of f; if the exact check fails the run goes on.

6. Any x. Nothing above asks for x < m: f and g stay below the larger of m and x, and d and e know x by the matrices alone.

7. The order. One inversion has nothing to wait for but itself, so what counts is the longest chain of a batch. The jump
   that follows needs limb 0 of f and g alone, and that is known from limbs 0 and 1 of before (update_lowest), by every lane
   and without an exchange. So it is made before the long numbers are updated, and lookups and updates of two batches
   overlap. What it was made from keeps its value modulo 2^24 when limbs are carried. Likewise the multiple of m comes from
   limb 0 of d and e, which every lane has from the batch before. Where a run ends, one jump was made in vain.
"""

from __future__ import annotations

import math
from typing import NamedTuple

WEIGHT = 0.5
BATCH = 24  # halvings of a batch, and bits of a limb
SIZE = 2**BATCH
LIMBS = 16
NORMALISE_EVERY = 64
TURN = 2  # batches between two looks for the end
RATIO_BITS = 12
ENTRY_BYTES = 8
TABLES = (8, 12)  # halvings a lookup: three lookups a batch by a table of 2 KB, or two by one of 32 KB


class Transition(NamedTuple):
    u: int
    v: int
    q: int
    r: int


Pair = tuple[int, int]

# --- the table ------------------------------------------------------------------------------------------------------


def make_table(steps: int) -> list[Transition]:
    """Entry rho: the jump for -g/f = rho mod 2^steps. |u| + |v| <= 2^steps, |q| + |r| <= 2^steps (checked here)."""
    table = [_entry(rho, steps) for rho in range(2**steps)]
    for t in table:
        assert abs(t.u) + abs(t.v) <= 2**steps and abs(t.q) + abs(t.r) <= 2**steps
        assert abs(t.u * t.r - t.v * t.q) == 2**steps
        assert all(-(2**15) <= coefficient < 2**15 for coefficient in t)
    return table


def table_bytes(steps: int) -> bytes:
    """The table as the kernel reads it: coefficients u, v, q, r as little-endian integers of 16 bits."""
    return b"".join(c.to_bytes(ENTRY_BYTES // 4, "little", signed=True) for entry in make_table(steps) for c in entry)


def _entry(rho: int, steps: int) -> Transition:
    first, second = _reduced((2 ** (steps - 1), 0), (rho, 1))
    inside = [w for w in (first, second) if (w[0] - w[1] * rho) % 2**steps == 0]
    if inside:
        (even,) = inside
        odd = second if even == first else first
    else:
        total = (first[0] + second[0], first[1] + second[1])
        difference = (first[0] - second[0], first[1] - second[1])
        even, odd = min(total, difference, key=_length), first
    assert (even[0] - even[1] * rho) % 2**steps == 0 and (odd[0] - odd[1] * rho) % 2**steps == 2 ** (steps - 1)
    return Transition(2 * odd[0], 2 * odd[1], *even)


def _length(a: Pair) -> float:
    return a[0] * a[0] + WEIGHT * a[1] * a[1]


def _reduced(a: Pair, b: Pair) -> tuple[Pair, Pair]:
    """Lagrange-Gauss: a shortest vector of the lattice and a shortest independent one."""
    if _length(a) > _length(b):
        a, b = b, a
    while True:
        multiple = math.floor((a[0] * b[0] + WEIGHT * a[1] * b[1]) / _length(a) + 0.5)
        b = (b[0] - multiple * a[0], b[1] - multiple * a[1])
        if _length(b) >= _length(a):
            return a, b
        a, b = b, a


def contraction(table: list[Transition], weight: float) -> float:
    """The largest factor by which an entry other than 0 changes sqrt(f^2 + weight g^2)."""
    largest = 0.0
    root = math.sqrt(weight)
    for t in table[1:]:
        # The matrix in the metric's coordinates (f, root g); its largest singular value.
        a, b, c, d = t.u, t.v / root, t.q * root, t.r
        squares, determinant = a * a + b * b + c * c + d * d, a * d - b * c
        largest = max(largest, math.sqrt((squares + math.sqrt(max(0.0, squares**2 - 4 * determinant**2))) / 2))
    return largest / len(table)


# --- jumps ----------------------------------------------------------------------------------------------------------


def entry_offset(f: int, g: int, steps: int) -> int:
    """ENTRY_BYTES (-g/f mod 2^steps) in three multiplications in a row: with s = f^2, t = 1 - s = 0 mod 8,
    1/s = (1 + t)(1 + t^2) mod 2^12."""
    less = f * f - 2
    ratio = (less * f * g) * (ENTRY_BYTES * f * f * less + 2 * ENTRY_BYTES)
    assert (ratio // ENTRY_BYTES * f + g) % 2**RATIO_BITS == 0
    return ratio % (ENTRY_BYTES << steps)


def jump(table: list[Transition], f: int, g: int) -> Transition:
    """Jumps from the low 24 bits of f and g as one matrix. table: of 2^8 or 2^12 entries."""
    steps = len(table).bit_length() - 1
    f, g = f % 2**32, g % 2**32
    total: Transition | None = None
    for _ in range(BATCH // steps):
        t = table[entry_offset(f, g, steps) // ENTRY_BYTES]
        f, g = (t.u * f + t.v * g) % 2**32, (t.q * f + t.r * g) % 2**32
        assert f % 2**steps == g % 2**steps == 0
        f, g = f >> steps, g >> steps
        total = t if total is None else _product(t, total)
    assert total is not None
    assert max(abs(total.u) + abs(total.v), abs(total.q) + abs(total.r)) <= SIZE
    return total


def _product(b: Transition, a: Transition) -> Transition:
    return Transition(b.u * a.u + b.v * a.q, b.u * a.v + b.v * a.r, b.q * a.u + b.r * a.q, b.q * a.v + b.r * a.r)


# --- long numbers in limbs ------------------------------------------------------------------------------------------


def to_limbs(a: int) -> list[int]:
    return [a >> BATCH * i & SIZE - 1 for i in range(LIMBS)]


def value(limbs: list[int]) -> int:
    return sum(limb << BATCH * i for i, limb in enumerate(limbs))


def divide(parts: list[int], m: int) -> list[int]:
    """(sum of parts + k m) / 2^24 in limbs, k in [-2^23, 2^23) with an exact quotient; m = 0: k = 0."""
    multiple = 0
    if m:
        multiple = (-parts[0] * pow(m, -1, SIZE) + SIZE // 2) % SIZE - SIZE // 2
    parts = [part + multiple * limb for part, limb in zip(parts, to_limbs(m), strict=True)]
    assert all(abs(part) < 2**56 for part in parts)
    low = [part % SIZE for part in parts]
    assert low[0] == 0
    limbs = [part // SIZE + low[(i + 1) % LIMBS] for i, part in enumerate(parts)]
    assert all(abs(limb) < 2**31 for limb in limbs)
    return limbs


def update(a: list[int], b: list[int], t: Transition, m: int) -> tuple[list[int], list[int]]:
    first = [t.u * x + t.v * y for x, y in zip(a, b, strict=True)]
    second = [t.q * x + t.r * y for x, y in zip(a, b, strict=True)]
    return divide(first, m), divide(second, m)


def update_lowest(f: list[int], g: list[int], t: Transition) -> Pair:
    """Limb 0 of f and g after a batch, from limbs 0 and 1 before it."""
    first, second = (u * f[0] + v * g[0] for u, v in (t[:2], t[2:]))
    above_f, above_g = (u * f[1] + v * g[1] for u, v in (t[:2], t[2:]))
    return first // SIZE + above_f % SIZE, second // SIZE + above_g % SIZE


def carry_once(limbs: list[int]) -> list[int]:
    carries = [limb // SIZE for limb in limbs[:-1]]
    assert all(abs(carry) <= 2 ** (31 - BATCH) for carry in carries)
    low = [limb % SIZE for limb in limbs[:-1]] + [limbs[-1]]
    return [limb + carry for limb, carry in zip(low, [0, *carries], strict=True)]


# --- inversion ------------------------------------------------------------------------------------------------------


def finish(f: list[int], d: list[int], sign: int, m: int) -> int | None:
    """d sign / 2^24 mod m, which is the inverse, if f = sign, else None. f = sign mod 2^24."""
    rest = divide([sign * limb - (i == 0) for i, limb in enumerate(f)], 0)
    if value(rest) != 0:
        return None
    inverse = value(divide([sign * limb for limb in d], m))
    assert -m < inverse < m
    return inverse + m if inverse < 0 else inverse


def warp_inverse(x: int, m: int, table: list[Transition]) -> tuple[int | None, int]:
    """x^-1 mod m in [0, m), or None where gcd(x, m) != 1; and the number of batches. m odd, m and x below 2^256."""
    f, g = to_limbs(m), to_limbs(x)
    d, e = [0] * LIMBS, to_limbs(SIZE)
    t = jump(table, f[0], g[0])
    batches = 0
    while True:
        residue = f[0] % SIZE
        if residue in (1, SIZE - 1):
            inverse = finish(f, d, 1 if residue == 1 else -1, m)
            if inverse is not None:
                return inverse, batches
        if g[0] % SIZE == 0 and value(g) == 0:
            return None, batches
        for _ in range(TURN):
            low, done = update_lowest(f, g, t), t
            t = jump(table, *low)
            f, g = update(f, g, done, 0)
            d, e = update(d, e, done, m)
            assert low == (f[0], g[0])
            batches += 1
        if batches % NORMALISE_EVERY == 0:
            f, g, d, e = (carry_once(limbs) for limbs in (f, g, d, e))
            assert t == jump(table, f[0], g[0])


def main() -> None:
    import random

    for steps in TABLES:
        table = make_table(steps)
        factor, weight = min((contraction(table, w / 20), w / 20) for w in range(1, 81))
        assert factor < 0.64
        most, total, count = 0, 0, 200
        for _ in range(count):
            m = random.getrandbits(256) | 1 | 1 << 255
            x = random.randrange(m)
            inverse, batches = warp_inverse(x, m, table)
            assert inverse == (pow(x, -1, m) if math.gcd(x, m) == 1 else None)
            most, total = max(most, batches), total + batches
        print(
            f"{steps} halvings a lookup: factor <= {factor:.3f} with weight {weight}; "
            f"batches {total / count:.2f} (at most {most})"
        )


if __name__ == "__main__":
    main()
