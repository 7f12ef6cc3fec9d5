"""Writes the vector files: `python -m limbd.harness.vectors.build --from FOLDER` (see SOURCES.md).

FOLDER holds the collected answers as gzip-compressed JSON: generated/ and external/. Every answer, collected or made,
is computed again by GMP and by CPython; the first that differs stops the build.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from limbd.harness.vectors import FOLDER, Vectors, write_file
from limbd.harness.vectors.collected import collected_batches
from limbd.harness.vectors.demo import write_demo
from limbd.harness.vectors.made import field_batches, plain_batches
from limbd.harness.vectors.multiplications import multiplication_batches
from limbd.harness.vectors.peers import OPERANDS
from limbd.harness.vectors.quotients import quotient_batches
from limbd.harness.vectors.recipes import write_recipes
from limbd.harness.vectors.transforms import transform_batches
from limbd.ops.params.fields import FIELDS


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m limbd.harness.vectors.build", description=__doc__)
    parser.add_argument("--from", dest="source", type=Path, required=True, help="folder of the collected answers")
    parser.add_argument("--to", type=Path, default=FOLDER, help="where the vector files go (default: %(default)s)")
    arguments = parser.parse_args()
    for path, batches in files(arguments.source).items():
        write_file(arguments.to / path, batches)
        print(f"{path}: {len(batches)} batches, {sum(batch.n for batch in batches)} answers")
    write_recipes(arguments.source, arguments.to)
    write_demo(arguments.to)


def files(source: Path) -> dict[str, list[Vectors]]:
    """File name -> its batches, for everything but the recipes and the demo."""
    named: dict[str, list[Vectors]] = {}
    for op in OPERANDS:
        named[f"{op.replace('-', '_')}.msgpack"] = [*collected_batches(source, op), *plain_batches(op)]
    named["ntt.msgpack"] = transform_batches(source)
    named["msm.msgpack"] = multiplication_batches(source)
    named["quotient.msgpack"] = list(quotient_batches())
    for field in FIELDS:
        if not field.toy:
            named[f"field_{field.name}.msgpack"] = field_batches(field)
    return named


if __name__ == "__main__":
    main()
