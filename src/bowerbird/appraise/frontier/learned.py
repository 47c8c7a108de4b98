"""The learned appraiser: what pages like this one turned out to have, over every score and all that is known before.

Crawled pages are hidden a fold at a time and described as they were before anybody fetched them; their clicks since
are the target. Three kinds of trees that err differently are asked: Poisson boosting sees the few pages with most
clicks, boosting of logarithms the many with few, extra trees of square roots lie between. ([RW15] section 6 has one
regression tree over the scores.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from bowerbird.appraise.frontier.calibration import has_too_little
from bowerbird.appraise.frontier.features import Features, describe_pages, take_names
from bowerbird.appraise.frontier.graph import IntArray
from bowerbird.appraise.frontier.inputs import FloatArray, Inputs, Scores

Table = npt.NDArray[np.float32]
Model = Callable[[Table], FloatArray]

FOLDS = 8
MOST_TAUGHT = 60_000  # pages that are learnt from, drawn by lot from more
CAP = 0.995  # clicks above this quantile count as at it for Poisson boosting
TREES = 200
TOLD = 5  # features that are named


@dataclass(frozen=True, slots=True)
class Taught:
    """What was learnt from: described pages with their clicks, and the fold that each was hidden with."""

    features: Features
    pages: IntArray
    clicks: FloatArray
    fold: IntArray


def score_learned(inputs: Inputs, *, folds: int = FOLDS, seed: int = 0, hold_out: bool = True) -> Scores:
    """The learned score: expected clicks by three kinds of trees; `hold_out` for a calibration."""
    import sklearn.ensemble  # noqa: F401  its libraries must be there for the limit to reach them
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):  # on a busy machine threads that wait for each other take many times as long
        return _learn(inputs, folds, seed, hold_out)


def _learn(inputs: Inputs, folds: int, seed: int, hold_out: bool) -> Scores:
    taught = gather_lessons(inputs, folds)
    if has_too_little(taught.clicks):
        return Scores(np.zeros(inputs.graph.count), info={"note": "too few clicks to learn from"})
    rows = inputs.frontier
    if rows is None:
        rows = np.flatnonzero(~inputs.graph.crawled)
    asked = describe_pages(inputs, rows, take_names(inputs))
    values = np.zeros(inputs.graph.count)
    models = fit_trees(taught.features.values, taught.clicks, seed)
    values[rows] = blend([model(asked.values) for model in models.models])
    best = np.argsort(-models.importance, kind="stable")[:TOLD]
    leans = ", ".join(taught.features.names[place] for place in best.tolist())
    return Scores(
        values,
        info={"learnt from": float(len(taught.pages)), "features": float(len(asked.names)), "leans on": leans},
        held_out=(taught.pages, predict_held_out(taught, seed)) if hold_out else None,
    )


def gather_lessons(inputs: Inputs, folds: int) -> Taught:
    """Hide the labelled pages a fold at a time, and describe those that are linked all the same."""
    labelled = inputs.rng.permutation(np.flatnonzero(inputs.known))
    names = take_names(inputs)
    room = MOST_TAUGHT // folds
    parts: list[tuple[Features, IntArray]] = []
    for fold in range(folds):
        hidden = np.zeros(inputs.graph.count, dtype=np.bool_)
        hidden[labelled[fold::folds]] = True
        partial = inputs.without(hidden)
        rows = np.flatnonzero(hidden & (partial.graph.in_degree > 0))
        if len(rows) > room:
            rows = np.sort(inputs.rng.choice(rows, room, replace=False))
        parts.append((describe_pages(partial, rows, names), rows))
    pages = np.concatenate([rows for _, rows in parts])
    values = np.vstack([features.values for features, _ in parts])
    numbers = np.repeat(np.arange(folds), [len(rows) for _, rows in parts])
    return Taught(Features(parts[0][0].names, values), pages, inputs.clicks[pages], numbers)


def predict_held_out(taught: Taught, seed: int) -> FloatArray:
    """Scores of the pages learnt from, each by models that did not see its fold."""
    scores = np.zeros(len(taught.pages))
    for half in (0, 1):
        mine = taught.fold % 2 == half
        if mine.any() and not has_too_little(taught.clicks[~mine]):
            models = fit_trees(taught.features.values[~mine], taught.clicks[~mine], seed)
            scores[mine] = blend([model(taught.features.values[mine]) for model in models.models])
    return scores


@dataclass(frozen=True, slots=True)
class Trees:
    """Models that predict clicks, and how much each feature mattered."""

    models: tuple[Model, ...]
    importance: FloatArray


def fit_trees(features: Table, clicks: FloatArray, seed: int) -> Trees:
    """Three kinds of trees over the same lessons."""
    from sklearn.ensemble import ExtraTreesRegressor, HistGradientBoostingRegressor

    boosting: dict[str, Any] = {
        "max_iter": 150,
        "learning_rate": 0.05,
        "max_leaf_nodes": 15,
        "min_samples_leaf": min(20, max(2, len(clicks) // 20)),
        "l2_regularization": 1.0,
        "max_features": 0.5,
        "early_stopping": False,
        "random_state": seed,
    }
    capped = np.minimum(clicks, max(float(np.quantile(clicks, CAP)), 1e-9))
    poisson = HistGradientBoostingRegressor(loss="poisson", **boosting).fit(features, capped)
    logs = HistGradientBoostingRegressor(**boosting).fit(features, np.log1p(clicks))
    roots = ExtraTreesRegressor(TREES, min_samples_leaf=2, max_features=0.4, n_jobs=-1, random_state=seed)
    roots.fit(features, np.sqrt(clicks))
    return Trees(
        (
            lambda table: np.asarray(poisson.predict(table)),
            lambda table: np.expm1(logs.predict(table)),
            lambda table: np.asarray(roots.predict(table)) ** 2,
        ),
        np.asarray(roots.feature_importances_),
    )


def blend(predictions: Sequence[FloatArray]) -> FloatArray:
    """The mean on a log scale, where no one model's outliers rule."""
    logs = np.mean([np.log1p(np.maximum(each, 0.0)) for each in predictions], axis=0)
    blended: FloatArray = np.expm1(logs)
    return blended


def score_tree(inputs: Inputs, *, folds: int = FOLDS) -> Scores:
    """[RW15] section 6: one regression tree over the other methods' scores, learnt from clicks."""
    from sklearn.tree import DecisionTreeRegressor

    plain = replace(inputs, words=None, groups=(), kinds=None)
    taught = gather_lessons(plain, folds)
    if has_too_little(taught.clicks):
        return Scores(np.zeros(inputs.graph.count), info={"note": "too few clicks to learn from"})
    used = [place for place, name in enumerate(taught.features.names) if name in TREE_SCORES]
    tree = DecisionTreeRegressor(min_samples_leaf=max(2, len(taught.pages) // 200), random_state=0)
    tree.fit(taught.features.values[:, used], taught.clicks)
    rows = np.flatnonzero(~inputs.graph.crawled) if inputs.frontier is None else inputs.frontier
    values = np.zeros(inputs.graph.count)
    values[rows] = tree.predict(describe_pages(plain, rows, None).values[:, used])
    return Scores(values, info={"learnt from": float(len(taught.pages))})


TREE_SCORES = ("in-links", "pagerank", "rw", "rw-eg 0.7", "rw-eg 0.4", "rw-eg 0.1")
