"""Keeps the frames of failing requests as files, each the request frame itself: `limbd call --replay FILE` sends it."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path

from limbd.ops.status import Status
from limbd.worker.config import KeepFailed

SUFFIX = ".frame"


class FailedFrames:
    """Bounded in number and bytes, with what an earlier worker left in the folder counted in. Files are readable by
    their owner alone: operands may be secret. Safe to use from several threads."""

    def __init__(self, settings: KeepFailed, say: Callable[[str], None]) -> None:
        """Raises OSError if the folder cannot be made or read."""
        self._settings = settings
        self._say = say
        self._lock = threading.Lock()
        self._full = False
        settings.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        kept = [entry.stat().st_size for entry in settings.folder.glob("*" + SUFFIX)]
        self._files, self._nbytes = len(kept), sum(kept)

    def keep(self, connection: int, seq: int, op: str, status: Status, header: bytes, payload: memoryview) -> None:
        """Write one frame, if there is room; a failure is reported on stderr and has no other effect."""
        nbytes = len(header) + len(payload)
        if not self._take(nbytes):
            return
        name = f"{os.getpid()}-{connection}-{seq}-{op}-{status.name}{SUFFIX}"
        path = self._settings.folder / name
        try:
            _write_new(path, header, payload)
        except OSError as error:
            self._say(f"limbd: cannot keep the failed frame {name}: {error.strerror}")

    def _take(self, nbytes: int) -> bool:
        with self._lock:
            fits = self._files < self._settings.files and self._nbytes + nbytes <= self._settings.nbytes
            if fits:
                self._files += 1
                self._nbytes += nbytes
            elif not self._full:
                self._full = True
                self._say(f"limbd: {self._settings.folder} is full: further failed frames are not kept")
            return fits


def _write_new(path: Path, header: bytes, payload: memoryview) -> None:
    """Raises OSError; a file of that name (process ids come again) is never overwritten, nor a link followed."""
    stem, attempt = path.stem, 0
    while True:
        try:
            fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            break
        except FileExistsError:
            attempt += 1
            path = path.with_name(f"{stem}.{attempt}{SUFFIX}")
    try:
        with os.fdopen(fd, "wb", buffering=0) as file:
            for part in (memoryview(header), payload):
                while part:
                    part = part[file.write(part) :]
    except OSError:
        path.unlink(missing_ok=True)  # the disk is full: half a frame is of no use
        raise
