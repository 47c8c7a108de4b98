"""The learned appraiser: it finds what decides clicks, knows what it does not know, and does not look ahead."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pytest

from bowerbird.appraise.frontier import learned
from bowerbird.appraise.frontier.graph import BoolArray, make_graph
from bowerbird.appraise.frontier.inputs import FloatArray, Inputs, Scores
from bowerbird.appraise.frontier.learned import score_learned, score_tree
from bowerbird.appraise.frontier.study import Feedback, study_frontier
from bowerbird.model.page_words import make_page_words

PAGES = 900
FOLDS = 4


@dataclass(frozen=True, slots=True)
class Web:
    """Pages of 20 directories and two kinds of linkers, which decide the clicks; how many link to a page does not."""

    inputs: Inputs
    clicks: FloatArray  # of all pages, those of the frontier too

    @property
    def frontier(self) -> BoolArray:
        mask = np.zeros(PAGES, dtype=np.bool_)
        mask[self.inputs.graph.frontier] = True
        return mask

    def share_of_best(self, scores: FloatArray) -> float:
        """The clicks of the best tenth of the frontier, of those that the best tenth could have."""
        clicks, mine = self.clicks[self.frontier], scores[self.frontier]
        many = len(clicks) // 10
        return float(clicks[np.argsort(-mine, kind="stable")[:many]].sum() / np.sort(clicks)[-many:].sum())


def make_web(seed: int = 0, *, noise: bool = False) -> Web:
    rng = np.random.default_rng(seed)
    directory = rng.integers(0, 20, PAGES)
    popular = np.exp(rng.normal(0.0, 1.2, 20))
    good = rng.random(PAGES) < 0.3  # pages that link to what people look for
    wanted = rng.random(PAGES) < 0.3
    sources = np.repeat(np.arange(PAGES), 8)
    fitting = rng.random(len(sources)) < 0.8
    same = [np.flatnonzero(wanted == flag) for flag in (False, True)]
    targets = np.where(
        fitting,
        np.where(good[sources], rng.choice(same[1], len(sources)), rng.choice(same[0], len(sources))),
        rng.integers(0, PAGES, len(sources)),
    )
    mean = np.full(PAGES, 3.0) if noise else popular[directory] * np.where(wanted, 4.0, 0.4)
    # clicked pages link to clicked ones, so that walks have something to follow
    mean = mean if noise else mean * np.where(good, 2.0, 0.7)
    clicks = rng.poisson(mean).astype(np.float64)
    crawled = rng.random(PAGES) < 0.7
    graph = make_graph(sources, targets, PAGES, crawled)
    inputs = Inputs(
        now=1e9,
        graph=graph,
        clicks=np.where(crawled, clicks, 0.0),
        host=np.zeros(PAGES, dtype=np.uint32),
        first_seen=np.full(PAGES, 1e9 - 86400.0),
        rng=np.random.default_rng(seed),
        words=make_page_words(
            [[[f"d{place}"], [f"n{number % 50}"]] for number, place in enumerate(directory.tolist())]
        ),
        frontier=graph.frontier,
        groups=(directory,),
    )
    return Web(inputs, clicks)


def again(web: Web, **changes: object) -> Inputs:
    """The same inputs with fresh chance."""
    return replace(web.inputs, **{"rng": np.random.default_rng(0), **changes})  # type: ignore[arg-type]  # fields of many types


@pytest.fixture(scope="module")
def web() -> Web:
    return make_web()


@pytest.fixture(scope="module")
def found(web: Web) -> Scores:
    return score_learned(again(web), folds=FOLDS)


def test_it_ranks_far_better_than_the_number_of_links(web: Web, found: Scores) -> None:
    by_links = web.share_of_best(web.inputs.graph.in_degree.astype(np.float64))
    assert web.share_of_best(found.values) > 0.6
    assert web.share_of_best(found.values) > 1.7 * by_links
    leans = str(found.info["leans on"]).split(", ")
    assert len(leans) == learned.TOLD
    assert any(name.startswith(("directory 1", "word clicks", "spelling")) for name in leans)


def test_scores_are_expected_clicks_of_the_frontier_alone(web: Web, found: Scores) -> None:
    assert np.isfinite(found.values).all()
    assert (found.values >= 0).all()
    assert (found.values[web.frontier] > 0).any()
    assert not found.values[~web.frontier].any()
    mean = web.clicks[web.frontier].mean()
    assert 0.4 * mean < found.values[web.frontier].mean() < 1.3 * mean  # a mean of logarithms lies lower


def test_only_the_pages_asked_for_are_scored(web: Web) -> None:
    few = web.inputs.graph.frontier[::7]
    part = score_learned(again(web, frontier=few), folds=FOLDS, hold_out=False)
    assert set(np.flatnonzero(part.values)) <= set(few.tolist())
    assert part.held_out is None
    every = score_learned(again(web, frontier=None), folds=FOLDS, hold_out=False)
    assert not every.values[web.inputs.graph.crawled].any()


def test_the_same_seed_gives_the_same_scores(web: Web, found: Scores) -> None:
    repeated = score_learned(again(web), folds=FOLDS)
    np.testing.assert_array_equal(repeated.values, found.values)
    assert repeated.held_out is not None
    assert found.held_out is not None
    np.testing.assert_array_equal(repeated.held_out[1], found.held_out[1])


def test_clicks_of_the_frontier_are_not_looked_at(web: Web, found: Scores) -> None:
    told = np.where(web.inputs.graph.crawled, web.inputs.clicks, 1000.0 + np.arange(PAGES))
    np.testing.assert_array_equal(score_learned(again(web, clicks=told), folds=FOLDS).values, found.values)


def test_held_out_scores_know_the_rule_but_not_the_page(web: Web, found: Scores) -> None:
    assert found.held_out is not None
    rows, scores = found.held_out
    assert len(set(rows.tolist())) == len(rows) > 500
    assert web.inputs.graph.crawled[rows].all()
    assert np.corrcoef(np.log1p(scores), np.log1p(web.clicks[rows]))[0, 1] > 0.5


def test_noise_is_not_learnt_by_heart() -> None:
    noisy = make_web(3, noise=True)
    found = score_learned(noisy.inputs, folds=FOLDS)
    assert found.held_out is not None
    rows, scores = found.held_out
    assert len(rows) > 500
    assert abs(np.corrcoef(scores, noisy.clicks[rows])[0, 1]) < 0.13


def test_labels_of_uncrawled_pages_are_learnt_from_too(web: Web) -> None:
    labelled = web.inputs.graph.crawled.copy()
    training = web.inputs.graph.frontier[::2]
    labelled[training] = True
    told = np.where(labelled, web.clicks, 0.0)
    found = score_learned(again(web, labelled=labelled, clicks=told), folds=FOLDS)
    assert found.held_out is not None
    # all but those whose linkers happened to be hidden with them
    assert np.isin(training, found.held_out[0]).mean() > 0.9


def test_young_pages_count_with_the_clicks_of_a_full_exposure(web: Web) -> None:
    """Every other page had a quarter of its time, and a quarter of its clicks: what is expected stays the same."""
    exposure = np.where(np.arange(PAGES) % 2 == 0, 0.25, 1.0)
    found = learned.gather_lessons(again(web, clicks=web.inputs.clicks * exposure, exposure=exposure), None, FOLDS)
    np.testing.assert_allclose(found.clicks, web.inputs.clicks[found.pages])
    np.testing.assert_array_equal(found.weight, exposure[found.pages])
    weighed = learned.gather_lessons(again(web, weight=np.full(PAGES, 3.0), exposure=exposure), None, FOLDS)
    np.testing.assert_array_equal(weighed.weight, 3.0 * exposure[weighed.pages])


@pytest.mark.parametrize("score", [score_learned, score_tree])
def test_too_few_clicks_are_said_to_be(web: Web, score: Callable[[Inputs], Scores]) -> None:
    few = np.zeros(PAGES)
    few[np.flatnonzero(web.inputs.graph.crawled)[:5]] = 1.0
    for inputs in (again(web, clicks=np.zeros(PAGES)), again(web, clicks=few)):
        found = score(inputs)
        assert not found.values.any()
        assert found.info["note"] == "too few clicks to learn from"
        assert found.held_out is None


def test_few_clicked_pages_among_many_are_learnt_from() -> None:
    """Where less than one in 200 has clicks, none of them may be capped away."""
    rng = np.random.default_rng(0)
    features = rng.random((6000, 3)).astype(np.float32)
    clicks = np.where(features[:, 0] > 0.9975, rng.poisson(20.0, 6000), 0).astype(np.float64)
    assert 10 < np.count_nonzero(clicks) < 30
    forests, importance = learned.fit_trees(features, clicks, np.ones(6000), 0)
    assert importance.argmax() == 0
    for forest in forests:
        said = forest.predict(features)
        assert said[clicks > 0].mean() > 10 * said[clicks == 0].mean()
        assert said[clicks > 0].mean() > 0.5


def test_a_half_with_too_little_feedback_has_no_held_out_scores(web: Web) -> None:
    """Twelve pages have clicks: enough to learn from, too few once they are halved."""
    clicks = np.zeros(PAGES)
    rows = np.flatnonzero(web.inputs.graph.crawled & (web.inputs.graph.in_degree > 2))
    clicks[rows[:12]] = 5.0
    found = score_learned(again(web, clicks=clicks), folds=FOLDS)
    assert "note" not in found.info
    assert found.values[web.frontier].any()
    assert found.held_out is not None
    assert len(found.held_out[0]) == 0
    everyone = Feedback(web.inputs.graph.crawled, np.ones(PAGES), np.ones(PAGES))
    study = study_frontier(again(web, clicks=clicks), "learned", web.inputs.graph.frontier, everyone)
    assert study.calibration.kind == "prior"
    assert study.calibration.clicks == 60.0
    assert study.default_worth == pytest.approx(61 / (100 + web.inputs.graph.crawled.sum()), rel=0.1)


def test_a_study_by_it_is_right_on_average(web: Web) -> None:
    everyone = Feedback(web.inputs.graph.crawled, np.ones(PAGES), np.ones(PAGES))
    study = study_frontier(again(web), "learned", web.inputs.graph.frontier, everyone)
    assert study.calibration.kind == "calibrated"
    worth, clicks = study.worth[web.frontier].astype(np.float64), web.clicks[web.frontier]
    assert worth.mean() == pytest.approx(clicks.mean(), rel=0.2)
    best = worth >= np.quantile(worth, 0.8)
    assert worth[best].mean() == pytest.approx(clicks[best].mean(), rel=0.3)
    assert "leans on" in study.info


def test_a_tree_over_the_scores_learns_what_decides(web: Web) -> None:
    """Clicks follow from links alone here; the tree sees no words or directories."""
    rng = np.random.default_rng(1)
    steps = np.where(web.inputs.graph.in_degree >= 7, 20.0, 1.0)  # what one score decides, at one place
    clicks = rng.poisson(steps).astype(np.float64)
    crawled, mine = web.inputs.graph.crawled, web.frontier
    found = score_tree(again(web, clicks=np.where(crawled, clicks, 0.0)), folds=FOLDS)
    assert np.isfinite(found.values).all()
    assert not found.values[~mine].any()
    # hidden pages have lost a few of their linkers, so that the edge is not sharp
    many, few = mine & (web.inputs.graph.in_degree >= 9), mine & (web.inputs.graph.in_degree <= 4)
    assert found.values[many].mean() > 10.0
    assert found.values[few].mean() < 4.0
    repeated = score_tree(again(web, clicks=np.where(crawled, clicks, 0.0)), folds=FOLDS)
    np.testing.assert_array_equal(repeated.values, found.values)
    plain = again(web, clicks=np.where(crawled, clicks, 0.0), words=None, groups=())
    np.testing.assert_array_equal(score_tree(plain, folds=FOLDS).values, found.values)
