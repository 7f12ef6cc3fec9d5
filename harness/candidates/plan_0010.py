"""The sides of plan 0010: those of plan 0009 on bn254 G2."""

from __future__ import annotations

from limbd.harness.candidates import Candidate, Options
from limbd.harness.candidates.plan_0009 import by_chunks
from limbd.ops.base import LaunchPlan, Request, Traits

CURVES = ("bn254", "toy_7_13")


def threads(request: Request, traits: Traits, options: Options) -> LaunchPlan:
    return by_chunks(request, traits, None)


def three_blocks(request: Request, traits: Traits, options: Options) -> LaunchPlan:
    return by_chunks(request, traits, 3)


def four_blocks(request: Request, traits: Traits, options: Options) -> LaunchPlan:
    return by_chunks(request, traits, 4)


# Complete additions, which are seldom made, spill more than the loop does.
CANDIDATES = {
    "threads": Candidate(threads, curves=CURVES, spills=64),
    "three-blocks": Candidate(three_blocks, curves=CURVES, spills=200),
    "four-blocks": Candidate(four_blocks, curves=CURVES, spills=1000),
}
