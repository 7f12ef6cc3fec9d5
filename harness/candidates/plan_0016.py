"""The incumbent of plan 0016: the sort of multiplications as it was before it, smaller tiles in both passes and more partitions
in the first, points of twelve limbs fetched to the cache alone, and the rows of bls12_381 that were swept with these."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache

from limbd.harness.candidates import Candidate, Options
from limbd.ops.base import LIMB_BYTES, Kernel, Launch, LaunchPlan, Member, Piece, Request, Struct, Traits, Unit
from limbd.ops.msm import Msm
from limbd.ops.msm_plan import plan_of
from limbd.ops.msm_tuning import LaneRow, MsmRow, msm_row, with_width
from limbd.ops.msm_units import LOW_BYTES, SMALLEST_TILE, SORT_BLOCK

CURVES = ("bn254", "bls12_381", "secp256k1", "toy_7_13")

ITEMS = 16
TILE = SORT_BLOCK * ITEMS

# log2 of the points, rounded up -> window, log2 of a segment.
BLS12_381 = ((13, 8, 3), (15, 10, 3), (18, 13, 4), (23, 16, 4), (24, 20, 5))

ONE_PASS_BITS = 10


def before(request: Request, traits: Traits, options: Options) -> LaunchPlan:
    op = request.op
    assert isinstance(op, Msm)
    question = op.question(request)

    def row_of(count: int) -> MsmRow:
        row = msm_row(traits.kind, traits.arch, question.curve, op.group, count)
        if question.curve.name == "bls12_381":
            log = (count - 1).bit_length()
            width, segment = next(((w, s) for up_to, w, s in BLS12_381 if log <= up_to), BLS12_381[-1][1:])
            cut = with_width(width, row.slice, row.merge, segment, row.resident, row.source, fill=row.fill)
            row = replace(row, width=cut.width, log_segment=segment)
        bits = row.width - 1
        low_bits = 0 if bits <= ONE_PASS_BITS else bits // 2
        return replace(row, low_bits=low_bits, lanes=LaneRow(trees=1 << 11) if row.lanes else None)

    plan = plan_of(question, traits, row_of)
    fill = row_of(max(1, question.count)).fill
    return replace(plan, pieces=tuple(_piece(piece, fill) for piece in plan.pieces))


def _piece(piece: Piece, fill: int) -> Piece:
    return replace(piece, launches=tuple(_launches(piece.launches, fill)))


def _launches(launches: tuple[Launch, ...], fill: int) -> Iterator[Launch]:
    """The same with the kernels of kernels/candidate/0016."""
    counts = next((each for each in launches if each.kernel.name == "msm_count"), None)
    slots = next((each.values["slots"] for each in launches if each.kernel.name == "msm_scatter"), 0)
    for launch in launches:
        name, entry = launch.kernel.name, launch.kernel.unit.entry
        if entry == "msm_chunks" and dict(launch.kernel.unit.constants)["PAIRS"] == 0:
            unit = replace(launch.kernel.unit, entry="candidate/0016/msm_chunks")
            yield replace(launch, kernel=replace(launch.kernel, unit=unit))
            continue
        if entry != "msm_sort":
            yield launch
            continue
        kernel = _kernels(launch.kernel.unit, launch.kernel.max_block, launch.kernel.synchronises)[name]
        same = replace(launch, kernel=kernel)
        if counts is None or name not in ("msm_count", "msm_scatter", "msm_count_low", "msm_scatter_low", "msm_chunks"):
            yield same
            continue
        rows, count = counts.grid // counts.values["spans"], counts.values["count"]
        if name in ("msm_count", "msm_scatter"):
            tile = TILE
            while tile > SMALLEST_TILE and rows * -(-count // tile) < fill // SORT_BLOCK:
                tile //= 2
            tiles = -(-count // tile)
            keys = launch.values["keys"]
            shared = LIMB_BYTES * keys
            if name == "msm_scatter":
                digit_bytes = dict(launch.kernel.unit.constants)["DIGIT_BITS"] // 8
                shared = 2 * LIMB_BYTES * keys + TILE * (LIMB_BYTES + digit_bytes)
            values = {**launch.values, "tiles": tiles, "tile": tile}
            yield replace(same, grid=rows * tiles, shared=shared, values=values)
        elif name == "msm_chunks":
            pointers = {**launch.pointers, "spill_buckets": "spill_buckets_0"}
            yield replace(same, values={**launch.values, "slots": slots}, pointers=pointers)
        else:
            keys = 1 << launch.values["low_bits"]
            tile_bytes = 2 * LIMB_BYTES * keys + TILE * (LIMB_BYTES + LOW_BYTES)
            shared = tile_bytes if name == "msm_scatter_low" else LIMB_BYTES * keys
            yield replace(same, grid=launch.values["partitions"] + rows * count // TILE, shared=shared)


@cache
def _kernels(unit: Unit, block: int, synchronises: bool) -> dict[str, Kernel]:
    """Those of the unit as it was."""
    words = {
        "msm_count": ("count", "tiles", "tile", "keys", "width", "low_bits", "spare"),
        "msm_scatter": ("count", "tiles", "tile", "keys", "width", "low_bits", "spare", "points", "first", "stride"),
        "msm_chunks": ("length", "fill", "slots"),
    }
    structs = {}
    for struct in unit.structs:
        name = struct.name.removesuffix("_args")
        members = struct.members
        if name in words:
            pointers = [member for member in members if member.kind != "u32"]
            pointers = [member for member in pointers if member.name != "spill_buckets"]
            if name == "msm_chunks":
                at = next(i for i, member in enumerate(pointers) if member.name == "buckets")
                pointers.insert(at, Member("spill_buckets", "scratch"))
            members = (*pointers, *(Member(each, "u32") for each in words[name]))
        structs[name] = Struct(struct.name, members)
    constants = tuple((key, ITEMS if key == "ITEMS" else value) for key, value in unit.constants)
    old = Unit("candidate/0016/msm_sort", tuple(structs.values()), constants, unit.params)
    return {name: Kernel(old, name, struct, block, synchronises) for name, struct in structs.items()}


# Four blocks of additions leave 128 registers, and digits 64: a few words spill.
CANDIDATES = {"before": Candidate(before, curves=CURVES, spills=64)}
