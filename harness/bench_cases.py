"""The cases that the project's speed claims rest on."""

from __future__ import annotations

from limbd.harness import bench_bases, bench_inputs, bench_multiplications
from limbd.harness.bench import BATCH_SAMPLES, LARGE_SAMPLES, LARGE_TRANSFORMS, SAMPLES, Case, with_rounds
from limbd.harness.inputs import UNIFORM
from limbd.ops.ntt import param_of
from limbd.ops.transform_shape import Order

EVEN_225 = f"{(1 << 224) + (1 << 200) + 0x1234567890:x}"
EVEN_256 = f"{(1 << 255) + (0xFEDCBA9876543210 << 64) + 2:x}"
ODD_256 = f"{(1 << 256) - (1 << 200) - 0x12345:x}"


def transform_case(op: str, field: str, n: int, param: int) -> Case:
    return Case(op, field, n, LARGE_SAMPLES if n > LARGE_TRANSFORMS else SAMPLES, param=param)


def multiplication_case(op: str, curve: str, n: int, param: int, inputs: str, bases: str = "") -> Case:
    samples = LARGE_SAMPLES if n > LARGE_TRANSFORMS else SAMPLES
    return Case(op, curve, n, samples, inputs=inputs, param=param, bases=bases)


CASES = (
    *(
        Case("mod-mul", m, 1 << 22)
        for m in ("bn254_fr", "bls12_381_fr", "secp256k1_fp", "secp256k1_fr", "p256_fp", "curve25519_fp")
    ),
    *(Case("mod-mul", m, 1 << 22) for m in (EVEN_225, EVEN_256, ODD_256, f"{1 << 255:x}")),
    *(Case("mod-mul", f"{(1 << (32 * limbs)) - 5:x}", 1 << 22, samples=20) for limbs in range(1, 8)),
    Case("mod-add", "secp256k1_fp", 1 << 22),
    Case("mod-add", "bn254_fr", 1 << 22),
    Case("mod-sub", "secp256k1_fp", 1 << 22),
    Case("mod-exp", "bn254_fr", 10**6, samples=20),
    Case("mod-exp", "secp256k1_fp", 10**6, samples=20),
    Case("mod-exp", EVEN_256, 10**6, samples=10),
    Case("mod-inv", "secp256k1_fp", 1),
    Case("mod-inv", "secp256k1_fp", 10**4),
    Case("mod-inv", "secp256k1_fp", 10**5, samples=200),
    Case("mod-inv", "secp256k1_fp", 10**6),
    Case("mod-inv", "secp256k1_fp", 10**7, samples=20),
    Case("mod-inv", "bn254_fr", 10**6),
    Case("mod-inv", EVEN_256, 10**6),
    *(Case("mod-inv-batch", "secp256k1_fp", 10**k, BATCH_SAMPLES) for k in range(3, 8)),
    Case("mod-inv-batch", "bn254_fr", 10**6, BATCH_SAMPLES),
    Case("mod-inv-batch", "bls12_381_fp", 10**5, BATCH_SAMPLES),
    # Blocks that are done one by one, against the same elements without any trick.
    *(
        Case(op, f"{bench_inputs.COMPOSITE:x}", 10**6, BATCH_SAMPLES, inputs=kind)
        for kind in (UNIFORM, bench_inputs.NON_UNIT)
        for op in ("mod-inv", "mod-inv-batch")
    ),
    *(
        case
        for field in ("bn254_fr", "bls12_381_fr")
        for order in (Order.NN, Order.NR)
        for k in range(10, 25, 2)
        for case in with_rounds(transform_case("ntt", field, 1 << k, param_of(k, order=order)))
    ),
    *with_rounds(transform_case("ntt", "bn254_fr", 64 << 12, param_of(12))),
    *(
        case
        for field in ("bn254_fr", "bls12_381_fr")
        for k in range(10, 23, 2)
        for case in with_rounds(transform_case("quotient", field, 1 << k, k))
    ),
    *(multiplication_case(*each) for each in bench_multiplications.measured()),
    *(multiplication_case(*each) for each in bench_bases.measured()),
)

# What has to be asked for.
LONG_CASES = tuple(multiplication_case(*each) for each in bench_bases.long())
