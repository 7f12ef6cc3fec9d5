"""Instructions of constant work, as ncu tells them."""

from __future__ import annotations

import numpy as np
import pytest

from limbd.harness import work_check
from limbd.harness.work_check import SCALARS, chosen, counted, judge
from limbd.ops.params.curves import by_name
from limbd.ops.params.layout import to_ints

PRINTED = """==PROF== Connected to process 7
"ID","Process ID","Kernel Name","Metric Name","Metric Unit","Metric Value"
"0","7","msm_digits(msm_digits_args)","smsp__inst_executed.sum","inst","1,000"
"1","7","msm_fold","smsp__inst_executed.sum","inst","20"
==PROF== Disconnected from process 7
"""


def test_counts_are_read() -> None:
    assert counted(PRINTED) == [("msm_digits", 1000), ("msm_fold", 20)]
    assert counted("==ERROR== nothing was profiled\n") == []


def test_sums_have_to_agree_within_a_hundredth() -> None:
    alike = [("a", 1000), ("b", 20)] * len(SCALARS)
    found = judge(alike)
    assert found["ok"] and found["worst"] == 0 and found["launches"]["ones"] == alike[:2]
    for more, ok in ((10, True), (11, False)):
        found = judge([*alike[:-2], ("a", 1000 + more), ("b", 20)])
        assert found["ok"] is ok, found["worst"]


@pytest.mark.parametrize(
    "counts", [[], [("a", 1)] * 3, [("a", 1)] * 5, [("a", 1), ("a", 1), ("b", 1), ("a", 1)]], ids=str
)
def test_launches_have_to_be_the_same(counts: work_check.Counts) -> None:
    assert judge(counts)["ok"] is False


def test_scalars_are_what_they_are_called() -> None:
    curve = by_name("bn254")
    assert curve is not None
    for kind, value in (("zeros", 0), ("ones", 1), ("r - 1", curve.order - 1)):
        assert to_ints(chosen(curve, 3, kind)) == [value] * 3
    assert len(np.unique(chosen(curve, 100, "uniform"), axis=0)) == 100
