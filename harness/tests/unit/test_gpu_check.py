"""What gpu_check asks for: which sanitizer cases belong to the ops that were asked for."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, cast

import pytest

from limbd.harness import gpu_check, sanitize_cases
from limbd.ops import OPS


@pytest.mark.parametrize(
    ("ops", "alone"),
    [
        ([], None),
        (["ntt"], "transforms"),
        (["ntt", "quotient"], "transforms"),
        (["msm-g1"], "multiplications"),
        (["msm-g2", "msm-g1"], "multiplications"),
        (["ntt", "msm-g1"], None),
        (["mod-mul"], None),
    ],
)
def test_cases_of_the_ops_alone(ops: list[str], alone: str | None) -> None:
    check = gpu_check.Check(argparse.Namespace(ops=ops), cast(Any, None), 0.0)
    assert check.ops == (ops or [op.name for op in OPS])
    assert check.alone == alone and (alone is None or alone in sanitize_cases.ALONE)


def test_shares_are_all_cases_once() -> None:
    parts = [list(sanitize_cases.Share(i, 3).take(range(10))) for i in range(3)]
    assert sorted(case for part in parts for case in part) == list(range(10))


def test_every_part_is_known(tmp_path: Path) -> None:
    assert list(gpu_check.PARTS) == ["kat", "fuzz", "worker", "bench", "sanitize"]
    options = gpu_check._parser().parse_args(["--only", "bench", "--ops", "msm-g1", "--out", str(tmp_path)])
    assert options.ops == ["msm-g1"]
