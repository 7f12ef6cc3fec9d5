"""Arithmetic on a curve's coordinates: (x,) in a prime field, (c0, c1) for c0 + c1 u with u^2 = -1 in its extension.

Integers may be Python's or gmpy2's; results are canonical.
"""

from __future__ import annotations

from typing import Any

Coordinate = tuple[Any, ...]


def add(a: Coordinate, b: Coordinate, p: int) -> Coordinate:
    return tuple((x + y) % p for x, y in zip(a, b, strict=True))


def subtract(a: Coordinate, b: Coordinate, p: int) -> Coordinate:
    return tuple((x - y) % p for x, y in zip(a, b, strict=True))


def scale(a: Coordinate, k: int, p: int) -> Coordinate:
    return tuple(x * k % p for x in a)


def multiply(a: Coordinate, b: Coordinate, p: int) -> Coordinate:
    if len(a) == 1:
        return (a[0] * b[0] % p,)
    return (a[0] * b[0] - a[1] * b[1]) % p, (a[0] * b[1] + a[1] * b[0]) % p


def inverse(a: Coordinate, p: int) -> Coordinate:
    """Raises ValueError for 0."""
    if len(a) == 1:
        return (pow(a[0], -1, p),)
    norm = pow(a[0] * a[0] + a[1] * a[1], -1, p)
    return a[0] * norm % p, -a[1] * norm % p


def on_curve(x: Coordinate, y: Coordinate, b: Coordinate, p: int) -> bool:
    """Whether y^2 = x^3 + b."""
    return multiply(y, y, p) == add(multiply(x, multiply(x, x, p), p), b, p)
