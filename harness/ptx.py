"""Runs PTX on the host, one warp at a time: what NVRTC made of a kernel can be checked without a device.

A kernel's PTX is translated to one Python function (registers become local variables, the carry flag a variable, basic
blocks the arms of a loop), and so is each function that it calls, with scalar parameters and no result. It follows the PTX
ISA 9.0 manual for the integer instructions that these kernels use, and raises UnknownInstruction for any other. Of what
threads do together it knows shuffles and votes (limbd.harness.ptx_warp), but no barriers of blocks and no atomics.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from limbd.harness.ptx_values import bit_field_extract, bit_field_insert, byte_permute, logic3, signed
from limbd.harness.ptx_warp import WARP, Thread, run_warp, source_lane

# Where a thread's own memory lies; device buffers are placed from BUFFERS on.
PARAMETERS, LOCAL, SHARED, CONSTANT, BUFFERS = (space << 40 for space in range(1, 6))

_STATEMENT = re.compile(r"(?:@(!?%?\w+)\s+)?([a-z][\w.]*)\s*(.*)", re.DOTALL)
_SPACE = re.compile(
    r"\.(local|shared|global|const)\s+(?:\.align\s+\d+\s+)?\.([bus])(\d+)\s+([\w$]+)(?:\[(\d*)\])?(?:\s*=\s*(.*))?$"
)
_COMMENT_OR_POSITION = re.compile(r"//[^\n]*|^[ \t]*\.(?:loc|file)\b[^\n;]*$", re.MULTILINE)
_ENTRY = re.compile(r"\.visible\s+\.entry\s+(\w+)\s*\(([^)]*)\)[^{]*\{")
_FUNCTION = re.compile(r"\.func\s+(\w+)\s*\(([^)]*)\)\s*\{")
_CALL = re.compile(r"(\w+)\s*,\s*\(([^)]*)\)")
_REGISTER = re.compile(r"\br_\w+")
_ASSIGNMENT = re.compile(r"   (r_\w+) = ")
ANYTHING = 0xA5A5A5A5
_SPECIAL = {
    "%tid.x": "tid",
    "%ctaid.x": "ctaid",
    "%ntid.x": "ntid",
    "%nctaid.x": "nctaid",
    "%lanemask_eq": "(1 << tid % 32)",
}


class UnknownInstruction(Exception):
    """An instruction or operand that this translation does not know."""


class Trapped(Exception):
    """The kernel stopped itself: a range check failed."""


@dataclass
class Memory:
    """Byte-addressed regions; an access outside all of them, or across the end of one, is an IndexError."""

    regions: dict[int, bytearray] = field(default_factory=dict)

    def place(self, data: bytearray) -> int:
        """The 256-byte aligned address of a device buffer that holds these bytes."""
        address = BUFFERS + (sum(base >= BUFFERS for base in self.regions) << 32)
        self.regions[address] = data
        return address

    def read(self, address: int, width: int) -> int:
        region, at = self._find(address, width)
        return int.from_bytes(region[at : at + width], "little")

    def write(self, address: int, width: int, value: int) -> None:
        region, at = self._find(address, width)
        region[at : at + width] = value.to_bytes(width, "little")

    def _find(self, address: int, width: int) -> tuple[bytearray, int]:
        for base, region in self.regions.items():
            if 0 <= address - base <= len(region) - width:
                if address % width:
                    raise IndexError(f"misaligned access of {width} bytes at {address:#x}")
                return region, address - base
        raise IndexError(f"access of {width} bytes at {address:#x}, outside every buffer")


@dataclass(frozen=True)
class PtxKernel:
    """One translated kernel."""

    name: str
    thread: Callable[..., Thread]
    spaces: Mapping[int, int]
    constants: bytes

    def launch(self, memory: Memory, arguments: bytes, grid: int, block: int) -> None:
        """Every warp of every block, one after the other; shared memory lives as long as its block. Raises Divergent."""
        memory.regions[PARAMETERS] = bytearray(arguments)
        memory.regions[CONSTANT] = bytearray(self.constants)
        for ctaid in range(grid):
            memory.regions[SHARED] = bytearray(self.spaces[SHARED])
            for first in range(0, block, WARP):
                tids = range(first, min(first + WARP, block))
                threads = [self.thread(memory.read, memory.write, tid, ctaid, block, grid) for tid in tids]
                local = [bytearray(self.spaces[LOCAL]) for _ in tids]
                run_warp(dict(enumerate(threads)), partial(self._stand, memory, local))

    @staticmethod
    def _stand(memory: Memory, local: Sequence[bytearray], lane: int) -> None:
        """The thread that runs next has its own memory."""
        memory.regions[LOCAL] = local[lane]


def load(ptx: str, name: str) -> PtxKernel:
    """The kernel of this name. Raises UnknownInstruction, or LookupError where there is none."""
    text = _COMMENT_OR_POSITION.sub("", ptx)
    entries, functions = list(_ENTRY.finditer(text)), list(_FUNCTION.finditer(text))
    module = _Module(text[: min(found.start() for found in (*entries, *functions))])
    for entry in entries:
        if entry.group(1) == name:
            parts = [_Translation(module, found, _body(text, found)) for found in (*functions, entry)]
            return module.kernel(name, parts)
    raise LookupError(f"no kernel {name}")


def _body(text: str, head: re.Match[str]) -> str:
    return text[head.end() : _closing_brace(text, head.end())]


def _closing_brace(text: str, at: int) -> int:
    depth = 1
    while depth:
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        at += 1
    return at - 1


# --- translation ------------------------------------------------------------------------------------------------------

_COMPARE = {
    "eq": "==",
    "ne": "!=",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
    "lo": "<",
    "ls": "<=",
    "hi": ">",
    "hs": ">=",
}
_LOGIC = {"and": "&", "or": "|", "xor": "^"}
_VOTES = {
    "any": "int(any(t.values()))",
    "all": "int(all(t.values()))",
    "ballot": "sum(bool(said) << lane for lane, said in t.items())",
}


class _Module:
    """What all functions of one PTX text share: variables, and the size of a thread's own memory, in which each function has
    a part to itself (none calls itself)."""

    def __init__(self, text: str) -> None:
        self.symbols: dict[str, int] = {}
        self.spaces = {LOCAL: 0, SHARED: 0}
        self.constants = bytearray()
        for declaration in text.split(";"):
            self.declare(declaration.strip())

    def kernel(self, name: str, parts: Sequence[_Translation]) -> PtxKernel:
        """The last part is the kernel's own."""
        scope: dict[str, Any] = dict(_FUNCTIONS)
        for part in parts:
            exec(compile(part.text(), f"<ptx {part.name}>", "exec"), scope)
        return PtxKernel(name, scope[parts[-1].python_name], self.spaces, bytes(self.constants))

    def declare(self, statement: str) -> bool:
        """Places a variable. True for every directive, of which only variables matter."""
        found = _SPACE.search(statement)
        if found:
            space, _, bits, name, count, values = found.groups()
            width = int(bits) // 8
            if space in ("local", "shared"):
                where = LOCAL if space == "local" else SHARED
                start = -(-self.spaces[where] // 16) * 16
                self.symbols[name] = where + start
                self.spaces[where] = start + width * int(count or 1)
            else:
                self._place_constant(name, width, int(count or 1), values or "")
        return statement.startswith(".")

    def _place_constant(self, name: str, width: int, count: int, values: str) -> None:
        self.constants += bytes(-len(self.constants) % 16)
        self.symbols[name] = CONSTANT + len(self.constants)
        numbers = [int(v, 0) for v in re.findall(r"-?\w+", values)]
        data = b"".join((v & ((1 << 8 * width) - 1)).to_bytes(width, "little") for v in numbers)
        self.constants += data.ljust(width * count, b"\0")


class _Translation:
    """Builds the Python function of one kernel or function, basic block by basic block."""

    def __init__(self, module: _Module, head: re.Match[str], body: str) -> None:
        """head: as _ENTRY or _FUNCTION matched it."""
        self.name = head.group(1)
        self.python_name = f"f_{self.name}"
        self.symbols = module.symbols
        parameters = re.findall(r"(\w+)(?:\[\d+\])?\s*(?:,|$)", head.group(2).strip())
        is_function = head.re is _FUNCTION
        # A kernel's are in memory; a function's are Python's.
        self.arguments = {name: f"arg_{i}" for i, name in enumerate(parameters)} if is_function else {}
        if not is_function:
            self.symbols.update(dict.fromkeys(parameters, PARAMETERS))
        self.statements = [s for s in _statements(body) if not module.declare(s)]

    def text(self) -> str:
        labels = {s[:-1]: i for i, s in enumerate(self.statements) if s.endswith(":")}
        given = ", ".join(("read", "write", "tid", "ctaid", "ntid", "nctaid", *self.arguments.values()))
        lines = [" while True:", "  if at == 0:"]
        for i, statement in enumerate(self.statements):
            if statement.endswith(":"):
                lines += [f"   at = {i}", f"  if at == {i}:"] if i else []
            else:
                lines += self._translate(statement, labels)
        head = [f"def {self.python_name}({given}):", " cc = at = 0"]
        head += [f" {name} = {ANYTHING:#x}" for name in _from_elsewhere(lines)]
        # The last line is what makes it a generator where nothing is yielded.
        return "\n".join([*head, *lines, "   return", " yield"])

    # --- instructions ---

    def _translate(self, statement: str, labels: Mapping[str, int]) -> list[str]:
        found = _STATEMENT.fullmatch(statement)
        if not found:
            raise UnknownInstruction(statement)
        guard, opcode, operands = found.groups()
        base, *parts = opcode.split(".")
        if base == "bra":
            lines = [f"at = {labels[operands.strip()]}", "continue"]
        elif base in ("ret", "exit"):
            lines = ["return"]
        elif base == "trap":
            lines = ["raise Trapped"]
        elif base == "call":
            lines = [self._call(statement, operands)]
        else:
            lines = self._instruction(statement, base, parts, _operands(operands))
        if not guard:
            return [f"   {line}" for line in lines]
        condition = f"not {_name(guard[1:])}" if guard.startswith("!") else _name(guard)
        return [f"   if {condition}:", *(f"    {line}" for line in lines)]

    def _instruction(self, statement: str, base: str, parts: list[str], operands: list[str]) -> list[str]:
        kind = parts[-1] if parts else ""
        if base in ("ld", "st"):
            return self._access(base, parts, operands)
        if base == "mov" and "{" in statement:
            return self._move_parts(parts, operands)
        if base in ("shfl", "vote"):
            return self._warp_function(statement, base, parts, operands)
        if not re.fullmatch(r"pred|[busfx]\d+", kind) or not operands:
            raise UnknownInstruction(statement)
        bits = 1 if kind == "pred" else int(kind[1:])
        target, values = operands[0], [self._value(o, bits) for o in operands[1:]]
        for family in (_carrying, _bitwise, _deciding):
            made = family(base, parts, kind[0], bits, values)
            if made is not None:
                *before, result = made
                return [*before, f"{_name(target)} = {result}"]
        raise UnknownInstruction(statement)

    def _call(self, statement: str, operands: str) -> str:
        found = _CALL.fullmatch(operands.strip())
        if not found:
            raise UnknownInstruction(statement)
        given = [f"given_{name.strip()}" for name in found.group(2).split(",") if name.strip()]
        return f"yield from f_{found.group(1)}({', '.join(('read, write, tid, ctaid, ntid, nctaid', *given))})"

    def _warp_function(self, statement: str, base: str, parts: list[str], operands: list[str]) -> list[str]:
        target, value, *others = operands
        mode, mask = parts[1], self._value(others[-1], 32)
        meet = f"t = yield {base + '.' + mode!r}, {mask}, {self._value(value, 32)}"
        if base == "shfl":
            names = [_name(name) for name in target.split("|")]
            b, c = (self._value(other, 32) for other in others[:2])
            source = f"s = source_lane({mode!r}, tid % {WARP}, {b}, {c})"
            return [meet, source, *(f"{name} = {what}" for name, what in zip(names, ("t[s[0]]", "s[1]"), strict=False))]
        if mode not in _VOTES:
            raise UnknownInstruction(statement)
        return [meet, f"{_name(target)} = {_VOTES[mode]}"]

    def _parameter(self, base: str, parts: list[str], operands: list[str]) -> list[str] | None:
        """A function's own parameter, or one that it gives to another; None for a kernel's, which are memory."""
        where, what = (operands[1], operands[0]) if base == "ld" else operands
        named = re.fullmatch(r"\[(\w+)(?:\+0)?\]", where)
        if base == "st" and named:
            return [f"given_{named.group(1)} = {self._value(what, int(parts[-1][1:]))}"]
        if named and named.group(1) in self.arguments:
            return [f"{_name(what)} = {self.arguments[named.group(1)]}"]
        return None

    def _access(self, base: str, parts: list[str], operands: list[str]) -> list[str]:
        if "param" in parts and (lines := self._parameter(base, parts, operands)) is not None:
            return lines
        width = int(parts[-1][1:]) // 8
        where, what = (operands[1], operands[0]) if base == "ld" else operands
        address = re.fullmatch(r"\[([^\]+]+)(?:\+(-?\d+))?\]", where)
        if not address:
            raise UnknownInstruction(where)
        start = f"{self._value(address.group(1), 64)} + {address.group(2) or 0}"
        registers = [r.strip() for r in what.strip("{}").split(",")]
        count = len(registers)
        # A vector is one access: it has to be aligned as a whole.
        lines = [f"t = {start}"] + ([f"read(t, {width * count})"] if count > 1 else [])
        for i, register in enumerate(registers):
            if base == "ld":
                extend = "signed" if parts[-1][0] == "s" and width < 4 else ""
                read = f"read(t + {i * width}, {width})"
                lines.append(
                    f"{_name(register)} = " + (f"signed({read}, {8 * width}) & 0xffffffff" if extend else read)
                )
            else:
                value = self._value(register, 8 * width)
                lines.append(f"write(t + {i * width}, {width}, {value} & {(1 << 8 * width) - 1})")
        return lines

    def _move_parts(self, parts: list[str], operands: list[str]) -> list[str]:
        """mov between one register and a vector of its parts, the low one first."""
        target, source = operands
        names = [r.strip() for r in (target if "{" in target else source).strip("{}").split(",")]
        bits = int(parts[-1][1:]) // len(names)
        if "{" in target:
            return [
                f"{_name(n)} = {_name(source)} >> {i * bits} & {(1 << bits) - 1}"
                for i, n in enumerate(names)
                if n != "_"
            ]
        return [
            f"{_name(target)} = " + " | ".join(f"{self._value(n, bits)} << {i * bits}" for i, n in enumerate(names))
        ]

    def _value(self, operand: str, bits: int) -> str:
        """A register, a special register, a symbol's address or a number, as a Python expression."""
        operand = operand.strip()
        if operand in _SPECIAL:
            return _SPECIAL[operand]
        if operand.startswith("%"):
            return _name(operand)
        if operand in self.symbols:
            return str(self.symbols[operand])
        if re.fullmatch(r"-?(0[xX][0-9a-fA-F]+|\d+)U?", operand):
            return str(int(operand.rstrip("U"), 0) & ((1 << bits) - 1))
        if re.fullmatch(r"[A-Za-z_]\w*", operand):  # a register that an asm block declares
            return _name(operand)
        raise UnknownInstruction(f"operand {operand}")


def _from_elsewhere(lines: Iterable[str]) -> list[str]:
    """Registers that a basic block reads and has not surely written itself. Where the path to it has not written them either
    they hold anything: the compiler reads such a register where its value does not matter."""
    found: dict[str, None] = {}
    written: set[str] = set()
    for line in lines:
        if line.startswith("  if at == "):
            written = set()
        target = _ASSIGNMENT.match(line)
        read = _REGISTER.findall(line[target.end() :] if target else line)
        found.update(dict.fromkeys(name for name in read if name not in written))
        if target:
            written.add(target.group(1))
    return list(found)


def _statements(body: str) -> Iterator[str]:
    """Statements and labels; the braces of asm blocks are dropped, those of vectors stay."""
    for label, statement in re.findall(r"([\w$]+:)|(?:^|(?<=[\s{}]))[\s{}]*([^\s{};:][^;:]*);", body):
        yield label or statement.strip()


def _operands(text: str) -> list[str]:
    return [o.strip() for o in re.findall(r"\s*(\{[^}]*\}|\[[^\]]*\]|[^,\s][^,]*)", text)]


def _name(register: str) -> str:
    return "r_" + re.sub(r"\W", "_", register.lstrip("%"))


def _carrying(base: str, parts: list[str], sign: str, bits: int, v: list[str]) -> list[str] | None:
    """Sums and products. The flag after a subtraction is its borrow, as PTX has it."""
    mask = (1 << bits) - 1
    carry = " + cc" if base in ("addc", "madc") else " - cc" if base == "subc" else ""
    if base in ("add", "addc"):
        total = f"{v[0]} + {v[1]}{carry}"
    elif base in ("sub", "subc"):
        total = f"{v[0]} - {v[1]}{carry}"
    elif base in ("mul", "mad", "madc"):
        a, b = (f"signed({x}, {bits})" if sign == "s" else x for x in v[:2])
        if "wide" in parts:
            mask = (1 << 2 * bits) - 1
        product = f"({a} * {b} >> {bits} & {mask})" if "hi" in parts else f"({a} * {b} & {mask})"
        total = f"{product} + {v[2]}{carry}" if len(v) == 3 else product
    else:
        return None
    flag = [f"cc = t >> {bits} & 1"] if "cc" in parts else []
    return [f"t = {total}", *flag, f"t & {mask}"]


def _bitwise(base: str, parts: list[str], sign: str, bits: int, v: list[str]) -> list[str] | None:
    mask = (1 << bits) - 1
    if base in _LOGIC:
        return [f"{v[0]} {_LOGIC[base]} {v[1]}"]
    if base == "not":
        return [f"{v[0]} ^ {mask}"]
    if base == "neg":
        return [f"-{v[0]} & {mask}"]
    if base == "shl":
        return [f"({v[0]} << min({v[1]}, {bits})) & {mask}"]
    if base == "shr":
        return [
            f"signed({v[0]}, {bits}) >> min({v[1]}, {bits}) & {mask}"
            if sign == "s"
            else f"{v[0]} >> min({v[1]}, {bits})"
        ]
    if base == "shf":
        amount = f"({v[2]} & 31)" if "wrap" in parts else f"min({v[2]}, 32)"
        pair = f"({v[1]} << 32 | {v[0]})"
        return [f"{pair} << {amount} >> 32 & {mask}" if "l" in parts else f"{pair} >> {amount} & {mask}"]
    if base == "clz":
        return [f"{bits} - {v[0]}.bit_length()"]
    if base == "popc":
        return [f"{v[0]}.bit_count()"]
    if base == "brev":
        return [f"int(f'{{{v[0]}:0{bits}b}}'[::-1], 2)"]
    if base == "bfi":
        return [f"insert({', '.join(v)}, {bits})"]
    if base == "bfe":
        return [f"extract({', '.join(v)}, {bits}, {sign == 's'})"]
    if base == "prmt":
        return [f"permute({', '.join(v)})"]
    if base == "lop3":
        return [f"logic3({', '.join(v)})"]
    return None


def _deciding(base: str, parts: list[str], sign: str, bits: int, v: list[str]) -> list[str] | None:
    """Selections, comparisons, moves and conversions."""
    if base == "selp":
        return [f"{v[0]} if {v[2]} else {v[1]}"]
    if base == "setp" and parts[0] in _COMPARE and len(parts) == len(v):
        a, b = (f"signed({x}, {bits})" if sign == "s" else x for x in v[:2])
        combined = f" {_LOGIC[parts[1]]} {v[2]}" if len(v) == 3 else ""
        return [f"int({a} {_COMPARE[parts[0]]} {b}){combined}"]
    if base == "set" and parts[0] in _COMPARE and parts[1:] == ["u32", "u32"]:
        return [f"{(1 << bits) - 1} if {v[0]} {_COMPARE[parts[0]]} {v[1]} else 0"]
    if base in ("min", "max"):
        key = f", key=lambda x: signed(x, {bits})" if sign == "s" else ""
        return [f"{base}({v[0]}, {v[1]}{key})"]
    if base == "abs":
        return [f"abs(signed({v[0]}, {bits})) & {(1 << bits) - 1}"]
    if base in ("mov", "cvta"):
        return [v[0]]
    if base == "cvt" and len(parts) == 2:
        wide = int(parts[0][1:])
        return [
            f"(signed({v[0]} & {(1 << bits) - 1}, {bits}) if {sign == 's'} else {v[0]} & {(1 << bits) - 1}) & {(1 << wide) - 1}"
        ]
    return None


_FUNCTIONS: dict[str, Any] = {
    "Trapped": Trapped,
    "source_lane": source_lane,
    "signed": signed,
    "permute": byte_permute,
    "insert": bit_field_insert,
    "extract": bit_field_extract,
    "logic3": logic3,
}
