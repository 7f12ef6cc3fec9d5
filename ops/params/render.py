"""A field as C++ text: params.cuh, in which every derived constant proves itself when it is compiled.

The text is a struct of constants, params::<field name>, meant as a template argument of a compile-time modulus:

    N            limbs, an even number        BITS         bits of the modulus
    MODULUS[N]   p                            N0INV        -p^-1 mod 2^32
    R[N]         2^(32N) mod p                R2[N]        R^2 mod p
    TWO_ADICITY  the largest k with 2^k | p - 1

and, for a field with a registered generator, GENERATOR[N] (plain) and ROOT[N] = GENERATOR^((p - 1) / 2^TWO_ADICITY) in
Montgomery form. Limbs are little-endian.
"""

from __future__ import annotations

from collections.abc import Iterator

from limbd.ops.params.base import Field
from limbd.ops.params.layout import limbs_of

NAMESPACE = "params"


def struct_name(field: Field) -> str:
    """The C++ name of the field's constants, to be used as a template argument."""
    return f"{NAMESPACE}::{field.name}"


def render(field: Field) -> str:
    """The text of params.cuh for one field. It includes field/proof.cuh and stands alone otherwise."""
    body = "\n".join(f"    {line}" for line in _constants(field))
    proofs = "\n".join(f'static_assert({proof}, "{field.name}: {what}");' for what, proof in _proofs(field))
    # The source is free text: on one line, and not ending in the backslash that would join the next one.
    source = " ".join(field.source.split()).rstrip("\\")
    return (
        f"// {field.name}: {source}\n"
        f'#include "field/proof.cuh"\n'
        f"namespace {NAMESPACE} {{\n"
        f"struct {field.name} {{\n{body}\n}};\n"
        f"{proofs}\n"
        f"}}  // namespace {NAMESPACE}\n"
    )


def _constants(field: Field) -> Iterator[str]:
    yield f"static constexpr int N = {field.montgomery_limbs};"
    yield f"static constexpr int BITS = {field.bits};"
    yield f"static constexpr int TWO_ADICITY = {field.two_adicity};"
    yield f"static constexpr uint32_t N0INV = {field.n0inv:#010x}u;"
    yield _array("MODULUS", field, field.modulus)
    yield _array("R", field, field.r)
    yield _array("R2", field, field.r2)
    if field.generator is not None:
        yield _array("GENERATOR", field, field.generator)
        yield _array("ROOT", field, field.montgomery(field.omega(field.two_adicity)))


def _array(name: str, field: Field, value: int) -> str:
    limbs = ", ".join(f"{limb:#010x}u" for limb in limbs_of(value, field.montgomery_limbs))
    return f"static constexpr uint32_t {name}[N] = {{{limbs}}};"


def _proofs(field: Field) -> Iterator[tuple[str, str]]:
    """What is wrong where the proof fails, and the constant expression that holds."""

    def call(function: str, *constants: str) -> str:
        return f"proof::{function}({', '.join(f'{field.name}::{name}' for name in constants)})"

    yield "MODULUS or BITS", call("is_modulus", "MODULUS", "BITS")
    yield "TWO_ADICITY", call("is_two_adicity", "MODULUS", "TWO_ADICITY")
    yield "N0INV", call("is_n0inv", "MODULUS", "N0INV")
    yield "R", call("is_r", "MODULUS", "R")
    yield "R2", call("is_r2", "MODULUS", "R", "R2", "N0INV")
    if field.generator is not None:
        yield "ROOT", call("is_root", "MODULUS", "R", "R2", "N0INV", "GENERATOR", "ROOT", "TWO_ADICITY")
