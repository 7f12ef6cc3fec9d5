"""All pairs of points and scalars of the toy curve through the real kernels, in both modes of work."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

from limbd.harness.multiplications import Multiples, Multiplication
from limbd.ops.msm import Msm
from limbd.ops.msm_tuning import LaneRow, with_width
from limbd.ops.params.curves import CURVES, Curve
from limbd.worker.device.base import Backend

# By turns, so that every sum of two points meets windows of each.
WIDTHS = (2, 3, 4)
LANES = (None, LaneRow(log_chunk=2, rounds=1))
CHUNKS = (0, 1, 2, 3, 256)


def run(backend: Backend, op: Msm) -> tuple[list[str], int]:
    """Returns what is wrong, and how many answers were compared."""
    wrong: list[str] = []
    compared = 0
    for curve in (curve for curve in CURVES if curve.toy):
        for constant in (False, True):
            wrong += differences(backend, op, curve, constant=constant)
            compared += curve.order**4
    return wrong, compared


def differences(backend: Backend, op: Msm, curve: Curve, *, constant: bool) -> list[str]:
    """Of every two points of the subgroup with every two scalars: the scalars are the vectors of one request."""
    known = Multiples(curve, op.group, "exhausted", 1)
    subgroup = [known.point(k) for k in range(curve.order)]
    pairs = list(product(range(curve.order), repeat=2))
    scalars = [scalar for pair in pairs for scalar in pair]
    found = []
    for turn, (first, second) in enumerate(pairs):
        points = [subgroup[first], subgroup[second]]
        asked = Multiplication(curve, op.group, scalars, points, vectors=len(pairs), constant_work=constant)
        row = replace(with_width(WIDTHS[turn % len(WIDTHS)], 8, 3, 2, 1, "exhausted"), lanes=LANES[turn % len(LANES)])
        row = replace(row, chunk=CHUNKS[turn % len(CHUNKS)], halves=turn % 5 > 1, pairs=turn % 7 > 2)
        got = asked.answer(backend, lambda count, row=row: row)  # type: ignore[misc]
        expected = [subgroup[(a * first + b * second) % curve.order] for a, b in pairs]
        if got != expected:
            found.append(f"{op.name} {curve.name} of {first} G and {second} G, constant={constant}")
    return found
