"""README is true: its commands run, the functions it names exist, its status codes are the wire's."""

from __future__ import annotations

import ast
import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from limbd.ops.status import Status
from limbd.worker import wire

ROOT = Path(__file__).resolve().parents[3]
README = (ROOT / "README.md").read_text()

# These set up an environment and run the example or this very suite; bootstrap.py's steps include the first.
SET_UP = re.compile(r"python3 bootstrap\.py (demo|test)")


def blocks(language: str) -> list[str]:
    found = re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
    assert found
    return [text for text in found if not SET_UP.fullmatch(text.strip())]


def environment(folder: Path) -> dict[str, str]:
    """`limbd` is this Python's, whatever is installed elsewhere."""
    tools = folder / "bin"
    tools.mkdir()
    script = tools / "limbd"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m limbd.cli "$@"\n')
    script.chmod(0o755)
    return {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"}


def on_a_free_port(script: str) -> str:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return script.replace("9091", str(probe.getsockname()[1]))


def test_the_two_commands_come_first_and_are_what_ci_and_bootstrap_run() -> None:
    commands = [text.strip() for text in re.findall(r"^```sh\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)]
    assert commands[:2] == ["python3 bootstrap.py demo", "python3 bootstrap.py test"]
    assert "bootstrap.py test" in (ROOT / ".ci" / "run").read_text()
    assert '"bootstrap.py", "demo"' in (ROOT / "bootstrap.py").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("script", blocks("sh"), ids=lambda text: " ".join(text.split()[:3]))
def test_every_shell_command_runs(script: str, tmp_path: Path) -> None:
    # Job control (-m) makes %1 work in a script; the trap ends a worker that a failing line left behind.
    prelude = "set -emuo pipefail\ntrap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n"
    done = subprocess.run(
        ["bash", "-c", prelude + on_a_free_port(script)],
        cwd=tmp_path,
        env=environment(tmp_path),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, f"{script}\n{done.stdout}\n{done.stderr}"


@pytest.mark.slow
@pytest.mark.parametrize("script", blocks("python"), ids=lambda text: text.split()[1])
def test_every_python_example_runs(script: str, tmp_path: Path) -> None:
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr


def test_the_first_example_prints_what_readme_says(tmp_path: Path) -> None:
    command = next(text for text in blocks("sh") if text.startswith("limbd frame"))
    printed = re.search(re.escape(command) + r"```\n\n((?:    .*\n)+)", README)
    assert printed is not None
    fast = command.replace("limbd pipe", "limbd pipe --backend reference")
    done = subprocess.run(
        ["bash", "-c", fast], env=environment(tmp_path), capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == re.sub(r"^    ", "", printed.group(1), flags=re.MULTILINE)


def test_the_functions_of_the_tour_exist() -> None:
    rows = re.findall(r"^\| \d+ \| `(\w+)\.(\w+)` \| (\S+) \|", README, re.MULTILINE)
    assert rows[0][1] == "feed"
    assert len(rows) == 9
    for owner, name, file in rows:
        tree = ast.parse((ROOT / file).read_text())
        methods = {
            (node.name, method.name)
            for node in ast.walk(tree)
            if isinstance(node, ast.ClassDef)
            for method in node.body
            if isinstance(method, ast.FunctionDef | ast.AsyncFunctionDef)
        }
        assert (owner, name) in methods, f"{file} has no {owner}.{name}"


def test_the_status_codes_are_all_there() -> None:
    rows = re.findall(r"^\| (\d+) \| ([A-Z_]+) \|", README, re.MULTILINE)
    assert [(int(code), name) for code, name in rows] == [(status.value, status.name) for status in Status]


def test_the_files_that_readme_names_exist() -> None:
    named = set(re.findall(r"(?<![\w/.])((?:ops|kernels|worker|harness|plans|src)/[\w/.]*\w)", README))
    missing = [name for name in sorted(named) if not (ROOT / name).exists() and "field_" not in name]
    assert not missing


def test_the_changelog_names_the_wire() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text()
    for version in wire.VERSIONS:
        assert f"version {version.number} (`{version.magic.decode()}`)" in changelog
