"""Operands as people and files write them."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest

from limbd.harness import textio
from limbd.harness.textio import InputError
from limbd.ops import by_name
from limbd.ops.params.layout import from_ints, to_ints

VALUES = [0, 1, 2**32 - 1, 2**32, 2**255 + 7, 2**256 - 1]


def read(spec: str) -> list[int]:
    return to_ints(textio.read_operand(spec, name="a")[0])


@pytest.mark.parametrize(
    ("text", "value"),
    [("0", 0), ("12", 12), ("0x1f", 31), ("0XFF", 255), ("1_000", 1000), ("007", 7), (str(2**256 - 1), 2**256 - 1)],
)
def test_numbers(text: str, value: int) -> None:
    assert textio.parse_number(text) == value


@pytest.mark.parametrize(
    "text", ["", "-1", "ff", "0x", "1.5", "1e3", str(2**256), "0x1" + 64 * "0", "9" * 5000, "1__0"]
)
def test_what_is_no_number(text: str) -> None:
    with pytest.raises(InputError):
        textio.parse_number(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [("secp256k1", 2**256 - 2**32 - 977), ("P256", None), ("7", 7), ("0x7", 7), ("deadbeef", 0xDEADBEEF), ("1f", 0x1F)],
)
def test_moduli(text: str, value: int | None) -> None:
    assert textio.parse_modulus(text) == (2**256 - 2**224 + 2**192 + 2**96 - 1 if value is None else value)


def test_a_modulus_that_is_nothing_lists_the_fields() -> None:
    with pytest.raises(InputError, match="secp256k1_fp"):
        textio.parse_modulus("secp257k1")
    with pytest.raises(InputError, match="256 bits"):
        textio.parse_modulus("bls12_381_fp")


@pytest.mark.parametrize("suffix", [".bin", ".npy", ".txt"])
def test_every_form_reads_back_what_it_wrote(tmp_path: Path, suffix: str) -> None:
    path = str(tmp_path / f"values{suffix}")
    textio.write_numbers(from_ints(VALUES), path, io.StringIO())
    assert read(path) == VALUES
    textio.write_numbers(from_ints([]), path, io.StringIO())
    assert read(path) == []


def test_printing() -> None:
    out = io.StringIO()
    textio.write_numbers(from_ints([0, 255]), None, out)
    textio.write_numbers(from_ints([255]), None, out, decimal=True)
    assert out.getvalue() == "0x0\n0xff\n255\n"


@pytest.mark.parametrize(
    "array",
    [
        from_ints(VALUES),
        from_ints(VALUES).view("<u8"),
        from_ints(VALUES).view(np.uint8),
        from_ints(VALUES).astype(">u4"),
        np.asfortranarray(from_ints(VALUES)),
    ],
)
def test_npy_forms(tmp_path: Path, array: np.ndarray) -> None:
    np.save(tmp_path / "a.npy", array)
    assert read(str(tmp_path / "a.npy")) == VALUES


def test_npy_of_plain_integers(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.array([3, 2**63 - 1]))
    assert read(str(tmp_path / "a.npy")) == [3, 2**63 - 1]
    for bad in (np.array([-1]), np.array([1.5]), np.zeros((2, 3), np.uint32), np.array(["x"])):
        np.save(tmp_path / "a.npy", bad)
        with pytest.raises(InputError):
            read(str(tmp_path / "a.npy"))


def test_text_files_have_comments_commas_and_line_numbers(tmp_path: Path) -> None:
    path = tmp_path / "numbers"
    path.write_text("# primes\n2, 3\n\n0x5  # five\n")
    assert read(str(path)) == [2, 3, 5]
    assert read(f"@{path}") == [2, 3, 5]
    path.write_text("2\nthree\n")
    with pytest.raises(InputError, match="line 2"):
        read(str(path))


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "odd.bin").write_bytes(bytes(33))
    (tmp_path / "no.npy").write_bytes(b"not an array")
    for spec in ("odd.bin", "no.npy", "absent.bin"):
        with pytest.raises(InputError):
            read(str(tmp_path / spec))


NPY = b"\x93NUMPY\x01\x00"


@pytest.mark.parametrize(
    "content",
    [
        b"PK\x03\x04, but no archive",
        NPY + b"\x04\x00((((",
        NPY + b"\x46\x00{'descr': '<u4', 'fortran_order': False, 'shape': (4000000000000, 8)}\n\n\n",
        NPY + b"\x4f\x00{'descr': '<u4', 'fortran_order': False, 'shape': (99999999999999999999999, 8)}\n\n",
    ],
    ids=["zip", "header", "memory", "overflow"],
)
def test_npy_files_of_garbage(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "garbage.npy"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"is not a \.npy file of numbers"):
        read(str(path))


def test_standard_input_of_garbage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"\xff\xfe1"), encoding="utf-8"))
    with pytest.raises(InputError, match="standard input, line 1"):
        read("-")


def test_one_number_stands_for_every_element_and_lengths_must_agree() -> None:
    a, b = textio.as_operands([("a", "1,2,3"), ("b", "9")])
    assert (to_ints(a), to_ints(b)) == ([1, 2, 3], [9, 9, 9])
    with pytest.raises(InputError, match="a has 3, b has 2"):
        textio.as_operands([("a", "1,2,3"), ("b", "1,2")])


def test_operands_by_name_and_position() -> None:
    multiply, invert = by_name("mod-mul"), by_name("mod-inv")
    assert textio.operand_specs(multiply, {}, ["3", "5"]) == [("a", "3"), ("b", "5")]
    assert textio.operand_specs(multiply, {"a": "3"}, ["5", "6"]) == [("a", "3"), ("b", "5,6")]
    assert textio.operand_specs(invert, {}, ["1", "2", "3"]) == [("x", "1,2,3")]
    for named, values in (({}, ["3"]), ({}, ["1", "2", "3"]), ({"a": "1", "b": "2"}, ["3"])):
        with pytest.raises(InputError):
            textio.operand_specs(multiply, named, values)
