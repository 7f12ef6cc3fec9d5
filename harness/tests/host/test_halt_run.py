"""Measuring a plan for real, on the CPU: what is checked first, how the sides take turns, what goes into the records."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from limbd.harness import bench, halt, halt_run, report
from limbd.harness.candidates import Candidate, resolve
from limbd.harness.plan_history import dated
from limbd.harness.plans import Plan, parse
from limbd.harness.textio import InputError
from limbd.kernels.source import ROOT, Sources
from limbd.ops import by_name
from limbd.ops.base import LaunchPlan, Member, Request, Struct, Traits, Unit
from limbd.worker.device.base import Backend

PLAN = """\
+++
title = "Inversion"
op = "mod-inv"
state = "open"
incumbent = "op:mod-inv"
candidate = "candidate:9001/NAME"
sources = ["a test"]
[halt]
metric = "kernel_ms"
min_samples = 3
backend = "cpu"
correctness = ["edges", "exhaustive"]
[[halt.cases]]
modulus = "secp256k1_fp"
n = [40, 300]
min_speedup = 0.001
[[sweep]]
modulus = "f"
n = 5
back_to_back = 4
samples = 2
inputs = "ones"
+++
"""

COMMIT = "0123456789" * 4
MOD_INV = by_name("mod-inv")
Make = Callable[[Request, Traits, Mapping[str, Any]], LaunchPlan]


def shipped(request: Request, traits: Traits, options: Mapping[str, Any]) -> LaunchPlan:
    return MOD_INV.plan(request, traits)


def last_one_left_out(request: Request, traits: Traits, options: Mapping[str, Any]) -> LaunchPlan:
    plan = MOD_INV.plan(request, traits)
    (piece,) = plan.pieces
    launch = dataclasses.replace(piece.launches[0], values={**piece.launches[0].values, "n": request.n - 1})
    return dataclasses.replace(plan, pieces=(dataclasses.replace(piece, launches=(launch,)),))


def wrong_when_measured(request: Request, traits: Traits, options: Mapping[str, Any]) -> LaunchPlan:
    return (last_one_left_out if traits.whole and request.n == 300 else shipped)(request, traits, options)


def zeros(request: Request, result: memoryview, options: Mapping[str, Any]) -> None:
    np.frombuffer(result, np.uint8)[:] = 0


CANDIDATES = {
    "same": Candidate(shipped),
    "short": Candidate(last_one_left_out),
    "late": Candidate(wrong_when_measured),
    "hard": Candidate(shipped, hard=lambda modulus: {"x": [1, modulus - 1, 2**192]}),
    "zeros": Candidate(shipped, reference=zeros),
}


@pytest.fixture(autouse=True)
def declared(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("limbd.harness.candidates.plan_9001")
    vars(module)["CANDIDATES"] = CANDIDATES
    monkeypatch.setitem(sys.modules, module.__name__, module)


@pytest.fixture
def cpu(made_once: Callable[[str], Backend]) -> Any:
    return made_once("cpu")


def plan_for(name: str, text: str = PLAN) -> Plan:
    return parse(text.replace("NAME", name), Path("9001-inversion.md"))


def measured(plan: Plan, cpu: Any, path: Path, **more: Any) -> tuple[bool, list[report.Record], list[str]]:
    said: list[str] = []
    options = {"seconds": 600.0, "only": "", **more}
    done = halt_run.run_plan(plan, cpu, path, COMMIT, say=said.append, **options)
    return done, dated(path), said


def test_a_right_candidate_is_measured(cpu: Any, tmp_path: Path) -> None:
    plan = plan_for("same")
    done, records, said = measured(plan, cpu, tmp_path / "9001.jsonl")
    assert done
    assert [record["kind"] for record in records] == ["run", "correctness", "correctness", "pair", "pair", "pair"]
    assert halt.judge(plan, records).word == halt.PROMOTE
    small, _, sweep = records[3:]
    assert (small["n"], small["commit"], small["backend"]) == (40, COMMIT, "cpu")
    assert len(small["incumbent_samples"]) == len(small["candidate_samples"]) == 3
    assert small["checked"] == [40 * small["input_sets"]] * 2
    assert small["incumbent_texts"] == small["candidate_texts"]
    assert small["candidate_plan"]["launches"][0]["kernel"] == "mod_inv_odd"
    assert (len(sweep["candidate_samples"]), sweep["back_to_back"], sweep["inputs"]) == (2, 4, "ones")
    assert len(said) == 5


def test_what_is_done_is_not_done_again(cpu: Any, tmp_path: Path) -> None:
    plan, path = plan_for("same"), tmp_path / "9001.jsonl"
    assert not measured(plan, cpu, path, seconds=-1.0)[0]
    assert measured(plan, cpu, path, only="n=40")[0]
    first = report.read(path)
    assert halt.judge(plan, dated(path)).word == halt.OPEN
    done, records, _ = measured(plan, cpu, path)
    assert done and len(records) == 6
    assert records[1]["case"] == next(r for r in first if "case" in r)["case"]
    assert measured(plan, cpu, path)[1] == records


def test_only_what_is_asked_for_is_done(cpu: Any, tmp_path: Path) -> None:
    done, records, _ = measured(plan_for("same"), cpu, tmp_path / "9001.jsonl", only="kat,edges")
    assert done and {record["kind"] for record in records} == {"run", "correctness"}
    with pytest.raises(InputError, match="no case with that in its name"):
        measured(plan_for("same"), cpu, tmp_path / "none.jsonl", only="zzz")


def test_a_wrong_candidate_is_not_measured(cpu: Any, tmp_path: Path) -> None:
    plan, path = plan_for("short"), tmp_path / "9001.jsonl"
    for _ in range(2):
        _, records, said = measured(plan, cpu, path)
        assert [record.get("ok") for record in records] == [None, False]
        assert halt.judge(plan, records).word == halt.HALT
        assert said[-1] == "candidate:9001/short is wrong: it is not measured"


def test_a_candidate_that_is_wrong_only_when_it_is_measured(cpu: Any, tmp_path: Path) -> None:
    plan = plan_for("late")
    _, records, _ = measured(plan, cpu, tmp_path / "9001.jsonl")
    assert [record.get("ok") for record in records] == [None, True, True, True, False]
    assert "wrong at index 299 of 300" in records[-1]["failure"]
    assert halt.judge(plan, records).word == halt.HALT


def test_a_wrong_incumbent_is_an_error_and_no_verdict(cpu: Any, tmp_path: Path) -> None:
    plan = plan_for("same", PLAN.replace('"op:mod-inv"', '"candidate:9001/short"', 1))
    with pytest.raises(bench.WrongResult):
        measured(plan, cpu, tmp_path / "9001.jsonl")


def test_operands_and_reference_of_its_own(cpu: Any, tmp_path: Path) -> None:
    _, plain, _ = measured(plan_for("same"), cpu, tmp_path / "same.jsonl", only="edges")
    _, more, _ = measured(plan_for("hard"), cpu, tmp_path / "hard.jsonl", only="edges")
    assert more[1]["compared"] == plain[1]["compared"] + 2 * 3
    _, records, _ = measured(plan_for("zeros"), cpu, tmp_path / "zeros.jsonl", only="edges")
    assert records[1]["ok"] is False


def test_the_sides_take_turns(cpu: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []

    def named(name: str) -> Candidate:
        def plan(request: Request, traits: Traits, options: Mapping[str, Any]) -> LaunchPlan:
            made = shipped(request, traits, options)
            plans[id(made)] = name
            kept.append(made)
            return made

        return Candidate(plan)

    plans: dict[int, str] = {}
    kept: list[LaunchPlan] = []
    run = cpu.run

    def watched(request: Request, plan: LaunchPlan, result: memoryview) -> Any:
        order.append(plans[id(plan)])
        return run(request, plan, result)

    monkeypatch.setattr(cpu, "run", watched)
    plan = plan_for("same")
    halt_run.measure_pair(plan, plan.cases[0], cpu, named("A"), named("B"))
    assert "".join(order) == "AB" * (bench.ROTATION_SETS + plan.min_samples)


def test_sides_that_are_not_there() -> None:
    with pytest.raises(InputError, match="declares same, short"):
        resolve("candidate:9001/fast")
    with pytest.raises(InputError, match=r"there is no harness/candidates/plan_9999\.py"):
        resolve("candidate:9999/fast")
    request = bench.request_of(bench.Case("mod-mul", "ff", 3), 1)
    traits = Traits("cuda", "sm_90", 132, 1 << 30)
    with pytest.raises(InputError, match="takes x, not a, b"):
        resolve("op:mod-inv").plan(request, traits, {})
    with pytest.raises(InputError, match="takes no options"):
        resolve("op:mod-mul").plan(request, traits, {"rounds": 2})


def test_kernels_of_candidates_have_a_folder_of_their_own(
    make_backend: Callable[[str, Sources | None], Any], tmp_path: Path
) -> None:
    """A Unit named "candidate/9001/copy" is compiled from that file."""
    folder = tmp_path / "candidate" / "9001"
    folder.mkdir(parents=True)
    (folder / "copy.cu").write_text(
        '#include "base/element.cuh"\n#include "unit.cuh"\n'
        'extern "C" __global__ void copy(const copy_args args) {\n'
        "    const uint64_t index = element::own_index();\n"
        "    if (index < args.n) args.out[index] = args.x[index];\n}\n"
    )
    struct = Struct("copy_args", (Member("x", "in"), Member("out", "out"), Member("n", "u64")))
    sources = Sources((tmp_path, ROOT))
    assert sources.cuda("candidate/9001/copy", "").kernels == ("copy",)
    assert make_backend("cpu", sources).image(Unit("candidate/9001/copy", (struct,))).startswith(b"\x7fELF")
