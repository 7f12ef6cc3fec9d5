"""Batches long enough for mod-inv-batch's own kernel: up to a crossover mod-inv's answers them (ops/tuning.py).

Known answers and exhaustive operands are far fewer than that, so they are repeated, in another order each time, up to
every row of tuning: with zeros among them, which are masked and cost no other element; with a few elements that have no
inverse, whose blocks alone are done one by one; and with all of those, where most blocks are.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from limbd.harness.inputs import operands
from limbd.harness.vectors import Vectors
from limbd.ops.base import LIMB_BYTES, Limbs, Traits
from limbd.ops.mod_inv_batch import MOD_INV_BATCH
from limbd.ops.params.base import LIMB_BITS
from limbd.ops.params.layout import from_ints, to_ints
from limbd.ops.split import piece_size
from limbd.ops.tuning import BATCH_TABLE, BatchTuning, batch_tuning

OP = MOD_INV_BATCH.name

# Each answer stands at as many places of a batch at least.
PLACES = 2

# A few, so that most blocks have none.
FEW = 3

# Beyond this a row that the device's budget keeps pieces from reaching is left out.
LONGEST = 1 << 24

Indices = npt.NDArray[np.intp]


# --- how long -------------------------------------------------------------------------------------------------------


def lengths(traits: Traits | None, limbs: int) -> tuple[int, ...]:
    """The least n for each row of tuning, for elements of `limbs` limbs. traits: of the backend that is asked; None where
    it is not known (a worker at an address): one n above every backend's crossover."""
    if traits is None:
        return (max(entry.alone for entry in BATCH_TABLE.values()) + 1,)
    found = (_least_above(bound, traits, limbs) for bound in _bounds(batch_tuning(traits.kind, traits.arch, limbs)))
    return tuple(n for n in found if n is not None)


def _bounds(entry: BatchTuning) -> list[int]:
    """What n has to be above for each row."""
    return [entry.alone, *(row.up_to for row in entry.rows if row.up_to is not None)]


def _least_above(bound: int, traits: Traits, limbs: int) -> int | None:
    """The least n whose pieces are longer than the bound; doubled where a batch of bound + 1 is cut."""
    n = bound + 1
    while n <= LONGEST:
        _, size = piece_size(n, 2 * LIMB_BYTES * limbs, traits)
        if math.ceil(n / math.ceil(n / size)) > bound:
            return n
        n *= 2
    return None


def fuzzed_sizes() -> tuple[int, ...]:
    """Around every crossover, every row's bound, and a whole number of blocks of each row: the same for every target, so
    that a seed asks the same questions everywhere."""
    sizes: set[int] = set()
    for entry in BATCH_TABLE.values():
        for below, row in zip(_bounds(entry), entry.rows, strict=True):
            # Whole blocks of up to 4 elements a thread just above the bound, of as many as it takes just below the next.
            sizes |= {below, below + 1, *_around(_multiple(below, 12 * row.block))}
            if row.up_to is not None:
                sizes |= {
                    row.up_to,
                    *_around(_multiple(row.up_to, row.block * row.elements) - row.block * row.elements),
                }
    return tuple(sorted(sizes))


def _multiple(n: int, unit: int) -> int:
    """The next multiple of unit above n."""
    return (n // unit + 1) * unit


def _around(n: int) -> tuple[int, int, int]:
    return (n - 1, n, n + 1)


# --- of what ---------------------------------------------------------------------------------------------------------


def arrangements(x: Limbs, expected: Limbs, modulus: int, n: int) -> Iterator[tuple[Limbs, Limbs]]:
    """Batches of at least n elements of x with their answers, every element that may stand in a batch at PLACES places:
    those with an inverse and zeros; the same with FEW others; all. Two batches fewer where there are no others.

    x, expected: shape (m, limbs); expected is 0 where there is no inverse."""
    zero = np.zeros((1, x.shape[1]), dtype=x.dtype)
    x, expected = np.concatenate([x, zero]), np.concatenate([expected, zero])
    masked = np.fromiter((value % modulus == 0 for value in to_ints(x)), dtype=bool, count=len(x))
    others = np.flatnonzero(~masked & ~expected.any(axis=1))
    kept = np.setdiff1d(np.arange(len(x)), others)
    generator = np.random.Generator(np.random.Philox(n))
    orders = [_order(kept, n, generator)]
    if len(others):
        few = orders[0].copy()
        few[generator.integers(0, len(few), FEW)] = generator.choice(others, FEW)
        orders += [few, _order(np.arange(len(x)), n, generator)]
    for order in orders:
        yield x[order], expected[order]


def _order(indices: Indices, n: int, generator: np.random.Generator) -> Indices:
    order = np.resize(indices, max(n, PLACES * len(indices)))
    generator.shuffle(order)
    return order


def known(batches: Iterable[Vectors], traits: Traits | None) -> Iterator[Vectors]:
    """mod-inv-batch's known answers, those of a modulus together, as batches for each row of tuning."""
    pools: dict[tuple[str, int, int, object], list[Vectors]] = {}
    for batch in batches:
        pools.setdefault((batch.source, batch.modulus, batch.width, batch.field), []).append(batch)
    for pool in pools.values():
        yield from _long(pool, traits)


def _long(pool: Sequence[Vectors], traits: Traits | None) -> Iterator[Vectors]:
    first = pool[0]
    xs, answers = (np.concatenate(parts) for parts in zip(*((v.operands["x"], v.expected) for v in pool), strict=True))
    for n in lengths(traits, first.width // LIMB_BYTES):
        for x, expected in arrangements(xs, answers, first.modulus, n):
            name = f"{first.name} and others, repeated"
            yield Vectors(OP, first.source, name, first.modulus, first.width, {"x": x}, expected, first.field)


# --- fuzzing ---------------------------------------------------------------------------------------------------------

# Different operands of a batch; more elements repeat them.
POOL = 2048


def fuzzed(rng: random.Random, modulus: int, n: int, bits: int) -> Limbs:
    """n operands below 2^bits: by turns of any kind; with an inverse or zero; and those with FEW others among them."""
    kind = rng.randrange(3)
    drawn = operands(rng, modulus, min(n, POOL), bits)
    kept = [x for x in drawn if kind == 0 or x % modulus == 0 or math.gcd(x, modulus) == 1] or [0]
    others = [x for x in drawn if kind == 2 and x % modulus and math.gcd(x, modulus) != 1][:FEW]
    rows = from_ints(kept + others, bits // LIMB_BITS)
    generator = np.random.Generator(np.random.Philox(rng.getrandbits(64)))
    order = np.resize(np.arange(len(kept)), n)
    generator.shuffle(order)
    order[generator.integers(0, n, len(others))] = np.arange(len(kept), len(rows))
    return rows[order]
