"""Fuzzing: op x modulus x target against the reference, seeded, with a one-line reproducer for what it finds.

Round r of a seed draws one modulus, one batch size and the operands of every op from (seed, r) alone, so that any round
can be repeated by itself: `python -m limbd.harness.fuzz --op mod-mul --seed S --round R --backend cpu`.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TextIO

from limbd.harness import fuzzed_multiplications, long_batches, transforms
from limbd.harness.inputs import Residues, operands, residues_at
from limbd.harness.kat import as_target, first_difference, reproducer
from limbd.harness.targets import BackendTarget, Target, asked_as, can_ask
from limbd.ops import OPS, by_name
from limbd.ops.base import LIMB_BYTES, Limbs
from limbd.ops.params.layout import from_ints, to_ints, value_of
from limbd.ops.status import LimbdError, RequestError
from limbd.worker.device.choose import choose
from limbd.worker.device.reference import ReferenceBackend

# Batch sizes around warps and blocks, and one element alone.
SIZES = (1, 2, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257, 511, 513, 1000, 1025)

# The reference takes 10 to 30 microseconds for a power, under one for the others.
SLOW_OPS = {"mod-exp": 65}

FAILURES_ENOUGH = 10


@dataclass(frozen=True)
class Failure:
    """A round whose answer differs. index: the first bad element; alone: that element fails as a batch of its own."""

    op: str
    residues: Residues
    round: int
    n: int
    index: int
    text: str
    alone: bool

    def __str__(self) -> str:
        return self.text


@dataclass
class Result:
    """What run() did: rounds and elements compared, by op; and what failed."""

    target: str
    seed: str
    rounds: int = 0
    elements: dict[str, int] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Something was compared, and nothing failed."""
        return not self.failures and sum(self.elements.values()) > 0

    def print(self, stream: TextIO | None = None) -> None:
        """The failures, then one line."""
        for failure in self.failures:
            print(failure, file=stream)
        counts = ", ".join(f"{op} {count}" for op, count in self.elements.items())
        found = f"{len(self.failures)} FAILED" if self.failures else "all as the reference"
        print(f"fuzz {self.target} --seed {self.seed}: {self.rounds} rounds, elements {counts}: {found}", file=stream)


def run(
    target: Any,
    *,
    seed: str = "1",
    ops: Iterable[str] | None = None,
    seconds: float | None = None,
    elements: int | None = None,
    first_round: int = 0,
    rounds: int | None = None,
    name: str = "",
    progress: Callable[[Result], None] | None = None,
) -> Result:
    """Compares a target with the reference until a bound is reached: seconds, elements in all, or rounds (at least one
    has to be given). Stops early after FAILURES_ENOUGH failures.

    target, name: as in limbd.harness.kat.run. progress: called after each round.
    """
    if seconds is None and elements is None and rounds is None:
        raise ValueError("give a bound: seconds, elements or rounds")
    target = as_target(target, name)
    wanted = tuple(ops) if ops is not None else tuple(op.name for op in OPS)
    result = Result(target.name, seed, elements=dict.fromkeys(wanted, 0))
    end = time.monotonic() + seconds if seconds is not None else float("inf")
    while time.monotonic() < end and len(result.failures) < FAILURES_ENOUGH:
        if rounds is not None and result.rounds >= rounds:
            break
        if elements is not None and sum(result.elements.values()) >= elements:
            break
        _round(target, wanted, first_round + result.rounds, result)
        result.rounds += 1
        if progress:
            progress(result)
    return result


def batch_of(op: str, seed: str, number: int) -> tuple[Residues, dict[str, Limbs]]:
    """Modulus and operands of one round of one op: the same for every target."""
    if not by_name(op).modulus_in_payload:
        return fuzzed_multiplications.fuzzed(op, seed, number)
    if not by_name(op).elementwise:
        return transforms.fuzzed(op, seed, number)
    residues = residues_at(seed, number)
    rng = random.Random(f"{seed} {number} {op}")
    n = _size(rng, op, number)
    names = by_name(op).operands
    if op == long_batches.OP:
        return residues, {each: long_batches.fuzzed(rng, residues.modulus, n, residues.bits) for each in names}
    limbs = residues.bits // (8 * LIMB_BYTES)
    return residues, {each: from_ints(operands(rng, residues.modulus, n, residues.bits), limbs) for each in names}


def sizes_of(op: str) -> tuple[int, ...]:
    """Every batch size that rounds of this op draw from."""
    if op == long_batches.OP:
        return (*SIZES, *long_batches.fuzzed_sizes())
    return tuple(dict.fromkeys(min(n, SLOW_OPS.get(op, n)) for n in SIZES))


# Of mod-inv-batch's rounds one in so many takes the next of the long sizes, the longest first.
TURN = 8


def _size(rng: random.Random, op: str, number: int) -> int:
    """SIZES are equally likely. Half of mod-inv-batch's are long, and twice as rare where they are four times as long, but for
    those whose turn it is: so that no seed leaves the longest out."""
    if op == long_batches.OP:
        sizes = long_batches.fuzzed_sizes()
        if number % TURN == 0:
            return sizes[-1 - number // TURN % len(sizes)]
        if rng.randrange(2):
            return rng.choices(sizes, [n**-0.5 for n in sizes])[0]
    return min(rng.choice(SIZES), SLOW_OPS.get(op, max(SIZES)))


def _round(target: Target, ops: Iterable[str], number: int, result: Result) -> None:
    oracle = BackendTarget(ReferenceBackend())
    for op in ops:
        residues, arrays = batch_of(op, result.seed, number)
        if not can_ask(target, op, residues):
            continue
        n = len(next(iter(arrays.values())))
        try:
            expected = oracle.answer(op, residues, arrays)
        except RequestError as error:
            failure = _compare_refusal(target, op, residues, arrays, error, number, result.seed)
        else:
            failure = _compare(target, op, residues, arrays, expected, number, result.seed)
        if failure:
            result.failures.append(failure)
        result.elements[op] += n


def _compare_refusal(
    target: Target,
    op: str,
    residues: Residues,
    arrays: Mapping[str, Limbs],
    expected: RequestError,
    number: int,
    seed: str,
) -> Failure | None:
    """The target has to refuse with the same status and index (a worker at an address does not tell the index)."""
    n, index = len(next(iter(arrays.values()))), expected.index or 0
    got = "an answer"
    try:
        target.answer(op, asked_as(target, residues), arrays)
    except (LimbdError, AssertionError) as error:
        got = str(error)
        status, told = getattr(error, "status", None), getattr(error, "index", None)
        if status == expected.status and told in (
            expected.index,
            None if target.name.startswith("--connect") else index,
        ):
            return None
    text = f"FAILED {op} n={n}: expected {expected} at index {index}, got {got}\n  {_again(target, op, seed, number)}"
    return Failure(op, residues, number, n, index, text, False)


def _again(target: Target, op: str, seed: str, number: int) -> str:
    return f"limbd fuzz --op {op} --seed {seed} --round {number} {target.name}"


def _compare(
    target: Target,
    op: str,
    residues: Residues,
    arrays: Mapping[str, Limbs],
    expected: Limbs,
    number: int,
    seed: str,
) -> Failure | None:
    asked = asked_as(target, residues)
    plain = arrays if asked == residues else {name: array[:, :8] for name, array in arrays.items()}
    again = _again(target, op, seed, number)
    n = len(expected)
    try:
        results = target.answer(op, asked, plain)
    except (LimbdError, AssertionError) as error:
        return Failure(op, residues, number, n, 0, f"FAILED {op} n={n}: {error}\n  {again}", False)
    index = first_difference(results, expected)
    if index is None:
        return None
    alone, single = _alone(target, op, asked, plain, expected, index)
    got = f"{value_of(results[index].tolist()):#x}" if index < len(results) else "nothing"
    text = (
        f"FAILED {op} mod {residues.modulus:#x} n={n}, first at index {index}:\n"
        f"  got {got}\n  expected {value_of(expected[index].tolist()):#x}\n  {again}\n  {single}"
    )
    return Failure(op, residues, number, n, index, text, alone)


def _alone(
    target: Target, op: str, residues: Residues, arrays: Mapping[str, Limbs], expected: Limbs, index: int
) -> tuple[bool, str]:
    """Whether the first bad element is wrong as a batch of its own, and what to say of it."""
    if not by_name(op).elementwise:
        return False, f"param {residues.param:#x}, the whole batch is needed"
    if not _fails_alone(target, op, residues, arrays, expected, index):
        return False, "(right when asked alone: it depends on its place)"
    case = [to_ints(array[index : index + 1])[0] for array in arrays.values()]
    return True, reproducer(target, op, residues, case)


def _fails_alone(
    target: Target, op: str, residues: Residues, arrays: Mapping[str, Limbs], expected: Limbs, index: int
) -> bool:
    """Shrinks to the first bad element: whether a batch of it alone is wrong too."""
    one = slice(index, index + 1)
    try:
        results = target.answer(op, residues, {name: array[one] for name, array in arrays.items()})
    except (LimbdError, AssertionError):
        return True
    return first_difference(results, expected[one]) is not None


def main(arguments: list[str] | None = None) -> int:
    """The command line of `python -m limbd.harness.fuzz`. Exit status 1 where something failed."""
    parser = argparse.ArgumentParser(prog="python -m limbd.harness.fuzz", description="compare a backend with GMP")
    parser.add_argument("--op", action="append", choices=[op.name for op in OPS], help="default: every op")
    parser.add_argument("--backend", default="auto", help="auto, cuda, cpu or null")
    parser.add_argument("--seed", default="1", help="any text (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=10.0, help="default: %(default)s")
    parser.add_argument("--round", type=int, help="only this round of the seed")
    options = parser.parse_args(arguments)
    backend, _ = choose(options.backend, 0, None, None)
    seconds, rounds = (options.seconds, None) if options.round is None else (None, 1)
    try:
        result = run(
            backend,
            seed=options.seed,
            ops=options.op,
            seconds=seconds,
            rounds=rounds,
            first_round=options.round or 0,
        )
    finally:
        backend.close()
    result.print(sys.stdout)
    return 0 if result.ok else 1


if __name__ == "__main__":
    sys.exit(main())
