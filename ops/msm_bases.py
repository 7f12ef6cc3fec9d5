"""Points that stay on a device between multi-scalar multiplications, as they are or with their multiples by windows.

With multiples the digit of any window chooses from points that are there already: all windows share one row of buckets,
and nothing is doubled afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass

from limbd.ops.base import LIMB_BYTES, Buffer, Launch, Part, Place, Table, Transfer
from limbd.ops.msm_units import POINTS_BLOCK, bases_kernels
from limbd.ops.params.curves import Curve, Group, GroupName

TABLE = "bases"

_ALIGNMENT = 256
_BAD = Buffer("bases_bad", "scratch", 8)


@dataclass(frozen=True)
class Bases:
    """count points of a group, under a key of their own: equal keys have equal points.

    width: bits of a window, 0 where any window will do. levels: of multiples, 2^(width l) P for l below; 1: the points alone.
    images: those by the endomorphism are there too, as a second level.
    """

    curve: Curve
    name: GroupName
    count: int
    key: str
    width: int = 0
    levels: int = 1
    images: bool = False

    @property
    def group(self) -> Group:
        group = self.curve.group(self.name)
        assert group is not None, "whoever makes it has looked"
        return group

    @property
    def points_bytes(self) -> int:
        """Of all levels, level by level, up to the next whole line."""
        limbs = (self.levels << self.images) * self.count * self.curve.point_limbs(self.group)
        return -(-limbs * LIMB_BYTES // _ALIGNMENT) * _ALIGNMENT

    @property
    def nbytes(self) -> int:
        """Device memory that they take: the points, and a word for each that says whether it is infinity."""
        return self.points_bytes + self.count * LIMB_BYTES

    @property
    def infinite(self) -> Part:
        return self.infinite_from(0)

    def infinite_from(self, start: int) -> Part:
        """The words of the points from number `start` on."""
        return Part(TABLE, self.points_bytes + start * LIMB_BYTES)

    @property
    def table_key(self) -> str:
        return f"bases {self.curve.name} {self.name} {self.width} {self.levels} {self.images} {self.key}"

    def table(self) -> Table:
        """Made from the request's `points`, which have been checked before: a bad one would count as infinity."""
        wire = self.count * self.curve.point_bytes(self.group)
        return Table(
            TABLE,
            self.table_key,
            self.nbytes,
            tuple(self._builds()),
            (Buffer("bases_wire", "in", wire), _BAD),
            (Transfer("bases_wire", "points", 0, wire),),
        )

    def _builds(self) -> list[Launch]:
        kernels = bases_kernels(self.curve, self.name)
        grid = -(-self.count // POINTS_BLOCK)
        pointers: dict[str, Place | None] = {
            "wire": "bases_wire",
            "points": TABLE,
            "infinite": self.infinite,
            "bad": _BAD.name,
        }
        values = {"n": self.count, "offset": 0, "images": self.count if self.images else 0}
        builds = [Launch(kernels["msm_points"], grid, POINTS_BLOCK, values, 0, pointers)]
        if self.levels > 1:
            values = {"n": self.count, "width": self.width, "levels": self.levels}
            builds.append(Launch(kernels["msm_multiples"], grid, POINTS_BLOCK, values, 0, {"points": TABLE}))
        return builds
