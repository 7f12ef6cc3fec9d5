"""Kernel times of ops on one device: raw samples between two device events, every result checked.

Inputs lie in device memory and are copied there once. Batches of a few hundred megabytes are read from memory each time;
smaller ones rotate among several input sets, so that a sample does not measure the cache. Before each sample the
outputs are poisoned; after the last one, results are compared with the reference.
"""

from __future__ import annotations

import dataclasses
import hashlib
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from limbd.harness.report import Record, summary
from limbd.ops import by_name
from limbd.ops.base import Call, LaunchPlan, Limbs, Request, Traits
from limbd.ops.params import fields

# Enough that the median of a noisy machine settles, few enough that all cases end inside a few minutes.
SAMPLES = 60
WARMUP = 5

# Input sets rotate until they hold this much together: several times the caches of the cards of today.
ROTATION_BYTES = 256 << 20
ROTATION_SETS = 8

# Results compared with the reference: all of a batch up to this many, else the ends and a random choice.
CHECKED = 1 << 16


class Measurable(Protocol):
    """A backend that can time a plan's launches (limbd.worker.device.cuda)."""

    def traits(self) -> Traits: ...

    def measure(
        self,
        requests: Sequence[Request],
        plan: LaunchPlan,
        results: Sequence[memoryview],
        *,
        repeats: int,
        warmup: int = 3,
        back_to_back: int = 1,
    ) -> list[float]: ...


@dataclass(frozen=True)
class Case:
    """One row of a benchmark. modulus: a field's name, or a hexadecimal integer. back_to_back: rounds in a sample."""

    op: str
    modulus: str
    n: int
    samples: int = SAMPLES
    back_to_back: int = 1

    @property
    def name(self) -> str:
        rounds = f" x{self.back_to_back}" if self.back_to_back > 1 else ""
        return f"{self.op} {self.modulus} n={self.n}{rounds}"

    @property
    def value(self) -> int:
        field = fields.by_name(self.modulus)
        return field.modulus if field else int(self.modulus, 16)


EVEN_225 = f"{(1 << 224) + (1 << 200) + 0x1234567890:x}"
EVEN_256 = f"{(1 << 255) + (0xFEDCBA9876543210 << 64) + 2:x}"
ODD_256 = f"{(1 << 256) - (1 << 200) - 0x12345:x}"

# The cases that the project's speed claims rest on.
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
)


def run_case(backend: Measurable, case: Case) -> Record:
    """Measures and checks one case. Returns its record: samples and summary in ms, elements a second, what ran.

    Raises AssertionError where a result is not the reference's.
    """
    sets = _rotation(case)
    requests = [request_of(case, seed) for seed in range(sets)]
    results = [np.empty((case.n, requests[0].element_bytes // 4), dtype="<u4") for _ in requests]
    plan = requests[0].op.plan(requests[0], dataclasses.replace(backend.traits(), whole=True))
    samples = backend.measure(
        requests,
        plan,
        [r.data.cast("B") for r in results],
        repeats=case.samples,
        warmup=WARMUP,
        back_to_back=case.back_to_back,
    )
    last = (WARMUP + case.samples) * case.back_to_back - 1
    checked = check(requests[last % sets], results[last % sets])
    launch = plan.pieces[0].launches[0]
    stats = summary(samples)
    return {
        "op": case.op,
        "modulus": f"{case.value:x}",
        "field": case.modulus if fields.by_name(case.modulus) else None,
        "n": case.n,
        "metric": "kernel_ms",
        "samples": samples,
        **stats,
        "rate_g": case.n / stats["median"] / 1e6,
        "back_to_back": case.back_to_back,
        "input_sets": sets,
        "checked": checked,
        "kernel": launch.kernel.name,
        "constants": dict(launch.kernel.unit.constants),
        "unit": hashlib.sha256((launch.kernel.unit.entry + launch.kernel.unit.header()).encode()).hexdigest()[:16],
        "grid": launch.grid,
        "block": launch.block,
        "shared": launch.shared,
    }


def _rotation(case: Case) -> int:
    """How many input sets a case rotates among."""
    nbytes = case.n * 32 * (len(by_name(case.op).operands) + 1)
    return max(1, min(ROTATION_SETS, ROTATION_BYTES // nbytes)) if case.n > 1 else 1


def request_of(case: Case, seed: int) -> Request:
    """A request whose operands are uniform below the modulus (exponents: uniform 256-bit integers)."""
    op = by_name(case.op)
    payload = bytearray(op.payload_bytes(Call(case.n)) or 0)
    payload[:32] = case.value.to_bytes(32, "little")
    request = op.decode(Call(case.n), memoryview(payload))
    generator = np.random.Generator(np.random.Philox(seed))
    for name, array in request.arrays.items():
        array[:] = generator.integers(0, 1 << 32, size=array.shape, dtype=np.uint32)
        if name != "e":
            _below(array, case.value, generator)
    return request


def _below(array: Limbs, modulus: int, generator: np.random.Generator) -> None:
    """Makes uniform 256-bit integers smaller than the modulus: whole limbs above it are cleared, the bits of its top
    limb masked, and what is still too large loses its top bit."""
    top = (modulus.bit_length() - 1) // 32
    array[:, top + 1 :] = 0
    limb = modulus >> (32 * top)
    array[:, top] &= np.uint32((1 << limb.bit_length()) - 1)
    high = array[:, top] >= limb
    array[high, top] = generator.integers(0, max(limb, 1), size=int(high.sum()), dtype=np.uint32)


def check(request: Request, result: Limbs) -> int:
    """Compares results with the reference; returns how many were compared."""
    rows = _rows(request.n)
    arrays = {name: np.ascontiguousarray(array[rows]) for name, array in request.arrays.items()}
    part = dataclasses.replace(request, n=len(rows), arrays=arrays)
    expected = np.empty((len(rows), result.shape[1]), dtype="<u4")
    part.op.reference(part, expected.data.cast("B"))
    bad = np.flatnonzero((result[rows] != expected).any(axis=1))
    assert not len(bad), f"{request.op.name} mod {request.modulus:#x}: wrong at index {rows[bad[0]]} of {request.n}"
    return len(rows)


def _rows(n: int) -> list[int]:
    if n <= CHECKED:
        return list(range(n))
    chosen = random.Random(n).sample(range(n), CHECKED - 2048)
    return sorted({*range(1024), *range(n - 1024, n), *chosen})
