"""Directories of URLs as group numbers."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bowerbird.model.url_paths import LEVELS, group_paths


def alike(one: str, other: str, level: int, levels: int = LEVELS) -> bool:
    """Are both in the same group of that level (the last is the whole directory)?"""
    group = group_paths([one, other], levels)[level]
    return bool(group[0] == group[1])


def test_pages_share_the_directories_that_their_paths_begin_with() -> None:
    urls = ["http://a/x/y/1", "http://a/x/y/2", "http://a/x/z/1", "http://a/w/1", "http://b/x/y/1"]
    first, second, whole = group_paths(urls, 2)
    assert first.tolist() == [0, 0, 0, 1, 2]
    assert second.tolist() == [0, 0, 1, 2, 3]
    assert whole.tolist() == [0, 0, 1, 2, 3]


def test_the_whole_directory_reaches_deeper_than_the_levels() -> None:
    one, other = "http://a/b/c/d/e/f/1", "http://a/b/c/d/e/g/1"
    assert [alike(one, other, level) for level in range(LEVELS + 1)] == [True] * LEVELS + [False]


def test_a_page_with_a_short_path_is_in_its_own_directory_on_every_level() -> None:
    groups = group_paths(["http://a/x/1", "http://a/1", "http://a/", "http://a"])
    for group in groups:
        assert group[1] == group[2] == group[3] != group[0]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("http://a/x?next=/y/1", "http://a/z"),
        ("http://a/x?next=http://b/y", "http://a/z?q"),
        ("http://a/x#/y/1", "http://a/z#?/"),
        ("http://a?x=/y", "http://a/"),
        ("x/1?from=http://b/c/d", "x/2"),
        ("/x/1", "/x/2"),
        ("One", "Two"),
        ("", "One"),
    ],
)
def test_these_lie_together(one: str, other: str) -> None:
    assert all(alike(one, other, level) for level in range(LEVELS + 1))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("http://a", "http://b"),
        ("http://a", "https://a"),
        ("Web/API/1", "Web2/API/1"),
        ("/x/1", "/y/1"),
        ("web/http://a/1", "archive/http://a/1"),
        ("http://a/x/1", "http://a/xy/1"),
    ],
)
def test_these_are_apart_from_the_first_level_on(one: str, other: str) -> None:
    assert not any(alike(one, other, level) for level in range(LEVELS + 1))


def test_no_urls_have_empty_groups() -> None:
    groups = group_paths([])
    assert [len(group) for group in groups] == [0] * (LEVELS + 1)
    assert group_paths(iter(["http://a/x"]), 1)[0].tolist() == [0]


@given(st.lists(st.text("ab/:?#", max_size=12), max_size=20), st.integers(1, 5))
def test_numbers_leave_no_gap_and_deeper_groups_part_wider_ones(urls: list[str], levels: int) -> None:
    groups = group_paths(urls, levels)
    assert len(groups) == levels + 1
    for group in groups:
        assert group.dtype == np.int64
        assert sorted(set(group.tolist())) == list(range(len(set(group.tolist()))))
    for wide, narrow in pairwise(groups):
        pairs = set(zip(narrow.tolist(), wide.tolist(), strict=True))
        assert len(pairs) == len({deep for deep, _ in pairs})  # who is together in the narrow group is in the wide one
