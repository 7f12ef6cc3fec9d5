"""Measures mod-inv-batch's kernel by many tuning rows, whatever n, and mod-inv's beside it: what ops/tuning.py is set by.

    python -m limbd.harness.batch_sweep --out plans/results --seconds 110

leaves one .jsonl file: a line a row and n with its raw samples. Rows of one n are sampled in turn on the same inputs, and
every sample's results are compared whole with the first that the reference judged. Small n come first; what is not begun
in time is named, and the same command with --resume goes on there.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from limbd.harness import bench, machine, report
from limbd.harness.benching import measurable
from limbd.kernels.source import Sources
from limbd.ops.base import LaunchPlan, Limbs, Request, Traits, Unit
from limbd.ops.mod_inv import MOD_INV
from limbd.ops.mod_inv_batch import MOD_INV_BATCH, launch_with
from limbd.ops.params.layout import PLAIN_LIMBS
from limbd.ops.reference.warp_inverse import TABLES
from limbd.ops.split import elementwise_plan
from limbd.ops.status import LimbdError
from limbd.ops.tuning import BatchRow, Storage, batch_tuning
from limbd.worker.config import BACKENDS, Config
from limbd.worker.device.cache import Cache
from limbd.worker.device.measurement import Measurable, Measurement
from limbd.worker.device.nvrtc import Nvrtc, Target

FIELD = "secp256k1_fp"

SIZES = (1_000, 2_000, 4_000, 6_000, 8_000, 10_000, 30_000, 100_000, 130_000, 300_000, 1_000_000, 10_000_000)

SOURCE = "a sweep"

# (block, resident): few threads with many registers where products wait in registers, whole multiprocessors where not.
REGISTER_BLOCKS = ((64, 2), (128, 1), (256, 1))
SHARED_BLOCKS = ((64, 4), (128, 2), (256, 1))
OUTPUT_BLOCKS = ((64, 8), (128, 4), (256, 2))

GRID = (
    *(
        BatchRow(None, *b, e, Storage.REGISTERS, s, SOURCE)
        for b, s, e in product(REGISTER_BLOCKS, TABLES, (1, 2, 4, 6, 8))
    ),
    *(BatchRow(None, *b, e, Storage.SHARED, 12, SOURCE) for b, e in product(SHARED_BLOCKS, (4, 8))),
    *(BatchRow(None, *b, e, Storage.OUTPUT, s, SOURCE) for b, s, e in product(OUTPUT_BLOCKS, TABLES, (32, 64, 128))),
)

# Above this n a thread has more elements than registers or shared memory hold; below that one a block of OUTPUT has one.
MOST_HELD = 300_000
LEAST_OUTPUT = 30_000

# Up to this n all rows get many samples; above, each costs a copy of tens of megabytes and more.
SMALL = 130_000
SAMPLES, LARGE_SAMPLES = 60, 20


@dataclass(frozen=True)
class Entry:
    """One line of the file. row: None for mod-inv's kernel. shipped: the row that the op itself takes for this n."""

    n: int
    row: BatchRow | None
    shipped: bool = False

    @property
    def name(self) -> str:
        row = self.row
        if row is None:
            return f"n={self.n} mod-inv"
        return f"n={self.n} {row.block}x{row.resident} {row.elements} {row.storage.name} steps={row.steps}"


# --- what is measured ------------------------------------------------------------------------------------------------


def entries(n: int, traits: Traits, grid: Sequence[BatchRow] = GRID) -> list[Entry]:
    """mod-inv, the op's own row, and the grid's: each launch once, by the row of the fewest elements that gives it."""
    own = batch_tuning(traits.kind, traits.arch, PLAIN_LIMBS).row(n)
    shipped = dataclasses.replace(own, up_to=None, source=SOURCE) if own else None
    request = bench.request_of(bench.Case(MOD_INV_BATCH.name, FIELD, 1), 0)
    rows: dict[tuple[object, ...], BatchRow] = {}
    for row in sorted(grid, key=lambda row: row.elements):
        if _serves(row, n):
            rows.setdefault(_identity(row, request, n, traits), row)
    chosen = dict.fromkeys(([shipped] if shipped else []) + list(rows.values()))
    return [Entry(n, None), *(Entry(n, row, row == shipped) for row in chosen)]


def _serves(row: BatchRow, n: int) -> bool:
    return n >= LEAST_OUTPUT if row.storage == Storage.OUTPUT else n <= MOST_HELD


def _identity(row: BatchRow, request: Request, n: int, traits: Traits) -> tuple[object, ...]:
    """The same for rows that differ only in elements that no thread takes."""
    launch = launch_with(row, request, n, traits)
    return row.block, row.resident, row.storage, row.steps, launch.values["elements"]


def plan_of(entry: Entry, request: Request, traits: Traits) -> LaunchPlan:
    whole, row = dataclasses.replace(traits, whole=True), entry.row
    if row is None:
        return MOD_INV.plan(dataclasses.replace(request, op=MOD_INV), whole)
    return elementwise_plan(request, whole, lambda n: launch_with(row, request, n, whole))


# --- measuring -------------------------------------------------------------------------------------------------------


@dataclass
class Batch:
    """The input sets of one n, their results, and the judge of all rows' samples."""

    case: bench.Case
    requests: list[Request]
    results: list[Limbs]
    checker: bench.Checker

    @classmethod
    def of(cls, n: int, samples: int) -> Batch:
        case = bench.Case(MOD_INV_BATCH.name, FIELD, n, samples)
        requests = [bench.request_of(case, seed) for seed in range(bench.rotation(case))]
        results = [bench.empty_result(request) for request in requests]
        return cls(case, requests, results, bench.Checker(requests, results))


def samples_of(backend: Measurable, batch: Batch, plans: Sequence[LaunchPlan]) -> tuple[list[list[float]], bool]:
    """Samples of each plan, all plans in turn, and whether every one was held. Raises WrongResult, LimbdError."""
    warmup = bench.warmup_of(batch.case, len(batch.requests))
    samples: list[list[float]] = [[] for _ in plans]
    memory = [result.data.cast("B") for result in batch.results]
    with ExitStack() as open_ones:
        all_of: list[Measurement] = [
            open_ones.enter_context(backend.measuring(batch.requests, plan, memory)) for plan in plans
        ]
        for _ in range(warmup + batch.case.samples):
            for own, measurement in zip(samples, all_of, strict=True):
                own.append(measurement.sample())
                batch.checker.check(measurement.collect())
        return [own[warmup:] for own in samples], all(measurement.held for measurement in all_of)


def groups(found: Sequence[Entry], nbytes: int, memory: int) -> Iterator[Sequence[Entry]]:
    """As many at a time as fit half of the device's memory with their copies of the inputs. nbytes: of one."""
    at_once = max(1, memory // 2 // nbytes)
    for start in range(0, len(found), at_once):
        yield found[start : start + at_once]


def measure(backend: Measurable, batch: Batch, group: Sequence[Entry], journal: report.Journal) -> bool:
    """Writes a line for each entry. False where one was wrong, or did not run: then nothing is kept of its group."""
    plans = [plan_of(entry, batch.requests[0], backend.traits()) for entry in group]
    try:
        samples, held = samples_of(backend, batch, plans)
    except (bench.WrongResult, LimbdError) as error:
        names = [entry.name for entry in group]
        journal.add(f"n={batch.case.n} FAILED", ok=False, failure=str(error), entries=names)
        print(f"n={batch.case.n}: {error} (one of {', '.join(names)})", flush=True)
        return False
    clock = machine.clock(backend)
    for entry, plan, own in zip(group, plans, samples, strict=True):
        row = dataclasses.asdict(entry.row) if entry.row else None
        case = dataclasses.replace(batch.case, op=MOD_INV_BATCH.name if row else MOD_INV.name)
        measured = {"samples": own, **bench.rates(entry.n, own), "held": held, "clock": clock}
        inputs = {"input_sets": len(batch.requests), "checked": batch.checker.compared}
        told: dict[str, Any] = {"row": row, "shipped": entry.shipped, **bench.case_record(case), **measured, **inputs}
        journal.add(entry.name, ok=True, **told, plan=bench.plan_record(backend, plan), **machine.facts(backend))
        print(f"{entry.name:<48} {measured['median']:9.4f} ms", flush=True)
    return True


def sweep(backend: Measurable, sizes: Sequence[int], journal: report.Journal, end: float) -> bool:
    """Everything that the file does not hold yet. True where all of it was reached and right."""
    good = True
    for n in sizes:
        due = [entry for entry in entries(n, backend.traits()) if entry.name not in journal.done]
        if due and time.monotonic() > end:
            print(f"n={n}: {len(due)} not begun, out of time (--resume goes on here)")
            good = False
            continue
        if due:
            good &= _sweep_n(backend, due, journal, end)
    return good


def _sweep_n(backend: Measurable, due: Sequence[Entry], journal: report.Journal, end: float) -> bool:
    n = due[0].n
    batch = Batch.of(n, SAMPLES if n <= SMALL else LARGE_SAMPLES)
    plans = [plan_of(entry, batch.requests[0], backend.traits()) for entry in due]
    prepare(backend, plans)
    good = True
    with bench.pinned(backend, *batch.results):
        for group in groups(due, plans[0].device_bytes() * len(batch.requests), backend.traits().memory):
            if time.monotonic() > end:
                print(f"n={n}: {len(group)} and later ones not begun, out of time (--resume goes on here)")
                return False
            good &= measure(backend, batch, group, journal)
    return good


def prepare(backend: Measurable, plans: Sequence[LaunchPlan]) -> None:
    """Compiles what the plans need, where the backend compiles."""
    units = dict.fromkeys(launch.kernel.unit for plan in plans for piece in plan.pieces for launch in piece.launches)
    ahead: Callable[[Iterable[Unit]], None] | None = getattr(backend, "prepare", None)
    if ahead is not None:
        ahead(units)


def compile_ahead(arch: str, cache: Cache) -> int:
    """Puts the grid's units, and the shipped ones, into a cache of kernels, on a machine without the GPU, whose time they
    would take. Returns how many there are."""
    traits = Traits("cuda", arch, 1, 1 << 40)
    request = bench.request_of(bench.Case(MOD_INV_BATCH.name, FIELD, 1), 0)
    grid = (launch_with(row, request, 1, traits).kernel.unit for row in GRID)
    units = dict.fromkeys((*MOD_INV_BATCH.units(traits), *grid))
    nvrtc, target = Nvrtc(), Target(int(arch.removeprefix("sm_")))

    def compiled(unit: Unit) -> None:
        source = Sources().cuda(unit.entry, unit.header())
        cache.load(nvrtc.key(source, target, verify=False), lambda: nvrtc.compile(source, target, verify=False).data)

    with ThreadPoolExecutor(len(os.sched_getaffinity(0)), "limbd-compile") as pool:
        list(pool.map(compiled, units))
    return len(units)


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status 0: everything was measured and right. 1: something was wrong or not reached."""
    options = _parser().parse_args(arguments)
    if options.compile_for:
        print(
            f"{compile_ahead(options.compile_for, Cache(options.cache_dir))} units compiled for {options.compile_for}"
        )
        return 0
    end = time.monotonic() + options.seconds
    config = Config(backend=options.backend, devices=(options.device,), cache=options.cache_dir)
    with measurable(config) as backend:
        head = report.run_record("batch-sweep", machine.facts(backend), options.commit)
        path = options.out / f"{options.name or head['date'][:10]}-batch-sweep.jsonl"
        journal = report.Journal(path, head, resume=options.resume)
        good = sweep(backend, options.n, journal, end)
    print(f"batch-sweep: {'done' if good else 'NOT all done and right'}: {path}")
    return 0 if good else 1


def _sizes(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(","))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m limbd.harness.batch_sweep", description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("plans/results"), help="folder of the file (%(default)s)")
    parser.add_argument("--name", help="beginning of the file's name (default: the date)")
    parser.add_argument("--seconds", type=float, default=110.0, help="begin nothing new after this (%(default)s)")
    parser.add_argument("--n", type=_sizes, default=SIZES, metavar="N[,N]", help="default: 1000 to 10000000")
    parser.add_argument("--resume", action="store_true", help="skip what the file already holds")
    parser.add_argument("--commit", help="the commit of this tree, where it has no history")
    parser.add_argument("--backend", choices=[b for b in BACKENDS if b != "null"], default="cuda", help="%(default)s")
    parser.add_argument("--device", type=int, default=0, help="CUDA device (default: %(default)s)")
    parser.add_argument("--cache-dir", type=Path, help="folder of compiled kernels")
    parser.add_argument(
        "--compile-for", metavar="ARCH", help="only fill that folder, for sm_90 or another; needs no GPU"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
