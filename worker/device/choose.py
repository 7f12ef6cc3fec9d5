"""Which backend a child runs. Modules of backends are imported here only, and only those that are tried."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from limbd.ops.status import LimbdError
from limbd.worker.device.base import Backend

# What auto tries, in this order.
AUTOMATIC = ("cuda", "cpu", "reference")


class NoBackend(Exception):
    """Nothing that was asked for works here; the text says why."""


def choose(name: str, device: int, device_memory: int | None, cache: Path | None) -> tuple[Backend, str]:
    """The backend, and why it was taken. A backend asked for by name is used or is an error (NoBackend). Raises ValueError
    where no backend has that name."""
    if name != "auto" and name not in _MAKERS:
        raise ValueError(f"there is no backend {name!r}: there are auto, {', '.join(_MAKERS)}")
    candidates = AUTOMATIC if name == "auto" else (name,)
    refused = []
    for candidate in candidates:
        try:
            backend = _MAKERS[candidate](device, device_memory, cache)
        except (LimbdError, ImportError, OSError) as error:
            refused.append(f"{candidate}: {error}")
        else:
            reason = "asked for by name" if name != "auto" else "the first that works"
            return backend, "; ".join([reason, *refused, *_cache_note(backend)])
    raise NoBackend("; ".join(refused))


def _cache_note(backend: Backend) -> list[str]:
    """Kernels that are compiled at every start are to be explained."""
    note = getattr(getattr(backend, "cache", None), "note", "")
    return [f"compiled kernels are kept in memory: {note}"] if note else []


def _cuda(device: int, device_memory: int | None, cache: Path | None) -> Backend:
    from limbd.worker.device.cache import Cache
    from limbd.worker.device.cuda import CudaBackend

    return CudaBackend(device, memory=device_memory, cache=Cache(cache))


def _cpu(device: int, device_memory: int | None, cache: Path | None) -> Backend:
    from limbd.worker.device.cache import Cache
    from limbd.worker.device.cpu import CpuBackend

    return CpuBackend(memory=device_memory, cache=Cache(cache))


def _reference(device: int, device_memory: int | None, cache: Path | None) -> Backend:
    from limbd.worker.device.reference import ReferenceBackend

    return ReferenceBackend()


def _null(device: int, device_memory: int | None, cache: Path | None) -> Backend:
    from limbd.worker.device.null import NullBackend

    return NullBackend()


_MAKERS: dict[str, Callable[[int, int | None, Path | None], Backend]] = {
    "cuda": _cuda,
    "cpu": _cpu,
    "reference": _reference,
    "null": _null,
}
