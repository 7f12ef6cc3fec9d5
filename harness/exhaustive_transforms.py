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
from limbd.ops.base import Limbs, Op
from limbd.ops.ntt import NTT, param_of
from limbd.ops.params.base import Field
from limbd.ops.params.fields import FIELDS
from limbd.ops.params.layout import PLAIN_LIMBS
from limbd.ops.transform import Order, transforms
from limbd.worker.device.base import Backend

# Vectors of one size and field at the most: all of a pair modulo 257, all of four elements modulo 17.
MOST_VECTORS = 17**4

Integers = npt.NDArray[np.int64]


def fields() -> tuple[Field, ...]:
    """Toys of which all vectors of some size are few enough."""
    return tuple(field for field in FIELDS if field.toy and transforms(field) and field.modulus <= MOST_VECTORS)


def run(backend: Backend, op: Op) -> tuple[list[str], int]:
    """Returns what is wrong, and how many answers were compared."""
    if op is not NTT:
        raise ValueError(f"no definition of {op.name} here")
    wrong: list[str] = []
    compared = 0
    for field in fields():
        for k in sizes(field):
            wrong += differences(backend, field, k)
            compared += 16 * field.modulus ** (1 << k) << k
    return wrong, compared


def sizes(field: Field) -> Iterator[int]:
    """Every k of which all vectors can be tried."""
    return (k for k in range(field.two_adicity + 1) if field.modulus ** (1 << k) <= MOST_VECTORS)


def differences(backend: Backend, field: Field, k: int) -> Iterator[str]:
    """The first wrong answer of each variant: order, direction, plain or on the coset."""
    x = all_vectors(field.modulus, 1 << k)
    for order, inverse, coset in product(Order, (False, True), (False, True)):
        residues = Residues(field.modulus, field, param_of(k, inverse=inverse, coset=coset, order=order))
        results = BackendTarget(backend).answer(NTT.name, residues, {"x": limbs_of(x)})
        expected = x @ matrix(field, k, order, inverse=inverse, coset=coset) % field.modulus
        bad = first_difference(results, limbs_of(expected))
        if bad is not None:
            vector = x[bad >> k].tolist()
            yield f"ntt of {vector} mod {field.modulus} {order.name} inverse={inverse} coset={coset}: wrong at {bad}"


def all_vectors(modulus: int, n: int) -> Integers:
    """Shape (modulus^n, n)."""
    numbers = np.arange(modulus**n, dtype=np.int64)
    return np.stack([numbers // modulus**i % modulus for i in range(n)], axis=1)


def matrix(field: Field, k: int, order: Order, *, inverse: bool, coset: bool) -> Integers:
    """M with out = x M mod m, by the definition: rows are places of x, columns places of the result."""
    m, n, omega = field.modulus, 1 << k, field.omega(k)
    shift = field.generator if coset and field.generator else 1
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
