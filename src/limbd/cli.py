"""The command line: arguments in, one call of the room below, an exit code out.

Exit codes: 0 everything went well; 1 a request, a check or a worker failed; 2 the command itself was wrong.
Every command imports what it needs when it runs, so that `limbd --help` and `limbd pipe` start quickly.
"""

from __future__ import annotations

import argparse
import errno
import io
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from limbd import __version__, cli_convert, cli_measure
from limbd import arguments as args
from limbd.arguments import FAILED, OK, USAGE, Command

if TYPE_CHECKING:
    from limbd.ops.base import Op

INTERRUPTED = 130

# What writing to a full or failing disk gives; files that a user names have errors of their own.
OUTPUT_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)

DESCRIPTION = """\
A batch worker for big-integer arithmetic on GPUs: a frame comes in on the standard input, a TCP port or a Unix socket,
a kernel runs over the batch, a frame goes out."""

EXAMPLES = """\
examples:
  limbd demo                                              the shipped batch through a real worker
  limbd frame mod-mul --modulus 7 3 5 | limbd pipe | limbd decode
  limbd call mod-inv --modulus secp256k1 2 3 0x10001
  limbd call mod-mul --modulus p256 --a a.npy --b b.npy --out products.npy
  limbd call ntt --field bn254_fr --coset generator 1 2 3 4
  limbd call msm-g1 --curve bn254 --scalars '[2, 3]' --points '[[1, 2], [1, 2]]'
  limbd convert g1 keys.bin --curve bls12_381 --from zcash-compressed --to wire --out points.npy
  limbd serve --listen tcp://127.0.0.1:9091 --listen unix:limbd.sock
  limbd kat --connect 127.0.0.1:9091                      known answers against a running worker

exit codes: 0 all well, 1 a request or a check failed, 2 the command was wrong"""

OPERANDS = """\
operands:
  numbers are decimal, or hexadecimal after 0x; several are separated by commas. A file is .bin (32-byte little-endian
  elements), .npy (uint32 (n, 8), uint64 (n, 4), uint8 (n, 32), or integers (n,)) or text with numbers in it; "-" is
  text on the standard input, @PATH a file of any name. One number beside a longer operand stands for every element.

scalars and points of msm-g1 and msm-g2:
  JSON as it stands ([..]), a .npy file of uint32, or a file of any other name with JSON in it; "-" is JSON on the standard
  input. Numbers of JSON are integers, or strings of decimal or 0x-hexadecimal digits. There is a scalar for each point.
            JSON                                                    .npy
  scalars   [s, ..], several vectors: [[s, ..], ..]                 (n, 8), several vectors: (vectors, n, 8)
  points    [[x, y], ..], in g2 [[[c0, c1], [c0, c1]], ..]          bn254, secp256k1: (n, 16), bls12_381: (n, 24); in g2 of
            null for infinity                                       bn254 (n, 32), of bls12_381 (n, 48); zeros for infinity"""


# --- the worker -----------------------------------------------------------------------------------------------------


def _configure_pipe(parser: argparse.ArgumentParser) -> None:
    args.add_backend(parser)
    args.add_service(parser)


def _run_pipe(options: argparse.Namespace) -> int:
    from limbd.worker.server import run_pipe

    if sys.stdin is not None and sys.stdin.isatty():
        print("limbd pipe: frames are read from the standard input, which is a terminal (Ctrl-D ends)", file=sys.stderr)
    return run_pipe(args.config_of(options))


def _configure_serve(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--listen",
        type=args.listened,
        action="append",
        required=True,
        metavar="ADDR",
        help="tcp://127.0.0.1:PORT or unix:PATH; may be given several times",
    )
    args.add_backend(parser)
    args.add_service(parser)


def _run_serve(options: argparse.Namespace) -> int:
    from limbd.worker.server import run_serve

    return run_serve(args.config_of(options))


# --- asking ---------------------------------------------------------------------------------------------------------


def _configure_call(parser: argparse.ArgumentParser) -> None:
    from limbd.ops.tuning import NEVER_BATCHED

    args.add_question(parser)
    parser.add_argument(
        "--exact-op",
        action="store_true",
        help=f"mod-inv whatever n: without this, more than {NEVER_BATCHED} elements are asked for as mod-inv-batch, "
        "where the worker knows it (the same answers, sooner)",
    )
    parser.add_argument("--replay", type=Path, metavar="FILE", help="send a frame as --keep-failed or `frame` wrote it")
    parser.add_argument(
        "--out", metavar="FILE", help="write .bin, .npy or text (sums of points: .npy or JSON) instead of printing"
    )
    parser.add_argument("--decimal", action="store_true", help="print decimal instead of hexadecimal")
    args.add_target(parser)


def _run_call(options: argparse.Namespace) -> int:
    from limbd.harness import asking, point_files, textio

    if options.replay:
        if options.op is not None or options.modulus is not None or args.has_transform_option(options):
            raise textio.InputError("--replay FILE is the whole question: nothing else of it beside it")
        with args.client_of(options) as client:
            values = asking.replay(client, options.replay)
    elif (asked := args.multiplication_of(options)) is not None:
        with args.client_of(options) as client:
            answer = client.ask(asked)
        point_files.write(answer, options.out, sys.stdout, name=options.op.name, curve=options.curve)
        return OK
    else:
        operands = textio.as_operands(args.specs_of(options))
        question = args.question_of(options, len(operands[0]))
        with args.client_of(options) as client:
            values = asking.call(client, options.op, operands, options.modulus, question, exact=options.exact_op)
    textio.write_numbers(values, options.out, sys.stdout, decimal=options.decimal)
    return OK


def _configure_frame(parser: argparse.ArgumentParser) -> None:
    args.add_question(parser)
    parser.add_argument("--out", type=Path, metavar="FILE", help="write to a file instead of the standard output")


def _run_frame(options: argparse.Namespace) -> int:
    from limbd.harness import asking, textio

    asked = args.multiplication_of(options)
    if asked is not None:
        frame = asked.buffers
    else:
        operands = textio.as_operands(args.specs_of(options))
        frame = asking.frame(options.op, operands, options.modulus, args.question_of(options, len(operands[0])))
    if options.out is None and sys.stdout.isatty():
        raise textio.InputError("a frame is binary: pipe it into `limbd pipe`, or give --out FILE")
    asking.write_frame(frame, options.out)
    return OK


def _configure_decode(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", nargs="?", type=Path, metavar="FILE", help="the answers (default: the standard input)")
    parser.add_argument("--width", type=args.count, default=32, metavar="BYTES", help="bytes of a result (default 32)")
    parser.add_argument("--decimal", action="store_true", help="print decimal instead of hexadecimal")


def _run_decode(options: argparse.Namespace) -> int:
    from limbd.harness import asking

    return OK if asking.decode(options.file, options.width, sys.stdout, decimal=options.decimal) else FAILED


# --- looking and checking -------------------------------------------------------------------------------------------


def _configure_info(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="one JSON object instead of tables")
    args.add_backend(parser)


def _run_info(options: argparse.Namespace) -> int:
    from limbd.harness import info

    info.show(info.collect(args.config_of(options)), as_json=options.json)
    return OK


def _configure_demo(parser: argparse.ArgumentParser) -> None:
    args.add_target(parser)


def _run_demo(options: argparse.Namespace) -> int:
    from limbd.harness import demo

    with args.client_of(options) as client:
        return OK if demo.run(client) else FAILED


def _configure_kat(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--op", type=args.op, action="append", metavar="OP", help="this op only; may be repeated")
    parser.add_argument(
        "--largest",
        type=args.count,
        default=18,
        metavar="K",
        help="transforms of up to 2^K elements (default 18, most 26)",
    )
    args.add_target(parser)


def _run_kat(options: argparse.Namespace) -> int:
    from limbd.harness import checking

    config, ops = args.config_of(options), _names(options.op)
    return OK if checking.kat(config, options.connect, ops, options.largest) else FAILED


def _configure_fuzz(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--op", type=args.op, action="append", metavar="OP", help="this op only; may be repeated")
    parser.add_argument("--seed", default="1", help="any text; the same seed asks the same questions (default 1)")
    parser.add_argument("--seconds", type=args.seconds, default=10.0, help="how long (default 10)")
    parser.add_argument("--round", type=args.count, metavar="N", help="only this round of the seed")
    args.add_target(parser)


def _run_fuzz(options: argparse.Namespace) -> int:
    from limbd.harness import checking

    good = checking.fuzz(
        args.config_of(options),
        options.connect,
        _names(options.op),
        seed=options.seed,
        seconds=options.seconds,
        single_round=options.round,
    )
    return OK if good else FAILED


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
    Command(
        "convert",
        "points and scalars from one format to another",
        cli_convert.configure_convert,
        cli_convert.run_convert,
        cli_convert.FORMATS,
    ),
    Command("kat", "put a backend or a worker to the known answers", _configure_kat, _run_kat),
    Command("fuzz", "compare a backend or a worker with GMP on hard operands", _configure_fuzz, _run_fuzz),
    Command(
        "bench",
        "measure an op's kernels on a backend, or compare two runs",
        cli_measure.configure_bench,
        cli_measure.run_bench,
    ),
    Command("halt", "judge a plan by its samples, or measure it", cli_measure.configure_halt, cli_measure.run_halt),
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
    if rest and hasattr(options, "values") and not any(word.startswith("-") and word != "-" for word in rest):
        options.values += rest
    elif rest:
        negative = next((word for word in rest if word[:1] == "-" and word[1:2].isdigit()), None)
        if negative and hasattr(options, "values"):
            parser.error(f"{negative}: operands are not negative")
        parser.error(f"unrecognised arguments: {' '.join(rest)}")
    return options


def main(arguments: Sequence[str] | None = None) -> int:
    """The entry point of `limbd`. Returns the exit code; argparse exits by itself for --help and mistakes."""
    _replace_closed_streams()
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
        _forget_output()  # whoever read it has gone
        return FAILED
    except OSError as error:
        if error.errno not in OUTPUT_ERRORS and not isinstance(error, io.UnsupportedOperation):
            raise
        _forget_output()
        reason = error.strerror or "it is closed"
        print(f"limbd {options.command}: cannot write the standard output: {reason}", file=sys.stderr)
        return FAILED
    except Exception as error:
        return _report(error, options.command)


def _replace_closed_streams() -> None:
    """Python has None for a standard stream that is closed at the start. Reading one finds its end; writing to the
    output is an error, so it is opened for reading; what is said on stderr is lost. Each gets its own descriptor back,
    the lowest that is free."""
    for name, mode in (("stdin", "r"), ("stdout", "r"), ("stderr", "w")):
        if getattr(sys, name) is None:
            fd = os.open(os.devnull, os.O_RDONLY if mode == "r" else os.O_WRONLY)
            os.set_inheritable(fd, True)
            setattr(sys, name, os.fdopen(fd, mode))


def _forget_output() -> None:
    """The interpreter must not complain when it flushes at exit what cannot be written."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


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
