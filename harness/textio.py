"""Numbers as people and files write them: text, .bin and .npy in, text, .bin and .npy out.

An operand is an array of shape (n, 8) uint32, little-endian limbs, the wire's own layout, so that a file of the right
form goes to the worker without a pass over its elements.
"""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import BinaryIO, TextIO

import numpy as np
import numpy.typing as npt

from limbd.ops.base import Op
from limbd.ops.params import fields
from limbd.ops.params.layout import from_ints, to_ints

Limbs = npt.NDArray[np.uint32]

ELEMENT_BYTES = 32
ELEMENT_WORDS = 8
STANDARD_STREAM = "-"

_NUMBER = re.compile(r"0[xX][0-9a-fA-F_]+|[0-9][0-9_]*")
_BARE_HEX = re.compile(r"[0-9a-fA-F]+")
_SEPARATORS = re.compile(r"[\s,]+")

# Numbers printed at a time: bounds the memory that Python ints of a large answer need.
_PRINTED_AT_ONCE = 1 << 16


class InputError(ValueError):
    """What was written on the command line, or stands in a file, cannot be used; one line says why."""


def parse_number(text: str, *, what: str = "number") -> int:
    """A decimal, or hexadecimal after 0x, from 0 to 2^256 - 1."""
    if not _NUMBER.fullmatch(text):
        hint = " (hexadecimal starts with 0x)" if _BARE_HEX.fullmatch(text) else ""
        raise InputError(f"{what}: {_shorten(text)!r} is not a decimal or 0x-hexadecimal number{hint}")
    try:
        value = int(text, 0 if text[:2] in ("0x", "0X") else 10)
    except ValueError:
        raise InputError(f"{what}: {_shorten(text)!r} is not a number") from None
    if value >> 256:
        raise InputError(f"{what}: {_shorten(text)!r} is above 2^256 - 1")
    return value


def parse_modulus(text: str) -> int:
    """A field's name, a decimal, or hexadecimal with or without 0x (without it only where it has a letter)."""
    field = fields.by_name(text)
    if field is not None:
        if field.modulus >> 256:
            raise InputError(f"{field.name} is above 256 bits, which version 1 of the wire cannot carry")
        return field.modulus
    if _BARE_HEX.fullmatch(text) and not _NUMBER.fullmatch(text):
        return parse_number(f"0x{text}", what="modulus")
    if not _NUMBER.fullmatch(text):
        names = ", ".join(known.name for known in fields.registered() if not known.toy)
        raise InputError(f"modulus: {_shorten(text)!r} is no number and no field; there are {names}")
    return parse_number(text, what="modulus")


def operand_specs(op: Op, named: Mapping[str, str], values: Sequence[str]) -> list[tuple[str, str]]:
    """(name, spec) for each operand of the op: those given by name, the others by position. Where one alone is missing
    it takes every number of `values`."""
    missing = [name for name in op.operands if name not in named]
    if len(missing) == 1 and len(values) > 1 and not any(_looks_like_file(value) for value in values):
        values = [",".join(values)]
    if len(values) != len(missing):
        wanted = f"takes {', '.join(missing)} by position" if missing else "has all its operands by name"
        hint = "; several numbers of one operand are joined by commas, or come from a file" if len(values) > 1 else ""
        raise InputError(f"{op.name} {wanted}, and {len(values)} were given{hint}")
    found = {**named, **dict(zip(missing, values, strict=True))}
    return [(name, found[name]) for name in op.operands]


def read_operand(spec: str, *, name: str) -> tuple[Limbs, bool]:
    """An operand, and whether it is one literal number (which may stand for every element).

    spec: numbers separated by commas; or a file: .bin (32-byte little-endian elements), .npy, or text with numbers
    separated by white space or commas ("#" starts a comment); "-" is text on the standard input; "@PATH" is a file
    whatever its name looks like.
    """
    if not spec.startswith("@") and spec != STANDARD_STREAM and not _looks_like_file(spec):
        words = _words(spec)
        return from_ints([parse_number(word, what=f"operand {name}") for word in words]), len(words) == 1
    if spec == STANDARD_STREAM:
        text = io.TextIOWrapper(sys.stdin.buffer, encoding="utf-8", errors="replace")
        return _from_text(text, name, "standard input"), False
    path = Path(spec.removeprefix("@"))
    try:
        return _read_file(path, name), False
    except OSError as error:
        raise InputError(f"operand {name}: cannot read {path}: {error.strerror or error}") from None


def write_numbers(values: Limbs, out: str | None, stream: TextIO, *, decimal: bool = False) -> None:
    """To `out` (.bin, .npy, or text by any other name), or as text to `stream`: one number a line, 0x-hexadecimal."""
    if out is None:
        stream.writelines(_lines(values, decimal))
        return
    path = Path(out)
    try:
        if path.suffix == ".npy":
            with path.open("wb") as file:
                np.save(file, values)
        elif path.suffix == ".bin":
            with path.open("wb") as file:
                write_binary(values, file)
        else:
            with path.open("w") as file:
                file.writelines(_lines(values, decimal))
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror or error}") from None


def write_binary(values: Limbs, file: BinaryIO) -> None:
    """The elements as they stand on the wire."""
    file.write(np.ascontiguousarray(values).data.cast("B") if values.size else b"")


def as_operands(specs: Sequence[tuple[str, str]]) -> list[Limbs]:
    """(name, spec) pairs -> arrays of one length; a single literal number is repeated for every element."""
    read = [(name, *read_operand(spec, name=name)) for name, spec in specs]
    lengths = {name: len(values) for name, values, literal in read if not literal}
    if len(set(lengths.values())) > 1:
        told = ", ".join(f"{name} has {n}" for name, n in lengths.items())
        raise InputError(f"the operands differ in length: {told}")
    n = next(iter(lengths.values()), 1)
    return [np.repeat(values, n, axis=0) if literal and n != 1 else values for _, values, literal in read]


def _looks_like_file(spec: str) -> bool:
    if all(_NUMBER.fullmatch(word) for word in _words(spec)):
        return False
    return "/" in spec or Path(spec).suffix != "" or Path(spec).exists()


def _words(text: str) -> list[str]:
    return [word for word in _SEPARATORS.split(text) if word]


def _read_file(path: Path, name: str) -> Limbs:
    if path.suffix == ".npy":
        return _from_npy(path, name)
    if path.suffix == ".bin":
        size = path.stat().st_size
        if size % ELEMENT_BYTES:
            raise InputError(f"operand {name}: {path} has {size} bytes, not a multiple of {ELEMENT_BYTES}")
        return np.fromfile(path, dtype="<u4").reshape(-1, ELEMENT_WORDS)
    with path.open(encoding="utf-8", errors="replace") as stream:
        return _from_text(stream, name, str(path))


def _from_npy(path: Path, name: str) -> Limbs:
    """(n, 8) uint32, (n, 4) uint64, (n, 32) uint8: limbs as they are; one dimension of integers: one number each."""
    try:
        with path.open("rb") as file:
            values = np.lib.format.read_array(file, allow_pickle=False)
    except OSError:
        raise
    except Exception as error:  # numpy parses the header as Python and checks no length: many kinds come out of it
        raise InputError(f"operand {name}: {path} is not a .npy file of numbers: {error}") from None
    if values.dtype.kind not in "iu":
        raise InputError(f"operand {name}: {path} does not hold an array of integers")
    if values.ndim == 1:
        try:
            return from_ints([int(value) for value in values])
        except (ValueError, OverflowError) as error:
            raise InputError(f"operand {name}: {path}: {error}") from None
    if values.ndim != 2 or values.dtype.kind != "u" or values.shape[1] * values.dtype.itemsize != ELEMENT_BYTES:
        raise InputError(
            f"operand {name}: {path} is {values.dtype} of shape {values.shape}; "
            "expected uint32 (n, 8), uint64 (n, 4), uint8 (n, 32), or integers (n,)"
        )
    little = values.astype(values.dtype.newbyteorder("<"), order="C", copy=False)
    return little.view("<u4").reshape(-1, ELEMENT_WORDS)


def _from_text(stream: TextIO, name: str, source: str) -> Limbs:
    numbers = _numbers_of(stream, name, source)
    parts = []
    while chunk := list(islice(numbers, _PRINTED_AT_ONCE)):
        parts.append(from_ints(chunk))
    return np.concatenate(parts) if parts else from_ints([])


def _numbers_of(stream: TextIO, name: str, source: str) -> Iterator[int]:
    for line_number, line in enumerate(stream, 1):
        for word in _words(line.partition("#")[0]):
            yield parse_number(word, what=f"operand {name}: {source}, line {line_number}")


def _lines(values: Limbs, decimal: bool) -> Iterator[str]:
    for start in range(0, len(values), _PRINTED_AT_ONCE):
        for value in to_ints(values[start : start + _PRINTED_AT_ONCE]):
            yield f"{value}\n" if decimal else f"{value:#x}\n"


def _shorten(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:24]}...{text[-8:]}"
