"""Points and scalars as other software writes them <-> limbd's own form. Public as limbd.formats.

limbd's form of n points is an array (n, limbs) of uint32, as Client.msm takes it: plain affine coordinates x, y, in g2 each
c0, c1, little-endian; infinity is all zeros. Scalars are an array (n, 8) of uint32. layouts.py describes the formats.

Every form has one encoding of each point, and nothing else is read: RequestError with BAD_LENGTH where the bytes are no whole
number of points, and with BAD_ELEMENT and the lowest bad index where a coordinate is not below p, padding or flags are wrong,
infinity has other bits set, or x belongs to no point. ValueError where there is no such curve, group or format, or no JSON.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from limbd.ops.formats import binary, scalars, sec1, text
from limbd.ops.formats.layouts import JSON, Sec1, layout_of, names_for
from limbd.ops.formats.scalars import SCALAR_FORMATS
from limbd.ops.params import curves
from limbd.ops.params.curves import Curve, Group, GroupName
from limbd.ops.params.layout import LIMB_BYTES, PLAIN_LIMBS, Limbs


def point_formats(curve: str, group: str) -> tuple[str, ...]:
    """The names of the formats that this group has."""
    found, name, _ = _group(curve, group)
    return names_for(found, name)


def scalar_formats() -> tuple[str, ...]:
    return SCALAR_FORMATS


def decode_points(data: bytes, form: str, curve: str, group: str = "g1", *, check_curve: bool = False) -> Limbs:
    """Points of a format -> limbd's form.

    data: the bytes, of JSON its text in UTF-8. check_curve: refuse points off the curve; compressed ones and SEC 1's never are. Nothing
    here checks for the subgroup: an msm does, where it is asked to.
    """
    found, name, members = _group(curve, group)
    if form == JSON:
        return text.decode_points(data, found, members, check_curve=check_curve)
    layout = layout_of(form, found, name)
    if isinstance(layout, Sec1):
        return sec1.decode_points(data, layout, found, members)
    return binary.decode_points(data, layout, found, members, check_curve=check_curve)


def encode_points(points: Limbs, form: str, curve: str, group: str = "g1", *, check_curve: bool = False) -> bytes:
    """limbd's form -> points of a format. Points to be compressed, and SEC 1's, are checked for the curve always."""
    found, name, members = _group(curve, group)
    limbs = found.point_bytes(members) // LIMB_BYTES
    _check_shape(points, limbs, "points")
    if form == JSON:
        return text.encode_points(points, found, members, check_curve=check_curve)
    layout = layout_of(form, found, name)
    if isinstance(layout, Sec1):
        return sec1.encode_points(points, layout, found, members)
    return binary.encode_points(points, layout, found, members, check_curve=check_curve)


def split_points(data: bytes, form: str, curve: str, group: str = "g1") -> Iterator[bytes]:
    """Each point's bytes of what encode_points gave in a binary format. Points of sec1 differ in length."""
    found, name, members = _group(curve, group)
    layout = layout_of(form, found, name)
    if isinstance(layout, Sec1):
        return sec1.split(data, layout, found)
    width = layout.point_bytes(found, members)
    return (data[at : at + width] for at in range(0, len(data), width))


def decode_scalars(data: bytes, form: str, curve: str) -> Limbs:
    """Scalars of a format -> limbd's form: any integers below 2^256 but for `montgomery`, which has to be below r."""
    return scalars.decode(data, form, _curve(curve))


def encode_scalars(values: Limbs, form: str, curve: str) -> bytes:
    """limbd's form -> scalars of a format. Raises RequestError(BAD_ELEMENT) where `montgomery` meets one not below r."""
    _check_shape(values, PLAIN_LIMBS, "scalars")
    return scalars.encode(values, form, _curve(curve))


def _curve(name: str) -> Curve:
    curve = curves.by_name(name)
    if curve is None:
        raise ValueError(f"there is no curve named {name!r}")
    return curve


def _group(curve_name: str, group_name: str) -> tuple[Curve, GroupName, Group]:
    curve = _curve(curve_name)
    names: dict[str, GroupName] = {"g1": "g1", "g2": "g2"}
    name = names.get(str(group_name).lower())
    group = curve.group(name) if name else None
    if name is None or group is None:
        raise ValueError(f"{curve.name} has no group {group_name!r}")
    return curve, name, group


def _check_shape(array: Limbs, limbs: int, what: str) -> None:
    if not isinstance(array, np.ndarray):
        raise ValueError(f"{what}: expected uint32 (n, {limbs}), got {type(array).__name__}")
    if array.dtype != np.uint32 or array.ndim != 2 or array.shape[1] != limbs:
        raise ValueError(f"{what}: expected uint32 (n, {limbs}), got {array.dtype} {array.shape}")
