"""quotient on every backend: against six transforms and A B - C, by its polynomial identity, and what it refuses."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from limbd.ops.base import Call, Op, Request
from limbd.ops.ntt import COSET, INVERSE, NTT
from limbd.ops.params.base import Field
from limbd.ops.params.fields import by_name
from limbd.ops.params.layout import pack, unpack
from limbd.ops.quotient import COEFFICIENTS, QUOTIENT
from limbd.ops.status import RequestError, Status
from limbd.ops.transform_op import OWN_DOMAIN
from limbd.ops.tuning import TransformRow
from limbd.worker.device.base import Backend, Outcome
from limbd.worker.device.reference import ReferenceBackend
from limbd.worker.device.self_test import SelfTest

NAMES = ("bn254_fr", "bls12_381_fr", "goldilocks", "toy_97")
TOY_MODULUS = 97


def field_of(name: str) -> Field:
    field = by_name(name)
    assert field is not None
    return field


def every_field(*ks: int, default: bool = True) -> pytest.MarkDecorator:
    """Parameters field and k, as far as the field has such roots. default: and a shift of its own."""
    fields = [field_of(name) for name in NAMES]
    cases = [(field, k) for field in fields for k in ks if k <= field.two_adicity - default]
    return pytest.mark.parametrize(("field", "k"), cases, ids=[f"{field.name}-{k}" for field, k in cases])


EVERY_FIELD = pytest.mark.parametrize("field", [field_of(name) for name in NAMES], ids=NAMES)
EITHER_RESULT = pytest.mark.parametrize("bit", [0, COEFFICIENTS], ids=["values", "coefficients"])


def ask(
    backend: Backend, op: Op, field: Field, param: int, numbers: Sequence[int], n: int, *, memory: int | None = None
) -> tuple[list[int], Outcome]:
    """The answer to a frame whose payload is these numbers. memory: what the plan is told."""
    payload = np.frombuffer(pack(numbers), np.uint8).copy() if numbers else np.empty(0, np.uint8)
    request = op.decode(Call(n, param, field), payload.data)
    traits = backend.traits() if memory is None else replace(backend.traits(), memory=memory)
    result = bytearray(b"\xa5") * op.result_bytes(Call(n, param, field))
    outcome = backend.run(request, op.plan(request, traits), memoryview(result))
    assert payload.tobytes() == pack(numbers)  # the caller's memory is not a scratch pad
    return [int(value) for value in unpack(result)], outcome


def elements(rng: random.Random, m: int, n: int) -> list[int]:
    """Half of them from the edges."""
    return [rng.choice((0, 1, m - 1, m // 2, rng.randrange(m), rng.randrange(m), rng.randrange(m))) for _ in range(n)]


def by_transforms(
    backend: Backend, field: Field, k: int, domain: tuple[int, int], abc: Sequence[Sequence[int]]
) -> list[int]:
    """A B - C by six transforms of ntt, and Python's integers."""
    m, n, own = field.modulus, len(abc[0]), k | OWN_DOMAIN
    values = []
    for x in abc:
        coefficients, _ = ask(backend, NTT, field, own | INVERSE, [*domain, *x], n)
        values.append(ask(backend, NTT, field, own | COSET, [*domain, *coefficients], n)[0])
    return [(x * y - z) % m for x, y, z in zip(*values, strict=True)]


def at(coefficients: Sequence[int], t: int, m: int) -> int:
    """The polynomial's value."""
    value = 0
    for coefficient in reversed(coefficients):
        value = (value * t + coefficient) % m
    return value


# --- against transforms ---------------------------------------------------------------------------------------------


@every_field(0, 1, 2, 4, 5, 9, 10, 11, 13)
def test_it_equals_six_transforms(kernels: Backend, field: Field, k: int) -> None:
    """Several transforms in a frame where they are short, the default domain."""
    transforms = 5 if k < 5 else 3 if k < 10 else 1
    n, rng = transforms << k, random.Random(f"six {field.name} {k}")
    abc = [elements(rng, field.modulus, n) for _ in range(3)]
    answer, _ = ask(kernels, QUOTIENT, field, k, [v for x in abc for v in x], n)
    assert answer == by_transforms(kernels, field, k, (field.omega(k), field.omega(k + 1)), abc)


@every_field(0, 1, 3, 5, 11, default=False)
def test_the_callers_domain(kernels: Backend, field: Field, k: int) -> None:
    """Another root of the same order, and any shift, also at the two-adicity (5, of 97)."""
    m, n, rng = field.modulus, 2 << k, random.Random(f"own {field.name} {k}")
    omega = pow(field.omega(k), 2 * rng.randrange(1 << k) + 1, m)
    for shift in (rng.randrange(2, m), 1, m - 1, omega):
        abc = [elements(rng, m, n) for _ in range(3)]
        numbers = [omega, shift, *(v for x in abc for v in x)]
        answer, _ = ask(kernels, QUOTIENT, field, k | OWN_DOMAIN, numbers, n)
        assert answer == by_transforms(kernels, field, k, (omega, shift), abc)


@every_field(0, 1, 4, 7)
@EITHER_RESULT
def test_every_backend_is_the_reference(backend: Backend, field: Field, k: int, bit: int) -> None:
    n, rng = 3 << k, random.Random(f"reference {field.name} {k}")
    numbers = elements(rng, field.modulus, 3 * n)
    expected, _ = ask(ReferenceBackend(), QUOTIENT, field, k | bit, numbers, n)
    assert ask(backend, QUOTIENT, field, k | bit, numbers, n)[0] == expected


@EVERY_FIELD
@EITHER_RESULT
def test_all_elements_the_largest(kernels: Backend, field: Field, bit: int) -> None:
    k = min(11, field.two_adicity - 1)
    n, m = 1 << k, field.modulus
    for abc in ([[m - 1] * n] * 3, [[m - 1] * n, [m - 1] * n, [0] * n], [[0] * n, [m - 1] * n, [m - 1] * n]):
        numbers = [v for x in abc for v in x]
        expected, _ = ask(ReferenceBackend(), QUOTIENT, field, k | bit, numbers, n)
        assert ask(kernels, QUOTIENT, field, k | bit, numbers, n)[0] == expected


@pytest.mark.parametrize("k", [1, 5])
@EITHER_RESULT
def test_version_1_names_the_field_by_its_modulus(backend: Backend, k: int, bit: int) -> None:
    field, n = field_of("bn254_fr"), 2 << k
    numbers = elements(random.Random(f"named {k}"), field.modulus, 3 * n)
    request = QUOTIENT.decode(Call(n, k | bit), memoryview(bytearray(pack([field.modulus, *numbers]))))
    result = bytearray(32 * n)
    backend.run(request, QUOTIENT.plan(request, backend.traits()), memoryview(result))
    assert unpack(result) == ask(backend, QUOTIENT, field, k | bit, numbers, n)[0]


# --- by definition --------------------------------------------------------------------------------------------------


@every_field(0, 1, 2, 4, 5, 9, 11)
@pytest.mark.parametrize("own", [False, True], ids=["default", "own"])
def test_the_identity(kernels: Backend, field: Field, k: int, *, own: bool) -> None:
    """For a b = c on the domain, A(t) B(t) - C(t) = h(t) Z(t) at random t, where h is what bit 13 gives, and also the
    values interpolated after a division by Z."""
    m, n, rng = field.modulus, 1 << k, random.Random(f"identity {field.name} {k} {own}")
    omega, shift = field.omega(k), field.omega(k + 1)
    while own and pow(shift, n, m) in (1, m - 1):
        shift = rng.randrange(1, m)
    domain = [omega, shift]
    a, b = elements(rng, m, n), elements(rng, m, n)
    c = [x * y % m for x, y in zip(a, b, strict=True)]
    param, numbers = k | own * OWN_DOMAIN, [*(domain if own else []), *a, *b, *c]
    h, _ = ask(kernels, QUOTIENT, field, param | COEFFICIENTS, numbers, n)

    polynomials = [ask(kernels, NTT, field, k | INVERSE, x, n)[0] for x in (a, b, c)]
    for _ in range(5):
        t = rng.randrange(m)
        value_a, value_b, value_c = (at(x, t, m) for x in polynomials)
        assert (value_a * value_b - value_c - at(h, t, m) * (pow(t, n, m) - 1)) % m == 0

    values, _ = ask(kernels, QUOTIENT, field, param, numbers, n)
    by_z = pow(pow(shift, n, m) - 1, -1, m)
    divided = [value * by_z % m for value in values]
    interpolated, _ = ask(kernels, NTT, field, k | INVERSE | COSET | OWN_DOMAIN, [*domain, *divided], n)
    assert interpolated == h
    if n > 1:
        assert h[-1] == 0  # its degree is at most n - 2


def test_every_triple_of_the_toy_for_one_and_two_elements(kernels: Backend) -> None:
    """k = 0: every a, b with three c. k = 1: values of every pair of lines in a frame of many transforms."""
    field, m = field_of("toy_97"), TOY_MODULUS
    pairs = [(x, y, z) for x in range(m) for y in range(m) for z in (0, 1, 96)]
    a, b, c = (list(column) for column in zip(*pairs, strict=True))
    answer, _ = ask(kernels, QUOTIENT, field, 0, [*a, *b, *c], len(pairs))
    assert answer == [(x * y - z) % m for x, y, z in pairs]
    n = 2 * m * m
    a = [v for x in range(m) for y in range(m) for v in (x, y)]
    b, c = [3] * n, [5, 9] * (n // 2)
    answer, _ = ask(kernels, QUOTIENT, field, 1, [*a, *b, *c], n)
    shift, half = field.omega(2), pow(2, -1, m)
    for i in range(0, n, 2):
        even, odd = (a[i] + a[i + 1]) * half, (a[i] - a[i + 1]) * half
        expected = [(3 * (even + odd * t) - (7 - 2 * t)) % m for t in (shift, m - shift)]
        assert answer[i : i + 2] == expected


# --- plans and errors -----------------------------------------------------------------------------------------------


@EITHER_RESULT
@pytest.mark.parametrize("k", [3, 11])
def test_a_frame_that_is_cut(kernels: Backend, k: int, bit: int) -> None:
    """Room for two transforms of five: the same answer, and the index of a bad element in any piece of any array."""
    field, n = field_of("goldilocks"), 5 << k
    rng = random.Random(f"cut {k}")
    numbers = elements(rng, field.modulus, 3 * n)
    request = QUOTIENT.decode(Call(n, k | bit, field), memoryview(bytearray(pack(numbers))))
    plan = QUOTIENT.plan(request, kernels.traits())
    memory = sum(table.building_bytes() for table in plan.tables) + (plan.device_bytes() - 8) // 5 * 2
    assert len(QUOTIENT.plan(request, replace(kernels.traits(), memory=memory)).pieces) == 3
    whole, _ = ask(kernels, QUOTIENT, field, k | bit, numbers, n)
    assert ask(kernels, QUOTIENT, field, k | bit, numbers, n, memory=memory)[0] == whole
    for index in (0, n - 1, n, 2 * n - 1, 2 * n + (2 << k), 3 * n - 1):
        bad = [*numbers]
        bad[index] = field.modulus
        with pytest.raises(RequestError) as caught:
            ask(kernels, QUOTIENT, field, k | bit, bad, n, memory=memory)
        assert (caught.value.status, caught.value.index) == (Status.BAD_ELEMENT, index)


@EVERY_FIELD
@pytest.mark.parametrize("array", range(3))
def test_a_bad_element_is_named_through_all_three_arrays(backend: Backend, field: Field, array: int) -> None:
    n, m, rng = 3 << 2, field.modulus, random.Random(f"bad {field.name} {array}")
    good = elements(rng, m, 3 * n)
    for place in (0, 5, n - 1):
        for value in (m, m + 1, 1 << 255, 2**256 - 1, m | 1 << 128 if m < 1 << 128 else m):
            bad = [*good]
            bad[array * n + place] = value
            if array < 2:
                bad[3 * n - 1] = m  # a later one
            with pytest.raises(RequestError) as caught:
                ask(backend, QUOTIENT, field, 2, bad, n)
            assert (caught.value.status, caught.value.index) == (Status.BAD_ELEMENT, array * n + place)
    ask(backend, QUOTIENT, field, 2, good, n)  # the next frame is not blamed


@EITHER_RESULT
def test_no_elements(backend: Backend, bit: int) -> None:
    for k in (0, 5):
        answer, outcome = ask(backend, QUOTIENT, field_of("bn254_fr"), k | bit, [], 0)
        assert answer == [] and outcome.launches == 0


@every_field(0, 2, 4, 5, 11)
@EITHER_RESULT
def test_the_self_test_passes_and_sees_a_wrong_kernel(kernels: Backend, field: Field, k: int, bit: int) -> None:
    request = QUOTIENT.decode(Call(1 << k, k | bit, field), memoryview(bytearray(3 * 32 << k)))
    plan = QUOTIENT.plan(request, kernels.traits())
    SelfTest(kernels).check(request, plan)
    with pytest.raises(Exception, match="SELF_CHECK_FAILED"):
        SelfTest(_OffByOne(kernels)).check(request, plan)  # type: ignore[arg-type]


class _OffByOne:
    """A backend whose answers are wrong in one bit of one element."""

    def __init__(self, backend: Backend) -> None:
        self.traits, self._run = backend.traits, backend.run

    def run(self, request: Request, plan: object, result: memoryview) -> Outcome:
        outcome = self._run(request, plan, result)  # type: ignore[arg-type]
        result[-32] ^= 1
        return outcome


# --- shapes that are compiled in --------------------------------------------------------------------------------------


@EITHER_RESULT
@pytest.mark.parametrize(("name", "split"), [("bn254_fr", (4, 4)), ("bls12_381_fr", (3, 2, 6))])
def test_compiled_shapes(kernels: Backend, name: str, split: tuple[int, ...], bit: int) -> None:
    """Tiles of 2^8, two transforms in a frame; all launches but those of the tables."""
    field, k = field_of(name), sum(split)
    row = TransformRow(None, None, 3, 8, 8, 32, 4, "a test", (split,), compiled=(0, 1, 2))
    numbers = elements(random.Random(f"compiled {split}"), field.modulus, 6 << k)
    payload = np.frombuffer(pack(numbers), np.uint8).copy()
    request = QUOTIENT.decode(Call(2 << k, k | bit, field), payload.data)
    plan = QUOTIENT.plan_by(request, kernels.traits(), row)
    assert {launch.kernel.unit.entry for launch in plan.pieces[0].launches} == {"ntt_compiled"}
    result, expected = (bytearray(64 << k) for _ in range(2))
    kernels.run(request, plan, memoryview(result))
    QUOTIENT.reference(request, memoryview(expected))
    assert result == expected
