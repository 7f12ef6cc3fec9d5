"""The candidate of plan 0002: mod-inv by Montgomery's trick, all n elements walked by one warp."""

from __future__ import annotations

import dataclasses

from limbd.harness.candidates import Candidate, Options
from limbd.harness.textio import InputError
from limbd.ops.base import LIMB_BYTES, Kernel, Launch, LaunchPlan, Member, Request, Struct, Traits, Unit
from limbd.ops.constants import LIMB_BITS, barrett, limbs_of_modulus
from limbd.ops.mod_inv import limbs30, odd_modulus
from limbd.ops.split import elementwise_plan

WARP = 32


def unit(limbs: int, words: int, full: bool) -> Unit:
    """The unit for moduli of exactly `limbs` limbs; full: the modulus fills its top limb. One kernel for odd moduli, one
    for even ones."""
    count = limbs30(words)
    common = (
        Member("x", "in"),
        Member("out", "out"),
        Member("n", "u64"),
        Member("modulus", "limbs", limbs),
        Member("negated", "limbs", limbs + 1),
        Member("reciprocal", "limbs", limbs),
        Member("shift", "u32"),
        Member("one", "limbs", limbs),
    )
    odd = (Member("modulus30", "limbs", count), Member("negated_inverse4", "u32"))
    structs = (Struct("sequential_odd_args", (*common, *odd)), Struct("sequential_even_args", common))
    constants = (("LIMBS", limbs), ("WORDS", words), ("LIMBS30", count), ("FULL", int(full)))
    return Unit("candidate/0002/sequential", structs, constants)


def plan(request: Request, traits: Traits, options: Options) -> LaunchPlan:
    if options:
        raise InputError(f"plan 0002 has no options, not {', '.join(options)}")
    modulus, words = request.modulus, request.element_bytes // LIMB_BYTES
    limbs = limbs_of_modulus(modulus)
    compiled = unit(limbs, words, modulus.bit_length() == LIMB_BITS * limbs)
    values = {**barrett(modulus, limbs), "one": 1 % modulus}
    if modulus % 2 == 1:
        kernel = Kernel(compiled, "sequential_odd", compiled.structs[0], WARP, synchronises=True)
        values |= odd_modulus(modulus, words)
    else:
        kernel = Kernel(compiled, "sequential_even", compiled.structs[1], WARP, synchronises=True)
    # One warp walks the whole batch, so that it is never cut.
    whole = dataclasses.replace(traits, whole=True)
    return elementwise_plan(request, whole, lambda n: Launch(kernel, 1, WARP, {"n": n, **values}))


CANDIDATES = {"sequential": Candidate(plan)}
