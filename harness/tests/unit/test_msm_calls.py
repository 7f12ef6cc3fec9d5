"""Multi-scalar multiplications by the clients and on the command line, on the reference backend."""

from __future__ import annotations

import asyncio
import json
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from limbd import AsyncClient, Client, RequestError, Status
from limbd.harness.groups import group_of
from limbd.harness.live import serving
from limbd.harness.multiplications import Multiples
from limbd.ops.params.curves import CURVES, by_name
from limbd.ops.params.layout import from_ints
from limbd.ops.reference.msm import encode_points

REFERENCE = ("--backend", "reference")
BN254 = CURVES[0]
# The generator's multiples on bn254.
G: tuple[int, int] = (1, 2)
TWICE = (
    0x030644E72E131A029B85045B68181585D97816A916871CA8D3C208C16D87CFD3,
    0x15ED738C0E0A7C92E7845F96B2AE9C0A68A6A449E3538FC7FF3EBF7A5A18A2C4,
)


@pytest.fixture(scope="module")
def local() -> Iterator[Client]:
    with Client(backend="reference", timeout=60) as client:
        yield client


# --- the client -----------------------------------------------------------------------------------------------------


def test_points_as_integers(local: Client) -> None:
    assert local.msm([2], [G]) == local.msm([1, 1], [G, G]) == local.msm([1, 5], [TWICE, None]) == TWICE
    assert local.msm([BN254.order], [G]) is None and local.msm([], []) is None
    assert local.msm([[1, 1], [2, 0], [0, 0]], [G, G]) == [TWICE, TWICE, None]
    assert local.msm([[], []], []) == [None, None]
    assert local.msm([np.uint32(2)], [G], curve="BN254", group="G1") == TWICE
    assert local.msm(iter([1, 1]), zip([1, 1], [2, 2], strict=True)) == TWICE


def test_points_of_every_curve(local: Client) -> None:
    for curve in (curve for curve in CURVES if not curve.toy):
        for name in ("g1", "g2") if curve.g2 else ("g1",):
            group = group_of(curve, name)
            x, y = group.generator
            point: Any = (x[0], y[0]) if group.degree == 1 else (x, y)
            assert local.msm([1], [point], curve.name, name, check_subgroup=True) == point
            twice = local.msm([1, 1], [point, point], curve.name, name)
            assert local.msm([2], [point], curve.name, name, constant_work=True) == twice != point
            assert local.msm([curve.order - 1, 1], [point, point], curve.name, name) is None


def test_arrays_are_answered_by_arrays(local: Client) -> None:
    points = np.frombuffer(encode_points([((1,), (2,)), None], BN254, BN254.g1), "<u4").reshape(2, 16)
    scalars = from_ints([2, 7])
    single = local.msm(scalars, points)
    assert single.shape == (16,) and single.dtype == np.uint32
    assert (single == from_ints(TWICE).reshape(-1)).all()
    several = local.msm(np.stack([scalars, scalars[::-1]]), points)
    assert several.shape == (2, 16) and (several[0] == single).all() and (several[1] != single).any()
    assert (local.msm([2, 7], points) == single).all()
    assert local.msm(scalars, [G, None]) == TWICE


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (([1], [G], "bn255"), "no curve named 'bn255'"),
        (([1], [G], "secp256k1", "g2"), "secp256k1 has no group 'g2'"),
        (([1], [G], "bn254", "g3"), "no group 'g3'"),
        (([1], [G], None), "no curve named None"),
        (({1: 2}, [G]), "scalars: expected a sequence, got dict"),
        (([1], {G}), "points: expected a sequence, got set"),
        (([1, 1], [G, {1, 2}]), r"points\[1\]: expected a pair x, y, .* got set"),
        (([1], [G], "bn254", None), "no group None"),
        (([1, 2], [G]), "1 points"),
        (([[1], [1, 2]], [G]), "1 points"),
        (([2**256], [G]), "2\\^256"),
        (([-1], [G]), "2\\^256"),
        (([1], [(1, 2**256)]), "2\\^256"),
        (([1], [((1, 1), (2, 2))]), "a coordinate has 1 integers"),
        (([1], [G], "bn254", "g2"), "a coordinate has 2 integers"),
        ((np.zeros((1, 7), np.uint32), [G]), "scalars: expected uint32"),
        (([1], np.zeros((1, 8), np.uint32)), r"points: expected uint32 \(n, 16\)"),
        ((np.zeros((0, 1, 8), np.uint32), [G]), "scalars: expected one vector or more, got none"),
        (([1, 2**256], [G, G]), r"scalars\[1\] is not in 0\.\.2\^256 - 1"),
        (([[1], [-1]], [G]), r"scalars\[1\]\[0\] is not in 0\.\.2\^256 - 1"),
        (([1, [2], 3], [G] * 3), r"scalars\[1\]: expected an integer in 0\.\.2\^256 - 1, got list"),
        (([[1], 2], [G]), r"scalars\[1\]: expected a sequence, got int"),
        ((["1"], [G]), r"scalars\[0\]: expected a sequence, got str"),
        ((1, [G]), "scalars: expected a sequence, got int"),
        ((None, [G]), "scalars: expected a sequence, got NoneType"),
        (([1], None), "points: expected a sequence, got NoneType"),
        (([1, 1], [G, 3]), r"points\[1\]: expected a pair x, y, or nothing for infinity, got int"),
        (([1, 1], [G, (1, 2, 3)]), r"points\[1\]: expected a pair x, y, .* got 3 elements"),
        (([1, 1], [G, (1, 0.5)]), r"points\[1\], y: expected an integer in 0\.\.2\^256 - 1, got float"),
        (([1], [(-1, 2)]), r"points\[0\], x is not in 0\.\.2\^256 - 1"),
        (([1], [((1, 2), (3, 1 << 384))], "bls12_381", "g2"), r"points\[0\], y\[1\] is not in 0\.\.2\^384 - 1"),
    ],
)
def test_what_cannot_be_asked(local: Client, arguments: tuple[Any, ...], words: str) -> None:
    with pytest.raises((TypeError, ValueError), match=words):
        local.msm(*arguments)
    assert local.msm([2], [G]) == TWICE


@pytest.mark.parametrize("scalars", [[[1]] * 65_537, np.ones((65_537, 1, 8), np.uint32)], ids=["list", "array"])
def test_more_vectors_than_a_request_holds(local: Client, scalars: Any) -> None:
    """Refused before anything is sent, or a connection made: nobody listens there."""
    for client in (local, AsyncClient("127.0.0.1:1")):
        with pytest.raises(ValueError, match="65537 vectors, and a request has 65536 at most"):
            client.msm(scalars, [G])
    assert local.msm([2], [G]) == TWICE


def test_as_many_vectors_as_a_request_holds(local: Client) -> None:
    assert local.msm([[0]] * 65_535 + [[2]], [G])[-2:] == [None, TWICE]


def test_elements_of_other_ops_are_told_by_their_index(local: Client) -> None:
    for values, words in (
        ([1, [2]], r"operand a\[1\]: expected an integer .* got list"),
        ([1, 2, -1], r"operand a\[2\] is not in 0\.\.2\^256 - 1"),
        (0.5, "operand a: expected an integer .* got float"),
    ):
        with pytest.raises((TypeError, ValueError), match=words):
            local.mod_mul(values, 1, 7)  # type: ignore[arg-type]


def test_bad_points_are_told_by_their_index(local: Client) -> None:
    p = BN254.base.modulus
    for bad, words in (((1, 3), "not on the curve"), ((1 + p, 2), "not below"), ((p, p), "not below")):
        with pytest.raises(RequestError, match=words) as caught:
            local.msm([1, 1, 1], [G, bad, (0, 1)])
        assert (caught.value.status, caught.value.index) == (Status.BAD_ELEMENT, 1)
    with pytest.raises(RequestError, match="subgroup") as caught:
        local.msm([0, 0], [None, (0, 2)], "bls12_381", check_subgroup=True)
    assert caught.value.index == 1
    assert local.msm([3, 0], [(0, 2), None], "bls12_381") is None
    assert local.msm([2], [G]) == TWICE


def test_the_general_call_says_where_to_go(local: Client) -> None:
    with pytest.raises(ValueError, match="msm"):
        local.call("msm-g1", [[1], [1]], 7)


def test_two_clients_with_different_bases_at_once(tmp_path: Path) -> None:
    """Against one worker: each gets the sums of its own points."""
    failures: list[str] = []

    def ask(address: str, seed: str) -> None:
        known = Multiples(BN254, "g1", seed, 9)
        points = [(point[0][0], point[1][0]) for point in known.points if point]
        with Client(address, timeout=60) as client:
            for turn in range(12):
                scalars = [turn * i + 1 for i in range(9)]
                total = known.total(scalars)
                if client.msm(scalars, points) != (total and (total[0][0], total[1][0])):
                    failures.append(f"{seed} {turn}")

    with serving(backend="reference", listen=[f"unix:{tmp_path}/s"]) as server:
        threads = [threading.Thread(target=ask, args=(server.addresses[0], f"client {i}")) for i in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
        assert not any(thread.is_alive() for thread in threads)

        async def both() -> list[Any]:
            async with AsyncClient(server.addresses[0]) as client:
                return list(await asyncio.gather(client.msm([2], [G]), client.msm([1], [TWICE])))

        assert asyncio.run(both()) == [TWICE, TWICE]
    assert failures == []


# --- the command line -----------------------------------------------------------------------------------------------


def limbd(*words: str, feed: bytes = b"", cwd: Path | None = None) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "limbd.cli", *words]
    return subprocess.run(command, input=feed, capture_output=True, cwd=cwd, timeout=120, check=False)


def call(*words: str, feed: bytes = b"", cwd: Path | None = None) -> Any:
    done = limbd("call", *words, *REFERENCE, feed=feed, cwd=cwd)
    assert done.returncode == 0, done.stderr.decode()
    return [json.loads(line) for line in done.stdout.decode().splitlines()]


def test_json_on_the_command_line(tmp_path: Path) -> None:
    expected = [hex(part) for part in TWICE]
    asked = ("msm-g1", "--curve", "bn254")
    assert call(*asked, "--scalars", "[2]", "--points", "[[1, 2]]") == [expected]
    assert call(*asked, "--scalars", '["0x1", 1]', "--points", '[["0x1", "2"], [1, 2]]') == [expected]
    assert call(*asked, "--scalars", "[[2], [0]]", "--points", "[[1, 2]]") == [expected, None]
    assert call(*asked, "[2]", "[[1, 2]]") == call(*asked, "[[1, 2]]", "--scalars", "[2]") == [expected]
    (tmp_path / "points.json").write_text("[[1, 2], null]")
    assert call(*asked, "--scalars", "-", "--points", "points.json", feed=b"[2, 9]", cwd=tmp_path) == [expected]
    done = limbd(
        "call", *asked, "--scalars", "[2]", "--points", "[[1, 2]]", "--out", "sum.json", *REFERENCE, cwd=tmp_path
    )
    assert done.returncode == 0 and json.loads((tmp_path / "sum.json").read_text()) == expected


def test_the_second_group_on_the_command_line() -> None:
    curve = by_name("bls12_381")
    assert curve is not None
    x, y = group_of(curve, "g2").generator
    point = json.dumps([[str(part) for part in x], [hex(part) for part in y]])
    words = ("msm-g2", "--curve", "bls12_381", "--scalars", "[1]", "--points", f"[{point}]", "--check-subgroup")
    assert call(*words, "--constant-work") == [[[hex(part) for part in x], [hex(part) for part in y]]]


def test_arrays_in_files(tmp_path: Path) -> None:
    np.save(tmp_path / "s.npy", from_ints([2, 3]))
    np.save(
        tmp_path / "p.npy", np.frombuffer(encode_points([((1,), (2,)), None], BN254, BN254.g1), "<u4").reshape(2, 16)
    )
    words = ("msm-g1", "--curve", "bn254", "--scalars", "s.npy", "--points", "p.npy")
    assert call(*words, "--out", "sum.npy", cwd=tmp_path) == []
    assert (np.load(tmp_path / "sum.npy") == from_ints(TWICE).reshape(-1)).all()
    # What came out goes in again.
    assert call("msm-g1", "--curve", "bn254", "--scalars", "[1]", "--points", "sum.npy", cwd=tmp_path)


def test_sums_of_arrays_are_printed_as_json_that_is_read_again(tmp_path: Path) -> None:
    """A line for each vector, one vector alone too; infinity is null; --out writes the same."""
    points = encode_points([((1,), (2,)), None], BN254, BN254.g1)
    np.save(tmp_path / "p.npy", np.frombuffer(points, "<u4").reshape(2, 16))
    words = ("msm-g1", "--curve", "bn254", "--points", "p.npy")
    expected = [hex(part) for part in TWICE]
    assert call(*words, "--scalars", "[2, 3]", cwd=tmp_path) == [expected]
    assert call(*words, "--scalars", "[0, 3]", cwd=tmp_path) == [None]
    assert call(*words, "--scalars", "[[2, 3]]", cwd=tmp_path) == [expected]
    sums = call(*words, "--scalars", "[[2, 3], [0, 1], [1, 0]]", cwd=tmp_path)
    assert sums == [expected, None, ["0x1", "0x2"]]
    asked = ("msm-g1", "--curve", "bn254", "--scalars", "[1, 5, 0]", "--points", json.dumps(sums))
    assert call(*asked) == [expected]
    assert call(*words, "--scalars", "[2, 3]", "--out", "sum.json", cwd=tmp_path) == []
    assert json.loads((tmp_path / "sum.json").read_text()) == expected


def test_sums_of_arrays_in_the_second_group(tmp_path: Path) -> None:
    curve = by_name("bls12_381")
    assert curve is not None and curve.g2 is not None
    x, y = curve.g2.generator
    np.save(tmp_path / "p.npy", np.frombuffer(encode_points([(x, y)], curve, curve.g2), "<u4").reshape(1, 48))
    words = ("msm-g2", "--curve", "bls12_381", "--scalars", "[[1], [0]]", "--points", "p.npy")
    assert call(*words, cwd=tmp_path) == [[[hex(part) for part in x], [hex(part) for part in y]], None]


def test_a_frame_goes_through_a_pipe() -> None:
    words = ("msm-g1", "--curve", "bn254", "--scalars", "[[2], [1]]", "--points", "[[1, 2]]")
    frame = limbd("frame", *words).stdout
    assert frame[:16] == b"BCGB" + struct.pack("<III", 0x30, 2, 1 | 1 << 16)
    answer = limbd("pipe", *REFERENCE, feed=frame).stdout
    assert answer == b"BCGB" + struct.pack("<II", 0, 2) + from_ints([*TWICE, *G]).tobytes()
    assert limbd("decode", "--width", "64", feed=answer).stdout.startswith(b"OK n=2\n0x15ed")


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("--curve", "bn254", "--scalars", "[1]", "--points", "[[1, 3]]"), 1, "index 0"),
        (("--curve", "bn254", "--scalars", "[1, 2]", "--points", "[[1, 2]]"), 2, "1 points"),
        (("--curve", "bn255", "--scalars", "[1]", "--points", "[[1, 2]]"), 2, "no curve"),
        (("--curve", "bn254", "--scalars", "[1", "--points", "[[1, 2]]"), 2, "no JSON"),
        (("--curve", "bn254", "--scalars", "[1.5]", "--points", "[[1, 2]]"), 2, "1.5"),
        (("--curve", "bn254", "--scalars", "[true]", "--points", "[[1, 2]]"), 2, "True"),
        (("--curve", "bn254", "--scalars", "none.npy", "--points", "[[1, 2]]"), 2, "none.npy"),
        (("--curve", "bn254", "--scalars", "empty.npy", "--points", "[[1, 2]]"), 2, "empty.npy"),
        (("--curve", "bn254", "--scalars", "[" * 100_000, "--points", "[[1, 2]]"), 2, "no JSON"),
        (("--curve", "bn254", "--scalars", '["0b11"]', "--points", "[[1, 2]]"), 2, "0b11"),
        (("--curve", "bn254", "--scalars", '["1_0"]', "--points", "[[1, 2]]"), 2, "1_0"),
        (("--curve", "bn254", "--scalars", "[1]", "--points", "[[1, 2]]", "--out", "."), 2, "--out"),
        (("--curve", "bn254", "--scalars", "[1]", "--points", "[[1, 2]]", "--out", "none/x"), 2, "--out"),
        (("--curve", "bn254", "--scalars", "[1]"), 2, "--points"),
        (("--curve", "bn254", "[1]", "[[1, 2]]", "--scalars", "[5]"), 2, "by position"),
        (("--curve", "bn254", "[1]", "[[1, 2]]", "--order", "rn"), 2, "takes no --order"),
        (("--curve", "bn254", "[1]", "[[1, 2]]", "--a", "3"), 2, "takes no --a"),
        (("--curve", "bn254", "--scalars", "[1, [2], 3]", "--points", "[[1, 2]]"), 2, "scalars[1]"),
        (("--curve", "bn254", "--scalars", "[[1], [true]]", "--points", "[[1, 2]]"), 2, "scalars[1][0]: True"),
        (("--curve", "bn254", "--scalars", "[1]", "--points", "[[1, {}]]"), 2, "points[0][1]: {}"),
        (("--curve", "bn254", "--scalars", "[1]", "--points", "[[1]]"), 2, "points[0]"),
        (("--curve", "bn254", "--scalars", "[1]", "--points", "[[1, null]]"), 2, "points[0], y"),
        (("--curve", "bn254", "--scalars", "null.json", "--points", "[[1, 2]]"), 2, "scalars: expected a sequence"),
        (("--curve", "bn254", "--scalars", f"[{'1' * 5000}]", "--points", "[[1, 2]]"), 2, "scalars: no JSON"),
        (("--curve", "bn254", "--scalars", "[" * 800 + "]" * 800, "--points", "[[1, 2]]"), 2, "scalars"),
        (("--curve", "bn254", "--scalars", "many.npy", "--points", "[[1, 2]]"), 2, "many.npy is not one array"),
        (("--curve", "bn254", "--scalars", "[1]", "--points", "[[1, 2]]", "--out", "x.npy"), 2, ".npy"),
    ],
)
def test_mistakes_are_one_line(words: tuple[str, ...], code: int, told: str, tmp_path: Path) -> None:
    (tmp_path / "empty.npy").write_bytes(b"")
    (tmp_path / "null.json").write_text("null")
    with (tmp_path / "many.npy").open("wb") as file:
        np.savez(file, a=np.zeros(1))
    done = limbd("call", "msm-g1", *words, *REFERENCE, cwd=tmp_path)
    text = done.stderr.decode()
    assert done.returncode == code and told in text and "Traceback" not in text
    assert not done.stdout


def test_the_help_says_what_scalars_and_points_are() -> None:
    for command in ("call", "frame"):
        text = limbd(command, "msm-g1", "--help").stdout.decode()
        for told in ("scalars and points of msm-g1 and msm-g2:", "[[x, y], ..]", "(vectors, n, 8)", "(n, 48)", "null"):
            assert told in text, told
        assert "operand points of msm-g1, msm-g2: JSON" in " ".join(text.split())
