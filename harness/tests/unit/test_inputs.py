"""Seeded inputs: ranges, the promised share of edges, and rounds that can be repeated by themselves."""

from __future__ import annotations

import random

import pytest

from limbd.harness.inputs import (
    HARD_LIMBS,
    PLAIN_BITS,
    SPECIAL_MODULI,
    STRUCTURED,
    UNIFORM,
    edges,
    hard_integer,
    known_residues,
    modulus_of_bits,
    ones,
    operands,
    powers_of_two,
    residues_at,
    tight_modulus,
)
from limbd.ops.params.fields import FIELDS
from limbd.ops.params.layout import limbs_of


@pytest.mark.parametrize("modulus", SPECIAL_MODULI, ids=hex)
def test_edges_are_in_range_and_hold_what_matters(modulus: int) -> None:
    found = edges(modulus)
    assert all(0 <= value < 2**PLAIN_BITS for value in found)
    r = 2**PLAIN_BITS % modulus
    wanted = {0, 1, modulus - 1, modulus, modulus + 1, r, 2**PLAIN_BITS - 1}
    assert {value for value in wanted if value < 2**PLAIN_BITS} <= set(found)


def test_structured_inputs_are_what_they_are_called() -> None:
    for m in (1, 2, 15, 2**255 - 19, 2**384 - 317):
        assert ones(m) == [1 % m, (m - 1) % m]
        powers, half = powers_of_two(m), m.bit_length()
        assert len(powers) == 2 * half and powers[:half] == [pow(2, k, m) for k in range(half)]
        assert all((a + b) % m == 0 and 0 <= b < m for a, b in zip(powers, powers[half:], strict=False))
    assert UNIFORM not in STRUCTURED


def test_special_moduli_are_valid_and_distinct() -> None:
    assert all(0 < modulus < 2**PLAIN_BITS for modulus in SPECIAL_MODULI)
    assert len(set(SPECIAL_MODULI)) == len(SPECIAL_MODULI)
    assert {1, 2, 2**255, 2**256 - 1} <= set(SPECIAL_MODULI)
    sparse = [modulus for modulus in SPECIAL_MODULI if limbs_of(modulus, 8)[1:7] == (0,) * 6 and modulus >> 255]
    assert sparse, "a modulus with zero limbs in its middle"


@pytest.mark.parametrize("bits", [256, 384])
def test_half_of_all_operands_are_hard(bits: int) -> None:
    modulus = FIELDS[0].modulus
    drawn = operands(random.Random("share"), modulus, 4000, bits)
    assert all(0 <= value < 2**bits for value in drawn)
    corners = set(edges(modulus, bits))
    hard = sum(value in corners or set(limbs_of(value, bits // 32)) <= set(HARD_LIMBS) for value in drawn)
    assert 0.45 < hard / len(drawn) < 0.55
    assert 0.3 < sum(value < modulus for value in drawn) / len(drawn) < 0.9


def test_hard_integers_draw_every_hard_limb_in_every_place() -> None:
    rng = random.Random("hard")
    seen = [set(column) for column in zip(*(limbs_of(hard_integer(rng), 8) for _ in range(300)), strict=True)]
    assert seen == [set(HARD_LIMBS)] * 8


@pytest.mark.parametrize("bits", [1, 2, 32, 33, 255, 256])
def test_moduli_have_exactly_their_bits(bits: int) -> None:
    rng = random.Random("bits")
    assert {modulus_of_bits(rng, bits).bit_length() for _ in range(50)} == {bits}


def test_a_seeds_stream_covers_the_known_ones_then_every_bit_length() -> None:
    known = known_residues()
    first = [residues_at("s", index) for index in range(len(known))]
    assert len(set(first)) == len(known)
    assert set(first) == set(known)
    lap = [residues_at("s", len(known) + index) for index in range(PLAIN_BITS)]
    assert sorted(each.modulus.bit_length() for each in lap) == list(range(1, PLAIN_BITS + 1))
    assert residues_at("s", 500) == residues_at("s", 500)
    assert residues_at("s", 500) != residues_at("t", 500)


def test_every_registered_field_is_among_the_known_ones() -> None:
    known = known_residues()
    assert {each.field for each in known if each.field} == set(FIELDS)
    plain = {each.modulus for each in known if each.field is None}
    assert {field.modulus for field in FIELDS if field.bits <= PLAIN_BITS} <= plain
    assert all(each.modulus < 2**each.bits for each in known)


@pytest.mark.parametrize("step", [4, 5])
@pytest.mark.parametrize(("limbs", "bits"), [(3, 54), (5, 86), (8, 134), (8, 200)])
def test_tight_moduli_have_a_reciprocal_that_loses_almost_a_unit(limbs: int, bits: int, step: int) -> None:
    m, base = tight_modulus(limbs, bits, step), 2 ** (32 * limbs)
    assert m.bit_length() == 32 * limbs
    assert (m - base * base % m) << 32 < m
    # With every limb below the quotient's left out, the estimate for (m-1)^2 is two short.
    v, t, word = (base * base - 1) // m, (m - 1) ** 2, 2 ** (32 * (limbs - 1))
    x, y = divmod(t, base)
    assert t // m - (x + (x * (v - base) + y // word * word) // base) == 2
