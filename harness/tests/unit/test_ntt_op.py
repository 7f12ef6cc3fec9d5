"""ntt's frames: lengths, param, fields and domains as the wire says, each refusal by its code, before any element is read."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from limbd.ops.base import Call, Request
from limbd.ops.domain import MAX_LOG_N
from limbd.ops.ntt import NTT, param_of
from limbd.ops.params.base import Field
from limbd.ops.params.fields import FIELDS
from limbd.ops.params.layout import pack, to_ints
from limbd.ops.status import RequestError, Status
from limbd.ops.transform_shape import Order

NAMED = {field.name: field for field in FIELDS}
BN254, BLS, GOLDILOCKS = NAMED["bn254_fr"], NAMED["bls12_381_fr"], NAMED["goldilocks"]
M = BN254.modulus
OWN = param_of(0, own=True)


def decoded(call: Call, numbers: Sequence[int]) -> Request:
    return NTT.decode(call, memoryview(pack(numbers)))


def refusal(call: Call, numbers: Sequence[int]) -> Status:
    with pytest.raises(RequestError) as refused:
        decoded(call, numbers)
    return refused.value.status


# --- what is right ---


def test_param_is_the_wire_s() -> None:
    assert param_of(7) == 7
    assert param_of(7, inverse=True, coset=True, order=Order.RR, own=True) == 7 | 1 << 8 | 1 << 9 | 3 << 10 | 1 << 12
    assert [int(order) for order in (Order.NN, Order.NR, Order.RN, Order.RR)] == [0, 1, 2, 3]
    assert (NTT.id, NTT.name, NTT.operands) == (0x20, "ntt", ("x",))


def test_lengths() -> None:
    for field, head in ((None, 32), (BN254, 0)):
        for param, domain in ((3, 0), (3 | OWN, 64)):
            for n in (0, 8, 2**40):
                call = Call(n, param, field)
                assert NTT.payload_bytes(call) == head + domain + 32 * n
                assert NTT.result_bytes(call) == 32 * n
                assert NTT.result_count(call) == n


def test_the_field_is_named_by_its_modulus_or_by_the_header() -> None:
    for field in (BN254, BLS, GOLDILOCKS):
        plain = decoded(Call(2, 1), [field.modulus, 5, 6])
        named = decoded(Call(2, 1, field), [5, 6])
        for request in (plain, named):
            assert request.field is field and request.modulus == field.modulus
            assert to_ints(request.arrays["x"]) == [5, 6]
            assert request.constants == {"omega": field.modulus - 1, "shift": field.generator}


def test_the_registered_domains_are_arkworks() -> None:
    """g = 5 and 7, omega = g^((m - 1) / 2^k): constants of ark-bn254 and ark-bls12-381."""
    assert (BN254.generator, BLS.generator, GOLDILOCKS.generator) == (5, 7, 7)
    assert (BN254.two_adicity, BLS.two_adicity, GOLDILOCKS.two_adicity) == (28, 32, 32)
    assert BN254.omega(28) == 0x2A3C09F0A58A7E8500E0A7EB8EF62ABC402D111E41112ED49BD61B6E725B19F0
    assert BLS.omega(32) == 0x16A2A19EDFE81F20D09B681922C813B4B63683508C2280B93829971F439F0D2B


def test_an_own_domain_stands_before_the_elements() -> None:
    omega = pow(BN254.omega(4), 3, M)
    request = decoded(Call(16, 4 | OWN), [M, omega, 9, *range(16)])
    assert request.constants == {"omega": omega, "shift": 9}
    assert to_ints(request.arrays["x"]) == list(range(16))
    assert decoded(Call(1, OWN, BN254), [1, M - 1, 3]).constants == {"omega": 1, "shift": M - 1}


# --- what is not ---


@pytest.mark.parametrize("bit", [*range(13, 32)])
def test_unknown_bits_of_param(bit: int) -> None:
    for field in (None, BN254):
        assert refusal(Call(0, 1 << bit, field), [] if field else [M]) is Status.BAD_PARAM


@pytest.mark.parametrize("field", [f for f in FIELDS if f.generator is None], ids=lambda field: field.name)
def test_a_field_without_transforms(field: Field) -> None:
    assert refusal(Call(0, 0, field), []) is Status.BAD_PARAM
    if field.bits <= 256:
        assert refusal(Call(0, 0), [field.modulus]) is Status.BAD_MODULUS


@pytest.mark.parametrize("modulus", [0, 1, 2, 101, M + 1, M - 1, 2**256 - 1])
def test_a_modulus_that_is_not_registered(modulus: int) -> None:
    assert refusal(Call(1, 0), [modulus, 0]) is Status.BAD_MODULUS
    assert refusal(Call(0, 0), [modulus]) is Status.BAD_MODULUS


def test_toys_are_served_where_they_are_asked_to_be() -> None:
    toy = NAMED["toy_97"]
    assert decoded(Call(2, 1), [97, 3, 4]).field is toy
    assert refusal(Call(2, 1, toys=False), [97, 3, 4]) is Status.BAD_MODULUS
    assert refusal(Call(2, 1, toy, toys=False), [3, 4]) is Status.BAD_PARAM
    assert refusal(Call(1, 40, toys=False), [97, 0]) is Status.BAD_LENGTH  # n comes before the modulus


def test_wrong_lengths() -> None:
    for n, param, numbers in (
        (3, 2, [M, 1, 2, 3]),  # no whole transforms
        (1, 1, [M, 1]),
        (2, 1, [M, 1]),  # too short, too long, a domain that is missing, or too many
        (2, 1, [M, 1, 2, 3]),
        (2, 1 | OWN, [M, 1, 2]),
        (2, 1, [M, M - 1, 5, 1, 2]),
    ):
        assert refusal(Call(n, param), numbers) is Status.BAD_LENGTH


@pytest.mark.parametrize("field", [BN254, BLS, GOLDILOCKS], ids=lambda field: field.name)
def test_above_the_two_adicity(field: Field) -> None:
    """n = 0 has no length that could be wrong first."""
    for k in (min(field.two_adicity, MAX_LOG_N) + 1, 64, 255):
        assert refusal(Call(0, k), [field.modulus]) is Status.BAD_DOMAIN
        assert refusal(Call(0, k | OWN), [field.modulus, 1, 1]) is Status.BAD_DOMAIN
    assert decoded(Call(0, min(field.two_adicity, MAX_LOG_N)), [field.modulus]).n == 0


def test_the_refusal_of_a_size_says_whose_limit_it_is() -> None:
    for param, head in ((31, [BLS.modulus]), (31 | OWN, [BLS.modulus, BLS.omega(31), 1])):
        with pytest.raises(RequestError, match=r"2\^31 elements are not served: 2\^30 is the most"):
            decoded(Call(0, param), head)
    with pytest.raises(RequestError, match=r"no root of unity of order 2\^33: 2\^32 is the most"):
        decoded(Call(0, 33), [BLS.modulus])


@pytest.mark.parametrize(("omega", "shift", "named"), [(BN254.modulus, 1, "omega"), (1, 0, "shift")])
def test_the_refusal_of_a_domain_says_which_number_is_wrong(omega: int, shift: int, named: str) -> None:
    with pytest.raises(RequestError, match=f"{named} has to be"):
        decoded(Call(0, OWN), [BN254.modulus, omega, shift])


def test_an_omega_of_another_order() -> None:
    for k in (0, 1, 2, 5):
        wrong = {BN254.omega(k + 1), BN254.omega(k - 1) if k else M - 1, 0, 7, M - 2}
        for omega in wrong:
            for n in (0, 1 << k):
                assert refusal(Call(n, k | OWN), [M, omega, 5, *[0] * n]) is Status.BAD_DOMAIN, (k, omega)
        for odd in (1, 3, 5):
            assert decoded(Call(0, k | OWN), [M, pow(BN254.omega(k), odd, M), 5]).n == 0


def test_omega_and_shift_out_of_range() -> None:
    """Range first, also where the shift is not used and where there are no elements."""
    for n in (0, 2):
        for coset in (False, True):
            param = param_of(1, coset=coset, own=True)
            for omega, shift in ((M, 5), (2**256 - 1, 5), (M - 1, 0), (M - 1, M), (M - 1, 2**256 - 1), (7, 0)):
                assert refusal(Call(n, param), [M, omega, shift, *[0] * n]) is Status.BAD_ELEMENT


def test_no_elements_are_still_checked() -> None:
    assert decoded(Call(0, 5), [M]).n == 0
    assert refusal(Call(0, 5), [101]) is Status.BAD_MODULUS
    assert refusal(Call(0, 5), []) is Status.BAD_LENGTH
