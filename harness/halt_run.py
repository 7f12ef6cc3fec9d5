"""Measures a plan: correctness first, then incumbent and candidate in turn, sample by sample, on one device.

Both sides get the same inputs; the first results of each are compared with the reference, all later ones with the first.
Nothing is measured of a candidate that was wrong. Records go to one file a commit, plans/results/NNNN-COMMIT.jsonl, so
that a run which was cut off goes on, and a second run of one commit cannot replace the first.
"""

from __future__ import annotations

import dataclasses
import random
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from limbd.harness import (
    bench,
    bench_multiplications,
    edge_multiplications,
    exhaustive,
    fuzz,
    kat,
    long_batches,
    machine,
    report,
    transforms,
)
from limbd.harness.candidate_units import units_of
from limbd.harness.candidates import Candidate, Options, resolve
from limbd.harness.halt import CORRECTNESS, PAIR
from limbd.harness.inputs import Residues, operands
from limbd.harness.kat import first_difference
from limbd.harness.plan_cases import asked_of, param_of, plain
from limbd.harness.plans import Plan, PlanCase
from limbd.harness.report import Record
from limbd.harness.targets import BackendTarget
from limbd.harness.textio import InputError
from limbd.ops import by_name
from limbd.ops.base import LaunchPlan, Limbs, Request, Traits, Unit
from limbd.ops.domain import field_of
from limbd.ops.ntt import NTT
from limbd.ops.params import fields
from limbd.ops.params.base import Field
from limbd.ops.params.curves import CURVES
from limbd.ops.params.layout import from_ints
from limbd.ops.status import LimbdError
from limbd.worker.device.base import BackendInfo, Outcome
from limbd.worker.device.measurement import Measurable, Measurement

FUZZ_ELEMENTS = 100_000
# Batches long enough for its own kernel are few in so many.
LONG_FUZZ_ELEMENTS = 1_000_000
# Questions of transforms have two thousand at the most, and each field costs a compilation.
TRANSFORM_FUZZ_ELEMENTS = 50_000
# The reference takes some milliseconds for each of so many scalars.
MULTIPLICATION_FUZZ_ELEMENTS = 2_000

# Recipes of up to 2^14 elements: what two passes of every split do, in a second.
LARGEST_RECIPE = 14

# Transforms of so many elements and more are measured with two input sets, which no cache holds: the reference takes
# seconds for its few results of one.
LARGE_TRANSFORM = 1 << 20
LARGE_SETS = 2

# Of a plan's cases, inputs that every candidate's edges share.
KEPT_EDGES = 8

Say = Callable[[str], None]


@dataclass
class Run:
    """What every step works with. end: time.monotonic() after which nothing new is begun. only: texts, comma-separated, of which
    a case's name has to hold one. met: cases with such a name. unreached: what was due and not begun."""

    plan: Plan
    backend: Measurable
    journal: report.Journal
    end: float
    only: str
    say: Say
    met: int = 0
    unreached: int = 0

    def due(self, case: str) -> bool:
        """Whether it is still to be done: asked for, not in the file, and time is left."""
        if not any(text in case for text in self.only.split(",")):
            return False
        self.met += 1
        if case in self.journal.done:
            return False
        if time.monotonic() > self.end:
            self.say(f"{case}: not begun, out of time (the same command goes on here)")
            self.unreached += 1
            return False
        return True

    def add(self, case: str, kind: str, candidate: str, **values: Any) -> None:
        facts = machine.facts(self.backend)
        now = report.now()
        self.journal.add(case, kind=kind, plan=self.plan.number, candidate=candidate, date=now, **facts, **values)


def run_plan(plan: Plan, backend: Measurable, path: Path, commit: str, *, seconds: float, only: str, say: Say) -> bool:
    """Does what the file at `path` does not hold yet. True where everything was reached; whether it was right and fast
    enough is for limbd.harness.halt to say. Raises InputError where no case has a name that is asked for."""
    sides = {name: resolve(name) for name in (*plan.candidates, *(case.incumbent for case in plan.cases))}
    head = report.run_record("halt", {"plan": plan.number, **machine.facts(backend)}, commit)
    resume = path.exists() and not commit.endswith("-dirty")
    run = Run(plan, backend, report.Journal(path, head, resume=resume), time.monotonic() + seconds, only, say)
    _prepare(run)
    wrong = {r["candidate"] for r in report.read(path) if r.get("ok") is False}
    for candidate in plan.candidates:
        if candidate in wrong or not _check_candidate(run, candidate, sides[candidate]):
            say(f"{candidate} is wrong: it is not measured")
            wrong.add(candidate)
    for case in dict.fromkeys(plan.cases):
        for candidate in plan.candidates:
            asked = candidate not in wrong and (not case.only or candidate in case.only)
            if asked and not _measure(run, case, candidate, sides):
                wrong.add(candidate)
    if not run.met and not wrong:
        raise InputError(f"--only {only}: plan {plan.number} has no case with that in its name")
    return not run.unreached


def _prepare(run: Run) -> None:
    """Compiles what multi-scalar multiplications take, all at once: one is a handful of units, each of which takes seconds."""
    prepare: Callable[[Iterable[Unit]], None] | None = getattr(run.backend, "prepare", None)
    if prepare and bench_multiplications.is_multiplication(run.plan.op):
        traits = dataclasses.replace(run.backend.traits(), whole=True)
        prepare(units_of(run.plan, traits, constant_too=True))


# --- correctness --------------------------------------------------------------------------------------------------------


def _check_candidate(run: Run, candidate: str, side: Candidate) -> bool:
    """The plan's correctness runs that are due. False where one went wrong."""
    checks = {"kat": _kat, "fuzz": _fuzz, "exhaustive": _exhaustive, "edges": _edges}
    for name in run.plan.correctness:
        case = f"{candidate} {name}"
        if not run.due(case):
            continue
        try:
            failures, compared = checks[name](run, candidate, side)
        except LimbdError as error:
            failures, compared = [str(error)], 0
        ok = not failures and compared > 0
        told = {} if ok else {"failure": failures[0] if failures else "nothing was compared"}
        run.add(case, CORRECTNESS, candidate, run=name, ok=ok, compared=compared, **told)
        run.say(f"{case}: {compared} compared, {'ok' if ok else 'WRONG: ' + told['failure']}")
        if not ok:
            return False
    return True


def _target(run: Run, side: Candidate) -> BackendTarget:
    """Who answers. Toy fields of transforms, and toy curves, are left to the exhaustive run: each has kernels of its own to
    compile."""
    target = BackendTarget(Substituted(run.backend, side))
    target.toys = by_name(run.plan.op).elementwise
    target.curves = side.curves
    return target


def _kat(run: Run, candidate: str, side: Candidate) -> tuple[list[str], int]:
    target = _target(run, side)
    found = kat.run(target, [run.plan.op], largest=LARGEST_RECIPE)
    return found.failures, found.passed


def _fuzz(run: Run, candidate: str, side: Candidate) -> tuple[list[str], int]:
    op = run.plan.op
    elements = TRANSFORM_FUZZ_ELEMENTS if not by_name(op).elementwise else FUZZ_ELEMENTS
    elements = LONG_FUZZ_ELEMENTS if op == long_batches.OP else elements
    elements = MULTIPLICATION_FUZZ_ELEMENTS if bench_multiplications.is_multiplication(op) else elements
    found = fuzz.run(_target(run, side), seed=run.plan.number, ops=[op], elements=elements)
    return [failure.text for failure in found.failures], sum(found.elements.values())


def _exhaustive(run: Run, candidate: str, side: Candidate) -> tuple[list[str], int]:
    toys = {curve.name for curve in CURVES if curve.toy}
    if side.curves and not toys <= set(side.curves):
        raise InputError(f"{candidate} serves {', '.join(side.curves)} alone, and exhaustive runs are of toy curves")
    return exhaustive.run(Substituted(run.backend, side), by_name(run.plan.op))


def _edges(run: Run, candidate: str, side: Candidate) -> tuple[list[str], int]:
    """Hard operands modulo the plan's own moduli, with every set of options that is measured, n around blocks; of transforms
    the sizes that are measured, and of multi-scalar multiplications those and their neighbours."""
    if bench_multiplications.is_multiplication(run.plan.op):
        return _multiplication_edges(run, candidate, side)
    if not by_name(run.plan.op).elementwise:
        return _transform_edges(run, candidate, side)
    failures: list[str] = []
    compared = 0
    asked = dict.fromkeys((case.modulus, case.options) for case in run.plan.cases_of(candidate))
    for modulus, options in asked:
        target = BackendTarget(Substituted(run.backend, side, dict(options)))
        for residues, arrays in _edge_batches(run.plan.op, modulus, side):
            expected = _expected(run.plan.op, residues, arrays, side, dict(options))
            bad = first_difference(target.answer(run.plan.op, residues, arrays), expected)
            compared += len(expected)
            if bad is not None:
                failures.append(f"mod {modulus} n={len(expected)} {dict(options) or ''} first at index {bad}")
    return failures, compared


def _transform_edges(run: Run, candidate: str, side: Candidate) -> tuple[list[str], int]:
    """Every transform that is measured, once of hard elements, judged at a few places where it is long, and once of elements
    that are all m - 1, judged whole: their sum, then zeros."""
    failures: list[str] = []
    compared = 0
    op = run.plan.op
    asked = dict.fromkeys((case.modulus, param_of(op, case), case.options) for case in run.plan.cases_of(candidate))
    for modulus, param, options in asked:
        target = Substituted(run.backend, side, dict(options))
        request = _edge_request(op, modulus, param)
        bad, right = transforms.wrong(request, target.result(request), bench.CHECKED)
        found = [bad]
        compared += right
        if op == NTT.name:
            request = transforms.equal_request(_field(op, modulus), param)
            result = target.result(request)
            expected = np.zeros_like(result)
            expected[0] = from_ints([-request.n % request.modulus])[0]
            found.append(first_difference(result, expected))
            compared += request.n
        told = f"{op} mod {modulus} param={param:#x} {dict(options) or ''}"
        failures += [f"{told} first at index {index}" for index in found if index is not None]
    return failures, compared


def _multiplication_edges(run: Run, candidate: str, side: Candidate) -> tuple[list[str], int]:
    """Everything of edge_multiplications on the plan's curves and at its sizes, every sum judged."""
    failures: list[str] = []
    compared = 0
    op = run.plan.op
    cases = run.plan.cases_of(candidate)
    for asked, options in dict.fromkeys((plain(op, case), case.options) for case in cases):
        target = Substituted(run.backend, side, dict(options))
        for told, request in edge_multiplications.requests(asked):
            bad, right = bench_multiplications.wrong(request, target.result(request))
            compared += right
            if bad is not None:
                given = f" {dict(options)}" if options else ""
                failures.append(f"{asked.name}{given} {told}: wrong in vector {bad}")
    return failures, compared


@lru_cache(maxsize=KEPT_EDGES)
def _edge_request(op: str, modulus: str, param: int) -> Request:
    return transforms.edge_request(op, _field(op, modulus), param)


def _field(op: str, modulus: str) -> Field:
    return fields.by_name(modulus) or field_of(op, int(modulus, 16), toys=True)


def _edge_batches(op: str, modulus: str, side: Candidate) -> list[tuple[Residues, dict[str, Limbs]]]:
    field = fields.by_name(modulus)
    value = field.modulus if field else int(modulus, 16)
    residues = Residues(value, field if value >> 256 else None)
    limbs = residues.bits // 32
    batches = []
    for n in fuzz.sizes_of(op):
        rng = random.Random(f"{op} {modulus} {n}")
        if op == long_batches.OP:
            batches.append({"x": long_batches.fuzzed(rng, value, n, residues.bits)})
        else:
            drawn = {name: operands(rng, value, n, residues.bits) for name in by_name(op).operands}
            batches.append({name: from_ints(values, limbs) for name, values in drawn.items()})
    if side.hard is not None:
        batches.append({name: from_ints(values, limbs) for name, values in side.hard(value).items()})
    return [(residues, batch) for batch in batches]


def _expected(op: str, residues: Residues, arrays: dict[str, Limbs], side: Candidate, options: Options) -> Limbs:
    one = next(iter(arrays.values()))
    chosen = by_name(op)
    request = Request(chosen, len(one), 0, residues.modulus, residues.bits // 8, arrays, residues.field)
    expected = np.empty_like(one)
    reference_of(side, chosen.reference, options)(request, expected.data.cast("B"))
    return expected


def reference_of(side: Candidate, default: bench.Reference, options: Options) -> bench.Reference:
    """What this side's results have to be."""
    own = side.reference
    if own is None:
        return default
    return lambda request, result: own(request, result, options)


class Substituted:
    """A backend that answers with one side's kernels, whatever plan it is given: so every suite can be put to them."""

    def __init__(self, backend: Measurable, side: Candidate, options: Options | None = None) -> None:
        self._backend = backend
        self._side = side
        self._options = options or {}

    def describe(self) -> BackendInfo:
        return self._backend.describe()

    def traits(self) -> Traits:
        return self._backend.traits()

    def register(self, memory: memoryview) -> None:
        """Nothing: suites leave memory as it is."""

    def unregister(self, memory: memoryview) -> None:
        """Nothing was registered."""

    def start(self, request: Request, plan: LaunchPlan, result: memoryview) -> Outcome:
        if result.nbytes == 0:
            return Outcome()
        np.frombuffer(result, np.uint8)[:] = 0xA5
        return self._backend.run(request, self._side.plan(request, self.traits(), self._options), result)

    def result(self, request: Request) -> Limbs:
        """What the side answers."""
        result = bench.empty_result(request)
        self.run(request, LaunchPlan((), 1, ()), result.data.cast("B"))
        return result

    def finish(self, ticket: Outcome) -> Outcome:
        return ticket

    def run(self, request: Request, plan: LaunchPlan, result: memoryview) -> Outcome:
        return self.finish(self.start(request, plan, result))

    def forget(self, key: str) -> None:
        """Nothing: suites leave tables as they are."""

    def close(self) -> None:
        """The backend belongs to whoever made it."""


# --- measuring ------------------------------------------------------------------------------------------------------------


def _measure(run: Run, case: PlanCase, candidate: str, sides: dict[str, Candidate]) -> bool:
    """One case, if it is due. False where the candidate was wrong."""
    name = f"{candidate} {case.name}"
    if not run.due(name):
        return True
    try:
        values = measure_pair(run.plan, case, run.backend, sides[case.incumbent], sides[candidate])
    except CandidateWrong as error:
        run.add(name, PAIR, candidate, plan_case=case.name, metric=run.plan.metric, ok=False, failure=str(error))
        run.say(f"{name}: WRONG: {error}")
        return False
    run.add(name, PAIR, candidate, plan_case=case.name, ok=True, **values)
    medians = [report.summary(values[key])["median"] for key in ("incumbent_samples", "candidate_samples")]
    run.say(f"{name}: {medians[0]:.4f} / {medians[1]:.4f} ms = {medians[0] / medians[1]:.3f}x")
    return True


@lru_cache(maxsize=1)
def _requests(asked: bench.Case) -> tuple[Request, ...]:
    """The input sets, which all candidates share."""
    large = not by_name(asked.op).elementwise and asked.n >= LARGE_TRANSFORM
    sets = min(bench.rotation(asked), LARGE_SETS) if large else bench.rotation(asked)
    return tuple(bench.request_of(asked, seed) for seed in range(sets))


class CandidateWrong(AssertionError):
    """The candidate's results are not what they have to be."""


def measure_pair(plan: Plan, case: PlanCase, backend: Measurable, incumbent: Candidate, candidate: Candidate) -> Record:
    """Samples of both sides in turn: A B A B. Raises CandidateWrong, and WrongResult where the incumbent is wrong."""
    asked = asked_of(plan.op, case)
    requests = _requests(asked)
    traits = dataclasses.replace(backend.traits(), whole=True)
    plans = [side.plan(requests[0], traits, dict(case.options)) for side in (incumbent, candidate)]
    results = [[bench.empty_result(request) for request in requests] for _ in plans]
    checkers = [
        bench.Checker(
            requests,
            own,
            reference_of(side, requests[0].op.reference, dict(case.options)),
            case.checked or bench.CHECKED,
        )
        for side, own in zip((incumbent, candidate), results, strict=True)
    ]
    samples: list[list[float]] = [[], []]
    warmup = bench.warmup_of(asked, len(requests))
    with ExitStack() as open_ones:
        both: list[Measurement] = [
            open_ones.enter_context(backend.measuring(requests, p, [r.data.cast("B") for r in own]))
            for p, own in zip(plans, results, strict=True)
        ]
        for _ in range(warmup + asked.samples):
            for side in (0, 1):
                samples[side].append(both[side].sample(asked.back_to_back))
                _judge_results(side, checkers[side], both[side].collect())
        clock, held = machine.clock(backend), both[0].held and both[1].held
    if incumbent.reference is candidate.reference:
        _same_everywhere(*checkers)
    return {
        **bench.case_record(asked),
        "options": dict(case.options),
        "incumbent": case.incumbent,
        "incumbent_samples": samples[0][warmup:],
        "candidate_samples": samples[1][warmup:],
        "input_sets": len(requests),
        "checked": [checker.compared for checker in checkers],
        "held": held,
        "clock": clock,
        "incumbent_plan": bench.plan_record(backend, plans[0]),
        "candidate_plan": bench.plan_record(backend, plans[1]),
        "incumbent_texts": texts(plans[0]),
        "candidate_texts": texts(plans[1]),
    }


def texts(plan: LaunchPlan) -> list[str | None]:
    """Digests of the sources of a plan's kernels, each once."""
    units = dict.fromkeys(launch.kernel.unit for piece in plan.pieces for launch in piece.launches)
    return [bench.source_digest(unit) for unit in units]


def _judge_results(side: int, checker: bench.Checker, reached: Sequence[int]) -> None:
    try:
        checker.check(reached)
    except bench.WrongResult as error:
        if side == 0:
            raise
        raise CandidateWrong(str(error)) from error


def _same_everywhere(incumbent: bench.Checker, candidate: bench.Checker) -> None:
    """The reference sees a choice of a large batch; the sides are compared with each other whole."""
    for chosen, right in incumbent.right.items():
        other = candidate.right.get(chosen)
        bad = None if other is None else first_difference(other, right)
        if bad is not None:
            raise CandidateWrong(f"index {bad} differs from the incumbent's")
