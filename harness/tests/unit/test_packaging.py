"""The package as others get it: sdist -> wheel -> a clean environment outside the tree."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
FOLDERS = ("worker", "ops", "kernels", "harness", "plans")
SHIPPED = (".py", ".cu", ".cuh", ".hpp", ".S", ".msgpack", "py.typed")

# Runs in the clean environment, away from the tree.
INSPECT = """
import pathlib, subprocess, sys, limbd
root = pathlib.Path(limbd.__file__).parent
assert "site-packages" in str(root), root
sources = [p for p in root.rglob("*") if p.suffix in (".cu", ".cuh", ".hpp", ".S")]
assert all(p.read_text() for p in sources)
print("\\n".join(sorted(str(p.relative_to(root)) for p in root.rglob("*") if p.is_file())))
"""


def tracked() -> set[str]:
    """What has to be in the wheel, as git knows it, by its place in the package."""
    listing = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split(
        "\n"
    )
    top = {name for name in listing if name.startswith(tuple(f"{folder}/" for folder in FOLDERS))}
    own = {name.removeprefix("src/limbd/") for name in listing if name.startswith("src/limbd/")}
    return {
        name
        for name in top | own
        if name.endswith(SHIPPED) and not name.startswith("harness/tests/") and (ROOT / name).exists() | (name in own)
    }


def run(*command: str, cwd: Path, feed: bytes | None = None) -> bytes:
    clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run(command, cwd=cwd, env=clean, input=feed, capture_output=True, timeout=600, check=False)
    assert done.returncode == 0, f"{command}\n{done.stdout.decode()}\n{done.stderr.decode()}"
    return done.stdout


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_sdist_wheel_clean_install(tmp_path: Path) -> None:
    run(sys.executable, "-m", "build", "--sdist", "--outdir", str(tmp_path), str(ROOT), cwd=ROOT)
    sdist = next(tmp_path.glob("*.tar.gz"))
    with tarfile.open(sdist) as archive:
        names = archive.getnames()
        archive.extractall(tmp_path / "unpacked", filter="data")
    assert any(name.endswith("/LICENSE") for name in names)

    unpacked = next((tmp_path / "unpacked").iterdir())
    run(sys.executable, "-m", "build", "--wheel", "--outdir", str(tmp_path), str(unpacked), cwd=tmp_path)
    wheel = next(tmp_path.glob("*.whl"))
    with zipfile.ZipFile(wheel) as archive:
        assert not [name for name in archive.namelist() if "/tests/" in name]

    run(sys.executable, "-m", "venv", "clean", cwd=tmp_path)
    python, limbd = str(tmp_path / "clean/bin/python"), str(tmp_path / "clean/bin/limbd")
    run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", str(wheel), cwd=tmp_path)
    installed = set(run(python, "-c", INSPECT, cwd=tmp_path).decode().splitlines())
    assert not tracked() - installed

    frame = run(limbd, "frame", "mod-mul", "--modulus", "7", "3", "5", cwd=tmp_path)
    answer = run(limbd, "pipe", "--backend", "reference", cwd=tmp_path, feed=frame)
    assert run(limbd, "decode", cwd=tmp_path, feed=answer) == b"OK n=1\n0x1\n"
    run(limbd, "kat", "--backend", "reference", "--op", "mod-mul", cwd=tmp_path)
