"""What the learned appraiser has learnt: three forests over named features, and how they did on pages held out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from bowerbird.appraise.frontier.forest import Forest, Table

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

FORESTS = ("poisson", "logs", "roots")
CHANGE = 0.1  # by which pages or clicks may have grown before it is learnt anew
OLDEST_S = 86400.0


@dataclass(frozen=True, slots=True)
class LearnedModel:
    """Predicts clicks from features in the order of `names`."""

    names: tuple[str, ...]
    forests: tuple[Forest, ...]
    importance: FloatArray  # by feature
    at: float  # when it was learnt
    pages: int  # whose clicks were known then
    clicks: float  # that they had
    most_clicks: float  # of any of them: the walks are on this scale
    held_rows: IntArray  # pages learnt from,
    held_scores: FloatArray  # and what models that had not seen them say

    def predict(self, table: Table) -> FloatArray:
        """Expected clicks."""
        return blend([forest.predict(table) for forest in self.forests])

    def is_still_good(self, now: float, pages: int, clicks: float, most_clicks: float) -> bool:
        """Has little changed since it was learnt?"""
        pairs = ((pages, self.pages), (clicks, self.clicks), (most_clicks, self.most_clicks))
        grown = max(abs(present - then) / max(then, 1e-9) for present, then in pairs)
        return grown <= CHANGE and 0.0 <= now - self.at <= OLDEST_S

    def leans_on(self, most: int) -> str:
        """The features that matter most, in words."""
        best = np.argsort(-self.importance, kind="stable")[:most]
        return ", ".join(self.names[place] for place in best.tolist())

    def dump(self) -> dict[str, npt.NDArray[Any]]:
        """As arrays for a file."""
        arrays: dict[str, npt.NDArray[Any]] = {
            "names": np.array("\n".join(self.names)),
            "importance": self.importance,
            "learnt": np.array([self.at, self.pages, self.clicks, self.most_clicks]),
            "held_rows": self.held_rows,
            "held_scores": self.held_scores,
        }
        for name, forest in zip(FORESTS, self.forests, strict=True):
            arrays |= forest.dump(name)
        return arrays

    @classmethod
    def load(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> LearnedModel | None:
        """From `dump`; None where the arrays are no such model."""
        try:
            names = tuple(str(arrays["names"]).split("\n"))
            at, pages, clicks, most = arrays["learnt"].tolist()
            forests = tuple(Forest.load(arrays, name, len(names)) for name in FORESTS)
            held = arrays["held_rows"].astype(np.int64), arrays["held_scores"].astype(np.float64)
            importance = arrays["importance"].astype(np.float64)
            if len(held[0]) != len(held[1]) or len(importance) != len(names) or held[0].min(initial=0) < 0:
                return None
            return cls(names, forests, importance, at, int(pages), clicks, most, *held)
        except (KeyError, ValueError, TypeError, AttributeError, IndexError):
            return None


def blend(predictions: Sequence[FloatArray]) -> FloatArray:
    """The mean on a log scale, where no one model's outliers rule."""
    logs = np.mean([np.log1p(np.maximum(each, 0.0)) for each in predictions], axis=0)
    blended: FloatArray = np.expm1(logs)
    return blended
