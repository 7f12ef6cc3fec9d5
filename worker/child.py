"""The parent's end of one child process: spawn, the two sockets, beats, death. It knows no queue and no policy."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass

from limbd.worker.arena import Arena
from limbd.worker.config import Config, Supervision
from limbd.worker.device.messages import MESSAGE_BYTES, Answer, Hello, Job, Orders

# A process that has closed its sockets is gone in milliseconds; one that held a device takes longer.
REAP_INTERVAL = 0.005


@dataclass(frozen=True)
class Events:
    """What a child reports, on the event loop. died: exactly once, and last; its text says how it ended."""

    hello: Callable[[Hello], None]
    answer: Callable[[Answer], None]
    died: Callable[[str], None]


class Child:
    """One child process, from its spawn to the last trace of it. Raises OSError if it cannot be spawned."""

    def __init__(self, config: Config, device: int, arena: Arena, events: Events) -> None:
        self._loop = asyncio.get_running_loop()
        self._supervision: Supervision = config.supervision
        self._events = events
        self._greeted = False
        self._cause = ""
        self._silent = 0
        self._beat = 0
        self._work, work_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._control, control_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with work_end, control_end:
            try:
                self._process = self._spawn(config, device, arena, work_end, control_end)
            except BaseException:
                self._work.close()
                self._control.close()
                raise
        for end in (self._work, self._control):
            end.setblocking(False)
        self._loop.add_reader(self._work, self._on_work)
        self._loop.add_reader(self._control, self._on_control)
        self._timer = self._loop.call_later(self._supervision.start, self._on_start_deadline)

    @property
    def pid(self) -> int:
        return self._process.pid

    def send(self, job: Job) -> None:
        """Hand a job over. The caller keeps few in the child at a time, so there is always room; a child that has died
        reports it by `died`."""
        with contextlib.suppress(OSError):
            self._work.send(job.pack())

    def kill(self, cause: str) -> None:
        """End it at once; `died` follows, with this cause."""
        self._cause = self._cause or cause
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()

    def _spawn(
        self, config: Config, device: int, arena: Arena, work: socket.socket, control: socket.socket
    ) -> subprocess.Popen[bytes]:
        orders = Orders(
            work.fileno(),
            control.fileno(),
            arena.fd,
            arena.nbytes,
            arena.lasting_bytes,
            config.backend,
            device,
            config.device_memory,
            None if config.cache is None else str(config.cache),
        )
        # A session of its own: a signal from the terminal is the parent's to handle. Its stdin and stdout are not the
        # parent's, which carry frames.
        return subprocess.Popen(
            [sys.executable, "-m", "limbd.worker.device.main", orders.dump()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=(work.fileno(), control.fileno(), arena.fd),
            start_new_session=True,
        )

    def _on_work(self) -> None:
        try:
            message = self._work.recv(MESSAGE_BYTES)
        except BlockingIOError:
            return
        except OSError:
            message = b""
        if not message:
            self._end()
        elif self._greeted:
            self._events.answer(Answer.unpack(message))
        else:
            self._greeted = True
            self._timer.cancel()
            self._timer = self._loop.call_later(self._supervision.heartbeat, self._on_beat)
            self._events.hello(Hello.unpack(message))

    def _on_control(self) -> None:
        try:
            beat = self._control.recv(MESSAGE_BYTES)
        except BlockingIOError:
            return
        except OSError:
            beat = b""
        if beat:
            self._silent = 0
        else:
            self._loop.remove_reader(self._control)  # its death is told by the work socket, after its last answers

    def _on_beat(self) -> None:
        if self._silent >= self._supervision.silent_beats:
            self.kill(f"it has not answered {self._silent} beats")
            return
        self._silent += 1
        self._beat += 1
        with contextlib.suppress(OSError):
            self._control.send(self._beat.to_bytes(8, "little"))
        self._timer = self._loop.call_later(self._supervision.heartbeat, self._on_beat)

    def _on_start_deadline(self) -> None:
        self.kill(f"it did not start within {self._supervision.start:g} s")

    def _end(self) -> None:
        """The work socket has closed: whatever the child had to say has been heard.

        Death is told only after the process is reaped: until then its device may still be writing to the arena.
        """
        self._loop.remove_reader(self._work)
        self._loop.remove_reader(self._control)
        self._timer.cancel()
        self._work.close()
        self._control.close()
        self._process.kill()  # it may have closed its socket without ending; one that is exiting keeps its status
        self._reap()

    def _reap(self) -> None:
        if self._process.poll() is None:
            self._loop.call_later(REAP_INTERVAL, self._reap)
        else:
            self._events.died(self._cause or _how(self._process.returncode))


def _how(returncode: int) -> str:
    if returncode < 0:
        try:
            return f"killed by {signal.Signals(-returncode).name}"
        except ValueError:  # most real-time signals have no name
            return f"killed by signal {-returncode}"
    return f"exit status {returncode}"
