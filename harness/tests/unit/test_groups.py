"""Which groups a day's tests take."""

from __future__ import annotations

from limbd.harness.groups import GROUPS, LONG, is_tested


def test_a_round_of_days_tests_every_group_and_short_ones_always() -> None:
    tested = [{(c.name, n) for c, n in GROUPS if is_tested(c.name, n, day)} for day in range(len(LONG))]
    assert set.union(*tested) == {(curve.name, name) for curve, name in GROUPS} > set(LONG)
    assert set.intersection(*tested) == {("bn254", "g1"), ("toy_7_13", "g1"), ("toy_7_13", "g2")}
