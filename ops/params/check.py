"""Whether a field's chosen values are what they claim to be."""

from __future__ import annotations

import re

import gmpy2

from limbd.ops.params.base import MAX_FIELD_BITS, Field

NAME = re.compile(r"[a-z][a-z0-9_]*")


def check_field(field: Field) -> None:
    """Raises ValueError that names the first wrong value: id, name (it becomes a C++ struct), modulus, generator."""
    if not 0 < field.id < 2**16:
        raise ValueError(f"{field.name}: id {field.id:#x} is not in 1..0xFFFF")
    if not NAME.fullmatch(field.name):
        raise ValueError(f"field name {field.name!r} is not lower case letters, digits and _, a letter first")
    if field.modulus < 3 or field.modulus.bit_length() > MAX_FIELD_BITS:
        raise ValueError(f"{field.name}: the modulus is not in 3..2^{MAX_FIELD_BITS} - 1")
    if not gmpy2.is_prime(field.modulus, 40):
        raise ValueError(f"{field.name}: the modulus is not an odd prime")
    if not field.source:
        raise ValueError(f"{field.name}: say where its values come from")
    if field.generator is not None:
        _check_generator(field, field.generator)


def _check_generator(field: Field, generator: int) -> None:
    """A generator's odd part is irrelevant here: it has to generate the two-adic part, so it must be a non-residue."""
    if not 1 < generator < field.modulus:
        raise ValueError(f"{field.name}: the generator is not in 2..modulus - 1")
    if pow(generator, (field.modulus - 1) // 2, field.modulus) != field.modulus - 1:
        raise ValueError(f"{field.name}: {generator} is a square, so it does not generate the two-adic part")
