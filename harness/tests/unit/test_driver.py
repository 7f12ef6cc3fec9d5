"""Probing for a GPU, and what a driver's error becomes, where there is no GPU."""

from __future__ import annotations

import pytest

from limbd.ops.status import ServiceError, Status
from limbd.worker.device import driver
from limbd.worker.device.cuda_calls import ABSENT, STICKY, classify


@pytest.fixture
def no_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "LIBRARY", "libnot-a-driver.so.1")
    monkeypatch.setattr(driver, "probe", driver.probe.__wrapped__)


@pytest.mark.usefixtures("no_driver")
def test_without_a_driver_the_reason_is_given() -> None:
    state = driver.probe()
    assert (state.version, state.devices) == ((0, 0), ())
    assert "libnot-a-driver.so.1 is not installed" in state.reason


@pytest.mark.usefixtures("no_driver")
def test_the_cuda_backend_says_why_there_is_none() -> None:
    from limbd.worker.device.cuda import CudaBackend

    with pytest.raises(ServiceError, match="no NVIDIA driver") as caught:
        CudaBackend()
    assert caught.value.status is Status.NO_DEVICE


def test_a_device_that_is_not_there_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from limbd.worker.device.cuda import CudaBackend

    one = driver.DriverState((13, 0), (driver.Device(0, "card", (9, 0), 132, 1 << 30),), "")
    monkeypatch.setattr(driver, "probe", lambda: one)
    for index in (1, -1):
        with pytest.raises(ServiceError, match="there is no device") as caught:
            CudaBackend(index)
        assert caught.value.status is Status.NO_DEVICE


@pytest.mark.parametrize(
    ("code", "status"),
    [
        (1, Status.INTERNAL),
        (2, Status.OUT_OF_DEVICE_MEMORY),
        (100, Status.NO_DEVICE),
        (214, Status.DEVICE_FAULT),
        (222, Status.NO_DEVICE),
        (700, Status.DEVICE_FAULT),
        (701, Status.INTERNAL),
        (710, Status.DEVICE_FAULT),
        (719, Status.DEVICE_FAULT),
    ],
)
def test_what_a_driver_error_becomes(code: int, status: Status) -> None:
    assert classify(code) is status


def test_the_codes_are_those_of_the_bindings() -> None:
    """Where the bindings are installed: each number is one of theirs."""
    api = pytest.importorskip("cuda.bindings.driver")
    known = {int(result): result.name for result in api.CUresult}
    assert known[700] == "CUDA_ERROR_ILLEGAL_ADDRESS" and known[719] == "CUDA_ERROR_LAUNCH_FAILED"
    unknown = (STICKY | ABSENT) - set(known)
    assert unknown <= {226, 721}, "only codes that older toolkits lack"
