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


def square_root(a: Coordinate, p: int) -> Coordinate | None:
    """One of the roots of a, or None. p: 3 modulo 4.

    Source: G. Adj and F. Rodriguez-Henriquez, "Square root computation over even extension fields", IEEE Transactions on
    Computers 63 (2014), algorithm 8 (the complex method).
    """
    if len(a) == 1:
        root = _prime_root(a[0], p)
        return None if root is None else (root,)
    if a[1] == 0:
        root = _prime_root(a[0], p)
        # -1 is no square, so one of a0 and -a0 is.
        return (root, 0 * a[1]) if root is not None else (0 * a[1], _prime_root(-a[0] % p, p))
    norm_root = _prime_root((a[0] * a[0] + a[1] * a[1]) % p, p)
    if norm_root is None:
        return None
    # (c0 + c1 u)^2 = a: c0^2 is one of (a0 +- norm_root) / 2, whose product -(a1 / 2)^2 is no square, so exactly one is.
    half = (p + 1) // 2
    for square in ((a[0] + norm_root) * half % p, (a[0] - norm_root) * half % p):
        root = _prime_root(square, p)
        if root is not None:
            return root, a[1] * pow(2 * root, -1, p) % p
    raise AssertionError("one of the two is a square")


def _prime_root(a: Any, p: int) -> Any | None:
    root = pow(a, (p + 1) // 4, p)
    return root if root * root % p == a else None
