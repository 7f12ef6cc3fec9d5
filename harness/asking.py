"""What `limbd call`, `frame` and `decode` do: questions to a worker, and version 1's frames as files."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, TextIO

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from limbd.harness.textio import InputError, write_numbers
from limbd.ops.base import Op
from limbd.ops.mod_inv import MOD_INV
from limbd.ops.status import Status
from limbd.worker import wire
from limbd.worker.client import Client
from limbd.worker.exchange import exchange

Limbs = npt.NDArray[np.uint32]

# Elements of one request of `call`: far below the payload limit, large enough to fill a GPU, and small enough for the
# progress bar to move.
BATCH = 1 << 20
# Requests under way at a time: the worker's copies overlap its kernels.
IN_FLIGHT = 3
# An answer's body is read and printed in parts of this size.
_PART_BYTES = 2 << 20


# A request's param and the domain of its transforms.
Question = tuple[int, tuple[int, ...]]
ELEMENTWISE: Question = (0, ())


def call(
    client: Client,
    op: Op,
    operands: Sequence[Limbs],
    modulus: int,
    question: Question = ELEMENTWISE,
    *,
    exact: bool = False,
) -> Limbs:
    """The answer to a question of any length, cut into batches where the op allows it; a progress bar on a terminal's
    stderr. mod-inv is asked for as the client's mod_inv does it, unless `exact`."""
    n = len(operands[0])
    name = client.inverse_op(n) if op is MOD_INV and not exact else op.name
    if n <= BATCH or not op.elementwise:
        param, domain = question
        answer: Limbs = client.call(name, list(operands), modulus, param=param, domain=domain)
        return answer
    parts: list[Limbs] = []
    with progress() as bar:
        task = bar.add_task(op.name, total=n)
        under_way = []
        for start in range(0, n, BATCH):
            under_way.append(client.submit(name, [a[start : start + BATCH] for a in operands], modulus))
            if len(under_way) == IN_FLIGHT:
                parts.append(under_way.pop(0).result())
                bar.advance(task, len(parts[-1]))
        for pending in under_way:
            parts.append(pending.result())
            bar.advance(task, len(parts[-1]))
    return np.concatenate(parts)


def progress() -> Progress:
    """A progress bar on stderr, silent where that is no terminal."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        disable=not sys.stderr.isatty(),
        transient=True,
    )


def frame(op: Op, operands: Sequence[Limbs], modulus: int, question: Question = ELEMENTWISE) -> list[memoryview]:
    """A version-1 request, piece by piece."""
    param, domain = question
    return exchange(op.name, list(operands), modulus, param=param, domain=domain).buffers


def write_frame(pieces: Sequence[memoryview], path: Path | None) -> None:
    """To a file, or to the standard output."""
    if path is None:
        sys.stdout.buffer.writelines(pieces)
        sys.stdout.buffer.flush()
        return
    try:
        with path.open("wb") as file:
            file.writelines(pieces)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror or error}") from None


def replay(client: Client, path: Path) -> Limbs:
    """The answer to a request that `limbd frame` or --keep-failed wrote."""
    try:
        frame = path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from None
    try:
        answer: Limbs = client.replay(frame)
    except ValueError as error:
        raise InputError(f"{path} cannot be replayed: {error}") from None
    return answer


def decode(path: Path | None, width: int, out: TextIO, *, decimal: bool = False) -> bool:
    """Prints every answer of a stream: its status and n, then a result a line. False where one is an error.

    width: bytes of a result; InputError for a stream that is not made of whole answers.
    """
    if path is None:
        return _decode_stream(sys.stdin.buffer, "standard input", width, out, decimal)
    try:
        with path.open("rb") as file:
            return _decode_stream(file, str(path), width, out, decimal)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from None


def _decode_stream(stream: BinaryIO, source: str, width: int, out: TextIO, decimal: bool) -> bool:
    if width % 4 or not 0 < width <= _PART_BYTES:
        raise InputError(f"a result of {width} bytes: results are made of 4-byte limbs, at most {_PART_BYTES} bytes")
    good = True
    for status, count in _headers(stream, source):
        name = Status(status).name if status in set(Status) else f"unknown status {status}"
        print(f"{name} n={count}", file=out)
        good &= status == Status.OK
        for part in _body(stream, source, count, width):
            write_numbers(np.frombuffer(part, dtype="<u4").reshape(-1, width // 4), None, out, decimal=decimal)
    return good


def _headers(stream: BinaryIO, source: str) -> Iterator[tuple[int, int]]:
    layout, number = wire.VERSION_1.response, 0
    while header := stream.read(layout.size):
        number += 1
        if not header.startswith(wire.MAGIC_V1):
            raise InputError(f"{source}: answer {number} does not start with {wire.MAGIC_V1.decode()}")
        if len(header) < layout.size:
            raise InputError(f"{source}: the header of answer {number} is cut short")
        told = layout.unpack(header)
        yield told["status"], told["n"]


def _body(stream: BinaryIO, source: str, count: int, width: int) -> Iterator[bytes]:
    """The results of one answer, whole ones at a time."""
    at_once = max(1, _PART_BYTES // width)
    for start in range(0, count, at_once):
        wanted = min(at_once, count - start) * width
        part = stream.read(wanted)
        if len(part) < wanted:
            raise InputError(f"{source}: the results are cut short, at least {wanted - len(part)} bytes are missing")
        yield part
