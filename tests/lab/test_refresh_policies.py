"""Gains of updates by the curves, and the policies that use them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from tests.lab.refresh_toy import Toy, toys

from bowerbird.lab.refresh_data import read_refresh_data
from bowerbird.lab.refresh_gains import curve_gains_by_update, exact_gains_by_update
from bowerbird.lab.refresh_policies import SHAPES, Forecast, in_sample, priority, take_best, uniform, user_centric
from bowerbird.lab.refresh_replay import Replay, Truth, replay
from bowerbird.lab.refresh_scores import score_versions


@given(toy=toys())
@settings(max_examples=30, deadline=None)
def test_gains_belong_to_updates(toy: Toy) -> None:
    """Finite, none for the first version of a page, by either measure."""
    data = toy.data()
    scored = score_versions(data, data.workloads["web"], "in-link")
    for gains in (curve_gains_by_update(data, scored, "in-link"), exact_gains_by_update(Truth(scored))):
        assert np.isfinite(gains).all()
        assert not gains[data.first[:-1]].any()


def test_exact_gain_of_a_lone_update() -> None:
    """Refreshing the only page that changed brings quality back to 1: the gain is what was lost."""
    data = Toy([[["car"], ["bus"]], [["car", "red"], None]], [1, 1], {("car",): 1.0}).data()
    truth = Truth(score_versions(data, data.workloads["web"], "tf-idf"))
    state = Replay(truth)
    state.begin_week()
    assert 0 < state.quality < 1
    assert exact_gains_by_update(truth)[1] == pytest.approx(1 - state.quality)


def test_the_forecast_of_the_paper() -> None:
    """Updates in weeks 2 and 3 that gain 4 and 2: (4/2 + 2/1)/2 a week."""
    words = [["car"], None, ["bus"], ["red"]]
    data = Toy([words, [["car"], None, None, None]], [1, 1], {("car",): 1.0}).data()
    forecast = in_sample(data, np.array([0.0, 4.0, 2.0, 0.0]))
    assert forecast.growth.tolist() == [2.0, 0.0]
    assert forecast.loss.tolist() == [3.0, 0.0]
    assert forecast.changes == pytest.approx([2 / 3, 0.0])


def test_shapes_of_the_priority() -> None:
    """Linear and area by their formulas; saturating goes to loss/changes; an unknown shape is told."""
    forecast = Forecast(np.array([2.0, 0.0]), np.array([0.5, 0.0]), np.array([3.0, 0.0]))
    assert priority(forecast, 3, "linear").tolist() == [6.0, 0.0]
    assert priority(forecast, 3, "area").tolist() == [9.0, 0.0]
    assert priority(forecast, 1e3, "saturating") == pytest.approx([6.0, 0.0])
    with pytest.raises(ValueError, match="linear, area, saturating"):
        priority(forecast, 1, "square")


def test_uniform_takes_all_pages_in_turn() -> None:
    """Each once before any a second time."""
    toy = Toy([[["car"], None, None, None, None] for _ in range(8)], [1] * 8, {("car",): 1.0})
    data = toy.data()
    seen: list[int] = []
    choose = uniform(8, np.random.default_rng(5))

    def watch(state: Replay, budget: int) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
        chosen = choose(state, budget)
        seen.extend(chosen.tolist())
        return chosen

    replay(Truth(score_versions(data, data.workloads["web"], "tf-idf")), watch, 0.25)
    assert sorted(seen) == list(range(8))


@pytest.mark.parametrize("shape", SHAPES)
def test_user_centric_prefers_the_page_that_matters(shape: str) -> None:
    """Of two pages that change every week, the one that a query finds."""
    texts = [[["bus"], ["van"], ["bus"]], [["car"], ["red"], ["car"]]]
    data = Toy(texts, [1, 1], {("car",): 1.0, ("car", "red"): 1.0}).data()
    truth = Truth(score_versions(data, data.workloads["web"], "in-link"))
    policy = user_centric(Forecast(np.array([0.0, 1.0]), np.ones(2), np.array([0.0, 1.0])), shape)
    assert replay(truth, policy, 0.5).loss_bp == 0.0
    assert take_best(np.array([1.0, 2.0, 2.0]), 2).tolist() == [1, 2]


#: loss in bp of the linear priority at 1%, in sample; and how near it is reached
LINEAR = {
    ("k8s", "web", "tf-idf"): (21, 0.05),
    ("k8s", "site", "tf-idf"): (42, 0.05),
    ("k8s", "web", "in-link"): (18, 0.05),
    ("k8s", "site", "in-link"): (9.3, 0.05),
    ("mdn", "web", "in-link"): (7.1, 0.05),
    ("mdn", "site", "in-link"): (2.7, 0.05),
    ("mdn", "web", "tf-idf"): (57, 0.05),
    ("mdn", "site", "tf-idf"): (34, 0.05),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["k8s", "mdn"])
def test_linear_in_sample_is_near_the_reference(shared_data: Path, name: str) -> None:
    """On every workload and scoring."""
    data = read_refresh_data(name, shared_data / name)
    for (_, workload, scoring), (expected, near) in ((k, v) for k, v in LINEAR.items() if k[0] == name):
        scored = score_versions(data, data.workloads[workload], scoring)
        forecast = in_sample(data, curve_gains_by_update(data, scored, scoring))
        loss = replay(Truth(scored), user_centric(forecast), 0.01).loss_bp
        assert loss == pytest.approx(expected, rel=near), (workload, scoring)
