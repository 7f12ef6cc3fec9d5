"""`limbd demo`: the shipped batches through a real worker, compared with the known answers."""

from __future__ import annotations

import time
from dataclasses import dataclass

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from limbd.harness.asking import progress
from limbd.harness.vectors.demo import DemoBatch, demo_batches
from limbd.ops import by_name
from limbd.ops.status import LimbdError
from limbd.worker.client import Client
from limbd.worker.device.host_compiler import REMEDY as COMPILER_REMEDY
from limbd.worker.device.nvrtc import REMEDY as GPU_REMEDY
from limbd.worker.exchange import exchange_of_arrays
from limbd.worker.link import Report

# What tables are laid out for where the output is no terminal.
PLAIN_WIDTH = 110

_UNITS = ((1e9, "G/s"), (1e6, "M/s"), (1e3, "k/s"), (1.0, "/s"))


@dataclass(frozen=True)
class Row:
    """One batch as it went. round_trip_ms: from the first byte sent to the last received.
    report: the worker's own times, None for a worker elsewhere. trouble: what is wrong, or ""."""

    batch: DemoBatch
    round_trip_ms: float
    report: Report | None
    trouble: str


def run(client: Client, console: Console | None = None) -> bool:
    """Sends every shipped batch and prints what came back. True where all answers are the known ones."""
    console = console or Console()
    if not console.is_terminal:
        console.width = PLAIN_WIDTH
    batches = demo_batches()
    rows = []
    client.mod_add(1, 1, 7)  # so that the first round trip does not count the worker's start
    with progress() as bar:
        task = bar.add_task("batches", total=len(batches))
        for batch in batches:
            rows.append(ask(client, batch))
            bar.advance(task)
    console.print(_table(rows))
    for line in closing_lines(rows, client.remarks()):
        console.print(line, highlight=False, markup=False, soft_wrap=True)
    return not any(row.trouble for row in rows)


def ask(client: Client, batch: DemoBatch) -> Row:
    """One batch there and back, and the comparison."""
    operands = list(batch.operands.values())
    begin = time.perf_counter()
    if batch.curve:
        pending = client.send(exchange_of_arrays(by_name(batch.op), batch.n, batch.param, operands))
    else:
        pending = client.submit(batch.op, operands, batch.modulus, param=batch.param)
    trouble = ""
    try:
        results = pending.result()
        trouble = "" if batch.check(results) else "NO, they differ"
    except LimbdError as error:
        trouble = str(error)
    took = 1e3 * (time.perf_counter() - begin)
    return Row(batch, took, pending.report(), trouble)


def closing_lines(rows: list[Row], remarks: list[str]) -> list[str]:
    """Who answered, what would make it faster, and the verdict."""
    backends = list(dict.fromkeys(f"{r.report.backend} (device {r.report.device})" for r in rows if r.report))
    lines = ["trip: from the first byte sent to the last byte received"]
    lines += [f"answered by: {', '.join(backends) or 'a worker elsewhere (its stderr has the times)'}"]
    lines += [remark.removeprefix("limbd: ") for remark in remarks[:4]]
    names = {row.report.backend for row in rows if row.report}
    if "reference" in names:
        lines.append(f"to run the kernels on this machine's CPU: {COMPILER_REMEDY}")
    if names & {"cpu", "reference"}:
        lines.append(f"to run them on an NVIDIA GPU: {GPU_REMEDY}")
    wrong = sum(1 for row in rows if row.trouble)
    total = sum(row.batch.results for row in rows)
    if wrong:
        return [*lines, f"{wrong} of {len(rows)} batches are NOT identical to the known answers"]
    return [*lines, f"all {len(rows)} batches, {total:,} results, are identical to the known answers"]


def rate(n: int, milliseconds: float) -> str:
    """Elements a second, three digits."""
    if milliseconds <= 0:
        return "-"
    value = 1e3 * n / milliseconds
    scale, unit = next((s, u) for s, u in _UNITS if value >= s or s == 1.0)
    value /= scale
    return f"{value:.{2 if value < 10 else 1 if value < 100 else 0}f} {unit}"


def _table(rows: list[Row]) -> Table:
    table = Table(
        title="limbd demo: the shipped batches through a worker process",
        title_justify="left",
        box=SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        pad_edge=False,
        show_edge=False,
    )
    for heading in ("op", "modulus"):
        table.add_column(heading, no_wrap=True)
    for heading in ("n", "backend", "kernel ms", "rate", "trip ms"):
        table.add_column(heading, no_wrap=True, justify="left" if heading == "backend" else "right")
    table.add_column("known answers", overflow="fold")
    for row in rows:
        table.add_row(*_cells(row))
    return table


def _cells(row: Row) -> tuple[str, ...]:
    report = row.report
    kernel = report.kernel_ms if report else 0.0
    verdict = f"[bold red]{escape(row.trouble)}[/]" if row.trouble else "[green]identical[/]"
    return (
        row.batch.op,
        row.batch.curve.name if row.batch.curve else row.batch.field.name,
        str(row.batch.n),
        report.backend if report else "-",
        f"{kernel:.4f}" if report else "-",
        rate(row.batch.n, kernel),
        f"{row.round_trip_ms:.1f}",
        verdict,
    )
