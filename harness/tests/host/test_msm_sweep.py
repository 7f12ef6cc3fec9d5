"""The sweep over multi-scalar multiplications' rows: what it measures, that wrong sums are seen, and that it goes on."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from limbd.harness import msm_sweep, report
from limbd.harness.msm_sweep import Choice, Inputs, entries
from limbd.harness.multiplications import Multiples
from limbd.ops.base import Traits
from limbd.ops.msm_tuning import msm_row
from limbd.ops.params.curves import by_name
from limbd.worker.device.base import Backend
from limbd.worker.device.reference import ReferenceBackend

H200 = Traits("cuda", "sm_90", 132, 1 << 37)
CHOICE = Choice((-1, 0), (16,), (1,))


def sweep(backend: Any, path: Path, seconds: float = 600, resume: bool = False) -> bool:
    curve = by_name("bn254")
    assert curve is not None
    journal = report.Journal(path, report.run_record("msm-sweep", {}, "a" * 40), resume=resume)
    return msm_sweep.sweep(backend, curve, "g1", (4, 6), CHOICE, journal, time.monotonic() + seconds)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(msm_sweep, "SAMPLES", 2)
    monkeypatch.setattr(msm_sweep, "DISTINCT", 16)


def test_rows_are_measured_on_the_kernels(made_once: Callable[[str], Backend], tmp_path: Path) -> None:
    path = tmp_path / "sweep.jsonl"
    assert sweep(made_once("cpu"), path)
    _, *lines = report.read(path)
    # Rows of slices: the CPU's own goes by chunks.
    assert [(line["n"], line["shipped"]) for line in lines] == [(n, i == 0) for n in (16, 64) for i in range(3)]
    assert all(line["ok"] and len(line["samples"]) == 2 and line["plan"]["launches"] for line in lines)


def test_what_is_not_reached_is_told_and_done_later(tmp_path: Path) -> None:
    path = tmp_path / "sweep.jsonl"
    assert not sweep(ReferenceBackend(), path, seconds=-1)
    assert sweep(ReferenceBackend(), path, resume=True)
    names = [line["case"] for line in report.read(path) if line["kind"] == "case"]
    assert len(names) == len(set(names)) == 6


class Wrong(ReferenceBackend):
    """Wrong in one bit."""

    def run(self, request: Any, plan: Any, result: memoryview) -> Any:
        outcome = super().run(request, plan, result)
        result[5] ^= 1
        return outcome


def test_a_wrong_sum_is_told(tmp_path: Path) -> None:
    path = tmp_path / "sweep.jsonl"
    assert not sweep(Wrong(), path)
    lines = [line for line in report.read(path) if line["kind"] == "case"]
    assert len(lines) == 6 and not any(line["ok"] for line in lines)


def test_points_with_their_multiples(made_once: Callable[[str], Backend], tmp_path: Path) -> None:
    """Rows of other windows have other multiples, made anew; every sum is compared."""
    path, curve = tmp_path / "sweep.jsonl", by_name("bn254")
    assert curve is not None
    backend: Any = made_once("cpu")
    journal = report.Journal(path, report.run_record("msm-sweep", {}, "a" * 40))
    choice = Choice((-1, 0), (), (1,), (16,), low_bits=0, precomputed=True)
    assert msm_sweep.sweep(backend, curve, "g1", (6,), choice, journal, time.monotonic() + 600)
    _, *lines = report.read(path)
    assert len(lines) == 3 and all(line["ok"] and line["case"].endswith("precomputed") for line in lines)
    assert len({line["row"]["width"] for line in lines}) == 2


def test_chunks_halves_and_pairs_are_tried() -> None:
    curve = by_name("bn254")
    assert curve is not None
    shipped, *others = entries(curve, "g2", 18, H200, Choice((0, 1), (), (2, 3), (64, 256), halves=True, pairs=True))
    assert len(others) == 8 and not (shipped.row.halves or shipped.row.pairs)
    assert {(each.row.width - shipped.row.width, each.row.chunk) for each in others} == {
        (more, chunk) for more in (0, 1) for chunk in (64, 256)
    }
    assert all(each.row.halves and each.row.pairs and " halves pairs " in each.name for each in others)
    assert {each.row.fill // each.row.resident for each in others} == {shipped.row.fill // shipped.row.resident}


@pytest.mark.parametrize("name", ["bn254", "bls12_381", "secp256k1"])
def test_the_shipped_row_comes_first_and_fills_the_device(name: str) -> None:
    curve = by_name(name)
    assert curve is not None
    for log in (8, 16, 24):
        found = entries(curve, "g1", log, H200, Choice())
        own = msm_row("cuda", "sm_90", curve, "g1", 1 << log)
        assert found[0].shipped and found[0].row.width == own.width
        assert len({each.name for each in found}) == len(found) > 60
        assert {each.row.fill // each.row.resident for each in found} == {own.fill // own.resident}


def test_points_come_again_with_other_scalars() -> None:
    """Four scalars a point: the sum is that of the distinct points with their scalars' sums."""
    curve = by_name("bn254")
    assert curve is not None
    inputs = Inputs(Multiples(curve, "g1", "again", 16), curve, "g1", 6)
    result = bytearray(64)
    inputs.request.op.reference(inputs.request, memoryview(result))
    assert result == inputs.expected
