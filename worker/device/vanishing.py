"""Temporary folders that go with their process."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path
from types import TracebackType

# Removes $0 at the end of its input, which comes when the only process that holds the other end is gone.
_GUARD = ("/bin/sh", "-c", 'read _; exec rm -rf "$0"')


class VanishingFolder:
    """A temporary folder that is removed by `close`, or when this process ends, however it ends: SIGKILL leaves no time
    to tidy up, so a shell waits for it. Raises OSError."""

    def __init__(self, prefix: str) -> None:
        self.path = Path(tempfile.mkdtemp(prefix=prefix))
        try:
            self._guard = subprocess.Popen(
                (*_GUARD, str(self.path)),
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError:
            shutil.rmtree(self.path, ignore_errors=True)
            raise

    def __enter__(self) -> Path:
        return self.path

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        assert self._guard.stdin is not None
        self._guard.stdin.close()
        self._guard.wait()
