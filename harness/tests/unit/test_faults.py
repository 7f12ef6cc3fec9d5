"""What the worker survives: children that are killed, clients that leave, signals, full limits."""

from __future__ import annotations

import contextlib
import os
import random
import resource
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import gmpy2
import pytest

from limbd.harness.live import (
    RawClient,
    Serving,
    children,
    command,
    descriptors,
    element,
    frame,
    memory_bytes,
    serving,
    wait_until,
)
from limbd.ops.status import Status
from limbd.worker.wire import request_header, response_header

P = 2**255 - 19
GOOD = frame(1, 7, [3], [5])
GOOD_ANSWER = response_header(0, 1) + element(1)


def exponentiation(n: int, seed: int) -> tuple[bytes, bytes]:
    """A batch that takes the reference about 40 us an element, and its results."""
    rng = random.Random(seed)
    bases, exponents = ([rng.getrandbits(256) for _ in range(n)] for _ in range(2))
    results = b"".join(element(int(gmpy2.powmod(x, y, P))) for x, y in zip(bases, exponents, strict=True))
    return frame(4, P, bases, exponents), results


def running(server: Serving) -> bool:
    """The worker's child is using the processor: a batch is under way."""

    def ticks() -> int:
        fields = Path(f"/proc/{server.child()}/stat").read_text().rsplit(")", 1)[1].split()
        return int(fields[11]) + int(fields[12])

    before = ticks()
    time.sleep(0.03)
    return ticks() > before


def started(server: Serving) -> int:
    """Children that have said hello."""
    return sum(line.startswith("limbd: backend=") for line in server.lines)


@pytest.mark.parametrize("backend", ["reference", "cpu"])
def test_a_child_killed_at_ten_random_moments(backend: str) -> None:
    rng = random.Random(20261130)
    batch, expected = exponentiation(3000, 1)
    other, other_expected = exponentiation(50, 2)
    outcomes = []
    with (
        serving(backend=backend) as server,
        RawClient(server.addresses[0]) as one,
        RawClient(server.addresses[0]) as two,
    ):
        assert one.ask(batch) == (0, expected), "a batch that nobody disturbs"
        for _ in range(10):
            victim = server.child()
            one.send(batch)
            two.send(other)
            time.sleep(rng.uniform(0, 0.12))
            os.kill(victim, signal.SIGKILL)
            status, results = one.answer()
            assert (status, results) in ((0, expected), (Status.POISON_REQUEST, b"")), status
            outcomes.append(Status(status))
            assert two.answer() == (0, other_expected)
            wait_until(lambda victim=victim: server.children() not in ([], [victim]), "a new child")  # type: ignore[misc]
        assert outcomes.count(Status.OK) == 10, "one death a request: every one is run again"
        assert one.ask(batch) == (0, expected) and two.ask(other) == (0, other_expected)
        assert server.stop() == 0


def test_a_request_that_sees_two_deaths_gets_no_third_try() -> None:
    batch, _ = exponentiation(20_000, 3)
    with serving() as server, RawClient(server.addresses[0]) as one, RawClient(server.addresses[0]) as two:
        one.send(batch)
        for round_ in (1, 2):
            wait_until(lambda round_=round_: started(server) == round_, "a child to be ready")  # type: ignore[misc]
            wait_until(lambda: running(server), "the batch to run")
            victim = server.child()
            os.kill(victim, signal.SIGKILL)
            wait_until(lambda victim=victim: victim not in server.children(), "its death")  # type: ignore[misc]
        assert one.answer() == (Status.POISON_REQUEST, b"")
        assert two.ask(GOOD) == (0, element(1)) and one.ask(GOOD) == (0, element(1))
        assert any("killed by SIGKILL" in line for line in server.lines)


def test_a_child_that_dies_of_a_signal_without_a_name() -> None:
    """Most real-time signals have none."""
    with serving() as server, RawClient(server.addresses[0]) as client:
        os.kill(server.child(), signal.SIGRTMIN + 6)
        assert client.ask(GOOD) == (0, element(1))
        assert any(f"killed by signal {signal.SIGRTMIN + 6}" in line for line in server.lines)


@pytest.mark.skipif(shutil.which("g++") is None, reason="only the cpu backend compiles here")
@pytest.mark.parametrize("victim", ["parent", "child"])
def test_a_compilation_cut_off_leaves_nothing_on_disk(victim: str, tmp_path: Path) -> None:
    folder = tmp_path / "temporary"
    folder.mkdir()
    environment = {**os.environ, "TMPDIR": str(folder)}
    arguments = command("pipe", "--backend", "cpu", "--cache-dir", str(tmp_path / "cache"))
    with subprocess.Popen(
        arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment
    ) as process:
        assert process.stdin and process.stdout
        process.stdin.write(GOOD)
        process.stdin.flush()
        wait_until(lambda: any(folder.glob("limbd-compile-*")), "a compilation")
        os.kill(process.pid if victim == "parent" else children(process.pid)[0], signal.SIGKILL)
        if victim == "child":
            assert process.stdout.read(len(GOOD_ANSWER)) == GOOD_ANSWER, "it is compiled again"
    wait_until(lambda: not any(folder.glob("limbd-*")), "the compiler's folder to go", 10)


def test_nothing_is_left_behind_when_the_worker_is_killed() -> None:
    process = subprocess.Popen(
        command("serve", "--backend", "reference", "--listen", "tcp://127.0.0.1:0"),
        stderr=subprocess.PIPE,
    )
    server = Serving(process, 1)
    child = server.child()
    before = set(Path("/dev/shm").iterdir())
    process.kill()
    process.wait()
    wait_until(lambda: not Path(f"/proc/{child}").exists(), "the child to leave with its parent", 10)
    assert set(Path("/dev/shm").iterdir()) <= before


def reset(client: RawClient) -> None:
    """Leave as a process that is killed does: with a reset where there is unread input."""
    client.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.sock.close()


@pytest.mark.parametrize("transport", [0, 1], ids=["tcp", "unix"])
def test_clients_that_leave(transport: int, tmp_path: Path) -> None:
    """Mid-payload, while queued and while running: their memory is free again, and others are served."""
    batch, expected = exponentiation(4000, 4)
    addresses = ("tcp://127.0.0.1:0", f"unix:{tmp_path}/s")
    with serving("--quiet", listen=addresses) as server, RawClient(server.addresses[transport]) as witness:
        address = server.addresses[transport]
        assert witness.ask(batch) == (0, expected)
        idle_descriptors = descriptors(server.process.pid)
        idle_memory = memory_bytes(server.process.pid, "Pss_Shmem")
        for _ in range(10):
            for part in (10, 100, len(batch) // 2, len(batch) - 1, len(batch)):
                leaver = RawClient(address)
                leaver.send(batch[:part])
                reset(leaver)
        started = time.monotonic()
        assert witness.ask(GOOD) == (0, element(1))
        assert time.monotonic() - started < 10, "queued requests of clients that left are not run"
        wait_until(lambda: descriptors(server.process.pid) <= idle_descriptors, "descriptors to be closed")
        assert witness.ask(batch) == (0, expected)
        assert memory_bytes(server.process.pid, "Pss_Shmem") < idle_memory + (64 << 20)


def test_sigterm_when_idle() -> None:
    with serving() as server, RawClient(server.addresses[0]) as client:
        assert client.ask(GOOD) == (0, element(1))
        started = time.monotonic()
        assert server.stop() == 0
        assert client.ended()
        assert time.monotonic() - started < 5


def test_sigterm_mid_batch_finishes_it() -> None:
    batch, expected = exponentiation(8000, 5)
    with serving() as server, RawClient(server.addresses[0]) as one, RawClient(server.addresses[0]) as half:
        one.send(batch + GOOD)
        half.send(batch[: len(batch) // 2])
        wait_until(lambda: running(server), "the batch to run")
        server.process.terminate()
        assert one.answer() == (0, expected)
        assert one.answer() == (0, element(1))
        assert one.ended() and half.ended()
        assert server.process.wait(30) == 0


def test_sigterm_in_a_pipe_finishes_what_is_in_flight() -> None:
    batch, expected = exponentiation(8000, 6)
    process = subprocess.Popen(
        command("pipe", "--backend", "reference"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdin and process.stdout and process.stderr
    with process:
        process.stdin.write(GOOD + batch)
        process.stdin.flush()
        assert process.stdout.read(len(GOOD_ANSWER)) == GOOD_ANSWER
        time.sleep(0.1)
        process.terminate()
        assert process.stdout.read() == response_header(0, 8000) + expected
        assert process.wait(30) == 0


def test_sigterm_in_a_pipe_that_is_idle_or_inside_a_frame() -> None:
    large = frame(5, P, range(40_000))
    for unfinished in (b"", GOOD[:40], large[: len(large) // 2]):
        process = subprocess.Popen(
            command("pipe", "--backend", "reference"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        with process:
            assert process.stdin and process.stdout
            process.stdin.write(GOOD + unfinished)
            process.stdin.flush()
            assert process.stdout.read(len(GOOD_ANSWER)) == GOOD_ANSWER
            process.terminate()
            assert process.stdout.read() == b""
            assert process.wait(10) == 0


def test_a_second_signal_stops_at_once(tmp_path: Path) -> None:
    batch, _ = exponentiation(60_000, 7)
    path = tmp_path / "s"
    with serving(listen=(f"unix:{path}",)) as server, RawClient(server.addresses[0]) as client:
        client.send(batch)
        wait_until(lambda: running(server), "the batch to run")
        child = server.child()
        server.process.terminate()
        time.sleep(0.2)
        assert server.process.poll() is None, "it is finishing what is in flight"
        server.process.terminate()
        assert server.process.wait(5) == 128 + signal.SIGTERM
        wait_until(lambda: not Path(f"/proc/{child}").exists(), "the child to be gone", 5)
        assert not path.exists()


def serve_fails(*addresses: str) -> str:
    flags = [flag for address in addresses for flag in ("--listen", address)]
    done = subprocess.run(command("serve", "--backend", "null", *flags), capture_output=True, timeout=60)
    assert done.returncode == 1, done
    assert b"Traceback" not in done.stderr
    return done.stderr.decode()


def test_addresses_that_are_refused(tmp_path: Path) -> None:
    for address in ("tcp://0.0.0.0:0", "tcp://[::]:0", "tcp://192.0.2.1:0"):
        text = serve_fails(address)
        assert "not authenticated" in text and "127.0.0.1" in text
    with socket.create_server(("127.0.0.1", 0)) as taken:
        text = serve_fails(f"tcp://127.0.0.1:{taken.getsockname()[1]}")
        assert "in use" in text and "another port" in text
    file = tmp_path / "file"
    file.write_text("precious")
    assert "no socket" in serve_fails(f"unix:{file}")
    assert file.read_text() == "precious"
    assert "too long" in serve_fails(f"unix:{tmp_path}/{'x' * 200}")
    assert "too long" in serve_fails(f"tcp://{'x' * 64}:0")


def test_a_stale_unix_socket_is_replaced_and_a_live_one_is_not(tmp_path: Path) -> None:
    path = tmp_path / "s"
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(str(path))
    assert path.exists()
    with serving(listen=(f"unix:{path}",)) as server:
        assert path.stat().st_mode & 0o777 == 0o600
        assert "another process answers there" in serve_fails(f"unix:{path}")
        with RawClient(server.addresses[0]) as client:
            assert client.ask(GOOD) == (0, element(1))
        assert server.stop() == 0
    assert not path.exists()


def test_a_socket_file_that_somebody_replaced_stays(tmp_path: Path) -> None:
    path = tmp_path / "s"
    with serving(listen=(f"unix:{path}",)) as server, socket.socket(socket.AF_UNIX) as other:
        path.unlink()
        other.bind(str(path))
        assert server.stop() == 0
        assert path.exists()


@contextlib.contextmanager
def limited_server(
    limits: str, setup: str = "", listen: str = "tcp://127.0.0.1:0"
) -> Iterator[subprocess.Popen[bytes]]:
    """A worker whose limits no option sets; it ends with the with block, also where a test fails in it."""
    program = (
        "import sys, resource\n"
        "from limbd.worker.config import Config, Limits\n"
        f"from limbd.worker.server import run_serve\n{setup}\n"
        f"sys.exit(run_serve(Config(backend='null', listen=({listen!r},), limits=Limits({limits}))))"
    )
    with subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.PIPE) as process:
        try:
            yield process
        finally:
            process.kill()


def test_too_many_connections_get_an_error_then_the_end() -> None:
    with limited_server("connections=3") as process:
        server = Serving(process, 1)
        with contextlib.ExitStack() as stack:
            clients = [stack.enter_context(RawClient(server.addresses[0])) for _ in range(3)]
            assert all(client.ask(GOOD)[0] == 0 for client in clients)
            with RawClient(server.addresses[0]) as fourth:
                assert fourth.answer() == (Status.BUSY, b"")
                assert fourth.ended()
            clients[0].sock.close()

            def accepted() -> bool:
                with RawClient(server.addresses[0]) as again:
                    again.sock.settimeout(10)
                    return again.ask(GOOD)[0] == 0

            wait_until(accepted, "the place to be free again")
        assert server.stop() == 0


def test_the_descriptor_limit_allows_the_connections_that_are_announced() -> None:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    setup = "resource.setrlimit(resource.RLIMIT_NOFILE, (64, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))"
    with limited_server("connections=100", setup) as process:
        server = Serving(process, 1)
        soft = resource.prlimit(process.pid, resource.RLIMIT_NOFILE)[0]
        assert soft == hard or soft > 100 + 50
        assert server.stop() == 0


def test_no_descriptors_left_pauses_accepting() -> None:
    with limited_server("", "resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))") as process:
        server = Serving(process, 1)
        clients = [RawClient(server.addresses[0]) for _ in range(40)]
        wait_until(lambda: any("accepting pauses" in line for line in server.lines), "accepting to pause")
        assert clients[0].ask(GOOD)[0] == 0, "those who are in are served"
        for client in clients[:-1]:
            client.sock.close()
        assert clients[-1].ask(GOOD)[0] == 0, "and the last one is, once there is room"
        clients[-1].sock.close()
        assert server.stop() == 0


def test_a_frame_beyond_the_memory_in_all_is_refused_and_dropped() -> None:
    with limited_server("in_flight=1 << 20, sure=1 << 16, payload=1 << 30") as process:
        server = Serving(process, 1)
        n = 40_000
        with RawClient(server.addresses[0]) as client:
            client.send(request_header(5, n, 0) + bytes(32 + 32 * n) + GOOD)
            assert client.answer() == (Status.TOO_LARGE, b"")
            assert client.answer()[0] == 0
        assert server.stop() == 0


def test_requests_that_do_not_fit_at_once_take_turns() -> None:
    """The whole memory is one request's; ten clients want it at the same time."""
    n = 10_000
    request = request_header(5, n, 0) + element(P) + bytes(32 * n)
    with limited_server(f"in_flight={64 * n + 32}, sure=1 << 16") as process:
        server = Serving(process, 1)
        with contextlib.ExitStack() as stack:
            clients = [stack.enter_context(RawClient(server.addresses[0])) for _ in range(10)]
            threads = [threading.Thread(target=client.send, args=(request,)) for client in clients]
            for thread in threads:
                thread.start()
            for client in clients:
                assert client.answer() == (0, bytes(32 * n))
            for thread in threads:
                thread.join()
        assert server.stop() == 0


def test_a_client_that_stalls_with_all_the_memory_does_not_stop_the_others() -> None:
    n = 10_000
    with limited_server(f"in_flight={64 * n + 32}, sure=1 << 16") as process:
        server = Serving(process, 1)
        with RawClient(server.addresses[0]) as hog, RawClient(server.addresses[0]) as other:
            hog.send(request_header(5, n, 0) + element(P) + bytes(32))
            time.sleep(0.2)
            for _ in range(3):
                assert other.ask(GOOD)[0] == 0
            with RawClient(server.addresses[0]) as late:
                assert late.ask(GOOD)[0] == 0
            hog.send(bytes(32 * n - 32))
            assert hog.answer() == (0, bytes(32 * n))
        assert server.stop() == 0


def test_clients_that_only_sit_there_keep_no_memory_from_the_others() -> None:
    n = 10_000
    request = request_header(5, n, 0) + element(P) + bytes(32 * n)
    with limited_server(f"in_flight=2 * {64 * n + 32}, sure=1 << 18, outstanding=8") as process:
        server = Serving(process, 1)
        with contextlib.ExitStack() as stack:
            idle = [stack.enter_context(RawClient(server.addresses[0])) for _ in range(8)]
            assert all(client.ask(GOOD)[0] == 0 for client in idle)
            busy = stack.enter_context(RawClient(server.addresses[0]))
            sender = threading.Thread(target=busy.send, args=(request * 6,))
            sender.start()
            for _ in range(6):
                assert busy.answer() == (0, bytes(32 * n))
            sender.join()
        assert server.stop() == 0


def test_a_client_that_never_reads_does_not_stop_the_others() -> None:
    n = 2000
    request = request_header(5, n, 0) + element(P) + bytes(32 * n)
    with limited_server("in_flight=8 << 20, sure=1 << 20") as process:
        server = Serving(process, 1)
        with RawClient(server.addresses[0]) as hog, RawClient(server.addresses[0]) as other:
            hog.sock.settimeout(0.5)
            with contextlib.suppress(TimeoutError):
                for _ in range(1000):
                    hog.send(request)
            for _ in range(20):
                assert other.ask(request) == (0, bytes(32 * n))
            assert memory_bytes(process.pid, "Pss_Shmem") < 64 << 20
        assert server.stop() == 0


def test_refusals_that_nobody_reads_cost_no_memory_without_bound(tmp_path: Path) -> None:
    with limited_server("outstanding=64", listen=f"unix:{tmp_path}/s") as process:
        server = Serving(process, 1)
        before = memory_bytes(process.pid, "Rss")
        with RawClient(server.addresses[0]) as client:
            client.sock.settimeout(2)
            bad = frame(1, 7, [3], [5], param=1) * 1000
            sent = 0
            with contextlib.suppress(TimeoutError):
                for _ in range(200):
                    client.send(bad)
                    sent += 1
            assert sent < 200, "a client that reads nothing is not read for ever"
            assert memory_bytes(process.pid, "Rss") < before + (48 << 20)
        assert server.stop() == 0


@pytest.mark.parametrize("backend", ["null"])
def test_thousands_of_small_requests_leave_no_trace(backend: str) -> None:
    request = frame(1, P, list(range(20)), list(range(20)))
    answer = response_header(0, 20) + bytes(640)

    with serving("--quiet", backend=backend) as server:

        def burst(count: int) -> None:
            for _ in range(count // 500):
                with RawClient(server.addresses[0]) as client:
                    client.send(request * 500)
                    assert client.exactly(500 * len(answer)) == answer * 500

        def held() -> tuple[int, int]:
            pids = [server.process.pid, *children(server.process.pid)]
            return sum(map(descriptors, pids)), sum(memory_bytes(pid, "Pss") for pid in pids)

        burst(2000)
        before = held()
        burst(8000)
        wait_until(lambda: held()[0] <= before[0], "descriptors to be closed")
        assert held()[1] <= before[1] + (4 << 20)
        assert server.stop() == 0


def test_the_limits_of_this_process_are_untouched() -> None:
    """setrlimit belongs to the workers that the tests start."""
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] > 40
