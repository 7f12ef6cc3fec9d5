"""The sweep over tuning rows: what it measures, that wrong results are seen, and that it goes on where it was cut off."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from limbd.harness import batch_sweep, bench, report
from limbd.harness.batch_sweep import Entry, entries
from limbd.ops.base import Traits
from limbd.ops.mod_inv_batch import ModInvBatch, launch_with
from limbd.ops.tuning import BatchRow, Storage, batch_tuning
from limbd.worker.device.base import Backend
from limbd.worker.device.cache import Cache
from limbd.worker.device.reference import ReferenceBackend

H200 = Traits("cuda", "sm_90", 132, 1 << 37)
GRID = (
    BatchRow(None, 64, 1, 2, Storage.REGISTERS, 8, "a test"),
    BatchRow(None, 32, 1, 4, Storage.SHARED, 12, "a test"),
)


def sweep(
    backend: Any, path: Path, sizes: tuple[int, ...] = (50, 200), seconds: float = 600, resume: bool = False
) -> bool:
    head = report.run_record("batch-sweep", {}, "a" * 40)
    journal = report.Journal(path, head, resume=resume)
    return batch_sweep.sweep(backend, sizes, journal, time.monotonic() + seconds)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_sweep, "SAMPLES", 3)
    monkeypatch.setattr(entries, "__defaults__", (GRID,))


def test_rows_are_measured_on_the_kernels(made_once: Callable[[str], Backend], tmp_path: Path) -> None:
    path = tmp_path / "sweep.jsonl"
    assert sweep(made_once("cpu"), path)
    _, *lines = report.read(path)
    assert [line["case"] for line in lines[:3]] == [
        "n=50 mod-inv",
        "n=50 64x1 2 REGISTERS steps=8",
        "n=50 32x1 4 SHARED steps=12",
    ]
    assert len(lines) == 3 + 4 and [line["shipped"] for line in lines] == [False] * 4 + [True, False, False]
    for line in lines:
        assert len(line["samples"]) == 3 and line["checked"] == line["n"] * line["input_sets"] and line["ok"]
        assert line["op"] == ("mod-inv-batch" if line["row"] else "mod-inv")
        (launch,) = line["plan"]["launches"]
        assert launch["kernel"] == ("mod_inv_batch" if line["row"] else "mod_inv_odd") and launch["binary"]
        assert line["row"] is None or launch["block"] == line["row"]["block"]


def test_what_is_not_reached_is_told_and_done_later(tmp_path: Path) -> None:
    path = tmp_path / "sweep.jsonl"
    assert not sweep(ReferenceBackend(), path, seconds=-1)
    assert sweep(ReferenceBackend(), path, sizes=(50,), resume=True)
    assert sweep(ReferenceBackend(), path, resume=True)
    names = [line["case"] for line in report.read(path) if line["kind"] == "case"]
    assert len(names) == len(set(names)) == 7


class Wrong(ReferenceBackend):
    """Wrong at one element from the tenth batch on."""

    def __init__(self) -> None:
        self.left = 9

    def run(self, request: Any, plan: Any, result: memoryview) -> Any:
        outcome = super().run(request, plan, result)
        self.left -= 1
        if self.left < 0:
            np.frombuffer(result, np.uint8)[7] ^= 1
        return outcome


def test_a_wrong_sample_ends_its_group(tmp_path: Path) -> None:
    path = tmp_path / "sweep.jsonl"
    assert not sweep(Wrong(), path, sizes=(50,))
    (line,) = (line for line in report.read(path) if line["kind"] == "case")
    assert line["ok"] is False and "index 0" in line["failure"] and len(line["entries"]) == 3


@pytest.mark.parametrize("n", batch_sweep.SIZES)
def test_the_grid(n: int) -> None:
    """Every launch once, in all sizes of blocks, and never what a thread cannot hold."""
    found = entries(n, H200, batch_sweep.GRID)
    assert found[0] == Entry(n, None) and len({each.name for each in found}) == len(found) > 6
    rows = [each.row for each in found if each.row]
    assert {row.block for row in rows} >= {64, 128, 256} and {row.steps for row in rows} == {8, 12}
    request = bench.request_of(bench.Case("mod-inv-batch", batch_sweep.FIELD, 1), 0)
    for row in rows:
        launch = launch_with(row, request, n, H200)
        assert row.storage != Storage.SHARED or launch.shared <= 200 << 10
    own = batch_tuning("cuda", "sm_90", 8).row(n)
    shipped = [each.row for each in found if each.shipped]
    assert len(shipped) == (own is not None)
    assert not own or not shipped[0] or (shipped[0].block, shipped[0].elements) == (own.block, own.elements)


def test_groups_fit_the_devices_memory() -> None:
    found = [Entry(n, None) for n in range(10)]
    assert [len(group) for group in batch_sweep.groups(found, 10, 80)] == [4, 4, 2]
    assert [len(group) for group in batch_sweep.groups(found, 100, 80)] == [1] * 10


def test_compiling_ahead_fills_the_cache_of_the_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_sweep, "GRID", GRID[:1])
    monkeypatch.setattr(ModInvBatch, "units", lambda self, traits: ())
    assert batch_sweep.compile_ahead("sm_90", Cache(tmp_path)) == 1
    again = Cache(tmp_path)
    assert batch_sweep.compile_ahead("sm_90", again) == 1 and (again.builds, again.hits) == (0, 1)


def test_the_command(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "limbd.harness.batch_sweep", "--backend", "reference", "--n", "20", "--name", "x"]
    done = subprocess.run(
        [*command, "--out", str(tmp_path)], capture_output=True, text=True, check=False, env=os.environ
    )
    assert done.returncode == 0, done.stderr
    head, *lines = report.read(tmp_path / "x-batch-sweep.jsonl")
    assert head["part"] == "batch-sweep" and len(lines) == len(
        entries(20, ReferenceBackend().traits(), batch_sweep.GRID)
    )
    assert all(len(line["samples"]) == 60 for line in lines)
