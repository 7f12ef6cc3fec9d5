"""Which elements of a batch are refused, and why."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from limbd.ops.status import RequestError, Status

Mask = npt.NDArray[np.bool_]

NOT_BELOW_P = "a coordinate is not below the base field's modulus"
NOT_ON_CURVE = "a point is not on the curve"
BAD_PADDING = "the bytes above a coordinate are not zero"
BAD_FLAGS = "the flag bits are none that this format has"
BAD_PREFIX = "the first byte is no prefix that this format has"
BAD_INFINITY = "a point at infinity has other bits set"
UNFLAGGED_INFINITY = "x = y = 0 is no point, and infinity has another encoding here"
NO_SUCH_X = "no point has this x: x^3 + b is no square"
BAD_SIGN = "the sign flag is not that of y"
NOT_BELOW_R = "a scalar is not below the group's order"


def refusal(reason: str, index: int) -> RequestError:
    return RequestError(Status.BAD_ELEMENT, reason, index=index)


def bad_length(size: int, width: int, what: str) -> RequestError:
    return RequestError(Status.BAD_LENGTH, f"{size} bytes are no whole number of {what} of {width} bytes")


class Refusals:
    """Of an element's reasons the first that was added counts; of the elements the lowest."""

    def __init__(self, count: int) -> None:
        self._reasons: list[str] = []
        self._reason_of = np.zeros(count, np.uint8)

    def add(self, bad: Mask, reason: str) -> None:
        self._reasons.append(reason)
        self._reason_of[bad & (self._reason_of == 0)] = len(self._reasons)

    @property
    def good(self) -> int:
        """Elements before the first bad one."""
        bad = np.flatnonzero(self._reason_of)
        return int(bad[0]) if len(bad) else len(self._reason_of)

    def raise_first(self) -> None:
        """RequestError(BAD_ELEMENT) where an element was refused."""
        index = self.good
        if index < len(self._reason_of):
            raise refusal(self._reasons[int(self._reason_of[index]) - 1], index)
