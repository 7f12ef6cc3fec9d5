"""Candidates of plan 0001: mod-mul for the secp256k1 prime in seven ways, each in the same launches.

Options of a case: launch "full" (one element a thread, the device filled) or "article" (32 blocks of 32 threads, a run of
adjacent elements each); rounds: products an element. full computes a b^rounds, each product needing the one before.
article computes the same a b in each round; with xor the lowest limb of a becomes a[0] ^ r[0] after each product r, and
the last r is the result; flipped says that the rows of the product are [b] a[i] instead of [a] b[i]; unroll is how many
turns of the loop over rounds the compiler puts side by side.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import gmpy2

from limbd.harness.candidates import Candidate, Options
from limbd.harness.textio import InputError
from limbd.ops.base import Kernel, Launch, LaunchPlan, Member, Request, Struct, Traits, Unit
from limbd.ops.constants import LIMB_BITS, barrett
from limbd.ops.params.layout import pack, to_mpz
from limbd.ops.split import elementwise_plan

LIMBS = 8
COMPLEMENT = (1 << 32) + 977
PRIME = (1 << 256) - COMPLEMENT

# kernels/candidate/0001/ways.cuh: enum Way
WAYS = ("even-odd-32", "row-32", "even-odd-64", "row-64", "split", "general", "shipped")

ARTICLE_GRID, ARTICLE_BLOCK = 32, 32
UNROLLS = (1, 2, 4, 8)
FULL_BLOCK = 256

STRUCT = Struct(
    "columns_args",
    (
        Member("a", "in"),
        Member("b", "in"),
        Member("out", "out"),
        Member("n", "u64"),
        Member("rounds", "u32"),
        Member("complement", "limbs", 2),
        Member("modulus", "limbs", LIMBS),
        Member("negated", "limbs", LIMBS + 1),
        Member("reciprocal", "limbs", LIMBS),
        Member("shift", "u32"),
    ),
)

_OPTIONS = {"launch": "full", "rounds": 1, "xor": False, "flipped": False, "unroll": 1}


def unit(way: str, unroll: int = 1) -> Unit:
    """The compile unit of one way: five kernels."""
    return Unit("candidate/0001/columns", (STRUCT,), (("WAY", WAYS.index(way)), ("UNROLLED", unroll)))


def kernel_name(options: Options) -> str:
    """The kernel that a case's options ask for. Raises InputError."""
    unknown = options.keys() - _OPTIONS.keys()
    launch, rounds, xor, flipped, unroll = ({**_OPTIONS, **options}[key] for key in _OPTIONS)
    counts = isinstance(rounds, int) and 1 <= rounds < 1 << 32 and unroll in UNROLLS
    if unknown or launch not in ("full", "article") or not counts:
        raise InputError(f"plan 0001 has options {', '.join(_OPTIONS)}, not {dict(options)}")
    if launch == "full" and not xor and not flipped and unroll == 1:
        return "columns_streamed" if rounds == 1 else "columns_resident"
    if launch == "article" and (xor or not flipped):
        return "columns_article" + ("_flipped" if flipped else "_xor" if xor else "")
    raise InputError(f"plan 0001 has no kernel for {dict(options)}")


def plan_of(way: str, request: Request, traits: Traits, options: Options) -> LaunchPlan:
    if request.modulus != PRIME:
        raise InputError(f"plan 0001 is about the secp256k1 prime, not {request.modulus:#x}")
    article = options.get("launch") == "article"
    name = kernel_name(options)
    kernel = Kernel(unit(way, options.get("unroll", 1)), name, STRUCT, ARTICLE_BLOCK if article else FULL_BLOCK)
    constants = {"complement": COMPLEMENT, "rounds": options.get("rounds", 1), **barrett(PRIME, LIMBS)}

    def launch(n: int) -> Launch:
        grid = ARTICLE_GRID if article else -(-n // FULL_BLOCK)
        return Launch(kernel, grid, kernel.max_block, {"n": n, **constants})

    return elementwise_plan(request, traits, launch)


def reference(request: Request, result: memoryview, options: Options) -> None:
    """What the kernels have to give, by GMP."""
    m, rounds = gmpy2.mpz(request.modulus), int(options.get("rounds", 1))
    pairs = zip(to_mpz(request.arrays["a"]), to_mpz(request.arrays["b"]), strict=True)
    if options.get("xor"):
        values: Iterator[gmpy2.mpz] = (_with_xor(a, b, m, rounds) for a, b in pairs)
    elif options.get("launch") == "article":
        values = (a * b % m for a, b in pairs)
    else:
        values = (a * gmpy2.powmod(b, rounds, m) % m for a, b in pairs)
    result[:] = pack(values, request.element_bytes)


def _with_xor(a: gmpy2.mpz, b: gmpy2.mpz, m: gmpy2.mpz, rounds: int) -> gmpy2.mpz:
    low = gmpy2.mpz((1 << LIMB_BITS) - 1)
    r = gmpy2.mpz(0)
    for _ in range(rounds):
        r = a * b % m
        a ^= r & low
    return r


# --- operands that make the last carries of the fold ------------------------------------------------------------------


def fold_path(product: int) -> str:
    """Which end the fold of kernels/candidate/0001/fold977.cuh takes: "w1" where the second fold leaves 256 bits, "over"
    where the prime is subtracted once, "" where nothing is left to do."""
    whole = 1 << 256
    once = product % whole + (product >> 256) * COMPLEMENT
    twice = once % whole + (once >> 256) * COMPLEMENT
    return "w1" if twice >> 256 else "over" if twice >= PRIME else ""


def hard(modulus: int) -> dict[str, list[int]]:
    """Pairs of every path of the fold, and the largest operands, reduced or not.

    A product whose residue v is small leaves the second fold at v or at p + v, nearly always at the latter: v < c makes
    it end between p and 2^256 ("over"), v >= c beyond 2^256 ("w1"), with v - c what is left there. For a chosen a the
    other factor is v a^-1.
    """
    whole, rng = 1 << 256, random.Random(977)
    top = (0, 1, 2, 977, 1 << 32, COMPLEMENT, modulus - 2, modulus - 1, modulus, modulus + 1, whole - 2, whole - 1)
    pairs = [(a, b) for a in top for b in top]
    left = (0, 1, 1 << 31, (1 << 32) - 1, 1 << 32, (1 << 64) - 1, 1 << 64, (1 << 64) - COMPLEMENT, (1 << 65) - 1)
    residues = [0, 1, 976, 977, 978, (1 << 32) - 1, 1 << 32, COMPLEMENT - 1, *(COMPLEMENT + rest for rest in left)]
    residues += [rng.randrange(COMPLEMENT) for _ in range(20)] + [rng.randrange(1 << 65) for _ in range(20)]
    for v in residues:
        for _ in range(4):
            a = rng.randrange(1, modulus)
            b = v * pow(a, -1, modulus) % modulus
            pairs += [(a, b), (b, a)]
            if b < whole - modulus:
                pairs.append((a, b + modulus))
    return {"a": [a for a, _ in pairs], "b": [b for _, b in pairs]}


def _declared(way: str) -> Candidate:
    return Candidate(lambda request, traits, options: plan_of(way, request, traits, options), reference, hard)


CANDIDATES = {way: _declared(way) for way in WAYS}


def sass_units() -> dict[str, Unit]:
    """What limbd.harness.sass disassembles."""
    return {f"{way} x{unroll}": unit(way, unroll) for unroll in UNROLLS for way in WAYS}
