"""What the management library says of a GPU: the driver's own version, clocks. Through ctypes; it comes with the driver.

Names and values: nvml.h of the CUDA toolkit.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

LIBRARY = "libnvidia-ml.so.1"

_VERSION_BYTES = 80
_CLOCK_SM = 1
_CLOCK_MEMORY = 2


def driver_version() -> str | None:
    """The driver's version ("580.65.06"); None without the library."""
    try:
        with _library() as nvml:
            text = ctypes.create_string_buffer(_VERSION_BYTES)
            _check(nvml.nvmlSystemGetDriverVersion(text, _VERSION_BYTES))
            return text.value.decode()
    except (OSError, AttributeError):
        return None


def clocks(bus_id: str) -> dict[str, int] | None:
    """Clocks in MHz of the GPU with this PCI bus id: sm_mhz and memory_mhz now, max_sm_mhz; None where nothing tells."""
    try:
        with _library() as nvml:
            device = ctypes.c_void_p()
            _check(nvml.nvmlDeviceGetHandleByPciBusId_v2(bus_id.encode(), ctypes.byref(device)))
            return {
                "sm_mhz": _clock(nvml.nvmlDeviceGetClockInfo, device, _CLOCK_SM),
                "memory_mhz": _clock(nvml.nvmlDeviceGetClockInfo, device, _CLOCK_MEMORY),
                "max_sm_mhz": _clock(nvml.nvmlDeviceGetMaxClockInfo, device, _CLOCK_SM),
            }
    except (OSError, AttributeError):
        return None


@contextmanager
def _library() -> Iterator[Any]:
    """Raises OSError where the library is not installed or does not start."""
    nvml: Any = ctypes.CDLL(LIBRARY)
    _check(nvml.nvmlInit_v2())
    try:
        yield nvml
    finally:
        nvml.nvmlShutdown()


def _clock(function: Any, device: ctypes.c_void_p, kind: int) -> int:
    value = ctypes.c_uint()
    _check(function(device, kind, ctypes.byref(value)))
    return value.value


def _check(status: int) -> None:
    if status != 0:
        raise OSError(f"{LIBRARY}: error {status}")
