"""The command line as a user types it: a process of its own, its output, its exit code."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from limbd import __version__
from limbd.harness.vectors import load
from limbd.ops import OPS
from limbd.ops.params.layout import from_ints

REFERENCE = ("--backend", "reference")
FRAME = b"BCGB" + struct.pack("<III", 1, 1, 0) + b"".join(v.to_bytes(32, "little") for v in (7, 3, 5))
ANSWER = b"BCGB" + struct.pack("<II", 0, 1) + (1).to_bytes(32, "little")


def limbd(*words: str, feed: bytes | None = None, cwd: Path | None = None) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "limbd.cli", *words],
        input=feed if feed is not None else b"",
        capture_output=True,
        cwd=cwd,
        timeout=120,
        check=False,
    )


def said(*words: str, feed: bytes | None = None, cwd: Path | None = None) -> str:
    done = limbd(*words, feed=feed, cwd=cwd)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


def refused(code: int, *words: str, feed: bytes | None = None) -> str:
    """What it says on stderr: one line, no traceback."""
    done = limbd(*words, feed=feed)
    text = done.stderr.decode()
    assert done.returncode == code, text
    assert "Traceback" not in text
    assert not done.stdout
    return text.strip().splitlines()[-1]


# --- the first example ---


def test_frame_pipe_decode() -> None:
    frame = limbd("frame", "mod-mul", "--modulus", "7", "3", "5").stdout
    assert frame == FRAME
    answer = limbd("pipe", *REFERENCE, feed=frame).stdout
    assert answer == ANSWER
    assert said("decode", feed=answer) == "OK n=1\n0x1\n"


def test_frames_and_answers_as_files(tmp_path: Path) -> None:
    said("frame", "mod-exp", "-m", "secp256k1", "--a", "2,3", "--e", "0x10", "--out", "f.bin", cwd=tmp_path)
    (tmp_path / "g.bin").write_bytes(limbd("pipe", *REFERENCE, feed=(tmp_path / "f.bin").read_bytes()).stdout)
    assert said("decode", "--decimal", "g.bin", cwd=tmp_path) == f"OK n=2\n{2**16}\n{3**16}\n"


def test_decode_takes_several_answers_and_fails_with_one_of_them() -> None:
    refusal = b"BCGB" + struct.pack("<II", 7, 0)
    done = limbd("decode", feed=ANSWER + refusal + b"BCGB" + bytes(8) + ANSWER)
    assert done.stdout == b"OK n=1\n0x1\nBAD_MODULUS n=0\nOK n=0\nOK n=1\n0x1\n"
    assert done.returncode == 1


@pytest.mark.parametrize(
    ("stream", "words"), [(b"HTTP/1.1 400 no", "BCGB"), (ANSWER[:-1], "cut short"), (ANSWER[:7], "cut short")]
)
def test_decode_of_something_else(stream: bytes, words: str) -> None:
    done = limbd("decode", feed=stream)
    assert (done.returncode, b"Traceback" in done.stderr) == (2, False)
    assert words in done.stderr.decode()


# --- call ---


def test_call_prints_the_answer() -> None:
    assert said("call", "mod-mul", "--modulus", "7", "3", "5", *REFERENCE) == "0x1\n"
    assert said("call", "mod_inv", "--modulus", "7", "1", "2", "0x3", "--decimal", *REFERENCE) == "1\n4\n5\n"
    assert said("call", *REFERENCE, "mod-exp", "--a", "2", "--e", "10", "-m", "2000", "--decimal") == "1024\n"


def test_call_reads_and_writes_files(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", from_ints([2, 3, 4]))
    (tmp_path / "b.bin").write_bytes(from_ints([5, 6, 7]).tobytes())
    call = ("call", "mod-mul", "-m", "p256", "--a", "a.npy", "--b", "b.bin", *REFERENCE)
    said(*call, "--out", "c.npy", cwd=tmp_path)
    said(*call, "--out", "c.bin", cwd=tmp_path)
    said(*call, "--out", "c.txt", cwd=tmp_path)
    assert np.array_equal(np.load(tmp_path / "c.npy"), from_ints([10, 18, 28]))
    assert (tmp_path / "c.bin").read_bytes() == from_ints([10, 18, 28]).tobytes()
    assert (tmp_path / "c.txt").read_text() == "0xa\n0x12\n0x1c\n"
    for operand in (("--x", "-"), ("-",)):
        assert said("call", "mod-inv", "-m", "7", *operand, *REFERENCE, feed=b"2\n3\n") == "0x4\n0x5\n"


def test_call_of_a_transform(tmp_path: Path) -> None:
    ntt = ("call", "ntt", "--field", "bn254_fr", *REFERENCE)
    there = ("--coset", "generator", "--order", "nr")
    said(*ntt, *there, "1", "2", "3", "4", "--out", "values.txt", cwd=tmp_path)
    back = ("--inverse", "--coset", "5", "--order", "rn")
    assert said(*ntt, *back, "values.txt", "--decimal", cwd=tmp_path) == "1\n2\n3\n4\n"
    goldilocks = ("call", "ntt", "-m", "goldilocks", *REFERENCE, "--decimal")
    omega = str(pow(7, 3 * (2**64 - 2**32) // 4, 2**64 - 2**32 + 1))
    assert said(*goldilocks, "--batch", "2", "--omega", omega, "1,0,0,0,1,1,1,1") == "1\n1\n1\n1\n4\n0\n0\n0\n"
    assert said(*goldilocks, "9") == "9\n"
    frame = limbd("frame", "ntt", "--field", "goldilocks", "--inverse", "6", "2").stdout
    assert frame[4:16] == struct.pack("<III", 0x20, 2, 1 | 1 << 8)
    assert said("decode", "--decimal", feed=limbd("pipe", *REFERENCE, feed=frame).stdout) == "OK n=2\n4\n2\n"


def test_transforms_that_are_refused() -> None:
    ntt = ("call", "ntt", "--field", "bn254_fr", *REFERENCE)
    assert "BAD_DOMAIN" in refused(1, *ntt, "--omega", "1", "1", "2")
    assert "index 1" in refused(1, *ntt, "1", str(0x30644E72E131A029B85045B68181585D2833E84879B9709143E1F593F0000001))
    assert "BAD_MODULUS" in refused(1, "call", "ntt", "--field", "toy_17", "1", "2", *REFERENCE)


def test_toys_are_served_with_toys_alone() -> None:
    frame = limbd("frame", "ntt", "--field", "toy_17", "3", "5").stdout
    assert said("decode", "--decimal", feed=limbd("pipe", *REFERENCE, "--toys", feed=frame).stdout) == "OK n=2\n8\n15\n"
    assert limbd("decode", feed=limbd("pipe", *REFERENCE, feed=frame).stdout).stdout == b"BAD_MODULUS n=0\n"


def test_call_replays_a_frame(tmp_path: Path) -> None:
    (tmp_path / "f.bin").write_bytes(FRAME)
    assert said("call", "--replay", "f.bin", *REFERENCE, cwd=tmp_path) == "0x1\n"
    (tmp_path / "f.bin").write_bytes(b"something else")
    assert "f.bin" in refused(2, "call", "--replay", str(tmp_path / "f.bin"), *REFERENCE)


def test_a_refused_request_is_exit_1() -> None:
    assert "BAD_MODULUS" in refused(1, "call", "mod-mul", "--modulus", "0", "3", "5", *REFERENCE)
    for address in ("unix:/nonexistent/socket", f"{'x' * 64}:1"):
        assert "cannot connect" in refused(1, "call", "mod-inv", "-m", "7", "3", "--connect", address)


# --- points in other forms ---

# The generator of bls12_381's g1: draft-irtf-cfrg-pairing-friendly-curves-11, section 4.2.1, with the flag of appendix C.
COMPRESSED = "97f1d3a73197d7942695638c4fa9ac0fc3688c4f9774b905a14e3a3f171bac586c55e83ff97a1aeffb3af00adb22c6bb"
FROM_ZCASH = ("--curve", "bls12_381", "--from", "zcash-compressed", "--to")


def test_convert_bytes_and_hexadecimal(tmp_path: Path) -> None:
    data = bytes.fromhex(COMPRESSED)
    (tmp_path / "key.bin").write_bytes(data)
    x, y = json.loads(said("convert", "g1", "key.bin", *FROM_ZCASH, "json", cwd=tmp_path))[0]
    assert int(x, 16) == int(COMPRESSED, 16) - (1 << 383)
    assert limbd("convert", "g1", "-", *FROM_ZCASH, "zcash", feed=data).stdout[48:] == int(y, 16).to_bytes(48, "big")
    feed = f"0x{COMPRESSED}\n{COMPRESSED}\n".encode()
    assert said("convert", "g1", "-", *FROM_ZCASH, "gnark-compressed", "--hex", feed=feed) == f"{COMPRESSED}\n" * 2


def test_converted_points_are_what_call_takes(tmp_path: Path) -> None:
    said("convert", "g1", "-", *FROM_ZCASH, "wire", "--hex", "--out", "p.npy", feed=COMPRESSED.encode(), cwd=tmp_path)
    assert np.load(tmp_path / "p.npy").shape == (1, 24)
    asked = ("call", "msm-g1", "--curve", "bls12_381", "--scalars", "[1]", "--points", "p.npy", "--out", "sum.npy")
    said(*asked, *REFERENCE, cwd=tmp_path)
    assert (np.load(tmp_path / "sum.npy") == np.load(tmp_path / "p.npy")).all()


def test_convert_scalars(tmp_path: Path) -> None:
    words = ("--curve", "bn254", "--from", "json", "--to")
    assert said("convert", "scalars", '[1, "0x10"]', *words, "big-endian", "--hex") == f"{1:064x}\n{16:064x}\n"
    said("convert", "scalars", "[5]", *words, "wire", "--out", "s.npy", cwd=tmp_path)
    assert (np.load(tmp_path / "s.npy") == from_ints([5])).all()


def test_convert_refuses_a_bad_point_with_its_index() -> None:
    off = '[["0x1", "0x2"], null, ["0x1", "0x3"]]'
    words = ("--curve", "bn254", "--from", "json", "--to")
    assert said("convert", "g1", off, *words, "eip196", "--hex").count("\n") == 3
    told = refused(1, "convert", "g1", off, *words, "eip196", "--check-curve")
    assert "BAD_ELEMENT" in told and "not on the curve" in told and "index 2" in told
    assert "BAD_LENGTH" in refused(1, "convert", "g1", "-", *FROM_ZCASH, "json", feed=bytes(47))


def test_convert_public_keys_of_secp256k1(tmp_path: Path) -> None:
    words = ("--curve", "secp256k1", "--from", "json", "--to", "sec1-compressed")
    x = 0x79BE667EF9DCBBAC55A06295CE870B07029BFCDB2DCE28D959F2815B16F81798
    y = 0x483ADA7726A3C4655DA4FBFC0E1108A8FD17B448A68554199C47D08FFB10D4B8
    points = [[hex(x), hex(y)], None, [hex(x), hex(y)]]
    text = said("convert", "g1", json.dumps(points), *words, "--hex")
    assert text == f"02{x:064x}\n00\n02{x:064x}\n"
    back = ("--curve", "secp256k1", "--from", "sec1-compressed", "--to", "json")
    assert json.loads(said("convert", "g1", "-", *back, "--hex", feed=text.encode())) == points
    assert "index 1" in refused(1, "convert", "g1", "-", *back, feed=bytes.fromhex(f"02{x:064x}02{5:064x}"))


# --- mistakes ---


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((), "COMMAND"),
        (("frob",), "frob"),
        (("call",), "--modulus"),
        (("call", "mod-div", "-m", "7", "1", "2"), "mod-mul"),
        (("call", "mod-mul", "-m", "seven", "1", "2"), "secp256k1_fp"),
        (("call", "mod-mul", "-m", "7", "1"), "takes a, b by position, and 1"),
        (("call", "mod-mul", "-m", "7", "1", "2", "3"), "3 were given"),
        (("call", "mod-mul", "-m", "7", "1", "ff"), "0x"),
        (("call", "mod-mul", "-m", "7", "-3", "5"), "-3: operands are not negative"),
        (("call", "mod-mul", "-m", "7", "3", "5", "--frob"), "--frob (see limbd --help)"),
        (("call", "mod-mul", "-m", "7", "1", "absent.npy"), "absent.npy"),
        (("call", "mod-inv", "-m", "7", "--x", "1", "--a", "2"), "no operand a"),
        (("call", "mod-inv", "-m", "7", "1", "--connect", "nowhere"), "nowhere"),
        (("call", "mod-inv", "-m", "7", "1", "--device-memory", "much"), "much"),
        (("call", "mod-inv", "-m", "7", "1", "--device", "one"), "one"),
        (("call", "mod-inv", "-m", "7", "1", "--frob"), "--frob"),
        (("call", "mod-inv", "-m", "7", "1", "--inverse"), "takes no --inverse"),
        (("call", "ntt", "-m", "7", "1", "2"), "no field"),
        (("call", "ntt", "-m", "11", "1", "2"), "registered field"),
        (("call", "ntt", "-m", "bn254_fr", "1", "2", "3"), "power of two"),
        (("call", "ntt", "-m", "bn254_fr", "--batch", "0", "1", "2"), "0 transforms"),
        (("call", "ntt", "-m", "bn254_fr", "--order", "xy", "1", "2"), "nn, nr, rn, rr"),
        (("call", "ntt", "-m", "bn254_fr", "--coset", "g", "1", "2"), "'g'"),
        (("call", "mod-inv", "-m", str(2**256), "1"), "2^256"),
        (("call", "--replay", "absent"), "absent"),
        (("pipe", "--backend", "abacus"), "abacus"),
        (("serve",), "--listen"),
        (("call", "--replay", "absent", "mod-inv"), "whole question"),
        (("decode", "absent"), "absent"),
        (("decode", "--width", str(1 << 62)), "4-byte limbs"),
        (("fuzz", "--seconds", "-1"), "-1"),
        (("convert", "g3", "-", "--curve", "bn254", "--from", "wire", "--to", "json"), "g3"),
        (("convert", "g1", "-", "--curve", "bn256", "--from", "wire", "--to", "json"), "bn256"),
        (("convert", "g1", "-", "--curve", "bn254", "--from", "zcash", "--to", "json"), "eip196"),
        (("convert", "g1", "-", "--curve", "bn254", "--from", "wire", "--to", "zcash"), "eip196"),
        (("convert", "scalars", "-", "--curve", "bn254", "--from", "eip196", "--to", "json"), "big-endian"),
        (("convert", "g1", "absent", "--curve", "bn254", "--from", "wire", "--to", "json"), "absent"),
        (("convert", "g1", "absent.npy", "--curve", "bn254", "--from", "wire", "--to", "json"), "absent.npy"),
        (("convert", "g1", "a.npy", "--curve", "bn254", "--from", "eip196", "--to", "json"), "own form"),
        (("convert", "g1", "[1", "--curve", "bn254", "--from", "json", "--to", "wire"), "JSON"),
        (("convert", "g1", "-", "--curve", "bn254", "--from", "wire", "--to", "json", "--out", "/"), "cannot write"),
    ],
)
def test_a_wrong_command_is_one_line_and_exit_2(words: tuple[str, ...], told: str) -> None:
    assert told in refused(2, *words)


def test_a_reader_that_leaves_is_no_traceback() -> None:
    command = f"{sys.executable} -m limbd.cli decode --width 4 | head -n 1"
    stream = b"BCGB" + struct.pack("<II", 0, 200_000) + bytes(800_000)
    done = subprocess.run(["bash", "-c", command], input=stream, capture_output=True, timeout=60, check=False)
    assert (done.stdout, done.stderr) == (b"OK n=200000\n", b"")


@pytest.mark.parametrize("words", ["frame mod-mul -m 7 3 5", "decode", "call mod-mul -m 7 3 5 --backend null"])
@pytest.mark.parametrize(
    ("redirection", "reason"), [(">/dev/full", b"No space left on device"), (">&-", b"it is closed")]
)
def test_an_output_that_takes_nothing_is_one_line(words: str, redirection: str, reason: bytes) -> None:
    command = f"{sys.executable} -m limbd.cli {words} {redirection}"
    done = subprocess.run(["sh", "-c", command], input=ANSWER, capture_output=True, timeout=60, check=False)
    name = words.split()[0].encode()
    assert done.stderr == b"limbd " + name + b": cannot write the standard output: " + reason + b"\n"
    assert done.returncode == 1


def test_a_closed_input_is_an_empty_one() -> None:
    for words in ("decode", "call mod-inv -m 7 --x - --backend null"):
        command = f"{sys.executable} -m limbd.cli {words} <&-"
        done = subprocess.run(["sh", "-c", command], capture_output=True, timeout=60, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


# --- looking and checking ---


def test_version_and_help() -> None:
    assert said("--version") == f"limbd {__version__}\n"
    text = said("--help")
    assert all(word in text for word in ("demo", "pipe", "serve", "call", "kat", "exit codes"))
    for command in ("demo", "pipe", "serve", "call", "frame", "decode", "convert", "info", "kat", "fuzz"):
        assert f"limbd {command}" in said(command, "--help")


def test_help_imports_nothing_heavy() -> None:
    script = "import sys; from limbd.cli import main\ntry: main(['--help'])\nexcept SystemExit: pass\nprint(sorted(sys.modules), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert not {"'numpy'", "'rich'", "'gmpy2'", "'asyncio'"} & set(done.stderr.strip("[]\n").split(", "))


def test_info(tmp_path: Path) -> None:
    cache = tmp_path / "kernels"
    facts = json.loads(said("info", "--json", "--cache-dir", str(cache)))
    assert [op["name"] for op in facts["ops"]] == [op.name for op in OPS]
    roots = {field["name"]: (field["transforms"], field["generator"]) for field in facts["fields"]}
    assert roots["bn254_fr"] == (28, 5) and roots["p256_fp"] == (None, None)
    assert {b["name"] for b in facts["backends"]} == {"cuda", "cpu", "reference", "null"}
    assert all(b["works"] != bool(b["why_not"]) for b in facts["backends"])
    assert facts["limits"]["payload"] == 1 << 30
    assert facts["cache"]["folder"] == str(cache)
    text = said("info", "--cache-dir", str(cache))
    assert all(word in text for word in ("secp256k1_fp", "mod-inv", "reference", "1 GiB", str(cache)))
    assert "toy" not in text


def test_kat_counts_every_answer_of_an_op() -> None:
    text = said("kat", "--op", "mod-sub", *REFERENCE)
    count = sum(batch.n for batch in load("mod-sub"))
    assert f"{count} passed, 0 failed: all identical" in text


def test_kat_fails_on_a_backend_that_answers_zeros() -> None:
    done = limbd("kat", "--op", "mod-add", "--backend", "null")
    assert done.returncode == 1
    assert b"FAILED mod-add" in done.stdout


def test_fuzz_of_one_round_and_its_failure() -> None:
    text = said("fuzz", "--op", "mod-mul", "--seed", "s", "--round", "3", *REFERENCE)
    assert "1 rounds" in text
    done = limbd("fuzz", "--op", "mod-mul", "--seed", "s", "--seconds", "5", "--backend", "null")
    assert (done.returncode, b"limbd fuzz --op mod-mul --seed s --round" in done.stdout) == (1, True)


def test_a_failed_frame_is_kept_and_fails_again_when_replayed(tmp_path: Path) -> None:
    frame = b"BCGB" + struct.pack("<III", 1, 1, 0) + bytes(96)
    done = limbd("pipe", *REFERENCE, "--keep-failed", str(tmp_path / "kept"), feed=frame)
    assert done.stdout == b"BCGB" + struct.pack("<II", 7, 0)
    (kept,) = (tmp_path / "kept").iterdir()
    assert kept.stat().st_mode & 0o777 == 0o600
    assert "the modulus is 0" in refused(1, "call", "--replay", str(kept), *REFERENCE)
