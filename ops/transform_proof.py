"""The short transforms that prove a plan's kernels before its first job (worker/device/self_test.py)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from limbd.ops import lane_transform
from limbd.ops.base import Launch, LaunchPlan
from limbd.ops.tuning import Row, TransformRow

# Transforms of 2^7 elements, in digits of up to five bits: several passes, of levels of every width.
SHORT_LOG_N = 7
SHORT_DIGIT = 5
SHORT_COUNT = 3

# The least digit of threads that hold eight elements.
LEAST_DIGIT = 2


@dataclass(frozen=True)
class Proof:
    """count transforms of 2^log_n elements, or of the request's 2^k if that is less. rows: how each of them runs, or one row
    that all of them share."""

    log_n: int
    count: int
    rows: tuple[Row, ...]


def proof_of(plan: LaunchPlan) -> Proof:
    """Together its transforms run all of the plan's kernels."""
    lanes = lane_transform.row_of(plan)
    if lanes:
        # Short as they are: one as long as the request's has all of the plan's kernels.
        return Proof(sum(lanes.digits), 1, (lanes,))
    launches = [launch for piece in plan.pieces for launch in piece.launches]
    if any(launch.kernel.unit.entry == "ntt_compiled" for launch in launches):
        return _of_compiled(launches)
    constants = dict(next(launch.kernel for launch in launches if launch.kernel.name == "ntt_pass").unit.constants)
    log_e, threads, resident = (constants[name] for name in ("LOG_E", "THREADS", "RESIDENT"))
    row = TransformRow(None, None, log_e, log_e + SHORT_DIGIT, SHORT_DIGIT, threads, resident, "of the plan")
    return Proof(SHORT_LOG_N, SHORT_COUNT, (row,))


def _of_compiled(launches: list[Launch]) -> Proof:
    """A compiled pass keeps its digit, so that all of them in one transform would be as long as the request's: a transform for
    each, whose other passes are short ones of the kernel that serves all shapes."""
    constants = dict(launches[0].kernel.unit.constants)
    tile, threads, resident = (constants[name] for name in ("LOG_TILE", "THREADS", "RESIDENT"))
    digits = _digits(launches)
    before = [LEAST_DIGIT * i for i in range(len(digits))]
    # The columns of a tile lie side by side for all but the last digit.
    after = [max(LEAST_DIGIT * (len(digits) - 1 - i), tile - digit) for i, digit in enumerate(digits[:-1])]
    log_n = max(tile, *(map(sum, zip(before, digits, [*after, 0], strict=True))))
    row = TransformRow(None, None, 3, tile, tile, threads, resident, "of the plan")
    rows = [
        replace(row, splits=(_around(i, digit, len(digits), log_n),), compiled=(i,)) for i, digit in enumerate(digits)
    ]
    return Proof(log_n, len(rows), tuple(rows))


def _digits(launches: list[Launch]) -> list[int]:
    """Of the first transform, bits of its passes."""
    found: list[int] = []
    for launch in launches:
        if sum(found) < launch.values["log_n"]:
            found.append(launch.values["bits"])
    return found


def _around(place: int, digit: int, count: int, log_n: int) -> tuple[int, ...]:
    """count digits of log_n bits: this one in its place, the least others but for the one that takes what is left."""
    digits = [LEAST_DIGIT] * count
    digits[place] = digit
    digits[-1 if place < count - 1 else -2] += log_n - sum(digits)
    return tuple(digits)
