"""What test_cuda_host_side.py runs, each scenario in a process of its own: the CUDA backend on the simulated driver.

    python scenarios.py NAME LIBRARY CACHE

Kernels are the real ones, compiled for the host; plans and results are the real op's.
"""

from __future__ import annotations

import sys
from pathlib import Path

from limbd.harness.tests.host.simulated import batch_scenarios, transform_scenarios
from limbd.harness.tests.host.simulated.simulation import Bench

SCENARIOS = {scenario.__name__: scenario for scenario in (*batch_scenarios.SCENARIOS, *transform_scenarios.SCENARIOS)}

if __name__ == "__main__":
    SCENARIOS[sys.argv[1]](Bench(sys.argv[2], Path(sys.argv[3])))
    print("done")
