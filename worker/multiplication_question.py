"""A client's msm as a question for the worker: scalars and points of Python or of numpy -> the wire's bytes, and back."""

from __future__ import annotations

import operator
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from limbd.ops import by_name as op_by_name
from limbd.ops.base import LIMB_BYTES, Request
from limbd.ops.msm import MAX_VECTORS, Msm, param_of
from limbd.ops.params import curves
from limbd.ops.params.curves import Curve, Group, GroupName
from limbd.ops.params.layout import PLAIN_LIMBS
from limbd.ops.reference.curve import Point
from limbd.ops.reference.msm import decode_points, encode_points
from limbd.worker.exchange import Exchange, check_integer, exchange_of_arrays, integer_limbs

Limbs = npt.NDArray[np.uint32]

# What can be iterated over and has no order that anyone means.
UNORDERED = (Set, Mapping)


def multiplication(
    scalars: Any, points: Any, curve_name: str, group_name: str, *, check_subgroup: bool, constant_work: bool
) -> Exchange:
    """See limbd.Client.msm. Raises ValueError or TypeError where something cannot be written on the wire."""
    curve, name, group = group_of(curve_name, group_name)
    vectors, many = vectors_of(scalars)
    if len(vectors) > MAX_VECTORS:
        raise ValueError(f"scalars: {len(vectors)} vectors, and a request has {MAX_VECTORS} at most")
    point_array, plain = points_of(points, curve, group)
    lengths = {len(vector) for vector in vectors}
    if lengths != {len(point_array)}:
        raise ValueError(f"{len(point_array)} points, but vectors of {sorted(lengths)} scalars")
    op = op_by_name(f"msm-{name}")
    param = param_of(curve, vectors=len(vectors), check_subgroup=check_subgroup, constant_work=constant_work)
    n = sum(len(vector) for vector in vectors)
    convert = partial(answer_of, curve, group, many=many, plain=plain)
    return exchange_of_arrays(op, n, param, (*vectors, point_array), convert)


def request_of(
    curve: Curve,
    name: GroupName,
    scalars: Limbs,
    points: Limbs,
    *,
    vectors: int = 1,
    check_subgroup: bool = False,
    constant_work: bool = False,
) -> Request:
    """The same as a backend is asked, without a frame. scalars: (vectors * count, 8), vector by vector."""
    op = op_by_name(f"msm-{name}")
    assert isinstance(op, Msm)
    return op.request(
        curve, scalars, points, vectors=vectors, check_subgroup=check_subgroup, constant_work=constant_work
    )


def group_of(curve_name: str, group_name: str) -> tuple[Curve, GroupName, Group]:
    """Raises ValueError where there is no such curve or group."""
    curve = curves.by_name(curve_name)
    if curve is None:
        raise ValueError(f"there is no curve named {curve_name!r}")
    names: dict[str, GroupName] = {"g1": "g1", "g2": "g2"}
    name = names.get(str(group_name).lower())
    group = curve.group(name) if name else None
    if name is None or group is None:
        raise ValueError(f"{curve.name} has no group {group_name!r}")
    return curve, name, group


def vectors_of(scalars: Any) -> tuple[list[Limbs], bool]:
    """Each vector as (n, 8) limbs, and whether there may be several. Raises TypeError or ValueError, with the index of the
    first element that is no scalar."""
    if isinstance(scalars, np.ndarray):
        if scalars.dtype != np.uint32 or scalars.ndim not in (2, 3) or scalars.shape[-1] != PLAIN_LIMBS:
            raise ValueError(f"scalars: expected uint32 (n, 8) or (vectors, n, 8), got {scalars.dtype} {scalars.shape}")
        if scalars.ndim == 3 and len(scalars) == 0:
            raise ValueError("scalars: expected one vector or more, got none")
        return (list(scalars), True) if scalars.ndim == 3 else ([scalars], False)
    given = _elements(scalars, "scalars")
    if not given or not isinstance(given[0], Sequence):
        return [integer_limbs(given, "scalars")], False
    names = (f"scalars[{i}]" for i in range(len(given)))
    return [integer_limbs(_elements(vector, name), name) for vector, name in zip(given, names, strict=True)], True


def _elements(values: Any, what: str) -> Sequence[Any]:
    if isinstance(values, (str, bytes, *UNORDERED)) or not isinstance(values, Iterable):
        raise TypeError(f"{what}: expected a sequence, got {type(values).__name__}")
    return values if isinstance(values, Sequence) else list(values)


def together_of(scalars: Any, vectors: Sequence[Limbs]) -> Limbs:
    """The vectors that vectors_of has made of these scalars, one behind the other. An array is read where it lies."""
    if isinstance(scalars, np.ndarray):
        return scalars.reshape(-1, PLAIN_LIMBS)
    return vectors[0] if len(vectors) == 1 else np.concatenate(vectors)


def points_of(points: Any, curve: Curve, group: Group) -> tuple[Limbs, bool]:
    """As limbs, and whether they came as Python numbers. Raises TypeError or ValueError, with the index of the first that is
    no point."""
    limbs = curve.point_bytes(group) // LIMB_BYTES
    if isinstance(points, np.ndarray):
        if points.dtype != np.uint32 or points.ndim != 2 or points.shape[1] != limbs:
            raise ValueError(f"points: expected uint32 (n, {limbs}), got {points.dtype} {points.shape}")
        return points, False
    given = _elements(points, "points")
    try:
        data = encode_points([_coordinates(point, group) for point in given], curve, group)
    except (TypeError, ValueError):
        for i, point in enumerate(given):
            _check_point(point, f"points[{i}]", curve, group)
        raise
    return np.frombuffer(bytearray(data), "<u4").reshape(-1, limbs), True


def _coordinates(point: Any, group: Group) -> Point:
    """(x, y), integers in G1 and pairs of them in G2; None is infinity. Raises TypeError or ValueError."""
    if point is None:
        return None
    if isinstance(point, UNORDERED):
        raise TypeError(f"a point is a pair x, y, not {type(point).__name__}")
    x, y = (tuple(map(operator.index, _parts(coordinate))) for coordinate in point)
    if len(x) != group.degree or len(y) != group.degree:
        raise ValueError(f"a coordinate has {group.degree} integers")
    return x, y


def _parts(coordinate: Any) -> Sequence[Any]:
    """Of a number of the field or of its extension."""
    return coordinate if isinstance(coordinate, Sequence) else (coordinate,)


def _check_point(point: Any, what: str, curve: Curve, group: Group) -> None:
    """The same, saying what is wrong with a point that cannot be written on the wire."""
    if point is None:
        return
    ordered = isinstance(point, Collection) and not isinstance(point, UNORDERED)
    coordinates = list(point) if ordered else []
    if len(coordinates) != 2:
        got = f"{len(coordinates)} elements" if ordered else type(point).__name__
        raise ValueError(f"{what}: expected a pair x, y, or nothing for infinity, got {got}")
    for name, coordinate in zip("xy", coordinates, strict=True):
        parts = _parts(coordinate)
        if len(parts) != group.degree:
            raise ValueError(f"{what}, {name}: a coordinate has {group.degree} integers here, got {len(parts)}")
        for i, part in enumerate(parts):
            where = f"{what}, {name}[{i}]" if group.degree > 1 else f"{what}, {name}"
            check_integer(part, where, curve.base.element_bytes // LIMB_BYTES)


def answer_of(curve: Curve, group: Group, result: Limbs, *, many: bool, plain: bool) -> Any:
    """One point, or one for each vector, in the form that the points had."""
    if not plain:
        return result if many else result[0]
    points = [_plain(point) for point in decode_points(result.tobytes(), curve, group)]
    return points if many else points[0]


def _plain(point: Point) -> Any:
    if point is None:
        return None
    x, y = (tuple(map(int, coordinate)) for coordinate in point)
    return (x[0], y[0]) if len(x) == 1 else (x, y)
