"""The n-gram index finds exactly the pages that a plain reading of the rule finds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bowerbird.appraise.frontier.ngrams import (
    NgramIndex,
    Postings,
    QueryWords,
    order_words,
    post,
    query_grams,
)
from bowerbird.model.page_words import make_page_words
from bowerbird.model.workload import make_workload

WORDS = ["red", "blue", "car", "bus", "old"]
TEXTS = st.lists(st.lists(st.sampled_from(WORDS), max_size=5), max_size=3)
QUERY = st.lists(st.sampled_from([*WORDS, "moon"]), min_size=1, max_size=5)


def grams_of(text: list[str], longest: int = 3) -> set[tuple[str, ...]]:
    return {tuple(text[i : i + n]) for n in range(1, longest + 1) for i in range(len(text) - n + 1)}


def brute_force(pages: list[list[list[str]]], query: list[str], rho: float) -> list[int]:
    wanted = grams_of(query)
    found = []
    for number, texts in enumerate(pages):
        held = set().union(*(grams_of(text) for text in texts)) if texts else set()
        if len(wanted & held) >= rho * len(wanted) - 1e-9:
            found.append(number)
    return found


def make_queries(queries: list[list[str]]) -> QueryWords:
    vocabulary = tuple(sorted({word for query in queries for word in query}))
    words = [vocabulary.index(word) for query in queries for word in query]
    starts = np.concatenate([[0], np.cumsum([len(query) for query in queries])]).astype(np.int64)
    return QueryWords(vocabulary, starts, np.array(words, dtype=np.uint32))


@settings(max_examples=150, deadline=None)
@given(
    st.lists(TEXTS, min_size=1, max_size=8),
    st.lists(QUERY, min_size=1, max_size=5),
    st.sampled_from([1.0, 0.8, 0.5, 0.3]),
    st.integers(0, 8),
)
def test_matches_are_those_of_the_rule_however_the_index_came_about(
    pages: list[list[list[str]]], queries: list[list[str]], rho: float, cut: int
) -> None:
    words = make_page_words(pages)
    early = np.arange(min(cut, len(pages)), dtype=np.int64)
    late = np.arange(len(early), len(pages), dtype=np.int64)
    index = NgramIndex(post(words, early))
    for page in late:
        index.add(post(words, np.array([page])))
    index.add(post(words, early))  # once more: nothing may count twice
    matches = index.match(query_grams(make_queries(queries), rho=rho), np.ones(len(pages), dtype=np.bool_))
    for number, query in enumerate(queries):
        assert matches.of_query(number).tolist() == brute_force(pages, query, rho)


def test_no_ngram_reaches_across_a_break() -> None:
    index = NgramIndex(post(make_page_words([[["red"], ["car"]], [["red", "car"]]])))
    grams = query_grams(make_queries([["red", "car"]]))
    assert index.match(grams, np.array([True, True])).pages.tolist() == [1]


def test_an_anchor_found_later_completes_a_match() -> None:
    before = make_page_words([[["old", "red", "car"]]])
    after = make_page_words([[["old", "red", "car"], ["red", "car", "bus"]]])
    grams = query_grams(make_queries([["old", "red", "car", "bus"]]))
    index = NgramIndex(post(before))
    assert index.match(grams, np.array([True])).pages.tolist() == []
    index.add(post(after))
    assert index.match(grams, np.array([True])).pages.tolist() == [0]


def test_only_open_pages_match() -> None:
    index = NgramIndex(post(make_page_words([[["car"]], [["car"]]])))
    assert index.match(query_grams(make_queries([["car"]])), np.array([False, True])).pages.tolist() == [1]


def test_postings_are_sorted_and_merged_once_each() -> None:
    rng = np.random.default_rng(3)
    pages = [[[f"w{n}" for n in rng.integers(0, 40, 12)]] for _ in range(300)]
    words = make_page_words(pages)
    whole = post(words)
    keys = list(zip(whole.grams.tolist(), whole.pages.tolist(), strict=True))
    assert keys == sorted(set(keys))
    halves = post(words, np.arange(0, 200)).merged(post(words, np.arange(100, 300)))
    assert np.array_equal(halves.grams, whole.grams)
    assert np.array_equal(halves.pages, whole.pages)


def test_words_keep_the_order_they_were_typed_in() -> None:
    workload = make_workload(["the blue car of old"], [1.0], lambda text: [w for w in text.split() if len(w) > 3])
    queries = order_words(workload)
    assert [queries.vocabulary[word] for word in queries.words] == ["blue"]
    workload = make_workload(["red car"], [1.0], str.split)
    queries = order_words(workload)
    assert [queries.vocabulary[word] for word in queries.words] == ["red", "car"]


def test_a_text_that_hides_its_terms_falls_back_to_them() -> None:
    workload = make_workload(["RC"], [1.0], lambda _: ["red", "car"])
    queries = order_words(workload)
    assert sorted(queries.vocabulary[word] for word in queries.words) == ["car", "red"]


def test_rho_outside_its_range_is_refused() -> None:
    with pytest.raises(ValueError, match="rho"):
        query_grams(make_queries([["car"]]), rho=0.0)


def test_an_empty_index_matches_nothing() -> None:
    index = NgramIndex()
    index.add(Postings(np.empty(0, np.uint64), np.empty(0, np.uint32)))
    matches = index.match(query_grams(make_queries([["car"]])), np.empty(0, dtype=np.bool_))
    assert matches.pages.tolist() == []
    assert len(index) == 0
