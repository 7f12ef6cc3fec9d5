"""Points as bytes of a layout <-> limbd's form. All checks but the curve's are made for all points at once."""

from __future__ import annotations

import numpy as np

from limbd.ops.formats import on_curve
from limbd.ops.formats.integers import Bytes, all_of, any_of, below, montgomery_factor, scaled
from limbd.ops.formats.layouts import Flags, Layout
from limbd.ops.formats.refusals import (
    BAD_FLAGS,
    BAD_INFINITY,
    BAD_PADDING,
    BAD_SIGN,
    NOT_BELOW_P,
    UNFLAGGED_INFINITY,
    Mask,
    Refusals,
    bad_length,
)
from limbd.ops.params.curves import Curve, Group
from limbd.ops.params.layout import Limbs


def decode_points(data: bytes, layout: Layout, curve: Curve, group: Group, *, check_curve: bool) -> Limbs:
    """See limbd.formats.decode_points."""
    rows = _rows(data, layout.point_bytes(curve, group))
    refusals = Refusals(len(rows))
    tags = np.zeros(len(rows), np.uint8)
    if layout.flags:
        rows = rows.copy()
        tags = rows[:, layout.flag_byte] & np.uint8(layout.flags.mask)
        rows[:, layout.flag_byte] ^= tags
    values = _integers(rows, layout, curve, group, refusals)
    refusals.add(~all_of(below(values, curve.base.modulus)), NOT_BELOW_P)
    infinity = _infinity(tags, ~any_of(values), layout, refusals)
    larger = _larger(tags, values, infinity, layout, curve, refusals)
    good = refusals.good
    if layout.montgomery:
        values = scaled(values[:good], _inverse_factor(curve), curve.base.modulus)
    if layout.compressed:
        y = on_curve.ordinates(values[:good, 0], larger[:good], infinity[:good], curve, group)
        values = np.stack([values[:good, 0], y], axis=1)
    elif check_curve:
        on_curve.check(values[:good], curve, group)
    refusals.raise_first()
    return values.reshape(len(rows), curve.point_bytes(group)).view("<u4")


def encode_points(points: Limbs, layout: Layout, curve: Curve, group: Group, *, check_curve: bool) -> bytes:
    """See limbd.formats.encode_points."""
    p, width = curve.base.modulus, curve.base.element_bytes
    values = np.ascontiguousarray(points).view(np.uint8).reshape(len(points), 2, group.degree, width)
    refusals = Refusals(len(points))
    refusals.add(~all_of(below(values, p)), NOT_BELOW_P)
    if check_curve or layout.compressed:
        on_curve.check(values[: refusals.good], curve, group)
    refusals.raise_first()
    tags = _tags(values, layout.flags, p)
    if layout.montgomery:
        values = scaled(values, montgomery_factor(width, p), p)
    cells = np.zeros((len(points), layout.coordinates, group.degree, layout.integer_bytes(curve)), np.uint8)
    cells[..., :width] = values[:, : layout.coordinates]
    rows = np.ascontiguousarray(_turned(cells, layout)).reshape(len(points), layout.point_bytes(curve, group))
    rows[:, layout.flag_byte] |= tags
    return rows.tobytes()


def _rows(data: bytes, width: int) -> Bytes:
    if len(data) % width:
        raise bad_length(len(data), width, "points")
    return np.frombuffer(data, np.uint8).reshape(-1, width)


def _turned(cells: Bytes, layout: Layout) -> Bytes:
    """Between the layout's order of bytes and parts and limbd's, in either direction."""
    if layout.big_endian:
        cells = cells[..., ::-1]
    return cells[:, :, ::-1] if layout.imaginary_first else cells


def _integers(rows: Bytes, layout: Layout, curve: Curve, group: Group, refusals: Refusals) -> Bytes:
    """(n, coordinates, degree, width)"""
    cells = rows.reshape(len(rows), layout.coordinates, group.degree, layout.integer_bytes(curve))
    cells, width = _turned(cells, layout), curve.base.element_bytes
    refusals.add(any_of(cells[..., width:]), BAD_PADDING)
    return cells[..., :width].copy(order="C")


def _infinity(tags: Bytes, zero: Mask, layout: Layout, refusals: Refusals) -> Mask:
    """zero: all coordinates are."""
    flags = layout.flags
    if flags is None:
        return zero
    infinity: Mask = tags == flags.infinity
    refusals.add(~np.isin(tags, (flags.smaller, flags.larger, flags.infinity)), BAD_FLAGS)
    refusals.add(infinity & ~zero, BAD_INFINITY)
    if not layout.compressed:
        refusals.add(zero & ~infinity, UNFLAGGED_INFINITY)
    return infinity


def _larger(tags: Bytes, values: Bytes, infinity: Mask, layout: Layout, curve: Curve, refusals: Refusals) -> Mask:
    """What the flags say of y; where y stands beside them, both have to agree."""
    if layout.flags is None or not layout.flags.tell_sign:
        return np.zeros(len(tags), np.bool_)
    larger: Mask = tags == layout.flags.larger
    if not layout.compressed:
        told = on_curve.is_larger(values[:, 1], curve.base.modulus)
        refusals.add(~infinity & (told != larger), BAD_SIGN)
    return larger


def _tags(values: Bytes, flags: Flags | None, p: int) -> Bytes:
    """The flag bits of every point."""
    if flags is None:
        return np.zeros(len(values), np.uint8)
    tags = np.where(on_curve.is_larger(values[:, 1], p), flags.larger, flags.smaller)
    return np.where(any_of(values), tags, flags.infinity).astype(np.uint8)


def _inverse_factor(curve: Curve) -> int:
    p = curve.base.modulus
    return pow(montgomery_factor(curve.base.element_bytes, p), -1, p)
