"""The shape of a transform's passes: which bits each takes, in which levels, where elements lie, where factors begin.

kernels/algo/ntt.cuh explains the passes and the words used here.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, IntFlag
from functools import lru_cache

from limbd.ops.tuning import TransformRow

# What the last pass's addresses know (kernels/algo/ntt.cuh: base).
MAX_PASSES = 3


class Flag(IntFlag):
    """Of a pass (kernels/algo/ntt.cuh has the same numbers)."""

    MIRRORED = 1
    LOAD_ROWS = 2
    REVERSED = 4
    TRANSPOSED = 8
    STORE_ROWS = 16
    REVERSED_ROWS = 32
    LAST = 64
    SCALED = 128
    CHECKED = 256
    BEFORE = 512
    AFTER = 1024
    COMBINES = 2048


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


@dataclass(frozen=True)
class Level:
    """Some of a pass's bits, which a thread's registers hold. rho: how many. b: bits of the pass that are still to come.
    done: bits of the transform that are. full: whether there is a factor for digit 0 too. at, entries: where its factors begin
    in the table, and how many."""

    rho: int
    b: int
    done: int
    full: bool
    at: int
    entries: int


@dataclass(frozen=True)
class Pass:
    """The arguments of the same names (kernels/algo/ntt.cuh); at: where its levels' factors begin in the table."""

    bits: int
    log_stride: int
    log_span: int
    log_group: int
    log_first: int
    flags: Flag
    at: int
    levels: tuple[Level, ...]


@dataclass(frozen=True)
class Shape:
    """A transform of 2^k elements by a row of the tuning. scaled: whether the first level's factors have a scale or a coset's
    powers in them, for digit 0 too."""

    k: int
    order: Order
    row: TransformRow
    scaled: bool

    @property
    def digits(self) -> tuple[int, ...]:
        """Bits of each pass; k = 0 is one pass that changes nothing but the scale."""
        return self.row.digits(self.k)

    @property
    def log_tile(self) -> int:
        """Bits of a block's elements."""
        return max(self.row.log_tile, *self.digits)

    @property
    def mirrored(self) -> bool:
        return self.order.reversed_in and self.k > 0

    def first_level(self) -> int:
        """Bits of the first level."""
        return level_bits(self.digits[0], self.row.log_e)[0]

    def last_level(self) -> int:
        return level_bits(self.digits[-1], self.row.log_e)[-1]

    def passes(self) -> tuple[Pass, ...]:
        return _passes(self)

    def entries(self) -> int:
        """Constants in the table."""
        return sum(level.entries for each in self.passes() for level in each.levels)


def level_bits(bits: int, log_e: int) -> tuple[int, ...]:
    """The levels of a pass (kernels/algo/ntt.cuh: next_level). Raises ValueError where a thread of 2^log_e elements has none so
    short."""
    if bits < log_e - 1:
        raise ValueError(f"no level of {bits} bits for threads of 2^{log_e} elements")
    found: list[int] = []
    left = bits
    while left or not found:
        rho = (2 if left in (4, 2) else 3) if log_e == 3 else min(left, log_e)
        found.append(rho)
        left -= rho
    return tuple(found)


@lru_cache(maxsize=1024)
def _passes(shape: Shape) -> tuple[Pass, ...]:
    digits = shape.digits
    if len(digits) > MAX_PASSES or sum(digits) != shape.k:
        raise ValueError(
            f"digits {digits} of 2^{shape.k}: {MAX_PASSES} passes are the most that the kernel's addresses know"
        )
    made: list[Pass] = []
    at = 0
    for p in range(len(digits)):
        made.append(_pass(shape, p, at))
        at += sum(level.entries for level in made[-1].levels)
    return tuple(made)


def _pass(shape: Shape, p: int, at: int) -> Pass:
    digits = shape.digits
    bits, done = digits[p], sum(digits[:p])
    last = p == len(digits) - 1
    log_stride = done if shape.mirrored else shape.k - done - bits
    log_span = shape.k - done - bits
    # Mirrored columns of a stride run along the digits that are done: they share a factor.
    grouped = not shape.mirrored or log_stride == 0
    moved = last and len(digits) == 3 and shape.order is Order.NN
    return Pass(
        bits=bits,
        log_stride=log_stride,
        log_span=log_span,
        log_group=min(shape.log_tile - bits, log_span) if grouped else 0,
        log_first=digits[0] if moved else 0,
        flags=_flags(shape, first=p == 0, last=last),
        at=at,
        levels=_levels(shape, p, log_span, done),
    )


def _flags(shape: Shape, *, first: bool, last: bool) -> Flag:
    flags = Flag.MIRRORED if shape.mirrored else Flag(0)
    if first:
        flags |= Flag.LOAD_ROWS if shape.mirrored else Flag(0)
        flags |= Flag.SCALED if shape.scaled else Flag(0)
    if last:
        flags |= Flag.LAST | (_STORES[shape.order] if shape.k else Flag(0))
    elif shape.order is Order.NR:
        flags |= Flag.REVERSED
    return flags


# Of the last pass.
_STORES = {
    Order.NN: Flag.TRANSPOSED,
    Order.NR: Flag.STORE_ROWS,
    Order.RN: Flag(0),
    Order.RR: Flag.STORE_ROWS | Flag.REVERSED_ROWS,
}


def _levels(shape: Shape, p: int, log_span: int, done: int) -> tuple[Level, ...]:
    """Those that have factors: all but the very last, unless it is the first one and scaled."""
    bits = shape.digits[p]
    found: list[Level] = []
    left, at = bits, 0
    for i, rho in enumerate(level_bits(bits, shape.row.log_e)):
        b, full = left - rho, p == 0 and i == 0 and shape.scaled
        if b > 0 or p < len(shape.digits) - 1 or full:
            entries = ((1 << rho) - (not full)) << (b + log_span)
            found.append(Level(rho, b, done + bits - left, full, at, entries))
            at += entries
        left = b
    return tuple(found)
