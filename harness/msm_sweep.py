"""Measures multi-scalar multiplications by many tuning rows: what ops/msm_tuning.py is set by.

    python -m limbd.harness.msm_sweep --curve bn254 --group g1 --log 16,20 --out plans/results --seconds 110

leaves one .jsonl file (--precomputed: of points that stay on the device with their multiples by every window): a line a row and n with its raw samples, of all launches by the device's clock, points and scalars
being on the device. Every sample's result is compared with the sum that the points' logarithms give. What is not begun in
time is named, and the same command with --resume goes on there.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from pathlib import Path

import numpy as np

from limbd.harness import bench, machine, report
from limbd.harness.benching import measurable
from limbd.harness.groups import GROUPS
from limbd.harness.multiplications import Multiples
from limbd.ops import by_name as op_by_name
from limbd.ops.base import Call, LaunchPlan, Request, Traits
from limbd.ops.msm import Msm, param_of
from limbd.ops.msm_bases import Bases
from limbd.ops.msm_plan import plan_of
from limbd.ops.msm_shape import SCALAR_BYTES, window_count
from limbd.ops.msm_tuning import MsmRow, bases_row, bases_width, msm_row, with_width
from limbd.ops.params.curves import Curve, GroupName
from limbd.ops.reference.msm import encode_points
from limbd.ops.status import LimbdError
from limbd.worker.config import BACKENDS, Config
from limbd.worker.device.measurement import Measurable

SAMPLES, WARMUP = 10, 2

# Points with logarithms of their own; more are these again. Equal ones meet in about buckets / DISTINCT buckets, each of
# which costs a thread its slow path.
DISTINCT = 1 << 16

# Around the shipped row: windows, the longest slices, and blocks that a multiprocessor holds.
WIDTHS = (-3, -2, -1, 0, 1, 2, 3)
SLICES = (16, 32, 64, 128)
RESIDENT = (2, 3, 4)

SOURCE = "a sweep"


@dataclass(frozen=True)
class Entry:
    """One line of the file. shipped: the row that the op itself takes for this n. precomputed: of points with their multiples."""

    curve: Curve
    group: GroupName
    log: int
    row: MsmRow
    shipped: bool
    precomputed: bool = False

    @property
    def name(self) -> str:
        row = self.row
        work = f"chunk={row.chunk}" if row.chunk else f"slice={row.slice}"
        more = "".join(f" {name}" for name in ("halves", "pairs") if getattr(row, name))
        more += f" low={row.low_bits} segment={1 << row.log_segment}" + " precomputed" * self.precomputed
        return f"{self.curve.name} {self.group} 2^{self.log} c={row.width} {work} resident={row.resident}{more}"


@dataclass(frozen=True)
class Choice:
    """What is varied. chunks: the longest chunks, in place of slices where there are any. segments: log2 of the buckets that the
    reduction's first stage adds up together; none: as shipped. halves, pairs: as of MsmRow, for all rows but the shipped
    one. low_bits: bits of the sort's second pass, 0: one pass; none: as shipped for a width. precomputed: as of Entry."""

    widths: Sequence[int] = WIDTHS
    slices: Sequence[int] = SLICES
    resident: Sequence[int] = RESIDENT
    chunks: Sequence[int] = ()
    segments: Sequence[int] = ()
    halves: bool = False
    pairs: bool = False
    low_bits: int | None = None
    precomputed: bool = False


def entries(curve: Curve, group: GroupName, log: int, traits: Traits, choice: Choice) -> list[Entry]:
    """The shipped row first."""
    own = msm_row(traits.kind, traits.arch, curve, group, 1 << log)
    if choice.precomputed:
        own = bases_row(traits.kind, traits.arch, _bases(curve, group, log, traits), 1 << log)
    rows = {dataclasses.replace(own, source=SOURCE): True}
    lengths, segments = choice.chunks or choice.slices, choice.segments or (own.log_segment,)
    for more, length, resident, log_segment in product(choice.widths, lengths, choice.resident, segments):
        width = own.width + more
        if 2 <= width <= curve.scalar.bits + 1:
            fill = own.fill // own.resident * resident
            made = with_width(width, length, own.merge, log_segment, resident, SOURCE, fill=fill)
            # What is not varied stays the shipped row's.
            low_bits = made.low_bits if choice.low_bits is None else choice.low_bits
            kept = dataclasses.replace(own, width=made.width, low_bits=low_bits, source=SOURCE)
            slice_length, chunk = (kept.slice, length) if choice.chunks else (length, 0)
            kept = dataclasses.replace(kept, log_segment=log_segment)
            tried = dataclasses.replace(kept, slice=slice_length, chunk=chunk, resident=resident, fill=fill)
            rows.setdefault(dataclasses.replace(tried, halves=choice.halves, pairs=choice.pairs), False)
    return [Entry(curve, group, log, row, shipped, choice.precomputed) for row, shipped in rows.items()]


def _bases(curve: Curve, group: GroupName, log: int, traits: Traits, width: int = 0) -> Bases:
    """With multiples by every window of so many bits, the shipped ones if none are named."""
    width = width or bases_width(traits.kind, traits.arch, curve, group, 1 << log)
    return Bases(curve, group, 1 << log, f"a sweep {log}", width, window_count(curve.order, width))


class Inputs:
    """2^log points and scalars of a group, and their sum."""

    def __init__(self, known: Multiples, curve: Curve, group: GroupName, log: int) -> None:
        n, distinct = 1 << log, min(1 << log, len(known.points))
        op, self.call = op_by_name(f"msm-{group}"), Call(n, param_of(curve))
        assert isinstance(op, Msm)
        payload = np.zeros((op.payload_bytes(self.call) or 0) // 4, dtype="<u4")
        self.scalars = payload[: n * SCALAR_BYTES // 4].reshape(n, -1)
        generator = np.random.Generator(np.random.Philox(log))
        self.scalars[:] = generator.integers(0, 1 << 32, size=self.scalars.shape, dtype=np.uint32)
        bench.below(self.scalars, curve.order, generator)
        points = np.frombuffer(encode_points(known.points[:distinct], curve, known.group), "<u4")
        payload[self.scalars.size :].reshape(n // distinct, -1)[:] = points
        self.request: Request = op.decode(self.call, payload.data.cast("B"))
        self._known, self._distinct = known, distinct

    @cached_property
    def expected(self) -> bytes:
        """The sum as the wire carries it: of each distinct point's scalars limb by limb, then of the points."""
        limbs = self.scalars.reshape(-1, self._distinct, self.scalars.shape[1]).sum(axis=0, dtype=np.uint64)
        weights = (sum(int(limb) << 32 * i for i, limb in enumerate(row)) for row in limbs)
        logarithm = sum(w * k for w, k in zip(weights, self._known.logarithms, strict=False))
        return encode_points([self._known.point(logarithm)], self._known.curve, self._known.group)

    def plan(self, entry: Entry, traits: Traits) -> LaunchPlan:
        """In one piece."""
        op = self.request.op
        assert isinstance(op, Msm)
        question = op.question(self.request)
        if entry.precomputed:
            bases = _bases(entry.curve, entry.group, entry.log, traits, entry.row.width)
            question = dataclasses.replace(question, bases=bases)
        return plan_of(question, dataclasses.replace(traits, whole=True), lambda count: entry.row)


def measure(backend: Measurable, inputs: Inputs, entry: Entry, journal: report.Journal) -> bool:
    """Writes a line. False where a result was wrong, or it did not run."""
    plan = inputs.plan(entry, backend.traits())
    result = bytearray(len(inputs.expected))
    samples: list[float] = []
    try:
        with backend.measuring([inputs.request], plan, [memoryview(result)]) as measurement:
            for _ in range(WARMUP + SAMPLES):
                samples.append(measurement.sample())
                measurement.collect()
                if result != inputs.expected:
                    raise bench.WrongResult(f"{entry.name}: not the sum")
            held = measurement.held
    except (bench.WrongResult, LimbdError) as error:
        journal.add(entry.name, ok=False, failure=str(error))
        print(f"{entry.name}: {error}", flush=True)
        return False
    measured = {"samples": samples[WARMUP:], **bench.rates(1 << entry.log, samples[WARMUP:]), "held": held}
    told: report.Record = {"curve": entry.curve.name, "group": entry.group, "n": 1 << entry.log, "metric": "kernel_ms"}
    told |= {"row": dataclasses.asdict(entry.row), "shipped": entry.shipped, "clock": machine.clock(backend)}
    journal.add(
        entry.name, ok=True, **told, **measured, plan=bench.plan_record(backend, plan), **machine.facts(backend)
    )
    print(f"{entry.name:<48} {measured['median']:9.4f} ms{'  shipped' if entry.shipped else ''}", flush=True)
    return True


def sweep(
    backend: Measurable,
    curve: Curve,
    group: GroupName,
    logs: Sequence[int],
    choice: Choice,
    journal: report.Journal,
    end: float,
) -> bool:
    """Everything that the file does not hold yet. True where all of it was reached and right."""
    good, known = True, Multiples(curve, group, "a sweep", min(DISTINCT, 1 << max(logs)))
    for log in logs:
        due = [each for each in entries(curve, group, log, backend.traits(), choice) if each.name not in journal.done]
        good &= all([*_measured(backend, due, Inputs(known, curve, group, log), journal, end)])
    return good


def _measured(
    backend: Measurable, due: Sequence[Entry], inputs: Inputs, journal: report.Journal, end: float
) -> Iterator[bool]:
    for i, entry in enumerate(due):
        if time.monotonic() > end:
            print(f"2^{entry.log}: {len(due) - i} not begun, out of time (--resume goes on here)")
            yield False
            return
        yield measure(backend, inputs, entry, journal)


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status 0: everything was measured and right. 1: something was wrong or not reached."""
    options = _parser().parse_args(arguments)
    end = time.monotonic() + options.seconds
    curve = next(curve for curve, _ in GROUPS if curve.name == options.curve)
    varied = options.widths, options.slices, options.resident, options.chunks, options.segments
    kind = {"low_bits": options.low_bits, "precomputed": options.precomputed}
    choice = Choice(*varied, halves=options.halves, pairs=options.pairs, **kind)
    config = Config(backend=options.backend, devices=(options.device,), cache=options.cache_dir)
    with measurable(config) as backend:
        head = report.run_record("msm-sweep", machine.facts(backend), options.commit)
        path = options.out / f"{options.name or head['date'][:10]}-msm-sweep-{options.curve}-{options.group}.jsonl"
        journal = report.Journal(path, head, resume=options.resume)
        good = sweep(backend, curve, options.group, options.log, choice, journal, end)
    print(f"msm-sweep: {'done' if good else 'NOT all done and right'}: {path}")
    return 0 if good else 1


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(","))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m limbd.harness.msm_sweep", description=__doc__.split("\n")[0])
    parser.add_argument("--curve", choices=sorted({curve.name for curve, _ in GROUPS}), default="bn254")
    parser.add_argument("--group", choices=("g1", "g2"), default="g1", help="%(default)s")
    parser.add_argument("--log", type=_numbers, default=(16, 20), metavar="K[,K]", help="of n (default: 16,20)")
    parser.add_argument("--widths", type=_numbers, default=WIDTHS, metavar="D[,D]", help="added to the shipped width")
    parser.add_argument("--slices", type=_numbers, default=SLICES, metavar="L[,L]", help="longest slices")
    parser.add_argument(
        "--chunks", type=_numbers, default=(), metavar="L[,L]", help="longest chunks, instead of slices"
    )
    parser.add_argument(
        "--segments", type=_numbers, default=(), metavar="S[,S]", help="log2 of the buckets of a segment"
    )
    parser.add_argument("--low-bits", type=int, metavar="B", help="of the sort's second pass; 0: one pass")
    parser.add_argument("--precomputed", action="store_true", help="points that stay, with multiples by every window")
    parser.add_argument("--halves", action="store_true", help="scalars halved by the endomorphism")
    parser.add_argument("--pairs", action="store_true", help="two lanes a chunk, in the extension field")
    parser.add_argument("--resident", type=_numbers, default=RESIDENT, metavar="B[,B]", help="blocks a multiprocessor")
    parser.add_argument("--out", type=Path, default=Path("plans/results"), help="folder of the file (%(default)s)")
    parser.add_argument("--name", help="beginning of the file's name (default: the date)")
    parser.add_argument("--seconds", type=float, default=110.0, help="begin nothing new after this (%(default)s)")
    parser.add_argument("--resume", action="store_true", help="skip what the file already holds")
    parser.add_argument("--commit", help="the commit of this tree, where it has no history")
    parser.add_argument("--backend", choices=[b for b in BACKENDS if b != "null"], default="cuda", help="%(default)s")
    parser.add_argument("--device", type=int, default=0, help="CUDA device (default: %(default)s)")
    parser.add_argument("--cache-dir", type=Path, help="folder of compiled kernels")
    return parser


if __name__ == "__main__":
    sys.exit(main())
