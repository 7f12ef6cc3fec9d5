"""What Client.quotient and `limbd call quotient` ask: param and domain."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
import pytest

from limbd import arguments
from limbd.harness.textio import InputError
from limbd.ops.params import fields
from limbd.ops.quotient import COEFFICIENTS
from limbd.ops.transform_op import OWN_DOMAIN
from limbd.worker.client import Client
from limbd.worker.transform_question import quotient_question

FIELD = fields.by_name("toy_97")
assert FIELD is not None
OMEGA, SHIFT = FIELD.omega(2), FIELD.omega(3)


def ask(n: int, **more: Any) -> tuple[int, tuple[int, ...]]:
    given: dict[str, Any] = {"field": "toy_97", "coefficients": False, "shift": None, "omega": None, "batch": 1} | more
    return quotient_question(n, **given)


def test_the_default_domain_stays_unsaid() -> None:
    assert ask(4) == (2, ())
    assert ask(12, batch=3, coefficients=True) == (2 | COEFFICIENTS, ())


def test_what_is_not_given_is_the_default() -> None:
    assert ask(4, shift=5) == (2 | OWN_DOMAIN, (OMEGA, 5))
    assert ask(4, omega=75) == (2 | OWN_DOMAIN, (75, SHIFT))
    assert ask(4, omega=75, shift=5, coefficients=True) == (2 | OWN_DOMAIN | COEFFICIENTS, (75, 5))


def test_at_the_two_adicity_a_shift_has_to_be_given() -> None:
    assert ask(32, shift=5)[0] == 5 | OWN_DOMAIN
    assert ask(32, omega=5) == (5, ())  # refused by the worker, which has no default shift either


@pytest.mark.parametrize("n", [3, 6])
def test_sizes_are_powers_of_two(n: int) -> None:
    with pytest.raises(ValueError, match="power of two"):
        ask(n)


@pytest.mark.parametrize("name", ["bn254_fp", "nothing"])
def test_a_field_without_transforms(name: str) -> None:
    with pytest.raises(ValueError, match="has transforms"):
        ask(4, field=name)


def test_a_prover_s_quotient_through_a_worker() -> None:
    a, b = [1, 2, 3, 4], [5, 6, 7, 8]
    c = [x * y for x, y in zip(a, b, strict=True)]
    with Client(backend="reference") as client:
        values = client.quotient(a, b, c)
        coefficients = client.quotient(a, b, c, coefficients=True)
        assert coefficients[3] == 0
        # H times Z, which is -2 on the coset, at shift omega^j.
        field = fields.by_name("bn254_fr")
        assert field is not None
        h = client.ntt(coefficients, coset=field.omega(3))
    assert values == [-2 * value % field.modulus for value in h]


def test_a_number_is_an_operand_of_the_others_length() -> None:
    with Client(backend="reference") as client:
        expected = client.quotient([2, 2], [3, 4], [4, 5])
        assert client.quotient(2, [3, 4], [4, 5]) == expected != [2, 3]
        assert client.quotient([3, 4], 2, [4, 5]) == expected
        assert client.quotient(2, [3, 4, 3, 4], [4, 5, 4, 5], batch=np.int64(2)) == expected + expected  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="power of two"):
            client.quotient(2, [1, 2, 3], [4, 5, 6])


def question(*words: str, n: int = 4) -> tuple[int, tuple[int, ...]]:
    parser = argparse.ArgumentParser()
    arguments.add_question(parser)
    return arguments.question_of(parser.parse_args(words), n)


def test_the_command_line() -> None:
    assert question("quotient", "--field", "bn254_fr") == (2, ())
    assert question("quotient", "--field", "bn254_fr", "--coefficients") == (2 | COEFFICIENTS, ())
    param, (_, shift) = question("quotient", "--field", "bn254_fr", "--coset", "generator")
    assert (param, shift) == (2 | OWN_DOMAIN, 5)


@pytest.mark.parametrize("option", [("--inverse",), ("--order", "nr")])
def test_options_of_ntt_alone_are_refused(option: tuple[str, ...]) -> None:
    with pytest.raises(InputError, match="quotient takes no"):
        question("quotient", "--field", "bn254_fr", *option)
    with pytest.raises(InputError, match="ntt takes no --coefficients"):
        question("ntt", "--field", "bn254_fr", "--coefficients")
    with pytest.raises(InputError, match="mod-mul takes no"):
        question("mod-mul", "--field", "bn254_fr", "--batch", "2")
