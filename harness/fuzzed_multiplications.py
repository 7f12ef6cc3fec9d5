"""What fuzzing asks of msm-g1 and msm-g2: adversarial scalars and points, some of which may not be."""

from __future__ import annotations

import random
from functools import cache

from limbd.harness.groups import GROUPS, group_of, pack_point
from limbd.harness.inputs import Residues, hard_integer
from limbd.harness.multiplications import Multiples
from limbd.ops.base import LIMB_BYTES, Limbs
from limbd.ops.msm import param_of
from limbd.ops.params.curves import Curve, GroupName
from limbd.ops.params.layout import PLAIN_LIMBS, from_ints
from limbd.ops.reference.curve import Point, negate, plus

# Points and scalars of a question at the most: the reference takes some ten milliseconds for as many.
MOST_POINTS = 70
MOST_SCALARS = 140

POOL = 40

# One question in so many has a point that may not be.
BAD_EVERY = 8


def fuzzed(op: str, seed: str, number: int) -> tuple[Residues, dict[str, Limbs]]:
    """One question: the groups by turns, everything else drawn."""
    rng = random.Random(f"{seed} {number} {op}")
    groups = [(curve, name) for curve, name in GROUPS if op == f"msm-{name}"]
    curve, name = groups[number % len(groups)]
    count = rng.choice((0, 1, 2, 3, 31, 32, 33, rng.randrange(MOST_POINTS)))
    vectors = rng.choice((1, 1, 1, 2, 3, rng.randrange(1, 20)))
    vectors = max(1, min(vectors, MOST_SCALARS // max(1, count)))
    chosen = points(rng, curve, name, count)
    packed = [pack_point(point, curve, group_of(curve, name)) for point in chosen]
    limbs = curve.point_bytes(group_of(curve, name)) // LIMB_BYTES
    arrays = {
        "scalars": from_ints(scalars(rng, curve, count * vectors), PLAIN_LIMBS),
        "points": from_ints(packed, limbs),
    }
    param = param_of(curve, vectors=vectors, check_subgroup=rng.randrange(4) == 0, constant_work=rng.randrange(3) == 0)
    if count and rng.randrange(BAD_EVERY) == 0:
        spoil(rng, arrays["points"])
    return Residues(curve.order, None, param), arrays


@cache
def pool(curve: Curve, name: GroupName) -> tuple[Point, ...]:
    """A chain of points, the generator's multiples among them, and infinity."""
    known = Multiples(curve, name, "fuzzing", POOL // 2)
    g, p = group_of(curve, name).generator, curve.base.modulus
    chain: list[Point] = [g]
    while len(chain) < POOL // 2:
        chain.append(plus(chain[-1], g, p))
    return (None, *known.points, *chain)


def points(rng: random.Random, curve: Curve, name: GroupName, count: int) -> list[Point]:
    """All different, one over and over, one and its opposite, or any with repetitions; some infinite."""
    available, p = pool(curve, name), curve.base.modulus
    kind = rng.randrange(4)
    if kind == 0:
        one = rng.choice(available)
        return [one if rng.randrange(4) else negate(one, p) for _ in range(count)]
    few = rng.sample(available, min(len(available), 1 + rng.randrange(1 + count // 4))) if kind == 1 else available
    drawn = [rng.choice(few) for _ in range(count)]
    return [negate(point, p) if rng.randrange(2) else point for point in drawn]


def scalars(rng: random.Random, curve: Curve, n: int) -> list[int]:
    """All equal, mostly zeros and ones, powers of two, of hard limbs, or any."""
    r = curve.order
    edges = (0, 1, 2, r - 1, r, r + 1, r // 2, 2**256 - 1, 2**255)
    kind = rng.randrange(5)
    if kind == 0:
        return [rng.choice(edges)] * n
    draws = (
        lambda: rng.choice(edges),
        lambda: 1 << rng.randrange(256),
        lambda: hard_integer(rng),
        lambda: rng.randrange(2**256),
    )
    if kind == 1:
        return [rng.choice((0, 0, 0, 1, draws[3]())) for _ in range(n)]
    return [rng.choice(draws)() for _ in range(n)]


def spoil(rng: random.Random, array: Limbs) -> None:
    """A limb of one point is another, or one bit."""
    row = array[rng.randrange(len(array))]
    at = rng.randrange(len(row))
    row[at] = rng.choice((0, 2**32 - 1, int(row[at]) ^ 1 << rng.randrange(32)))
