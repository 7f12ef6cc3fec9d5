"""Plans of transforms: what a case asks for, correctness runs through a side's own kernels, long ones judged at places."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from limbd.harness import bench, exhaustive_transforms, halt, halt_run, kat, report, transforms
from limbd.harness.candidates import Candidate
from limbd.harness.plan_history import dated
from limbd.harness.plans import Plan, PlanError, parse
from limbd.harness.vectors import Vectors, load
from limbd.ops.base import LaunchPlan, Request, Traits
from limbd.ops.ntt import NTT, param_of
from limbd.ops.params.base import Field
from limbd.ops.params.fields import by_name
from limbd.ops.params.layout import to_ints
from limbd.ops.reference.ntt import result_at
from limbd.ops.transform_op import LOG_N
from limbd.ops.transform_shape import Order
from limbd.worker.device.base import Backend
from limbd.worker.device.reference import ReferenceBackend

PLAN = """\
+++
title = "Transforms"
op = "ntt"
state = "open"
incumbent = "op:ntt"
candidate = "candidate:9002/NAME"
sources = ["a test"]
[halt]
metric = "kernel_ms"
min_samples = 2
backend = "cpu"
correctness = ["kat", "edges", "fuzz", "exhaustive"]
[[halt.cases]]
modulus = "bn254_fr"
n = [8, 64]
min_speedup = 0.001
[[halt.guards]]
modulus = "bn254_fr"
n = 64
order = "nr"
back_to_back = 3
min_guard_speedup = 0.001
+++
"""

COMMIT = "0123456789" * 4


def shipped(request: Request, traits: Traits, options: Mapping[str, Any]) -> LaunchPlan:
    return NTT.plan(request, traits)


def of_bad_omega(request: Request, traits: Traits, options: Mapping[str, Any]) -> LaunchPlan:
    """Transforms of 64 elements in natural order by the inverse root: wrong but for the first result of each."""
    if request.n != 64 or request.param & ~LOG_N:
        return NTT.plan(request, traits)
    omega = pow(request.constants["omega"], -1, request.modulus)
    return NTT.plan(dataclasses.replace(request, constants={**request.constants, "omega": omega}), traits)


def wrong_when_measured(request: Request, traits: Traits, options: Mapping[str, Any]) -> LaunchPlan:
    return (of_bad_omega if traits.whole else shipped)(request, traits, options)


CANDIDATES = {"same": Candidate(shipped), "root": Candidate(of_bad_omega), "late": Candidate(wrong_when_measured)}


@pytest.fixture(autouse=True)
def declared(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("limbd.harness.candidates.plan_9002")
    vars(module)["CANDIDATES"] = CANDIDATES
    monkeypatch.setitem(sys.modules, module.__name__, module)


@pytest.fixture
def cpu(made_once: Callable[[str], Backend]) -> Any:
    return made_once("cpu")


def plan_for(name: str, text: str = PLAN) -> Plan:
    return parse(text.replace("NAME", name), Path("9002-transforms.md"))


def measured(plan: Plan, backend: Any, path: Path, only: str = "") -> tuple[list[report.Record], list[str]]:
    said: list[str] = []
    halt_run.run_plan(plan, backend, path, COMMIT, seconds=600.0, only=only, say=said.append)
    return dated(path), said


def test_a_case_says_size_and_order() -> None:
    plan = plan_for("same")
    assert [case.name for case in plan.cases] == [
        "bn254_fr n=8 against op:ntt",
        "bn254_fr n=64 against op:ntt",
        "bn254_fr n=64 nr x3 against op:ntt",
    ]


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('"nr"', '"rev"', "order is 'rev', not one of nn, nr, rn, rr"),
        ("n = 64\n", "n = 60\n", "n is no power of two"),
        ('op = "ntt"', 'op = "quotient"', "quotient has no order"),
        ('op = "ntt"', 'op = "nttt"', "op is 'nttt', which is none"),
    ],
)
def test_what_is_no_transform_is_told(old: str, new: str, told: str) -> None:
    with pytest.raises(PlanError) as refused:
        parse(PLAN.replace("NAME", "same").replace(old, new, 1), Path("9002-transforms.md"))
    assert told in str(refused.value)


def test_a_right_candidate_is_checked_and_measured(cpu: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every run that a rule can ask for; of few fields and sizes, each of which has kernels of its own to compile."""
    monkeypatch.setattr(halt_run, "TRANSFORM_FUZZ_ELEMENTS", 4000)
    monkeypatch.setattr(halt_run, "LARGEST_RECIPE", 11)
    monkeypatch.setattr(exhaustive_transforms, "fields", lambda: (field_named("toy_17"),))
    monkeypatch.setattr(exhaustive_transforms, "MOST_VECTORS", 17**2)
    monkeypatch.setattr(kat, "load", few)
    plan = plan_for("same")
    records, _ = measured(plan, cpu, tmp_path / "9002.jsonl")
    assert halt.judge(plan, records).word == halt.PROMOTE
    runs = {record["run"]: record["compared"] for record in records if record["kind"] == "correctness"}
    assert list(runs) == ["kat", "edges", "fuzz", "exhaustive"]
    # Both sizes and both orders, of hard elements and of equal ones.
    assert runs["edges"] == 2 * (8 + 64 + 64)
    assert runs["kat"] > 4 << halt_run.LARGEST_RECIPE and runs["fuzz"] >= 4000
    assert runs["exhaustive"] == 16 * (17 + 2 * 17**2)
    pairs = [record for record in records if record["kind"] == "pair"]
    assert [record["param"] for record in pairs] == [3, 6, param_of(6, order=Order.NR)]
    assert all(record["checked"] == [record["n"] * record["input_sets"]] * 2 for record in pairs)


def test_a_wrong_candidate_is_found_by_edges(cpu: Any, tmp_path: Path) -> None:
    plan = plan_for("root", PLAN.replace('["kat", "edges", "fuzz", "exhaustive"]', '["edges"]'))
    records, said = measured(plan, cpu, tmp_path / "9002.jsonl")
    assert [record.get("ok") for record in records] == [None, False]
    assert "param=0x6" in records[1]["failure"] and "first at index 1" in records[1]["failure"]
    assert said[-1] == "candidate:9002/root is wrong: it is not measured"


def test_a_candidate_that_is_wrong_only_when_it_is_measured(cpu: Any, tmp_path: Path) -> None:
    plan = plan_for("late", PLAN.replace('["kat", "edges", "fuzz", "exhaustive"]', '["edges"]'))
    records, _ = measured(plan, cpu, tmp_path / "9002.jsonl")
    assert [record.get("ok") for record in records] == [None, True, True, False]
    assert halt.judge(plan, records).word == halt.HALT


def test_two_candidates_share_the_inputs_of_a_case(cpu: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seen: list[str] = []
    made = bench.request_of

    def request_of(case: bench.Case, seed: int) -> Request:
        seen.append(f"{case.name} {seed}")
        return made(case, seed)

    monkeypatch.setattr(bench, "request_of", request_of)
    text = PLAN.replace('["kat", "edges", "fuzz", "exhaustive"]', '["edges"]')
    plan = plan_for("same", text.replace('"candidate:9002/NAME"', '["candidate:9002/same", "op:ntt"]', 1))
    halt_run._requests.cache_clear()
    records, _ = measured(plan, cpu, tmp_path / "9002.jsonl", only="n=")
    assert len([record for record in records if record["kind"] == "pair"]) == 6
    assert len(seen) == len(set(seen)) == 3 * bench.ROTATION_SETS


def test_long_transforms_have_two_input_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(halt_run, "LARGE_TRANSFORM", 64)
    halt_run._requests.cache_clear()
    assert len(halt_run._requests(bench.Case("ntt", "bn254_fr", 64, param=6))) == halt_run.LARGE_SETS
    assert len(halt_run._requests(bench.Case("ntt", "bn254_fr", 32, param=5))) == bench.ROTATION_SETS
    halt_run._requests.cache_clear()


def test_places_of_a_long_transform_are_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    places: list[int] = []

    def watched(request: Request, x: Any, place: int) -> Any:
        places.append(place)
        return result_at(request, x, place)

    monkeypatch.setattr("limbd.harness.transforms.result_at", watched)
    request = transforms.edge_request("ntt", field_named("bn254_fr"), param_of(6, order=Order.NR))
    result = halt_run.Substituted(ReferenceBackend(), Candidate(shipped)).result(request)
    for _ in range(2):
        assert transforms.wrong(request, result, most=32) == (None, transforms.SPOTS)
    assert len(places) == transforms.SPOTS
    result[63] = 0
    assert transforms.wrong(request, result, most=32)[0] == 63


def test_hard_elements_are_below_the_modulus() -> None:
    field = field_named("bls12_381_fr")
    values = to_ints(transforms.edge_request("ntt", field, 8).arrays["x"])
    assert {0, 1, field.modulus - 1} < set(values) and max(values) < field.modulus
    assert to_ints(transforms.equal_request(field, 3).arrays["x"]) == [field.modulus - 1] * 8


def few(op: str) -> Iterator[Vectors]:
    return (batch for batch in load(op) if batch.modulus == field_named("bn254_fr").modulus)


def field_named(name: str) -> Field:
    found = by_name(name)
    assert found
    return found
