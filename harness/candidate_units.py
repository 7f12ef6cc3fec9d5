"""What the sides of a plan would launch, without launching it: so that candidates are compiled with what is shipped, and a plan
can be run when it is its turn."""

from __future__ import annotations

import dataclasses

from limbd.harness import bench, bench_multiplications
from limbd.harness.candidates import resolve
from limbd.harness.plan_cases import plain
from limbd.harness.plans import Plan
from limbd.ops.base import Traits, Unit

# Of the devices that plans are measured on; the budget is such that no case is cut.
H200 = Traits("cuda", "sm_90", 132, 1 << 37, whole=True)


def units_of(plan: Plan, traits: Traits = H200, *, constant_too: bool = False) -> dict[Unit, int]:
    """Every unit, with the bytes that a function of it may spill: a candidate's, whoever else has the unit. constant_too: of
    multi-scalar multiplications, as if every case were asked for in constant work as well."""
    found: dict[Unit, int] = {}
    constant = bench_multiplications.variant(constant=True)
    for case in plan.cases:
        asked = [plain(plan.op, case)]
        if constant_too:
            asked.append(dataclasses.replace(asked[0], param=asked[0].param | constant))
        for name in (case.incumbent, *(case.only or plan.candidates)):
            side = resolve(name)
            for each in asked:
                launches = side.plan(bench.blank(each)[0], traits, dict(case.options)).launches()
                for unit in dict.fromkeys(launch.kernel.unit for launch in launches):
                    found[unit] = max(found.get(unit, 0), side.spills)
    return found
