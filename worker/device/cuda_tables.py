"""Tables that outlive batches on a device: built at their first use, kept under their keys, given up by least recent use."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from limbd.ops.base import Launch, Table
from limbd.worker.device.cuda_context import CudaContext
from limbd.worker.device.cuda_lane import HostArray, host_address

# Enqueues a launch on a stream, its pointer members by name.
Enqueue = Callable[[Launch, dict[str, int], Any], None]


@dataclass(eq=False)
class _Kept:
    """A table in device memory. users: batches in flight that read it. built: the event after its launches."""

    address: int
    nbytes: int
    built: Any
    users: int = 0


class CudaTables:
    """give() may be called by any thread; for everything else the caller holds the lock under which memory is found for
    batches."""

    def __init__(self, context: CudaContext, enqueue: Enqueue) -> None:
        self._context = context
        self._enqueue = enqueue
        self._kept: dict[str, _Kept] = {}  # least recently used first
        self._counting = threading.Lock()  # guards users

    @property
    def nbytes(self) -> int:
        return sum(kept.nbytes for kept in self._kept.values())

    def missing(self, tables: Sequence[Table]) -> int:
        """Bytes that those which have to be built take meanwhile."""
        return sum(table.building_bytes() for table in tables if table.key not in self._kept)

    def take(self, tables: Sequence[Table], arrays: Mapping[str, HostArray], stream: Any) -> dict[str, int]:
        """Their addresses by name, usable in the stream's order. Each take is ended by a give of the same tables. arrays: what
        they are made from, where they are; they belong to the stream until it has come this far.

        Raises CudaError, with code OUT_OF_MEMORY where there is no room; nothing is taken then.
        """
        taken: list[Table] = []
        addresses: dict[str, int] = {}
        try:
            for table in tables:
                kept = self._kept.pop(table.key, None) or self._build(table, arrays, stream)
                self._kept[table.key] = kept
                with self._counting:
                    kept.users += 1
                taken.append(table)
                self._context.call("cuStreamWaitEvent", stream, kept.built, 0)
                addresses[table.name] = kept.address
        except BaseException:
            self.give(taken)
            raise
        return addresses

    def give(self, tables: Sequence[Table]) -> None:
        with self._counting:
            for table in tables:
                self._kept[table.key].users -= 1

    def drop(self, wanted: Sequence[Table]) -> bool:
        """Gives up the table that has not been used for longest, of those that nobody reads and that are not wanted. False
        where there is none."""
        keys = {table.key for table in wanted}
        with self._counting:
            idle = (key for key, kept in self._kept.items() if kept.users == 0 and key not in keys)
            oldest = next(idle, None)
        if oldest is None:
            return False
        self._release(self._kept.pop(oldest))
        return True

    def forget(self, key: str) -> bool:
        """Gives up the table with this key, if nobody reads it; False where somebody does."""
        with self._counting:
            kept = self._kept.get(key)
            if kept is not None and kept.users:
                return False
        if kept is not None:
            self._release(self._kept.pop(key))
        return True

    def close(self) -> None:
        """Nothing may be in flight."""
        for kept in self._kept.values():
            self._release(kept)
        self._kept.clear()

    def _build(self, table: Table, arrays: Mapping[str, HostArray], stream: Any) -> _Kept:
        address = self._context.allocate(table.nbytes, stream)
        built = self._context.order_events.take()
        try:
            self._enqueue_builds(table, address, arrays, stream)
            self._context.call("cuEventRecord", built, stream)
        except BaseException:
            self._context.order_events.give((built,))
            self._context.free(address, stream)
            raise
        return _Kept(address, table.nbytes, built)

    def _enqueue_builds(self, table: Table, address: int, arrays: Mapping[str, HostArray], stream: Any) -> None:
        """The table's copies and launches; its workspace is given back in the stream's order."""
        addresses = {table.name: address}
        try:
            for buffer in table.workspace:
                addresses[buffer.name] = self._context.allocate(buffer.nbytes, stream)
            sizes = {buffer.name: buffer.nbytes for buffer in table.workspace}
            for copy in table.copies_in:
                host = host_address(copy, arrays, sizes[copy.buffer])
                self._context.call("cuMemcpyHtoDAsync", addresses[copy.buffer] + copy.at, host, copy.nbytes, stream)
            for build in table.builds:
                self._enqueue(build, addresses, stream)
        finally:
            for buffer in table.workspace:
                if buffer.name in addresses:
                    self._context.free(addresses[buffer.name], stream)

    def _release(self, kept: _Kept) -> None:
        stream = self._context.take_stream()
        self._context.free(kept.address, stream)
        self._context.give_stream(stream)
        self._context.order_events.give((kept.built,))
