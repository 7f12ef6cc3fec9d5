"""Known answers of quotient: made ones, since nobody publishes any."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import product

from limbd.harness.inputs import Residues
from limbd.harness.transforms import elements, own_domain
from limbd.harness.vectors import Vectors
from limbd.harness.vectors.peers import agreed_whole, as_arrays
from limbd.ops.domain import ELEMENT_BYTES
from limbd.ops.params.base import Field
from limbd.ops.params.fields import by_name
from limbd.ops.params.layout import PLAIN_LIMBS, from_ints
from limbd.ops.quotient import QUOTIENT, param_of

FIELDS = ("bn254_fr", "bls12_381_fr", "goldilocks", "toy_97", "toy_3x2_30_1")
LOG_N = (0, 1, 2, 5)
TRANSFORMS = 3

SEED = "limbd quotient vectors 1"


def quotient_batches() -> Iterator[Vectors]:
    """Every field and size, the default domain and another, values and coefficients; C = A B on the domain, as a prover has it,
    and any C. Of the caller's domain alone where the field's two-adicity leaves no default shift."""
    for field in map(_field, FIELDS):
        rng = random.Random(f"{SEED} {field.name}")
        for k, own, coefficients, exact in product(LOG_N, *((False, True),) * 3):
            if k < field.two_adicity + own:
                yield _batch(rng, field, k, own=own, coefficients=coefficients, exact=exact)


def _batch(rng: random.Random, field: Field, k: int, *, own: bool, coefficients: bool, exact: bool) -> Vectors:
    m, n = field.modulus, TRANSFORMS << k
    domain = _domain(rng, field, k) if own else ()
    a, b, c = (elements(rng, m, n) for _ in range(3))
    if exact:
        c = [x * y % m for x, y in zip(a, b, strict=True)]
    param = param_of(k, own=own, coefficients=coefficients)
    named = field if rng.randrange(2) else None
    expected = from_ints(agreed_whole(QUOTIENT.name, Residues(m, named, param, domain), [a, b, c]))
    arrays = as_arrays(QUOTIENT.name, [a, b, c], PLAIN_LIMBS)
    name = f"{field.name} 2^{k} {'own' if own else 'default'} domain{' C = A B' if exact else ''}"
    name += " coefficients" if coefficients else ""
    return Vectors(QUOTIENT.name, "made", name, m, ELEMENT_BYTES, arrays, expected, named, param, domain)


def _domain(rng: random.Random, field: Field, k: int) -> tuple[int, int]:
    """Any omega, and a shift with a coset on which Z is not 0."""
    while True:
        omega, shift = own_domain(rng, field, k)
        if pow(shift, 1 << k, field.modulus) != 1:
            return omega, shift


def _field(name: str) -> Field:
    field = by_name(name)
    if field is None:
        raise ValueError(f"no registered field {name}")
    return field
