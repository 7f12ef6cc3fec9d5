"""Adversarial multi-scalar multiplications of any length: points and scalars that repeat, so that sums are known."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from limbd.harness import bench
from limbd.harness.bench_multiplications import repeating
from limbd.harness.multiplications import Multiples
from limbd.ops import by_name
from limbd.ops.base import Request
from limbd.ops.msm import Msm, vectors_of
from limbd.ops.params.layout import PLAIN_LIMBS, from_ints

# Different points of a chain: sums of them meet others in every bucket.
CHAIN = 64


@dataclass(frozen=True)
class Edge:
    """logarithms: of the points, in multiples of the generator. Both repeat; their lengths have no common divisor where one
    is to meet all of the other."""

    name: str
    logarithms: Sequence[int]
    scalars: Sequence[int]


def edges(order: int) -> tuple[Edge, ...]:
    """Of a group of this order."""
    r, chain = order, tuple(range(3, 3 + CHAIN))
    hard = (0, 1, r - 1, 2, r - 2, r // 2, r // 3, r, (1 << 256) - 1)
    return (
        Edge("copies of one point in one bucket a window", (7,), (r // 3,)),
        Edge("a point and its opposite in one bucket a window", (5, -5), (r // 5,)),
        Edge("one bucket", chain, (1,)),
        Edge("scalars that are all r - 1", chain, (r - 1,)),
        Edge("infinity everywhere", (0,), hard),
        Edge("edges", (1, 1, -1, 2, 0, 3, -2), hard),
    )


def requests(case: bench.Case) -> Iterator[tuple[str, Request]]:
    """(what is hard about it, a request of bench_multiplications.repeating) of the case's curve, work and vectors, of as many
    points, and uniform ones of one point more or less."""
    op, curve, vectors = by_name(case.op), case.curve, vectors_of(case.param)
    assert isinstance(op, Msm) and curve is not None
    for edge in edges(curve.order):
        known = Multiples.of(curve, op.group, edge.logarithms)
        yield edge.name, repeating(op, case.call, known, from_ints(edge.scalars, PLAIN_LIMBS))[0]
    for n in (case.n - vectors, case.n + vectors):
        if n > 0:
            yield f"{n} scalars", bench.request_of(dataclasses.replace(case, n=n), n)
