"""Two independent definitions of every modular op, by which shipped answers are made and checked: GMP and CPython."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import gmpy2

from limbd.harness.inputs import Residues
from limbd.harness.vectors import multiplication_peers, quotient_peers, transform_peers
from limbd.ops import by_name
from limbd.ops.params.layout import Limbs, from_ints

# op -> f(m, x, y) for ops of two operands, f(m, x) for those of one; the result is canonical, and 0 where there is no
# inverse.
Definition = Callable[..., int]


def _gmp_inverse(m: int, x: int) -> int:
    try:
        return int(gmpy2.invert(x, m))
    except ZeroDivisionError:
        return 0


def _python_inverse(m: int, x: int) -> int:
    try:
        return pow(x, -1, m)
    except ValueError:
        return 0


GMP: Mapping[str, Definition] = {
    "mod-mul": lambda m, a, b: int(gmpy2.f_mod(gmpy2.mul(a, b), m)),
    "mod-add": lambda m, a, b: int(gmpy2.f_mod(gmpy2.add(a, b), m)),
    "mod-sub": lambda m, a, b: int(gmpy2.f_mod(gmpy2.sub(a, b), m)),
    "mod-exp": lambda m, a, e: int(gmpy2.powmod(a, e, m)),
    "mod-inv": _gmp_inverse,
    "mod-inv-batch": _gmp_inverse,
}

PYTHON: Mapping[str, Definition] = {
    "mod-mul": lambda m, a, b: a * b % m,
    "mod-add": lambda m, a, b: (a + b) % m,
    "mod-sub": lambda m, a, b: (a - b) % m,
    "mod-exp": lambda m, a, e: pow(a, e, m),
    "mod-inv": _python_inverse,
    "mod-inv-batch": _python_inverse,
}

OPERANDS: Mapping[str, tuple[str, ...]] = {
    "mod-mul": ("a", "b"),
    "mod-add": ("a", "b"),
    "mod-sub": ("a", "b"),
    "mod-exp": ("a", "e"),
    "mod-inv": ("x",),
    "mod-inv-batch": ("x",),
}


# Of ops on whole batches: f(residues, an argument for each operand) -> all results.
Whole = Callable[..., list[int]]
WHOLE_GMP: Mapping[str, Whole] = {
    "ntt": transform_peers.by_definition,
    "quotient": quotient_peers.by_definition,
    "msm-g1": partial(multiplication_peers.by_group_law, "g1"),
    "msm-g2": partial(multiplication_peers.by_group_law, "g2"),
}
WHOLE_PYTHON: Mapping[str, Whole] = {
    "ntt": transform_peers.by_steps,
    "quotient": quotient_peers.by_product,
    "msm-g1": partial(multiplication_peers.by_complete_formulas, "g1"),
    "msm-g2": partial(multiplication_peers.by_complete_formulas, "g2"),
}


class Disagreement(Exception):
    """Two definitions, or a definition and a collected answer, differ."""


def by_python(op: str, residues: Residues, operands: Sequence[Sequence[int]]) -> list[int]:
    """CPython's results, one for each row of operands (one sequence an operand)."""
    if op in WHOLE_PYTHON:
        return WHOLE_PYTHON[op](residues, *operands)
    return [PYTHON[op](residues.modulus, *row) for row in zip(*operands, strict=True)]


def agreed(op: str, modulus: int, operands: Sequence[Sequence[int]], given: Sequence[int] | None = None) -> list[int]:
    """The results, one for each row of operands (one sequence an operand). given: collected answers to check as well.

    Raises Disagreement, with the first case that differs.
    """
    results = []
    for at, row in enumerate(zip(*operands, strict=True)):
        gmp, python = GMP[op](modulus, *row), PYTHON[op](modulus, *row)
        if gmp != python or (given is not None and given[at] != gmp):
            case = ", ".join(f"{value:#x}" for value in row)
            other = f", given {given[at]:#x}" if given is not None else ""
            raise Disagreement(f"{op}({case}) mod {modulus:#x}: GMP {gmp:#x}, CPython {python:#x}{other}")
        results.append(gmp)
    return results


def agreed_whole(
    op: str, residues: Residues, operands: Sequence[Sequence[int]], given: Sequence[int] | None = None
) -> list[int]:
    """The same for an op on whole transforms."""
    gmp, python = WHOLE_GMP[op](residues, *operands), WHOLE_PYTHON[op](residues, *operands)
    if gmp != python or (given is not None and list(given) != gmp):
        raise Disagreement(f"{op} mod {residues.modulus:#x} param {residues.param:#x}: GMP, CPython and given differ")
    return gmp


def as_arrays(op: str, operands: Sequence[Sequence[int]], limbs: int) -> dict[str, Limbs]:
    """The operands under the names that the op's payload has them in."""
    return {name: from_ints(values, limbs) for name, values in zip(by_name(op).operands, operands, strict=True)}
