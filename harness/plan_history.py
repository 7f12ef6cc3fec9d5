"""What git says about a plan: when its rule was written, and which samples are committed."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from pathlib import Path

from limbd.harness import report
from limbd.harness.halt import Change, History
from limbd.harness.plans import Plan, rule_of
from limbd.harness.report import Record

INDEX = "README.md"


def history_of(plan: Plan, commits: Iterable[str]) -> History:
    """The facts for limbd.harness.halt. commits: those that samples name."""
    folder, name = plan.path.resolve().parent, plan.path.name
    if _git(folder, "rev-parse", "--is-inside-work-tree") != "true":
        return History(missing="this is no git checkout")
    if _git(folder, "rev-parse", "--is-shallow-repository") != "false":
        return History(missing="this checkout is shallow (git fetch --unshallow)")
    if _git(folder, "ls-files", "--error-unmatch", "--", name) is None:
        return History(missing="the plan is not in this checkout's history")
    changes = _changes(folder, name)
    committed = _git(folder, "show", f"HEAD:./{name}")
    edited = committed is None or rule_of(committed) != plan.rule
    last = changes[-1].commit if changes else None
    return History(edited=edited, changes=changes, after={c: _is_ancestor(folder, last, c) for c in set(commits)})


def committed_records(folder: Path) -> tuple[list[Record], list[str]]:
    """The records of every file in a results folder that is committed as it is, each with its run's date; and the names
    of the files that are not, which do not count. Without git every file counts: there is no verdict then anyway."""
    status = (
        _git(folder, "status", "--porcelain", "-z", "--untracked-files=all", "--", ".") if folder.is_dir() else None
    )
    changed = {Path(entry[3:]).name for entry in (status or "").split("\0") if len(entry) > 3}
    files = sorted(folder.glob("*.jsonl"))
    counted = [record for file in files if file.name not in changed for record in dated(file)]
    return counted, [file.name for file in files if file.name in changed]


def dated(file: Path) -> list[Record]:
    """A file's records; the run's date and backend, which its first line has, on each."""
    records = list(report.read(file))
    if not records:
        return []
    head = {key: records[0].get(key) for key in ("date", "backend")}
    return [{**head, **record} for record in records]


def _changes(folder: Path, name: str) -> tuple[Change, ...]:
    """The commits after which the rule reads differently, oldest first."""
    listed = (_git(folder, "log", "--format=%H", "--reverse", "--topo-order", "--", name) or "").split()
    changes, before = [], ""
    for commit in listed:
        rule = rule_of(_git(folder, "show", f"{commit}:./{name}") or "")
        if rule != before:
            changes.append(Change(commit, _touches_only(folder, commit, name)))
        before = rule
    return tuple(changes)


def _touches_only(folder: Path, commit: str, name: str) -> bool:
    shown = _git(folder, "show", "--format=", "--name-only", "--relative", commit) or ""
    everything = _git(folder, "show", "--format=", "--name-only", commit) or ""
    inside = set(shown.split("\n"))
    return inside <= {name, INDEX, ""} and len(everything.split("\n")) == len(shown.split("\n"))


def _is_ancestor(folder: Path, change: str | None, commit: str) -> bool | None:
    """None where the commit is not in this history: unknown, or of another branch that a clone would lack."""
    if change is None or _git(folder, "merge-base", "--is-ancestor", commit, "HEAD") is None:
        return None
    return _git(folder, "merge-base", "--is-ancestor", change, commit) is not None


def _git(folder: Path, *words: str) -> str | None:
    """What git prints, without the last newline; None where it fails or is not installed."""
    try:
        done = subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True, check=False)
    except OSError:
        return None
    return done.stdout.rstrip("\n") if done.returncode == 0 else None
