"""Benchmarks of bases that stay on a device: what is measured, what is told of it, and that wrong sums are seen."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from limbd.harness import bench, bench_bases, bench_cases, bench_multiplications, bench_view, figures, msm_plot, report
from limbd.harness.demo import PLAIN_WIDTH
from limbd.harness.inputs import UNIFORM
from limbd.harness.textio import InputError
from limbd.ops.base import Request
from limbd.ops.params import curves
from limbd.ops.status import ServiceError
from limbd.worker.device.base import Outcome
from limbd.worker.device.null import NullBackend
from limbd.worker.device.reference import ReferenceBackend

SMALL = bench.Case("msm-g1", "bn254", 20, samples=3, bases=bench_bases.PLAIN)


class Spanned(ReferenceBackend):
    """With events of a device; wrong after `good` answers to requests of bases, which are the ones with so many points."""

    def __init__(self, good: int = 1000) -> None:
        self.good = good
        self.requests: list[tuple[int, int]] = []  # address of the scalars, 1 where the request is of kept bases
        self.registered: Counter[int] = Counter()
        self.forgotten: list[str] = []

    def register(self, memory: memoryview) -> None:
        self.registered[_address(memory)] += 1

    def unregister(self, memory: memoryview) -> None:
        self.registered[_address(memory)] -= 1

    def forget(self, key: str) -> None:
        self.forgotten.append(key)

    def run(self, request: Request, plan: Any, result: memoryview) -> Outcome:
        outcome = super().run(request, plan, result)
        kept = bool(plan.tables)
        self.requests.append((_address(request.arrays["scalars"].data), kept))
        if kept and len([1 for _, each in self.requests if each]) > self.good:
            np.frombuffer(result, np.uint8)[-1] ^= 1
        return dataclasses.replace(outcome, span_ms=0.25)


def _address(memory: memoryview) -> int:
    return int(np.frombuffer(memory, np.uint8).__array_interface__["data"][0])


@pytest.mark.parametrize("inputs", [UNIFORM, *bench_multiplications.KINDS])
@pytest.mark.parametrize("vectors", [1, 3])
def test_a_sample_is_a_call_by_the_devices_events(inputs: str, vectors: int) -> None:
    backend = Spanned()
    case = dataclasses.replace(SMALL, n=20 * vectors, param=(vectors - 1) << 16, inputs=inputs)
    found = bench.run_case(backend, case)
    assert found["metric"] == "span_ms" and found["samples"] == [0.25] * 3 and found["span"] == bench_bases.EVENTS
    assert len(found["host_ms"]) == len(found["kernel_ms"]) == len(found["h2d_ms"]) == 3
    assert found["checked"] == 2 * vectors and found["median"] == 0.25 and not found["held"]
    memory = found["memory"]
    assert memory["bases"] == sum(t.nbytes for t in _plan(case).tables) < memory["bases_making"]
    assert memory["copied"] == 32 * 20 * vectors + 64 * vectors and memory["scratch"] > 0
    assert found["making_ms"] > 0 and found["checked_ms"] > 0 and found["tuning"]["width"] > 1
    # Two calls that make the bases, then warm-up and samples, from two places by turns that are pinned meanwhile.
    addresses = [address for address, kept in backend.requests if kept]
    assert len(addresses) == 2 + bench.WARMUP + 3 and len(set(addresses)) == 2
    assert addresses[0] != addresses[1] and addresses[::2] == [addresses[0]] * len(addresses[::2])
    assert set(backend.registered.values()) == {0} and min(addresses) in backend.registered
    assert len(backend.forgotten) == 2


def _plan(case: bench.Case) -> Any:
    curve = case.curve
    assert curve
    count = case.n // ((case.param >> 16) + 1)
    return bench_bases.Kept(ReferenceBackend(), curve, "g1", count, 1, UNIFORM, case.bases).plan


@pytest.mark.parametrize(("op", "curve"), [("msm-g1", "bls12_381"), ("msm-g2", "toy_7_13")])
@pytest.mark.parametrize("kind", bench_bases.KINDS)
def test_without_events_the_hosts_clock_is_told(op: str, curve: str, kind: str) -> None:
    found = bench.run_case(ReferenceBackend(), bench.Case(op, curve, 5, samples=2, bases=kind))
    assert found["span"] == bench_bases.HOST_CLOCK and found["samples"] == found["host_ms"]
    assert found["bases"] == kind and len(found["samples"]) == 2


@pytest.mark.parametrize("good", [0, 1, 2, 5, 9])
def test_a_wrong_sum_is_seen_whichever_it_is(good: int) -> None:
    backend = Spanned(good)
    with pytest.raises(bench.WrongResult, match="n=20 plain bases: not the sum"):
        bench.run_case(backend, SMALL)
    assert set(backend.registered.values()) == {0} and len(backend.forgotten) == 2
    bench.run_case(Spanned(2 + bench.WARMUP + 3), SMALL)


def test_a_backend_that_computes_nothing_is_no_answer() -> None:
    with pytest.raises(ServiceError, match="self-test"):
        bench_bases.Kept(NullBackend(), curves.by_name("bn254"), "g1", 3, 1, UNIFORM, "plain")  # type: ignore[arg-type]


def test_points_are_tiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """More points than different ones, not a multiple of them."""
    monkeypatch.setattr(bench_bases, "DISTINCT", 8)
    found = bench.run_case(ReferenceBackend(), bench.Case("msm-g1", "bn254", 3 * 21, 2, param=2 << 16, bases="plain"))
    assert found["checked"] == 6
    curve = curves.by_name("bn254")
    assert curve and len(bench_bases.chain(curve, "g1", 8)[0].points) == 8


def test_what_is_measured() -> None:
    """The sizes and kinds that the speed claims are of; the longest have to be asked for."""
    cases = [case for case in bench_cases.CASES if case.bases]
    names = [case.name for case in (*bench_cases.CASES, *bench_cases.LONG_CASES)]
    assert len(set(names)) == len(names)
    usual = {(c.op, c.modulus, c.n, c.bases) for c in cases if c.inputs == UNIFORM and not c.param}
    assert usual == {
        (f"msm-{group}", curve, 1 << k, kind)
        for curve in ("bn254", "bls12_381")
        for group in ("g1", "g2")
        for k in range(10, 23, 2)
        for kind in ("plain", "precomputed")
    }
    other = {(c.op, c.modulus, c.n, c.inputs, c.bases, c.param) for c in cases if c.inputs != UNIFORM or c.param}
    skewed = {("msm-g1", "bn254", 1 << k, kind, "plain", 0) for k in (16, 18, 20) for kind in ("skew", "witness")}
    vectors = {("msm-g1", "bn254", 16 << 12, UNIFORM, kind, 15 << 16) for kind in ("plain", "precomputed")}
    assert other == skewed | vectors
    assert {(c.op, c.modulus, c.n) for c in bench_cases.LONG_CASES} == {
        ("msm-g1", curve, 1 << 24) for curve in ("bn254", "bls12_381")
    }
    assert {case.samples for case in cases} == {bench.SAMPLES, bench.LARGE_SAMPLES}
    with pytest.raises(InputError, match="mod-mul has no bases"):
        bench.cases_of("mod-mul", ["7"], [8], 2, bases="plain")
    (case,) = bench.cases_of("msm-g1", ["bn254"], [8], 2, bases="precomputed")
    assert case.name == "msm-g1 bn254 n=8 precomputed bases"


def test_kinds_of_bases_are_rows_of_their_own() -> None:
    console = Console(width=PLAIN_WIDTH)
    with console.capture() as shown:
        records = [record(("bn254", "g1"), 1024, kind, 0.5, **MEASURED) for kind in bench_bases.KINDS]
        console.print(bench_view.bench_table(records))
    rows = [row.split() for row in shown.get().splitlines()[2:]]
    assert [row[:5] for row in rows] == [["msm-g1", "bn254", kind, "bases", "1024"] for kind in bench_bases.KINDS]
    assert {row[5] for row in rows} == {"0.5000"} and {row[9] for row in rows} == {"2.0000"}


# --- the plot ---

MEASURED = {"checked": 2, "host_ms": [2.0], **bench.rates(1024, [0.5])}


def record(group: tuple[str, str], n: int, kind: str, milliseconds: float, **more: Any) -> report.Record:
    case = bench.Case(f"msm-{group[1]}", group[0], n, bases=kind, inputs=more.pop("inputs", UNIFORM))
    told = {"memory": {"bases": 10**6, "scratch": 2 * 10**6, "copied": 0}, "backend": "cuda", "arch": "sm_90"}
    told |= {"kind": "case", "case": case.name, "commit": "c" * 40, "gpu": "a GPU", **bench.case_record(case)}
    return {**told, "samples": [milliseconds] * 3, **more}


def written(folder: Path, name: str, date: str, records: list[report.Record]) -> Path:
    path = folder / name
    path.write_text("".join(json.dumps(r) + "\n" for r in [{"kind": "run", "date": date}, *records]))
    return path


def test_the_newest_samples_of_a_case_are_drawn(tmp_path: Path) -> None:
    g1 = ("bn254", "g1")
    files = [
        written(tmp_path, "a.jsonl", "2026-12-02", [record(g1, 1024, "plain", 2.0)]),
        written(
            tmp_path, "b.jsonl", "2026-12-01", [record(g1, 1024, "plain", 1.0), record(g1, 1024, "precomputed", 3)]
        ),
        written(
            tmp_path,
            "c.jsonl",
            "2026-12-03",
            [
                record(g1, 1024, "plain", 5.0, inputs="skew"),
                record(g1, 1024, "plain", 6.0, backend="cpu"),
                record(g1, 1024, "plain", 7.0, arch="sm_80"),
                record(g1, 1024, "plain", 8.0, param=15 << 16),
                record(g1, 1024, "plain", 9.0, metric="kernel_ms"),
                {"kind": "case", "case": "x", "ok": False, "failure": "not the sum"},
            ],
        ),
    ]
    found = msm_plot.newest(files)
    assert {(kind, n): r["samples"][0] for (_, kind, n), r in found.items()} == {
        ("plain", 1024): 2.0,
        ("precomputed", 1024): 3,
    }


class Axes:
    def __init__(self) -> None:
        self.lines: dict[str, tuple[Any, Any]] = {}

    def plot(self, xs: Any, ys: Any, *_: Any, label: str, **style: Any) -> None:
        self.lines[label] = xs, ys

    def __getattr__(self, name: str) -> Any:
        return lambda *_, **__: None


def test_a_panel_has_both_kinds_and_its_peers() -> None:
    cases = {
        msm_plot._key(r): r
        for group in bench_bases.GROUPS
        for kind in bench_bases.KINDS
        for r in (record(group, n, kind, n / 1000) for n in (4096, 1024))
    }
    for group, labels in (
        (("bn254", "g1"), {"bellman-cuda", "sppark", "ICICLE 2.8, precomputed, scalars on the device"}),
        (("bn254", "g2"), {"sppark"}),
        (("bls12_381", "g1"), {"sppark", "yrrid, 12 precomputed windows"}),
        (("bls12_381", "g2"), {"sppark"}),
    ):
        axes = Axes()
        msm_plot._panel(axes, cases, group)
        assert axes.lines.keys() == labels | {"limbd, plain", "limbd, precomputed"}
        assert axes.lines["limbd, plain"] == ((1024, 4096), (1.024, 4.096))
    assert axes.lines["sppark"][0][-1] == 1 << 22 and axes.lines["sppark"][1][-1] == 139


def test_the_plot_and_its_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    records = [
        record(("bn254", "g1"), 1 << 20, "plain", 4.25),
        record(("bls12_381", "g2"), 1 << 10, "precomputed", 0.5),
    ]
    written(tmp_path, "new.jsonl", "2026-12-01", records)
    for name in ("msm.svg", "msm.png"):
        assert msm_plot.main(["--results", str(tmp_path), "--out", str(tmp_path / name)]) == 0
        assert (tmp_path / name).stat().st_size > 10_000
    shown = capsys.readouterr().out
    assert "bn254 g1 2^20 4.25 - 3 - 6.35 (bellman-cuda)" in " ".join(shown.split())
    assert "bls12_381 g2 2^10 - 0.5 - 3 4.9 (sppark)" in " ".join(shown.split()) and "2 cases at cccc" in shown


def test_without_samples_nothing_is_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written(tmp_path, "old.jsonl", "2026-12-01", [record(("bn254", "g1"), 8, "plain", 1, metric="kernel_ms")])
    out = tmp_path / "msm.svg"
    assert msm_plot.main(["--results", str(tmp_path), "--out", str(out)]) == 2
    assert "no samples" in capsys.readouterr().err and not out.exists()
    written(tmp_path, "new.jsonl", "2026-12-01", [record(("bn254", "g1"), 8, "plain", 1)])
    assert msm_plot.main(["--results", str(tmp_path), "--out", str(tmp_path / "msm.gif")]) == 2


def test_a_broken_file_of_samples_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = record(("bn254", "g1"), 8, "plain", 1)
    lacking = [{key: value for key, value in good.items() if key != name} for name in ("n", "memory", "gpu", "commit")]
    broken = [json.dumps(good)[:-40], "[1]", "[" * 100_000, *map(json.dumps, lacking)]
    broken += [json.dumps({**good, "samples": ["slow"]}), json.dumps({**good, "field": None, "op": 3})]
    path = written(tmp_path, "new.jsonl", "2026-12-01", [good])
    whole = path.read_text()
    for line in broken:
        path.write_text(f"{whole}\n{line}\n")
        assert msm_plot.main(["--results", str(tmp_path), "--out", str(tmp_path / "msm.svg")]) == 2
        told = capsys.readouterr().err
        assert f"{path}, line 4: " in told and told.count("\n") == 1
    path.write_bytes(b"\xff\xfe")
    assert msm_plot.main(["--results", str(tmp_path), "--out", str(tmp_path / "msm.svg")]) == 2
    assert str(path) in capsys.readouterr().err
    path.write_text(whole)
    assert msm_plot.main(["--results", str(tmp_path), "--out", str(tmp_path / "none" / "msm.svg")]) == 2
    assert "cannot write" in capsys.readouterr().err


def test_peers_stand_beside_spans_alone() -> None:
    assert {f.label for f in figures.figures_of("msm-g1", {"bn254"}, "span_ms")} > {"sppark", "bellman-cuda"}
    assert figures.figures_of("msm-g1", {"bn254"}) == figures.figures_of("msm-g1", {"secp256k1"}, "span_ms") == []
    for figure in figures.MULTIPLIERS:
        logs = [n.bit_length() - 1 for n, _ in figure.points]
        assert logs == list(range(logs[0], logs[-1] + 1, 2)) and "scalars" in figure.source
