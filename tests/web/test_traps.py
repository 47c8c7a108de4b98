from __future__ import annotations

import doctest

import pytest
from hypothesis import given
from hypothesis import strategies as st

import bowerbird.web.traps as traps_module
from bowerbird.web.traps import PatternBudget, has_repeated_path, url_pattern

HOST = "https://example.com"


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/", False),
        ("/a/b/c", False),
        ("/a/a/a", False),
        ("/a/a/a/a", True),
        ("/a/x/a/y/a/z/a", True),
        ("/a/b/a/b", False),
        ("/a/b/a/b/a/b", True),
        ("/x/a/b/a/b/a/b/", True),
        ("//////", True),
        ("/docs/api/v1/docs/index", False),
        ("/q?u=/a/a/a/a/a", False),
    ],
)
def test_repeated_path(path: str, expected: bool) -> None:
    assert has_repeated_path(HOST + path) is expected


def test_repeated_path_limit() -> None:
    assert has_repeated_path(HOST + "/a/a/a", limit=2)
    assert not has_repeated_path(HOST + "/a/a/a/a", limit=4)


def test_pattern_joins_what_a_machine_counts() -> None:
    same = [
        ["/article/1", "/article/22"],
        ["/2024/05/17/", "/2023/1/2/"],
        ["/cal?month=1&year=2", "/cal?year=9&month=8"],
        ["/p/2024-05-17.html", "/p/1999-01-01.html"],
        ["/events-2024-05/list", "/events-2025-06/list"],
    ]
    patterns = [{url_pattern(HOST + path) for path in group} for group in same]
    assert all(len(group) == 1 for group in patterns)
    assert len(set.union(*patterns)) == len(same)
    assert None not in set.union(*patterns)


def test_pattern_keeps_sites_and_keys_apart() -> None:
    urls = [
        HOST + "/a?x=1",
        HOST + "/b?x=1",
        HOST + "/a?y=1",
        HOST + "/a?x=1&y=1",
        "http://example.com/a?x=1",
    ]
    assert len({url_pattern(url) for url in urls}) == len(urls)


@pytest.mark.parametrize("path", ["/", "/about", "/docs/http2-guide", "/top-10-places", "/v1.2beta/x"])
def test_handwritten_urls_have_no_pattern(path: str) -> None:
    assert url_pattern(HOST + path) is None


@given(st.text(alphabet="ab/?&=1290-.", max_size=20))
def test_pattern_fits_a_signed_64_bit_column(path: str) -> None:
    pattern = url_pattern(f"{HOST}/{path}")
    assert pattern is None or 0 <= pattern < 2**63


def crawl(budget: PatternBudget, pages: int, links: int, novel_every: int) -> int:
    """Crawl a pattern whose pages link to the next `links`; every n-th is new. Returns pages fetched."""
    queue = [0]
    seen = {0}
    fetched = 0
    while queue and fetched < pages:
        page = queue.pop(0)
        budget.credit(1, novel=novel_every > 0 and page % novel_every == 0)
        fetched += 1
        for target in range(page + 1, page + 1 + links):
            if target not in seen and budget.admit(1):
                seen.add(target)
                queue.append(target)
    return fetched


@pytest.mark.parametrize("links", [1, 2, 50, 1000])
def test_calendar_of_copies_stops_at_the_base(links: int) -> None:
    assert crawl(PatternBudget(), 10_000, links, novel_every=0) <= 201


@pytest.mark.parametrize("links", [1, 2, 50])
@pytest.mark.parametrize("novel_every", [1, 2, 3])
def test_archive_with_new_pages_is_never_starved(links: int, novel_every: int) -> None:
    assert crawl(PatternBudget(), 10_000, links, novel_every) == 10_000


def test_archive_that_becomes_a_trap_stops() -> None:
    budget = PatternBudget()
    for _ in range(500):
        assert budget.admit(1)
        budget.credit(1, novel=True)
    fetched = 0
    while budget.admit(1):
        budget.credit(1, novel=False)
        fetched += 1
    assert 500 < fetched < 5_000


def test_allowance_never_vanishes() -> None:
    budget = PatternBudget(base=200, growth=20)
    assert budget.allowance(0, 0) == 200
    assert budget.allowance(0, 10_000) == 50
    assert budget.allowance(10, 5) == 200 + 200 - 20


def test_patterns_are_independent() -> None:
    budget = PatternBudget(base=4)
    assert sum(budget.admit(1) for _ in range(10)) == 4
    assert sum(budget.admit(2) for _ in range(10)) == 4


def test_refused_urls_do_not_count() -> None:
    budget = PatternBudget(base=4, growth=3)
    assert [budget.admit(1) for _ in range(100)].count(True) == 4
    budget.credit(1, novel=True)
    assert [budget.admit(1) for _ in range(100)].count(True) == 3


def test_changes_are_reported_once_and_restored() -> None:
    budget = PatternBudget(base=2, growth=5)
    budget.admit(9)
    budget.admit(7)
    budget.credit(7, novel=True)
    budget.credit(7, novel=False)
    rows = budget.changed()
    assert rows == [(7, 1, 1, 1), (9, 1, 0, 0)]
    assert budget.changed() == []
    other = PatternBudget(base=2, growth=5)
    other.restore(rows)
    assert other.changed() == []
    assert [other.admit(7) for _ in range(7)] == [budget.admit(7) for _ in range(7)]
    assert other.changed() == budget.changed()


def test_memory_is_bounded_and_the_oldest_go_first() -> None:
    budget = PatternBudget(base=2, max_patterns=100)
    admitted = 0
    for pattern in range(1000):
        admitted += budget.admit(5000)
        budget.admit(pattern)
        assert len(budget) <= 100
    assert admitted == 2  # met all the time, so never forgotten
    assert budget.admit(0)  # forgotten
    assert {row[0] for row in budget.changed()} <= {0, 5000, *range(800, 1000)}


@given(st.lists(st.tuples(st.integers(0, 5), st.sampled_from("anc")), max_size=200))
def test_counts_add_up(events: list[tuple[int, str]]) -> None:
    budget = PatternBudget(base=8, growth=5)
    expected: dict[int, list[int]] = {}
    for pattern, kind in events:
        counts = expected.setdefault(pattern, [0, 0, 0])
        if kind == "a":
            counts[0] += budget.admit(pattern)
        else:
            budget.credit(pattern, novel=kind == "n")
            counts[1 if kind == "n" else 2] += 1
    rows = {row[0]: list(row[1:]) for row in budget.changed()}
    assert rows == {pattern: counts for pattern, counts in expected.items() if any(counts)}


def test_examples_in_docstrings() -> None:
    results = doctest.testmod(traps_module)
    assert results.attempted >= 6
    assert results.failed == 0
