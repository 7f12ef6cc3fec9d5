"""Small transforms with an element a thread: kernels, tables and launches of kernels/algo/ntt_lanes.cuh, where the words used
here are explained."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntFlag
from functools import cache, lru_cache
from itertools import pairwise

from limbd.ops.base import LIMB_BYTES, Buffer, Kernel, Launch, LaunchPlan, Member, Part, Place, Struct, Table, Unit
from limbd.ops.constant_product import SLACK, fits
from limbd.ops.domain import ELEMENT_BYTES
from limbd.ops.params.base import LIMB_BITS, Field
from limbd.ops.transform import BUILD_BLOCK, CHECKED, build_grid, params_text, powers_launch
from limbd.ops.transform_shape import Order
from limbd.ops.tuning import CLUSTER_BLOCKS, LANE_CLUSTERS, LANE_PAIRS, LANE_PASSES, LaneBlock, LaneRow

# Of an element (kernels/algo/ntt_lanes.cuh: WORDS), and of a constant.
LIMBS = ELEMENT_BYTES // LIMB_BYTES
CONSTANT_BYTES = 2 * ELEMENT_BYTES


class Flag(IntFlag):
    """Of a pass (kernels/algo/ntt_lanes.cuh has the same numbers)."""

    REVERSED_IN = 1
    REVERSED_OUT = 2
    FIRST = 4
    LAST = 8
    BEFORE = 16


def serves(field: Field) -> bool:
    """Whether the field has the limbs and the spare bit that the arithmetic wants (kernels/field/dot.cuh; where m or 3 m ends
    in 32 ones, its LOW, the two-adicity is 1 or 2)."""
    top = field.modulus >> LIMB_BITS * (LIMBS - 1)
    return field.montgomery_limbs == LIMBS and top >= 1 << 16 and fits(field, 2, SLACK) and field.two_adicity > 2


# --- levels ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Level:
    """Part of a pass. rho: its bits, 1 or 2. digits: bits of the pass that were to come before it. span: bits below the
    pass. done: bits of the transform before the level. at: where its constants begin in the table."""

    rho: int
    digits: int
    span: int
    done: int
    at: int

    @property
    def constants(self) -> int:
        return self.rho << (self.digits + self.span)


def levels(digits: Sequence[int], *, pairs: bool) -> tuple[tuple[Level, ...], ...]:
    """Of each pass. pairs: all of radix 2 (kernels/algo/ntt_lane_pairs.cuh)."""
    k, done, at, passes = sum(digits), 0, 0, []
    for bits in digits:
        span, left, found = k - done - bits, bits, []
        while left:
            found.append(Level(1 if pairs else 2 - left % 2, left, span, done + bits - left, at))
            at += found[-1].constants * CONSTANT_BYTES
            left -= found[-1].rho
        passes.append(tuple(found))
        done += bits
    return tuple(passes)


# --- kernels --------------------------------------------------------------------------------------------------------

_ARGUMENTS = (Member("bad", "scratch"), Member("offset", "u64"))


@cache
def pass_unit(field: Field, bits: int, *, plain_end: bool) -> Unit:
    """plain_end: kernels/algo/ntt_lanes.cuh, PLAIN_END."""
    block = LANE_PASSES[bits]
    pointers = (Member("in", "in"), Member("out", "out"), Member("table", "table"), Member("before", "table"))
    words = tuple(Member(name, "u32") for name in ("log_n", "span", "total", "flags"))
    constants = (
        *(("BITS", bits), ("AHEAD", block.ahead[0]), ("THREADS", block.threads), ("RESIDENT", block.resident)),
        ("PLAIN_END", int(plain_end)),
    )
    return Unit(
        "ntt_lanes", (Struct("ntt_lanes_args", (*pointers, *_ARGUMENTS, *words)),), constants, params_text(field)
    )


@cache
def pairs_unit(field: Field, bits: int, *, last: bool) -> Unit:
    """last: pass of the transform."""
    block, struct = LANE_PAIRS[bits], pass_unit(field, bits, plain_end=False).structs[0]
    constants = (
        *(("BITS", bits), ("AHEAD", block.ahead[0]), ("THREADS", block.threads), ("RESIDENT", block.resident)),
        ("LAST_PASS", int(last)),
    )
    return Unit("ntt_lane_pairs", (struct,), constants, params_text(field))


@cache
def cluster_unit(field: Field, digits: tuple[int, int], *, plain_end: bool) -> Unit:
    """plain_end: as in pass_unit."""
    block = LANE_CLUSTERS[digits]
    pointers = tuple(Member(name, "table") for name in ("table", "second", "before"))
    words = tuple(Member(name, "u32") for name in ("log_n", "flags"))
    members = (Member("in", "in"), Member("out", "out"), *pointers, *_ARGUMENTS, *words)
    constants = (
        *zip(("FIRST", "SECOND"), digits, strict=True),
        *zip(("AHEAD_FIRST", "AHEAD_SECOND"), block.ahead, strict=True),
        ("THREADS", block.threads),
        ("CLUSTER", CLUSTER_BLOCKS),
        ("PLAIN_END", int(plain_end)),
    )
    return Unit("ntt_lanes_cluster", (Struct("ntt_lanes_cluster_args", members),), constants, params_text(field))


@cache
def table_unit(field: Field) -> Unit:
    words = ("log_n", "log_entries", "log_constants", "digits", "span", "rho", "split", "before", "after", "scaled")
    members = (
        *(Member(name, "in") for name in ("omegas", "shifts")),
        Member("out", "out"),
        *(Member(name, "u32") for name in words),
        Member("scale", "limbs", LIMBS),
    )
    return Unit("ntt_lanes_table", (Struct("ntt_lanes_table_args", members),), (), params_text(field))


def units(field: Field, *, clusters: bool) -> tuple[Unit, ...]:
    ends = (False, True)
    passes = (pass_unit(field, bits, plain_end=end) for bits in LANE_PASSES for end in ends if bits > 1 or not end)
    both = (cluster_unit(field, digits, plain_end=end) for digits in LANE_CLUSTERS if clusters for end in ends)
    pairs = (pairs_unit(field, bits, last=last) for bits in LANE_PAIRS for last in ends)
    return (*passes, *pairs, *both, table_unit(field))


def shared_bytes(block: LaneBlock, *bits: int) -> int:
    """kernels/algo/ntt_lanes.cuh and ntt_lane_pairs.cuh: SHARED. An element a thread for each bit of threads that change
    elements across it, from bit 5 on."""
    return block.threads * ELEMENT_BYTES * max(0, *(each - 6 for each in bits))


# --- tables ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Factors:
    """As limbd.ops.transform.Factors."""

    field: Field
    root: int
    before: int
    after: int
    scale: int


@lru_cache(maxsize=64)
def factor_table(digits: tuple[int, ...], factors: Factors, *, pairs: bool) -> Table:
    """The constants of all levels in the order of use, then those before the transform."""
    k, field, passes = sum(digits), factors.field, levels(digits, pairs=pairs)
    split = -(-k // 2)
    workspace = tuple(Buffer(which, "scratch", (2 << split) * ELEMENT_BYTES) for which in ("omegas", "shifts"))
    bases = (factors.root, factors.before if factors.before != 1 else factors.after)
    builds = [powers_launch(field, which.name, base, k) for which, base in zip(workspace, bases, strict=True)]
    builds += [_level(k, factors, level, first=level is passes[0][0]) for each in passes for level in each]
    nbytes = before_at(digits, pairs=pairs)
    if factors.before != 1:
        builds.append(_build(field, k, nbytes, {"rho": 0, "digits": k, "span": 0, "before": 1}))
        nbytes += CONSTANT_BYTES << k
    numbers = (field.modulus, *(value for build in builds for value in build.values.values()))
    return Table(
        "table", f"ntt lanes {' '.join(f'{number:x}' for number in numbers)}", nbytes, tuple(builds), workspace
    )


def before_at(digits: tuple[int, ...], *, pairs: bool) -> int:
    """Where the factors before the transform begin: after all levels."""
    return sum(level.constants for each in levels(digits, pairs=pairs) for level in each) * CONSTANT_BYTES


def _level(k: int, factors: Factors, level: Level, *, first: bool) -> Launch:
    scaled = first and factors.scale != 1
    values = {
        "rho": level.rho,
        "digits": level.digits,
        "span": level.span,
        "after": 1 << level.done if factors.after != 1 else 0,
        "scaled": int(scaled),
        "scale": factors.field.montgomery(factors.scale if scaled else 1),
    }
    return _build(factors.field, k, level.at, values)


def _build(field: Field, k: int, at: int, values: dict[str, int]) -> Launch:
    unit = table_unit(field)
    log_entries, log_constants = values["digits"] + values["span"], max(0, values["rho"] - 1)
    common = {"log_n": k, "split": -(-k // 2), "log_entries": log_entries, "log_constants": log_constants}
    common |= {"before": 0, "after": 0, "scaled": 0, "scale": 0}
    kernel = Kernel(unit, "ntt_lanes_table", unit.structs[0], BUILD_BLOCK)
    grid = build_grid(1 << (log_entries + log_constants))
    return Launch(kernel, grid, BUILD_BLOCK, common | values, pointers={"out": Part("table", at)})


# --- a transform ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LaneTransform:
    """`count` transforms of 2^k elements side by side, k > 0; the members are those of limbd.ops.transform.Transform. Elements
    are checked on the way in."""

    field: Field
    k: int
    omega: int
    count: int
    row: LaneRow
    order: Order
    inverse: bool = False
    before: int = 1
    after: int = 1
    scale: int = 1

    @property
    def _factor_table(self) -> Table:
        root = pow(self.omega, -1, self.field.modulus) if self.inverse else self.omega
        factors = Factors(self.field, root, self.before, self.after, self.scale)
        return factor_table(self.row.digits, factors, pairs=self._pairs)

    @property
    def _pairs(self) -> bool:
        """Whether threads hold two elements: there is no place for factors after the transform then."""
        return self.row.pairs and self.after == 1 and self.scale == 1

    @property
    def _levels(self) -> tuple[tuple[Level, ...], ...]:
        return levels(self.row.digits, pairs=self._pairs)

    def tables(self) -> tuple[Table, ...]:
        return (self._factor_table,)

    def pass_count(self) -> int:
        """Launches."""
        return 1 if self.row.cluster else len(self.row.digits)

    @property
    def stays(self) -> bool:
        """Whether no buffer is needed between passes."""
        return self.pass_count() == 1

    @property
    def _plain_end(self) -> bool:
        """Whether the last level, one of radix 4, has neither factors after the transform nor, as the first one, a scale."""
        found = [level for each in self._levels for level in each]
        return found[-1].rho == 2 and self.after == 1 and (self.scale == 1 or len(found) > 1)

    def passes(self, buffers: Sequence[Place], *, offset: int = 0) -> tuple[Launch, ...]:
        """The launches. buffers: where the elements are before the first one and after each, all different. offset: of the
        first element among the request's."""
        if self.row.cluster:
            return (self._cluster(buffers[0], buffers[1], offset),)
        return tuple(self._pass(i, *each, offset) for i, each in enumerate(pairwise(buffers)))

    def _pass(self, i: int, source: Place, target: Place, offset: int) -> Launch:
        first, total = self._levels[i][0], self.count << self.k
        last = i + 1 == self.pass_count()
        kernel, block = self._kernel(self.row.digits[i], last=last)
        flags = self._flags(first=i == 0, last=last)
        values = {"log_n": self.k, "span": first.span, "total": total, "flags": int(flags), "offset": offset}
        pointers = {"in": source, "out": target, "table": Part("table", first.at), **self._before(flags)}
        grid = -(-total // (block.threads * (2 if self._pairs else 1)))
        shared = shared_bytes(block, self.row.digits[i])
        return Launch(kernel, grid, block.threads, values, shared, pointers, overlaps=i > 0)

    def _kernel(self, bits: int, *, last: bool) -> tuple[Kernel, LaneBlock]:
        """Of a pass."""
        if self._pairs:
            unit, block, name = pairs_unit(self.field, bits, last=last), LANE_PAIRS[bits], "ntt_lane_pairs_pass"
        else:
            unit = pass_unit(self.field, bits, plain_end=last and self._plain_end)
            block, name = LANE_PASSES[bits], "ntt_lanes_pass"
        return Kernel(unit, name, unit.structs[0], block.threads, synchronises=True), block

    def _cluster(self, source: Place, target: Place, offset: int) -> Launch:
        one, two = self.row.digits
        unit = cluster_unit(self.field, (one, two), plain_end=self._plain_end)
        block = LANE_CLUSTERS[one, two]
        kernel = Kernel(
            unit, "ntt_lanes_cluster", unit.structs[0], block.threads, synchronises=True, cluster=CLUSTER_BLOCKS
        )
        flags = self._flags(first=True, last=True)
        values = {"log_n": self.k, "flags": int(flags), "offset": offset}
        tables = {name: Part("table", each[0].at) for name, each in zip(("table", "second"), self._levels, strict=True)}
        pointers = {"in": source, "out": target, **tables, **self._before(flags)}
        # What the passes use, then an element a thread.
        shared = shared_bytes(block, one, two) + block.threads * ELEMENT_BYTES
        return Launch(kernel, self.count * CLUSTER_BLOCKS, block.threads, values, shared, pointers)

    def _flags(self, *, first: bool, last: bool) -> Flag:
        flags = Flag.FIRST if first else Flag(0)
        flags |= Flag.REVERSED_IN if first and self.order.reversed_in else Flag(0)
        flags |= Flag.BEFORE if first and self.before != 1 else Flag(0)
        flags |= Flag.LAST if last else Flag(0)
        return flags | (Flag.REVERSED_OUT if last and self.order.reversed_out else Flag(0))

    def _before(self, flags: Flag) -> dict[str, Place | None]:
        """Pointers that only a first pass has."""
        before = Part("table", before_at(self.row.digits, pairs=self._pairs)) if Flag.BEFORE in flags else None
        return {"before": before, "bad": CHECKED.name if Flag.FIRST in flags else None}


def row_of(plan: LaunchPlan) -> LaneRow | None:
    """The row of a plan whose transforms have an element a thread; None of others."""
    found: list[int] = []
    pairs = False
    for launch in plan.pieces[0].launches:
        constants = dict(launch.kernel.unit.constants)
        if launch.kernel.name == "ntt_lanes_cluster":
            return LaneRow((constants["FIRST"], constants["SECOND"]), True, "of the plan")
        if launch.kernel.name in ("ntt_lanes_pass", "ntt_lane_pairs_pass"):
            found.append(constants["BITS"])
            pairs = launch.kernel.name == "ntt_lane_pairs_pass"
    return LaneRow(tuple(found), False, "of the plan", pairs) if found else None
