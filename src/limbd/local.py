"""A backend in the caller's own process, and what only lives there until the wire has it: points kept on the device."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import lru_cache, partial
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt

from limbd.ops.base import LaunchPlan
from limbd.ops.msm_bases import Bases
from limbd.ops.msm_plan import Question, plan_of
from limbd.ops.msm_shape import window_count
from limbd.ops.msm_tuning import MsmRow, bases_row, bases_width, msm_row
from limbd.ops.params.curves import Curve, Group, GroupName
from limbd.ops.params.layout import PLAIN_LIMBS
from limbd.ops.status import ServiceError, Status
from limbd.worker.device.base import Backend, Outcome
from limbd.worker.device.choose import NoBackend, choose
from limbd.worker.device.self_test import SelfTest
from limbd.worker.multiplication_question import (
    answer_of,
    group_of,
    points_of,
    request_of,
    together_of,
    vectors_of,
)

Limbs = npt.NDArray[np.uint32]

# Of one set of bases: to make a plan takes longer than to enqueue a short one.
PLANS_KEPT = 8


class Worker:
    """A device without the daemon before it; a context manager. A fault of the device is a fault of this process.

    backend: auto, cuda, cpu or reference, or one that is there already, which the rest says nothing about. device: GPU index.
    device_memory: bytes. cache: folder of compiled kernels. Its methods may be called by several threads. Raises
    ServiceError(NO_DEVICE) where the backend does not work, ValueError where there is none of that name. After close() every
    use of it, and of the points that it keeps, raises ServiceError(INTERNAL).

        with Worker() as worker, worker.bases(points, "bn254", precompute=True) as bases:
            bases.msm(scalars)
    """

    def __init__(
        self,
        backend: str | Backend = "auto",
        *,
        device: int = 0,
        device_memory: int | None = None,
        cache: str | Path | None = None,
    ) -> None:
        if isinstance(backend, str):
            try:
                backend, _ = choose(backend, device, device_memory, Path(cache) if cache else None)
            except NoBackend as error:
                raise ServiceError(Status.NO_DEVICE, str(error)) from error
        self._backend = backend
        self._test = SelfTest(backend)
        self.closed = False

    @property
    def backend(self) -> Backend:
        """Raises ServiceError(INTERNAL) after close()."""
        if self.closed:
            raise ServiceError(Status.INTERNAL, "the worker was closed", hint="make a new one")
        return self._backend

    def bases(
        self,
        points: Any,
        curve: str = "bn254",
        group: str = "g1",
        *,
        precompute: bool = False,
        check_subgroup: bool = False,
    ) -> KeptBases:
        """Points that many multiplications share; their memory on the device is taken at the first of them, and again where
        something else has pushed them out. Arguments as of limbd.Client.msm.

        precompute: keep multiples of the points for every window too, which saves all doublings and takes from 12 (many
        points) to 65 (few, on a CPU; 29 on a GPU) times the memory. Without it a point of bn254 or secp256k1 g1 takes twice its
        memory where scalars are halved, as they are on a CPU. Raises RequestError(BAD_ELEMENT) with the index of the first bad
        point.
        """
        found, name, its_group = group_of(curve, group)
        array, plain = points_of(points, found, its_group)
        array = np.array(array, dtype="<u4", order="C")  # a copy: the caller's may change, and what is kept must not
        self._check(array, found, name, check_subgroup)
        traits = self.backend.traits()
        width = bases_width(traits.kind, traits.arch, found, name, len(array)) if precompute and len(array) else 0
        levels = window_count(found.order, width) if width else 1
        halves = bool(len(array)) and msm_row(traits.kind, traits.arch, found, name, len(array)).halves
        images = halves and not width and its_group.endomorphism is not None
        key = hashlib.sha256(array.data.cast("B") if array.size else b"").hexdigest()
        return KeptBases(self, Bases(found, name, len(array), key, width, levels, images), its_group, array, plain)

    def pinned(self, *shape: int) -> Limbs:
        """Page-locked zeros, uint32, from which copies to the device run at full speed. They stay so until close()."""
        array = np.zeros(shape, dtype="<u4")
        self.backend.register(array.data.cast("B"))
        return array

    def close(self) -> None:
        """Gives everything back; a second time does nothing."""
        if not self.closed:
            self.closed = True
            self._backend.close()

    def __enter__(self) -> Worker:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _check(self, points: Limbs, curve: Curve, name: GroupName, check_subgroup: bool) -> None:
        """By the op itself, with zeros for scalars."""
        zeros = np.zeros((len(points), PLAIN_LIMBS), "<u4")
        request = request_of(curve, name, zeros, points, check_subgroup=check_subgroup)
        plan = request.op.plan(request, self.backend.traits())
        self._test.check(request, plan)
        self.backend.run(request, plan, memoryview(bytearray(request.element_bytes)))


class KeptBases:
    """What Worker.bases gives; a context manager. `last`: times of the last multiplication."""

    def __init__(self, worker: Worker, bases: Bases, group: Group, points: Limbs, plain: bool) -> None:
        self.bases = bases
        self.last: Outcome | None = None
        self._worker = worker
        self._points = points
        self._convert = partial(answer_of, bases.curve, group, plain=plain)
        self._planned = lru_cache(PLANS_KEPT)(self._plan)

    def msm(self, scalars: Any, *, constant_work: bool = False) -> Any:
        """As limbd.Client.msm, with these points. An array of scalars is read where it lies: see Worker.pinned.

        Raises ServiceError(OUT_OF_DEVICE_MEMORY) where the budget does not hold the points and what the sum takes.
        """
        vectors, many = vectors_of(scalars)
        self._check_lengths(vectors)
        bases, count = self.bases, len(vectors)
        together = together_of(scalars, vectors)
        request = request_of(
            bases.curve, bases.name, together, self._points, vectors=count, constant_work=constant_work
        )
        result = np.empty((count, self._points.shape[1]), "<u4")
        plan = self.plan(count, constant_work=constant_work)
        self.last = self._worker.backend.run(request, plan, result.data.cast("B"))
        return self._convert(result, many=many)

    def plan(self, vectors: int = 1, *, constant_work: bool = False) -> LaunchPlan:
        """What msm carries out for so many vectors. Raises ValueError where there is not even one."""
        if vectors < 1:
            raise ValueError(f"vectors: expected one or more, got {vectors}")
        return self._planned(vectors, constant_work)

    def _plan(self, vectors: int, constant_work: bool) -> LaunchPlan:
        bases = self.bases
        question = Question(bases.curve, bases.name, bases.count, vectors, constant_work, False, bases)
        return plan_of(question, self._worker.backend.traits(), self.row)

    def row(self, count: int) -> MsmRow:
        """The tuning row for so many of the points."""
        traits = self._worker.backend.traits()
        return bases_row(traits.kind, traits.arch, self.bases, count, multiprocessors=traits.multiprocessors)

    def close(self) -> None:
        """Gives the device's memory back; another multiplication takes it again. Nothing is left to do after the worker's."""
        if not self._worker.closed:
            self._worker.backend.forget(self.bases.table_key)

    def __enter__(self) -> KeptBases:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _check_lengths(self, vectors: Sequence[Limbs]) -> None:
        lengths = {len(vector) for vector in vectors}
        if lengths != {self.bases.count}:
            raise ValueError(f"{self.bases.count} points, but vectors of {sorted(lengths)} scalars")
