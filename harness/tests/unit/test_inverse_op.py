"""Which op the clients and `limbd call` send for mod_inv: by n, by what the worker knows, and never another answer."""

from __future__ import annotations

import asyncio
import contextlib
import random
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from limbd import AsyncClient, Client, RequestError, Status
from limbd.harness.inputs import Residues, operands
from limbd.harness.live import serving
from limbd.harness.targets import BackendTarget
from limbd.ops import by_id
from limbd.ops.base import Limbs
from limbd.ops.params.layout import from_ints, to_ints
from limbd.ops.tuning import BATCH_TABLE, NEVER_BATCHED
from limbd.worker import inverse_op
from limbd.worker.device.reference import ReferenceBackend
from limbd.worker.wire import VERSION_1, response_header

MOD_INV, BATCHED = 0x05, 0x0A
LONG = NEVER_BATCHED + 1
SECP256K1 = 2**256 - 2**32 - 977
# Primes, composites with few and with many non-units, even ones, 1.
MODULI = (SECP256K1, 2**255 - 19, (2**128 - 159) * (2**127 - 1), 3 * 5 * 7 * 11, 2**256 - 2, 2**255, 15, 2, 1)


class Peer:
    """A worker that knows the ops of `known` alone: it answers others as version 1 says, by UNKNOWN_OP and the end of the
    connection. asked: (connection, op, n) of every request. silent: connections, by number, that get no answer."""

    def __init__(self, known: Sequence[int], silent: Sequence[int] = ()) -> None:
        self.known, self.silent = known, silent
        self.asked: list[tuple[int, int, int]] = []
        self._server = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._server.getsockname()[1]}"
        self._threads = [threading.Thread(target=self._listen)]
        self._threads[0].start()

    def __enter__(self) -> Peer:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(30)
        self._server.close()

    def _listen(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._server.accept()
                self._threads.append(threading.Thread(target=self._serve, args=(connection, len(self._threads) - 1)))
                self._threads[-1].start()

    def _serve(self, connection: socket.socket, number: int) -> None:
        with connection, connection.makefile("rb") as stream:
            while head := stream.read(16):
                told = VERSION_1.request.unpack(head)
                self.asked.append((number, told["op"], told["n"]))
                if number in self.silent:
                    stream.read()
                elif told["op"] not in self.known:
                    connection.sendall(response_header(Status.UNKNOWN_OP, 0))
                    return
                else:
                    connection.sendall(self._answer(told["op"], told["n"], stream.read(32 * (1 + told["n"]))))

    def _answer(self, op: int, n: int, payload: bytes) -> bytes:
        modulus, words = int.from_bytes(payload[:32], "little"), np.frombuffer(payload[32:], "<u4").reshape(n, 8)
        results = BackendTarget(ReferenceBackend()).answer(by_id(op).name, Residues(modulus), {"x": words})
        return response_header(Status.OK, n) + results.tobytes()


def right(x: Limbs, modulus: int) -> list[int]:
    return to_ints(BackendTarget(ReferenceBackend()).answer("mod-inv", Residues(modulus), {"x": x}))


def hard(modulus: int, n: int = LONG) -> Limbs:
    """Zeros, multiples of the modulus, units and non-units."""
    return from_ints([0, modulus, *operands(random.Random(modulus), modulus, n - 2)])


def ask_async(address: str | None, x: Limbs, modulus: int) -> Limbs:
    async def ask() -> Limbs:
        async with AsyncClient(address, backend="reference", timeout=60) as client:
            answer: Limbs = await client.mod_inv(x, modulus)
            return answer

    return asyncio.run(ask())


# --- the choice ---


def test_the_bound_is_below_every_crossover() -> None:
    assert all(tuning.row(NEVER_BATCHED) is None for tuning in BATCH_TABLE.values())
    assert any(tuning.row(NEVER_BATCHED + 1) is not None for tuning in BATCH_TABLE.values())
    readme = Path(__file__).resolve().parents[3] / "README.md"
    assert f"More than {NEVER_BATCHED} elements" in readme.read_text()


@pytest.fixture(scope="module")
def local() -> Iterator[Client]:
    with Client(backend="reference", timeout=60) as client:
        yield client


@pytest.mark.parametrize(("n", "op"), [(1, "mod-inv"), (LONG - 1, "mod-inv"), (LONG, "mod-inv-batch")])
def test_a_local_worker_is_asked_by_n(local: Client, n: int, op: str) -> None:
    answered = local._channel._count
    local.mod_inv(hard(SECP256K1, max(3, n))[:n], SECP256K1)
    assert local._channel._count == answered + 1  # nothing was asked beside it
    assert local.inverse_op(n) == op
    assert local._local is not None
    report = local._local.journal.report(answered + 1, 30)
    assert report is not None and (report.op, report.n) == (op, n)


@pytest.mark.parametrize("modulus", MODULI, ids=hex)
def test_the_answers_are_mod_invs(local: Client, modulus: int) -> None:
    x = hard(modulus)
    expected = right(x, modulus)
    assert to_ints(local.mod_inv(x, modulus)) == expected
    assert local.mod_inv(to_ints(x), modulus) == expected
    assert to_ints(local.call("mod-inv", [x], modulus)) == expected
    assert to_ints(ask_async(None, x, modulus)) == expected


@pytest.mark.parametrize("modulus", MODULI, ids=hex)
def test_the_answers_of_the_kernels_are_mod_invs(modulus: int, kernel_cache: Path) -> None:
    x = hard(modulus, 2 * LONG)
    with Client(backend="cpu", cache=kernel_cache, timeout=120) as client:
        assert client.inverse_op(len(x)) == "mod-inv-batch"
        assert to_ints(client.mod_inv(x, modulus)) == right(x, modulus)


def test_call_asks_for_exactly_its_op(local: Client) -> None:
    for op in ("mod-inv", "mod-inv-batch"):
        pending = local.submit(op, [hard(15)], 15)
        pending.result()
        report = pending.report()
        assert report is not None and report.op == op


def test_a_served_worker_is_asked_once() -> None:
    x = hard(SECP256K1)
    with serving() as server:
        with Client(server.addresses[0], timeout=60) as client:
            assert [to_ints(client.mod_inv(x, SECP256K1)) for _ in range(2)] == [right(x, SECP256K1)] * 2
        assert to_ints(ask_async(server.addresses[0], x, SECP256K1)) == right(x, SECP256K1)
    lines = [line for line in server.lines if "seq=" in line]
    asked = [f"op=mod-inv-batch n={n} " for n in (0, LONG, LONG, 0, LONG)]
    assert len(lines) == len(asked) and all(part in line for part, line in zip(asked, lines, strict=True))


# --- workers that are older ---


def test_an_old_worker_gets_mod_inv_and_no_connection_is_lost() -> None:
    x = hard(15)
    with Peer(known=(MOD_INV,)) as peer:
        with Client(peer.address, timeout=60) as client:
            before = client.submit("mod-inv", [x], 15)
            assert [to_ints(client.mod_inv(x, m)) for m in (15, SECP256K1, 15)] == [
                right(x, m) for m in (15, SECP256K1, 15)
            ]
            assert client.inverse_op(LONG) == "mod-inv"
            assert to_ints(before.result()) == right(x, 15)
        assert [(op, n) for number, op, n in peer.asked if number == 0] == [(MOD_INV, LONG)] * 4
        assert [each for each in peer.asked if each[0] != 0] == [(1, BATCHED, 0)]


def test_an_old_worker_and_asyncio() -> None:
    x = hard(SECP256K1)

    async def ask(address: str) -> None:
        async with AsyncClient(address, timeout=60) as client:
            answers = await asyncio.gather(*(client.mod_inv(x, m) for m in MODULI))
            assert [to_ints(answer) for answer in answers] == [right(x, m) for m in MODULI]
            assert await client.mod_inv(3, 7) == 5

    with Peer(known=(MOD_INV,)) as peer:
        asyncio.run(ask(peer.address))
        assert sorted(peer.asked) == [(0, MOD_INV, 1)] + [(0, MOD_INV, LONG)] * len(MODULI) + [(1, BATCHED, 0)]


def test_a_worker_that_knows_it_is_asked_for_it() -> None:
    x = hard(15)
    with Peer(known=(MOD_INV, BATCHED)) as peer:
        with Client(peer.address, timeout=60) as client:
            assert to_ints(client.mod_inv(x, 15)) == right(x, 15)
            assert client.mod_inv(3, 7) == 5
        assert peer.asked == [(1, BATCHED, 0), (0, BATCHED, LONG), (0, MOD_INV, 1)]


def test_a_worker_that_does_not_say_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that serves a connection at a time would never answer on a second."""
    monkeypatch.setattr(inverse_op, "ANSWER_SECONDS", 0.2)
    x = hard(15)
    with Peer(known=(MOD_INV, BATCHED), silent=(1,)) as peer:
        with Client(peer.address, timeout=60) as client:
            assert [to_ints(client.mod_inv(x, 15)) for _ in range(2)] == [right(x, 15)] * 2
        assert [op for _, op, _ in peer.asked] == [BATCHED, MOD_INV, MOD_INV]


def test_the_question_takes_no_longer_than_the_client_waits() -> None:
    with Peer(known=(MOD_INV, BATCHED), silent=(1,)) as peer, Client(peer.address, timeout=0.5) as client:
        begin = time.monotonic()
        assert client.inverse_op(LONG) == "mod-inv"
        assert time.monotonic() - begin < inverse_op.ANSWER_SECONDS / 2


def test_an_old_worker_asked_for_the_op_itself_says_that_it_does_not_know_it() -> None:
    with (
        Peer(known=(MOD_INV,)) as peer,
        Client(peer.address, timeout=60) as client,
        pytest.raises(RequestError, match="UNKNOWN_OP"),
    ):
        client.mod_inv_batch(hard(15), 15)


# --- the command ---


@pytest.mark.parametrize(
    ("known", "words", "ops"),
    [
        ((MOD_INV, BATCHED), (), [BATCHED, BATCHED]),
        ((MOD_INV, BATCHED), ("--exact-op",), [MOD_INV]),
        ((MOD_INV,), (), [BATCHED, MOD_INV]),
        ((MOD_INV,), ("--exact-op",), [MOD_INV]),
    ],
)
def test_limbd_call(known: tuple[int, ...], words: tuple[str, ...], ops: list[int], tmp_path: Path) -> None:
    x = hard(15)
    np.save(tmp_path / "x.npy", x)
    command = [sys.executable, "-m", "limbd.cli", "call", "mod-inv", "-m", "15", "x.npy", "--out", "y.npy", *words]
    with Peer(known) as peer:
        subprocess.run([*command, "--connect", peer.address], cwd=tmp_path, check=True, timeout=60)
        assert [op for _, op, _ in peer.asked] == ops
    assert to_ints(np.load(tmp_path / "y.npy")) == right(x, 15)
