"""Query-driven, hybrid, expected and boosted impact on worlds small enough to know the answer."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bowerbird.appraise.frontier.boosted_impact import boosted_impact, impact_features, page_marks
from bowerbird.appraise.frontier.expected_score import PageFacts, unlearnt_model
from bowerbird.appraise.frontier.graph import make_graph
from bowerbird.appraise.frontier.live_sketches import LiveSketches, SketchedQueries
from bowerbird.appraise.frontier.ngrams import Matches, order_words, query_grams
from bowerbird.appraise.frontier.query_impact import (
    QueryImpact,
    mix_hybrid,
    quadratic_importance,
    query_impact,
    replay_crawled,
    scale_to_impact,
    select_needy,
)
from bowerbird.appraise.frontier.sketches import CrawledScores, make_crawled_scores, top_impact
from bowerbird.model.page_words import PageWords, make_page_words
from bowerbird.model.workload import Workload, make_workload

SPLIT = str.split


def appraise(
    urls: list[str],
    queries: dict[str, float],
    crawled: list[bool],
    answers: dict[str, list[tuple[int, float]]],
    **more: object,
) -> tuple[QueryImpact, Workload]:
    words = make_page_words([[url.split()] for url in urls])
    workload = make_workload(list(queries), list(queries.values()), SPLIT)
    top = make_crawled_scores([answers.get(query, []) for query in workload.queries], top=2)
    flags = np.array(crawled, dtype=np.bool_)
    ones = np.ones(len(urls))
    found = query_impact(
        words,
        workload,
        flags,
        top,
        ones,
        ones.astype(np.int64),
        np.zeros(len(urls), dtype=np.int64),
        k=2,
        words_of=SPLIT,
        rng=np.random.default_rng(0),
        **more,  # type: ignore[arg-type]  # options of many types
    )
    return found, workload


def test_a_page_gains_the_queries_whose_top_it_would_enter() -> None:
    """[SI08]'s Figure 3 reasoning, from URLs to impact: see tests/appraise/test_sketches.py for the sketch alone."""
    found, workload = appraise(
        ["x", "y", "red car", "blue bus", "moon"],
        {"red car": 10.0, "car": 4.0, "blue bus": 100.0, "bus": 1.0},
        [True, True, False, False, False],
        {"blue bus": [(0, 90.0), (1, 80.0)], "car": [(0, 90.0), (1, 0.001)]},
    )
    # nothing was learnt, so a match is expected to score the query's mass: above .001, below 80
    assert found.trained_pairs == 0
    assert found.query_driven.tolist() == [0.0, 0.0, 14.0, 1.0, 0.0]
    first, second = found.queries_of(2, workload)
    assert (first.query, first.frequency, first.expected_rank) == ("red car", 10.0, 1)
    assert (second.query, second.expected_rank) == ("car", 2)
    assert found.queries_of(4, workload) == []
    assert 0 < found.expected[2] <= 14.0
    assert found.expected[4] == 0.0


def test_only_frontier_rows_are_appraised() -> None:
    found, _ = appraise(["x", "car", "car"], {"car": 3.0}, [True, False, False], {}, frontier=np.array([2]))
    assert found.query_driven.tolist() == [0.0, 0.0, 3.0]
    assert found.hybrid[:2].tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    ("urls", "queries", "crawled"),
    [
        (["a", "b"], {}, [True, False]),
        (["a", "b"], {"a": 1.0}, [True, True]),
        (["a", "b"], {"a": 1.0}, [False, False]),
        (["", ""], {"a": 1.0}, [True, False]),
        ([], {"a": 1.0}, []),
    ],
)
def test_nothing_asked_nothing_crawled_or_nothing_left_is_no_error(
    urls: list[str], queries: dict[str, float], crawled: list[bool]
) -> None:
    found, _ = appraise(urls, queries, crawled, {})
    assert len(found.query_driven) == len(found.hybrid) == len(found.expected) == len(urls)
    assert np.isfinite(found.hybrid).all()
    wanted = [float(url in queries and not seen) for url, seen in zip(urls, crawled, strict=True)]
    assert found.query_driven.tolist() == wanted


def test_every_query_needs_its_answers() -> None:
    words = make_page_words([[["a"]]])
    workload = make_workload(["a"], [1.0], SPLIT)
    one = np.ones(1)
    with pytest.raises(ValueError, match="0 answer lists for 1 queries"):
        query_impact(
            words,
            workload,
            np.array([False]),
            make_crawled_scores([]),
            one,
            one,
            np.zeros(1, np.int64),
            rng=np.random.default_rng(0),
        )


def test_the_neediest_share_is_kept() -> None:
    queries = {"a": 5.0, "b": 4.0, "c": 3.0, "d": 2.0}
    found, workload = appraise(["x", "d"], queries, [True, False], {}, share=0.5)
    assert [workload.queries[query] for query in found.kept] == ["a", "b"]
    assert found.query_driven[1] == 0.0
    found, workload = appraise(["x", "d"], queries, [True, False], {}, share=0.5, matched_only=True)
    assert [workload.queries[query] for query in found.kept] == ["d"]
    assert found.query_driven[1] == 2.0


def test_selection_is_deterministic_and_of_all_queries() -> None:
    need = np.array([1.0, 3.0, 3.0, 2.0])
    assert select_needy(need, 0.25).tolist() == [1]
    assert select_needy(need, 0.5).tolist() == [1, 2]
    assert select_needy(need, 0.5, np.array([True, False, False, True])).tolist() == [0, 3]
    assert select_needy(need, 0.0).tolist() == []
    assert select_needy(need, 1e-9).tolist() == [1]


def test_quadratic_importance_is_recovered_and_never_falls() -> None:
    importance = np.linspace(0.0, 4.0, 50)
    crawled = np.arange(50) % 2 == 0
    impact = 1.0 + 2.0 * importance + 3.0 * importance**2
    assert quadratic_importance(importance, np.where(crawled, impact, 0.0), crawled) == pytest.approx(impact)
    falling = quadratic_importance(importance, 10.0 - importance**2, crawled)
    assert (np.diff(falling) >= 0).all()
    flat = quadratic_importance(np.ones(3), np.array([2.0, 4.0, 9.0]), np.array([True, True, False]))
    assert flat.tolist() == [3.0, 3.0, 3.0]


def test_hybrid_mixes_nine_to_one_in_the_unit_of_impact() -> None:
    assert mix_hybrid(np.array([10.0]), np.array([20.0])).tolist() == [11.0]
    crawled = np.array([True, True, True, False])
    known = np.array([0.0, 1.0, 2.0, 0.0])
    impact = np.array([5.0, 15.0, 25.0, 0.0])
    assert scale_to_impact(np.array([0.0, 0.0, 0.0, 3.0]), known, impact, crawled)[3] == pytest.approx(35.0)
    against = scale_to_impact(known, known, np.array([25.0, 15.0, 5.0, 0.0]), crawled)
    assert against.tolist() == [14.0, 15.0, 16.0, 14.0]  # a query that is matched never counts against a page


@settings(max_examples=100, deadline=None)
@given(st.lists(st.floats(0.1, 9.0), min_size=1, max_size=6, unique=True), st.floats(0.05, 10.0), st.integers(1, 4))
def test_a_crawled_page_is_replayed_among_the_others(scores: list[float], guess: float, top: int) -> None:
    crawled = make_crawled_scores([list(enumerate(scores))], complete=[True])
    matches = Matches(np.array([0, 1]), np.array([0], dtype=np.uint32))
    replayed = replay_crawled(matches, np.array([guess]), crawled, np.array([7.0]), len(scores), top=top)
    before = sum(score >= guess for score in scores[1:])
    assert replayed[0] == (7.0 if before < top else 0.0)


def test_live_sketches_equal_those_made_at_once() -> None:
    rng = np.random.default_rng(5)
    vocabulary = [f"w{number}" for number in range(12)]
    workload = make_workload(
        [" ".join(rng.choice(vocabulary, rng.integers(1, 3), replace=False)) for _ in range(40)],
        rng.integers(1, 9, 40).tolist(),
        SPLIT,
    )
    pages = [[list(rng.choice(vocabulary, 3)), list(rng.choice(vocabulary, 2))] for _ in range(60)]
    queries = order_words(workload, SPLIT)
    mass = np.ones(len(workload))
    sketched = SketchedQueries(queries, query_grams(queries), mass, workload.frequency)
    answers = make_crawled_scores([[(100 + query, 0.5)] for query in range(len(workload))])

    def facts(numbers: range) -> PageFacts:
        count = len(numbers)
        words = make_page_words([pages[number] for number in numbers])
        return PageFacts(words, np.ones(count, np.int64), np.ones(count), np.zeros(count, np.int64))

    whole = LiveSketches(sketched, answers, unlearnt_model(1), 3)
    whole.see(np.arange(60), facts(range(60)))
    parts = LiveSketches(sketched, answers, unlearnt_model(1), 3)
    for numbers in (range(30, 60), range(0, 30), range(10, 40)):
        parts.see(np.array(numbers), facts(numbers))
    assert np.array_equal(whole.impact(200), parts.impact(200))
    assert whole.impact(200)[:60].sum() > 0

    for page in range(25):  # crawled, and no result after all
        parts.crawl(page, np.empty(0, np.int64), np.empty(0))
    unseen = np.arange(60) >= 25
    stale = parts.stale
    assert len(stale) > 0
    parts.refill(stale, answers.take(stale), facts(range(60)), unseen)
    rest = LiveSketches(sketched, answers, unlearnt_model(1), 3)
    rest.see(np.arange(25, 60), facts(range(25, 60)))
    assert np.array_equal(parts.impact(200), rest.impact(200))


def topical_world(
    rng: np.random.Generator,
) -> tuple[PageWords, Workload, np.ndarray, np.ndarray, CrawledScores, np.ndarray]:
    """400 pages of two topics: hubs link to pages of their topic; only one topic is asked for."""
    count = 400
    topic = rng.integers(0, 2, count)
    hubs = np.arange(40)
    sources, targets = [], []
    for page in range(40, count):
        same = hubs[topic[hubs] == topic[page]]
        for hub in rng.choice(same, 4, replace=False):
            sources.append(hub)
            targets.append(page)
    workload = make_workload([f"q{number}" for number in range(300)], [1.0] * 300, SPLIT)
    wanted = np.flatnonzero(topic == 1)
    lists = [[(int(page), float(rng.random())) for page in rng.choice(wanted, 8, replace=False)] for _ in range(300)]
    words = make_page_words([[[f"p{page}"]] for page in range(count)])
    return words, workload, np.array(sources), np.array(targets), make_crawled_scores(lists), topic


def test_boosting_finds_the_topic_that_is_asked_for_from_linkers_alone() -> None:
    rng = np.random.default_rng(2)
    words, workload, sources, targets, everything, topic = topical_world(rng)
    count = len(words)
    crawled = np.ones(count, dtype=np.bool_)
    crawled[rng.choice(np.arange(40, count), 100, replace=False)] = False
    lists = [
        [(int(p), float(s)) for p, s in zip(*everything_of(everything, q), strict=True) if crawled[p]]
        for q in range(300)
    ]
    graph = make_graph(sources, targets, count, crawled)
    found = boosted_impact(words, workload, graph, make_crawled_scores(lists), np.ones(count), rng=rng)
    true = top_impact(everything, workload.frequency, count)
    unseen = np.flatnonzero(~crawled)
    assert found.trained_pages == crawled.sum()
    assert found.impact[unseen][topic[unseen] == 1].min() > found.impact[unseen][topic[unseen] == 0].max()
    assert np.corrcoef(found.impact[unseen], true[unseen])[0, 1] > 0.8
    assert found.impact[unseen].mean() == pytest.approx(true[unseen].mean(), rel=0.4)


def everything_of(results: CrawledScores, query: int) -> tuple[np.ndarray, np.ndarray]:
    span = slice(results.starts[query], results.starts[query + 1])
    return results.pages[span], results.scores[span]


def test_a_crawled_page_is_described_without_its_own_impact() -> None:
    rng = np.random.default_rng(4)
    words, workload, sources, targets, results, _ = topical_world(rng)
    count = len(words)
    graph = make_graph(sources, targets, count)
    impact = top_impact(results, workload.frequency, count)
    page = 100
    other = impact.copy()
    other[page] += 1000.0
    first = impact_features(words, workload, graph, results, np.ones(count), impact)
    second = impact_features(words, workload, graph, results, np.ones(count), other)
    # the mean of all, which marks are drawn to, moves a little; its own value must not come in
    assert np.abs(first.values[page] - second.values[page]).max() < 0.05
    assert np.abs(first.values - second.values).max() > 0.1
    assert first.values.shape == (count, len(first.names))
    assert len(set(first.names)) == len(first.names)


def test_too_few_pages_teach_nothing() -> None:
    words, workload, sources, targets, results, _ = topical_world(np.random.default_rng(4))
    crawled = np.zeros(len(words), dtype=np.bool_)
    crawled[:50] = True
    graph = make_graph(sources, targets, len(words), crawled)
    found = boosted_impact(words, workload, graph, results, np.ones(len(words)), rng=np.random.default_rng(0))
    assert found.trained_pages == 0
    assert len(np.unique(found.impact[50:])) == 1


def test_marks_are_the_distinct_words() -> None:
    words = make_page_words([[["a", "b", "a"], ["c", "b"]], [], [["c"]]])
    url, every = page_marks(words, url_only=True), page_marks(words, url_only=False)
    assert url.starts.tolist() == [0, 2, 2, 3]
    assert every.starts.tolist() == [0, 3, 3, 4]
    assert [words.vocabulary[mark] for mark in every.marks] == ["a", "b", "c", "c"]
