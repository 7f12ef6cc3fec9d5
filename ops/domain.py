"""Where transforms live: the fields that have them, roots of unity, and what a caller's own domain has to be."""

from __future__ import annotations

from limbd.ops.params.base import Field
from limbd.ops.params.fields import registered
from limbd.ops.status import RequestError, Status

# Elements in device memory, and on the wire: fields of up to 256 bits (kernels/algo/ntt.cuh: WORDS).
ELEMENT_BYTES = 32

# No registered field is larger; digits, and the columns of one transform, have 32 bits.
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
        hint="`limbd info` lists the fields; one with a generator is needed",
    )


def transforms(field: Field) -> bool:
    """Whether transforms can be asked in this field."""
    return field.generator is not None and field.element_bytes == ELEMENT_BYTES


def default_omega(op: str, field: Field, k: int) -> int:
    """Raises RequestError(BAD_DOMAIN) above the two-adicity."""
    if k > min(field.two_adicity, MAX_LOG_N):
        raise RequestError(
            Status.BAD_DOMAIN,
            f"{op}: {field.name} has no root of unity of order 2^{k}: 2^{field.two_adicity} is the most",
        )
    return field.omega(k)


def check_own(op: str, field: Field, k: int, omega: int, shift: int) -> None:
    """Of a domain that the caller gives: range first, then the order of omega."""
    if omega >= field.modulus or not 0 < shift < field.modulus:
        raise RequestError(Status.BAD_ELEMENT, f"{op}: omega has to be below m, and shift in 1..m-1")
    if k > min(field.two_adicity, MAX_LOG_N) or not has_order(omega, k, field.modulus):
        raise RequestError(Status.BAD_DOMAIN, f"{op}: omega does not have the order 2^{k} exactly")


def has_order(omega: int, k: int, modulus: int) -> bool:
    """Whether 2^k is the least power that makes omega 1; k = 0: omega is 1. The modulus is prime."""
    return omega == 1 if k == 0 else pow(omega, 1 << (k - 1), modulus) == modulus - 1
