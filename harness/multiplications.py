"""Multi-scalar multiplications as requests: payloads from Python numbers, plans with any tuning row, sums by logarithms."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import gmpy2
import numpy as np

from limbd.harness.groups import group_of
from limbd.ops import by_name
from limbd.ops.base import Call, LaunchPlan, Op, Request, Traits
from limbd.ops.msm import Msm, param_of
from limbd.ops.msm_plan import plan_of
from limbd.ops.msm_shape import SCALAR_BYTES
from limbd.ops.msm_tuning import MsmRow
from limbd.ops.params.curves import Curve, Group, GroupName
from limbd.ops.reference.curve import Point, plus, times
from limbd.ops.reference.msm import decode_points, encode_points
from limbd.worker.device.base import Backend


@dataclass(frozen=True)
class Multiplication:
    """What is asked. scalars: vector by vector; points: the same for all vectors."""

    curve: Curve
    name: GroupName
    scalars: Sequence[int]
    points: Sequence[Point]
    vectors: int = 1
    check_subgroup: bool = False
    constant_work: bool = False

    @property
    def op(self) -> Msm:
        op = by_name(f"msm-{self.name}")
        assert isinstance(op, Msm)
        return op

    @property
    def group(self) -> Group:
        return group_of(self.curve, self.name)

    def call(self) -> Call:
        param = param_of(
            self.curve, vectors=self.vectors, check_subgroup=self.check_subgroup, constant_work=self.constant_work
        )
        return Call(len(self.scalars), param)

    def payload(self) -> bytes:
        scalars = b"".join(int(scalar).to_bytes(SCALAR_BYTES, "little") for scalar in self.scalars)
        return scalars + encode_points(self.points, self.curve, self.group)

    def request(self) -> Request:
        memory = np.frombuffer(self.payload() or b"\0", np.uint8).copy()
        return self.op.decode(self.call(), memory.data[: len(self.payload())])

    def answer(self, backend: Backend, row_of: Callable[[int], MsmRow] | None = None) -> list[Point]:
        """The sums. row_of: the tuning row for so many points, instead of the table's."""
        request = self.request()
        plan = self.plan(request, backend.traits(), row_of)
        result = bytearray(self.op.result_bytes(self.call()))
        backend.run(request, plan, memoryview(result))
        return decode_points(bytes(result), self.curve, self.group)

    def plan(self, request: Request, traits: Traits, row_of: Callable[[int], MsmRow] | None = None) -> LaunchPlan:
        op: Op = self.op
        if row_of is None:
            return op.plan(request, traits)
        return plan_of(self.op.question(request), traits, row_of)


class Multiples:
    """Points whose logarithms to the generator are known, so that their sums take one scalar multiplication."""

    def __init__(self, curve: Curve, name: GroupName, seed: str, count: int) -> None:
        """A chain of `count` points: a first one, and each the sum of the one before it and a step."""
        self.curve, self.group = curve, group_of(curve, name)
        self._p = gmpy2.mpz(curve.base.modulus)
        rng = random.Random(seed)
        start, step = (rng.randrange(1, curve.order) for _ in range(2))
        self.logarithms = [(start + i * step) % curve.order for i in range(count)]
        point, difference = self.point(start), self.point(step)
        self.points: list[Point] = []
        for _ in range(count):
            self.points.append(point)
            point = plus(point, difference, self._p)

    @classmethod
    def of(cls, curve: Curve, name: GroupName, logarithms: Sequence[int]) -> Multiples:
        """Those with these logarithms, each by a multiplication of its own."""
        made = cls(curve, name, "", 0)
        made.logarithms = list(logarithms)
        made.points = [made.point(logarithm) for logarithm in logarithms]
        return made

    def point(self, logarithm: int) -> Point:
        return times(logarithm % self.curve.order, self.group.generator, self._p)

    def total(self, scalars: Sequence[int]) -> Point:
        """Sum of scalars[i] points[i]."""
        return self.point(sum(s * k for s, k in zip(scalars, self.logarithms, strict=True)))
