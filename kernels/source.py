"""Reads the kernels' sources and puts together what one compile of a unit consists of.

A compile is a main text and the in-memory headers that it reaches; nothing else is read, so these texts are the
cache's key. Every include is written from the kernels/ root ("field/barrett.cuh"); "unit.cuh" is the generated header.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parent
GENERATED = "unit.cuh"

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', re.MULTILINE)
_KERNEL = re.compile(
    r'extern\s+"C"\s+__global__\s+void\s+'
    r"(?:__(?:launch_bounds|cluster_dims)__\s*\((?:[^()]|\([^()]*\))*\)\s*)*([A-Za-z_]\w*)\s*\("
)
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)


class MissingSource(Exception):
    """An entry or an included file does not exist."""


@dataclass(frozen=True)
class Source:
    """One compile: name (for messages), main text, headers by the path that includes them, the entry's kernels."""

    name: str
    main: str
    headers: tuple[tuple[str, str], ...]
    kernels: tuple[str, ...]

    @cached_property
    def text(self) -> str:
        """Everything that the compiler reads, as one text: equal texts give equal binaries."""
        parts = ((self.name, self.main), *self.headers)
        return "".join(f"//// {name} {len(text)}\n{text}\n" for name, text in parts)


@dataclass(frozen=True)
class Sources:
    """Where sources are looked for, first match first. The default is this package; tests put their own folder before it."""

    roots: tuple[Path, ...] = (ROOT,)

    def cuda(self, entry: str, header: str) -> Source:
        """For NVRTC. header: the text of "unit.cuh". The host's shim is left out: NVRTC never reaches it."""
        main = self.entry_text(entry)
        return Source(f"{entry}.cu", main, self._headers(main, header, _is_device_file), kernel_names(main))

    def host(self, entry: str, header: str) -> Source:
        """For a host C++ compiler: the same entry behind the shim, and after it a launch function for each kernel.

        limbd_run_NAME(Job*) is declared in host/launch.hpp.
        """
        main = self.entry_text(entry)
        names = kernel_names(main)
        launches = "".join(f"LIMBD_HOST_KERNEL({name})\n" for name in names)
        text = f'#include "host/shim.hpp"\n#line 1 "{entry}.cu"\n{main}\n{launches}'
        return Source(f"{entry}.cpp", text, self._headers(text, header, lambda _: True), names)

    def entry_text(self, entry: str) -> str:
        """A name is a file of entry/; with a folder in it ("candidate/0002/name") it starts at the root."""
        return self.read(f"{entry}.cu" if "/" in entry else f"entry/{entry}.cu")

    def read(self, path: str) -> str:
        """The file's text. Raises MissingSource."""
        for root in self.roots:
            file = root / path
            if file.is_file():
                return file.read_text(encoding="utf-8")
        raise MissingSource(f"no kernel source {path!r} under {', '.join(str(root) for root in self.roots)}")

    def _headers(self, main: str, generated: str, wanted: Callable[[str], bool]) -> tuple[tuple[str, str], ...]:
        """Every header that the text names, directly or through others, whatever the preprocessor would choose."""
        found: dict[str, str] = {}
        waiting = [main]
        while waiting:
            for path in _INCLUDE.findall(waiting.pop()):
                if path in found or not wanted(path):
                    continue
                found[path] = generated if path == GENERATED else self.read(path)
                waiting.append(found[path])
        return tuple(sorted(found.items()))


def kernel_names(text: str) -> tuple[str, ...]:
    """The kernels that an entry defines: extern "C" __global__ void NAME(...)."""
    return tuple(_KERNEL.findall(_COMMENT.sub(" ", text)))


def _is_device_file(path: str) -> bool:
    return not path.startswith("host/")
