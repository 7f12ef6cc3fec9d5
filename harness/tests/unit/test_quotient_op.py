"""quotient as an op: what it refuses, its default domain, and its plans: launches, buffers, pieces, tables."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from limbd.ops import by_id, by_name
from limbd.ops.base import Call, Launch, LaunchPlan, Part, Request, Traits, Unit
from limbd.ops.params import fields
from limbd.ops.params.base import Field
from limbd.ops.params.layout import pack
from limbd.ops.quotient import COEFFICIENTS, QUOTIENT, param_of, vanishing
from limbd.ops.status import RequestError, Status
from limbd.ops.transform_op import OWN_DOMAIN
from limbd.ops.transform_shape import Flag


def field_named(name: str) -> Field:
    field = fields.by_name(name)
    assert field is not None
    return field


BN254 = field_named("bn254_fr")
TOY = field_named("toy_97")
H200 = Traits("cuda", "sm_90", 132, 1 << 37)
HOST = Traits("cpu", "x86_64", 2, 1 << 36)

BOTH = pytest.mark.parametrize("traits", [H200, HOST], ids=["cuda", "cpu"])
EITHER_RESULT = pytest.mark.parametrize("coefficients", [False, True], ids=["values", "coefficients"])


def refusal(call: Call, payload: bytes) -> Status:
    with pytest.raises(RequestError) as caught:
        QUOTIENT.decode(call, memoryview(payload))
    return caught.value.status


def request_of(k: int, transforms: int = 1, *, field: Field = BN254, coefficients: bool = False) -> Request:
    """Of zeros that take no memory."""
    n = transforms << k
    zeros = np.broadcast_to(np.zeros(1, np.uint32), (n, 8))
    constants = {"omega": field.omega(k), "shift": field.omega(k + 1)}
    param = param_of(k, coefficients=coefficients)
    return Request(QUOTIENT, n, param, field.modulus, 32, dict.fromkeys("abc", zeros), field, constants)


def launches(plan: LaunchPlan) -> list[Launch]:
    return [launch for piece in plan.pieces for launch in piece.launches]


def test_it_is_registered() -> None:
    assert by_id(0x21) is by_name("quotient") is QUOTIENT


# --- decode ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bit", [8, 9, 10, 11, 14, 15, 16, 31])
def test_unknown_bits_are_refused(bit: int) -> None:
    call = Call(2, 1 | 1 << bit)
    assert refusal(call, pack([BN254.modulus, *[0] * 6])) is Status.BAD_PARAM


def test_fields_without_transforms_are_refused() -> None:
    assert refusal(Call(2, 1), pack([101, *[0] * 6])) is Status.BAD_MODULUS
    assert refusal(Call(2, 1, field_named("bn254_fp")), pack([0] * 6)) is Status.BAD_PARAM


@pytest.mark.parametrize(
    ("n", "param", "elements"), [(2, 1, 5), (2, 1, 7), (3, 1, 9), (1, 1, 3), (2, OWN_DOMAIN | 1, 6)]
)
def test_lengths(n: int, param: int, elements: int) -> None:
    """A length that the formula does not give, and n that is no multiple of 2^k."""
    assert refusal(Call(n, param), pack([BN254.modulus, *[1] * elements])) is Status.BAD_LENGTH


def test_lengths_by_formula() -> None:
    assert QUOTIENT.payload_bytes(Call(1 << 40, 20)) == 32 * (1 + 3 * (1 << 40))
    assert QUOTIENT.payload_bytes(Call(4, 2 | OWN_DOMAIN)) == 32 * (3 + 12)
    assert QUOTIENT.payload_bytes(Call(4, 2 | OWN_DOMAIN, BN254)) == 32 * (2 + 12)
    assert QUOTIENT.result_bytes(Call(4, 2)) == 128


def test_arrays_are_views_in_their_order() -> None:
    payload = bytearray(pack([97, 22, 5, *range(12)]))
    request = QUOTIENT.decode(Call(4, 2 | OWN_DOMAIN), memoryview(payload))
    assert [int(request.arrays[name][0, 0]) for name in "abc"] == [0, 4, 8]
    payload[3 * 32] = 50
    assert int(request.arrays["a"][0, 0]) == 50
    assert request.constants == {"omega": 22, "shift": 5}


@pytest.mark.parametrize("k", range(5))
def test_the_default_shift_makes_z_minus_two(k: int) -> None:
    for field in (BN254, TOY, field_named("bls12_381_fr"), field_named("goldilocks")):
        request = QUOTIENT.decode(Call(0, k, field), memoryview(b""))
        m = field.modulus
        assert field.generator is not None
        assert request.constants["omega"] == pow(field.generator, (m - 1) // 2**k, m)
        assert request.constants["shift"] == pow(field.generator, (m - 1) // 2 ** (k + 1), m)
        assert vanishing(m, k, request.constants["shift"]) == m - 2


@pytest.mark.parametrize("field", [BN254, TOY, field_named("toy_257")], ids=lambda field: field.name)
def test_the_two_adicity_needs_the_callers_domain(field: Field) -> None:
    k = field.two_adicity
    assert refusal(Call(0, k, field), b"") is Status.BAD_DOMAIN
    assert refusal(Call(0, k + 1, field), b"") is Status.BAD_DOMAIN
    own = pack([field.omega(k), 5])
    assert QUOTIENT.decode(Call(0, k | OWN_DOMAIN, field), memoryview(own)).constants["shift"] == 5
    assert QUOTIENT.decode(Call(0, k - 1, field), memoryview(b"")).constants["omega"] == field.omega(k - 1)


@pytest.mark.parametrize(
    ("omega", "shift", "status"),
    [
        (22, 0, Status.BAD_ELEMENT),
        (22, 97, Status.BAD_ELEMENT),
        (97 + 22, 5, Status.BAD_ELEMENT),
        (1, 5, Status.BAD_DOMAIN),
        (96, 5, Status.BAD_DOMAIN),
        (33, 5, Status.BAD_DOMAIN),
    ],
)
def test_own_domains_are_checked(omega: int, shift: int, status: Status) -> None:
    """Modulo 97, where 22 has order 4, 96 order 2 and 33 order 8; with n = 0 too."""
    for n in (0, 4):
        assert refusal(Call(n, 2 | OWN_DOMAIN), pack([97, omega, shift, *[0] * 3 * n])) is status


@pytest.mark.parametrize("shift", [1, 22, 96, 75])
def test_a_coset_on_which_z_is_zero(shift: int) -> None:
    """Its coefficients of (A B - C) / Z do not exist; its values of A B - C do."""
    payload = pack([97, 22, shift, *[0] * 12])
    assert refusal(Call(4, 2 | OWN_DOMAIN | COEFFICIENTS), payload) is Status.BAD_DOMAIN
    assert refusal(Call(0, 2 | OWN_DOMAIN | COEFFICIENTS), payload[: 3 * 32]) is Status.BAD_DOMAIN
    assert QUOTIENT.decode(Call(4, 2 | OWN_DOMAIN), memoryview(payload)).n == 4


# --- plans ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("k", "values", "coefficients"), [(0, 3, 4), (5, 3, 4), (10, 3, 4), (18, 5, 7), (20, 7, 10)])
def test_launches_on_a_device(k: int, values: int, coefficients: int) -> None:
    for transforms in (1, 2):
        assert len(launches(QUOTIENT.plan(request_of(k, transforms), H200))) == values
        assert len(launches(QUOTIENT.plan(request_of(k, transforms, coefficients=True), H200))) == coefficients


@pytest.mark.parametrize("k", range(28))
@EITHER_RESULT
def test_no_more_launches_than_promised(k: int, coefficients: bool) -> None:
    count = len(launches(QUOTIENT.plan(request_of(k, coefficients=coefficients), H200)))
    assert count <= (18 if k <= 18 else 24)


@BOTH
@EITHER_RESULT
@pytest.mark.parametrize("k", [0, 3, 8, 9, 11, 16, 21])
def test_a_plan_stays_inside_its_buffers(traits: Traits, k: int, coefficients: bool) -> None:
    """What each launch reads has been written, and its blocks cover its elements, wherever it is cut."""
    request = request_of(k, 4, coefficients=coefficients)
    whole = QUOTIENT.plan(request, traits)
    tight = replace(
        traits, memory=whole.device_bytes() * 3 // 4 + sum(table.building_bytes() for table in whole.tables)
    )
    for plan in (whole, QUOTIENT.plan(request, tight)):
        sizes = {buffer.name: buffer.nbytes for buffer in plan.buffers}
        assert plan.device_bytes() + sum(table.building_bytes() for table in plan.tables) <= traits.memory
        for piece in plan.pieces:
            written = {copy.buffer: copy.at + copy.nbytes for copy in piece.copies_in}
            for launch in piece.launches:
                nbytes = launch.values["columns"] * 32 << launch.values["bits"]
                assert launch.grid * launch.block << dict(launch.kernel.unit.constants).get("LOG_E", 3) >= nbytes // 32
                for member in ("in", "first", "second"):
                    if member in launch.pointers:
                        name, offset = place(launch, member)
                        assert offset + nbytes <= written[name]
                name, offset = place(launch, "out")
                assert sizes[name] >= offset + nbytes
                written[name] = max(written.get(name, 0), offset + nbytes)
            assert written["out"] == piece.copies_out[0].nbytes


def place(launch: Launch, member: str) -> tuple[str, int]:
    where = launch.pointers[member]
    assert where is not None
    return (where.buffer, where.offset) if isinstance(where, Part) else (where, 0)


def test_the_last_pass_of_c_alone_combines() -> None:
    older = replace(H200, arch="sm_80")
    plan = QUOTIENT.plan(request_of(18), older)
    kernels = [launch.kernel.name for launch in launches(plan)]
    assert kernels == ["ntt_pass"] * 4 + ["quotient_pass"]
    assert [launch.values["columns"] >> 9 for launch in launches(plan)] == [3, 3, 3, 2, 1]
    checks = [bool(launch.values["flags"] & Flag.CHECKED) for launch in launches(plan)]
    assert checks == [True, False, False, False, False]
    assert [table.name for table in plan.tables] == ["inward", "outward"]
    coefficients = QUOTIENT.plan(request_of(18, coefficients=True), older)
    assert [launch.kernel.name for launch in launches(coefficients)] == [*kernels, "ntt_pass", "ntt_pass"]
    assert [table.name for table in coefficients.tables] == ["inward", "outward", "back"]


def test_a_frame_that_does_not_fit_is_cut_between_transforms() -> None:
    request = request_of(10, 5)
    tables = sum(table.building_bytes() for table in QUOTIENT.plan(request, H200).tables)
    each = 7 * 32 << 10
    plan = QUOTIENT.plan(request, replace(H200, memory=tables + 2 * each))
    assert [piece.copies_out[0].nbytes >> 15 for piece in plan.pieces] == [2, 2, 1]
    assert [piece.copies_out[0].offset >> 15 for piece in plan.pieces] == [0, 2, 4]
    for start, piece in zip((0, 2, 4), plan.pieces, strict=True):
        checked = [launch for launch in piece.launches if launch.values["flags"] & Flag.CHECKED]
        assert [launch.values["offset"] >> 10 for launch in checked] == [start, 5 + start, 10 + start]


@EITHER_RESULT
def test_what_does_not_fit_is_too_large(coefficients: bool) -> None:
    request = request_of(12, coefficients=coefficients)
    plan = QUOTIENT.plan(request, H200)
    needed = plan.device_bytes() - 8 + sum(table.building_bytes() for table in plan.tables)
    assert len(QUOTIENT.plan(request, replace(H200, memory=needed)).pieces) == 1
    with pytest.raises(RequestError) as caught:
        QUOTIENT.plan(request, replace(H200, memory=needed - 1))
    assert caught.value.status is Status.TOO_LARGE


def test_nothing_is_no_work() -> None:
    assert QUOTIENT.plan(request_of(10, 0), H200).pieces == ()


@BOTH
@EITHER_RESULT
@pytest.mark.parametrize("k", [0, 2, 12, 20])
def test_a_self_test_runs_the_plans_kernels(traits: Traits, k: int, coefficients: bool) -> None:
    request = request_of(k, coefficients=coefficients)
    plan = QUOTIENT.plan(request, traits)
    small = QUOTIENT.proof_request(request, plan)
    proof = QUOTIENT.proof_plan(small, plan, traits)
    assert small.param & COEFFICIENTS == request.param & COEFFICIENTS
    if compiled(plan):
        assert {launch.kernel for launch in launches(proof)} > {launch.kernel for launch in launches(plan)}
        assert small.n <= 3 << 13
        return
    assert {launch.kernel for launch in launches(proof)} == {launch.kernel for launch in launches(plan)}
    assert small.n <= 1000
    if k > 10:
        assert len(launches(proof)) == (7 if coefficients else 5)


def compiled(plan: LaunchPlan) -> set[Unit]:
    return {launch.kernel.unit for launch in plan.launches() if launch.kernel.unit.entry == "ntt_compiled"}


@BOTH
def test_every_plan_uses_listed_units(traits: Traits) -> None:
    listed = set(QUOTIENT.units(traits))
    for name in ("bn254_fr", "bls12_381_fr", "goldilocks"):
        for k in (0, 4, 12, 20):
            plan = QUOTIENT.plan(request_of(k, field=field_named(name)), traits)
            used = {launch.kernel.unit for launch in plan.launches()}
            # Compiled shapes are too many: of these a sample is listed.
            assert {unit for unit in used if unit.entry != "ntt_compiled"} <= listed
            assert bool(used & listed & compiled(plan)) == bool(compiled(plan))
