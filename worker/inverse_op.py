"""Which op answers a client's mod_inv: mod-inv, or above a bound mod-inv-batch, whose answers are the same.

Up to NEVER_BATCHED elements mod-inv-batch is mod-inv on every backend, and above it the worker's own crossover decides
(ops/tuning.py): so one bound serves a client that does not know its worker's device.

A worker at an address may be older than mod-inv-batch. Such a worker answers UNKNOWN_OP and closes the connection, with
whatever else is on its way there: so it is asked for no elements, on a connection of its own, before the first batch.
"""

from __future__ import annotations

import threading
import time

from limbd.ops.mod_inv import MOD_INV
from limbd.ops.mod_inv_batch import MOD_INV_BATCH
from limbd.ops.status import LimbdError, Status
from limbd.ops.tuning import NEVER_BATCHED
from limbd.worker import wire
from limbd.worker.link import Address

# A worker answers a question without elements at once, unless it serves one connection at a time.
ANSWER_SECONDS = 5.0

# The smallest question: modulo 1, no elements.
_QUESTION = wire.request_header(MOD_INV_BATCH.id, 0, 0) + (1).to_bytes(32, "little")


class InverseOp:
    """The choice for one client, whose worker is asked at most once. Methods may be called from any thread."""

    def __init__(self, address: Address | None, timeout: float | None = None) -> None:
        """address: of the worker; None for a local one, which is of this version. timeout: of the client's own requests."""
        self._address = address
        self._seconds = ANSWER_SECONDS if timeout is None else min(timeout, ANSWER_SECONDS)
        self._batches: bool | None = True if address is None else None
        self._lock = threading.Lock()

    def known(self, n: int) -> bool:
        """Whether name(n) answers without asking the worker."""
        return n <= NEVER_BATCHED or self._batches is not None

    def name(self, n: int) -> str:
        """The op for n elements. mod-inv, which every worker answers, where this one does not know mod-inv-batch, or
        has not said so within ANSWER_SECONDS, or the client's timeout."""
        if n <= NEVER_BATCHED:
            return MOD_INV.name
        with self._lock:
            if self._batches is None:
                assert self._address is not None
                self._batches = _knows_batches(self._address, self._seconds)
            return MOD_INV_BATCH.name if self._batches else MOD_INV.name


def _knows_batches(address: Address, seconds: float) -> bool:
    """Whether it has answered so before `seconds` are over, in all."""
    end = time.monotonic() + seconds
    answer = b""
    try:
        with address.connect(seconds) as connection:
            connection.sendall(_QUESTION)
            while len(answer) < wire.VERSION_1.response.size and (left := end - time.monotonic()) > 0:
                connection.settimeout(left)
                part = connection.recv(wire.VERSION_1.response.size - len(answer))
                if not part:
                    break
                answer += part
    except (OSError, LimbdError):
        return False
    return answer == wire.response_header(Status.OK, 0)
