"""Large known answers by recipe: inputs are computed, only a few results are stored.

A recipe is a transform of x[i] = a^i, whose results are known in closed form: with omega of order n = 2^k and a coset's
shift s, X[j] = sum of (a s omega^j)^i = ((a s)^n - 1) / (a s omega^j - 1). Stored are some of them, which others computed;
the closed form judges every result. Those of multi-scalar multiplications: multiplication_recipes.py.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import repeat
from pathlib import Path
from typing import Any, TypeVar

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

T = TypeVar("T")


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
        """Where it fails first, in each part that is wrong somewhere."""
        starts = range(0, self.n, _PART)
        parts = (results[start : start + _PART] for start in starts)
        found = _map(self.n, _off_in_part, repeat(self.field.modulus), repeat(self._numbers), starts, parts)
        return (bad for bad in found if bad is not None)

    @property
    def _numbers(self) -> tuple[int, int, int]:
        """What _off_in_part takes: a s, omega and (a s)^n - 1."""
        m, point = self.field.modulus, self.a * self.shift % self.field.modulus
        return point, self.omega, (pow(point, self.n, m) - 1) % m


def _off_in_part(modulus: int, numbers: tuple[int, int, int], start: int, results: Limbs) -> int | None:
    """The first index of results, which begin at start, where X[j] (a s omega^j - 1) = (a s)^n - 1 fails."""
    m = gmpy2.mpz(modulus)
    point, omega, right = map(gmpy2.mpz, numbers)
    point = point * gmpy2.powmod(omega, start, m) % m
    for j, value in enumerate(to_mpz(results), start):
        if value >= m or (value * (point - 1) - right) % m:
            return j
        point = point * omega % m
    return None


def _powers(modulus: int, a: int, n: int) -> Limbs:
    """a^i for i < n."""
    starts = range(0, n, _PART)
    return np.concatenate(list(_map(n, _powers_in_part, repeat(modulus), repeat(a), starts, repeat(min(n, _PART)))))


def _powers_in_part(modulus: int, a: int, start: int, count: int) -> Limbs:
    m = gmpy2.mpz(modulus)
    power = gmpy2.powmod(a, start, m)
    part = []
    for _ in range(count):
        part.append(power)
        power = power * a % m
    return from_ints(part)


def _map(n: int, function: Callable[..., T], *arguments: Iterable[Any]) -> Iterator[T]:
    """map(), by all processors where n elements are worth their start."""
    return _pool().map(function, *arguments) if n > 1 << USUAL_LOG_N else map(function, *arguments)


@cache
def _pool() -> ProcessPoolExecutor:
    """Processes of their own, not forks: this one may have a device and threads."""
    return ProcessPoolExecutor(len(os.sched_getaffinity(0)), multiprocessing.get_context("spawn"))


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
