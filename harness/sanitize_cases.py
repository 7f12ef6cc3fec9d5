"""One case per kernel and block-edge n on a CUDA device, small enough to run under compute-sanitizer.

`python -m limbd.harness.sanitize_cases` is what gpu_check runs under each of its tools; alone it is a quick test.
"""

from __future__ import annotations

import random
import sys

from limbd.harness.inputs import Residues, operands
from limbd.harness.kat import first_difference
from limbd.harness.targets import BackendTarget
from limbd.ops import OPS
from limbd.ops.params.layout import from_ints
from limbd.worker.device.cuda import CudaBackend
from limbd.worker.device.reference import ReferenceBackend

# Around a warp and the blocks of 64, 128 and 256 threads; a single element; a last block of one element.
SIZES = (1, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257)

SECP256K1 = 2**256 - 2**32 - 977

# One modulus for each kernel that some op has: every limb count, a full and a short top limb, even, folded, 1.
MODULI = (
    1,
    6,
    SECP256K1,
    2**256 - 2**200 - 1,
    2**256 - 2**200 - 2,
    *(2 ** (32 * limbs) - 5 for limbs in range(1, 8)),
    *(2 ** (32 * limbs - 3) - 6 for limbs in range(1, 9)),
)


def main() -> int:
    """Exit status 1 and the case on stdout where an answer is not the reference's."""
    backend = CudaBackend(poison=True, separate=True)
    target, oracle = BackendTarget(backend), BackendTarget(ReferenceBackend())
    failures = 0
    for op in OPS:
        for modulus in MODULI:
            sizes = SIZES if modulus == SECP256K1 else SIZES[-3:]
            for n in sizes:
                rng = random.Random(f"{op.name} {modulus} {n}")
                arrays = {name: from_ints(operands(rng, modulus, n)) for name in op.operands}
                residues = Residues(modulus)
                got = target.answer(op.name, residues, arrays)
                bad = first_difference(got, oracle.answer(op.name, residues, arrays))
                if bad is not None:
                    failures += 1
                    print(f"FAILED {op.name} mod {modulus:#x} n={n} at index {bad}")
    backend.close()
    print(f"sanitize cases: {failures} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
