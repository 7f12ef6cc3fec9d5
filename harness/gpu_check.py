"""Everything that has to be seen on a GPU, in one command: `python -m limbd.harness.gpu_check`.

Parts, in this order: known answers (kat), fuzzing (fuzz), the whole worker (worker), benchmarks (bench), compute-sanitizer
(sanitize). Each ends inside nine minutes and leaves one .jsonl file of raw records; --resume goes on with a file that
was cut off. Correctness comes first: a benchmark is not begun after a failure.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from limbd.harness import (
    bench,
    bench_cases,
    bench_multiplications,
    exhaustive,
    fuzz,
    kat,
    long_batches,
    multiplication_laws,
    report,
    sanitize_cases,
    transform_laws,
    transforms,
    worker_check,
)
from limbd.harness.groups import GROUPS
from limbd.ops import OPS
from limbd.ops.params import fields
from limbd.ops.status import LimbdError
from limbd.worker.client import Client
from limbd.worker.device import driver, nvml
from limbd.worker.device.cache import Cache
from limbd.worker.device.cuda import CudaBackend

PART_SECONDS = 540.0

# Of the known answers' transforms, through the backend object and through frames.
LARGEST_RECIPE = 24

# Transforms without a reference, and log2 of the sizes of one case: large ones take tens of seconds each.
TRANSFORM_LAWS_FIELDS = ("bn254_fr", "bls12_381_fr")
TRANSFORM_LAWS_SIZES = (range(18), *(range(k, k + 1) for k in range(18, 23)))

# Pairs of multi-scalar multiplications whose sums are compared with other sums.
LAWS_LOG_N = 20

SANITIZERS = ("memcheck", "racecheck", "initcheck", "synccheck")
# Processes that share the cases of each.
SANITIZER_SHARES = 3


def _kind(op: str) -> str | None:
    if bench_multiplications.is_multiplication(op):
        return "multiplications"
    return "transforms" if op in transforms.VARIANTS else None


@dataclass
class Check:
    """What every part works with. end: time.monotonic() after which no new case is begun."""

    options: argparse.Namespace
    journal: report.Journal
    end: float
    failures: int = 0

    @property
    def ops(self) -> list[str]:
        """Those that were asked for."""
        return self.options.ops or [op.name for op in OPS]

    @property
    def alone(self) -> str | None:
        """Of sanitize_cases.ALONE, where no other ops were asked for."""
        kinds = {_kind(op) for op in self.ops}
        return kinds.pop() if len(kinds) == 1 else None

    def backend(self, **options: Any) -> CudaBackend:
        return CudaBackend(self.options.device, cache=Cache(self.options.cache_dir), **options)

    def due(self, case: str) -> bool:
        """Whether the case is still to be done: asked for, not in the file, and time is left."""
        asked = any(text in case for text in self.options.match.split(","))
        if not asked or case in self.journal.done:
            return False
        if time.monotonic() > self.end:
            print(f"{case}: not begun, out of time (--resume goes on here)")
            self.failures += 1
            return False
        return True

    def verdict(self, case: str, ok: bool, **values: Any) -> None:
        self.journal.add(case, ok=ok, **values)
        print(f"{case}: {'ok' if ok else 'FAILED'}", flush=True)
        self.failures += not ok


def check_kat(check: Check) -> None:
    """All vectors through the backend object and through frames; every kernel at block edges; all operands of tiny moduli."""
    backend = check.backend(poison=True)
    try:
        if check.due("vectors"):
            found = kat.run(backend, check.ops, largest=LARGEST_RECIPE)
            found.print()
            check.verdict("vectors", found.ok, passed=found.passed, failed=found.failed, failures=found.failures[:10])
        if check.due("block edges"):
            wrong = sanitize_cases.chosen(backend, check.alone)
            check.verdict("block edges", not wrong, failures=wrong[:10])
        for op in (op for op in OPS if op.name in check.ops):
            case = f"exhaustive {op.name}"
            if check.due(case):
                wrong, compared = exhaustive.run(backend, op)
                check.verdict(case, not wrong, compared=compared, failures=wrong[:10])
        _check_laws(check, backend)
        _check_transform_laws(check, backend)
    finally:
        backend.close()
    if check.due("vectors through frames"):
        with Client(backend="cuda", devices=(check.options.device,), cache=check.options.cache_dir) as client:
            found = kat.run(client, check.ops, name="limbd pipe --backend cuda", largest=LARGEST_RECIPE)
        found.print()
        check.verdict("vectors through frames", found.ok, passed=found.passed, failed=found.failed)


def _check_laws(check: Check, backend: CudaBackend) -> None:
    """Split, permuted and negated sums of many points, which need no reference."""
    for curve, name in GROUPS:
        case = f"laws msm-{name} {curve.name} 2^{LAWS_LOG_N}"
        if f"msm-{name}" in check.ops and not curve.toy and check.due(case):
            broken = multiplication_laws.broken(backend, curve, name, 1 << LAWS_LOG_N)
            check.verdict(case, not broken, failures=broken)


def _check_transform_laws(check: Check, backend: CudaBackend) -> None:
    """Every size, order, direction and kind of domain, judged whole."""
    for name, sizes in product(TRANSFORM_LAWS_FIELDS, TRANSFORM_LAWS_SIZES):
        field = fields.by_name(name)
        case = f"laws ntt {name}, 2^{sizes[0]}" + (f" to 2^{sizes[-1]}" if len(sizes) > 1 else "")
        if "ntt" in check.ops and field is not None and check.due(case):
            failures = [text for k in sizes for text in transform_laws.broken(backend, field, k, check.options.seed)]
            check.verdict(case, not failures, failures=failures[:10])


def check_fuzz(check: Check) -> None:
    """Random and hard operands of every op against the reference: a million of mod-inv-batch, then of all for the time
    given."""
    backend = check.backend(poison=True)
    try:
        _fuzz(check, f"fuzz {long_batches.OP}", backend, ops=[long_batches.OP], elements=10**6)
        _fuzz(check, "fuzz", backend, seconds=max(1.0, check.end - time.monotonic() - 5))
    finally:
        backend.close()


def _fuzz(check: Check, case: str, backend: CudaBackend, **bounds: Any) -> None:
    if not check.due(case):
        return
    found = fuzz.run(backend, seed=check.options.seed, **bounds)
    found.print()
    failures = [str(failure) for failure in found.failures]
    check.verdict(case, found.ok, seed=found.seed, rounds=found.rounds, elements=found.elements, failures=failures)


def check_bench(check: Check) -> None:
    """Times of bench_cases.CASES: what `limbd bench` measures, for the cases that the speed claims rest on."""
    backend = check.backend()
    try:
        for case in (*bench_cases.CASES, *(bench_cases.LONG_CASES if check.options.long else ())):
            if case.op not in check.ops or not check.due(case.name):
                continue
            try:
                values = bench.run_case(backend, case)
            except (AssertionError, LimbdError) as error:
                check.verdict(case.name, False, failure=str(error))
                return
            check.journal.add(case.name, ok=True, **values)
            print(f"{case.name[:70]:<70} {values['median']:10.4f} ms {values['rate_g']:9.3f} G/s", flush=True)
    finally:
        backend.close()


def check_worker(check: Check) -> None:
    """Streaming through a budget, pipelining, a killed child, whole frames: see worker_check."""
    for case, run in worker_check.cases(check.options.device, check.options.cache_dir).items():
        if check.due(case):
            ok, values = run()
            print(f"{case}: { {k: v for k, v in values.items() if not isinstance(v, list)} }")
            check.verdict(case, ok, **values)


def check_sanitize(check: Check) -> None:
    """compute-sanitizer over one case per kernel and block-edge n."""
    tool = shutil.which("compute-sanitizer")
    if tool is None:
        check.verdict("compute-sanitizer", False, failure="compute-sanitizer is not on the PATH")
        return
    due = [name for name in SANITIZERS if check.due(name)]
    with ThreadPoolExecutor(max(1, os.cpu_count() or 1)) as pool:
        # All at once: most of their time is the reference's, one processor each.
        runs = {
            name: [pool.submit(_sanitize, check, tool, name, index) for index in range(SANITIZER_SHARES)]
            for name in due
        }
    for name, shares in runs.items():
        done = [share.result() for share in shares]
        check.verdict(name, all(ok for ok, _ in done), output=[text for _, text in done])


def _sanitize(check: Check, tool: str, name: str, index: int) -> tuple[bool, str]:
    """One tool over one share of the cases: whether it found nothing, and what it printed."""
    # Driver calls are checked by us; the bindings probe for functions that a driver may lack, which is no error.
    options = ["--report-api-errors", "no"] if name == "memcheck" else []
    command = [tool, "--tool", name, *options, "--error-exitcode", "9"]
    command += [sys.executable, "-m", "limbd.harness.sanitize_cases", "--share", str(index), str(SANITIZER_SHARES)]
    command += ["--alone", check.alone] if check.alone else []
    left = max(10.0, check.end - time.monotonic())
    begin = time.monotonic()
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=left, check=False)
    except subprocess.TimeoutExpired:
        return False, f"not done after {left:.0f} s"
    seconds = time.monotonic() - begin
    return done.returncode == 0, f"status {done.returncode}, {seconds:.0f} s: {_ends(done.stdout + done.stderr)}"


def _ends(text: str, length: int = 1500) -> str:
    """A long text without its middle."""
    return text if len(text) <= 2 * length else f"{text[:length]} ... {text[-length:]}"


PARTS: dict[str, Callable[[Check], None]] = {
    "kat": check_kat,
    "fuzz": check_fuzz,
    "worker": check_worker,
    "bench": check_bench,
    "sanitize": check_sanitize,
}


def main(arguments: list[str] | None = None) -> int:
    """Exit status 0: every part that was asked for is done and right. 1: something failed or was not reached."""
    options = _parser().parse_args(arguments)
    state = driver.probe()
    if len(state.devices) <= options.device:
        print(f"no CUDA device {options.device}: {state.reason}", file=sys.stderr)
        return 1
    failures = 0
    for part in [options.only] if options.only else list(PARTS):
        check = _begin(part, options)
        PARTS[part](check)
        print(
            f"{part}: {'done' if not check.failures else f'{check.failures} FAILED'}: {check.journal.path}", flush=True
        )
        failures += check.failures
        if failures and not options.only:
            break
    return 1 if failures else 0


def _begin(part: str, options: argparse.Namespace) -> Check:
    device = driver.probe().devices[options.device]
    version = ".".join(map(str, driver.probe().version))
    described: report.Record = {
        "gpu": device.name,
        "arch": device.arch,
        "driver": nvml.driver_version(),
        "cuda": version,
        "device": device.index,
    }
    head = report.run_record(part, described, options.commit)
    path = options.out / f"{options.name or head['date'][:10]}-{part}.jsonl"
    journal = report.Journal(path, head, resume=options.resume)
    seconds = min(options.seconds or PART_SECONDS, PART_SECONDS)
    if part == "fuzz" and options.seconds is None:
        seconds = 60.0
    return Check(options, journal, time.monotonic() + seconds)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m limbd.harness.gpu_check", description=__doc__.split("\n")[0])
    parser.add_argument("--only", choices=list(PARTS), help="this part alone")
    parser.add_argument("--seconds", type=float, help=f"for each part, at most {PART_SECONDS:.0f} (fuzz: 60)")
    parser.add_argument("--resume", action="store_true", help="skip what the part's file already holds")
    parser.add_argument("--device", type=int, default=0, help="CUDA device (default: %(default)s)")
    parser.add_argument("--out", type=Path, default=Path("plans/results"), help="folder of the files (%(default)s)")
    parser.add_argument("--name", help="beginning of the files' names (default: the date)")
    parser.add_argument("--commit", help="the commit of this tree, where it has no history")
    parser.add_argument("--cache-dir", type=Path, help="folder of compiled kernels")
    parser.add_argument("--seed", default="1", help="of the fuzzer (default: %(default)s)")
    parser.add_argument("--match", default="", help="only cases whose name holds one of these texts, comma-separated")
    parser.add_argument("--long", action="store_true", help="benchmarks: those of gigabytes too")
    names = [op.name for op in OPS]
    parser.add_argument(
        "--ops", nargs="+", choices=names, metavar="OP", help="these ops alone (not in fuzz and worker)"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
