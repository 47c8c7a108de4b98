"""Regression trees as plain arrays: they can be kept in a file that anybody may open, and read without the library."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

FloatArray = npt.NDArray[np.float64]
Table = npt.NDArray[np.float32]

LINKS = ("exp", "expm1", "square")  # from the trees' sum to what they predict
_COLUMNS = ("roots", "feature", "threshold", "left", "right", "value")


@dataclass(frozen=True, slots=True)
class Forest:
    """Trees whose values add up. A node's feature is -1 at a leaf; at or below the threshold one goes left."""

    roots: npt.NDArray[np.int32]
    feature: npt.NDArray[np.int32]
    threshold: FloatArray
    left: npt.NDArray[np.int32]
    right: npt.NDArray[np.int32]
    value: npt.NDArray[np.float32]
    base: float
    scale: float
    link: str

    def predict(self, table: Table) -> FloatArray:
        """What the forest says of each row."""
        total = np.zeros(len(table))
        add_leaves(
            np.ascontiguousarray(table, dtype=np.float32),
            self.roots,
            self.feature,
            self.threshold,
            self.left,
            self.right,
            self.value,
            total,
        )
        raw: FloatArray = self.base + self.scale * total
        if self.link == "exp":
            return np.exp(raw)
        return np.expm1(raw) if self.link == "expm1" else np.square(raw)

    def dump(self, name: str) -> dict[str, npt.NDArray[Any]]:
        """As arrays for a file, under a name."""
        arrays: dict[str, npt.NDArray[Any]] = {f"{name}.{column}": getattr(self, column) for column in _COLUMNS}
        arrays[f"{name}.form"] = np.array([self.base, self.scale, LINKS.index(self.link)])
        return arrays

    @classmethod
    def load(cls, arrays: Mapping[str, npt.NDArray[Any]], name: str, features: int) -> Forest:
        """From `dump`; raises ValueError or KeyError where the arrays are no forest over so many features."""
        roots, feature, threshold, left, right, value = (arrays[f"{name}.{column}"] for column in _COLUMNS)
        base, scale, link = arrays[f"{name}.form"].tolist()
        nodes = len(feature)
        same = all(len(column) == nodes for column in (threshold, left, right, value))
        inner = np.flatnonzero(feature >= 0)
        # children come after their parents, so that a damaged file cannot lead in a circle
        deeper = same and (left[inner] > inner).all() and (right[inner] > inner).all()
        if not deeper or max(left.max(initial=0), right.max(initial=0), roots.max(initial=0)) >= nodes:
            raise ValueError("not a forest")
        if roots.min(initial=0) < 0 or feature.max(initial=-1) >= features or int(link) not in range(len(LINKS)):
            raise ValueError("not a forest")
        return cls(
            roots.astype(np.int32),
            feature.astype(np.int32),
            threshold.astype(np.float64),
            left.astype(np.int32),
            right.astype(np.int32),
            value.astype(np.float32),
            base,
            scale,
            LINKS[int(link)],
        )


def take_boosting(model: Any, link: str) -> Forest:
    """The trees of a HistGradientBoostingRegressor that met no missing values."""
    nodes = [predictor.nodes for (predictor,) in model._predictors]
    starts = np.concatenate([[0], np.cumsum([len(each) for each in nodes])])
    shift = np.repeat(starts[:-1], [len(each) for each in nodes])
    every = np.concatenate(nodes)
    leaf = every["is_leaf"].astype(bool)
    return Forest(
        starts[:-1].astype(np.int32),
        np.where(leaf, -1, every["feature_idx"]).astype(np.int32),
        np.where(leaf, 0.0, every["num_threshold"]).astype(np.float64),
        np.where(leaf, 0, every["left"] + shift).astype(np.int32),
        np.where(leaf, 0, every["right"] + shift).astype(np.int32),
        np.where(leaf, every["value"], 0.0).astype(np.float32),
        float(np.asarray(model._baseline_prediction).reshape(-1)[0]),
        1.0,
        link,
    )


def take_trees(model: Any, link: str) -> Forest:
    """The trees of an ExtraTreesRegressor, which predicts their mean."""
    trees = [each.tree_ for each in model.estimators_]
    starts = np.concatenate([[0], np.cumsum([each.node_count for each in trees])])
    shift = np.repeat(starts[:-1], [each.node_count for each in trees])
    left = np.concatenate([each.children_left for each in trees])
    right = np.concatenate([each.children_right for each in trees])
    leaf = left < 0
    return Forest(
        starts[:-1].astype(np.int32),
        np.where(leaf, -1, np.concatenate([each.feature for each in trees])).astype(np.int32),
        np.where(leaf, 0.0, np.concatenate([each.threshold for each in trees])),
        np.where(leaf, 0, left + shift).astype(np.int32),
        np.where(leaf, 0, right + shift).astype(np.int32),
        np.concatenate([each.value[:, 0, 0] for each in trees]).astype(np.float32),
        0.0,
        1.0 / len(trees),
        link,
    )


@njit(cache=True, nogil=True)
def add_leaves(
    table: Table,
    roots: npt.NDArray[np.int32],
    feature: npt.NDArray[np.int32],
    threshold: FloatArray,
    left: npt.NDArray[np.int32],
    right: npt.NDArray[np.int32],
    value: npt.NDArray[np.float32],
    total: FloatArray,
) -> None:
    """Add the value of the leaf that each row reaches in each tree."""
    for root in roots:
        for row in range(len(table)):
            node = root
            while feature[node] >= 0:
                node = left[node] if table[row, feature[node]] <= threshold[node] else right[node]
            total[row] += value[node]
