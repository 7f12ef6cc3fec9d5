"""The CUDA backend's host side (budget, lanes, errors, cache) on a simulated driver; the bindings and NVRTC are real."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from limbd.worker.device import host_compiler

FOLDER = Path(__file__).resolve().parent / "simulated"
SCRIPT = FOLDER / "scenarios.py"

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("cuda") is None, reason="the extra cuda is not installed: there is nothing to test"
)


def scenario_names() -> list[str]:
    lines = [line for file in sorted(FOLDER.glob("*_scenarios.py")) for line in file.read_text().splitlines()]
    return [line[4 : line.index("(")] for line in lines if line.startswith("def ") and "bench: Bench" in line]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("driver") / "libsimulated.so"
    options = ("-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", "-Wl,-soname,libcuda.so.1")
    subprocess.run((*host_compiler.find().command, *options, FOLDER / "driver.cpp", "-o", file), check=True)
    return file


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.mark.parametrize("name", scenario_names())
def test_scenario(name: str, library: Path, cache: Path) -> None:
    command = (sys.executable, str(SCRIPT), name, str(library), str(cache))
    done = subprocess.run(command, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "done\n"
