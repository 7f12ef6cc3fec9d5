"""Where transforms live: the fields that have them, roots of unity, and what a caller's own domain has to be."""

from __future__ import annotations

from limbd.ops.params.base import Field
from limbd.ops.params.fields import registered
from limbd.ops.status import RequestError, Status

# Elements in device memory, and on the wire: fields of up to 256 bits (kernels/algo/ntt.cuh: WORDS).
ELEMENT_BYTES = 32

# The largest transform: digits, and the columns of one transform, have 32 bits in the kernels.
MAX_LOG_N = 30


def field_of(op: str, modulus: int, *, toys: bool) -> Field:
    """The registered field with this modulus in which transforms can be asked; toys: toy fields too. Raises
    RequestError(BAD_MODULUS)."""
    for field in registered():
        if field.modulus == modulus and transforms(field) and (toys or not field.toy):
            return field
    raise RequestError(
        Status.BAD_MODULUS,
        f"{op}: {modulus:#x} is not the modulus of a field with transforms",
        hint="`limbd info` lists the fields; one with a generator is needed, and toy fields are for workers with --toys",
    )


def transforms(field: Field) -> bool:
    """Whether transforms can be asked in this field."""
    return field.generator is not None and field.element_bytes == ELEMENT_BYTES


def default_omega(op: str, field: Field, k: int) -> int:
    """Raises RequestError(BAD_DOMAIN) above the two-adicity, and above the largest transform."""
    _check_size(op, field, k)
    return field.omega(k)


def _check_size(op: str, field: Field, k: int) -> None:
    if k > field.two_adicity:
        text = f"{field.name} has no root of unity of order 2^{k}: 2^{field.two_adicity} is the most"
    elif k > MAX_LOG_N:
        text = f"transforms of 2^{k} elements are not served: 2^{MAX_LOG_N} is the most"
    else:
        return
    raise RequestError(Status.BAD_DOMAIN, f"{op}: {text}")


def check_own(op: str, field: Field, k: int, omega: int, shift: int) -> None:
    """Of a domain that the caller gives: range first, then the order of omega."""
    if omega >= field.modulus:
        raise RequestError(Status.BAD_ELEMENT, f"{op}: omega has to be below m")
    if not 0 < shift < field.modulus:
        raise RequestError(Status.BAD_ELEMENT, f"{op}: shift has to be in 1..m-1")
    _check_size(op, field, k)
    if not has_order(omega, k, field.modulus):
        raise RequestError(Status.BAD_DOMAIN, f"{op}: omega does not have the order 2^{k} exactly")


def has_order(omega: int, k: int, modulus: int) -> bool:
    """Whether 2^k is the least power that makes omega 1; k = 0: omega is 1. The modulus is prime."""
    return omega == 1 if k == 0 else pow(omega, 1 << (k - 1), modulus) == modulus - 1
