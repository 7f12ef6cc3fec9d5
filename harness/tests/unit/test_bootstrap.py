"""bootstrap.py: what it decides, without installing anything."""

from __future__ import annotations

import importlib.util
import sys
import threading
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def bootstrap(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = importlib.util.spec_from_file_location("limbd_bootstrap", ROOT / "bootstrap.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "limbd_bootstrap", module)
    spec.loader.exec_module(module)
    return module


def script(path: Path, text: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize(
    ("driver", "extras"), [(0, ()), (11080, ()), (12020, ("cuda12",)), (12090, ("cuda12",)), (13000, ("cuda",))]
)
def test_the_extra_that_fits_the_driver(
    bootstrap: ModuleType, monkeypatch: pytest.MonkeyPatch, driver: int, extras: tuple[str, ...]
) -> None:
    monkeypatch.setattr(bootstrap, "driver_version", lambda: driver)
    assert bootstrap.gpu_extra() == extras
    # Two NVRTCs of different versions cannot be installed side by side.
    assert ("compile" in bootstrap.test_environment().extras) == (not extras)


def test_an_environment_is_ready_only_as_it_was_stamped(bootstrap: ModuleType, tmp_path: Path) -> None:
    environment = bootstrap.Environment(tmp_path, sys.executable, ("test",))
    script(tmp_path / "bin/python", "exit 0")
    stamp = tmp_path / bootstrap.STAMP
    assert not environment.ready()
    stamp.write_text(f"{environment.fingerprint()}\nbase\ncompile\ntest\n")
    assert environment.ready()
    assert environment.installed() == {"base", "compile", "test"}
    assert not bootstrap.Environment(tmp_path, sys.executable, ("cuda",)).ready()
    script(tmp_path / "bin/python", "exit 1")
    assert not environment.ready()
    stamp.write_text("another pyproject\nbase\ntest\n")
    assert environment.installed() == set()


@pytest.mark.parametrize(
    ("extras", "ending"), [((), ""), (("cuda",), "[cuda]"), (("test", "compile"), "[compile,test]")]
)
def test_what_pip_is_asked_for(bootstrap: ModuleType, tmp_path: Path, extras: tuple[str, ...], ending: str) -> None:
    """pip refuses empty brackets, and a machine without a GPU needs no extra for the demo."""
    environment = bootstrap.Environment(tmp_path / "venv", sys.executable, extras)
    said = tmp_path / "said"
    script(
        environment.path / "bin/python",
        f'case "$*" in *--editable*) echo "$*" > {said};; *pip*) exit 0;; *) exit 1;; esac',
    )
    environment.prepare()
    assert said.read_text().rstrip().endswith(f"--editable {ROOT}{ending}")


def test_a_python_without_ensurepip_is_told_what_to_install(bootstrap: ModuleType, tmp_path: Path) -> None:
    version = 'case "$1" in -c) echo 3.11.2; exit 0;; esac'
    python = script(tmp_path / "python3", f"{version}\necho ensurepip is not available\nexit 1")
    environment = bootstrap.Environment(tmp_path / "venv", python, ("test",))
    with pytest.raises(bootstrap.SetupError, match=r"ensurepip is not available\n.*python3.11-venv"):
        environment.prepare()
    assert not environment.path.exists()


def test_a_second_python_is_found_in_pyenv_and_broken_ones_are_passed_over(
    bootstrap: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    monkeypatch.setattr(bootstrap.sys, "version_info", (3, 11, 7))
    assert bootstrap.newer_python() is None
    script(tmp_path / "pyenv/versions/3.12.0/bin/python3.12", "exit 127")
    assert bootstrap.newer_python() is None
    on_path = script(tmp_path / "bin/python3.13", "echo 3.13.1")
    assert bootstrap.newer_python() == on_path
    in_pyenv = script(tmp_path / "pyenv/versions/3.12.1/bin/python3.12", "echo 3.12.1")
    assert bootstrap.newer_python() == in_pyenv


def test_every_step_runs_and_one_failure_counts(bootstrap: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    ran = []

    def step(name: str, passed: bool) -> object:
        def action() -> bool:
            ran.append(name)
            return passed

        return bootstrap.Step(name, action)

    def refuse() -> bool:
        raise bootstrap.SetupError("nothing works")

    assert bootstrap.run_steps([step("one", True), step("two", True)]) == 0
    assert bootstrap.run_steps([step("three", False), bootstrap.Step("four", refuse), step("five", True)]) == 1
    assert set(ran) == {"one", "two", "three", "five"}
    told = capsys.readouterr()
    assert told.out.count("FAILED") == 2
    assert "nothing works" in told.err
    assert bootstrap.run_steps([bootstrap.Step("six", lambda: bootstrap.run(["false"]))]) == 1
    assert bootstrap.run_steps([step("seven", True), bootstrap.Step("eight", lambda: bootstrap.run(["true"]))]) == 0


def test_steps_go_two_at_a_time_and_each_is_heard_whole(
    bootstrap: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    together = threading.Barrier(2, timeout=20)

    def action(word: str) -> bool:
        passed = []
        for script in (f"echo {word} 1", f"echo {word} 2; echo {word} 3 >&2"):
            together.wait()
            passed.append(bootstrap.run(["sh", "-c", script]))
        return all(passed)

    words = ("one", "two", "three", "four")
    assert bootstrap.run_steps([bootstrap.Step(word, lambda word=word: action(word)) for word in words]) == 0
    told = capsys.readouterr().out
    for word in words:
        first = f"$ sh -c echo {word} 1\n{word} 1\n"
        second = f"$ sh -c echo {word} 2; echo {word} 3 >&2\n{word} 2\n{word} 3\n"
        assert f"\n=== {word}\n{first}{second}\n=== " in told
    assert [line.split()[-1] for line in told.partition("=== summary")[2].splitlines()[1:-1]] == list(words)


def test_quick_leaves_out_the_slow_steps_alone(bootstrap: ModuleType) -> None:
    environment = bootstrap.test_environment()
    every, quick = bootstrap.steps(environment, False), bootstrap.steps(environment, True)
    assert [s.name for s in every if not s.slow] == [s.name for s in quick]
    tests = {"pytest: the kernels, computing", "pytest: the kernels, compiling", "pytest: everything but the kernels"}
    assert {"ruff check", "ruff format", "mypy", "README's run command", *tests} <= {s.name for s in quick}


def test_no_test_is_left_out_or_comes_twice(bootstrap: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files that pytest's steps take, by their arguments."""
    commands: list[list[str]] = []

    def record(command: list[str]) -> bool:
        commands.append(command)
        return True

    monkeypatch.setattr(bootstrap, "run", record)
    for step in bootstrap.steps(bootstrap.test_environment(), True):
        step.action()
    taken = []
    for command in commands:
        paths = [ROOT / word for word in command if word.startswith("harness/tests")]
        left_out = [ROOT / word.partition("=")[2] for word in command if word.startswith("--ignore=")]
        files = {file for path in paths for file in (path.rglob("test_*.py") if path.is_dir() else [path])}
        assert all(path.exists() for path in left_out)
        taken += [file for file in files if not any(file.is_relative_to(path) for path in left_out)]
    assert sorted(taken) == sorted((ROOT / "harness" / "tests").rglob("test_*.py"))


def test_no_compiler_is_a_clear_refusal(
    bootstrap: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setattr(sys, "argv", ["bootstrap.py", "test"])
    assert bootstrap.main() == 1
    assert "apt-get install g++" in capsys.readouterr().err
