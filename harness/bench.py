"""Kernel times of ops on one device: raw samples by the device's clock, every sample's results checked.

Inputs lie where the kernels read them and are copied there once. Batches of a few hundred megabytes are read from memory
each time; smaller ones rotate among several input sets, so that a sample does not measure the cache. Before each sample
the outputs are poisoned; after it they are copied back and compared. What the host adds (copies in and out, planning,
enqueuing) is measured apart, as wall time of whole batches. Multi-scalar multiplications by bases that stay on the device
are measured as whole calls (bench_bases.py).
"""

from __future__ import annotations

import dataclasses
import hashlib
import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from limbd.harness import bench_bases, bench_inputs, bench_multiplications, machine, transforms
from limbd.harness.figures import KERNEL_MS, SPAN_MS
from limbd.harness.inputs import STRUCTURED, UNIFORM
from limbd.harness.report import Record, summary
from limbd.harness.textio import InputError
from limbd.kernels.source import Sources
from limbd.ops import by_name
from limbd.ops.base import LIMB_BYTES, Call, LaunchPlan, Limbs, Request, Traits, Unit
from limbd.ops.constants import limbs_of_modulus
from limbd.ops.msm import Msm, vectors_of
from limbd.ops.ntt import param_of
from limbd.ops.params import fields
from limbd.ops.params.base import Field
from limbd.ops.params.curves import Curve
from limbd.ops.params.layout import from_ints
from limbd.ops.transform_op import TransformOp
from limbd.ops.transform_shape import Order
from limbd.ops.tuning import batch_tuning, tuning
from limbd.worker.device.measurement import Measurable, take_samples

# Enough that the median of a noisy machine settles, few enough that all cases end inside a few minutes.
SAMPLES = 60
WARMUP = 5

# Of mod-inv-batch, whose claims are medians of so many.
BATCH_SAMPLES = 200

# Whole batches by wall time: they are slow beside a sample, and vary little.
HOST_RUNS = 5

# Up to this many elements a launch costs about as much as its work: then rounds back to back are measured as well.
SMALL = 100_000
SMALL_TRANSFORMS = 1 << 18
SMALL_ROUNDS = 32

# Above this many elements of transforms a sample copies and compares hundreds of megabytes.
LARGE_TRANSFORMS = 1 << 20
LARGE_SAMPLES = 20

# Input sets rotate until they hold this much together: several times the caches of the cards of today.
ROTATION_BYTES = 256 << 20
ROTATION_SETS = 8

# Results compared with the reference: all of a batch up to this many, else the ends and a random choice.
CHECKED = 1 << 16

Reference = Callable[[Request, memoryview], None]


class WrongResult(AssertionError):
    """A measured kernel gave something else than the reference, or than the time before."""


@dataclass(frozen=True)
class Case:
    """One row of a benchmark. modulus: a field's name, or a hexadecimal integer; of multi-scalar multiplications a curve's
    name. back_to_back: rounds in a sample. param: of the request, but for the curve.
    inputs: what its operands are: drawn from a set of limbd.harness.inputs, or one of limbd.harness.bench_inputs.KINDS or
    bench_multiplications.KINDS. bases: of multi-scalar multiplications, one of bench_bases.KINDS where they stay on the device."""

    op: str
    modulus: str
    n: int
    samples: int = SAMPLES
    back_to_back: int = 1
    inputs: str = UNIFORM
    param: int = 0
    bases: str = ""

    @property
    def name(self) -> str:
        rounds = f" x{self.back_to_back}" if self.back_to_back > 1 else ""
        inputs = f" {self.inputs}" if self.inputs != UNIFORM else ""
        param = f" param={self.param:#x}" if self.param else ""
        bases = f" {self.bases} bases" if self.bases else ""
        return f"{self.op} {self.modulus} n={self.n}{param}{inputs}{bases}{rounds}"

    @property
    def curve(self) -> Curve | None:
        return bench_multiplications.curve_of(self.op, self.modulus) if self._multiplies else None

    @property
    def field(self) -> Field | None:
        return None if self._multiplies else fields.by_name(self.modulus)

    @property
    def value(self) -> int:
        """The modulus; of multi-scalar multiplications that of the scalars."""
        if self.curve:
            return self.curve.order
        return self.field.modulus if self.field else int(self.modulus, 16)

    @property
    def _multiplies(self) -> bool:
        return bench_multiplications.is_multiplication(self.op)

    @property
    def call(self) -> Call:
        """The modulus stands in the payload where it fits."""
        if self.curve:
            return Call(self.n, self.param | bench_multiplications.param_of(self.curve))
        return Call(self.n, self.param, self.field if self.value >> 256 else None)


def with_rounds(case: Case) -> tuple[Case, ...]:
    """The case and, where it is small, the same once more with rounds back to back; not of multi-scalar multiplications,
    which are many launches each."""
    if bench_multiplications.is_multiplication(case.op):
        return (case,)
    small = SMALL if by_name(case.op).elementwise else SMALL_TRANSFORMS
    return (case, dataclasses.replace(case, back_to_back=SMALL_ROUNDS)) if case.n <= small else (case,)


def cases_of(
    op: str, moduli: Sequence[str], sizes: Sequence[int], samples: int, inputs: str = UNIFORM, bases: str = ""
) -> list[Case]:
    """Every modulus with every n; small n once more, back to back. Ops on whole transforms: one of n elements. Raises
    InputError where n is no size of one, or the inputs are another op's."""
    if inputs in bench_multiplications.KINDS and not bench_multiplications.is_multiplication(op):
        raise InputError(f"{inputs}: {op} has no scalars")
    if bases and not bench_multiplications.is_multiplication(op):
        raise InputError(f"{bases}: {op} has no bases")
    single = [
        Case(op, m, n, samples, inputs=inputs, param=param_of_one(op, n), bases=bases) for m in moduli for n in sizes
    ]
    return [wanted for case in single for wanted in with_rounds(case)]


def param_of_one(op: str, n: int, order: Order = Order.NN) -> int:
    """The param word of a request for n elements: of ops on whole transforms, for one forward transform. Raises InputError
    where n is no size of one."""
    if by_name(op).elementwise or bench_multiplications.is_multiplication(op):
        return 0
    if n & (n - 1):
        raise InputError(f"{op}: n = {n} is no power of two")
    return param_of(n.bit_length() - 1, order=order)


def run_case(backend: Measurable, case: Case) -> Record:
    """Measures and checks one case. Returns its record: samples and summary in ms, elements a second, what ran on what.

    Raises WrongResult, and InputError where the modulus allows no such inputs.
    """
    if case.bases:
        return _run_kept(backend, case)
    batches = [batch_of(case, seed) for seed in range(rotation(case))]
    requests = [request for request, _ in batches]
    blocks = [bench_inputs.place(each, case.inputs, backend.traits(), seed) for seed, each in enumerate(requests)]
    results = [empty_result(request) for request in requests]
    plan = requests[0].op.plan(requests[0], dataclasses.replace(backend.traits(), whole=True))
    checker = Checker(requests, results)
    with backend.measuring(requests, plan, [r.data.cast("B") for r in results]) as measurement:
        samples = take_samples(
            measurement,
            repeats=case.samples,
            warmup=warmup_of(case, len(requests)),
            back_to_back=case.back_to_back,
            after_each=lambda: checker.check(measurement.collect()),
        )
        clock, held = machine.clock(backend), measurement.held
    host = [] if case.back_to_back > 1 else _host_runs(backend, *batches[0], checker)
    return {
        **case_record(case),
        "samples": samples,
        **rates(case.n, samples),
        "host_ms": host,
        "held": held,
        "input_sets": len(requests),
        "checked": checker.compared,
        **({"inputs_block": blocks[0], "zero_results": zero_rows(checker.right[0])} if blocks[0] else {}),
        "plan": plan_record(backend, plan),
        "tuning": tuning_record(requests[0], backend.traits()),
        **machine.facts(backend),
        "clock": clock,
    }


def _run_kept(backend: Measurable, case: Case) -> Record:
    """See bench_bases."""
    op, curve, vectors = by_name(case.op), case.curve, vectors_of(case.param)
    assert isinstance(op, Msm) and curve is not None
    with bench_bases.Kept(backend, curve, op.group, case.n // vectors, vectors, case.inputs, case.bases) as kept:
        found = bench_bases.run(kept, backend, case.samples, WARMUP)
        clock = machine.clock(backend)
    if found is None:
        raise WrongResult(f"{case.name}: not the sum")
    samples, told = found
    spans = [each.span_ms for each in samples]
    return {
        **case_record(case),
        "samples": spans,
        **rates(case.n, spans),
        "host_ms": [each.wall_ms for each in samples],
        **told,
        "held": False,
        "input_sets": bench_bases.SETS,
        "checked": vectors * bench_bases.SETS,
        "plan": plan_record(backend, kept.plan),
        "tuning": dataclasses.asdict(kept.row),
        **machine.facts(backend),
        "clock": clock,
    }


def warmup_of(case: Case, sets: int) -> int:
    """Samples that do not count: each input set is reached, and judged by the reference, before any that does."""
    return max(min(WARMUP, case.samples), -(-sets // case.back_to_back))


def case_record(case: Case) -> Record:
    """What was asked."""
    return {
        "op": case.op,
        "modulus": f"{case.value:x}",
        "field": case.field.name if case.field else case.curve.name if case.curve else None,
        "n": case.n,
        "metric": SPAN_MS if case.bases else KERNEL_MS,
        "back_to_back": case.back_to_back,
        "inputs": case.inputs,
        "param": case.param,
        **({"bases": case.bases} if case.bases else {}),
    }


def rates(n: int, samples: Sequence[float]) -> Record:
    """The summary of samples in ms, and elements a second in thousand millions by their median."""
    stats = summary(list(samples))
    return {**stats, "rate_g": n / stats["median"] / 1e6}


def plan_record(backend: Measurable, plan: LaunchPlan) -> Record:
    """The plan as data, with digests: text of all that the compiler reads of a unit, binary of what is loaded. usage: registers, spills and shared memory, where the backend knows them."""
    usage: Callable[[Any], Record] | None = getattr(backend, "usage", None)
    launches = [
        {
            "kernel": launch.kernel.name,
            "entry": launch.kernel.unit.entry,
            "constants": dict(launch.kernel.unit.constants),
            "grid": launch.grid,
            "block": launch.block,
            "shared": launch.shared,
            "text": source_digest(launch.kernel.unit),
            "binary": digest(backend.image(launch.kernel.unit)),
            **({"usage": usage(launch)} if usage else {}),
        }
        for piece in plan.pieces
        for launch in piece.launches
    ]
    return {"device_bytes": plan.device_bytes(), "pieces": len(plan.pieces), "launches": launches}


def tuning_record(request: Request, traits: Traits) -> Record | None:
    """The row of ops/tuning.py or its like that the plan was made with; None for ops without one."""
    op = request.op.name
    if isinstance(request.op, TransformOp | Msm):
        return dataclasses.asdict(request.op.row(request, traits))
    if op == "mod-inv-batch":
        row = batch_tuning(traits.kind, traits.arch, request.element_bytes // LIMB_BYTES).row(request.n)
        if row is not None:
            return dataclasses.asdict(row)
        op = "mod-inv"
    try:
        return dataclasses.asdict(tuning(op, limbs_of_modulus(request.modulus), traits.kind, traits.arch))
    except KeyError:
        return None


def source_digest(unit: Unit) -> str | None:
    """A digest of a unit's whole source, headers included: the same on every machine."""
    return digest(Sources().cuda(unit.entry, unit.header()).text.encode())


def digest(data: bytes) -> str | None:
    """Enough of a SHA-256 to tell binaries apart; None for no data."""
    return hashlib.sha256(data).hexdigest()[:16] if data else None


def _host_runs(backend: Measurable, request: Request, payload: Limbs, checker: Checker) -> list[float]:
    """Wall time of whole batches in ms, copies included, planned and cut as the worker does it, in pinned memory."""
    walls = []
    result = empty_result(request)
    with pinned(backend, payload, result):
        for _ in range(HOST_RUNS + 1):
            begin = time.perf_counter()
            backend.run(request, request.op.plan(request, backend.traits()), result.data.cast("B"))
            walls.append(1e3 * (time.perf_counter() - begin))
            checker.same(0, result)
    return walls[1:]


@contextmanager
def pinned(backend: Measurable, *arrays: Limbs) -> Iterator[None]:
    """Arrays that the backend copies from and to at full speed meanwhile."""
    for array in arrays:
        backend.register(array.data.cast("B"))
    try:
        yield
    finally:
        for array in arrays:
            backend.unregister(array.data.cast("B"))


# --- inputs ---------------------------------------------------------------------------------------------------------


def rotation(case: Case) -> int:
    """How many input sets a case rotates among: two at least, so that no sample follows one on the same memory."""
    nbytes = case.n * 32 * (len(by_name(case.op).operands) + 1)
    return max(2, min(ROTATION_SETS, ROTATION_BYTES // nbytes))


def request_of(case: Case, seed: int) -> Request:
    """A request whose operands are uniform below the modulus, or drawn from the case's structured inputs (exponents:
    uniform integers of full width)."""
    return batch_of(case, seed)[0]


def batch_of(case: Case, seed: int) -> tuple[Request, Limbs]:
    """request_of(), and the payload that its arrays are views of."""
    if case.curve:
        return bench_multiplications.batch(by_name(case.op), case.call, case.inputs, seed)
    request, payload = blank(case)
    generator = np.random.Generator(np.random.Philox(seed))
    for name, array in request.arrays.items():
        if name != "e" and case.inputs in STRUCTURED:
            values = from_ints(STRUCTURED[case.inputs](case.value), array.shape[1])
            array[:] = values[generator.integers(0, len(values), size=len(array))]
        else:
            array[:] = generator.integers(0, 1 << 32, size=array.shape, dtype=np.uint32)
            if name != "e":
                below(array, case.value, generator)
    return request, payload


def blank(case: Case) -> tuple[Request, Limbs]:
    """A request whose operands are zeros, and the payload that its arrays are views of."""
    op, call = by_name(case.op), case.call
    payload = np.zeros((op.payload_bytes(call) or 0) // 4, dtype="<u4")
    if op.modulus_in_payload and call.field is None:
        payload[:8] = np.frombuffer(case.value.to_bytes(32, "little"), "<u4")
    return op.decode(call, payload.data.cast("B")), payload


def zero_rows(result: Limbs) -> int:
    """Elements whose result is 0."""
    return int((~result.any(axis=1)).sum())


def empty_result(request: Request) -> Limbs:
    count = request.op.result_count(Call(request.n, request.param, request.field))
    return np.empty((count, request.element_bytes // 4), dtype="<u4")


def below(array: Limbs, modulus: int, generator: np.random.Generator) -> None:
    """Makes uniform integers smaller than the modulus: whole limbs above it are cleared, the bits of its top limb
    masked, and where the top limb is still too large it is drawn again, below the modulus's."""
    top = (modulus.bit_length() - 1) // 32
    array[:, top + 1 :] = 0
    limb = modulus >> (32 * top)
    array[:, top] &= np.uint32((1 << limb.bit_length()) - 1)
    high = array[:, top] >= limb
    array[high, top] = generator.integers(0, max(limb, 1), size=int(high.sum()), dtype=np.uint32)


# --- checking -------------------------------------------------------------------------------------------------------


class Checker:
    """Judges the results of every sample: the first of each input set by the reference, later ones by the first, whole.

    compared: results that were compared with the reference so far. right: the judged results of each set.
    """

    def __init__(
        self,
        requests: Sequence[Request],
        results: Sequence[Limbs],
        reference: Reference | None = None,
        rows: int = CHECKED,
    ) -> None:
        """rows: how many results of a set the reference judges."""
        self._requests = requests
        self._results = results
        self._reference = reference
        self._rows = rows
        self.right: dict[int, Limbs] = {}
        self.compared = 0

    def check(self, reached: Sequence[int]) -> None:
        """The results of these sets, as they lie in their arrays. Raises WrongResult."""
        for chosen in reached:
            self.same(chosen, self._results[chosen])

    def same(self, chosen: int, result: Limbs) -> None:
        """A result of one set. Raises WrongResult."""
        if chosen not in self.right:
            self.compared += check(self._requests[chosen], result, self._reference, self._rows)
            self.right[chosen] = result.copy()
        elif not np.array_equal(result.view("<u8"), self.right[chosen].view("<u8")):
            bad = int(np.flatnonzero((result != self.right[chosen]).any(axis=1))[0])
            raise WrongResult(f"{_told(self._requests[chosen])}: index {bad} differs from what it was before")


def check(request: Request, result: Limbs, reference: Reference | None = None, most: int = CHECKED) -> int:
    """Compares results, at most so many, with the reference (default: the op's own); returns how many were compared.
    Raises WrongResult."""
    if not request.op.elementwise:
        return _check_whole(request, result, most)
    rows = _rows(request.n, most)
    arrays = {name: np.ascontiguousarray(array[rows]) for name, array in request.arrays.items()}
    part = dataclasses.replace(request, n=len(rows), arrays=arrays)
    expected = np.empty((len(rows), result.shape[1]), dtype="<u4")
    (reference or part.op.reference)(part, expected.data.cast("B"))
    bad = np.flatnonzero((result[rows] != expected).any(axis=1))
    if len(bad):
        raise WrongResult(f"{_told(request)}: wrong at index {rows[bad[0]]} of {request.n}")
    return len(rows)


def _check_whole(request: Request, result: Limbs, most: int) -> int:
    """Whole transforms where one is no longer than `most`, else a few results by the definition; every sum of multiples."""
    if isinstance(request.op, Msm):
        bad, compared = bench_multiplications.wrong(request, result)
    else:
        bad, compared = transforms.wrong(request, result, most)
    if bad is not None:
        raise WrongResult(f"{_told(request)}: wrong at index {bad} of {request.n}")
    return compared


def _told(request: Request) -> str:
    return f"{request.op.name} mod {request.modulus:#x}"


def _rows(n: int, most: int) -> list[int]:
    """All of n rows, or as many as allowed: a few at both ends and a random choice."""
    if n <= most:
        return list(range(n))
    end = min(1024, most // 4)
    chosen = random.Random(n).sample(range(n), most - 2 * end)
    return sorted({*range(end), *range(n - end, n), *chosen})
