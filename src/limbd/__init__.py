"""limbd: a batch worker for big-integer arithmetic on GPUs.

import limbd

with limbd.Client() as client:
    client.mod_mul([3, 4], [5, 6], 7)    # [1, 3]
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from limbd import formats
    from limbd.local import Worker
    from limbd.ops.status import LimbdError, RequestError, ServiceError, Status
    from limbd.worker.client import AsyncClient, Client

__version__ = "0.1.0"

__all__ = [
    "AsyncClient",
    "Client",
    "LimbdError",
    "RequestError",
    "ServiceError",
    "Status",
    "Worker",
    "__version__",
    "formats",
]

_CLIENTS = ("AsyncClient", "Client")


def __getattr__(name: str) -> Any:
    """The public names, imported when they are first used: `limbd pipe` and `--help` need none of them."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name == "formats":
        return import_module("limbd.formats")
    if name in _CLIENTS:
        from limbd.worker import client as home
    elif name == "Worker":
        from limbd import local as home  # type: ignore[no-redef]
    else:
        from limbd.ops import status as home  # type: ignore[no-redef]
    return getattr(home, name)
