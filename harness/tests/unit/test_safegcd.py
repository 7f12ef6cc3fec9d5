"""The runnable explanation of safegcd, against its own definition and against gmpy2."""

from __future__ import annotations

import math
import random
import re
from itertools import product

import gmpy2
import pytest

from limbd.harness.inputs import SPECIAL_MODULI, hard_integer, operands
from limbd.kernels.source import ROOT
from limbd.ops.mod_inv import HEADROOM_BITS
from limbd.ops.reference import mod_inv, safegcd
from limbd.ops.reference.safegcd import BATCH, INITIAL_Y, Transition

SECP256K1 = 2**256 - 2**32 - 977


def expected(x: int, m: int) -> int | None:
    if math.gcd(x, m) != 1:
        return None
    return int(mod_inv.inverse(gmpy2.mpz(x), gmpy2.mpz(m)))


def low_words() -> list[tuple[int, int, int]]:
    """(y, f, g): random, and the ends of every range: no odd g at all, one odd bit, all ones, long runs of one sign."""
    rng = random.Random("low words")
    full = 2**BATCH - 1
    edges = [0, 1, 2, 3, 2**14, 2**15 - 1, 2**15, 2**15 + 1, 2**29, 2**29 - 1, full, full - 1]
    ys = [-1, 1, -3, 3, -29, 29, -61, 61, -1001, 1001]
    cases = [(y, f | 1, g) for y, f, g in product(ys, edges, edges)]
    cases += [(2 * rng.randrange(-40, 40) + 1, rng.getrandbits(30) | 1, rng.getrandbits(30)) for _ in range(1500)]
    return cases


def test_divsteps_end_in_the_gcd() -> None:
    for f in range(1, 100, 2):
        for g in range(120):
            assert safegcd.gcd(f, g) == math.gcd(f, g)


def test_a_transition_is_so_many_divsteps() -> None:
    rng = random.Random("transition")
    for _ in range(300):
        count = rng.randrange(1, 40)
        y, f, g = 2 * rng.randrange(-20, 20) + 1, rng.getrandbits(100) | 1, rng.getrandbits(100) - 2**99
        after, t = safegcd.transition(y, f, g, count)
        expected_y, expected_f, expected_g = y, f, g
        for _ in range(count):
            expected_y, expected_f, expected_g = safegcd.divstep(expected_y, expected_f, expected_g)
        assert after == expected_y
        assert (t.u * f + t.v * g, t.q * f + t.r * g) == (expected_f << count, expected_g << count)


def test_transitions_keep_their_bounds() -> None:
    for y, f, g in low_words():
        _, t = safegcd.transition(y, f, g)
        assert abs(t.u) + abs(t.v) <= 2**BATCH
        assert abs(t.q) + abs(t.r) <= 2**BATCH
        assert abs(t.u * t.r - t.v * t.q) == 2**BATCH


def test_packed_halves_are_the_same_transition() -> None:
    for y, f, g in low_words():
        assert safegcd.transition_packed(y, f, g) == safegcd.transition(y, f, g)


@pytest.mark.parametrize("width", [1, 2, 8, 30])
def test_rounds_are_the_same_transition(width: int) -> None:
    for y, f, g in low_words():
        after, t, rounds = safegcd.transition_rounds(y, f, g, width)
        assert (after, t) == safegcd.transition(y, f, g)
        assert 0 <= rounds <= BATCH
        assert rounds > 0 or g == 0


def test_update_de_stays_a_residue_and_grows_by_half_a_modulus() -> None:
    rng = random.Random("update_de")
    for _ in range(500):
        m = rng.getrandbits(rng.randrange(1, 257)) | 1
        bound = rng.randrange(1, 20)
        d, e = (rng.choice((-1, 1)) * rng.randrange(bound * m) for _ in range(2))
        _, t = safegcd.transition(INITIAL_Y, rng.getrandbits(30) | 1, rng.getrandbits(30))
        new = safegcd.update_de(d, e, t, m)
        assert [a * 2**BATCH % m for a in new] == [(t.u * d + t.v * e) % m, (t.q * d + t.r * e) % m]
        assert all(2 * abs(a) <= (2 * bound + 1) * m for a in new)
    worst = Transition(2**BATCH, 0, 0, 1)
    assert abs(safegcd.update_de(5 * 7, 0, worst, 7)[0]) <= 5 * 7 + 3


def test_reduce() -> None:
    for m in (1, 2, 3, 5, 7, 8, 255):
        for d in range(-32 * m + 1, 32 * m):
            assert safegcd.reduce(d, m) == d % m


@pytest.mark.parametrize("m", range(1, 65))
def test_every_inverse_modulo_small_numbers(m: int) -> None:
    for x in range(3 * m + 2):
        if m % 2:
            assert safegcd.inverse_var(x, m) == expected(x, m)
            assert safegcd.inverse(x, m) == expected(x, m)
        else:
            assert safegcd.inverse_even(x, m) == expected(x, m)


@pytest.mark.parametrize("m", [*SPECIAL_MODULI, SECP256K1], ids=hex)
def test_inverses_of_hard_operands(m: int) -> None:
    rng = random.Random(m)
    for x in [*operands(rng, m, 40), hard_integer(rng), 2**192, 2**256 - 1]:
        if m % 2:
            assert safegcd.inverse_var(x, m) == expected(x, m)
            assert safegcd.inverse(x, m) == expected(x, m)
        else:
            assert safegcd.inverse_even(x, m) == expected(x, m)


def test_inverses_of_384_bits() -> None:
    rng = random.Random(384)
    for _ in range(30):
        m, x = rng.getrandbits(384) | 1, rng.getrandbits(384)
        assert safegcd.inverse(x, m, bits=384) == expected(x, m)
        assert safegcd.inverse_even(x, m - 1, bits=384) == expected(x, m - 1)


@pytest.mark.parametrize("unreduced", [False, True])
@pytest.mark.parametrize("bits", [1, 2, 3, 5, 7])
def test_the_bound_on_divsteps_holds_for_every_input(bits: int, unreduced: bool) -> None:
    bound = safegcd.divsteps_bound(bits, unreduced=unreduced)
    top = 2**bits
    most = 0
    for f in range(1, top + 1, 2):
        for g in range((top if unreduced else f) + 1):
            y, f1, g1, steps = INITIAL_Y, f, g, 0
            while g1:
                y, f1, g1 = safegcd.divstep(y, f1, g1)
                steps += 1
            most = max(most, steps)
    assert most <= bound <= most + 6


def test_the_bound_on_divsteps_is_about_2_3_a_bit() -> None:
    """591 for 256 bits and 886 for 384, which take minutes, lie on the line of those that do not."""
    for bits in (8, 16, 32):
        assert abs(safegcd.divsteps_bound(bits, unreduced=True) - 2.31 * bits) < 2
    for bits, bound in safegcd.DIVSTEPS.items():
        assert abs(bound - 2.31 * bits) < 2


def test_the_kernels_have_the_same_constants() -> None:
    text = (ROOT / "field/inverse.cuh").read_text()
    found = {
        int(bits): int(bound) for bits, bound in re.findall(r"bits = (\d+), value = \((\d+) \+ DIVSTEPS - 1\)", text)
    }
    assert found == safegcd.DIVSTEPS
    # d and e end below 1 + batches / 2 moduli, which the headroom has to hold beside the sign.
    assert all(1 + -(-bound // BATCH) / 2 < 2 ** (HEADROOM_BITS - 1) for bound in found.values())
