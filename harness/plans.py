"""Plans: plans/NNNN-name.md, a document for each kernel effort, with a halt rule that a program can read.

Between two lines `+++` at its top stands TOML; plans/README.md says what belongs there. This file reads it and refuses
what is wrong in it; limbd.harness.halt judges by it.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from limbd.harness import bench_multiplications
from limbd.harness.inputs import STRUCTURED, UNIFORM
from limbd.harness.textio import InputError
from limbd.ops import OPS, by_name
from limbd.ops.msm import MAX_VECTORS
from limbd.ops.ntt import NTT
from limbd.ops.params import fields
from limbd.ops.transform_op import TransformOp
from limbd.ops.transform_shape import Order

FOLDER = Path(__file__).resolve().parents[1] / "plans"

FENCE = "+++"
STATES = ("open", "promoted", "halted", "superseded")
CLOSED = ("promoted", "halted")
METRICS = ("kernel_ms",)
CHOICES = ("best", "each")
# Of an ntt: natural or bit-reversed, in and out.
ORDERS = tuple(order.name.lower() for order in Order)
# What limbd.harness.halt_run can be asked to check, by name.
CORRECTNESS = ("kat", "edges", "fuzz", "exhaustive")

_NAME = re.compile(r"(\d{4})-[a-z0-9-]+\.md")
_SIDE = re.compile(r"op:[a-z][a-z0-9-]*|candidate:\d{4}/[a-z0-9-]+")
_COMMIT = re.compile(r"[0-9a-f]{7,40}")


class PlanError(InputError):
    """A plan that cannot be read; the text names the file and the key."""


@dataclass(frozen=True)
class PlanCase:
    """One thing to measure. modulus: a field's name or hexadecimal; of multi-scalar multiplications the curve's name. n:
    elements; of ops on whole transforms, of one; of multi-scalar multiplications, points. vectors, constant: of these, how many
    vectors of scalars there are, and whether the work is constant. order: of ntt, one of ORDERS; "" for the natural one, and of other ops. back_to_back: rounds in a sample. options: what
    the sides are told beyond the request. threshold: how many times faster than the incumbent the candidate has to be;
    None: measured for the record, not judged. only: the candidates it is for, none named: all. incumbent: whom it is
    against. samples: taken of each side. checked: results compared with the reference, None as many as always. inputs:
    what operands are drawn from, as in bench.Case."""

    modulus: str
    n: int
    order: str
    back_to_back: int
    options: tuple[tuple[str, Any], ...]
    threshold: float | None
    guard: bool
    only: tuple[str, ...]
    incumbent: str
    samples: int
    checked: int | None
    inputs: str
    vectors: int = 1
    constant: bool = False

    @property
    def name(self) -> str:
        """By it samples are found: everything that decides what is measured, but for the candidate."""
        rounds = f" x{self.back_to_back}" if self.back_to_back > 1 else ""
        options = "".join(f" {key}={json.dumps(value)}" for key, value in self.options)
        drawn = f" {self.inputs}" if self.inputs != UNIFORM else ""
        order = f" {self.order}" if self.order else ""
        vectors = f" vectors={self.vectors}" if self.vectors > 1 else ""
        work = " constant" if self.constant else ""
        return f"{self.modulus} n={self.n}{vectors}{work}{order}{rounds}{options}{drawn} against {self.incumbent}"


@dataclass(frozen=True)
class Plan:
    """A plan's front matter. candidates, incumbent: "op:NAME" or "candidate:NNNN/NAME". choose: the best candidate that
    passes is promoted, or each that does. backend: whose samples count. incumbent_text: the digest of the incumbent's
    source, where it is named. commit: what to check out for a closed plan. reasons: one for each change of the rule.
    rule: the [halt] table as it stands."""

    path: Path
    title: str
    op: str
    state: str
    incumbent: str
    candidates: tuple[str, ...]
    sources: tuple[str, ...]
    choose: str
    backend: str
    metric: str
    min_samples: int
    correctness: tuple[str, ...]
    cases: tuple[PlanCase, ...]
    incumbent_text: str
    commit: str
    successor: str
    reasons: tuple[str, ...]
    rule: str

    @property
    def number(self) -> str:
        return self.path.name[:4]

    def cases_of(self, candidate: str) -> tuple[PlanCase, ...]:
        """Everything that is measured of a candidate, judged or not."""
        return tuple(case for case in self.cases if not case.only or candidate in case.only)

    @property
    def results(self) -> Path:
        """The folder of the samples."""
        return self.path.parent / "results"


def all_plans(folder: Path = FOLDER) -> list[Plan]:
    """Every plan of a folder, by number. Raises PlanError."""
    found = [load(path) for path in sorted(folder.glob("*.md")) if path.name[:4].isdigit()]
    numbers = [plan.number for plan in found]
    for number in numbers:
        if numbers.count(number) > 1:
            raise PlanError(f"{folder}: two plans have the number {number}")
    return found


def find(text: str, folder: Path = FOLDER) -> Plan:
    """A plan by its number ("0003", "3"), its name or its path. Raises PlanError."""
    if text.endswith(".md"):
        return load(Path(text))
    wanted = text.zfill(4) if text.isdigit() else text
    for path in sorted(folder.glob("*.md")):
        if path.stem == wanted or (wanted.isdigit() and path.name.startswith(f"{wanted}-")):
            return load(path)
    raise PlanError(f"there is no plan {text!r} in {folder}")


def load(path: Path) -> Plan:
    """Reads one plan. Raises PlanError."""
    if not _NAME.fullmatch(path.name):
        raise PlanError(f"{path.name}: a plan's file is called NNNN-name.md")
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise PlanError(f"{path}: {error.strerror or error}") from None
    return parse(text, path)


def parse(text: str, path: Path) -> Plan:
    """The plan of a text. path: for its number and for messages."""
    table = _Table(path.name, "", front_matter(text, path.name))
    halt = table.table("halt")
    incumbent, listed = table.side("incumbent"), table.names("candidate")
    min_samples = halt.count("min_samples")
    op = table.text("op")
    if op not in (each.name for each in OPS):
        raise PlanError(f"{path.name}: op is {op!r}, which is none")
    common = (op, incumbent, listed, min_samples)
    cases = [
        case
        for key in ("cases", "guards")
        for entry in halt.tables(key)
        for case in _cases(entry, common, guard=key == "guards")
    ]
    cases += [case for entry in table.tables("sweep") for case in _cases(entry, common, guard=False, judged=False)]
    plan = Plan(
        path=path,
        title=table.text("title"),
        op=op,
        state=table.choice("state", STATES),
        incumbent=incumbent,
        candidates=listed,
        sources=table.texts("sources"),
        choose=halt.choice("choose", CHOICES, "best"),
        backend=halt.choice("backend", ("cuda", "cpu"), "cuda"),
        metric=halt.choice("metric", METRICS),
        min_samples=min_samples,
        correctness=halt.choices("correctness", CORRECTNESS),
        cases=tuple(cases),
        incumbent_text=table.text("incumbent_text", ""),
        commit=table.text("commit", ""),
        successor=table.text("successor", ""),
        reasons=tuple(change.text("reason") for change in table.tables("threshold_changes", optional=True)),
        rule=rule_of(text),
    )
    halt.nothing_else()
    table.nothing_else()
    _check(plan)
    return plan


def front_matter(text: str, name: str) -> dict[str, Any]:
    """The TOML between the first two `+++` lines. Raises PlanError."""
    lines = text.splitlines()
    if not lines or lines[0] != FENCE or FENCE not in lines[1:]:
        raise PlanError(f"{name}: a plan begins with TOML between two lines {FENCE!r}")
    try:
        return tomllib.loads("\n".join(lines[1 : lines.index(FENCE, 1)]))
    except tomllib.TOMLDecodeError as error:
        raise PlanError(f"{name}: front matter: {error}") from None


def rule_of(text: str) -> str:
    """The [halt] table in one canonical line, to tell whether it changed: comments and layout do not count. A text
    without one gives ""."""
    try:
        table = front_matter(text, "").get("halt")
    except PlanError:
        return ""
    return "" if table is None else json.dumps(table, sort_keys=True, default=str)


def _cases(
    entry: _Table, common: tuple[str, str, tuple[str, ...], int], *, guard: bool, judged: bool = True
) -> list[PlanCase]:
    """An entry of cases, guards or sweep: one case for each of its n. common: the plan's op, incumbent, candidates and
    samples."""
    op, incumbent, candidates, samples = common
    threshold = entry.factor("min_guard_speedup" if guard else "min_speedup") if judged else None
    only = entry.names("candidate", ())
    for name in only:
        if name not in candidates:
            raise PlanError(f"{entry.where}: {name!r} is not among the plan's candidates")
    shared: dict[str, Any] = {
        **(_multiplied(entry, op) if bench_multiplications.is_multiplication(op) else _modular(entry)),
        "back_to_back": entry.count("back_to_back", 1),
        "options": tuple(sorted(entry.plain("options").items())),
        "threshold": threshold,
        "guard": guard,
        "only": only,
        "incumbent": entry.side("incumbent", incumbent),
        "samples": samples if judged else entry.count("samples", samples),
    }
    made = [PlanCase(n=n, **shared) for n in entry.counts("n")]
    entry.nothing_else()
    return made


def _modular(entry: _Table) -> dict[str, Any]:
    """What is asked of ops modulo something."""
    modulus = entry.text("modulus")
    if fields.by_name(modulus) is None and not re.fullmatch(r"[0-9a-f]+", modulus):
        raise PlanError(f"{entry.where}: modulus {modulus!r} is neither a field's name nor hexadecimal")
    return {
        "modulus": modulus,
        "order": entry.choice("order", ("", *ORDERS), ""),
        "checked": entry.count("checked", None),
        "inputs": entry.choice("inputs", (UNIFORM, *STRUCTURED), UNIFORM),
    }


def _multiplied(entry: _Table, op: str) -> dict[str, Any]:
    """What is asked of multi-scalar multiplications, of which every result is checked."""
    curve, vectors = entry.text("curve"), entry.count("vectors", 1)
    try:
        bench_multiplications.curve_of(op, curve)
    except InputError as error:
        raise PlanError(f"{entry.where}: {error}") from None
    if vectors > MAX_VECTORS:
        raise PlanError(f"{entry.where}: vectors is {vectors}, above {MAX_VECTORS}")
    return {
        "modulus": curve,
        "vectors": vectors,
        "constant": entry.flag("constant"),
        "order": "",
        "checked": None,
        "inputs": entry.choice("inputs", (UNIFORM, *bench_multiplications.KINDS), UNIFORM),
    }


def _check(plan: Plan) -> None:
    """What no single key tells."""
    for case in plan.cases:
        if case.order and plan.op != NTT.name:
            raise PlanError(f"{plan.path.name}: {case.name}: {plan.op} has no order")
        if isinstance(by_name(plan.op), TransformOp) and case.n & (case.n - 1):
            raise PlanError(f"{plan.path.name}: {case.name}: n is no power of two")
    for candidate in plan.candidates:
        judged = [case for case in plan.cases_of(candidate) if case.threshold is not None and not case.guard]
        if not judged:
            raise PlanError(f"{plan.path.name}: [halt] has no case that judges {candidate!r}")
        names = [case.name for case in plan.cases_of(candidate)]
        double = {name for name in names if names.count(name) > 1}
        if double:
            raise PlanError(f"{plan.path.name}: the case {double.pop()!r} stands there twice")
    if plan.state in CLOSED and not _COMMIT.fullmatch(plan.commit):
        raise PlanError(f"{plan.path.name}: a plan that is {plan.state} names the commit that has its code")
    if plan.state == "superseded" and not re.fullmatch(r"\d{4}", plan.successor):
        raise PlanError(f"{plan.path.name}: a superseded plan names its successor's number")


_REQUIRED = object()


class _Table:
    """A TOML table that says where it is when something in it is wrong. Keys that nobody asked for are mistakes."""

    def __init__(self, name: str, where: str, values: Mapping[str, Any]) -> None:
        self.where = f"{name}: {where}" if where else name
        self._name = name
        self._prefix = where
        self._left = dict(values)

    def table(self, key: str) -> _Table:
        return _Table(self._name, f"[{key}]", self._take(key, dict, "a table", _REQUIRED))

    def tables(self, key: str, *, optional: bool = True) -> list[_Table]:
        entries = self._take(key, list, "an array of tables", [] if optional else _REQUIRED)
        inside = f"{self._prefix[1:-1]}.{key}" if self._prefix else key
        for number, entry in enumerate(entries):
            if not isinstance(entry, dict):
                raise PlanError(f"{self.where}: {key}[{number}] is no table")
        return [_Table(self._name, f"[[{inside}]] number {i + 1}", entry) for i, entry in enumerate(entries)]

    def text(self, key: str, default: object = _REQUIRED) -> str:
        value: str = self._take(key, str, "a text", default)
        if default is _REQUIRED and not value.strip():
            raise PlanError(f"{self.where}: {key} is empty")
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        values = self._take(key, list, "a list of texts", _REQUIRED)
        if not values or not all(isinstance(value, str) and value.strip() for value in values):
            raise PlanError(f"{self.where}: {key} is a list of at least one text")
        return tuple(values)

    def choice(self, key: str, allowed: tuple[str, ...], default: object = _REQUIRED) -> str:
        value = self.text(key, default)
        if value not in allowed:
            raise PlanError(f"{self.where}: {key} is {value!r}, not one of {', '.join(filter(None, allowed))}")
        return value

    def choices(self, key: str, allowed: tuple[str, ...]) -> tuple[str, ...]:
        values = self.texts(key)
        for value in values:
            if value not in allowed:
                raise PlanError(f"{self.where}: {key} has {value!r}, which is not one of {', '.join(allowed)}")
        return values

    def side(self, key: str, default: object = _REQUIRED) -> str:
        value = self.text(key, default)
        if value and not _SIDE.fullmatch(value):
            raise PlanError(f"{self.where}: {key} is {value!r}, not op:NAME or candidate:NNNN/NAME")
        return value

    def names(self, key: str, default: object = _REQUIRED) -> Any:
        """One candidate, or a list of them."""
        if default is not _REQUIRED and key not in self._left:
            return default
        value = self._left.get(key)
        names = self.texts(key) if isinstance(value, list) else (self.text(key),)
        for name in names:
            if not _SIDE.fullmatch(name):
                raise PlanError(f"{self.where}: {key} is {name!r}, not op:NAME or candidate:NNNN/NAME")
        return names

    def flag(self, key: str) -> bool:
        """A truth value, false where it is not there."""
        value: bool = self._take(key, bool, "true or false", False)
        return value

    def count(self, key: str, default: object = _REQUIRED) -> Any:
        if default is not _REQUIRED and key not in self._left:
            return default
        value = self._take(key, int, "a whole number", default)
        if isinstance(value, bool) or value < 1:
            raise PlanError(f"{self.where}: {key} is {value!r}, not a whole number above 0")
        return value

    def counts(self, key: str) -> tuple[int, ...]:
        """One count, or a list of them."""
        values = self._take(key, (int, list), "a whole number or a list of them", _REQUIRED)
        listed = values if isinstance(values, list) else [values]
        if not listed or not all(type(value) is int and value > 0 for value in listed):
            raise PlanError(f"{self.where}: {key} is {values!r}, not whole numbers above 0")
        return tuple(listed)

    def factor(self, key: str) -> float:
        value = self._take(key, (int, float), "a number", _REQUIRED)
        if isinstance(value, bool) or not 0 < value < float("inf"):
            raise PlanError(f"{self.where}: {key} is {value!r}, not a number above 0")
        return float(value)

    def plain(self, key: str) -> dict[str, Any]:
        """A table of numbers, texts and truth values."""
        table: dict[str, Any] = self._take(key, dict, "a table", {})
        for name, value in table.items():
            if not isinstance(value, str | int | float):
                raise PlanError(f"{self.where}: {key}.{name} is {value!r}, not a number, text or truth value")
        return table

    def nothing_else(self) -> None:
        if self._left:
            raise PlanError(f"{self.where}: unknown key {next(iter(self._left))!r}")

    def _take(self, key: str, kind: type | tuple[type, ...], told: str, default: object) -> Any:
        value = self._left.pop(key, default)
        if value is _REQUIRED:
            raise PlanError(f"{self.where}: {key} is missing")
        if not isinstance(value, kind):
            raise PlanError(f"{self.where}: {key} is {value!r}, not {told}")
        return value
