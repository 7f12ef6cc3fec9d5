"""The halt rule: every way in which a candidate must not be promoted, in real repositories; and the way in which it is."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from limbd.harness import halt, halting, plan_index
from limbd.harness.plans import Plan, find
from limbd.worker.config import Config

PLAN = """\
+++
title = "A kernel"
op = "mod-inv"
state = "open"
incumbent = "op:mod-inv"
candidate = "candidate:9001/fast"
sources = ["a paper"]

[halt]
metric = "kernel_ms"
min_samples = 4
correctness = ["edges", "fuzz"]

[[halt.cases]]
modulus = "secp256k1_fp"
n = [1000, 100000]
min_speedup = 2.0

[[halt.guards]]
modulus = "secp256k1_fp"
n = 10
min_guard_speedup = 0.97

[[sweep]]
modulus = "secp256k1_fp"
n = 7
+++

# Text
"""

FAST = "candidate:9001/fast"
NAMES = {n: f"secp256k1_fp n={n} against op:mod-inv" for n in (7, 10, 1000, 100000)}
CLEAN = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}


@dataclass
class Repository:
    """A git repository with one plan; samples are written as `halt run` writes them."""

    root: Path
    lines: list[dict[str, Any]] = field(default_factory=list)

    @property
    def plan_file(self) -> Path:
        return self.root / "plans" / "9001-a-kernel.md"

    @property
    def results(self) -> Path:
        return self.root / "plans" / "results" / "9001.jsonl"

    def git(self, *words: str) -> str:
        names = ("-c", "user.name=tester", "-c", "user.email=tester@example.org", "-c", "commit.gpgsign=false")
        done = subprocess.run(
            ["git", *names, *words], cwd=self.root, env=CLEAN, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    def write(self, text: str) -> None:
        self.plan_file.parent.mkdir(parents=True, exist_ok=True)
        self.plan_file.write_text(text)

    def commit(self) -> str:
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", "message")
        return self.git("rev-parse", "HEAD")

    def edit(self, old: str, new: str) -> None:
        text = self.plan_file.read_text()
        assert old in text
        self.write(text.replace(old, new, 1))

    def correctness(self, commit: str, run: str, ok: bool = True, **more: Any) -> None:
        self.lines.append({"kind": "correctness", "case": run, "run": run, "ok": ok, **_facts(commit), **more})

    def pair(self, commit: str, n: int, factor: float, samples: int = 4, **more: Any) -> None:
        """Samples by which the candidate is `factor` times as fast."""
        both = {"incumbent_samples": [2.0 * factor] * samples, "candidate_samples": [2.0] * samples}
        name = NAMES[n]
        record = {"kind": "pair", "case": name, "plan_case": name, "metric": "kernel_ms", "ok": True, **both}
        self.lines.append({**record, "incumbent_texts": ["aaaa"], **_facts(commit), **more})

    def everything(self, commit: str, factors: tuple[float, float, float] = (1.0, 2.5, 3.0)) -> None:
        """All that the rule asks for: factors at n = 10 (the guard), 1000 and 100000."""
        for run in ("edges", "fuzz"):
            self.correctness(commit, run)
        for n, factor in zip((10, 1000, 100000), factors, strict=True):
            self.pair(commit, n, factor)

    def save(self) -> None:
        """Writes and commits the samples."""
        self.results.parent.mkdir(exist_ok=True)
        head = {"kind": "run", "date": "2026-01-01T00:00:00+00:00", "commit": "", "backend": "cuda"}
        self.results.write_text("".join(json.dumps(line) + "\n" for line in (head, *self.lines)))
        self.commit()

    @property
    def plan(self) -> Plan:
        return find("9001", self.root / "plans")

    def verdict(self) -> str:
        return str(halting.verdict_on(self.plan)[0])


def _facts(commit: str) -> dict[str, Any]:
    return {
        "plan": "9001",
        "candidate": FAST,
        "commit": commit,
        "backend": "cuda",
        "date": "2026-01-02T00:00:00+00:00",
    }


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    made = Repository(tmp_path / "tree")
    made.root.mkdir()
    made.git("init", "-q")
    made.write(PLAN)
    made.commit()
    return made


@pytest.fixture
def measured(repository: Repository) -> Repository:
    """Samples that promote."""
    repository.everything(repository.commit())
    repository.save()
    return repository


# --- promoted ---


def test_promoted_by_its_worst_case(measured: Repository) -> None:
    assert measured.verdict() == f"promote: {FAST} 1x of 0.97x asked, worst guard case {NAMES[10]}"
    verdict, uncommitted = halting.verdict_on(measured.plan)
    assert (verdict.promoted, uncommitted) == ((FAST,), [])
    assert verdict.worst is not None and verdict.worst.factor == 2.5


def test_the_sweep_is_shown_and_does_not_judge(measured: Repository) -> None:
    measured.pair(measured.git("rev-parse", "HEAD~1"), 7, 0.01)
    measured.save()
    verdict, _ = halting.verdict_on(measured.plan)
    assert verdict.word == halt.PROMOTE
    assert [factor.factor for factor in verdict.factors if factor.case.threshold is None] == [0.01]


def test_the_text_may_change_after_the_samples(measured: Repository) -> None:
    measured.edit("# Text", "# Text\n\nIt was fast.")
    measured.edit('state = "open"', f'state = "promoted"\ncommit = "{"a" * 40}"')
    measured.commit()
    assert measured.verdict().startswith("promote")
    assert halting.check(["9001"], measured.root / "plans")


# --- halted ---


def test_a_wrong_candidate_is_halted(repository: Repository) -> None:
    commit = repository.commit()
    repository.correctness(commit, "edges", ok=False, failure="first at index 3")
    repository.save()
    assert repository.verdict() == f"halt: {FAST} is wrong: edges: first at index 3"


def test_a_candidate_that_was_wrong_while_it_was_measured_is_halted(measured: Repository) -> None:
    measured.lines[-1] = {**measured.lines[-1], "ok": False, "failure": "wrong at index 0 of 100000"}
    measured.save()
    assert measured.verdict() == f"halt: {FAST} is wrong: {NAMES[100000]}: wrong at index 0 of 100000"


@pytest.mark.parametrize(
    ("factors", "why"),
    [
        ((1.0, 9.0, 1.99), f"{FAST} 1.99x of 2x asked, worst case {NAMES[100000]}"),
        ((0.96, 9.0, 9.0), f"{FAST} 0.96x of 0.97x asked, worst guard case {NAMES[10]}"),
    ],
)
def test_a_slow_candidate_is_halted(repository: Repository, factors: tuple[float, float, float], why: str) -> None:
    repository.everything(repository.commit(), factors)
    repository.save()
    assert repository.verdict() == f"halt: {why}"


def test_of_several_runs_of_a_commit_the_worst_counts(measured: Repository) -> None:
    commit = measured.git("rev-parse", "HEAD~1")
    measured.pair(commit, 1000, 1.5)
    measured.pair(commit, 1000, 7.0, date="2026-01-03T00:00:00+00:00")
    measured.save()
    assert measured.verdict().startswith(f"halt: {FAST} 1.5x")


# --- open ---


def test_no_samples(repository: Repository) -> None:
    assert repository.verdict() == "open: missing: samples (limbd halt run 9001)"
    assert not halting.check(["9001"], repository.root / "plans")


Cut = Callable[[dict[str, Any]], dict[str, Any] | None]


@pytest.mark.parametrize(
    ("line", "cut", "why"),
    [
        (0, lambda line: None, "correctness run edges"),
        (3, lambda line: None, f"samples of {NAMES[1000]}"),
        (2, lambda line: None, f"samples of {NAMES[10]}"),
        (3, lambda line: {**line, "candidate_samples": [1.0] * 3}, f"1 of 4 samples of {NAMES[1000]}"),
        (3, lambda line: {**line, "incumbent_samples": []}, f"samples of {NAMES[1000]}"),
        (3, lambda line: {**line, "metric": "wall"}, f"samples of {NAMES[1000]}"),
        (3, lambda line: {**line, "backend": "cpu"}, f"samples of {NAMES[1000]}"),
        (3, lambda line: {**line, "plan": "9002"}, f"samples of {NAMES[1000]}"),
        (3, lambda line: {**line, "candidate": "op:mod-inv"}, f"samples of {NAMES[1000]}"),
        (3, lambda line: {**line, "plan_case": line["plan_case"] + " x2"}, f"samples of {NAMES[1000]}"),
    ],
)
def test_missing_samples(measured: Repository, line: int, cut: Cut, why: str) -> None:
    left = cut(measured.lines[line])
    measured.lines[line : line + 1] = [left] if left else []
    measured.save()
    assert measured.verdict() == f"open: missing: {FAST}: {why}"


def test_samples_of_an_older_commit_do_not_fill_gaps(measured: Repository) -> None:
    newer = measured.commit()
    measured.pair(newer, 1000, 9.0, date="2026-02-01T00:00:00+00:00")
    measured.save()
    assert measured.verdict().startswith("open: missing: ")


def test_samples_against_another_incumbent(measured: Repository) -> None:
    measured.edit('incumbent = "op:mod-inv"', 'incumbent = "op:mod-inv"\nincumbent_text = "bbbb"')
    measured.commit()
    assert "against the incumbent whose source is bbbb" in measured.verdict()
    measured.edit("bbbb", "aaaa")
    measured.commit()
    assert measured.verdict().startswith("promote")


def test_samples_of_a_tree_that_was_no_commit(repository: Repository) -> None:
    for name in (repository.commit() + "-dirty", "unknown", "--help"):
        repository.lines.clear()
        repository.everything(name)
        repository.save()
        assert repository.verdict() == f"open: missing: samples of a commit; the last ones are of {name!r}"


def test_samples_that_are_not_committed_do_not_count(measured: Repository, capsys: pytest.CaptureFixture[str]) -> None:
    measured.results.write_text(measured.results.read_text().replace("2.0", "1.0"))
    verdict, uncommitted = halting.verdict_on(measured.plan)
    assert (verdict.word, uncommitted) == (halt.OPEN, ["9001.jsonl"])
    halting.check(["9001"], measured.root / "plans")
    assert "results/9001.jsonl is not committed as it is" in capsys.readouterr().out
    measured.git("checkout", "-q", "--", ".")
    measured.results.rename(measured.results.with_name("9001-new.jsonl"))
    assert halting.verdict_on(measured.plan)[1] == ["9001-new.jsonl"]


# --- the rule before the samples ---


def test_an_edited_threshold(measured: Repository) -> None:
    measured.edit("min_speedup = 2.0", "min_speedup = 1.0")
    assert measured.verdict() == "open: missing: the rule was edited, and the edit is not committed"
    changed = measured.commit()
    assert (
        measured.verdict()
        == f"open: missing: a reason in [[threshold_changes]] for the rule's change in {changed[:12]}"
    )
    reason = '[[threshold_changes]]\ndate = 2026-01-03\nreason = "the incumbent is another one"\n\n[[sweep]]'
    measured.edit("[[sweep]]", reason)
    measured.commit()
    assert "which is no ancestor of the samples' commit" in measured.verdict()


def test_a_threshold_that_was_edited_and_put_back(measured: Repository) -> None:
    measured.edit("min_speedup = 2.0", "min_speedup = 1.0")
    measured.commit()
    measured.edit("min_speedup = 1.0", "min_speedup = 2.0")
    reasons = '[[threshold_changes]]\nreason = "one"\n\n[[threshold_changes]]\nreason = "two"\n\n[[sweep]]'
    measured.edit("[[sweep]]", reasons)
    measured.commit()
    assert "no ancestor" in measured.verdict()


def test_a_changed_threshold_with_a_reason_and_new_samples(measured: Repository) -> None:
    measured.edit("min_speedup = 2.0", "min_speedup = 1.0")
    measured.edit("[[sweep]]", '[[threshold_changes]]\nreason = "because"\n\n[[sweep]]')
    (measured.root / "plans" / "README.md").write_text("the index may change along")
    measured.everything(measured.commit(), (1.0, 1.2, 1.2))
    measured.lines[5:] = [{**line, "date": "2026-02-01T00:00:00+00:00"} for line in measured.lines[5:]]
    measured.save()
    assert measured.verdict().startswith("promote")


@pytest.mark.parametrize("other", ["kernel.cu", "plans/9002.txt"])
def test_a_threshold_changed_together_with_something_else(measured: Repository, other: str) -> None:
    measured.edit("min_speedup = 2.0", "min_speedup = 1.0")
    measured.edit("[[sweep]]", '[[threshold_changes]]\nreason = "because"\n\n[[sweep]]')
    (measured.root / other).write_text("a kernel")
    changed = measured.commit()
    assert f"a commit of its own for the rule's change in {changed[:12]}" in measured.verdict()


def test_samples_of_a_commit_before_the_plan(tmp_path: Path) -> None:
    repository = Repository(tmp_path)
    repository.git("init", "-q")
    before = repository.commit()
    repository.write(PLAN)
    repository.commit()
    repository.everything(before)
    repository.save()
    assert "no ancestor" in repository.verdict()


def test_a_shallow_clone(measured: Repository, tmp_path: Path) -> None:
    clone = Repository(tmp_path / "clone")
    measured.git("clone", "-q", "--depth", "1", f"file://{measured.root}", str(clone.root))
    assert clone.verdict().startswith("open: history missing: this checkout is shallow")
    clone.git("fetch", "-q", "--unshallow")
    assert clone.verdict().startswith("promote")


def test_no_history_at_all(measured: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bare = Repository(tmp_path / "unpacked")
    bare.write(PLAN)
    bare.results.parent.mkdir()
    bare.results.write_text(measured.results.read_text())
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    assert bare.verdict() == "open: history missing: this is no git checkout"
    Repository(tmp_path / "unpacked").git("init", "-q")
    assert bare.verdict() == "open: history missing: the plan is not in this checkout's history"
    monkeypatch.setenv("PATH", "")
    assert measured.verdict() == "open: history missing: this is no git checkout"


def test_samples_of_a_commit_that_is_not_here(repository: Repository) -> None:
    repository.everything("0123456789" * 4)
    repository.save()
    assert repository.verdict() == "open: history missing: the samples' commit 012345678901 is not in it"


def test_samples_of_another_branch(measured: Repository) -> None:
    """A clone of this branch would not have their commit."""
    measured.git("checkout", "-q", "-b", "other")
    (measured.root / "kernel.cu").write_text("an attempt")
    elsewhere = measured.commit()
    measured.git("checkout", "-q", "-")
    measured.lines.clear()
    measured.everything(elsewhere)
    measured.save()
    assert measured.verdict() == f"open: history missing: the samples' commit {elsewhere[:12]} is not in it"


# --- several candidates ---


@pytest.mark.parametrize(
    ("choose", "promoted"), [("best", ("candidate:9001/fast",)), ("each", ("candidate:9001/fast", "op:mod-inv-batch"))]
)
def test_several_candidates(tmp_path: Path, choose: str, promoted: tuple[str, ...]) -> None:
    repository = Repository(tmp_path)
    repository.git("init", "-q")
    several = f'["{FAST}", "op:mod-inv-batch", "candidate:9001/slow", "candidate:9001/wrong"]'
    repository.write(PLAN.replace(f'"{FAST}"', several).replace("[halt]", f'[halt]\nchoose = "{choose}"'))
    commit = repository.commit()
    factors = {FAST: 3.0, "op:mod-inv-batch": 2.5, "candidate:9001/slow": 1.5}
    for candidate, factor in factors.items():
        before = len(repository.lines)
        repository.everything(commit, (1.0, factor, factor))
        repository.lines[before:] = [{**line, "candidate": candidate} for line in repository.lines[before:]]
    repository.save()
    assert repository.verdict().startswith("open: missing: candidate:9001/wrong: correctness run edges")
    repository.correctness(commit, "edges", ok=False, failure="index 0", candidate="candidate:9001/wrong")
    repository.save()
    verdict, _ = halting.verdict_on(repository.plan)
    assert (verdict.word, verdict.promoted) == (halt.PROMOTE, promoted)
    assert "candidate:9001/slow 1.5x of 2x asked" in verdict.reason
    assert "candidate:9001/wrong is wrong" in verdict.reason


# --- closed plans ---


def close(repository: Repository, state: str) -> None:
    repository.edit('state = "open"', f'state = "{state}"\ncommit = "{"a" * 40}"')
    repository.commit()


def test_a_closed_plan_that_its_samples_contradict(measured: Repository, capsys: pytest.CaptureFixture[str]) -> None:
    close(measured, "halted")
    assert not halting.check(["9001"], measured.root / "plans")
    assert "9001 says of itself 'halted', the samples say 'promoted'" in capsys.readouterr().out


def test_run_of_a_closed_plan_names_the_commit(measured: Repository, capsys: pytest.CaptureFixture[str]) -> None:
    close(measured, "promoted")
    folder = measured.root / "plans"
    assert not halting.run("9001", Config(), out=None, commit=None, only="", seconds=1.0, folder=folder)
    assert f"git checkout {'a' * 40}" in capsys.readouterr().out


def test_a_superseded_plan_names_its_successor(measured: Repository, capsys: pytest.CaptureFixture[str]) -> None:
    measured.edit('state = "open"', 'state = "superseded"\nsuccessor = "9002"')
    assert halting.check(["9001"], measured.root / "plans")
    assert capsys.readouterr().out == "9001 superseded by 9002\n"


def test_the_index_has_state_factor_and_date(measured: Repository) -> None:
    row = plan_index.text(measured.root / "plans").splitlines()[-1]
    assert row == "| [9001 A kernel](9001-a-kernel.md) | mod-inv | open | 2.5 | 2 | 2026-01-02 |"
