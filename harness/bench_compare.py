"""Two runs of the same cases side by side: ratios, and which of them are no more than noise."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from limbd.harness.report import Record, summary


@dataclass(frozen=True)
class Comparison:
    """One case. Medians in ms, None where a run lacks the case. spread: the larger of the runs' distances between the
    quartiles, in ms."""

    case: str
    old: float | None
    new: float | None
    spread: float = 0.0

    @property
    def ratio(self) -> float | None:
        """How many times faster the new run is."""
        return None if self.old is None or self.new is None else self.old / self.new

    @property
    def verdict(self) -> str:
        if self.old is None or self.new is None:
            return "only in NEW" if self.old is None else "only in OLD"
        if abs(self.old - self.new) <= self.spread:
            return "noise"
        return "faster" if self.new < self.old else "SLOWER"


def compare(old: Iterable[Record], new: Iterable[Record]) -> list[Comparison]:
    """Cases by their names, in the order of the old run; a case that stands in a run twice counts with its last line."""
    before, after = _cases(old), _cases(new)
    return [_comparison(case, before.get(case), after.get(case)) for case in dict.fromkeys((*before, *after))]


def differences(old: Iterable[Record], new: Iterable[Record]) -> list[str]:
    """What makes the runs hard to compare: another device, driver or compiler."""
    before, after = list(_cases(old).values()), list(_cases(new).values())
    found = []
    for key in ("gpu", "driver", "compiler"):
        one, other = ({str(record.get(key)) for record in records} for records in (before, after))
        if one != other:
            found.append(f"{key}: {', '.join(sorted(one))} against {', '.join(sorted(other))}")
    return found


def _comparison(case: str, old: Record | None, new: Record | None) -> Comparison:
    medians = [summary(r["samples"])["median"] if r else None for r in (old, new)]
    spreads = [summary(r["samples"])["spread"] for r in (old, new) if r]
    return Comparison(case, medians[0], medians[1], max(spreads))


def _cases(records: Iterable[Record]) -> dict[str, Record]:
    return {r["case"]: r for r in records if r.get("kind") == "case" and r.get("samples")}
