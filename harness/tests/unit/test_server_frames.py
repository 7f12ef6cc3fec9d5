"""Frames, good and bad, over a pipe, TCP and a Unix socket; and standard streams of every kind."""

from __future__ import annotations

import os
import pty
import re
import socket
import struct
import subprocess
import threading
import tty
from collections.abc import Iterator
from pathlib import Path

import pytest

from limbd.harness.live import RawClient, Serving, command, element, frame, pipe, serving, wait_until
from limbd.ops.status import Status
from limbd.worker.exchange import modulus_value
from limbd.worker.wire import request_header, response_header

GOOD = frame(1, 7, [3], [5])
GOOD_ANSWER = response_header(0, 1) + element(1)
P = 2**255 - 19
BN254 = modulus_value("bn254_fr")

LINE = re.compile(
    r"seq=(\d+) op=(\S+) n=(\d+) backend=(\S+) device=(\d+) kernel=(\d+\.\d{4,})ms h2d=(\d+\.\d+)ms "
    r"d2h=(\d+\.\d+)ms total=(\d+\.\d+)ms status=([A-Z_]+)( index=\d+)?( conn=\d+)?"
)


def error(status: Status) -> bytes:
    return response_header(status, 0)


def answered(*results: int) -> bytes:
    return response_header(Status.OK, len(results)) + b"".join(map(element, results))


# What comes in, the whole of what goes out, and whether the connection lives on.
CONVERSATIONS = {
    "golden": (GOOD, GOOD_ANSWER, True),
    "pipelined": (GOOD * 50, GOOD_ANSWER * 50, True),
    "n 0": (frame(5, P, []) + GOOD, response_header(0, 0) + GOOD_ANSWER, True),
    "zero modulus": (frame(1, 0, [3], [5]) + GOOD, error(Status.BAD_MODULUS) + GOOD_ANSWER, True),
    "zero modulus, n 0": (frame(1, 0, [], []) + GOOD, error(Status.BAD_MODULUS) + GOOD_ANSWER, True),
    "param": (frame(1, 7, [3], [5], param=1) + GOOD, error(Status.BAD_PARAM) + GOOD_ANSWER, True),
    "large with param": (
        frame(5, 7, [3] * 5000, param=1) + GOOD,
        error(Status.BAD_PARAM) + GOOD_ANSWER,
        True,
    ),
    "ntt": (frame(0x20, BN254, [3, 5], param=1) + GOOD, answered(8, BN254 - 2) + GOOD_ANSWER, True),
    "ntt of a toy": (frame(0x20, 17, [3, 5], param=1) + GOOD, error(Status.BAD_MODULUS) + GOOD_ANSWER, True),
    "ntt, n 0": (frame(0x20, BN254, [], param=1) + GOOD, answered() + GOOD_ANSWER, True),
    "ntt, n 0, other m": (frame(0x20, 101, [], param=1) + GOOD, error(Status.BAD_MODULUS) + GOOD_ANSWER, True),
    "ntt, n": (frame(0x20, BN254, [1] * 3, param=1) + GOOD, error(Status.BAD_LENGTH) + GOOD_ANSWER, True),
    "ntt, bit 13": (frame(0x20, BN254, [1] * 5000, param=1 << 13) + GOOD, error(Status.BAD_PARAM) + GOOD_ANSWER, True),
    "ntt, element": (frame(0x20, BN254, [1, BN254], param=1) + GOOD, error(Status.BAD_ELEMENT) + GOOD_ANSWER, True),
    "ntt, k": (frame(0x20, BN254, [], param=29) + GOOD, error(Status.BAD_DOMAIN) + GOOD_ANSWER, True),
    "unknown op": (GOOD + request_header(0x63, 1, 0) + bytes(64), GOOD_ANSWER + error(Status.UNKNOWN_OP), False),
    "oversized": (GOOD + request_header(1, 2**32 - 1, 0) + bytes(64), GOOD_ANSWER + error(Status.TOO_LARGE), False),
    "bad magic": (b"BCGX" + bytes(60), error(Status.BAD_MAGIC), False),
    "bad magic later": (GOOD + b"BCG2" + bytes(52), GOOD_ANSWER + error(Status.BAD_MAGIC), False),
    "http": (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", error(Status.BAD_MAGIC), False),
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    path = tmp_path_factory.mktemp("serve") / "socket"
    with serving(listen=("tcp://127.0.0.1:0", f"unix:{path}")) as running:
        yield running
        assert running.stop() == 0
        assert not path.exists()


@pytest.mark.parametrize("name", CONVERSATIONS)
@pytest.mark.parametrize("transport", [0, 1], ids=["tcp", "unix"])
def test_conversations_over_sockets(server: Serving, transport: int, name: str) -> None:
    data, expected, lives = CONVERSATIONS[name]
    with RawClient(server.addresses[transport]) as client:
        client.send(data)
        assert client.exactly(len(expected)) == expected
        if lives:
            assert client.ask(GOOD) == (0, element(1))
            client.sock.shutdown(socket.SHUT_WR)
        assert client.ended()


@pytest.mark.parametrize("name", CONVERSATIONS)
def test_conversations_over_a_pipe(name: str) -> None:
    data, expected, lives = CONVERSATIONS[name]
    done = pipe(data)
    assert done.stdout == expected
    assert done.returncode == (0 if lives else 1)
    lines = [line for line in done.stderr.decode().splitlines() if line.startswith("seq=")]
    heads = len(re.findall(b"BCGB", done.stdout))
    assert len(lines) == heads, "one line a request"
    for number, line in enumerate(lines, 1):
        match = LINE.fullmatch(line)
        assert match and int(match[1]) == number, line
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize("cut", [1, 4, 15, 16, 60, len(GOOD) - 1])
def test_input_that_ends_inside_a_frame(cut: int) -> None:
    done = pipe(GOOD + GOOD[:cut])
    assert (done.stdout, done.returncode) == (GOOD_ANSWER, 1)
    assert b"error: the input ended inside a frame" in done.stderr


def test_input_that_ends_inside_a_large_payload(server: Serving) -> None:
    large = frame(5, P, range(1, 40_000))
    done = pipe(GOOD + large[: len(large) // 2])
    assert (done.stdout, done.returncode) == (GOOD_ANSWER, 1)
    for address in server.addresses:
        with RawClient(address) as client:
            client.send(GOOD + large[:-1])
            client.sock.shutdown(socket.SHUT_WR)
            assert client.answer() == (0, element(1))
            assert client.ended()


def test_no_input_at_all() -> None:
    done = pipe(b"")
    assert (done.stdout, done.returncode) == (b"", 0)
    with Path(os.devnull).open("rb") as nothing:
        again = subprocess.run(command("pipe", "--backend", "null"), stdin=nothing, capture_output=True, timeout=60)
    assert (again.stdout, again.returncode) == (b"", 0)


def expected_products(a: list[int], b: list[int], m: int) -> bytes:
    return b"".join(element(x * y % m) for x, y in zip(a, b, strict=True))


def mixed_frames() -> tuple[bytes, bytes]:
    """Frames of many sizes, small and large mixed, and their answers."""
    data, answers = bytearray(), bytearray()
    for i, n in enumerate((1, 3000, 2, 0, 20_000, 1, 1, 700, 2000, 5, 30_000, 1)):
        a, b = [P - 1 - k - i for k in range(n)], [7 + 3 * k for k in range(n)]
        data += frame(1, P, a, b)
        answers += response_header(0, n) + expected_products(a, b, P)
    return bytes(data), bytes(answers)


def test_regular_files(tmp_path: Path) -> None:
    """`limbd pipe < f > g`."""
    data, answers = mixed_frames()
    source, sink = tmp_path / "f", tmp_path / "g"
    source.write_bytes(data)
    with source.open("rb") as stdin, sink.open("wb") as stdout:
        done = subprocess.run(
            command("pipe", "--backend", "reference"), stdin=stdin, stdout=stdout, stderr=subprocess.PIPE, timeout=60
        )
    assert done.returncode == 0, done.stderr
    assert sink.read_bytes() == answers


def test_large_frames_over_pipe_and_sockets(server: Serving) -> None:
    data, answers = mixed_frames()
    assert pipe(data).stdout == answers
    for address in server.addresses:
        with RawClient(address) as client:
            sender = threading.Thread(target=client.send, args=(data,))
            sender.start()
            assert client.exactly(len(answers)) == answers
            sender.join()


def test_one_socket_as_both_streams() -> None:
    """What inetd and systemd socket activation hand over."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        process = subprocess.Popen(
            command("pipe", "--backend", "reference"),
            stdin=theirs.fileno(),
            stdout=theirs.fileno(),
            stderr=subprocess.DEVNULL,
        )
        theirs.close()
        ours.settimeout(60)
        ours.sendall(GOOD * 3 + b"nonsense")
        received = b""
        while data := ours.recv(1000):
            received += data
        assert received == GOOD_ANSWER * 3 + error(Status.BAD_MAGIC)
        assert process.wait(60) == 1


def test_a_terminal_as_input() -> None:
    master, slave = pty.openpty()
    tty.setraw(slave)
    process = subprocess.Popen(
        command("pipe", "--backend", "reference"), stdin=slave, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    os.close(slave)
    os.write(master, GOOD)
    assert process.stdout is not None
    assert process.stdout.read(len(GOOD_ANSWER)) == GOOD_ANSWER
    os.close(master)
    assert process.wait(60) == 0
    process.stdout.close()


def test_a_closed_stdout_is_a_quiet_exit() -> None:
    process = subprocess.Popen(
        command("pipe", "--backend", "reference"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdin and process.stdout and process.stderr
    process.stdout.close()
    process.stdin.write(GOOD)
    process.stdin.flush()
    assert process.wait(60) == 0
    stderr = process.stderr.read()
    assert b"Traceback" not in stderr and b"Error" not in stderr and b"Broken" not in stderr
    process.stdin.close()
    process.stderr.close()


def shell(redirections: str, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    """`limbd ARGUMENTS REDIRECTIONS`, as a shell opens its streams."""
    return subprocess.run(
        ["sh", "-c", f'"$@" {redirections}', "sh", *command(*arguments)], input=GOOD, capture_output=True, timeout=60
    )


def test_streams_that_fail_are_no_quiet_exit(tmp_path: Path) -> None:
    """Answers that are lost on a full disk, and requests that cannot be read, must not look like success."""
    for redirections, text in (
        (">/dev/full", b"cannot write the standard output: No space left on device"),
        (f"0>{tmp_path}/f", b"cannot read the standard input: Bad file descriptor"),
    ):
        done = shell(redirections, "pipe", "--backend", "null")
        assert (done.returncode, done.stdout) == (1, b"")
        assert b"limbd: error: " + text in done.stderr and b"Traceback" not in done.stderr


@pytest.mark.parametrize("redirections", [">&-", ">&- 2>&-", "<&- >&-", "<&- >&- 2>&-", "2>&-"])
def test_streams_that_are_closed_from_the_start(redirections: str) -> None:
    done = shell(redirections, "pipe", "--backend", "reference")
    assert (done.returncode, done.stdout) == (0, b"" if ">&-" in redirections.split("2")[0] else GOOD_ANSWER)
    assert b"Traceback" not in done.stderr


def test_closed_standard_descriptors_are_not_taken_by_anything_else() -> None:
    done = subprocess.run(
        ["sh", "-c", '"$@" <&- 2>&-', "sh", *command("pipe", "--backend", "null")], stdout=subprocess.PIPE, timeout=60
    )
    assert (done.returncode, done.stdout) == (0, b"")


def test_a_payload_that_exceeds_the_connection_s_memory_waits_for_it(server: Serving) -> None:
    """Many requests at once, larger together than a connection is sure of; read slowly, all of it comes."""
    n = 20_000
    a, b = list(range(P - n, P)), list(range(n))
    request, answer = frame(1, P, a, b), response_header(0, n) + expected_products(a, b, P)
    with RawClient(server.addresses[1]) as client:
        sender = threading.Thread(target=client.send, args=(request * 30,))
        sender.start()
        for _ in range(30):
            assert client.exactly(len(answer)) == answer
        sender.join()


def test_a_slow_reader_never_sees_a_refilled_slot(server: Serving) -> None:
    """Answers are sent from slots; while one client does not read, another's requests reuse what is free."""
    n = 30_000
    ones, small = [1] * n, list(range(n))
    with RawClient(server.addresses[1]) as slow, RawClient(server.addresses[1]) as fast:
        slow.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        values = [list(range(k, k + n)) for k in (10, 20, 30, 40)]
        sender = threading.Thread(target=slow.send, args=(b"".join(frame(1, P, v, ones) for v in values),))
        sender.start()
        for round_ in range(12):
            status, body = fast.ask(frame(2, P, small, [round_] * n))
            assert status == 0 and body == b"".join(element(x + round_) for x in small)
        for v in values:
            status, body = slow.answer()
            assert status == 0 and body == b"".join(map(element, v))
        sender.join()


def test_a_shorter_batch_after_a_longer_one() -> None:
    longer, shorter = frame(2, P, list(range(3000)), [5] * 3000), frame(2, P, [9], [1])
    done = pipe(longer + shorter + longer + shorter)
    tail = response_header(0, 1) + element(10)
    long_answer = response_header(0, 3000) + b"".join(element(i + 5) for i in range(3000))
    assert done.stdout == (long_answer + tail) * 2


def test_lines_of_several_connections_are_told_apart(server: Serving) -> None:
    with RawClient(server.addresses[0]) as one, RawClient(server.addresses[0]) as two:
        one.ask(GOOD)
        two.ask(frame(1, 0, [1], [1]))
        two.ask(GOOD)
    before = len(server.lines)
    wait_until(lambda: sum("conn=" in line for line in server.lines[-40:]) >= 3 or len(server.lines) > before, "lines")
    wait_until(lambda: any("status=BAD_MODULUS conn=" in line for line in server.lines), "the failed request's line")
    numbers = {match[12] for line in server.lines if (match := LINE.fullmatch(line))}
    assert len(numbers) > 2
    assert all(LINE.fullmatch(line) for line in server.lines if line.startswith("seq="))


def test_failed_frames_can_be_sent_again(tmp_path: Path) -> None:
    bad = frame(1, 0, list(range(3000)), list(range(3000)))
    done = pipe(GOOD + bad + GOOD, "reference", "--keep-failed", str(tmp_path / "kept"))
    assert done.returncode == 0
    (kept,) = (tmp_path / "kept").iterdir()
    assert kept.read_bytes() == bad and "-2-mod-mul-BAD_MODULUS" in kept.name
    assert pipe(kept.read_bytes()).stdout == error(Status.BAD_MODULUS)


def test_headers_of_any_kind_never_break_the_worker(server: Serving) -> None:
    """Whatever 16 bytes come, the answer is a frame or an end."""
    for seed in range(40):
        header = struct.pack("<4sIII", b"BCGB", seed % 9, (seed * 2654435761) % 2**32, seed % 3)
        with RawClient(server.addresses[seed % 2]) as client:
            client.send(header)
            client.sock.shutdown(socket.SHUT_WR)
            data = b""
            while chunk := client.sock.recv(100):
                data += chunk
            assert len(data) in (0, 12) and (not data or (data[:4] == b"BCGB" and data[4:8] != bytes(4)))
    with RawClient(server.addresses[0]) as client:
        assert client.ask(GOOD) == (0, element(1))
