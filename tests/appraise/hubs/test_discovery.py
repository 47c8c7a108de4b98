"""Discovery rates: recovery of known rates and hours from irregular visits, shrinkage, draws, bounds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bowerbird.appraise.hubs.discovery import RateBook, mean_pattern, weekly_pattern
from bowerbird.appraise.hubs.discovery_kernels import elapsed
from bowerbird.appraise.hubs.shrinkage import fit_levels, noise_of, split_spread_of, spread_of
from bowerbird.model.hub_study import HOURS

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]
HOUR_S = 3600.0
WEEK_S = 168 * HOUR_S


def busy_days() -> F64:
    """Most news by day, less at the weekend."""
    hour = np.arange(168)
    pattern = 1.0 + 0.5 * np.sin(2 * np.pi * (hour % 24 - 9) / 24) - 0.3 * (hour >= 120)
    return np.asarray(pattern / pattern.mean())


@dataclass
class World:
    group: I64
    rate: F64
    pattern: F64
    hub: I64
    at_s: F64
    gap_s: F64
    found: F64

    def play(self, book: RateBook, at_once: int = 200) -> RateBook:
        for k in range(0, len(self.hub), at_once):
            part = slice(k, k + at_once)
            book.visit(self.hub[part], self.at_s[part], self.gap_s[part], self.found[part])
        return book


def draw(seed: int, *, hubs: int = 60, groups: int = 6, weeks: float = 4.0, gap_s: float = 4 * HOUR_S) -> World:
    """Hubs visited at random times, independently of each other."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, groups, hubs)
    rate = (rng.gamma(2.0, 0.5, groups) / 7200)[group] * rng.gamma(4.0, 0.25, hubs)
    rows = []
    for i in range(hubs):
        times = np.cumsum(rng.exponential(gap_s, int(3 * weeks * WEEK_S / gap_s) + 20) + 30.0)
        times = times[times < weeks * WEEK_S]
        rows += list(zip(times, np.full(len(times), i), np.diff(times, prepend=0.0), strict=True))
    at, hub, gap = (np.array(column) for column in zip(*sorted(rows), strict=True))
    pattern = busy_days()
    sums = np.concatenate([[0.0], np.cumsum(pattern)])
    weighed = [elapsed(a, pattern, sums) - elapsed(a - g, pattern, sums) for a, g in zip(at, gap, strict=True)]
    found = rng.poisson(rate[hub] * np.maximum(weighed, 0.0))
    return World(group, rate, pattern, hub.astype(np.int64), at, gap, found.astype(float))


@given(at=st.floats(-1e7, 1e9), length=st.floats(0.0, 3e6))
@settings(deadline=None)
def test_time_is_weighed_by_the_hours_it_covers(at: float, length: float) -> None:
    pattern = busy_days()
    sums = np.concatenate([[0.0], np.cumsum(pattern)])
    found = elapsed(at + length, pattern, sums) - elapsed(at, pattern, sums)
    edges = np.arange(np.floor(at / HOUR_S), np.floor((at + length) / HOUR_S) + 2) * HOUR_S
    covered = np.clip(np.minimum(edges[1:], at + length) - np.maximum(edges[:-1], at), 0.0, None)
    exact = float(covered @ pattern[(np.round(edges[:-1] / HOUR_S) % 168).astype(int)])
    assert found == pytest.approx(exact, rel=1e-6, abs=1e-3)


@pytest.mark.parametrize(
    ("gap_s", "weeks", "error"), [(0.5 * HOUR_S, 3.0, 0.3), (4 * HOUR_S, 6.0, 0.35), (12 * HOUR_S, 20.0, 0.4)]
)
def test_hours_of_the_week_are_found_from_irregular_visits(gap_s: float, weeks: float, error: float) -> None:
    world = draw(1, gap_s=gap_s, weeks=weeks)
    book = world.play(RateBook(60, world.group))
    flat = float(np.abs(1.0 - world.pattern).mean())
    assert float(np.abs(book.pattern - world.pattern).mean()) < error * flat
    assert book.pattern.mean() == pytest.approx(1.0)
    now = 3 * WEEK_S + 15.5 * HOUR_S
    assert book.rates(now) == pytest.approx(book.rates() * book.factor(now))
    assert book.factor(now) == pytest.approx(world.pattern[15], rel=0.2)
    assert book.factor(now, WEEK_S) == pytest.approx(1.0, rel=1e-9)


def test_rates_are_recovered_without_bias_and_better_than_raw() -> None:
    ratios, better = [], []
    for seed in range(6):
        world = draw(seed, weeks=4.0)
        book = world.play(RateBook(60, world.group))
        events, exposure = book.sums()
        rates = book.rates()
        ratios.append(float(rates.sum() / world.rate.sum()))
        raw = float(np.mean((events / exposure - world.rate) ** 2))
        better.append(float(np.mean((rates - world.rate) ** 2)) / raw)
    assert np.mean(ratios) == pytest.approx(1.0, abs=0.1)
    assert np.mean(better) < 0.9


def test_more_visits_kept_bring_rates_closer() -> None:
    world = draw(3, weeks=8.0)
    errors = [
        float(np.mean(np.log(world.play(RateBook(60, world.group, visits=kept)).rates() / world.rate) ** 2))
        for kept in (3, 60)
    ]
    assert errors[1] < 0.3 * errors[0]
    assert errors[1] < 0.03


def test_visits_close_together_share_a_place() -> None:
    world = draw(4, hubs=20, groups=2, weeks=3.0, gap_s=600.0)
    short = world.play(RateBook(20, world.group))
    long = world.play(RateBook(20, world.group, slot_s=6 * HOUR_S))
    assert (short.sums()[1] < 6 * HOUR_S).all()
    assert (long.sums()[1] > 12 * HOUR_S).all()
    off_short, off_long = (np.mean(np.log(book.rates() / world.rate) ** 2) for book in (short, long))
    assert off_long < 0.5 * off_short


def test_only_the_last_visits_count() -> None:
    book = RateBook(1, visits=3, weekly=False)
    book.visit(0, np.arange(1, 6) * 100.0, 100.0, [50.0, 50.0, 1.0, 2.0, 3.0])
    assert [float(column[0]) for column in book.sums()] == pytest.approx([6.0, 300.0])


def test_a_hub_without_visits_is_its_group_and_a_book_without_any_the_prior() -> None:
    world = draw(5, weeks=3.0)
    book = world.play(RateBook(60, world.group))
    book.add_hubs([1, 99])
    rates = book.rates()
    assert rates[60] == pytest.approx(book.levels.by_group[1])
    assert rates[60] == pytest.approx(world.rate[world.group == 1].mean(), rel=0.5)
    assert rates[61] == pytest.approx(book.levels.overall)
    assert RateBook(4, prior_rate_per_s=0.002).rates() == pytest.approx([0.002] * 4)
    assert len(RateBook(0).rates()) == 0


def test_no_hub_starves() -> None:
    book = RateBook(50, floor_share=0.1)
    book.visit(np.arange(1, 50), 1e6, 1e6, 1000.0)
    for week in range(1, 20):
        book.visit(0, 1e6 + week * WEEK_S, WEEK_S, 0.0)
    rates = book.rates()
    assert rates[0] == pytest.approx(0.1 * book.levels.by_hub[0])
    assert rates[0] > 0
    assert rates[1:].min() > 5 * rates[0]


def test_draws_follow_the_posterior() -> None:
    world = draw(6, weeks=3.0)
    book = world.play(RateBook(60, world.group, visits=50))
    book.add_hubs([0])
    rng = np.random.default_rng(1)
    drawn = np.array([book.sample(rng.random(61)) for _ in range(3000)])
    np.testing.assert_allclose(drawn.mean(axis=0), book.rates(), rtol=0.08)
    spread = drawn.std(axis=0) / drawn.mean(axis=0)
    assert spread[60] > 2 * np.median(spread[:60])  # of which nothing is known
    inside = (np.quantile(drawn[:, :60], 0.05, axis=0) < world.rate) & (
        world.rate < np.quantile(drawn[:, :60], 0.95, axis=0)
    )
    assert 0.7 < inside.mean() <= 1.0
    assert (np.diff([book.sample(np.full(61, chance)) for chance in (0.01, 0.3, 0.6, 0.99)], axis=0) >= 0).all()


def test_what_hubs_say_counts_for_themselves_only_until_visits_tell() -> None:
    world = draw(7, weeks=0.1)
    plain, told = (RateBook(60, world.group, visits=20) for _ in range(2))
    told.hint([3, 5], [182 * 24 * HOUR_S, 0.5 * HOUR_S], 0.5)
    for book in (plain, told):
        world.play(book)
        book.fit()
    np.testing.assert_array_equal(told.pattern, plain.pattern)
    others = np.setdiff1d(np.arange(60), [3, 5])
    np.testing.assert_array_equal(told.rates()[others], plain.rates()[others])
    assert told.rates()[3] < 0.5 * plain.rates()[3]
    assert told.rates()[5] > plain.rates()[5]
    assert told.rate_of(3) == pytest.approx(told.rates()[3])
    for book in (plain, told):
        book.visit([3] * 20, 1e6 + np.arange(20) * HOUR_S, HOUR_S, 1.0)
        book.fit()
    assert told.rates()[3] == plain.rates()[3]


def test_the_first_visits_of_all_are_not_measured_by_a_guess() -> None:
    """Ten times as many pages as expected beforehand: that says nothing of the hours of the first visits."""
    rng = np.random.default_rng(2)
    hub, at = np.tile(np.arange(30), 4), np.repeat(np.arange(4) * 3 * HOUR_S, 30)
    found = rng.poisson(10 / 8, 120).astype(float)
    guessed, told = RateBook(30), RateBook(30)
    told.expect(hub, 3 * HOUR_S, found)
    for book in (guessed, told):
        for part in np.split(np.arange(120), 4):
            book.visit(hub[part], at[part], 3 * HOUR_S, found[part])
        book.fit()
    assert np.abs(guessed.pattern - 1.0).max() > 0.5
    assert np.abs(told.pattern - 1.0).max() < 0.1
    assert told.rates().mean() == pytest.approx(10 / 86400, rel=0.3)


def test_one_call_or_many_keep_the_same_visits() -> None:
    world = draw(8, weeks=1.0)
    books = [world.play(RateBook(60, world.group, weekly=False), at_once) for at_once in (1, 10_000)]
    np.testing.assert_array_equal(books[0].sums()[0], books[1].sums()[0])
    for book in books:
        book.fit()
    np.testing.assert_allclose(books[0].rates(), books[1].rates())


def test_visits_that_say_nothing_are_left_out_and_unknown_hubs_are_told() -> None:
    book = RateBook(2)
    book.visit([0, 1], [10.0, 10.0], [0.0, -1.0], [5.0, 5.0])
    book.visit([], [], [], [])
    assert book.sums()[0].tolist() == [0.0, 0.0]
    with pytest.raises(ValueError, match="unknown"):
        book.visit(2, 10.0, 10.0, 1.0)
    with pytest.raises(ValueError, match="visits"):
        RateBook(1, visits=0)


def test_a_pattern_without_finds_is_flat() -> None:
    assert (weekly_pattern(np.zeros(168), np.ones(168)) == 1.0).all()
    few = weekly_pattern(np.eye(1, 168, 30)[0], np.full(168, 1 / 168))
    assert few.max() < 1.3  # one find says little


@pytest.mark.parametrize("shape", [0.5, 2.0, 20.0])
def test_the_spread_of_hubs_is_found_from_moments(shape: float) -> None:
    plain, noises, split = [], [], []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        expected = rng.gamma(0.5, 100.0, 4000)
        factor = rng.gamma(shape, 1 / shape, 4000)
        plain.append(spread_of(rng.poisson(expected * factor).astype(float), expected))
        halves = np.array([0.4 * expected, 0.6 * expected])
        events = 10.0 * rng.poisson(halves * factor / 10.0)  # clicks in clumps of ten: more noise, the same spread
        noises.append(noise_of(events, halves))
        split.append(split_spread_of(events, halves, noise=noises[-1]))
    assert np.mean(plain) == pytest.approx(1 / shape, rel=0.1)
    assert np.mean(noises) == pytest.approx(10.0, rel=0.08)
    assert np.mean(split) == pytest.approx(1 / shape, rel=0.15)


def test_few_hubs_that_look_alike_do_not_claim_that_all_are() -> None:
    expected = np.full(3, 1000.0)
    assert spread_of(expected, expected) > 0.05
    many = np.full(3000, 1000.0)
    assert spread_of(many, many) < 0.01
    assert spread_of(np.zeros(0), np.zeros(0)) == pytest.approx(1.0)


def test_one_hub_does_not_outvote_its_group() -> None:
    events, exposure = np.array([1e6, 2.0, 3.0, 1.0, 2.0]), np.array([1e5, 20.0, 30.0, 10.0, 20.0])
    levels = fit_levels(events, exposure, np.zeros(5, np.int64), prior_rate=1.0)
    assert levels.overall < 4.0  # pooled it would be 10
    mean, _ = levels.posterior(events, exposure)
    assert mean[0] == pytest.approx(10.0, rel=0.01)


@given(
    since=st.lists(st.floats(0.0, 3e6), min_size=1, max_size=5),
    seed=st.integers(0, 99),
)
def test_the_mean_of_a_pattern_is_its_integral_by_the_time(since: list[float], seed: int) -> None:
    pattern = np.random.default_rng(seed).gamma(2.0, 0.5, HOURS)
    now = 3.1e6
    found = mean_pattern(pattern, np.array(since), now)
    for begin, mean in zip(since, found.tolist(), strict=True):
        times = begin + (np.arange(40_000) + 0.5) / 40_000 * (now - begin)
        assert mean == pytest.approx(pattern[(times // 3600).astype(int) % HOURS].mean(), rel=2e-3)
    assert mean_pattern(pattern, np.array([now]), now)[0] == pytest.approx(pattern[int(now // 3600) % HOURS], rel=1e-9)
