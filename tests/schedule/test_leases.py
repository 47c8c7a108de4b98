"""Leases: closed once, taken back when they expire or their worker is lost."""

from __future__ import annotations

import tracemalloc

from hypothesis import given, settings
from hypothesis import strategies as st

from bowerbird.model.url_state import FetchKind
from bowerbird.schedule.leases import Lease, LeaseBook


def lease(row: int, worker: int, expires_at: float) -> Lease:
    return Lease(row, 0, worker, FetchKind.NEW, 0.0, expires_at, 1.0, 1.0, "{}")


def test_a_lease_is_closed_once() -> None:
    book = LeaseBook()
    token = book.open(lease(7, 0, 10.0))
    assert len(book) == 1
    closed = book.close(token)
    assert closed is not None
    assert closed.row == 7
    assert book.close(token) is None
    assert book.expired(99.0) == []
    assert len(book) == 0


def test_answered_leases_are_forgotten_long_before_they_would_expire() -> None:
    book = LeaseBook()
    held = book.open(lease(1, 0, 10.0))
    tracemalloc.start()
    try:
        for row in range(20_000):
            assert book.close(book.open(lease(row, 0, 1e9 + row))) is not None
            if row % 500 == 0:
                book.take_over()  # as each commit does
        assert tracemalloc.get_traced_memory()[0] < 300_000
    finally:
        tracemalloc.stop()
    assert [gone.row for gone in book.expired(10.0)] == [1]
    assert book.close(held) is None
    assert book.expired(2e9) == []


def test_a_late_answer_finds_nothing() -> None:
    book = LeaseBook()
    token = book.open(lease(7, 0, 10.0))
    assert book.expired(9.99) == []
    assert [gone.row for gone in book.expired(10.0)] == [7]
    assert book.close(token) is None


def test_a_lease_ends_when_it_would_have_where_the_clock_is_set_back() -> None:
    book = LeaseBook()
    book.open(lease(7, 0, 5000.0))
    book.open(lease(8, 0, 5020.0))
    book.set_back(3600.0)
    assert book.expired(1399.0) == []
    assert [gone.row for gone in book.expired(1400.0)] == [7]
    assert [gone.decided_at for gone in book.expired(1420.0)] == [-3600.0]


def test_a_lost_worker_gives_back_all_it_held_and_nothing_else() -> None:
    book = LeaseBook()
    for row in range(6):
        book.open(lease(row, row % 2, 10.0 + row))
    assert [gone.row for gone in book.of_worker(1)] == [1, 3, 5]
    assert book.of_worker(1) == []
    assert [gone.row for gone in book.expired(99.0)] == [0, 2, 4]


moves = st.tuples(st.sampled_from(["open", "close", "expire", "lose"]), st.integers(0, 20), st.integers(0, 3))


@settings(max_examples=150)
@given(st.lists(moves, max_size=60))
def test_every_lease_leaves_the_book_exactly_once(steps: list[tuple[str, int, int]]) -> None:
    book = LeaseBook()
    mirror: dict[int, Lease] = {}
    now = 0.0
    for verb, number, worker in steps:
        if verb == "open":
            made = lease(number, worker, now + number)
            token = book.open(made)
            assert token not in mirror
            mirror[token] = made
        elif verb == "close":
            token = number + 1
            assert book.close(token) is mirror.pop(token, None)
        elif verb == "expire":
            now += number
            late = sorted((held.expires_at, token) for token, held in mirror.items() if held.expires_at <= now)
            assert book.expired(now) == [mirror.pop(token) for _, token in late]
        else:
            mine = [token for token, held in mirror.items() if held.worker == worker]
            assert book.of_worker(worker) == [mirror.pop(token) for token in mine]
        assert len(book) == len(mirror)
