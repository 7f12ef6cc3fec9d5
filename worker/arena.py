"""Shared memory that payloads are read into and results are sent from: one memfd, mapped by the parent and every child.

The file is sparse: its size is address space. Memory is reserved with posix_fallocate before a slot is used, so that a
full machine is an error for one request and not a SIGBUS. It is unlinked from birth: nothing is left behind however the
processes end.

Two zones. Pages of the lasting zone, once reserved, stay until the arena is closed: reuse is free, and a device driver
may pin them. Pages of the passing zone serve what does not fit there; they go back to the system with their slot, so a
driver must never pin them (it would keep copying from pages that the file no longer has).
"""

from __future__ import annotations

import bisect
import contextlib
import ctypes
import mmap
import os
from dataclasses import dataclass

from limbd.ops.status import ServiceError, Status

PAGE = mmap.PAGESIZE
ALIGN = 64  # of payload and result: a cache line, and more than any vector load needs

# The lasting zone is reserved in steps of this: a few system calls for a zone's whole life.
GRANULE = 64 << 10

# The passing zone's address space, as a multiple of the bytes that may be in flight: first fit has to find room among
# what is left between slots of many sizes.
PASSING_FACTOR = 4

FALLOC_FL_KEEP_SIZE, FALLOC_FL_PUNCH_HOLE = 1, 2


@dataclass(frozen=True, eq=False)
class Slot:
    """One request's memory: payload and result are separate, so that a request can be run again.

    offset, nbytes: the whole slot in the arena. result_offset: within the arena. passing: see the module.
    """

    offset: int
    nbytes: int
    payload_bytes: int
    result_offset: int
    result_bytes: int
    passing: bool


def slot_bytes(payload_bytes: int, result_bytes: int) -> int:
    """What a slot takes: whole pages, rounded up to one of four sizes an octave so that freed slots fit again."""
    needed = max(PAGE, _aligned(payload_bytes, ALIGN) + result_bytes)
    step = max(PAGE, 1 << max(0, (needed - 1).bit_length() - 3))
    return _aligned(needed, step)


class Arena:
    """keep: bytes of the lasting zone; in_flight: bytes that may be reserved at a time (worker/budget.py sees to it)."""

    def __init__(self, keep: int, in_flight: int) -> None:
        self.lasting_bytes = _aligned(keep, GRANULE)
        self.nbytes = self.lasting_bytes + _aligned(PASSING_FACTOR * in_flight, PAGE)
        self.fd = os.memfd_create("limbd-arena", os.MFD_CLOEXEC)
        os.ftruncate(self.fd, self.nbytes)
        self._map = mmap.mmap(self.fd, self.nbytes)
        self._map.madvise(mmap.MADV_DONTDUMP)
        self.memory = memoryview(self._map)
        self._lasting = _Zone(0, self.lasting_bytes)
        self._passing = _Zone(self.lasting_bytes, self.nbytes - self.lasting_bytes)
        self._backed = bytearray(self.lasting_bytes // GRANULE)
        self.reserved = 0

    def reserve(self, payload_bytes: int, result_bytes: int) -> Slot:
        """Addresses for a request. Its memory is there only after `back`. Raises ServiceError(BUSY)."""
        nbytes = slot_bytes(payload_bytes, result_bytes)
        offset = self._lasting.take(nbytes)
        passing = offset is None
        if offset is None:
            offset = self._passing.take(nbytes)
        if offset is None:
            raise ServiceError(Status.BUSY, f"no room for {nbytes} bytes in the arena", hint="send it again later")
        self.reserved += nbytes
        result = offset + _aligned(payload_bytes, ALIGN)
        return Slot(offset, nbytes, payload_bytes, result, result_bytes, passing)

    def is_backed(self, slot: Slot) -> bool:
        """Memory is already there: `back` would return at once."""
        return not slot.passing and self._first_unbacked(slot) < 0

    def back(self, slot: Slot) -> None:
        """Have the system reserve the slot's memory; slow where it is large and new, and safe to call in a thread.

        Raises ServiceError(BUSY) if there is none.
        """
        start, end = slot.offset, slot.result_offset + slot.result_bytes
        if not slot.passing:
            first = self._first_unbacked(slot)
            if first < 0:
                return
            start, end = first * GRANULE, _aligned(end, GRANULE)
        try:
            os.posix_fallocate(self.fd, start, max(end - start, PAGE))
        except OSError as error:
            message = f"no host memory for {end - start} bytes: {error.strerror}"
            raise ServiceError(Status.BUSY, message, hint="send it again later, or smaller") from error
        if not slot.passing:
            self._backed[start // GRANULE : end // GRANULE] = b"\1" * ((end - start) // GRANULE)

    def payload(self, slot: Slot) -> memoryview:
        return self.memory[slot.offset : slot.offset + slot.payload_bytes]

    def result(self, slot: Slot) -> memoryview:
        return self.memory[slot.result_offset : slot.result_offset + slot.result_bytes]

    def give_back(self, slot: Slot) -> None:
        """Return a passing slot's memory to the system, before `release`; slow where it is large, safe in a thread."""
        if slot.passing:
            _punch_hole(self.fd, slot.offset, slot.nbytes)

    def release(self, slot: Slot) -> None:
        """The addresses are free again. Nobody may read or write the slot any more."""
        self.reserved -= slot.nbytes
        (self._passing if slot.passing else self._lasting).give(slot.offset, slot.nbytes)

    def close(self) -> None:
        """Unmap and close; views that are still held keep the mapping until they go."""
        self.memory.release()
        with contextlib.suppress(BufferError):  # a view is held elsewhere: the mapping goes with it
            self._map.close()
        os.close(self.fd)

    def _first_unbacked(self, slot: Slot) -> int:
        end = slot.result_offset + slot.result_bytes
        return self._backed.find(0, slot.offset // GRANULE, max(-(-end // GRANULE), slot.offset // GRANULE + 1))


class _Zone:
    """First fit over an address range: lowest address first, neighbours merged, so that few pages serve many sizes."""

    def __init__(self, start: int, nbytes: int) -> None:
        self._starts = [start] if nbytes else []
        self._sizes = [nbytes] if nbytes else []

    def take(self, nbytes: int) -> int | None:
        for i, size in enumerate(self._sizes):
            if size >= nbytes:
                start = self._starts[i]
                if size == nbytes:
                    del self._starts[i], self._sizes[i]
                else:
                    self._starts[i], self._sizes[i] = start + nbytes, size - nbytes
                return start
        return None

    def give(self, start: int, nbytes: int) -> None:
        i = bisect.bisect_left(self._starts, start)
        before = i > 0 and self._starts[i - 1] + self._sizes[i - 1] == start
        after = i < len(self._starts) and start + nbytes == self._starts[i]
        if before and after:
            self._sizes[i - 1] += nbytes + self._sizes[i]
            del self._starts[i], self._sizes[i]
        elif before:
            self._sizes[i - 1] += nbytes
        elif after:
            self._starts[i], self._sizes[i] = start, nbytes + self._sizes[i]
        else:
            self._starts.insert(i, start)
            self._sizes.insert(i, nbytes)


def _aligned(nbytes: int, step: int) -> int:
    return -(-nbytes // step) * step


_libc = ctypes.CDLL(None, use_errno=True)
_libc.fallocate.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)


def _punch_hole(fd: int, offset: int, nbytes: int) -> None:
    """fallocate(2) with PUNCH_HOLE, without the GIL."""
    while _libc.fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, nbytes):
        error = ctypes.get_errno()
        if error != 4:  # EINTR
            raise OSError(error, os.strerror(error))
