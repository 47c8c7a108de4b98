"""Interest: least squares against a general optimiser, the book against worlds whose profit and decay are known."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from bowerbird.appraise.hubs.interest import (
    InterestBook,
    age_bins,
    expected_profit,
    fit_interest,
    fit_interests,
    fit_profit,
)

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]
BIN_S = 1200.0
HOUR_S = 3600.0
DAY_S = 86400.0


def noisy_curve(seed: int) -> tuple[F64, F64, F64]:
    """Ages, mean cumulative clicks about some curve, weights."""
    rng = np.random.default_rng(seed)
    ages = BIN_S * np.arange(1, rng.integers(5, 80))
    decay = np.exp(rng.uniform(math.log(0.3 / ages[-1]), math.log(20 / ages[-1])))
    clicks = np.exp(rng.normal(0, 2)) * (-np.expm1(-decay * ages) + rng.normal(0, 0.03, len(ages)))
    return ages, clicks, rng.uniform(0.1, 2.0, len(ages))


@given(seed=st.integers(0, 100_000))
@settings(deadline=None, max_examples=40)
def test_least_squares_is_what_a_general_optimiser_finds(seed: int) -> None:
    ages, clicks, weight = noisy_curve(seed)

    def loss(point: F64) -> float:
        return float(weight @ (clicks - math.exp(point[0]) * -np.expm1(-math.exp(point[1]) * ages)) ** 2)

    found = fit_interest(ages, clicks, weight)
    mine = loss(np.log([found.profit, found.decay_per_s]))
    assert mine == pytest.approx(found.error**2 * weight.sum(), rel=1e-9)
    start = np.log([max(clicks[-1], 1e-6), 3 / ages[-1]])
    other = minimize(loss, start, method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-16, "maxiter": 4000})
    low, high = 1e-3 / ages[-1], 1e2 / ages[0]
    if low < math.exp(other.x[1]) < high:  # beyond it is a straight line, or flat
        assert mine <= other.fun * (1 + 1e-9) + 1e-18
    else:
        assert mine <= other.fun * 1.01 + 1e-18
    if 1.01 * low < found.decay_per_s < 0.99 * high and other.fun <= mine * (1 + 1e-6):
        assert np.log([found.profit, found.decay_per_s]) == pytest.approx(other.x, abs=0.1)  # the loss may be flat


@given(profit=st.floats(0.01, 1e4), scale=st.floats(0.05, 30.0))
@settings(deadline=None)
def test_a_curve_without_noise_is_found_again(profit: float, scale: float) -> None:
    ages = BIN_S * np.arange(1, 73)
    decay = scale / ages[-1]
    found = fit_interest(ages, profit * -np.expm1(-decay * ages))
    assert found.profit == pytest.approx(profit, rel=1e-5)
    assert found.decay_per_s == pytest.approx(decay, rel=1e-5)
    assert fit_profit(profit * -np.expm1(-decay * ages), ages, decay) == pytest.approx(profit, rel=1e-12)


def test_profit_for_given_decay_is_least_squares() -> None:
    ages, clicks, weight = noisy_curve(3)
    best = fit_profit(clicks, ages, 1e-4, weight)
    curve = -np.expm1(-1e-4 * ages)
    exact = np.linalg.lstsq((np.sqrt(weight) * curve)[:, None], np.sqrt(weight) * clicks, rcond=None)[0][0]
    assert best == pytest.approx(exact, rel=1e-10)
    assert fit_profit(-clicks, ages, 1e-4) == 0.0
    assert fit_profit([0.0], [0.0], 1e-4) == 0.0


def test_many_hubs_at_once_are_each_as_alone() -> None:
    ages = BIN_S * np.arange(1, 40)
    rng = np.random.default_rng(5)
    clicks = np.cumsum(rng.poisson(3.0 * np.exp(-np.arange(39) / 10), (30, 39)), axis=1).astype(float)
    weight = rng.uniform(0.5, 2.0, clicks.shape)
    found = fit_interests(ages, clicks, weight)
    for i in range(30):
        alone = fit_interest(ages, clicks[i], weight[i])
        assert (found.profit[i], found.decay_per_s[i]) == pytest.approx((alone.profit, alone.decay_per_s), rel=1e-7)
    assert len(fit_interests(ages, np.zeros((0, 39))).profit) == 0
    assert fit_interest(ages, np.zeros(39)).profit == 0.0


def test_expected_profit_of_young_pages() -> None:
    # a page that shows a tenth of its clicks has been seen as a tenth of a page
    assert expected_profit(2.0, 0.1, 0.0, 0.0) == pytest.approx(20.0)
    assert expected_profit([0.0, 500.0], [0.0, 100.0], 3.0, 1.0) == pytest.approx([3.0, 503 / 101])


def test_bins_begin_fine_and_end_late() -> None:
    edges = age_bins()
    assert len(edges) - 1 <= 64
    assert edges[1] == BIN_S
    assert edges[-1] >= 14 * DAY_S
    assert (edges % BIN_S == 0).all()
    assert (np.diff(edges) > 0).all()
    with pytest.raises(ValueError, match="at most 64"):
        age_bins(growth=0.01)


@dataclass
class World:
    """Pages of hubs with known profit and decay, and the reports of their clicks in bins of 20 minutes."""

    group: I64
    profit: F64
    decay: F64
    hub: I64
    page: I64
    begin: F64
    end: F64
    clicks: F64

    def book(self) -> InterestBook:
        book = InterestBook(len(self.group), self.group)
        book.add(self.hub, self.begin, self.end, self.clicks, page=self.page)
        return book


def draw(
    seed: int,
    *,
    hubs: int = 100,
    groups: int = 10,
    pages: float = 60,
    longest_s: float = 3 * DAY_S,
    delay_s: float = 2 * HOUR_S,
    clumps: float = 0.0,
    differ: bool = True,
) -> World:
    """Pages are fetched after a delay, and watched until the last push, at a random age: most are cut off young."""
    rng = np.random.default_rng(seed)
    group = rng.permutation(np.arange(hubs) % groups)
    profit = (10.0 * rng.gamma(2.0, 0.5, groups))[group] * (rng.gamma(4.0, 0.25, hubs) if differ else 1.0)
    decay = np.exp(rng.normal(math.log(1 / 30_000), 0.3, groups))[group]
    decay = decay * (np.exp(rng.normal(0.0, 0.3, hubs)) if differ else 1.0)
    hub = np.repeat(np.arange(hubs), rng.poisson(pages, hubs))
    first = np.floor(rng.exponential(delay_s, len(hub)) / BIN_S)
    bins = np.floor(rng.uniform(0, longest_s, len(hub)) / BIN_S).astype(np.int64)
    loud = rng.gamma(1 / clumps, clumps, len(hub)) if clumps else np.ones(len(hub))
    page = np.repeat(np.arange(len(hub)), bins)
    step = np.arange(len(page)) - np.repeat(np.cumsum(bins) - bins, bins)
    begin = (first[page] + step) * BIN_S
    mu = decay[hub[page]]
    mean = profit[hub[page]] * loud[page] * (np.exp(-mu * begin) - np.exp(-mu * (begin + BIN_S)))
    clicks = rng.poisson(mean).astype(float)
    return World(group, profit, decay, hub[page], page, begin, begin + BIN_S, clicks)


def log_errors(found: F64, truth: F64) -> tuple[float, float]:
    """Mean and middle size of log(found/truth)."""
    off = np.log(found / truth)
    return float(off.mean()), float(np.median(np.abs(off)))


def test_censored_and_late_pages_give_the_truth_without_bias() -> None:
    errors = []
    for pages in (20, 400):
        world = draw(1, pages=pages)
        found = world.book().fit()
        (bias, spread), (decay_bias, decay_spread) = (
            log_errors(found.profit, world.profit),
            log_errors(found.decay_per_s, world.decay),
        )
        errors.append((spread, decay_spread))
        assert abs(bias) < 0.03
        assert abs(decay_bias) < 0.03
    assert errors[1][0] < 0.025  # it converges: 20 times the pages, about a quarter of the error
    assert errors[1][1] < 0.025
    assert errors[1][0] < 0.4 * errors[0][0]


def test_pages_seen_for_an_hour_only_still_give_the_right_profit_with_others_decay() -> None:
    """A hub of which only young pages were ever seen: its clicks so far are a twentieth of what will come."""
    old, young = draw(2, hubs=20, groups=1, pages=300, differ=False), draw(2, hubs=20, groups=1, pages=0.0)
    rng = np.random.default_rng(3)
    book = InterestBook(21, np.zeros(21))
    book.add(old.hub, old.begin, old.end, old.clicks, page=old.page)
    pages = np.repeat(np.arange(2000), 3)
    begin = np.tile([0.0, BIN_S, 2 * BIN_S], 2000)
    mu = float(old.decay[0])
    mean = 3 * old.profit[0] * (np.exp(-mu * begin) - np.exp(-mu * (begin + BIN_S)))
    clicks = rng.poisson(mean)
    book.add(20, begin, begin + BIN_S, clicks, page=pages)
    found = book.fit()
    assert len(young.hub) == 0
    assert found.profit[20] == pytest.approx(3 * old.profit[0], rel=0.25)
    assert clicks.sum() / 2000 < 0.4 * old.profit[0]  # the plain mean would have said this


def test_reports_of_any_length_do_little_harm() -> None:
    """Ages that do not meet the edges of bins, where a bin is seen in part."""
    rng = np.random.default_rng(4)
    profit, mu, count = 20.0, 1 / 40_000, 20_000
    begin = rng.uniform(0, 6 * HOUR_S, count)
    rows = [(begin + k * 1000.0, begin + (k + 1) * 1000.0) for k in range(100)]
    book = InterestBook(1)
    last = rng.integers(1, 100, count)
    for k, (low, high) in enumerate(rows):
        seen = k < last
        clicks = rng.poisson(profit * (np.exp(-mu * low) - np.exp(-mu * high))[seen])
        book.add(0, low[seen], high[seen], clicks, page=np.flatnonzero(seen))
    found = book.fit()
    assert found.profit[0] == pytest.approx(profit, rel=0.02)
    assert found.decay_per_s[0] == pytest.approx(mu, rel=0.02)


def test_little_data_is_drawn_to_group_and_all() -> None:
    world = draw(5, hubs=300, groups=15, pages=2.0, clumps=1.5)
    book = world.book()
    found = book.fit()
    seen = book.seen_pages(found.decay_per_s)
    clicks = np.bincount(world.hub, world.clicks, 300)
    known = seen > 0
    alone = clicks[known] / seen[known]
    error = float(np.mean((found.profit - world.profit)[known] ** 2))
    assert error < 0.5 * float(np.mean((alone - world.profit[known]) ** 2))  # no pooling
    pooled = clicks.sum() / seen.sum()
    assert error < 0.9 * float(np.mean((pooled - world.profit[known]) ** 2))  # pooling all
    assert (found.profit > 0).all()
    _, spread = log_errors(found.decay_per_s, world.decay)
    assert spread < float(np.std(np.log(world.decay)))


def test_a_hub_without_reports_is_its_group_and_a_book_without_any_the_prior() -> None:
    world = draw(6, hubs=40, groups=4, pages=200)
    book = world.book()
    book.add_hubs([2, 9])
    found = book.fit()
    assert found.profit[40] == pytest.approx(found.levels.by_group[2])
    assert found.decay_per_s[40] == pytest.approx(found.decay_by_group[2])
    truth = world.profit[world.group == 2].mean()
    assert found.profit[40] == pytest.approx(truth, rel=0.5)
    assert found.profit[41] == pytest.approx(found.levels.overall, rel=1e-6)
    empty = InterestBook(3, prior_profit=5.0, prior_decay_per_s=1e-5).fit()
    assert empty.profit == pytest.approx([5.0] * 3)
    assert empty.decay_per_s == pytest.approx([1e-5] * 3)


def test_pages_that_differ_are_not_taken_for_hubs_that_differ() -> None:
    world = draw(7, hubs=200, groups=1, pages=20, clumps=3.0, differ=False)
    found = world.book().fit()
    assert found.noise > 5.0
    assert found.levels.hub_shape > 10.0
    _, spread = log_errors(found.profit, world.profit)
    assert spread < 0.25


def test_the_curve_is_right_where_the_plain_mean_is_not() -> None:
    world = draw(2, hubs=20, groups=1, pages=300, differ=False)
    ages, clicks, exposed = world.book().curve()
    assert len(ages) > 30
    assert len(exposed) == len(ages)
    np.testing.assert_allclose(clicks, -world.profit[0] * np.expm1(-world.decay[0] * ages), rtol=0.1)
    assert world.clicks.sum() / len(np.unique(world.page)) < 0.75 * world.profit[0]
    found = fit_interest(ages, clicks, exposed)
    assert found.profit == pytest.approx(world.profit[0], rel=0.1)
    assert found.decay_per_s == pytest.approx(world.decay[0], rel=0.1)


def test_curve_counts_pages_by_exposure() -> None:
    book = InterestBook(2, edges_s=np.array([0.0, 10.0, 20.0, 40.0]))
    book.add([0, 0, 1], [0.0, 0.0, 0.0], [10.0, 20.0, 10.0], [4.0, 2.0, 8.0])
    ages, clicks, exposed = book.curve([0])
    assert ages.tolist() == [10.0, 20.0]
    assert exposed.tolist() == [2.0, 1.0]
    # clicks of twenty seconds fade by hardly anything within them
    assert clicks.tolist() == pytest.approx([2.5, 3.5], rel=1e-4)
    assert book.curve()[1].tolist() == pytest.approx([13 / 3, 16 / 3], rel=1e-4)
    late = InterestBook(1, edges_s=np.array([0.0, 10.0, 20.0, 40.0]))
    assert len(late.curve()[0]) == 0
    late.add(0, 20.0, 40.0, 4.0)  # nobody watched before: as fast as then
    assert late.curve()[1].tolist() == pytest.approx([2.0, 4.0, 8.0], rel=1e-4)


def test_draws_are_wide_where_little_is_known() -> None:
    world = draw(10, hubs=10, groups=1, pages=500)
    book = world.book()
    book.add_hubs([0])
    found = book.fit()
    rng = np.random.default_rng(1)
    drawn = np.array([found.sample(rng) for _ in range(2000)])
    np.testing.assert_allclose(drawn.mean(axis=0), found.profit, rtol=0.06)
    spread = drawn.std(axis=0) / found.profit
    assert spread[10] > 3 * spread[:10].max()


def test_reports_that_say_nothing_are_left_out() -> None:
    book = InterestBook(1)
    book.add([0, 0], [10.0, 10.0], [10.0, 5.0], [3.0, 3.0])
    book.add([], [], [], [])
    assert float(book.seen_pages(1e-4)[0]) == 0.0
    with pytest.raises(ValueError, match="unknown"):
        book.add(1, 0.0, 10.0, 1.0)
