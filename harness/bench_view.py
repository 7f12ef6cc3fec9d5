"""Benchmarks as people read them: a table, a comparison, a plot."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from limbd.harness import figures
from limbd.harness.bench_compare import Comparison
from limbd.harness.demo import PLAIN_WIDTH, rate
from limbd.harness.inputs import UNIFORM
from limbd.harness.report import Record, summary
from limbd.harness.textio import InputError

PLOT_REMEDY = "pip install 'limbd[plot]'"
PLOT_FORMATS = (".svg", ".png")

NOTES = (
    "ms: median of one batch by the device's clock; spread: between the quartiles; in a row: rounds back to back\n"
    "host ms: wall time of a whole batch in pinned memory, copies in and out; rate: of the kernel\n"
    "plain and precomputed bases stay on the device: ms is of a whole call, from before the copy of scalars to after the answer's"
)


def console() -> Console:
    """The standard output; as wide as the tables want where it is no terminal."""
    made = Console()
    if not made.is_terminal:
        made.width = PLAIN_WIDTH
    return made


def bench_table(records: Iterable[Record]) -> Table:
    """One row for each op, modulus and n, with its back-to-back time beside it."""
    table = _table("op", "modulus", *_right("n", "ms", "min", "spread", "in a row", "host ms", "rate", "checked"))
    rows: dict[tuple[str, str, int], dict[bool, Record]] = {}
    for r in records:
        if r.get("kind") == "case" and r.get("samples"):
            rows.setdefault((r["op"], _asked(r), r["n"]), {})[r["back_to_back"] > 1] = r
    for (op, modulus, n), found in rows.items():
        single, series = found.get(False), found.get(True)
        shown: Record = single or series or {}
        told = [_ms(single[key]) if single else "-" for key in ("median", "min", "spread")]
        host = _ms(summary(single["host_ms"])["median"]) if single and single.get("host_ms") else "-"
        in_a_row = _ms(series["median"]) if series else "-"
        table.add_row(op, modulus, str(n), *told, in_a_row, host, rate(n, shown["median"]), str(shown["checked"]))
    return table


def compare_table(comparisons: Iterable[Comparison]) -> Table:
    table = _table("case", *_right("old ms", "new ms", "old/new", "spread"), "")
    for each in comparisons:
        ratio = "-" if each.ratio is None else f"{each.ratio:.3f}"
        style = {"faster": "[green]", "SLOWER": "[bold red]"}.get(each.verdict, "[dim]")
        table.add_row(each.case, _ms(each.old), _ms(each.new), ratio, _ms(each.spread), f"{style}{each.verdict}[/]")
    return table


def plot(records: Sequence[Record], path: Path) -> None:
    """Draws rate over n, one line for each op and modulus, with the figures of limbd.harness.figures where the device is
    theirs. path: .svg or .png. Raises InputError without matplotlib, or where there is nothing to draw."""
    lines = _lines(records)
    if not lines:
        raise InputError("nothing to plot: no measured case")
    if path.suffix not in PLOT_FORMATS:
        raise InputError(f"{path}: a plot is written as {' or '.join(PLOT_FORMATS)}")
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise InputError(f"a plot needs matplotlib: {PLOT_REMEDY}") from None
    canvas = Figure(figsize=(9, 5.5), layout="constrained")
    axes = canvas.add_subplot()
    for label, points in lines.items():
        style = "--" if label.endswith("in a row") else "-"
        axes.plot(*zip(*sorted(points.items()), strict=True), style, marker="o", label=label)
    if any(r.get("arch") == figures.ARCH for r in records):
        _draw_figures(axes, records)
    axes.set(xscale="log", yscale="log", xlabel="n (elements of a batch)", ylabel="G elements/s (kernel time)")
    axes.set_title(", ".join(sorted({str(r["gpu"]) for r in records if r.get("gpu")})))
    axes.grid(alpha=0.3, which="both")
    axes.legend(fontsize="small")
    try:
        canvas.savefig(path, dpi=150)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror or error}") from None


def _draw_figures(axes: Any, records: Sequence[Record]) -> None:
    cases = [r for r in records if r.get("kind") == "case"]
    drawn = {f for r in cases for f in figures.figures_of(r["op"], {r["field"] for r in cases}, r["metric"])}
    for number, figure in enumerate(sorted(drawn, key=lambda f: f.label)):
        colour, label = f"C{5 + number % 5}", f"{figure.label} ({figure.kind})"
        if figure.rate_g is not None:
            axes.axhline(figure.rate_g, linestyle=":", color=colour, label=label)
        else:
            axes.plot(*zip(*figure.rates(), strict=True), ":", marker="x", color=colour, label=label)


def _lines(records: Iterable[Record]) -> Mapping[str, dict[int, float]]:
    """label -> n -> rate_g."""
    lines: dict[str, dict[int, float]] = {}
    for r in records:
        if r.get("kind") == "case" and r.get("samples"):
            label = f"{r['op']} {_asked(r)}" + (", in a row" if r["back_to_back"] > 1 else "")
            lines.setdefault(label, {})[r["n"]] = r["rate_g"]
    return lines


def _asked(record: Record) -> str:
    """The modulus, the inputs where they are not uniform, and bases that stay on the device (records from before there were
    others say nothing)."""
    inputs, bases = record.get("inputs", UNIFORM), record.get("bases", "")
    kind = f" {inputs.removesuffix('-per-block')}" if inputs != UNIFORM else ""
    return _modulus(record) + kind + (f" {bases} bases" if bases else "")


def _modulus(record: Record) -> str:
    """A field's name, or enough of a modulus to tell it."""
    if record["field"]:
        return str(record["field"])
    digits = record["modulus"]
    return f"0x{digits}" if len(digits) <= 16 else f"0x{digits[:6]}..{digits[-6:]}"


def _ms(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.4f}" if value < 10 else f"{value:.2f}"


def _right(*headings: str) -> tuple[tuple[str, str], ...]:
    return tuple((heading, "right") for heading in headings)


def _table(*columns: str | tuple[str, str]) -> Table:
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
    for column in columns:
        heading, justify = column if isinstance(column, tuple) else (column, "left")
        table.add_column(heading, no_wrap=True, justify=justify)  # type: ignore[arg-type]
    return table
