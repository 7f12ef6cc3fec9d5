"""A plan's case as a row of a benchmark."""

from __future__ import annotations

import dataclasses

from limbd.harness import bench, bench_multiplications
from limbd.harness.plans import PlanCase
from limbd.ops.transform_shape import Order


def param_of(op: str, case: PlanCase) -> int:
    """Of the case's requests; of multi-scalar multiplications, but for the curve."""
    if bench_multiplications.is_multiplication(op):
        return bench_multiplications.variant(vectors=case.vectors, constant=case.constant)
    return bench.param_of_one(op, case.n, Order[case.order.upper()] if case.order else Order.NN)


def plain(op: str, case: PlanCase) -> bench.Case:
    """What the case asks for, whatever its operands are and however it is measured."""
    return bench.Case(op, case.modulus, case.n * case.vectors, param=param_of(op, case))


def asked_of(op: str, case: PlanCase) -> bench.Case:
    """The case as it is measured."""
    asked = dataclasses.replace(plain(op, case), samples=case.samples, inputs=case.inputs)
    return dataclasses.replace(asked, back_to_back=case.back_to_back)
