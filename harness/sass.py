"""Counts instructions in the machine code of an op's kernels, or of a plan's, without a GPU.

    python -m limbd.harness.sass mod-mul --arch sm_89,sm_90 --disassembler PATH/cuobjdump

compiles with NVRTC every unit that the op's plans name on that architecture, or, for a plan's number, those that
harness/candidates/plan_NNNN.py names in its function sass_units(), and prints a line for each kernel and each loop in it:
how many instructions of a kind a turn has, and how many clocks one warp alone needs at
least to issue them: the sum of the stall counts that ptxas wrote into them (bits 105 to 108 of an instruction), which
cover every instruction of fixed latency. cuobjdump belongs to the CUDA toolkit.
"""

from __future__ import annotations

import argparse
import importlib
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from limbd.harness.compile_check import unit_name
from limbd.kernels.source import Sources
from limbd.ops import by_name
from limbd.ops.base import Traits, Unit
from limbd.worker.device.nvrtc import Nvrtc, Target

# What is counted apart, first match first. IMAD.MOV and IMAD.SHL are moves and shifts on the multiplier's pipe.
KINDS = (
    ("IMAD.WIDE", re.compile(r"IMAD\.WIDE")),
    ("IMAD.HI", re.compile(r"IMAD\.HI")),
    ("IMAD.MOV", re.compile(r"IMAD\.(MOV|SHL)")),
    ("IMAD.X", re.compile(r"IMAD(\.IADD)?\.X|IMAD\.IADD")),
    ("IMAD", re.compile(r"IMAD")),
    ("IADD3", re.compile(r"IADD3|VIADD|IADD")),
    ("SEL", re.compile(r"SEL|LOP3|PLOP3|ISETP")),
    ("MOV", re.compile(r"U?MOV|CS2R")),
    ("LDG/STG", re.compile(r"LDG|STG|LDL|STL")),
)
OTHER = "other"

_FUNCTION = re.compile(r"^\s*Function : (\w+)", re.MULTILINE)
_INSTRUCTION = re.compile(
    r"^\s*/\*([0-9a-f]+)\*/\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]*)([^;]*);\s*/\* 0x[0-9a-f]{16} \*/\s*/\* 0x([0-9a-f]{16}) \*/",
    re.MULTILINE,
)


@dataclass(frozen=True)
class Instruction:
    address: int
    opcode: str
    operands: str
    stall: int


@dataclass(frozen=True)
class Stretch:
    """Part of a kernel: all of it, or a loop from its first address to its branch back."""

    name: str
    counts: Counter[str]
    clocks: int

    @property
    def instructions(self) -> int:
        return self.counts.total()


def kernels(text: str) -> dict[str, list[Instruction]]:
    """The instructions of each function in cuobjdump's listing, without the padding after the last branch to itself."""
    _, *parts = _FUNCTION.split(text)
    found = {}
    for name, body in zip(parts[::2], parts[1::2], strict=True):
        lines = [
            Instruction(int(at, 16), opcode, rest.strip(), int(high, 16) >> 41 & 15)
            for at, opcode, rest, high in _INSTRUCTION.findall(body)
        ]
        end = next((i for i, line in enumerate(lines) if _target(line) == line.address), len(lines))
        found[name] = lines[:end]
    return found


def stretches(lines: Sequence[Instruction]) -> Iterator[Stretch]:
    """The kernel, then each loop (a branch back), inner ones counted in outer ones too."""
    yield _stretch("whole", lines)
    for line in lines:
        target = _target(line)
        if target is not None and target < line.address:
            body = [each for each in lines if target <= each.address <= line.address]
            yield _stretch(f"loop {target:#x}", body)


def _target(line: Instruction) -> int | None:
    if line.opcode.split(".")[0] != "BRA":
        return None
    found = re.search(r"0x([0-9a-f]+)", line.operands)
    return int(found.group(1), 16) if found else None


def _stretch(name: str, lines: Sequence[Instruction]) -> Stretch:
    counts = Counter(
        next((kind for kind, pattern in KINDS if pattern.match(line.opcode)), OTHER)
        for line in lines
        if line.opcode != "NOP"
    )
    return Stretch(name, counts, sum(line.stall for line in lines))


def units_of(subject: str, arch: str) -> dict[str, Unit]:
    """The units to look at, by name. subject: an op, or a plan's number with four digits."""
    if subject.isdigit():
        declared: dict[str, Unit] = importlib.import_module(f"limbd.harness.candidates.plan_{subject}").sass_units()
        return declared
    return {unit_name(unit): unit for unit in by_name(subject).units(Traits("cuda", arch, 1, 1 << 30))}


def disassemble(cubin: bytes, disassembler: str) -> str:
    """cuobjdump's listing."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "unit.cubin"
        path.write_bytes(cubin)
        done = subprocess.run([disassembler, "-sass", str(path)], capture_output=True, text=True, check=True)
    return done.stdout


def report(units: dict[str, Unit], arch: str, disassembler: str, nvrtc: Nvrtc, only: str) -> Iterator[str]:
    """Lines of a table in Markdown."""
    names = [kind for kind, _ in KINDS] + [OTHER]
    yield f"| {arch} | kernel | regs | stretch | clocks | all | " + " | ".join(names) + " |"
    yield "|---" * (6 + len(names)) + "|"
    for name, unit in units.items():
        compiled = nvrtc.compile(Sources().cuda(unit.entry, unit.header()), Target(int(arch.removeprefix("sm_"))))
        registers = {usage.function: usage.registers for usage in compiled.usage}
        for kernel, lines in sorted(kernels(disassemble(compiled.data, disassembler)).items()):
            if only not in kernel:
                continue
            for part in stretches(lines):
                counts = " | ".join(str(part.counts[kind]) for kind in names)
                yield f"| {name} | {kernel} | {registers[kernel]} | {part.name} | {part.clocks} | {part.instructions} | {counts} |"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m limbd.harness.sass", description=__doc__.splitlines()[0])
    parser.add_argument("subject", help="an op, or a plan's number with four digits")
    parser.add_argument("--arch", default="sm_89,sm_90", help="comma-separated, such as sm_89,sm_90")
    parser.add_argument("--disassembler", default=shutil.which("cuobjdump"), help="cuobjdump of the CUDA toolkit")
    parser.add_argument("--only", default="", help="kernels whose name contains this")
    options = parser.parse_args(arguments)
    if not options.disassembler:
        print("there is no cuobjdump on the PATH: --disassembler", file=sys.stderr)
        return 1
    nvrtc = Nvrtc()
    for arch in options.arch.split(","):
        for line in report(units_of(options.subject, arch), arch, options.disassembler, nvrtc, options.only):
            print(line)
        print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
