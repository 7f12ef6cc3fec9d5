"""The backends that need no GPU, once a test run. The CPU one compiles with range checks and poisons its results."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from limbd.worker.device.base import Backend
from limbd.worker.device.cache import Cache
from limbd.worker.device.cpu import CpuBackend
from limbd.worker.device.host_compiler import Variant
from limbd.worker.device.reference import ReferenceBackend


@pytest.fixture(scope="session")
def cpu(pytestconfig: pytest.Config) -> Iterator[CpuBackend]:
    """Compiled kernels are kept between runs, under pytest's own cache folder."""
    folder = Path(pytestconfig.cache.mkdir("kernels")) if pytestconfig.cache else None
    backend = CpuBackend(cache=Cache(folder), variant=Variant.VERIFY, poison=True)
    yield backend
    backend.close()


@pytest.fixture(scope="session", params=["reference", "cpu"])
def backend(request: pytest.FixtureRequest) -> Backend:
    """Every suite that asks for it runs once a backend."""
    if request.param == "cpu":
        chosen: Backend = request.getfixturevalue("cpu")
        return chosen
    return ReferenceBackend()
