"""The value of a query as a sum over score levels, and the expected views above a level."""

from __future__ import annotations

import numpy as np
import pytest

from bowerbird.quality.exact import answers_of
from bowerbird.quality.levels import expected_views, pool_levels


@pytest.mark.parametrize("above", [0, 1, 3, 16, 40])
@pytest.mark.parametrize(("departing", "arriving", "shape"), [(0.0, 0.0, 1.0), (0.1, 0.7, 1.0), (0.3, 12.0, 4.0)])
def test_expected_views_by_drawing(above: int, departing: float, arriving: float, shape: float) -> None:
    rng = np.random.default_rng(above)
    upto = np.concatenate([[0.0], np.cumsum(np.arange(1.0, 1000) ** -1.5)])
    drawn = rng.binomial(above, 1 - departing, 200_000) + rng.poisson(rng.gamma(shape, arriving / shape, 200_000))
    found = expected_views(
        np.array([float(above)]), np.array([[departing]]), np.array([[arriving]]), np.array([shape]), upto
    )
    assert found[0, 0] == pytest.approx(float(upto[drawn].mean()), rel=0.004, abs=0.002)


def test_pools_cover_every_level_once() -> None:
    rng = np.random.default_rng(2)
    scores = rng.gamma(2.0, 1.0, (40, 300)) * (rng.random((40, 300)) < rng.random((40, 1)) ** 3)
    scores[0] = 0.0
    levels = pool_levels(np.ones(40), answers_of(scores))
    for query in range(40):
        lower, upper = levels.lower[:, query], levels.upper[:, query]
        cuts = np.sort(lower[upper > lower])
        assert cuts[0] == 0.0
        assert (upper - lower).sum() == pytest.approx(upper.max())
