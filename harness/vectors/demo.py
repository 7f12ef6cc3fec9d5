"""The demo's batches: large enough to show a rate, and with known answers for every op.

Operands are the output of SHAKE-256 under a fixed label, so that the file holds answers alone: the SHA-256 of all
results of a batch as the wire has them, and the first few results in full. Points are the generator's multiples 1, 2, 3 ..
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import gmpy2
import msgpack
import numpy as np

from limbd.harness.groups import group_of
from limbd.harness.inputs import Residues
from limbd.harness.vectors import CHECKED_BY, FOLDER, SCHEMA
from limbd.harness.vectors.peers import agreed, agreed_whole
from limbd.ops import by_name
from limbd.ops.base import LIMB_BYTES, Call, Limbs
from limbd.ops.msm import CURVE, Msm
from limbd.ops.params import curves, fields
from limbd.ops.params.base import Field
from limbd.ops.params.curves import Curve
from limbd.ops.params.layout import PLAIN_LIMBS, from_ints, to_ints, unpack
from limbd.ops.reference.curve import Point, plus
from limbd.ops.reference.msm import encode_points
from limbd.ops.transform_op import TransformOp

FILE = "demo.msgpack"

SAMPLE = 4

WIDTH = PLAIN_LIMBS * LIMB_BYTES

# op, field or curve, elements, param (but for the curve). The two slow ops have fewer, so that a machine without a GPU is done within seconds; of
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
    ("msm-g1", "bn254", 2048, 0),
    ("msm-g2", "bls12_381", 512, 0),
)


@dataclass(frozen=True)
class DemoBatch:
    """One batch. field: of the elements, or of the scalars. operands are computed on first use: uint32 arrays by name, in the
    payload's order, with n rows of 8 limbs but for points."""

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
    def curve(self) -> Curve | None:
        return None if by_name(self.op).modulus_in_payload else curves.by_low_byte(self.param & CURVE)

    @property
    def results(self) -> int:
        return by_name(self.op).result_count(self.call)

    @property
    def call(self) -> Call:
        """The call with the modulus in the payload."""
        return Call(self.n, self.param)

    @cached_property
    def operands(self) -> dict[str, Limbs]:
        return _operands(self.op, self.curve.name if self.curve else self.field.name, self.n)

    def payload(self) -> bytes:
        head = b"" if self.curve else self.modulus.to_bytes(WIDTH, "little")
        return head + b"".join(array.tobytes() for array in self.operands.values())

    def check(self, results: Any) -> bool:
        """Whether these are the known answers. results: bytes-like, or an array of rows of limbs."""
        return hashlib.sha256(memoryview(results).cast("B")).hexdigest() == self.digest


def demo_batches() -> tuple[DemoBatch, ...]:
    """The shipped batches, in the order in which they should run."""
    document = msgpack.unpackb((FOLDER / FILE).read_bytes())
    if document.get("schema") != SCHEMA:
        raise ValueError(f"{FILE} is not of schema {SCHEMA}")
    return tuple(
        DemoBatch(
            row["op"],
            _field(row["op"], row["name"]),
            row["n"],
            row["sha256"],
            tuple(unpack(row["sample"])),
            row["param"],
        )
        for row in document["batches"]
    )


def write_demo(folder: Path) -> None:
    """Computes every answer by GMP and by CPython, and writes the file."""
    rows = []
    for op, name, n, bits in BATCHES:
        param = bits if by_name(op).modulus_in_payload else bits | _curve(name).id & CURVE
        operands = [to_ints(array) for array in _operands(op, name, n).values()]
        limbs = by_name(op).result_bytes(Call(n, param)) // by_name(op).result_count(Call(n, param)) // LIMB_BYTES
        results = from_ints(_results(op, Residues(_field(op, name).modulus, None, param), operands), limbs)
        digest = hashlib.sha256(results.tobytes()).hexdigest()
        row = {"op": op, "name": name, "n": n, "param": param, "sha256": digest}
        rows.append({**row, "sample": results[:SAMPLE].tobytes()})
    (folder / FILE).write_bytes(msgpack.packb({"schema": SCHEMA, "checked_by": CHECKED_BY, "batches": rows}))


def _results(op: str, residues: Residues, operands: list[list[int]]) -> list[int]:
    if by_name(op).elementwise:
        return agreed(op, residues.modulus, operands)
    return agreed_whole(op, residues, operands)


def _operands(op: str, field: str, n: int) -> dict[str, Limbs]:
    """Any 256-bit integers, where operands at or above the modulus are part of the contract; else below it."""
    out = {}
    for name in by_name(op).operands:
        if name == "points":
            out[name] = _multiples(op, _curve(field), n)
            continue
        stream = hashlib.shake_256(f"limbd demo {op} {field} {name}".encode()).digest(n * WIDTH)
        array = np.frombuffer(stream, dtype="<u4").reshape(n, PLAIN_LIMBS)
        modulus = _field(op, field).modulus
        reduced = isinstance(by_name(op), TransformOp)
        out[name] = from_ints(value % modulus for value in to_ints(array)) if reduced else array
    return out


def _multiples(op: str, curve: Curve, n: int) -> Limbs:
    """The generator's multiples 1 .. n, as the wire has them."""
    asked = by_name(op)
    assert isinstance(asked, Msm)
    group = group_of(curve, asked.group)
    points: list[Point] = [group.generator]
    while len(points) < n:
        points.append(plus(points[-1], group.generator, gmpy2.mpz(curve.base.modulus)))
    return np.frombuffer(encode_points(points, curve, group), "<u4").reshape(n, -1)


def _field(op: str, name: str) -> Field:
    """The field, or the scalars' of a curve."""
    field = fields.by_name(name) if by_name(op).modulus_in_payload else _curve(name).scalar
    if field is None:
        raise ValueError(f"no registered field {name}")
    return field


def _curve(name: str) -> Curve:
    curve = curves.by_name(name)
    if curve is None:
        raise ValueError(f"no registered curve {name}")
    return curve
