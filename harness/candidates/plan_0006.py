"""The incumbent of plan 0006: small transforms by the passes that serve all sizes, two elements a thread."""

from __future__ import annotations

from limbd.harness.candidates import Candidate, Options
from limbd.ops.base import LaunchPlan, Request, Traits
from limbd.ops.ntt import NTT
from limbd.ops.tuning import TransformRow

PASSES = TransformRow(None, None, 1, 6, 8, 128, 4, "plan 0006")


def passes(request: Request, traits: Traits, options: Options) -> LaunchPlan:
    return NTT.plan_by(request, traits, PASSES)


CANDIDATES = {"passes": Candidate(passes)}
