"""The registered fields: their chosen values, each with its source, and the look-up by id and by name.

An id is the wire's and is never reused. A name without `_fp` or `_fr` that names a curve means the curve's BASE field
(the field of its coordinates): secp256k1 -> secp256k1_fp, bn254 -> bn254_fp, and so on; the scalar field has to be
named in full.
"""

from __future__ import annotations

from limbd.ops.params.base import Field
from limbd.ops.params.check import check_field

TOY_IDS = range(0x7F01, 0x7F81)

_SNARK_ROOTS = "default generator as in arkworks-rs/algebra and consensys/gnark-crypto"

FIELDS: tuple[Field, ...] = (
    Field(
        0x0100,
        "bn254_fr",
        0x30644E72E131A029B85045B68181585D2833E84879B9709143E1F593F0000001,
        f"EIP-196 (curve order of alt_bn128); {_SNARK_ROOTS}",
        generator=5,
    ),
    Field(
        0x0101,
        "bn254_fp",
        0x30644E72E131A029B85045B68181585D97816A916871CA8D3C208C16D87CFD47,
        "EIP-196 (field_modulus of alt_bn128)",
    ),
    Field(
        0x0102,
        "bls12_381_fr",
        0x73EDA753299D7D483339D80809A1D80553BDA402FFFE5BFEFFFFFFFF00000001,
        f"draft-irtf-cfrg-pairing-friendly-curves-11, section 4.2.1 (r); {_SNARK_ROOTS}",
        generator=7,
    ),
    Field(
        0x0103,
        "bls12_381_fp",
        0x1A0111EA397FE69A4B1BA7B6434BACD764774B84F38512BF6730D2A0F6B0F6241EABFFFEB153FFFFB9FEFFFFFFFFAAAB,
        "draft-irtf-cfrg-pairing-friendly-curves-11, section 4.2.1 (p)",
    ),
    Field(
        0x0104,
        "secp256k1_fp",
        2**256 - 2**32 - 977,
        "SEC 2 version 2.0, section 2.4.1 (p)",
    ),
    Field(
        0x0105,
        "secp256k1_fr",
        0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141,
        "SEC 2 version 2.0, section 2.4.1 (n)",
    ),
    Field(
        0x0106,
        "p256_fp",
        2**256 - 2**224 + 2**192 + 2**96 - 1,
        "NIST SP 800-186, section 3.2.1.3 (p)",
    ),
    Field(
        0x0107,
        "curve25519_fp",
        2**255 - 19,
        "RFC 7748, section 4.1",
    ),
    Field(
        0x0108,
        "goldilocks",
        2**64 - 2**32 + 1,
        f"Plonky2 (Polygon Zero, 2022), section 'Goldilocks field'; {_SNARK_ROOTS}",
        generator=7,
    ),
    # Toys: one limb, small enough for all inputs, or at an edge of the limb.
    Field(0x7F01, "toy_3", 3, "smallest odd prime", generator=2, toy=True),
    Field(0x7F02, "toy_5", 5, "Fermat prime 2^2 + 1", generator=2, toy=True),
    Field(0x7F03, "toy_7", 7, "7 = 3 mod 4: two-adicity 1", toy=True),
    Field(0x7F04, "toy_13", 13, "13 = 3 * 2^2 + 1", generator=2, toy=True),
    Field(0x7F05, "toy_17", 17, "Fermat prime 2^4 + 1", generator=3, toy=True),
    Field(0x7F06, "toy_97", 97, "97 = 3 * 2^5 + 1", generator=5, toy=True),
    Field(0x7F07, "toy_257", 257, "Fermat prime 2^8 + 1", generator=3, toy=True),
    Field(0x7F08, "toy_12289", 12289, "12289 = 3 * 2^12 + 1", generator=11, toy=True),
    Field(0x7F09, "toy_65537", 65537, "Fermat prime 2^16 + 1", generator=3, toy=True),
    Field(0x7F0A, "toy_15x2_27_1", 15 * 2**27 + 1, "BabyBear, 31 bits: 15 * 2^27 + 1", generator=31, toy=True),
    Field(0x7F0B, "toy_3x2_30_1", 3 * 2**30 + 1, "32 bits, top bit set: 3 * 2^30 + 1", generator=5, toy=True),
    Field(0x7F0C, "toy_2_32_5", 2**32 - 5, "the largest prime of one limb", toy=True),
)

ALIASES: dict[str, str] = {
    "bn254": "bn254_fp",
    "bls12_381": "bls12_381_fp",
    "secp256k1": "secp256k1_fp",
    "p256": "p256_fp",
    "curve25519": "curve25519_fp",
}

_by_id: dict[int, Field] = {}
_by_name: dict[str, Field] = {}


def registered() -> tuple[Field, ...]:
    """Every field known to this process: FIELDS, then those that were added by register(), in order."""
    return tuple(_by_id.values())


def by_id(number: int) -> Field | None:
    """The field with this id, or None. Toys are found too: who serves them is the server's choice."""
    return _by_id.get(number)


def by_name(name: str) -> Field | None:
    """The field with this name or alias, or None. Case does not matter, and `-` reads as `_`."""
    key = name.strip().lower().replace("-", "_")
    return _by_name.get(ALIASES.get(key, key))


def by_modulus(modulus: int) -> Field | None:
    """The field with this modulus, or None."""
    return next((field for field in registered() if field.modulus == modulus), None)


def register(field: Field) -> Field:
    """Adds a field that is defined outside this file, and returns it.

    Raises ValueError where its values are wrong (limbd.ops.params.check) or its id or name is taken.
    """
    check_field(field)
    _add(field)
    return field


def unregister(field: Field) -> None:
    """Takes out a field that register() added. Raises ValueError for one of FIELDS, or one that is not registered."""
    if field in FIELDS or _by_id.get(field.id) is not field:
        raise ValueError(f"{field.name} was not added by register()")
    del _by_id[field.id], _by_name[field.name]


def _add(field: Field) -> None:
    if field.id in _by_id:
        raise ValueError(f"field id {field.id:#06x} is {_by_id[field.id].name}'s")
    if field.name in _by_name or field.name in ALIASES:
        raise ValueError(f"there is a field named {field.name} already")
    _by_id[field.id] = field
    _by_name[field.name] = field


for _field in FIELDS:
    _add(_field)
