"""Two definitions of multi-scalar multiplication that share no step, by which shipped answers are made and checked.

by_group_law: GMP, slopes of chords and tangents (limbd.ops.reference.msm). by_complete_formulas: CPython, bit by bit over all
scalars at once, in homogeneous coordinates (Renes, Costello, Batina 2016, algorithm 7, for doublings too), one inversion at
the end.
"""

from __future__ import annotations

from collections.abc import Sequence

from limbd.harness.groups import group_of, pack_point, unpack_point
from limbd.harness.inputs import Residues
from limbd.ops.msm import CURVE, vectors_of
from limbd.ops.params import curves
from limbd.ops.params.coordinates import Coordinate, add, inverse, multiply, scale, subtract
from limbd.ops.params.curves import Curve, Group, GroupName
from limbd.ops.reference.curve import Point
from limbd.ops.reference.msm import sum_of

Homogeneous = tuple[Coordinate, Coordinate, Coordinate]


def by_group_law(name: GroupName, residues: Residues, scalars: Sequence[int], points: Sequence[int]) -> list[int]:
    """One packed point (limbd.harness.groups) for each vector."""
    curve, group = _asked(residues, name)
    plain = [unpack_point(point, curve, group) for point in points]
    reduced = [scalar % curve.order for scalar in scalars]
    return [pack_point(sum_of(vector, plain, curve), curve, group) for vector in _vectors(residues, reduced)]


def by_complete_formulas(
    name: GroupName, residues: Residues, scalars: Sequence[int], points: Sequence[int]
) -> list[int]:
    """The same."""
    curve, group = _asked(residues, name)
    plain = [_homogeneous(unpack_point(point, curve, group), group) for point in points]
    return [pack_point(_affine(_sum(v, plain, curve, group), curve), curve, group) for v in _vectors(residues, scalars)]


def _asked(residues: Residues, name: GroupName) -> tuple[Curve, Group]:
    curve = curves.by_low_byte(residues.param & CURVE)
    if curve is None:
        raise ValueError(f"no curve in param {residues.param:#x}")
    return curve, group_of(curve, name)


def _vectors(residues: Residues, scalars: Sequence[int]) -> list[Sequence[int]]:
    count = len(scalars) // vectors_of(residues.param)
    return [scalars[v * count : (v + 1) * count] for v in range(vectors_of(residues.param))]


def _homogeneous(point: Point, group: Group) -> Homogeneous:
    zero, one = (0,) * group.degree, (1, *[0] * (group.degree - 1))
    return (zero, one, zero) if point is None else (point[0], point[1], one)


def _affine(point: Homogeneous, curve: Curve) -> Point:
    x, y, z = point
    if not any(z):
        return None
    p = curve.base.modulus
    return multiply(x, inverse(z, p), p), multiply(y, inverse(z, p), p)


def _sum(scalars: Sequence[int], points: Sequence[Homogeneous], curve: Curve, group: Group) -> Homogeneous:
    total = _homogeneous(None, group)
    reduced = [scalar % curve.order for scalar in scalars]
    for bit in reversed(range(curve.scalar.bits)):
        total = _plus(total, total, group, curve.base.modulus)
        for scalar, point in zip(reduced, points, strict=True):
            if scalar >> bit & 1:
                total = _plus(total, point, group, curve.base.modulus)
    return total


def _plus(a: Homogeneous, b: Homogeneous, group: Group, p: int) -> Homogeneous:
    (x1, y1, z1), (x2, y2, z2) = a, b
    b3 = scale(group.b, 3, p)
    xx, yy, zz = multiply(x1, x2, p), multiply(y1, y2, p), multiply(multiply(z1, z2, p), b3, p)
    xy = add(multiply(x1, y2, p), multiply(x2, y1, p), p)
    yz = add(multiply(y1, z2, p), multiply(y2, z1, p), p)
    xz = multiply(add(multiply(x1, z2, p), multiply(x2, z1, p), p), b3, p)
    plus, minus, xx3 = add(yy, zz, p), subtract(yy, zz, p), scale(xx, 3, p)
    return (
        subtract(multiply(xy, minus, p), multiply(yz, xz, p), p),
        add(multiply(plus, minus, p), multiply(xx3, xz, p), p),
        add(multiply(yz, plus, p), multiply(xx3, xy, p), p),
    )
