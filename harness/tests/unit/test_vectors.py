"""The shipped answers: complete, of known origin, rebuilt byte for byte, and refused when they do not fit the code."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import product
from pathlib import Path

import msgpack
import numpy as np
import pytest

from limbd.harness.inputs import Residues
from limbd.harness.vectors import FOLDER, load, read_file, write_file
from limbd.harness.vectors.demo import SAMPLE, demo_batches
from limbd.harness.vectors.made import chosen_moduli, field_batches, plain_batches
from limbd.harness.vectors.multiplication_recipes import MultiplicationRecipe
from limbd.harness.vectors.peers import OPERANDS, Disagreement, agreed, agreed_whole, by_python
from limbd.harness.vectors.quotients import quotient_batches
from limbd.harness.vectors.recipes import Recipe, recipes
from limbd.harness.vectors.transforms import ANSWERS, GENERATED, made_batches
from limbd.ops import OPS
from limbd.ops import by_name as op_by_name
from limbd.ops.base import Op
from limbd.ops.params.fields import FIELDS, by_name
from limbd.ops.params.layout import from_ints, to_ints
from limbd.ops.quotient import COEFFICIENTS
from limbd.ops.transform_op import LOG_N

EVERY_OP = pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)


@EVERY_OP
def test_a_batch_is_the_request_that_it_answers(op: Op) -> None:
    for batch in load(op.name):
        assert tuple(batch.operands) == op.operands
        assert op.payload_bytes(batch.call) == len(batch.payload())
        assert op.result_bytes(batch.call) == batch.expected.nbytes
        request = op.decode(batch.call, memoryview(batch.payload()))
        assert request.modulus == batch.modulus
        assert all((request.arrays[name] == array).all() for name, array in batch.operands.items())


@EVERY_OP
def test_answers_are_cpythons(op: Op) -> None:
    for batch in load(op.name):
        columns = [to_ints(array) for array in batch.operands.values()]
        assert to_ints(batch.expected) == by_python(op.name, batch.residues, columns)


def test_the_cases_that_had_to_be_there() -> None:
    powers = {
        (batch.modulus, *row)
        for batch in load("mod-exp")
        for row in zip(*map(to_ints, batch.operands.values()), strict=True)
    }
    for modulus in (1, 2, 2**255, 2**256 - 1, by_name("secp256k1").modulus):  # type: ignore[union-attr]
        for base in (0, 1, modulus - 1):
            for exponent in (0, 1, modulus, 2**256 - 1):
                assert (modulus, base, exponent) in powers
    inverses = {(batch.modulus, x) for batch in load("mod-inv") for x in to_ints(batch.operands["x"])}
    assert {(1, 0), (2, 0), (2, 1), (2**255, 1), (2**256 - 1, 2**256 - 2)} <= inverses
    assert any(modulus % 2 == 0 and modulus > 2**200 for modulus, _ in inverses)
    assert any(x >= modulus for modulus, x in inverses)


def test_made_vectors_are_rebuilt_byte_for_byte(tmp_path: Path) -> None:
    field = by_name("goldilocks")
    assert field
    write_file(tmp_path / "again.msgpack", field_batches(field))
    assert (tmp_path / "again.msgpack").read_bytes() == (FOLDER / "field_goldilocks.msgpack").read_bytes()
    write_file(tmp_path / "again.msgpack", list(plain_batches("mod-add")))
    assert (tmp_path / "again.msgpack").read_bytes() == (FOLDER / "mod_add.msgpack").read_bytes()
    shipped = [batch for batch in read_file(FOLDER / "ntt.msgpack") if batch.source == "made"]
    write_file(tmp_path / "again.msgpack", list(made_batches()))
    write_file(tmp_path / "shipped.msgpack", shipped)
    assert (tmp_path / "again.msgpack").read_bytes() == (tmp_path / "shipped.msgpack").read_bytes()
    write_file(tmp_path / "again.msgpack", list(quotient_batches()))
    assert (tmp_path / "again.msgpack").read_bytes() == (FOLDER / "quotient.msgpack").read_bytes()


def test_transforms_of_both_conventions_in_every_form() -> None:
    names = {batch.name for batch in load("ntt")}
    for field, conventions in (
        ("bn254_fr", ("ark_gnark_icicle_ffjs", "halo2")),
        ("bls12_381_fr", ("ark_gnark_blst_zkcrypto", "ffjs")),
    ):
        for convention in conventions:
            for key, _ in ANSWERS:
                assert any(name.startswith(f"{field} {convention} ") and name.endswith(f" {key}") for name in names)
    assert len(GENERATED) == 2
    domains = {bool(batch.domain) for batch in load("ntt") if batch.source == "generated"}
    assert domains == {False, True}


def test_quotients_of_both_results_and_domains() -> None:
    batches = list(load("quotient"))
    for name in ("bn254_fr", "bls12_381_fr", "toy_97"):
        of_field = [batch for batch in batches if batch.name.startswith(f"{name} ")]
        assert {(bool(batch.domain), bool(batch.param & COEFFICIENTS)) for batch in of_field} == set(
            product((False, True), repeat=2)
        )
    # The quotient of a prover is divided without remainder: its degree is below n - 1.
    exact = [batch for batch in batches if "C = A B" in batch.name and batch.param & COEFFICIENTS]
    assert exact
    for batch in exact:
        n = 1 << (batch.param & LOG_N)
        assert not any(to_ints(batch.expected[n - 1 :: n]))


def test_recipes_tell_a_wrong_result_wherever_it_is() -> None:
    recipe = next(recipes("ntt"))
    assert isinstance(recipe, Recipe)
    right = from_ints(by_python("ntt", recipe.residues, [to_ints(recipe.operands()["x"])]))
    assert recipe.first_difference(right) is None
    for at in (0, 1, 77, recipe.n - 1):
        wrong = right.copy()
        wrong[at, 0] ^= 1
        assert recipe.first_difference(wrong) == at
    assert recipe.first_difference(right[:-1]) == 0
    unreduced = right.copy()
    unreduced[77] = from_ints([to_ints(right[77:78])[0] + recipe.field.modulus])[0]
    assert recipe.first_difference(unreduced) == 77


def test_long_recipes_are_judged_by_several_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = next(recipes("ntt"))
    alone = recipe.operands()["x"]
    right = from_ints(by_python("ntt", recipe.residues, [to_ints(alone)]))
    monkeypatch.setattr("limbd.harness.vectors.recipes.USUAL_LOG_N", 0)
    monkeypatch.setattr("limbd.harness.vectors.recipes._PART", 256)
    assert (recipe.operands()["x"] == alone).all()
    assert recipe.first_difference(right) is None
    wrong = right.copy()
    wrong[[700, 1900]] = 0
    assert recipe.first_difference(wrong) == 700


def test_recipes_reach_the_sizes_of_the_claims() -> None:
    found = [recipe for recipe in recipes("ntt", 26) if isinstance(recipe, Recipe)]
    sizes = {(recipe.field.name, recipe.k) for recipe in found}
    assert {(name, k) for name in ("bn254_fr", "bls12_381_fr") for k in range(11, 27)} == sizes
    assert max(recipe.n for recipe in recipes("ntt")) == 1 << 18
    assert not list(recipes("mod-mul"))


@pytest.mark.parametrize("op", ["msm-g1", "msm-g2"])
def test_recipes_of_multiplications(op: str) -> None:
    """Lengths around 2^12, 2^16 and 2^20, up to 2^22, and one of 2^24; a wrong sum is seen."""
    found = [recipe for recipe in recipes(op, 24) if isinstance(recipe, MultiplicationRecipe)]
    sizes = {(recipe.curve.name, recipe.count) for recipe in found}
    around = {1 << 12, (1 << 12) + 1, (1 << 16) - 1, 1 << 16, *range((1 << 20) - 1, (1 << 20) + 2), 1 << 22}
    assert sizes >= {(curve, n) for curve in ("bn254", "bls12_381") for n in around}
    assert max(n for _, n in sizes) == (1 << 24 if op == "msm-g1" else 1 << 22)
    usual = [recipe for recipe in recipes(op) if isinstance(recipe, MultiplicationRecipe)]
    assert {recipe.count for recipe in usual} == {1 << 12} and all(recipe.is_right() for recipe in usual)
    assert all(not replace(recipe, expected=recipe.expected ^ 1).is_right() for recipe in usual)
    for recipe in usual:
        right = from_ints([recipe.expected], len(recipe.operands()["points"][0]))
        assert recipe.first_difference(right) is None
        assert recipe.first_difference(right ^ np.uint32(1)) == recipe.first_difference(right[:0]) == 0


def test_every_file_and_source_is_in_sources_md() -> None:
    text = (FOLDER / "SOURCES.md").read_text()
    for path in FOLDER.glob("*.msgpack"):
        name = "field_<name>.msgpack" if path.name.startswith("field_") else path.name
        assert f"`{name}`" in text
        if path.name not in ("demo.msgpack", "recipes.msgpack"):
            assert all(f"| `{batch.source}` |" in text for batch in read_file(path))
    assert "Apache-2.0" in text


def test_each_field_has_answers_for_each_op() -> None:
    for field in FIELDS:
        if not field.toy:
            batches = list(read_file(FOLDER / f"field_{field.name}.msgpack"))
            assert {batch.op for batch in batches} == set(OPERANDS)
            assert all(batch.field is field and batch.width == field.element_bytes for batch in batches)


def test_answers_for_another_modulus_are_refused(tmp_path: Path) -> None:
    document = msgpack.unpackb((FOLDER / "field_p256_fp.msgpack").read_bytes())
    document["batches"][0]["field"] = "secp256k1_fp"
    path = tmp_path / "wrong.msgpack"
    path.write_bytes(msgpack.packb(document))
    with pytest.raises(ValueError, match="no registered field"):
        list(read_file(path))
    path.write_bytes(msgpack.packb({"schema": 99}))
    with pytest.raises(ValueError, match="schema"):
        list(read_file(path))


def test_a_wrong_collected_answer_stops_the_build() -> None:
    assert agreed("mod-mul", 7, [[3], [5]], [1]) == [1]
    with pytest.raises(Disagreement, match=re.escape("mod-mul(0x3, 0x5) mod 0x7")):
        agreed("mod-mul", 7, [[3], [5]], [2])
    residues = Residues(17, None, 1)
    assert agreed_whole("ntt", residues, [[3, 5]], [8, 15]) == [8, 15]
    with pytest.raises(Disagreement, match="ntt mod 0x11"):
        agreed_whole("ntt", residues, [[3, 5]], [8, 2])


def test_moduli_span_every_limb_boundary() -> None:
    lengths = {modulus.bit_length() for _, modulus in chosen_moduli()}
    assert {bits + step for bits in range(32, 256, 32) for step in (-1, 0, 1)} <= lengths


def test_the_demo_covers_every_op_and_its_sample_is_right() -> None:
    batches = demo_batches()
    assert {batch.op for batch in batches} == {op.name for op in OPS}
    for batch in batches:
        if batch.curve:
            result = from_ints(batch.sample).tobytes()
            assert batch.check(result) and not batch.check(bytes(len(result)))
            continue
        few = SAMPLE if batch.param == 0 else 1 << batch.param
        columns = [to_ints(array[:few]) for array in batch.operands.values()]
        assert list(batch.sample) == by_python(batch.op, Residues(batch.modulus, None, batch.param), columns)[:SAMPLE]
        assert not batch.check(bytes(32 * batch.n))


def test_the_demos_digest_is_of_the_answers() -> None:
    batch = min(demo_batches(), key=lambda each: each.n)
    columns = [to_ints(array) for array in batch.operands.values()]
    limbs = op_by_name(batch.op).result_bytes(batch.call) // batch.results // 4
    results = from_ints(by_python(batch.op, Residues(batch.modulus, None, batch.param), columns), limbs).tobytes()
    assert batch.check(results)
    assert not batch.check(results[:-1] + b"\xff")
