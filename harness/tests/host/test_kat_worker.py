"""The known answers through a real worker process: frames in, frames out. (Those of the reference are test_kat.py's; its frames
would be the same.)"""

from __future__ import annotations

import pytest

from limbd.harness import fuzz, kat
from limbd.harness.inputs import PLAIN_BITS, known_residues
from limbd.harness.targets import ClientTarget, can_ask
from limbd.harness.vectors.recipes import recipes
from limbd.ops import OPS, by_name
from limbd.worker.client import Client


@pytest.mark.parametrize("backend", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_known_answers_and_hard_operands_by_frames(backend: str) -> None:
    """By the user's cache, in which the demo and other workers of the tests leave the same kernels."""
    with Client(backend=backend, timeout=120) as client:
        target = ClientTarget(client, f"--backend {backend}")
        report = kat.run(target)
        assert report.failures == []
        asked = [b for op in OPS for b in kat.batches(op.name, target) if can_ask(target, op.name, b.residues)]
        assert all(b.width == PLAIN_BITS // 8 for b in asked if by_name(b.op).modulus_in_payload)
        by_recipe = sum(recipe.n for op in OPS for recipe in recipes(op.name))
        assert report.passed == by_recipe + sum(batch.n for batch in asked)
        found = fuzz.run(target, seed="frames", rounds=len(known_residues()) // 4)
        assert found.failures == []
        assert found.ok
