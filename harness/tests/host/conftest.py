"""The layers below the ops, which no op's kernel reaches one by one, behind the entries of layers/."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from limbd.kernels.source import ROOT, Sources
from limbd.worker.device.base import Backend

SOURCES = Sources((Path(__file__).parent / "layers", ROOT))


@pytest.fixture(scope="session", params=["cpu", "ptx", pytest.param("cuda", marks=pytest.mark.gpu)])
def layers(request: pytest.FixtureRequest, make_backend: Callable[[str, Sources | None], Backend]) -> Backend:
    """cpu: the host's twin. ptx: what NVRTC makes for a GPU, interpreted. cuda: that, on a device (marked gpu). All
    with the kernels' range checks."""
    if request.param == "ptx":
        pytest.importorskip("cuda.bindings.nvrtc")
        from limbd.harness.ptx_backend import PtxBackend

        return PtxBackend(sources=SOURCES, verify=True)
    return make_backend(request.param, SOURCES)
