"""What a compile of a unit reads: the entry, the generated header, and every header that they reach."""

from __future__ import annotations

from pathlib import Path

import pytest

from limbd.kernels.source import ROOT, MissingSource, Sources, kernel_names


@pytest.fixture
def sources(tmp_path: Path) -> Sources:
    files = {
        "entry/one.cu": '#include "a/first.cuh"\n#include "unit.cuh"\nextern "C" __global__ void one(const one_args args) {}\n',
        "a/first.cuh": '#pragma once\n  #  include "a/second.cuh"\n#if 0\n#include "host/shim.hpp"\n#endif\n',
        "a/second.cuh": '#pragma once\n#include <cstdint>\n#include "a/first.cuh"\n',
        "host/shim.hpp": '#include "host/part.hpp"\n',
        "host/part.hpp": "",
    }
    for name, text in files.items():
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return Sources((tmp_path,))


def test_headers_are_followed_to_the_end_and_the_shim_is_the_hosts_alone(sources: Sources) -> None:
    device, host = sources.cuda("one", "struct s;"), sources.host("one", "struct s;")
    assert [name for name, _ in device.headers] == ["a/first.cuh", "a/second.cuh", "unit.cuh"]
    assert [name for name, _ in host.headers] == [
        *("a/first.cuh", "a/second.cuh", "host/part.hpp", "host/shim.hpp", "unit.cuh")
    ]
    assert dict(device.headers)["unit.cuh"] == "struct s;"
    assert device.kernels == host.kernels == ("one",)
    assert host.main.rstrip().endswith("LIMBD_HOST_KERNEL(one)")


def test_the_text_covers_every_file(sources: Sources) -> None:
    text = sources.cuda("one", "struct s;").text
    assert sources.cuda("one", "struct t;").text != text
    file = sources.roots[0] / "a" / "second.cuh"
    file.write_text(file.read_text() + "// more\n")
    assert sources.cuda("one", "struct s;").text != text


def test_an_earlier_root_wins(sources: Sources, tmp_path: Path) -> None:
    other = tmp_path / "other"
    (other / "a").mkdir(parents=True)
    (other / "a" / "second.cuh").write_text("// mine\n")
    headers = dict(Sources((other, *sources.roots)).cuda("one", "").headers)
    assert headers["a/second.cuh"] == "// mine\n"


def test_what_is_missing_is_named(sources: Sources) -> None:
    with pytest.raises(MissingSource, match=r"entry/two\.cu"):
        sources.cuda("two", "")
    (sources.roots[0] / "a" / "second.cuh").unlink()
    with pytest.raises(MissingSource, match=r"a/second\.cuh"):
        sources.cuda("one", "")


def test_kernel_names_are_read_with_any_attributes_and_not_from_comments() -> None:
    text = (
        '// extern "C" __global__ void commented(int);\n'
        '/* extern "C" __global__ void commented_too(int); */\n'
        'extern "C" __global__ void plain(const a args) {}\n'
        'extern "C" __global__ void __launch_bounds__(THREADS, (1 + 1)) bounded(const a args) {}\n'
        'extern "C"\n__global__ void __launch_bounds__(64)\nbroken_line(const a args) {}\n'
        "__global__ void not_exported(int) {}\n"
    )
    assert kernel_names(text) == ("plain", "bounded", "broken_line")


def test_every_shipped_entry_defines_kernels() -> None:
    for file in (ROOT / "entry").glob("*.cu"):
        assert kernel_names(file.read_text()), file.name
