"""Runs a kernel that no op has, over rows of limbs: how tests reach the layers below the ops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from limbd.ops.base import Buffer, Kernel, Launch, LaunchPlan, Member, Piece, Request, Struct, Transfer, Unit
from limbd.ops.mod_mul import MOD_MUL
from limbd.ops.params.layout import LIMB_BYTES, from_ints, unpack
from limbd.worker.device.base import Backend

BLOCK = 64


class LayerCheck:
    """A kernel `name` of the entry of the same name: out[i] of its in-arrays' rows i, with the struct's other members
    given for the whole launch. Every row has `row` limbs, but for those of `narrow` arrays, which have 4. lanes: threads that
    work on one row together, by whole warps."""

    def __init__(
        self,
        name: str,
        arrays: Sequence[str],
        scalars: Sequence[Member],
        constants: Mapping[str, int],
        row: int,
        *,
        narrow: Sequence[str] = (),
        params: str = "",
        lanes: int = 1,
    ) -> None:
        self.lanes = lanes
        self.widths = {array: 4 if array in narrow else row for array in (*arrays, "out")}
        pointers = (*(Member(a, "in") for a in arrays), Member("out", "out"))
        struct = Struct(f"{name}_args", (*pointers, Member("n", "u64"), *scalars))
        unit = Unit(name, (struct,), (*constants.items(), ("ROW", row)), params)
        self.kernel = Kernel(unit, name, struct, BLOCK, synchronises=lanes > 1)

    def run(self, backend: Backend, columns: Mapping[str, Sequence[int]], values: Mapping[str, int]) -> list[int]:
        """The rows of the result as integers. columns: the rows of each in-array."""
        n = len(next(iter(columns.values())))
        arrays = {name: from_ints(column, self.widths[name]) for name, column in columns.items()}
        out_bytes = n * self.widths["out"] * LIMB_BYTES
        buffers = (*(Buffer(a, "in", v.nbytes) for a, v in arrays.items()), Buffer("out", "out", out_bytes))
        launch = Launch(self.kernel, -(-n * self.lanes // BLOCK), BLOCK, {"n": n, **values})
        copies = tuple(Transfer(name, name, 0, array.nbytes) for name, array in arrays.items())
        piece = Piece(copies, (launch,), (Transfer("out", "result", 0, out_bytes),))
        request = Request(MOD_MUL, n, 0, 1, self.widths["out"] * LIMB_BYTES, arrays)
        result = bytearray(out_bytes)
        backend.run(request, LaunchPlan(buffers, 1, (piece,)), memoryview(result))
        return [int(value) for value in unpack(result, self.widths["out"] * LIMB_BYTES)]
