"""Laws of transforms: they hold of every backend, and tell one that is wrong anywhere."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from limbd.harness import transform_laws
from limbd.ops.ntt import COSET, INVERSE, ORDER_SHIFT
from limbd.ops.params.fields import by_name
from limbd.ops.transform_shape import Order
from limbd.worker.device.base import Backend
from limbd.worker.device.reference import ReferenceBackend


@pytest.mark.parametrize("k", [0, 1, 2, 5, 9, 11])
@pytest.mark.parametrize("name", ["bn254_fr", "bls12_381_fr", "goldilocks"])
def test_they_hold(kernels: Backend, name: str, k: int) -> None:
    field = by_name(name)
    assert field
    assert transform_laws.broken(kernels, field, k, "laws") == []


class _WrongAt(ReferenceBackend):
    """One result of one variant is off by one bit."""

    def __init__(self, variant: int) -> None:
        self.variant = variant

    def run(self, request: Any, plan: Any, result: memoryview) -> Any:
        outcome = super().run(request, plan, result)
        if request.op.name == "ntt" and request.param & (INVERSE | COSET | 3 << ORDER_SHIFT) == self.variant:
            np.frombuffer(result, np.uint8)[-32] ^= 1
        return outcome


@pytest.mark.parametrize("inverse", [0, INVERSE])
@pytest.mark.parametrize("coset", [0, COSET])
@pytest.mark.parametrize("order", Order)
def test_one_wrong_bit_is_told(order: Order, coset: int, inverse: int) -> None:
    field = by_name("bn254_fr")
    assert field
    told = transform_laws.broken(_WrongAt(order << ORDER_SHIFT | coset | inverse), field, 3, "laws")
    assert len(told) == 2
    assert all(f"2^3 {order.name.lower()}{' inverse' * bool(inverse)}{' coset' * bool(coset)}" in text for text in told)
