"""`limbd demo`: right answers are told from wrong ones, through a real worker process."""

from __future__ import annotations

import io
import subprocess
import sys

import pytest
from rich.console import Console

from limbd import Client
from limbd.harness import demo
from limbd.harness.vectors.demo import demo_batches
from limbd.ops import OPS


def test_the_shipped_batches_cover_every_op() -> None:
    assert {batch.op for batch in demo_batches()} == {op.name for op in OPS}


def test_the_demo_on_the_reference() -> None:
    command = [sys.executable, "-m", "limbd.cli", "demo", "--backend", "reference"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("  identical") == len(demo_batches())
    assert "are identical to the known answers" in done.stdout
    assert "answered by: reference" in done.stdout
    assert "install g++" in done.stdout
    assert not done.stderr


def test_wrong_answers_are_found() -> None:
    out = io.StringIO()
    with Client(backend="null", timeout=120) as client:
        assert not demo.run(client, Console(file=out))
    text = out.getvalue()
    assert "  identical" not in text
    assert f"{len(demo_batches())} of {len(demo_batches())} batches are NOT identical" in text


@pytest.mark.parametrize(
    ("n", "milliseconds", "text"),
    [
        (1000, 1.0, "1.00 M/s"),
        (1, 1000.0, "1.00 /s"),
        (10**6, 0.025, "40.0 G/s"),
        (5, 0.0, "-"),
        (123456, 1000.0, "123 k/s"),
    ],
)
def test_rates(n: int, milliseconds: float, text: str) -> None:
    assert demo.rate(n, milliseconds) == text
