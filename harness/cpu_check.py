"""The CPU backend against a GMP loop over the same bytes, in one run: `python -m limbd.harness.cpu_check`.

Absolute times of a CPU say little; the ratio of the two, taken in turns, does. Leaves one .jsonl with raw samples.
"""

from __future__ import annotations

import argparse
import platform
import statistics
import sys
import time
from pathlib import Path

import numpy as np

from limbd.harness import bench, report
from limbd.worker.device.cpu import CpuBackend

N = 10**5
TURNS = 9

# What the CPU backend promises on two cores: times faster than GMP.
PROMISED = {"mod-mul": 4.0, "mod-inv": 1.6, "mod-inv-batch": 8.0}


def compare(backend: CpuBackend, op: str, turns: int = TURNS) -> report.Record:
    """Seconds of both, in turns, for a batch modulo the secp256k1 prime's group order (a general modulus)."""
    request = bench.request_of(bench.Case(op, "secp256k1_fr", N), 0)
    plan = request.op.plan(request, backend.traits())
    ours, theirs = (np.empty((N, 8), dtype="<u4") for _ in range(2))
    backend.run(request, plan, ours.data.cast("B"))
    samples: dict[str, list[float]] = {"cpu_s": [], "gmp_s": []}
    for _ in range(turns):
        started = time.perf_counter()
        backend.run(request, plan, ours.data.cast("B"))
        middle = time.perf_counter()
        request.op.reference(request, theirs.data.cast("B"))
        samples["cpu_s"].append(middle - started)
        samples["gmp_s"].append(time.perf_counter() - middle)
    ratio = statistics.median(samples["gmp_s"]) / statistics.median(samples["cpu_s"])
    same = bool((ours == theirs).all())
    return {**samples, "n": N, "ratio": ratio, "promised": PROMISED[op], "ok": same and ratio >= PROMISED[op]}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m limbd.harness.cpu_check", description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, help="the file (default: plans/results/DATE-cpu.jsonl)")
    options = parser.parse_args(arguments)
    backend = CpuBackend()
    info = backend.describe()
    head = report.run_record("cpu", {"device": info.device, "compiler": info.compiler, "machine": platform.machine()})
    journal = report.Journal(options.out or Path(f"plans/results/{head['date'][:10]}-cpu.jsonl"), head)
    failed = 0
    for op in PROMISED:
        values = compare(backend, op)
        journal.add(op, **values)
        failed += not values["ok"]
        print(f"{op}: {values['ratio']:.2f} times faster than GMP on {head['cpus']} cores (promised {PROMISED[op]})")
    backend.close()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
