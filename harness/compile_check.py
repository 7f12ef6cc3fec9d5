"""Compiles every unit with NVRTC, without a GPU, and checks that nothing spills outside the list below.

    python -m limbd.harness.compile_check --arch sm_75,sm_90

prints a line for each function and exits with 1 if a compile fails or a function spills. --daily, which the test command
uses, takes today's part: see daily(). --out keeps what was seen in a .jsonl file, with the seconds that it took.
"""

from __future__ import annotations

import argparse
import dataclasses
import re
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from limbd.harness import report as reports
from limbd.kernels.source import Sources
from limbd.ops import OPS
from limbd.ops.base import Traits, Unit
from limbd.ops.status import LimbdError
from limbd.worker.device.nvrtc import Nvrtc, Target, Usage

# What the project supports with CUDA 13; the cuda12 extra adds sm_61 and sm_70.
ARCHITECTURES = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120")

# What the rows of the tuning are measured on.
MEASURED = "sm_90"

# A day takes one of so many shares of an entry's units, which are made for fields and rows of the tuning; of an entry with
# fewer units one. Entries of curves, whose names begin so, it takes whole, but for CUDA 12's oldest cards.
SHARES = 8
WHOLE = "msm"

# How limbd.ops.msm_units names a unit's group.
_GROUP = re.compile(r"using GROUP = params::(\w+);")

# NVRTC works on as many programs at once.
THREADS = 2

# NVRTC 12.9 says of sm_61 and sm_70 that a later version will drop them, which is why `cuda12` stays with it.
EXPECTED_WARNING = "Architectures prior to"


@dataclass(frozen=True)
class Allowance:
    """Spill bytes (stores and loads together) that functions of an entry may have on an architecture ("*": any). group: of a
    curve, such as bls12_381_g2, where units are made for groups: one's does not cover another's."""

    entry: str
    arch: str
    nbytes: int
    reason: str
    group: str = ""

    def covers(self, unit: Unit, arch: str) -> bool:
        return self.entry == unit.entry and self.arch in ("*", arch) and self.group == group_of(unit)


_THREE = "three blocks of radix 8 leave 168 registers; the row is set by an H200, and nothing was measured on this one"
_FOUR = "four blocks of radix 8, the fastest row, leave 128 registers"

_TWELVE_LIMBS_TWICE = (
    "a sum of bls12_381 G2 has 96 limbs, and a thread 255 registers; an element over two lanes would need half of them"
)

_COMPLETE_TWELVE_LIMBS_TWICE = "two lanes a chunk: what spills are complete additions and doublings by one thread, which are seldom made, outside of the loop"

_COMPLETE_TWELVE_LIMBS = "complete additions, which are seldom made, outside of the loop"

_OLD_COMPILER = "constant work by CUDA 12's compiler; nothing was measured on this one"

_EIGHT_LIMBS_TWICE = "a sum of bn254 G2 has 64 limbs, and a thread 255 registers"
_FOUR_BLOCKS = "four blocks of additions leave 128 registers"

_MERGE = (
    "merging for constant work in bls12_381 G2 reads a spill and a bucket ahead of an addition that takes all registers"
)

_BOUNDED = "later stages of the reduction, whose registers are bounded for an H200; nothing was measured on this one"

_DOUBLINGS = "a run of doublings, and an inversion; nothing was measured on this one"

ALLOWANCES: tuple[Allowance, ...] = (
    *(Allowance(entry, "sm_70", 84, _THREE) for entry in ("ntt", "quotient")),
    *(Allowance(entry, arch, 20, _THREE) for entry in ("ntt", "quotient") for arch in ("sm_80", "sm_86", "sm_89")),
    Allowance("ntt", "sm_90", 116, _FOUR),
    Allowance("ntt_compiled", "sm_90", 116, _FOUR),
    Allowance("quotient", "sm_90", 76, _FOUR),
    *(Allowance(entry, "sm_100", 8, _THREE) for entry in ("ntt", "quotient")),
    Allowance("msm", "*", 4000, _TWELVE_LIMBS_TWICE, "bls12_381_g2"),
    Allowance("msm", "*", 104, _FOUR_BLOCKS, "bn254_g1"),
    Allowance("msm", "*", 160, _FOUR_BLOCKS, "secp256k1_g1"),
    Allowance("msm", "*", 256, _EIGHT_LIMBS_TWICE, "bn254_g2"),
    Allowance("msm_chunks", "*", 640, _COMPLETE_TWELVE_LIMBS_TWICE, "bls12_381_g2"),
    Allowance("msm_chunks", "*", 104, _FOUR_BLOCKS, "bn254_g1"),
    Allowance("msm_chunks", "*", 160, _FOUR_BLOCKS, "secp256k1_g1"),
    Allowance("msm_chunks", "*", 256, _EIGHT_LIMBS_TWICE, "bn254_g2"),
    Allowance("msm_chunks", "*", 64, _COMPLETE_TWELVE_LIMBS, "bls12_381_g1"),
    *(Allowance("msm_reduce_lanes", "*", 32, _FOUR_BLOCKS, group) for group in ("bn254_g1", "secp256k1_g1")),
    *(
        Allowance("msm_reduce_lanes", arch, 108, _BOUNDED, group)
        for arch in ("sm_86", "sm_89", "sm_100", "sm_120")
        for group in ("bn254_g1", "secp256k1_g1")
    ),
    *(Allowance("msm_reduce_lanes", arch, 24, _BOUNDED, "bn254_g2") for arch in ("sm_100", "sm_120")),
    Allowance("msm_points", "*", 576, _TWELVE_LIMBS_TWICE, "bls12_381_g2"),
    *(Allowance("msm_reduce_lanes", arch, 308, _MERGE, "bls12_381_g2") for arch in ("sm_61", "sm_70")),
    *(
        Allowance("msm_reduce_lanes", arch, 256, _OLD_COMPILER, group)
        for arch in ("sm_61", "sm_70")
        for group in ("bn254_g1", "bn254_g2", "bls12_381_g1", "secp256k1_g1")
    ),
    *(Allowance("msm_bases", "sm_75", 16, _DOUBLINGS, group) for group in ("bn254_g1", "bls12_381_g1")),
    Allowance("msm_sort", "*", 36, "msm_chunks, by some compilers; it takes microseconds"),
    Allowance("msm_bases", "*", 64, _TWELVE_LIMBS_TWICE, "bls12_381_g2"),
    Allowance("msm_reduce_lanes", "*", 64, _MERGE, "bls12_381_g2"),
)


@dataclass(frozen=True)
class Checked:
    """One unit on one architecture: what its functions use, or why it did not compile."""

    unit: Unit
    arch: str
    usage: tuple[Usage, ...] = ()
    failure: str = ""
    warnings: tuple[str, ...] = ()
    seconds: float = 0.0

    def problems(self, allowances: Sequence[Allowance] = ALLOWANCES) -> Iterator[str]:
        where = f"{unit_name(self.unit)} for {self.arch}"
        if self.failure:
            yield f"{where}: {self.failure}"
        for warning in self.warnings:
            yield f"{where}: {warning}"
        allowed = max((a.nbytes for a in allowances if a.covers(self.unit, self.arch)), default=0)
        for function in self.usage:
            spilled = function.spill_stores + function.spill_loads
            if spilled > allowed:
                yield f"{where}: {function.function} spills {spilled} bytes (allowed: {allowed})"


def unit_name(unit: Unit) -> str:
    constants = " ".join(f"{name}={value}" for name, value in unit.constants)
    return " ".join(part for part in (unit.entry, group_of(unit), constants) if part)


def group_of(unit: Unit) -> str:
    """The group of a curve that the unit is made for; "" for others."""
    found = _GROUP.search(unit.params)
    return found.group(1) if found else ""


def all_units(arch: str) -> tuple[Unit, ...]:
    """Every unit that any op's plans name on a device of this architecture ("sm_90", or "cpu" for the host)."""
    kind = Traits("cpu" if arch == "cpu" else "cuda", arch, 1, 1 << 30)
    return tuple(dict.fromkeys(unit for op in OPS for unit in op.units(kind)))


def daily(architectures: Sequence[str], day: int) -> tuple[tuple[str, tuple[Unit, ...]], ...]:
    """The part of a whole check that is the day's (a number that grows by one a day): MEASURED and, by turns, one of the other
    architectures, each with a share of every entry's units (WHOLE: all). A round of days meets all of them."""
    others = [arch for arch in architectures if arch != MEASURED]
    days = [(MEASURED, day)] if MEASURED in architectures else []
    if others:
        days.append((others[day % len(others)], day // len(others)))
    whole = WHOLE if MEASURED in architectures else None
    return tuple((arch, _share(arch, turn, whole)) for arch, turn in days)


def _share(arch: str, turn: int, whole: str | None) -> tuple[Unit, ...]:
    """At least one unit of each entry; whole: all of entries that begin so."""
    by_entry: dict[str, list[Unit]] = {}
    for unit in all_units(arch):
        by_entry.setdefault(unit.entry, []).append(unit)
    shares = {
        entry: 1 if whole and entry.startswith(whole) else min(SHARES, len(units)) for entry, units in by_entry.items()
    }
    return tuple(unit for entry, units in by_entry.items() for unit in units[turn % shares[entry] :: shares[entry]])


def check(
    arch: str, nvrtc: Nvrtc, units: Iterable[Unit] | None = None, *, verify: bool = False, threads: int = THREADS
) -> list[Checked]:
    """Compiles units (all, by default) for one architecture, `threads` at a time."""
    target = Target(int(arch.removeprefix("sm_")))
    wanted = all_units(arch) if units is None else units
    with ThreadPoolExecutor(threads, "limbd-nvrtc") as pool:
        return list(pool.map(lambda unit: _timed(unit, arch, target, nvrtc, verify), wanted))


def _timed(unit: Unit, arch: str, target: Target, nvrtc: Nvrtc, verify: bool) -> Checked:
    begin = time.monotonic()
    checked = _compile(unit, arch, target, nvrtc, verify)
    return dataclasses.replace(checked, seconds=time.monotonic() - begin)


def _compile(unit: Unit, arch: str, target: Target, nvrtc: Nvrtc, verify: bool) -> Checked:
    source = Sources().cuda(unit.entry, unit.header())
    try:
        compiled = nvrtc.compile(source, target, verify=verify)
    except LimbdError as error:
        return Checked(unit, arch, failure=str(error))
    warnings = tuple(line for line in compiled.log.splitlines() if "warning" in line and EXPECTED_WARNING not in line)
    missing = set(source.kernels) - {usage.function for usage in compiled.usage}
    if missing or not compiled.data.startswith(b"\x7fELF"):
        return Checked(unit, arch, compiled.usage, f"no machine code of {', '.join(sorted(missing)) or 'the unit'}")
    return Checked(unit, arch, compiled.usage, warnings=warnings)


def report(checked: Iterable[Checked]) -> Iterator[str]:
    """A line for each function: registers, stack and spilled bytes."""
    for one in checked:
        for usage in one.usage:
            yield (
                f"{one.arch:7} {unit_name(one.unit):40} {usage.function:32} {usage.registers:4} registers "
                f"{usage.shared:6} shared {usage.stack:5} stack {usage.spill_stores + usage.spill_loads:5} spilled"
            )


def keep(checked: Sequence[Checked], seconds: float, threads: int, journal: reports.Journal) -> None:
    """A line for each unit, and one for the architecture."""
    for i, one in enumerate(checked):
        functions = [dataclasses.asdict(usage) for usage in one.usage]
        problems = list(one.problems())
        told: reports.Record = {"seconds": round(one.seconds, 2), "functions": functions}
        if problems:
            told["problems"] = problems
        journal.add(f"{one.arch} {i} {unit_name(one.unit)}", arch=one.arch, ok=not problems, **told)
    good = not any(problem for one in checked for problem in one.problems())
    arch, units = checked[0].arch, len(checked)
    journal.add(f"{arch} in all", arch=arch, ok=good, units=units, threads=threads, seconds=round(seconds, 1))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m limbd.harness.compile_check", description=__doc__.splitlines()[0])
    parser.add_argument("--arch", default=",".join(ARCHITECTURES), help="comma-separated, such as sm_75,sm_90")
    parser.add_argument("--daily", action="store_true", help=f"today's part: {MEASURED} and one other, fewer units")
    parser.add_argument("--only", default="", metavar="TEXT", help="units whose entry begins so")
    parser.add_argument("--threads", type=int, default=THREADS, help="units at a time (default: %(default)s)")
    parser.add_argument("--out", type=Path, metavar="FILE", help="a .jsonl file to keep what was seen in")
    parser.add_argument("--commit", help="the commit of this tree, where it has no history")
    options = parser.parse_args(arguments)
    if not all(re.fullmatch(r"sm_\d{2,3}", arch) for arch in options.arch.split(",")):
        parser.error(f"--arch {options.arch}: not names such as sm_90, separated by commas")
    if options.threads < 1:
        parser.error(f"--threads {options.threads}: at least 1")
    try:
        nvrtc = Nvrtc()
    except LimbdError as error:
        print(error, file=sys.stderr)
        return 1
    problems: list[str] = []
    architectures = options.arch.split(",")
    todo = [(arch, all_units(arch)) for arch in architectures]
    if options.daily:
        todo = list(daily(architectures, date.today().toordinal()))
    head = reports.run_record("compile", {"nvrtc": nvrtc.full_version}, options.commit) if options.out else {}
    journal = reports.Journal(options.out, head) if options.out else None
    todo = [(arch, tuple(unit for unit in units if unit.entry.startswith(options.only))) for arch, units in todo]
    if not all(units for _, units in todo):
        parser.error(f"--only {options.only}: no entry begins so")
    for arch, chosen in todo:
        begin = time.monotonic()
        checked = check(arch, nvrtc, chosen, threads=options.threads)
        if journal is not None:
            keep(checked, time.monotonic() - begin, options.threads, journal)
        print("\n".join(report(checked)), flush=True)
        problems += [problem for one in checked for problem in one.problems()]
    print(
        "\n".join(problems) or f"{nvrtc.full_version}: nothing spills that may not",
        file=sys.stderr if problems else sys.stdout,
    )
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
