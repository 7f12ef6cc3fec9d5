"""quotient: A B - C on a coset from the values of A, B and C on the domain, as Groth16's prover needs it.

The three arrays lie behind each other in one buffer and go through the same launches: an inverse transform, whose last store
multiplies coefficient i by shift^i / 2^k, so that the coset costs nothing of its own, and a forward one, whose last pass runs
for A and B first, then for C, where it stores A B - C (kernels/entry/quotient.cu). Coefficients stay bit-reversed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from limbd.ops import transform
from limbd.ops.base import Buffer, Call, Launch, LaunchPlan, Part, Piece, Place, Request, Role, Traits, Transfer, Unit
from limbd.ops.params.base import Field
from limbd.ops.reference.quotient import quotient
from limbd.ops.status import RequestError, Status
from limbd.ops.transform import ELEMENT_BYTES, Order, Transform
from limbd.ops.transform_op import LOG_N, OWN_DOMAIN, TransformOp, fitting, served, table_bytes
from limbd.ops.tuning import TransformRow, transform_rows

# Bit of param (wire.md section 4): the coefficients of (A B - C) / Z instead of values of A B - C.
COEFFICIENTS = 1 << 13

ARRAYS = ("a", "b", "c")


def param_of(k: int, *, own: bool = False, coefficients: bool = False) -> int:
    """The param word. own: the payload carries omega and shift."""
    return k | own * OWN_DOMAIN | coefficients * COEFFICIENTS


@dataclass(frozen=True)
class Quotient(TransformOp):
    """5 launches where a transform has two passes, 7 with the coefficients; a frame is cut where the memory holds less."""

    @property
    def known_bits(self) -> int:
        return LOG_N | OWN_DOMAIN | COEFFICIENTS

    def default_shift(self, field: Field, k: int) -> int:
        """A root of unity of order 2^(k + 1), so that Z is -2."""
        if k >= field.two_adicity:
            raise RequestError(
                Status.BAD_DOMAIN,
                f"{self.name}: {field.name} has no default shift for 2^{k}, its two-adicity",
                hint=f"send omega and shift (bit {OWN_DOMAIN.bit_length() - 1} of param)",
            )
        return field.omega(k + 1)

    def decode(self, call: Call, payload: memoryview) -> Request:
        request = super().decode(call, payload)
        if request.param & COEFFICIENTS and vanishing(request) == 0:
            raise RequestError(Status.BAD_DOMAIN, f"{self.name}: shift^(2^k) is 1, so that Z is 0 on the coset")
        return request

    def plan(self, request: Request, traits: Traits) -> LaunchPlan:
        return self._plan(request, traits, self.row(request, traits))

    def proof_plan(self, small: Request, plan: LaunchPlan, traits: Traits) -> LaunchPlan:
        return self._plan(small, traits, transform.row_of(plan))

    def units(self, traits: Traits) -> tuple[Unit, ...]:
        rows = transform_rows(traits.kind, traits.arch)
        combining = (transform.pass_unit(field, row, combines=True) for field in served() for row in rows)
        return (*super().units(traits), *combining)

    def reference(self, request: Request, result: memoryview) -> None:
        quotient(request, result)

    def _plan(self, request: Request, traits: Traits, row: TransformRow) -> LaunchPlan:
        if request.n == 0:
            return LaunchPlan((), 1, ())
        k = request.param & LOG_N
        transforms, steps = request.n >> k, _Steps.of(request, row)
        tables = tuple({table.name: table for step in steps.all() for table in step.tables()}.values())
        layout = [each for each in _LAYOUT if each[0] != "z" or steps.pass_count() > 1]
        each = sum(arrays for _, _, arrays in layout) * ELEMENT_BYTES << k
        at_once = fitting(self, transforms, each, table_bytes(tables), traits)
        buffers = tuple(Buffer(name, role, arrays * at_once * ELEMENT_BYTES << k) for name, role, arrays in layout)
        starts = range(0, transforms, at_once)
        pieces = tuple(_piece(request, steps, start, min(at_once, transforms - start)) for start in starts)
        return LaunchPlan((*buffers, transform.CHECKED), 1, pieces, tables)


def vanishing(request: Request) -> int:
    """Z on the coset: shift^(2^k) - 1."""
    m = request.modulus
    return (pow(request.constants["shift"], 1 << (request.param & LOG_N), m) - 1) % m


# Buffers and how many arrays each holds. A transform of one pass works in place and needs no z.
_LAYOUT: tuple[tuple[str, Role, int], ...] = (
    ("x", "in", 3),
    ("y", "scratch", 3),
    ("z", "scratch", 3),
    ("out", "out", 1),
)


@dataclass(frozen=True)
class _Steps:
    """One transform of each kind. inward: from the domain to coefficients, which are left multiplied by shift^i. outward: to
    the coset. back: from (A B - C) / Z there to coefficients, if they are asked for."""

    inward: Transform
    outward: Transform
    back: Transform | None

    @staticmethod
    def of(request: Request, row: TransformRow) -> _Steps:
        field, k, m = request.field, request.param & LOG_N, request.modulus
        assert field is not None, "decode names the field"
        omega, shift, size = request.constants["omega"], request.constants["shift"], 1 << k
        scale = transform.coset_scale(field, k, shift, pow(size, -1, m))
        inward = Transform(field, k, omega, 1, row, Order.NR, inverse=True, after=scale, check=True)
        if not request.param & COEFFICIENTS:
            return _Steps(inward, Transform(field, k, omega, 1, row, Order.RN), None)
        share = pow(size * vanishing(request), -1, m)
        scale = transform.coset_scale(field, k, pow(shift, -1, m), share, name="scale back")
        back = Transform(field, k, omega, 1, row, Order.RN, inverse=True, after=scale)
        return _Steps(inward, Transform(field, k, omega, 1, row, Order.RR), back)

    def all(self) -> tuple[Transform, ...]:
        return (self.inward, self.outward, *((self.back,) if self.back else ()))

    def pass_count(self) -> int:
        """The same for all of them."""
        return self.inward.pass_count()


def _piece(request: Request, steps: _Steps, start: int, count: int) -> Piece:
    """`count` of the request's transforms of each array from number `start` on."""
    k, n = request.param & LOG_N, request.n
    at, nbytes = start * ELEMENT_BYTES << k, count * ELEMENT_BYTES << k
    copies = tuple(Transfer("x", name, at, nbytes, i * nbytes) for i, name in enumerate(ARRAYS))
    # Where the arrays lie in x as they do in the request, an element's index there is the one that an error names.
    whole = count << k == n
    parts = [(0, 3)] if whole else [(i, 1) for i in range(3)]
    inward: list[Launch] = []
    for first, arrays in parts:
        own = replace(steps.inward, count=arrays * count)
        inward += own.passes(_way(steps, "x", first * nbytes), offset=first * n + (start << k))
    return Piece(copies, (*inward, *_on_coset(steps, count, nbytes)), (Transfer("out", "result", at, nbytes),))


def _way(steps: _Steps, source: str, offset: int) -> tuple[Place, ...]:
    """Where a transform from `source` to _coefficients has its elements, from a byte on."""
    names = (source, *("y",) * (steps.pass_count() - 1), _coefficients(steps))
    return tuple(Part(name, offset) for name in names)


def _coefficients(steps: _Steps) -> str:
    return "y" if steps.pass_count() == 1 else "z"


def _on_coset(steps: _Steps, count: int, nbytes: int) -> list[Launch]:
    """From coefficients to the end. nbytes: of an array."""
    spare, last = _coefficients(steps), steps.pass_count() - 1
    outward = replace(steps.outward, count=3 * count)
    launches = [outward.one_pass(i, spare if i == 0 else "y", "y") for i in range(last)]
    launches.append(replace(outward, count=2 * count).one_pass(last, "y", spare))
    combining = replace(outward, count=count, combine=(spare, Part(spare, nbytes)))
    third = Part(spare, 2 * nbytes)
    launches.append(combining.one_pass(last, Part("y", 2 * nbytes), third if steps.back else "out"))
    if steps.back:
        launches += replace(steps.back, count=count).passes((third, *("y",) * last, "out"))
    return launches


QUOTIENT = Quotient(0x21, "quotient", "A B - C on a coset, or (A B - C) / Z: the quotient of Groth16", ARRAYS)
