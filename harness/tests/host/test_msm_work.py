"""Constant work of msm-g1 and msm-g2: the same launches, and in each the same number of point operations, whatever scalars
are."""

from __future__ import annotations

import ctypes
import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from limbd.harness.groups import group_of
from limbd.harness.multiplications import Multiples, Multiplication
from limbd.ops.base import Launch
from limbd.ops.msm_tuning import LaneRow, MsmRow, msm_row, with_width
from limbd.ops.params.curves import Curve, GroupName, by_name
from limbd.ops.reference.curve import Point
from limbd.worker.device.cache import Cache
from limbd.worker.device.cpu import CpuBackend, _Lane
from limbd.worker.device.host_compiler import Variant

COUNT = 300


class Counting(CpuBackend):
    """Keeps (kernel, point operations) of every launch."""

    def __init__(self, cache: Path) -> None:
        super().__init__(cache=Cache(cache), variant=Variant.COUNT)
        self.counted: list[tuple[str, int]] = []

    def _launch(self, launch: Launch, lane: _Lane) -> None:
        super()._launch(launch, lane)
        take = self.library(launch.kernel.unit).limbd_take_operations if _counts(launch) else None
        if take is not None:
            take.restype = ctypes.c_uint64
        self.counted.append((launch.kernel.name, take() if take else 0))


def _counts(launch: Launch) -> bool:
    """Whether the unit knows a curve at all."""
    return launch.kernel.unit.entry != "msm_sort"


@pytest.fixture(scope="module")
def counting(kernel_cache: Path) -> Iterator[Counting]:
    backend = Counting(kernel_cache)
    yield backend
    backend.close()


def named(name: str) -> Curve:
    curve = by_name(name)
    assert curve is not None
    return curve


TOY, BN254 = named("toy_7_13"), named("bn254")
NARROW = with_width(3, 7, 3, 2, 1, "a test's")
BY_TREES, BY_ROWS = (replace(NARROW, lanes=LaneRow(2, 1, trees)) for trees in (1 << 11, 0))
ROWS = [NARROW, BY_TREES, BY_ROWS, msm_row("cuda", "sm_90", TOY, "g1", COUNT)]


def kinds(curve: Curve) -> list[list[int]]:
    """All 0, all 1, all r - 1, one value, and uniform."""
    rng = random.Random("work")
    uniform = [rng.randrange(curve.order) for _ in range(COUNT)]
    return [[0] * COUNT, [1] * COUNT, [curve.order - 1] * COUNT, uniform[:1] * COUNT, uniform]


def work(backend: Counting, asked: Multiplication, row: MsmRow) -> list[tuple[str, int]]:
    backend.counted = []
    asked.answer(backend, lambda count: row)
    return backend.counted


@pytest.mark.parametrize(
    ("curve", "name"), [(TOY, "g1"), (TOY, "g2"), (BN254, "g1")], ids=["toy-g1", "toy-g2", "bn254-g1"]
)
@pytest.mark.parametrize("row", ROWS, ids=["narrow", "trees", "rows", "gpu"])
def test_constant_work(counting: Counting, curve: Curve, name: GroupName, row: MsmRow) -> None:
    known = Multiples(curve, name, "work", COUNT)
    found = [
        work(counting, Multiplication(curve, name, scalars, known.points, constant_work=True), row)
        for scalars in kinds(curve)
    ]
    assert all(each == found[0] for each in found)
    total = dict(found[0])
    entries = -(-(curve.order.bit_length() + 1) // row.width) * COUNT
    assert total["msm_accumulate"] == entries, "one addition for each digit, zeros too"


def test_points_do_not_change_it_either(counting: Counting) -> None:
    """Equal ones, opposite ones, infinity."""
    group = group_of(TOY, "g1")
    generators: list[Point] = [group.generator] * COUNT
    nothing: list[Point] = [None] * COUNT
    several = Multiples(TOY, "g1", "work", COUNT).points
    asked = [Multiplication(TOY, "g1", [5] * COUNT, p, constant_work=True) for p in (generators, nothing, several)]
    for row in ROWS:
        found = [work(counting, each, row) for each in asked]
        assert found[0] == found[1] == found[2]


def test_variable_work_is_seen_to_vary(counting: Counting) -> None:
    """Zeros cost nothing, ones an addition each; so the counter counts."""
    known = Multiples(TOY, "g1", "work", COUNT)
    zeros, ones, *_ = (
        dict(work(counting, Multiplication(TOY, "g1", scalars, known.points), ROWS[0])) for scalars in kinds(TOY)
    )
    assert zeros["msm_accumulate"] == 0 < ones["msm_accumulate"] <= 2 * COUNT


@pytest.mark.parametrize(
    ("row", "kernel"), [(BY_TREES, "msm_merge_trees"), (BY_ROWS, "msm_merge")], ids=["trees", "rows"]
)
def test_merging_is_counted_too(counting: Counting, row: MsmRow, kernel: str) -> None:
    """Over lanes: nothing without spills, unless work is constant."""
    known = Multiples(TOY, "g1", "work", COUNT)
    (zeros, ones), (constant, _) = (
        [
            sum(operations for name, operations in work(counting, asked, row) if name == kernel)
            for asked in (Multiplication(TOY, "g1", [s] * COUNT, known.points, constant_work=mode) for s in (0, 1))
        ]
        for mode in (False, True)
    )
    assert zeros == 0 < ones < constant
