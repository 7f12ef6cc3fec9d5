#!/usr/bin/env python3
"""Sets everything up, then runs the shipped example or the whole test suite. Standard library only.

    python3 bootstrap.py demo            set up .venv, send the shipped batch through a real worker
    python3 bootstrap.py test            set up, then every check that needs no GPU
    python3 bootstrap.py test --quick    without the slow ones
    python3 bootstrap.py setup           set up only

Set-up is repeated only when pyproject.toml, the Python or the machine's GPU driver changed, or when .venv is broken.
"""

from __future__ import annotations

import argparse
import ctypes
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent
OLDEST_PYTHON = (3, 11)
SECOND_PYTHON = (3, 12)

# cuDriverGetVersion's answer for CUDA 13.0, which drivers from 580 on give.
CUDA_13 = 13000
# ... for CUDA 12.0: the oldest driver that the extra cuda12 works with.
CUDA_12 = 12000

STAMP = "limbd-setup"
# Stands in the stamp for the project and its own dependencies.
BASE = "base"
IMPORTS = "import limbd, numpy, gmpy2, msgpack, rich, platformdirs"
COMPILERS = ("g++", "clang++")


class SetupError(Exception):
    """Something that the reader has to put right; its text is all that is printed."""


# --- environments ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Environment:
    """A virtual environment of this project. extras: of pyproject.toml, installed with the project in place."""

    path: Path
    python: str
    extras: tuple[str, ...]

    @property
    def bin(self) -> Path:
        return self.path / "bin"

    def command(self, name: str, *arguments: str) -> list[str]:
        return [str(self.bin / name), *arguments]

    def fingerprint(self) -> str:
        """What the installation depends on besides the extras; another one means that it has to be done again."""
        digest = hashlib.sha256((ROOT / "pyproject.toml").read_bytes())
        digest.update(repr((str(ROOT), self.python, version_of(self.python))).encode())
        return digest.hexdigest()

    def installed(self) -> set[str]:
        """The extras that it has; empty where it has to be set up anew."""
        stamp = self.path / STAMP
        lines = stamp.read_text().split() if stamp.is_file() else []
        if lines[:1] != [self.fingerprint()]:
            return set()
        return set(lines[1:])

    def ready(self) -> bool:
        wanted = {BASE, *self.extras}
        return wanted <= self.installed() and run_quietly(self.command("python", "-c", IMPORTS))

    def prepare(self) -> None:
        """Creates or repairs it; does nothing where it is as it should be."""
        if self.ready():
            return
        extras = sorted({*self.extras, *self.installed()} - {BASE})
        say(f"setting up {self.path.name} (Python {version_of(self.python)}, extras: {', '.join(extras) or 'none'})")
        if not run_quietly(self.command("python", "-m", "pip", "--version")):
            self.create()
        requirement = f"{ROOT}[{','.join(extras)}]" if extras else str(ROOT)  # pip refuses empty brackets
        install = self.command("python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
        if subprocess.call([*install, "--editable", requirement], cwd=ROOT):
            raise SetupError(
                f"pip could not install {requirement}: its message is above. "
                "The packages come from PyPI; behind a proxy or a mirror set PIP_INDEX_URL or HTTPS_PROXY."
            )
        (self.path / STAMP).write_text("\n".join([self.fingerprint(), BASE, *extras]) + "\n")

    def create(self) -> None:
        if self.path.exists():
            shutil.rmtree(self.path)
        made = subprocess.run([self.python, "-m", "venv", str(self.path)], capture_output=True, text=True, check=False)
        if made.returncode:
            shutil.rmtree(self.path, ignore_errors=True)
            major, minor = version_of(self.python).split(".")[:2]
            raise SetupError(
                f"{self.python} -m venv failed: {(made.stdout + made.stderr).strip()}\n"
                f"On Debian and Ubuntu: apt-get install python{major}.{minor}-venv (it brings ensurepip)."
            )


def version_of(python: str) -> str:
    """ "3.12.1", or "" where it does not run."""
    script = "import platform; print(platform.python_version())"
    try:
        answer = subprocess.run([python, "-c", script], capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return answer.stdout.strip() if answer.returncode == 0 else ""


def driver_version() -> int:
    """The CUDA version that this machine's driver supports (13000 for 13.0), or 0 without a driver."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
        version = ctypes.c_int(0)
        return version.value if driver.cuDriverGetVersion(ctypes.byref(version)) == 0 else 0
    except (OSError, AttributeError):
        return 0


def gpu_extra() -> tuple[str, ...]:
    """The extra that fits this machine's driver; nothing where there is no driver."""
    version = driver_version()
    if version >= CUDA_13:
        return ("cuda",)
    if version >= CUDA_12:
        return ("cuda12",)
    if version:
        say(f"the GPU driver supports CUDA {version // 1000}.{version % 1000 // 10} only: it needs 12.0 or newer")
    return ()


def main_environment(*extras: str) -> Environment:
    return Environment(ROOT / ".venv", sys.executable, (*extras, *gpu_extra()))


def test_environment() -> Environment:
    """With everything that the checks need; each GPU extra brings a run-time compiler of its own, machines without a
    GPU get one by the extra `compile`."""
    return main_environment("test") if gpu_extra() else main_environment("test", "compile")


def newer_python() -> str | None:
    """A Python of 3.12 or later on this machine, other than one of the version that runs this file."""
    for candidate in python_candidates():
        version = version_of(candidate)
        if not version:
            continue
        numbers = tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
        if numbers >= SECOND_PYTHON and numbers != sys.version_info[:2]:
            return candidate
    return None


def python_candidates() -> Iterable[str]:
    """Where Pythons usually are: on PATH, then in the folders of pyenv and uv."""
    names = [f"python3.{minor}" for minor in range(12, 16)]
    home = Path.home()
    folders = [Path(os.environ.get("PYENV_ROOT", home / ".pyenv")) / "versions", home / ".local/share/uv/python"]
    for folder in folders:
        for name in names:
            yield from sorted(str(path) for path in folder.glob(f"*/bin/{name}"))
    for name in names:
        found = shutil.which(name)
        if found:
            yield found


# --- running --------------------------------------------------------------------------------------------------------


def say(text: str) -> None:
    print(f"bootstrap: {text}", file=sys.stderr, flush=True)


def run_quietly(command: Sequence[str]) -> bool:
    try:
        return subprocess.run(command, capture_output=True, cwd=ROOT, check=False).returncode == 0
    except OSError:
        return False


# file: where a thread's commands write, where that is not the terminal.
OUTPUT = threading.local()


def run(command: Sequence[str]) -> bool:
    file = getattr(OUTPUT, "file", None)
    print(f"$ {' '.join(command)}", flush=True, file=file)
    told: dict[str, Any] = {} if file is None else {"stdout": file, "stderr": subprocess.STDOUT}
    return subprocess.call(command, cwd=ROOT, **told) == 0


def compiler() -> str | None:
    return os.environ.get("CXX") or next((name for name in COMPILERS if shutil.which(name)), None)


# --- the checks -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Step:
    """One check. action: True where it passed."""

    name: str
    action: Callable[[], bool]
    slow: bool = False


# Of the unit tests those that compute: minutes of arithmetic that is the same on every Python.
COMPUTING = ("test_vectors", "test_long_batches", "test_bench", "test_fuzz")


# Of the kernels' tests those that compile for GPUs, with sanitizers or interpret what was compiled: about half of the time.
KERNELS = "harness/tests/host"
COMPILING = ("test_coordinates", "test_curve", "test_nvrtc", "test_ptx", "test_sanitizers")

# Steps at once: most of them keep one processor busy.
AT_ONCE = 2


def steps(environment: Environment, quick: bool) -> list[Step]:
    """Every check that needs no GPU, in the order in which they begin: after the quickest the longest, so that the last ones to
    end do so together."""
    marker = "not gpu and not slow" if quick else "not gpu"
    own = environment.command
    pytest = own("python", "-m", "pytest", "-m", marker)
    compiling = [f"{KERNELS}/{name}.py" for name in COMPILING]
    computing = [*(f"--ignore={file}" for file in compiling), KERNELS]
    others = [f"--ignore={KERNELS}", "harness/tests"]
    every = [
        Step("ruff check", lambda: run(own("ruff", "check", "."))),
        Step("ruff format", lambda: run(own("ruff", "format", "--check", "."))),
        Step("mypy", lambda: run(own("mypy"))),
        Step("README's run command", lambda: run([sys.executable, "bootstrap.py", "demo"])),
        Step("pytest: the kernels, computing", lambda: run([*pytest, *computing])),
        Step("pytest: the kernels, compiling", lambda: run([*pytest, *compiling])),
        Step("pytest: everything but the kernels", lambda: run([*pytest, *others])),
        Step("tests on a second Python", second_python_check, slow=True),
        Step("CUDA 12 compile check (sm_61 or sm_70)", cuda12_check, slow=True),
    ]
    return [step for step in every if not (quick and step.slow)]


def cuda12_check() -> bool:
    """The sources as drivers below 580 get them: NVRTC 12, the oldest cards, one of them a day."""
    environment = Environment(ROOT / ".venv-cuda12", sys.executable, ("compile12",))
    environment.prepare()
    check = ("-m", "limbd.harness.compile_check", "--arch", "sm_61,sm_70", "--daily")
    return run(environment.command("python", *check))


def second_python_check() -> bool:
    """The unit tests on Python 3.12 or later, whose asyncio keeps the views that it is given to send."""
    python = newer_python()
    if python is None:
        say("no second Python of 3.12 or later on this machine (PATH, pyenv, uv): nothing to run")
        return True
    environment = Environment(ROOT / ".venv-second", python, ("test",))
    environment.prepare()
    left_out = (f"--ignore=harness/tests/unit/{name}.py" for name in COMPUTING)
    pytest = environment.command("python", "-m", "pytest")
    return run([*pytest, "-m", "not gpu and not slow", *left_out, "harness/tests/unit"])


# A step as it went: name, whether it passed, seconds.
Row = tuple[str, bool, float]

# Held while a step's output is printed.
PRINTING = threading.Lock()


def run_steps(todo: Sequence[Step]) -> int:
    """All of them, whatever fails; then the summary. 1 where one failed."""
    begin = time.monotonic()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        rows = list(pool.map(run_step, todo))
    print("\n=== summary")
    for name, passed, seconds in rows:
        print(f"{'ok    ' if passed else 'FAILED'} {seconds:7.1f} s  {name}")
    print(f"total  {time.monotonic() - begin:7.1f} s", flush=True)
    return 0 if all(passed for _, passed, _ in rows) else 1


def run_step(step: Step) -> Row:
    """What its commands print comes out whole, when it has ended."""
    say(f"{step.name} ..")
    begin = time.monotonic()
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as output:
        OUTPUT.file = output
        try:
            passed = step.action()
        except SetupError as error:
            say(str(error))
            passed = False
        seconds = time.monotonic() - begin
        output.seek(0)
        with PRINTING:
            print(f"\n=== {step.name}")
            shutil.copyfileobj(output, sys.stdout)
            sys.stdout.flush()
    return step.name, passed, seconds


# --- the commands ---------------------------------------------------------------------------------------------------


def demo(arguments: Sequence[str]) -> int:
    environment = main_environment()
    environment.prepare()
    return subprocess.call(environment.command("limbd", "demo", *arguments))


def test(quick: bool) -> int:
    if compiler() is None:
        raise SetupError("no C++ compiler: the host tests need g++ or clang++ (apt-get install g++), or set CXX")
    environment = test_environment()
    environment.prepare()
    return run_steps(steps(environment, quick))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("demo", "test", "setup"))
    parser.add_argument("--quick", action="store_true", help="test: leave out the slow checks")
    options, rest = parser.parse_known_args()
    if rest and options.command != "demo":
        parser.error(f"unrecognised: {' '.join(rest)}")
    if sys.version_info < OLDEST_PYTHON:
        say(f"Python {'.'.join(map(str, OLDEST_PYTHON))} or later is needed; this is {sys.version.split()[0]}")
        return 1
    try:
        if options.command == "demo":
            return demo(rest)
        if options.command == "test":
            return test(options.quick)
        test_environment().prepare()
        return 0
    except SetupError as error:
        say(str(error))
        return 1


if __name__ == "__main__":
    sys.exit(main())
