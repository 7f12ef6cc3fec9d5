"""The halt rule: a plan, its samples and facts about its history in, a verdict out. Pure.

The rule was written down before anything was measured. A candidate is promoted if every required correctness run went
well and every case, guards included, reaches its factor: the worst case decides, not the mean. It is halted if a result
was wrong or a case fell short. As long as anything is missing the plan stays open.
"""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from limbd.harness.plans import Plan, PlanCase
from limbd.harness.report import Record

PROMOTE, HALT, OPEN = "promote", "halt", "open"

# Kinds of records that count here.
PAIR, CORRECTNESS = "pair", "correctness"


# --- facts ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Change:
    """A commit that changed the plan's rule. alone: it changed nothing but the plan and the index of plans."""

    commit: str
    alone: bool


@dataclass(frozen=True)
class History:
    """What git knows. missing: why there is no history, or "". edited: the rule differs from the one committed last.
    changes: of the rule, oldest first; the first one wrote it. after: for each commit that samples name, whether the
    last change of the rule is its ancestor; None where the commit is not in this history."""

    missing: str = ""
    edited: bool = False
    changes: tuple[Change, ...] = ()
    after: Mapping[str, bool | None] = field(default_factory=dict)


@dataclass(frozen=True)
class Factor:
    """How many times faster a candidate is in one case: the ratio of medians, the worst of all runs of the commit.
    spread: of that ratio, from the distances between the quartiles."""

    candidate: str
    case: PlanCase
    factor: float
    spread: float
    samples: int

    @property
    def passes(self) -> bool:
        return self.case.threshold is None or self.factor >= self.case.threshold

    @property
    def margin(self) -> float:
        """The factor in units of what is asked for."""
        return self.factor / (self.case.threshold or self.factor)


@dataclass(frozen=True)
class Verdict:
    """word: promote, halt or open. reason: why, one line. promoted: the candidates that are. commit: of the samples."""

    word: str
    reason: str
    promoted: tuple[str, ...] = ()
    factors: tuple[Factor, ...] = ()
    commit: str = ""
    date: str = ""

    def __str__(self) -> str:
        return f"{self.word}: {self.reason}"

    @property
    def worst(self) -> Factor | None:
        """The case that decided: the one nearest to its threshold, or furthest below, of the promoted candidates, or of
        the best of those that failed."""
        judged = [f for f in self.factors if f.case.threshold is not None and not f.case.guard]
        worst = [
            min((f for f in judged if f.candidate == name), key=lambda f: f.margin)
            for name in dict.fromkeys(f.candidate for f in judged)
            if not self.promoted or name in self.promoted
        ]
        return max(worst, key=lambda f: f.margin) if worst else None


# --- the rule -----------------------------------------------------------------------------------------------------------


def decide(plan: Plan, records: Iterable[Record], history: History) -> Verdict:
    """The verdict on a plan from committed records and history."""
    mine = relevant(plan, records)
    if history.missing:
        return Verdict(OPEN, f"history missing: {history.missing}")
    if history.edited:
        return Verdict(OPEN, "missing: the rule was edited, and the edit is not committed")
    trouble = _rule_changes(plan, history.changes)
    if trouble:
        return Verdict(OPEN, f"missing: {trouble}")
    if not mine:
        return Verdict(OPEN, f"missing: samples (limbd halt run {plan.number})")
    commit = newest_commit(mine)
    if not is_commit(commit):
        return Verdict(OPEN, f"missing: samples of a commit; the last ones are of {commit!r}")
    after = history.after.get(commit)
    if after is None:
        return Verdict(OPEN, f"history missing: the samples' commit {commit[:12]} is not in it")
    if not after:
        changed = history.changes[-1].commit[:12]
        why = f"the rule was last changed in {changed}, which is no ancestor of the samples' commit {commit[:12]}"
        return Verdict(OPEN, f"missing: samples taken after the rule was written: {why}")
    return judge(plan, mine)


def judge(plan: Plan, records: Iterable[Record]) -> Verdict:
    """What the samples of the newest commit say by the plan's rule, whatever its history."""
    mine = relevant(plan, records)
    if not mine:
        return Verdict(OPEN, "missing: samples")
    commit = newest_commit(mine)
    mine = [record for record in mine if record["commit"] == commit]
    verdicts = {name: _judge_candidate(plan, name, mine) for name in plan.candidates}
    factors = tuple(factor for verdict in verdicts.values() for factor in verdict.factors)
    date = max(record["date"] for record in mine)[:10]

    def verdict(word: str, reason: str, promoted: Sequence[str] = ()) -> Verdict:
        return Verdict(word, reason, tuple(promoted), factors, commit, date)

    undecided = [v.reason for v in verdicts.values() if v.word == OPEN]
    if undecided:
        return verdict(OPEN, "missing: " + "; ".join(undecided))
    passing = [name for name, v in verdicts.items() if v.word == PROMOTE]
    failing = [v.reason for v in verdicts.values() if v.word == HALT]
    if not passing:
        return verdict(HALT, "; ".join(failing))
    if plan.choose == "best":
        passing = [max(passing, key=lambda name: _worst_margin(verdicts[name]))]
    return verdict(PROMOTE, "; ".join([verdicts[name].reason for name in passing] + failing), passing)


def relevant(plan: Plan, records: Iterable[Record]) -> list[Record]:
    """The plan's own records, of the backend that its rule asks for."""
    return [
        record
        for record in records
        if record.get("kind") in (PAIR, CORRECTNESS)
        and record.get("plan") == plan.number
        and record.get("backend") == plan.backend
    ]


def newest_commit(records: Sequence[Record]) -> str:
    """The commit of the last run: earlier ones are history."""
    return str(max(records, key=lambda record: str(record["date"]))["commit"])


def _judge_candidate(plan: Plan, candidate: str, records: Sequence[Record]) -> Verdict:
    own = [record for record in records if record["candidate"] == candidate]
    wrong = [record for record in own if not record["ok"]]
    judged = [case for case in plan.cases_of(candidate) if case.threshold is not None]
    factors = tuple(f for case in plan.cases_of(candidate) if (f := _factor(plan, candidate, case, own)) is not None)
    if wrong:
        what = wrong[0]["run"] if wrong[0]["kind"] == CORRECTNESS else wrong[0]["plan_case"]
        return Verdict(HALT, f"{candidate} is wrong: {what}: {wrong[0].get('failure', '')}".rstrip(": "), (), factors)
    missing = _missing(plan, candidate, judged, own)
    if missing:
        return Verdict(OPEN, f"{candidate}: {', '.join(missing)}", (), factors)
    deciding = [f for f in factors if f.case.threshold is not None]
    worst = min(deciding, key=lambda f: f.margin)
    kind = "guard " if worst.case.guard else ""
    reason = f"{candidate} {worst.factor:.3g}x of {worst.case.threshold:g}x asked, worst {kind}case {worst.case.name}"
    return Verdict(PROMOTE if all(f.passes for f in deciding) else HALT, reason, (), factors)


def _missing(plan: Plan, candidate: str, judged: Sequence[PlanCase], records: Sequence[Record]) -> list[str]:
    done = {record["run"] for record in records if record["kind"] == CORRECTNESS}
    missing = [f"correctness run {run}" for run in plan.correctness if run not in done]
    for case in judged:
        pairs = _pairs(plan, case, records)
        if not pairs:
            other = _pairs(dataclasses.replace(plan, incumbent_text=""), case, records)
            named = f" against the incumbent whose source is {plan.incumbent_text}" if other else ""
            missing.append(f"samples of {case.name}{named}")
            continue
        fewest = min(len(r[side]) for r in pairs for side in ("incumbent_samples", "candidate_samples"))
        if fewest < plan.min_samples:
            missing.append(f"{plan.min_samples - fewest} of {plan.min_samples} samples of {case.name}")
    return missing


def _pairs(plan: Plan, case: PlanCase, records: Sequence[Record]) -> list[Record]:
    """The case's pairs of sample lists, against the incumbent whose source the plan names (where it names one)."""
    return [
        record
        for record in records
        if record["kind"] == PAIR
        and record["plan_case"] == case.name
        and record["metric"] == plan.metric
        and record.get("candidate_samples")
        and record.get("incumbent_samples")
        and (not plan.incumbent_text or plan.incumbent_text in record["incumbent_texts"])
    ]


def _factor(plan: Plan, candidate: str, case: PlanCase, records: Sequence[Record]) -> Factor | None:
    found = []
    for record in _pairs(plan, case, records):
        slow, fast = record["incumbent_samples"], record["candidate_samples"]
        factor = statistics.median(slow) / statistics.median(fast)
        spread = factor * (_relative_spread(slow) + _relative_spread(fast))
        found.append(Factor(candidate, case, factor, spread, min(len(slow), len(fast))))
    return min(found, key=lambda f: f.factor) if found else None


def _relative_spread(samples: Sequence[float]) -> float:
    if len(samples) < 2:
        return 0.0
    low, middle, high = statistics.quantiles(samples, n=4, method="inclusive")
    return (high - low) / middle


def _worst_margin(verdict: Verdict) -> float:
    return min(f.margin for f in verdict.factors if f.case.threshold is not None and not f.case.guard)


def _rule_changes(plan: Plan, changes: Sequence[Change]) -> str:
    """What is wrong with the way the rule was changed, or "". The first commit wrote it; later ones need a reason."""
    if not changes:
        return "the plan is not committed"
    for change in changes[1:]:
        if not change.alone:
            return f"a commit of its own for the rule's change in {change.commit[:12]}, which changed other files too"
    if len(plan.reasons) < len(changes) - 1:
        last = changes[-1].commit[:12]
        return f"a reason in [[threshold_changes]] for the rule's change in {last}"
    return ""


def is_commit(text: str) -> bool:
    """Whether it is a whole commit name: not "unknown", nothing with "-dirty" behind it."""
    return len(text) == 40 and all(digit in "0123456789abcdef" for digit in text)
