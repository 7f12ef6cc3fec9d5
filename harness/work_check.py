"""Whether constant work is constant on a GPU: instructions of every kernel, for scalars that are all alike and others.

    python -m limbd.harness.work_check --out plans/results

has `ncu` count the instructions that warps execute in one multiplication of each group by all zeros, all ones, all r - 1 and
uniform scalars, and leaves a .jsonl file: a line a group, with the counts of each launch. The launches have to be the same, and
the sums of all instructions within 1 % of each other.
"""

from __future__ import annotations

import argparse
import csv
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from limbd.harness import bench_multiplications, machine, report
from limbd.harness.benching import measurable
from limbd.harness.groups import GROUPS
from limbd.harness.inputs import UNIFORM
from limbd.ops import by_name
from limbd.ops.base import Call, Limbs
from limbd.ops.msm import CONSTANT_WORK, Msm
from limbd.ops.params.curves import Curve
from limbd.ops.params.layout import PLAIN_LIMBS, from_ints
from limbd.worker.config import Config

METRIC = "smsp__inst_executed.sum"
LOG_N, WITHIN = 16, 0.01

SCALARS = ("zeros", "ones", "r - 1", UNIFORM)

Counts = list[tuple[str, int]]


def chosen(curve: Curve, n: int, kind: str) -> Limbs:
    if kind == UNIFORM:
        return bench_multiplications.scalars(curve, n, UNIFORM, 1)
    return np.broadcast_to(from_ints([{"zeros": 0, "ones": 1, "r - 1": curve.order - 1}[kind]]), (n, PLAIN_LIMBS))


def multiply(op_name: str, curve_name: str, n: int, cache: Path | None) -> None:
    """One multiplication by each kind of scalars, in the order of SCALARS. What ncu counts."""
    op, curve = by_name(op_name), bench_multiplications.curve_of(op_name, curve_name)
    assert isinstance(op, Msm)
    call = Call(n, bench_multiplications.param_of(curve) | CONSTANT_WORK)
    known = bench_multiplications.chain(curve, op.group, min(n, bench_multiplications.CHAIN))
    with measurable(Config(backend="cuda", cache=cache)) as backend:
        for kind in SCALARS:
            request, _payload = bench_multiplications.repeating(op, call, known, chosen(curve, n, kind))
            result = bytearray(op.result_bytes(call))
            backend.run(request, op.plan(request, backend.traits()), memoryview(result))


def counted(text: str) -> Counts:
    """(kernel, instructions) of each launch in ncu's output, which has other lines as well."""
    lines = [line for line in text.splitlines() if line.startswith('"')]
    rows = csv.DictReader(lines)
    return [(row["Kernel Name"].split("(")[0], int(row["Metric Value"].replace(",", ""))) for row in rows]


def judge(counts: Counts) -> report.Record:
    """launches: of each kind of scalars. worst: the largest sum over the smallest, less one."""
    size, rest = divmod(len(counts), len(SCALARS))
    by_kind = {kind: counts[i * size : (i + 1) * size] for i, kind in enumerate(SCALARS)}
    names = {tuple(name for name, _ in each) for each in by_kind.values()}
    totals = [sum(count for _, count in each) for each in by_kind.values()]
    same = not rest and size > 0 and len(names) == 1
    worst = max(totals) / min(totals) - 1 if same else None
    return {"ok": worst is not None and worst <= WITHIN, "launches": by_kind, "worst": worst}


def check(op: str, curve: str, options: argparse.Namespace) -> report.Record:
    own = [sys.executable, "-m", "limbd.harness.work_check", "--multiply", op, curve, "--log", str(options.log)]
    own += ["--cache-dir", str(options.cache_dir)] if options.cache_dir else []
    command = ["ncu", "--clock-control", "none", "--metrics", METRIC, "--csv", *own]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=options.seconds, check=False)
    except FileNotFoundError:
        return {"ok": False, "failure": "ncu is not on the PATH"}
    except subprocess.TimeoutExpired:
        return {"ok": False, "failure": f"not done after {options.seconds:.0f} s"}
    if done.returncode != 0:
        return {"ok": False, "failure": (done.stdout + done.stderr)[-1500:]}
    return judge(counted(done.stdout))


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status 0: every group's work is constant. 1: some is not, or was not counted."""
    options = _parser().parse_args(arguments)
    if options.multiply:
        op, curve = options.multiply
        multiply(op, curve, 1 << options.log, options.cache_dir)
        return 0
    with measurable(Config(backend="cuda", cache=options.cache_dir)) as backend:
        head = report.run_record("work", machine.facts(backend), options.commit)
    path = options.out / f"{options.name or head['date'][:10]}-work.jsonl"
    journal, good = report.Journal(path, head), True
    for op, curve in ((f"msm-{name}", curve.name) for curve, name in GROUPS if not curve.toy):
        found = check(op, curve, options)
        journal.add(f"{op} {curve} n={1 << options.log} constant work", **found)
        good &= bool(found["ok"])
        worst = found.get("worst")
        print(f"{op} {curve}: {found if worst is None else f'within {worst:.4%}'}", flush=True)
    print(f"work: {'constant' if good else 'NOT constant'}: {path}")
    return 0 if good else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m limbd.harness.work_check", description=__doc__.split("\n")[0])
    parser.add_argument("--log", type=int, default=LOG_N, metavar="K", help="log2 of n (%(default)s)")
    parser.add_argument("--out", type=Path, default=Path("plans/results"), help="folder of the file (%(default)s)")
    parser.add_argument("--name", help="beginning of the file's name (default: the date)")
    parser.add_argument("--seconds", type=float, default=100.0, help="for each group (%(default)s)")
    parser.add_argument("--commit", help="the commit of this tree, where it has no history")
    parser.add_argument("--cache-dir", type=Path, help="folder of compiled kernels")
    parser.add_argument("--multiply", nargs=2, metavar=("OP", "CURVE"), help="what is counted, by itself")
    return parser


if __name__ == "__main__":
    sys.exit(main())
