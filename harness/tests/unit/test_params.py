"""Fields: chosen values, what is derived from them, registration, and the rendered C++ that proves itself."""

from __future__ import annotations

import dataclasses
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from limbd.kernels import __file__ as kernels_file
from limbd.ops.params import fields
from limbd.ops.params.base import LIMB_BITS, Field
from limbd.ops.params.check import check_field
from limbd.ops.params.fields import FIELDS, by_id, by_name, register, unregister
from limbd.ops.params.render import render, struct_name

KERNELS = Path(kernels_file).resolve().parent

# The wire's table of ids: an id is never reused.
WIRE_IDS = {
    0x0100: "bn254_fr",
    0x0101: "bn254_fp",
    0x0102: "bls12_381_fr",
    0x0103: "bls12_381_fp",
    0x0104: "secp256k1_fp",
    0x0105: "secp256k1_fr",
    0x0106: "p256_fp",
    0x0107: "curve25519_fp",
    0x0108: "goldilocks",
}

EVERY_FIELD = pytest.mark.parametrize("field", FIELDS, ids=lambda field: field.name)


def outside(**changes: object) -> Field:
    return dataclasses.replace(Field(0x7F70, "outside", 2**61 - 1, "Mersenne prime 2^61 - 1"), **changes)  # type: ignore[arg-type]


@pytest.fixture
def restored_registry() -> Iterator[None]:
    yield
    for field in fields.registered():
        if field not in FIELDS:
            unregister(field)


def test_the_wires_ids_are_the_registered_ones() -> None:
    assert {field.id: field.name for field in FIELDS if not field.toy} == WIRE_IDS
    assert all((field.id in fields.TOY_IDS) == field.toy for field in FIELDS)


@EVERY_FIELD
def test_a_registered_field_is_what_it_claims(field: Field) -> None:
    check_field(field)
    assert by_id(field.id) is field
    assert by_name(field.name) is field


@EVERY_FIELD
def test_derived_values_meet_their_definitions(field: Field) -> None:
    p, base = field.modulus, 1 << (LIMB_BITS * field.montgomery_limbs)
    assert p < 1 << (LIMB_BITS * field.limbs) <= p << LIMB_BITS
    assert field.montgomery_limbs - field.limbs in (0, 1)
    assert field.montgomery_limbs % 2 == 0
    assert field.r == base % p
    assert field.r2 == base * base % p
    assert (field.n0inv * p + 1) % 2**LIMB_BITS == 0
    assert field.montgomery(1) == field.r < p
    assert (p - 1) % 2**field.two_adicity == 0
    assert (p - 1) % 2 ** (field.two_adicity + 1) != 0
    assert field.element_bytes >= 4 * field.limbs


@EVERY_FIELD
def test_default_roots_have_exact_order(field: Field) -> None:
    if field.generator is None:
        with pytest.raises(ValueError, match="no registered generator"):
            field.omega(0)
        return
    assert field.omega(0) == 1
    for k in range(1, field.two_adicity + 1):
        assert pow(field.omega(k), 2 ** (k - 1), field.modulus) == field.modulus - 1
    with pytest.raises(ValueError, match="two-adicity"):
        field.omega(field.two_adicity + 1)


def test_transforms_are_registered_where_the_wire_says() -> None:
    generators = {field.name: field.generator for field in FIELDS if not field.toy and field.generator}
    assert generators == {"bn254_fr": 5, "bls12_381_fr": 7, "goldilocks": 7}


def test_a_curves_name_is_its_base_field() -> None:
    for alias in ("secp256k1", "p256", "curve25519", "bn254", "bls12_381", "BLS12-381"):
        field = by_name(alias)
        assert field is not None
        assert field.name == alias.lower().replace("-", "_") + "_fp"
    assert by_name("secp256k2") is None
    assert by_id(0) is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"modulus": 2**61 - 3}, "not an odd prime"),
        ({"modulus": 2}, "not in 3"),
        ({"modulus": 2**384 + 231}, "not in 3"),
        ({"generator": 4}, "is a square"),
        ({"generator": 1}, "generator is not in"),
        ({"generator": 2**61 - 1}, "generator is not in"),
        ({"name": "2fast"}, "lower case"),
        ({"name": "out; side"}, "lower case"),
        ({"id": 0}, "id 0x0"),
        ({"id": 0x10000}, "id 0x10000"),
        ({"source": ""}, "where its values come from"),
        ({"id": 0x0104}, "secp256k1_fp's"),
        ({"name": "p256_fp"}, "named p256_fp already"),
        ({"name": "p256"}, "named p256 already"),
    ],
)
def test_registration_refuses(change: dict[str, object], message: str, restored_registry: None) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        register(outside(**change))
    assert by_id(0x7F70) is None


def test_a_field_from_outside_is_found_and_taken_out_again(restored_registry: None) -> None:
    field = register(outside())
    assert by_id(0x7F70) is by_name("outside") is field
    with pytest.raises(ValueError, match="outside's"):
        register(outside(name="other"))
    unregister(field)
    assert by_id(0x7F70) is by_name("outside") is None
    with pytest.raises(ValueError, match="not added by"):
        unregister(FIELDS[0])


# --- rendered C++ ---------------------------------------------------------------------------------------------------


def compile_text(text: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Through the host compiler, syntax and static_asserts only."""
    compiler = shutil.which("g++") or shutil.which("clang++")
    assert compiler, "these tests need g++ or clang++"
    path = folder / "params.cpp"
    path.write_text(text)
    command = [compiler, "-std=c++17", "-fsyntax-only", "-Wall", "-Wextra", f"-I{KERNELS}", str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


def test_every_field_renders_and_proves_itself(tmp_path: Path) -> None:
    uses = "\n".join(
        f"static_assert({struct_name(field)}::N == {field.montgomery_limbs} && {struct_name(field)}::BITS == {field.bits});"
        for field in FIELDS
    )
    done = compile_text('#include "base/platform.cuh"\n' + "".join(map(render, FIELDS)) + uses, tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stderr == ""


def wrong_limb(text: str, constant: str) -> str:
    """The text with one bit of the constant's lowest limb turned over."""
    found = re.search(rf"{constant}(\[N\])? = \{{?0x([0-9a-f]{{8}})", text)
    assert found, constant
    flipped = f"{int(found[2], 16) ^ 1 << 7:08x}"
    return text[: found.start(2)] + flipped + text[found.end(2) :]


@pytest.mark.parametrize("constant", ["MODULUS", "N0INV", "R", "R2", "GENERATOR", "ROOT"])
@pytest.mark.parametrize("name", ["bn254_fr", "goldilocks", "toy_3x2_30_1"])
def test_a_wrong_constant_does_not_compile(name: str, constant: str, tmp_path: Path) -> None:
    field = by_name(name)
    assert field is not None
    done = compile_text(wrong_limb(render(field), constant), tmp_path)
    assert done.returncode != 0
    assert "static assertion failed" in done.stderr or "static_assert failed" in done.stderr
    assert name in done.stderr


@pytest.mark.parametrize("constant", ["BITS", "TWO_ADICITY"])
def test_a_wrong_count_does_not_compile(constant: str, tmp_path: Path) -> None:
    text = render(FIELDS[1])
    wrong = re.sub(rf"{constant} = (\d+)", lambda found: f"{constant} = {int(found[1]) - 1}", text)
    assert wrong != text
    assert compile_text(wrong, tmp_path).returncode != 0


def test_an_unreduced_constant_does_not_compile(tmp_path: Path) -> None:
    """R + p is congruent to R, and still wrong: results would not be canonical."""
    field = dataclasses.replace(by_name("toy_257") or FIELDS[0])
    field.__dict__["r"] = field.r + field.modulus
    assert compile_text(render(field), tmp_path).returncode != 0
