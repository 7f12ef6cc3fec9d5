"""Laws of multi-scalar multiplication, which need no reference: for sizes where none is fast enough.

Each law is asked of a function from a question to its sum, and says whether it holds.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import gmpy2

from limbd.harness.multiplications import Multiples, Multiplication
from limbd.ops.params.curves import Curve, GroupName
from limbd.ops.reference.curve import Point, negate, plus
from limbd.worker.device.base import Backend

Sum = Callable[[Multiplication], Point]


def split(sum_of: Sum, asked: Multiplication, rng: random.Random) -> bool:
    """The sum is that of two parts."""
    at = rng.randrange(len(asked.points) + 1)
    parts = [
        replace(asked, scalars=asked.scalars[part], points=asked.points[part]) for part in (slice(at), slice(at, None))
    ]
    first, second = map(sum_of, parts)
    return sum_of(asked) == plus(first, second, gmpy2.mpz(asked.curve.base.modulus))


def permuted(sum_of: Sum, asked: Multiplication, rng: random.Random) -> bool:
    """Pairs in another order have the same sum."""
    order = list(range(len(asked.points)))
    rng.shuffle(order)
    other = replace(asked, scalars=[asked.scalars[i] for i in order], points=[asked.points[i] for i in order])
    return sum_of(asked) == sum_of(other)


def negated(sum_of: Sum, asked: Multiplication, rng: random.Random) -> bool:
    """Opposite scalars have the opposite sum."""
    r = asked.curve.order
    opposite = sum_of(replace(asked, scalars=[(r - scalar) % r for scalar in asked.scalars]))
    return opposite == negate(sum_of(asked), asked.curve.base.modulus)


LAWS = (split, permuted, negated)

# Different bases of a question; larger ones repeat them.
BASES = 512


def broken(backend: Backend, curve: Curve, name: GroupName, n: int) -> list[str]:
    """The names of the laws that do not hold for n random pairs."""
    rng = random.Random(f"laws {curve.name} {name} {n}")
    known = Multiples(curve, name, "laws", min(n, BASES))
    points = (known.points * -(-n // len(known.points)))[:n]
    asked = Multiplication(curve, name, [rng.randrange(curve.order) for _ in range(n)], points)

    def sum_of(question: Multiplication) -> Point:
        (point,) = question.answer(backend)
        return point

    return [law.__name__ for law in LAWS if not law(sum_of, asked, rng)]
