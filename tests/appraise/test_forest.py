"""Trees as arrays say what the library's own models say, and a damaged file is never taken for a forest."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bowerbird.appraise.frontier.forest import Forest, take_boosting, take_trees
from bowerbird.appraise.frontier.learned import fit_trees
from bowerbird.appraise.frontier.learned_model import LearnedModel, blend


def lessons(seed: int = 0, count: int = 400) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    rng = np.random.default_rng(seed)
    table = rng.normal(size=(count, 5)).astype(np.float32)
    return table, rng.poisson(np.exp(1.0 + table[:, 0] - 0.5 * table[:, 1])).astype(np.float64)


def test_boosted_trees_predict_as_the_library_does() -> None:
    from sklearn.ensemble import HistGradientBoostingRegressor

    table, clicks = lessons()
    fresh, _ = lessons(1)
    poisson = HistGradientBoostingRegressor(loss="poisson", max_iter=20, random_state=0).fit(table, clicks)
    logs = HistGradientBoostingRegressor(max_iter=20, random_state=0).fit(table, np.log1p(clicks))
    for model, link, said in (
        (poisson, "exp", poisson.predict(fresh)),
        (logs, "expm1", np.expm1(logs.predict(fresh))),
    ):
        np.testing.assert_allclose(take_boosting(model, link).predict(fresh), said, rtol=1e-5, atol=1e-5)


def test_extra_trees_predict_as_the_library_does() -> None:
    from sklearn.ensemble import ExtraTreesRegressor

    table, clicks = lessons()
    fresh, _ = lessons(1)
    model = ExtraTreesRegressor(15, min_samples_leaf=2, random_state=0).fit(table, np.sqrt(clicks))
    said = model.predict(fresh) ** 2
    np.testing.assert_allclose(take_trees(model, "square").predict(fresh), said, rtol=1e-5, atol=1e-5)


def make_model() -> tuple[LearnedModel, np.ndarray[Any, Any]]:
    table, clicks = lessons()
    forests, importance = fit_trees(table, clicks, np.ones(len(clicks)), 0)
    names = ("a", "b", "c", "d", "e")
    model = LearnedModel(
        names, forests, importance, 1000.0, 400, float(clicks.sum()), float(clicks.max()), np.arange(400), clicks
    )
    return model, table


def test_a_model_comes_back_from_a_file_as_it_was() -> None:
    model, table = make_model()
    file = io.BytesIO()
    np.savez(file, **model.dump())  # type: ignore[arg-type]  # arrays by name
    file.seek(0)
    with np.load(file, allow_pickle=False) as stored:
        again = LearnedModel.load({name: stored[name] for name in stored})
    assert again is not None
    assert again.names == model.names
    assert np.array_equal(again.predict(table), model.predict(table))
    assert again.leans_on(1) == "a"
    assert (again.at, again.pages, again.most_clicks) == (model.at, model.pages, model.most_clicks)


Damage = Callable[[dict[str, Any]], object]


@pytest.mark.parametrize(
    "damage",
    [
        lambda arrays: arrays.pop("logs.left"),
        lambda arrays: arrays.update({"roots.feature": arrays["roots.feature"] + 100}),
        lambda arrays: arrays.update({"poisson.left": np.zeros_like(arrays["poisson.left"])}),
        lambda arrays: arrays.update({"poisson.right": arrays["poisson.right"] + 10**8}),
        lambda arrays: arrays.update({"poisson.form": np.array([0.0, 1.0, 7.0])}),
        lambda arrays: arrays.update({"learnt": np.array([1.0])}),
        lambda arrays: arrays.update({"held_rows": arrays["held_rows"][:3]}),
        lambda arrays: arrays.update({"logs.roots": arrays["logs.roots"] - 5}),
    ],
)
def test_what_is_damaged_is_no_model(damage: Damage) -> None:
    arrays = make_model()[0].dump()
    damage(arrays)
    assert LearnedModel.load(arrays) is None


def test_a_model_is_learnt_anew_when_feedback_has_grown_or_a_day_has_passed() -> None:
    model = replace(make_model()[0], clicks=100.0, most_clicks=10.0)
    assert model.is_still_good(1500.0, 430, 95.0, 10.5)
    assert not model.is_still_good(1500.0, 600, 100.0, 10.0)
    assert not model.is_still_good(1500.0, 400, 130.0, 10.0)
    assert not model.is_still_good(1500.0, 400, 100.0, 30.0)
    assert not model.is_still_good(1000.0 + 2 * 86400, 400, 100.0, 10.0)


def test_a_blend_lies_between_its_parts() -> None:
    low, high = np.array([0.0, 1.0, 5.0]), np.array([3.0, 1.0, 500.0])
    blended = blend([low, high])
    assert (blended >= low).all()
    assert (blended <= high).all()
    assert blended[1] == pytest.approx(1.0)


def test_a_forest_of_one_leaf() -> None:
    leaf = Forest(
        np.zeros(1, np.int32),
        np.full(1, -1, np.int32),
        np.zeros(1),
        np.zeros(1, np.int32),
        np.zeros(1, np.int32),
        np.full(1, 2.0, np.float32),
        1.0,
        0.5,
        "square",
    )
    assert leaf.predict(np.zeros((2, 3), np.float32)).tolist() == [4.0, 4.0]
