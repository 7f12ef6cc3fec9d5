"""Plan 0001's candidates against GMP: every way in every launch, on operands that make the last carries of the fold."""

from __future__ import annotations

import dataclasses
import random
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from limbd.harness.candidates import plan_0001
from limbd.harness.candidates.plan_0001 import CANDIDATES, COMPLEMENT, PRIME, WAYS, fold_path, hard, kernel_name
from limbd.harness.inputs import operands
from limbd.harness.textio import InputError
from limbd.ops import by_name
from limbd.ops.base import Request
from limbd.ops.params.layout import from_ints, to_mpz
from limbd.worker.device.base import Backend

LAUNCHES: tuple[dict[str, Any], ...] = (
    {"launch": "full", "rounds": 1},
    {"launch": "full", "rounds": 5},
    {"launch": "article", "rounds": 1},
    {"launch": "article", "rounds": 3},
    {"launch": "article", "rounds": 1, "xor": True},
    {"launch": "article", "rounds": 3, "xor": True},
    {"launch": "article", "rounds": 3, "xor": True, "flipped": True},
    {"launch": "article", "rounds": 7, "xor": True, "unroll": 4},
)


def request_of(pairs: list[tuple[int, int]]) -> Request:
    a, b = zip(*pairs, strict=True)
    arrays = {"a": from_ints(list(a), 8), "b": from_ints(list(b), 8)}
    return Request(by_name("mod-mul"), len(pairs), 0, PRIME, 32, arrays)


def hard_pairs() -> list[tuple[int, int]]:
    both = hard(PRIME)
    return list(zip(both["a"], both["b"], strict=True))


def answers(backend: Backend, way: str, request: Request, options: Mapping[str, Any]) -> list[int]:
    result = np.full((request.n, 8), 0xA5A5A5A5, np.uint32)
    plan = CANDIDATES[way].plan(request, dataclasses.replace(backend.traits(), whole=True), options)
    backend.run(request, plan, result.data.cast("B"))
    return [int(x) for x in to_mpz(result)]


def expected(request: Request, options: Mapping[str, Any]) -> list[int]:
    """By Python's integers, apart from the module's own reference."""
    values = []
    rounds = options["rounds"]
    for a, b in zip(to_mpz(request.arrays["a"]), to_mpz(request.arrays["b"]), strict=True):
        r = x = int(a)
        for _ in range(rounds):
            r = x * int(b) % PRIME
            if options["launch"] == "full":
                x = r
            elif options.get("xor"):
                x ^= r & 0xFFFFFFFF
        values.append(r)
    return values


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("options", LAUNCHES, ids=str)
def test_every_way_in_every_launch(kernels: Backend, way: str, options: dict[str, Any]) -> None:
    rng = random.Random(f"{way} {options}")
    pairs = hard_pairs()
    # More than one element for some threads of the article's launch, none for others.
    pairs += list(zip(operands(rng, PRIME, 1500, 256), operands(rng, PRIME, 1500, 256), strict=True))
    request = request_of(pairs)
    assert answers(kernels, way, request, options) == expected(request, options)


@pytest.mark.parametrize("n", [1, 2, 31, 33, 1023, 1025])
def test_the_article_launch_cuts_the_batch(kernels: Backend, n: int) -> None:
    request = request_of((hard_pairs() * 2)[:n])
    assert answers(kernels, "row-64", request, LAUNCHES[2]) == expected(request, LAUNCHES[2])


@pytest.mark.parametrize("way", WAYS)
def test_the_ptx_of_every_way(way: str) -> None:
    """What NVRTC makes of it, interpreted: the 64-bit chains exist only there."""
    pytest.importorskip("cuda.bindings.nvrtc")
    from limbd.harness.ptx_backend import PtxBackend

    pairs = hard_pairs()
    chosen = [pair for path in ("w1", "over") for pair in [p for p in pairs if fold_path(p[0] * p[1]) == path][:60]]
    top = (1 << 256) - 1
    request = request_of([*chosen, *random.Random(way).sample(pairs, 40), (top, top), (PRIME, top), (PRIME - 1, top)])
    backend = PtxBackend(verify=True)
    assert answers(backend, way, request, LAUNCHES[0]) == expected(request, LAUNCHES[0])


@pytest.mark.parametrize("options", LAUNCHES, ids=str)
def test_the_reference(options: dict[str, Any]) -> None:
    request = request_of(random.Random(1).sample(hard_pairs(), 200))
    result = np.zeros((request.n, 8), np.uint32)
    plan_0001.reference(request, result.data.cast("B"), options)
    assert [int(x) for x in to_mpz(result)] == expected(request, options)


def with_stale_sum(product: int) -> int:
    """The fold with the mistake that these operands are there to find: c is added to the sum of before the last fold."""
    whole = 1 << 256
    once = product % whole + (product >> 256) * COMPLEMENT
    twice = once % whole + (once >> 256) * COMPLEMENT
    if twice >> 256:
        return (once % whole + COMPLEMENT) % whole
    return twice - PRIME if twice >= PRIME else twice


def test_hard_operands_take_every_path() -> None:
    """And they find a mistake there that random ones do not."""
    pairs = hard_pairs()
    paths = Counter(fold_path(a * b) for a, b in pairs)
    assert min(paths[path] for path in ("w1", "over", "")) >= 50
    assert sum(with_stale_sum(a * b) != a * b % PRIME for a, b in pairs) == paths["w1"]
    rng = random.Random(2)
    usual = [(rng.randrange(PRIME), rng.randrange(PRIME)) for _ in range(5000)]
    assert all(with_stale_sum(a * b) == a * b % PRIME for a, b in usual)


@pytest.mark.parametrize(
    "options",
    [
        {"launch": "half"},
        {"rounds": 0},
        {"rounds": "1"},
        {"launch": "full", "xor": True},
        {"launch": "article", "flipped": True},
        {"launch": "full", "unroll": 2},
        {"launch": "article", "unroll": 3},
        {"turns": 1},
    ],
    ids=str,
)
def test_options_without_a_kernel(options: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="plan 0001 has"):
        kernel_name(options)


def test_another_modulus_is_refused(made_once: Callable[[str], Backend]) -> None:
    request = dataclasses.replace(request_of([(1, 1)]), modulus=PRIME - 2)
    with pytest.raises(InputError, match="secp256k1"):
        CANDIDATES["split"].plan(request, made_once("cpu").traits(), {})
