"""What an op is, and the data that crosses from the wire to a kernel.

Everything here is plain data or a pure function of it: no I/O, no clock, no device. An op turns a frame's header and
payload into a Request (views, no pass over the elements), and a Request into a LaunchPlan, which a backend carries out
without knowing the algorithm.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt

from limbd.ops.params.base import Field
from limbd.ops.status import RequestError, Status

Limbs = npt.NDArray[np.uint32]

LIMB_BYTES = 4

# Each edge of worker/device/self_test.py twice.
PROOF_ELEMENTS = 16


# --- asking ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Call:
    """What a frame's header says, whatever its version.

    n: elements. param: the header's param word. field: the registered field that the header names (version 2), or
    None when the modulus stands in the payload. toys: whether toy fields are served, where an op takes registered fields
    alone.
    """

    n: int
    param: int = 0
    field: Field | None = None
    toys: bool = True


@dataclass(frozen=True, eq=False)
class Request:
    """One decoded frame: named views into the payload, nothing copied.

    arrays: uint32 arrays of shape (n, element_bytes / 4), little-endian limbs, plain integers (not reduced).
    modulus: the plain modulus. result: name, rows and row bytes of the answer are the op's `result_bytes`. constants: plain
    integers of the payload or of the domain, by name.
    """

    op: Op
    n: int
    param: int
    modulus: int
    element_bytes: int
    arrays: Mapping[str, Limbs]
    field: Field | None = None
    constants: Mapping[str, int] = dataclass_field(default_factory=dict)


# --- kernels --------------------------------------------------------------------------------------------------------

Kind = Literal["in", "out", "scratch", "table", "u32", "u64", "limbs"]

POINTERS = ("in", "out", "scratch", "table")
POINTER_BYTES = 8


@dataclass(frozen=True)
class Member:
    """One member of a kernel's parameter struct.

    kind: "in" and "table" -> const uint32_t*, "out" and "scratch" -> uint32_t*, "u32", "u64", "limbs" -> uint32_t[count].
    """

    name: str
    kind: Kind
    count: int = 1


@dataclass(frozen=True)
class Struct:
    """A kernel's parameter struct: declared here once, rendered for the compiler, packed for the launch."""

    name: str
    members: tuple[Member, ...]

    def render(self) -> str:
        """C++ declaration with a static_assert on its size."""
        declare = {
            "in": "const uint32_t* {0};",
            "table": "const uint32_t* {0};",
            "out": "uint32_t* {0};",
            "scratch": "uint32_t* {0};",
            "u32": "uint32_t {0};",
            "u64": "uint64_t {0};",
            "limbs": "uint32_t {0}[{1}];",
        }
        body = "\n".join("    " + declare[m.kind].format(m.name, m.count) for m in self.members)
        size = self.size
        return f'struct {self.name} {{\n{body}\n}};\nstatic_assert(sizeof({self.name}) == {size}, "{self.name}");\n'

    @property
    def size(self) -> int:
        return -(-self._layout[-1] // self._alignment) * self._alignment

    def pack(self, values: Mapping[str, int], addresses: Mapping[str, int]) -> bytes:
        """The struct's bytes. values: the integers by member name ("limbs" too: one Python int); addresses: those of the
        pointer members by name."""
        out = bytearray(self.size)
        for member, at in zip(self.members, self._layout, strict=False):
            if member.kind in POINTERS:
                out[at : at + POINTER_BYTES] = addresses[member.name].to_bytes(POINTER_BYTES, "little")
            elif member.kind == "u64":
                out[at : at + 8] = values[member.name].to_bytes(8, "little")
            else:
                width = LIMB_BYTES * member.count
                out[at : at + width] = values[member.name].to_bytes(width, "little")
        return bytes(out)

    @cached_property
    def pointers(self) -> dict[str, int]:
        """Offset of each member that points to memory."""
        return {m.name: at for m, at in zip(self.members, self._layout, strict=False) if m.kind in POINTERS}

    @cached_property
    def _alignment(self) -> int:
        return 4 if all(m.kind in ("u32", "limbs") for m in self.members) else 8

    @cached_property
    def _layout(self) -> list[int]:
        """Offset of each member, then the end of the last."""
        offsets, at = [], 0
        for member in self.members:
            align, width = (4, LIMB_BYTES * member.count) if member.kind in ("u32", "limbs") else (8, 8)
            at = -(-at // align) * align
            offsets.append(at)
            at += width
        return [*offsets, at]


@dataclass(frozen=True)
class Unit:
    """One compile unit: an entry file of kernels/entry (or of another folder of kernels, where the name has one) and the
    text that is generated for it.

    The entry includes "unit.cuh", which holds the constants (constexpr int NAME = value), the structs and, for a field
    known at compile time, its params.cuh text.
    """

    entry: str
    structs: tuple[Struct, ...]
    constants: tuple[tuple[str, int], ...] = ()
    params: str = ""

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        """Computed once: every launch looks its unit up."""
        return hash((self.entry, self.structs, self.constants, self.params))

    def header(self) -> str:
        constants = "".join(f"constexpr int {name} = {value};\n" for name, value in self.constants)
        return constants + self.params + "".join(s.render() for s in self.structs)


@dataclass(frozen=True)
class Kernel:
    """An extern "C" kernel of a unit. max_block: the largest block it was written for (plans are checked against it).
    synchronises: it calls __syncthreads or a warp function, so that the host shim has to run its threads as fibers. cluster:
    blocks of the clusters that it is compiled for (__cluster_dims__)."""

    unit: Unit
    name: str
    struct: Struct
    max_block: int
    synchronises: bool = False
    cluster: int = 1


# --- plans ----------------------------------------------------------------------------------------------------------


Role = Literal["in", "out", "scratch", "shared", "first bad"]

SHARED: Role = "shared"
FIRST_BAD: Role = "first bad"
FIRST_BAD_BYTES = 8
NONE_BAD = (1 << 64) - 1


@dataclass(frozen=True)
class Buffer:
    """Device memory. nbytes is what its largest piece needs.

    role: in, out and scratch are of each lane. "shared": one for all lanes, which kernels alone use; it keeps what is in it from
    one piece to the next. "first bad": 8 bytes for all lanes, which begin as ones and which kernels
    lower to the index of an element that may not be, or to a word that the op's bad_element tells apart: the batch then
    fails with BAD_ELEMENT and the lowest such index.
    """

    name: str
    role: Role
    nbytes: int


@dataclass(frozen=True)
class Part:
    """A buffer from a byte on."""

    buffer: str
    offset: int


Place = str | Part


@dataclass(frozen=True)
class Transfer:
    """A copy between a host array and a device buffer.

    array: a name of Request.arrays, or "result". offset, nbytes: bytes within that array. at: the byte of the buffer where it
    begins; several copies in may fill one buffer, a copy out begins at 0.
    """

    buffer: str
    array: str
    offset: int
    nbytes: int
    at: int = 0

    def within(self, array_bytes: int, buffer_bytes: int) -> bool:
        """Whether it stays inside an array and a buffer of so many bytes."""
        inside = min(self.offset, self.at, self.nbytes) >= 0
        return inside and self.offset + self.nbytes <= array_bytes and self.at + self.nbytes <= buffer_bytes


@dataclass(frozen=True)
class Launch:
    """One kernel launch. values: the struct's integers. Its pointer members are the plan's buffers and tables of the same
    name, or what `pointers` says: member -> buffer or table or part of a buffer, None for no memory at all. overlaps: it may
    begin before the launch before it in its piece has ended: its kernel waits for that by itself (kernels/base/grid_order.cuh).
    """

    kernel: Kernel
    grid: int
    block: int
    values: Mapping[str, int]
    shared: int = 0
    pointers: Mapping[str, Place | None] = dataclass_field(default_factory=dict)
    overlaps: bool = False

    def __post_init__(self) -> None:
        if not 0 < self.block <= self.kernel.max_block:
            raise ValueError(f"{self.kernel.name}: block {self.block} is above its limit {self.kernel.max_block}")
        if not 0 < self.grid < 2**31 or self.grid % self.kernel.cluster:
            raise ValueError(f"{self.kernel.name}: grid {self.grid} is not in 1..2^31-1, or no whole clusters")

    def pack(self, addresses: Mapping[str, int]) -> bytes:
        """The kernel's parameter struct. addresses: of the plan's buffers and tables, by their names."""
        template, places = self._template
        out = bytearray(template)
        for at, place in places:
            out[at : at + POINTER_BYTES] = _address(place, addresses).to_bytes(POINTER_BYTES, "little")
        return bytes(out)

    @cached_property
    def _template(self) -> tuple[bytes, tuple[tuple[int, Place], ...]]:
        """The struct with pointers to nothing, and where those to something go: plans are kept, and enqueued again."""
        struct = self.kernel.struct
        pointers = {name: self.pointers.get(name, name) for name in struct.pointers}
        places = tuple((struct.pointers[name], place) for name, place in pointers.items() if place is not None)
        return struct.pack(self.values, dict.fromkeys(pointers, 0)), places


def _address(place: Place, addresses: Mapping[str, int]) -> int:
    return addresses[place.buffer] + place.offset if isinstance(place, Part) else addresses[place]


@dataclass(frozen=True)
class Table:
    """Device memory that outlives the batch: made at its first use, then kept under its key while there is room.

    name: in this plan. key: equal keys have equal contents. builds: the launches that make it, in order; they name it, parts of
    it, and the buffers of `workspace`, which are there only while it is made. copies_in: from the request's arrays to those
    buffers, before the launches.
    """

    name: str
    key: str
    nbytes: int
    builds: tuple[Launch, ...]
    workspace: tuple[Buffer, ...] = ()
    copies_in: tuple[Transfer, ...] = ()

    def building_bytes(self) -> int:
        """Device memory that it takes while it is made."""
        return self.nbytes + sum(buffer.nbytes for buffer in self.workspace)


@dataclass(frozen=True)
class Piece:
    """Part of a batch: copies in, launches in order, copies out; all of it in order on its lane."""

    copies_in: tuple[Transfer, ...]
    launches: tuple[Launch, ...]
    copies_out: tuple[Transfer, ...]

    def __post_init__(self) -> None:
        if self.launches and self.launches[0].overlaps:
            raise ValueError(
                f"{self.launches[0].kernel.name}: a piece's first launch comes after copies and other pieces"
            )


@dataclass(frozen=True)
class LaunchPlan:
    """What a backend carries out. Each lane is one stream with its own set of the buffers; piece i runs on lane
    i mod lanes, so that the copies of one piece overlap the kernels of another. No pieces: nothing to do (n = 0).
    tables: what the launches read beside the buffers."""

    buffers: tuple[Buffer, ...]
    lanes: int
    pieces: tuple[Piece, ...]
    tables: tuple[Table, ...] = ()

    def device_bytes(self) -> int:
        """Device memory that all lanes need together, without the tables."""
        of_lanes = sum(b.nbytes for b in self.buffers if b.role not in (SHARED, FIRST_BAD))
        shared = sum(b.nbytes for b in self.buffers if b.role == SHARED)
        return self.lanes * of_lanes + shared + FIRST_BAD_BYTES * bool(self.first_bad)

    @property
    def first_bad(self) -> str | None:
        """The name of the buffer with this role, if there is one."""
        return next((b.name for b in self.buffers if b.role == FIRST_BAD), None)

    def launches(self) -> Iterator[Launch]:
        """Every launch, those that build tables too."""
        yield from (launch for table in self.tables for launch in table.builds)
        yield from (launch for piece in self.pieces for launch in piece.launches)


@dataclass(frozen=True)
class Traits:
    """What a plan may depend on. memory: bytes for the plan's buffers in all (the device's budget).

    whole: do not cut a batch that fits for the sake of overlap (benchmarks: one launch between two events).
    """

    kind: Literal["cuda", "cpu"]
    arch: str
    multiprocessors: int
    memory: int
    whole: bool = False


# --- ops ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Op(ABC):
    """What can be asked. One instance an op; `name` is the wire's, and its stem names the four files of the op."""

    id: int
    name: str
    summary: str
    operands: tuple[str, ...] = dataclass_field(default=())

    @property
    def stem(self) -> str:
        return self.name.replace("-", "_")

    @property
    def modulus_in_payload(self) -> bool:
        """Whether a payload begins with the modulus, where no field is named in the header."""
        return True

    @property
    def elementwise(self) -> bool:
        """Whether a result depends on the elements of its own place alone, so that a batch can be cut anywhere."""
        return False

    @abstractmethod
    def check(self, call: Call) -> None:
        """Refuse unknown param bits and fields (BAD_PARAM): what can be told before the length."""

    @abstractmethod
    def payload_bytes(self, call: Call) -> int | None:
        """The payload's length by formula; None where the formula has no answer (BAD_LENGTH, length unknown)."""

    @abstractmethod
    def result_bytes(self, call: Call) -> int:
        """The length of the results that follow an OK answer."""

    def result_count(self, call: Call) -> int:
        """What the answer's n says."""
        return call.n

    @abstractmethod
    def decode(self, call: Call, payload: memoryview) -> Request:
        """Views into the payload, with length, limits and modulus checked; no pass over the elements."""

    @abstractmethod
    def plan(self, request: Request, traits: Traits) -> LaunchPlan:
        """How a device answers it. Raises ServiceError(OUT_OF_DEVICE_MEMORY) if the budget is below one element."""

    def bad_element(self, word: int) -> RequestError:
        """What a plan's word of the first bad element stands for, once a kernel has lowered it: here the element's index."""
        return RequestError(Status.BAD_ELEMENT, "an element is not below the modulus", index=word)

    def proof_elements(self, plan: LaunchPlan) -> int:
        """Elements that a self-test needs in order to go through every part of this plan's kernels."""
        return PROOF_ELEMENTS

    def proof_request(self, request: Request, plan: LaunchPlan) -> Request | None:
        """What a self-test asks instead of proof_elements edge elements; None where those are what the op takes."""
        return None

    def proof_plan(self, small: Request, plan: LaunchPlan, traits: Traits) -> LaunchPlan:
        """A plan for a request of so many elements that runs the kernels of `plan`, a larger request's. An op whose
        kernel depends on the number of elements overrides this and proof_elements."""
        return self.plan(small, traits)

    @abstractmethod
    def units(self, traits: Traits) -> tuple[Unit, ...]:
        """Every compile unit that this op's plans name on such a device: what has to be compiled ahead and checked."""

    @abstractmethod
    def tuned_for(self, traits: Traits) -> set[str]:
        """The architectures whose tuning rows this op's plans take on such a device (limbd.ops.tuning.serving)."""

    @abstractmethod
    def reference(self, request: Request, result: memoryview) -> None:
        """The living definition: writes the right answer, slowly (ops/reference)."""


def check_length(op: Op, call: Call, payload: memoryview) -> None:
    """BAD_LENGTH unless the payload is exactly as long as the formula says."""
    expected = op.payload_bytes(call)
    if expected is None or len(payload) != expected:
        raise RequestError(Status.BAD_LENGTH, f"{op.name}: payload of {len(payload)} bytes, expected {expected}")
