"""Multi-scalar multiplication as it is defined: the sum of (s mod r) P over the pairs, for each vector of scalars.

Up to NAIVE pairs it is double-and-add, scalar by scalar; above, Pippenger's bucket method without any refinement: the same
windows of unsigned digits for all scalars, a bucket for each digit, running sums, and doublings from window to window
(N. Pippenger, "On the evaluation of powers and related problems", 1976).
"""

from __future__ import annotations

from collections.abc import Sequence

import gmpy2

from limbd.ops.base import Request
from limbd.ops.params import curves
from limbd.ops.params.coordinates import Coordinate, on_curve
from limbd.ops.params.curves import Curve, Group
from limbd.ops.params.layout import LIMB_BYTES, pack, unpack
from limbd.ops.reference.curve import Point, negate, plus, times
from limbd.ops.status import RequestError, Status

NAIVE = 8

# Bits of param (wire.md section 4); ops/msm.py has the same.
_CURVE, _CHECK_SUBGROUP, _VECTORS_SHIFT = 0xFF, 1 << 8, 16

NOT_BELOW_P = "a coordinate is not below the base field's modulus"
NOT_ON_CURVE = "a point is not on the curve"
NOT_IN_SUBGROUP = "a point is not in the subgroup of order r"


def msm(request: Request, result: memoryview) -> None:
    """Writes one affine point for each vector. Raises RequestError(BAD_ELEMENT) with the lowest index of a bad point."""
    curve, group = _curve(request)
    vectors = (request.param >> _VECTORS_SHIFT) + 1
    points = decode_points(request.arrays["points"].tobytes(), curve, group)
    check_points(points, curve, group, subgroup=bool(request.param & _CHECK_SUBGROUP))
    scalars = [scalar % curve.order for scalar in unpack(request.arrays["scalars"].tobytes(), 8 * LIMB_BYTES)]
    count = len(scalars) // vectors
    sums = [sum_of(scalars[v * count : (v + 1) * count], points, curve) for v in range(vectors)]
    result[:] = encode_points(sums, curve, group)


def sum_of(scalars: Sequence[int], points: Sequence[Point], curve: Curve) -> Point:
    """Sum of scalars[i] points[i]. scalars: below r."""
    return naive(scalars, points, curve) if len(points) <= NAIVE else pippenger(scalars, points, curve)


def naive(scalars: Sequence[int], points: Sequence[Point], curve: Curve) -> Point:
    p, total = gmpy2.mpz(curve.base.modulus), None
    for scalar, point in zip(scalars, points, strict=True):
        total = plus(total, times(int(scalar), point, p), p)
    return total


def pippenger(scalars: Sequence[int], points: Sequence[Point], curve: Curve) -> Point:
    """With about as many buckets as there are points in four."""
    p = gmpy2.mpz(curve.base.modulus)
    width = max(2, (len(points) // 4).bit_length())
    total: Point = None
    for window in reversed(range(-(-curve.scalar.bits // width))):
        for _ in range(width):
            total = plus(total, total, p)
        buckets: list[Point] = [None] * (1 << width)
        for scalar, point in zip(scalars, points, strict=True):
            digit = int(scalar) >> window * width & (1 << width) - 1
            buckets[digit] = plus(buckets[digit], point, p)
        total = plus(total, weighted_sum(buckets[1:], p), p)
    return total


def weighted_sum(buckets: Sequence[Point], p: int) -> Point:
    """1 buckets[0] + 2 buckets[1] + ..: the sum of all suffix sums."""
    running: Point = None
    total: Point = None
    for bucket in reversed(buckets):
        running = plus(running, bucket, p)
        total = plus(total, running, p)
    return total


def decode_points(data: bytes, curve: Curve, group: Group) -> list[Point]:
    """Points of the wire, not checked: infinity is zeros."""
    numbers = unpack(data, curve.base.element_bytes)
    degree = group.degree
    rows = (numbers[i : i + 2 * degree] for i in range(0, len(numbers), 2 * degree))
    return [(tuple(row[:degree]), tuple(row[degree:])) if any(row) else None for row in rows]


def encode_points(points: Sequence[Point], curve: Curve, group: Group) -> bytes:
    infinity: Coordinate = (0,) * group.degree
    numbers = [part for point in points for coordinate in point or (infinity, infinity) for part in coordinate]
    return pack(numbers, curve.base.element_bytes)


def check_points(points: Sequence[Point], curve: Curve, group: Group, *, subgroup: bool) -> None:
    """Raises RequestError(BAD_ELEMENT) for the first point that fails: its range, then the curve, then the subgroup."""
    p = gmpy2.mpz(curve.base.modulus)
    for index, point in enumerate(points):
        reason = why_bad(point, curve, group, p, subgroup) if point is not None else None
        if reason is not None:
            raise RequestError(Status.BAD_ELEMENT, reason, index=index)


def why_bad(point: tuple[Coordinate, Coordinate], curve: Curve, group: Group, p: int, subgroup: bool) -> str | None:
    if any(part >= p for coordinate in point for part in coordinate):
        return NOT_BELOW_P
    if not on_curve(*point, group.b, p):
        return NOT_ON_CURVE
    if subgroup and group.cofactor != 1 and times(curve.order, point, p) is not None:
        return NOT_IN_SUBGROUP
    return None


def _curve(request: Request) -> tuple[Curve, Group]:
    curve = curves.by_low_byte(request.param & _CURVE)
    assert curve is not None, "decode refuses others"
    group = curve.g1 if request.constants["degree"] == 1 else curve.g2
    assert group is not None, "decode refuses others"
    return curve, group


def proof_points(curve: Curve, group: Group) -> tuple[list[int], list[Point]]:
    """Scalars and points for a self-test: edges of the order, with equal, opposite and infinite points among the points."""
    p, r = gmpy2.mpz(curve.base.modulus), curve.order
    g: Point = group.generator
    doubled, opposite = plus(g, g, p), negate(g, p)
    points = [g, g, opposite, doubled, None, plus(doubled, g, p), negate(doubled, p), g, opposite]
    edges = [0, 1, r - 1, 2, r - 2, r // 2, r // 3, r, (1 << 256) - 1]
    return edges * 3, [points[(i + i // 9) % 9] for i in range(27)]
