"""Points and scalars as other software writes them: known encodings, round trips, and what is refused."""

from __future__ import annotations

import json
import random
from functools import cache
from itertools import product

import numpy as np
import pytest

from limbd import formats
from limbd.harness.vectors import FOLDER
from limbd.harness.vectors.formats import Encoding, encodings
from limbd.ops.formats import refusals
from limbd.ops.formats.layouts import Layout, layout_of
from limbd.ops.formats.on_curve import is_larger, ordinates
from limbd.ops.params import curves
from limbd.ops.params.base import Field
from limbd.ops.params.coordinates import multiply, square_root
from limbd.ops.params.curves import Curve, Group, GroupName
from limbd.ops.params.layout import Limbs, from_ints, to_ints
from limbd.ops.reference.curve import Point, negate, plus
from limbd.ops.reference.msm import encode_points
from limbd.ops.status import RequestError, Status

GROUPS: list[tuple[str, GroupName]] = [
    ("bn254", "g1"),
    ("bn254", "g2"),
    ("bls12_381", "g1"),
    ("bls12_381", "g2"),
    ("secp256k1", "g1"),
]
FORMS = [(curve, group, form) for curve, group in GROUPS for form in formats.point_formats(curve, group)]
# Of one length for each point; SEC 1's are in test_sec1.py.
BINARY = [each for each in FORMS if each[2] not in ("json", "sec1", "sec1-compressed")]
REASONS = {
    "curve": refusals.NOT_ON_CURVE,
    "range": refusals.NOT_BELOW_P,
    "padding": refusals.BAD_PADDING,
}
KNOWN = list(encodings())
EVERY_GROUP = pytest.mark.parametrize(("curve", "group"), GROUPS)
EVERY_FORM = pytest.mark.parametrize(("curve", "group", "form"), FORMS)
EVERY_BINARY_FORM = pytest.mark.parametrize(("curve", "group", "form"), BINARY)


def members(curve_name: str, group_name: GroupName) -> tuple[Curve, Group]:
    curve = curves.by_name(curve_name)
    assert curve is not None
    group = curve.group(group_name)
    assert group is not None
    return curve, group


def limbs(points: list[Point], curve_name: str, group_name: GroupName) -> Limbs:
    curve, group = members(curve_name, group_name)
    width = curve.point_bytes(group) // 4
    return np.frombuffer(encode_points(points, curve, group), "<u4").reshape(len(points), width)


@cache
def some_points(curve_name: str, group_name: GroupName) -> Limbs:
    """Infinity, the generator, its negative, and sums of these."""
    curve, group = members(curve_name, group_name)
    p, rng = curve.base.modulus, random.Random(f"{curve_name} {group_name}")
    points: list[Point] = [None, group.generator, negate(group.generator, p)]
    while len(points) < 40:
        a, b = rng.choices(points, k=2)
        found = plus(a, b, p)
        points.append(plus(found, group.generator, p) or found)
    return limbs(points, curve_name, group_name)


def layout(curve_name: str, group_name: GroupName, form: str) -> Layout:
    found = layout_of(form, members(curve_name, group_name)[0], group_name)
    assert isinstance(found, Layout)
    return found


def refused(data: bytes, form: str, curve: str, group: str, *, check_curve: bool = False) -> tuple[str, int | None]:
    with pytest.raises(RequestError) as caught:
        formats.decode_points(data, form, curve, group, check_curve=check_curve)
    assert caught.value.status is Status.BAD_ELEMENT
    return caught.value.message, caught.value.index


# --- known encodings ---


@pytest.mark.parametrize("known", [each for each in KNOWN if not each.refused], ids=lambda e: f"{e.source}-{e.form}")
def test_known_encodings(known: Encoding) -> None:
    points = limbs([known.expected()], known.curve, known.group)
    decoded = formats.decode_points(known.data, known.form, known.curve, known.group, check_curve=True)
    assert (decoded == points).all()
    assert formats.encode_points(points, known.form, known.curve, known.group, check_curve=True) == known.data


@pytest.mark.parametrize("known", [each for each in KNOWN if each.refused], ids=lambda e: e.name)
def test_known_refusals(known: Encoding) -> None:
    assert known.refused
    width = layout(known.curve, known.group, known.form).point_bytes(*known.members)
    singly = [known.data[i : i + width] for i in range(0, len(known.data), width)]
    reason, index = refused(known.data, known.form, known.curve, known.group, check_curve=True)
    assert reason == REASONS[known.refused]
    assert index is not None
    for good in singly[:index]:
        formats.decode_points(good, known.form, known.curve, known.group, check_curve=True)
    assert refused(singly[index], known.form, known.curve, known.group, check_curve=True) == (reason, 0)


def test_every_format_has_known_encodings() -> None:
    """Forms that are another's (see the tests below) need none of their own; limbd's own and JSON are their definitions."""
    seen = {(each.curve, each.group, each.form) for each in KNOWN if not each.refused}
    for curve, group, form in FORMS:
        same = form.replace("zcash", "arkworks").replace("gnark", "arkworks") if curve == "bls12_381" else form
        same = "eip197" if (group, same) == ("g2", "gnark") else same
        if form not in ("wire", "json") and (curve, form) != ("secp256k1", "montgomery"):
            assert (curve, group, same) in seen, (curve, group, form)
    sources = (FOLDER / "SOURCES.md").read_text()
    assert all(f"| `{each.source}` |" in sources for each in KNOWN)


@pytest.mark.parametrize(("group", "suffix"), list(product(("g1", "g2"), ("", "-compressed"))))
def test_three_names_of_zcashs_form(group: GroupName, suffix: str) -> None:
    points = some_points("bls12_381", group)
    written = {
        formats.encode_points(points, f"{name}{suffix}", "bls12_381", group) for name in ("zcash", "gnark", "arkworks")
    }
    assert len(written) == 1


def test_gnark_without_compression_is_the_evms() -> None:
    for group, form in (("g1", "eip196"), ("g2", "eip197")):
        points = some_points("bn254", group)
        assert formats.encode_points(points, "gnark", "bn254", group) == formats.encode_points(
            points, form, "bn254", group
        )


def test_json_as_it_is_written() -> None:
    g1 = formats.encode_points(limbs([((1,), (2,)), None], "bn254", "g1"), "json", "bn254")
    assert g1 == b'[\n["0x1", "0x2"],\nnull\n]\n'
    g2 = json.loads(formats.encode_points(some_points("bn254", "g2")[1:2], "json", "bn254", "g2"))
    generator = members("bn254", "g2")[1].generator
    assert [[tuple(int(part, 16) for part in coordinate) for coordinate in point] for point in g2] == [list(generator)]


def test_json_of_other_forms() -> None:
    text = b' [["0x0001", "02"], [1, "2"], ["0X01", 2], null] '
    assert (formats.decode_points(text, "json", "bn254") == limbs([((1,), (2,))] * 3 + [None], "bn254", "g1")).all()


# --- round trips ---


@EVERY_FORM
def test_round_trip(curve: str, group: GroupName, form: str) -> None:
    points = some_points(curve, group)
    data = formats.encode_points(points, form, curve, group)
    for check_curve in (False, True):
        decoded = formats.decode_points(data, form, curve, group, check_curve=check_curve)
        assert decoded.dtype == np.uint32 and decoded.flags.writeable
        assert (decoded == points).all()


@pytest.mark.parametrize("form", formats.point_formats("bls12_381", "g1"))
def test_x_zero_is_not_infinity(form: str) -> None:
    """(0, 2) and its negative, of order 3."""
    p = members("bls12_381", "g1")[0].base.modulus
    points = limbs([((0,), (2,)), None, ((0,), (p - 2,))], "bls12_381", "g1")
    data = formats.encode_points(points, form, "bls12_381")
    assert (formats.decode_points(data, form, "bls12_381", check_curve=True) == points).all()


@EVERY_FORM
def test_no_points(curve: str, group: GroupName, form: str) -> None:
    none = some_points(curve, group)[:0]
    data = formats.encode_points(none, form, curve, group)
    assert formats.decode_points(data, form, curve, group, check_curve=True).shape == none.shape


@EVERY_BINARY_FORM
def test_both_signs_and_infinity_are_three_encodings(curve: str, group: GroupName, form: str) -> None:
    data = formats.encode_points(some_points(curve, group)[:3], form, curve, group)
    width = len(data) // 3
    assert len({data[i : i + width] for i in range(0, len(data), width)}) == 3


def test_more_points_than_are_converted_at_a_time() -> None:
    points = np.tile(some_points("bn254", "g1"), (1000, 1))
    for form in ("montgomery", "gnark"):
        data = formats.encode_points(points, form, "bn254", check_curve=True)
        assert (formats.decode_points(data, form, "bn254") == points).all()


def test_more_points_than_are_decompressed_at_a_time() -> None:
    points = np.tile(some_points("bn254", "g1"), (450, 1))
    data = formats.encode_points(points, "arkworks-compressed", "bn254")
    assert (formats.decode_points(data, "arkworks-compressed", "bn254") == points).all()


# --- refusals: every one at index 2 of 4 ---


def changed(data: bytes, count: int, change: dict[int, int]) -> bytes:
    """Bytes of the third of `count` points set to other values."""
    width = len(data) // count
    result = bytearray(data)
    for at, value in change.items():
        result[2 * width + at % width] = value
    return bytes(result)


@EVERY_BINARY_FORM
def test_wrong_length(curve: str, group: GroupName, form: str) -> None:
    data = formats.encode_points(some_points(curve, group)[:4], form, curve, group)
    for wrong in (data[:-1], data + b"\0"):
        with pytest.raises(RequestError) as caught:
            formats.decode_points(wrong, form, curve, group)
        assert caught.value.status is Status.BAD_LENGTH


@EVERY_BINARY_FORM
def test_coordinates_not_below_p(curve: str, group: GroupName, form: str) -> None:
    """Each integer in turn is p, and the largest that its bits can hold; neither is reduced."""
    members_of, shape = members(curve, group), layout(curve, group, form)
    points = some_points(curve, group)[:4]
    data, width = formats.encode_points(points, form, curve, group), shape.integer_bytes(members_of[0])
    count = shape.coordinates * members_of[1].degree
    p, mask = members_of[0].base.modulus, shape.flags.mask if shape.flags else 0
    for part in range(count):
        flagged = part == (0 if shape.big_endian else count - 1)
        most = (1 << 8 * (width - shape.padding) - (mask.bit_count() if flagged else 0)) - 1
        for value in (p, most):
            encoded = bytearray(value.to_bytes(width, "big" if shape.big_endian else "little"))
            at = (2 * count + part) * width
            if flagged:
                encoded[shape.flag_byte] |= data[at : at + width][shape.flag_byte] & mask
            wrong = data[:at] + encoded + data[at + width :]
            assert refused(wrong, form, curve, group) == (refusals.NOT_BELOW_P, 2)


@pytest.mark.parametrize("at", [0, 15, 64, 79])
def test_padding(at: int) -> None:
    data = formats.encode_points(some_points("bls12_381", "g1")[:4], "eip2537", "bls12_381")
    assert refused(changed(data, 4, {at: 1}), "eip2537", "bls12_381", "g1") == (refusals.BAD_PADDING, 2)


FLAGGED = [each for each in BINARY if layout(*each).flags]


@pytest.mark.parametrize(("curve", "group", "form"), FLAGGED)
def test_flags(curve: str, group: GroupName, form: str) -> None:
    """Every value of the flag bits, on a point and on zeros: one encoding of each is read."""
    shape, points = layout(curve, group, form), some_points(curve, group)[[3, 4, 5, 6]]
    flags = shape.flags
    assert flags is not None
    data = formats.encode_points(points, form, curve, group)
    width = len(data) // 4
    own = data[2 * width : 3 * width][shape.flag_byte]
    step = flags.mask & -flags.mask
    for tag in range(0, 256, step):
        value = own & ~flags.mask | tag
        wrong = changed(data, 4, {shape.flag_byte: value})
        if value == own:
            assert (formats.decode_points(wrong, form, curve, group) == points).all()
        elif tag == flags.infinity:
            assert refused(wrong, form, curve, group) == (refusals.BAD_INFINITY, 2)
        elif tag not in (flags.smaller, flags.larger):
            assert refused(wrong, form, curve, group) == (refusals.BAD_FLAGS, 2)
        elif shape.compressed:
            opposite = formats.decode_points(wrong, form, curve, group)
            assert (opposite[:, : opposite.shape[1] // 2] == points[:, : points.shape[1] // 2]).all()
            assert (opposite[2] != points[2]).any()
        else:
            assert refused(wrong, form, curve, group) == (refusals.BAD_SIGN, 2)


@pytest.mark.parametrize(("curve", "group", "form"), FLAGGED)
def test_infinity_is_its_flag_and_zeros(curve: str, group: GroupName, form: str) -> None:
    shape, points = layout(curve, group, form), some_points(curve, group)[[3, 4, 0, 6]]
    flags = shape.flags
    assert flags is not None
    data = formats.encode_points(points, form, curve, group)
    width = len(data) // 4
    assert data[2 * width : 3 * width].count(0) == width - 1
    for at in range(width):
        low = flags.infinity | 1 if at == shape.flag_byte % width else 1
        assert refused(changed(data, 4, {at: low}), form, curve, group) == (refusals.BAD_INFINITY, 2)
    if not shape.compressed:
        unflagged = changed(data, 4, {shape.flag_byte: flags.smaller})
        assert refused(unflagged, form, curve, group) == (refusals.UNFLAGGED_INFINITY, 2)


@pytest.mark.parametrize(("curve", "group", "form"), [each for each in BINARY if layout(*each).compressed])
def test_x_of_no_point(curve: str, group: GroupName, form: str) -> None:
    """Small values of x: those are read for which Euler's criterion says that x^3 + b is a square."""
    found, members_of = members(curve, group)
    p, shape = found.base.modulus, layout(curve, group, form)
    data = formats.encode_points(some_points(curve, group)[[3, 4, 5, 6]], form, curve, group)
    width = len(data) // 4
    squares = 0
    for x in range(1, 30):
        encoded = bytearray(width)
        lowest = -1 if shape.big_endian else 0
        encoded[lowest] = x  # of c0 in g2, which comes last where the order is big-endian
        assert shape.flags is not None
        encoded[shape.flag_byte] |= shape.flags.smaller
        wrong = data[: 2 * width] + encoded + data[3 * width :]
        square = (x**3 + members_of.b[0], *members_of.b[1:])
        norm = square[0] if members_of.degree == 1 else square[0] ** 2 + square[1] ** 2
        if pow(norm, (p - 1) // 2, p) == 1:
            squares += 1
            formats.decode_points(wrong, form, curve, group)
        else:
            assert refused(wrong, form, curve, group) == (refusals.NO_SUCH_X, 2)
    assert 0 < squares < 29


def test_the_sign_of_y_zero() -> None:
    """No registered curve has such a point; y^2 = x^3 - 1 has (1, 0)."""
    curve = Curve(
        0x7FFF, "y0", members("bn254", "g1")[0].base, members("bn254", "g1")[0].scalar, curves.CURVES[0].g1, None, ""
    )
    group = Group(1, (curve.base.modulus - 1,), ((1,), (0,)), 1)
    x = np.frombuffer(bytes([1]) + bytes(31), np.uint8).reshape(1, 1, 32)
    no = np.zeros(1, np.bool_)
    assert not ordinates(x, no, no, curve, group).any()
    with pytest.raises(RequestError, match=refusals.BAD_SIGN):
        ordinates(x, ~no, no, curve, group)


@EVERY_GROUP
def test_the_larger_of_y_and_its_negative(curve: str, group: GroupName) -> None:
    """Around half of p: by the definition, c1 before c0."""
    found, members_of = members(curve, group)
    p, width = found.base.modulus, found.base.element_bytes
    edges = [0, 1, p // 2 - 1, p // 2, p // 2 + 1, p // 2 + 2, p - 1]
    ys = list(product(edges, repeat=members_of.degree))
    packed = np.frombuffer(b"".join(part.to_bytes(width, "little") for y in ys for part in y), np.uint8)
    expected = [y[::-1] > tuple(-part % p for part in y[::-1]) for y in ys]
    assert is_larger(packed.reshape(len(ys), members_of.degree, width), p).tolist() == expected


@EVERY_FORM
def test_points_off_the_curve(curve: str, group: GroupName, form: str) -> None:
    """They pass where nobody asks, but are never compressed and never SEC 1's."""
    points = some_points(curve, group)[[3, 4, 5, 6]].copy()
    points[2, 0] ^= 1
    with pytest.raises(RequestError) as caught:
        formats.encode_points(points, form, curve, group, check_curve=True)
    assert (caught.value.message, caught.value.index) == (refusals.NOT_ON_CURVE, 2)
    if form.endswith("-compressed") or form == "sec1":
        with pytest.raises(RequestError, match=refusals.NOT_ON_CURVE):
            formats.encode_points(points, form, curve, group)
        return
    data = formats.encode_points(points, form, curve, group)
    assert (formats.decode_points(data, form, curve, group) == points).all()
    assert refused(data, form, curve, group, check_curve=True) == (refusals.NOT_ON_CURVE, 2)


@EVERY_FORM
def test_what_is_encoded_is_below_p(curve: str, group: GroupName, form: str) -> None:
    points = some_points(curve, group)[[3, 4, 5, 6]].copy()
    points[2, points.shape[1] // 2 :] = 0xFFFFFFFF
    points[3] = 0xFFFFFFFF
    with pytest.raises(RequestError) as caught:
        formats.encode_points(points, form, curve, group)
    assert (caught.value.message, caught.value.index) == (refusals.NOT_BELOW_P, 2)


def test_the_lowest_bad_point_is_told_whatever_its_reason() -> None:
    points = some_points("bn254", "g1")[[3, 4, 5, 6]].copy()
    points[1, 0] ^= 1
    data = bytearray(formats.encode_points(points, "wire", "bn254"))
    data[3 * 64 - 1] = 0xFF
    assert refused(bytes(data), "wire", "bn254", "g1", check_curve=True) == (refusals.NOT_ON_CURVE, 1)
    assert refused(bytes(data), "wire", "bn254", "g1") == (refusals.NOT_BELOW_P, 2)
    text = b'[["0x1", "0x2"], ["0x1", "0x3"], [1, -1]]'
    assert refused(text, "json", "bn254", "g1", check_curve=True) == (refusals.NOT_ON_CURVE, 1)
    assert refused(text, "json", "bn254", "g1")[1] == 2


@pytest.mark.parametrize(
    "point",
    ["1", "[]", "[1]", "[1, 2, 3]", "[1, null]", "[1, true]", "[1, 2.0]", "[1, -2]", '[1, "-2"]', '[1, "2_0"]', '[1, "ff"]',
     '[1, "0x"]', '[1, ""]', '[1, " 2"]', '[1, "٢"]', "[1, [2]]", "[[1], [2]]", '"null"', "false", "[0, 0]", "{}"],
)  # fmt: skip
def test_json_that_is_no_point(point: str) -> None:
    assert refused(f"[null, null, {point}, null]".encode(), "json", "bn254", "g1")[1] == 2


def test_json_coordinates_have_the_groups_degree_and_range() -> None:
    p = members("bn254", "g1")[0].base.modulus
    assert refused(f'[["{p:#x}", 2]]'.encode(), "json", "bn254", "g1") == (refusals.NOT_BELOW_P, 0)
    assert refused(f'[[1, "{"9" * 4000}"]]'.encode(), "json", "bn254", "g1")[1] == 0
    assert refused(b"[[1, 2]]", "json", "bn254", "g2")[1] == 0
    assert refused(b"[[[1, 2, 3], [1, 2]]]", "json", "bn254", "g2")[1] == 0
    assert refused(b"[[[0, 0], [0, 0]]]", "json", "bn254", "g2") == (refusals.UNFLAGGED_INFINITY, 0)


@pytest.mark.parametrize("text", [b"", b"{}", b"null", b"[[1, 2]", b"\xff", b"[" * 100000, b"[" + b"9" * 5000 + b"]"])
def test_what_is_no_json_list(text: bytes) -> None:
    with pytest.raises(ValueError, match="no JSON"):
        formats.decode_points(text, "json", "bn254")


def test_what_is_not_there() -> None:
    with pytest.raises(ValueError, match="no curve"):
        formats.decode_points(b"", "wire", "bn256")
    with pytest.raises(ValueError, match="no group"):
        formats.decode_points(b"", "wire", "secp256k1", "g2")
    with pytest.raises(ValueError, match="eip196"):
        formats.decode_points(b"", "eip2537", "bn254")
    with pytest.raises(ValueError, match="eip197"):
        formats.encode_points(some_points("bn254", "g2"), "eip196", "bn254", "g2")
    with pytest.raises(ValueError, match=r"\(n, 16\)"):
        formats.encode_points(some_points("bn254", "g2"), "wire", "bn254", "g1")
    with pytest.raises(ValueError, match="big-endian"):
        formats.decode_scalars(b"", "eip196", "bn254")


# --- scalars ---

SCALARS = [0, 1, 2, 2**64 - 1, 2**255 + 12345]
# 1 in Montgomery form: gnark-crypto ecc/bn254/fr/element.go (SetOne), sppark ff/bls12-381.hpp (BLS12_381_rone).
ONE = {
    "bn254": (12436184717236109307, 3962172157175319849, 7381016538464732718, 1011752739694698287),
    "bls12_381": (0x00000001FFFFFFFE, 0x5884B7FA00034802, 0x998C4FEFECBC4FF5, 0x1824B159ACC5056F),
}


@pytest.mark.parametrize("form", formats.scalar_formats())
@pytest.mark.parametrize("curve", ["bn254", "bls12_381", "secp256k1"])
def test_scalars_round_trip(curve: str, form: str) -> None:
    order = members(curve, "g1")[0].order
    values = from_ints([*(value % order if form == "montgomery" else value for value in SCALARS), order - 1])
    data = formats.encode_scalars(values, form, curve)
    assert (formats.decode_scalars(data, form, curve) == values).all()
    assert formats.decode_scalars(formats.encode_scalars(values[:0], form, curve), form, curve).shape == (0, 8)


def test_scalars_as_they_are_written() -> None:
    values = from_ints([1, 2**255])
    assert formats.encode_scalars(values, "wire", "bn254") == b"\1" + bytes(31) + bytes(31) + b"\x80"
    assert formats.encode_scalars(values, "big-endian", "bn254") == bytes(31) + b"\1\x80" + bytes(31)
    assert formats.encode_scalars(values, "json", "bn254") == f'[\n"0x1",\n"{2**255:#x}"\n]\n'.encode()
    assert to_ints(formats.decode_scalars(b'[3, "4", "0x10"]', "json", "bn254")) == [3, 4, 16]
    for curve, limbs_of_one in ONE.items():
        one = b"".join(limb.to_bytes(8, "little") for limb in limbs_of_one)
        assert formats.encode_scalars(values[:1], "montgomery", curve) == one
        assert to_ints(formats.decode_scalars(one, "montgomery", curve)) == [1]


def test_scalars_that_are_refused() -> None:
    order = members("bn254", "g1")[0].order
    wrong = from_ints([1, order - 1, order, 2**256 - 1])
    for run in (formats.encode_scalars, lambda v, *rest: formats.decode_scalars(v.tobytes(), *rest)):
        with pytest.raises(RequestError) as caught:
            run(wrong, "montgomery", "bn254")
        assert (caught.value.message, caught.value.index) == (refusals.NOT_BELOW_R, 2)
    for text in (f"[1, 2, {2**256}]", "[1, 2, -1]", "[1, 2, [3]]", "[1, 2, null]"):
        with pytest.raises(RequestError) as caught:
            formats.decode_scalars(text.encode(), "json", "bn254")
        assert (caught.value.status, caught.value.index) == (Status.BAD_ELEMENT, 2)
    with pytest.raises(RequestError) as caught:
        formats.decode_scalars(bytes(33), "wire", "bn254")
    assert caught.value.status is Status.BAD_LENGTH


# --- square roots ---


@pytest.mark.parametrize("p", [3, 7, 11, 19, 23])
def test_every_root_over_small_fields(p: int) -> None:
    for elements in ([(a,) for a in range(p)], list(product(range(p), repeat=2))):
        squares = {multiply(a, a, p) for a in elements}
        for a in elements:
            root = square_root(a, p)
            assert (root is not None) == (a in squares)
            assert root is None or multiply(root, root, p) == a


def test_the_fields_of_all_curves_are_3_modulo_4() -> None:
    fields: list[Field] = [curve.base for curve in curves.CURVES]
    assert all(field.modulus % 4 == 3 for field in fields)
