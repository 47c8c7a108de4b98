"""What a page's next change could move: the places that it has in answers, and those that it could come to have.

When a page changes by much, words go and words come. Where a word of a query goes, the page leaves that answer and the
others move up; where the one word comes that a query still lacks, it enters. A page's *stake* is what both would gain
the answers if its whole text were exchanged: every place is lost, and as many words come as the page has, each as often
as it is found in all texts. Nothing is known of what will be written, so this is a measure for comparison.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numba
import numpy as np
import numpy.typing as npt

from bowerbird.quality.answers import FloatArray, IntArray

GRID = 65  # page factors at which entries of single-word queries are worked out


@dataclass(frozen=True, slots=True)
class AnswerLists:
    """What each query is answered: query q has `starts[q]…starts[q + 1] - 1`, best first, all scores above 0."""

    starts: IntArray
    pages: IntArray
    scores: FloatArray


@dataclass(frozen=True, slots=True)
class QueryWords:
    """Queries as sets of words: query q has `members[starts[q]:starts[q + 1]]`, and its scores are times `norm[q]`."""

    starts: IntArray
    members: npt.NDArray[np.int32]
    frequency: FloatArray
    norm: FloatArray


@dataclass(frozen=True, slots=True)
class PageWordScores:
    """What pages score for the words that they have: page p has `words[starts[p]:starts[p + 1]]`.

    A word that comes to a page scores `fresh_word[word]·fresh_page[page]`. With `static`, a page scores that for every
    query that it has all words of.
    """

    starts: IntArray
    words: npt.NDArray[np.int32]
    scores: FloatArray
    fresh_word: FloatArray
    fresh_page: FloatArray
    length: FloatArray  # words of the page, all
    chance: FloatArray  # by word, its share of all words of all texts
    static: FloatArray = field(default_factory=lambda: np.zeros(0))


def removal_gains(lists: AnswerLists, frequency: FloatArray, views: FloatArray, pages: int) -> FloatArray:
    """[UC05] eq. 5 for a page that leaves all its answers: by page, sum_q f(q)·sum_{k>r} S_k·(I(k-1) - I(k))."""
    gains = np.zeros(pages)
    _remove_all(lists.starts, lists.pages, lists.scores, frequency, views, gains)
    return gains


def entry_gains(lists: AnswerLists, queries: QueryWords, pages: PageWordScores, views: FloatArray) -> FloatArray:
    """[UC05] eq. 5 for the words a page lacks: by page, length·sum over words of chance(w)·gain of the queries w opens.

    A query is opened by a word if the page has all of its other words. Queries of one word are taken from a table.
    """
    gains = np.zeros(len(pages.starts) - 1)
    if not len(queries.frequency) or not len(gains):
        return gains
    lost = _sum_lost(lists.starts, lists.scores, views)
    order = np.argsort(queries.members, kind="stable")
    sizes = np.diff(queries.starts)
    query_of = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)[order]
    first = np.searchsorted(queries.members[order], np.arange(len(pages.chance) + 1)).astype(np.int64)
    factor = pages.static if len(pages.static) else pages.fresh_page
    above = factor[factor > 0]
    if not len(above):
        return gains
    grid = np.geomspace(float(above.min()), float(above.max()) * (1 + 1e-12), GRID)
    fresh = np.ones(len(pages.chance)) if len(pages.static) else pages.fresh_word
    answers = (lists.starts, lists.scores, lost, views)
    table = np.zeros(GRID)
    _tabulate(
        grid,
        queries.starts,
        queries.members,
        queries.frequency,
        queries.norm,
        fresh,
        pages.chance,
        len(pages.static) > 0,
        *answers,
        table,
    )
    _enter_all(
        pages.starts, pages.words, pages.scores, factor, pages.length, fresh, pages.chance, len(pages.static) > 0,
        first, query_of, queries.starts, queries.members, queries.frequency, queries.norm, *answers,
        np.log(grid), table, gains,
    )  # fmt: skip
    return gains


@numba.njit(cache=True, nogil=True)
def _remove_all(
    starts: IntArray, pages: IntArray, scores: FloatArray, frequency: FloatArray, views: FloatArray, gains: FloatArray
) -> None:
    for query in range(len(starts) - 1):
        behind = 0.0
        for k in range(starts[query + 1] - starts[query] - 1, -1, -1):
            place = starts[query] + k
            gains[pages[place]] += frequency[query] * behind
            if k:
                behind += scores[place] * (views[k - 1] - views[k])


@numba.njit(cache=True, nogil=True)
def _sum_lost(starts: IntArray, scores: FloatArray, views: FloatArray) -> FloatArray:
    """By place in a list, and one after the last: what those before it lose if each goes one place down."""
    lost = np.zeros(len(scores) + len(starts))
    for query in range(len(starts) - 1):
        base = starts[query] + query
        for k in range(starts[query + 1] - starts[query]):
            lost[base + k + 1] = lost[base + k] + scores[starts[query] + k] * (views[k] - views[k + 1])
    return lost


@numba.njit(cache=True, nogil=True)
def _enter(
    query: int, score: float, starts: IntArray, scores: FloatArray, lost: FloatArray, views: FloatArray
) -> float:
    """The gain of an answer that a page enters with a score, after others of the same."""
    low, high = starts[query], starts[query + 1]
    while low < high:
        middle = (low + high) // 2
        if scores[middle] >= score:
            low = middle + 1
        else:
            high = middle
    base = starts[query] + query
    place = low - starts[query]
    pushed = lost[base + starts[query + 1] - starts[query]] - lost[base + place]
    return float(max(views[place] * score - pushed, 0.0))


@numba.njit(cache=True, nogil=True)
def _tabulate(
    grid: FloatArray, query_starts: IntArray, members: npt.NDArray[np.int32], frequency: FloatArray, norm: FloatArray,
    fresh: FloatArray, chance: FloatArray, static: bool, starts: IntArray, scores: FloatArray, lost: FloatArray,
    views: FloatArray, table: FloatArray,
) -> None:  # fmt: skip
    """By page factor, what a random word would gain by all queries of one word."""
    for query in range(len(frequency)):
        if query_starts[query + 1] - query_starts[query] != 1:
            continue
        word = members[query_starts[query]]
        weight = frequency[query] * chance[word]
        if weight <= 0.0:
            continue
        for k in range(len(grid)):
            score = grid[k] if static else norm[query] * fresh[word] * grid[k]
            table[k] += weight * _enter(query, score, starts, scores, lost, views)


@numba.njit(cache=True, nogil=True)
def _enter_all(
    page_starts: IntArray, words: npt.NDArray[np.int32], word_scores: FloatArray, factor: FloatArray,
    length: FloatArray, fresh: FloatArray, chance: FloatArray, static: bool, first: IntArray,
    query_of: npt.NDArray[np.int32], query_starts: IntArray, members: npt.NDArray[np.int32], frequency: FloatArray,
    norm: FloatArray, starts: IntArray, scores: FloatArray, lost: FloatArray, views: FloatArray, log_grid: FloatArray,
    table: FloatArray, gains: FloatArray,
) -> None:  # fmt: skip
    seen = np.full(len(frequency), -1, dtype=np.int64)
    count = np.zeros(len(frequency), dtype=np.int32)
    part = np.zeros(len(frequency))
    has = np.full(len(chance), -1, dtype=np.int64)
    touched = np.empty(len(frequency), dtype=np.int32)
    for page in range(len(page_starts) - 1):
        if factor[page] <= 0.0:
            continue
        met = 0
        step = (np.log(factor[page]) - log_grid[0]) / max(log_grid[1] - log_grid[0], 1e-300)
        cell = int(min(max(step, 0.0), len(log_grid) - 2.0))
        share = min(max(step - cell, 0.0), 1.0)
        total = table[cell] * (1.0 - share) + table[cell + 1] * share
        for place in range(page_starts[page], page_starts[page + 1]):
            word = words[place]
            has[word] = page
            for at in range(first[word], first[word + 1]):
                query = query_of[at]
                if seen[query] != page:
                    seen[query] = page
                    count[query] = 0
                    part[query] = 0.0
                    touched[met] = query
                    met += 1
                count[query] += 1
                part[query] += word_scores[place]
        for i in range(met):
            query = touched[i]
            size = query_starts[query + 1] - query_starts[query]
            if size == 1:  # it is there already: out of what the table has for pages without it
                word = members[query_starts[query]]
                score = factor[page] if static else norm[query] * fresh[word] * factor[page]
                total -= frequency[query] * chance[word] * _enter(query, score, starts, scores, lost, views)
            elif count[query] == size - 1:
                for at in range(query_starts[query], query_starts[query + 1]):
                    word = members[at]
                    if has[word] == page:
                        continue
                    score = factor[page]
                    if not static:
                        score = norm[query] * (part[query] + fresh[word] * factor[page])
                    total += frequency[query] * chance[word] * _enter(query, score, starts, scores, lost, views)
        gains[page] = max(total, 0.0) * length[page]
