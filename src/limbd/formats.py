"""Points and scalars as other software writes them <-> limbd's own form.

from limbd import formats

points = formats.decode_points(data, "zcash-compressed", "bls12_381", "g2")    # (n, 48) uint32, as Client.msm takes them
formats.encode_points(points, "eip2537", "bls12_381", "g2")                    # bytes
"""

from __future__ import annotations

from limbd.ops.formats import (
    decode_points,
    decode_scalars,
    encode_points,
    encode_scalars,
    point_formats,
    scalar_formats,
    split_points,
)

__all__ = [
    "decode_points",
    "decode_scalars",
    "encode_points",
    "encode_scalars",
    "point_formats",
    "scalar_formats",
    "split_points",
]
