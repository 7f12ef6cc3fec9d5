"""All vectors of toy fields through a backend's transforms, as many as there are up to a bound, in every variant.

The expected answers are products by the matrix that defines a transform, in numpy's 64-bit integers.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np
import numpy.typing as npt

from limbd.harness.inputs import Residues
from limbd.harness.kat import first_difference
from limbd.harness.targets import BackendTarget
from limbd.ops import quotient
from limbd.ops.base import Limbs, Op
from limbd.ops.domain import transforms
from limbd.ops.ntt import NTT, param_of
from limbd.ops.params.base import Field
from limbd.ops.params.fields import FIELDS
from limbd.ops.params.layout import PLAIN_LIMBS
from limbd.ops.quotient import QUOTIENT
from limbd.ops.transform_shape import Order
from limbd.worker.device.base import Backend

# Vectors of one size and field at the most: all of a pair modulo 257, all of four elements modulo 17. Of quotient, pairs of
# vectors.
MOST_VECTORS = 17**4

Integers = npt.NDArray[np.int64]


def fields() -> tuple[Field, ...]:
    """Toys of which all vectors of some size are few enough."""
    return tuple(field for field in FIELDS if field.toy and transforms(field) and field.modulus <= MOST_VECTORS)


def run(backend: Backend, op: Op) -> tuple[list[str], int]:
    """Returns what is wrong, and how many answers were compared."""
    if op not in (NTT, QUOTIENT):
        raise ValueError(f"no definition of {op.name} here")
    wrong: list[str] = []
    compared = 0
    for field in fields():
        for k in sizes(field, 1 if op is NTT else 2):
            wrong += differences(backend, field, k) if op is NTT else quotient_differences(backend, field, k)
            compared += 16 * field.modulus ** (1 << k) << k if op is NTT else 4 * field.modulus ** (2 << k) << k
    return wrong, compared


def sizes(field: Field, arrays: int = 1) -> Iterator[int]:
    """Every k of which all vectors can be tried; of so many arrays, all their combinations."""
    return (k for k in range(field.two_adicity + 1) if field.modulus ** (arrays << k) <= MOST_VECTORS)


def differences(backend: Backend, field: Field, k: int) -> Iterator[str]:
    """The first wrong answer of each variant: order, direction, plain or on the coset."""
    x = all_vectors(field.modulus, 1 << k)
    for order, inverse, coset in product(Order, (False, True), (False, True)):
        residues = Residues(field.modulus, field, param_of(k, inverse=inverse, coset=coset, order=order))
        results = BackendTarget(backend).answer(NTT.name, residues, {"x": limbs_of(x)})
        shift = field.generator if coset and field.generator else 1
        expected = x @ matrix(field, k, order, inverse=inverse, shift=shift) % field.modulus
        bad = first_difference(results, limbs_of(expected))
        if bad is not None:
            vector = x[bad >> k].tolist()
            yield f"ntt of {vector} mod {field.modulus} {order.name} inverse={inverse} coset={coset}: wrong at {bad}"


def quotient_differences(backend: Backend, field: Field, k: int) -> Iterator[str]:
    """The first wrong answer on each of two cosets, of values and of coefficients. Every pair of vectors stands as A and B, as
    A and C, and as B and C."""
    m, every = field.modulus, all_vectors(field.modulus, 1 << k)
    first, second = np.divmod(np.arange(len(every) ** 2), len(every))
    a, b, c = every[first], every[second], every[(first + second) % len(every)]
    omega = field.omega(k)
    for shift, coefficients in product(cosets(field, k), (False, True)):
        residues = Residues(m, field, quotient.param_of(k, own=True, coefficients=coefficients), (omega, shift))
        arrays = {"a": limbs_of(a), "b": limbs_of(b), "c": limbs_of(c)}
        results = BackendTarget(backend).answer(QUOTIENT.name, residues, arrays)
        there = matrix(field, k, Order.NN, inverse=True, shift=1) @ matrix(
            field, k, Order.NN, inverse=False, shift=shift
        )
        expected = ((a @ there % m) * (b @ there % m) - c @ (there % m)) % m
        if coefficients:
            by_z = pow(pow(shift, 1 << k, m) - 1, -1, m)
            expected = expected * by_z % m @ matrix(field, k, Order.NN, inverse=True, shift=shift) % m
        bad = first_difference(results, limbs_of(expected))
        if bad is not None:
            rows = [array[bad >> k].tolist() for array in (a, b, c)]
            yield f"quotient of {rows} mod {m} shift {shift} coefficients={coefficients}: wrong at {bad}"


def cosets(field: Field, k: int) -> list[int]:
    """The two smallest shifts whose coset is not the domain, or fewer where there are no two."""
    return [s for s in range(2, field.modulus) if pow(s, 1 << k, field.modulus) != 1][:2]


def all_vectors(modulus: int, n: int) -> Integers:
    """Shape (modulus^n, n)."""
    numbers = np.arange(modulus**n, dtype=np.int64)
    return np.stack([numbers // modulus**i % modulus for i in range(n)], axis=1)


def matrix(field: Field, k: int, order: Order, *, inverse: bool, shift: int) -> Integers:
    """M with out = x M mod m, by the definition: rows are places of x, columns places of the result."""
    m, n, omega = field.modulus, 1 << k, field.omega(k)
    if inverse:
        back, share = pow(shift, -1, m), pow(n, -1, m)
        rows = [[pow(omega, -i * j, m) * pow(back, i, m) * share % m for i in range(n)] for j in range(n)]
    else:
        rows = [[pow(shift, i, m) * pow(omega, i * j, m) % m for j in range(n)] for i in range(n)]
    reverse = [int(f"{i:0{k}b}"[::-1], 2) if k else 0 for i in range(n)]
    natural = list(range(n))
    whole = np.array(rows, dtype=np.int64)
    return whole[reverse if order.reversed_in else natural][:, reverse if order.reversed_out else natural]


def limbs_of(values: Integers) -> Limbs:
    """Small integers as elements, one after the other."""
    out = np.zeros((values.size, PLAIN_LIMBS), dtype="<u4")
    out[:, 0] = values.reshape(-1)
    return out
