"""The registered curves: y^2 = x^3 + b over a prime field (G1) and over its quadratic extension (G2), each value with its
source, and the look-up by id and by name.

A coordinate is a tuple of integers: (x,) in G1, (c0, c1) for c0 + c1 u in G2, where u^2 = -1. An id is the wire's and is
never reused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from limbd.ops.params import fields
from limbd.ops.params.base import Field
from limbd.ops.params.endomorphism import Endomorphism

Coordinate = tuple[int, ...]
Affine = tuple[Coordinate, Coordinate]

# Version 1 of the wire names a curve by the low byte of its id.
TOY_IDS = range(0x7F81, 0x8000)

GroupName = Literal["g1", "g2"]


@dataclass(frozen=True)
class Group:
    """A curve's points over one field, and in them the subgroup of the curve's order r.

    degree: integers in a coordinate. b: of y^2 = x^3 + b. generator: of the subgroup. cofactor: points of the curve over
    r; odd, so that no point has order 2 and complete formulas are complete. endomorphism: of a curve whose cofactor is 1: on
    points outside of the subgroup it is no multiplication.
    """

    degree: int
    b: Coordinate
    generator: Affine
    cofactor: int
    endomorphism: Endomorphism | None = None


@dataclass(frozen=True)
class Curve:
    """base: the field of G1's coordinates. scalar: the field of integers modulo the order r of both groups.

    Nothing is checked here, so that a test can hold a wrong curve; limbd.ops.params.check_curve does it.
    """

    id: int
    name: str
    base: Field
    scalar: Field
    g1: Group
    g2: Group | None
    source: str
    toy: bool = False

    @property
    def order(self) -> int:
        """r."""
        return self.scalar.modulus

    def group(self, name: GroupName) -> Group | None:
        """None where the curve has no G2."""
        return self.g1 if name == "g1" else self.g2

    def point_bytes(self, group: Group) -> int:
        """Bytes of an affine point on the wire."""
        return 2 * group.degree * self.base.element_bytes

    def point_limbs(self, group: Group) -> int:
        """Limbs of an affine point in Montgomery form."""
        return 2 * group.degree * self.base.montgomery_limbs


def over_nine_plus_u(value: int, modulus: int) -> Coordinate:
    """value / (9 + u) = value (9 - u) / 82."""
    scale = value * pow(82, -1, modulus)
    return 9 * scale % modulus, -scale % modulus


def _field(name: str) -> Field:
    field = fields.by_name(name)
    assert field is not None, name
    return field


_BN254_P = _field("bn254_fp").modulus
_BN254_R = _field("bn254_fr").modulus
# The parameter x of the BLS12 family.
_BLS_X = -0xD201000000010000

CURVES: tuple[Curve, ...] = (
    Curve(
        0x0001,
        "bn254",
        _field("bn254_fp"),
        _field("bn254_fr"),
        Group(
            1,
            (3,),
            ((1,), (2,)),
            1,
            Endomorphism(
                0x59E26BCEA0D48BACD4F263F1ACDB5C4F5763473177FFFFFE,
                0xB3C4D79D41A917585BFC41088D8DAAA78B17EA66B99C90DD,
            ),
        ),
        Group(
            2,
            over_nine_plus_u(3, _BN254_P),
            (
                (
                    0x1800DEEF121F1E76426A00665E5C4479674322D4F75EDADD46DEBD5CD992F6ED,
                    0x198E9393920D483A7260BFB731FB5D25F1AA493335A9E71297E485B7AEF312C2,
                ),
                (
                    0x12C85EA5DB8C6DEB4AAB71808DCB408FE3D1E7690C43D37B4CE6CC0166FA7DAA,
                    0x090689D0585FF075EC9E99AD690C3395BC4B313370B38EF355ACDADCD122975B,
                ),
            ),
            2 * _BN254_P - _BN254_R,
        ),
        "EIP-196 (G1), EIP-197 (G2: y^2 = x^3 + 3/(9+u), P2)",
    ),
    Curve(
        0x0002,
        "bls12_381",
        _field("bls12_381_fp"),
        _field("bls12_381_fr"),
        Group(
            1,
            (4,),
            (
                (0x17F1D3A73197D7942695638C4FA9AC0FC3688C4F9774B905A14E3A3F171BAC586C55E83FF97A1AEFFB3AF00ADB22C6BB,),
                (0x08B3F481E3AAA0F1A09E30ED741D8AE4FCF5E095D5D00AF600DB18CB2C04B3EDD03CC744A2888AE40CAA232946C5E7E1,),
            ),
            (_BLS_X - 1) ** 2 // 3,
        ),
        Group(
            2,
            (4, 4),
            (
                (
                    0x024AA2B2F08F0A91260805272DC51051C6E47AD4FA403B02B4510B647AE3D1770BAC0326A805BBEFD48056C8C121BDB8,
                    0x13E02B6052719F607DACD3A088274F65596BD0D09920B61AB5DA61BBDC7F5049334CF11213945D57E5AC7D055D042B7E,
                ),
                (
                    0x0CE5D527727D6E118CC9CDC6DA2E351AADFD9BAA8CBDD3A76D429A695160D12C923AC9CC3BACA289E193548608B82801,
                    0x0606C4A02EA734CC32ACD2B02BC28B99CB3E287E85A763AF267492AB572E99AB3F370D275CEC1DA1AAA9075FF05F79BE,
                ),
            ),
            (
                _BLS_X**8
                - 4 * _BLS_X**7
                + 5 * _BLS_X**6
                - 4 * _BLS_X**4
                + 6 * _BLS_X**3
                - 4 * _BLS_X**2
                - 4 * _BLS_X
                + 13
            )
            // 9,
        ),
        "draft-irtf-cfrg-pairing-friendly-curves-11, section 4.2.1; cofactors as polynomials of the parameter",
    ),
    Curve(
        0x0003,
        "secp256k1",
        _field("secp256k1_fp"),
        _field("secp256k1_fr"),
        Group(
            1,
            (7,),
            (
                (0x79BE667EF9DCBBAC55A06295CE870B07029BFCDB2DCE28D959F2815B16F81798,),
                (0x483ADA7726A3C4655DA4FBFC0E1108A8FD17B448A68554199C47D08FFB10D4B8,),
            ),
            1,
            Endomorphism(
                0x7AE96A2B657C07106E64479EAC3434E99CF0497512F58995C1396C28719501EE,
                0x5363AD4CC05C30E0A5261C028812645A122E22EA20816678DF02967C1B23BD72,
            ),
        ),
        None,
        "SEC 2 version 2.0, section 2.4.1",
    ),
    Curve(
        0x7F81,
        "toy_7_13",
        _field("toy_7"),
        _field("toy_13"),
        Group(1, (3,), ((1,), (2,)), 1, Endomorphism(2, 3)),
        Group(2, (1, 1), ((1, 6), (1, 3)), 3),
        "y^2 = x^3 + 3 over F_7 has 13 points; y^2 = x^3 + 1 + u over F_49 has 39, of which 13 are the subgroup",
        toy=True,
    ),
)

_BY_ID = {curve.id: curve for curve in CURVES}
_BY_NAME = {curve.name: curve for curve in CURVES}
_BY_LOW_BYTE = {curve.id & 0xFF: curve for curve in CURVES}


def by_id(number: int) -> Curve | None:
    """The curve with this id, or None. Toys are found too: who serves them is the server's choice."""
    return _BY_ID.get(number)


def by_low_byte(number: int) -> Curve | None:
    """The curve that version 1 of the wire names, or None."""
    return _BY_LOW_BYTE.get(number)


def by_name(name: str) -> Curve | None:
    """The curve with this name, or None. Case does not matter, and `-` reads as `_`."""
    return _BY_NAME.get(str(name).strip().lower().replace("-", "_"))
