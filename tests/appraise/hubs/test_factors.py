from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bowerbird.appraise.hubs.factors import shrink_factors


def test_levels_that_do_not_differ_are_all_one() -> None:
    rng = np.random.default_rng(3)
    level = rng.integers(0, 40, 4000)
    clicks = rng.lognormal(0.0, 2.0, 4000)
    factors = shrink_factors(clicks, np.full(4000, clicks.mean()), level, 40)
    raw = np.bincount(level, clicks, 40) / (np.bincount(level, minlength=40) * clicks.mean())
    assert np.abs(np.log(factors)).mean() < 0.6 * np.abs(np.log(raw)).mean()
    assert np.abs(np.log(factors)).max() < 0.5


def test_factors_come_near_the_truth_and_nearer_than_raw_ratios() -> None:
    rng = np.random.default_rng(4)
    truth = rng.lognormal(0.0, 0.7, 50)
    level = rng.choice(50, 3000, p=rng.dirichlet(np.full(50, 0.5)))
    expected = rng.uniform(0.5, 5.0, 3000)
    clicks = truth[level] * expected * rng.lognormal(-0.5, 1.0, 3000)  # of mean 1
    factors = shrink_factors(clicks, expected, level, 50)
    seen = np.bincount(level, minlength=50) > 0
    raw = np.bincount(level, clicks, 50)[seen] / np.bincount(level, expected, 50)[seen]
    off, raw_off = np.log(factors[seen] / truth[seen]), np.log(raw / truth[seen])
    assert (off**2).mean() < 0.9 * (raw_off**2).mean()
    much = np.bincount(level, minlength=50)[seen] > 100
    assert np.abs(off[much]).max() < 0.4


@given(st.integers(1, 30), st.integers(0, 60), st.integers(0, 2**32 - 1))
def test_a_factor_lies_between_one_and_what_was_seen(levels: int, pages: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    level = rng.integers(0, levels, pages)
    clicks, expected = rng.exponential(3.0, pages), rng.uniform(0.1, 4.0, pages)
    factors = shrink_factors(clicks, expected, level, levels)
    for each in range(levels):
        mine = level == each
        ratio = clicks[mine].sum() / expected[mine].sum() if mine.any() else 1.0
        assert min(1.0, ratio) - 1e-3 <= factors[each] <= max(1.0, ratio) + 1e-9
