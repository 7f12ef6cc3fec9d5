"""A field as C++ text: params.cuh, in which every derived constant proves itself when it is compiled.

The text is a struct of constants, params::<field name>, meant as a template argument of a compile-time modulus:

    N            limbs, an even number        BITS         bits of the modulus
    MODULUS[N]   p                            N0INV        -p^-1 mod 2^32
    R[N]         2^(32N) mod p                R2[N]        R^2 mod p
    TWO_ADICITY  the largest k with 2^k | p - 1

and, for a field with a registered generator, GENERATOR[N] (plain) and ROOT[N] = GENERATOR^((p - 1) / 2^TWO_ADICITY) in
Montgomery form. Limbs are little-endian.

A group of a curve is a struct params::<curve>_g1 or _g2 in the same way, beside that of its base field:

    Base         the base field's struct      DEGREE       1, or 2 for its extension by u^2 = -1
    LIMBS        limbs of a coordinate        B[LIMBS]     of y^2 = x^3 + b, in Montgomery form
    B3[LIMBS]    3 b, in Montgomery form      B3_TIMES     k where 3 b = k or k (1 + u) for a small k, else 0
    GENERATOR_X[LIMBS], GENERATOR_Y[LIMBS]    in Montgomery form
    ORDER_LIMBS, ORDER_BITS, ORDER[ORDER_LIMBS]
                 r, plain                     COFACTOR_ONE whether the curve has no points outside the subgroup
"""

from __future__ import annotations

from collections.abc import Iterator

from limbd.ops.params.base import Field
from limbd.ops.params.coordinates import Coordinate, scale
from limbd.ops.params.curves import Curve, Group, GroupName
from limbd.ops.params.layout import limbs_of

NAMESPACE = "params"

# The largest k for which 3 b = k or k (1 + u) is taken as additions.
MAX_B3_TIMES = 63


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
    return f"static constexpr uint32_t {name}[N] = {{{_words(limbs_of(value, field.montgomery_limbs))}}};"


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


# --- curves ---------------------------------------------------------------------------------------------------------


def group_struct_name(curve: Curve, name: GroupName) -> str:
    """The C++ name of a group's constants, to be used as a template argument."""
    return f"{NAMESPACE}::{curve.name}_{name}"


def render_group(curve: Curve, name: GroupName) -> str:
    """The text for one group of a curve, its base field's included. Raises ValueError where the curve has no such group."""
    group = curve.group(name)
    if group is None:
        raise ValueError(f"{curve.name} has no {name}")
    struct = f"{curve.name}_{name}"
    body = "\n".join(f"    {line}" for line in _group_constants(curve, group))
    proofs = "\n".join(
        f'static_assert({proof}, "{struct}: {what}");' for what, proof in _group_proofs(curve, group, struct)
    )
    return (
        render(curve.base) + f"// {struct}: {' '.join(curve.source.split())}\n"
        f"namespace {NAMESPACE} {{\n"
        f"struct {struct} {{\n{body}\n}};\n"
        f"{proofs}\n"
        f"}}  // namespace {NAMESPACE}\n"
    )


def _group_constants(curve: Curve, group: Group) -> Iterator[str]:
    order_limbs = curve.scalar.limbs
    yield f"using Base = {curve.base.name};"
    yield f"static constexpr int DEGREE = {group.degree};"
    yield f"static constexpr int LIMBS = {group.degree * curve.base.montgomery_limbs};"
    x, y = group.generator
    b3 = scale(group.b, 3, curve.base.modulus)
    endomorphism = group.endomorphism
    beta = (endomorphism.beta if endomorphism else 0, *(0,) * (group.degree - 1))
    yield f"static constexpr bool ENDOMORPHISM = {str(endomorphism is not None).lower()};"
    for label, coordinate in (("B", group.b), ("BETA", beta), ("B3", b3), ("GENERATOR_X", x), ("GENERATOR_Y", y)):
        yield f"static constexpr uint32_t {label}[LIMBS] = {{{_coordinate(curve, coordinate)}}};"
    yield f"static constexpr int B3_TIMES = {_b3_times(b3)};"
    yield f"static constexpr int ORDER_LIMBS = {order_limbs};"
    yield f"static constexpr int ORDER_BITS = {curve.scalar.bits};"
    yield f"static constexpr uint32_t ORDER[ORDER_LIMBS] = {{{_words(limbs_of(curve.order, order_limbs))}}};"
    yield f"static constexpr bool COFACTOR_ONE = {str(group.cofactor == 1).lower()};"


def _b3_times(b3: Coordinate) -> int:
    return b3[0] if len(set(b3)) == 1 and b3[0] <= MAX_B3_TIMES else 0


def _coordinate(curve: Curve, coordinate: Coordinate) -> str:
    field = curve.base
    return ", ".join(_words(limbs_of(field.montgomery(value), field.montgomery_limbs)) for value in coordinate)


def _words(limbs: tuple[int, ...]) -> str:
    return ", ".join(f"{limb:#010x}u" for limb in limbs)


def _group_proofs(curve: Curve, group: Group, struct: str) -> Iterator[tuple[str, str]]:
    base = f"{curve.base.name}::MODULUS, {curve.base.name}::N0INV"
    point = f"{struct}::GENERATOR_X, {struct}::GENERATOR_Y, {struct}::B"
    yield "GENERATOR or B", f"proof::is_on_curve<{group.degree}>({base}, {point})"
    yield "B3", f"proof::is_triple<{group.degree}>({curve.base.name}::MODULUS, {struct}::B, {struct}::B3)"
    yield "ORDER or ORDER_BITS", f"proof::is_modulus({struct}::ORDER, {struct}::ORDER_BITS)"
    if _b3_times(scale(group.b, 3, curve.base.modulus)):
        numbers = f"{curve.base.name}::MODULUS, {curve.base.name}::R"
        yield "B3_TIMES", f"proof::is_multiple_of_ones<{group.degree}>({numbers}, {struct}::B3, {struct}::B3_TIMES)"
