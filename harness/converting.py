"""Files of points and scalars for `limbd convert`: bytes, hexadecimal text, JSON and .npy, in and out."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from limbd.harness.textio import STANDARD_STREAM, InputError
from limbd.ops import formats
from limbd.ops.formats.layouts import JSON
from limbd.ops.formats.scalars import WIDTH as SCALAR_BYTES
from limbd.ops.params.layout import Limbs

SCALARS = "scalars"
KINDS = ("g1", "g2", SCALARS)

# The form that a .npy file holds.
_WIRE = "wire"
_NPY = ".npy"


def read(spec: str, kind: str, curve: str, form: str, *, hexadecimal: bool, check_curve: bool) -> Limbs:
    """spec: a file, "-" for the standard input, or JSON as it stands. InputError where it cannot be used, RequestError for a
    bad point or scalar."""
    if spec.endswith(_NPY):
        data = _npy_bytes(spec, form)
    else:
        data = _bytes(spec, form)
        if hexadecimal and form != JSON:
            data = _from_hexadecimal(data, spec)
    try:
        if kind == SCALARS:
            return formats.decode_scalars(data, form, curve)
        return formats.decode_points(data, form, curve, kind, check_curve=check_curve)
    except ValueError as error:
        raise InputError(str(error)) from None


def write(values: Limbs, out: str | None, kind: str, curve: str, form: str, *, hexadecimal: bool) -> None:
    """To the file `out`, or to the standard output, where bytes are refused by a terminal."""
    try:
        if kind == SCALARS:
            data = formats.encode_scalars(values, form, curve)
        else:
            data = formats.encode_points(values, form, curve, kind)
    except ValueError as error:
        raise InputError(str(error)) from None
    if out is not None and out.endswith(_NPY):
        _check_npy(form)
        _save(Path(out), values)
        return
    if hexadecimal and form != JSON:
        data = _hexadecimal(data, kind, curve, form)
    elif out is None and form != JSON and sys.stdout.isatty():
        raise InputError("points are bytes here: give --out FILE or --hex, or pipe them somewhere")
    _write(data, out)


def _bytes(spec: str, form: str) -> bytes:
    if form == JSON and spec.lstrip().startswith("["):
        return spec.encode()
    if spec == STANDARD_STREAM:
        return sys.stdin.buffer.read()
    try:
        return Path(spec).read_bytes()
    except OSError as error:
        raise InputError(f"cannot read {spec}: {error.strerror or error}") from None


def _from_hexadecimal(data: bytes, spec: str) -> bytes:
    """Words of digits, each with or without 0x."""
    try:
        return b"".join(bytes.fromhex(word.removeprefix("0x")) for word in data.decode("ascii").split())
    except ValueError:
        raise InputError(f"{spec}: no hexadecimal bytes") from None


def _hexadecimal(data: bytes, kind: str, curve: str, form: str) -> bytes:
    """One element a line."""
    if kind == SCALARS:
        each: Iterable[bytes] = (data[at : at + SCALAR_BYTES] for at in range(0, len(data), SCALAR_BYTES))
    else:
        each = formats.split_points(data, form, curve, kind)
    return b"".join(element.hex().encode() + b"\n" for element in each)


def _npy_bytes(spec: str, form: str) -> bytes:
    _check_npy(form)
    try:
        values = np.load(spec, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise InputError(f"cannot read {spec}: {error}") from None
    if not isinstance(values, np.ndarray) or values.dtype != np.uint32 or values.ndim != 2:
        raise InputError(f"{spec}: expected an array of uint32 (n, limbs)")
    return values.astype("<u4", copy=False).tobytes()


def _check_npy(form: str) -> None:
    if form != _WIRE:
        raise InputError(f"a .npy file holds limbd's own form, {_WIRE!r}, and not {form!r}")


def _save(path: Path, values: Limbs) -> None:
    try:
        with path.open("wb") as file:
            np.save(file, values)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror or error}") from None


def _write(data: bytes, out: str | None) -> None:
    if out is None:
        sys.stdout.buffer.write(data)
        return
    try:
        Path(out).write_bytes(data)
    except OSError as error:
        raise InputError(f"cannot write {out}: {error.strerror or error}") from None
