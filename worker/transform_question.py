"""What a client's ntt and quotient ask: their arguments as the wire's param word and domain."""

from __future__ import annotations

import operator

import numpy as np

from limbd.ops import quotient
from limbd.ops.domain import transforms
from limbd.ops.ntt import param_of
from limbd.ops.params import fields
from limbd.ops.params.base import Field
from limbd.ops.transform_shape import Order


def transform_question(
    n: int, field: str | int, inverse: bool, coset: int | bool | None, order: str, omega: int | None, batch: int
) -> tuple[int, tuple[int, ...]]:
    """param and domain of limbd.Client.ntt for n values. Raises ValueError; what the field allows is judged by the worker."""
    k = log_size(n, batch)
    if not isinstance(order, str) or order.upper() not in Order.__members__:
        raise ValueError(f"order {order!r} is none of {', '.join(name.lower() for name in Order.__members__)}")
    domain = own_domain(field_of(field), k, coset, omega)
    on_coset = bool(coset) if _is_flag(coset) else coset is not None
    param = param_of(k, inverse=bool(inverse), coset=on_coset, order=Order[order.upper()], own=bool(domain))
    return param, domain


def quotient_question(
    n: int, field: str | int, coefficients: bool, shift: int | None, omega: int | None, batch: int
) -> tuple[int, tuple[int, ...]]:
    """The same of limbd.Client.quotient for n values of each polynomial."""
    k, named = log_size(n, batch), field_of(field)
    domain: tuple[int, ...] = ()
    # A field without the roots is refused by the worker.
    if shift is not None or omega is not None:
        own = named.omega(k) if omega is None and k <= named.two_adicity else omega
        coset = named.omega(k + 1) if shift is None and k < named.two_adicity else shift
        domain = () if own is None or coset is None else (operator.index(own), operator.index(coset))
    return quotient.param_of(k, own=bool(domain), coefficients=bool(coefficients)), domain


def log_size(n: int, batch: int) -> int:
    """k of `batch` transforms of n elements in all."""
    batch = operator.index(batch)
    if batch < 1 or n % batch:
        raise ValueError(f"{n} values are not {batch} transforms of one size")
    size = n // batch
    if n and size & (size - 1):
        raise ValueError(f"transforms of {size} values: the size has to be a power of two")
    return max(0, size.bit_length() - 1)


def field_of(name: str | int) -> Field:
    """A field that has transforms, by its name or its modulus."""
    field = fields.by_name(name) if isinstance(name, str) else fields.by_modulus(operator.index(name))
    if field is None or not transforms(field):
        named = f"field named {name!r}" if isinstance(name, str) else f"registered field of modulus {name:#x}"
        raise ValueError(f"there is no {named} that has transforms (`limbd info` lists them)")
    return field


def _is_flag(coset: int | bool | None) -> bool:
    """True or False, of numpy too."""
    return isinstance(coset, bool | np.bool_)


def own_domain(field: Field, k: int, coset: int | bool | None, omega: int | None) -> tuple[int, ...]:
    """omega and shift, where one of them is not the registered one."""
    shift = None if coset is None or _is_flag(coset) else operator.index(coset)
    if omega is None and shift is None:
        return ()
    if omega is None and k > field.two_adicity:
        return ()  # refused by the worker, which has no such root either
    generator = field.generator or 1
    return (field.omega(k) if omega is None else operator.index(omega), generator if shift is None else shift)
