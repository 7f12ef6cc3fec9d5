"""Transforms of any size judged whole, without a reference: by a closed form, by each other, and by element-wise ops.

x[i] = a^i has X[j] = ((a s)^n - 1) / (a s omega^j - 1) on the coset of shift s (harness/vectors/recipes.py), so that
X[j] (a s omega^j - 1) is the same for every j. The powers and this product are made by mod-mul and mod-sub of the backend.
What is right in natural order says what every other order and the inverse have to give.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import product

import numpy as np

from limbd.harness.inputs import Residues
from limbd.harness.targets import BackendTarget
from limbd.harness.transforms import own_domain
from limbd.ops.base import Limbs
from limbd.ops.ntt import NTT, param_of
from limbd.ops.params.base import Field
from limbd.ops.params.layout import from_ints
from limbd.ops.transform_shape import Order
from limbd.worker.device.base import Backend


def broken(backend: Backend, field: Field, k: int, seed: str) -> list[str]:
    """What does not hold of transforms of 2^k elements: every order, forward and inverse, plain and on a coset, in the
    registered domain and in another."""
    rng = random.Random(f"{seed} {field.name} {k}")
    laws = _Laws(BackendTarget(backend), field, k)
    registered = field.omega(k), field.generator or 1
    return [
        text
        for own in (False, True)
        for text in laws.broken(own_domain(rng, field, k) if own else registered, own, rng.randrange(2, field.modulus))
    ]


class _Laws:
    """Of one field and size."""

    def __init__(self, target: BackendTarget, field: Field, k: int) -> None:
        self._target, self._field, self._k = target, field, k
        self._turned = _bit_reversed(k)

    def broken(self, domain: tuple[int, int], own: bool, a: int) -> Iterator[str]:
        x = self._powers(a)
        for coset in (False, True):
            values = self._ask(x, Order.NN, False, coset, own, domain)
            if not self._is_closed_form(values, a * (domain[1] if coset else 1), domain[0]):
                yield self._told(Order.NN, False, coset, own) + " is not the closed form"
                continue
            for order, inverse in product(Order, (False, True)):
                given, wanted = (values, x) if inverse else (x, values)
                given = given[self._turned] if order in (Order.RN, Order.RR) else given
                wanted = wanted[self._turned] if order in (Order.NR, Order.RR) else wanted
                if not (self._ask(given, order, inverse, coset, own, domain) == wanted).all():
                    yield self._told(order, inverse, coset, own) + " is not what natural order says"

    def _ask(self, x: Limbs, order: Order, inverse: bool, coset: bool, own: bool, domain: tuple[int, int]) -> Limbs:
        param = param_of(self._k, inverse=inverse, coset=coset, order=order, own=own)
        residues = Residues(self._field.modulus, None, param, domain if own else ())
        return self._target.answer(NTT.name, residues, {"x": np.ascontiguousarray(x)})

    def _is_closed_form(self, values: Limbs, point: int, omega: int) -> bool:
        m, n = self._field.modulus, 1 << self._k
        point %= m
        at = self._op("mod-mul", self._powers(omega), _all(n, point))
        products = self._op("mod-mul", values, self._op("mod-sub", at, _all(n, 1)))
        return bool((products == _all(1, (pow(point, n, m) - 1) % m)).all()) and self._are_reduced(values)

    def _are_reduced(self, values: Limbs) -> bool:
        return bool((self._op("mod-add", values, _all(len(values), 0)) == values).all())

    def _powers(self, a: int) -> Limbs:
        """a^i for i < n, by doubling what is there."""
        powers = from_ints([1])
        for _ in range(self._k):
            step = pow(a, len(powers), self._field.modulus)
            powers = np.concatenate([powers, self._op("mod-mul", powers, _all(len(powers), step))])
        return powers

    def _op(self, name: str, a: Limbs, b: Limbs) -> Limbs:
        return self._target.answer(name, Residues(self._field.modulus), {"a": a, "b": b})

    def _told(self, order: Order, inverse: bool, coset: bool, own: bool) -> str:
        words = ["inverse"] * inverse + ["coset"] * coset + ["own domain"] * own
        return " ".join([f"ntt {self._field.name} 2^{self._k} {order.name.lower()}", *words])


def _all(n: int, value: int) -> Limbs:
    return np.repeat(from_ints([value]), n, axis=0)


def _bit_reversed(k: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Index i of the array: the number whose k bits are i's in reverse."""
    turned = np.zeros(1, dtype=np.int64)
    for _ in range(k):
        turned = np.concatenate([2 * turned, 2 * turned + 1])
    return turned
