"""The formats of points as data: where the bytes of a coordinate stand, and what the bits beside them say.

    wire                  limbd's own: plain little-endian integers x, y, in g2 each c0, c1; infinity is all zeros
    montgomery            the same with each integer times R = 2^(8 bytes) modulo p: memory of gnark and blst, the points of
                          snarkjs's .zkey and .ptau files (64-bit limbs, little-endian)
    json                  [[x, y], ..], in g2 [[[c0, c1], [c0, c1]], ..], null for infinity; read from numbers and from strings
                          of decimal or 0x-hexadecimal digits, written as 0x-hexadecimal
    eip196                bn254 g1, 64 bytes (EIP-196)
    eip197                bn254 g2, 128 bytes, c1 before c0 (EIP-197)
    eip2537               bls12_381, each integer padded to 64 bytes, c0 before c1 (EIP-2537)
    zcash, -compressed    bls12_381 (draft-irtf-cfrg-pairing-friendly-curves-11, appendix C): big-endian, c1 before c0, three flags
    arkworks, -compressed bn254: little-endian, two flags (ark-ec 0.4, SWFlags); bls12_381: as zcash (ark-bls12-381,
                          curves/util.rs)
    gnark, -compressed    bn254: big-endian, c1 before c0, two flags (gnark-crypto, ecc/bn254/marshal.go), without compression as
                          eip196 and eip197; bls12_381: as zcash
    sec1, -compressed     secp256k1 (SEC 1 version 2.0, sections 2.3.3 and 2.3.4): big-endian behind a prefix, see sec1.py

Of -y and y the larger is the one whose c1, or c0 where c1 is 0, is above (p - 1) / 2.
"""

from __future__ import annotations

from dataclasses import dataclass

from limbd.ops.params.curves import Curve, Group, GroupName

JSON = "json"


@dataclass(frozen=True)
class Flags:
    """Values of a point's highest bits. smaller, larger: which of y and -y it is; equal where the format does not say."""

    mask: int
    smaller: int
    larger: int
    infinity: int

    @property
    def tell_sign(self) -> bool:
        return self.smaller != self.larger


@dataclass(frozen=True)
class Layout:
    """big_endian: its flags stand in the first byte, otherwise in the last. padding: zero bytes above each integer. Without
    flags infinity is all zeros."""

    big_endian: bool = False
    imaginary_first: bool = False
    compressed: bool = False
    montgomery: bool = False
    padding: int = 0
    flags: Flags | None = None

    @property
    def coordinates(self) -> int:
        return 1 if self.compressed else 2

    @property
    def flag_byte(self) -> int:
        return 0 if self.big_endian else -1

    def integer_bytes(self, curve: Curve) -> int:
        return curve.base.element_bytes + self.padding

    def point_bytes(self, curve: Curve, group: Group) -> int:
        return self.coordinates * group.degree * self.integer_bytes(curve)


@dataclass(frozen=True)
class Sec1:
    """What sec1.py reads and writes."""

    compressed: bool = False

    @property
    def coordinates(self) -> int:
        return 1 if self.compressed else 2

    def point_bytes(self, curve: Curve) -> int:
        """Of a point that is not infinity, whose only byte is its prefix."""
        return 1 + self.coordinates * curve.base.element_bytes


Groups = dict[tuple[str, GroupName], Layout]


def _both(curve: str, layout: Layout) -> Groups:
    return {(curve, "g1"): layout, (curve, "g2"): layout}


_EVM = Layout(big_endian=True, imaginary_first=True)
_ZCASH = Layout(big_endian=True, imaginary_first=True, flags=Flags(0xE0, smaller=0x00, larger=0x00, infinity=0x40))
_ZCASH_COMPRESSED = Layout(
    big_endian=True, imaginary_first=True, compressed=True, flags=Flags(0xE0, smaller=0x80, larger=0xA0, infinity=0xC0)
)
_ARKWORKS_FLAGS = Flags(0xC0, smaller=0x00, larger=0x80, infinity=0x40)
_GNARK_COMPRESSED = Layout(
    big_endian=True, imaginary_first=True, compressed=True, flags=Flags(0xC0, smaller=0x80, larger=0xC0, infinity=0x40)
)

EVERY_CURVE = {"wire": Layout(), "montgomery": Layout(montgomery=True)}
SOME_CURVES: dict[str, Groups | dict[tuple[str, GroupName], Sec1]] = {
    "eip196": {("bn254", "g1"): _EVM},
    "eip197": {("bn254", "g2"): _EVM},
    "eip2537": _both("bls12_381", Layout(big_endian=True, padding=16)),
    "zcash": _both("bls12_381", _ZCASH),
    "zcash-compressed": _both("bls12_381", _ZCASH_COMPRESSED),
    "arkworks": _both("bn254", Layout(flags=_ARKWORKS_FLAGS)) | _both("bls12_381", _ZCASH),
    "arkworks-compressed": _both("bn254", Layout(compressed=True, flags=_ARKWORKS_FLAGS))
    | _both("bls12_381", _ZCASH_COMPRESSED),
    "gnark": _both("bn254", _EVM) | _both("bls12_381", _ZCASH),
    "gnark-compressed": _both("bn254", _GNARK_COMPRESSED) | _both("bls12_381", _ZCASH_COMPRESSED),
    "sec1": {("secp256k1", "g1"): Sec1()},
    "sec1-compressed": {("secp256k1", "g1"): Sec1(compressed=True)},
}
POINT_FORMATS = (*EVERY_CURVE, JSON, *SOME_CURVES)


def names_for(curve: Curve, group: GroupName) -> tuple[str, ...]:
    return tuple(name for name in POINT_FORMATS if (curve.name, group) in SOME_CURVES.get(name, {(curve.name, group)}))


def layout_of(form: str, curve: Curve, group: GroupName) -> Layout | Sec1:
    """Raises ValueError where this group has no such binary format."""
    layout = EVERY_CURVE.get(form) or SOME_CURVES.get(form, {}).get((curve.name, group))
    if layout is None:
        known = ", ".join(names_for(curve, group))
        raise ValueError(f"points of {curve.name} {group} have no format {form!r}; there are {known}")
    return layout
