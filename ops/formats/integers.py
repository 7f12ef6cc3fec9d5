"""Arrays of little-endian integers as bytes (.., width) uint8: comparison for all at once, products through GMP."""

from __future__ import annotations

import gmpy2
import numpy as np
import numpy.typing as npt

from limbd.ops.formats.refusals import Mask
from limbd.ops.params.layout import pack, unpack

Bytes = npt.NDArray[np.uint8]

# Integers that are Python objects at a time: bounds the memory of long batches.
_AT_ONCE = 1 << 16


def below(values: Bytes, bound: int) -> Mask:
    """(..): whether each is below `bound`. width: a multiple of 8."""
    words = np.ascontiguousarray(values).view("<u8")
    smaller = np.zeros(words.shape[:-1], np.bool_)
    equal = np.ones(words.shape[:-1], np.bool_)
    for i in reversed(range(words.shape[-1])):
        limb = np.uint64(bound >> 64 * i & (1 << 64) - 1)
        smaller |= equal & (words[..., i] < limb)
        equal &= words[..., i] == limb
    return smaller


def any_of(values: npt.NDArray[np.generic]) -> Mask:
    """(n,): whether anything of an element is not zero. values: (n, ..)."""
    return np.asarray(values.any(axis=tuple(range(1, values.ndim))), np.bool_)


def all_of(values: Mask) -> Mask:
    """(n,): whether all of an element is true. values: (n, ..)."""
    return np.asarray(values.all(axis=tuple(range(1, values.ndim))), np.bool_)


def scaled(values: Bytes, factor: int, modulus: int) -> Bytes:
    """Each times `factor` modulo `modulus`."""
    width = values.shape[-1]
    flat = np.ascontiguousarray(values).reshape(-1, width)
    result = np.empty_like(flat)
    factor, modulus = gmpy2.mpz(factor), gmpy2.mpz(modulus)
    for start in range(0, len(flat), _AT_ONCE):
        part = slice(start, start + _AT_ONCE)
        products = [value * factor % modulus for value in unpack(flat[part].tobytes(), width)]
        result[part] = np.frombuffer(pack(products, width), np.uint8).reshape(-1, width)
    return result.reshape(values.shape)


def montgomery_factor(width: int, modulus: int) -> int:
    """R for integers of `width` bytes. ops.params.base.Field.r is the kernels' own, whose limbs may be fewer."""
    return pow(2, 8 * width, modulus)
