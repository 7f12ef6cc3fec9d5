"""Front matter: what is read from a plan, and what is refused with a clear message; the index in step with the plans."""

from __future__ import annotations

from pathlib import Path

import pytest

from limbd.harness import plan_index
from limbd.harness.plans import FOLDER, PlanError, all_plans, find, parse, rule_of

GOOD = """\
+++
title = "A kernel"
op = "mod-inv"
state = "open"
incumbent = "op:mod-inv"
candidate = ["candidate:9001/fast", "candidate:9001/small"]
sources = ["a paper"]

[halt]
metric = "kernel_ms"
min_samples = 5
correctness = ["edges"]

[[halt.cases]]
modulus = "secp256k1_fp"
n = [1000, 100000]
min_speedup = 2

[[halt.guards]]
modulus = "ff"
n = 1
back_to_back = 8
min_guard_speedup = 0.97
candidate = "candidate:9001/small"
options = { rounds = 3 }

[[sweep]]
modulus = "ff"
n = 7
samples = 2

[[sweep]]
modulus = "ff"
n = 7
samples = 2
inputs = "powers-of-two"
candidate = ["candidate:9001/small"]
+++

# Text
"""

PATH = Path("9001-a-kernel.md")


def test_a_plan_is_read() -> None:
    plan = parse(GOOD, PATH)
    assert (plan.number, plan.op, plan.state, plan.choose, plan.backend) == ("9001", "mod-inv", "open", "best", "cuda")
    fast, small = plan.candidates
    assert [(c.n, c.threshold, c.samples) for c in plan.cases_of(fast)] == [(1000, 2, 5), (100000, 2, 5), (7, None, 2)]
    guard, _, structured = plan.cases_of(small)[2:]
    assert (structured.inputs, structured.name) == ("powers-of-two", "ff n=7 powers-of-two against op:mod-inv")
    assert (guard.guard, guard.threshold, guard.options) == (True, 0.97, (("rounds", 3),))
    assert guard.name == "ff n=1 x8 rounds=3 against op:mod-inv"
    assert len({case.name for case in plan.cases}) == 5


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("+++\ntitle", "title", "two lines '+++'"),
        ('title = "A kernel"', "title = A kernel", "front matter: "),
        ('title = "A kernel"\n', "", "title is missing"),
        ('op = "mod-inv"', "op = 5", "op is 5, not a text"),
        ('"open"', '"done"', "state is 'done', not one of open, promoted, halted, superseded"),
        ('"open"', '"halted"', "names the commit"),
        ('"open"', '"superseded"', "successor"),
        ('incumbent = "op:mod-inv"', 'incumbent = "mod-inv"', "not op:NAME or candidate:NNNN/NAME"),
        ("candidate:9001/fast", "fast", "not op:NAME or candidate:NNNN/NAME"),
        ("[halt]", "[halt.rule]", "[halt]: min_samples is missing"),
        ('"kernel_ms"', '"wall"', "metric is 'wall'"),
        ("min_samples = 5\n", "", "[halt]: min_samples is missing"),
        ("min_samples = 5", "min_samples = 0", "min_samples is 0"),
        ("min_samples = 5", "min_samples = true", "min_samples is True"),
        ('["edges"]', '["egdes"]', "'egdes'"),
        ('["edges"]', "[]", "correctness is a list of at least one text"),
        ("min_speedup = 2", "min_speed = 2", "[[halt.cases]] number 1: min_speedup is missing"),
        ("min_speedup = 2", 'min_speedup = "2"', "min_speedup is '2', not a number"),
        ("min_speedup = 2", "min_speedup = 2\nspeed = 1", "unknown key 'speed'"),
        ("min_speedup = 2", "min_speedup = 2\nsamples = 1", "unknown key 'samples'"),
        ("min_guard_speedup = 0.97", "min_speedup = 0.97", "[[halt.guards]] number 1: min_guard_speedup is missing"),
        ("[1000, 100000]", "[1000, 1e5]", "not whole numbers above 0"),
        ("[1000, 100000]", "[1000, 1000]", "stands there twice"),
        ('"secp256k1_fp"', '"secp257"', "neither a field's name nor hexadecimal"),
        ('candidate = "candidate:9001/small"', 'candidate = "candidate:9001/tiny"', "not among the plan's candidates"),
        (
            "n = [1000, 100000]",
            'n = 9\ncandidate = "candidate:9001/fast"',
            "no case that judges 'candidate:9001/small'",
        ),
        ('["candidate:9001/small"]', '["candidate:9001/small", "tiny"]', "candidate is 'tiny', not op:NAME"),
        ('"powers-of-two"', '"powers"', "inputs is 'powers', not one of uniform, ones, powers-of-two"),
        ("rounds = 3", "rounds = [3]", "options.rounds"),
        ("[[sweep]]", "[[sweeps]]", "unknown key 'sweeps'"),
    ],
)
def test_what_is_wrong_is_told(old: str, new: str, told: str) -> None:
    assert old in GOOD
    with pytest.raises(PlanError) as refused:
        parse(GOOD.replace(old, new, 1), PATH)
    assert told in str(refused.value)
    assert str(refused.value).startswith("9001-a-kernel.md")


def test_the_rule_is_the_halt_table_alone() -> None:
    rule = rule_of(GOOD)
    assert rule == rule_of(GOOD.replace("min_samples = 5", "min_samples  =  5  # enough").replace("# Text", "# Other"))
    assert rule == rule_of(GOOD.replace('state = "open"', 'state = "superseded"'))
    assert rule != rule_of(GOOD.replace("0.97", "0.96"))
    assert rule_of("no front matter") == ""


def test_plans_are_found(tmp_path: Path) -> None:
    (tmp_path / "9001-a-kernel.md").write_text(GOOD)
    for name in ("9001", "9001-a-kernel", str(tmp_path / "9001-a-kernel.md")):
        assert find(name, tmp_path).number == "9001"
    with pytest.raises(PlanError, match="there is no plan '7'"):
        find("7", tmp_path)
    (tmp_path / "9001-b.md").write_text(GOOD)
    with pytest.raises(PlanError, match="two plans have the number 9001"):
        all_plans(tmp_path)


def test_the_plans_of_the_project_are_sound() -> None:
    plans = all_plans()
    assert [plan.number for plan in plans] == [f"{i + 1:04}" for i in range(len(plans))]
    assert len(plans) >= 4


def test_the_index_is_in_step() -> None:
    """`limbd halt index` writes it."""
    assert (FOLDER / "README.md").read_text() == plan_index.text(FOLDER)
