"""Out-links of a page: what merging looks keeps, and what a row of the database gives back."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bowerbird.store.links import OutLinks

targets = st.lists(st.integers(0, 12), max_size=8, unique=True)
looks = st.lists(st.tuples(st.integers(1, 500), targets, st.booleans()), min_size=1, max_size=10)


def u32(rows: list[int]) -> np.ndarray:
    return np.array(rows, dtype=np.uint32)


def facts(links: OutLinks) -> list[tuple[int, float, float]]:
    columns = (links.targets.tolist(), links.first_seen.tolist(), links.last_seen.tolist())
    return list(zip(*columns, strict=True))


@given(start=st.integers(1, 2**31), steps=looks)
def test_first_and_last_seen_follow_the_looks(start: int, steps: list[tuple[int, list[int], bool]]) -> None:
    mirror: dict[int, tuple[float, float]] = {}
    links: OutLinks | None = None
    at = float(start)
    for wait, seen, stored in steps:
        at += wait
        novel = [row for row in seen if row not in mirror]
        for row in seen:
            mirror[row] = (mirror.get(row, (at, at))[0], at)
        if links is None:
            links = OutLinks.fresh(3, u32(seen), at)
        else:
            links, new = links.seen_again(u32(seen), at)
            assert new.tolist() == novel
        if stored:  # by way of the database; whole seconds pass unharmed
            links = OutLinks.decode(*links.encode())
        assert links.source == 3
        assert links.seen_at == at
        assert facts(links) == [(row, first, last) for row, (first, last) in mirror.items()]
        assert sorted(links.current().tolist()) == sorted(seen)


@given(start=st.floats(1.0, 2e9), steps=looks)
def test_fractions_of_seconds_do_not_make_links_vanish(start: float, steps: list[tuple[int, list[int], bool]]) -> None:
    """The database keeps whole seconds: times may lose their fraction, but who is current stays."""
    links: OutLinks | None = None
    at = start
    for wait, seen, _ in steps:
        at += wait + 1
        links = OutLinks.fresh(3, u32(seen), at) if links is None else links.seen_again(u32(seen), at)[0]
        stored = OutLinks.decode(*links.encode())
        assert stored.targets.tolist() == links.targets.tolist()
        assert stored.seen_at == links.seen_at
        assert (np.abs(stored.first_seen - links.first_seen) < 1).all()
        assert (np.abs(stored.last_seen - links.last_seen) < 1).all()
        assert sorted(stored.current().tolist()) == sorted(links.current().tolist()) == sorted(seen)
        links = stored


def test_a_page_seen_once_takes_four_bytes_a_link() -> None:
    _, _, blob, first, last = OutLinks.fresh(1, u32([5, 6, 7]), 1000.5).encode()
    assert len(blob) == 12
    assert first is last is None


def test_a_page_without_links() -> None:
    links = OutLinks.fresh(1, u32([]), 10.0)
    assert facts(OutLinks.decode(*links.encode())) == []
    again, new = links.seen_again(u32([4]), 20.0)
    assert facts(again) == [(4, 20.0, 20.0)]
    assert new.tolist() == [4]
