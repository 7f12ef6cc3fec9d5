"""The command line: arguments in, one call of the room below, an exit code out.

Exit codes: 0 everything went well; 1 a request, a check or a worker failed; 2 the command itself was wrong.
Every command imports what it needs when it runs, so that `limbd --help` and `limbd pipe` start quickly.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from limbd import __version__
from limbd.worker.config import BACKENDS, Config, KeepFailed

if TYPE_CHECKING:
    from limbd.ops.base import Op
    from limbd.worker.client import Client
OK, FAILED, USAGE = 0, 1, 2
INTERRUPTED = 130

DESCRIPTION = """\
A batch worker for big-integer arithmetic on GPUs: a frame comes in on the standard input, a TCP port or a Unix socket,
a kernel runs over the batch, a frame goes out."""

EXAMPLES = """\
examples:
  limbd demo                                              the shipped batch through a real worker
  limbd frame mod-mul --modulus 7 3 5 | limbd pipe | limbd decode
  limbd call mod-inv --modulus secp256k1 2 3 0x10001
  limbd call mod-mul --modulus p256 --a a.npy --b b.npy --out products.npy
  limbd serve --listen tcp://127.0.0.1:9091 --listen unix:/tmp/limbd.sock
  limbd kat --connect 127.0.0.1:9091                      known answers against a running worker

exit codes: 0 all well, 1 a request or a check failed, 2 the command was wrong"""

OPERANDS = """\
operands:
  numbers are decimal, or hexadecimal after 0x; several are separated by commas. A file is .bin (32-byte little-endian
  elements), .npy (uint32 (n, 8), uint64 (n, 4), uint8 (n, 32), or integers (n,)) or text with numbers in it; "-" is
  text on the standard input, @PATH a file of any name. One number beside a longer operand stands for every element."""


@dataclass(frozen=True)
class Command:
    name: str
    summary: str
    configure: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]
    epilog: str = ""


# --- arguments that several commands share --------------------------------------------------------------------------


def _bytes(text: str) -> int:
    """ "64M" -> 67108864; K, M, G and T are powers of 1024."""
    units = {"K": 10, "M": 20, "G": 30, "T": 40}
    number = text.upper().removesuffix("B").removesuffix("I")
    shift = units.get(number[-1:], 0)
    digits = number[:-1] if shift else number
    if not digits.isdigit() or int(digits) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is no size: a number of bytes, such as 64M or 2G")
    return int(digits) << shift


def _address(text: str, *, listening: bool = False) -> str:
    from limbd.worker.link import Address

    try:
        return str(Address(text, listening=listening))
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _listened(text: str) -> str:
    return _address(text, listening=True)


def _op(text: str) -> Op:
    from limbd.ops import by_name
    from limbd.ops.status import RequestError

    try:
        return by_name(text.replace("_", "-"))
    except RequestError as error:
        raise argparse.ArgumentTypeError(f"{error.message}; {error.hint}") from None


def _modulus(text: str) -> int:
    from limbd.harness.textio import InputError, parse_modulus

    try:
        return parse_modulus(text)
    except InputError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _count(text: str) -> int:
    if not text.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is no count")
    return int(text)


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds above 0")
    return value


def _devices(text: str) -> tuple[int, ...]:
    """ "0" or "0,1"."""
    devices = tuple(_count(part) for part in text.split(","))
    if len(set(devices)) != len(devices):
        raise argparse.ArgumentTypeError(f"{text!r} names a device twice")
    return devices


def _add_backend(parser: argparse.ArgumentParser, *, local: bool = False) -> None:
    group = parser.add_argument_group("local worker" if local else "worker")
    group.add_argument("--backend", choices=BACKENDS, default="auto", help="auto takes the first that works (default)")
    group.add_argument(
        "--device",
        type=_devices,
        default=(0,),
        metavar="N[,N]",
        help="which GPU, or GPUs, one process each (default 0)",
    )
    group.add_argument("--device-memory", type=_bytes, metavar="SIZE", help="device memory to use at most, such as 64M")
    group.add_argument("--cache-dir", type=Path, metavar="DIR", help="where compiled kernels are kept")


def _add_service(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("service")
    group.add_argument(
        "--keep-failed", type=Path, metavar="DIR", help="keep frames that failed on the device (they hold operands)"
    )
    group.add_argument("--quiet", action="store_true", help="no line on stderr for requests that went well")
    group.add_argument("--toys", action="store_true", help="serve the toy fields too (tests)")


def _add_target(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--verbose", action="store_true", help="show what the local worker says on stderr")
    parser.add_argument("--connect", type=_address, metavar="ADDR", help="a running worker: HOST:PORT or unix:PATH")
    _add_backend(parser, local=True)


def _add_question(parser: argparse.ArgumentParser) -> None:
    """OP, the modulus and the operands, by name or by position."""
    from limbd.ops import OPS

    parser.add_argument("op", type=_op, nargs="?", metavar="OP", help=", ".join(op.name for op in OPS))
    parser.add_argument("values", nargs="*", metavar="OPERAND", help="the operands in order; for mod-inv any number")
    parser.add_argument(
        "--modulus",
        "-m",
        type=_modulus,
        metavar="M",
        help="a field's name (secp256k1, bn254_fr), decimal or hexadecimal",
    )
    for name in dict.fromkeys(name for op in OPS for name in op.operands):
        takers = ", ".join(op.name for op in OPS if name in op.operands)
        parser.add_argument(f"--{name}", metavar="OPERAND", help=f"operand {name} of {takers}")


def _specs(options: argparse.Namespace) -> list[tuple[str, str]]:
    """(operand, what was written for it); InputError where operands are missing or too many."""
    from limbd.harness.textio import InputError, operand_specs

    if options.op is None or options.modulus is None:
        raise InputError("an op and --modulus are needed")
    named = {name: getattr(options, name) for name in options.op.operands if getattr(options, name) is not None}
    others = [
        name for name in _operand_names() if name not in options.op.operands and getattr(options, name) is not None
    ]
    if others:
        raise InputError(f"{options.op.name} has no operand {others[0]} (it takes {', '.join(options.op.operands)})")
    return operand_specs(options.op, named, options.values)


def _operand_names() -> list[str]:
    from limbd.ops import OPS

    return list(dict.fromkeys(name for op in OPS for name in op.operands))


def _client(options: argparse.Namespace) -> Client:
    from limbd.worker.client import Client

    return Client(
        options.connect,
        backend=options.backend,
        devices=options.device,
        device_memory=options.device_memory,
        cache=options.cache_dir,
        verbose=options.verbose,
    )


def _config(options: argparse.Namespace) -> Config:
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


# --- the worker -----------------------------------------------------------------------------------------------------


def _configure_pipe(parser: argparse.ArgumentParser) -> None:
    _add_backend(parser)
    _add_service(parser)


def _run_pipe(options: argparse.Namespace) -> int:
    from limbd.worker.server import run_pipe

    if sys.stdin is not None and sys.stdin.isatty():
        print("limbd pipe: frames are read from the standard input, which is a terminal (Ctrl-D ends)", file=sys.stderr)
    return run_pipe(_config(options))


def _configure_serve(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--listen",
        type=_listened,
        action="append",
        required=True,
        metavar="ADDR",
        help="tcp://127.0.0.1:PORT or unix:PATH; may be given several times",
    )
    _add_backend(parser)
    _add_service(parser)


def _run_serve(options: argparse.Namespace) -> int:
    from limbd.worker.server import run_serve

    return run_serve(_config(options))


# --- asking ---------------------------------------------------------------------------------------------------------


def _configure_call(parser: argparse.ArgumentParser) -> None:
    _add_question(parser)
    parser.add_argument("--replay", type=Path, metavar="FILE", help="send a frame as --keep-failed or `frame` wrote it")
    parser.add_argument("--out", metavar="FILE", help="write .bin, .npy or text instead of printing")
    parser.add_argument("--decimal", action="store_true", help="print decimal instead of hexadecimal")
    _add_target(parser)


def _run_call(options: argparse.Namespace) -> int:
    from limbd.harness import asking, textio

    if options.replay:
        with _client(options) as client:
            values = asking.replay(client, options.replay)
    else:
        operands = textio.as_operands(_specs(options))
        with _client(options) as client:
            values = asking.call(client, options.op, operands, options.modulus)
    textio.write_numbers(values, options.out, sys.stdout, decimal=options.decimal)
    return OK


def _configure_frame(parser: argparse.ArgumentParser) -> None:
    _add_question(parser)
    parser.add_argument("--out", type=Path, metavar="FILE", help="write to a file instead of the standard output")


def _run_frame(options: argparse.Namespace) -> int:
    from limbd.harness import asking, textio

    frame = asking.frame(options.op, textio.as_operands(_specs(options)), options.modulus)
    if options.out is None and sys.stdout.isatty():
        raise textio.InputError("a frame is binary: pipe it into `limbd pipe`, or give --out FILE")
    asking.write_frame(frame, options.out)
    return OK


def _configure_decode(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", nargs="?", type=Path, metavar="FILE", help="the answers (default: the standard input)")
    parser.add_argument("--width", type=_count, default=32, metavar="BYTES", help="bytes of a result (default 32)")
    parser.add_argument("--decimal", action="store_true", help="print decimal instead of hexadecimal")


def _run_decode(options: argparse.Namespace) -> int:
    from limbd.harness import asking

    return OK if asking.decode(options.file, options.width, sys.stdout, decimal=options.decimal) else FAILED


# --- looking and checking -------------------------------------------------------------------------------------------


def _configure_info(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="one JSON object instead of tables")
    _add_backend(parser)


def _run_info(options: argparse.Namespace) -> int:
    from limbd.harness import info

    info.show(info.collect(_config(options)), as_json=options.json)
    return OK


def _configure_demo(parser: argparse.ArgumentParser) -> None:
    _add_target(parser)


def _run_demo(options: argparse.Namespace) -> int:
    from limbd.harness import demo

    with _client(options) as client:
        return OK if demo.run(client) else FAILED


def _configure_kat(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--op", type=_op, action="append", metavar="OP", help="this op only; may be repeated")
    _add_target(parser)


def _run_kat(options: argparse.Namespace) -> int:
    from limbd.harness import checking

    return OK if checking.kat(_config(options), options.connect, _names(options.op)) else FAILED


def _configure_fuzz(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--op", type=_op, action="append", metavar="OP", help="this op only; may be repeated")
    parser.add_argument("--seed", default="1", help="any text; the same seed asks the same questions (default 1)")
    parser.add_argument("--seconds", type=_seconds, default=10.0, help="how long (default 10)")
    parser.add_argument("--round", type=_count, metavar="N", help="only this round of the seed")
    _add_target(parser)


def _run_fuzz(options: argparse.Namespace) -> int:
    from limbd.harness import checking

    good = checking.fuzz(
        _config(options),
        options.connect,
        _names(options.op),
        seed=options.seed,
        seconds=options.seconds,
        single_round=options.round,
    )
    return OK if good else FAILED


def _sizes(text: str) -> tuple[int, ...]:
    """ "1000,1e6,2^20" """
    sizes = []
    for part in text.split(","):
        base, power, exponent = part.partition("^") if "^" in part else part.lower().partition("e")
        if not base.isdigit() or (power and not exponent.isdigit()):
            raise argparse.ArgumentTypeError(f"{part!r} is no number of elements, such as 1000, 1e6 or 2^20")
        factor = int(base) ** int(exponent) if power == "^" else int(base) * 10 ** int(exponent or 0)
        if not 0 < factor < 1 << 32:
            raise argparse.ArgumentTypeError(f"{part!r} is not in 1..2^32-1")
        sizes.append(factor)
    return tuple(sizes)


def _configure_bench(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("op", type=_op, nargs="?", metavar="OP", help="what to measure")
    parser.add_argument(
        "--params", "--modulus", "-m", action="append", default=[], metavar="P", help="a field's name or a modulus"
    )
    parser.add_argument(
        "--n", type=_sizes, default=(10**3, 10**4, 10**5), metavar="N[,N]", help="such as 1000,1e6,2^20"
    )
    parser.add_argument("--samples", type=_count, default=60, metavar="N", help="raw samples a case (default 60)")
    parser.add_argument("--out", type=Path, metavar="FILE.jsonl", help="write the records, one line a case")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw rate over n: .svg or .png (needs matplotlib)")
    parser.add_argument("--show", type=Path, metavar="FILE.jsonl", help="show (and plot) records instead of measuring")
    parser.add_argument("--compare", type=Path, nargs=2, metavar=("OLD.jsonl", "NEW.jsonl"), help="compare two runs")
    parser.add_argument("--commit", help="the commit of this tree, where it has no history")
    _add_backend(parser)


def _run_bench(options: argparse.Namespace) -> int:
    from limbd.harness import bench, benching
    from limbd.harness.textio import InputError, parse_modulus

    if options.compare:
        benching.compare(*options.compare)
        return OK
    if options.show:
        benching.show(benching.read(options.show), options.plot)
        return OK
    if options.op is None or not options.params or not options.samples:
        raise InputError("an op, --params (or --modulus) and at least one sample are needed")
    moduli = [benching.modulus_name(text, parse_modulus(text)) for text in options.params]
    cases = bench.cases_of(options.op.name, moduli, options.n, options.samples)
    return OK if benching.measure(_config(options), cases, options.out, options.plot, options.commit) else FAILED


HALT_ACTIONS = ("check", "run", "index")


def _configure_halt(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", metavar="check|run|index", help="what to do; a PLAN alone is checked")
    parser.add_argument("plan", nargs="?", metavar="PLAN", help="number, name or file (check: default, all)")
    group = parser.add_argument_group("run")
    group.add_argument("--out", type=Path, metavar="DIR", help="folder of the samples (default: plans/results)")
    group.add_argument("--commit", help="the commit of this tree, where it has no history")
    group.add_argument("--only", default="", metavar="TEXT", help="only what has this in its name")
    group.add_argument("--seconds", type=_seconds, default=float(1 << 30), help="begin nothing new after this time")
    _add_backend(parser)


def _run_halt(options: argparse.Namespace) -> int:
    from limbd.harness import halting
    from limbd.harness.textio import InputError

    if options.action not in HALT_ACTIONS:
        if options.plan is not None:
            raise InputError(f"{options.action!r} is not one of {', '.join(HALT_ACTIONS)}")
        options.action, options.plan = "check", options.action
    if options.action == "index":
        halting.write_index()
        return OK
    if options.action == "check":
        return OK if halting.check([options.plan] if options.plan else []) else FAILED
    if options.plan is None:
        raise InputError("which plan? `limbd halt check` lists them")
    reached = halting.run(
        options.plan,
        _config(options),
        out=options.out,
        commit=options.commit,
        only=options.only,
        seconds=options.seconds,
    )
    return OK if reached else FAILED


def _names(ops: Sequence[Op] | None) -> list[str] | None:
    return [op.name for op in ops] if ops else None


# --- the parser -----------------------------------------------------------------------------------------------------

COMMANDS = (
    Command("demo", "send the shipped batch through a real worker and compare", _configure_demo, _run_demo),
    Command("pipe", "the worker on the standard streams", _configure_pipe, _run_pipe),
    Command("serve", "the worker on TCP ports and Unix sockets", _configure_serve, _run_serve),
    Command("call", "ask a worker and print or write the answer", _configure_call, _run_call, OPERANDS),
    Command("frame", "write a request's bytes, for `limbd pipe`", _configure_frame, _run_frame, OPERANDS),
    Command("decode", "print the answers that `limbd pipe` wrote", _configure_decode, _run_decode),
    Command("kat", "put a backend or a worker to the known answers", _configure_kat, _run_kat),
    Command("fuzz", "compare a backend or a worker with GMP on hard operands", _configure_fuzz, _run_fuzz),
    Command("bench", "measure an op's kernels on a backend, or compare two runs", _configure_bench, _run_bench),
    Command("halt", "judge a plan by its samples, or measure it", _configure_halt, _run_halt),
    Command("info", "devices, backends, compilers, ops, fields, limits, cache", _configure_info, _run_info),
)


class _Parser(argparse.ArgumentParser):
    """One line about what is wrong, and where help is."""

    def error(self, message: str) -> NoReturn:
        self.exit(USAGE, f"{self.prog}: {message} (see {self.prog} --help)\n")


def _parser(chosen: str | None) -> argparse.ArgumentParser:
    """The parser; only the chosen command's arguments are filled in, because they cost imports."""
    parser = _Parser(
        prog="limbd",
        description=DESCRIPTION,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"limbd {__version__}")
    rooms = parser.add_subparsers(
        title="commands", dest="command", metavar="COMMAND", required=True, parser_class=_Parser
    )
    for command in COMMANDS:
        room = rooms.add_parser(
            command.name,
            help=command.summary,
            description=command.summary[0].upper() + command.summary[1:] + ".",
            epilog=command.epilog,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        room.set_defaults(run=command.run)
        if command.name == chosen:
            command.configure(room)
    return parser


def _parse(parser: argparse.ArgumentParser, words: Sequence[str]) -> argparse.Namespace:
    """argparse gives up on positional arguments behind an option (`call mod-mul --modulus 7 3 5`): they are operands."""
    options, rest = parser.parse_known_args(words)
    if rest and hasattr(options, "values") and not any(word.startswith("-") for word in rest):
        options.values += rest
    elif rest:
        parser.error(f"unrecognised arguments: {' '.join(rest)}")
    return options


def main(arguments: Sequence[str] | None = None) -> int:
    """The entry point of `limbd`. Returns the exit code; argparse exits by itself for --help and mistakes."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    parser = _parser(next((word for word in words if not word.startswith("-")), None))
    options = _parse(parser, words)
    try:
        code: int = options.run(options)
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output has gone; the interpreter must not complain about it when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except Exception as error:
        return _report(error, options.command)


def _report(error: Exception, command: str) -> int:
    """One line for what a user can put right; anything else is a defect, and keeps its traceback."""
    from limbd.harness.textio import InputError
    from limbd.ops.status import LimbdError

    if not isinstance(error, InputError | LimbdError):
        raise error
    print(f"limbd {command}: {error}", file=sys.stderr)
    return USAGE if isinstance(error, InputError) else FAILED


if __name__ == "__main__":
    sys.exit(main())
