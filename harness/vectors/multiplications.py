"""Known answers of msm-g1 and msm-g2: the collected cases, and made ones of what nobody collected."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from limbd.harness.groups import GROUPS, group_of, pack_point
from limbd.harness.inputs import Residues, hard_integer
from limbd.harness.vectors import Vectors
from limbd.harness.vectors.collected import read_json
from limbd.harness.vectors.peers import agreed_whole
from limbd.ops.base import LIMB_BYTES
from limbd.ops.msm import param_of
from limbd.ops.params.curves import Curve, GroupName, by_name
from limbd.ops.params.layout import PLAIN_LIMBS, from_ints
from limbd.ops.reference.curve import Point, negate, times

GENERATED = "generated/msm_{curve}_{group}.json.gz"
CONSTANTINE = "external/constantine_scalar_mul.json.gz"

# Of the collected cases, those that are shipped: the short ones, and all of one group (what long ones show does not depend
# on the group).
SHORT = 130
GROUP_OF_LONG: tuple[str, GroupName] = ("bn254", "g1")

SEED = "limbd msm vectors 1"
MADE_POINTS = 12
MADE_VECTORS = 3


def multiplication_batches(folder: Path) -> list[Vectors]:
    """Everything that msm.msgpack holds."""
    return [*_generated(folder), *_constantine(folder), *made_batches()]


def _generated(folder: Path) -> Iterator[Vectors]:
    """{curve, group, cases: [{name, n, points, scalars, expected}]}"""
    for curve, name in GROUPS:
        path = folder / GENERATED.format(curve=curve.name, group=name)
        if not path.exists():
            continue
        for case in read_json(path)["cases"]:
            if case["n"] <= SHORT or (curve.name, name) == GROUP_OF_LONG:
                yield _collected(case, curve, name, "generated")


def _constantine(folder: Path) -> Iterator[Vectors]:
    """{cases: [{name, curve, group, points, scalars, expected}]}"""
    for case in read_json(folder / CONSTANTINE)["cases"]:
        curve = by_name(case["curve"])
        assert curve is not None, case["curve"]
        yield _collected(case, curve, case["group"], "constantine")


def _collected(case: Any, curve: Curve, name: GroupName, source: str) -> Vectors:
    points = [_point(text) for text in case["points"]]
    scalars = [int(text, 16) % (curve.order if len(text) > 64 else 1 << 256) for text in case["scalars"]]
    return make(source, case["name"], curve, name, scalars, points, [_point(case["expected"])])


def _point(texts: Any) -> Point:
    """[x, y], each hexadecimal or a pair of them; null is infinity."""
    if texts is None:
        return None
    x, y = (tuple(int(part, 16) for part in (each if isinstance(each, list) else [each])) for each in texts)
    return x, y


def make(
    source: str,
    title: str,
    curve: Curve,
    name: GroupName,
    scalars: Sequence[int],
    points: Sequence[Point],
    given: Sequence[Point] | None = None,
    **asked: Any,
) -> Vectors:
    """Answers by both definitions; raises peers.Disagreement where they differ. asked: as param_of takes it."""
    group, op = group_of(curve, name), f"msm-{name}"
    param = param_of(curve, **asked)
    packed = [pack_point(point, curve, group) for point in points]
    expected = [pack_point(point, curve, group) for point in given] if given is not None else None
    results = agreed_whole(op, Residues(curve.order, None, param), [scalars, packed], expected)
    width = curve.point_bytes(group)
    limbs = width // LIMB_BYTES
    operands = {"scalars": from_ints(scalars, PLAIN_LIMBS), "points": from_ints(packed, limbs)}
    return Vectors(
        op, source, f"{curve.name} {title}", curve.order, width, operands, from_ints(results, limbs), None, param
    )


def made_batches() -> Iterator[Vectors]:
    """For every group, the toy's too: several vectors, with the subgroup checked, and constant work."""
    for curve, name in GROUPS:
        rng = random.Random(f"{SEED} {curve.name} {name}")
        points = _points(rng, curve, name)
        edges = [0, 1, curve.order - 1, curve.order, 2**256 - 1]
        draws = [rng.choice((rng.choice(edges), hard_integer(rng))) for _ in range(MADE_VECTORS * MADE_POINTS)]
        yield make("made", "vectors", curve, name, draws, points, vectors=MADE_VECTORS, check_subgroup=True)
        yield make("made", "constant work", curve, name, draws[:MADE_POINTS], points, constant_work=True)
        yield make("made", "no points", curve, name, [], [], vectors=2)


def _points(rng: random.Random, curve: Curve, name: GroupName) -> list[Point]:
    """Random ones, and among them equal, opposite and infinite ones."""
    group, p = group_of(curve, name), curve.base.modulus
    points = [times(rng.randrange(1, curve.order), group.generator, p) for _ in range(MADE_POINTS - 4)]
    return [*points, points[0], negate(points[1], p), None, group.generator]
