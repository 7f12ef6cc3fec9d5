"""What `limbd kat` and `limbd fuzz` do: a backend in this process, or a worker elsewhere, put to the test."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from limbd.harness import fuzz as fuzzing
from limbd.harness import kat as known
from limbd.harness.asking import progress
from limbd.harness.targets import BackendTarget, ClientTarget, Target
from limbd.harness.vectors.recipes import USUAL_LOG_N
from limbd.ops.status import ServiceError, Status
from limbd.worker.client import Client
from limbd.worker.config import Config
from limbd.worker.device.choose import NoBackend, choose


@contextmanager
def target(config: Config, connect: str | None) -> Iterator[Target]:
    """The worker at `connect`, or else the configured backend in this process (which can be asked for fields above 256
    bits too). ServiceError(NO_DEVICE) where the backend does not work here."""
    if connect is not None:
        with Client(connect) as client:
            yield ClientTarget(client, f"--connect {connect}")
        return
    try:
        backend, reason = choose(config.backend, config.devices[0], config.device_memory, config.cache)
    except NoBackend as error:
        raise ServiceError(Status.NO_DEVICE, str(error)) from None
    if config.backend == "auto":
        print(f"backend {backend.describe().name}: {reason}", file=sys.stderr)
    try:
        yield BackendTarget(backend)
    finally:
        backend.close()


def kat(config: Config, connect: str | None, ops: Sequence[str] | None, largest: int = USUAL_LOG_N) -> bool:
    """The known answers, recipes up to 2^largest elements among them. True where every one came out."""
    with target(config, connect) as tested, progress() as bar:
        task = bar.add_task("known answers", total=None)
        report = known.run(
            tested, ops, largest=largest, progress=lambda done, total: bar.update(task, completed=done, total=total)
        )
    report.print(sys.stdout)
    return report.ok


def fuzz(
    config: Config,
    connect: str | None,
    ops: Sequence[str] | None,
    *,
    seed: str,
    seconds: float,
    single_round: int | None = None,
) -> bool:
    """Random and hard operands against the reference, for `seconds` or for one round. True where all agree."""
    with target(config, connect) as tested, progress() as bar:
        task = bar.add_task("elements", total=None)
        result = fuzzing.run(
            tested,
            seed=seed,
            ops=ops,
            seconds=None if single_round is not None else seconds,
            first_round=single_round or 0,
            rounds=1 if single_round is not None else None,
            progress=lambda state: bar.update(task, completed=sum(state.elements.values())),
        )
    result.print(sys.stdout)
    return result.ok
