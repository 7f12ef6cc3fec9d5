"""The backends as fixtures, so that a suite written once runs on all of them.

backend: reference, cpu and cuda. kernels: those two that run our kernels, with range checks compiled in and results
poisoned beforehand. The cuda variants carry the marker gpu: deselected unless asked for, and then a missing device is
an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from limbd.kernels.source import Sources
from limbd.worker.device.base import Backend
from limbd.worker.device.cache import Cache
from limbd.worker.device.reference import ReferenceBackend

CUDA = pytest.param("cuda", marks=pytest.mark.gpu)

MakeBackend = Callable[[str, Sources | None], Backend]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--every-group", action="store_true", help="tests on the CPU of all curves' groups and forms, not of today's"
    )


@pytest.fixture(scope="session")
def kernel_cache(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where compiled kernels are kept: between runs, under pytest's own cache folder, unless that is switched off."""
    kept = getattr(pytestconfig, "cache", None)
    return Path(kept.mkdir("kernels")) if kept else tmp_path_factory.mktemp("kernels")


@pytest.fixture(scope="session")
def make_backend(kernel_cache: Path) -> Iterator[MakeBackend]:
    """(name, sources) -> a backend with checks, closed at the end."""
    made: list[Backend] = []

    def make(name: str, sources: Sources | None) -> Backend:
        made.append(_make(name, Cache(kernel_cache), sources))
        return made[-1]

    yield make
    for backend in made:
        backend.close()


@pytest.fixture(scope="session", params=["cpu", CUDA])
def kernels(request: pytest.FixtureRequest, made_once: Callable[[str], Backend]) -> Backend:
    return made_once(request.param)


@pytest.fixture(scope="session", params=["reference", "cpu", CUDA])
def backend(request: pytest.FixtureRequest, made_once: Callable[[str], Backend]) -> Backend:
    return made_once(request.param)


@pytest.fixture(scope="session")
def made_once(make_backend: MakeBackend) -> Callable[[str], Backend]:
    """name -> the one backend of that name with the shipped kernels."""
    known: dict[str, Backend] = {}

    def once(name: str) -> Backend:
        if name not in known:
            known[name] = make_backend(name, None)
        return known[name]

    return once


def _make(name: str, cache: Cache, sources: Sources | None) -> Backend:
    if name == "reference":
        return ReferenceBackend()
    if name == "cpu":
        from limbd.worker.device.cpu import CpuBackend
        from limbd.worker.device.host_compiler import Variant

        return CpuBackend(cache=cache, sources=sources, variant=Variant.VERIFY, poison=True)
    from limbd.worker.device.cuda import CudaBackend

    return CudaBackend(cache=cache, sources=sources, verify=True, poison=True)
