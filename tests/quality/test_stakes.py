"""Stakes against brute force: leave every answer, and enter every query that one more word would open."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bowerbird.quality.answers import FloatArray
from bowerbird.quality.gain import refresh_gain
from bowerbird.quality.stakes import AnswerLists, PageWordScores, QueryWords, entry_gains, removal_gains

WORDS = 6


def visibility(ranks: np.ndarray) -> FloatArray:
    return np.asarray(ranks, dtype=np.float64) ** -1.5


def make_world(
    seed: int, static: bool, fewest: int = 1, pages: int = 12
) -> tuple[AnswerLists, QueryWords, PageWordScores, FloatArray]:
    """Random pages and queries, and the answers by sums of word scores (or by the static score)."""
    rng = np.random.default_rng(seed)
    has = rng.random((pages, WORDS)) < 0.5
    has[np.arange(pages), rng.integers(0, WORDS, pages)] = True
    fresh_word, fresh_page = rng.uniform(0.5, 3.0, WORDS), rng.uniform(0.2, 2.0, pages)
    scores = fresh_word * fresh_page[:, None] * rng.uniform(1.0, 3.0, (pages, WORDS))
    value = rng.uniform(0.5, 9.0, pages)
    asked = {tuple(sorted(rng.choice(WORDS, rng.integers(fewest, 4), replace=False).tolist())) for _ in range(8)}
    queries = sorted(asked)
    norm = rng.uniform(0.5, 2.0, len(queries))
    starts, listed, found = [0], [], []
    for number, query in enumerate(queries):
        answer = [
            (value[page] if static else norm[number] * scores[page, list(query)].sum(), page)
            for page in range(pages)
            if has[page, list(query)].all()
        ]
        answer.sort(key=lambda hit: (-hit[0], hit[1]))
        found += [score for score, _ in answer]
        listed += [page for _, page in answer]
        starts.append(len(found))
    words = [np.flatnonzero(row).astype(np.int32) for row in has]
    return (
        AnswerLists(np.array(starts), np.array(listed, dtype=np.int64), np.array(found, dtype=np.float64)),
        QueryWords(
            np.concatenate([[0], np.cumsum([len(query) for query in queries])]).astype(np.int64),
            np.array([word for query in queries for word in query], dtype=np.int32),
            rng.uniform(1.0, 9.0, len(queries)),
            norm,
        ),
        PageWordScores(
            np.concatenate([[0], np.cumsum([len(row) for row in words])]).astype(np.int64),
            np.concatenate(words),
            np.concatenate([scores[page, row] for page, row in enumerate(words)]),
            fresh_word,
            fresh_page,
            rng.uniform(10.0, 99.0, pages),
            rng.uniform(0.0, 0.1, WORDS),
            value if static else np.zeros(0),
        ),
        visibility(np.arange(1, pages + 3)),
    )


def sums_by_hand(lists: AnswerLists, queries: QueryWords, pages: PageWordScores) -> tuple[FloatArray, FloatArray]:
    """(leaving, entering) by page, each by `refresh_gain`."""
    count = len(pages.starts) - 1
    leaving, entering = np.zeros(count), np.zeros(count)
    for number, (first, last) in enumerate(pairwise(queries.starts.tolist())):
        query = set(queries.members[first:last].tolist())
        here = slice(lists.starts[number], lists.starts[number + 1])
        answer = dict(zip(lists.pages[here].tolist(), lists.scores[here].tolist(), strict=True))
        for page in range(count):
            mine = slice(pages.starts[page], pages.starts[page + 1])
            own = dict(zip(pages.words[mine].tolist(), pages.scores[mine].tolist(), strict=True))
            others = np.sort([score for other, score in answer.items() if other != page])[::-1]
            frequency = float(queries.frequency[number])
            missing = query - own.keys()
            if page in answer:
                leaving[page] += frequency * float(refresh_gain(answer[page], 0.0, others, visibility))
            elif len(missing) == 1:
                word = missing.pop()
                score = sum(own[other] for other in query if other != word)
                score = queries.norm[number] * (score + pages.fresh_word[word] * pages.fresh_page[page])
                score = float(pages.static[page]) if len(pages.static) else score
                gain = float(refresh_gain(0.0, score, others, visibility))
                entering[page] += pages.length[page] * pages.chance[word] * frequency * gain
    return leaving, entering


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), static=st.booleans())
def test_both_are_what_single_refreshes_would_gain(seed: int, static: bool) -> None:
    lists, queries, pages, views = make_world(seed, static, fewest=2)
    leaving, entering = sums_by_hand(lists, queries, pages)
    assert removal_gains(lists, queries.frequency, views, len(leaving)) == pytest.approx(leaving)
    assert entry_gains(lists, queries, pages, views) == pytest.approx(entering)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), static=st.booleans())
def test_queries_of_one_word_are_read_off_a_table(seed: int, static: bool) -> None:
    lists, queries, pages, views = make_world(seed, static)
    _, entering = sums_by_hand(lists, queries, pages)
    off = np.abs(entry_gains(lists, queries, pages, views) - entering)
    assert off.mean() < 0.02 * entering.max()


def test_the_best_page_has_the_most_to_lose() -> None:
    lists = AnswerLists(np.array([0, 3]), np.array([2, 0, 1]), np.array([3.0, 2.0, 1.0]))
    gains = removal_gains(lists, np.array([2.0]), visibility(np.arange(1, 6)), 4)
    assert gains[2] > gains[0] > gains[1] == 0.0
    assert gains[3] == 0.0


def test_without_queries_nothing_is_at_stake() -> None:
    lists = AnswerLists(np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0))
    queries = QueryWords(np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.int32), np.zeros(0), np.zeros(0))
    pages = PageWordScores(
        np.zeros(3, dtype=np.int64), np.zeros(0, dtype=np.int32), np.zeros(0), np.ones(1), np.ones(2), np.ones(2),
        np.ones(1),
    )  # fmt: skip
    assert entry_gains(lists, queries, pages, np.ones(4)).tolist() == [0.0, 0.0]
    assert removal_gains(lists, np.zeros(0), np.ones(4), 2).tolist() == [0.0, 0.0]
