"""Is there a GPU? Asks the driver once, through ctypes alone, and never touches it again after a failure.

Asking initialises the driver in the calling process: the front leaves it to the child.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from functools import cache
from typing import Any

LIBRARY = "libcuda.so.1"

_NAME_BYTES = 256
_BUS_ID_BYTES = 32
_MULTIPROCESSOR_COUNT = 16
_CAPABILITY_MAJOR = 75
_CAPABILITY_MINOR = 76


@dataclass(frozen=True)
class Device:
    """A GPU as the driver describes it. capability: (9, 0) for sm_90. memory: bytes in all."""

    index: int
    name: str
    capability: tuple[int, int]
    multiprocessors: int
    memory: int

    @property
    def arch(self) -> str:
        return f"sm_{self.capability[0]}{self.capability[1]}"


@dataclass(frozen=True)
class DriverState:
    """version: the CUDA version that the driver serves, (0, 0) without one. reason: why there is no device, or ""."""

    version: tuple[int, int]
    devices: tuple[Device, ...]
    reason: str


@cache
def probe() -> DriverState:
    """What the driver offers to this process; asked once."""
    try:
        driver: Any = ctypes.CDLL(LIBRARY)
    except OSError:
        return DriverState((0, 0), (), f"no NVIDIA driver ({LIBRARY} is not installed)")
    version = (0, 0)
    try:
        version = _version(driver)
        _check(driver, "cuInit", driver.cuInit(0))
        devices = tuple(_device(driver, i) for i in range(_count(driver)))
    except (LookupError, AttributeError) as error:
        return DriverState(version, (), str(error))
    return DriverState(version, devices, "" if devices else "the driver reports no device")


def bus_id(index: int) -> str:
    """The PCI bus id of a device that probe() found. Raises LookupError with the driver's own words."""
    driver: Any = ctypes.CDLL(LIBRARY)
    handle, text = ctypes.c_int(), ctypes.create_string_buffer(_BUS_ID_BYTES)
    _check(driver, "cuDeviceGet", driver.cuDeviceGet(ctypes.byref(handle), index))
    _check(driver, "cuDeviceGetPCIBusId", driver.cuDeviceGetPCIBusId(text, _BUS_ID_BYTES, handle))
    return text.value.decode()


def _version(driver: Any) -> tuple[int, int]:
    number = ctypes.c_int()
    _check(driver, "cuDriverGetVersion", driver.cuDriverGetVersion(ctypes.byref(number)))
    return number.value // 1000, number.value % 1000 // 10


def _count(driver: Any) -> int:
    count = ctypes.c_int()
    _check(driver, "cuDeviceGetCount", driver.cuDeviceGetCount(ctypes.byref(count)))
    return count.value


def _device(driver: Any, index: int) -> Device:
    handle, name, memory = ctypes.c_int(), ctypes.create_string_buffer(_NAME_BYTES), ctypes.c_size_t()
    _check(driver, "cuDeviceGet", driver.cuDeviceGet(ctypes.byref(handle), index))
    _check(driver, "cuDeviceGetName", driver.cuDeviceGetName(name, _NAME_BYTES, handle))
    _check(driver, "cuDeviceTotalMem", driver.cuDeviceTotalMem_v2(ctypes.byref(memory), handle))
    capability = (_attribute(driver, _CAPABILITY_MAJOR, handle), _attribute(driver, _CAPABILITY_MINOR, handle))
    multiprocessors = _attribute(driver, _MULTIPROCESSOR_COUNT, handle)
    return Device(index, name.value.decode(errors="replace"), capability, multiprocessors, memory.value)


def _attribute(driver: Any, attribute: int, handle: ctypes.c_int) -> int:
    value = ctypes.c_int()
    _check(driver, "cuDeviceGetAttribute", driver.cuDeviceGetAttribute(ctypes.byref(value), attribute, handle))
    return value.value


def _check(driver: Any, call: str, status: int) -> None:
    """Raises LookupError with the driver's own words."""
    if status != 0:
        text = ctypes.c_char_p()
        known = driver.cuGetErrorString(status, ctypes.byref(text)) == 0 and text.value
        raise LookupError(f"{call}: {text.value.decode() if known and text.value else f'error {status}'}")
