"""Shared memory: slots, both zones, a full machine; and the budget that guards them."""

from __future__ import annotations

import errno
import mmap
import os
import random

import pytest

from limbd.ops.status import ServiceError, Status
from limbd.worker.arena import ALIGN, GRANULE, Arena, Slot, slot_bytes
from limbd.worker.budget import Budget

KEEP, IN_FLIGHT = 1 << 20, 4 << 20


def allocated(arena: Arena) -> int:
    """Bytes of memory that the file really has."""
    return os.fstat(arena.fd).st_blocks * 512


def test_slots_never_overlap_and_come_back() -> None:
    arena = Arena(KEEP, IN_FLIGHT)
    rng = random.Random(5)
    live: list[tuple[Slot, int]] = []
    for step in range(3000):
        if live and (len(live) > 12 or rng.random() < 0.45):
            slot, mark = live.pop(rng.randrange(len(live)))
            assert arena.payload(slot)[:1] == bytes([mark]) == arena.payload(slot)[-1:]
            assert arena.result(slot)[:1] == bytes([mark]) == arena.result(slot)[-1:]
            arena.give_back(slot)
            arena.release(slot)
            continue
        slot = arena.reserve(rng.randrange(1, 200_000), rng.randrange(1, 100_000))
        arena.back(slot)
        assert arena.is_backed(slot) or slot.passing
        assert slot.offset % mmap.PAGESIZE == 0 and slot.result_offset % ALIGN == 0
        mark = step % 251
        for view in (arena.payload(slot), arena.result(slot)):
            view[0] = view[-1] = mark
        live.append((slot, mark))
    for slot, _ in live:
        arena.give_back(slot)
        arena.release(slot)
    assert arena.reserved == 0
    whole = arena.reserve(KEEP, 0)
    assert (whole.offset, whole.passing) == (0, False), "neighbours have to merge again"
    arena.close()


def test_a_slot_takes_little_more_than_was_asked() -> None:
    for needed in (1, 4096, 4097, 10_000, 100_000, 96 << 20, (1 << 31) - 32):
        assert needed <= slot_bytes(needed, 0) <= max(4096, needed * 1.25 + 4096)
    assert slot_bytes(1 << 30, (1 << 30) - 32) == 1 << 31


def test_the_lasting_zone_keeps_its_memory_and_the_passing_zone_does_not() -> None:
    arena = Arena(KEEP, IN_FLIGHT)
    assert allocated(arena) == 0
    small = arena.reserve(300_000, 0)
    arena.back(small)
    assert not small.passing
    kept = allocated(arena)
    assert 300_000 <= kept <= 300_000 + 2 * GRANULE
    large = arena.reserve(2 << 20, 1 << 20)
    arena.back(large)
    assert large.passing and not arena.is_backed(large)
    assert allocated(arena) == kept + (3 << 20)
    arena.payload(large)[:4] = b"data"
    for slot in (small, large):
        arena.give_back(slot)
        arena.release(slot)
    assert allocated(arena) == kept
    again = arena.reserve(2 << 20, 1 << 20)
    arena.back(again)
    assert again.offset == large.offset and arena.payload(again)[:4] == bytes(4)
    arena.close()


def test_a_full_machine_is_an_error_of_one_request(monkeypatch: pytest.MonkeyPatch) -> None:
    arena = Arena(KEEP, IN_FLIGHT)

    def full(fd: int, offset: int, nbytes: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    slot = arena.reserve(100, 100)
    with monkeypatch.context() as patch:
        patch.setattr(os, "posix_fallocate", full)
        with pytest.raises(ServiceError) as caught:
            arena.back(slot)
    assert caught.value.status is Status.BUSY and "No space left" in caught.value.message
    assert not arena.is_backed(slot)
    arena.back(slot)
    assert arena.is_backed(slot)
    arena.close()


def test_no_room_is_an_error_and_leaves_the_rest_alone() -> None:
    arena = Arena(KEEP, KEEP)
    with pytest.raises(ServiceError) as caught:
        arena.reserve(100 * KEEP, 0)
    assert caught.value.status is Status.BUSY
    assert arena.reserve(KEEP, 0).offset == 0
    arena.close()


def test_nothing_of_it_has_a_name() -> None:
    arena = Arena(KEEP, IN_FLIGHT)
    assert os.fstat(arena.fd).st_nlink == 0
    arena.close()


def test_each_connection_is_sure_of_its_share() -> None:
    budget = Budget(total=100, sure=10)
    hog, modest, late = budget.open(), budget.open(), budget.open()
    assert budget.take(hog, 80)
    assert not budget.take(hog, 1), "beyond its share it may not touch what the two others are sure of"
    assert budget.take(modest, 10) and budget.take(late, 10)
    assert not budget.take(modest, 1) and not budget.take(hog, 1)
    budget.give(hog, 30)
    assert budget.take(modest, 30)
    budget.close(late)
    budget.give(late, 10)
    assert budget.take(modest, 10)
    assert budget.used == 100


def test_promises_take_half_the_total_at_most() -> None:
    budget = Budget(total=100, sure=10)
    shares = [budget.open() for _ in range(50)]
    assert budget.take(shares[0], 50)
    assert not budget.take(shares[0], 1)
    assert all(budget.take(share, 10) for share in shares[1:6])
    assert not budget.take(shares[6], 10)
    assert budget.used == 100


def test_a_request_of_the_whole_total_is_granted_when_nothing_else_is_in_flight() -> None:
    budget = Budget(total=100, sure=10)
    large, other = budget.open(), budget.open()
    assert budget.take(other, 1)
    assert not budget.take(large, 100)
    budget.give(other, 1)
    assert budget.take(large, 100)
    assert not budget.take(large, 1)


def test_beside_a_request_of_the_whole_total_the_others_keep_their_sure_shares() -> None:
    budget = Budget(total=100, sure=10)
    giant = budget.open()
    others = [budget.open() for _ in range(6)]
    assert budget.take(giant, 100)
    assert all(budget.take(other, 10) for other in others[:5])
    assert not budget.take(others[0], 1), "no more than its sure share"
    assert not budget.take(others[5], 1), "all of them together no more than half the total"
    budget.give(others[1], 10)
    assert budget.take(others[5], 10)
    budget.give(giant, 100)
    assert not budget.take(others[1], 60), "with the giant gone the total is the bound again"
    assert budget.take(others[1], 5)
    assert budget.used == 55
