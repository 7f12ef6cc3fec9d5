"""Products modulo 2^256 - c on operands that reach every end of the fold, against Python's integers.

Random operands reach the last carry with a probability below c^2 / 2^256, so that a fold that is wrong there passes
other tests.
"""

from __future__ import annotations

import dataclasses
import math
import random
from collections import Counter

import numpy as np
import pytest

from limbd.ops import by_name
from limbd.ops.base import Request
from limbd.ops.params.layout import from_ints, to_ints
from limbd.worker.device.base import Backend

B = 2**256
W = 2**32
SECP256K1 = B - W - 977

# Both forms of a complement, up to the ends of their ranges.
MONIC = (SECP256K1, B - W, B - W - 1, B - 3 * 2**31 + 1)
GENERAL = (B - 1, B - 189, B - W + 1, B - 3 * 2**31, B - 2 * W - 977, B - W * W + 1)

Pair = tuple[int, int]


def twice_folded(m: int, product: int) -> tuple[int, int]:
    """u0 and w of kernels/field/fold.cuh."""
    c = B - m
    u1, u0 = divmod(product % B + product // B * c, B)
    return u0, u0 + u1 * c


def end_of_fold(m: int, product: int) -> str:
    """carry: the second fold leaves 256 bits. over: m is subtracted. none: nothing is left to do."""
    _, w = twice_folded(m, product)
    return "carry" if w >= B else "over" if w >= m else "none"


def hard_pairs(m: int) -> list[Pair]:
    """Pairs of every end, and the largest operands, reduced or not.

    A product whose residue v is small leaves the second fold at v or at m + v, nearly always at the latter: v < c makes
    it end between m and B (over), v >= c beyond B (carry), with v - c what is left there, below c^2. For a chosen a the
    other factor is v a^-1.
    """
    c, rng = B - m, random.Random(977)
    top = (0, 1, 2, 977, W, c, m - 2, m - 1, m, m + 1, B - 2, B - 1)
    pairs = [(a, b) for a in top for b in top if max(a, b) < B]
    left = (0, 1, 2**31, W - 1, W, W * W - 1, W * W, W * W - c, 2 * W * W - 1)
    residues = [0, 1, 976, 977, 978, W - 1, W, c - 1, *(c + rest for rest in left)]
    residues += [rng.randrange(c) for _ in range(20)] + [c + rng.randrange(c * c) for _ in range(20)]
    for v in residues:
        for _ in range(4):
            a = rng.randrange(1, m)
            if math.gcd(a, m) > 1:
                continue
            b = v * pow(a, -1, m) % m
            pairs += [(a, b), (b, a)]
            if b < B - m:
                pairs.append((a, b + m))
    return pairs


def answers(backend: Backend, m: int, pairs: list[Pair]) -> list[int]:
    a, b = zip(*pairs, strict=True)
    arrays = {"a": from_ints(list(a)), "b": from_ints(list(b))}
    request = Request(by_name("mod-mul"), len(pairs), 0, m, 32, arrays)
    result = np.full((request.n, 8), 0xA5A5A5A5, np.uint32)
    plan = request.op.plan(request, dataclasses.replace(backend.traits(), whole=True))
    backend.run(request, plan, result.data.cast("B"))
    return to_ints(result)


def with_stale_sum(m: int, product: int) -> int:
    """The fold with the mistake that these operands are there to find: c is added to the sum of before the second fold."""
    u0, w = twice_folded(m, product)
    return (u0 + B - m) % B if w >= B else w - m if w >= m else w


@pytest.mark.parametrize("m", (*MONIC, *GENERAL), ids=hex)
def test_every_end_of_the_fold(kernels: Backend, m: int) -> None:
    pairs = hard_pairs(m)
    assert answers(kernels, m, pairs) == [a * b % m for a, b in pairs]


@pytest.mark.parametrize("m", [SECP256K1, MONIC[-1], GENERAL[1], GENERAL[-1]], ids=hex)
def test_every_end_of_the_fold_in_ptx(m: int) -> None:
    """The carry chains of a GPU, interpreted."""
    pytest.importorskip("cuda.bindings.nvrtc")
    from limbd.harness.ptx_backend import PtxBackend

    pairs = hard_pairs(m)
    ends = [pair for end in ("carry", "over") for pair in [p for p in pairs if end_of_fold(m, p[0] * p[1]) == end][:60]]
    chosen = [*ends, *random.Random(m).sample(pairs, 40), (B - 1, B - 1), (m, B - 1), (m - 1, B - 1)]
    assert answers(PtxBackend(verify=True), m, chosen) == [a * b % m for a, b in chosen]


@pytest.mark.parametrize("m", [SECP256K1, MONIC[-1], GENERAL[-1]], ids=hex)
def test_hard_pairs_reach_every_end(m: int) -> None:
    """And they find a mistake there that random ones do not."""
    products = [a * b for a, b in hard_pairs(m)]
    ends = Counter(end_of_fold(m, product) for product in products)
    assert min(ends[end] for end in ("carry", "over", "none")) >= 50
    assert sum(with_stale_sum(m, product) != product % m for product in products) >= 0.9 * ends["carry"]
    rng = random.Random(2)
    usual = [rng.randrange(m) * rng.randrange(m) for _ in range(5000)]
    assert all(with_stale_sum(m, product) == product % m for product in usual)
