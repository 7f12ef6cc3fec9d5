"""The launches of a multi-scalar multiplication after the additions into buckets: spills merged, each row reduced, the
windows folded. With a point a thread, or over groups of lanes where the tuning row says so (kernels/entry/msm_reduce.cu,
msm_reduce_lanes.cu)."""

from __future__ import annotations

from collections.abc import Iterator

from limbd.ops.base import LIMB_BYTES, Launch
from limbd.ops.msm_shape import WARP, Shape

# Groups of lanes that work on a segment of the first stage (kernels/algo/bucket_lanes.cuh).
FIRST_TEAM = 2


def merges(shape: Shape) -> Iterator[Launch]:
    """Spills -> buckets."""
    yield from _lane_merges(shape) if shape.row.lanes else _thread_merges(shape)


def stages(shape: Shape) -> Iterator[Launch]:
    """Buckets -> `weighted`: a sum for each row."""
    yield from _lane_stages(shape) if shape.row.lanes else _thread_stages(shape)


def fold(shape: Shape, *, is_first: bool, is_last: bool) -> Launch:
    """Rows -> the sum that is kept, and with the last piece the answer."""
    values = {"vectors": shape.vectors, "windows": shape.row_windows, "width": shape.row.width}
    values |= {"is_first": int(is_first), "is_last": int(is_last)}
    last = (len(shape.stages()) - 1) % 2
    # A thread or a warp a block: vectors spread over the multiprocessors.
    block = WARP if shape.row.lanes else 1
    return Launch(shape.kernels["msm_fold"], shape.vectors, block, values, 0, {"weighted": f"weighted_{last}"})


# --- a point a thread -----------------------------------------------------------------------------------------------


def _thread_merges(shape: Shape) -> Iterator[Launch]:
    row = shape.row
    for i, count in enumerate(shape.spill_counts()[:-1]):
        grid = -(-count // (row.merge * row.reduce_block))
        values = {"count": count, "length": row.merge}
        yield Launch(shape.kernels["msm_merge"], grid, row.reduce_block, values, 0, _spills(i))


def _thread_stages(shape: Shape) -> Iterator[Launch]:
    block = shape.row.reduce_block
    (step, left), *others = shape.stages()
    done, n = step, shape.rows << left
    values = {"n": n, "row_buckets": shape.row_buckets, "segments": 1 << left, "log_segment": step}
    values["cleared"] = int(shape.in_turns)
    yield Launch(shape.kernels["msm_segments"], -(-n // block), block, values, 0, _FIRST_PAIRS)
    for i, (step, left) in enumerate(others):
        n = shape.rows << left
        values = {"n": n, "log_segment": step, "weight": done}
        yield Launch(shape.kernels["msm_segments_next"], -(-n // block), block, values, 0, _pairs(i))
        done += step


# --- a point over lanes ---------------------------------------------------------------------------------------------


def _lane_merges(shape: Shape) -> Iterator[Launch]:
    """Levels by the whole grid until one block does the rest: in most of them there is next to nothing."""
    counts = shape.spill_counts()[:-1]
    for i, count in enumerate(counts):
        by_trees = shape.by_trees(count)
        slices, at_once = shape.merge_slices(count), _slices_at_once(shape, by_trees)
        is_rest = slices <= at_once * _rounds(shape, i, by_trees) and by_trees == shape.by_trees(counts[-1])
        yield _lane_merge(shape, i, count, 1 if is_rest else -(-slices // at_once), len(counts) - i if is_rest else 1)
        if is_rest:
            return


def _lane_merge(shape: Shape, i: int, count: int, grid: int, levels: int) -> Launch:
    values = {"count": count, "levels": levels}
    if shape.by_trees(count):
        return Launch(shape.kernels["msm_merge_trees"], grid, shape.row.reduce_block, values, 0, _spills(i))
    values["length"] = shape.row.merge
    return Launch(shape.kernels["msm_merge"], grid, shape.row.reduce_block, values, 0, _spills(i))


def _slices_at_once(shape: Shape, by_trees: bool) -> int:
    """Of a block."""
    return shape.row.reduce_block // (WARP if by_trees else shape.group_lanes)


def _rounds(shape: Shape, i: int, by_trees: bool) -> int:
    """The most turns of a block in the first level of the rest. One by trees, of which another turn may take longer than
    another launch."""
    assert shape.row.lanes is not None
    return 1 if by_trees or i == 0 else shape.row.lanes.rounds


def _lane_stages(shape: Shape) -> Iterator[Launch]:
    row = shape.row
    (step, left), *others = shape.stages()
    n = shape.rows << left
    values = {"n": n, "row_buckets": shape.row_buckets, "segments": 1 << left, "log_segment": step}
    values["cleared"] = int(shape.in_turns)
    # The last stage's R is of no use to anyone, and stays as it is.
    values["doublings"] = step if others else 0
    grid = -(-n * FIRST_TEAM * shape.group_lanes // row.reduce_block)
    yield Launch(shape.kernels["msm_segments"], grid, row.reduce_block, values, 0, _FIRST_PAIRS)
    for i, (log_chunk, left) in enumerate(others):
        values = {"log_chunk": log_chunk, "doublings": int(left > 0)}
        # Two halves, R and T, of half the pairs.
        shared = 2 * (shape.pair_limbs * LIMB_BYTES << log_chunk)
        grid = shape.rows << left
        yield Launch(shape.kernels["msm_segments_next"], grid, row.reduce_block, values, shared, _pairs(i))


# --- buffers by turns -----------------------------------------------------------------------------------------------


def _spills(i: int) -> dict[str, str]:
    """Of the level with this number."""
    here, there = i % 2, (i + 1) % 2
    pointers = {"spills": f"spills_{here}", "spill_buckets": f"spill_buckets_{here}"}
    return pointers | {"next_spills": f"spills_{there}", "next_spill_buckets": f"spill_buckets_{there}"}


_FIRST_PAIRS = {"sums": "sums_0", "weighted": "weighted_0"}


def _pairs(i: int) -> dict[str, str]:
    """Of the stage with this number after the first."""
    here, there = i % 2, (i + 1) % 2
    pointers = {"sums": f"sums_{here}", "weighted": f"weighted_{here}"}
    return pointers | {"next_sums": f"sums_{there}", "next_weighted": f"weighted_{there}"}
