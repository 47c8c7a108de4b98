"""The expected score is learnt from crawled pages, and from nothing that needs a page's content."""

from __future__ import annotations

import numpy as np
import pytest

from bowerbird.appraise.frontier.expected_score import (
    FEATURES,
    PageFacts,
    fit_expected_score,
    host_levels,
    inverse_frequency,
    pair_features,
    query_mass,
    training_scores,
    unlearnt_model,
)
from bowerbird.appraise.frontier.ngrams import Matches, NgramIndex, order_words, post, query_grams
from bowerbird.appraise.frontier.sketches import CrawledScores, make_crawled_scores
from bowerbird.model.page_words import make_page_words
from bowerbird.model.workload import make_workload


def test_features_say_how_url_and_anchors_overlap_with_the_query() -> None:
    words = make_page_words([[["red", "car", "shop"], ["red", "car"], ["cheap"]], []])
    workload = make_workload(["red car"], [1.0], str.split)
    queries = order_words(workload)
    facts = PageFacts(words, np.array([3, 0]), np.array([1.0, 1.0]), np.array([0, 0]))
    matches = Matches(np.array([0, 2]), np.array([0, 1], dtype=np.uint32))
    first, second = pair_features(matches, queries, np.array([4.0]), facts, np.array([0.5]))
    named = dict(zip(FEATURES, first.tolist(), strict=True))
    assert named["in_links"] == pytest.approx(np.log(4))
    assert named["texts"] == pytest.approx(np.log(4))
    assert (named["url_words"], named["query_words"], named["query_weight"]) == (3.0, 2.0, 2.0)
    assert named["query_in_url"] == 1.0
    assert named["url_in_query"] == pytest.approx(2 / 3)
    assert named["exact_anchors"] == pytest.approx(np.log(2))
    assert named["full_anchors"] == pytest.approx(2 / 3)
    assert dict(zip(FEATURES, second.tolist(), strict=True))["query_in_url"] == 0.0


def test_weights_come_from_how_many_pages_have_a_word() -> None:
    words = make_page_words([[["a", "b", "b"]], [["a"]], [["a"]]])
    common, rare, absent = inverse_frequency(words, ("a", "b", "z"))
    assert common < rare < absent
    assert rare == pytest.approx(np.log1p((3 - 1 + 0.5) / 1.5))
    queries = order_words(make_workload(["a b"], [1.0], str.split))
    assert query_mass(queries, np.array([1.0, 2.0])).tolist() == [3.0]


def test_a_page_below_a_list_that_was_cut_off_is_not_taken_for_no_result() -> None:
    crawled = make_crawled_scores([[(0, 4.0), (1, 2.0)], [(0, 1.0)]], complete=[False, True])
    matches = Matches(np.array([0, 2, 3]), np.array([0, 9, 9], dtype=np.uint32))
    assert training_scores(matches, crawled).tolist() == [4.0, 1.0, 0.0]


def test_a_host_with_few_pages_is_drawn_towards_the_mean() -> None:
    level = host_levels(np.array([0] * 100 + [1]), np.array([2.0] * 100 + [0.0]), 3)
    assert level[0] > 1.95
    assert 1.8 < level[1] < level[0]
    assert level[2] == pytest.approx(200 / 101)


def learnable() -> tuple[Matches, object, np.ndarray, PageFacts, CrawledScores]:
    """Pages whose URL is a query's word; those with many in-links score the full mass, the others nothing."""
    count = 400
    words = make_page_words([[[f"w{page % 8}"]] for page in range(count)])
    workload = make_workload([f"w{number}" for number in range(8)], [1.0] * 8, str.split)
    queries = order_words(workload)
    linked = np.where(np.arange(count) // 8 % 2 == 0, 50, 1)
    facts = PageFacts(words, linked, np.ones(count), np.zeros(count, dtype=np.int64))
    matches = NgramIndex(post(words)).match(query_grams(queries), np.ones(count, dtype=np.bool_))
    mass = np.arange(1.0, 9.0)
    owners = matches.queries()
    good = linked[matches.pages] > 10
    lists: list[list[tuple[int, float]]] = [[] for _ in range(8)]
    for query, page in zip(owners[good].tolist(), matches.pages[good].tolist(), strict=True):
        lists[query].append((page, float(mass[query])))
    return matches, queries, mass, facts, make_crawled_scores(lists, complete=np.ones(8, dtype=np.bool_))


def test_the_tree_finds_what_decides_the_score() -> None:
    matches, queries, mass, facts, crawled = learnable()
    rng = np.random.default_rng(0)
    model = fit_expected_score(matches, queries, mass, facts, crawled, rng=rng, min_leaf=20)
    owners = matches.queries()
    features = pair_features(matches, queries, mass, facts, model.host_level)
    expected = model.expect(features, mass[owners])
    good = facts.in_degree[matches.pages] > 10
    assert expected[good] == pytest.approx(mass[owners][good])
    assert expected[~good] == pytest.approx(0.0)
    spread = model.spread(features, mass[owners])
    assert spread.points[spread.rows[good]].min() == pytest.approx(1.0)
    assert spread.points[spread.rows[~good]].max() == pytest.approx(0.0)
    assert model.pairs == len(owners)


def test_too_little_to_learn_from_gives_a_wide_guess() -> None:
    matches, queries, mass, facts, crawled = learnable()
    few = Matches(np.array([0, *[3] * 8]), matches.pages[:3])
    model = fit_expected_score(few, queries, mass, facts, crawled, rng=np.random.default_rng(0))
    assert model.pairs == 0
    assert model.expect(np.zeros((2, len(FEATURES))), np.array([1.0, 4.0])).tolist() == [1.0, 4.0]
    assert unlearnt_model(1).spread(np.zeros((1, len(FEATURES))), np.ones(1)).points[0, -1] > 1.0
