"""The layers below the ops, which no op's kernel reaches one by one, behind the entries of layers/."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from pathlib import Path

import pytest

from limbd.harness.groups import NAMES, is_tested
from limbd.kernels.source import ROOT, Sources
from limbd.worker.device.base import Backend

SOURCES = Sources((Path(__file__).parent / "layers", ROOT))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out the groups whose day it is not, but on a device, where nothing takes long."""
    day = _day(config)
    if day is None:
        return
    left_out = [item for item in items if not item.get_closest_marker("gpu") and not _is_tested(item, day)]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]


def _day(config: pytest.Config) -> int | None:
    """A number that grows by one a day; None where nothing goes by turns."""
    return None if config.getoption("--every-group") else date.today().toordinal()


@pytest.fixture(scope="session")
def day(pytestconfig: pytest.Config) -> int | None:
    return _day(pytestconfig)


def _is_tested(item: pytest.Item, day: int) -> bool:
    """Of a test for a group by its parameters: a curve, or its name, and g1 or g2."""
    params = getattr(getattr(item, "callspec", None), "params", {})
    curve, name = params.get("curve"), params.get("name", params.get("group"))
    if curve is None or name not in NAMES:
        return True
    return is_tested(curve if isinstance(curve, str) else curve.name, name, day)


@pytest.fixture(scope="session", params=["cpu", "ptx", pytest.param("cuda", marks=pytest.mark.gpu)])
def layers(request: pytest.FixtureRequest, make_backend: Callable[[str, Sources | None], Backend]) -> Backend:
    """cpu: the host's twin. ptx: what NVRTC makes for a GPU, interpreted. cuda: that, on a device (marked gpu). All
    with the kernels' range checks."""
    if request.param == "ptx":
        pytest.importorskip("cuda.bindings.nvrtc")
        from limbd.harness.ptx_backend import PtxBackend

        return PtxBackend(sources=SOURCES, verify=True)
    return make_backend(request.param, SOURCES)
