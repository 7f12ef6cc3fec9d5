"""Known encodings of points: formats.jsonl, one a line; SOURCES.md names their origin.

source, curve, group, form    a row of SOURCES.md; the names that limbd.formats takes
hex                           the bytes; of a refused case those of one point or two
multiple                      which multiple of the generator it is, 0 for infinity; or
point                         [x, y] as 0x-hexadecimal digits; or
refused, name                 why it is no point: curve, range or padding; and its name there
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from limbd.harness.vectors import FOLDER
from limbd.ops.params import curves
from limbd.ops.params.curves import Curve, Group, GroupName
from limbd.ops.reference.curve import Point, negate, times


@dataclass(frozen=True)
class Encoding:
    source: str
    curve: str
    group: GroupName
    form: str
    hex: str
    multiple: int | None = None
    point: tuple[str, str] | None = None
    refused: str | None = None
    name: str = ""

    @property
    def data(self) -> bytes:
        return bytes.fromhex(self.hex)

    @property
    def members(self) -> tuple[Curve, Group]:
        curve = curves.by_name(self.curve)
        group = curve.group(self.group) if curve else None
        assert curve is not None and group is not None
        return curve, group

    def expected(self) -> Point:
        """Of a case that is not refused: the point, by the group law."""
        if self.point is not None:
            x, y = (int(text, 16) for text in self.point)
            return (x,), (y,)
        assert self.multiple is not None
        curve, group = self.members
        p = curve.base.modulus
        found = times(abs(self.multiple), group.generator, p)
        return negate(found, p) if self.multiple < 0 else found


def encodings() -> Iterator[Encoding]:
    for line in (FOLDER / "formats.jsonl").read_text().splitlines():
        yield Encoding(**json.loads(line))
