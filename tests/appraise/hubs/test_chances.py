"""Draws of rates: one a visit."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from scipy.special import gammaincinv

from bowerbird.appraise.hubs.study import chances


def test_studies_however_many_make_no_more_visits() -> None:
    """A hub falls due by the draw of its last visit, not by the largest of one draw a study."""
    rows, rng, studies = np.arange(300), np.random.default_rng(4), 3000

    def interval_s(chance: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        return 3600.0 / (gammaincinv(2.0, chance) / 2.0 + 0.1)  # the rate drawn from what is believed, and some more

    visits = {}
    for anew in (False, True):
        age_s, count = np.zeros(len(rows)), np.zeros(len(rows), np.int64)
        for _ in range(studies):
            age_s += 60.0
            due = age_s >= interval_s(rng.random(len(rows)) if anew else chances(rows, count, 1))
            count += due
            age_s[due] = 0.0
        visits[anew] = int(count.sum())
    by_lot = float(interval_s((np.arange(10_000) + 0.5) / 10_000).mean())
    assert visits[False] == pytest.approx(len(rows) * studies * 60.0 / by_lot, rel=0.05)
    assert visits[True] > 1.5 * visits[False]


def test_chances_are_even_and_tell_nothing_of_each_other() -> None:
    rows, count = np.divmod(np.arange(100_000), 10)
    drawn = chances(rows, count, 3)
    assert ((drawn > 0) & (drawn < 1)).all()
    assert np.histogram(drawn, 20, (0, 1))[0] == pytest.approx(5000, abs=350)
    assert abs(np.corrcoef(drawn[:-1], drawn[1:])[0, 1]) < 0.02
    assert abs(np.corrcoef(drawn, chances(rows, count, 4))[0, 1]) < 0.02
