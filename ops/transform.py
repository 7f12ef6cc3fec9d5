"""What ntt and quotient have in common: a transform as a list of passes, and the table of its factors.

kernels/algo/ntt.cuh explains the passes and the words used here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache

from limbd.ops.base import (
    FIRST_BAD,
    FIRST_BAD_BYTES,
    LIMB_BYTES,
    Buffer,
    Kernel,
    Launch,
    Member,
    Part,
    Place,
    Struct,
    Table,
    Unit,
)
from limbd.ops.constant_product import Constants, roomy
from limbd.ops.domain import ELEMENT_BYTES
from limbd.ops.params.base import Field
from limbd.ops.params.render import render, struct_name
from limbd.ops.transform_shape import Flag, Level, Order, Pass, Shape
from limbd.ops.tuning import TransformRow

# Threads of a table's builders, each of which makes one entry.
BUILD_BLOCK = 128

# Bytes that a thread moves at once.
QUAD_BYTES = 16

# Of a plan whose first passes check their elements.
CHECKED = Buffer("bad", FIRST_BAD, FIRST_BAD_BYTES)


# --- kernels --------------------------------------------------------------------------------------------------------


@cache
def pass_unit(field: Field, row: TransformRow, *, coset: bool = False, combines: bool = False) -> Unit:
    """coset: with factors before the first level or after the last. combines: of a last pass that combines what it stores with
    two factors."""
    entry = "quotient" if combines else "ntt"
    constants = [("LOG_E", row.log_e), ("THREADS", row.threads), ("RESIDENT", row.resident)]
    constants += [] if combines else [("COSET", int(coset))]
    struct = _pass_struct(f"{entry}_pass_args", field, coset=coset, combines=combines)
    return Unit(entry, (struct,), tuple(constants), params_text(roomy(field)))


@cache
def compiled_unit(field: Field, row: TransformRow, bits: int, flags: Flag) -> Unit:
    """A pass with its shape compiled in (kernels/algo/ntt_compiled.cuh)."""
    coset, combines = bool(flags & (Flag.BEFORE | Flag.AFTER)), bool(flags & Flag.COMBINES)
    constants = (("BITS", bits), ("LOG_TILE", row.log_tile), ("FLAGS", int(flags)))
    launch_bounds = (("THREADS", row.threads), ("RESIDENT", row.resident))
    struct = _pass_struct("ntt_compiled_args", field, coset=coset, combines=combines)
    return Unit("ntt_compiled", (struct,), (*constants, *launch_bounds), params_text(roomy(field)))


def compiles(field: Field) -> bool:
    """Whether passes can have their shape compiled in: eight limbs, as in device memory, hold lazy values."""
    return roomy(field).montgomery_limbs * LIMB_BYTES == ELEMENT_BYTES


def _pass_struct(name: str, field: Field, *, coset: bool, combines: bool) -> Struct:
    roomier = roomy(field)
    root_words = Constants(roomier).root_words
    members = [Member("in", "in"), Member("out", "out"), Member("table", "table"), Member("bad", "scratch")]
    members += [Member("first", "in"), Member("second", "in")] if combines else []
    members += [Member("columns", "u64"), Member("offset", "u64")]
    members += [Member(word, "u32") for word in _WORDS]
    members.append(Member("roots", "limbs", 3 * root_words))
    members += [Member("factors", "limbs", 8 * root_words)] if coset else []
    members += [Member("n0inv", "u32"), Member("modulus", "limbs", roomier.montgomery_limbs)] if combines else []
    return Struct(name, tuple(members))


_WORDS = ("log_n", "bits", "log_stride", "log_span", "log_tile", "log_group", "log_first", "flags")


@cache
def table_unit(field: Field) -> Unit:
    roomier = roomy(field)
    limbs = roomier.montgomery_limbs
    powers = (
        Member("out", "out"),
        Member("n", "u64"),
        *(Member(name, "u32") for name in ("split", "bits")),
        Member("base", "limbs", limbs),
    )
    table = (
        *(Member(name, "in") for name in ("omegas", "shifts")),
        Member("out", "out"),
        *(Member(name, "u64") for name in ("n", "before", "after")),
        *(Member(name, "u32") for name in ("log_n", "rho", "b", "log_span", "log_group", "split")),
        *(Member(name, "u32") for name in ("mirrored", "shifted", "scaled")),
        Member("scale", "limbs", limbs),
    )
    return Unit(
        "ntt_table", (Struct("ntt_powers_args", powers), Struct("ntt_table_args", table)), (), params_text(roomier)
    )


def params_text(field: Field) -> str:
    """Of a unit for one field."""
    return f"{render(field)}\nusing FIELD = {struct_name(field)};\n"


def shared_bytes(field: Field, log_tile: int) -> int:
    """kernels/algo/ntt.cuh: planes of 16 bytes an element of the tile, spread."""
    index = (1 << log_tile) - 1
    spread = index + (index >> 3) + (index >> 6) + (index >> 9)
    return (spread + 1) * QUAD_BYTES * -(-roomy(field).montgomery_limbs * LIMB_BYTES // QUAD_BYTES)


# --- tables ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Factors:
    """What the factors of a transform's levels depend on besides its shape. root: of the transform, or its inverse's. before,
    after: element i is multiplied by before^i on the way in, or by after^i on the way out. scale: with the first level's."""

    field: Field
    root: int
    before: int
    after: int
    scale: int


@lru_cache(maxsize=64)
def factor_table(name: str, shape: Shape, factors: Factors) -> Table | None:
    """The factors of all levels in the order of use; None where no level has any."""
    limbs = roomy(factors.field).montgomery_limbs
    nbytes = shape.entries() * 2 * limbs * LIMB_BYTES
    if nbytes == 0:
        return None
    split = -(-shape.k // 2)
    power_bytes = -(-limbs * LIMB_BYTES // QUAD_BYTES) * QUAD_BYTES
    workspace = tuple(Buffer(which, "scratch", (2 << split) * power_bytes) for which in ("omegas", "shifts"))
    bases = (factors.root, factors.before if factors.before != 1 else factors.after)
    builds = [
        powers_launch(factors.field, which.name, base, shape.k) for which, base in zip(workspace, bases, strict=True)
    ]
    builds += [_level(name, shape, factors, each, level) for each in shape.passes() for level in each.levels]
    # The field and the kernels' arguments are all that contents depend on.
    numbers = (factors.field.modulus, *(value for build in builds for value in build.values.values()))
    key = " ".join(f"{number:x}" for number in numbers)
    return Table(name, f"ntt {key}", nbytes, tuple(builds), workspace)


def powers_launch(field: Field, name: str, base: int, k: int) -> Launch:
    """Of a table's builds: base^i for i < 2^split, then base^(i 2^split)."""
    unit, split = table_unit(field), -(-k // 2)
    values = {"n": 2 << split, "split": split, "bits": k + 1, "base": roomy(field).montgomery(base)}
    kernel = Kernel(unit, "ntt_powers", unit.structs[0], BUILD_BLOCK)
    return Launch(kernel, build_grid(2 << split), BUILD_BLOCK, values, pointers={"out": name})


def _level(name: str, shape: Shape, factors: Factors, each: Pass, level: Level) -> Launch:
    unit, field = table_unit(factors.field), roomy(factors.field)
    values = {
        "n": level.entries,
        "before": int(factors.before != 1),
        "after": 1 << level.done if factors.after != 1 else 0,
        "log_n": shape.k,
        "rho": level.rho,
        "b": level.b,
        "log_span": each.log_span,
        "log_group": each.log_group,
        "split": -(-shape.k // 2),
        "mirrored": int(shape.mirrored),
        "shifted": int(factors.after != 1 or (factors.before != 1 and level.full)),
        "scaled": int(level.full),
        "scale": field.montgomery(factors.scale if level.full else 1),
    }
    kernel = Kernel(unit, "ntt_table", unit.structs[1], BUILD_BLOCK)
    place = Part(name, (each.at + level.at) * 2 * field.montgomery_limbs * LIMB_BYTES)
    return Launch(kernel, build_grid(level.entries), BUILD_BLOCK, values, pointers={"out": place})


def build_grid(threads: int) -> int:
    """Blocks of BUILD_BLOCK."""
    return -(-threads // BUILD_BLOCK)


# --- a transform ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Transform:
    """`count` transforms of 2^k elements side by side. omega: the root of the FORWARD transform.

    before: element i is multiplied by before^i on the way in. after, scale: by scale after^i on the way out; before or after is
    1. check: elements are checked on the way in. combine: where two factors are, laid out as the output is: what the last pass
    stores is (first second / R - transform) / R (kernels/algo/ntt.cuh: combine; order NN or RN, after is 1). table: the name of
    its table in a plan.
    """

    field: Field
    k: int
    omega: int
    count: int
    row: TransformRow
    order: Order
    inverse: bool = False
    before: int = 1
    after: int = 1
    scale: int = 1
    check: bool = False
    combine: tuple[Place, Place] | None = None
    table: str = "table"

    def __post_init__(self) -> None:
        if self.before != 1 and (self.after != 1 or self.scale != 1):
            raise ValueError("a transform has factors before it or after it")
        if self.combine and (self.order.reversed_out or self.coset):
            raise ValueError("a pass that combines stores natural order and has no factors")

    @property
    def coset(self) -> bool:
        """Whether there are powers before or after; a single element's are 1."""
        return self.k > 0 and (self.before != 1 or self.after != 1)

    @cached_property
    def shape(self) -> Shape:
        unscaled = Shape(self.k, self.order, self.row, False)
        if not self.coset:
            return Shape(self.k, self.order, self.row, self.scale != 1)
        # The powers of the first level's own digits are the kernel's arguments, and so is all that comes after the last.
        return Shape(self.k, self.order, self.row, self.before != 1 and self.k > unscaled.first_level())

    @cached_property
    def root(self) -> int:
        return pow(self.omega, -1, self.field.modulus) if self.inverse else self.omega

    def tables(self) -> tuple[Table, ...]:
        return (self._table,) if self._table else ()

    @cached_property
    def _table(self) -> Table | None:
        before, after = (self.before, self.after) if self.coset else (1, 1)
        scale = self.scale if self.shape.scaled else 1
        return factor_table(self.table, self.shape, Factors(self.field, self.root, before, after, scale))

    def pass_count(self) -> int:
        return len(self.row.digits(self.k))

    @property
    def stays(self) -> bool:
        """Whether the last pass may store where it loads, as all others may."""
        return self.pass_count() == 1 or self.order in (Order.NR, Order.RN)

    def passes(self, buffers: Sequence[Place], *, offset: int = 0) -> tuple[Launch, ...]:
        """The launches. buffers: where the elements are before the first pass and after each one: one more than passes.
        offset: of the first element among the request's."""
        count = self.pass_count()
        if len(buffers) != count + 1:
            raise ValueError(f"{count} passes, {len(buffers)} buffers")
        return tuple(self.one_pass(i, buffers[i], buffers[i + 1], offset=offset) for i in range(count))

    def one_pass(self, i: int, source: Place, target: Place, *, offset: int = 0) -> Launch:
        """The launch of pass i."""
        shape = self.shape
        each, last = shape.passes()[i], i == self.pass_count() - 1
        combine = self.combine if last else None
        flags = each.flags | self._own_flags(first=i == 0, last=last)
        unit = self._unit(i, flags)
        kernel = Kernel(unit, f"{unit.entry}_pass", unit.structs[0], self.row.threads, synchronises=True)
        columns = self.count << (self.k - each.bits)
        values = {
            "columns": columns,
            "offset": offset,
            "log_n": self.k,
            "bits": each.bits,
            "log_stride": each.log_stride,
            "log_span": each.log_span,
            "log_tile": shape.log_tile,
            "log_group": each.log_group,
            "log_first": each.log_first,
            "flags": int(flags),
            "roots": root_constants(self.field, self.k, self.root),
        }
        if any(member.name == "factors" for member in unit.structs[0].members):
            values["factors"] = self._factors()
        table = self._table
        entry_bytes = 2 * roomy(self.field).montgomery_limbs * LIMB_BYTES
        pointers: dict[str, Place | None] = {"in": source, "out": target, "bad": None, "table": None}
        if table and each.levels:
            pointers["table"] = Part(table.name, each.at * entry_bytes)
        if i == 0 and self.check:
            pointers["bad"] = CHECKED.name
        if combine:
            pointers |= {"first": combine[0], "second": combine[1]}
            roomier = roomy(self.field)
            values |= {"n0inv": roomier.n0inv, "modulus": roomier.modulus}
        grid = -(-columns >> (shape.log_tile - each.bits))
        block = 1 << (shape.log_tile - self.row.log_e)
        return Launch(kernel, grid, block, values, shared_bytes(self.field, shape.log_tile), pointers)

    def _unit(self, i: int, flags: Flag) -> Unit:
        """Raises ValueError where a pass cannot have the shape that its flags compile in."""
        each, tile = self.shape.passes()[i], self.row.log_tile
        if i not in self.row.compiled:
            return pass_unit(self.field, self.row, coset=self.coset, combines=bool(flags & Flag.COMBINES))
        whole_tiles = (
            self.shape.log_tile == tile == self.row.log_e + self.row.threads.bit_length() - 1 and self.k >= tile
        )
        shared = flags & Flag.MIRRORED and not flags & Flag.LOAD_ROWS
        group = 0 if shared or flags & Flag.LAST else tile - each.bits
        if not (compiles(self.field) and whole_tiles and self.pass_count() > 1 and each.log_group == group):
            raise ValueError(f"pass {i} of 2^{self.k} in digits {self.shape.digits} has no compiled shape")
        return compiled_unit(self.field, self.row, each.bits, flags)

    def _own_flags(self, *, first: bool, last: bool) -> Flag:
        flags = Flag.CHECKED if first and self.check else Flag(0)
        flags |= Flag.BEFORE if first and self.coset and self.before != 1 else Flag(0)
        flags |= Flag.COMBINES if last and self.combine else Flag(0)
        return flags | (Flag.AFTER if last and self.coset and self.after != 1 else Flag(0))

    def _factors(self) -> int:
        """The eight constants of BEFORE or AFTER: the powers for the digit of the first level, or of the last."""
        shape, m = self.shape, self.field.modulus
        rho = shape.first_level() if self.before != 1 else shape.last_level()
        base = pow(self.before if self.before != 1 else self.after, 1 << (self.k - rho), m)
        return _factors(self.field, base, self.scale, rho)


@lru_cache(maxsize=64)
def _factors(field: Field, base: int, scale: int, rho: int) -> int:
    m = field.modulus
    return Constants(roomy(field)).roots(tuple(pow(base, d, m) * scale % m for d in range(1 << rho)))


@lru_cache(maxsize=64)
def root_constants(field: Field, k: int, root: int) -> int:
    """The three constants of kernels/algo/dft.cuh, as far as a transform of 2^k elements has them: of w8, of order 8."""
    m, half = field.modulus, pow(2, -1, field.modulus)
    constants = Constants(roomy(field))
    if k < 3:
        return constants.root(root if k == 2 else 1)
    w = pow(root, 1 << (k - 3), m)
    cube = pow(w, 3, m)
    return constants.roots((w * w % m, (w + cube) * half % m, (w - cube) * half % m))
