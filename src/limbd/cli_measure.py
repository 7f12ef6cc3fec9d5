"""The commands that measure: bench and halt."""

from __future__ import annotations

import argparse
from pathlib import Path

from limbd import arguments as args


def sizes(text: str) -> tuple[int, ...]:
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


def configure_bench(parser: argparse.ArgumentParser) -> None:
    from limbd.harness import bench_bases, bench_inputs, bench_multiplications
    from limbd.harness.inputs import UNIFORM

    parser.add_argument("op", type=args.op, nargs="?", metavar="OP", help="what to measure")
    parser.add_argument(
        *("--params", "--modulus", "-m"),
        action="append",
        default=[],
        metavar="P",
        help="a field's name or a modulus; of msm-g1 and msm-g2 a curve's name",
    )
    parser.add_argument("--n", type=sizes, default=(10**3, 10**4, 10**5), metavar="N[,N]", help="such as 1000,1e6,2^20")
    parser.add_argument("--samples", type=args.count, default=60, metavar="N", help="raw samples a case (default 60)")
    parser.add_argument(
        "--inputs",
        choices=(*bench_inputs.KINDS, *bench_multiplications.KINDS),
        default=UNIFORM,
        help="operands of mod-inv and mod-inv-batch: uniform, or with one element in each block that is 0, or a non-unit "
        f"of a modulus with a small odd factor, such as 65521 * (2^240 - 467) = {bench_inputs.COMPOSITE:#x}; scalars of "
        "msm-g1 and msm-g2: uniform, skewed, or as in a witness",
    )
    parser.add_argument(
        "--bases",
        choices=bench_bases.KINDS,
        default="",
        help="msm-g1 and msm-g2: whole calls with points that stay on the device, as they are or with their multiples by windows",
    )
    parser.add_argument("--out", type=Path, metavar="FILE.jsonl", help="write the records, one line a case")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw rate over n: .svg or .png (needs matplotlib)")
    parser.add_argument("--show", type=Path, metavar="FILE.jsonl", help="show (and plot) records instead of measuring")
    parser.add_argument("--compare", type=Path, nargs=2, metavar=("OLD.jsonl", "NEW.jsonl"), help="compare two runs")
    parser.add_argument("--commit", help="the commit of this tree, where it has no history")
    args.add_backend(parser)


def run_bench(options: argparse.Namespace) -> int:
    from limbd.harness import bench, benching
    from limbd.harness.textio import InputError

    if options.compare:
        benching.compare(*options.compare)
        return args.OK
    if options.show:
        benching.show(benching.read(options.show), options.plot)
        return args.OK
    if options.op is None or not options.params or not options.samples:
        raise InputError("an op, --params (or --modulus) and at least one sample are needed")
    moduli = [benching.modulus_name(options.op.name, text) for text in options.params]
    cases = bench.cases_of(options.op.name, moduli, options.n, options.samples, options.inputs, options.bases)
    return (
        args.OK
        if benching.measure(args.config_of(options), cases, options.out, options.plot, options.commit)
        else args.FAILED
    )


HALT_ACTIONS = ("check", "run", "index")


def configure_halt(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", metavar="check|run|index", help="what to do; a PLAN alone is checked")
    parser.add_argument("plan", nargs="?", metavar="PLAN", help="number, name or file (check: default, all)")
    group = parser.add_argument_group("run")
    group.add_argument("--out", type=Path, metavar="DIR", help="folder of the samples (default: plans/results)")
    group.add_argument("--commit", help="the commit of this tree, where it has no history")
    texts = "only cases whose name holds one of these texts, comma-separated"
    group.add_argument("--only", default="", metavar="TEXT[,TEXT]", help=texts)
    group.add_argument("--seconds", type=args.seconds, default=float(1 << 30), help="begin nothing new after this time")
    args.add_backend(parser)


def run_halt(options: argparse.Namespace) -> int:
    from limbd.harness import halting
    from limbd.harness.textio import InputError

    if options.action not in HALT_ACTIONS:
        if options.plan is not None:
            raise InputError(f"{options.action!r} is not one of {', '.join(HALT_ACTIONS)}")
        options.action, options.plan = "check", options.action
    if options.action == "index":
        halting.write_index()
        return args.OK
    if options.action == "check":
        return args.OK if halting.check([options.plan] if options.plan else []) else args.FAILED
    if options.plan is None:
        raise InputError("which plan? `limbd halt check` lists them")
    reached = halting.run(
        options.plan,
        args.config_of(options),
        out=options.out,
        commit=options.commit,
        only=options.only,
        seconds=options.seconds,
    )
    return args.OK if reached else args.FAILED
