"""Integers to limbs and back: the padding of zero elements at the end, ranges, empty batches."""

from __future__ import annotations

import random

import numpy as np
import pytest

from limbd.ops.params.layout import from_ints, limbs_of, pack, to_ints, to_mpz, unpack, value_of

BATCHES = {
    "empty": [],
    "zero": [0],
    "zeros at the end": [5, 0, 0, 0],
    "zeros at the start": [0, 0, 5],
    "all ones": [2**256 - 1] * 3,
    "hard": [0, 1, 2**255, 2**32, 2**32 - 1, 2**256 - 1, 0],
}


@pytest.mark.parametrize("values", BATCHES.values(), ids=BATCHES)
def test_round_trip(values: list[int]) -> None:
    array = from_ints(values)
    assert array.shape == (len(values), 8)
    assert array.dtype == np.uint32
    assert array.tobytes() == b"".join(value.to_bytes(32, "little") for value in values)
    assert to_ints(array) == values
    assert to_mpz(array) == values


@pytest.mark.parametrize("limbs", [1, 2, 8, 12])
def test_random_round_trip_at_every_width(limbs: int) -> None:
    rng = random.Random(f"layout {limbs}")
    values = [rng.getrandbits(32 * limbs) >> rng.randrange(32 * limbs) for _ in range(200)]
    array = from_ints(values, limbs)
    assert array.shape == (200, limbs)
    assert to_ints(array) == values
    assert all(type(value) is int for value in to_ints(array))
    assert unpack(pack(values, 4 * limbs), 4 * limbs) == values


def test_arrays_are_writable_and_strided_ones_are_read() -> None:
    array = from_ints([1, 2, 3, 4])
    array[0, 0] = 9
    assert to_ints(array[::2]) == [9, 3]
    wide = np.zeros((4, 12), dtype=np.uint32)
    wide[:, :8] = array
    assert to_ints(wide[:, :8]) == [9, 2, 3, 4]


@pytest.mark.parametrize("values", [[-1], [2**256], [0, 2**256 + 1]])
def test_out_of_range_is_refused(values: list[int]) -> None:
    with pytest.raises(ValueError, match="not in 0"):
        from_ints(values)


def test_wrong_arrays_and_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match="shape"):
        to_ints(np.zeros(8, dtype=np.uint32))
    with pytest.raises(ValueError, match="shape"):
        to_ints(np.zeros((1, 4), dtype=np.uint64))
    with pytest.raises(ValueError, match="no multiple"):
        unpack(b"123", 2)


def test_limbs_of_one_value() -> None:
    value = 0x1_00000002_80000000
    assert limbs_of(value, 4) == (0x80000000, 2, 1, 0)
    assert value_of(limbs_of(value, 4)) == value
    with pytest.raises(OverflowError):
        limbs_of(2**64, 2)
