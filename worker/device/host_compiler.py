"""The host's C++ compiler: which one, its version, and a compile of one unit to a shared library."""

from __future__ import annotations

import hashlib
import os
import platform
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from importlib.util import find_spec
from pathlib import Path

from limbd.kernels.source import Source
from limbd.ops.status import ServiceError, Status
from limbd.worker.device.cache import Key
from limbd.worker.device.vanishing import VanishingFolder

REMEDY = "install g++, or: pip install 'limbd[zig]'"

# The heaviest unit takes a few seconds; ziglang's first compile builds its own runtime libraries.
COMPILE_TIMEOUT_S = 600
PROBE_TIMEOUT_S = 60


class Variant(Enum):
    """How a unit is built. VERIFY: with the kernels' range checks. SANITIZE: these, AddressSanitizer and UBSan together;
    the process that loads it needs libasan preloaded. COUNT: counting point operations (kernels/host/counter.hpp)."""

    FAST = "fast"
    VERIFY = "verify"
    SANITIZE = "sanitize"
    COUNT = "count"


_COMMON = ("-std=c++17", "-march=native", "-fPIC", "-shared", "-pthread", "-fno-strict-aliasing", "-fvisibility=hidden")
_OPTIONS = {
    # A choice between ops: with -O3 g++ 12 makes chains of products, as in mod-inv-batch, 10 to 30 % slower, but mod-mul in 12
    # limbs about 10 % faster and mod-inv about 5 % (two cores, medians of 15, in turns).
    Variant.FAST: ("-O2",),
    Variant.VERIFY: ("-O1", "-DKERNEL_VERIFY"),
    Variant.COUNT: ("-O1", "-DKERNEL_COUNT"),
    Variant.SANITIZE: (
        # Not optimised: of what is so full of checks compilers optimise many times as long as it then runs.
        *("-O0", "-g", "-DKERNEL_VERIFY", "-fno-omit-frame-pointer"),
        *("-fsanitize=address,undefined", "-fno-sanitize-recover=all"),
    ),
}


@dataclass(frozen=True)
class HostCompiler:
    """A compiler that answered. command: its first words. version: everything that it says about itself."""

    command: tuple[str, ...]
    version: str

    def describe(self) -> str:
        return self.version.splitlines()[0]

    def options(self, variant: Variant) -> tuple[str, ...]:
        return (*_COMMON, *_OPTIONS[variant])

    def key(self, source: Source, variant: Variant) -> Key:
        """The cache's key. The processor belongs to it: -march=native code dies of SIGILL on another."""
        compiler = f"{shlex.join(self.command)}\n{self.version}"
        return Key("so", processor(), self.options(variant), compiler, Path(source.name).stem, source.text)

    def compile(self, source: Source, variant: Variant) -> bytes:
        """The shared library's bytes. Raises ServiceError(INTERNAL) with the compiler's log."""
        with VanishingFolder("limbd-compile-") as folder:
            for path, text in ((source.name, source.main), *source.headers):
                file = folder / path
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text, encoding="utf-8")
            command = (*self.command, *self.options(variant), "-I.", source.name, "-o", "unit.so")
            self._run(command, folder, source.name)
            return (folder / "unit.so").read_bytes()

    def sanitizer_environment(self) -> dict[str, str]:
        """What a process needs in its environment to load SANITIZE libraries: their runtimes before everything else,
        an end at the first finding, and allocations of Python's own that AddressSanitizer sees.

        Raises ServiceError(NO_DEVICE) where the compiler comes without the runtimes.
        """
        runtimes = []
        for name in ("libasan.so", "libubsan.so"):
            command = (*self.command, f"-print-file-name={name}")
            path = subprocess.run(command, capture_output=True, text=True, timeout=PROBE_TIMEOUT_S).stdout.strip()
            if not Path(path).is_absolute():
                raise ServiceError(Status.NO_DEVICE, f"{self.command[0]} comes without {name}")
            runtimes.append(path)
        return {
            "LD_PRELOAD": " ".join(runtimes),
            "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=1",
            "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
            "PYTHONMALLOC": "malloc",
        }

    def _run(self, command: tuple[str, ...], folder: Path, unit: str) -> None:
        try:
            done = subprocess.run(
                command,
                cwd=folder,
                env={**os.environ, "LC_ALL": "C"},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=COMPILE_TIMEOUT_S,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise ServiceError(Status.INTERNAL, f"{unit}: {shlex.join(self.command)}: {error}") from error
        if done.returncode != 0:
            log = done.stderr.strip()[-4000:]
            raise ServiceError(Status.INTERNAL, f"{unit}: {shlex.join(command)} failed ({done.returncode})\n{log}")


def find() -> HostCompiler:
    """The first that answers of $CXX, g++, clang++, `python -m ziglang c++`; $CXX, if set, is used or is an error.

    Raises ServiceError(NO_DEVICE) with the remedy.
    """
    chosen = os.environ.get("CXX", "").strip()
    if chosen:
        compiler = _probe(tuple(shlex.split(chosen)))
        if compiler is None:
            raise ServiceError(
                Status.NO_DEVICE, f"$CXX is {chosen!r}, which does not run", hint=f"unset it, or {REMEDY}"
            )
        return compiler
    for command in _candidates():
        compiler = _probe(command)
        if compiler is not None:
            return compiler
    raise ServiceError(Status.NO_DEVICE, "the CPU backend needs a C++ compiler, and none was found", hint=REMEDY)


def _candidates() -> Iterator[tuple[str, ...]]:
    for name in ("g++", "clang++"):
        if shutil.which(name):
            yield (name,)
    if find_spec("ziglang"):
        yield (sys.executable, "-m", "ziglang", "c++")


def _probe(command: tuple[str, ...]) -> HostCompiler | None:
    try:
        done = subprocess.run(
            (*command, "--version"),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=PROBE_TIMEOUT_S,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    version = done.stdout.strip()
    return HostCompiler(command, version) if done.returncode == 0 and version else None


def processor() -> str:
    """Names this processor's model and instruction sets: equal texts may run each other's -march=native code."""
    return f"{platform.machine()} {processor_model()} {_instruction_sets()}"


def processor_model() -> str:
    return _cpuinfo("model name", "CPU part") or platform.processor() or platform.machine()


def _instruction_sets() -> str:
    flags = " ".join(sorted(_cpuinfo("flags", "Features").split()))
    return hashlib.sha256(flags.encode()).hexdigest()[:16]


def _cpuinfo(*names: str) -> str:
    """The first of these lines in /proc/cpuinfo; "" where there is none."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    for line in lines:
        name, _, value = line.partition(":")
        if name.strip() in names:
            return value.strip()
    return ""
