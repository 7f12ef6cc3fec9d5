"""The sides of a plan by name: "op:NAME" is an op as it is shipped, "candidate:NNNN/NAME" a kernel that is tried.

plan_NNNN.py of this package declares a plan's candidates in a dictionary CANDIDATES, name -> Candidate; their kernels lie
in kernels/candidate/NNNN/, named in a Unit as "candidate/NNNN/file". When the plan is closed both leave the tree.
"""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from limbd.harness.textio import InputError
from limbd.ops import by_name
from limbd.ops.base import LaunchPlan, Request, Traits

Options = Mapping[str, Any]


@dataclass(frozen=True)
class Candidate:
    """How one side answers a request of the plan's op.

    plan: the launches; options are those of the plan's case. Where traits.whole is set it makes one piece.
    reference: what the results have to be; none: the op's own definition. It gets a part of the batch at times.
    hard: more operands to check than every candidate is put to: modulus -> operand name -> values, equally many each.
    curves: of multi-scalar multiplications, the names of those that it serves; none named: all. It is asked for no other.
    spills: bytes, stores and loads together, that a function of its kernels may spill on sm_90.
    """

    plan: Callable[[Request, Traits, Options], LaunchPlan]
    reference: Callable[[Request, memoryview, Options], None] | None = None
    hard: Callable[[int], Mapping[str, list[int]]] | None = None
    curves: tuple[str, ...] = ()
    spills: int = 0


def resolve(name: str) -> Candidate:
    """The side of this name. Raises InputError."""
    kind, _, rest = name.partition(":")
    if kind == "op":
        return _shipped(rest)
    number, _, own = rest.partition("/")
    module = f"{__name__}.plan_{number}"
    try:
        declared: Mapping[str, Candidate] = importlib.import_module(module).CANDIDATES
    except ModuleNotFoundError as error:
        if error.name != module:
            raise
        raise InputError(f"{name}: there is no harness/candidates/plan_{number}.py in this tree") from None
    if own not in declared:
        raise InputError(f"{name}: plan_{number}.py declares {', '.join(declared) or 'no candidate'}")
    return declared[own]


def _shipped(name: str) -> Candidate:
    """An op as it is; it may answer another op's request that has the same operands (mod-inv a mod-inv-batch)."""
    op = by_name(name)

    def plan(request: Request, traits: Traits, options: Options) -> LaunchPlan:
        if options:
            raise InputError(f"op:{name} takes no options, not {', '.join(options)}")
        if tuple(request.arrays) != op.operands:
            raise InputError(f"op:{name} takes {', '.join(op.operands)}, not {', '.join(request.arrays)}")
        return op.plan(dataclasses.replace(request, op=op), traits)

    return Candidate(plan)
