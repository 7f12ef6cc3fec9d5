"""Scalars as bytes or JSON <-> limbd's form: 32 bytes each, of which `montgomery` alone has to be below the order r."""

from __future__ import annotations

import numpy as np

from limbd.ops.formats import text
from limbd.ops.formats.integers import Bytes, below, montgomery_factor, scaled
from limbd.ops.formats.layouts import JSON
from limbd.ops.formats.refusals import NOT_BELOW_R, Refusals, bad_length, refusal
from limbd.ops.params.curves import Curve
from limbd.ops.params.layout import LIMB_BYTES, PLAIN_LIMBS, Limbs, from_ints, to_ints

WIDTH = PLAIN_LIMBS * LIMB_BYTES

WIRE, BIG_ENDIAN, MONTGOMERY = "wire", "big-endian", "montgomery"
SCALAR_FORMATS = (WIRE, BIG_ENDIAN, MONTGOMERY, JSON)


def decode(data: bytes, form: str, curve: Curve) -> Limbs:
    """See limbd.formats.decode_scalars."""
    _check_form(form)
    if form == JSON:
        return from_ints([_number(value, index) for index, value in enumerate(text.items(data))])
    if len(data) % WIDTH:
        raise bad_length(len(data), WIDTH, "scalars")
    return _turned(np.frombuffer(data, np.uint8).reshape(-1, WIDTH), form, curve, inverse=True).view("<u4")


def encode(values: Limbs, form: str, curve: Curve) -> bytes:
    """See limbd.formats.encode_scalars."""
    _check_form(form)
    if form == JSON:
        return text.lines(map(hex, to_ints(values)))
    return _turned(np.ascontiguousarray(values).view(np.uint8), form, curve, inverse=False).tobytes()


def _turned(rows: Bytes, form: str, curve: Curve, *, inverse: bool) -> Bytes:
    if form == BIG_ENDIAN:
        return rows[:, ::-1].copy(order="C")
    if form == WIRE:
        return rows.copy(order="C")
    refusals = Refusals(len(rows))
    refusals.add(~below(rows, curve.order), NOT_BELOW_R)
    refusals.raise_first()
    factor = montgomery_factor(WIDTH, curve.order)
    return scaled(rows, pow(factor, -1, curve.order) if inverse else factor, curve.order)


def _number(value: object, index: int) -> int:
    found = text.number(value, index)
    if found >> 8 * WIDTH:
        raise refusal("a scalar is not below 2^256", index)
    return found


def _check_form(form: str) -> None:
    if form not in SCALAR_FORMATS:
        raise ValueError(f"scalars have no format {form!r}; there are {', '.join(SCALAR_FORMATS)}")
