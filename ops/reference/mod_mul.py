"""mod-mul as it is defined: x * y % m for plain integers x and y, the least non-negative residue."""

from __future__ import annotations

import gmpy2

from limbd.ops.base import Request
from limbd.ops.params.layout import pack, to_mpz


def mod_mul(request: Request, result: memoryview) -> None:
    """Writes n elements, each as wide as the operands' own."""
    m = gmpy2.mpz(request.modulus)
    pairs = zip(to_mpz(request.arrays["a"]), to_mpz(request.arrays["b"]), strict=True)
    result[:] = pack((x * y % m for x, y in pairs), request.element_bytes)
