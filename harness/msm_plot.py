"""Draws how long multi-scalar multiplications take, from committed samples, with other programs' figures beside them.

    python -m limbd.harness.msm_plot --results plans/results --out plans/msm.svg

takes the newest samples of each case with bases that stay on the device (bench_bases.py says what is measured), uniform
scalars and one vector, of the device that the figures are from, and prints what it drew with the memory that it takes.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table

from limbd.harness import bench_view, figures, report
from limbd.harness.bench_bases import GROUPS, KINDS
from limbd.harness.inputs import UNIFORM
from limbd.harness.report import Record, summary
from limbd.harness.textio import InputError

Group = tuple[str, str]  # curve and group
Cases = dict[tuple[Group, str, int], Record]  # group, kind of bases, n -> the newest record

REMEDY = "python -m limbd.harness.gpu_check --only bench --ops msm-g1 msm-g2 --match 'plain bases,precomputed bases'"

# A colour for each label, the same in all panels.
COLOURS = {label: f"C{i}" for i, label in enumerate((*KINDS, *dict.fromkeys(f.label for f in figures.MULTIPLIERS)))}


def newest(files: Iterable[Path]) -> Cases:
    """The cases of all runs, a later run's before an earlier's. Raises InputError where a file cannot be understood."""
    found: Cases = {}
    for _, cases in sorted((_run(file) for file in files), key=lambda run: run[0]):
        found |= cases
    return found


def _run(file: Path) -> tuple[str, Cases]:
    """A file's date, which its first record has, and its cases."""
    records, cases = list(report.numbered(file)), {}
    for number, record in records:
        try:
            if _is_drawn(record):
                _look(record)
                cases[_key(record)] = record
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InputError(f"{file}, line {number}: no record of a case: {type(error).__name__}: {error}") from None
    return str(records[0][1].get("date", "")) if records else "", cases


def _look(record: Record) -> None:
    """Raises KeyError, TypeError or ValueError where something is missing that is drawn or printed."""
    _median(record), _bytes(record), record["gpu"], record["commit"]


def _is_drawn(record: Record) -> bool:
    usual = record.get("metric") == figures.SPAN_MS and record.get("inputs") == UNIFORM and record.get("param") == 0
    return usual and record.get("backend") == "cuda" and record.get("arch") == figures.ARCH and bool(record["samples"])


def _key(record: Record) -> tuple[Group, str, int]:
    return (record["field"], record["op"].removeprefix("msm-")), record["bases"], record["n"]


def draw(cases: Cases, path: Path) -> None:
    """One panel a group: ms over n. path: .svg or .png. Raises InputError without matplotlib, or where there is nothing to
    draw."""
    if not cases:
        raise InputError(f"no samples of bases that stay on an {figures.ARCH} device; on one, `{REMEDY}` takes them")
    if path.suffix not in bench_view.PLOT_FORMATS:
        raise InputError(f"{path}: a plot is written as {' or '.join(bench_view.PLOT_FORMATS)}")
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise InputError(f"a plot needs matplotlib: {bench_view.PLOT_REMEDY}") from None
    canvas = Figure(figsize=(10, 7.5), layout="constrained")
    for axes, group in zip(canvas.subplots(2, 2).flat, GROUPS, strict=True):
        _panel(axes, cases, group)
    gpus = ", ".join(sorted({str(r["gpu"]) for r in cases.values()}))
    canvas.suptitle(f"{gpus}: bases on the device, scalars copied from pinned memory, result on the host")
    try:
        canvas.savefig(path, dpi=150)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror or error}") from None


def _panel(axes: Any, cases: Cases, group: Group) -> None:
    for kind in KINDS:
        points = [(n, _median(r)) for (of, its, n), r in sorted(cases.items()) if (of, its) == (group, kind)]
        if points:
            axes.plot(*zip(*points, strict=True), "-", color=COLOURS[kind], marker="o", label=f"limbd, {kind}")
    for peer in peers(group):
        axes.plot(*zip(*peer.points, strict=True), ":", color=COLOURS[peer.label], marker="x", label=peer.label)
    curve, name = group
    axes.set_xscale("log", base=2)
    axes.set(yscale="log", xlabel="n (points)", ylabel="ms", title=f"{curve} {name.upper()}")
    axes.grid(alpha=0.3, which="both")
    axes.legend(fontsize="small")


def peers(group: Group) -> list[figures.Figure]:
    return figures.figures_of(f"msm-{group[1]}", {group[0]}, figures.SPAN_MS)


def _median(record: Record) -> float:
    return float(summary(record["samples"])["median"])


def table(cases: Cases) -> Table:
    """A row for each group and n: ms and device memory of both kinds, and the fastest peer."""
    made = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
    made.add_column("group", no_wrap=True)
    for heading in ("n", *(f"{kind} {unit}" for unit in ("ms", "MB") for kind in KINDS), "fastest peer ms"):
        made.add_column(heading, justify="right", no_wrap=True)
    for group in GROUPS:
        for n in sorted({n for of, _, n in cases if of == group}):
            found = [cases.get((group, kind, n)) for kind in KINDS]
            times = (f"{_median(r):.4g}" if r else "-" for r in found)
            sizes = (f"{_bytes(r) / 1e6:.4g}" if r else "-" for r in found)
            made.add_row(" ".join(group), _power(n), *times, *sizes, _fastest(group, n))
    return made


def _power(n: int) -> str:
    return str(n) if n & (n - 1) else f"2^{n.bit_length() - 1}"


def _bytes(record: Record) -> int:
    """Device memory of a call: bases, scratch and what is copied."""
    memory = record["memory"]
    return int(memory["bases"] + memory["scratch"] + memory["copied"])


def _fastest(group: Group, n: int) -> str:
    known: Iterator[tuple[float, str]] = (
        (ms, peer.label) for peer in peers(group) for at, ms in peer.points if at == n
    )
    ms, label = min(known, default=(0.0, ""))
    return f"{ms:g} ({label.partition(',')[0]})" if label else "-"


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status 0: drawn. 2: it could not be; the reason is on stderr."""
    options = _parser().parse_args(arguments)
    try:
        cases = newest(sorted(options.results.glob("*.jsonl")))
        draw(cases, options.out)
    except InputError as error:
        print(f"msm_plot: {error}", file=sys.stderr)
        return 2
    console = bench_view.console()
    console.print(table(cases))
    commits = ", ".join(sorted({str(r["commit"])[:12] for r in cases.values()}))
    console.print(f"plot: {options.out}, of {len(cases)} cases at {commits}", highlight=False, markup=False)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m limbd.harness.msm_plot", description=__doc__.split("\n")[0])
    parser.add_argument("--results", type=Path, default=Path("plans/results"), help="folder of samples (%(default)s)")
    parser.add_argument("--out", type=Path, default=Path("plans/msm.svg"), help=".svg or .png (%(default)s)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
