"""The numbers that the kernels of limbd.kernels need beside a modulus; each function names the kernels' contract."""

from __future__ import annotations

LIMB_BITS = 32


def limbs_of_modulus(modulus: int) -> int:
    """32-bit limbs of the modulus, its top limb not 0; 1 for the modulus 1."""
    return -(-modulus.bit_length() // LIMB_BITS)


def barrett(modulus: int, limbs: int) -> dict[str, int]:
    """Members of a parameter struct for kernels/field/barrett.cuh: modulus, negated, reciprocal, shift.

    limbs: exactly those of the modulus. negated has one limb more than the rest.
    """
    width = LIMB_BITS * limbs
    shift = width - modulus.bit_length()
    if not 0 <= shift < LIMB_BITS:
        raise ValueError(f"a modulus of {modulus.bit_length()} bits does not have {limbs} limbs")
    return {
        "modulus": modulus,
        "negated": (1 << (width + LIMB_BITS)) - modulus,
        "reciprocal": reciprocal(modulus << shift, width),
        "shift": shift,
    }


def barrett_any(modulus: int, limbs: int) -> dict[str, int]:
    """Members for barrett.cuh's reduce_any: modulus, normalised, reciprocal, shift, for any modulus of up to `limbs`."""
    width = LIMB_BITS * limbs
    shift = width - modulus.bit_length()
    normalised = modulus << shift
    return {
        "modulus": modulus,
        "normalised": normalised,
        "reciprocal": reciprocal(normalised, width),
        "shift": shift,
    }


def reciprocal(normalised: int, width: int) -> int:
    """floor((2^(2 width) - 1) / M) - 2^width for 2^(width-1) <= M < 2^width; below 2^width."""
    return ((1 << 2 * width) - 1) // normalised - (1 << width)


def montgomery(modulus: int, limbs: int) -> dict[str, int]:
    """Members for kernels/field/mont.cuh, R = 2^(32 limbs): modulus, r2 = R^2 mod m, one = R mod m, n0inv = -m^-1 mod 2^32.

    The modulus is odd.
    """
    one = (1 << LIMB_BITS * limbs) % modulus
    return {
        "modulus": modulus,
        "r2": one * one % modulus,
        "one": one,
        "n0inv": -pow(modulus, -1, 1 << LIMB_BITS) % (1 << LIMB_BITS),
    }
