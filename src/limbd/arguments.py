"""Arguments that several commands share: their types, their groups, and what is made of them."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from limbd.worker.config import BACKENDS, Config, KeepFailed

if TYPE_CHECKING:
    from limbd.ops.base import Op
    from limbd.worker.client import Client
    from limbd.worker.exchange import Exchange

OK, FAILED, USAGE = 0, 1, 2


@dataclass(frozen=True)
class Command:
    name: str
    summary: str
    configure: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]
    epilog: str = ""


# --- arguments that several commands share --------------------------------------------------------------------------


def size(text: str) -> int:
    """ "64M" -> 67108864; K, M, G and T are powers of 1024."""
    units = {"K": 10, "M": 20, "G": 30, "T": 40}
    number = text.upper().removesuffix("B").removesuffix("I")
    shift = units.get(number[-1:], 0)
    digits = number[:-1] if shift else number
    if not digits.isdigit() or int(digits) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is no size: a number of bytes, such as 64M or 2G")
    return int(digits) << shift


def address(text: str, *, listening: bool = False) -> str:
    from limbd.worker.link import Address

    try:
        return str(Address(text, listening=listening))
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def listened(text: str) -> str:
    return address(text, listening=True)


def op(text: str) -> Op:
    from limbd.ops import by_name
    from limbd.ops.status import RequestError

    try:
        return by_name(text.replace("_", "-"))
    except RequestError as error:
        raise argparse.ArgumentTypeError(f"{error.message}; {error.hint}") from None


def modulus(text: str) -> int:
    from limbd.harness.textio import InputError, parse_modulus

    try:
        return parse_modulus(text)
    except InputError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def count(text: str) -> int:
    if not text.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is no count")
    return int(text)


def seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds above 0")
    return value


def devices(text: str) -> tuple[int, ...]:
    """ "0" or "0,1"."""
    devices = tuple(count(part) for part in text.split(","))
    if len(set(devices)) != len(devices):
        raise argparse.ArgumentTypeError(f"{text!r} names a device twice")
    return devices


def add_backend(parser: argparse.ArgumentParser, *, local: bool = False) -> None:
    group = parser.add_argument_group("local worker" if local else "worker")
    group.add_argument("--backend", choices=BACKENDS, default="auto", help="auto takes the first that works (default)")
    group.add_argument(
        "--device",
        type=devices,
        default=(0,),
        metavar="N[,N]",
        help="which GPU, or GPUs, one process each (default 0)",
    )
    group.add_argument("--device-memory", type=size, metavar="SIZE", help="device memory to use at most, such as 64M")
    group.add_argument("--cache-dir", type=Path, metavar="DIR", help="where compiled kernels are kept")


def add_service(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("service")
    group.add_argument(
        "--keep-failed", type=Path, metavar="DIR", help="keep frames that failed on the device (they hold operands)"
    )
    group.add_argument("--quiet", action="store_true", help="no line on stderr for requests that went well")
    group.add_argument("--toys", action="store_true", help="serve the toy fields too (tests)")


def add_target(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--verbose", action="store_true", help="show what the local worker says on stderr")
    parser.add_argument("--connect", type=address, metavar="ADDR", help="a running worker: HOST:PORT or unix:PATH")
    add_backend(parser, local=True)


# What is said of an operand that is no list of numbers.
_FORMS = {
    "scalars": ": JSON, or a file of .npy or JSON; one vector or several",
    "points": ": JSON, or a file of .npy or JSON; pairs of coordinates",
}


def add_question(parser: argparse.ArgumentParser) -> None:
    """OP, the modulus and the operands, by name or by position."""
    from limbd.ops import OPS

    parser.add_argument("op", type=op, nargs="?", metavar="OP", help=", ".join(op.name for op in OPS))
    parser.add_argument(
        "values", nargs="*", metavar="OPERAND", help="the operands in order (of mod-inv any number of elements)"
    )
    parser.add_argument(
        "--modulus",
        "-m",
        "--field",
        type=modulus,
        metavar="M",
        help="a field's name (secp256k1, bn254_fr), decimal or hexadecimal",
    )
    for name in dict.fromkeys(name for op in OPS for name in op.operands):
        takers = ", ".join(op.name for op in OPS if name in op.operands)
        parser.add_argument(f"--{name}", metavar="OPERAND", help=f"operand {name} of {takers}{_FORMS.get(name, '')}")
    add_transform(parser)
    add_multiplication(parser)


# What an op on whole transforms takes.
TRANSFORM_OPTIONS = {
    "ntt": ("inverse", "coset", "order", "omega", "batch"),
    "quotient": ("coefficients", "coset", "omega", "batch"),
}


def add_transform(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("transforms")
    group.add_argument("--inverse", action="store_true", help="from values back to coefficients")
    group.add_argument(
        "--coset",
        type=shift,
        metavar="S",
        help="on the coset of shift S; `generator`: of the field's registered one (quotient without it: a root of order 2^(k+1))",
    )
    group.add_argument(
        "--order", metavar="XY", help="in and out, n natural or r bit-reversed: nn (default), nr, rn, rr"
    )
    group.add_argument(
        "--coefficients", action="store_true", help="of quotient: those of (A B - C) / Z instead of values of A B - C"
    )
    group.add_argument("--omega", type=number, metavar="W", help="the root of unity (default: the registered one)")
    group.add_argument(
        "--batch", type=count, metavar="N", help="transforms of one size, one after the other (default 1)"
    )


def add_multiplication(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("multi-scalar multiplications")
    group.add_argument("--curve", metavar="C", help="bn254, bls12_381 or secp256k1")
    group.add_argument("--check-subgroup", action="store_true", help="refuse points outside the subgroup of order r")
    group.add_argument("--constant-work", action="store_true", help="work that does not depend on the scalars")


def multiplication_of(options: argparse.Namespace) -> Exchange | None:
    """The question where the op is a multi-scalar multiplication, else None; InputError where options do not fit the op."""
    from limbd.harness import point_files
    from limbd.harness.textio import InputError

    if options.op is None or options.op.modulus_in_payload:
        for name in ("curve", "check_subgroup", "constant_work"):
            if options.op is not None and getattr(options, name):
                raise InputError(f"{options.op.name} takes no --{name.replace('_', '-')}")
        return None
    if options.modulus is not None or options.curve is None:
        raise InputError(f"{options.op.name} takes --curve, and no modulus")
    others = [*_transform_options(options), *_other_operands(options)]
    if others:
        raise InputError(f"{options.op.name} takes no --{others[0]}")
    specs = {name: getattr(options, name) for name in options.op.operands}
    missing = [name for name, spec in specs.items() if spec is None]
    if len(options.values) != len(missing):
        raise InputError(f"{options.op.name} takes --scalars and --points, or both by position: files, or JSON")
    specs |= dict(zip(missing, options.values, strict=True))
    return point_files.question(
        options.op.name,
        specs["scalars"],
        specs["points"],
        options.curve,
        check_subgroup=options.check_subgroup,
        constant_work=options.constant_work,
    )


def shift(text: str) -> int | bool:
    return True if text == "generator" else number(text)


def number(text: str) -> int:
    from limbd.harness.textio import InputError, parse_number

    try:
        return parse_number(text)
    except InputError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def has_transform_option(options: argparse.Namespace) -> bool:
    return bool(_transform_options(options))


def _transform_options(options: argparse.Namespace) -> list[str]:
    """Those that were given."""
    names = dict.fromkeys(name for names in TRANSFORM_OPTIONS.values() for name in names)
    return [name for name in names if getattr(options, name)]


def question_of(options: argparse.Namespace, n: int) -> tuple[int, tuple[int, ...]]:
    """param and domain of a question with n elements; InputError where the options do not fit the op, or each other."""
    from limbd.harness.textio import InputError
    from limbd.ops.params.fields import by_modulus
    from limbd.worker.transform_question import quotient_question, transform_question

    known = TRANSFORM_OPTIONS.get(options.op.name, ())
    for name in _transform_options(options):
        if name not in known:
            raise InputError(f"{options.op.name} takes no --{name}")
    if not known:
        return 0, ()
    field = by_modulus(options.modulus)
    if field is None:
        raise InputError(f"{options.modulus:#x} is not the modulus of a registered field")
    order, batch = options.order or "nn", 1 if options.batch is None else options.batch
    try:
        if options.op.name == "quotient":
            own = field.generator if options.coset is True else options.coset
            return quotient_question(n, field.name, options.coefficients, own, options.omega, batch)
        return transform_question(n, field.name, options.inverse, options.coset, order, options.omega, batch)
    except ValueError as error:
        raise InputError(str(error)) from None


def specs_of(options: argparse.Namespace) -> list[tuple[str, str]]:
    """(operand, what was written for it); InputError where operands are missing or too many."""
    from limbd.harness.textio import InputError, operand_specs

    if options.op is None or options.modulus is None:
        raise InputError("an op and --modulus (or --field, which is the same) are needed")
    named = {name: getattr(options, name) for name in options.op.operands if getattr(options, name) is not None}
    others = _other_operands(options)
    if others:
        raise InputError(f"{options.op.name} has no operand {others[0]} (it takes {', '.join(options.op.operands)})")
    return operand_specs(options.op, named, options.values)


def _other_operands(options: argparse.Namespace) -> list[str]:
    """Those that were given and are other ops'."""
    return [name for name in operand_names() if name not in options.op.operands and getattr(options, name) is not None]


def operand_names() -> list[str]:
    from limbd.ops import OPS

    return list(dict.fromkeys(name for op in OPS for name in op.operands))


def client_of(options: argparse.Namespace) -> Client:
    from limbd.worker.client import Client

    return Client(
        options.connect,
        backend=options.backend,
        devices=options.device,
        device_memory=options.device_memory,
        cache=options.cache_dir,
        verbose=options.verbose,
    )


def config_of(options: argparse.Namespace) -> Config:
    """The worker's configuration: built here, once."""
    keep = getattr(options, "keep_failed", None)
    return Config(
        backend=options.backend,
        devices=options.device,
        device_memory=options.device_memory,
        listen=tuple(getattr(options, "listen", ())),
        cache=options.cache_dir,
        keep_failed=KeepFailed(keep) if keep else None,
        log_requests=not getattr(options, "quiet", False),
        toys=getattr(options, "toys", False),
    )
