"""Python integers <-> arrays of limbs: the byte layout of elements on the wire and in device memory.

An element is a row of W little-endian uint32 limbs (W = 8 on the wire, 12 for fields above 256 bits). A batch goes
through one big integer, which GMP cuts into pieces of 32*W bits: about 0.2 microseconds an element, where
int.from_bytes in a loop takes several times as long.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import gmpy2
import numpy as np
import numpy.typing as npt

from limbd.ops.params.base import LIMB_BITS

Limbs = npt.NDArray[np.uint32]

LIMB_BYTES = LIMB_BITS // 8
# Limbs of an element on the wire where no field says otherwise: 256 bits.
PLAIN_LIMBS = 8


def pack(values: Iterable[int], width: int = PLAIN_LIMBS * LIMB_BYTES) -> bytes:
    """The values one after the other, each as `width` little-endian bytes.

    Raises ValueError where a value is negative or needs more than `width` bytes.
    """
    items = list(map(gmpy2.mpz, values))
    if not items:
        return b""
    if min(items) < 0 or max(items).bit_length() > 8 * width:
        raise ValueError(f"a value is not in 0..2^{8 * width} - 1")
    return bytes(gmpy2.pack(items, 8 * width).to_bytes(width * len(items), "little"))


def unpack(data: Any, width: int = PLAIN_LIMBS * LIMB_BYTES) -> list[gmpy2.mpz]:
    """What pack wrote, as gmpy2 integers (they mix with Python's). data: any bytes-like object.

    Raises ValueError where the length is no multiple of `width`.
    """
    blob = bytes(data)
    count, rest = divmod(len(blob), width)
    if rest:
        raise ValueError(f"{len(blob)} bytes are no multiple of {width}")
    if count == 0:
        return []
    values = gmpy2.unpack(gmpy2.mpz.from_bytes(blob, "little"), 8 * width)
    # A number has no leading zeros, so the zero elements at the end of the batch are not among the pieces.
    values.extend([gmpy2.mpz(0)] * (count - len(values)))
    return list(values)


def from_ints(values: Iterable[int], limbs: int = PLAIN_LIMBS) -> Limbs:
    """A new array of shape (n, limbs), dtype uint32, little-endian limbs.

    Raises ValueError where a value is negative or needs more limbs.
    """
    data = bytearray(pack(values, limbs * LIMB_BYTES))
    return np.frombuffer(data, dtype="<u4").reshape(-1, limbs)


def to_mpz(array: Limbs) -> list[gmpy2.mpz]:
    """The rows of a uint32 array of shape (n, W) as gmpy2 integers, which are faster to calculate with."""
    if array.ndim != 2 or array.dtype != np.dtype("<u4"):
        raise ValueError(f"expected a uint32 array of shape (n, limbs), got {array.dtype} {array.shape}")
    return unpack(np.ascontiguousarray(array).data.cast("B") if array.size else b"", array.shape[1] * LIMB_BYTES)


def to_ints(array: Limbs) -> list[int]:
    """The rows of a uint32 array of shape (n, W) as Python integers."""
    return [int(value) for value in to_mpz(array)]


def limbs_of(value: int, count: int) -> tuple[int, ...]:
    """One integer as `count` little-endian limbs. Raises OverflowError where it needs more, or is negative."""
    data = int(value).to_bytes(count * LIMB_BYTES, "little")
    return tuple(int.from_bytes(data[i : i + LIMB_BYTES], "little") for i in range(0, len(data), LIMB_BYTES))


def value_of(limbs: Sequence[int]) -> int:
    """The integer that little-endian limbs stand for."""
    return sum(limb << (LIMB_BITS * i) for i, limb in enumerate(limbs))
