"""msm-g1 and msm-g2 as ops: names, lengths, results, refusals and their order."""

from __future__ import annotations

import numpy as np
import pytest

from limbd.harness.groups import GROUPS, group_of
from limbd.harness.multiplications import Multiples, Multiplication
from limbd.ops import by_id, by_name
from limbd.ops.base import Call, Request
from limbd.ops.msm import CHECK_SUBGROUP, CONSTANT_WORK, MSM_G1, MSM_G2, Msm, param_of
from limbd.ops.params import curves
from limbd.ops.params.curves import Curve, GroupName
from limbd.ops.reference.curve import Point
from limbd.ops.reference.msm import NOT_BELOW_P, NOT_IN_SUBGROUP, NOT_ON_CURVE
from limbd.ops.status import RequestError, Status
from limbd.worker.device.reference import ReferenceBackend

BOTH = pytest.mark.parametrize("op", [MSM_G1, MSM_G2], ids=lambda op: op.name)
EVERY_GROUP = pytest.mark.parametrize(("curve", "name"), GROUPS, ids=[f"{c.name}-{n}" for c, n in GROUPS])


def named(name: str) -> Curve:
    curve = curves.by_name(name)
    assert curve is not None
    return curve


BN254, BLS, SECP, TOY = map(named, ("bn254", "bls12_381", "secp256k1", "toy_7_13"))


def refusal(op: Msm, call: Call, nbytes: int = 0) -> RequestError:
    with pytest.raises(RequestError) as caught:
        op.decode(call, memoryview(bytes(nbytes)))
    return caught.value


def test_they_are_registered() -> None:
    assert by_id(0x30) is by_name("msm-g1") is MSM_G1
    assert by_id(0x31) is by_name("msm-g2") is MSM_G2
    assert MSM_G1.stem == MSM_G2.stem == "msm"
    assert not MSM_G1.modulus_in_payload and not MSM_G1.elementwise


# --- what is refused ------------------------------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize("bit", range(10, 16))
def test_unknown_bits_are_refused(op: Msm, bit: int) -> None:
    assert refusal(op, Call(0, param_of(BN254) | 1 << bit)).status is Status.BAD_PARAM


@BOTH
@pytest.mark.parametrize("number", [0, 4, 0x7F, 0x80, 0x82, 0xFF])
def test_unknown_curves_are_refused(op: Msm, number: int) -> None:
    error = refusal(op, Call(0, number))
    assert error.status is Status.BAD_PARAM and error.hint is not None and "bn254, bls12_381" in error.hint


def test_secp256k1_has_no_second_group() -> None:
    assert refusal(MSM_G2, Call(0, param_of(SECP))).status is Status.BAD_PARAM
    assert MSM_G1.decode(Call(0, param_of(SECP)), memoryview(b"")).n == 0


@BOTH
def test_toys_are_refused_where_they_are_not_served(op: Msm) -> None:
    assert refusal(op, Call(0, param_of(TOY), toys=False)).status is Status.BAD_PARAM
    assert op.decode(Call(0, param_of(TOY), toys=True), memoryview(b"")).n == 0


@BOTH
@pytest.mark.parametrize("off", [-1, 1, -32, 32, -64, 64])
def test_lengths_that_do_not_match(op: Msm, off: int) -> None:
    for curve in (BN254, BLS):
        for vectors in (1, 3):
            call = Call(6, param_of(curve, vectors=vectors))
            expected = op.payload_bytes(call)
            assert expected is not None
            assert refusal(op, call, expected + off).status is Status.BAD_LENGTH


@BOTH
def test_scalars_that_are_no_whole_vectors(op: Msm) -> None:
    """The length is not known then, so that a connection of version 1 is closed."""
    call = Call(7, param_of(BN254, vectors=2))
    assert op.payload_bytes(call) is None
    assert refusal(op, call, 7 * 32 + 3 * 64 * (2 if op is MSM_G2 else 1)).status is Status.BAD_LENGTH


# --- sizes ----------------------------------------------------------------------------------------------------------


@EVERY_GROUP
def test_sizes(curve: Curve, name: GroupName) -> None:
    op = by_name(f"msm-{name}")
    point = curve.base.element_bytes * 2 * group_of(curve, name).degree
    assert point in (64, 96, 128, 192)
    for n, vectors in ((0, 1), (0, 5), (1, 1), (12, 4), (1 << 16, 1 << 16)):
        call = Call(n, param_of(curve, vectors=vectors, check_subgroup=True, constant_work=True))
        assert op.payload_bytes(call) == 32 * n + n // vectors * point
        assert op.result_bytes(call) == vectors * point
        assert op.result_count(call) == vectors


def test_the_payload_is_read_as_it_lies() -> None:
    scalars, points = [1, 2, 3, 4], [BN254.g1.generator, None]
    request = Multiplication(BN254, "g1", scalars, points, vectors=2).request()
    assert [int(row[0]) for row in request.arrays["scalars"]] == scalars
    assert [int(row[0]) for row in request.arrays["points"]] == [1, 0]
    assert request.arrays["points"].shape == (2, 16) and request.element_bytes == 64
    asked = MSM_G1.question(request)
    assert (asked.count, asked.vectors, asked.constant, asked.subgroup) == (2, 2, False, False)


@pytest.mark.parametrize("bits", [0, CHECK_SUBGROUP, CONSTANT_WORK, CHECK_SUBGROUP | CONSTANT_WORK])
def test_bits_of_param(bits: int) -> None:
    request = MSM_G1.decode(Call(0, param_of(BN254) | bits), memoryview(b""))
    asked = MSM_G1.question(request)
    assert (asked.subgroup, asked.constant) == (bool(bits & CHECK_SUBGROUP), bool(bits & CONSTANT_WORK))


# --- bad points -----------------------------------------------------------------------------------------------------


def told(curve: Curve, points: list[Point], *, subgroup: bool = False) -> tuple[int | None, str]:
    asked = Multiplication(curve, "g1", [1] * len(points), points, check_subgroup=subgroup)
    with pytest.raises(RequestError) as caught:
        asked.answer(ReferenceBackend())
    assert caught.value.status is Status.BAD_ELEMENT
    return caught.value.index, caught.value.message


P = BLS.base.modulus
# What a point may fail: it is above p and off the curve; off the curve; of order 3.
ABOVE: Point = ((P + 1,), (5,))
OFF: Point = ((1,), (5,))
OUTSIDE: Point = ((0,), (2,))


def test_range_comes_before_the_curve_and_the_curve_before_the_subgroup() -> None:
    assert told(BLS, [ABOVE], subgroup=True) == (0, NOT_BELOW_P)
    assert told(BLS, [OFF], subgroup=True) == (0, NOT_ON_CURVE)
    assert told(BLS, [OUTSIDE], subgroup=True) == (0, NOT_IN_SUBGROUP)


def test_the_first_bad_point_is_told_whatever_fails() -> None:
    good: Point = BLS.g1.generator
    assert told(BLS, [good, OUTSIDE, OFF, ABOVE], subgroup=True) == (1, NOT_IN_SUBGROUP)
    assert told(BLS, [good, OUTSIDE, OFF, ABOVE]) == (2, NOT_ON_CURVE)
    assert told(BLS, [good, good, good, ABOVE, OFF]) == (3, NOT_BELOW_P)


def test_flags_in_the_top_of_x_are_no_coordinate() -> None:
    """As compressed encodings have them: bits above the modulus's."""
    g = BLS.g1.generator
    for flag in (0x80, 0x40, 0x20):
        flagged: Point = ((g[0][0] | flag << 376,), g[1])
        assert told(BLS, [g, flagged]) == (1, NOT_BELOW_P)


@pytest.mark.parametrize(("index", "reason"), [(0, 0), (5, 1), (2**31 - 2, 2)])
def test_the_word_of_a_kernel_is_explained(index: int, reason: int) -> None:
    error = MSM_G1.bad_element(index << 2 | reason)
    assert (error.status, error.index) == (Status.BAD_ELEMENT, index)
    assert error.message == (NOT_BELOW_P, NOT_ON_CURVE, NOT_IN_SUBGROUP)[reason]


# --- proofs ---------------------------------------------------------------------------------------------------------


@EVERY_GROUP
def test_the_proof_of_a_plan_is_small_and_has_an_answer(curve: Curve, name: GroupName) -> None:
    known = Multiples(curve, name, "proof", 4)
    request = Multiplication(curve, name, range(4), known.points, check_subgroup=True, constant_work=True).request()
    op = request.op
    proof = op.proof_request(request, op.plan(request, ReferenceBackend().traits()))
    assert proof is not None and proof.n <= 64 and proof.param & 0xFFFF == request.param & 0xFFFF
    assert proof.op is op and answer_of(proof).any()


def answer_of(request: Request) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    result = np.zeros(request.op.result_bytes(Call(request.n, request.param)), np.uint8)
    request.op.reference(request, result.data)
    return result
