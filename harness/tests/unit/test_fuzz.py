"""The fuzzer and the known answers catch what is wrong: backends with planted faults."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from limbd.harness import fuzz, kat, transforms
from limbd.harness.inputs import Residues, known_residues
from limbd.harness.targets import GUARD_BYTES, BackendTarget, ClientTarget, GuardError
from limbd.harness.vectors import load
from limbd.ops import OPS
from limbd.ops.base import LaunchPlan, Limbs, Request
from limbd.ops.params.fields import FIELDS, by_modulus
from limbd.ops.params.layout import from_ints, to_ints
from limbd.ops.status import RequestError, ServiceError, Status
from limbd.worker.device.base import Outcome
from limbd.worker.device.null import NullBackend
from limbd.worker.device.reference import ReferenceBackend

Fault = Callable[[Request, Limbs], None]


class Faulty(ReferenceBackend):
    """The reference, then a fault in its results (a view of shape (n, W))."""

    def __init__(self, fault: Fault) -> None:
        self.fault = fault

    def start(self, request: Request, plan: LaunchPlan, result: memoryview) -> Outcome:
        outcome = super().start(request, plan, result)
        self.fault(request, np.frombuffer(result, dtype="<u4").reshape(-1, request.element_bytes // 4))
        return outcome


def one_bit_at_the_top_operand(request: Request, results: Limbs) -> None:
    """Wrong only where an operand is 2^256 - 1: random operands alone would never find it."""
    first = next(iter(request.arrays.values()))
    results[(first == 0xFFFFFFFF).all(axis=1), 0] ^= 1


def not_canonical(request: Request, results: Limbs) -> None:
    """0 comes out as m: congruent, and wrong."""
    if request.modulus.bit_length() <= 32 * results.shape[1]:
        results[(results == 0).all(axis=1)] = from_ints([request.modulus], results.shape[1])[0]


def last_of_a_long_batch(request: Request, results: Limbs) -> None:
    if request.n > 64:
        results[-1, 0] ^= 1


def nothing(request: Request, results: Limbs) -> None:
    """No fault."""


@pytest.mark.parametrize("fault", [one_bit_at_the_top_operand, not_canonical, last_of_a_long_batch])
def test_a_planted_fault_is_found_by_both(fault: Fault) -> None:
    found = fuzz.run(Faulty(fault), seed="planted", ops=["mod-mul"], elements=60_000)
    assert not found.ok
    report = kat.run(Faulty(fault), ["mod-mul"])
    assert not report.ok
    assert report.failed > 0


def last_of_a_transform(request: Request, results: Limbs) -> None:
    """Wrong in one place of long transforms alone."""
    if request.param & 0xFF >= 5:
        results[-1, 0] ^= 1


def test_a_fault_in_transforms_is_found_by_both() -> None:
    found = fuzz.run(Faulty(last_of_a_transform), seed="transforms", ops=["ntt"], rounds=60)
    assert not found.ok
    failure = found.failures[0]
    assert failure.residues.param & 0xFF >= 5 and failure.index == failure.n - 1 and not failure.alone
    again = fuzz.run(Faulty(last_of_a_transform), seed="transforms", ops=["ntt"], first_round=failure.round, rounds=1)
    assert [each.index for each in again.failures] == [failure.index]
    report = kat.run(Faulty(last_of_a_transform), ["ntt"], largest=0)
    assert not report.ok and any("limbd kat --op ntt" in text for text in report.failures)


def test_recipes_are_part_of_the_known_answers() -> None:
    def last_of_a_large_one(request: Request, results: Limbs) -> None:
        if request.n == 1 << 12:
            results[-1, 0] ^= 1

    assert kat.run(Faulty(nothing), ["ntt"], largest=12).ok
    report = kat.run(Faulty(last_of_a_large_one), ["ntt"], largest=12)
    assert report.named("ntt", "recipes").failed == 4 << 12
    assert all("recipe" in text and "index 4095" in text for text in report.failures)


class Lenient(ReferenceBackend):
    """Lets an element that may not be pass, or tells another place."""

    def __init__(self, index: int | None) -> None:
        self.index = index

    def start(self, request: Request, plan: LaunchPlan, result: memoryview) -> Outcome:
        try:
            return super().start(request, plan, result)
        except RequestError as error:
            if self.index is None:
                return Outcome()
            raise RequestError(error.status, error.message, index=self.index) from None


@pytest.mark.parametrize("index", [None, 5000])
def test_a_bad_element_that_is_not_told_is_a_failure(index: int | None) -> None:
    assert fuzz.run(Faulty(nothing), seed="bad", ops=["ntt"], rounds=40).ok
    found = fuzz.run(Lenient(index), seed="bad", ops=["ntt"], rounds=40)
    assert found.failures and all("BAD_ELEMENT" in failure.text for failure in found.failures)


def test_fuzzed_transforms_are_of_every_kind() -> None:
    asked = [fuzz.batch_of("ntt", "kinds", number)[0] for number in range(200)]
    assert {residues.param >> 8 for residues in asked} == set(range(32))
    assert {by_modulus(residues.modulus) for residues in asked} == set(transforms.fields())
    assert {residues.field is None for residues in asked} == {False, True}
    assert {0, 1, 2, 8, 11} <= {residues.param & 0xFF for residues in asked}


def test_without_a_fault_nothing_is_found() -> None:
    found = fuzz.run(Faulty(nothing), seed="planted", rounds=20)
    assert found.ok
    assert found.rounds == 20
    assert set(found.elements) == {op.name for op in OPS}
    assert kat.run(Faulty(nothing), ["mod-add"]).ok


def test_the_reproducer_repeats_the_failure(capsys: pytest.CaptureFixture[str]) -> None:
    found = fuzz.run(Faulty(one_bit_at_the_top_operand), seed="again", ops=["mod-sub"], elements=60_000)
    failure = found.failures[0]
    again = re.search(r"limbd fuzz --op mod-sub --seed again --round (\d+) --backend reference", failure.text)
    assert again
    assert failure.alone
    repeated = fuzz.run(
        Faulty(one_bit_at_the_top_operand), seed="again", ops=["mod-sub"], first_round=int(again[1]), rounds=1
    )
    assert [(each.index, each.n) for each in repeated.failures] == [(failure.index, failure.n)]
    case = re.search(r"limbd call mod-sub --modulus (\w+) (0x\w+) (0x\w+) --backend", failure.text)
    assert case
    assert int(case[2], 16) in (2**256 - 1, 2**384 - 1)


def test_a_fault_of_the_place_is_told_from_one_of_the_operands() -> None:
    found = fuzz.run(Faulty(last_of_a_long_batch), seed="place", ops=["mod-add"], elements=20_000)
    assert found.failures[0].index == found.failures[0].n - 1
    assert not found.failures[0].alone
    assert "depends on its place" in found.failures[0].text


def test_an_error_is_a_failure() -> None:
    def refuse(request: Request, results: Limbs) -> None:
        raise ServiceError(Status.DEVICE_FAULT, "planted")

    found = fuzz.run(Faulty(refuse), ops=["mod-mul"], rounds=1)
    assert "planted" in found.failures[0].text
    report = kat.run(Faulty(refuse), ["mod-exp"])
    assert report.passed == 0
    assert not report.ok


def test_writing_past_the_end_is_seen() -> None:
    class Overrun(NullBackend):
        def start(self, request: Request, plan: LaunchPlan, result: memoryview) -> Outcome:
            owner: Any = result.obj
            whole = np.frombuffer(owner, dtype=np.uint8)
            assert len(whole) == len(result) + GUARD_BYTES
            whole[len(result)] = 0
            return super().start(request, plan, result)

    with pytest.raises(GuardError, match="past the end"):
        BackendTarget(Overrun()).answer("mod-mul", Residues(7), {"a": from_ints([1]), "b": from_ints([1])})


def test_a_backend_that_writes_nothing_is_not_right_by_chance() -> None:
    class Idle(NullBackend):
        def start(self, request: Request, plan: LaunchPlan, result: memoryview) -> Outcome:
            return Outcome()

    zeros = {"a": from_ints([0] * 4), "b": from_ints([0] * 4)}
    assert to_ints(BackendTarget(NullBackend()).answer("mod-mul", Residues(7), zeros)) == [0] * 4
    assert 0 not in to_ints(BackendTarget(Idle()).answer("mod-mul", Residues(7), zeros))


def test_null_is_far_from_right() -> None:
    report = kat.run(NullBackend())
    assert not report.ok
    assert report.failed > report.passed


def test_a_bound_is_needed_and_kept() -> None:
    with pytest.raises(ValueError, match="bound"):
        fuzz.run(ReferenceBackend())
    assert fuzz.run(ReferenceBackend(), seconds=0.0).rounds == 0
    assert not fuzz.run(ReferenceBackend(), seconds=0.0).ok


class PlainClient:
    """Answers like a worker behind version 1 of the wire: the modulus, never a field."""

    def __init__(self) -> None:
        self.moduli: list[int] = []

    def call(
        self, op: str, operands: list[Limbs], modulus: int, *, param: int = 0, domain: tuple[int, ...] = ()
    ) -> Limbs:
        self.moduli.append(modulus)
        names = next(each.operands for each in OPS if each.name == op)
        arrays: Mapping[str, Limbs] = dict(zip(names, operands, strict=True))
        return BackendTarget(ReferenceBackend()).answer(op, Residues(modulus, None, param, domain), arrays)


def test_a_client_is_asked_by_modulus_and_the_rest_is_counted_as_skipped() -> None:
    client = PlainClient()
    report = kat.run(client, ["mod-mul"], name="--connect here")
    assert report.ok
    wide = [batch for batch in load("mod-mul") if batch.width > 32]
    assert sum(row.skipped for row in report.rows.values()) == sum(batch.n for batch in wide) > 0
    text = io.StringIO()
    report.print(text)
    assert "--connect here" in text.getvalue()
    assert "skipped" in text.getvalue()
    assert fuzz.run(ClientTarget(client, "--connect here"), ops=["mod-add"], rounds=len(known_residues())).ok
    narrow = {field.modulus for field in FIELDS if field.bits <= 256}
    assert narrow <= set(client.moduli)
