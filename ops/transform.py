"""What ntt and quotient have in common: the domain, the twiddle tables, and a transform as a list of passes.

kernels/algo/ntt.cuh explains the passes and the words used here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum, IntFlag
from functools import cache

from limbd.ops.base import (
    FIRST_BAD,
    FIRST_BAD_BYTES,
    LIMB_BYTES,
    Buffer,
    Kernel,
    Launch,
    LaunchPlan,
    Member,
    Place,
    Struct,
    Table,
    Unit,
)
from limbd.ops.constants import LIMB_BITS
from limbd.ops.params.base import Field
from limbd.ops.params.fields import registered
from limbd.ops.params.render import render, struct_name
from limbd.ops.status import RequestError, Status
from limbd.ops.tuning import TransformRow

# Elements in device memory, and on the wire: fields of up to 256 bits (kernels/algo/ntt.cuh: WORDS).
ELEMENT_BYTES = 32

# No registered field is larger; a thread's index inside a transform has 32 bits.
MAX_LOG_N = 30

# What the last pass's addresses know (kernels/algo/ntt.cuh: output_index).
MAX_PASSES = 4

# Twiddles that a thread of the builder makes.
CHUNK = 16
BUILD_BLOCK = 256

# A block of at least a warp, one butterfly a thread.
NARROW = 6

# The largest digit of a self-test's passes: short, so that short transforms have several.
PROOF_TILE = 5

# Of a plan whose first passes check their elements.
CHECKED = Buffer("bad", FIRST_BAD, FIRST_BAD_BYTES)


class Flag(IntFlag):
    """Of a pass (kernels/algo/ntt.cuh has the same numbers)."""

    INVERSE = 1
    REVERSED_LOAD = 2
    REVERSED_STORE = 4
    CHECK = 8
    SCALE_LOAD = 16
    SCALE_STORE = 32


class Order(IntEnum):
    """Bits 10-11 of ntt's param: natural or bit-reversed, in and out."""

    NN = 0
    NR = 1
    RN = 2
    RR = 3

    @property
    def reversed_in(self) -> bool:
        return bool(self & 2)

    @property
    def reversed_out(self) -> bool:
        return bool(self & 1)


# --- the domain -----------------------------------------------------------------------------------------------------


def field_of(op: str, modulus: int, *, toys: bool) -> Field:
    """The registered field with this modulus in which transforms can be asked; toys: toy fields too. Raises
    RequestError(BAD_MODULUS)."""
    for field in registered():
        if field.modulus == modulus and transforms(field) and (toys or not field.toy):
            return field
    raise RequestError(
        Status.BAD_MODULUS,
        f"{op}: {modulus:#x} is not the modulus of a field with transforms",
        hint="`limbd info` lists the fields; one with a generator is needed",
    )


def transforms(field: Field) -> bool:
    """Whether transforms can be asked in this field."""
    return field.generator is not None and field.element_bytes == ELEMENT_BYTES


def default_omega(op: str, field: Field, k: int) -> int:
    """Raises RequestError(BAD_DOMAIN) above the two-adicity."""
    if k > min(field.two_adicity, MAX_LOG_N):
        raise RequestError(
            Status.BAD_DOMAIN,
            f"{op}: {field.name} has no root of unity of order 2^{k}: 2^{field.two_adicity} is the most",
        )
    return field.omega(k)


def check_own(op: str, field: Field, k: int, omega: int, shift: int) -> None:
    """Of a domain that the caller gives: range first, then the order of omega."""
    if omega >= field.modulus or not 0 < shift < field.modulus:
        raise RequestError(Status.BAD_ELEMENT, f"{op}: omega has to be below m, and shift in 1..m-1")
    if k > min(field.two_adicity, MAX_LOG_N) or not has_order(omega, k, field.modulus):
        raise RequestError(Status.BAD_DOMAIN, f"{op}: omega does not have the order 2^{k} exactly")


def has_order(omega: int, k: int, modulus: int) -> bool:
    """Whether 2^k is the least power that makes omega 1; k = 0: omega is 1. The modulus is prime."""
    return omega == 1 if k == 0 else pow(omega, 1 << (k - 1), modulus) == modulus - 1


# --- kernels --------------------------------------------------------------------------------------------------------


def is_lazy(field: Field) -> bool:
    """Which of kernels/field/transform.cuh's two forms a field takes."""
    return field.bits <= LIMB_BITS * field.montgomery_limbs - 2


def twiddle_limbs(field: Field) -> int:
    return field.montgomery_limbs * (2 if is_lazy(field) else 1)


@cache
def pass_unit(field: Field, row: TransformRow, *, combines: bool = False) -> Unit:
    """combines: of a last pass that stores first second - value."""
    entry = "quotient" if combines else "ntt"
    struct = Struct(
        f"{entry}_pass_args",
        (
            *(Member(name, "in") for name in ("x", *(("first", "second") if combines else ()))),
            Member("out", "out"),
            *(Member(name, "table") for name in ("table", "scale")),
            Member("bad", "scratch"),
            Member("transforms", "u64"),
            Member("offset", "u64"),
            *(Member(name, "u32") for name in _WORDS),
            Member("n0inv", "u32"),
            Member("modulus", "limbs", field.montgomery_limbs),
            Member("roots", "limbs", 3 * twiddle_limbs(field)),
        ),
    )
    constants = (("LOG_RADIX", row.log_radix), ("THREADS", row.threads), ("RESIDENT", row.resident))
    return Unit(entry, (struct,), constants, _params(field))


_WORDS = ("log_n", "done", "local", "columns", "first_digit", "third_digit", "flags", "steps", "scale_mask")


@cache
def table_unit(field: Field) -> Unit:
    limbs = field.montgomery_limbs
    struct = Struct(
        "ntt_table_args",
        (
            Member("table", "out"),
            Member("n", "u64"),
            Member("n0inv", "u32"),
            Member("modulus", "limbs", limbs),
            Member("start", "limbs", limbs),
            Member("powers", "limbs", MAX_LOG_N * limbs),
        ),
    )
    return Unit("ntt_table", (struct,), (("CHUNK", CHUNK),), _params(field))


def _params(field: Field) -> str:
    return f"{render(field)}\nusing PARAMS = {struct_name(field)};\n"


# --- tables ---------------------------------------------------------------------------------------------------------


def power_table(name: str, field: Field, base: int, n: int, start: int = 1) -> Table:
    """The twiddles of start base^e mod m for e = 0..n-1."""
    values = {
        "n": n,
        "n0inv": field.n0inv,
        "modulus": field.modulus,
        "start": field.montgomery(start),
        "powers": _joined(_squares(field, base), field.montgomery_limbs),
    }
    unit = table_unit(field)
    threads = -(-n // CHUNK)
    kernel = Kernel(unit, "ntt_table", unit.structs[0], BUILD_BLOCK)
    block = min(BUILD_BLOCK, -(-threads // 32) * 32)
    build = Launch(kernel, -(-threads // block), block, values, pointers={"table": name})
    key = f"powers {field.modulus:x} {base:x} {start:x} {n}"
    return Table(name, key, n * twiddle_limbs(field) * LIMB_BYTES, build)


@cache
def _squares(field: Field, base: int) -> tuple[int, ...]:
    """base^(2^i) in Montgomery form."""
    powers = [base % field.modulus]
    while len(powers) < MAX_LOG_N:
        powers.append(powers[-1] ** 2 % field.modulus)
    return tuple(field.montgomery(power) for power in powers)


def _twiddle(field: Field, w: int) -> int:
    """The twiddle of w as one integer."""
    limbs, form = field.montgomery_limbs, field.montgomery(w)
    if not is_lazy(field):
        return form
    return _joined(((w << LIMB_BITS * limbs // 2) % field.modulus, form), limbs)


def _joined(values: Sequence[int], limbs: int) -> int:
    return sum(value << LIMB_BITS * limbs * i for i, value in enumerate(values))


# --- a transform ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Scale:
    """Factors of the elements by natural index: the table's, index & mask."""

    table: Table
    mask: int


@dataclass(frozen=True)
class Transform:
    """`count` transforms of 2^k elements side by side. omega: the root of the FORWARD transform, its table is `table`.

    before, after: factors on the way in and out. check: elements are checked on the way in. combine: where two factors are,
    laid out as the output is, which becomes their product minus the transform.
    """

    field: Field
    k: int
    omega: int
    count: int
    row: TransformRow
    order: Order
    inverse: bool = False
    before: Scale | None = None
    after: Scale | None = None
    check: bool = False
    combine: tuple[Place, Place] | None = None

    def tables(self) -> tuple[Table, ...]:
        scales = (scale.table for scale in (self.before, self.after) if scale)
        digits = self.digits()
        return (*(self._table(sum(digits[:i])) for i in range(len(digits))), *scales)

    def _table(self, done: int) -> Table:
        """Twiddles of a pass before which `done` bits are done: a table of its own, so that they lie close together."""
        root = pow(self.omega, 1 << done, self.field.modulus)
        return power_table(f"table {done}", self.field, root, 1 << (self.k - done))

    def pass_count(self) -> int:
        return len(self.digits())

    def digits(self) -> tuple[int, ...]:
        """Bits of each pass's digit, near-equal, none above what a block holds; k = 0 is one pass that changes nothing."""
        return near_equal(self.k, max(1, -(-self.k // self.row.tile)))

    def passes(self, buffers: Sequence[Place], *, offset: int = 0) -> tuple[Launch, ...]:
        """The launches. buffers: where the elements are before the first pass and after each one: one more than passes.
        The first pass may store where it loads in natural order, the last one may not, unless it is the only one."""
        count = self.pass_count()
        if len(buffers) != count + 1:
            raise ValueError(f"{count} passes, {len(buffers)} buffers")
        return tuple(self.one_pass(i, buffers[i], buffers[i + 1], offset=offset) for i in range(count))

    def one_pass(self, i: int, source: Place, target: Place, *, offset: int = 0) -> Launch:
        """The launch of pass i."""
        digits = self.digits()
        if len(digits) > MAX_PASSES:
            raise ValueError(f"{len(digits)} passes, the kernel's addresses know {MAX_PASSES}: {self.row}")
        local, done = digits[i], sum(digits[:i])
        first, last = i == 0, i == len(digits) - 1
        columns = max(0, self._tile() - local)
        room = digits[0] if last and not first else self.k - done - local
        if len(digits) > 1 and columns > room:
            raise ValueError(f"{self.row}: 2^{columns} columns do not fit the digits {digits}: the tile is too small")
        scale = self.before if first else None
        scale = self.after if last and scale is None else scale
        flags = self._flags(first=first, last=last)
        values = {
            "transforms": self.count,
            "offset": offset,
            "log_n": self.k,
            "done": done,
            "local": local,
            "columns": columns,
            "first_digit": digits[0],
            "third_digit": digits[2] if i == 3 else 0,
            "flags": int(flags),
            "steps": _packed(near_equal(local, -(-local // self.row.log_radix))),
            "scale_mask": scale.mask if scale else 0,
            "n0inv": self.field.n0inv,
            "modulus": self.field.modulus,
            "roots": self._roots(),
        }
        pointers: dict[str, Place | None] = {"x": source, "out": target, "table": f"table {done}"}
        combine = self.combine if last else None
        if combine:
            pointers |= {"first": combine[0], "second": combine[1]}
        pointers["scale"] = scale.table.name if scale else None
        pointers["bad"] = CHECKED.name if flags & Flag.CHECK else None
        unit = pass_unit(self.field, self.row, combines=combine is not None)
        tile = 1 << (local + columns)
        block = max(1, tile >> self.row.log_radix)
        kernel = Kernel(unit, f"{unit.entry}_pass", unit.structs[0], self.row.threads, synchronises=True)
        grid = -(-(self.count << self.k) // tile)
        return Launch(kernel, grid, block, values, shared_bytes(self.field, self.row), pointers)

    def _tile(self) -> int:
        """Bits of a block's elements."""
        return max(self.row.tile if self.row.wide else NARROW, max(self.digits()), self.row.log_radix)

    def _flags(self, *, first: bool, last: bool) -> Flag:
        flags = Flag.INVERSE if self.inverse else Flag(0)
        if first:
            flags |= Flag.REVERSED_LOAD if self.order.reversed_in else Flag(0)
            flags |= Flag.CHECK if self.check else Flag(0)
            flags |= Flag.SCALE_LOAD if self.before else Flag(0)
        if last:
            flags |= Flag.REVERSED_STORE if self.order.reversed_out else Flag(0)
            flags |= Flag.SCALE_STORE if self.after else Flag(0)
        return flags

    def _roots(self) -> int:
        """rho, rho^2, rho^3 for rho of order 8, as far as the transform has it; of the inverse's root where it is one."""
        m = self.field.modulus
        root = pow(self.omega, -1, m) if self.inverse else self.omega
        rho = pow(root, 1 << (self.k - 3), m) if self.k >= 3 else None
        if rho is None:
            # Of the order 2^k below 8: rho^2 has order 4, and is all that a transform of 4 takes.
            square = root if self.k == 2 else 1
            powers: tuple[int, ...] = (1, square, 1)
        else:
            powers = (rho, rho**2 % m, rho**3 % m)
        return _joined([_twiddle(self.field, w) for w in powers], twiddle_limbs(self.field))


def shared_bytes(field: Field, row: TransformRow) -> int:
    """kernels/algo/ntt.cuh: a plane a limb of the block's elements."""
    return (row.threads << row.log_radix) * field.montgomery_limbs * LIMB_BYTES


def row_of(plan: LaunchPlan) -> TransformRow:
    """The tuning row that a plan's passes are made by, as far as their kernels tell."""
    kernel = next(
        launch.kernel for piece in plan.pieces for launch in piece.launches if launch.kernel.name == "ntt_pass"
    )
    constants = dict(kernel.unit.constants)
    return TransformRow(
        None, constants["LOG_RADIX"], PROOF_TILE, True, constants["THREADS"], constants["RESIDENT"], "of the plan"
    )


def near_equal(bits: int, parts: int) -> tuple[int, ...]:
    """`bits` as a sum of `parts` numbers that differ by one at the most, the larger ones first."""
    if parts == 0:
        return ()
    least, more = divmod(bits, parts)
    return (least + 1,) * more + (least,) * (parts - more)


def _packed(steps: Sequence[int]) -> int:
    """Two bits a step, the first one lowest."""
    return sum(step << 2 * i for i, step in enumerate(steps))


def constant_scale(field: Field, value: int) -> Scale:
    return Scale(power_table("scale", field, 1, 1, value), 0)


def coset_scale(field: Field, k: int, base: int, start: int = 1, *, name: str = "scale") -> Scale:
    """start base^i for the element of natural index i."""
    return Scale(power_table(name, field, base, 1 << k, start), (1 << k) - 1)
