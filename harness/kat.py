"""Known-answer tests: every shipped vector through a backend, or through a worker's frames."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, TextIO

import numpy as np

from limbd.harness import long_batches
from limbd.harness.inputs import Residues
from limbd.harness.targets import BackendTarget, ClientTarget, Target, asked_as, can_ask
from limbd.harness.vectors import Vectors, load
from limbd.harness.vectors.recipes import USUAL_LOG_N, AnyRecipe, recipes
from limbd.ops import OPS, by_name
from limbd.ops.base import Limbs
from limbd.ops.params.layout import to_ints, value_of
from limbd.ops.status import LimbdError


@dataclass
class Row:
    """The outcome for one op and source. Counts are of answers; skipped: the target cannot be asked (48-byte elements
    through version 1 of the wire; transforms in toy fields; more than a frame holds)."""

    op: str
    source: str
    passed: int = 0
    failed: int = 0
    skipped: int = 0


@dataclass
class Report:
    """What run() found. failures: one text a failing batch, its first failing case with a reproducer."""

    target: str
    rows: dict[tuple[str, str], Row] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Something ran, and nothing failed."""
        return not self.failures and self.passed > 0

    @property
    def passed(self) -> int:
        return sum(row.passed for row in self.rows.values())

    @property
    def failed(self) -> int:
        return sum(row.failed for row in self.rows.values())

    def row(self, batch: Vectors) -> Row:
        """The row that counts this batch: a field's own vectors are one source each."""
        return self.named(batch.op, f"field {batch.field.name}" if batch.field else batch.source)

    def named(self, op: str, source: str) -> Row:
        return self.rows.setdefault((op, source), Row(op, source))

    def print(self, stream: TextIO | None = None) -> None:
        """One line a row, then the failures, then a verdict."""
        for row in self.rows.values():
            skipped = f", {row.skipped} skipped (cannot be asked for here)" if row.skipped else ""
            print(f"{row.op:<14} {row.source:<20} {row.passed} passed, {row.failed} failed{skipped}", file=stream)
        for text in self.failures:
            print(text, file=stream)
        verdict = "all identical to the known answers" if self.ok else "NOT all identical to the known answers"
        print(f"{self.target}: {self.passed} passed, {self.failed} failed: {verdict}", file=stream)


def run(
    target: Any,
    ops: Iterable[str] | None = None,
    *,
    name: str = "",
    largest: int = USUAL_LOG_N,
    progress: Callable[[int, int], None] | None = None,
) -> Report:
    """Puts every shipped answer of these ops (default: all) to a target, and recipes of up to 2^largest elements.

    target: a Target, a Backend, or a synchronous client (then name says where it is connected, as on the command line).
    progress: called with (batches done, batches in all). A batch that raises LimbdError fails as a whole.
    """
    target = as_target(target, name)
    wanted = tuple(ops) if ops is not None else tuple(op.name for op in OPS)
    report = Report(target.name)
    for done, op in enumerate(wanted):
        for batch in batches(op, target):
            _judge(target, batch, report)
        for recipe in recipes(op, largest):
            _judge_recipe(target, recipe, report)
        if progress:
            progress(done + 1, len(wanted))
    return report


def batches(op: str, target: Target) -> Iterator[Vectors]:
    """What run() puts to this target: the shipped batches, and for mod-inv-batch longer ones made of them, without which
    its own kernel would never run."""
    shipped = list(load(op))
    yield from shipped
    if op == long_batches.OP:
        yield from long_batches.known(shipped, target.traits)


def as_target(target: Any, name: str = "") -> Target:
    """A Target as it is; a Backend or a client wrapped."""
    if hasattr(target, "answer"):
        wrapped: Target = target
        return wrapped
    return BackendTarget(target) if hasattr(target, "traits") else ClientTarget(target, name or "--connect ?")


def first_difference(results: Limbs, expected: Limbs) -> int | None:
    """The lowest row that differs, or None. A wrong shape differs at row 0."""
    if results.shape != expected.shape:
        return 0
    rows = np.flatnonzero((results != expected).any(axis=1))
    return int(rows[0]) if len(rows) else None


def reproducer(target: Target, op: str, residues: Residues, row: Iterable[int]) -> str:
    """The command that repeats one case; of ops that take whole transforms, all known answers."""
    if not by_name(op).elementwise:
        return f"limbd kat --op {op} {target.name}"
    modulus = residues.field.name if residues.field else f"{residues.modulus:#x}"
    return f"limbd call {op} --modulus {modulus} {' '.join(f'{value:#x}' for value in row)} {target.name}"


def _judge(target: Target, batch: Vectors, report: Report) -> None:
    row = report.row(batch)
    residues = batch.residues
    if not can_ask(target, batch.op, residues):
        row.skipped += batch.n
        return
    residues = asked_as(target, residues)
    try:
        results = target.answer(batch.op, residues, batch.operands)
    except (LimbdError, AssertionError) as error:
        row.failed += batch.n
        report.failures.append(f"FAILED {batch.op} {batch.source} {batch.name} ({batch.n} answers): {error}")
        return
    bad = first_difference(results, batch.expected)
    wrong = int((results != batch.expected).any(axis=1).sum()) if results.shape == batch.expected.shape else batch.n
    row.passed += batch.n - wrong
    row.failed += wrong
    if bad is not None:
        report.failures.append(_describe(target, batch, residues, results, bad, wrong))


def _judge_recipe(target: Target, recipe: AnyRecipe, report: Report) -> None:
    """All results of a recipe pass or fail together."""
    row, told = report.named(recipe.op, "recipes"), f"FAILED {recipe.op} recipe {recipe.name}"
    if not can_ask(target, recipe.op, recipe.residues):
        row.skipped += recipe.n
        return
    operands = recipe.operands()
    if target.most_bytes is not None and sum(array.nbytes for array in operands.values()) > target.most_bytes:
        row.skipped += recipe.n
        return
    try:
        bad = recipe.first_difference(target.answer(recipe.op, asked_as(target, recipe.residues), operands))
    except (LimbdError, AssertionError) as error:
        row.failed += recipe.n
        report.failures.append(f"{told}: {error}")
        return
    row.passed += recipe.n if bad is None else 0
    row.failed += 0 if bad is None else recipe.n
    if bad is not None:
        report.failures.append(f"{told}: first wrong at index {bad}\n  limbd kat --op {recipe.op} {target.name}")


def _describe(target: Target, batch: Vectors, residues: Residues, results: Limbs, bad: int, wrong: int) -> str:
    case = [values[0] for values in (to_ints(array[bad : bad + 1]) for array in batch.operands.values())]
    got = f"{value_of(results[bad].tolist()):#x}" if bad < len(results) else "nothing"
    expected = value_of(batch.expected[bad].tolist())
    return (
        f"FAILED {batch.op} {batch.source} {batch.name}: {wrong} of {batch.n} wrong, first at index {bad}:\n"
        f"  got {got}\n  expected {expected:#x}\n"
        f"  {reproducer(target, batch.op, residues, case)}"
    )
