"""`limbd bench`: samples and their checks, comparison, table and plot."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from collections import Counter
from math import gcd
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from limbd.harness import (
    bench,
    bench_cases,
    bench_compare,
    bench_inputs,
    bench_multiplications,
    bench_view,
    figures,
    report,
    transforms,
)
from limbd.harness.demo import PLAIN_WIDTH
from limbd.harness.inputs import UNIFORM, powers_of_two
from limbd.harness.textio import InputError
from limbd.ops import OPS, by_name
from limbd.ops.base import Op, Request, Traits
from limbd.ops.msm import Msm
from limbd.ops.ntt import param_of
from limbd.ops.params.layout import to_ints
from limbd.ops.transform_op import TransformOp
from limbd.ops.transform_shape import Order
from limbd.worker.device.measurement import take_samples
from limbd.worker.device.reference import ReferenceBackend

SMALL = bench.Case("mod-inv", "secp256k1_fp", 50, samples=3)


def record_of(case: bench.Case, samples: list[float], **more: Any) -> report.Record:
    base = {"kind": "case", "case": case.name, "samples": samples, "checked": 1, "gpu": "a GPU", "arch": "sm_90"}
    return {**base, **bench.case_record(case), **bench.rates(case.n, samples), **more}


# --- measuring ---


@pytest.mark.parametrize("param", [7, 7 | 1 << 13], ids=["values", "coefficients"])
def test_a_quotient_that_is_longer_than_what_is_compared_is_judged_by_its_identity(param: int) -> None:
    request = bench.request_of(bench.Case("quotient", "bn254_fr", 256, param=param), 1)
    result = bench.empty_result(request)
    ReferenceBackend().run(request, request.op.plan(request, ReferenceBackend().traits()), result.data.cast("B"))
    assert bench.check(request, result, most=64) == 1
    result[:, 0] ^= 1
    with pytest.raises(bench.WrongResult):
        bench.check(request, result, most=64)


def moduli_of(op: Op) -> tuple[str, ...]:
    if isinstance(op, Msm):
        return "bn254", "toy_7_13"
    return ("secp256k1_fp", "bls12_381_fp", "f", "1") if op.elementwise else ("bn254_fr", "bls12_381_fr", "11")


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_every_op_can_be_measured(op: Op) -> None:
    for modulus in moduli_of(op):
        case = bench.Case(op.name, modulus, 24, samples=2, param=3 if isinstance(op, TransformOp) else 0)
        found = bench.run_case(ReferenceBackend(), case)
        results = op.result_count(case.call)
        assert len(found["samples"]) == 2 and found["checked"] == results * found["input_sets"]
        assert len(found["host_ms"]) == bench.HOST_RUNS
        assert found["plan"]["launches"][0]["text"]


@pytest.mark.parametrize(("op", "curve"), [("msm-g1", "bls12_381"), ("msm-g2", "toy_7_13")])
@pytest.mark.parametrize("inputs", [UNIFORM, *bench_multiplications.KINDS])
@pytest.mark.parametrize("n", [3, 1024, 1500])
def test_a_wrong_sum_is_seen(op: str, curve: str, inputs: str, n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of fewer bases than the chain has, of all, and of some twice; in two vectors."""
    monkeypatch.setattr(bench_multiplications, "CHAIN", 1024)
    request = bench.request_of(bench.Case(op, curve, 2 * n, inputs=inputs, param=1 << 16), 7)
    right = bench.empty_result(request)
    request.op.reference(request, right.data.cast("B"))
    assert bench.check(request, right) == 2
    right[1, 0] ^= 1
    with pytest.raises(bench.WrongResult, match="index 1"):
        bench.check(request, right)


def test_scalars_are_as_they_are_called() -> None:
    n, curve = 1 << 16, bench_multiplications.curve_of("msm-g1", "bn254")
    for inputs, zeros, ones, repeated in (
        (UNIFORM, 0, 0, 1),
        ("skew", 0.4, 0.2, 0.2),
        ("witness", 0.489, 0.489, 0.0112),
    ):
        values = to_ints(bench_multiplications.scalars(curve, n, inputs, 3))
        assert max(values) < curve.order
        counts = Counter(values)
        assert abs(counts[0] / n - zeros) < 0.01 and abs(counts[1] / n - ones) < 0.01
        most = max(count for value, count in counts.items() if value > 1)
        assert most == 1 if inputs == UNIFORM else abs(most / n - repeated) < 0.005
    assert counts.most_common(3)[2][1] in range(n * 11_758 >> 20, (n * 11_758 >> 20) + 3)


def test_sizes_of_measured_multiplications() -> None:
    cases = [case for case in bench_cases.CASES if case.curve and not case.bases]
    assert len({case.name for case in cases}) == len(cases)
    sizes = {(case.op, case.modulus, case.n) for case in cases if case.inputs == UNIFORM and not case.param}
    for op, most in (("msm-g1", 25), ("msm-g2", 23)):
        assert sizes >= {(op, curve, 1 << k) for curve in ("bn254", "bls12_381") for k in range(10, most, 2)}
    assert {case.n for case in cases if case.inputs == "skew"} == {1 << 16, 1 << 18, 1 << 20}
    (vectors,) = (case for case in cases if case.param >> 16)
    assert by_name("msm-g1").result_count(vectors.call) == 16 and vectors.n == 16 << 12
    assert [case.back_to_back for case in bench.cases_of("msm-g1", ["bn254"], [1000], 5)] == [1]
    for op, name, inputs, told in (
        ("msm-g2", "secp256k1", UNIFORM, "no curve"),
        ("mod-mul", "7", "skew", "no scalars"),
        ("msm-g1", "bn254", "zero-per-block", "scalars are"),
    ):
        with pytest.raises(InputError, match=told):
            for case in bench.cases_of(op, [name], [10], 5, inputs):
                bench.run_case(ReferenceBackend(), case)


def test_back_to_back_samples_are_of_one_round() -> None:
    rounds: list[int] = []

    class Fake:
        held = True

        def sample(self, count: int = 1) -> float:
            rounds.append(count)
            return 0.25

    assert take_samples(Fake(), repeats=3, warmup=2, back_to_back=7) == [0.25] * 3  # type: ignore[arg-type]
    assert rounds == [7] * 5


class Drifting(ReferenceBackend):
    """Right until it has answered `good` batches; then the last element of each is left as it was."""

    def __init__(self, good: int) -> None:
        self.good = good

    def run(self, request: Request, plan: Any, result: memoryview) -> Any:
        outcome = super().run(request, plan, result)
        self.good -= 1
        if self.good < 0:
            np.frombuffer(result, np.uint8)[-32:] = 0xA5
        return outcome


@pytest.mark.parametrize("good", [0, 1, 7, 8, 9, 12])
def test_a_wrong_sample_is_seen_whichever_it_is(good: int) -> None:
    """Eight sets in rotation: up to the eighth the reference tells, then the first result of the set."""
    with pytest.raises(bench.WrongResult, match="wrong at index 49" if good < 8 else "index 49 differs"):
        bench.run_case(Drifting(good), dataclasses.replace(SMALL, samples=10))


@pytest.mark.parametrize("param", [4, 8, param_of(8, inverse=True, coset=True, order=Order.RR)])
def test_a_wrong_transform_is_seen(param: int) -> None:
    """Whole ones where they are short; a few results by the definition where one is longer than what is compared."""
    request = bench.request_of(bench.Case("ntt", "bn254_fr", 512, param=param), 0)
    right = bench.empty_result(request)
    request.op.reference(request, right.data.cast("B"))
    assert bench.check(request, right) == 512
    assert bench.check(request, right, most=256) == 256
    assert bench.check(request, right, most=64) == (64 if param == 4 else transforms.SPOTS)
    wrong = right ^ np.uint32(1)
    for most in (512, 256, 64):
        with pytest.raises(bench.WrongResult, match="ntt mod"):
            bench.check(request, wrong, most=most)


def test_sizes_of_measured_transforms() -> None:
    assert [case.param for case in bench.cases_of("ntt", ["bn254_fr"], [1, 1 << 20], 5)] == [0, 0, 20]
    assert [case.back_to_back for case in bench.cases_of("ntt", ["bn254_fr"], [1 << 18], 5)] == [1, bench.SMALL_ROUNDS]
    assert [case.n for case in bench.cases_of("mod-mul", ["7"], [1000], 5)] == [1000, 1000]
    with pytest.raises(InputError, match="power of two"):
        bench.cases_of("ntt", ["bn254_fr"], [1000], 5)
    claimed = {(case.modulus, case.n, case.param >> 8) for case in bench_cases.CASES if case.op == "ntt"}
    sizes = range(10, 25, 2)
    assert claimed >= {(f, 1 << k, order) for f in ("bn254_fr", "bls12_381_fr") for k in sizes for order in (0, 4)}
    for case in bench_cases.CASES:
        if case.op in ("ntt", "quotient"):
            rounds = {
                c.back_to_back
                for c in bench_cases.CASES
                if dataclasses.replace(c, back_to_back=case.back_to_back) == case
            }
            assert rounds == ({1, bench.SMALL_ROUNDS} if case.n <= 1 << 18 else {1})
            assert case.samples == (20 if case.n > 1 << 20 else bench.SAMPLES)


def test_inputs_are_below_the_modulus_and_differ_between_sets() -> None:
    for modulus in ("secp256k1_fp", "bls12_381_fp", "10001", "1", f"{2**200 + 1:x}"):
        case = bench.Case("mod-mul", modulus, 300)
        one, other = bench.request_of(case, 0), bench.request_of(case, 1)
        values = [int.from_bytes(row.tobytes(), "little") for row in one.arrays["a"]]
        assert max(values) < case.value
        assert case.value < 100 or not (one.arrays["a"] == other.arrays["a"]).all()


def test_structured_inputs_are_drawn_and_differ_between_sets() -> None:
    for modulus in ("secp256k1_fp", "bls12_381_fp", "1"):
        case = bench.Case("mod-inv", modulus, 300, inputs="powers-of-two")
        drawn = [to_ints(bench.request_of(case, seed).arrays["x"]) for seed in (0, 1)]
        assert {*drawn[0], *drawn[1]} <= set(powers_of_two(case.value))
        assert modulus == "1" or (drawn[0] != drawn[1] and len(set(drawn[0])) > 150)
    assert case.name == "mod-inv 1 n=300 powers-of-two"
    assert bench.case_record(case)["inputs"] == "powers-of-two"
    exponents = bench.request_of(bench.Case("mod-exp", "secp256k1_fp", 50, inputs="ones"), 0)
    assert len(set(to_ints(exponents.arrays["e"]))) == 50 and len(set(to_ints(exponents.arrays["a"]))) == 2


# --- inputs ---

PRODUCT = f"{bench_inputs.COMPOSITE:x}"
DEVICES = {"cuda": Traits("cuda", "sm_90", 132, 1 << 34), "cpu": Traits("cpu", "x86_64", 2, 1 << 34)}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("op", ["mod-inv", "mod-inv-batch"])
@pytest.mark.parametrize(("n", "modulus"), [(50, PRODUCT), (20_011, PRODUCT), (5000, f"{3 * (2**250 - 207):x}")])
def test_one_element_of_each_block_has_no_inverse(device: str, op: str, n: int, modulus: str) -> None:
    traits = DEVICES[device]
    case = bench.Case(op, modulus, n, inputs=bench_inputs.NON_UNIT)
    request = bench.request_of(case, 0)
    every = bench_inputs.place(request, case.inputs, traits, 0)
    plan = by_name("mod-inv-batch").plan(dataclasses.replace(request, op=by_name("mod-inv-batch")), traits)
    launch = plan.pieces[0].launches[0]
    assert every == (launch.block * launch.values["elements"] if launch.kernel.name == "mod_inv_batch" else n)
    values = to_ints(request.arrays["x"])
    factor = bench_inputs.odd_factor(case.value)
    non_units = [i for i, x in enumerate(values) if x % factor == 0]
    assert [i // every for i in non_units] == list(range(-(-n // every)))
    assert all(0 < x < case.value for x in values)
    assert all(gcd(x, case.value) == 1 for x in values if x % factor)


def test_the_two_ops_get_the_same_inputs_and_sets_differ() -> None:
    def placed(op: str, kind: str, seed: int) -> list[int]:
        request = bench.request_of(bench.Case(op, PRODUCT, 20_000, inputs=kind), seed)
        bench_inputs.place(request, kind, DEVICES["cuda"], seed)
        return to_ints(request.arrays["x"])

    for kind in bench_inputs.KINDS:
        assert placed("mod-inv", kind, 3) == placed("mod-inv-batch", kind, 3) != placed("mod-inv", kind, 4)


def test_a_zero_in_each_block() -> None:
    request = bench.request_of(bench.Case("mod-inv-batch", "secp256k1_fp", 9000), 0)
    every = bench_inputs.place(request, bench_inputs.ZERO, DEVICES["cuda"], 0)
    zeros = np.flatnonzero(~request.arrays["x"].any(axis=1))
    assert every and [int(i) // every for i in zeros] == list(range(-(-9000 // every)))


@pytest.mark.parametrize("kind", bench_inputs.KINDS)
@pytest.mark.parametrize("op", ["mod-inv", "mod-inv-batch"])
def test_inputs_are_recorded_and_checked(kind: str, op: str) -> None:
    case = bench.Case(op, PRODUCT, 200, samples=2, inputs=kind)
    found = bench.run_case(ReferenceBackend(), case)
    assert found["inputs"] == kind and found["checked"] == 200 * found["input_sets"]
    assert found.get("zero_results") == (None if kind == UNIFORM else -(-200 // found["inputs_block"]))
    assert (kind in case.name) == (kind != UNIFORM)


def test_inputs_that_cannot_be_made() -> None:
    for op, modulus, kind in (
        ("mod-mul", PRODUCT, bench_inputs.ZERO),
        ("mod-inv", "secp256k1_fp", bench_inputs.NON_UNIT),
        ("mod-inv", "10000", bench_inputs.NON_UNIT),
        ("mod-inv", "1", bench_inputs.NON_UNIT),
        ("mod-inv", "7", bench_inputs.NON_UNIT),
    ):
        with pytest.raises(InputError, match=kind):
            bench.run_case(ReferenceBackend(), bench.Case(op, modulus, 20, samples=2, inputs=kind))


def test_the_claims_about_batches_have_their_cases() -> None:
    """Medians of 200, and non-units beside mod-inv modulo the same composite."""
    batched = [case for case in bench_cases.CASES if case.op == "mod-inv-batch"]
    assert {case.samples for case in batched} == {200}
    assert {case.n for case in batched if case.modulus == "secp256k1_fp"} >= {10**4, 10**5, 10**6, 10**7}
    spoilt = {case.op: case for case in bench_cases.CASES if case.inputs == bench_inputs.NON_UNIT}
    assert spoilt.keys() == {"mod-inv", "mod-inv-batch"}
    assert dataclasses.replace(spoilt["mod-inv"], op="mod-inv-batch") == spoilt["mod-inv-batch"]
    assert spoilt["mod-inv"].n == 10**6


def test_large_batches_are_checked_at_both_ends_and_in_between() -> None:
    rows = bench._rows(1 << 20, 4096)
    assert len(rows) <= 4096 and rows[:1024] == list(range(1024)) and rows[-1] == (1 << 20) - 1
    assert any(400_000 < row < 600_000 for row in rows)


# --- comparing ---


def test_comparison_tells_noise_from_change() -> None:
    cases = {
        name: bench.Case("mod-mul", "f", n) for n, name in enumerate(("same", "faster", "slower", "gone", "new"), 1)
    }
    before = {"same": 1.0, "faster": 1.0, "slower": 1.0, "gone": 1.0}
    after = {"same": 1.02, "faster": 0.5, "slower": 2.0, "new": 1.0}
    jitter = (0.95, 0.98, 1.0, 1.02, 1.05)

    def run(medians: dict[str, float]) -> list[report.Record]:
        return [{"kind": "run"}, *(record_of(cases[k], [v * j for j in jitter]) for k, v in medians.items())]

    found = bench_compare.compare(run(before), run(after))
    assert [each.verdict for each in found] == ["noise", "faster", "SLOWER", "only in OLD", "only in NEW"]
    assert [each.ratio for each in found][1:] == [2.0, 0.5, None, None]
    assert bench_compare.differences(run(before), run(after)) == []
    other = [{**record, "gpu": "another"} for record in run(after)]
    assert bench_compare.differences(run(before), other) == ["gpu: a GPU against another"]


# --- showing ---


def test_the_table_has_one_row_for_a_batch() -> None:
    series = dataclasses.replace(SMALL, back_to_back=32)
    records = [record_of(SMALL, [0.5, 0.5], host_ms=[3.0]), record_of(series, [0.25, 0.25], host_ms=[])]
    console = Console(width=PLAIN_WIDTH)
    with console.capture() as shown:
        console.print(bench_view.bench_table(records))
    *_, row = shown.get().splitlines()
    assert row.split() == [
        "mod-inv",
        "secp256k1_fp",
        "50",
        "0.5000",
        "0.5000",
        "0.0000",
        "0.2500",
        "3.0000",
        "100",
        "k/s",
        "1",
    ]


def test_inputs_are_rows_of_their_own() -> None:
    cases = [dataclasses.replace(SMALL, inputs=kind) for kind in bench_inputs.KINDS]
    old = {key: value for key, value in record_of(SMALL, [0.1]).items() if key != "inputs"}
    console = Console(width=PLAIN_WIDTH)
    with console.capture() as shown:
        console.print(bench_view.bench_table([old, *(record_of(case, [0.5, 0.5]) for case in cases)]))
    rows = shown.get().splitlines()[2:]
    assert len(rows) == 3 and "secp256k1_fp zero " in rows[1] and "secp256k1_fp non-unit " in rows[2]


@pytest.mark.parametrize("ending", ["svg", "png"])
def test_a_plot_with_ceilings_and_peers(tmp_path: Path, ending: str) -> None:
    cases = [dataclasses.replace(SMALL, n=n) for n in (1000, 10**6)]
    path = tmp_path / f"rate.{ending}"
    bench_view.plot([record_of(case, [0.1, 0.1]) for case in cases], path)
    start = {"svg": b"<?xml", "png": b"\x89PNG"}[ending]
    assert path.read_bytes().startswith(start) and path.stat().st_size > 5000


def test_figures_are_drawn_for_their_device_alone() -> None:
    class Axes:
        labels: tuple[str, ...] = ()

        def axhline(self, height: float, **style: Any) -> None:
            self.labels += (style["label"],)

        def plot(self, xs: Any, ys: Any, *_: Any, **style: Any) -> None:
            self.labels += (style["label"],)

    axes = Axes()
    bench_view._draw_figures(axes, [record_of(SMALL, [0.1])])
    assert axes.labels == ("CGBN modular_inverse (peer)", "copy bandwidth, 64 bytes an element (ceiling)")
    for figure in figures.FIGURES:
        assert figure.source and (figure.rate_g is None) == bool(figure.points)


def test_a_plot_that_cannot_be_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    records = [record_of(SMALL, [0.1])]
    with pytest.raises(InputError, match=r"\.svg or \.png"):
        bench_view.plot(records, tmp_path / "rate.jpg")
    with pytest.raises(InputError, match="nothing to plot"):
        bench_view.plot([{"kind": "run"}], tmp_path / "rate.svg")
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(InputError, match=r"limbd\[plot\]"):
        bench_view.plot(records, tmp_path / "rate.svg")


# --- the command ---


def limbd(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "limbd.cli", *words]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=120, check=False)


def test_bench_writes_shows_and_compares(tmp_path: Path) -> None:
    words = ("bench", "mod-add", "--params", "secp256k1", "--modulus", "7", "--n", "2^3,1e2", "--samples", "4")
    for name in ("old.jsonl", "new.jsonl"):
        done = limbd(*words, "--backend", "reference", "--out", name, "--commit", "a" * 40, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert "secp256k1_fp" in done.stdout
    head, *lines = report.read(tmp_path / "old.jsonl")
    assert head["backend"] == "reference" and len(lines) == 8
    assert {line["commit"] for line in lines} == {"a" * 40}
    assert {(line["n"], line["back_to_back"]) for line in lines} == {(n, r) for n in (8, 100) for r in (1, 32)}
    for key in ("samples", "host_ms", "plan", "tuning", "gpu", "compiler", "clock", "checked", "held"):
        assert key in lines[0]
    compared = limbd("bench", "--compare", "old.jsonl", "new.jsonl", cwd=tmp_path)
    assert compared.returncode == 0 and compared.stdout.count("mod-add") == 8
    shown = limbd("bench", "--show", "old.jsonl", "--plot", "rate.svg", cwd=tmp_path)
    assert shown.returncode == 0 and (tmp_path / "rate.svg").is_file()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("mod-add",), "--params"),
        (("mod-add", "-m", "7", "--backend", "null"), "null"),
        (("mod-add", "-m", "7", "--inputs", "zero-per-block", "--backend", "reference"), "mod-add inverts nothing"),
        (("mod-inv", "-m", "7", "--inputs", "non-unit-per-block", "--backend", "reference"), "no multiple of an odd"),
        (("mod-add", "-m", "7", "--n", "0"), "not in 1..2^32-1"),
        (("mod-add", "-m", "7", "--inputs", "witness", "--backend", "reference"), "mod-add has no scalars"),
        (("mod-add", "-m", "7", "--bases", "plain", "--backend", "reference"), "mod-add has no bases"),
        (("msm-g2", "-m", "secp256k1", "--backend", "reference"), "msm-g2 has no curve"),
        (("mod-add", "-m", "7", "--n", "many"), "no number of elements"),
        (("mod-add", "-m", "7", "--plot", "rate.gif", "--backend", "reference"), ".svg or .png"),
        (("--compare", "no.jsonl", "no.jsonl"), "no.jsonl"),
        (("mod-add", "-m", "7", "--backend", "reference", "--out", "."), "cannot write .: Is a directory"),
        (("mod-add", "-m", "7", "--backend", "reference", "--out", "cut.jsonl/x"), "cannot write cut.jsonl/x"),
        (("--show", "."), "cannot read ."),
        (("--show", "cut.jsonl"), "cut.jsonl, line 2: no JSON"),
    ],
)
def test_mistakes_are_one_line(words: tuple[str, ...], told: str, tmp_path: Path) -> None:
    (tmp_path / "cut.jsonl").write_text('{"kind": "run"}\n{"kind": "ca')
    done = limbd("bench", *words, cwd=tmp_path)
    assert done.returncode == 2 and told in done.stderr and "Traceback" not in done.stderr
    assert done.stderr.count("\n") == 1 and not done.stdout


def test_halt_on_the_command_line(tmp_path: Path) -> None:
    for words, code, told in (
        (("halt", "check", "9999"), 2, "there is no plan '9999'"),
        (("halt", "run"), 2, "which plan?"),
        (("halt", "measure", "0001"), 2, "check, run, index"),
        (("halt", "run", "9999"), 2, "there is no plan"),
    ):
        done = limbd(*words, cwd=tmp_path)
        assert (done.returncode, "Traceback" in done.stderr) == (code, False)
        assert told in done.stderr
