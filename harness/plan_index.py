"""plans/README.md: how plans work, and the index of all plans. Generated: `limbd halt index`."""

from __future__ import annotations

from pathlib import Path

from limbd.harness import halt
from limbd.harness.plan_history import dated
from limbd.harness.plans import Plan, all_plans

INTRODUCTION = """\
# Plans

A plan is one document for each kernel effort. It says what is tried, against what, what is expected and why, and by which
rule the candidate is promoted or halted. **The rule is committed before anything is measured**, and every claim about
speed in this project can be computed again from the samples in `results/`.

- `limbd halt check [PLAN]` answers `promote`, `halt` or `open: missing ...` from the committed samples and the history
  alone; it needs no GPU. Exit status 0: decided, as the plan's state says.
- `limbd halt run PLAN` measures: correctness first, then incumbent and candidate in turn, sample by sample, on one device.
  For a closed plan it prints the commit to check out.
- `limbd halt index` writes this file.

## Front matter

TOML between two lines `+++`:

| key | what it says |
|---|---|
| title, op, sources | what it is about, the op whose requests are measured, where the ideas come from |
| state | open, promoted, halted or superseded (then `successor` is a plan's number) |
| incumbent, candidate | `op:NAME`, an op as it is shipped, or `candidate:NNNN/NAME`, declared in `harness/candidates/plan_NNNN.py` with its kernels in `kernels/candidate/NNNN/`; candidate may be a list |
| incumbent_text | optional: the digest of the incumbent's source (`incumbent_texts` in the samples) |
| commit | of a closed plan: the commit that has its code |
| `[halt]` | the rule: metric (kernel_ms: device time of the launches), min_samples a side, correctness (kat, edges, fuzz, exhaustive), backend (default cuda), choose (best: one candidate is promoted; each: every one that passes) |
| `[[halt.cases]]` | modulus, n (one or a list; of ops on whole transforms, of a single one), min_speedup; optional: order (of ntt: nn, nr, rn or rr), back_to_back (rounds in a sample), options (told to the sides), inputs (uniform, ones or powers-of-two), candidate (only this one, or these), incumbent (another one), checked (results compared with the reference) |
| of multi-scalar multiplications | curve in place of modulus, n points; optional: vectors (of scalars, for the same points), constant (true: constant work), inputs (uniform, skew or witness); no order and no checked: every sum is compared |
| `[[halt.guards]]` | the same with min_guard_speedup: what must not become slower |
| `[[sweep]]` | the same without a factor, and with samples of its own: measured for the record |
| `[[threshold_changes]]` | date and reason, one for each change of `[halt]` after the first commit |

## The rule

The factor of a case is the incumbent's median over the candidate's. The worst case decides, guards included; one wrong
result halts. The samples of the newest commit count, all runs of it; their commit has to be a descendant of the last
change of `[halt]`, and such a change is a commit of its own, with its reason in the plan. A halted plan keeps its text and
its numbers; its code leaves the tree.

## Index

| plan | op | state | worst factor | asked | date |
|---|---|---|---|---|---|
"""


def text(folder: Path) -> str:
    """What the file has to be, from the plans and results of a folder."""
    return INTRODUCTION + "".join(_row(plan) for plan in all_plans(folder))


def write(folder: Path) -> Path:
    path = folder / "README.md"
    path.write_text(text(folder), encoding="utf-8")
    return path


def _row(plan: Plan) -> str:
    records = [record for file in sorted(plan.results.glob("*.jsonl")) for record in dated(file)]
    verdict = halt.judge(plan, records)
    worst = verdict.worst
    factor = f"{worst.factor:.3g}" if worst else "-"
    asked = f"{worst.case.threshold:g}" if worst else "-"
    link = f"[{plan.number} {plan.title}]({plan.path.name})"
    state = f"{plan.state} ({plan.successor})" if plan.successor else plan.state
    return f"| {link} | {plan.op} | {state} | {factor} | {asked} | {verdict.date or '-'} |\n"
