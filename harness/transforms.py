"""What is asked of ops on whole transforms: a registered field, a size, bits of param and a domain, edge elements."""

from __future__ import annotations

import dataclasses
import random
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from limbd.harness.inputs import HARD_LIMBS, Residues, hard_integer
from limbd.harness.inputs import edges as edges_of
from limbd.ops import by_name
from limbd.ops.base import Call, Limbs, Request
from limbd.ops.domain import transforms
from limbd.ops.ntt import COSET, INVERSE, NTT, ORDER_SHIFT
from limbd.ops.params.base import Field
from limbd.ops.params.fields import registered
from limbd.ops.params.layout import from_ints, to_mpz
from limbd.ops.quotient import COEFFICIENTS, QUOTIENT
from limbd.ops.reference.ntt import result_at
from limbd.ops.reference.quotient import holds_at
from limbd.ops.transform_op import LOG_N, OWN_DOMAIN

# Elements of a fuzzed question at the most: the reference takes some ten milliseconds for as many.
FUZZED_ELEMENTS = 1 << 11

# Bits of param that a question may have besides its size.
VARIANTS = {NTT.name: INVERSE | COSET | 3 << ORDER_SHIFT, QUOTIENT.name: COEFFICIENTS}

# One question in so many has an element that may not be.
BAD_EVERY = 8


def fields() -> tuple[Field, ...]:
    """Every registered field with transforms, toys too."""
    return tuple(field for field in registered() if transforms(field))


def fuzzed(op: str, seed: str, number: int) -> tuple[Residues, dict[str, Limbs]]:
    """One question: the fields by turns, everything else drawn. Some have an element at or above the modulus."""
    rng = random.Random(f"{seed} {number} {op}")
    field = fields()[number % len(fields())]
    k = rng.randrange(min(field.two_adicity, FUZZED_ELEMENTS.bit_length() - 1) + 1)
    param = k | rng.getrandbits(32) & VARIANTS[op]
    domain = own_domain(rng, field, k) if rng.randrange(2) else ()
    count = rng.choice((1, 1, 2, 3, rng.randrange(1, 40)))
    n = max(1, min(count, FUZZED_ELEMENTS >> k)) << k
    arrays = {name: from_ints(elements(rng, field.modulus, n)) for name in by_name(op).operands}
    if rng.randrange(BAD_EVERY) == 0:
        spoil(rng, field.modulus, arrays[rng.choice(list(arrays))])
    named = field if rng.randrange(2) else None
    return Residues(field.modulus, named, param | (OWN_DOMAIN if domain else 0), domain), arrays


def own_domain(rng: random.Random, field: Field, k: int) -> tuple[int, int]:
    """Any omega of order 2^k, and a shift: 1, -1, omega or any other."""
    m, omega = field.modulus, field.omega(k)
    omega = pow(omega, 2 * rng.randrange(1 << k) + 1, m)
    return omega, rng.choice((1, m - 1, omega, rng.randrange(1, m), rng.randrange(1, m)))


def elements(rng: random.Random, modulus: int, n: int) -> list[int]:
    """n elements below the modulus: all m - 1, all of one edge, or each an edge, of hard limbs, or any."""
    edges = (0, 1, modulus - 1, modulus // 2)
    kind = rng.randrange(6)
    if kind < 2:
        return [modulus - 1 if kind == 0 else rng.choice(edges)] * n
    draws = (lambda: rng.choice(edges), lambda: hard_integer(rng) % modulus, lambda: rng.randrange(modulus))
    return [rng.choice(draws)() for _ in range(n)]


def spoil(rng: random.Random, modulus: int, array: Limbs) -> None:
    """Puts one or two elements that may not be into an array: m, m + 1, a limb above m, or the largest."""
    top = (1 << 32 * array.shape[1]) - 1
    bad = (modulus, modulus + 1, min(top, modulus + (rng.choice(HARD_LIMBS[1:]) << 224)), top)
    for _ in range(rng.randrange(1, 3)):
        array[rng.randrange(len(array))] = from_ints([rng.choice(bad)])[0]


def edge_request(op: str, field: Field, param: int) -> Request:
    """One transform of hard elements below the modulus, in its registered domain: of any size, so nothing is drawn one by
    one."""
    rng = random.Random(f"{op} {field.name} {param}")
    values = {value % field.modulus for value in edges_of(field.modulus)}
    values |= {hard_integer(rng) % field.modulus for _ in range(64)}
    table = from_ints(sorted(values))
    chosen = np.random.Generator(np.random.Philox(param))
    n = 1 << (param & LOG_N)
    whole = table[chosen.integers(0, len(table), n * len(by_name(op).operands))]
    return by_name(op).decode(Call(n, param, field), whole.data.cast("B"))


def equal_request(field: Field, param: int) -> Request:
    """An ntt of elements that are all m - 1, whose sums are the largest."""
    whole = np.tile(from_ints([field.modulus - 1]), (1 << (param & LOG_N), 1))
    return NTT.decode(Call(len(whole), param, field), whole.data.cast("B"))


# Results of an ntt that is too long for the reference, compared one by one.
SPOTS = 3


def wrong(request: Request, result: Limbs, most: int) -> tuple[int | None, int]:
    """The lowest wrong index found, and how many results were compared: whole transforms, as many as `most` elements are,
    or a few results of one that is longer."""
    k = request.param & LOG_N
    rng = random.Random(request.n)
    if 1 << k > most:
        return _wrong_spot(request, result, rng)
    chosen = sorted(rng.sample(range(request.n >> k), min(request.n, most) >> k))
    rows = np.concatenate([np.arange(t << k, (t + 1) << k) for t in chosen]) if chosen else np.arange(0)
    arrays = {name: np.ascontiguousarray(array[rows]) for name, array in request.arrays.items()}
    part = dataclasses.replace(request, n=len(rows), arrays=arrays)
    expected = np.empty((len(rows), result.shape[1]), dtype="<u4")
    request.op.reference(part, expected.data.cast("B"))
    bad = np.flatnonzero((result[rows] != expected).any(axis=1))
    return (int(rows[bad[0]]) if len(bad) else None), len(rows)


def _wrong_spot(request: Request, result: Limbs, rng: random.Random) -> tuple[int | None, int]:
    """Of ntt's first result, last and a random one; of quotient's a random one, or all coefficients at a random point."""
    n = 1 << (request.param & LOG_N)
    start = rng.randrange(request.n // n) * n
    if request.op is QUOTIENT:
        *abc, out = (to_mpz(x[start : start + n]) for x in (*request.arrays.values(), result))
        j = rng.randrange(n)
        return (None if holds_at(request, abc, out, j) else start + j), 1
    if request not in _right:
        x = to_mpz(request.arrays["x"][start : start + n])
        spots = (0, n - 1, *(rng.randrange(n) for _ in range(SPOTS - 2)))
        _right[request] = {start + j: result_at(request, x, j) for j in spots}
    bad = [j for j, right in _right[request].items() if to_mpz(result[j : j + 1])[0] != right]
    return min(bad, default=None), len(_right[request])


# They take seconds, and several kernels answer one request.
_right: WeakKeyDictionary[Request, dict[int, Any]] = WeakKeyDictionary()
