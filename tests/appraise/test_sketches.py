"""Sketches equal what a full ranking gives, whatever happened to them before."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bowerbird.appraise.frontier.ngrams import Matches
from bowerbird.appraise.frontier.sketches import (
    CrawledScores,
    ScoreSpread,
    Sketches,
    expected_impact,
    make_crawled_scores,
    top_impact,
    top_probability,
)

PAGES, QUERIES = 9, 3
FREQUENCY = np.array([5.0, 2.0, 1.0])
EVENT = st.tuples(
    st.integers(0, QUERIES - 1), st.integers(0, PAGES - 1), st.sampled_from([0.0, 1.0, 2.0, 2.0, 3.5, math.nan])
)


def brute_force(scores: list[dict[int, float]], top: int) -> np.ndarray:
    impact = np.zeros(PAGES)
    for query, held in enumerate(scores):
        for page, _ in sorted(held.items(), key=lambda item: (-item[1], item[0]))[:top]:
            impact[page] += FREQUENCY[query]
    return impact


@settings(max_examples=300, deadline=None)
@given(st.lists(st.lists(EVENT, max_size=12), max_size=8), st.integers(1, 3))
def test_impact_equals_brute_force_after_every_batch_of_changes(
    batches: list[list[tuple[int, int, float]]], top: int
) -> None:
    sketches = Sketches(FREQUENCY, top=top)
    scores: list[dict[int, float]] = [{} for _ in range(QUERIES)]
    for batch in batches:
        for query, page, score in batch:
            if score > 0:
                scores[query][page] = score
            else:
                scores[query].pop(page, None)
        columns = list(zip(*batch, strict=True)) if batch else [[], [], []]
        sketches.put(np.array(columns[0], np.int64), np.array(columns[1], np.int64), np.array(columns[2], np.float64))
        for query in sketches.stale.tolist():
            held = scores[query]
            sketches.clear(np.array([query]))
            sketches.refill(np.full(len(held), query), np.array(list(held), np.int64), np.array(list(held.values())))
        assert sketches.stale.tolist() == []
        assert np.allclose(sketches.impact(PAGES), brute_force(scores, top))


def test_a_query_is_stale_only_when_its_top_is_unknown() -> None:
    sketches = Sketches(np.array([1.0]), top=2)  # holds four
    sketches.put(np.zeros(6, np.int64), np.arange(6), np.array([6.0, 5.0, 4.0, 3.0, 2.0, 1.0]))
    gone = np.array([math.nan])
    for page, stale in ((0, []), (1, []), (2, [0])):
        sketches.put(np.array([0]), np.array([page]), gone)
        assert sketches.stale.tolist() == stale


def test_ties_go_to_the_lower_page() -> None:
    sketches = Sketches(np.array([1.0]), top=1)
    sketches.put(np.array([0, 0]), np.array([4, 2]), np.array([1.0, 1.0]))
    assert np.flatnonzero(sketches.impact(5)).tolist() == [2]


def test_a_crawl_replaces_the_expected_score_by_the_real_one() -> None:
    sketches = Sketches(np.array([3.0]), top=1)
    sketches.put(np.array([0, 0]), np.array([0, 1]), np.array([2.0, 5.0]))
    assert sketches.impact(2).tolist() == [0.0, 3.0]
    sketches.put(np.array([0]), np.array([1]), np.array([1.0]))  # it turned out worse than page 0
    assert sketches.impact(2).tolist() == [3.0, 0.0]


def test_rank_counts_those_before_it() -> None:
    sketches = Sketches(np.array([1.0]), top=3)
    sketches.put(np.array([0, 0]), np.array([0, 1]), np.array([2.0, 4.0]))
    assert [sketches.rank_of(0, 9, score) for score in (5.0, 4.0, 3.0, 1.0)] == [1, 2, 2, 3]


def test_figure_3_popular_queries_with_good_answers_give_no_impact() -> None:
    """The reasoning of [SI08]'s example: impact needs a place in the top K, popularity alone gives none.

    Query A is asked most but its K results score above what the new page can be expected to; B is asked less and its
    K-th result is below that: the page displaces it and gains f(B). C has fewer than K results: any match enters. So
    the page's impact is f(B) + f(C), the displaced page loses f(B), and a second candidate below the first gains
    nothing at B where one place was open.
    """
    frequency = np.array([100.0, 10.0, 1.0])
    sketches = Sketches(frequency, top=2)
    crawled = make_crawled_scores([[(0, 9.0), (1, 8.0)], [(0, 9.0), (2, 3.0)], [(1, 2.0)]], top=2)
    sketches.put(crawled.queries(), crawled.pages, crawled.scores)
    before = sketches.impact(6)
    new, second = 4, 5
    sketches.put(np.array([0, 1, 2]), np.full(3, new), np.array([5.0, 5.0, 1.0]))
    sketches.put(np.array([1]), np.array([second]), np.array([4.0]))
    after = sketches.impact(6)
    assert after[new] == 11.0
    assert after[2] == before[2] - 10.0
    assert after[second] == 0.0
    assert np.array_equal(after[:2], before[:2])


def test_impact_of_crawled_pages_counts_the_top_only() -> None:
    results = make_crawled_scores([[(0, 1.0), (1, 3.0), (2, 2.0)], [(2, 1.0)]])
    assert top_impact(results, np.array([4.0, 1.0]), 3, top=2).tolist() == [0.0, 4.0, 5.0]


def test_scores_are_looked_up_by_pair() -> None:
    results = make_crawled_scores([[(0, 1.0), (1, 3.0)], []], complete=[False, True])
    found = results.look_up(np.array([0, 0, 1]), np.array([1, 7, 0], dtype=np.uint32))
    assert found[0] == 3.0
    assert math.isnan(found[1])
    assert found[2] == 0.0
    assert results.mean_top(1).tolist() == [3.0, 0.0]
    assert results.take(np.array([1, 0])).scores.tolist() == [3.0, 1.0]


@pytest.mark.parametrize("seed", range(3))
def test_top_probability_is_near_a_monte_carlo_of_the_draws(seed: int) -> None:
    rng = np.random.default_rng(seed)
    top, unseen = 5, 40
    points = np.sort(rng.gamma(2.0, 1.0, (4, 33)), axis=1)
    rows = rng.integers(0, 4, unseen)
    spread = ScoreSpread(points, rows, np.full(unseen, 1.0))
    crawled = make_crawled_scores([[(100 + i, score) for i, score in enumerate(rng.gamma(2.0, 1.0, 8))]])
    matches = Matches(np.array([0, unseen]), np.arange(unseen, dtype=np.uint32))
    chance = top_probability(matches, spread, crawled, top=top)

    draws = 4000
    levels = rng.random((draws, unseen)) * 32
    low = np.minimum(levels.astype(int), 31)
    scores = points[rows, low] + (levels - low) * (points[rows, low + 1] - points[rows, low])
    everything = np.hstack([scores, np.tile(crawled.scores, (draws, 1))])
    bound = -np.partition(-everything, top - 1, axis=1)[:, top - 1 : top]
    simulated = (scores >= bound).mean(axis=0)
    assert np.abs(chance - simulated).max() < 0.08
    assert abs(chance.sum() - simulated.sum()) < 0.6


def test_expected_exceedances_are_k() -> None:
    spread = ScoreSpread(np.linspace(0.0, 1.0, 33)[None], np.zeros(30, np.int64), np.linspace(1.0, 3.0, 30))
    matches = Matches(np.array([0, 30]), np.arange(30, dtype=np.uint32))
    none = CrawledScores(np.array([0, 0]), np.empty(0, np.uint32), np.empty(0), np.array([True]))
    assert top_probability(matches, spread, none, top=10).sum() == pytest.approx(10.0, abs=1e-6)
    impact = expected_impact(matches, spread, none, np.array([7.0]), 30, top=10)
    assert impact.sum() == pytest.approx(70.0, abs=1e-5)


def test_with_few_candidates_every_result_is_in_the_top() -> None:
    points = np.concatenate([np.zeros(9), np.ones(24)])[None]  # a quarter of such pages are no result at all
    spread = ScoreSpread(points, np.zeros(2, np.int64), np.ones(2))
    none = CrawledScores(np.array([0, 0]), np.empty(0, np.uint32), np.empty(0), np.array([True]))
    chance = top_probability(Matches(np.array([0, 2]), np.array([0, 1], dtype=np.uint32)), spread, none, top=10)
    assert chance == pytest.approx([0.75, 0.75])
