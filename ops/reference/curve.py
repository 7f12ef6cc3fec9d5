"""The group law of y^2 = x^3 + b on affine points, as it is defined; slow and obvious.

A point is (x, y) with coordinates as limbd.ops.params.coordinates has them, or None for infinity. Source: J. H. Silverman,
"The Arithmetic of Elliptic Curves", III.2.3.
"""

from __future__ import annotations

from limbd.ops.params.coordinates import Coordinate, inverse, multiply, scale, subtract

Point = tuple[Coordinate, Coordinate] | None


def negate(point: Point, p: int) -> Point:
    return None if point is None else (point[0], scale(point[1], -1, p))


def plus(a: Point, b: Point, p: int) -> Point:
    """a + b, for any two points of one curve."""
    if a is None or b is None:
        return b if a is None else a
    if a[0] != b[0]:
        slope = multiply(subtract(b[1], a[1], p), inverse(subtract(b[0], a[0], p), p), p)
    elif a[1] == b[1] and any(a[1]):
        slope = multiply(scale(multiply(a[0], a[0], p), 3, p), inverse(scale(a[1], 2, p), p), p)
    else:
        return None
    x = subtract(subtract(multiply(slope, slope, p), a[0], p), b[0], p)
    return x, subtract(multiply(slope, subtract(a[0], x, p), p), a[1], p)


def times(k: int, point: Point, p: int) -> Point:
    """k point by double-and-add, k >= 0; k is not reduced."""
    result: Point = None
    for bit in bin(k)[2:]:
        result = plus(result, result, p)
        if bit == "1":
            result = plus(result, point, p)
    return result
