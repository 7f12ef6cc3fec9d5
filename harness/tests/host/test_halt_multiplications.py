"""Plans of multi-scalar multiplications: what a case asks for, correctness runs through a side's own kernels, sums judged by
logarithms; and the candidates of open plans."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import pytest

from limbd.harness import bench, edge_multiplications, exhaustive_multiplications, halt, halt_run, kat, report
from limbd.harness.bench_multiplications import variant, wrong
from limbd.harness.candidate_units import H200
from limbd.harness.candidates import Candidate, resolve
from limbd.harness.groups import LONG
from limbd.harness.halt_run import Substituted
from limbd.harness.plan_cases import asked_of
from limbd.harness.plan_history import dated
from limbd.harness.plans import Plan, PlanError, all_plans, parse
from limbd.harness.textio import InputError
from limbd.harness.vectors import Vectors, load
from limbd.ops import by_name
from limbd.ops.base import LaunchPlan, Op, Request, Traits
from limbd.ops.msm import MSM_G1
from limbd.ops.params.curves import GroupName, by_low_byte
from limbd.worker.device.base import Backend
from limbd.worker.device.reference import ReferenceBackend

PLAN = """\
+++
title = "Multiplications"
op = "msm-g1"
state = "open"
incumbent = "op:msm-g1"
candidate = "candidate:9003/NAME"
sources = ["a test"]
[halt]
metric = "kernel_ms"
min_samples = 2
backend = "cpu"
correctness = ["kat", "edges", "fuzz"]
[[halt.cases]]
curve = "bn254"
n = [5, 40]
min_speedup = 0.001
[[halt.guards]]
curve = "bn254"
n = 40
inputs = "skew"
min_guard_speedup = 0.001
[[sweep]]
curve = "bn254"
n = 20
vectors = 3
constant = true
back_to_back = 2
samples = 1
+++
"""
EDGES = PLAN.replace('["kat", "edges", "fuzz"]', '["edges"]')

COMMIT = "0123456789" * 4


def shipped(request: Request, traits: Traits, options: Mapping[str, Any]) -> LaunchPlan:
    return MSM_G1.plan(request, traits)


def badly_folded(request: Request, traits: Traits, options: Mapping[str, Any]) -> LaunchPlan:
    """Windows one bit too narrow when they are put together, of 40 points."""
    plan = MSM_G1.plan(request, traits)
    if request.n != 40:
        return plan
    (piece,) = plan.pieces
    *others, fold = piece.launches
    fold = dataclasses.replace(fold, values={**fold.values, "width": fold.values["width"] - 1})
    return dataclasses.replace(plan, pieces=(dataclasses.replace(piece, launches=(*others, fold)),))


def wrong_when_measured(request: Request, traits: Traits, options: Mapping[str, Any]) -> LaunchPlan:
    return (badly_folded if traits.whole else shipped)(request, traits, options)


CANDIDATES = {
    "same": Candidate(shipped),
    "one": Candidate(shipped, curves=("bn254",)),
    "fold": Candidate(badly_folded, curves=("bn254",)),
    "late": Candidate(wrong_when_measured, curves=("bn254",)),
}


@pytest.fixture(autouse=True)
def declared(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("limbd.harness.candidates.plan_9003")
    vars(module)["CANDIDATES"] = CANDIDATES
    monkeypatch.setitem(sys.modules, module.__name__, module)


@pytest.fixture
def cpu(made_once: Callable[[str], Backend]) -> Any:
    return made_once("cpu")


def plan_for(name: str, text: str = PLAN) -> Plan:
    return parse(text.replace("NAME", name), Path("9003-multiplications.md"))


def measured(plan: Plan, backend: Any, path: Path, only: str = "") -> tuple[list[report.Record], list[str]]:
    said: list[str] = []
    halt_run.run_plan(plan, backend, path, COMMIT, seconds=600.0, only=only, say=said.append)
    return dated(path), said


# --- cases ----------------------------------------------------------------------------------------------------------


def test_a_case_says_curve_vectors_work_and_scalars() -> None:
    plan = plan_for("same")
    assert [case.name for case in plan.cases] == [
        "bn254 n=5 against op:msm-g1",
        "bn254 n=40 against op:msm-g1",
        "bn254 n=40 skew against op:msm-g1",
        "bn254 n=20 vectors=3 constant x2 against op:msm-g1",
    ]
    asked = asked_of(plan.op, plan.cases[3])
    assert (asked.n, asked.param, asked.back_to_back) == (60, variant(vectors=3, constant=True), 2)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('curve = "bn254"', 'modulus = "bn254_fr"', "[[halt.cases]] number 1: curve is missing"),
        ('curve = "bn254"', 'curve = "bn254_fr"', "has no curve 'bn254_fr'"),
        ('op = "msm-g1"', 'op = "mod-inv"', "[[halt.cases]] number 1: modulus is missing"),
        ('"skew"', '"ones"', "inputs is 'ones', not one of uniform, skew, witness"),
        ("vectors = 3", "vectors = 65537", "vectors is 65537, above 65536"),
        ("constant = true", "constant = 1", "constant is 1, not true or false"),
        ("vectors = 3", "checked = 3", "unknown key 'checked'"),
        ("vectors = 3", 'order = "nn"', "unknown key 'order'"),
        ("n = [5, 40]", "n = [5, 5]", "stands there twice"),
    ],
)
def test_what_is_no_multiplication_is_told(old: str, new: str, told: str) -> None:
    assert old in PLAN
    with pytest.raises(PlanError) as refused:
        parse(PLAN.replace("NAME", "same").replace(old, new, 1), Path("9003-multiplications.md"))
    assert told in str(refused.value)


# --- runs -----------------------------------------------------------------------------------------------------------


FEW = 8


def few(op: str) -> Iterator[Vectors]:
    """A few of each curve."""
    counts: dict[int, int] = {}
    for batch in load(op):
        counts[batch.modulus] = counts.get(batch.modulus, 0) + 1
        if counts[batch.modulus] <= FEW:
            yield batch


def test_a_right_candidate_is_checked_and_measured(cpu: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On its curve, whatever others the known answers and fuzzing have."""
    monkeypatch.setattr(halt_run, "MULTIPLICATION_FUZZ_ELEMENTS", 60)
    monkeypatch.setattr(halt_run, "LARGEST_RECIPE", 0)
    monkeypatch.setattr(kat, "load", few)
    asked: set[str] = set()
    run = cpu.run

    def watched(request: Request, plan: LaunchPlan, result: memoryview) -> Any:
        asked.add(curve_of(request))
        return run(request, plan, result)

    monkeypatch.setattr(cpu, "run", watched)
    plan = plan_for("one")
    records, _ = measured(plan, cpu, tmp_path / "9003.jsonl")
    assert halt.judge(plan, records).word == halt.PROMOTE
    assert asked == {"bn254"}
    runs = {record["run"]: record["compared"] for record in records if record["kind"] == "correctness"}
    # Every edge and two neighbours of 5, 40, and 20 in three vectors.
    sums = len(edge_multiplications.edges(13)) + 2
    assert runs["edges"] == sums * (1 + 1 + 3)
    assert runs["kat"] >= FEW and runs["fuzz"] >= 60
    pairs = [record for record in records if record["kind"] == "pair"]
    assert [(r["field"], r["n"], r["inputs"], r["param"]) for r in pairs] == [
        ("bn254", 5, "uniform", 0),
        ("bn254", 40, "uniform", 0),
        ("bn254", 40, "skew", 0),
        ("bn254", 60, "uniform", variant(vectors=3, constant=True)),
    ]
    assert [r["checked"][0] // r["input_sets"] for r in pairs] == [1, 1, 1, 3]


def curve_of(request: Request) -> str:
    curve = by_low_byte(request.param & 0xFF)
    assert curve is not None
    return curve.name


def test_a_wrong_candidate_is_found_by_edges(cpu: Any, tmp_path: Path) -> None:
    records, said = measured(plan_for("fold", EDGES), cpu, tmp_path / "9003.jsonl")
    assert [record.get("ok") for record in records] == [None, False]
    assert "n=40 copies of one point" in records[1]["failure"]
    assert said[-1] == "candidate:9003/fold is wrong: it is not measured"


def test_a_candidate_that_is_wrong_only_when_it_is_measured(cpu: Any, tmp_path: Path) -> None:
    plan = plan_for("late", EDGES)
    records, _ = measured(plan, cpu, tmp_path / "9003.jsonl")
    assert [record.get("ok") for record in records] == [None, True, True, False]
    assert halt.judge(plan, records).word == halt.HALT


def test_exhaustive_runs_are_of_the_toy_curve(cpu: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the candidate's kernels; one that does not serve it cannot be asked for them."""
    text = PLAN.replace('["kat", "edges", "fuzz"]', '["exhaustive"]')

    def asked(backend: Backend, op: Op) -> tuple[list[str], int]:
        assert isinstance(backend, Substituted) and op is MSM_G1
        return [], 13**4

    monkeypatch.setattr(exhaustive_multiplications, "run", asked)
    records, _ = measured(plan_for("same", text), cpu, tmp_path / "9003.jsonl", only="exhaustive")
    assert [(record["run"], record["ok"], record["compared"]) for record in records[1:]] == [
        ("exhaustive", True, 13**4)
    ]
    with pytest.raises(InputError, match="serves bn254 alone"):
        measured(plan_for("one", text), cpu, tmp_path / "one.jsonl", only="exhaustive")


@pytest.mark.parametrize("n", [1, 2, 63, 1100])
def test_edges_are_known_sums(n: int) -> None:
    """Against the definition, in two vectors; and a wrong one is seen."""
    found = list(edge_multiplications.requests(bench.Case("msm-g2", "toy_7_13", 2 * n, param=variant(vectors=2))))
    assert len(found) == len(edge_multiplications.edges(13)) + (2 if n > 1 else 1)
    for told, request in found:
        result = bench.empty_result(request)
        ReferenceBackend().run(request, LaunchPlan((), 1, ()), result.data.cast("B"))
        assert wrong(request, result) == (None, 2), told
        result[1, 0] ^= 1
        assert wrong(request, result) == (1, 2), told


# --- candidates of open plans ---------------------------------------------------------------------------------------

SIDES = sorted(
    {
        (plan.op, side)
        for plan in all_plans()
        if plan.state == "open" and plan.op in ("msm-g1", "msm-g2")
        for side in (*plan.candidates, *(case.incumbent for case in plan.cases))
        if side.startswith("candidate:")
    }
)


class LikeAGpu(Substituted):
    """With the rows of one."""

    def traits(self) -> Traits:
        return H200


@pytest.mark.parametrize(("op", "side"), SIDES)
def test_candidates_of_open_plans_are_right(cpu: Any, op: str, side: str) -> None:
    """On one curve whose kernels do not take a host's compiler long: few points, and no point at all."""
    chosen, group = resolve(side), cast(GroupName, op.removeprefix("msm-"))
    curve = next(name for name in (*chosen.curves, "bn254") if (name, group) not in LONG)
    backend = LikeAGpu(cpu, chosen)
    for n in (1, 150):
        for told, request in edge_multiplications.requests(bench.Case(op, curve, n)):
            assert wrong(request, backend.result(request)) == (None, 1), (n, told)
    nothing, _ = bench.blank(bench.Case(op, curve, 0))
    assert not backend.result(nothing).any()
    assert by_name(op).result_count(bench.Case(op, curve, 0).call) == 1
