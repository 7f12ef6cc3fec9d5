"""Points and numbers as JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

import numpy as np

from limbd.ops.formats import on_curve
from limbd.ops.formats.integers import all_of, below
from limbd.ops.formats.refusals import NOT_BELOW_P, UNFLAGGED_INFINITY, Refusals, refusal
from limbd.ops.params.coordinates import Coordinate
from limbd.ops.params.curves import Curve, Group
from limbd.ops.params.layout import Limbs, pack
from limbd.ops.reference.msm import decode_points as points_of
from limbd.ops.status import RequestError

NOT_A_NUMBER = "a number is neither an integer from 0 on nor a string of decimal or 0x-hexadecimal digits"

_DIGITS = re.compile(r"0[xX][0-9a-fA-F]+|[0-9]+")
# Python converts no longer decimals (sys.get_int_max_str_digits), and no number of any format is this long.
_LONGEST = 1000


def decode_points(data: bytes, curve: Curve, group: Group, *, check_curve: bool) -> Limbs:
    """See limbd.formats.decode_points."""
    numbers: list[int] = []
    error: RequestError | None = None
    for index, point in enumerate(items(data)):
        try:
            numbers.extend(_point(point, curve.base.modulus, group.degree, index))
        except RequestError as found:
            error = found
            break
    width = curve.base.element_bytes
    values = np.frombuffer(bytearray(pack(numbers, width)), np.uint8).reshape(-1, 2, group.degree, width)
    if check_curve:
        on_curve.check(values, curve, group)
    if error is not None:
        raise error
    return values.reshape(len(values), curve.point_bytes(group)).view("<u4")


def encode_points(points: Limbs, curve: Curve, group: Group, *, check_curve: bool) -> bytes:
    """See limbd.formats.encode_points."""
    values = np.ascontiguousarray(points).view(np.uint8).reshape(len(points), 2, group.degree, curve.base.element_bytes)
    refusals = Refusals(len(points))
    refusals.add(~all_of(below(values, curve.base.modulus)), NOT_BELOW_P)
    if check_curve:
        on_curve.check(values[: refusals.good], curve, group)
    refusals.raise_first()
    return lines(
        None if each is None else list(map(_written, each)) for each in points_of(points.tobytes(), curve, group)
    )


def items(data: bytes) -> list[Any]:
    """What a JSON list holds. Raises ValueError where it is none."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"no JSON: {error}") from None
    if not isinstance(value, list):
        raise ValueError("no JSON list")
    return value


def lines(values: Iterable[Any]) -> bytes:
    """A JSON list with one value a line."""
    return ("[" + ",".join("\n" + json.dumps(value) for value in values) + "\n]\n").encode()


def number(value: Any, index: int) -> int:
    """RequestError(BAD_ELEMENT) where it is none."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    if isinstance(value, str) and len(value) <= _LONGEST and _DIGITS.fullmatch(value):
        return int(value, 16 if value[:2] in ("0x", "0X") else 10)
    raise refusal(NOT_A_NUMBER, index)


def _point(point: Any, p: int, degree: int, index: int) -> list[int]:
    """x and y as 2 degree integers."""
    if point is None:
        return [0] * (2 * degree)
    if not isinstance(point, list) or len(point) != 2:
        raise refusal("a point is neither [x, y] nor null", index)
    parts = [number(part, index) for coordinate in point for part in _parts(coordinate, degree, index)]
    if max(parts) >= p:
        raise refusal(NOT_BELOW_P, index)
    if not any(parts):
        raise refusal(UNFLAGGED_INFINITY, index)
    return parts


def _parts(coordinate: Any, degree: int, index: int) -> list[Any]:
    if degree == 1:
        return [coordinate]
    if not isinstance(coordinate, list) or len(coordinate) != degree:
        raise refusal("a coordinate is not [c0, c1]", index)
    return coordinate


def _written(coordinate: Coordinate) -> Any:
    parts = [hex(part) for part in coordinate]
    return parts if len(parts) > 1 else parts[0]
