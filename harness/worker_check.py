"""The whole worker on a device: streaming through a memory budget, pipelining, round trips, a domain's first use, a killed
child.

Each case is a real `limbd` process; the results are compared with the reference.
"""

from __future__ import annotations

import dataclasses
import os
import random
import signal
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from limbd.harness import bench, live, transport_check
from limbd.ops import OPS, by_name
from limbd.ops.base import Limbs, Request, Traits
from limbd.ops.status import LimbdError
from limbd.worker.client import Client
from limbd.worker.device.cache import Cache
from limbd.worker.device.cuda import CudaBackend

BUDGET = 64 << 20
BUDGET_N = 10**6
# Of a transform; so many elements are many of them.
BUDGET_LOG_N = 12

# 1 MB of operands a request.
PIPELINED, PIPELINED_N = 64, 16_384

KILLS = 10

# log2 of a transform -> milliseconds at most that a domain's factors may take when it is used first.
FIRST_USE_MS = {20: 30.0, 24: 30.0}
FIRST_USES = 5

Verdict = tuple[bool, dict[str, Any]]


def cases(device: int, cache: Path | None) -> dict[str, Callable[[], Verdict]]:
    """Name -> what runs the case: (whether it holds, what was measured)."""
    table: dict[str, Callable[[], Verdict]] = {}
    for op in OPS:
        table[f"budget {op.name}"] = lambda name=op.name: check_budget(device, cache, name)  # type: ignore[misc]
    table["pipelined"] = lambda: check_pipelined(device, cache)
    table["round trip null"] = lambda: check_round_trip("null", device, cache, limit_ms=0.3)
    table["round trip cuda"] = lambda: check_round_trip("cuda", device, cache, limit_ms=None)
    table["transport"] = check_transport
    for k, limit in FIRST_USE_MS.items():
        table[f"first use of 2^{k}"] = lambda k=k, ms=limit: check_first_use(device, cache, k, ms)  # type: ignore[misc]
    table["killed child"] = lambda: check_killed("cuda", device, cache)
    return table


def check_budget(device: int, cache: Path | None, name: str) -> Verdict:
    """A batch several times the budget: the same bytes as in one piece, the pool's peak under the budget, and of element-wise
    ops, whose pieces overlap, the time at most 1.2 times the larger of its copies (in and out at once, alone) and its
    kernel (alone, in one piece).

    The time is the device's, from the first copy's beginning to the last one's end; the host's wall time of the call is
    recorded beside it.
    """
    backend = CudaBackend(device, memory=BUDGET, cache=Cache(cache))
    wide = CudaBackend(device, cache=Cache(cache))
    try:
        request, payload = _request(name, BUDGET_N)
        limit = 1.2 if request.op.elementwise else None
        whole, cut, scrap = (np.zeros((request.n, 8), dtype="<u4") for _ in range(3))
        for memory in (payload, whole, cut, scrap):
            wide.register(memory.data.cast("B"))
        one = dataclasses.replace(wide.traits(), whole=True)
        parts = [_timed(wide, request, one, whole)[1] for _ in range(9)]
        both = wide.measure_copies(request, request.op.plan(request, one), scrap.data.cast("B"), repeats=20)
        _timed(backend, request, backend.traits(), cut)
        backend.peak_memory(reset=True)
        runs = [_timed(backend, request, backend.traits(), cut) for _ in range(25)][5:]
        peak = backend.peak_memory()
        walls, spans = [wall for wall, _ in runs], [outcome.span_ms for _, outcome in runs]
        floor = max(statistics.median(both), min(o.kernel_ms for o in parts))
        same = bool((whole == cut).all()) and bench.check(request, whole) > 0
        ratio = statistics.median(spans) / floor
        return same and peak <= BUDGET and (limit is None or ratio <= limit), {
            "n": request.n,
            "budget": BUDGET,
            "peak": peak,
            "same": same,
            "ratio": ratio,
            "limit": limit,
            "wall_ratio": statistics.median(walls) / floor,
            "h2d_ms": min(o.h2d_ms for o in parts),
            "d2h_ms": min(o.d2h_ms for o in parts),
            "kernel_ms": min(o.kernel_ms for o in parts),
            "copies_ms": statistics.median(both),
            "spans_ms": spans,
            "walls_ms": walls,
        }
    finally:
        backend.close()
        wide.close()


def check_pipelined(device: int, cache: Path | None) -> Verdict:
    """64 requests of 1 MB on one connection: pipelined at most 0.7 of one at a time, answers right and in order."""
    batches = [_request("mod-mul", PIPELINED_N, seed)[0] for seed in range(PIPELINED)]
    with serving("cuda", device, cache) as (_, address), Client(address) as client:
        _one_at_a_time(client, batches[:4])
        single, piped = [], []
        for _ in range(5):
            started = time.perf_counter()
            _one_at_a_time(client, batches)
            single.append(time.perf_counter() - started)
            started = time.perf_counter()
            answers = _pipelined(client, batches)
            piped.append(time.perf_counter() - started)
    right = all(bench.check(batch, answer) for batch, answer in zip(batches, answers, strict=True))
    ratio = statistics.median(piped) / statistics.median(single)
    return right and ratio <= 0.7, {"single_s": single, "pipelined_s": piped, "ratio": ratio, "limit": 0.7}


def check_first_use(device: int, cache: Path | None, k: int, limit_ms: float) -> Verdict:
    """Transforms over domains that the device has not seen: how much longer the first takes than the second over the same
    domain, by the host's clock, with pinned memory. One domain before them has the kernels compiled and loaded. The last result
    is judged: of a long one that takes seconds."""
    backend = CudaBackend(device, cache=Cache(cache))
    try:
        request, payload = bench.batch_of(bench.Case("ntt", "bn254_fr", 1 << k, param=k), 0)
        result = np.zeros((request.n, 8), dtype="<u4")
        for memory in (payload, result):
            backend.register(memory.data.cast("B"))
        omega, m = request.constants["omega"], request.modulus
        more = []
        for turn in range(FIRST_USES + 1):
            asked = dataclasses.replace(request, constants={**request.constants, "omega": pow(omega, 2 * turn + 1, m)})
            first, second = (_timed(backend, asked, backend.traits(), result)[0] for _ in range(2))
            more.append(first - second)
        right = bench.check(asked, result) > 0
        return right and statistics.median(more[1:]) <= limit_ms, {
            "added_ms": more[1:],
            "added_ms_with_compiling": more[0],
            "limit_ms": limit_ms,
            "k": k,
        }
    finally:
        backend.close()


def check_round_trip(backend: str, device: int, cache: Path | None, limit_ms: float | None) -> Verdict:
    """The median round trip of a 100-element mod-mul through `limbd serve` on a Unix socket."""
    request, _ = _request("mod-mul", 100)
    with serving(backend, device, cache) as (_, address), Client(address) as client:
        samples = []
        for _ in range(2200):
            started = time.perf_counter()
            _ask(client, request)
            samples.append((time.perf_counter() - started) * 1e3)
    median = statistics.median(samples[200:])
    return limit_ms is None or median <= limit_ms, {"median_ms": median, "limit_ms": limit_ms, "samples": samples[200:]}


def check_transport() -> Verdict:
    """What transport_check measures on the null backend: round trip, the parent's own time a frame, memory."""
    figures = transport_check.measure()
    return all(figure.limit is None or figure.value <= figure.limit for figure in figures), {
        figure.name: figure.value for figure in figures
    }


def check_killed(backend: str, device: int, cache: Path | None) -> Verdict:
    """SIGKILL of the child at random moments of a batch, with another client's batch queued: the first gets an error or
    the right answer, the other the right answer, and both are answered rightly afterwards."""
    rng = random.Random(7)
    first, other = _request("mod-exp", 200_000)[0], _request("mod-mul", 5_000, 1)[0]
    outcomes: list[str] = []
    with serving(backend, device, cache) as (server, address), Client(address) as a, Client(address) as b:
        started = time.perf_counter()
        _ask(a, first)
        _ask(a, first)
        usual = (time.perf_counter() - started) / 2
        for _ in range(KILLS):
            pending = a.submit("mod-exp", list(first.arrays.values()), first.modulus)
            queued = b.submit("mod-mul", list(other.arrays.values()), other.modulus)
            time.sleep(rng.uniform(0, usual))
            os.kill(server.child(), signal.SIGKILL)
            outcomes.append(_outcome(pending, first))
            if _outcome(queued, other) != "right":
                outcomes.append("other wrong")
            if not bench.check(other, _ask(b, other)):
                outcomes.append("wrong afterwards")
    return all(o != "wrong" and not o.startswith(("other", "wrong")) for o in outcomes), {"outcomes": outcomes}


# --- a worker of our own -------------------------------------------------------------------------------------------------


@contextmanager
def serving(backend: str, device: int, cache: Path | None) -> Iterator[tuple[live.Serving, str]]:
    """A `limbd serve` on a Unix socket in a fresh folder, and its address."""
    with tempfile.TemporaryDirectory(prefix="limbd-") as folder:
        options = ["--device", str(device), *(["--cache-dir", str(cache)] if cache else [])]
        with live.serving(*options, backend=backend, listen=[f"unix:{folder}/socket"]) as server:
            yield server, server.addresses[0]


# --- asking ----------------------------------------------------------------------------------------------------------------


def _request(name: str, n: int, seed: int = 0) -> tuple[Request, Limbs]:
    """A request modulo the secp256k1 prime, or of short transforms of about n elements, and its payload as one array."""
    case = bench.Case(name, "secp256k1_fp", n)
    if not by_name(name).elementwise:
        case = bench.Case(name, "bn254_fr", -(-n >> BUDGET_LOG_N) << BUDGET_LOG_N, param=BUDGET_LOG_N)
    return bench.batch_of(case, seed)


def _timed(backend: CudaBackend, request: Request, traits: Traits, result: Limbs) -> tuple[float, Any]:
    plan = request.op.plan(request, traits)
    started = time.perf_counter()
    outcome = backend.run(request, plan, result.data.cast("B"))
    return (time.perf_counter() - started) * 1e3, outcome


def _ask(client: Client, request: Request) -> Limbs:
    answer: Limbs = client.call(request.op.name, list(request.arrays.values()), request.modulus)
    return answer


def _one_at_a_time(client: Client, batches: list[Request]) -> None:
    for batch in batches:
        _ask(client, batch)


def _pipelined(client: Client, batches: list[Request]) -> list[Limbs]:
    pending = [client.submit(b.op.name, list(b.arrays.values()), b.modulus) for b in batches]
    return [p.result() for p in pending]


def _outcome(pending: Any, request: Request) -> str:
    """right, an error's name, or "wrong"."""
    try:
        answer = pending.result()
    except LimbdError as error:
        return error.status.name
    try:
        bench.check(request, answer)
    except AssertionError:
        return "wrong"
    return "right"
