"""SEC 1's encodings of secp256k1's points: infinity among them, prefixes, parity, and what is refused. Known encodings and round
trips are in test_formats.py."""

from __future__ import annotations

import numpy as np
import pytest

from limbd import formats
from limbd.harness.multiplications import Multiples
from limbd.ops.formats import refusals
from limbd.ops.params import curves
from limbd.ops.params.layout import to_ints
from limbd.ops.reference.msm import encode_points
from limbd.ops.status import RequestError, Status

SECP256K1 = next(curve for curve in curves.CURVES if curve.name == "secp256k1")
# Infinity first.
POINTS = np.frombuffer(
    encode_points([None, *Multiples(SECP256K1, "g1", "SEC 1", 39).points], SECP256K1, SECP256K1.g1), "<u4"
).reshape(40, 16)
SEC1 = pytest.mark.parametrize(("form", "width"), [("sec1", 65), ("sec1-compressed", 33)])


def refused(data: bytes, form: str) -> tuple[str, int | None]:
    with pytest.raises(RequestError) as caught:
        formats.decode_points(data, form, "secp256k1")
    assert caught.value.status is Status.BAD_ELEMENT
    return caught.value.message, caught.value.index


def big(*numbers: int) -> bytes:
    return b"".join(number.to_bytes(32, "big") for number in numbers)


@SEC1
def test_sec1_of_points_between_infinities(form: str, width: int) -> None:
    """Infinity is one byte, wherever it stands."""
    points = POINTS[[0, 1, 0, 0, 2, 3, 0]]
    data = formats.encode_points(points, form, "secp256k1")
    assert len(data) == 4 + 3 * width
    assert data[:1] == data[width + 1 : width + 2] == data[-1:] == b"\0"
    assert (formats.decode_points(data, form, "secp256k1") == points).all()
    assert [len(each) for each in formats.split_points(data, form, "secp256k1")] == [1, width, 1, 1, width, width, 1]


@pytest.mark.parametrize("x", range(1, 30))
def test_sec1_sign_is_the_parity_of_y(x: int) -> None:
    """By Euler's criterion some x have points: two, of which the prefix says which."""
    p = SECP256K1.base.modulus
    data = b"\0" + b"\x02" + big(x) + b"\x03" + big(x)
    if pow(x**3 + 7, (p - 1) // 2, p) != 1:
        assert refused(data, "sec1-compressed") == (refusals.NO_SUCH_X, 1)
        return
    decoded = formats.decode_points(data, "sec1-compressed", "secp256k1")
    even, odd = (to_ints(row.reshape(2, 8)) for row in decoded[1:])
    assert even[0] == odd[0] == x and even[1] + odd[1] == p
    assert even[1] % 2 == 0 and (even[1] ** 2 - x**3 - 7) % p == 0


@SEC1
def test_sec1_prefixes(form: str, width: int) -> None:
    """All but those of the form and 00 are refused, the hybrid ones too, with the index in points and not in bytes."""
    points = POINTS[[3, 0, 4, 5]]
    data = bytearray(formats.encode_points(points, form, "secp256k1"))
    own = (2, 3) if form == "sec1-compressed" else (4,)
    for prefix in set(range(1, 256)) - set(own):
        data[width + 1] = prefix
        assert refused(bytes(data), form) == (refusals.BAD_PREFIX, 2)
    for prefix in own:
        data[width + 1] = prefix
        assert (formats.decode_points(bytes(data), form, "secp256k1")[[0, 1, 3]] == points[[0, 1, 3]]).all()


@SEC1
def test_sec1_cut_short(form: str, width: int) -> None:
    data = formats.encode_points(POINTS[[1, 0, 2]], form, "secp256k1")
    for size in {1, 2, width - 1, width + 2, 2 * width}:
        with pytest.raises(RequestError) as caught:
            formats.decode_points(data[:size], form, "secp256k1")
        assert caught.value.status is Status.BAD_LENGTH
    for size in (0, width, width + 1):
        formats.decode_points(data[:size], form, "secp256k1")


def test_sec1_coordinates() -> None:
    """Two points whose coordinates plus p fit 256 bits, and what is near them."""
    p = SECP256K1.base.modulus
    root, cube = pow(8, (p + 1) // 4, p), pow(-6, (p + 2) // 9, p)
    for x, y in ((1, root), (cube, 1)):
        decoded = formats.decode_points(b"\0\x04" + big(x, y), "sec1", "secp256k1")
        assert to_ints(decoded[1].reshape(2, 8)) == [x, y]
    wrong = {
        (1 + p, root): refusals.NOT_BELOW_P,
        (cube, 1 + p): refusals.NOT_BELOW_P,
        (p, p): refusals.NOT_BELOW_P,
        (0, 0): refusals.UNFLAGGED_INFINITY,
        (1, root + 1): refusals.NOT_ON_CURVE,
        (root, 1): refusals.NOT_ON_CURVE,
        (0, 1): refusals.NOT_ON_CURVE,
    }
    for (x, y), reason in wrong.items():
        assert refused(b"\0\x04" + big(x, y), "sec1") == (reason, 1)
    for x in (1 + p, p, 2**256 - 1):
        assert refused(b"\0\x02" + big(x), "sec1-compressed") == (refusals.NOT_BELOW_P, 1)


def test_sec1_tells_the_lowest_bad_point() -> None:
    """Whatever comes later: another bad point, or a prefix after which nothing can be read."""
    off, good = b"\x04" + big(1, 1), formats.encode_points(POINTS[1:2], "sec1", "secp256k1")
    assert refused(good + off + b"\x09", "sec1") == (refusals.NOT_ON_CURVE, 1)
    assert refused(good + good + b"\x09" + off, "sec1") == (refusals.BAD_PREFIX, 2)
    assert refused(good + off + b"\x04" + b"\xff" * 64, "sec1") == (refusals.NOT_ON_CURVE, 1)


@SEC1
def test_sec1_of_many_points(form: str, width: int) -> None:
    points = np.tile(POINTS, (450, 1))
    data = formats.encode_points(points, form, "secp256k1")
    assert len(data) == 450 * (39 * width + 1)
    assert (formats.decode_points(data, form, "secp256k1") == points).all()


@pytest.mark.parametrize("curve", ["bn254", "bls12_381"])
def test_sec1_is_of_secp256k1_alone(curve: str) -> None:
    assert "sec1" not in formats.point_formats(curve, "g1")
    with pytest.raises(ValueError, match="no format 'sec1'"):
        formats.decode_points(b"", "sec1", curve)
