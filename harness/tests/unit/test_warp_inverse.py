"""The runnable explanation of the inversion on one warp, against gmpy2; its own assertions check every bound on the way."""

from __future__ import annotations

import random
from functools import cache

import gmpy2
import pytest

from limbd.harness.inputs import SPECIAL_MODULI, hard_integer, ones, operands, powers_of_two
from limbd.ops.reference import warp_inverse as model
from limbd.ops.reference.warp_inverse import NORMALISE_EVERY, SIZE, TABLES, Transition

EVERY_TABLE = pytest.mark.parametrize("steps", TABLES)

ED25519 = 2**255 - 19
SECP256K1 = 2**256 - 2**32 - 977


@cache
def table(steps: int) -> list[Transition]:
    return model.make_table(steps)


def expected(x: int, m: int) -> int | None:
    if m == 1:
        return 0
    return int(gmpy2.invert(x, m)) if gmpy2.gcd(x, m) == 1 else None


@EVERY_TABLE
def test_inverses_of_reduced_and_unreduced_operands(steps: int) -> None:
    rng = random.Random(steps)
    for m in (m for m in (*SPECIAL_MODULI, SECP256K1, ED25519, 3**161) if m % 2):
        for x in [*operands(rng, m, 12), hard_integer(rng), 0, m, 2**256 - 1]:
            assert model.warp_inverse(x, m, table(steps))[0] == expected(x, m), (x, m)


@EVERY_TABLE
def test_every_inverse_modulo_small_numbers(steps: int) -> None:
    for m in range(1, 24, 2):
        for x in range(2 * m + 2):
            assert model.warp_inverse(x, m, table(steps))[0] == expected(x, m), (x, m)


@EVERY_TABLE
def test_how_many_batches(steps: int) -> None:
    """What the explanation says of usual and of structured operands; some of these are carried on their way."""
    rng = random.Random(steps)
    usual = [model.warp_inverse(rng.randrange(ED25519), ED25519, table(steps))[1] for _ in range(60)]
    assert max(usual) <= 26
    xs = [*ones(ED25519), *powers_of_two(ED25519)[::5]]
    structured = [model.warp_inverse(x, ED25519, table(steps)) for x in xs]
    assert [inverse for inverse, _ in structured] == [expected(x, ED25519) for x in xs]
    most = max(batches for _, batches in structured)
    assert NORMALISE_EVERY < most <= {12: 76, 8: 86}[steps]
    if steps == 12:
        assert [batches for _, batches in structured[:2]] == [62, 70]


def end(x: int, m: int, steps: int, *, exact: bool) -> tuple[int, int]:
    """Batches until f = +-1 (not exact: until f looks so in its lowest limb), and the f of the end."""
    f, g, count = m, x, 0
    while g and (abs(f) != 1 if exact else f % SIZE not in (1, SIZE - 1)):
        t = model.jump(table(steps), f, g)
        f, g = (t.u * f + t.v * g) // SIZE, (t.q * f + t.r * g) // SIZE
        count += 1
    return count, f


@EVERY_TABLE
@pytest.mark.parametrize("m", [SECP256K1, ED25519], ids=hex)
def test_hard_operands_are_hard(steps: int, m: int) -> None:
    """What the kernel's tests call so: the longest takes twice as long as any usual one, and a third of them look like an
    end before it is one; usual ones never do."""
    hard, rng = [*ones(m), *powers_of_two(m)], random.Random(m)
    usual = [rng.randrange(m) for _ in range(300)]
    longest, most = (max(end(x, m, steps, exact=True)[0] for x in xs) for xs in (hard, usual))
    assert longest >= 2 * most
    false_ends = [sum(abs(end(x, m, steps, exact=False)[1]) != 1 for x in xs) for xs in (hard, usual)]
    assert false_ends[0] > len(hard) // 3 and false_ends[1] == 0
    assert abs(end(2**192, m, steps, exact=False)[1]) != 1


@EVERY_TABLE
def test_every_entry_but_one_makes_the_numbers_smaller(steps: int) -> None:
    assert model.contraction(table(steps), 1.55) <= 0.6315


@EVERY_TABLE
def test_the_table_as_bytes(steps: int) -> None:
    data = model.table_bytes(steps)
    words = [int.from_bytes(data[at : at + 2], "little", signed=True) for at in range(0, len(data), 2)]
    assert words == [coefficient for entry in table(steps) for coefficient in entry]
    assert len(data) == model.ENTRY_BYTES << steps
