"""Compiled kernels on disk: cubins and host libraries, shared by any number of processes.

An entry is one file: the compiler's output (an ELF object) followed by a trailer with its checksum. It is written to a
temporary file in the same folder and renamed, so that a reader sees a whole file or none; a file that fails its
check is a miss and is built again. Loaders of ELF objects ignore what stands behind the last section, so that a host
library is loaded from the very file that was checked.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import stat
import tempfile
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from limbd.ops.status import ServiceError, Status
from limbd.worker.device.vanishing import VanishingFolder

# Part of every key: raise it whenever what is stored, or how it is called, changes without its text changing.
SCHEMA = 1

FOLDER_VARIABLE = "LIMBD_CACHE_DIR"

ELF_MAGIC = b"\x7fELF"
TRAILER_MAGIC = b"limbdobj"
TRAILER_BYTES = hashlib.sha256().digest_size + len(TRAILER_MAGIC)

_TEMPORARY = ".writing-"
_ATTEMPTS = 5


@dataclass(frozen=True)
class Key:
    """Everything that decides a binary. kind: "cubin" or "so". compiler: its full version. text: all that it reads."""

    kind: str
    arch: str
    options: tuple[str, ...]
    compiler: str
    entry: str
    text: str

    def file_name(self) -> str:
        digest = hashlib.sha256()
        for part in (str(SCHEMA), self.kind, self.arch, *sorted(self.options), self.compiler, self.entry, self.text):
            data = part.encode()
            digest.update(len(data).to_bytes(8, "little") + data)
        return f"{self.entry}-{digest.hexdigest()[:40]}.{self.kind}"


def default_folder() -> Path:
    """$LIMBD_CACHE_DIR, or limbd in the user's cache folder."""
    moved = os.environ.get(FOLDER_VARIABLE)
    return Path(moved) if moved else Path(platformdirs.user_cache_dir("limbd"))


class Cache:
    """A folder of compiled kernels, or this process's memory where the folder cannot be used.

    builds and hits count what this object did since it was made. note: why the folder is not used, or "".
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.folder: Path | None = folder or default_folder()
        self.note = _unusable(self.folder)
        self.builds = 0
        self.hits = 0
        self._memory: dict[str, bytes] = {}
        self._scratch: VanishingFolder | None = None
        self._lock = threading.Lock()
        self._key_locks: dict[str, threading.Lock] = {}
        if self.note:
            self.folder = None
        else:
            self._sweep()

    def load(self, key: Key, build: Callable[[], bytes]) -> bytes:
        """The binary for a key, built at most once at a time in this process."""
        return self._fetch(key, build)[1]

    def load_file(self, key: Key, build: Callable[[], bytes]) -> Path:
        """The same as a file, for loaders that take nothing else. Raises ServiceError(INTERNAL) if no folder is writable."""
        file, data = self._fetch(key, build)
        return file if file is not None else self._scratch_file(key.file_name(), data)

    def close(self) -> None:
        """Removes what stood in for an unusable folder."""
        with self._lock:
            scratch, self._scratch = self._scratch, None
        if scratch is not None:
            scratch.close()

    def _fetch(self, key: Key, build: Callable[[], bytes]) -> tuple[Path | None, bytes]:
        name = key.file_name()
        with self._lock:
            key_lock = self._key_locks.setdefault(name, threading.Lock())
        with key_lock:
            found = self._read(name)
            if found is not None:
                self._count(hit=True)
                return found
            data = build()
            if not data.startswith(ELF_MAGIC):
                raise ServiceError(Status.INTERNAL, f"{key.entry}: the compiler's output is not an ELF object")
            self._count(hit=False)
            return self._store(name, data), data

    def _count(self, *, hit: bool) -> None:
        with self._lock:
            self.hits += hit
            self.builds += not hit

    # --- one entry ---

    def _read(self, name: str) -> tuple[Path | None, bytes] | None:
        if name in self._memory:
            return None, self._memory[name]
        if self.folder is None:
            return None
        file = self.folder / name
        try:
            data = unseal(file.read_bytes())
        except OSError:
            return None
        return None if data is None else (file, data)

    def _store(self, name: str, data: bytes) -> Path | None:
        """Where the entry stands on disk now; None if it is only in memory (no folder, disk full)."""
        if self.folder is not None:
            with suppress(OSError):
                return _write_atomically(self.folder, name, seal(data))
        self._memory[name] = data
        return None

    def _scratch_file(self, name: str, data: bytes) -> Path:
        try:
            with self._lock:
                if self._scratch is None:
                    self._scratch = VanishingFolder("limbd-")
            return _write_atomically(self._scratch.path, name, seal(data))
        except OSError as error:
            message = f"a compiled kernel cannot be stored: {error}"
            raise ServiceError(
                Status.INTERNAL, message, hint=f"point {FOLDER_VARIABLE} at a writable folder"
            ) from error

    # --- leftovers ---

    def _sweep(self) -> None:
        """Removes the temporary files of writers that died: a live writer holds a lock on its own."""
        assert self.folder is not None
        with suppress(OSError):
            for file in self.folder.glob(_TEMPORARY + "*"):
                _remove_if_abandoned(file)


def seal(data: bytes) -> bytes:
    return data + hashlib.sha256(data).digest() + TRAILER_MAGIC


def unseal(stored: bytes) -> bytes | None:
    """The data, or None if the file is torn, changed or not an ELF object."""
    data, trailer = stored[:-TRAILER_BYTES], stored[-TRAILER_BYTES:]
    if not data.startswith(ELF_MAGIC) or trailer != hashlib.sha256(data).digest() + TRAILER_MAGIC:
        return None
    return data


def _unusable(folder: Path) -> str:
    """Why the folder cannot hold the cache, or ""."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if folder.stat().st_mode & stat.S_IWOTH:
            return f"{folder} is writable by everybody: libraries in it cannot be trusted"
        if not os.access(folder, os.W_OK | os.X_OK):
            return f"{folder} is not writable"
        with tempfile.TemporaryFile(dir=folder):
            return ""
    except OSError as error:
        return f"{folder} cannot be used: {error}"


def _write_atomically(folder: Path, name: str, content: bytes) -> Path:
    """Writes folder/name through a locked temporary file. A sweep that takes the file between its creation and its lock
    leaves nothing to rename; then write again."""
    for _ in range(_ATTEMPTS):
        handle, temporary = tempfile.mkstemp(prefix=_TEMPORARY, dir=folder)
        try:
            with os.fdopen(handle, "wb") as file:
                fcntl.flock(file, fcntl.LOCK_EX)
                file.write(content)
                file.flush()
                Path(temporary).replace(folder / name)
            return folder / name
        except FileNotFoundError:
            continue
        except BaseException:
            with suppress(OSError):
                Path(temporary).unlink()
            raise
    raise OSError(f"{folder}: temporary files vanish")


def _remove_if_abandoned(file: Path) -> None:
    with suppress(OSError), file.open("rb") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        file.unlink()


def entries(folder: Path) -> Iterable[Path]:
    """The entries of a cache folder, sound or not."""
    return sorted(f for f in folder.iterdir() if f.suffix in (".cubin", ".so") and not f.name.startswith(_TEMPORARY))
