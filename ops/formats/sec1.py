"""Points as SEC 1 writes them (version 2.0, sections 2.3.3 and 2.3.4; X9.62): a prefix, then x, or x and y, big-endian.

    00          infinity, which is this byte alone, so that points of one file differ in length
    02, 03      compressed: x of the point whose y is even, odd
    04          uncompressed: x and y

Hybrid encodings (06, 07) are not read. Points off the curve are never read or written: section 2.3.4 has the check.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from limbd.ops.formats import on_curve
from limbd.ops.formats.integers import Bytes, all_of, any_of, below
from limbd.ops.formats.layouts import Sec1
from limbd.ops.formats.refusals import (
    BAD_PREFIX,
    NOT_BELOW_P,
    UNFLAGGED_INFINITY,
    Mask,
    Refusals,
    refusal,
)
from limbd.ops.params.curves import Curve, Group
from limbd.ops.params.layout import Limbs
from limbd.ops.status import RequestError, Status

INFINITY, EVEN, ODD, UNCOMPRESSED = 0x00, 0x02, 0x03, 0x04


def decode_points(data: bytes, layout: Sec1, curve: Curve, group: Group) -> Limbs:
    """See limbd.formats.decode_points."""
    infinity, error = _walk(data, layout, curve)
    rows = _rows(data, infinity, layout.point_bytes(curve))
    values = _turned(rows[:, 1:], layout, curve)
    refusals = Refusals(len(rows))
    refusals.add(~all_of(below(values, curve.base.modulus)), NOT_BELOW_P)
    if layout.compressed:
        good = refusals.good
        odd = rows[:good, 0] == ODD
        y = on_curve.ordinates(values[:good, 0], odd, infinity[:good], curve, group, by_parity=True)
        values = np.stack([values[:good, 0], y], axis=1)
    else:
        refusals.add(~any_of(values) & ~infinity, UNFLAGGED_INFINITY)
        on_curve.check(values[: refusals.good], curve, group)
    refusals.raise_first()
    if error is not None:
        raise error
    return values.reshape(len(rows), curve.point_bytes(group)).view("<u4")


def encode_points(points: Limbs, layout: Sec1, curve: Curve, group: Group) -> bytes:
    """See limbd.formats.encode_points."""
    width = curve.base.element_bytes
    values = np.ascontiguousarray(points).view(np.uint8).reshape(len(points), 2, group.degree, width)
    refusals = Refusals(len(points))
    refusals.add(~all_of(below(values, curve.base.modulus)), NOT_BELOW_P)
    on_curve.check(values[: refusals.good], curve, group)
    refusals.raise_first()
    rows = np.empty((len(points), layout.point_bytes(curve)), np.uint8)
    rows[:, 0] = values[:, 1, 0, 0] & 1 | EVEN if layout.compressed else UNCOMPRESSED
    rows[:, 1:] = values[:, : layout.coordinates, 0, ::-1].reshape(len(points), layout.coordinates * width)
    infinity = ~any_of(values)
    rows[infinity, 0] = INFINITY
    return rows[_written(infinity, rows.shape[1])].tobytes()


def split(data: bytes, layout: Sec1, curve: Curve) -> Iterator[bytes]:
    """Each point's bytes of what encode_points gave."""
    width, at = layout.point_bytes(curve), 0
    while at < len(data):
        end = at + (1 if data[at] == INFINITY else width)
        yield data[at:end]
        at = end


def _walk(data: bytes, layout: Sec1, curve: Curve) -> tuple[Mask, RequestError | None]:
    """Which points are infinity, up to the first prefix that the form does not have, and that prefix's refusal.

    Raises RequestError(BAD_LENGTH) where the last point is cut short.
    """
    width, known = layout.point_bytes(curve), (EVEN, ODD) if layout.compressed else (UNCOMPRESSED,)
    infinity: list[bool] = []
    error, at = None, 0
    while at < len(data) and error is None:
        if data[at] == INFINITY:
            infinity.append(True)
            at += 1
        elif data[at] in known:
            infinity.append(False)
            at += width
        else:
            error = refusal(BAD_PREFIX, len(infinity))
    if at > len(data):
        raise RequestError(Status.BAD_LENGTH, f"{len(data)} bytes end inside a point of {width} bytes")
    return np.array(infinity, np.bool_), error


def _rows(data: bytes, infinity: Mask, width: int) -> Bytes:
    """Every point with its prefix, infinity filled up with zeros."""
    rows = np.zeros((len(infinity), width), np.uint8)
    written = _written(infinity, width)
    rows[written] = np.frombuffer(data, np.uint8, int(written.sum()))
    return rows


def _written(infinity: Mask, width: int) -> Mask:
    """(n, width): the bytes of rows that are written, of infinity the first alone."""
    written = np.ones((len(infinity), width), np.bool_)
    written[infinity, 1:] = False
    return written


def _turned(cells: Bytes, layout: Sec1, curve: Curve) -> Bytes:
    """(n, coordinates, 1, width), little-endian."""
    width = curve.base.element_bytes
    return cells.reshape(len(cells), layout.coordinates, 1, width)[..., ::-1].copy(order="C")
