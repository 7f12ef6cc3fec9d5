"""Compiles a unit with NVRTC, to plain bytes. Needs neither a driver nor a device.

Only cuda.bindings.nvrtc is used: without a driver some calls of cuda.core fail in a way that lets the next one hang.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from limbd.kernels.source import Source
from limbd.ops.status import ServiceError, Status
from limbd.worker.device.cache import Key

REMEDY = "pip install 'limbd[cuda]' (or 'limbd[cuda12]' for a driver older than 580 or a card older than sm_75)"

# Architectures of embedded boards: their machine code runs on no other device of the same major version.
EMBEDDED = frozenset({53, 62, 72, 87, 88, 101, 110})

_COMMON = ("--std=c++17", "--ptxas-options=-v")
_VERIFY = ("-DKERNEL_VERIFY", "--generate-line-info")


@dataclass(frozen=True)
class Target:
    """What to compile for. form: "cubin" (machine code of sm_<arch>) or "ptx" (the driver compiles it at load)."""

    arch: int
    form: str = "cubin"

    @property
    def name(self) -> str:
        return f"{'sm' if self.form == 'cubin' else 'compute'}_{self.arch}"


@dataclass(frozen=True)
class Usage:
    """What ptxas says of a kernel, or of a function that is not inlined (mangled name, registers 0: its callers count
    them). registers: of a thread; the rest in bytes, shared for a block, stack and spills for a thread."""

    function: str
    registers: int
    stack: int
    spill_stores: int
    spill_loads: int
    shared: int


@dataclass(frozen=True)
class Compiled:
    """data: the cubin, or PTX text. usage is empty for PTX."""

    data: bytes
    log: str
    usage: tuple[Usage, ...]


class Nvrtc:
    """The installed NVRTC. Raises ServiceError(NO_DEVICE) with the remedy where there is none."""

    def __init__(self) -> None:
        try:
            self._api: Any = importlib.import_module("cuda.bindings.nvrtc")
            self.version: tuple[int, int] = tuple(self._checked(self._api.nvrtcVersion()))
            self.supported: tuple[int, ...] = tuple(sorted(self._checked(self._api.nvrtcGetSupportedArchs())[0]))
        except LookupError as error:
            raise ServiceError(Status.NO_DEVICE, f"NVRTC does not work: {error}", hint=REMEDY) from error
        except (ImportError, RuntimeError, OSError) as error:
            raise ServiceError(Status.NO_DEVICE, f"NVRTC is not installed: {error}", hint=REMEDY) from error
        self.full_version = f"NVRTC {self.version[0]}.{self.version[1]} {_library_identity()}".strip()

    def options(self, target: Target, *, verify: bool = False) -> tuple[str, ...]:
        return (*_COMMON, *(_VERIFY if verify else ()), f"--gpu-architecture={target.name}")

    def key(self, source: Source, target: Target, *, verify: bool = False) -> Key:
        options = self.options(target, verify=verify)
        return Key(target.form, target.name, options, self.full_version, Path(source.name).stem, source.text)

    def compile(self, source: Source, target: Target, *, verify: bool = False) -> Compiled:
        """Releases the GIL while it works: one program a thread. Raises ServiceError(INTERNAL) with NVRTC's log."""
        with self._program(source) as program:
            options = [o.encode() for o in self.options(target, verify=verify)]
            (status, *_) = self._api.nvrtcCompileProgram(program, len(options), options)
            log = self._text(program, self._api.nvrtcGetProgramLogSize, self._api.nvrtcGetProgramLog).decode(
                errors="replace"
            )
            if int(status) != 0:
                message = (
                    f"{source.name}: NVRTC for {target.name} failed: {self._describe(status)}\n{log.strip()[-4000:]}"
                )
                raise ServiceError(Status.INTERNAL, message)
            if target.form == "ptx":
                return Compiled(self._text(program, self._api.nvrtcGetPTXSize, self._api.nvrtcGetPTX), log, ())
            data = self._bytes(program, self._api.nvrtcGetCUBINSize, self._api.nvrtcGetCUBIN)
            return Compiled(data, log, parse_usage(log))

    @contextmanager
    def _program(self, source: Source) -> Iterator[Any]:
        names = [name.encode() for name, _ in source.headers]
        texts = [text.encode() for _, text in source.headers]
        (program,) = self._checked(
            self._api.nvrtcCreateProgram(source.main.encode(), source.name.encode(), len(names), texts, names)
        )
        try:
            yield program
        finally:
            self._api.nvrtcDestroyProgram(program)

    def _bytes(self, program: Any, size: Any, read: Any) -> bytes:
        (count,) = self._checked(size(program))
        buffer = bytearray(count)
        self._checked(read(program, buffer))
        return bytes(buffer)

    def _text(self, program: Any, size: Any, read: Any) -> bytes:
        return self._bytes(program, size, read).rstrip(b"\0")

    def _checked(self, result: tuple[Any, ...]) -> tuple[Any, ...]:
        """The values behind a call's status. Raises LookupError, which callers turn into their own words."""
        status, *values = result
        if int(status) != 0:
            raise LookupError(self._describe(status))
        return tuple(values)

    def _describe(self, status: Any) -> str:
        (_, text) = self._api.nvrtcGetErrorString(status)
        return text.decode() if isinstance(text, bytes) else str(text)


def choose_target(
    capability: tuple[int, int], supported: Sequence[int], nvrtc: tuple[int, int], driver: tuple[int, int]
) -> Target:
    """The best that this NVRTC can make for a device of this compute capability.

    Machine code of the device's own architecture; else of the highest lower one with the same major version, which
    the device runs too; else PTX, which a driver refuses if it comes from a newer toolkit. Raises
    ServiceError(NO_DEVICE) naming both versions.
    """
    own = 10 * capability[0] + capability[1]
    related = [a for a in supported if a == own or (a // 10 == own // 10 and a < own and a not in EMBEDDED)]
    if related:
        return Target(max(related))
    older = [arch for arch in supported if arch < own]
    if older and nvrtc <= driver:
        return Target(max(older), "ptx")
    versions = f"NVRTC {nvrtc[0]}.{nvrtc[1]} and a driver for CUDA {driver[0]}.{driver[1]}"
    raise ServiceError(Status.NO_DEVICE, f"{versions} cannot serve a device of sm_{own}", hint=REMEDY)


_ENTRY = re.compile(r"Compiling entry function '([^']+)'")
_FUNCTION = re.compile(r"Function properties for (\S+)")
_STACK = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_REGISTERS = re.compile(r"Used (\d+) registers")
_SHARED = re.compile(r"(\d+) bytes smem")


def parse_usage(log: str) -> tuple[Usage, ...]:
    """Reads what `--ptxas-options=-v` prints for each kernel and for each function that is not inlined."""
    found: dict[str, Usage] = {}
    entry = function = ""
    for line in log.splitlines():
        if match := _ENTRY.search(line):
            entry = match[1]
        elif match := _FUNCTION.search(line):
            function = match[1]
        elif match := _STACK.search(line):
            found[function] = Usage(function, 0, int(match[1]), int(match[2]), int(match[3]), 0)
        elif (match := _REGISTERS.search(line)) and entry:
            shared = _SHARED.search(line)
            memory = found.get(entry, Usage(entry, 0, 0, 0, 0, 0))
            found[entry] = replace(memory, registers=int(match[1]), shared=int(shared[1]) if shared else 0)
    return tuple(found.values())


def _library_identity() -> str:
    """File name and size of the loaded libnvrtc: the version that it reports leaves out the patch level."""
    try:
        lines = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    for line in lines:
        path = Path(line.split(maxsplit=5)[-1])
        if path.name.startswith("libnvrtc.so") and path.is_file():
            real = path.resolve()
            return f"{real.name} {real.stat().st_size}"
    return ""
