"""The clients against real workers on the reference backend, and against peers that misbehave."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from limbd import AsyncClient, Client, RequestError, ServiceError, Status
from limbd.harness.inputs import operands
from limbd.ops.params.layout import from_ints, to_ints
from limbd.worker.link import Address, parse_report

M = 2**256 - 2**32 - 977
A = [0, 1, 3, M - 1, M, 2**256 - 1]
B = [5, 2**256 - 1, 0, M - 1, 7, 2**255]
SHAPE = (257, 8)


@pytest.fixture(scope="module")
def local() -> Iterator[Client]:
    with Client(backend="reference", timeout=60) as client:
        yield client


@pytest.fixture(scope="module")
def listening(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """A `limbd serve`: its TCP and its Unix address."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    tcp, path = f"127.0.0.1:{port}", f"unix:{tmp_path_factory.mktemp('serve')}/s"
    command = [sys.executable, "-m", "limbd.cli", "serve", "--backend", "reference"]
    process = subprocess.Popen([*command, "--listen", f"tcp://{tcp}", "--listen", path], stderr=subprocess.DEVNULL)
    try:
        wait_for(lambda: all(answers(address) for address in (tcp, path)))
        yield tcp, path
    finally:
        process.terminate()
        assert process.wait(30) == 0


def answers(address: str) -> bool:
    try:
        Address(address).connect(5).close()
    except ServiceError:
        return False
    return True


def wait_for(condition: Callable[[], bool], seconds: float = 30) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come about"
        time.sleep(0.05)


def random_array(seed: int, shape: tuple[int, int] = SHAPE) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 2**32, size=shape, dtype=np.uint32)


# --- values ---


def test_every_op_on_lists(local: Client) -> None:
    assert local.mod_mul(A, B, M) == [a * b % M for a, b in zip(A, B, strict=True)]
    assert local.mod_add(A, B, M) == [(a + b) % M for a, b in zip(A, B, strict=True)]
    assert local.mod_sub(A, B, M) == [(a - b) % M for a, b in zip(A, B, strict=True)]
    assert local.mod_exp(A, B, M) == [pow(a, b, M) for a, b in zip(A, B, strict=True)]
    assert local.mod_inv(A, M) == [0 if a % M == 0 else pow(a, -1, M) for a in A]
    assert local.mod_inv_batch(A, M) == local.mod_inv(A, M)


GOLDILOCKS = 2**64 - 2**32 + 1
BN254_FR = 0x30644E72E131A029B85045B68181585D2833E84879B9709143E1F593F0000001
OMEGA_4 = pow(7, (GOLDILOCKS - 1) // 4, GOLDILOCKS)


def values_at(coefficients: list[int], shift: int, omega: int) -> list[int]:
    """Of a polynomial, at shift omega^j."""
    points = [shift * pow(omega, j, GOLDILOCKS) for j in range(len(coefficients))]
    return [sum(c * pow(z, i, GOLDILOCKS) for i, c in enumerate(coefficients)) % GOLDILOCKS for z in points]


def test_transforms(local: Client) -> None:
    x = [1, GOLDILOCKS - 1, 0, 12345]
    plain = values_at(x, 1, OMEGA_4)
    assert local.ntt(x, "goldilocks") == plain
    assert local.ntt(x, "goldilocks", order="nr") == [plain[i] for i in (0, 2, 1, 3)]
    assert local.ntt([x[i] for i in (0, 2, 1, 3)], "goldilocks", order="RN") == plain
    assert local.ntt(x + x, "goldilocks", batch=2) == plain + plain
    assert local.ntt(x, "goldilocks", coset=True) == values_at(x, 7, OMEGA_4)
    assert local.ntt(x, "goldilocks", coset=3) == values_at(x, 3, OMEGA_4)
    other = pow(OMEGA_4, 3, GOLDILOCKS)
    assert local.ntt(x, "goldilocks", omega=other, coset=False) == values_at(x, 1, other)
    assert local.ntt(x, "goldilocks", omega=other, coset=True) == values_at(x, 7, other)
    choices: tuple[dict[str, Any], ...] = ({}, {"coset": True}, {"coset": 9, "omega": other}, {"order": "rr"})
    for options in choices:
        there = local.ntt(x, "goldilocks", **options)
        assert local.ntt(there, "goldilocks", inverse=True, **options) == x
    assert local.ntt(5) == 5 and local.ntt([]) == []
    assert to_ints(local.ntt(from_ints(x), "goldilocks")) == plain


def test_a_frame_whose_length_is_not_its_own_is_never_sent(local: Client) -> None:
    """It would wait for ever, or be taken for another question."""
    own = 1 | 1 << 12
    for op, values, param, domain in (
        ("ntt", [[1, 2]], own, ()),
        ("ntt", [[1, 2]], own, (BN254_FR - 1,)),
        ("ntt", [[1, 2]], own, (BN254_FR - 1, 5, 5)),
        ("ntt", [[1, 2]], 1, (BN254_FR - 1, 5)),
        ("mod-mul", [[1], [2]], 0, (1, 2)),
    ):
        with pytest.raises(ValueError, match="numbers between the modulus and the operands"):
            local.call(op, values, BN254_FR, param=param, domain=domain)
    for param in (-1, 1 << 32):
        with pytest.raises(ValueError, match="param"):
            local.call("ntt", [[1, 2]], BN254_FR, param=param)
    assert local.call("ntt", [[1, 2]], BN254_FR, param=own, domain=(BN254_FR - 1, 1)) == [3, BN254_FR - 1]


def test_flags_of_a_transform_are_truth_values(local: Client) -> None:
    values = [1, 2, 3, 4]
    assert local.ntt(values, inverse=2) == local.ntt(values, inverse=5) == local.ntt(values, inverse=True)  # type: ignore[arg-type]
    assert local.ntt(values, inverse=None) == local.ntt(values)  # type: ignore[arg-type]
    assert local.ntt(values, coset=np.True_) == local.ntt(values, coset=True) != local.ntt(values, coset=np.False_)  # type: ignore[arg-type]
    assert local.quotient(values, values, values, coefficients=2) == local.quotient(  # type: ignore[arg-type]
        values, values, values, coefficients=True
    )
    assert local.ntt(values, BN254_FR) == local.ntt(values, "bn254_fr")
    for field in (7 * 11, "nothing"):
        with pytest.raises(ValueError, match="limbd info"):
            local.ntt(values, field)
    with pytest.raises(ValueError, match="order 1 is none of"):
        local.ntt(values, order=1)  # type: ignore[arg-type]


def test_transforms_that_are_refused(local: Client) -> None:
    wrong: tuple[tuple[dict[str, Any], str], ...] = (
        ({"values": [1, 2, 3]}, "power of two"),
        ({"values": [1, 2, 3], "batch": 2}, "2 transforms"),
        ({"values": [1, 2], "order": "nm"}, "order 'nm'"),
        ({"values": [1, 2], "field": "secp256k1"}, "no field named 'secp256k1'"),
    )
    for arguments, words in wrong:
        with pytest.raises(ValueError, match=words):
            local.ntt(**arguments)
    with pytest.raises(RequestError) as caught:
        local.ntt([1, 2, GOLDILOCKS, 3], "goldilocks")
    assert (caught.value.status, caught.value.index) == (Status.BAD_ELEMENT, 2)
    assert str(caught.value).count("index 2") == 1
    refused: tuple[tuple[dict[str, Any], Status], ...] = (
        ({"omega": 1}, Status.BAD_DOMAIN),
        ({"coset": 0}, Status.BAD_ELEMENT),
        ({"omega": GOLDILOCKS}, Status.BAD_ELEMENT),
    )
    for options, status in refused:
        with pytest.raises(RequestError) as caught:
            local.ntt([1, 2], "goldilocks", **options)
        assert caught.value.status is status
    assert local.ntt([1, 2], "goldilocks") == [3, GOLDILOCKS - 1]


def test_the_answer_has_the_form_of_the_question(local: Client) -> None:
    assert local.mod_mul(3, 5, 7) == 1
    assert local.mod_mul((3, 4), 5, 7) == [1, 6]
    assert local.mod_mul(range(3), [2, 2, 2], 7) == [0, 2, 4]
    assert local.mod_mul([], [], 7) == []
    a = random_array(1)
    product = local.mod_mul(a, 1, 2**256 - 1)
    assert product.shape == SHAPE
    assert product.dtype == np.uint32
    assert to_ints(product) == [x % (2**256 - 1) for x in to_ints(a)]
    assert local.mod_mul(a[:0], a[:0], 7).shape == (0, 8)


def test_arrays_of_any_strides_are_right(local: Client) -> None:
    a, b = random_array(2), random_array(3)
    expected = [x * y % M for x, y in zip(to_ints(a[::-2]), to_ints(b[::-2]), strict=True)]
    assert to_ints(local.mod_mul(a[::-2], np.asfortranarray(b)[::-2], "secp256k1")) == expected


def test_numpy_integers_are_integers(local: Client) -> None:
    assert local.mod_add([np.int64(3)], [np.uint8(250)], 7) == [253 % 7]
    assert local.mod_add(np.int64(3), 1, 7) == 4


def test_wrong_values_are_refused_before_anything_is_sent(local: Client) -> None:
    arrays = (np.zeros((2, 7), np.uint32), np.zeros((2, 8), np.int64), np.zeros(8, np.uint32))
    values: tuple[Any, ...] = ([-1], [2**256], -1, *arrays)
    kinds: tuple[Any, ...] = ([1.5], 1.5, "12", b"12", [None], None, {1, 2})
    for value in values:
        with pytest.raises(ValueError):
            local.mod_inv(value, 7)
    for value in kinds:
        with pytest.raises(TypeError):
            local.mod_inv(value, 7)
    with pytest.raises(ValueError, match="a has 2, b has 3"):
        local.mod_mul([1, 2], [1, 2, 3], 7)
    with pytest.raises(ValueError, match="no field"):
        local.mod_inv(1, "secp257k1")
    with pytest.raises(ValueError):
        local.mod_inv(1, 2**256)
    with pytest.raises(ValueError):
        local.call("mod-mul", [1], 7)
    with pytest.raises(RequestError):
        local.call("mod-div", [1, 2], 7)
    assert local.mod_inv(3, 7) == 5


def test_an_error_keeps_its_status_and_the_connection_goes_on(local: Client) -> None:
    with pytest.raises(RequestError, match="BAD_MODULUS: mod-mul: the modulus is 0") as caught:
        local.mod_mul(A, B, 0)
    assert caught.value.status is Status.BAD_MODULUS
    assert local.mod_mul(3, 5, 7) == 1


# --- pipelining ---


def test_several_requests_in_flight(local: Client) -> None:
    moduli = [3, 0, 2**255, M, 1]
    pending = [local.submit("mod-mul", [A, B], m) for m in moduli]
    for m, each in reversed(list(zip(moduli, pending, strict=True))):
        if m == 0:
            with pytest.raises(RequestError):
                each.result()
        else:
            assert each.result() == [a * b % m for a, b in zip(A, B, strict=True)]
            assert each.done()


def test_reports_come_with_a_local_worker(local: Client) -> None:
    pending = local.submit("mod-mul", [A, B], M)
    pending.result()
    report = pending.report()
    assert report is not None
    assert (report.seq, report.op, report.n, report.backend, report.status) == (
        *(pending.seq, "mod-mul", len(A)),
        *("reference", "OK"),
    )
    assert report.total_ms > 0
    assert pending.report() is report
    refused = local.submit("mod-mul", [A, B], 0)
    with pytest.raises(RequestError):
        refused.result()
    told = refused.report()
    assert told is not None and told.status == "BAD_MODULUS"


def test_large_requests_do_not_block_against_unread_answers() -> None:
    """Far more than the sockets' buffers hold, all submitted before the first answer is asked for."""
    array = random_array(4, (1 << 16, 8))
    with Client(backend="null", timeout=120) as client:
        pending = [client.submit("mod-mul", [array, array], M) for _ in range(12)]
        assert not any(each.result().any() for each in pending)


def test_threads_may_share_a_client(local: Client) -> None:
    wrong: list[int] = []

    def ask(k: int) -> None:
        for i in range(20):
            if local.mod_mul(k, i, 1009) != k * i % 1009:
                wrong.append(k)

    threads = [threading.Thread(target=ask, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


# --- addresses ---


def test_tcp_and_unix(listening: tuple[str, str]) -> None:
    for address in (listening[0], f"tcp://{listening[0]}", listening[1]):
        with Client(address, timeout=60) as client:
            pending = client.submit("mod-exp", [A, B], M)
            assert pending.result() == [pow(a, b, M) for a, b in zip(A, B, strict=True)]
            assert pending.report() is None


@pytest.mark.parametrize("text", ["", "9091", "host", "host:", "host:0", "host:70000", "tcp://", "unix:", ":9091"])
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(ValueError):
        Client(text)


def test_nobody_there(tmp_path: Path) -> None:
    with pytest.raises(ServiceError, match=r"cannot connect.*limbd serve"):
        Client(f"unix:{tmp_path}/absent")


# --- peers that misbehave ---


def peer(answer: bytes) -> tuple[str, threading.Thread]:
    """Accepts one connection, reads 16 bytes, sends `answer` and closes."""
    server = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with server:
            connection, _ = server.accept()
            with connection:
                connection.recv(16)
                connection.sendall(answer)

    thread = threading.Thread(target=serve)
    thread.start()
    return f"127.0.0.1:{server.getsockname()[1]}", thread


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"", "ended"),
        (b"BCGB\0\0", "ended"),
        (b"BCGB" + bytes(4) + b"\1\0\0\0" + bytes(31), "ended"),
        (b"HTTP/1.1 400 Bad Request\r\n", "no limbd frame"),
        (b"BCGB" + bytes(4) + b"\2\0\0\0" + bytes(64), "announces 2"),
        (b"BCGB\x63\0\0\0" + bytes(4), "unknown status 99"),
    ],
)
def test_a_broken_answer_is_a_clear_error(answer: bytes, words: str) -> None:
    for ask in (sync_question, async_question):
        address, thread = peer(answer)
        with pytest.raises(ServiceError, match=words):
            ask(address)
        thread.join()


def sync_question(address: str) -> None:
    with Client(address, timeout=30) as client:
        client.mod_inv(3, 7)


def async_question(address: str) -> None:
    async def ask() -> None:
        async with AsyncClient(address, timeout=30) as client:
            await client.mod_inv(3, 7)

    asyncio.run(ask())


def test_a_worker_that_dies() -> None:
    with Client(backend="reference", timeout=60) as client:
        assert client.mod_inv(3, 7) == 5
        assert client._local is not None
        client._local.process.kill()
        with pytest.raises(ServiceError, match="the local worker ended with exit status -9"):
            client.mod_inv(3, 7)
        with pytest.raises(ServiceError):
            client.mod_inv(3, 7)


def test_a_worker_that_cannot_start_says_why() -> None:
    with (
        Client(cache="/dev/null/no", devices=(0, 0), timeout=60) as client,
        pytest.raises(ServiceError, match="status 2"),
    ):
        client.mod_inv(3, 7)


def test_a_closed_client() -> None:
    client = Client(backend="reference")
    client.close()
    client.close()
    with pytest.raises(ServiceError, match="closed"):
        client.mod_inv(3, 7)


def test_no_answer_in_time() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        with Client(address, timeout=0.2) as client, pytest.raises(ServiceError, match="DEADLINE_EXCEEDED"):
            client.mod_inv(3, 7)


# --- asyncio ---


def test_async_calls_overlap_and_keep_their_answers(listening: tuple[str, str]) -> None:
    async def ask(address: str | None) -> None:
        async with AsyncClient(address, backend="reference", timeout=60) as client:
            answers = await asyncio.gather(*(client.mod_mul(A, k, M) for k in range(50)))
            assert answers == [[a * k % M for a in A] for k in range(50)]
            array = random_array(5, (1 << 15, 8))
            copies = await asyncio.gather(*(client.mod_mul(array, 1, 2**256 - 189) for _ in range(4)))
            assert all((copy == copies[0]).all() for copy in copies)
            with pytest.raises(RequestError, match="the modulus is 0" if address is None else "BAD_MODULUS"):
                await client.mod_inv(A, 0)
            assert await client.mod_inv(3, 7) == 5
            transforms = await asyncio.gather(*(client.ntt([k, 1], "goldilocks") for k in range(1, 5)))
            assert transforms == [[k + 1, k - 1] for k in range(1, 5)]

    for address in (*listening, None):
        asyncio.run(ask(address))


def test_a_cancelled_call_leaves_the_connection_in_step() -> None:
    async def ask() -> None:
        async with AsyncClient(backend="reference", timeout=60) as client:
            late = asyncio.create_task(client.mod_exp(from_ints(operands_of(400)), 2**256 - 1, M))
            await asyncio.sleep(0.01)
            late.cancel()
            assert await client.mod_inv(3, 7) == 5

    asyncio.run(ask())


def operands_of(n: int) -> list[int]:
    import random

    return operands(random.Random(1), M, n)


# --- reports ---


def test_report_lines() -> None:
    line = (
        "seq=1 op=mod-inv n=100000 backend=cuda device=0 kernel=0.0681ms h2d=0.0583ms d2h=0.0582ms total=0.8210ms "
        "status=OK"
    )
    report = parse_report(line)
    assert report is not None
    assert (report.kernel_ms, report.h2d_ms, report.d2h_ms, report.total_ms) == (0.0681, 0.0583, 0.0582, 0.821)
    failed = parse_report("seq=2 op=mod-inv n=4 kernel=0.0000ms status=BAD_ELEMENT index=3")
    assert failed is not None
    assert (failed.index, failed.status) == (3, "BAD_ELEMENT")
    assert parse_report("backend cpu: the first that works") is None
    assert parse_report("seq=x op=y") is None
