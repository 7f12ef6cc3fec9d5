"""A backend in the caller's own process, and what only lives there until the wire has it: points kept on the device."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt

from limbd.ops.msm_bases import Bases
from limbd.ops.msm_plan import Question, plan_of, window_count
from limbd.ops.msm_tuning import bases_row, bases_width
from limbd.ops.params.curves import Curve, Group, GroupName
from limbd.ops.params.layout import PLAIN_LIMBS
from limbd.ops.status import ServiceError, Status
from limbd.worker.device.base import Outcome
from limbd.worker.device.choose import NoBackend, choose
from limbd.worker.device.self_test import SelfTest
from limbd.worker.multiplication_question import answer_of, group_of, points_of, request_of, vectors_of

Limbs = npt.NDArray[np.uint32]


class Worker:
    """A device without the daemon before it; a context manager. A fault of the device is a fault of this process.

    backend: auto, cuda, cpu or reference. device: GPU index. device_memory: bytes. cache: folder of compiled kernels. Its methods
    may be called by several threads. Raises ServiceError(NO_DEVICE) where the backend does not work.

        with Worker() as worker, worker.bases(points, "bn254", precompute=True) as bases:
            bases.msm(scalars)
    """

    def __init__(
        self,
        backend: str = "auto",
        *,
        device: int = 0,
        device_memory: int | None = None,
        cache: str | Path | None = None,
    ) -> None:
        try:
            self.backend, _ = choose(backend, device, device_memory, Path(cache) if cache else None)
        except NoBackend as error:
            raise ServiceError(Status.NO_DEVICE, str(error)) from error
        self._test = SelfTest(self.backend)

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
        points) to 65 (few, on a CPU; 29 on a GPU) times the memory. Raises RequestError(BAD_ELEMENT) with the index of the first bad
        point.
        """
        found, name, its_group = group_of(curve, group)
        array, plain = points_of(points, found, its_group)
        array = np.array(array, dtype="<u4", order="C")  # a copy: the caller's may change, and what is kept must not
        self._check(array, found, name, check_subgroup)
        traits = self.backend.traits()
        width = bases_width(traits.kind, found, name, len(array)) if precompute and len(array) else 0
        levels = window_count(found.order, width) if width else 1
        key = hashlib.sha256(array.data.cast("B") if array.size else b"").hexdigest()
        return KeptBases(self, Bases(found, name, len(array), key, width, levels), its_group, array, plain)

    def pinned(self, *shape: int) -> Limbs:
        """Page-locked zeros, uint32, from which copies to the device run at full speed. They stay so until close()."""
        array = np.zeros(shape, dtype="<u4")
        self.backend.register(array.data.cast("B"))
        return array

    def close(self) -> None:
        """Gives everything back."""
        self.backend.close()

    def __enter__(self) -> Worker:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _check(self, points: Limbs, curve: Curve, name: GroupName, check_subgroup: bool) -> None:
        """By the op itself, with zeros for scalars."""
        zeros = np.zeros((len(points), PLAIN_LIMBS), "<u4")
        request = request_of(curve, name, [zeros], points, check_subgroup=check_subgroup)
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

    def msm(self, scalars: Any, *, constant_work: bool = False) -> Any:
        """As limbd.Client.msm, with these points. An array of scalars is read where it lies: see Worker.pinned.

        Raises ServiceError(OUT_OF_DEVICE_MEMORY) where the budget does not hold the points and what the sum takes.
        """
        vectors, many = vectors_of(scalars)
        self._check_lengths(vectors)
        bases = self.bases
        request = request_of(bases.curve, bases.name, vectors, self._points, constant_work=constant_work)
        result = np.empty((len(vectors), self._points.shape[1]), "<u4")
        backend = self._worker.backend
        traits = backend.traits()
        question = Question(bases.curve, bases.name, bases.count, len(vectors), constant_work, False, bases)
        row_of = partial(bases_row, traits.kind, traits.arch, bases, multiprocessors=traits.multiprocessors)
        plan = plan_of(question, traits, row_of)
        self.last = backend.run(request, plan, result.data.cast("B"))
        return self._convert(result, many=many)

    def close(self) -> None:
        """Gives the device's memory back."""
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
