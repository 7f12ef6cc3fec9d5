"""The shape of the code, read from its text: which package may import which, and what every op must have."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import limbd
from limbd.harness.vectors import FOLDER as VECTORS
from limbd.harness.vectors import load
from limbd.ops import OPS
from limbd.ops.params.fields import FIELDS

SOURCE = Path(limbd.__file__).resolve().parent
ROOT = Path(__file__).resolve().parents[3]
PACKAGES = ("worker", "ops", "kernels", "harness", "plans")

# What a module whose name starts so must not import (first match decides); names are those after `limbd.`.
ARROWS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("kernels", ("worker", "ops", "harness", "cli")),
    ("ops.params", ("worker", "ops.", "kernels", "harness", "cli")),
    ("ops", ("worker", "kernels", "harness", "cli")),
    ("worker.device", ("worker.", "harness", "cli")),
    ("worker", ("worker.device.", "harness", "cli")),
    ("harness", ("cli", "cli_convert", "cli_measure", "arguments", "formats")),
)
# What is allowed although its package is not: own subpackages, and data that has no behaviour.
ALLOWED: dict[str, tuple[str, ...]] = {
    "ops.params": ("ops.params",),
    "worker.device": ("worker.device",),
    # The message layouts that both ends of the control socket speak; no backend behind them.
    "worker": ("worker.device.base", "worker.device.messages"),
}
# Pure modules: bytes in, values out.
PURE = ("worker.wire", "worker.session", "worker.batcher", "ops")
IMPURE = ("asyncio", "socket", "time", "cuda", "selectors", "threading", "subprocess", "multiprocessing")
# The front never touches CUDA; the harness is no front and has no event loop of its own.
NO_CUDA = ("worker.server", "worker.executor", "worker.client", "worker.arena", "worker.config", "harness", "cli")


def modules() -> Iterator[tuple[str, Path]]:
    """Every module of the package, without the tests: name after `limbd.`, and its file."""
    for path in sorted(SOURCE.glob("*.py")):
        if path.stem != "__init__":
            yield path.stem, path
    for package in PACKAGES:
        folder = SOURCE / package
        for path in sorted(folder.resolve().rglob("*.py")):
            inside = path.relative_to(folder.resolve())
            if inside.parts[0] != "tests":
                yield ".".join((package, *inside.with_suffix("").parts)).removesuffix(".__init__"), path


MODULES = dict(modules())


def imports_of(path: Path) -> Iterator[str]:
    """Absolute names of the modules that a file imports, inside functions too."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            assert node.module
            yield node.module
            # `from limbd.worker import wire` imports the module limbd.worker.wire.
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                if whole.removeprefix("limbd.") in MODULES:
                    yield whole


def within(name: str, prefix: str) -> bool:
    """prefix itself (unless it ends in a dot) or a module below it."""
    return name == prefix or name.startswith(prefix.removesuffix(".") + ".")


def forbidden(importer: str, imported: str) -> bool:
    for prefix, banned in ARROWS:
        if within(importer, prefix):
            if any(within(imported, allowed) for allowed in ALLOWED.get(prefix, ())):
                return False
            return any(within(imported, ban) and imported != ban.removesuffix(".") for ban in banned) or any(
                imported == ban for ban in banned
            )
    return False


def test_the_walk_finds_the_code() -> None:
    assert {"ops.base", "ops.params.fields", "worker.device.base", "harness.kat", "kernels.source"} <= MODULES.keys()


@pytest.mark.parametrize("name", MODULES)
def test_arrows_point_one_way(name: str) -> None:
    own = [each.removeprefix("limbd.") for each in imports_of(MODULES[name]) if each.startswith("limbd")]
    assert [each for each in own if forbidden(name, each)] == []


@pytest.mark.parametrize(
    ("importer", "imported"),
    [
        ("kernels.source", "ops.base"),
        ("ops.params.base", "ops.base"),
        ("ops.mod_mul", "worker.wire"),
        ("ops.base", "kernels.source"),
        ("worker.device.cpu", "worker.server"),
        ("worker.server", "worker.device.cuda"),
        ("worker.executor", "harness.kat"),
        ("harness.kat", "cli"),
    ],
)
def test_a_wrong_arrow_is_seen(importer: str, imported: str) -> None:
    assert forbidden(importer, imported)


@pytest.mark.parametrize("name", [name for name in MODULES if any(within(name, pure) for pure in PURE)])
def test_pure_modules_do_no_io(name: str) -> None:
    assert [each for each in imports_of(MODULES[name]) if each.split(".")[0] in IMPURE] == []


@pytest.mark.parametrize("name", [name for name in MODULES if any(within(name, front) for front in NO_CUDA)])
def test_the_front_never_touches_cuda(name: str) -> None:
    assert [each for each in imports_of(MODULES[name]) if each.split(".")[0] == "cuda"] == []


@pytest.mark.parametrize("name", [name for name in MODULES if within(name, "harness")])
def test_the_harness_has_no_event_loop(name: str) -> None:
    assert "asyncio" not in set(imports_of(MODULES[name]))


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_an_op_is_four_files_with_one_stem(op: object) -> None:
    stem = op.stem  # type: ignore[attr-defined]
    assert (SOURCE / "ops" / f"{stem}.py").is_file()
    assert (SOURCE / "ops" / "reference" / f"{stem}.py").is_file()
    assert (SOURCE / "kernels" / "entry" / f"{stem}.cu").is_file()
    assert (VECTORS / f"{stem}.msgpack").is_file()
    assert any(True for _ in load(op.name))  # type: ignore[attr-defined]


def test_every_op_module_is_in_ops() -> None:
    references = {path.stem for path in (SOURCE / "ops" / "reference").glob("*.py")} - {"__init__"}
    stems = {op.stem for op in OPS}
    assert {stem for stem in references if (SOURCE / "ops" / f"{stem}.py").is_file()} == stems
    assert {op.id for op in OPS} == {op.id: op for op in OPS}.keys()
    assert len({op.id for op in OPS}) == len({op.name for op in OPS}) == len(OPS)


@pytest.mark.parametrize("field", [field for field in FIELDS if not field.toy], ids=lambda field: field.name)
def test_a_field_has_its_vectors(field: object) -> None:
    path = VECTORS / f"field_{field.name}.msgpack"  # type: ignore[attr-defined]
    assert path.is_file()


def test_no_module_is_loaded_under_two_names() -> None:
    """Imports everything in a fresh interpreter that stands in the repository's root, where `import worker` works too."""
    names = [f"limbd.{name}" for name in MODULES if name not in ("harness.vectors.build", "worker.device.cuda")]
    program = f"""
import importlib, os, sys
for name in {names!r}:
    importlib.import_module(name)
seen = {{}}
for name, module in list(sys.modules.items()):
    file = getattr(module, "__file__", None)
    if file and name != "__main__":
        seen.setdefault(os.path.realpath(file), []).append(name)
double = [names for file, names in seen.items() if len(names) > 1 and any(n.startswith("limbd") for n in names)]
bare = [name for name in sys.modules if name.split(".")[0] in {PACKAGES!r}]
print(double, bare)
sys.exit(bool(double or bare))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr


def tracked_texts() -> Iterator[tuple[str, str]]:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("not a git checkout")
    for name in listed.stdout.splitlines():
        path = ROOT / name
        if path.is_file() and not path.is_symlink() and path.suffix not in (".msgpack", ".npy", ".bin", ".png"):
            yield name, path.read_text(errors="replace")


def test_no_machine_paths() -> None:
    """Nothing depends on the machine it was written on."""
    pattern = re.compile(r"/(?:home|root|work|Users)/[A-Za-z0-9._-]+")
    found = [f"{name}: {match[0]}" for name, text in tracked_texts() for match in pattern.finditer(text)]
    assert found == []


def test_files_are_small() -> None:
    sizes = {name: len(path.read_text().splitlines()) for name, path in MODULES.items()}
    assert {name: size for name, size in sizes.items() if size > 500} == {}


# A function that is not inlined: its parameters and its body.
CALLED = re.compile(r"__noinline__[^;(]*?(\w+)\(([^)]*)\)\s*\{(.*?)^\}", re.DOTALL | re.MULTILINE)


def test_functions_that_are_called_make_sure_of_their_references() -> None:
    """kernels/base/own_memory.cuh says why."""
    found = 0
    for path in (SOURCE / "kernels").resolve().rglob("*.cuh"):
        for name, parameters, body in CALLED.findall(path.read_text()):
            for reference in re.findall(r"&\s*(\w+)", parameters):
                found += 1
                assert f"own_memory::of({reference})" in body, f"{path.name}: {name} takes {reference} as it comes"
    assert found >= 8


def hop_table() -> list[tuple[str, str]]:
    """(call, files) of README's table of hops: rows `| number | `Name.function`, ... | file, ... | ... |`."""
    readme = ROOT / "README.md"
    if not readme.is_file():
        return []
    return re.findall(r"^\|\s*\d+\s*\|(\s*`[A-Z]\w+\.\w+`[^|]*)\|([^|]+)\|", readme.read_text(), flags=re.MULTILINE)


def test_readme_names_functions_that_exist() -> None:
    rows = hop_table()
    assert len(rows) >= 8, "README.md has no hop table"
    for calls, files in rows:
        paths = [ROOT / name for name in re.findall(r"[\w/]+\.py", files)]
        if "<op>" in files:
            paths += [SOURCE / "ops" / f"{op.stem}.py" for op in OPS] + [SOURCE / "ops" / "modular.py"]
        assert paths, f"no file in README's row {calls}"
        for call in re.findall(r"`([A-Z]\w+)\.(\w+)`", calls):
            assert any(defines(path, *call) for path in paths), f"{'.'.join(call)} is not in {files}"


def defines(path: Path, owner: str, function: str) -> bool:
    """Whether the file has a class named `owner` (or ending so: a CudaBackend is a Backend, and every op an Op) with
    this method."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ClassDef) and node.name.endswith(owner):
            for item in node.body:
                if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef) and item.name == function:
                    return True
    return False
