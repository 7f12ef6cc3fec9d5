"""What a record says of the machine that it was measured on."""

from __future__ import annotations

from typing import Protocol

from limbd.harness.report import Record
from limbd.worker.device import driver, nvml
from limbd.worker.device.base import BackendInfo


class Described(Protocol):
    """Anything that says what it runs on: a backend."""

    def describe(self) -> BackendInfo: ...


def facts(backend: Described) -> Record:
    """backend, gpu (the processor's name on a CPU), arch, compiler; with a GPU also device, driver and cuda versions."""
    told = backend.describe()
    record: Record = {"backend": told.name, "gpu": told.device, "arch": told.arch, "compiler": told.compiler}
    if told.name == "cuda":
        record["device"] = told.index
        record["driver"] = nvml.driver_version()
        record["cuda"] = ".".join(map(str, driver.probe().version))
    return record


def clock(backend: Described) -> Record | None:
    """The GPU's clocks at this moment, in MHz; None where nothing tells them."""
    told = backend.describe()
    try:
        return nvml.clocks(driver.bus_id(told.index)) if told.name == "cuda" else None
    except (LookupError, OSError, AttributeError):
        return None
