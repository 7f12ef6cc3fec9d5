"""Records of runs: one .jsonl file a run, first a line about the machine, then one line a case with its raw samples.

Claims about speed in this project come from such files alone, so a record holds what is needed to judge it: the commit,
the GPU, the driver, the compiler, and every sample rather than a mean.
"""

from __future__ import annotations

import datetime
import json
import os
import platform
import statistics
import subprocess
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

from limbd.harness.textio import InputError

SCHEMA = 1

Record = dict[str, Any]


def commit_of_tree(given: str | None = None) -> str:
    """The commit that the code came from; "-dirty" behind it where files differ. given: for trees without history."""
    if given:
        return given
    root = Path(__file__).resolve().parents[1]
    try:
        head = _git(root, "rev-parse", "HEAD")
        return head + ("-dirty" if _git(root, "status", "--porcelain", "--untracked-files=no") else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def now() -> str:
    """Date and time of a record, in UTC."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def run_record(part: str, device: Record, commit: str | None = None) -> Record:
    """The first line of a file. part: kat, fuzz, bench, ...; device: what the backend says of itself."""
    return {
        "kind": "run",
        "schema": SCHEMA,
        "part": part,
        "date": now(),
        "commit": commit_of_tree(commit),
        "python": platform.python_version(),
        "packages": {p: _version(p) for p in ("cuda-bindings", "cuda-core", "nvidia-cuda-nvrtc", "numpy", "gmpy2")},
        "cpus": len(os.sched_getaffinity(0)),
        **device,
    }


class Journal:
    """An append-only .jsonl file; with resume, cases that it already holds are known and can be skipped."""

    def __init__(self, path: Path, head: Record, *, resume: bool = False) -> None:
        self.path = path
        self.commit = head["commit"]
        self.done: set[str] = set()
        if resume and path.exists():
            records = list(read(path))
            started = records[0]["commit"] if records else None
            if started != head["commit"]:
                raise ValueError(f"{path} was begun at commit {started}, this is {head['commit']}: start a new file")
            self.done = {r["case"] for r in records if "case" in r}
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(head) + "\n")

    def add(self, case: str, *, kind: str = "case", **values: Any) -> Record:
        """Append one case at once, so that a run that is cut off keeps what it has. Every line names the commit."""
        record = {"kind": kind, "case": case, "commit": self.commit, **values}
        with self.path.open("a") as file:
            file.write(json.dumps(record) + "\n")
        self.done.add(case)
        return record


def read(path: Path) -> Iterator[Record]:
    """Raises InputError with the file, and the line of what is no record: the last one of a run that was cut off."""
    return (record for _, record in numbered(path))


def numbered(path: Path) -> Iterator[tuple[int, Record]]:
    """The same with the number of the line that each record is."""
    try:
        with path.open(encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    yield number, _record(line, f"{path}, line {number}")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read {path}: {error}") from None


def _record(line: str, where: str) -> Record:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where}: no JSON: {error}") from None
    if not isinstance(record, dict):
        raise InputError(f"{where}: a record is a JSON object")
    return record


def summary(samples: list[float]) -> Record:
    """Median, least, 90th percentile and the spread between the quartiles, in the samples' unit."""
    ordered = sorted(samples)
    return {
        "median": statistics.median(ordered),
        "min": ordered[0],
        "p90": ordered[min(len(ordered) - 1, int(0.9 * len(ordered)))],
        "spread": spread(ordered),
    }


def spread(samples: list[float]) -> float:
    """The distance between the quartiles; 0 for a single sample."""
    if len(samples) < 2:
        return 0.0
    low, _, high = statistics.quantiles(samples, n=4, method="inclusive")
    return high - low


def _git(root: Path, *words: str) -> str:
    return subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True, check=True).stdout.strip()


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
