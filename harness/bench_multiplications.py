"""Multi-scalar multiplications that are measured: bases whose logarithms are known, tiled, so that inputs of any length are
made and judged in no time, and scalars as they are met: uniform, skewed, or a witness's.

By skew: 40 % zeros, 20 % ones, 20 % one repeated value, the rest uniform. By witness: 99 % zeros and ones, one value 11,758
times in 2^20, the rest uniform.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from weakref import WeakKeyDictionary

import numpy as np

from limbd.harness.inputs import UNIFORM
from limbd.harness.multiplications import Multiples
from limbd.harness.textio import InputError
from limbd.ops import by_name
from limbd.ops.base import Call, Limbs, Op, Request
from limbd.ops.msm import CONSTANT_WORK, CURVE, VECTORS_SHIFT, Msm, vectors_of
from limbd.ops.params import curves
from limbd.ops.params.base import LIMB_BITS
from limbd.ops.params.curves import Curve, GroupName
from limbd.ops.params.layout import PLAIN_LIMBS, from_ints
from limbd.ops.reference.msm import decode_points, encode_points

SKEW, WITNESS = "skew", "witness"
KINDS = (SKEW, WITNESS)

# Different bases; the others repeat them. Sums of a chain's points meet other points of it, and each time that costs a thread
# its slow path: with 1,024 points that is so in every tenth warp where a bucket has 32 entries, with so many in one of 400.
CHAIN = 1 << 15

# So many rows are repeated at a time.
BLOCK = 1024

# Of a witness: how often one value comes, of so many scalars.
REPEATED, REPEATED_OF = 11_758, 1 << 20

_SKEWED_LOG_N = (16, 18, 20)


def curve_of(op: str, name: str) -> Curve:
    """Raises InputError where the op has no such curve."""
    found, asked = curves.by_name(name), by_name(op)
    assert isinstance(asked, Msm)
    if found is None or found.group(asked.group) is None:
        known = ", ".join(curve.name for curve in curves.CURVES if curve.group(asked.group))
        raise InputError(f"{op} has no curve {name!r}: there are {known}")
    return found


def is_multiplication(op: str) -> bool:
    return isinstance(by_name(op), Msm)


def measured() -> Iterator[tuple[str, str, int, int, str]]:
    """(op, curve, n, param but for the curve, inputs) of the cases that speed claims rest on."""
    for curve, group, most in (
        ("bn254", "g1", 24),
        ("bn254", "g2", 22),
        ("bls12_381", "g1", 24),
        ("bls12_381", "g2", 22),
    ):
        for k in range(10, most + 1, 2):
            yield f"msm-{group}", curve, 1 << k, 0, UNIFORM
        for k in _SKEWED_LOG_N:
            yield f"msm-{group}", curve, 1 << k, 0, SKEW
        yield f"msm-{group}", curve, 1 << 20, 0, WITNESS
        yield f"msm-{group}", curve, 1 << 16, CONSTANT_WORK, UNIFORM
    for k in (16, 20):
        yield "msm-g1", "secp256k1", 1 << k, 0, UNIFORM
    yield "msm-g1", "bn254", 16 << 12, (16 - 1) << VECTORS_SHIFT, UNIFORM


def param_of(curve: Curve) -> int:
    """What names the curve in a request's param."""
    return curve.id & CURVE


def variant(*, vectors: int = 1, constant: bool = False) -> int:
    """A request's param but for the curve."""
    return (vectors - 1) << VECTORS_SHIFT | constant * CONSTANT_WORK


def batch(op: Op, call: Call, inputs: str, seed: int) -> tuple[Request, Limbs]:
    """A request, and the payload that its arrays are views of."""
    assert isinstance(op, Msm)
    curve = curves.by_low_byte(call.param & CURVE)
    assert curve is not None, "whoever asks has looked"
    known = chain(curve, op.group, min(CHAIN, call.n // vectors_of(call.param)))
    return repeating(op, call, known, scalars(curve, call.n, inputs, seed))


def repeating(op: Msm, call: Call, known: Multiples, scalars: Limbs) -> tuple[Request, Limbs]:
    """A request of these points and scalars (rows) over and over, which wrong() can judge; and the payload that its arrays are
    views of."""
    payload = np.empty((op.payload_bytes(call) or 0) // 4, dtype="<u4")
    request = op.decode(call, payload.data.cast("B"))
    points = np.frombuffer(encode_points(known.points, known.curve, known.group), "<u4").reshape(len(known.points), -1)
    for name, rows in (("points", points), ("scalars", scalars)):
        request.arrays[name][:] = _repeated(rows, len(request.arrays[name]))
    _known[request] = known
    return request, payload


def _repeated(rows: Limbs, n: int) -> Limbs:
    if len(rows) == n:
        return rows
    return np.resize(np.tile(rows, (-(-BLOCK // len(rows)), 1)), (n, rows.shape[1]))


@cache
def chain(curve: Curve, name: GroupName, count: int) -> Multiples:
    return Multiples(curve, name, "measured", count)


# The bases of requests that repeating() has made.
_known: WeakKeyDictionary[Request, Multiples] = WeakKeyDictionary()


def scalars(curve: Curve, n: int, inputs: str, seed: int) -> Limbs:
    """(n, 8). Uniform ones are below 2^(bits - 1), so below the order. Raises InputError for inputs of other ops."""
    generator = np.random.Generator(np.random.Philox(seed))
    drawn = generator.integers(0, 1 << LIMB_BITS, size=(n, PLAIN_LIMBS), dtype=np.uint32)
    drawn &= from_ints([(1 << curve.order.bit_length() - 1) - 1])
    if inputs == UNIFORM:
        return drawn
    repeated = drawn[:1].copy()
    kind = generator.random(n)
    if inputs == SKEW:
        zero, one, same = kind < 0.4, (kind >= 0.4) & (kind < 0.6), (kind >= 0.6) & (kind < 0.8)
    elif inputs == WITNESS:
        zero, one, same = kind < 0.495, (kind >= 0.495) & (kind < 0.99), np.zeros(n, bool)
        same[generator.choice(n, n * REPEATED // REPEATED_OF, replace=False)] = True
    else:
        raise InputError(f"{inputs}: scalars are {', '.join((UNIFORM, *KINDS))}")
    drawn[zero | one] = 0
    drawn[one, 0] = 1
    drawn[same] = repeated
    return drawn


def wrong(request: Request, result: Limbs) -> tuple[int | None, int]:
    """The first wrong vector of a request of repeating(), or None, and how many were compared: all."""
    known = _known[request]
    vectors = vectors_of(request.param)
    right = [known.point(logarithm(vector, known)) for vector in _split(request.arrays["scalars"], vectors)]
    got = decode_points(result.tobytes(), known.curve, known.group)
    return next((i for i, (a, b) in enumerate(zip(got, right, strict=True)) if a != b), None), vectors


def _split(array: Limbs, vectors: int) -> list[Limbs]:
    return np.split(array, vectors)


def logarithm(vector: Limbs, known: Multiples) -> int:
    """Of the sum of tiled bases: scalars of equal ones are added up limb by limb, which 64 bits hold for 2^32 of them."""
    distinct = len(known.points)
    whole = len(vector) // distinct * distinct
    sums = vector[:whole].reshape(-1, distinct, PLAIN_LIMBS).sum(axis=0, dtype=np.uint64)
    sums[: len(vector) - whole] += vector[whole:]
    weights = [sum(int(limb) << LIMB_BITS * i for i, limb in enumerate(row)) for row in sums]
    return sum(w * k for w, k in zip(weights, known.logarithms, strict=True))
