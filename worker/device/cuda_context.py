"""One device's context and what is taken from it again and again: streams, events, memory of one pool."""

from __future__ import annotations

import ctypes
import logging
import threading
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from limbd.ops.status import Status
from limbd.worker.device.cuda_calls import ALREADY_REGISTERED, CudaCalls, CudaError

Bytes = npt.NDArray[np.uint8]

# Kernels compiled for less do not wait for the launch before them (kernels/base/grid_order.cuh).
OVERLAPS_FROM = 90

CONFIGURATIONS_KEPT = 4096

log = logging.getLogger("limbd.device")


class Events:
    """Events of one kind, made when there is no free one. An event may be given back before it has happened: recording it
    again does not change what waits for the earlier record."""

    def __init__(self, call: CudaCalls, flags: int) -> None:
        self._call = call
        self._flags = flags
        self._lock = threading.Lock()
        self._free: list[Any] = []

    def take(self) -> Any:
        with self._lock:
            if self._free:
                return self._free.pop()
        return self._call("cuEventCreate", self._flags)

    def give(self, events: Iterable[Any]) -> None:
        with self._lock:
            self._free.extend(events)

    def close(self) -> None:
        for event in self._free:
            self._call("cuEventDestroy", event)


class PinnedWords:
    """64-bit words of host memory that copies from the device can be enqueued to."""

    PAGE = 4096

    def __init__(self, call: CudaCalls) -> None:
        self._call = call
        self._lock = threading.Lock()
        self._pages: list[int] = []
        self._free: list[int] = []

    def take(self) -> int:
        """The address of a word."""
        with self._lock:
            if not self._free:
                page = int(self._call("cuMemHostAlloc", self.PAGE, 0))
                self._pages.append(page)
                self._free.extend(range(page, page + self.PAGE, ctypes.sizeof(ctypes.c_uint64)))
            return self._free.pop()

    def give(self, address: int) -> int:
        """The word's value, which then belongs to the next one."""
        value = ctypes.c_uint64.from_address(address).value
        with self._lock:
            self._free.append(address)
        return value

    def close(self) -> None:
        for page in self._pages:
            self._call("cuMemFreeHost", page)


def overlapping(api: Any, shape: tuple[int, ...], stream: Any) -> Any:
    """As CudaContext.overlapping."""
    config, attribute = api.CUlaunchConfig(), api.CUlaunchAttribute()
    attribute.id = api.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
    attribute.value.programmaticStreamSerializationAllowed = 1
    config.gridDimX, config.gridDimY, config.gridDimZ = shape[:3]
    config.blockDimX, config.blockDimY, config.blockDimZ, config.sharedMemBytes = shape[3:]
    config.attrs, config.numAttrs, config.hStream = [attribute], 1, stream
    return config


class CudaContext:
    """The device's primary context. call: the checked driver call; use it only in threads that bind() has seen.
    time_events record the device's clock, order_events only let streams wait for each other. overlaps: whether launches may
    overlap the ones before them."""

    def __init__(self, index: int, budget: int, arch: int) -> None:
        """budget: bytes that the pool keeps between batches. arch: what kernels are compiled for. Raises ServiceError if the
        device cannot be used."""
        self.call = CudaCalls()
        self.overlaps = arch >= OVERLAPS_FROM
        self._device = self.call("cuDeviceGet", index)
        self._context = self.call("cuDevicePrimaryCtxRetain", self._device)
        self._bound = threading.local()
        self._lock = threading.Lock()
        self._streams: list[Any] = []
        self.time_events = Events(self.call, int(self.call.api.CUevent_flags.CU_EVENT_DEFAULT))
        self.order_events = Events(self.call, int(self.call.api.CUevent_flags.CU_EVENT_DISABLE_TIMING))
        self._registered: list[Bytes] = []
        self._overlapping: dict[tuple[tuple[int, ...], int], Any] = {}
        self.bind()
        self._pool = self._create_pool(index, budget)
        self.words = PinnedWords(self.call)

    @property
    def lost(self) -> bool:
        return bool(self.call.broken)

    def bind(self) -> None:
        """Makes the context current in the calling thread: a new thread has none."""
        if not getattr(self._bound, "done", False):
            self.call("cuCtxSetCurrent", self._context)
            self._bound.done = True

    # --- streams ---

    def take_stream(self) -> Any:
        with self._lock:
            if self._streams:
                return self._streams.pop()
        return self.call("cuStreamCreate", int(self.call.api.CUstream_flags.CU_STREAM_NON_BLOCKING))

    def give_stream(self, stream: Any) -> None:
        with self._lock:
            self._streams.append(stream)

    def overlapping(self, shape: tuple[int, ...], stream: Any) -> Any:
        """The driver's configuration of a launch in the stream that may begin before the one before it has ended. Kept: to make
        one takes longer than a launch. shape: grid, block (three numbers each) and shared bytes."""
        key = (shape, int(stream))
        config = self._overlapping.get(key)
        if config is None:
            if len(self._overlapping) >= CONFIGURATIONS_KEPT:
                self._overlapping.clear()
            config = self._overlapping[key] = overlapping(self.call.api, shape, stream)
        return config

    # --- memory ---

    def allocate(self, nbytes: int, stream: Any) -> int:
        """Device memory, usable in the stream's order. Raises CudaError with code OUT_OF_MEMORY."""
        return int(self.call("cuMemAllocFromPoolAsync", nbytes, self._pool, stream))

    def free(self, address: int, stream: Any) -> None:
        self.call("cuMemFreeAsync", address, stream)

    def trim(self) -> None:
        """Gives all free memory of the pool back to the device; waits for what is enqueued."""
        self.call("cuCtxSynchronize")
        self.call("cuMemPoolTrimTo", self._pool, 0)

    def peak_memory(self, *, reset: bool = False) -> int:
        """The most bytes that were allocated at once since the last reset."""
        attribute = self.call.api.CUmemPool_attribute.CU_MEMPOOL_ATTR_USED_MEM_HIGH
        peak = int(self.call("cuMemPoolGetAttribute", self._pool, attribute))
        if reset:
            self.call("cuMemPoolSetAttribute", self._pool, attribute, self.call.api.cuuint64_t(0))
        return peak

    def _create_pool(self, index: int, budget: int) -> Any:
        api = self.call.api
        properties = api.CUmemPoolProps()
        properties.allocType = api.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
        properties.location.type = api.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
        properties.location.id = index
        pool = self.call("cuMemPoolCreate", properties)
        threshold = api.CUmemPool_attribute.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD
        self.call("cuMemPoolSetAttribute", pool, threshold, api.cuuint64_t(budget))
        return pool

    # --- host memory ---

    def register(self, memory: memoryview) -> None:
        """Pins host memory. Where the system does not allow it a warning is logged: copies work, but slower."""
        view = np.frombuffer(memory, np.uint8)
        try:
            self.call("cuMemHostRegister", view.__array_interface__["data"][0], view.nbytes, 0)
        except CudaError as error:
            if error.status is Status.DEVICE_FAULT:
                raise
            if error.code != ALREADY_REGISTERED:
                log.warning("host memory is not pinned, copies will be slower: %s", error)
            return
        with self._lock:
            self._registered.append(view)

    def unregister(self, memory: memoryview) -> None:
        """Unpins memory that was registered as it is; nothing to do where that had failed."""
        address = np.frombuffer(memory, np.uint8).__array_interface__["data"][0]
        with self._lock:
            kept = [view for view in self._registered if view.__array_interface__["data"][0] != address]
            pinned = len(kept) < len(self._registered)
            self._registered = kept
        if pinned:
            self.call("cuMemHostUnregister", address)

    def close(self) -> None:
        """Gives everything back; nothing may be in flight. Memory of batches has to be freed before."""
        for stream in self._streams:
            self.call("cuStreamSynchronize", stream)
            self.call("cuStreamDestroy", stream)
        self.time_events.close()
        self.order_events.close()
        for view in self._registered:
            self.call("cuMemHostUnregister", view.__array_interface__["data"][0])
        self.words.close()
        self.call("cuMemPoolDestroy", self._pool)
        self.call("cuDevicePrimaryCtxRelease", self._device)
        self._registered.clear()
