"""Ceilings and other programs' speed, for the lines of a plot.

All measured on one NVIDIA H200 (132 multiprocessors, 1980 MHz, driver 580, CUDA 13.0), medians after warm-up, every result
checked, before this project had kernels. They are what to compare with, not claims of this project.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

ARCH = "sm_90"

# What records measure: launches on the device; calls from before the first copy in to after the last copy out.
KERNEL_MS, SPAN_MS = "kernel_ms", "span_ms"

_DEVICE = "one H200, driver 580, CUDA 13.0"


@dataclass(frozen=True)
class Figure:
    """A line in the plots of some ops. ceiling: what the device allows; peer: another program.

    rate_g: thousand millions of elements a second, whatever n; else points: (n, ms). fields: only for these moduli or curves;
    none: any. metric: of the records that it stands beside.
    """

    ops: tuple[str, ...]
    kind: Literal["ceiling", "peer"]
    label: str
    source: str
    rate_g: float | None = None
    points: tuple[tuple[int, float], ...] = ()
    fields: tuple[str, ...] = ()
    metric: str = KERNEL_MS

    def rates(self) -> list[tuple[int, float]]:
        """The points as (n, rate_g)."""
        return [(n, n / milliseconds / 1e6) for n, milliseconds in self.points]


_RESIDENT = "bases resident on the device, scalars copied from pinned memory, result on the host"


def _multiplier(
    label: str,
    group: str,
    curve: str,
    milliseconds: tuple[float, ...],
    first: int = 10,
    what: str = _RESIDENT,
) -> Figure:
    """A peer's times, n from 2^first on in steps of four."""
    points = tuple((1 << first + 2 * i, each) for i, each in enumerate(milliseconds))
    source = f"{what}, {_DEVICE}"
    return Figure((f"msm-{group}",), "peer", label, source, points=points, fields=(curve,), metric=SPAN_MS)


MULTIPLIERS = (
    _multiplier("bellman-cuda", "g1", "bn254", (0.84, 0.91, 1.38, 1.59, 2.98, 6.35, 17.6, 54.7)),
    _multiplier("sppark", "g1", "bn254", (2.47, 2.56, 2.92, 4.24, 12.2, 12.6, 27.3, 80.8)),
    _multiplier(
        "ICICLE 2.8, precomputed, scalars on the device",
        "g1",
        "bn254",
        (2.59, 6.81),
        first=18,
        what="precomputed bases and scalars resident on the device, result on the host",
    ),
    _multiplier("sppark", "g2", "bn254", (3.43, 3.57, 4.2, 6.0, 17.0, 25.0, 64.8)),
    _multiplier("sppark", "g1", "bls12_381", (3.8, 4.0, 4.5, 6.9, 19.5, 20.3, 53.4, 157)),
    _multiplier(
        "yrrid, 12 precomputed windows", "g1", "bls12_381", (27.8, 94.9), first=22, what=f"precomputed {_RESIDENT}"
    ),
    _multiplier("sppark", "g2", "bls12_381", (4.9, 5.1, 6.1, 9.6, 27.4, 47.5, 139)),
)

FIGURES = (
    *MULTIPLIERS,
    Figure(
        ("mod-mul", "mod-add", "mod-sub"),
        "ceiling",
        "copy bandwidth, 96 bytes an element",
        f"4.3 TB/s measured by copying, {_DEVICE}",
        rate_g=45,
    ),
    Figure(
        ("mod-inv", "mod-inv-batch"),
        "ceiling",
        "copy bandwidth, 64 bytes an element",
        f"4.3 TB/s measured by copying, {_DEVICE}",
        rate_g=67,
    ),
    Figure(
        ("mod-inv-batch",),
        "ceiling",
        "3 Montgomery products an element",
        f"60 G products/s register-resident (even and odd accumulators), a third of it; {_DEVICE}",
        rate_g=20,
    ),
    Figure(
        ("mod-mul",),
        "ceiling",
        "Barrett in registers, 225 to 255 bits",
        f"register chain, {_DEVICE}",
        rate_g=53.9,
    ),
    Figure(
        ("mod-mul",),
        "ceiling",
        "split accumulators and fold, in registers",
        f"register chain, {_DEVICE}",
        rate_g=95,
        fields=("secp256k1_fp",),
    ),
    Figure(("mod-mul",), "peer", "CGBN mul_wide + rem_wide", f"CGBN, {_DEVICE}", rate_g=2.2),
    Figure(
        ("mod-inv", "mod-inv-batch"),
        "peer",
        "CGBN modular_inverse",
        f"CGBN, best threads per instance, secp256k1 prime, {_DEVICE}",
        points=((10**4, 0.233), (10**5, 1.62), (10**6, 14.4), (10**7, 142.0)),
    ),
)


def figures_of(op: str, fields: set[str | None], metric: str = KERNEL_MS) -> list[Figure]:
    """The lines for a plot of this op and metric over these fields or curves (None: a modulus without a name)."""
    return [f for f in FIGURES if op in f.ops and f.metric == metric and (not f.fields or fields & set(f.fields))]
