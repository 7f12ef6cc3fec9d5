"""What needs the curve's equation: the check of points, and y from x."""

from __future__ import annotations

import math
from collections.abc import Iterator

import gmpy2
import numpy as np

from limbd.ops.formats.integers import Bytes, below
from limbd.ops.formats.refusals import BAD_SIGN, NO_SUCH_X, NOT_ON_CURVE, Mask, refusal
from limbd.ops.params.coordinates import Coordinate, add, multiply, on_curve, scale, square_root
from limbd.ops.params.curves import Curve, Group
from limbd.ops.params.layout import pack, unpack

_AT_ONCE = 1 << 14


def check(points: Bytes, curve: Curve, group: Group) -> None:
    """points: (n, 2, degree, width), coordinates below p, infinity all zeros. RequestError(BAD_ELEMENT) for the first that is
    off the curve."""
    p = gmpy2.mpz(curve.base.modulus)
    for index, row in enumerate(_rows(points)):
        if any(row) and not on_curve(row[: group.degree], row[group.degree :], group.b, p):
            raise refusal(NOT_ON_CURVE, index)


def ordinates(x: Bytes, larger: Mask, infinity: Mask, curve: Curve, group: Group, *, by_parity: bool = False) -> Bytes:
    """y of every point: (n, degree, width), zeros at infinity.

    x: (n, degree, width), below p. larger: which of the two; with by_parity (degree 1), the odd one. RequestError(BAD_ELEMENT)
    for the first that has no y.
    """
    p, width = gmpy2.mpz(curve.base.modulus), x.shape[-1]
    found = bytearray()
    parts: list[int] = []
    for index, (row, wanted, nothing) in enumerate(zip(_rows(x), larger.tolist(), infinity.tolist(), strict=True)):
        parts.extend((0,) * group.degree if nothing else _ordinate(row, wanted, group, p, index, by_parity))
        if len(parts) >= _AT_ONCE:
            found += pack(parts, width)
            parts.clear()
    return np.frombuffer(found + pack(parts, width), np.uint8).reshape(x.shape)


def is_larger(y: Bytes, p: int) -> Mask:
    """y: (n, degree, width). Whether each is the larger of y and -y."""
    above = ~below(y, (p + 1) // 2)
    larger = above[:, 0]
    for i in range(1, y.shape[1]):
        larger = np.where(y[:, i].any(axis=-1), above[:, i], larger)
    return larger


def _ordinate(x: Coordinate, larger: bool, group: Group, p: int, index: int, by_parity: bool) -> Coordinate:
    y = square_root(add(multiply(x, multiply(x, x, p), p), group.b, p), p)
    if y is None:
        raise refusal(NO_SUCH_X, index)
    highest = next((part for part in reversed(y) if part), 0)
    if highest == 0 and larger:
        raise refusal(BAD_SIGN, index)
    told = highest % 2 == 1 if by_parity else 2 * highest > p
    return y if told == larger else scale(y, -1, p)


def _rows(values: Bytes) -> Iterator[Coordinate]:
    """The integers of one point after the other."""
    size = math.prod(values.shape[1:-1])
    for start in range(0, len(values), _AT_ONCE):
        numbers = unpack(values[start : start + _AT_ONCE].tobytes(), values.shape[-1])
        yield from (tuple(numbers[i : i + size]) for i in range(0, len(numbers), size))
