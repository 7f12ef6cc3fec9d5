"""Scalars and points as people have them in files, for `limbd call msm-g1` and msm-g2: .npy and JSON."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from limbd.harness.textio import STANDARD_STREAM, InputError
from limbd.worker.exchange import Exchange
from limbd.worker.multiplication_question import answer_of, group_of, multiplication

NUMBER = re.compile(r"-?[0-9]+|0[xX][0-9a-fA-F]+")
DECIMAL_OR_HEX = "integers, or strings of decimal or 0x-hexadecimal digits"


def question(
    name: str, scalars: str, points: str, curve: str, *, check_subgroup: bool, constant_work: bool
) -> Exchange:
    """name: msm-g1 or msm-g2. scalars, points: files, or JSON as it stands. InputError where they cannot be used.

    JSON: scalars are [s, ..], or [[s, ..], ..] for several vectors; points [[x, y], ..], in g2 [[[c0, c1], [c0, c1]], ..], null
    for infinity. .npy: uint32 arrays as limbd.Client.msm takes them.
    """
    try:
        return multiplication(
            read(scalars, "scalars"),
            read(points, "points"),
            curve,
            name.removeprefix("msm-"),
            check_subgroup=check_subgroup,
            constant_work=constant_work,
        )
    except (TypeError, ValueError) as error:
        raise InputError(str(error)) from None


def read(spec: str, what: str) -> Any:
    """An array, or lists of Python integers."""
    if spec.lstrip().startswith("["):
        return _parsed(spec, what)
    if spec != STANDARD_STREAM and spec.endswith(".npy"):
        try:
            array = np.load(spec, allow_pickle=False)
        except (OSError, ValueError, EOFError) as error:
            raise InputError(f"{what}: cannot read {spec}: {error}") from None
        if not isinstance(array, np.ndarray):
            raise InputError(f"{what}: {spec} is not one array but an archive of them")
        return array
    try:
        text = sys.stdin.read() if spec == STANDARD_STREAM else Path(spec).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{what}: cannot read {spec}: {error}") from None
    return _parsed(text, what)


def write(answer: Any, out: str | None, stream: TextIO, *, name: str, curve: str) -> None:
    """answer: what Client.msm gives. To a .npy file as limbs, or as JSON with hexadecimal strings: for each vector a line with one
    point, as `read` takes them in a list. name, curve: as asked in `question`."""
    if out is not None and out.endswith(".npy"):
        if not isinstance(answer, np.ndarray):
            raise InputError("--out FILE.npy takes points that came from a .npy file")
        _written(out, lambda: np.save(out, np.atleast_2d(answer)))
        return
    if isinstance(answer, np.ndarray):
        found, _, group = group_of(curve, name.removeprefix("msm-"))
        answer = answer_of(found, group, np.atleast_2d(answer), many=True, plain=True)
    text = "".join(
        json.dumps(_hexadecimal(point)) + "\n" for point in (answer if isinstance(answer, list) else [answer])
    )
    if out is None:
        stream.write(text)
    else:
        _written(out, lambda: Path(out).write_text(text, encoding="utf-8"))


def _written(out: str, write_it: Callable[[], object]) -> None:
    try:
        write_it()
    except OSError as error:
        raise InputError(f"--out {out}: {error}") from None


def _parsed(text: str, what: str) -> Any:
    """The lists of a JSON text, with every number as an integer."""
    try:
        return _numbers(json.loads(text))
    except _NoNumber as wrong:
        raise InputError(f"{what}{wrong.path}: {_shortened(wrong.value)} is none of {DECIMAL_OR_HEX}") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{what}: no JSON: {error}") from None


class _NoNumber(Exception):
    """path: to the value, such as [3][1]."""

    def __init__(self, value: Any, path: str = "") -> None:
        super().__init__()
        self.value, self.path = value, path


def _numbers(value: Any) -> Any:
    """Raises _NoNumber."""
    if value is None:
        return None
    if isinstance(value, list):
        numbers: list[Any] = []
        for each in value:
            try:
                numbers.append(_numbers(each))
            except _NoNumber as wrong:
                raise _NoNumber(wrong.value, f"[{len(numbers)}]{wrong.path}") from None
        return numbers
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise _NoNumber(value)
    if not isinstance(value, str):
        return value
    if not NUMBER.fullmatch(value):
        raise _NoNumber(value)
    return int(value, 16 if value[1:2] in ("x", "X") else 10)


def _shortened(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:36]}.."


def _hexadecimal(value: Any) -> Any:
    if value is None:
        return None
    return [_hexadecimal(part) for part in value] if isinstance(value, tuple) else hex(value)
