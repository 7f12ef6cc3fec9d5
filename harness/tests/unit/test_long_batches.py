"""Known answers, exhaustive operands, fuzzing and a plan's edges go through mod-inv-batch's own kernel, by every row of
its tuning: told by the launches that their plans ask a backend for."""

from __future__ import annotations

import math
import random
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from limbd.harness import exhaustive, fuzz, halt_run, kat, long_batches, report
from limbd.harness.candidates import resolve
from limbd.harness.plans import all_plans
from limbd.harness.vectors import Vectors, load
from limbd.harness.vectors.peers import PYTHON
from limbd.ops.base import LaunchPlan, Request, Traits
from limbd.ops.mod_inv_batch import MOD_INV_BATCH, NAME, launch_with
from limbd.ops.params.fields import FIELDS
from limbd.ops.params.layout import from_ints, to_ints
from limbd.ops.tuning import BATCH_TABLE, BatchRow, batch_tuning
from limbd.worker.device.base import Outcome
from limbd.worker.device.reference import ReferenceBackend

H200 = Traits("cuda", "sm_90", 132, 1 << 36)
HOST = Traits("cpu", "x86_64", 2, 1 << 34)
WIDE = next(field for field in FIELDS if field.name == "bls12_381_fp")

EVERY_DEVICE = pytest.mark.parametrize("traits", [H200, HOST], ids=["cuda", "cpu"])


class Recording(ReferenceBackend):
    """The reference's answers, for plans that are made for some device. launched: (limbs, row) of each launch of the batch
    kernel. wrong: that kernel's results have one bit flipped."""

    def __init__(self, traits: Traits, *, wrong: bool = False) -> None:
        self._traits = traits
        self._wrong = wrong
        self.launched: set[tuple[int, BatchRow]] = set()

    def traits(self) -> Traits:
        return self._traits

    def start(self, request: Request, plan: LaunchPlan, result: memoryview) -> Outcome:
        outcome = super().start(request, plan, result)
        limbs = request.element_bytes // 4
        for launch in (launch for piece in plan.pieces for launch in piece.launches if launch.kernel.name == NAME):
            rows = batch_tuning(self._traits.kind, self._traits.arch, limbs).rows
            n = launch.values["n"]
            self.launched |= {(limbs, row) for row in rows if launch_with(row, request, n, self._traits) == launch}
            if self._wrong:
                np.frombuffer(result, "<u4").reshape(request.n, -1)[n // 2, 0] ^= 1
        return outcome

    def missing(self, *limbs: int) -> list[BatchRow]:
        kind, arch = self._traits.kind, self._traits.arch
        wanted = [(count, row) for count in limbs for row in batch_tuning(kind, arch, count).rows]
        return [row for count, row in wanted if (count, row) not in self.launched]


def few(op: str) -> list[Vectors]:
    """Some of the known answers: of a prime, of a composite and of an even modulus."""
    return [batch for batch in load(op) if batch.name.startswith(("secp256k1_p", "two256_minus_1", "even_max"))]


def few_and_wide(op: str) -> list[Vectors]:
    return few(op) + [batch for batch in load(op) if batch.field == WIDE]


@EVERY_DEVICE
def test_known_answers(traits: Traits, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kat, "load", few_and_wide)
    backend = Recording(traits)
    assert kat.run(backend, [long_batches.OP]).ok
    assert backend.missing(8, 12) == []


@EVERY_DEVICE
def test_exhaustive_operands(traits: Traits, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exhaustive, "MODULI", (7, 12, 15))
    backend = Recording(traits)
    assert exhaustive.run(backend, MOD_INV_BATCH)[0] == []
    assert backend.missing(8) == []


@EVERY_DEVICE
def test_fuzzing(traits: Traits) -> None:
    """A million elements, as the checks on a device take them."""
    backend = Recording(traits)
    found = fuzz.run(backend, ops=[long_batches.OP], elements=halt_run.LONG_FUZZ_ELEMENTS)
    assert found.ok and found.elements[long_batches.OP] >= 10**6
    assert backend.missing(8) == []


@EVERY_DEVICE
def test_the_correctness_runs_of_a_plan(traits: Traits, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Each by itself launches every row."""
    monkeypatch.setattr(kat, "load", few)
    monkeypatch.setattr(exhaustive, "MODULI", (15,))
    (plan,) = (plan for plan in all_plans() if plan.number == "0003")
    for check in (halt_run._kat, halt_run._fuzz, halt_run._exhaustive, halt_run._edges):
        backend = Recording(traits)
        journal = report.Journal(tmp_path / "0003.jsonl", report.run_record("halt", {}, "a" * 40))
        run = halt_run.Run(plan, backend, journal, time.monotonic() + 300, "", print)
        failures, compared = check(run, "op:mod-inv-batch", resolve("op:mod-inv-batch"))
        assert failures == [] and compared > 0
        assert backend.missing(8) == [], check


def test_the_least_n_of_each_row_is_one_that_its_pieces_reach() -> None:
    """Whole, cut by a small budget, and for elements of 12 limbs, of which fewer make a piece."""
    assert long_batches.lengths(HOST, 8) == (97,)
    for traits in (H200, replace(H200, memory=16 << 20), replace(H200, whole=True)):
        for limbs in (8, 12):
            entry = batch_tuning("cuda", "sm_90", limbs)
            for n, row in zip(long_batches.lengths(traits, limbs), entry.rows, strict=False):
                plan = MOD_INV_BATCH.plan(zeros(n, limbs), traits)
                served = {entry.row(piece.launches[0].values["n"]) for piece in plan.pieces}
                assert served == {row}
    assert len(long_batches.lengths(H200, 12)) == len(batch_tuning("cuda", "sm_90", 12).rows)
    assert len(long_batches.lengths(replace(H200, memory=1 << 20), 8)) == 1


def zeros(n: int, limbs: int) -> Request:
    """Of zeros that take no memory."""
    array = np.broadcast_to(np.zeros(1, np.uint32), (n, limbs))
    return Request(MOD_INV_BATCH, n, 0, WIDE.modulus if limbs == 12 else 7, 4 * limbs, {"x": array})


def test_an_unknown_worker_gets_what_is_above_every_crossover() -> None:
    (n,) = long_batches.lengths(None, 8)
    assert all(entry.row(n) is not None for entry in BATCH_TABLE.values())


@pytest.mark.parametrize("modulus", [7, 15, 30, 1, 2**255 - 19, WIDE.modulus])
def test_every_answer_stands_at_several_places(modulus: int) -> None:
    limbs = 12 if modulus >> 256 else 8
    values = [x + modulus * k for x in range(min(modulus, 40)) for k in (0, 1)]
    right = [PYTHON["mod-inv"](modulus, x) for x in values]
    x, expected = from_ints(values, limbs), from_ints(right, limbs)
    others = {x for x, y in zip(values, right, strict=True) if y == 0 and x % modulus}
    found = list(long_batches.arrangements(x, expected, modulus, 300))
    assert len(found) == (3 if others else 1)
    for asked, answers in found:
        assert len(asked) >= 300
        assert to_ints(answers) == [PYTHON["mod-inv"](modulus, x) for x in to_ints(asked)]
    first, *rest = (to_ints(asked) for asked, _ in found)
    assert not others & set(first) and all(first.count(x) >= long_batches.PLACES for x in {*values, 0} - others)
    if rest:
        assert 1 <= sum(x in others for x in rest[0]) <= long_batches.FEW
        assert all(rest[1].count(x) >= long_batches.PLACES for x in {*values, 0})


def test_fuzzed_batches_are_of_three_kinds() -> None:
    for modulus, bits in ((3 * 5 * 7 * 11, 256), (2**255, 256), (2**255 - 19, 256), (WIDE.modulus, 384), (1, 256)):
        counts = set()
        for seed in range(12):
            rows = long_batches.fuzzed(random.Random(seed), modulus, 5000, bits)
            assert rows.shape == (5000, bits // 32)
            counts.add(sum(x % modulus != 0 and math.gcd(x, modulus) != 1 for x in to_ints(rows)))
        assert 0 in counts
        assert modulus in (2**255 - 19, WIDE.modulus, 1) or (min(counts - {0}) <= long_batches.FEW < max(counts))


def test_sizes_go_around_every_bound() -> None:
    sizes = fuzz.sizes_of(long_batches.OP)
    for entry in BATCH_TABLE.values():
        assert {entry.alone, entry.alone + 1} <= set(sizes)
        for row in entry.rows:
            assert row.up_to is None or {row.up_to, row.up_to + 1} <= set(sizes)
            for extra in (-1, 0, 1):
                assert any(n % row.block == extra % row.block and entry.row(n) == row for n in sizes)
    assert fuzz.sizes_of("mod-mul") == fuzz.SIZES and max(fuzz.sizes_of("mod-exp")) == fuzz.SLOW_OPS["mod-exp"]


@EVERY_DEVICE
@pytest.mark.parametrize("suite", ["kat", "exhaustive", "fuzz"])
def test_a_wrong_batch_kernel_is_found(traits: Traits, suite: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kat, "load", few)
    monkeypatch.setattr(exhaustive, "MODULI", (7, 15))
    backend = Recording(traits, wrong=True)
    if suite == "kat":
        found = kat.run(backend, [long_batches.OP])
        assert found.failed > 0 and any("repeated" in text for text in found.failures)
    elif suite == "exhaustive":
        assert exhaustive.run(backend, MOD_INV_BATCH)[0]
    else:
        assert not fuzz.run(backend, ops=[long_batches.OP], elements=100_000).ok
