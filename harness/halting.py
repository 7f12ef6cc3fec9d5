"""What `limbd halt` does: check plans, measure one, write the index."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from rich.console import Console
from rich.table import Table

from limbd.harness import bench_view, halt, halt_run, plan_index, report
from limbd.harness.benching import measurable
from limbd.harness.plan_history import committed_records, dated, history_of
from limbd.harness.plans import CLOSED, FOLDER, Plan, all_plans, find
from limbd.worker.config import Config

# Which verdict a closed plan's state stands for.
STATE_OF = {halt.PROMOTE: "promoted", halt.HALT: "halted"}


def check(names: Iterable[str], folder: Path = FOLDER) -> bool:
    """Prints the verdicts on these plans, or all. True where each is decided and its state does not say otherwise."""
    plans = [find(name, folder) for name in names] or all_plans(folder)
    decided = [_check(plan) for plan in plans]  # every one is printed, whatever the first says
    return all(decided)


def verdict_on(plan: Plan) -> tuple[halt.Verdict, list[str]]:
    """The verdict from what is committed; and the result files that do not count because they are not."""
    records, uncommitted = committed_records(plan.results)
    commits = {str(record["commit"]) for record in halt.relevant(plan, records)}
    return halt.decide(plan, records, history_of(plan, filter(halt.is_commit, commits))), uncommitted


def run(
    name: str, config: Config, *, out: Path | None, commit: str | None, only: str, seconds: float, folder: Path = FOLDER
) -> bool:
    """Measures a plan. True where everything due was reached; the verdict of the samples is printed."""
    plan, console = find(name, folder), bench_view.console()
    if plan.state in CLOSED:
        _say(console, f"{plan.number} is {plan.state}; its code is in commit {plan.commit}: git checkout {plan.commit}")
        return False
    if plan.state == "superseded":
        _say(console, f"{plan.number} is superseded by {plan.successor}: limbd halt run {plan.successor}")
        return False
    tree = report.commit_of_tree(commit)
    dirty = tree.endswith("-dirty")
    path = (out or plan.results) / f"{plan.number}-{tree[:12]}{'-dirty' if dirty else ''}.jsonl"
    if not halt.is_commit(tree):
        _say(console, f"these samples will not count: the tree is {tree!r}, not a commit (see --commit)")
    with measurable(config) as backend:
        done = halt_run.run_plan(
            plan, backend, path, tree, seconds=seconds, only=only, say=lambda text: _say(console, text)
        )
    verdict = halt.judge(plan, dated(path))
    console.print(_table(verdict.factors))
    _say(console, f"{path}\nby themselves these samples say: {verdict}\nwhen they are committed: limbd halt check")
    return done


def write_index(folder: Path = FOLDER) -> None:
    print(plan_index.write(folder))


def _check(plan: Plan) -> bool:
    console = bench_view.console()
    if plan.state == "superseded":
        _say(console, f"{plan.number} superseded by {plan.successor}")
        return True
    verdict, uncommitted = verdict_on(plan)
    _say(console, f"{plan.number} {verdict}")
    for file in uncommitted:
        _say(console, f"     {plan.results.name}/{file} is not committed as it is, and does not count")
    if verdict.factors:
        console.print(_table(verdict.factors))
    expected = STATE_OF.get(verdict.word, "open")
    if plan.state in CLOSED and plan.state != expected:
        _say(console, f"{plan.number} says of itself {plan.state!r}, the samples say {expected!r}")
        return False
    return verdict.word != halt.OPEN


def _table(factors: Iterable[halt.Factor]) -> Table:
    table = Table("candidate", "case", *(("factor"), ("asked"), ("+-"), ("samples"), ""), box=None, pad_edge=False)
    for each in factors:
        threshold = "-" if each.case.threshold is None else f"{each.case.threshold:g}"
        word = "record" if each.case.threshold is None else "guard" if each.case.guard else "case"
        verdict = word if each.case.threshold is None else f"{word} {'passes' if each.passes else 'FAILS'}"
        shown = (f"{each.factor:.3f}", threshold, f"{each.spread:.3f}", str(each.samples), verdict)
        table.add_row(each.candidate, each.case.name, *shown)
    return table


def _say(console: Console, text: str) -> None:
    console.print(text, highlight=False, markup=False, soft_wrap=True)
