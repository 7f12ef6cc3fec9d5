"""Halves of scalars by a curve's endomorphism: what they add up to, how long they get, and that the constants are a curve's."""

from __future__ import annotations

import dataclasses
import random

import pytest

from limbd.harness.multiplications import Multiples
from limbd.ops.msm_shape import half_window_count, offset_of
from limbd.ops.params.check_curve import check_curve
from limbd.ops.params.curves import CURVES, Curve
from limbd.ops.params.endomorphism import Endomorphism, Halving, halving
from limbd.ops.reference.curve import times

HALVED = [curve for curve in CURVES if curve.g1.endomorphism]
EVERY = pytest.mark.parametrize("curve", HALVED, ids=lambda curve: curve.name)


def corners(found: Halving, r: int, eigenvalue: int) -> list[int]:
    """Scalars in the middle between the lattice's points, near the ends of [0, r), where the quotients' errors weigh most: a half
    is as long as it gets there."""
    middle = {
        (sign_a * found.first[i] + sign_b * found.second[i]) // 2
        for i in (0, 1)
        for sign_a in (1, -1)
        for sign_b in (1, -1)
    }
    near = [(a + b * eigenvalue + off) % r for a in middle for b in middle for off in (-1, 0, 1)]
    # What an attack on this bound found, of bn254.
    return [*near, *(k for k in KNOWN if k < r)]


KNOWN = (
    10944121435919637611123202872628637544348155578648911831354450270056998802052,
    0x2A90E2FA346DE56029F8413EB8C8B726C64DDC276FEB9A61FDA55D02520B1789,
)


def endomorphism_of(curve: Curve) -> Endomorphism:
    assert curve.g1.endomorphism is not None
    return curve.g1.endomorphism


def test_curves_without_a_cofactor_have_one() -> None:
    """a = 0 and p = 1 mod 3: each has the endomorphism; it serves where every point has order r."""
    assert [curve.name for curve in HALVED] == [curve.name for curve in CURVES if curve.g1.cofactor == 1]


@EVERY
def test_it_multiplies_by_its_eigenvalue(curve: Curve) -> None:
    its, p = endomorphism_of(curve), curve.base.modulus
    for point in Multiples(curve, "g1", f"endomorphism {curve.name}", 5).points:
        assert point is not None
        assert times(its.eigenvalue, point, p) == ((its.beta * point[0][0] % p,), point[1])


@EVERY
def test_halves(curve: Curve) -> None:
    r, its = curve.order, endomorphism_of(curve).eigenvalue
    found = halving(r, its)
    assert all((a + b * its) % r == 0 for a, b in (found.first, found.second))
    assert found.first[0] * found.second[1] - found.first[1] * found.second[0] == r
    rng = random.Random(curve.name)
    largest = 0
    for k in (0, 1, r - 1, r // 2, its, r - its, *corners(found, r, its), *(rng.randrange(r) for _ in range(5000))):
        a, b = found.halves(k)
        assert (a + b * its - k) % r == 0
        largest = max(largest, abs(a), abs(b))
    assert found.bound // 2 <= largest <= found.bound
    assert found.bound.bit_length() <= r.bit_length() // 2 + 1
    assert all(quotient < 1 << 256 for quotient in found.quotients)


@EVERY
def test_windows_hold_both_signs(curve: Curve) -> None:
    bound = halving(curve.order, endomorphism_of(curve).eigenvalue).bound
    for width in range(2, 23):
        count = half_window_count(bound, width)
        offset, end = offset_of(count, width), 1 << width * count
        assert offset - bound >= 0 and offset + bound < end
        smaller, less = offset_of(count - 1, width), 1 << width * (count - 1)
        assert smaller < bound or smaller + bound >= less
    if curve.name == "bn254":
        assert half_window_count(bound, 16) == 8


def test_wrong_constants_are_refused() -> None:
    for beta, eigenvalue in ((3, 3), (2, 5), (1, 3), (2, 1)):
        toy = next(curve for curve in HALVED if curve.toy)
        wrong = dataclasses.replace(toy, g1=dataclasses.replace(toy.g1, endomorphism=Endomorphism(beta, eigenvalue)))
        with pytest.raises(ValueError, match="cube root"):
            check_curve(wrong)
    with_cofactor = next(curve for curve in CURVES if curve.g1.cofactor != 1)
    group = dataclasses.replace(with_cofactor.g1, endomorphism=Endomorphism(2, 3))
    with pytest.raises(ValueError, match="cofactor 1"):
        check_curve(dataclasses.replace(with_cofactor, g1=group))
