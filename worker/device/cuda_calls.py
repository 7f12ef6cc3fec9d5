"""The CUDA driver's functions, each call checked, each error classified.

A sticky error (an illegal access, a failed launch, an uncorrectable memory error) destroys the context for good. After
one, every further call is refused here, so that nothing that came from the broken context is ever taken for a result.
"""

from __future__ import annotations

import importlib
from typing import Any

from limbd.ops.status import ServiceError, Status
from limbd.worker.device.nvrtc import REMEDY

OUT_OF_MEMORY = 2
NOT_READY = 600
ALREADY_REGISTERED = 712

# CUresult values (cuda.h) after which the context is lost.
STICKY = frozenset(
    {
        4,  # DEINITIALIZED
        46,  # DEVICE_UNAVAILABLE
        201,  # INVALID_CONTEXT
        214,  # ECC_UNCORRECTABLE
        220,  # NVLINK_UNCORRECTABLE
        700,  # ILLEGAL_ADDRESS
        702,  # LAUNCH_TIMEOUT
        709,  # CONTEXT_IS_DESTROYED
        710,  # ASSERT
        714,  # HARDWARE_STACK_ERROR
        715,  # ILLEGAL_INSTRUCTION
        716,  # MISALIGNED_ADDRESS
        717,  # INVALID_ADDRESS_SPACE
        718,  # INVALID_PC
        719,  # LAUNCH_FAILED
        721,  # TENSOR_MEMORY_LEAK
        226,  # CONTAINED
        999,  # UNKNOWN
    }
)

# The device or the driver cannot serve us, now or ever.
ABSENT = frozenset(
    {
        100,  # NO_DEVICE
        101,  # INVALID_DEVICE
        209,  # NO_BINARY_FOR_GPU
        218,  # INVALID_PTX
        222,  # UNSUPPORTED_PTX_VERSION
        802,  # SYSTEM_NOT_READY
        803,  # SYSTEM_DRIVER_MISMATCH
        804,  # COMPAT_NOT_SUPPORTED_ON_DEVICE
    }
)


class CudaError(ServiceError):
    """A driver call that failed. code: the CUresult."""

    def __init__(self, status: Status, code: int, message: str, *, hint: str = "") -> None:
        super().__init__(status, message, hint=hint)
        self.code = code


def classify(code: int) -> Status:
    """The status that a CUresult other than success becomes."""
    if code in STICKY:
        return Status.DEVICE_FAULT
    if code == OUT_OF_MEMORY:
        return Status.OUT_OF_DEVICE_MEMORY
    return Status.NO_DEVICE if code in ABSENT else Status.INTERNAL


class CudaCalls:
    """cuda.bindings.driver behind one checked call. api: the module, for its constants and types."""

    def __init__(self) -> None:
        """Raises ServiceError(NO_DEVICE) where the bindings are not installed or the driver does not start."""
        try:
            self.api: Any = importlib.import_module("cuda.bindings.driver")
        except ImportError as error:
            raise ServiceError(
                Status.NO_DEVICE, f"the CUDA bindings are not installed: {error}", hint=REMEDY
            ) from error
        self.broken = ""
        # A batch makes hundreds of calls: names are looked up once, and enumerations compared by identity first.
        self._functions: dict[str, Any] = {}
        self._success = self.api.CUresult.CUDA_SUCCESS
        self("cuInit", 0)

    def __call__(self, name: str, *arguments: Any) -> Any:
        """The function's result (None if it has none). Raises CudaError."""
        if self.broken:
            raise ServiceError(Status.DEVICE_FAULT, f"the device's context is lost: {self.broken}")
        function = self._functions.get(name)
        if function is None:
            function = self._functions[name] = getattr(self.api, name)
        status, *values = function(*arguments)
        if status is not self._success and int(status) != 0:
            raise self._error(name, int(status), status)
        return values[0] if values else None

    def _error(self, name: str, code: int, status: Any) -> CudaError:
        message = f"{name}: {self._text('cuGetErrorName', status)} ({self._text('cuGetErrorString', status)})"
        kind = classify(code)
        if kind is Status.DEVICE_FAULT:
            self.broken = message
        return CudaError(kind, code, message)

    def _text(self, function: str, status: Any) -> str:
        failed, text = getattr(self.api, function)(status)
        return text.decode() if int(failed) == 0 and isinstance(text, bytes) else str(int(status))
