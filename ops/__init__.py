"""What can be asked: OPS, an explicit tuple; by_id() and by_name() look it up."""

from __future__ import annotations

from limbd.ops.base import Op
from limbd.ops.mod_add import MOD_ADD
from limbd.ops.mod_exp import MOD_EXP
from limbd.ops.mod_inv import MOD_INV
from limbd.ops.mod_inv_batch import MOD_INV_BATCH
from limbd.ops.mod_mul import MOD_MUL
from limbd.ops.mod_sub import MOD_SUB
from limbd.ops.msm import MSM_G1, MSM_G2
from limbd.ops.ntt import NTT
from limbd.ops.quotient import QUOTIENT
from limbd.ops.status import RequestError, Status

OPS: tuple[Op, ...] = (MOD_MUL, MOD_ADD, MOD_SUB, MOD_EXP, MOD_INV, MOD_INV_BATCH, NTT, QUOTIENT, MSM_G1, MSM_G2)

_BY_ID = {op.id: op for op in OPS}
_BY_NAME = {op.name: op for op in OPS}


def by_id(number: int) -> Op:
    """The op of a wire number. Raises RequestError(UNKNOWN_OP)."""
    if number not in _BY_ID:
        raise RequestError(Status.UNKNOWN_OP, f"op {number:#x} is not known", hint="`limbd info` lists the ops")
    return _BY_ID[number]


def by_name(name: str) -> Op:
    """The op of a wire name. Raises RequestError(UNKNOWN_OP)."""
    if name not in _BY_NAME:
        raise RequestError(Status.UNKNOWN_OP, f"op {name!r} is not known", hint="known: " + ", ".join(_BY_NAME))
    return _BY_NAME[name]
