"""The child's own parts: which backend is chosen, what is registered, the self-test, and answers to failures."""

from __future__ import annotations

import random
import socket
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from limbd.ops import OPS, by_name
from limbd.ops.base import Call, LaunchPlan, Op, Request, Traits
from limbd.ops.modular import ModularOp
from limbd.ops.status import ServiceError, Status
from limbd.worker.device import choose as choose_module
from limbd.worker.device.base import BackendInfo, Outcome
from limbd.worker.device.choose import NoBackend, choose
from limbd.worker.device.main import Worker
from limbd.worker.device.messages import MESSAGE_BYTES, Answer, Job
from limbd.worker.device.null import NullBackend
from limbd.worker.device.pinned import PinnedMemory
from limbd.worker.device.reference import ReferenceBackend
from limbd.worker.device.self_test import SelfTest, edge_request

MODULI = (1, 2, 7, 2**31, 2**255 - 19, 2**256 - 2**32 - 977, 2**256 - 2, 2**256 - 1)


def modular_ops() -> list[Op]:
    return [op for op in OPS if isinstance(op, ModularOp)]


def request_of(op: Op, modulus: int, n: int = 3) -> Request:
    payload = modulus.to_bytes(32, "little") + bytes(range(32)) * (n * len(op.operands))
    return op.decode(Call(n), memoryview(payload))


# --- the choice ---


def test_auto_takes_the_first_that_works_and_says_what_did_not(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_device(*_: object) -> Any:
        raise ServiceError(Status.NO_DEVICE, "no card here")

    def no_module(*_: object) -> Any:
        raise ImportError("no compiler here")

    monkeypatch.setitem(choose_module._MAKERS, "cuda", no_device)
    monkeypatch.setitem(choose_module._MAKERS, "cpu", no_module)
    backend, reason = choose("auto", 0, None, None)
    assert backend.describe().name == "reference"
    assert "no card here" in reason and "no compiler here" in reason
    with pytest.raises(NoBackend, match="no card here"):
        choose("cuda", 0, None, None)


def test_an_unusable_cache_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels are then compiled at every start."""
    backend = SimpleNamespace(cache=SimpleNamespace(note="/x is not writable"))
    monkeypatch.setitem(choose_module._MAKERS, "cpu", lambda device, memory, cache: backend)
    assert choose_module.choose("cpu", 0, None, None)[1].endswith("kept in memory: /x is not writable")


def test_a_mistake_in_a_backend_is_no_reason_to_take_another(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> Any:
        raise TypeError("a mistake")

    monkeypatch.setitem(choose_module._MAKERS, "cuda", broken)
    with pytest.raises(TypeError):
        choose("auto", 0, None, None)


def test_backends_by_name(tmp_path: Path) -> None:
    for name in ("reference", "null", "cpu"):
        backend, reason = choose(name, 0, None, tmp_path)
        assert backend.describe().name == name and reason == "asked for by name"
        backend.close()


# --- memory ---


class Registrar(NullBackend):
    """Notes what is registered, by offset in `memory`; refuses what a driver would."""

    def __init__(self, memory: memoryview) -> None:
        self.base = address(memory)
        self.ranges: set[tuple[int, int]] = set()
        self.calls = 0

    def register(self, memory: memoryview) -> None:
        start = address(memory) - self.base
        new = (start, start + len(memory))
        assert not any(low < new[1] and new[0] < high for low, high in self.ranges), "registered twice"
        self.ranges.add(new)
        self.calls += 1

    def unregister(self, memory: memoryview) -> None:
        start = address(memory) - self.base
        self.ranges.remove((start, start + len(memory)))


def address(memory: memoryview) -> int:
    return int(np.frombuffer(memory, np.uint8).__array_interface__["data"][0])


def test_every_batch_lies_in_one_registered_range() -> None:
    memory = memoryview(bytearray(64 << 20))
    registrar = Registrar(memory)
    pinned = PinnedMemory(registrar, memory, first_bytes=4 << 20)
    assert registrar.ranges == {(0, 4 << 20)}
    settled: list[bool] = []
    rng = random.Random(3)
    for _ in range(12):
        start = rng.randrange(0, 64 << 20, 4096)
        end = min(start + rng.randrange(1, 6 << 20), 64 << 20)
        before = set(registrar.ranges)
        settled.clear()
        pinned.cover(start, end, lambda: settled.append(True))
        assert any(low <= start and end <= high for low, high in registrar.ranges)
        assert before <= registrar.ranges or settled == [True], "ranges in use were taken away"
    calls = registrar.calls
    assert calls > 1 and registrar.ranges != {(0, 64 << 20)}
    pinned.cover(0, 64 << 20, lambda: None)
    pinned.cover(5, 6, lambda: None)
    assert registrar.ranges == {(0, 64 << 20)} and registrar.calls == calls + 1


def test_memory_that_does_not_last_is_never_registered() -> None:
    memory = memoryview(bytearray(4 << 20))
    registrar = Registrar(memory)
    pinned = PinnedMemory(registrar, memory, first_bytes=1 << 20)
    pinned.cover(4 << 20, 5 << 20, lambda: None)
    pinned.cover(3 << 20, 5 << 20, lambda: None)
    assert registrar.ranges == {(0, 2 << 20)}
    assert PinnedMemory(registrar, memoryview(b"")) is not None


# --- the self-test ---


class Wrong(ReferenceBackend):
    """Right everywhere but in one place. position: of the byte that is off; None: right."""

    def __init__(self, position: int | None) -> None:
        self.position = position
        self.runs = 0

    def start(self, request: Request, plan: LaunchPlan, result: memoryview) -> Outcome:
        self.runs += 1
        outcome = super().start(request, plan, result)
        if self.position is not None:
            result[self.position] ^= 1
        return outcome


@pytest.mark.parametrize("op", modular_ops(), ids=lambda op: op.name)
def test_edge_elements_are_decoded_for_every_op(op: Op) -> None:
    for modulus in MODULI:
        small = edge_request(request_of(op, modulus))
        assert small.modulus == modulus and small.n == 16 and set(small.arrays) == set(op.operands)
        values = {int.from_bytes(bytes(row), "little") for row in next(iter(small.arrays.values()))}
        assert {0, 1, modulus - 1, min(modulus + 1, 2**256 - 1), 2**256 - 1} <= values


@pytest.mark.parametrize("op", modular_ops(), ids=lambda op: op.name)
def test_each_unit_is_proven_once(op: Op) -> None:
    backend = Wrong(None)
    test = SelfTest(backend)
    request = request_of(op, 2**255 - 19)
    plan = op.plan(request, backend.traits())
    for _ in range(3):
        test.check(request, plan)
    assert backend.runs == 1


@pytest.mark.parametrize("position", [0, 31, 15 * 32 + 31])
def test_a_wrong_kernel_never_answers(position: int) -> None:
    backend = Wrong(position)
    test = SelfTest(backend)
    op = by_name("mod-mul")
    request = request_of(op, 2**255 - 19)
    plan = op.plan(request, backend.traits())
    for _ in range(2):  # a unit that has failed stays unproven
        with pytest.raises(ServiceError) as caught:
            test.check(request, plan)
        assert caught.value.status is Status.SELF_CHECK_FAILED
        assert f"element {position // 32} " in caught.value.message
    backend.position = None
    test.check(request, plan)


# --- failures ---


class Failing(NullBackend):
    """Raises what it is told to, at start or at finish."""

    def __init__(self, error: Exception, late: bool) -> None:
        self.error = error
        self.late = late

    def start(self, request: Request, plan: LaunchPlan, result: memoryview) -> Any:
        if not self.late:
            raise self.error
        return "a ticket"

    def finish(self, ticket: Any) -> Outcome:
        raise self.error


def answers(backend: NullBackend, jobs: list[Job]) -> list[Answer]:
    """What a child's worker says to these jobs, whose payloads are zero but for their modulus 7."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    memory = memoryview(bytearray(4096))
    memory[0] = 7
    with ours, theirs:
        for job in jobs:
            ours.send(job.pack())
        ours.shutdown(socket.SHUT_WR)
        Worker(backend, BackendInfo("null", "", "", 0, ""), memory, PinnedMemory(backend, memory), theirs).serve()
        ours.settimeout(10)
        return [Answer.unpack(ours.recv(MESSAGE_BYTES)) for _ in jobs]


JOBS = [Job(number, 1, 0, 1, 0, 0, 96, 128, 32) for number in (1, 2)]


@pytest.mark.parametrize("late", [False, True])
def test_a_backend_s_error_is_its_job_s_answer(late: bool) -> None:
    error = ServiceError(Status.OUT_OF_DEVICE_MEMORY, "no memory for it", hint="less", index=3)
    for answer in answers(Failing(error, late), JOBS):
        assert answer.status is Status.OUT_OF_DEVICE_MEMORY
        assert answer.outcome.bad_index == 3 and "no memory for it" in answer.text


@pytest.mark.parametrize("late", [False, True])
def test_an_unexpected_exception_is_internal_with_its_traceback(late: bool) -> None:
    for answer in answers(Failing(ZeroDivisionError("a mistake"), late), JOBS):
        assert answer.status is Status.INTERNAL
        assert "Traceback" in answer.text and "ZeroDivisionError: a mistake" in answer.text


def test_a_bad_element_found_by_the_device() -> None:
    class Checking(NullBackend):
        def start(self, request: Request, plan: LaunchPlan, result: memoryview) -> Outcome:
            return Outcome(bad_index=17)

    assert [answer.status for answer in answers(Checking(), JOBS)] == [Status.BAD_ELEMENT] * 2


def test_traits_of_the_plain_backends_serve_for_plans() -> None:
    traits: Traits = NullBackend().traits()
    for op in modular_ops():
        assert op.plan(request_of(op, 7), traits).pieces
