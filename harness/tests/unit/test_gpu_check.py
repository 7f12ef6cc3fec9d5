"""What gpu_check asks for: which sanitizer cases belong to the ops that were asked for."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, cast

import pytest

from limbd.harness import bench, bench_bases, gpu_check, report, sanitize_cases
from limbd.ops import OPS
from limbd.ops.status import ServiceError, Status
from limbd.worker.device.null import NullBackend


@pytest.mark.parametrize(
    ("ops", "alone"),
    [
        ([], None),
        (["ntt"], "transforms"),
        (["ntt", "quotient"], "transforms"),
        (["msm-g1"], "multiplications"),
        (["msm-g2", "msm-g1"], "multiplications"),
        (["ntt", "msm-g1"], None),
        (["mod-mul"], None),
    ],
)
def test_cases_of_the_ops_alone(ops: list[str], alone: str | None) -> None:
    check = gpu_check.Check(argparse.Namespace(ops=ops), cast(Any, None), 0.0)
    assert check.ops == (ops or [op.name for op in OPS])
    assert check.alone == alone and (alone is None or alone in sanitize_cases.ALONE)


def test_shares_are_all_cases_once() -> None:
    parts = [list(sanitize_cases.Share(i, 3).take(range(10))) for i in range(3)]
    assert sorted(case for part in parts for case in part) == list(range(10))


def test_every_part_is_known(tmp_path: Path) -> None:
    assert list(gpu_check.PARTS) == ["kat", "fuzz", "worker", "bench", "sanitize"]
    options = gpu_check._parser().parse_args(["--only", "bench", "--ops", "msm-g1", "--out", str(tmp_path)])
    assert options.ops == ["msm-g1"]


BASES = "plain bases,precomputed bases"


def benched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *words: str, wrong: str = "") -> tuple[list[str], int]:
    """Names of the cases that are measured, and failures."""
    names: list[str] = []

    def run_case(backend: Any, case: bench.Case) -> report.Record:
        names.append(case.name)
        if case.name == wrong:
            raise ServiceError(Status.OUT_OF_DEVICE_MEMORY, "full")
        return {"median": 1.0, "rate_g": 1.0}

    monkeypatch.setattr(bench, "run_case", run_case)
    monkeypatch.setattr(gpu_check.Check, "backend", lambda self: NullBackend())
    options = gpu_check._parser().parse_args(["--only", "bench", *words])
    journal = report.Journal(tmp_path / "bench.jsonl", {"commit": "a"}, resume=True)
    check = gpu_check.Check(options, journal, float("inf"))
    gpu_check.check_bench(check)
    return names, check.failures


def test_bases_that_stay_can_be_chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names, _ = benched(tmp_path, monkeypatch, "--ops", "msm-g1", "--match", BASES)
    assert len(names) == 2 * 7 * 2 + 6 + 2 and not any("msm-g2" in name or "n=16777216" in name for name in names)
    assert all("bases" in name for name in names)
    longer, _ = benched(tmp_path, monkeypatch, "--ops", "msm-g1", "--match", BASES, "--long")
    assert longer == [f"msm-g1 {c} n=16777216 {k} bases" for c in ("bn254", "bls12_381") for k in bench_bases.KINDS]


def test_what_does_not_fit_is_told_and_ends_the_benchmarks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = "msm-g2 bn254 n=1024 precomputed bases"
    words = ("--ops", "msm-g2", "--match", BASES)
    names, failures = benched(tmp_path, monkeypatch, *words, wrong=wrong)
    assert names[-1] == wrong and failures == 1
    assert [r.get("failure") for r in report.read(tmp_path / "bench.jsonl")][-1] == "OUT_OF_DEVICE_MEMORY: full"
