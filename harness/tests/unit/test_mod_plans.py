"""Which kernel a modulus gets, with which constants: the launches of mod-mul, mod-add, mod-sub and mod-exp."""

from __future__ import annotations

import pytest

from limbd.ops import by_id, by_name
from limbd.ops.base import Call, Launch, Traits
from limbd.ops.constants import barrett, barrett_any, limbs_of_modulus, montgomery, reciprocal
from limbd.ops.params.base import Field
from limbd.ops.params.fields import by_name as field
from limbd.ops.status import RequestError, Status
from limbd.ops.tuning import TABLE, tuning

DEVICE = Traits("cuda", "sm_90", 132, 1 << 34, whole=True)
SECP256K1 = 2**256 - 2**32 - 977
OPERANDS = 2


def launch(op: str, modulus: int, n: int = 1, params: Field | None = None) -> Launch:
    width = 32 if params is None else params.element_bytes
    payload = (b"" if params else modulus.to_bytes(width, "little")) + bytes(OPERANDS * n * width)
    request = by_name(op).decode(Call(n, field=params), memoryview(payload))
    (piece,) = by_name(op).plan(request, DEVICE).pieces
    (only,) = piece.launches
    return only


@pytest.mark.parametrize(
    ("modulus", "kernel", "limbs"),
    [
        (1, "mod_mul", 1),
        (2**31, "mod_mul_full", 1),
        (2**32, "mod_mul", 2),
        (2**224, "mod_mul", 8),
        (2**255 - 1, "mod_mul", 8),
        (2**255, "mod_mul_full", 8),
        (2**256 - 2**64, "mod_mul_full", 8),
        (2**256 - 2**64 + 1, "mod_mul_fold", None),
        (SECP256K1, "mod_mul_fold", None),
        (2**256 - 1, "mod_mul_fold", None),
    ],
)
def test_mod_mul_has_a_unit_for_each_number_of_limbs(modulus: int, kernel: str, limbs: int | None) -> None:
    chosen = launch("mod-mul", modulus).kernel
    assert chosen.name == kernel
    assert dict(chosen.unit.constants).get("LIMBS") == limbs


@pytest.mark.parametrize("monic", [2**32, 2**32 + 977, 3 * 2**31 - 1])
@pytest.mark.parametrize("other", [1, 2**32 - 1, 3 * 2**31, 2**33 + 977, 2**64 - 1])
def test_a_monic_complement_has_a_unit_of_its_own(monic: int, other: int) -> None:
    for complement, form in ((monic, 1), (other, 0)):
        chosen = launch("mod-mul", 2**256 - complement)
        assert dict(chosen.kernel.unit.constants) == {"MONIC": form}
        assert chosen.values["complement"] == complement
        assert chosen.kernel.unit in by_name("mod-mul").units(DEVICE)


@pytest.mark.parametrize(
    ("modulus", "kernel", "limbs"),
    [
        (1, "mod_exp", 2),
        (2**64 + 1, "mod_exp", 4),
        (SECP256K1, "mod_exp", 8),
        (2, "mod_exp_even", 1),
        (2**64, "mod_exp_even", 3),
        (2**255, "mod_exp_even_full", 8),
    ],
)
def test_mod_exp_is_montgomery_for_odd_moduli_and_barrett_for_even_ones(modulus: int, kernel: str, limbs: int) -> None:
    chosen = launch("mod-exp", modulus).kernel
    assert chosen.name == kernel
    assert dict(chosen.unit.constants)["LIMBS"] == limbs


@pytest.mark.parametrize("op", ["mod-add", "mod-sub"])
def test_one_unit_serves_every_modulus(op: str) -> None:
    units = {launch(op, modulus).kernel.unit for modulus in (1, 2**40, SECP256K1, 2**256 - 1)}
    assert len(units) == 1


@pytest.mark.parametrize("op", ["mod-mul", "mod-add", "mod-sub", "mod-exp"])
def test_a_field_above_256_bits_has_elements_of_twelve_limbs(op: str) -> None:
    wide = field("bls12_381_fp")
    assert wide is not None
    chosen = launch(op, wide.modulus, params=wide).kernel
    assert dict(chosen.unit.constants)["LIMBS"] == 12
    assert launch(op, SECP256K1, params=field("secp256k1_fp")).kernel == launch(op, SECP256K1).kernel


@pytest.mark.parametrize("op", ["mod-mul", "mod-add", "mod-sub", "mod-exp"])
@pytest.mark.parametrize("n", [1, 63, 64, 65, 1000, 100_000])
def test_the_grid_covers_the_batch_and_no_block_is_empty(op: str, n: int) -> None:
    made = launch(op, SECP256K1, n)
    assert made.values["n"] == n
    assert (made.grid - 1) * made.block < n <= made.grid * made.block


@pytest.mark.parametrize("modulus", [1, 2, 3, 2**31, 2**32 - 1, 2**32, 2**224 + 1, 2**255, 2**255 - 19, 2**256 - 1])
def test_constants_satisfy_their_definitions_and_fit_their_limbs(modulus: int) -> None:
    limbs = limbs_of_modulus(modulus)
    base = 1 << 32 * limbs
    values = barrett(modulus, limbs)
    shifted = modulus << values["shift"]
    assert base // 2 <= shifted < base
    assert (values["negated"] + modulus) == base << 32
    v = values["reciprocal"] + base
    assert 0 <= values["reciprocal"] < base
    assert v * shifted < base * base <= (v + 1) * shifted
    anyway = barrett_any(modulus, 8)
    assert 2**255 <= anyway["normalised"] < 2**256
    assert anyway["normalised"] == modulus << anyway["shift"]
    assert anyway["reciprocal"] == reciprocal(anyway["normalised"], 256)
    if modulus % 2:
        form = montgomery(modulus, 8)
        assert (form["n0inv"] * modulus + 1) % 2**32 == 0
        assert form["one"] == 2**256 % modulus
        assert form["r2"] == 2**512 % modulus


def test_a_modulus_with_another_number_of_limbs_is_refused() -> None:
    with pytest.raises(ValueError, match="does not have 2 limbs"):
        barrett(2**31, 2)


def test_tuning_rows_name_their_source_and_the_most_exact_one_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    assert all(row.source for row in TABLE.values())
    exact = TABLE[("mod-mul", "*", "sm_90")].__class__(128, "a test")
    monkeypatch.setitem(TABLE, ("mod-mul", 8, "sm_90"), exact)
    assert tuning("mod-mul", 8, "cuda", "sm_90") is exact
    assert tuning("mod-mul", 7, "cuda", "sm_90") is TABLE[("mod-mul", "*", "sm_90")]
    with pytest.raises(KeyError):
        tuning("no-such-op", 8, "cuda", "sm_90")


def test_ops_are_found_by_number_and_by_name() -> None:
    assert [by_id(i).name for i in range(1, 6)] == ["mod-mul", "mod-add", "mod-sub", "mod-exp", "mod-inv"]
    with pytest.raises(RequestError) as caught:
        by_id(0x99)
    assert caught.value.status is Status.UNKNOWN_OP
    with pytest.raises(RequestError) as caught:
        by_name("mod-pow")
    assert caught.value.status is Status.UNKNOWN_OP
