"""The demo's batches: large enough to show a rate, and with known answers for every op.

Operands are the output of SHAKE-256 under a fixed label, so that the file holds answers alone: the SHA-256 of all
results of a batch as the wire has them, and the first few results in full.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import msgpack
import numpy as np

from limbd.harness.inputs import Residues
from limbd.harness.vectors import CHECKED_BY, FOLDER, SCHEMA
from limbd.harness.vectors.peers import agreed, agreed_whole
from limbd.ops import by_name
from limbd.ops.base import LIMB_BYTES, Call, Limbs
from limbd.ops.params import fields
from limbd.ops.params.base import Field
from limbd.ops.params.layout import PLAIN_LIMBS, from_ints, to_ints, unpack

FILE = "demo.msgpack"

SAMPLE = 4

WIDTH = PLAIN_LIMBS * LIMB_BYTES

# op, field, elements, param. The two slow ops have fewer, so that a machine without a GPU is done within seconds; of
# transforms (of 2^10 and 2^8) as many as can be computed by definition.
BATCHES = (
    ("mod-mul", "secp256k1_fp", 200_000, 0),
    ("mod-mul", "bn254_fr", 200_000, 0),
    ("mod-add", "p256_fp", 200_000, 0),
    ("mod-sub", "bls12_381_fr", 200_000, 0),
    ("mod-exp", "curve25519_fp", 5_000, 0),
    ("mod-inv", "secp256k1_fp", 50_000, 0),
    ("mod-inv-batch", "secp256k1_fp", 200_000, 0),
    ("ntt", "bn254_fr", 32 << 10, 10),
    ("quotient", "bn254_fr", 16 << 8, 8),
)


@dataclass(frozen=True)
class DemoBatch:
    """One batch. operands are computed on first use: uint32 arrays of shape (n, 8) by name, in the payload's order."""

    op: str
    field: Field
    n: int
    digest: str
    sample: tuple[int, ...]
    param: int = 0

    @property
    def modulus(self) -> int:
        return self.field.modulus

    @property
    def call(self) -> Call:
        """The call with the modulus in the payload."""
        return Call(self.n, self.param)

    @cached_property
    def operands(self) -> dict[str, Limbs]:
        return _operands(self.op, self.field.name, self.n)

    def payload(self) -> bytes:
        modulus = self.modulus.to_bytes(WIDTH, "little")
        return modulus + b"".join(array.tobytes() for array in self.operands.values())

    def check(self, results: Any) -> bool:
        """Whether these are the known answers. results: bytes-like of n * 32 bytes, or an array of shape (n, 8)."""
        return hashlib.sha256(memoryview(results).cast("B")).hexdigest() == self.digest


def demo_batches() -> tuple[DemoBatch, ...]:
    """The shipped batches, in the order in which they should run."""
    document = msgpack.unpackb((FOLDER / FILE).read_bytes())
    if document.get("schema") != SCHEMA:
        raise ValueError(f"{FILE} is not of schema {SCHEMA}")
    return tuple(
        DemoBatch(
            row["op"], _field(row["field"]), row["n"], row["sha256"], tuple(unpack(row["sample"])), row.get("param", 0)
        )
        for row in document["batches"]
    )


def write_demo(folder: Path) -> None:
    """Computes every answer by GMP and by CPython, and writes the file."""
    rows = []
    for op, name, n, param in BATCHES:
        operands = [to_ints(array) for array in _operands(op, name, n).values()]
        results = from_ints(_results(op, Residues(_field(name).modulus, None, param), operands))
        digest = hashlib.sha256(results.tobytes()).hexdigest()
        asked = {"param": param} if param else {}
        rows.append({"op": op, "field": name, "n": n, "sha256": digest, "sample": results[:SAMPLE].tobytes(), **asked})
    (folder / FILE).write_bytes(msgpack.packb({"schema": SCHEMA, "checked_by": CHECKED_BY, "batches": rows}))


def _results(op: str, residues: Residues, operands: list[list[int]]) -> list[int]:
    if by_name(op).elementwise:
        return agreed(op, residues.modulus, operands)
    return agreed_whole(op, residues, operands)


def _operands(op: str, field: str, n: int) -> dict[str, Limbs]:
    """Any 256-bit integers, where operands at or above the modulus are part of the contract; else below it."""
    out = {}
    for name in by_name(op).operands:
        stream = hashlib.shake_256(f"limbd demo {op} {field} {name}".encode()).digest(n * WIDTH)
        array = np.frombuffer(stream, dtype="<u4").reshape(n, PLAIN_LIMBS)
        modulus = _field(field).modulus
        out[name] = array if by_name(op).elementwise else from_ints(value % modulus for value in to_ints(array))
    return out


def _field(name: str) -> Field:
    field = fields.by_name(name)
    if field is None:
        raise ValueError(f"no registered field {name}")
    return field
