"""Large known answers by recipe: inputs are computed, only a few results are stored.

A recipe is a transform of x[i] = a^i, whose results are known in closed form: with omega of order n = 2^k and a coset's
shift s, X[j] = sum of (a s omega^j)^i = ((a s)^n - 1) / (a s omega^j - 1). Stored are some of them, which others computed;
the closed form judges every result. Those of multi-scalar multiplications: multiplication_recipes.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import gmpy2
import msgpack
import numpy as np

from limbd.harness.inputs import Residues
from limbd.harness.vectors import FOLDER, SCHEMA
from limbd.harness.vectors.collected import read_json
from limbd.harness.vectors.multiplication_recipes import USUAL, MultiplicationRecipe, read_rows, rows_of
from limbd.ops.base import Limbs
from limbd.ops.domain import ELEMENT_BYTES
from limbd.ops.ntt import NTT, param_of
from limbd.ops.params import fields
from limbd.ops.params.base import Field
from limbd.ops.params.layout import from_ints, pack, to_mpz, unpack

FILE = "recipes.msgpack"
COLLECTED = "generated/large_recipes.json.gz"

# Up to this k everybody runs them.
USUAL_LOG_N = 18

# Elements that are Python integers at a time.
_PART = 1 << 16


@dataclass(frozen=True)
class Recipe:
    """shift: 1 for none. spots: index -> result."""

    field: Field
    k: int
    a: int
    omega: int
    shift: int
    spots: Mapping[int, int]

    @property
    def op(self) -> str:
        return NTT.name

    @property
    def n(self) -> int:
        return 1 << self.k

    @property
    def name(self) -> str:
        return f"{self.field.name} 2^{self.k} shift {self.shift}"

    @cached_property
    def residues(self) -> Residues:
        """With the registered domain where the recipe's is that one."""
        registered = self.omega == self.field.omega(self.k) and self.shift in (1, self.field.generator)
        param = param_of(self.k, coset=self.shift != 1, own=not registered)
        return Residues(self.field.modulus, None, param, () if registered else (self.omega, self.shift))

    def operands(self) -> dict[str, Limbs]:
        return {"x": _powers(self.field.modulus, self.a, self.n)}

    def first_difference(self, results: Limbs) -> int | None:
        """The lowest index of a wrong result, or None."""
        if results.shape != (self.n, ELEMENT_BYTES // 4):
            return 0
        at = sorted(self.spots)
        wrong = [i for i, value in zip(at, to_mpz(results[at]), strict=True) if value != self.spots[i]]
        return min((*wrong, *self._off_the_closed_form(results)), default=None)

    def _off_the_closed_form(self, results: Limbs) -> Iterator[int]:
        """The first index where it fails, if there is one: X[j] (a s omega^j - 1) = (a s)^n - 1."""
        m = gmpy2.mpz(self.field.modulus)
        point = gmpy2.mpz(self.a * self.shift)
        right = (gmpy2.powmod(point, self.n, m) - 1) % m
        for start in range(0, self.n, _PART):
            for j, value in enumerate(to_mpz(results[start : start + _PART]), start):
                if value >= m or (value * (point - 1) - right) % m:
                    yield j
                    return
                point = point * self.omega % m


def _powers(modulus: int, a: int, n: int) -> Limbs:
    """a^i for i < n."""
    m, power = gmpy2.mpz(modulus), gmpy2.mpz(1)
    out = np.empty((n, ELEMENT_BYTES // 4), dtype="<u4")
    for start in range(0, n, _PART):
        part = []
        for _ in range(min(_PART, n - start)):
            part.append(power)
            power = power * a % m
        out[start : start + len(part)] = from_ints(part)
    return out


AnyRecipe = Recipe | MultiplicationRecipe


def recipes(op: str, largest: int = USUAL_LOG_N) -> Iterator[AnyRecipe]:
    """The shipped recipes of an op up to 2^largest; of multi-scalar multiplications, each pair of which is much more work,
    fewer of those that everybody runs."""
    document = msgpack.unpackb((FOLDER / FILE).read_bytes())
    if document.get("schema") != SCHEMA:
        raise ValueError(f"{FILE} is not of schema {SCHEMA}")
    yield from read_rows(document, op, USUAL if largest <= USUAL_LOG_N else 1 << largest)
    for row in document["ntt"] if op == NTT.name else ():
        if row["k"] <= largest:
            a, omega, shift, *values = map(int, unpack(row["values"]))
            yield Recipe(_field(row["field"]), row["k"], a, omega, shift, dict(zip(row["at"], values, strict=True)))


def write_recipes(source: Path, folder: Path) -> None:
    """Checks each stored result by its closed form, and writes the file. Raises ValueError."""
    collected = read_json(source / COLLECTED)
    rows = {"ntt": [_row(row) for row in collected["ntt"]], "msm": list(rows_of(collected))}
    (folder / FILE).write_bytes(msgpack.packb({"schema": SCHEMA, "label": collected["label"], **rows}))


def _row(collected: Any) -> dict[str, Any]:
    field, k = _field(collected["field"]), collected["log_n"]
    m, n = field.modulus, 1 << k
    a, omega, shift = (int(collected[key], 16) for key in ("a", "omega", "coset_shift"))
    spots = {int(at): int(value, 16) for at, value in collected["spots"].items()}
    for j, value in spots.items():
        point = a * shift * pow(omega, j, m)
        if (value * (point - 1) - (pow(a * shift, n, m) - 1)) % m:
            raise ValueError(f"{field.name} 2^{k}: result {j} is not what the closed form says")
    return {"field": field.name, "k": k, "at": list(spots), "values": pack((a, omega, shift, *spots.values()))}


def _field(name: str) -> Field:
    field = fields.by_name(name)
    if field is None:
        raise ValueError(f"no registered field {name}")
    return field
