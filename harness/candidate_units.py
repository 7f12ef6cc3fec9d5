"""What candidates of open plans would launch, without launching it: compiled with what is shipped, so that a plan can be run
when it is its turn."""

from __future__ import annotations

from collections.abc import Iterable

from limbd.harness import bench
from limbd.harness.candidates import resolve
from limbd.harness.halt_run import asked_of
from limbd.harness.plans import Plan
from limbd.ops.base import Traits, Unit

# Of the devices that plans are measured on; the budget is such that no case is cut.
H200 = Traits("cuda", "sm_90", 132, 1 << 37, whole=True)


def units_of(plans: Iterable[Plan], traits: Traits = H200) -> dict[Unit, int]:
    """Every unit that sides of these plans launch, with the bytes that a function of it may spill: a candidate's, whoever else
    has the unit."""
    found: dict[Unit, int] = {}
    for plan in (plan for plan in plans if plan.state == "open"):
        for case in plan.cases:
            request = bench.blank(asked_of(plan.op, case))[0]
            for name in (case.incumbent, *(case.only or plan.candidates)):
                side = resolve(name)
                launches = side.plan(request, traits, dict(case.options)).launches()
                for unit in dict.fromkeys(launch.kernel.unit for launch in launches):
                    found[unit] = max(found.get(unit, 0), side.spills)
    return found
