"""Answers made or collected outside this project: reads their JSON, checks them by both definitions, packs them."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

from limbd.harness.vectors import Vectors
from limbd.harness.vectors.peers import agreed, as_arrays
from limbd.ops.base import LIMB_BYTES
from limbd.ops.params.layout import PLAIN_LIMBS, from_ints

# op -> the files below the given folder, each with its row of SOURCES.md
GENERATED = {"mod-mul": "generated/modmul.json.gz", "mod-inv": "generated/modinv.json.gz"}
BATCHES = {"mod-inv-batch": "generated/batch_inverse.json.gz"}
BORINGSSL = {"mod-mul": "external/boringssl_modmul_256.json.gz", "mod-inv": "external/boringssl_modinv_256.json.gz"}

# Of the collected batches, those that are shipped: the short ones, and all of one modulus (blocks have the same edges
# modulo any other).
SHORT_BATCH = 33
MODULUS_OF_LONG_BATCHES = 2**256 - 2**32 - 977


def collected_batches(folder: Path, op: str) -> Iterator[Vectors]:
    """The collected batches of this op; none for an op that has no file."""
    if op in GENERATED:
        yield from _generated(op, read_json(folder / GENERATED[op]))
    if op in BATCHES:
        yield from _whole_batches(op, read_json(folder / BATCHES[op]))
    if op in BORINGSSL:
        yield from _boringssl(op, read_json(folder / BORINGSSL[op]))


def read_json(path: Path) -> Any:
    with gzip.open(path, "rt", encoding="ascii") as file:
        return json.load(file)


def _generated(op: str, document: Any) -> Iterator[Vectors]:
    """{moduli: [{name, modulus, cases: [[operand..., result or null]], unreduced_cases: the same}]}"""
    for group in document["moduli"]:
        rows = [*group["cases"], *group["unreduced_cases"]]
        yield _batch(op, "generated", group["name"], int(group["modulus"], 16), rows)


def _whole_batches(op: str, document: Any) -> Iterator[Vectors]:
    """{cases: [{name, modulus, inputs, expected: [result or null]}]}"""
    for case in document["cases"]:
        modulus = int(case["modulus"], 16)
        if len(case["inputs"]) <= SHORT_BATCH or modulus == MODULUS_OF_LONG_BATCHES:
            rows = [list(row) for row in zip(case["inputs"], case["expected"], strict=True)]
            yield _batch(op, "generated", case["name"], modulus, rows)


def _boringssl(op: str, document: Any) -> Iterator[Vectors]:
    """{cases: [[modulus, operand..., result]]}, grouped by modulus here."""
    ordered = sorted(document["cases"], key=lambda case: int(case[0], 16))
    for modulus, cases in groupby(ordered, key=lambda case: int(case[0], 16)):
        yield _batch(op, "boringssl", f"{modulus.bit_length()} bits", modulus, [case[1:] for case in cases])


def _batch(op: str, source: str, name: str, modulus: int, rows: list[list[str | None]]) -> Vectors:
    values = [[int(text, 16) if text is not None else 0 for text in row] for row in rows]
    *operands, given = (list(column) for column in zip(*values, strict=True))
    expected = from_ints(agreed(op, modulus, operands, given))
    arrays = as_arrays(op, operands, PLAIN_LIMBS)
    return Vectors(op, source, name, modulus, PLAIN_LIMBS * LIMB_BYTES, arrays, expected)
