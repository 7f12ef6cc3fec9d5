"""The known answers that ship with the package: one msgpack file an op, one a registered field, one for the demo.

A file is a map {schema, checked_by, batches}. A batch is a map of one op and one modulus:

    op        the wire's name                     source    a row of SOURCES.md
    name      of the modulus or case              field     name of the registered field (files field_*), else absent
    modulus   little-endian bytes                 operands  map of name -> n elements, little-endian, `width` bytes each
    n, width  elements, bytes an element          expected  n elements
    param     of the request, where not 0         domain    numbers before the operands, `width` bytes each, where any
    shapes    map of operand -> its rows and their bytes, where they are not n and `width`

SOURCES.md names the origin, the licence and the generator of each file; build.py writes the files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import msgpack
import numpy as np

from limbd.harness.inputs import Residues
from limbd.ops import by_name
from limbd.ops.base import LIMB_BYTES, Call, Limbs
from limbd.ops.params import fields
from limbd.ops.params.base import Field
from limbd.ops.params.layout import pack, unpack

SCHEMA = 1

# Each answer was computed by both, and they agreed (peers.py).
CHECKED_BY = ["GMP (gmpy2)", "CPython int"]

FOLDER = Path(__file__).parent


@dataclass(frozen=True, eq=False)
class Vectors:
    """Known answers of one op modulo one modulus, in the wire's layout.

    operands, expected: uint32 arrays of shape (n, width / 4), read-only; operands of msm-g1 and msm-g2 have shapes of their own. field: None where the modulus stands in the
    payload. param, domain: see limbd.harness.inputs.Residues.
    """

    op: str
    source: str
    name: str
    modulus: int
    width: int
    operands: Mapping[str, Limbs]
    expected: Limbs
    field: Field | None = None
    param: int = 0
    domain: tuple[int, ...] = ()

    @property
    def n(self) -> int:
        return len(self.expected)

    @cached_property
    def call(self) -> Call:
        """The call that asks for these answers."""
        return Call(len(next(iter(self.operands.values()))), self.param, self.field)

    @cached_property
    def residues(self) -> Residues:
        """What the answers are asked with."""
        return Residues(self.modulus, self.field, self.param, self.domain)

    def payload(self) -> bytes:
        """The request's payload: the modulus unless a field names it or the op has none, the domain, then the operands."""
        named = self.field is not None or not by_name(self.op).modulus_in_payload
        head = (*(() if named else (self.modulus,)), *self.domain)
        return pack(head, self.width) + b"".join(array.tobytes() for array in self.operands.values())


def files_of(op: str) -> list[Path]:
    """The file of the op's stem, then those of the registered fields. The first need not exist."""
    return [FOLDER / f"{by_name(op).stem}.msgpack", *sorted(FOLDER.glob("field_*.msgpack"))]


def load(op: str) -> Iterator[Vectors]:
    """Every shipped batch of this op. Raises FileNotFoundError where the op has no vector file."""
    for path in files_of(op):
        for batch in read_file(path):
            if batch.op == op:
                yield batch


def read_file(path: Path) -> Iterator[Vectors]:
    """The batches of one file. Raises ValueError where the file is not of this schema."""
    document = msgpack.unpackb(path.read_bytes())
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise ValueError(f"{path.name} is not a vector file of schema {SCHEMA}")
    for batch in document["batches"]:
        yield _vectors(path, batch)


def write_file(path: Path, batches: list[Vectors]) -> None:
    """What read_file reads."""
    document = {"schema": SCHEMA, "checked_by": CHECKED_BY, "batches": [_plain(batch) for batch in batches]}
    path.write_bytes(msgpack.packb(document))


def _vectors(path: Path, batch: Mapping[str, Any]) -> Vectors:
    width, n = batch["width"], batch["n"]
    modulus = int.from_bytes(batch["modulus"], "little")
    shapes = batch.get("shapes", {})
    operands = {name: _elements(data, *shapes.get(name, (n, width))) for name, data in batch["operands"].items()}
    expected = _elements(batch["expected"], n, width)
    field = _field(path, batch["field"], modulus) if "field" in batch else None
    param, domain = batch.get("param", 0), tuple(map(int, unpack(batch.get("domain", b""), width)))
    return Vectors(
        batch["op"], batch["source"], batch["name"], modulus, width, operands, expected, field, param, domain
    )


def _elements(data: bytes, n: int, width: int) -> Limbs:
    return np.frombuffer(data, dtype="<u4").reshape(n, width // LIMB_BYTES)


def _field(path: Path, name: str, modulus: int) -> Field:
    """The registered field, which must still have the modulus that the answers were made with."""
    field = fields.by_name(name)
    if field is None or field.modulus != modulus:
        raise ValueError(f"{path.name}: no registered field {name} with the modulus {modulus:#x}")
    return field


def _plain(batch: Vectors) -> dict[str, Any]:
    named = {"field": batch.field.name} if batch.field else {}
    usual = (batch.n, batch.width // LIMB_BYTES)
    shapes = {
        name: [array.shape[0], array.shape[1] * LIMB_BYTES]
        for name, array in batch.operands.items()
        if array.shape != usual
    }
    asked = {"param": batch.param, "domain": pack(batch.domain, batch.width)} if batch.param else {}
    return {
        "op": batch.op,
        "source": batch.source,
        "name": batch.name,
        **named,
        **asked,
        **({"shapes": shapes} if shapes else {}),
        "modulus": batch.modulus.to_bytes(batch.width, "little"),
        "n": batch.n,
        "width": batch.width,
        "operands": {name: array.tobytes() for name, array in batch.operands.items()},
        "expected": batch.expected.tobytes(),
    }
