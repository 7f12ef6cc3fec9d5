"""What holds of sums whatever they are, and answers that do not depend on what was asked before or beside: msm-g1 and msm-g2
through the kernels, on the host and (marked gpu) on the device."""

from __future__ import annotations

import random
import threading
from dataclasses import replace

import numpy as np
import pytest

from limbd.harness import multiplication_laws
from limbd.harness.groups import GROUPS
from limbd.harness.multiplications import Multiples, Multiplication
from limbd.ops.base import Call, Request
from limbd.ops.params.curves import Curve, GroupName, by_name
from limbd.ops.params.layout import to_ints
from limbd.ops.reference.curve import Point
from limbd.ops.reference.msm import decode_points
from limbd.worker.device.base import Backend

EVERY_GROUP = pytest.mark.parametrize(("curve", "name"), GROUPS, ids=[f"{c.name}-{n}" for c, n in GROUPS])


def named(name: str) -> Curve:
    curve = by_name(name)
    assert curve is not None
    return curve


TOY, BN254 = named("toy_7_13"), named("bn254")


@EVERY_GROUP
def test_split_permuted_and_negated_sums(backend: Backend, curve: Curve, name: GroupName) -> None:
    assert multiplication_laws.broken(backend, curve, name, 70) == []


@pytest.mark.parametrize("law", [law.__name__ for law in multiplication_laws.LAWS])
def test_a_broken_law_is_seen(law: str) -> None:
    """Of a sum that counts its first scalar once more, and another generator with it."""
    chosen = next(each for each in multiplication_laws.LAWS if each.__name__ == law)
    known = Multiples(BN254, "g1", "broken", 9)
    generator = np.random.Generator(np.random.Philox(2))
    asked = multiplication_laws.pairs(BN254, "g1", known.points, 9, generator)

    def wrong(question: multiplication_laws.Pairs) -> Point:
        logarithms = dict(zip(known.points, known.logarithms, strict=True))
        points = decode_points(question.points.tobytes(), BN254, BN254.g1)
        scalars = to_ints(question.scalars)
        right = sum(s * logarithms[p] for s, p in zip(scalars, points, strict=True))
        return known.point(right + sum(scalars[:1]) + 1)

    assert not chosen(wrong, asked, generator)


def answer(backend: Backend, request: Request) -> bytes:
    result = bytearray(b"\x5a" * request.op.result_bytes(Call(request.n, request.param)))
    backend.run(request, request.op.plan(request, backend.traits()), memoryview(result))
    return bytes(result)


def test_a_hundred_times_in_turns_with_the_other_group(kernels: Backend) -> None:
    """Identical bytes each time, though both groups take the same memory."""
    rng = random.Random("turns")
    requests = []
    for name in ("g1", "g2"):
        known = Multiples(TOY, name, "turns", 60)
        requests.append(Multiplication(TOY, name, [rng.randrange(2**256) for _ in range(60)], known.points).request())
    first = [answer(kernels, request) for request in requests]
    for _ in range(99):
        assert [answer(kernels, request) for request in requests] == first


def test_different_bases_at_once(kernels: Backend) -> None:
    """From several threads, each with points of its own."""
    wrong: list[int] = []

    def ask(number: int) -> None:
        known = Multiples(TOY, "g1", f"bases {number}", 50)
        rng = random.Random(number)
        for _ in range(20):
            scalars = [rng.randrange(13) for _ in range(50)]
            if Multiplication(TOY, "g1", scalars, known.points).answer(kernels) != [known.total(scalars)]:
                wrong.append(number)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
    assert not any(thread.is_alive() for thread in threads) and not wrong


def test_what_memory_held_before_does_not_matter(kernels: Backend) -> None:
    """A large one of ones leaves every buffer full; `kernels` fills them with 0xA5 besides."""
    many, few = (Multiples(BN254, "g1", f"dirty {n}", n) for n in (600, 5))
    small = Multiplication(BN254, "g1", [3, 0, 1, 0, 0], few.points)
    before = small.answer(kernels)
    for scalar in (1, BN254.order - 1):
        assert Multiplication(BN254, "g1", [scalar] * 600, many.points).answer(kernels) == [many.total([scalar] * 600)]
        assert small.answer(kernels) == before == [few.total(small.scalars)]
        assert replace(small, scalars=[0] * 5).answer(kernels) == [None]
