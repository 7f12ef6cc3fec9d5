"""`limbd info`: what this machine and this build can do, as one plain dictionary and as tables."""

from __future__ import annotations

import json
import platform
from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.table import Table

import limbd
from limbd.harness.demo import PLAIN_WIDTH
from limbd.ops import OPS
from limbd.ops.base import Traits
from limbd.ops.domain import MAX_LOG_N, transforms
from limbd.ops.params import fields
from limbd.ops.params.base import Field
from limbd.ops.status import LimbdError
from limbd.ops.tuning import sm_number
from limbd.worker import wire
from limbd.worker.config import BACKENDS, Config
from limbd.worker.device import driver, host_compiler
from limbd.worker.device.cache import Cache, default_folder, entries
from limbd.worker.device.choose import AUTOMATIC, NoBackend, choose
from limbd.worker.device.nvrtc import REMEDY, Nvrtc

Facts = dict[str, Any]


def collect(config: Config) -> Facts:
    """Everything that `limbd info` tells. Each backend is really started, so that a "works" is a fact."""
    backends = [_backend(name, config) for name in BACKENDS if name != "auto"]
    working = {backend["name"] for backend in backends if backend["works"]}
    return {
        "version": limbd.__version__,
        "python": platform.python_version(),
        "wire": [{"version": v.number, "magic": v.magic.decode()} for v in wire.VERSIONS],
        "driver": _driver(),
        "backends": backends,
        "auto": next(name for name in AUTOMATIC if name in working),
        "compilers": {"host": _host_compiler(), "device": _device_compiler()},
        "ops": [{"id": op.id, "name": op.name, "operands": op.operands, "summary": op.summary} for op in OPS],
        "fields": [
            {"id": f.id, "name": f.name, "bits": f.bits, "modulus": f"{f.modulus:#x}", "source": f.source, **_roots(f)}
            for f in fields.registered()
            if config.toys or not f.toy
        ],
        "limits": asdict(config.limits),
        "cache": _cache(config),
    }


def show(facts: Facts, *, as_json: bool = False, console: Console | None = None) -> None:
    """Prints them: tables, or one JSON object."""
    if as_json:
        print(json.dumps(facts, indent=2))
        return
    console = console or Console()
    if not console.is_terminal:
        console.width = PLAIN_WIDTH
    versions = ", ".join(f"{v['version']} ({v['magic']})" for v in facts["wire"])
    _say(console, f"limbd {facts['version']} on Python {facts['python']}, wire version {versions}")
    for table in (_backend_table(facts), _op_table(facts), _field_table(facts)):
        console.print()
        console.print(table)
    console.print()
    told = facts["driver"]
    _say(console, f"NVIDIA driver: {'for CUDA ' + told['cuda'] if told['cuda'] else told['why_not']}")
    for gpu in told["devices"]:
        _say(console, f"  device {gpu['index']}: {gpu['name']}, {gpu['arch']}, {size(gpu['memory'])}")
        _say(console, f"    {_tuned(gpu)}")
    for name, compiler in facts["compilers"].items():
        _say(console, f"{name} compiler: {compiler['version'] or 'none: ' + compiler['why_not']}")
    limits = facts["limits"]
    _say(
        console,
        f"limits: payload {size(limits['payload'])}, {limits['connections']} connections, in flight "
        f"{size(limits['in_flight'])} in all, {size(limits['sure'])} for each connection in any case",
    )
    cache = facts["cache"]
    _say(console, f"cache: {cache['folder']}, {cache['entries']} kernels, {size(cache['bytes'])}{cache['note']}")
    if facts["auto"] != "cuda":
        _say(console, f"for an NVIDIA GPU: {REMEDY}")


def size(count: int) -> str:
    """ "1.5 GiB" """
    value, units = float(count), ["bytes", "KiB", "MiB", "GiB", "TiB"]
    while value >= 1024 and len(units) > 1:
        value /= 1024
        units.pop(0)
    return f"{value:.4g} {units[0]}"


def _say(console: Console, text: str) -> None:
    console.print(text, highlight=False, markup=False, soft_wrap=True)


def _roots(field: Field) -> Facts:
    """Of transforms: the largest k that has them, and the registered generator; None where there are none."""
    if not transforms(field):
        return {"transforms": None, "generator": None}
    return {"transforms": min(field.two_adicity, MAX_LOG_N), "generator": field.generator}


def _backend(name: str, config: Config) -> Facts:
    facts: Facts = {"name": name, "works": False, "device": "", "arch": "", "memory": 0, "why_not": ""}
    try:
        backend, _ = choose(name, config.devices[0], config.device_memory, config.cache)
    except NoBackend as error:
        return {**facts, "why_not": str(error).removeprefix(f"{name}: ")}
    try:
        told = backend.describe()
    finally:
        backend.close()
    return {**facts, "works": True, "device": told.device, "arch": told.arch, "memory": told.memory}


def _driver() -> Facts:
    """The NVIDIA driver and every GPU that it shows to this process."""
    state = driver.probe()
    devices = [
        {
            "index": d.index,
            "name": d.name,
            "arch": d.arch,
            "multiprocessors": d.multiprocessors,
            "memory": d.memory,
            "tuned_for": _tuned_for(Traits("cuda", d.arch, d.multiprocessors, d.memory)),
        }
        for d in state.devices
    ]
    cuda = ".".join(map(str, state.version)) if state.version != (0, 0) else ""
    return {"cuda": cuda, "devices": devices, "why_not": state.reason}


def _tuned_for(traits: Traits) -> Facts:
    """op -> the architectures whose tuning rows it takes there."""
    return {op.name: sorted(op.tuned_for(traits), key=sm_number) for op in OPS}


def _tuned(gpu: Facts) -> str:
    """ "tuning rows of another architecture: sm_90 (mod-mul, msm-g1), sm_75 (quotient)" """
    others: dict[str, list[str]] = {}
    for op, archs in gpu["tuned_for"].items():
        if archs != [gpu["arch"]]:
            others.setdefault(" and ".join(archs), []).append(op)
    if not others:
        return "tuning rows: its own"
    return "tuning rows of another architecture: " + ", ".join(
        f"{archs} ({', '.join(ops)})" for archs, ops in others.items()
    )


def _host_compiler() -> Facts:
    try:
        return {"version": host_compiler.find().describe(), "why_not": ""}
    except LimbdError as error:
        return {"version": "", "why_not": str(error)}


def _device_compiler() -> Facts:
    try:
        nvrtc = Nvrtc()
    except LimbdError as error:
        return {"version": "", "architectures": [], "why_not": str(error)}
    return {"version": nvrtc.full_version, "architectures": nvrtc.supported, "why_not": ""}


def _cache(config: Config) -> Facts:
    cache = Cache(config.cache)
    folder = config.cache or default_folder()
    files = list(entries(folder)) if folder.is_dir() else []
    nbytes = sum(file.stat().st_size for file in files)
    note = f" (kept in memory: {cache.note})" if cache.note else ""
    cache.close()
    return {"folder": str(folder), "entries": len(files), "bytes": nbytes, "note": note}


def _backend_table(facts: Facts) -> Table:
    table = Table("backend", "works", "device", "arch", "memory", title="backends", title_justify="left")
    for column in (0, 1, 3, 4):
        table.columns[column].no_wrap = True
    for backend in facts["backends"]:
        name = f"{backend['name']} (auto)" if backend["name"] == facts["auto"] else backend["name"]
        memory = size(backend["memory"]) if backend["memory"] else "-"
        told = backend["device"] if backend["works"] else backend["why_not"]
        table.add_row(name, "yes" if backend["works"] else "no", told, backend["arch"] or "-", memory)
    return table


def _op_table(facts: Facts) -> Table:
    table = Table("id", "op", "operands", "result", title="ops", title_justify="left")
    for op in facts["ops"]:
        table.add_row(f"{op['id']:#04x}", op["name"], ", ".join(op["operands"]), op["summary"])
    return table


def _field_table(facts: Facts) -> Table:
    title = "fields (element-wise ops take any other modulus too)"
    table = Table("id", "field", "bits", "ntt up to", "modulus", title=title, title_justify="left")
    for column in table.columns[:4]:
        column.no_wrap = True
    table.columns[4].overflow = "fold"
    for field in facts["fields"]:
        largest = "-" if field["transforms"] is None else f"2^{field['transforms']}"
        table.add_row(f"{field['id']:#06x}", field["name"], str(field["bits"]), largest, field["modulus"])
    return table
