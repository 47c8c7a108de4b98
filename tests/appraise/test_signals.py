"""Change signals: what is learnt of them, and the odds and ages that follow, against simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bowerbird.appraise.refresh.signals import (
    DAY_S,
    NOT_OFFERED,
    OFF,
    ON,
    FloatArray,
    SignalArray,
    SignalPrior,
    effective_age_s,
    learn_hosts,
    learn_signals,
    pool_groups,
    shrink_shares,
    signal_evidence,
)

BoolArray = np.ndarray[tuple[int, ...], np.dtype[np.bool_]]


def simulate(
    rng: np.random.Generator, rate: float | FloatArray, age_s: FloatArray, recall: float, false_rate: float
) -> tuple[BoolArray, BoolArray]:
    """Changed or not, and the signal on or off, after each age."""
    changed = rng.poisson(rate * age_s) > 0
    true = changed & (rng.random(len(age_s)) < recall)
    return changed, true | (rng.poisson(false_rate * age_s) > 0)


def probability_changed(rate: FloatArray, age_s: FloatArray, evidence: FloatArray | float = 0.0) -> FloatArray:
    return -np.expm1(-rate * effective_age_s(rate, age_s, evidence))


def switch(on: BoolArray) -> SignalArray:
    return np.where(on, ON, OFF).astype(np.int8)


@pytest.mark.parametrize("recall", [0.2, 0.8, 0.95])
@pytest.mark.parametrize("false_rate", [0.01 / DAY_S, 0.2 / DAY_S])
def test_recall_and_false_rate_are_learnt(recall: float, false_rate: float) -> None:
    rng = np.random.default_rng(1)
    age = rng.exponential(5 * DAY_S, 20_000)
    changed, on = simulate(rng, 0.2 / DAY_S, age, recall, false_rate)
    found = learn_signals(np.zeros(len(age), np.int64), age, on, changed, groups=1)
    assert found.recall[0] == pytest.approx(recall, abs=0.03)
    assert found.false_rate_per_s[0] == pytest.approx(false_rate, rel=0.1)
    naive = on[changed].mean()
    assert abs(found.recall[0] - recall) <= abs(naive - recall) + 0.005


def test_groups_are_learnt_apart_and_start_from_the_prior() -> None:
    rng = np.random.default_rng(2)
    age = rng.exponential(5 * DAY_S, 8000)
    group = rng.integers(0, 2, 8000)
    good = simulate(rng, 0.2 / DAY_S, age, 0.9, 0.01 / DAY_S)
    bad = simulate(rng, 0.2 / DAY_S, age, 0.3, 0.3 / DAY_S)
    changed, on = (np.where(group == 0, *pair) for pair in zip(good, bad, strict=True))
    prior = SignalPrior(hits=4.0, misses=1.0, false_count=1.0, watched_s=100 * DAY_S)
    found = learn_signals(group, age, on, changed, groups=3, prior=prior)
    assert found.recall[0] == pytest.approx(0.9, abs=0.05)
    assert found.recall[1] == pytest.approx(0.3, abs=0.08)
    assert found.false_rate_per_s[1] > 10 * found.false_rate_per_s[0]
    assert found.recall[2] == pytest.approx(0.8)
    assert found.false_rate_per_s[2] == pytest.approx(0.01 / DAY_S)
    assert found.hits[0] + found.misses[0] == pytest.approx(5.0 + (changed & (group == 0)).sum())


def test_a_host_without_visits_is_believed_as_most_hosts_are() -> None:
    rng = np.random.default_rng(8)
    count = 40 * 60
    group = np.arange(count) % 40
    age = rng.exponential(5 * DAY_S, count)
    changed, on = simulate(rng, 0.2 / DAY_S, age, 0.9, 0.01 / DAY_S)
    found = learn_hosts(group, age, on, changed, groups=41)
    assert found.recall[40] == pytest.approx(0.9, abs=0.07)
    assert found.false_rate_per_s[40] == pytest.approx(0.01 / DAY_S, rel=0.4)
    plain = learn_signals(group, age, on, changed, groups=41)
    assert plain.recall[40] == 0.5
    assert np.abs(found.recall[:40] - 0.9).mean() < np.abs(plain.recall[:40] - 0.9).mean()


def test_no_group_outweighs_the_others() -> None:
    hits, misses = np.array([1e6, 3.0, 3.0, 0.0]), np.array([0.0, 27.0, 27.0, 0.0])
    mean = pool_groups(hits, hits + misses, 1.0, 2.0)
    assert mean == pytest.approx((1 + 10.0 + 3.0 / 4 * 2) / (2 + 10.0 + 30.0 / 4 * 2), rel=1e-4)
    shares = shrink_shares(hits, misses, 1.0, 1.0)
    assert shares[0] > 0.99
    assert shares[1] == pytest.approx((4 * mean + 3.0) / 34.0)
    assert shares[3] == pytest.approx(mean)


def test_a_perfect_signal_is_learnt_as_such() -> None:
    age = np.full(400, DAY_S)
    changed = np.arange(400) % 4 == 0
    found = learn_signals(np.zeros(400, np.int64), age, changed, changed, groups=1)
    assert found.recall[0] == pytest.approx(101 / 102, abs=1e-4)  # the prior allows for a few false ones
    assert found.false_rate_per_s[0] * 330 * DAY_S == pytest.approx(0.5)


@pytest.mark.parametrize("kinds", [1, 2])
def test_probabilities_are_those_a_simulation_sees(kinds: int) -> None:
    rng = np.random.default_rng(3)
    n = 400_000
    rate, quality = 0.15 / DAY_S, [(0.8, 0.02 / DAY_S), (0.4, 0.1 / DAY_S)][:kinds]
    age = rng.uniform(0.1, 12, n) * DAY_S
    changed = rng.poisson(rate * age) > 0
    evidence = np.zeros(n)
    pattern = np.zeros(n, np.int64)
    for recall, false_rate in quality:
        on = (changed & (rng.random(n) < recall)) | (rng.poisson(false_rate * age) > 0)
        evidence += signal_evidence(age, switch(on), recall, false_rate)
        pattern = 2 * pattern + on
    believed = probability_changed(np.full(n, rate), age, evidence)
    for seen in range(2**kinds):
        for low, high in ((0, 2), (2, 6), (6, 12)):
            here = (pattern == seen) & (age >= low * DAY_S) & (age < high * DAY_S)
            error = 4 * math.sqrt(0.25 / here.sum())
            assert believed[here].mean() == pytest.approx(changed[here].mean(), abs=error)


@given(
    st.floats(1e-9, 1e-3),
    st.floats(0, 1e8),
    st.floats(0, 1),
    st.floats(0, 1e-3),
    st.sampled_from([ON, OFF, NOT_OFFERED]),
)
@settings(max_examples=300, deadline=None)
def test_a_signal_raises_the_age_and_its_absence_lowers_it(
    rate: float, age: float, recall: float, false_rate: float, signal: int
) -> None:
    rates, ages = np.array([rate]), np.array([age])
    evidence = signal_evidence(ages, np.array([signal], np.int8), recall, false_rate)
    effective = effective_age_s(rates, ages, evidence)
    assert np.isfinite(effective[0]) and effective[0] >= 0
    slack = 1e-9 * age + 1e-9
    if signal == ON:
        assert effective[0] >= age - slack
    elif signal == OFF:
        assert effective[0] <= age + slack
    else:
        assert effective[0] == pytest.approx(age, rel=1e-9, abs=1e-9)
    assert 0 <= probability_changed(rates, ages, evidence)[0] <= 1


def test_ages_by_hand() -> None:
    rate, age = np.array([0.1]), np.array([10.0])
    assert effective_age_s(rate, age, 0.0)[0] == pytest.approx(10.0)
    odds = math.expm1(1.0) * 3
    assert effective_age_s(rate, age, math.log(3))[0] == pytest.approx(math.log1p(odds) / 0.1)
    assert probability_changed(rate, age, math.log(3))[0] == pytest.approx(odds / (1 + odds))
    # a page that hardly changes: its odds are Delta·tau, so the factor goes to the age
    assert effective_age_s(np.array([0.0]), age, math.log(3))[0] == pytest.approx(30.0)
    assert effective_age_s(np.array([1e-15]), age, math.log(3))[0] == pytest.approx(30.0)
    # off, with a recall of .8: the odds are a fifth
    off = signal_evidence(age, np.array([OFF], np.int8), 0.8, 0.01)
    assert off[0] == pytest.approx(math.log(0.2))
    # just after a signal on a page that both changes and cries wolf rarely, the odds are recall·Delta/phi
    soon = np.array([1e-3])
    on = signal_evidence(soon, np.array([ON], np.int8), 0.8, 0.02)
    chance = probability_changed(rate, soon, on)[0]
    assert chance / (1 - chance) == pytest.approx(0.8 * 0.1 / 0.02, rel=1e-2)


def test_following_signals_finds_more_changes_than_age_alone() -> None:
    rng = np.random.default_rng(5)
    n = 20_000
    rates = rng.exponential(0.1, n) / DAY_S
    age = rng.uniform(0, 10, n) * DAY_S
    changed, on = simulate(rng, rates, age, 0.8, 0.01 / DAY_S)
    evidence = signal_evidence(age, switch(on), 0.8, 0.01 / DAY_S)
    told, untold = probability_changed(rates, age, evidence), probability_changed(rates, age)
    budget = n // 10
    assert changed[np.argsort(-told)[:budget]].mean() > changed[np.argsort(-untold)[:budget]].mean() + 0.1
