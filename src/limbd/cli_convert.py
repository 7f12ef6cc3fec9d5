"""`limbd convert`: its arguments."""

from __future__ import annotations

import argparse

from limbd.arguments import OK

FORMATS = """\
formats:
  wire, montgomery, json     every curve
  eip196 (g1), eip197 (g2)   bn254
  eip2537                    bls12_381
  zcash                      bls12_381
  arkworks, gnark            bn254, bls12_381
  sec1                       secp256k1
  big-endian                 scalars; they have wire, montgomery and json too
The last four of points have a -compressed form too. `wire` is limbd's own: plain little-endian coordinates, infinity all
zeros; as a .npy file it is what `limbd call msm-g1 --points` takes. JSON is [[x, y], ..], in g2 [[[c0, c1], [c0, c1]], ..],
null for infinity; of scalars [s, ..].

What is not the one encoding of a point is refused with its index: coordinates not below p, wrong flags or padding, x of no
point. Points are not checked for the subgroup."""


def configure_convert(parser: argparse.ArgumentParser) -> None:
    from limbd.harness.converting import KINDS

    parser.add_argument("kind", choices=KINDS, metavar="KIND", help=", ".join(KINDS))
    parser.add_argument("source", metavar="FILE", help='what to convert; "-" is the standard input, [..] JSON itself')
    parser.add_argument("--curve", required=True, metavar="C", help="bn254, bls12_381 or secp256k1")
    parser.add_argument("--from", required=True, dest="source_form", metavar="FORMAT", help="what it is")
    parser.add_argument("--to", required=True, dest="target_form", metavar="FORMAT", help="what it becomes")
    parser.add_argument("--out", metavar="FILE", help="write to a file instead of the standard output")
    parser.add_argument("--hex", action="store_true", help="bytes are hexadecimal text, in and out")
    parser.add_argument(
        "--check-curve",
        action="store_true",
        help="refuse points off the curve (in compressed forms and in sec1 they always are)",
    )


def run_convert(options: argparse.Namespace) -> int:
    from limbd.harness import converting

    values = converting.read(
        options.source,
        options.kind,
        options.curve,
        options.source_form,
        hexadecimal=options.hex,
        check_curve=options.check_curve,
    )
    converting.write(values, options.out, options.kind, options.curve, options.target_form, hexadecimal=options.hex)
    return OK
