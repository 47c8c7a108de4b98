"""The methods by name, what they pass on, and studies made with them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bowerbird.appraise.frontier import methods
from bowerbird.appraise.frontier.calibration import expose, full_exposure_s
from bowerbird.appraise.frontier.graph import make_graph
from bowerbird.appraise.frontier.inputs import Inputs, MethodOptions, Scores
from bowerbird.appraise.frontier.methods import METHODS, inform, keep_most
from bowerbird.appraise.frontier.sketches import make_crawled_scores
from bowerbird.appraise.frontier.study import Feedback, expect_later, find_reasons, rate_found, study_frontier
from bowerbird.appraise.frontier.walk import enriched_walk, pagerank, random_walk
from bowerbird.appraise.policy import STUDIED
from bowerbird.model.page_words import make_page_words
from bowerbird.model.study import mark_queries
from bowerbird.model.workload import make_workload

DAY_S = 86_400.0

WALKS = ("pagerank", "rw", "rw-eg")


def make_inputs(seed: int = 0, pages: int = 400, links: int = 3000) -> Inputs:
    """A web in which pages have worths; good pages are linked more often, and from good pages."""
    rng = np.random.default_rng(seed)
    worth = rng.pareto(1.3, pages) + 0.1
    sources, targets = rng.integers(0, pages, links), rng.choice(pages, links, p=worth / worth.sum())
    crawled = rng.random(pages) < 0.6
    graph = make_graph(sources, targets, pages, crawled)
    clicks = np.where(crawled, rng.poisson(worth), 0).astype(np.float64)
    host = (np.arange(pages) % 5).astype(np.uint32)
    return Inputs(1e9, graph, clicks, host, np.zeros(pages), rng, frontier=graph.frontier)


def everyone(inputs: Inputs) -> Feedback:
    return Feedback(inputs.graph.crawled, np.ones(inputs.graph.count), np.ones(inputs.graph.count))


def with_queries(inputs: Inputs) -> Inputs:
    """Page i is called by one of 20 words; queries ask for them, the first most often; crawled pages answer."""
    names = [f"w{page % 20}" for page in range(inputs.graph.count)]
    words = make_page_words([[[name]] for name in names])
    queries = [f"w{number}" for number in range(20)]
    workload = make_workload(queries, np.arange(40.0, 20.0, -1.0), str.split)
    crawled = np.flatnonzero(inputs.graph.crawled)
    lists = [
        [(int(page), 1.0 + float(page) / 1000) for page in crawled if names[page] == query][:3]
        for query in workload.queries
    ]
    return replace(inputs, words=words, workload=workload, crawled_top=make_crawled_scores(lists))


def test_every_studied_policy_has_its_method() -> None:
    assert {*STUDIED, "random", "indegree"} >= set(METHODS) >= {"random", "indegree", *WALKS, "query-driven", "hybrid"}


@pytest.mark.parametrize("name", METHODS)
def test_scores_are_whole_finite_and_not_negative(name: str) -> None:
    for inputs in (make_inputs(), with_queries(make_inputs())):
        found = METHODS[name](inputs)
        assert found.values.shape == (inputs.graph.count,)
        assert np.isfinite(found.values).all()
        assert (found.values >= 0).all()


def test_walks_rank_as_the_walks_do() -> None:
    inputs = make_inputs(1)
    graph, frontier = inputs.graph, inputs.graph.frontier
    walks = {
        "pagerank": pagerank(graph, damping=0.7),
        "rw": random_walk(graph, inputs.clicks, damping=0.7),
        "rw-eg": enriched_walk(graph, inputs.clicks, damping=0.7, real_share=0.4),
    }
    options = MethodOptions(damping=0.7, real_share=0.4)
    for name, walk in walks.items():
        values = METHODS[name](replace(inputs, options=options)).values[frontier]
        lift = 0.0 if name == "pagerank" else 0.3
        np.testing.assert_allclose(values, walk.values[frontier] * graph.count - lift, rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("name", [*WALKS, "indegree"])
def test_what_linking_pages_pass_on_adds_up_to_the_score(name: str) -> None:
    inputs = make_inputs(2)
    found = METHODS[name](inputs)
    assert found.passed is not None
    starts, sources = inputs.graph.into
    lift = found.values.min() if name == "pagerank" else 0.0
    for page in inputs.graph.frontier[:50].tolist():
        passed = found.passed[sources[starts[page] : starts[page + 1]]].sum()
        assert passed + lift == pytest.approx(found.values[page], rel=1e-5, abs=1e-9)


@pytest.mark.parametrize("name", WALKS)
def test_an_earlier_solution_saves_steps_and_changes_nothing(name: str) -> None:
    inputs = make_inputs(3)
    first = METHODS[name](inputs)
    again = METHODS[name](replace(inputs, start=first.values.astype(np.float32).astype(np.float64)))
    assert float(again.info["iterations"]) < float(first.info["iterations"])
    np.testing.assert_allclose(again.values, first.values, rtol=1e-3, atol=1e-6)


def test_hidden_pages_leave_no_trace() -> None:
    inputs = with_queries(make_inputs(4))
    hidden = np.zeros(inputs.graph.count, dtype=np.bool_)
    hidden[np.flatnonzero(inputs.graph.crawled)[::3]] = True
    partial = inputs.without(hidden)
    assert not partial.graph.crawled[hidden].any()
    assert partial.graph.out_degree[hidden].sum() == 0
    assert partial.clicks[hidden].sum() == 0
    assert inputs.clicks[hidden].sum() > 0
    assert partial.crawled_top is not None
    assert inputs.crawled_top is not None
    assert not hidden[partial.crawled_top.pages].any()
    kept = ~hidden[inputs.crawled_top.pages]
    assert partial.crawled_top.pages.tolist() == inputs.crawled_top.pages[kept].tolist()
    assert partial.crawled_top.queries().tolist() == inputs.crawled_top.queries()[kept].tolist()
    assert partial.frontier is not None
    assert set(np.flatnonzero(hidden)) <= set(partial.frontier.tolist())


@pytest.mark.parametrize("name", METHODS)
def test_a_study_says_what_each_page_of_the_frontier_is_worth(name: str) -> None:
    inputs = with_queries(make_inputs(5, pages=2000, links=15_000))
    frontier = inputs.graph.frontier
    study = study_frontier(inputs, name, frontier, everyone(inputs))
    assert (study.method, study.count, study.at) == (name, 2000, 1e9)
    assert np.flatnonzero(~np.isnan(study.worth)).tolist() == frontier.tolist()
    assert (study.worth[frontier] > 0).all()
    assert study.calibration.kind == "calibrated"
    # the better score is worth more
    order = np.argsort(study.score[frontier].astype(np.float64), kind="stable")
    rises = np.diff(study.score[frontier][order]) > 0
    assert (np.diff(study.worth[frontier][order])[rises] >= 0).all()
    assert (study.host_worth[:5] > 0).all()
    assert study.default_worth == pytest.approx(study.worth[frontier].mean(), rel=1e-4)


def test_urls_found_later_are_expected_to_be_like_those_found_last_fetched_or_not() -> None:
    """A crawl that takes all but the worst leaves the worst on its frontier; what it finds next is like all it has."""
    inputs = make_inputs(5, pages=2000, links=15_000)
    frontier, worth = inputs.graph.frontier, np.full(len(inputs.graph.frontier), 0.01)
    feedback = everyone(inputs)
    later, mean = expect_later(inputs, feedback, frontier, worth, by_clicks=True)
    fetched = np.flatnonzero(feedback.pages)
    rows = np.concatenate([frontier, fetched])
    value = np.concatenate([worth, rate_found(inputs, feedback, fetched, 5)[inputs.host[fetched]]])
    late = np.argsort(-inputs.first_seen[rows], kind="stable")[:1000]
    late = np.flatnonzero(inputs.first_seen[rows] >= inputs.first_seen[rows[late]].min())
    assert mean == pytest.approx(value[late].mean())
    for host in range(5):
        mine = value[late][inputs.host[rows[late]] == host]
        assert later[host] == pytest.approx((mine.sum() + 5.0 * mean) / (len(mine) + 5.0))
    assert later.max() > 0.01
    left_over, nobody = expect_later(inputs, feedback, frontier, worth, by_clicks=False)
    assert left_over[:5] == pytest.approx([0.01] * 5)  # without clicks nothing tells what fetched ones were worth
    assert nobody is None
    none = expect_later(
        inputs, replace(feedback, pages=np.zeros(2000, np.bool_)), frontier[:0], worth[:0], by_clicks=True
    )
    assert (len(none[0]), none[1]) == (0, None)


@pytest.mark.parametrize("window_s", [900.0, 0.5 * DAY_S, 10 * DAY_S])
def test_fetched_pages_that_had_no_time_to_be_clicked_are_not_taken_for_worthless(window_s: float) -> None:
    """What was fetched gets ten clicks, what was left over one; the last thousand were found within this time."""
    inputs = make_inputs(5, pages=20_000, links=150_000)
    crawled, rng, now = inputs.graph.crawled, np.random.default_rng(0), 10 * DAY_S
    seen = rng.uniform(0.0, now - 0.9 * window_s, 20_000)
    last = rng.permutation(20_000)[:1000]
    seen[last] = rng.uniform(now - window_s, now, 1000)
    age = np.where(crawled, now - seen, 0.0)
    full_s = full_exposure_s(age[crawled], DAY_S)
    clicks = np.where(crawled, rng.poisson(10.0 * age / full_s), 0.0).astype(np.float64)
    inputs = replace(inputs, now=now, first_seen=seen, clicks=clicks)
    exposure = np.where(crawled, expose(age, full_s), 1.0)
    feedback = Feedback(crawled, exposure, np.ones(20_000), full_s=full_s, heard=age / full_s)
    frontier = inputs.graph.frontier
    later, mean = expect_later(inputs, feedback, frontier, np.ones(len(frontier)), by_clicks=True)
    known = np.union1d(frontier, np.flatnonzero(crawled))
    found_last = known[np.argsort(-seen[known])[:1000]]
    assert mean == pytest.approx(np.where(crawled, 10.0, 1.0)[found_last].mean(), rel=0.1)
    assert later[:5] == pytest.approx([mean] * 5, rel=0.25)
    study = study_frontier(inputs, "rw-eg", frontier, feedback)
    assert study.later_worth == pytest.approx(float(study.expected_clicks(np.array([20_000]), np.array([99]))[0][0]))


def test_what_is_found_gets_worse_as_a_crawl_takes_the_best_first() -> None:
    """Pages found long ago are clicked ten times as often as those found lately, of which enough were watched."""
    pages = 3000
    inputs = make_inputs(5, pages=pages, links=6000)
    old = np.arange(pages) < 2000
    watched = np.full(pages, 0.5)
    clicks = np.random.default_rng(0).poisson(np.where(old, 10.0, 1.0) * watched).astype(np.float64)
    some = replace(inputs, clicks=clicks, first_seen=np.arange(pages, dtype=np.float64))
    feedback = Feedback(np.ones(pages, np.bool_), watched, np.ones(pages), heard=watched)
    assert rate_found(some, feedback, np.arange(pages), 5) == pytest.approx([1.0] * 5, abs=0.4)


@pytest.mark.parametrize("skew", ["one in a hundred", "log-normal", "even"])
def test_pages_that_are_clicked_much_do_not_count_for_too_much(skew: str) -> None:
    """Two clicks on average, whoever gets them: what is found last is taken for as much on average."""
    rng, pages = np.random.default_rng(0), 3000
    inputs = make_inputs(5, pages=pages, links=6000)
    told = []
    for _ in range(200):
        means = {
            "one in a hundred": np.where(rng.random(pages) < 0.01, 200.0, 0.0),
            "log-normal": 2.0 * np.exp(rng.normal(-2.0, 2.0, pages)),
            "even": np.full(pages, 2.0),
        }[skew]
        watched = rng.uniform(0.001, 0.1, pages)
        some = replace(inputs, clicks=rng.poisson(means * watched).astype(np.float64), host=np.zeros(pages, np.uint32))
        feedback = Feedback(np.ones(pages, np.bool_), watched, np.ones(pages), heard=watched)
        told.append(rate_found(some, feedback, np.arange(pages), 1)[0])
    assert np.mean(told) == pytest.approx(2.0, abs=4 * np.std(told) / len(told) ** 0.5)
    assert np.std(told) < 3.0


def test_a_study_without_clicks_falls_back_to_the_prior() -> None:
    inputs = replace(make_inputs(6), clicks=np.zeros(400))
    study = study_frontier(inputs, "rw-eg", inputs.graph.frontier, everyone(inputs))
    assert study.calibration.kind == "prior"
    assert study.default_worth < 0.01
    assert (study.worth[inputs.graph.frontier] > 0).all()


def test_a_study_of_nothing_is_no_trouble() -> None:
    none = np.zeros(0)
    graph = make_graph([], [], 0)
    inputs = Inputs(1.0, graph, none, none.astype(np.uint32), none, np.random.default_rng(0))
    study = study_frontier(inputs, "rw", np.zeros(0, dtype=np.int64), everyone(inputs))
    assert (study.count, len(study.worth), study.default_worth) == (0, 0, pytest.approx(0.01))


def test_calibrated_worths_are_right_on_average_for_pages_that_look_alike() -> None:
    """Clicks follow in-links; the frontier is told from the crawled pages only by what it was not asked yet."""
    rng = np.random.default_rng(7)
    pages = 4000
    worth = rng.pareto(1.5, pages) + 0.05
    graph = make_graph(rng.integers(0, pages, 60_000), rng.choice(pages, 60_000, p=worth / worth.sum()), pages)
    clicks = rng.poisson(worth).astype(np.float64)
    crawled = rng.random(pages) < 0.7
    graph = make_graph(np.repeat(np.arange(pages), graph.out_degree), graph.targets, pages, crawled)
    inputs = Inputs(1.0, graph, np.where(crawled, clicks, 0.0), np.zeros(pages, np.uint32), np.zeros(pages), rng)
    for name in ("indegree", "pagerank", "rw-eg"):
        study = study_frontier(inputs, name, graph.frontier, everyone(inputs))
        expected, got = study.worth[graph.frontier], clicks[graph.frontier]
        best = expected >= np.quantile(expected, 0.8)
        for part in (best, ~best):
            error = 2 * got[part].std() / np.sqrt(np.count_nonzero(part))
            assert expected[part].mean() == pytest.approx(got[part].mean(), abs=3 * error + 0.1 * got[part].mean())


def test_reasons_are_the_in_linkers_that_pass_most() -> None:
    inputs = make_inputs(8)
    found = METHODS["rw"](inputs)
    assert found.passed is not None
    why = find_reasons(inputs, found, inputs.graph.frontier)
    assert why is not None
    starts, sources = inputs.graph.into
    for page in inputs.graph.frontier.tolist():
        place = why.place(page)
        assert place is not None
        linking = sources[starts[page] : starts[page + 1]]
        best = np.sort(found.passed[linking])[::-1][:3].astype(np.float32)
        assert why.passed[place][: len(best)].tolist() == best.tolist()
        shown = why.sources[place][why.sources[place] >= 0]
        assert len(shown) == min(len(linking), 3)
        assert set(shown.tolist()) <= set(linking.tolist())
    assert why.place(int(np.flatnonzero(inputs.graph.crawled)[0])) is None
    assert find_reasons(inputs, Scores(found.values), inputs.graph.frontier) is None


def test_queries_speak_for_the_pages_they_match() -> None:
    inputs = with_queries(make_inputs(9))
    study = study_frontier(inputs, "query-driven", inputs.graph.frontier, everyone(inputs))
    assert study.reasons is not None
    marks = study.reasons.query_marks
    assert inputs.workload is not None
    named = 0
    for place, page in enumerate(study.reasons.rows.tolist()):
        numbers = study.reasons.queries[place]
        for number in numbers[numbers >= 0].tolist():
            assert marks[number] == mark_queries([f"w{page % 20}"])[0]
            assert study.reasons.ranks[place][0] >= 1
            named += 1
    assert named > 20
    assert float(study.info["queries"]) == 20


@pytest.mark.parametrize("method", ["query-driven", "hybrid", "boosted"])
def test_without_queries_query_methods_go_by_links(method: str) -> None:
    inputs = make_inputs(10)
    found = METHODS[method](inputs)
    assert found.values.tolist() == inputs.graph.in_degree.tolist()
    assert "no queries" in str(found.info["note"])


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3)), max_size=40), st.integers(1, 4))
def test_the_greatest_of_each_page_are_kept(pairs: list[tuple[int, int]], most: int) -> None:
    pages = np.array([page for page, _ in pairs], dtype=np.int64)
    impact = np.array([float(value) for _, value in pairs])
    kept = keep_most(pages, impact, most)
    for page in range(6):
        mine = impact[kept[pages[kept] == page]].tolist()
        assert mine == sorted(impact[pages == page].tolist(), reverse=True)[:most]


@pytest.mark.parametrize("name", ["rw", "rw-eg"])
def test_scores_are_on_one_scale_when_the_most_clicked_page_is_hidden(name: str) -> None:
    inputs = make_inputs(11)
    top = int(np.flatnonzero(inputs.graph.crawled)[0])
    clicks = inputs.clicks.copy()
    clicks[top] = 100 * max(clicks.max(), 1.0)
    inputs = replace(inputs, clicks=clicks)
    hidden = np.zeros(inputs.graph.count, dtype=np.bool_)
    hidden[top] = True
    whole, fold = METHODS[name](inputs).values, METHODS[name](inputs.without(hidden)).values
    linked = np.flatnonzero((whole > 0) & (fold > 0) & ~inputs.graph.crawled)
    ratio = float(np.median(fold[linked] / whole[linked]))
    assert 0.5 < ratio < 2.0


def test_boosted_impact_is_learnt_from_what_the_index_answers() -> None:
    inputs = with_queries(make_inputs(12))
    found = METHODS["boosted"](inputs)
    assert float(found.info["learnt from"]) > 100
    frontier = inputs.graph.frontier
    assert np.isfinite(found.values).all()
    assert np.ptp(found.values[frontier]) > 0


def test_of_very_many_urls_nothing_is_learnt_and_the_study_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    inputs = with_queries(make_inputs())
    assert inform(inputs, inputs.workload) == "learned"
    monkeypatch.setattr(methods, "MOST_LEARNED", inputs.graph.count)
    assert inform(inputs, inputs.workload) == "learned"
    monkeypatch.setattr(methods, "MOST_LEARNED", inputs.graph.count - 1)
    assert inform(inputs, inputs.workload) == "rw-eg"
    study = study_frontier(inputs, "informed", inputs.graph.frontier, everyone(inputs))
    assert study.info["by"] == "rw-eg"
    assert study.info["note"] == "more than 399 known URLs: by rw-eg in place of learned, which would take too long"
    walked = METHODS["rw-eg"](inputs).values
    assert study.score == pytest.approx(walked, rel=1e-5)
    unclicked = replace(inputs, clicks=np.zeros(inputs.graph.count))
    assert inform(unclicked, unclicked.workload) == "hybrid"  # which takes seconds for a million pages
    assert "note" not in METHODS["informed"](unclicked).info
