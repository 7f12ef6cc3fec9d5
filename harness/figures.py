"""Ceilings and other programs' speed, for the lines of a plot.

All measured on one NVIDIA H200 (132 multiprocessors, 1980 MHz, driver 580, CUDA 13.0), medians after warm-up, every result
checked, before this project had kernels. They are what to compare with, not claims of this project.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

ARCH = "sm_90"

_DEVICE = "one H200, driver 580, CUDA 13.0"


@dataclass(frozen=True)
class Figure:
    """A line in the plots of some ops. ceiling: what the device allows; peer: another program.

    rate_g: thousand millions of elements a second, whatever n; else points: (n, kernel ms). fields: only for these
    moduli; none: any.
    """

    ops: tuple[str, ...]
    kind: Literal["ceiling", "peer"]
    label: str
    source: str
    rate_g: float | None = None
    points: tuple[tuple[int, float], ...] = ()
    fields: tuple[str, ...] = ()

    def rates(self) -> list[tuple[int, float]]:
        """The points as (n, rate_g)."""
        return [(n, n / milliseconds / 1e6) for n, milliseconds in self.points]


FIGURES = (
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


def figures_of(op: str, fields: set[str | None]) -> list[Figure]:
    """The lines for a plot of this op over these fields (None: a modulus without a name)."""
    return [f for f in FIGURES if op in f.ops and (not f.fields or fields & set(f.fields))]
