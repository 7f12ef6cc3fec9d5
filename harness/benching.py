"""What `limbd bench` does: measure, write down, show, compare."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import cast

from limbd.harness import bench, bench_compare, bench_multiplications, bench_view, machine, report
from limbd.harness.textio import InputError, parse_modulus
from limbd.ops.params import fields
from limbd.ops.status import ServiceError, Status
from limbd.worker.config import Config
from limbd.worker.device.choose import NoBackend, choose
from limbd.worker.device.measurement import Measurable


def measure(
    config: Config, cases: Sequence[bench.Case], out: Path | None, plot: Path | None, commit: str | None = None
) -> bool:
    """Measures the cases on the configured backend; prints a table and writes what is asked for. True where every result
    was right: the first wrong one ends it."""
    if plot is not None and plot.suffix not in bench_view.PLOT_FORMATS:
        raise InputError(f"{plot}: a plot is written as {' or '.join(bench_view.PLOT_FORMATS)}")
    with measurable(config) as backend:
        head = report.run_record("bench", machine.facts(backend), commit)
        journal = _journal(out, head) if out else None
        records, trouble = _measure(backend, cases, journal, head)
    show(records, plot)
    if trouble:
        print(trouble)
    return not trouble


def _journal(path: Path, head: report.Record) -> report.Journal:
    try:
        return report.Journal(path, head)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror or error}") from None


def show(records: Sequence[report.Record], plot: Path | None) -> None:
    """The table, and the plot where one is asked for."""
    console = bench_view.console()
    console.print(bench_view.bench_table(records))
    console.print(bench_view.NOTES, highlight=False, markup=False)
    if plot is not None:
        bench_view.plot(records, plot)
        console.print(f"plot: {plot}", highlight=False, markup=False)


def compare(old: Path, new: Path) -> None:
    """Prints the ratios of two files' cases."""
    before, after = read(old), read(new)
    console = bench_view.console()
    for line in bench_compare.differences(before, after):
        console.print(f"not the same {line}", highlight=False, markup=False)
    console.print(bench_view.compare_table(bench_compare.compare(before, after)))
    console.print("noise: the medians differ by no more than the spread between the quartiles", markup=False)


def read(path: Path) -> list[report.Record]:
    """A file of records. Raises InputError."""
    return list(report.read(path))


def modulus_name(op: str, text: str) -> str:
    """How a case names a modulus that was written as `text`: a field's name, or hexadecimal; a curve's name where the op
    takes one. Raises InputError."""
    if bench_multiplications.is_multiplication(op):
        return bench_multiplications.curve_of(op, text).name
    value, field = parse_modulus(text), fields.by_name(text)
    return field.name if field else f"{value:x}"


@contextmanager
def measurable(config: Config) -> Iterator[Measurable]:
    """The configured backend in this process. Raises ServiceError(NO_DEVICE) where it does not work here, InputError
    for the backend that computes nothing."""
    if config.backend == "null":
        raise InputError("the null backend computes nothing that could be measured")
    try:
        backend, reason = choose(config.backend, config.devices[0], config.device_memory, config.cache)
    except NoBackend as error:
        raise ServiceError(Status.NO_DEVICE, str(error)) from None
    if config.backend == "auto":
        print(f"backend {backend.describe().name}: {reason}", file=sys.stderr)
    try:
        yield cast(Measurable, backend)
    finally:
        backend.close()


def _measure(
    backend: Measurable, cases: Sequence[bench.Case], journal: report.Journal | None, head: report.Record
) -> tuple[list[report.Record], str]:
    """The records, and what was wrong or ""."""
    from limbd.harness.asking import progress

    records: list[report.Record] = []
    with progress() as bar:
        task = bar.add_task("cases", total=len(cases))
        for case in cases:
            try:
                values = bench.run_case(backend, case)
            except bench.WrongResult as error:
                if journal:
                    journal.add(case.name, ok=False, failure=str(error))
                return records, f"WRONG: {error}"
            record = {"kind": "case", "case": case.name, "commit": head["commit"], "ok": True, **values}
            records.append(record)
            if journal:
                journal.add(case.name, ok=True, **values)
            bar.advance(task)
    return records, ""
