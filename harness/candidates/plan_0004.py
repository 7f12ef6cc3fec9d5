"""Candidates of plan 0004: mod-inv for odd moduli without a branch, and with one warp an element in three forms.

What a candidate has no form for is answered by the incumbent's plan: even moduli, and for a warp fields above 256 bits.
"""

from __future__ import annotations

from collections.abc import Callable

from limbd.harness.candidates import Candidate, Options
from limbd.harness.inputs import edges, ones, powers_of_two
from limbd.harness.textio import InputError
from limbd.ops.base import LIMB_BYTES, Kernel, Launch, LaunchPlan, Member, Request, Struct, Traits, Unit
from limbd.ops.constants import montgomery
from limbd.ops.mod_inv import MAX_BLOCK, MOD_INV, odd_modulus
from limbd.ops.mod_inv import unit as incumbent_unit
from limbd.ops.mod_inv_batch import warp_table
from limbd.ops.params.layout import PLAIN_LIMBS
from limbd.ops.split import elementwise_plan
from limbd.ops.tuning import tuning

# kernels/candidate/0004/warp.cu: enum Form. Halvings a lookup, and the form, by the candidate's name.
SHIPPED, LATE = 0, 1
WARPS_FORMS = {"warp-8": (8, SHIPPED), "warp-12": (12, SHIPPED), "warp-late": (12, LATE)}

ENTRY_BYTES = 8
WARP = 32
BLOCK_WARPS = 8

# Blocks that share a multiprocessor where there are elements for all their warps: an H200 has room for six tables of 32 KB.
RESIDENT = 6

WARP_STRUCT = Struct(
    "mod_inv_warp_args",
    (
        Member("x", "in"),
        Member("out", "out"),
        Member("n", "u64"),
        Member("modulus", "limbs", PLAIN_LIMBS),
        Member("n0inv", "u32"),
    ),
)

MakeLaunch = Callable[[Request, int, Traits], Launch]


def branch_free_unit(words: int) -> Unit:
    """For elements, and odd moduli, of up to `words` limbs: the incumbent's parameters."""
    incumbent = incumbent_unit(words)
    return Unit("candidate/0004/branch_free", incumbent.structs[:1], incumbent.constants)


def warp_unit(name: str) -> Unit:
    """For odd moduli of up to 256 bits, with the table that the form looks up."""
    steps, form = WARPS_FORMS[name]
    return Unit("candidate/0004/warp", (WARP_STRUCT,), (("STEPS", steps), ("FORM", form)), warp_table(steps))


def branch_free_launch(request: Request, n: int, traits: Traits) -> Launch:
    """In the incumbent's blocks."""
    words = request.element_bytes // LIMB_BYTES
    unit = branch_free_unit(words)
    kernel = Kernel(unit, "mod_inv_branch_free", unit.structs[0], MAX_BLOCK)
    block = tuning(MOD_INV.name, words, traits.arch).block
    return Launch(kernel, -(-n // block), block, {"n": n, **odd_modulus(request.modulus, words)})


def warp_launch(name: str, request: Request, n: int, traits: Traits) -> Launch:
    kernel = Kernel(warp_unit(name), "mod_inv_warp", WARP_STRUCT, BLOCK_WARPS * WARP, synchronises=True)
    values = {"n": n, "modulus": request.modulus, "n0inv": montgomery(request.modulus, PLAIN_LIMBS)["n0inv"]}
    steps, _ = WARPS_FORMS[name]
    grid = blocks(n, traits.multiprocessors)
    return Launch(kernel, grid, BLOCK_WARPS * WARP, values, ENTRY_BYTES << steps)


def blocks(n: int, multiprocessors: int) -> int:
    """One on each multiprocessor until each of its warps has an element, then more, up to RESIDENT."""
    a_multiprocessor = min(RESIDENT, -(-n // (multiprocessors * BLOCK_WARPS)))
    return min(n, multiprocessors * a_multiprocessor)


def hard(modulus: int) -> dict[str, list[int]]:
    """What takes a warp's form longest, and shows it f = +-1 in its lowest limb only: powers of two and their negatives.

    And what no form reduces first: the modulus, its neighbours and multiples.
    """
    return {"x": [*ones(modulus), *powers_of_two(modulus), *edges(modulus)]}


def _declared(launch: MakeLaunch, *, wide: bool) -> Candidate:
    """wide: it has a form for elements above 256 bits."""

    def plan(request: Request, traits: Traits, options: Options) -> LaunchPlan:
        if options:
            raise InputError(f"plan 0004 has no options, not {', '.join(options)}")
        own = request.modulus % 2 == 1 and (wide or request.element_bytes == PLAIN_LIMBS * LIMB_BYTES)
        if not own:
            return MOD_INV.plan(request, traits)
        return elementwise_plan(request, traits, lambda n: launch(request, n, traits))

    return Candidate(plan, hard=hard)


def _by_warp(name: str) -> Candidate:
    return _declared(lambda request, n, traits: warp_launch(name, request, n, traits), wide=False)


CANDIDATES = {
    "branch-free": _declared(branch_free_launch, wide=True),
    **{name: _by_warp(name) for name in WARPS_FORMS},
}


def sass_units() -> dict[str, Unit]:
    """What limbd.harness.sass disassembles."""
    return {"branch-free": branch_free_unit(PLAIN_LIMBS), **{name: warp_unit(name) for name in WARPS_FORMS}}
