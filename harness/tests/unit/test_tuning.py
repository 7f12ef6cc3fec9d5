"""Whose tuning rows a device takes, and how `limbd info` says so."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from limbd.harness import info
from limbd.ops import OPS, msm_tuning, tuning
from limbd.ops.base import Call, Traits
from limbd.ops.msm import MSM_G1, param_of
from limbd.ops.msm_tuning import msm_row, msm_tuned_for
from limbd.ops.params import curves
from limbd.ops.tuning import TABLE, batch_tuning, serving, transform_rows
from limbd.worker.config import Config
from limbd.worker.device import driver
from limbd.worker.device.driver import Device, DriverState

A100 = Device(0, "a faked A100", (8, 0), 108, 80 << 30)
H200 = Device(1, "a faked H200", (9, 0), 132, 139 << 30)


def traits_of(device: Device) -> Traits:
    return Traits("cuda", device.arch, device.multiprocessors, device.memory)


@pytest.mark.parametrize(
    ("arch", "having", "served"),
    [
        ("sm_90", ("sm_80", "sm_90", "sm_100"), "sm_90"),  # its own
        ("sm_89", ("sm_75", "sm_80", "sm_90"), "sm_80"),  # the nearest older one
        ("sm_120", ("sm_75", "sm_90", "sm_100"), "sm_100"),  # not by the text, in which 100 stands before 75
        ("sm_80", ("sm_100", "sm_90", "cpu"), "sm_90"),  # no older one: the oldest
    ],
)
def test_a_gpu_without_rows_takes_the_nearest_older_ones(arch: str, having: tuple[str, ...], served: str) -> None:
    assert serving("cuda", arch, having) == served


def test_a_host_takes_its_own_rows_or_the_oldest() -> None:
    assert serving("cpu", "x86_64", ("sm_75", "cpu")) == "cpu"
    assert serving("cpu", "x86_64", ("sm_90", "sm_75")) == "sm_75"


def test_rows_of_every_op_on_an_older_gpu() -> None:
    """No row is sm_80's; of the architectures that have one, the transforms' alone has an older one."""
    found = {op.name: op.tuned_for(traits_of(A100)) for op in OPS}
    assert found.pop("ntt") == {"sm_75", "sm_90"}
    assert found.pop("quotient") == {"sm_75"}
    assert set().union(*found.values()) == {"sm_90"} and all(found.values())
    assert all(op.tuned_for(traits_of(H200)) == {"sm_90"} for op in OPS)
    assert transform_rows("cuda", "sm_80") == transform_rows("cuda", "sm_75") != transform_rows("cuda", "sm_90")
    assert batch_tuning("cuda", "sm_80", 8) == batch_tuning("cuda", "sm_90", 8)


def test_a_row_of_its_own_serves_it_and_newer_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    added = replace(TABLE[("mod-mul", "*", "sm_90")], block=32)
    monkeypatch.setitem(TABLE, ("mod-mul", "*", "sm_80"), added)
    blocks = {arch: tuning.tuning("mod-mul", 8, "cuda", arch).block for arch in ("sm_75", "sm_80", "sm_89", "sm_90")}
    assert blocks == {"sm_75": 32, "sm_80": 32, "sm_89": 32, "sm_90": 256}
    cuts: msm_tuning.Cuts = {("bn254", "g1"): (msm_tuning.Cut(24, 7),)}
    monkeypatch.setitem(msm_tuning.MSM_TABLE, "sm_80", msm_tuning.Tables(cuts, {}, {}))
    bn254 = curves.by_name("bn254")
    assert bn254 is not None
    found = {arch: msm_row("cuda", arch, bn254, "g1", 1 << 20).width for arch in ("sm_75", "sm_86", "sm_90", "sm_120")}
    assert found["sm_75"] == found["sm_86"] == 7 and found["sm_90"] == found["sm_120"] != 7
    assert [msm_tuned_for("cuda", arch) for arch in ("sm_75", "sm_86", "sm_90")] == ["sm_80", "sm_80", "sm_90"]
    assert msm_tuned_for("cpu", "x86_64") == "cpu"


def test_a_multiplication_fills_the_multiprocessors_that_there_are() -> None:
    bn254 = curves.by_name("bn254")
    assert bn254 is not None
    n = 1 << 16
    call = Call(n, param_of(bn254))
    request = MSM_G1.decode(call, memoryview(bytes(MSM_G1.payload_bytes(call) or 0)))
    on_a100, on_h200 = (MSM_G1.row(request, traits_of(device)) for device in (A100, H200))
    assert on_a100 == replace(on_h200, fill=on_h200.fill // 132 * 108)


def told_by_info(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *devices: Device) -> tuple[info.Facts, str]:
    monkeypatch.setattr(driver, "probe", lambda: DriverState((13, 0), devices, ""))
    monkeypatch.setattr(info, "BACKENDS", ("reference",))  # a faked device runs nothing
    facts = info.collect(Config(cache=tmp_path))
    console = Console(file=io.StringIO())
    info.show(facts, console=console)
    assert isinstance(console.file, io.StringIO)
    return facts, console.file.getvalue()


def test_info_says_whose_rows_a_gpu_takes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    facts, text = told_by_info(monkeypatch, tmp_path, A100, H200)
    of_a100, of_h200 = (device["tuned_for"] for device in facts["driver"]["devices"])
    assert of_a100 == {op.name: sorted(op.tuned_for(traits_of(A100))) for op in OPS}
    assert of_h200 == {op.name: ["sm_90"] for op in OPS}
    lines = text.splitlines()
    (at,) = [i for i, line in enumerate(lines) if "faked A100" in line]
    assert lines[at + 1].strip() == (
        "tuning rows of another architecture: sm_90 (mod-mul, mod-add, mod-sub, mod-exp, mod-inv, mod-inv-batch, "
        "msm-g1, msm-g2), sm_75 and sm_90 (ntt), sm_75 (quotient)"
    )
    assert "faked H200" in lines[at + 2] and lines[at + 3].strip() == "tuning rows: its own"
