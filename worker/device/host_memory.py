"""How much memory the host has: the budget of the backends that compute on it."""

from __future__ import annotations

import os


def host_memory_bytes() -> int:
    """Physical memory in bytes (a container's own limit is not looked at)."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
