"""The ops as methods of the clients."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from limbd.worker.exchange import Exchange, Modulus, Values
from limbd.worker.multiplication_question import multiplication
from limbd.worker.transform_question import quotient_question, transform_question


class Calls:
    """The ops as methods, for both clients: each passes on to `call`, whose answer it returns.

    `call` asks for exactly the op that it is given; mod_inv alone chooses.
    """

    def call(
        self, op: str, operands: Sequence[Values], modulus: Modulus, *, param: int = 0, domain: Sequence[int] = ()
    ) -> Any:
        raise NotImplementedError

    def ask(self, asked: Exchange) -> Any:
        raise NotImplementedError

    def mod_mul(self, a: Values, b: Values, modulus: Modulus) -> Any:
        """a * b mod m, element by element. Operands: ints, a sequence of ints, or uint32 (n, 8); the answer likewise."""
        return self.call("mod-mul", [a, b], modulus)

    def mod_add(self, a: Values, b: Values, modulus: Modulus) -> Any:
        """a + b mod m."""
        return self.call("mod-add", [a, b], modulus)

    def mod_sub(self, a: Values, b: Values, modulus: Modulus) -> Any:
        """a - b mod m, in [0, m)."""
        return self.call("mod-sub", [a, b], modulus)

    def mod_exp(self, a: Values, e: Values, modulus: Modulus) -> Any:
        """a^e mod m; the exponent is a plain 256-bit integer and 0^0 = 1 mod m."""
        return self.call("mod-exp", [a, e], modulus)

    def mod_inv(self, x: Values, modulus: Modulus) -> Any:
        """x^-1 mod m, and 0 where there is no inverse. More than ops.tuning.NEVER_BATCHED elements are asked for as
        mod-inv-batch, where the worker knows it: the same answers, sooner, unless elements without an inverse other than
        0 are many. `call("mod-inv", [x], modulus)` asks for mod-inv whatever n."""
        return self._invert(operator.length_hint(x, 1), x, modulus)

    def _invert(self, n: int, x: Values, modulus: Modulus) -> Any:
        raise NotImplementedError

    def mod_inv_batch(self, x: Values, modulus: Modulus) -> Any:
        """The same as mod_inv, for many x at once: one inversion serves a whole block of them."""
        return self.call("mod-inv-batch", [x], modulus)

    def ntt(
        self,
        values: Values,
        field: str | int = "bn254_fr",
        inverse: bool = False,
        coset: int | bool | None = None,
        order: str = "nn",
        omega: int | None = None,
        batch: int = 1,
    ) -> Any:
        """`batch` transforms of equally many values: X[j] = sum of x[i] omega^(i j), and back with `inverse`.

        field: a name or a modulus. values: batch * 2^k ints below the modulus, or uint32 (batch * 2^k, 8); the answer likewise. coset: True for
        the field's registered generator, or a shift s: X[j] is then the polynomial's value at s omega^j. order: natural
        (n) or bit-reversed (r), in and out: nn, nr, rn, rr. omega: a root of unity of order 2^k; default, the registered
        one. ValueError where a size is no power of two, or there is no such field or order.
        """
        param, domain = transform_question(operator.length_hint(values, 1), field, inverse, coset, order, omega, batch)
        return self.call("ntt", [values], field, param=param, domain=domain)

    def quotient(
        self,
        a: Values,
        b: Values,
        c: Values,
        field: str | int = "bn254_fr",
        coefficients: bool = False,
        shift: int | None = None,
        omega: int | None = None,
        batch: int = 1,
    ) -> Any:
        """A B - C on the coset shift omega^j, from the values of A, B and C at omega^j: what Groth16's prover needs.

        a, b, c: batch * 2^k ints below the field's modulus, or uint32 (batch * 2^k, 8); the answer likewise. coefficients: those
        of (A B - C) / Z, Z = X^(2^k) - 1, instead of values of A B - C. shift, omega: default, roots of unity of order
        2^(k + 1) and 2^k. ValueError where a size is no power of two, or there is no such field.
        """
        # A number stands for as many of it as the others have.
        n = max(operator.length_hint(operand, 1) for operand in (a, b, c))
        param, domain = quotient_question(n, field, coefficients, shift, omega, batch)
        return self.call("quotient", [a, b, c], field, param=param, domain=domain)

    def msm(
        self,
        scalars: Any,
        points: Any,
        curve: str = "bn254",
        group: str = "g1",
        *,
        check_subgroup: bool = False,
        constant_work: bool = False,
    ) -> Any:
        """The sum of scalars[i] points[i] on a registered curve (bn254, bls12_381; secp256k1 has g1 alone).

        scalars: n ints below 2^256 (they are reduced modulo the curve's order), uint32 (n, 8), or several vectors of them: a
        sequence of sequences, or uint32 (vectors, n, 8). points: n pairs (x, y) of ints in g1 or of pairs of ints (c0, c1) in
        g2, None for infinity; or uint32 (n, limbs) as the wire has them, all zeros for infinity. The answer is a point in the
        form of the points, one for each vector where several were given. check_subgroup: refuse points outside the subgroup
        of the curve's order, which are otherwise the caller's promise. constant_work: an amount of work that does not depend
        on the scalars. Raises RequestError(BAD_ELEMENT) with the index of the first bad point, ValueError where there is no
        such curve or the lengths differ.
        """
        return self.ask(
            multiplication(scalars, points, curve, group, check_subgroup=check_subgroup, constant_work=constant_work)
        )
