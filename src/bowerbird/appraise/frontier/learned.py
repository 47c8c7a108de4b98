"""The learned appraiser: what pages like this one turned out to have, over every score and all that is known before.

Crawled pages are hidden a fold at a time and described as they were before anybody fetched them; their clicks since
are the target. Three kinds of trees that err differently are asked: Poisson boosting sees the few pages with most
clicks, boosting of logarithms the many with few, extra trees of square roots lie between. ([RW15] section 6 has one
regression tree over the scores.) What was learnt is kept with the study, and learnt anew when feedback has grown.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bowerbird.appraise.frontier.calibration import has_too_little
from bowerbird.appraise.frontier.features import Features, describe_pages, take_names
from bowerbird.appraise.frontier.forest import Forest, Table, take_boosting, take_trees
from bowerbird.appraise.frontier.graph import IntArray
from bowerbird.appraise.frontier.inputs import FloatArray, Inputs, Scores
from bowerbird.appraise.frontier.learned_model import LearnedModel, blend
from bowerbird.appraise.frontier.name_features import Names

FOLDS = 8
MOST_TAUGHT = 60_000  # pages that are learnt from, drawn by lot from more
CAP = 0.995  # clicks above this quantile count as at it for Poisson boosting
TREES = 200
LEAVES = 4000  # of an extra tree, about, at most
TOLD = 5  # features that are named
TREE_SCORES = ("in-links", "pagerank", "rw", "rw-eg 0.7", "rw-eg 0.4", "rw-eg 0.1")


@dataclass(frozen=True, slots=True)
class Taught:
    """What was learnt from: described pages with their clicks, and the fold that each was hidden with."""

    features: Features
    pages: IntArray
    clicks: FloatArray  # a full exposure's
    weight: FloatArray
    fold: IntArray


def score_learned(inputs: Inputs, *, folds: int = FOLDS, seed: int = 0, hold_out: bool = True) -> Scores:
    """The learned score: expected clicks by three kinds of trees; `hold_out` for a calibration."""
    import sklearn.ensemble  # noqa: F401  its libraries must be there for the limit to reach them
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):  # on a busy machine threads that wait for each other take many times as long
        return _score(inputs, folds, seed, hold_out)


def _score(inputs: Inputs, folds: int, seed: int, hold_out: bool) -> Scores:
    names = take_names(inputs)
    rows = inputs.frontier
    if rows is None:
        rows = np.flatnonzero(~inputs.graph.crawled)
    asked = describe_pages(inputs, rows, names)
    known = inputs.known
    model = LearnedModel.load(inputs.kept) if inputs.kept else None
    good = model is not None and model.is_still_good(
        inputs.now, int(known.sum()), float(inputs.clicks[known].sum()), inputs.clicks_scale
    )
    if model is None or not good or model.names != asked.names or model.held_rows.max(initial=0) >= len(known):
        model = learn(inputs, names, folds, seed, hold_out=hold_out)
    values = np.zeros(inputs.graph.count)
    if model is None:
        return Scores(values, info={"note": "too few clicks to learn from"})
    values[rows] = model.predict(asked.values)
    scored = ~np.isnan(model.held_scores)
    return Scores(
        values,
        info={
            "learnt from": float(len(model.held_rows)),
            "features": float(len(model.names)),
            "leans on": model.leans_on(TOLD),
        },
        held_out=(model.held_rows[scored], model.held_scores[scored]) if hold_out else None,
        kept=model.dump(),
    )


def learn(inputs: Inputs, names: Names | None, folds: int, seed: int, *, hold_out: bool) -> LearnedModel | None:
    """A model of the clicks of pages hidden by folds; None where there are too few."""
    taught = gather_lessons(inputs, names, folds)
    if has_too_little(taught.clicks):
        return None
    forests, importance = fit_trees(taught.features.values, taught.clicks, taught.weight, seed)
    held = predict_held_out(taught, seed) if hold_out else np.full(len(taught.pages), np.nan)
    known = inputs.known
    return LearnedModel(
        taught.features.names,
        forests,
        importance,
        inputs.now,
        int(known.sum()),
        float(inputs.clicks[known].sum()),
        inputs.clicks_scale,
        taught.pages,
        held,
    )


def gather_lessons(inputs: Inputs, names: Names | None, folds: int) -> Taught:
    """Hide the labelled pages a fold at a time, and describe those that are linked all the same."""
    labelled = inputs.rng.permutation(np.flatnonzero(inputs.known))
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
    exposure = np.ones(len(pages)) if inputs.exposure is None else inputs.exposure[pages]
    weight = exposure if inputs.weight is None else exposure * inputs.weight[pages]
    features = Features(parts[0][0].names, values)
    return Taught(features, pages, inputs.clicks[pages] / exposure, weight, numbers)


def predict_held_out(taught: Taught, seed: int) -> FloatArray:
    """Scores of the pages learnt from, each by models that did not see its fold; NaN where those had too little."""
    scores = np.full(len(taught.pages), np.nan)
    for half in (0, 1):
        mine = taught.fold % 2 == half
        if mine.any() and not has_too_little(taught.clicks[~mine]):
            forests, _ = fit_trees(taught.features.values[~mine], taught.clicks[~mine], taught.weight[~mine], seed)
            scores[mine] = blend([forest.predict(taught.features.values[mine]) for forest in forests])
    return scores


def fit_trees(
    features: Table, clicks: FloatArray, weight: FloatArray, seed: int
) -> tuple[tuple[Forest, ...], FloatArray]:
    """Three kinds of trees over the same lessons, and how much each feature mattered."""
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
    # where few pages have clicks at all, the quantile of all would leave none of them
    cap = max(float(np.quantile(clicks, CAP)), float(np.median(clicks[clicks > 0])))
    capped = np.minimum(clicks, cap)
    poisson = HistGradientBoostingRegressor(loss="poisson", **boosting).fit(features, capped, weight)
    logs = HistGradientBoostingRegressor(**boosting).fit(features, np.log1p(clicks), weight)
    roots = ExtraTreesRegressor(
        TREES, min_samples_leaf=max(2, len(clicks) // LEAVES), max_features=0.4, n_jobs=-1, random_state=seed
    )
    roots.fit(features, np.sqrt(clicks), weight)
    forests = (take_boosting(poisson, "exp"), take_boosting(logs, "expm1"), take_trees(roots, "square"))
    return forests, np.asarray(roots.feature_importances_)


def score_tree(inputs: Inputs, *, folds: int = FOLDS) -> Scores:
    """[RW15] section 6: one regression tree over the other methods' scores, learnt from clicks."""
    from sklearn.tree import DecisionTreeRegressor

    plain = replace(inputs, words=None, groups=())
    taught = gather_lessons(plain, None, folds)
    if has_too_little(taught.clicks):
        return Scores(np.zeros(inputs.graph.count), info={"note": "too few clicks to learn from"})
    used = [place for place, name in enumerate(taught.features.names) if name in TREE_SCORES]
    tree = DecisionTreeRegressor(min_samples_leaf=max(2, len(taught.pages) // 200), random_state=0)
    tree.fit(taught.features.values[:, used], taught.clicks)
    rows = np.flatnonzero(~inputs.graph.crawled) if inputs.frontier is None else inputs.frontier
    values = np.zeros(inputs.graph.count)
    values[rows] = tree.predict(describe_pages(plain, rows, None).values[:, used])
    return Scores(values, info={"learnt from": float(len(taught.pages))})
