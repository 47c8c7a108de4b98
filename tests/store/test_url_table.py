"""Finding and adding URLs, against a dictionary."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bowerbird.store.columns import URL_COLUMNS, Columns
from bowerbird.store.hashtable import ANCHOR_SLOTS, note_anchors
from bowerbird.store.url_table import HostTable, UrlTable, anchor_mark, hash_urls

# neighbours at both ends, so that chains of slots form and wrap around
hashes = (
    st.integers(0, 2**64 - 1)
    | st.integers(0, 40)
    | st.integers(2**64 - 40, 2**64 - 1)
    | st.sampled_from([2047, 2048, 4095, 4096])
)
batches = st.lists(st.tuples(st.booleans(), st.lists(hashes, max_size=40)), max_size=12)


def u64(values: list[int]) -> np.ndarray:
    return np.array(values, dtype=np.uint64)


@settings(max_examples=200, deadline=None)
@given(batches)
def test_claim_and_find_are_those_of_a_dictionary(steps: list[tuple[bool, list[int]]]) -> None:
    table = UrlTable(seed=1)
    mirror: dict[int, int] = {}
    for adding, wanted in steps:
        if adding:
            before = len(mirror)
            expected = [mirror.setdefault(value, len(mirror)) for value in wanted]
            rows, added = table.claim(u64(wanted))
            assert rows.tolist() == expected
            assert added == len(mirror) - before
            assert len(table) == len(mirror)
        else:
            assert table.find(u64(wanted)).tolist() == [mirror.get(value, -1) for value in wanted]
    assert table.columns["hash"].tolist() == list(mirror)


def test_it_grows_and_forgets_nothing() -> None:
    table = UrlTable(seed=1)
    rng = np.random.default_rng(4)
    mirror: dict[int, int] = {}
    for size in (1, 10, 1000, 1, 30_000, 7, 50_000):
        batch = rng.integers(0, 60_000, size).astype(np.uint64) * np.uint64(2**48 + 1)  # many the same, low bits alike
        expected = [mirror.setdefault(value, len(mirror)) for value in batch.tolist()]
        rows, _ = table.claim(batch)
        assert rows.tolist() == expected
    known = u64(list(mirror))
    assert np.array_equal(table.find(known), np.arange(len(mirror)))
    assert (table.find(known + np.uint64(1)) == -1).all()
    assert len(table._slots) * UrlTable.MAX_LOAD >= len(table)


def test_after_a_restore_everything_is_found_again() -> None:
    table = UrlTable(seed=1)
    values = np.random.default_rng(5).integers(0, 2**63, 5000).astype(np.uint64)
    rows, added = table.claim(values)
    other = UrlTable(seed=1)
    other.columns.extend(added)
    other.columns["hash"][:] = table.columns["hash"]
    other.restore(added)
    assert np.array_equal(other.find(values), rows)
    assert other.claim(u64([3]))[0].tolist() == [added]


def test_new_rows_hold_nothing_but_their_hash() -> None:
    table = UrlTable(seed=1)
    table.claim(u64(list(range(1, 5000))))
    for name in URL_COLUMNS:
        assert name == "hash" or not table.columns[name].any()


def test_fill_sets_the_facts_and_counts_the_hosts_urls() -> None:
    table = UrlTable(seed=1)
    assert [table.hosts[origin] for origin in ("https://a.example", "https://b.example", "https://a.example")] == [
        0,
        1,
        0,
    ]
    table.claim(u64([5, 6, 7]))
    table.fill(0, [0, 1, 1], kind=[0, 1, 2], depth=3, hops=1, first_seen=9.9, interval_s=60.0)
    table.claim(u64([8]))
    table.fill(3, [1], kind=0, depth=0, hops=0, first_seen=10.0, interval_s=61.0)
    pages, hosts = table.page_columns(), table.host_columns()
    assert pages.host.tolist() == [0, 1, 1, 1]
    assert pages.kind.tolist() == [0, 1, 2, 0]
    assert pages.depth.tolist() == [3, 3, 3, 0]
    assert pages.first_seen.tolist() == [9, 9, 9, 10]
    assert pages.interval_s.tolist() == [60.0, 60.0, 60.0, 61.0]
    assert hosts.known.tolist() == [1, 3]


def test_what_appraisers_see_cannot_be_written() -> None:
    table = UrlTable(seed=1)
    table.hosts["https://a.example"]
    table.claim(u64([5]))
    pages, hosts = table.page_columns(), table.host_columns()
    for view in (pages.state, pages.last_fetched, hosts.known, hosts.fetched, hosts.trap_score):
        with pytest.raises(ValueError, match="read-only"):
            view[0] = 1
    table.columns["state"][0] = 4
    table.hosts.columns["known"][0] = 4
    assert (pages.state[0], hosts.known[0]) == (4, 4)


def test_hosts_are_numbered_as_they_come_and_marked_for_the_next_commit() -> None:
    hosts = HostTable()
    for number in range(600):
        assert hosts[f"https://h{number}.example"] == number
    assert len(hosts) == len(hosts.origins) == hosts.columns.count == 600
    assert hosts.dirty == set(range(600))
    assert hosts.domain(7) == "h7.example"


def test_a_trap_score_is_a_share_that_starts_low() -> None:
    hosts = HostTable()
    for number in range(3):
        hosts[f"https://h{number}.example"]
    hosts.columns["pages"][:] = [0, 1, 980]
    hosts.columns["duplicates"][:] = [0, 1, 980]
    score = hosts.trap_score()
    assert score[0] == 0
    assert 0 < score[1] < 0.05
    assert 0.9 < score[2] < 1


def test_hashes_depend_on_the_crawl_s_seed() -> None:
    urls = ["https://a.example/", "https://a.example/ü", "https://a.example/"]
    one, other = hash_urls(urls, 1), hash_urls(urls, 2)
    assert one[0] == one[2] != one[1]
    assert not set(one.tolist()) & set(other.tolist())
    assert hash_urls([], 1).dtype == np.uint64


@settings(max_examples=150)
@given(st.lists(st.tuples(st.integers(-1, 3), st.integers(0, 7)), max_size=60))
def test_each_target_keeps_its_first_few_distinct_anchors(pairs: list[tuple[int, int]]) -> None:
    fingerprints = np.zeros((4, ANCHOR_SLOTS), dtype=np.uint16)
    mirror: list[list[int]] = [[], [], [], []]
    expected = []
    for row, mark in pairs:
        new = row >= 0 and mark > 0 and mark not in mirror[row] and len(mirror[row]) < ANCHOR_SLOTS
        if new:
            mirror[row].append(mark)
        expected.append(new)
    found = np.empty(len(pairs), dtype=np.bool_)
    rows = np.array([row for row, _ in pairs], dtype=np.int64)
    marks = np.array([mark for _, mark in pairs], dtype=np.uint16)
    note_anchors(fingerprints, rows, marks, found)
    assert found.tolist() == expected
    assert [[mark for mark in line if mark] for line in fingerprints.tolist()] == mirror


@given(st.text())
def test_an_anchor_s_mark_is_never_that_of_no_text(text: str) -> None:
    mark = anchor_mark(text.encode("utf-8", "ignore").decode())
    assert 0 <= mark < 2**16
    assert (mark == 0) == (text.encode("utf-8", "ignore") == b"")


@settings(max_examples=100)
@given(st.lists(st.integers(0, 400), max_size=12))
def test_columns_grow_with_zeroed_rows_and_keep_the_old_ones(steps: list[int]) -> None:
    columns = Columns({"a": ("i8", 1), "b": ("u2", 3)}, capacity=4)
    mirror: list[int] = []
    for more in steps:
        first = len(mirror)
        columns.extend(more)
        assert not columns["a"][first:].any()
        assert not columns["b"][first:].any()
        mirror.extend(range(first + 1, first + more + 1))
        columns["a"][first:] = mirror[first:]
        columns["b"][first:, 1] = 7
        assert columns["a"].tolist() == mirror
        assert (columns["b"] == [0, 7, 0]).all()
        assert len(columns) == len(mirror) <= columns.capacity
    assert columns.nbytes() == len(mirror) * (8 + 6)
