"""ntt's kernels against the reference: every size, order, direction and coset; every tuning row; small and many passes."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np
import pytest

from limbd.harness.transforms import elements, own_domain
from limbd.harness.transforms import fields as fields_with_transforms
from limbd.ops.base import Call, LaunchPlan, Request, Traits
from limbd.ops.ntt import NTT, param_of
from limbd.ops.params.base import Field
from limbd.ops.params.fields import FIELDS, register, unregister
from limbd.ops.params.layout import from_ints, pack, to_ints, unpack
from limbd.ops.status import RequestError, Status
from limbd.ops.transform_shape import Order
from limbd.ops.tuning import LANE_CLUSTERS, LaneRow, TransformRow, has_clusters, near_equal, transform_rows
from limbd.worker.device.base import Backend
from limbd.worker.device.cache import Cache
from limbd.worker.device.cpu import CpuBackend

VARIANTS = list(product(Order, (False, True), (False, True)))
LARGEST_LOG_N = 13

NAMED = {field.name: field for field in FIELDS}
BN254, BLS = NAMED["bn254_fr"], NAMED["bls12_381_fr"]

# Rows that no device has: digits of 2 to 5 bits, so that few elements take many passes, by every radix; tiles that a digit
# fills, and wider ones.
SMALL_ROWS = tuple(
    TransformRow(None, None, log_e, tile, digit, 256 if log_e == 2 else 128, 2 if log_e == 2 else 4, "a test", splits)
    for log_e, tile, digit, splits in (
        *((1, 5, 2, ()), (1, 7, 4, ((1, 2, 4), (4, 2, 1), (5, 1))), (2, 5, 3, ()), (2, 8, 3, ((1, 3, 5), (5, 3, 1)))),
        *((3, 8, 4, ()), (3, 7, 5, ((2, 3, 5), (5, 3, 2))), (3, 9, 3, ((3, 2, 4), (7, 2)))),
    )
)


def ask(field: Field, param: int, x: Sequence[int], domain: Sequence[int] = ()) -> Request:
    """Whatever stands in the payload, in memory of its own."""
    payload = np.frombuffer(pack([*domain, *x]), np.uint8).copy()
    return NTT.decode(Call(len(x), param, field), memoryview(payload.data))


def answer(backend: Backend, request: Request, plan: LaunchPlan | None = None) -> list[int]:
    result = bytearray(b"\xa5" * (32 * request.n))
    backend.run(request, plan or NTT.plan(request, backend.traits()), memoryview(result))
    return list(map(int, unpack(result)))


def right(request: Request) -> list[int]:
    result = bytearray(32 * request.n)
    NTT.reference(request, memoryview(result))
    return list(map(int, unpack(result)))


def question(field: Field, k: int, count: int, variant: tuple[Order, bool, bool], seed: str) -> Request:
    order, inverse, coset = variant
    rng = random.Random(f"{seed} {field.name} {k} {count} {variant}")
    domain = own_domain(rng, field, k) if rng.randrange(2) else ()
    param = param_of(k, inverse=inverse, coset=coset, order=order, own=bool(domain))
    return ask(field, param, elements(rng, field.modulus, count << k), domain)


@pytest.mark.parametrize("k", range(LARGEST_LOG_N + 1))
@pytest.mark.parametrize("field", [BN254, BLS], ids=lambda field: field.name)
def test_every_size_and_variant(field: Field, k: int, kernels: Backend) -> None:
    """All variants up to 2^6, a sample of them above; several transforms in a frame."""
    chosen = VARIANTS if k <= 6 else random.Random(f"{field.name} {k}").sample(VARIANTS, 3)
    for variant in chosen:
        request = question(field, k, 1 + k % 3, variant, "sizes")
        assert answer(kernels, request) == right(request), variant


@pytest.mark.parametrize("field", fields_with_transforms(), ids=lambda field: field.name)
def test_every_field_up_to_its_two_adicity(field: Field, kernels: Backend) -> None:
    for k in {0, 1, 2, min(field.two_adicity, 5), min(field.two_adicity, 9)}:
        if k <= field.two_adicity:
            request = question(field, k, 3, VARIANTS[k % len(VARIANTS)], "fields")
            assert answer(kernels, request) == right(request), k


@pytest.mark.parametrize("row", SMALL_ROWS, ids=str)
def test_many_passes_of_short_digits(row: TransformRow, kernels: Backend) -> None:
    """Up to three passes: digit reversals of unequal digits, middle passes, columns in every place."""
    for field, k in product((BN254, BLS), range(row.log_e - 1, min(10, 3 * row.largest) + 1)):
        variant = random.Random(f"{k} {row}").choice(VARIANTS)
        request = question(field, k, 1 + k % 4, variant, "passes")
        plan = NTT.plan_by(request, kernels.traits(), row)
        assert sum(1 for _ in plan.pieces[0].launches) == len(row.digits(k))
        assert answer(kernels, request, plan) == right(request), (field.name, k, variant)


# Passes with their shape compiled in, first, middle and last, by tiles of 2^8: levels of 3, 2, 3 3, 2 2, 3 2 and 3 3 2 bits, a
# digit that fills the tile, and every way to store.
COMPILED_SPLITS = ((4, 4), (5, 3), (6, 2, 6), (3, 5, 3), (8, 3))
COMPILED_ROW = TransformRow(None, None, 3, 8, 8, 32, 4, "a test", compiled=(0, 1, 2))


def compiled_row(split: tuple[int, ...]) -> TransformRow:
    return dataclasses.replace(COMPILED_ROW, splits=(split,))


def compiled_plan(request: Request, traits: Traits, split: tuple[int, ...]) -> LaunchPlan:
    plan = NTT.plan_by(request, traits, compiled_row(split))
    (piece,) = plan.pieces
    assert [launch.kernel.unit.entry for launch in piece.launches] == ["ntt_compiled"] * len(split)
    return plan


@pytest.mark.parametrize("split", COMPILED_SPLITS, ids=str)
def test_compiled_shapes(split: tuple[int, ...], kernels: Backend) -> None:
    """Every order, by one field, direction and coset; each field meets both directions, and all of them are met."""
    turn = COMPILED_SPLITS.index(split)
    for order in Order:
        field = (BN254, BLS)[(turn + order + (order >> 1)) & 1]
        variant = (order, bool((turn + order) & 1), bool((turn + order) & 2))
        request = question(field, sum(split), 1 + order, variant, "compiled")
        assert answer(kernels, request, compiled_plan(request, kernels.traits(), split)) == right(request), variant


def test_compiled_shapes_find_the_lowest_bad_element(kernels: Backend) -> None:
    """Elements loaded by columns and by rows, alone or beside others in a thread."""
    m, split = BLS.modulus, (4, 4)
    n = 3 << sum(split)
    for order in (Order.NR, Order.RN):
        for bad, value in (((n - 1,), m), ((0,), 2**256 - 1), ((70, 71, 86), m + 1), ((n // 2, n // 3), m + 2**224)):
            x = [m - 1] * n
            for at in bad:
                x[at] = value
            request = ask(BLS, param_of(sum(split), order=order), x)
            with pytest.raises(RequestError) as refused:
                answer(kernels, request, compiled_plan(request, kernels.traits(), split))
            assert (refused.value.status, refused.value.index) == (Status.BAD_ELEMENT, min(bad))


@pytest.mark.parametrize("split", [(4, 3), (8,), (7, 1), (2, 2, 2, 2)], ids=str)
def test_shapes_that_cannot_be_compiled(split: tuple[int, ...]) -> None:
    """Tiles that are not full, a single pass, no such level, too many passes."""
    with pytest.raises(ValueError, match=r"compiled shape|no level|passes"):
        request = question(BN254, sum(split), 1, VARIANTS[0], "none")
        NTT.plan_by(request, Traits("cuda", "sm_90", 1, 1 << 30), compiled_row(split))


def test_the_self_test_of_a_plan_with_compiled_shapes(kernels: Backend) -> None:
    """By transforms that are shorter than the plan's, one for each pass: so their answers can be compared."""
    h200 = Traits("cuda", "sm_90", 132, 1 << 34)
    for k, variant in ((19, (Order.NN, True, False)), (20, (Order.RR, False, True))):
        request = question(BN254, 0, 1, variant, "self-test")
        constants = {"omega": BN254.omega(k), "shift": 7}
        request = dataclasses.replace(request, n=1 << k, param=request.param | k, constants=constants)
        plan = NTT.plan(request, h200)
        small = NTT.proof_request(request, plan)
        assert answer(kernels, small, NTT.proof_plan(small, plan, h200)) == right(small)


def test_a_thread_that_holds_more_than_a_digit_is_refused() -> None:
    row = TransformRow(None, None, 3, 8, 4, 64, 1, "a test")
    with pytest.raises(ValueError, match="no level of 1 bits"):
        NTT.plan_by(question(BN254, 1, 1, VARIANTS[0], "small"), Traits("cpu", "", 1, 1 << 30), row)


GPU_ROWS = dict.fromkeys(dataclasses.replace(row, compiled=(), source="") for row in transform_rows("cuda", "sm_90"))


@pytest.mark.parametrize("row", GPU_ROWS, ids=str)
def test_the_rows_of_a_gpu(row: TransformRow, kernels: Backend) -> None:
    """Their geometry, without the shapes that are compiled in, wherever the kernels run: one pass, the last size of one, two passes, and three."""
    if row.log_n == 1:
        sizes: tuple[int, ...] = (0, 1)
    else:
        sizes = (2, 3, row.largest - 1, row.largest, row.largest + 1, 12)
    for k in sizes:
        request = question(BN254, k, 2, VARIANTS[k % len(VARIANTS)], "gpu rows")
        assert answer(kernels, request, NTT.plan_by(request, kernels.traits(), row)) == right(request), k
    three = dataclasses.replace(row, largest=4, splits=())
    for variant in VARIANTS:
        request = question(BLS, 11, 1, variant, "three passes")
        assert answer(kernels, request, NTT.plan_by(request, kernels.traits(), three)) == right(request), variant


# One pass of every length, two, and a cluster; several transforms in a block, a warp, and a block that is not full.
LANE_DIGITS = (*((k,) for k in range(1, 9)), (5, 4), (6, 4), (6, 5), (6, 6), (7, 6), (1, 2), (2, 1), (3, 4), (8, 3))


@pytest.mark.parametrize("digits", LANE_DIGITS, ids=str)
@pytest.mark.parametrize("field", [BN254, BLS], ids=lambda field: field.name)
def test_an_element_a_thread(field: Field, digits: tuple[int, ...], kernels: Backend) -> None:
    row, k = lanes(digits), sum(digits)
    if row.cluster and not clusters(kernels):
        pytest.skip("no clusters before sm_90")
    for variant in VARIANTS if k <= 8 else VARIANTS[k % 3 :: 3]:
        request = question(field, k, 1 + k % 3, variant, "lanes")
        plan = NTT.plan_by(request, kernels.traits(), row)
        assert len(plan.pieces[0].launches) == (1 if row.cluster else len(digits))
        assert answer(kernels, request, plan) == right(request), variant
    edges = [0, field.modulus - 1]
    for values in ([edges[1]] * (1 << k), [edges[i.bit_count() & 1] for i in range(1 << k)]):
        request = ask(field, param_of(k), values)
        assert answer(kernels, request, NTT.plan_by(request, kernels.traits(), row)) == right(request)


@pytest.mark.parametrize("digits", [(7,), (8,), (7, 7), (8, 7)], ids=str)
@pytest.mark.parametrize("field", [BN254, BLS], ids=lambda field: field.name)
def test_two_elements_a_thread(field: Field, digits: tuple[int, ...], kernels: Backend) -> None:
    """Where there are factors after the transform, by an element a thread. Columns of several transforms in a block."""
    row, k = LaneRow(digits, False, "a test", pairs=True), sum(digits)
    for variant in VARIANTS if k <= 8 else VARIANTS[::5]:
        request = question(field, k, 1 + 2 * (k < 9), variant, "pairs")
        plan = NTT.plan_by(request, kernels.traits(), row)
        name = "ntt_lanes_pass" if variant[1] else "ntt_lane_pairs_pass"
        assert [launch.kernel.name for launch in plan.pieces[0].launches] == [name] * len(digits)
        assert answer(kernels, request, plan) == right(request), variant
    m, n = field.modulus, 1 << k
    for values in ([m - 1] * n, [(m - 1) * (i.bit_count() & 1) for i in range(n)]):
        request = ask(field, param_of(k), values)
        assert answer(kernels, request, NTT.plan_by(request, kernels.traits(), row)) == right(request)
    for bad in ((n - 1,), (0,), (n // 2,), (n // 3, n // 2 + 1)):
        request = ask(field, param_of(k, order=Order.RN), [m if i in bad else m - 1 for i in range(n)])
        with pytest.raises(RequestError) as refused:
            answer(kernels, request, NTT.plan_by(request, kernels.traits(), row))
        assert (refused.value.status, refused.value.index) == (Status.BAD_ELEMENT, min(bad))


def lanes(digits: tuple[int, ...]) -> LaneRow:
    return LaneRow(digits, digits in LANE_CLUSTERS, "a test")


def clusters(backend: Backend) -> bool:
    traits = backend.traits()
    return traits.kind == "cpu" or has_clusters(traits.arch)


@pytest.mark.parametrize("digits", [(1,), (5,), (7,), (4, 3), (5, 4)], ids=str)
@pytest.mark.parametrize("field", [BN254, BLS], ids=lambda field: field.name)
def test_the_lowest_bad_element_of_an_element_a_thread(field: Field, digits: tuple[int, ...], kernels: Backend) -> None:
    """Also where another thread reads the element first; no range check of the kernel fails."""
    if lanes(digits).cluster and not clusters(kernels):
        pytest.skip("no clusters before sm_90")
    k, m = sum(digits), field.modulus
    n = 3 << k
    for bad in ((n - 1,), (0,), (n // 2, n - 1), (n // 3, n // 2)):
        for value, order in product((m, 2**256 - 1), (Order.NN, Order.RR)):
            x = [m - 1] * n
            for at in bad:
                x[at] = value
            for coset in (False, True):
                request = ask(field, param_of(k, order=order, coset=coset), x)
                with pytest.raises(RequestError) as refused:
                    answer(kernels, request, NTT.plan_by(request, kernels.traits(), lanes(digits)))
                assert (refused.value.status, refused.value.index) == (Status.BAD_ELEMENT, min(bad))


def test_shifts_that_have_gone_wrong_elsewhere(kernels: Backend) -> None:
    """1, -1, omega, the shift of a domain twice as large, and a number that is small in one form and large in the other."""
    for field, k in product((BN254, BLS), (1, 4, 9)):
        m, omega, rng = field.modulus, field.omega(k), random.Random(k)
        for shift in (1, m - 1, omega, field.omega(k + 1), 2, field.r, field.r2):
            for inverse in (False, True):
                param = param_of(k, inverse=inverse, coset=True, own=True)
                request = ask(field, param, elements(rng, m, 1 << k), (omega, shift))
                assert answer(kernels, request) == right(request), (k, shift, inverse)
                plan = NTT.plan_by(request, kernels.traits(), lanes(near_equal(k, 1 + k // 8)))
                assert answer(kernels, request, plan) == right(request), (k, shift, inverse)


def test_the_product_of_values_is_a_convolution(kernels: Backend) -> None:
    """By the transform's meaning alone: a cyclic product, and on a coset with shift^n = -1 a negacyclic one."""
    k, rng = 8, random.Random("convolution")
    n = 1 << k
    a, b = (elements(rng, BN254.modulus, n) for _ in "ab")
    m, omega = BN254.modulus, BN254.omega(k)
    for shift, wrapped in ((1, 1), (BN254.omega(k + 1), -1)):
        there, back = (param_of(k, inverse=i, coset=True, own=True) for i in (False, True))
        values = [answer(kernels, ask(BN254, there, x, (omega, shift))) for x in (a, b)]
        products = [x * y % m for x, y in zip(*values, strict=True)]
        expected = [0] * n
        for i, x in enumerate(a):
            for j, y in enumerate(b):
                expected[(i + j) % n] += x * y if i + j < n else wrapped * x * y
        assert answer(kernels, ask(BN254, back, products, (omega, shift))) == [v % m for v in expected]


@pytest.mark.parametrize("order", Order, ids=lambda order: order.name)
def test_there_and_back_at_a_larger_size(order: Order, kernels: Backend) -> None:
    """2^14: out of the order that came in, and into it again; one value by the definition."""
    k = 14
    x = elements(random.Random(order.name), BLS.modulus, 1 << k)
    there = answer(kernels, ask(BLS, param_of(k, coset=True, order=order), x))
    turned = Order((order >> 1) | (order & 1) << 1)
    assert answer(kernels, ask(BLS, param_of(k, inverse=True, coset=True, order=turned), there)) == x
    if order is Order.NN:
        total = 0
        for value in reversed(x):
            total = (total * 7 * BLS.omega(k) + value) % BLS.modulus
        assert there[1] == total


@pytest.mark.parametrize("field", [BN254, BLS, NAMED["goldilocks"], NAMED["toy_97"]], ids=lambda field: field.name)
def test_the_lowest_bad_element_is_told(field: Field, kernels: Backend) -> None:
    """In any block, in a limb that the field has or not, and in the largest place of a frame."""
    m = field.modulus
    for k, count in ((0, 70), (3, 9), (5, 40)):
        n = count << k
        for bad in ((n - 1,), (0,), (n // 2, n - 1), (n // 3, n // 2)):
            for value in (m, 2**256 - 1, m + 2**224):
                x = [m - 1] * n
                for at in bad:
                    x[at] = value
                for coset in (False, True):
                    with pytest.raises(RequestError) as refused:
                        answer(kernels, ask(field, param_of(k, order=Order.RN, coset=coset), x))
                    assert (refused.value.status, refused.value.index) == (Status.BAD_ELEMENT, min(bad))


# --- a field that is not in the tree ----------------------------------------------------------------------------------

# 193, as small as one with a transform of 2^6 can be; a curve's; one of all 256 bits; and one of three limbs.
OUTSIDE = (
    Field(0x7F50, "prime_193", 193, "193 = 3 * 2^6 + 1", generator=5),
    Field(
        0x7F51,
        "pallas_fp",
        0x40000000000000000000000000000000224698FC094CF91B992D30ED00000001,
        "the Pasta curves (Electric Coin Company, 2020): the base field of Pallas",
        generator=5,
    ),
    Field(0x7F52, "full", 2**256 - 43 * 2**32 + 1, "the largest prime of 256 bits that is 1 mod 2^32", generator=7),
    Field(0x7F53, "three_limbs", 2**90 - 2**20 + 1, "a prime of 90 bits", generator=7),
)


@pytest.fixture(params=OUTSIDE, ids=lambda field: field.name)
def outside(request: pytest.FixtureRequest) -> Iterator[Field]:
    added = register(request.param)
    yield added
    unregister(added)


def test_a_field_from_outside_the_tree(outside: Field, kernels: Backend) -> None:
    for k in (0, 1, 3, 6, *((11,) if outside.two_adicity >= 11 else ())):
        for variant in VARIANTS if k == 3 else VARIANTS[::5]:
            request = question(outside, k, 2, variant, "outside")
            assert answer(kernels, request) == right(request), (k, variant)


def test_all_pairs_and_unit_vectors_modulo_193(kernels: Backend) -> None:
    field = register(OUTSIDE[0])
    try:
        pairs = [value for pair in product(range(193), repeat=2) for value in pair]
        request = ask(field, param_of(1, coset=True), pairs)
        assert answer(kernels, request) == [
            v % 193 for a, b in product(range(193), repeat=2) for v in (a + 5 * b, a - 5 * b)
        ]
        units = [int(i == j) for i in range(64) for j in range(64)]
        omega = field.omega(6)
        assert answer(kernels, ask(field, param_of(6), units)) == [
            pow(omega, i * j, 193) for i in range(64) for j in range(64)
        ]
    finally:
        unregister(field)


# --- memory -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def narrow(kernel_cache: object) -> Iterator[CpuBackend]:
    """As much memory as three transforms of 2^8 in two buffers take, with their factors: 8 * 32 and 7 * 4 of them, scaled, and
    what these are made of."""
    memory = 3 * 2 * (32 << 8) + (8 * 32 + 7 * 4) * 64 + 2 * 2 * (32 << 4)
    backend = CpuBackend(cache=Cache(kernel_cache), memory=memory, poison=True)  # type: ignore[arg-type]
    yield backend
    backend.close()


def test_a_frame_that_does_not_fit_is_cut_into_whole_transforms(narrow: CpuBackend) -> None:
    request = question(BN254, 8, 10, (Order.NR, True, False), "pieces")
    plan = NTT.plan(request, narrow.traits())
    assert [piece.copies_in[0].nbytes >> 13 for piece in plan.pieces] == [3, 3, 3, 1]
    assert answer(narrow, request, plan) == right(request)
    x = to_ints(request.arrays["x"])
    rows: tuple[TransformRow | LaneRow, ...] = (NTT.row(request, narrow.traits()), lanes((8,)))
    for bad, row in product((0, 3 << 8, 2559), rows):
        spoilt = ask(BN254, param_of(8), [*x[:bad], BN254.modulus, *x[bad + 1 :]])
        plan = NTT.plan_by(spoilt, narrow.traits(), row)
        assert len(plan.pieces) > 1
        with pytest.raises(RequestError) as refused:
            answer(narrow, spoilt, plan)
        assert refused.value.index == bad


def test_one_transform_that_does_not_fit_is_too_large(narrow: CpuBackend) -> None:
    request = question(BN254, 10, 1, (Order.NN, False, False), "too large")
    with pytest.raises(RequestError) as refused:
        NTT.plan(request, narrow.traits())
    assert refused.value.status is Status.TOO_LARGE
    assert str(narrow.traits().memory) in refused.value.message


def test_tables_are_kept_by_least_recent_use(narrow: CpuBackend) -> None:
    """Two domains in turns are both right, are built once where they fit, and leave in the order of their use."""
    rng = random.Random("tables")
    domains = [own_domain(rng, BN254, 4) for _ in range(2)]
    x = elements(rng, BN254.modulus, 32)
    for domain in (*domains, *domains, *reversed(domains)):
        request = ask(BN254, param_of(4, own=True), x, domain)
        assert answer(narrow, request) == right(request)
    both = [NTT.plan(ask(BN254, param_of(4, own=True), x, domain), narrow.traits()).tables[0].key for domain in domains]
    assert list(narrow._tables) == [both[1], both[0]]
    large = question(BN254, 8, 1, (Order.NN, False, False), "tables")
    assert answer(narrow, large) == right(large)
    assert both[1] not in narrow._tables
    assert sum(table.nbytes for table in narrow._tables.values()) <= narrow.traits().memory


def test_traits_alone_decide_the_pieces() -> None:
    traits = Traits("cuda", "sm_90", 132, 1 << 30)
    request = question(BN254, 4, 100, (Order.NN, False, False), "traits")
    assert len(NTT.plan(request, traits).pieces) == 1
    assert len(NTT.plan(request, dataclasses.replace(traits, memory=20_000)).pieces) > 1
    assert from_ints([1]).shape == (1, 8)
