"""The status codes of the wire (wire.md section 3) and the two error classes: the client's fault, and ours.

They live here, below the worker, because an op's decoder already has to refuse a bad modulus.
"""

from __future__ import annotations

from enum import IntEnum


class Status(IntEnum):
    """One code per outcome of a request; the numbers are the wire's and are never reused."""

    OK = 0
    BAD_MAGIC = 1
    UNSUPPORTED_VERSION = 2
    UNKNOWN_OP = 3
    BAD_LENGTH = 4
    TOO_LARGE = 5
    BAD_CHECKSUM = 6
    BAD_MODULUS = 7
    BAD_ELEMENT = 8
    BAD_PARAM = 9
    BAD_DOMAIN = 10
    UNKNOWN_HANDLE = 11
    DUPLICATE_ID = 12
    BUSY = 16
    DRAINING = 17
    DEADLINE_EXCEEDED = 18
    CANCELLED = 19
    OUT_OF_DEVICE_MEMORY = 20
    DEVICE_FAULT = 21
    KERNEL_TIMEOUT = 22
    NO_DEVICE = 23
    POISON_REQUEST = 24
    SELF_CHECK_FAILED = 25
    UNAUTHENTICATED = 26
    FORBIDDEN = 27
    INTERNAL = 31


class LimbdError(Exception):
    """Base of both classes.

    status: the stable code. index: the lowest bad position in the batch, where there is one.
    hint: what the reader can do about it, where the text alone does not say.
    """

    def __init__(self, status: Status, message: str, *, hint: str = "", index: int | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.hint = hint
        self.index = index

    def __str__(self) -> str:
        where = f" (index {self.index})" if self.index is not None else ""
        remedy = f"; {self.hint}" if self.hint else ""
        return f"{self.status.name}: {self.message}{where}{remedy}"


class RequestError(LimbdError):
    """The client's fault: the same request will fail again."""


class ServiceError(LimbdError):
    """Ours, or the machine's: the request may be right."""
