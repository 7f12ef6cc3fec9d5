"""mod-exp as it is defined: x^y mod m for plain integers x and y >= 0; x^0 = 1 mod m, for x = 0 too."""

from __future__ import annotations

import gmpy2

from limbd.ops.base import Request
from limbd.ops.params.layout import pack, to_mpz


def mod_exp(request: Request, result: memoryview) -> None:
    """Writes n elements, each as wide as the operands' own. gmpy2.powmod(x, 0, 1) is 0, as modulo 1 everything is."""
    m = gmpy2.mpz(request.modulus)
    pairs = zip(to_mpz(request.arrays["a"]), to_mpz(request.arrays["e"]), strict=True)
    result[:] = pack((gmpy2.powmod(x, y, m) for x, y in pairs), request.element_bytes)
