"""NVRTC without a GPU: every unit for every supported architecture, what ptxas says of it, and what to compile for."""

from __future__ import annotations

import importlib.util
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path

import pytest

from limbd.harness import compile_check, report
from limbd.harness.candidate_units import units_of
from limbd.harness.compile_check import ARCHITECTURES, Allowance, Checked
from limbd.harness.plans import all_plans
from limbd.kernels.source import ROOT, Sources
from limbd.ops.base import Unit
from limbd.ops.msm_units import kernels
from limbd.ops.params.curves import by_name
from limbd.ops.status import ServiceError, Status
from limbd.ops.tuning import has_clusters, transform_rows
from limbd.worker.device.nvrtc import Nvrtc, Target, Usage, choose_target, parse_usage

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("cuda") is None, reason="the extra cuda is not installed: there is nothing to test"
)

ENTRY = """
#include "base/platform.cuh"
#include "unit.cuh"
__device__ __noinline__ uint32_t walk(const uint32_t* in, uint32_t n) {
    uint32_t table[100];
    for (uint32_t i = 0; i < 100; ++i) table[i] = in[i * n % 7];
    uint32_t sum = 0;
    for (uint32_t i = 0; i < n; ++i) sum += table[table[i % 100] % 100];
    return sum;
}
extern "C" __global__ void small(const uint32_t* in, uint32_t* out) {
    __shared__ uint32_t kept[64];
    kept[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = kept[63 - threadIdx.x] + SCALE * walk(in, 5);
}
// More live values than the registers that its launch bounds leave: it has to spill.
extern "C" __global__ void __launch_bounds__(1024, 2) spilling(const uint32_t* in, uint32_t* out) {
    uint32_t v[96];
    for (int i = 0; i < 96; ++i) v[i] = in[i * 1024 + threadIdx.x];
    for (int round = 0; round < 3; ++round)
        for (int i = 0; i < 96; ++i) v[i] = v[i] * v[(i + 37) % 96] + v[(i + 11) % 96];
    for (int i = 0; i < 96; ++i) out[i * 1024 + threadIdx.x] = v[i];
}
"""


@pytest.fixture(scope="module")
def nvrtc() -> Nvrtc:
    return Nvrtc()


@pytest.fixture
def sources(tmp_path: Path) -> Sources:
    (tmp_path / "entry").mkdir()
    (tmp_path / "entry" / "sample.cu").write_text(ENTRY)
    return Sources((tmp_path, ROOT))


@pytest.mark.timeout(900)
@pytest.mark.parametrize("turn", range(2), ids=("measured", "other"))
def test_todays_units_compile_and_nothing_spills(nvrtc: Nvrtc, turn: int) -> None:
    arch, units = compile_check.daily(ARCHITECTURES, date.today().toordinal())[turn]
    checked = compile_check.check(arch, nvrtc, units)
    assert all(one.usage for one in checked)
    assert not [problem for one in checked for problem in one.problems()]


@pytest.mark.timeout(900)
def test_candidates_of_open_plans_compile_and_spill_no_more_than_they_say(nvrtc: Nvrtc) -> None:
    """For the architecture that plans are measured on: what is not shipped, of one group each."""
    allowed = {unit: spills for plan in all_plans() if plan.state == "open" for unit, spills in units_of(plan).items()}
    shipped = compile_check.all_units(compile_check.MEASURED)
    own = {unit: spills for unit, spills in allowed.items() if unit not in shipped}
    chosen = {unit.entry: unit for unit in reversed(own)}.values()
    checked = compile_check.check(compile_check.MEASURED, nvrtc, chosen)
    assert all(one.usage for one in checked)
    problems = [
        problem
        for one in checked
        for problem in one.problems(
            (Allowance(one.unit.entry, "*", own[one.unit], "-", compile_check.group_of(one.unit)),)
        )
    ]
    assert not problems


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_every_entry_is_compiled_where_it_can_be(arch: str) -> None:
    # Shapes are compiled in where a row of the tuning asks for it; there are clusters from sm_90 on.
    absent = set() if any(row.compiled for row in transform_rows("cuda", arch)) else {"ntt_compiled"}
    absent |= set() if has_clusters(arch) else {"ntt_lanes_cluster"}
    # GPUs reduce with points over lanes; with a point a thread the CPU does.
    absent |= {"msm_reduce"}
    entries = {file.stem for file in (ROOT / "entry").glob("*.cu")}
    assert {unit.entry for unit in compile_check.all_units(arch)} == entries - absent


def test_a_round_of_days_compiles_every_unit_for_every_architecture(monkeypatch: pytest.MonkeyPatch) -> None:
    every = {arch: compile_check.all_units(arch) for arch in ARCHITECTURES}
    monkeypatch.setattr(compile_check, "all_units", every.__getitem__)
    met: dict[str, set[Unit]] = {arch: set() for arch in ARCHITECTURES}
    for day in range(compile_check.SHARES * (len(ARCHITECTURES) - 1)):
        for arch, units in compile_check.daily(ARCHITECTURES, day):
            met[arch].update(units)
            assert {unit.entry for unit in units} == {unit.entry for unit in every[arch]}
            assert {unit for unit in every[arch] if unit.entry.startswith(compile_check.WHOLE)} <= set(units)
            assert len(units) < len(every[arch]) / 2
    assert met == {arch: set(units) for arch, units in every.items()}


def test_what_was_seen_is_kept(nvrtc: Nvrtc, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "compile.jsonl"
    arguments = [
        "--arch",
        "sm_90,sm_75",
        "--only",
        "mod_add",
        "--threads",
        "1",
        "--out",
        str(file),
        "--commit",
        "a" * 40,
    ]
    assert compile_check.main(arguments) == 0
    head, *lines = report.read(file)
    assert (head["part"], head["commit"]) == ("compile", "a" * 40) and "mod_add" in capsys.readouterr().out
    units = [line for line in lines if not line["case"].endswith("in all")]
    assert {line["arch"] for line in units} == {"sm_75", "sm_90"} and all(line["functions"] for line in units)
    totals = {line["arch"]: line for line in lines if line["case"].endswith("in all")}
    for arch, line in totals.items():
        own = [unit for unit in units if unit["arch"] == arch]
        assert line["units"] == len(own) > 0 and line["ok"]
        assert line["seconds"] >= max(unit["seconds"] for unit in own) - 0.1


@pytest.mark.parametrize("words", [("--only", "zzz"), ("--arch", "foo"), ("--arch", ""), ("--threads", "0")])
def test_mistakes_are_refused(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        compile_check.main(["--arch", "sm_90", *words])
    assert caught.value.code == 2 and words[0] in capsys.readouterr().err


def test_a_checked_build_compiles_too(nvrtc: Nvrtc) -> None:
    """KERNEL_VERIFY is what runs on a device under compute-sanitizer. One unit an entry, by turns of days."""
    by_entry: dict[str, list[Unit]] = {}
    for unit in compile_check.all_units("sm_90"):
        by_entry.setdefault(unit.entry, []).append(unit)
    todays = [units[date.today().toordinal() % len(units)] for units in by_entry.values()]
    checked = compile_check.check("sm_90", nvrtc, todays, verify=True)
    assert not [one.failure or one.warnings for one in checked if one.failure or one.warnings]


def test_what_ptxas_says_is_read(nvrtc: Nvrtc, sources: Sources) -> None:
    compiled = nvrtc.compile(sources.cuda("sample", "constexpr int SCALE = 3;"), Target(90))
    usage = {u.function: u for u in compiled.usage}
    assert compiled.data.startswith(b"\x7fELF")
    assert usage["small"].registers > 0 and usage["small"].shared == 256 and usage["small"].spill_stores == 0
    assert usage["spilling"].spill_stores > 0 and usage["spilling"].registers <= 32
    assert any(name.startswith("_Z4walk") for name in usage)


def test_functions_that_are_not_inlined_are_checked_for_spills_too() -> None:
    log = (
        "ptxas info    : Compiling entry function 'k' for 'sm_90'\n"
        "ptxas info    : Function properties for k\n"
        "    8 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
        "ptxas info    : Used 40 registers, used 1 barriers, 1024 bytes smem\n"
        "ptxas info    : Function properties for _Z1fv\n"
        "    16 bytes stack frame, 12 bytes spill stores, 20 bytes spill loads\n"
    )
    usage = parse_usage(log)
    assert usage == (Usage("k", 40, 8, 0, 0, 1024), Usage("_Z1fv", 0, 16, 12, 20, 0))
    checked = Checked(Unit("e", ()), "sm_90", usage)
    assert list(checked.problems(())) == ["e for sm_90: _Z1fv spills 32 bytes (allowed: 0)"]
    assert list(checked.problems((Allowance("e", "sm_80", 32, "-"),)))
    assert not list(checked.problems((Allowance("e", "sm_90", 32, "-"),)))
    assert list(checked.problems((Allowance("e", "*", 31, "-"),)))


@pytest.mark.parametrize("name", ["bls12_381_g1", "bls12_381_g2"])
def test_an_allowance_of_one_group_does_not_cover_another(name: str) -> None:
    curve = by_name("bls12_381")
    assert curve is not None
    for unit in kernels(
        curve, "g1" if name.endswith("g1") else "g2", 8, 128, 2, 128, False, True, False, False
    ).units():
        checked = Checked(unit, "sm_90", (Usage("f", 255, 0, 16, 16, 0),))
        covered = not list(checked.problems((Allowance(unit.entry, "*", 32, "-", "bls12_381_g2"),)))
        assert covered == (name == "bls12_381_g2" and unit.entry != "msm_sort")
        assert compile_check.group_of(unit) == (name if unit.entry != "msm_sort" else "")
        assert compile_check.group_of(unit) in compile_check.unit_name(unit)
        plain = (Allowance(unit.entry, "*", 32, "-"),)
        assert (not list(checked.problems(plain))) == (unit.entry == "msm_sort")


def test_an_error_names_the_unit_and_shows_the_log(nvrtc: Nvrtc, sources: Sources) -> None:
    with pytest.raises(ServiceError, match=r"(?s)sample\.cu.*SCALE") as caught:
        nvrtc.compile(sources.cuda("sample", ""), Target(90))
    assert caught.value.status is Status.INTERNAL


def test_ptx_is_text(nvrtc: Nvrtc, sources: Sources) -> None:
    compiled = nvrtc.compile(sources.cuda("sample", "constexpr int SCALE = 3;"), Target(90, "ptx"))
    assert compiled.data.startswith(b"//") and b".target sm_90" in compiled.data
    assert b"\0" not in compiled.data


def test_two_threads_compile_at_once(nvrtc: Nvrtc, sources: Sources) -> None:
    """The GIL is free while NVRTC works: this thread counts on while two programs compile."""
    source = sources.cuda("sample", "constexpr int SCALE = 3;")
    counted = 0
    with ThreadPoolExecutor(2) as pool:
        jobs = [pool.submit(nvrtc.compile, source, Target(arch)) for arch in (80, 90)]
        while not all(job.done() for job in jobs):
            time.sleep(0.001)
            counted += 1
    assert counted > 10
    assert all(job.result().data.startswith(b"\x7fELF") for job in jobs)


def test_the_key_covers_what_is_compiled(nvrtc: Nvrtc, sources: Sources) -> None:
    def name(header: str, target: Target, verify: bool = False) -> str:
        return nvrtc.key(sources.cuda("sample", header), target, verify=verify).file_name()

    one = "constexpr int SCALE = 1;"
    names = [name(one, Target(90)), name("constexpr int SCALE = 2;", Target(90)), name(one, Target(80))]
    names += [name(one, Target(90), True), name(one, Target(90, "ptx"))]
    assert len(set(names)) == len(names)
    before = name(one, Target(90))
    platform = sources.roots[0] / "base" / "platform.cuh"
    platform.parent.mkdir()
    platform.write_text((ROOT / "base" / "platform.cuh").read_text() + "\n// changed\n")
    assert name(one, Target(90)) != before


@pytest.mark.parametrize(
    ("capability", "supported", "nvrtc_version", "driver", "expected"),
    [
        ((9, 0), (75, 80, 90, 100), (13, 0), (13, 0), Target(90)),
        ((8, 9), (75, 80, 86, 87, 90), (13, 0), (12, 2), Target(86)),
        ((8, 7), (75, 80, 86, 87, 90), (13, 0), (13, 0), Target(87)),
        ((12, 1), (75, 90, 120), (13, 0), (13, 0), Target(120)),
        ((12, 0), (75, 90, 100), (13, 0), (13, 1), Target(100, "ptx")),
        ((6, 1), (50, 60, 61, 70), (12, 9), (12, 4), Target(61)),
    ],
)
def test_the_target_for_a_device(
    capability: tuple[int, int],
    supported: tuple[int, ...],
    nvrtc_version: tuple[int, int],
    driver: tuple[int, int],
    expected: Target,
) -> None:
    assert choose_target(capability, supported, nvrtc_version, driver) == expected


@pytest.mark.parametrize(
    ("capability", "supported", "nvrtc_version", "driver"),
    [((12, 0), (75, 90, 100), (13, 0), (12, 9)), ((6, 1), (75, 80, 90), (13, 0), (13, 0))],
)
def test_no_target_names_both_versions(
    capability: tuple[int, int], supported: tuple[int, ...], nvrtc_version: tuple[int, int], driver: tuple[int, int]
) -> None:
    with pytest.raises(ServiceError, match=r"NVRTC 13\.0 and a driver for CUDA (12\.9|13\.0)") as caught:
        choose_target(capability, supported, nvrtc_version, driver)
    assert caught.value.status is Status.NO_DEVICE
