"""Points that stay on a device: with and without multiples, right, kept, checked, given up and made again."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from limbd.harness.multiplications import Multiples
from limbd.local import Worker
from limbd.ops.msm_bases import Bases
from limbd.ops.msm_plan import Question, plan_of
from limbd.ops.msm_shape import window_count
from limbd.ops.msm_tuning import with_width
from limbd.ops.params import curves
from limbd.ops.params.curves import GroupName
from limbd.ops.params.layout import from_ints
from limbd.ops.reference.curve import Point
from limbd.ops.reference.msm import encode_points
from limbd.ops.status import RequestError, ServiceError, Status
from limbd.worker.device.base import Backend
from limbd.worker.multiplication_question import request_of

GROUPS: tuple[tuple[str, GroupName], ...] = (
    ("bn254", "g1"),
    ("bn254", "g2"),
    ("bls12_381", "g1"),
    ("bls12_381", "g2"),
    ("secp256k1", "g1"),
    ("toy_7_13", "g1"),
    ("toy_7_13", "g2"),
)


@pytest.fixture(scope="module", params=["reference", "cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def worker(request: pytest.FixtureRequest) -> Iterator[Worker]:
    with Worker(request.param) as made:
        yield made


@pytest.mark.parametrize("precompute", [False, True])
@pytest.mark.parametrize(("curve", "group"), GROUPS)
def test_sums(worker: Worker, curve: str, group: GroupName, precompute: bool) -> None:
    for n in (1, 2, 3, 33):
        known, rng = _multiples(curve, group, n), random.Random(f"{curve} {group} {n}")
        with worker.bases(_plain(known.points), curve, group, precompute=precompute) as bases:
            order = known.curve.order
            for edge in (0, 1, order - 1, order, 2**256 - 1):
                assert bases.msm([edge] * n) == _plain([known.total([edge] * n)])[0]
            vectors = [[rng.randrange(1 << 256) for _ in range(n)] for _ in range(3)]
            assert bases.msm(vectors) == _plain([known.total(vector) for vector in vectors])


@pytest.mark.parametrize("precompute", [False, True])
def test_infinity_and_equal_points(worker: Worker, precompute: bool) -> None:
    known = _multiples("bn254", "g1", 2)
    p, q = _plain(known.points)
    with worker.bases([None, p, p, None, p, q], precompute=precompute) as bases:
        sevens = [7] * 6
        assert bases.msm(sevens) == _plain([known.total([21, 7])])[0]
        order = known.curve.order
        assert bases.msm([5, 1, order - 1, 5, 0, 0]) is None
    with worker.bases([None], precompute=precompute) as bases:
        assert bases.msm([3]) is None
    with worker.bases([], precompute=precompute) as bases:
        assert bases.msm([]) is None


def test_every_scalar_of_a_toy_curve(worker: Worker) -> None:
    known = _multiples("toy_7_13", "g1", 3)
    with worker.bases(_plain(known.points), "toy_7_13", precompute=True) as bases:
        every = [[a, b, (a * b + 1) % 13] for a in range(13) for b in range(13)]
        assert bases.msm(every) == _plain([known.total(vector) for vector in every])


@pytest.mark.parametrize("width", [0, 4])
@pytest.mark.parametrize(("curve", "group"), [("toy_7_13", "g2"), ("bn254", "g1")])
def test_points_that_take_several_pieces(kernels: Backend, curve: str, group: GroupName, width: int) -> None:
    """Each piece reads its own part of every level of multiples."""
    n = 50
    known, rng = _multiples(curve, group, n - 1), random.Random("pieces")
    points = [*known.points[:20], None, *known.points[20:]]
    order = known.curve.order
    scalars = [rng.randrange(1 << 256) for _ in range(2 * n)]
    expected = [known.total([s for i, s in enumerate(v) if i != 20]) for v in (scalars[:n], scalars[n:])]
    bases = Bases(known.curve, group, n, f"pieces {curve} {width}", width, window_count(order, width) if width else 1)
    array = np.frombuffer(encode_points(points, known.curve, known.group), "<u4").reshape(n, -1)
    request = request_of(known.curve, group, from_ints(scalars), array, vectors=2)
    row = replace(with_width(width or 5, 8, 3, 2, 1, "a test's"), chunk=3)
    cut: set[int] = set()
    question, memory = Question(known.curve, group, n, 2, False, False, bases), 1 << 24
    while True:
        traits, memory = replace(kernels.traits(), memory=memory), memory * 4 // 5
        try:
            plan = plan_of(question, traits, lambda count: row)
        except ServiceError:
            break
        if len(plan.pieces) in cut:
            continue
        cut.add(len(plan.pieces))
        result = bytearray(2 * known.curve.point_bytes(known.group))
        kernels.run(request, plan, memoryview(result))
        assert bytes(result) == encode_points(expected, known.curve, known.group), len(plan.pieces)
    assert max(cut) >= 4


def test_constant_work_and_arrays(worker: Worker) -> None:
    known, n = _multiples("bn254", "g1", 40), 40
    scalars = [random.Random(i).randrange(1 << 256) for i in range(n)]
    with worker.bases(_plain(known.points), precompute=True) as bases:
        expected = _plain([known.total(scalars)])[0]
        assert bases.msm(scalars, constant_work=True) == expected
        array = worker.pinned(n, 8)
        array[:] = from_ints(scalars)
        assert bases.msm(array) == expected
    limbs = np.array(from_ints([*_plain(known.points)[0]])).reshape(1, 16)
    with worker.bases(limbs) as bases:
        answer = bases.msm(from_ints([1]))
        assert answer.dtype == np.uint32 and (answer == limbs[0]).all()


def test_two_sets_by_turns_and_one_that_was_given_up(worker: Worker) -> None:
    """Each keeps its own points, also where the first set's memory was taken back meanwhile."""
    sets = [_multiples("bn254", "g1", n) for n in (5, 6)]
    bases = [worker.bases(_plain(known.points), precompute=True) for known in sets]
    for turn in range(6):
        known, kept = sets[turn % 2], bases[turn % 2]
        scalars = [turn * i + 1 for i in range(len(known.points))]
        assert kept.msm(scalars) == _plain([known.total(scalars)])[0]
        if turn == 3:
            bases[0].close()
    for kept in bases:
        kept.close()


def test_the_callers_points_may_change_afterwards(worker: Worker) -> None:
    known = _multiples("bn254", "g1", 2)
    points = np.stack([from_ints(_plain([point])[0]).reshape(16) for point in known.points])
    with worker.bases(points) as bases:
        before = bases.msm(from_ints([1, 2]))
        points[:] = 0
        bases.close()
        assert (bases.msm(from_ints([1, 2])) == before).all()


def test_bad_points_are_refused_when_they_come(worker: Worker) -> None:
    good = _plain(_multiples("bn254", "g1", 1).points)[0]
    for bad in ((1, 3), (2**256 - 1, 2)):
        with pytest.raises(RequestError) as caught:
            worker.bases([good, good, bad, bad], precompute=True)
        assert caught.value.status is Status.BAD_ELEMENT and caught.value.index == 2
    with pytest.raises(ValueError, match="no curve"):
        worker.bases([good], "bn255")
    with pytest.raises(ValueError, match="no group"):
        worker.bases([good], "secp256k1", "g2")


def test_points_outside_the_subgroup_are_refused_on_request(worker: Worker) -> None:
    outside = (0, 2)  # of order 3 on bls12_381
    with worker.bases([outside, outside, outside], "bls12_381", precompute=True) as bases:
        assert bases.msm([1, 1, 1]) is None
    with pytest.raises(RequestError) as caught:
        worker.bases([outside], "bls12_381", check_subgroup=True)
    assert caught.value.status is Status.BAD_ELEMENT and caught.value.index == 0


def test_lengths_are_checked(worker: Worker) -> None:
    with worker.bases(_plain(_multiples("bn254", "g1", 2).points)) as bases:
        for wrong in ([1], [1, 2, 3], [[1, 2], [1]]):
            with pytest.raises(ValueError, match="2 points"):
                bases.msm(wrong)


def test_the_memory_is_stated_and_bounded() -> None:
    with Worker("cpu", device_memory=8 << 20) as worker:
        known = _multiples("bn254", "g1", 3)
        points = _plain(known.points) * 3000
        with worker.bases(points) as bases:
            assert bases.bases.images and bases.bases.nbytes == 9000 * (2 * 64 + 4)
            assert bases.msm([1] * 9000) == _plain([known.total([3000] * 3)])[0]
        with worker.bases(points, precompute=True) as bases:
            assert bases.bases.levels == window_count(known.curve.order, bases.bases.width) > 10
            assert bases.bases.nbytes > 9000 * 64 * bases.bases.levels
            with pytest.raises(ServiceError) as caught:
                bases.msm([1] * 9000)
            assert caught.value.status is Status.OUT_OF_DEVICE_MEMORY


def test_points_that_do_not_fit_themselves_are_named() -> None:
    points = _plain(_multiples("bn254", "g1", 3).points) * 3000
    with Worker("cpu", device_memory=8 << 20) as worker, worker.bases(points, precompute=True) as kept:
        nbytes = kept.bases.table().building_bytes()
        with pytest.raises(ServiceError, match="9000 points kept on it with their multiples") as caught:
            kept.plan()
        assert str(nbytes) in caught.value.message and "buckets" not in caught.value.message
        assert "--device-memory" in caught.value.hint and "precompute=False" in caught.value.hint


def test_how_many_vectors(worker: Worker) -> None:
    """There is no frame whose param would bound them; none at all are refused."""
    with worker.bases([(1, 2)]) as kept:
        for none in (0, -1):
            with pytest.raises(ValueError, match=f"vectors: expected one or more, got {none}"):
                kept.plan(none)
        with pytest.raises(ValueError, match="one vector or more"):
            kept.msm(np.zeros((0, 1, 8), np.uint32))


def test_more_vectors_than_a_frame_holds() -> None:
    with Worker("reference") as worker, worker.bases([(1, 2)]) as kept:
        assert kept.msm([[0]] * 65_536 + [[1]])[-2:] == [None, (1, 2)]


@pytest.mark.parametrize("backend", ["reference", "cpu"])
def test_nothing_is_asked_of_a_closed_worker(backend: str) -> None:
    worker = Worker(backend)
    kept = worker.bases([(1, 2)])
    assert kept.msm([1]) == (1, 2)
    worker.close()
    uses: tuple[Callable[[], Any], ...] = (
        lambda: worker.bases([(1, 2)]),
        lambda: worker.pinned(1, 8),
        lambda: kept.msm([1]),
        lambda: kept.plan(7),
    )
    for use in uses:
        with pytest.raises(ServiceError, match="the worker was closed") as caught:
            use()
        assert caught.value.status is Status.INTERNAL
    kept.close()
    worker.close()


def test_points_that_were_given_back_are_taken_again(worker: Worker) -> None:
    kept = worker.bases([(1, 2)])
    assert kept.msm([1]) == (1, 2)
    kept.close()
    kept.close()
    assert kept.msm([1]) == (1, 2)
    kept.close()


def test_a_backend_that_there_is_not_is_an_error() -> None:
    with pytest.raises(ValueError, match="there is no backend 'nope': there are auto, cuda, cpu, reference, null"):
        Worker("nope")


def test_no_backend_is_an_error() -> None:
    with pytest.raises(ServiceError) as caught:
        Worker("cuda", device=99)
    assert caught.value.status is Status.NO_DEVICE


def _multiples(curve: str, group: GroupName, n: int) -> Multiples:
    found = curves.by_name(curve)
    assert found
    return Multiples(found, group, f"{curve} {group}", n)


def _plain(points: list[Point]) -> list[Any]:
    """As a client has them."""
    found: list[Any] = []
    for point in points:
        parts = None if point is None else tuple(tuple(map(int, each)) for each in point)
        found.append(parts if parts is None or len(parts[0]) > 1 else (parts[0][0], parts[1][0]))
    return found
