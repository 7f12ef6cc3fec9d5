"""Laws of multi-scalar multiplication, which need no reference: for sizes where none is fast enough.

Each law is asked of a function from pairs to their sum, and says whether it holds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import gmpy2
import numpy as np

from limbd.harness.groups import group_of
from limbd.harness.multiplications import Multiples
from limbd.ops import by_name
from limbd.ops.base import LIMB_BYTES, Call, Limbs
from limbd.ops.msm import param_of
from limbd.ops.params.base import LIMB_BITS
from limbd.ops.params.curves import Curve, GroupName
from limbd.ops.params.layout import PLAIN_LIMBS, from_ints, to_mpz
from limbd.ops.reference.curve import Point, negate, plus
from limbd.ops.reference.msm import decode_points, encode_points
from limbd.worker.device.base import Backend


@dataclass(frozen=True)
class Pairs:
    """scalars, points: as the wire has them, a row each."""

    curve: Curve
    name: GroupName
    scalars: Limbs
    points: Limbs

    def taken(self, rows: slice | np.ndarray) -> Pairs:
        return replace(self, scalars=self.scalars[rows], points=self.points[rows])


Sum = Callable[[Pairs], Point]


def split(sum_of: Sum, asked: Pairs, generator: np.random.Generator) -> bool:
    """The sum is that of two parts."""
    at = int(generator.integers(0, len(asked.points) + 1))
    first, second = sum_of(asked.taken(slice(at))), sum_of(asked.taken(slice(at, None)))
    return sum_of(asked) == plus(first, second, gmpy2.mpz(asked.curve.base.modulus))


def permuted(sum_of: Sum, asked: Pairs, generator: np.random.Generator) -> bool:
    """Pairs in another order have the same sum."""
    return sum_of(asked) == sum_of(asked.taken(generator.permutation(len(asked.points))))


def negated(sum_of: Sum, asked: Pairs, generator: np.random.Generator) -> bool:
    """Opposite scalars have the opposite sum."""
    r = asked.curve.order
    opposite = from_ints([-scalar % r for scalar in to_mpz(asked.scalars)], PLAIN_LIMBS)
    return sum_of(replace(asked, scalars=opposite)) == negate(sum_of(asked), asked.curve.base.modulus)


LAWS = (split, permuted, negated)

# Different bases of a question; larger ones repeat them.
BASES = 512


def broken(backend: Backend, curve: Curve, name: GroupName, n: int) -> list[str]:
    """The names of the laws that do not hold for n random pairs."""
    generator = np.random.Generator(np.random.Philox(n))
    asked = pairs(curve, name, Multiples(curve, name, "laws", min(n, BASES)).points, n, generator)
    return [law.__name__ for law in LAWS if not law(lambda question: answer(backend, question), asked, generator)]


def pairs(curve: Curve, name: GroupName, points: list[Point], n: int, generator: np.random.Generator) -> Pairs:
    """n pairs: these points over and over, with any scalars of 256 bits."""
    rows = np.frombuffer(encode_points(points, curve, group_of(curve, name)), "<u4").reshape(len(points), -1)
    scalars = generator.integers(0, 1 << LIMB_BITS, size=(n, PLAIN_LIMBS), dtype=np.uint32)
    return Pairs(curve, name, scalars, np.resize(rows, (n, rows.shape[1])))


def answer(backend: Backend, asked: Pairs) -> Point:
    op, call = by_name(f"msm-{asked.name}"), Call(len(asked.scalars), param_of(asked.curve))
    payload = np.concatenate([asked.scalars.reshape(-1), asked.points.reshape(-1)])
    request = op.decode(call, payload.data.cast("B")[: LIMB_BYTES * len(payload)])
    result = bytearray(op.result_bytes(call))
    backend.run(request, op.plan(request, backend.traits()), memoryview(result))
    (point,) = decode_points(bytes(result), asked.curve, group_of(asked.curve, asked.name))
    return point
