"""Splits of the frontier experiment, the rating of a ranking, and how a setting is chosen."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bowerbird.lab.frontier_data import FrontierData
from bowerbird.lab.frontier_split import (
    CUTS,
    choose_setting,
    collect_impact,
    estimate_error,
    rate_ranking,
    split_pages,
)
from bowerbird.model.errors import InputFileError


def make_data(pages: int = 30, links: int = 120, seed: int = 0) -> FrontierData:
    rng = np.random.default_rng(seed)
    keys = np.unique(rng.integers(0, pages * pages, links))
    keys = keys[keys // pages != keys % pages]
    names = tuple(f"p{page:04}" for page in range(pages))
    return FrontierData("tiny", names, keys // pages, keys % pages, rng.pareto(1.0, pages))


@pytest.mark.parametrize("number", [0, 1, 7])
def test_splits_are_those_of_the_protocol(number: int) -> None:
    """As PROTOCOLS.md has it, page by page."""
    data = make_data()
    rng = np.random.default_rng(1000 + number)
    crawled = set(rng.permutation(30).tolist()[: round(0.7 * 30)])
    links = list(zip(data.sources.tolist(), data.targets.tolist(), strict=True))
    frontier = sorted({target for source, target in links if source in crawled and target not in crawled})
    drawn = rng.permutation(np.array(frontier)).tolist()
    many = round(0.65 * len(frontier))
    split = split_pages(data, number)
    assert split.number == number
    assert set(np.flatnonzero(split.crawled).tolist()) == crawled
    assert split.training.tolist() == drawn[:many]
    assert split.test.tolist() == drawn[many:]
    assert 0 < len(split.test) < len(split.training)


def test_pages_that_only_hidden_pages_link_to_are_not_known() -> None:
    data = make_data(40, 60, seed=3)
    split = split_pages(data, 0)
    known = set(data.targets[split.crawled[data.sources]].tolist())
    only_hidden = set(data.targets.tolist()) - known - set(np.flatnonzero(split.crawled).tolist())
    assert only_hidden
    assert not only_hidden & {*split.training.tolist(), *split.test.tolist()}


@pytest.mark.parametrize("links", [([0], [1]), ([0, 1], [1, 0])])
def test_a_frontier_too_small_to_part_is_told(links: tuple[list[int], list[int]]) -> None:
    data = FrontierData("none", ("a", "b"), np.array(links[0]), np.array(links[1]), np.ones(2))
    with pytest.raises(InputFileError, match=r"none, split 0: . pages on the frontier, too few"):
        split_pages(data, 0)


def brute_force(score: list[float], impact: list[float]) -> list[float]:
    """Group by group: each page of a group is as likely to be above the cut as another."""
    rated = []
    for cut in CUTS:
        room = math.ceil(round(cut * len(score), 9))
        ours = 0.0
        for mark in sorted(set(score), reverse=True):
            group = [impact[place] for place in range(len(score)) if score[place] == mark]
            taken = min(room, len(group))
            ours += taken * sum(group) / len(group)
            room -= taken
        ideal = sum(sorted(impact, reverse=True)[: math.ceil(round(cut * len(score), 9))])
        rated.append(100 * ours / ideal if ideal else 0.0)
    return rated


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 9)), min_size=1, max_size=250))
def test_rating_is_that_of_brute_force_over_ties(pages: list[tuple[int, int]]) -> None:
    score, impact = (list(map(float, column)) for column in zip(*pages, strict=True))
    rated = rate_ranking(np.array(score), np.array(impact))
    assert rated.tolist() == pytest.approx(brute_force(score, impact), abs=1e-9)
    assert (rated <= 100 + 1e-9).all()


def test_rating_is_the_mean_over_all_orders_of_equal_pages() -> None:
    rng = np.random.default_rng(0)
    score, impact = rng.integers(0, 3, 40).astype(np.float64), rng.pareto(1.0, 40)
    rated = rate_ranking(score, impact)
    drawn = [rate_ranking(score + 1e-3 * rng.random(40), impact) for _ in range(4000)]
    error = np.std(drawn, axis=0) / math.sqrt(len(drawn))
    assert (np.abs(np.mean(drawn, axis=0) - rated) <= 5 * error + 1e-9).all()


def test_the_ideal_ranking_rates_100_and_the_order_of_pages_does_not_matter() -> None:
    rng = np.random.default_rng(1)
    score, impact = rng.integers(0, 9, 300).astype(np.float64), rng.integers(0, 5, 300).astype(np.float64)
    assert rate_ranking(impact, impact).tolist() == pytest.approx([100.0] * 6)
    order = rng.permutation(300)
    assert rate_ranking(score[order], impact[order]).tolist() == pytest.approx(rate_ranking(score, impact).tolist())
    assert rate_ranking(score, np.zeros(300)).tolist() == [0.0] * 6
    assert collect_impact(np.zeros(0), np.zeros(0)).tolist() == []


shares = st.floats(0.0, 1.0)


@given(shares, shares, shares)
def test_the_estimate_lies_between_its_parts(inside: float, outside: float, nothing: float) -> None:
    error = estimate_error(inside, outside, nothing)
    most = min(outside, nothing)
    assert min(inside, most) - 1e-9 <= error <= max(inside, most) + 1e-9
    if inside < most:  # between plain 0.632 and all out of the bag
        assert error >= 0.368 * inside + 0.632 * most - 1e-9


def test_the_estimate_is_that_of_efron_and_tibshirani() -> None:
    assert estimate_error(0.2, 0.2, 0.6) == pytest.approx(0.2)  # nothing learnt by heart
    assert estimate_error(0.0, 0.5, 0.5) == pytest.approx(0.5)  # everything learnt by heart
    rate = (0.3 - 0.1) / (0.5 - 0.1)
    weight = 0.632 / (1 - 0.368 * rate)
    assert estimate_error(0.1, 0.3, 0.5) == pytest.approx((1 - weight) * 0.1 + weight * 0.3)


@pytest.mark.parametrize("seed", range(5))
def test_the_better_setting_is_chosen(seed: int) -> None:
    rng = np.random.default_rng(seed)
    impact = rng.pareto(1.2, 400)
    noise = rng.normal(size=400)
    scores = {0.1: np.log(impact) + 4 * noise, 0.5: np.log(impact) + 0.3 * noise, 0.9: noise}
    assert choose_setting(scores, impact, np.random.default_rng(seed)) == 0.5
    assert choose_setting(dict(reversed(scores.items())), impact, np.random.default_rng(seed)) == 0.5


def test_of_equal_settings_the_first_is_chosen_even_on_few_pages() -> None:
    for count in (1, 2, 5):
        impact = np.arange(count, dtype=np.float64)
        scores = {0.3: impact, 0.7: impact * 2}
        assert choose_setting(scores, impact, np.random.default_rng(0)) == 0.3
