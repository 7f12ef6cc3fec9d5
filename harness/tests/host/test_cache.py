"""The cache of compiled kernels: hits, damage, folders that cannot be used, processes that fill it at once and die."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from limbd.ops.status import ServiceError
from limbd.worker.device.cache import ELF_MAGIC, FOLDER_VARIABLE, Cache, Key, default_folder, entries, unseal

KEY = Key("cubin", "sm_90", ("-a", "-b"), "compiler 1", "entry", "text")
ROUNDS = 100


def data_of(key: Key) -> bytes:
    """What the compiler of these tests makes: all of it follows from the key, so that a torn or mixed file shows."""
    return ELF_MAGIC + random.Random(key.file_name()).randbytes(200_000)


class Compiler:
    def __init__(self) -> None:
        self.calls = 0

    def build(self) -> bytes:
        self.calls += 1
        return data_of(KEY)


def test_a_second_start_compiles_nothing(tmp_path: Path) -> None:
    compiler = Compiler()
    assert Cache(tmp_path).load(KEY, compiler.build) == data_of(KEY)
    second = Cache(tmp_path)
    assert second.load(KEY, compiler.build) == data_of(KEY)
    assert (compiler.calls, second.builds, second.hits) == (1, 0, 1)


def test_every_part_of_the_key_counts() -> None:
    keys = [
        KEY,
        Key("so", "sm_90", ("-a", "-b"), "compiler 1", "entry", "text"),
        Key("cubin", "sm_80", ("-a", "-b"), "compiler 1", "entry", "text"),
        Key("cubin", "sm_90", ("-a", "-c"), "compiler 1", "entry", "text"),
        Key("cubin", "sm_90", ("-a-b",), "compiler 1", "entry", "text"),
        Key("cubin", "sm_90", ("-a", "-b"), "compiler 2", "entry", "text"),
        Key("cubin", "sm_90", ("-a", "-b"), "compiler 1", "entry2", "text"),
        Key("cubin", "sm_90", ("-a", "-b"), "compiler 1", "entry", "texts"),
    ]
    assert len({key.file_name() for key in keys}) == len(keys)
    assert Key("cubin", "sm_90", ("-b", "-a"), "compiler 1", "entry", "text").file_name() == KEY.file_name()


@pytest.mark.parametrize("damage", ["empty", "truncated", "bit", "magic", "trailer", "unreadable"])
def test_a_damaged_entry_is_built_again(tmp_path: Path, damage: str) -> None:
    compiler = Compiler()
    Cache(tmp_path).load(KEY, compiler.build)
    file = tmp_path / KEY.file_name()
    content = bytearray(file.read_bytes())
    if damage == "bit":
        content[len(content) // 2] ^= 4
    elif damage == "magic":
        content[0] ^= 1
    elif damage == "trailer":
        content[-1] ^= 1
    elif damage == "truncated":
        del content[-1000:]
    elif damage == "empty":
        content.clear()
    file.write_bytes(content)
    if damage == "unreadable":
        file.unlink()
        file.mkdir()
    cache = Cache(tmp_path)
    assert cache.load(KEY, compiler.build) == data_of(KEY)
    assert (compiler.calls, cache.builds) == (2, 1)
    if damage != "unreadable":
        assert unseal(file.read_bytes()) == data_of(KEY)


def test_output_that_is_not_an_object_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ServiceError, match="entry"):
        Cache(tmp_path).load(KEY, lambda: b"warning: nothing done")
    assert not list(entries(tmp_path))


def test_threads_build_one_key_once_and_two_keys_at_once(tmp_path: Path) -> None:
    cache, other = Cache(tmp_path), Key("cubin", "sm_90", (), "compiler 1", "other", "text")
    both = threading.Barrier(2, timeout=20)

    def build(key: Key) -> bytes:
        both.wait()  # passes only while two builds are under way
        return data_of(key)

    results: dict[int, bytes] = {}

    def work(i: int, key: Key) -> None:
        results[i] = cache.load(key, lambda: build(key))

    threads = [threading.Thread(target=work, args=(i, (KEY, other)[i % 2])) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [results[i] for i in range(8)] == [data_of((KEY, other)[i % 2]) for i in range(8)]
    assert (cache.builds, cache.hits) == (2, 6)


def test_the_folder_moves_with_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "moved"))
    assert default_folder() == tmp_path / "moved"
    Cache().load(KEY, Compiler().build)
    assert (tmp_path / "moved" / KEY.file_name()).is_file()
    assert (tmp_path / "moved").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("kind", ["a file", "open to everybody"])
def test_without_a_usable_folder_it_works_in_memory(tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "cache"
    if kind == "a file":
        folder.write_text("")
    else:
        folder.mkdir()
        folder.chmod(0o777)
    compiler, cache = Compiler(), Cache(folder)
    assert str(folder) in cache.note
    assert cache.load(KEY, compiler.build) == cache.load(KEY, compiler.build) == data_of(KEY)
    file = cache.load_file(KEY, compiler.build)
    assert unseal(file.read_bytes()) == data_of(KEY)
    assert compiler.calls == 1
    cache.close()
    assert not file.exists()


def test_what_stands_in_for_a_folder_goes_with_a_process_that_is_killed(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("")
    program = (
        "import os, signal, sys\n"
        "from pathlib import Path\n"
        "from limbd.worker.device.cache import Cache, Key\n"
        "key = Key('so', '', (), '', 'entry', '')\n"
        "print(Cache(Path(sys.argv[1])).load_file(key, lambda: b'\\x7fELF').exists(), flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    (tmp_path / "temporary").mkdir()
    environment = {**os.environ, "TMPDIR": str(tmp_path / "temporary")}
    command = (sys.executable, "-c", program, str(tmp_path / "cache"))
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert done.stdout == "True\n", done.stderr
    end = time.monotonic() + 10
    while any((tmp_path / "temporary").iterdir()):
        assert time.monotonic() < end, "left behind"
        time.sleep(0.01)


def test_leftovers_of_dead_writers_are_swept_and_living_ones_kept(tmp_path: Path) -> None:
    program = (
        "import fcntl, sys, tempfile, time\n"
        "_, name = tempfile.mkstemp(prefix='.writing-', dir=sys.argv[1])\n"
        "file = open(name, 'wb'); fcntl.flock(file, fcntl.LOCK_EX)\n"
        "print(name, flush=True); time.sleep(60)\n"
    )
    command = (sys.executable, "-c", program, str(tmp_path))
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        file = Path(writer.stdout.readline().strip())
        Cache(tmp_path)
        assert file.exists()
        writer.kill()
        writer.wait()
    Cache(tmp_path)
    assert not file.exists()


# Forks are cheap: each round is two children of one small process that fill the same keys and die at a random moment.
WRITER = """
import sys
from pathlib import Path
sys.path.insert(0, str(Path(sys.argv[2])))
from test_cache import fill_and_die
fill_and_die(Path(sys.argv[1]), int(sys.argv[3]))
"""


def fill(folder: Path) -> int:
    """Loads six keys; every one must be whole. Returns how many it built."""
    cache = Cache(folder)
    for i in range(6):
        key = Key("cubin", "sm_90", (), "compiler 1", f"entry{i}", "text")
        assert cache.load(key, lambda key=key: data_of(key)) == data_of(key)  # type: ignore[misc]
    return cache.builds


def fill_and_die(folder: Path, rounds: int) -> None:
    """Each round: two processes on a folder that was just emptied, killed after up to 12 ms, then one that must find
    only whole entries."""
    rng = random.Random(5)
    for _ in range(rounds):
        for file in folder.iterdir():
            if not file.name.startswith("."):
                file.unlink()
        writers = [_fork(folder) for _ in range(2)]
        for writer in writers:
            time.sleep(rng.uniform(0, 0.006))
            os.kill(writer, signal.SIGKILL)
        for writer in writers:
            os.waitpid(writer, 0)
        for file in entries(folder):
            assert unseal(file.read_bytes()) is not None, f"torn: {file}"
        fill(folder)
        assert fill(folder) == 0
        assert len(list(folder.iterdir())) == 6, "leftovers"
    print("sound")


def _fork(folder: Path) -> int:
    child = os.fork()
    if child == 0:
        try:
            fill(folder)
        finally:
            os._exit(0)
    return child


def test_a_hundred_rounds_of_two_processes_killed_at_random(tmp_path: Path) -> None:
    command = (sys.executable, "-c", WRITER, str(tmp_path), str(Path(__file__).parent), str(ROUNDS))
    done = subprocess.run(command, capture_output=True, text=True, timeout=200)
    assert done.stdout == "sound\n", done.stderr
