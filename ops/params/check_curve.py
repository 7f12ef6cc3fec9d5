"""Whether a curve's chosen values are what they claim to be."""

from __future__ import annotations

from limbd.ops.params.check import NAME
from limbd.ops.params.coordinates import on_curve
from limbd.ops.params.curves import Curve, Group
from limbd.ops.params.endomorphism import Endomorphism


def check_curve(curve: Curve) -> None:
    """Raises ValueError that names the first wrong value. That generators have the order r is for tests to see: it takes
    the curve's arithmetic."""
    if not 0 < curve.id < 2**16:
        raise ValueError(f"{curve.name}: id {curve.id:#x} is not in 1..0xFFFF")
    if not NAME.fullmatch(curve.name):
        raise ValueError(f"curve name {curve.name!r} is not lower case letters, digits and _, a letter first")
    if curve.scalar.bits > 256:
        raise ValueError(f"{curve.name}: the order is above 256 bits, which is what a scalar has")
    if not curve.source:
        raise ValueError(f"{curve.name}: say where its values come from")
    _check_group(curve, curve.g1, "G1", 1)
    if curve.g2 is not None:
        if curve.base.modulus % 4 != 3:
            raise ValueError(f"{curve.name}: -1 is a square in the base field, so u^2 = -1 does not extend it")
        _check_group(curve, curve.g2, "G2", 2)


def _check_group(curve: Curve, group: Group, name: str, degree: int) -> None:
    p = curve.base.modulus
    coordinates = (group.b, *group.generator)
    if group.degree != degree or any(len(coordinate) != degree for coordinate in coordinates):
        raise ValueError(f"{curve.name}: coordinates of {name} have {degree} integers")
    if any(not 0 <= value < p for coordinate in coordinates for value in coordinate):
        raise ValueError(f"{curve.name}: a value of {name} is not below the base field's modulus")
    if not any(group.b):
        raise ValueError(f"{curve.name}: b of {name} is 0, and (0, 0), which stands for infinity, would be a point")
    if not on_curve(*group.generator, group.b, p):
        raise ValueError(f"{curve.name}: the generator of {name} is not on the curve")
    if group.endomorphism is not None:
        _check_endomorphism(curve, group, group.endomorphism, name)
    if group.cofactor % 2 == 0:
        raise ValueError(f"{curve.name}: {name} has points of order 2, for which complete formulas are not complete")
    trace = p**degree + 1 - group.cofactor * curve.order
    if trace * trace > 4 * p**degree:
        raise ValueError(f"{curve.name}: {name} cannot have cofactor * order points (Hasse's bound)")


def _check_endomorphism(curve: Curve, group: Group, endomorphism: Endomorphism, name: str) -> None:
    """That the eigenvalue is the one of beta is for tests to see too."""
    if group.cofactor != 1 or group.degree != 1:
        raise ValueError(f"{curve.name}: {name} has an endomorphism, which takes cofactor 1 and a prime field")
    roots = (endomorphism.beta, curve.base.modulus), (endomorphism.eigenvalue, curve.order)
    for root, modulus in roots:
        if not 1 < root < modulus or pow(root, 3, modulus) != 1:
            raise ValueError(f"{curve.name}: {root:#x} is no cube root of unity other than 1")
