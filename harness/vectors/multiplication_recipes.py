"""Large multi-scalar multiplications by recipe: base i is ((i mod 1000) + 1) G, scalar i the SHA-256 of "LABEL|i" as a
big-endian number; only sums are stored.

That a sum is right follows from the logarithms: it is (the sum of scalar i times ((i mod 1000) + 1)) G.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import gmpy2
import numpy as np

from limbd.harness.groups import group_of, pack_point
from limbd.harness.inputs import Residues
from limbd.ops.base import LIMB_BYTES, Limbs
from limbd.ops.msm import CURVE
from limbd.ops.params import curves
from limbd.ops.params.base import LIMB_BITS
from limbd.ops.params.curves import Curve, GroupName
from limbd.ops.params.layout import PLAIN_LIMBS, from_ints
from limbd.ops.reference.curve import Point, plus, times
from limbd.ops.reference.msm import decode_points, encode_points

BASES = 1000

# Everybody runs those of up to so many; and of those above LARGEST, one.
USUAL = 1 << 12
LARGEST = 1 << 22
ONE_MORE = ("bn254", "g1", 1 << 24)


@dataclass(frozen=True)
class MultiplicationRecipe:
    """expected: the packed sum (limbd.harness.groups). n: of answers."""

    curve: Curve
    group: GroupName
    count: int
    label: str
    expected: int
    n: int = 1

    @property
    def op(self) -> str:
        return f"msm-{self.group}"

    @property
    def name(self) -> str:
        return f"{self.curve.name} {self.group} of {self.count}"

    @cached_property
    def residues(self) -> Residues:
        return Residues(self.curve.order, None, self.curve.id & CURVE)

    def operands(self) -> dict[str, Limbs]:
        bases = _bases(self.curve, self.group)
        points = np.resize(bases, (self.count, bases.shape[1]))
        return {"scalars": _scalars(self.label, self.count), "points": points}

    def first_difference(self, results: Limbs) -> int | None:
        """0 for a wrong sum, or None."""
        right = from_ints([self.expected], self._limbs)
        return None if results.shape == right.shape and (results == right).all() else 0

    def is_right(self) -> bool:
        """Whether the stored sum is what the logarithms say."""
        scalars = _scalars(self.label, self.count)
        whole = self.count // BASES * BASES
        sums = scalars[:whole].reshape(-1, BASES, PLAIN_LIMBS).sum(axis=0, dtype=np.uint64)
        sums[: self.count - whole] += scalars[whole:]
        totals = [sum(int(limb) << LIMB_BITS * j for j, limb in enumerate(row)) for row in sums]
        logarithm = sum(k * total for k, total in enumerate(totals, 1)) % self.curve.order
        group, p = group_of(self.curve, self.group), gmpy2.mpz(self.curve.base.modulus)
        return pack_point(times(logarithm, group.generator, p), self.curve, group) == self.expected

    @property
    def _limbs(self) -> int:
        return self.curve.point_bytes(group_of(self.curve, self.group)) // LIMB_BYTES


@cache
def _bases(curve: Curve, name: GroupName) -> Limbs:
    """1 G .. 1000 G."""
    group, points = group_of(curve, name), list[Point]()
    for _ in range(BASES):
        last = points[-1] if points else None
        points.append(plus(last, group.generator, gmpy2.mpz(curve.base.modulus)))
    return np.frombuffer(encode_points(points, curve, group), "<u4").reshape(BASES, -1)


_drawn: dict[str, Limbs] = {}


def _scalars(label: str, count: int) -> Limbs:
    """The first `count`; the longest that was asked for is kept, as all recipes share them."""
    kept = _drawn.get(label)
    if kept is None or len(kept) < count:
        start = 0 if kept is None else len(kept)
        digests = b"".join(hashlib.sha256(f"{label}|{i}".encode()).digest() for i in range(start, count))
        more = np.frombuffer(digests, np.uint8).reshape(-1, 32)[:, ::-1].copy().view("<u4")
        kept = _drawn[label] = more if kept is None else np.concatenate([kept, more])
    return kept[:count]


def read_rows(document: Mapping[str, Any], op: str, most: int) -> Iterator[MultiplicationRecipe]:
    """Those of an op with up to `most` pairs."""
    for row in document["msm"]:
        curve = curves.by_name(row["curve"])
        assert curve is not None, row["curve"]
        if op == f"msm-{row['group']}" and row["n"] <= most:
            expected = int.from_bytes(row["expected"], "little")
            yield MultiplicationRecipe(curve, row["group"], row["n"], document["label"], expected)


def rows_of(collected: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """What is kept of the collected ones, as the file has it. Raises ValueError where one is not right."""
    for row in collected["msm"]:
        key = (row["curve"], row["group"], row["n"])
        if row["n"] > LARGEST and key != ONE_MORE:
            continue
        curve = curves.by_name(row["curve"])
        assert curve is not None, row["curve"]
        parts = [part for each in row["expected"] for part in (each if isinstance(each, list) else [each])]
        data = b"".join(int(part, 16).to_bytes(curve.base.element_bytes, "little") for part in parts)
        (point,) = decode_points(data, curve, group_of(curve, row["group"]))
        packed = pack_point(point, curve, group_of(curve, row["group"]))
        recipe = MultiplicationRecipe(curve, row["group"], row["n"], collected["label"], packed)
        if not recipe.is_right():
            raise ValueError(f"{recipe.name}: the sum is not what the logarithms say")
        yield {"curve": curve.name, "group": recipe.group, "n": recipe.count, "expected": data}
