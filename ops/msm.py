"""msm-g1, msm-g2: the sum of s_i P_i over the points of a registered curve, for one or many vectors of scalars."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np

from limbd.ops.base import LIMB_BYTES, Call, LaunchPlan, Limbs, Op, Request, Traits, Unit, check_length
from limbd.ops.msm_plan import Question, plan_of
from limbd.ops.msm_shape import SCALAR_BYTES
from limbd.ops.msm_tuning import MsmRow, msm_row, msm_tuned_for
from limbd.ops.msm_units import bases_kernels
from limbd.ops.params import curves
from limbd.ops.params.curves import CURVES, Curve, Group, GroupName
from limbd.ops.reference.msm import NOT_BELOW_P, NOT_IN_SUBGROUP, NOT_ON_CURVE, encode_points, msm, proof_points
from limbd.ops.status import RequestError, Status

# Bits of param (wire.md section 4).
CURVE = 0xFF
CHECK_SUBGROUP = 1 << 8
CONSTANT_WORK = 1 << 9
VECTORS_SHIFT = 16
MAX_VECTORS = 1 << 16

# log2 of points, by which every unit is met: digits of 16 bits and of 32.
UNIT_LOGS = (4, 20, 24)

# To make a plan takes longer than to enqueue a short one.
PLANS_KEPT = 64

# Numbers of kernels/entry/msm_points.cu.
REASON_BITS = 2
REASONS = (NOT_BELOW_P, NOT_ON_CURVE, NOT_IN_SUBGROUP)


def param_of(curve: Curve, *, vectors: int = 1, check_subgroup: bool = False, constant_work: bool = False) -> int:
    """The param word of version 1."""
    return (
        curve.id & CURVE
        | check_subgroup * CHECK_SUBGROUP
        | constant_work * CONSTANT_WORK
        | (vectors - 1) << VECTORS_SHIFT
    )


def vectors_of(param: int) -> int:
    return (param >> VECTORS_SHIFT) + 1


@dataclass(frozen=True)
class Msm(Op):
    """Both ops, by their group. n counts scalars; the points are the same for all vectors."""

    group: GroupName = "g1"

    @property
    def stem(self) -> str:
        return "msm"

    @property
    def modulus_in_payload(self) -> bool:
        return False

    def check(self, call: Call) -> None:
        known = CURVE | CHECK_SUBGROUP | CONSTANT_WORK | (MAX_VECTORS - 1) << VECTORS_SHIFT
        if call.param & ~known:
            raise RequestError(Status.BAD_PARAM, f"{self.name}: unknown bits in param {call.param:#x}")
        curve = self._curve(call)
        if curve is None or curve.group(self.group) is None or (curve.toy and not call.toys):
            names = ", ".join(curve.name for curve in CURVES if curve.group(self.group) and not curve.toy)
            raise RequestError(
                Status.BAD_PARAM, f"{self.name}: no curve {call.param & CURVE:#x}", hint=f"there are {names}"
            )

    def payload_bytes(self, call: Call) -> int | None:
        curve, vectors = self._curve(call), vectors_of(call.param)
        group = curve.group(self.group) if curve else None
        if curve is None or group is None or call.n % vectors:
            return None
        return call.n * SCALAR_BYTES + call.n // vectors * curve.point_bytes(group)

    def result_bytes(self, call: Call) -> int:
        curve, group = self._found(call)
        return vectors_of(call.param) * curve.point_bytes(group)

    def result_count(self, call: Call) -> int:
        return vectors_of(call.param)

    def decode(self, call: Call, payload: memoryview) -> Request:
        self.check(call)
        check_length(self, call, payload)
        curve, group = self._found(call)
        count, width = call.n // vectors_of(call.param), curve.point_bytes(group)
        words = np.frombuffer(payload, dtype="<u4")
        at = call.n * SCALAR_BYTES // LIMB_BYTES
        scalars = words[:at].reshape(call.n, SCALAR_BYTES // LIMB_BYTES)
        return self._request(call.param, curve, scalars, words[at:].reshape(count, width // LIMB_BYTES))

    def request(
        self,
        curve: Curve,
        scalars: Limbs,
        points: Limbs,
        *,
        vectors: int = 1,
        check_subgroup: bool = False,
        constant_work: bool = False,
    ) -> Request:
        """A request of arrays: scalars (vectors * count, 8), vector by vector, points (count, limbs)."""
        param = param_of(curve, vectors=vectors, check_subgroup=check_subgroup, constant_work=constant_work)
        return self._request(param, curve, scalars, points)

    def _request(self, param: int, curve: Curve, scalars: Limbs, points: Limbs) -> Request:
        group = curve.group(self.group)
        assert group is not None, "whoever asks has looked"
        arrays = {"scalars": scalars, "points": points}
        width = curve.point_bytes(group)
        return Request(self, len(scalars), param, curve.order, width, arrays, None, {"degree": group.degree})

    def plan(self, request: Request, traits: Traits) -> LaunchPlan:
        return _planned(self.question(request), traits)

    def row(self, request: Request, traits: Traits) -> MsmRow:
        """The tuning row of a plan in one piece."""
        question = self.question(request)
        return _rows(question, traits)(max(1, question.count))

    def bad_element(self, word: int) -> RequestError:
        return RequestError(Status.BAD_ELEMENT, REASONS[word & (1 << REASON_BITS) - 1], index=word >> REASON_BITS)

    def proof_request(self, request: Request, plan: LaunchPlan) -> Request:
        """Few points with what goes wrong: equal, opposite and infinite ones, scalars at the edges."""
        curve, group = self._found(Call(request.n, request.param))
        scalars, points = proof_points(curve, group)
        payload = b"".join(int(s).to_bytes(SCALAR_BYTES, "little") for s in scalars) + encode_points(
            points, curve, group
        )
        param = request.param & (1 << VECTORS_SHIFT) - 1
        memory = np.frombuffer(payload, np.uint8).copy()
        return self.decode(Call(len(scalars), param), memory.data)

    def units(self, traits: Traits) -> tuple[Unit, ...]:
        questions = (
            Question(curve, self.group, 1 << log, 1, constant, curve.g1.cofactor != 1)
            for curve in CURVES
            if curve.group(self.group) and not curve.toy
            for constant in (False, True)
            for log in UNIT_LOGS
        )
        plans = (_planned(question, traits) for question in questions)
        kept = (
            unit
            for curve in CURVES
            if curve.group(self.group) and not curve.toy
            for unit in bases_kernels(curve, self.group).units()
        )
        return tuple(dict.fromkeys((*(launch.kernel.unit for plan in plans for launch in plan.launches()), *kept)))

    def tuned_for(self, traits: Traits) -> set[str]:
        return {msm_tuned_for(traits.kind, traits.arch)}

    def reference(self, request: Request, result: memoryview) -> None:
        msm(request, result)

    def _curve(self, call: Call) -> Curve | None:
        return curves.by_low_byte(call.param & CURVE)

    def _found(self, call: Call) -> tuple[Curve, Group]:
        """Of a call that check() has seen."""
        curve = self._curve(call)
        group = curve.group(self.group) if curve else None
        assert curve is not None and group is not None, "check refuses others"
        return curve, group

    def question(self, request: Request) -> Question:
        curve, _ = self._found(Call(request.n, request.param))
        vectors = vectors_of(request.param)
        constant, subgroup = bool(request.param & CONSTANT_WORK), bool(request.param & CHECK_SUBGROUP)
        return Question(curve, self.group, request.n // vectors, vectors, constant, subgroup)


@lru_cache(PLANS_KEPT)
def _planned(question: Question, traits: Traits) -> LaunchPlan:
    return plan_of(question, traits, _rows(question, traits))


def _rows(question: Question, traits: Traits) -> Callable[[int], MsmRow]:
    """The tuning row for a number of points."""
    kind, arch, curve, group = traits.kind, traits.arch, question.curve, question.name
    return partial(msm_row, kind, arch, curve, group, multiprocessors=traits.multiprocessors)


_OPERANDS = ("scalars", "points")

MSM_G1 = Msm(0x30, "msm-g1", "sums of scalar multiples of points of a curve, over its base field", _OPERANDS, "g1")
MSM_G2 = Msm(0x31, "msm-g2", "the same over the field's quadratic extension", _OPERANDS, "g2")
