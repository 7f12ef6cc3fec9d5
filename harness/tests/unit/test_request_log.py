"""stderr's lines, a reader that stalls, and the frames that are kept."""

from __future__ import annotations

import os
import resource
import stat
import threading
from pathlib import Path

from limbd.ops.status import Status
from limbd.worker.config import KeepFailed
from limbd.worker.device.base import Outcome
from limbd.worker.keep_failed import FailedFrames
from limbd.worker.request_log import Record, RequestLog


def test_the_line_of_wire_md() -> None:
    record = Record(1, "mod-inv", 100000, "cuda", 0, Outcome(0.0681, 0.0583, 0.0582), 0.000821, Status.OK)
    assert record.line() == (
        "seq=1 op=mod-inv n=100000 backend=cuda device=0 kernel=0.0681ms h2d=0.0583ms d2h=0.0582ms "
        "total=0.8210ms status=OK"
    )
    failed = Record(2, "ntt", 8, "cpu", 1, Outcome(), 1.5, Status.BAD_ELEMENT, index=3, connection=7)
    assert failed.line() == (
        "seq=2 op=ntt n=8 backend=cpu device=1 kernel=0.0000ms h2d=0.0000ms d2h=0.0000ms "
        "total=1500.0000ms status=BAD_ELEMENT index=3 conn=7"
    )


def test_a_reader_that_stalls_costs_lines_but_no_time() -> None:
    read_end, write_end = os.pipe()
    log = RequestLog(write_end, waiting_lines=100)
    for number in range(10_000):
        log.put(f"{number} " + "x" * 100)
    collected = bytearray()

    def read() -> None:
        while data := os.read(read_end, 1 << 16):
            collected.extend(data)

    reader = threading.Thread(target=read)
    reader.start()
    log.close(10)
    os.close(write_end)
    reader.join(10)
    os.close(read_end)
    lines = collected.decode().splitlines()
    dropped = sum(int(line.removeprefix("dropped=")) for line in lines if line.startswith("dropped="))
    kept = [int(line.split()[0]) for line in lines if not line.startswith("dropped=")]
    assert dropped > 0 and dropped + len(kept) == 10_000
    assert kept == sorted(kept)


def test_closing_does_not_wait_for_a_stalled_reader() -> None:
    read_end, write_end = os.pipe()
    log = RequestLog(write_end)
    for _ in range(3000):
        log.put("x" * 100)
    log.close(0.2)
    os.close(read_end)


def test_a_closed_stderr_is_nobody_s_problem() -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    log = RequestLog(write_end)
    log.put("nobody reads this")
    log.close(5)
    os.close(write_end)


def test_failed_frames_are_private_and_bounded(tmp_path: Path) -> None:
    said: list[str] = []
    folder = tmp_path / "failed"
    keeper = FailedFrames(KeepFailed(folder, files=3, nbytes=1000), said.append)

    def keep(seq: int, nbytes: int) -> None:
        keeper.keep(1, seq, "mod-mul", Status.BAD_MODULUS, b"head", memoryview(bytes(nbytes)))

    keep(1, 100)
    keep(1, 100)  # the same name again
    keep(2, 900)  # beyond the bytes
    keep(3, 96)
    keep(4, 1)  # beyond the number
    names = sorted(path.name for path in folder.iterdir())
    pid = os.getpid()
    assert names == [
        f"{pid}-1-1-mod-mul-BAD_MODULUS.1.frame",
        f"{pid}-1-1-mod-mul-BAD_MODULUS.frame",
        f"{pid}-1-3-mod-mul-BAD_MODULUS.frame",
    ]
    for path in folder.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert path.read_bytes()[:4] == b"head"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert len(said) == 1 and "full" in said[0]
    again = FailedFrames(KeepFailed(folder, files=3, nbytes=1000), said.append)
    again.keep(1, 9, "mod-mul", Status.BAD_MODULUS, b"head", memoryview(b""))
    assert len(list(folder.iterdir())) == 3, "what an earlier worker left counts"


def test_half_a_failed_frame_is_not_kept(tmp_path: Path) -> None:
    """The disk is full: as for writes beyond the process's file size limit."""
    said: list[str] = []
    keeper = FailedFrames(KeepFailed(tmp_path), said.append)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
    try:
        keeper.keep(1, 1, "mod-mul", Status.BAD_MODULUS, b"head", memoryview(bytes(10_000)))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert list(tmp_path.iterdir()) == []
    assert len(said) == 1 and "cannot keep" in said[0]
