"""Every shipped answer, and a short fuzz, through each backend."""

from __future__ import annotations

import pytest

from limbd.harness import fuzz, kat
from limbd.harness.inputs import known_residues
from limbd.harness.vectors import load
from limbd.harness.vectors.recipes import recipes
from limbd.ops import OPS
from limbd.ops.base import Op
from limbd.worker.device.base import Backend
from limbd.worker.device.reference import ReferenceBackend

EVERY_OP = pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)


@EVERY_OP
def test_known_answers(op: Op, backend: Backend) -> None:
    report = kat.run(backend, [op.name])
    assert report.failures == []
    by_recipe = sum(recipe.n for recipe in recipes(op.name))
    assert report.passed == by_recipe + sum(batch.n for batch in kat.batches(op.name, kat.as_target(backend)))
    assert report.passed >= sum(batch.n for batch in load(op.name))
    assert report.ok


@EVERY_OP
def test_every_known_modulus_and_field_on_hard_operands(op: Op, kernels: Backend) -> None:
    """The first rounds of a seed go through all special moduli and every registered field, toys too."""
    result = fuzz.run(kernels, ops=[op.name], seed="known residues", rounds=len(known_residues()))
    assert result.failures == []
    assert result.elements[op.name] >= len(known_residues())


@EVERY_OP
def test_every_bit_length(op: Op, kernels: Backend) -> None:
    result = fuzz.run(kernels, ops=[op.name], seed="bit lengths", first_round=len(known_residues()), rounds=256)
    assert result.failures == []


def test_a_recipe_that_no_frame_holds_is_skipped() -> None:
    target, report = kat.as_target(ReferenceBackend()), kat.Report("a test")
    recipe = next(recipes("ntt"))
    target.most_bytes = recipe.n * 32 - 1
    kat._judge_recipe(target, recipe, report)
    assert [(row.passed, row.failed, row.skipped) for row in report.rows.values()] == [(0, 0, recipe.n)]
    target.most_bytes += 1
    kat._judge_recipe(target, recipe, report)
    assert report.passed == recipe.n and not report.failures
