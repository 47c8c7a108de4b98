"""Refresh bids that are read off a study, what sites say of changes, and what the bids say of themselves."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.appraise.snapshots import NOW, random_refresh_study, random_snapshot, snapshot_of
from tests.appraise.test_studied import find

from bowerbird.appraise.policy import RefreshSettings, make_policy
from bowerbird.appraise.refresh.adaptive import AdaptiveInterval
from bowerbird.appraise.refresh.signals import OFF, ON, effective_age_s, signal_evidence
from bowerbird.appraise.refresh.studied import StudiedRefresh
from bowerbird.appraise.refresh.studied_kernels import effective_age, weigh_signal
from bowerbird.model.bid import Bid, Shape, saturating_gain
from bowerbird.model.refresh_study import RefreshDetails, RefreshStudy
from bowerbird.model.snapshot import Snapshot
from bowerbird.model.url_state import UrlKind, UrlState

NAN = math.nan
DAY_S = 86400.0
DUE_S = 4 * DAY_S
LONGEST_S = 140 * DAY_S
CHANGES = 1 / (2 * DAY_S)  # of the pages of the study, a second


def f32(*values: float) -> np.ndarray:
    return np.array(values, dtype=np.float32)


def studied_snapshot(*, hint_s: float | None = None, age_s: float = DAY_S, **changes: object) -> Snapshot:
    """Seven rows. The study knew the first four: 0 and 1 as pages; hosts 0 and 1 of three."""
    amplitude = 1.0 / saturating_gain(CHANGES * DUE_S)
    study = RefreshStudy(
        at=NOW - 120.0,
        method="user-centric",
        count=4,
        amplitude=f32(amplitude, 1.0, NAN, NAN),
        rate_per_s=f32(CHANGES, 1e-7, NAN, NAN),
        shape=np.array([Shape.SATURATING, Shape.LINEAR, Shape.LINEAR, Shape.LINEAR], dtype=np.uint8),
        interval_s=f32(DUE_S, 1e7, NAN, NAN),
        changes_per_s=f32(CHANGES, 1e-8, NAN, NAN),
        host_interval_s=f32(3 * DAY_S, NAN),
        default_interval_s=5 * DAY_S,
        longest_s=LONGEST_S,
        recall=f32(0.8, 0.5),
        false_rate_per_s=f32(1e-7, 1e-7),
        price=2e-4,
        budget_per_s=2 / (7 * DAY_S),
        details=RefreshDetails(f32(0.01, 0, NAN, NAN), f32(1e-8, 0, NAN, NAN), f32(3, 1, NAN, NAN), f32(0.2, 0, 0, 0)),
        info={"pages": 2.0},
    )
    fetched = UrlState.FETCHED
    hint = 0 if hint_s is None else NOW - hint_s
    snapshot = snapshot_of(
        host=[0, 0, 0, 1, 0, 2, 0],
        state=[fetched, fetched, fetched, fetched, fetched, fetched, UrlState.GONE],
        last_fetched=NOW - age_s,
        fetches=5,
        changes=2,
        interval_s=1000.0,
        hint_modified=[hint, hint, 0, 0, 0, 0, 0],
    )
    return replace(snapshot, refresh_study=replace(study, **changes))  # type: ignore[arg-type]  # fields of many types


def appraiser() -> StudiedRefresh:
    return StudiedRefresh("user-centric", AdaptiveInterval(7 * DAY_S, gone_interval_s=30 * DAY_S))


def test_each_row_bids_by_what_is_known_of_it() -> None:
    snapshot = studied_snapshot()
    bids = appraiser().appraise(snapshot, np.arange(7))
    values = [bids.bid(row).value(NOW) for row in range(7)]
    of_study = saturating_gain(CHANGES * DAY_S) / saturating_gain(CHANGES * DUE_S)
    # 2 was fetched after the study, 3 too and its host had no page, 4 and 5 were not known then, 6 is gone
    assert values == pytest.approx([of_study, DAY_S * 1e-7, 1 / 3, 1 / 5, 1 / 3, 1 / 5, 1 / 30], rel=1e-5)
    assert bids.terms["basis"].tolist() == [
        "study",
        "study",
        "mean of its host",
        "mean of all",
        "mean of its host",
        "mean of all",
        "own interval",
    ]
    assert bids.terms["interval_s"].tolist() == pytest.approx(
        [DUE_S, 1e7, 3 * DAY_S, 5 * DAY_S, 3 * DAY_S, 5 * DAY_S, 30 * DAY_S]
    )
    assert set(bids.terms["signal"].tolist()) == {"none"}
    assert bids.bid(0).reaches(1.0, NOW) == pytest.approx(NOW - DAY_S + DUE_S, abs=5.0)


@pytest.mark.parametrize(
    "snapshot",
    [replace(studied_snapshot(), refresh_study=None), studied_snapshot(method="user-centric-linear")],
    ids=["none", "another's"],
)
def test_without_a_study_of_its_own_it_bids_as_adaptive_and_says_so(snapshot: Snapshot) -> None:
    rows = np.arange(7)
    bids, plain = appraiser().appraise(snapshot, rows), appraiser().fallback.appraise(snapshot, rows)
    assert bids.rate.tolist() == plain.rate.tolist()
    assert bids.amplitude.tolist() == plain.amplitude.tolist()
    assert str(bids.terms["basis"]) == "own interval, before a study"
    tree = appraiser().explain(snapshot, 0)
    assert tree.value == pytest.approx(DAY_S / 1000.0)
    assert "no study by user-centric yet" in tree.note


def test_an_overdue_page_is_not_starved_and_one_that_gains_much_goes_first() -> None:
    late = studied_snapshot(age_s=10 * DUE_S)
    bid = appraiser().appraise(late, np.array([0])).bid(0)
    assert bid.value(NOW) == pytest.approx(10.0, rel=1e-4)  # its gain is at most 1.7 prices
    assert bid.value(NOW + DUE_S) == pytest.approx(11.0, rel=1e-4)
    assert "starve" in appraiser().explain(late, 0).note
    rich = studied_snapshot(
        age_s=2 * DUE_S,
        amplitude=f32(1.0 / saturating_gain(0.01), 1.0, NAN, NAN),
        rate_per_s=f32(0.01 / DUE_S, 1e-7, NAN, NAN),
        changes_per_s=f32(0.01 / DUE_S, 1e-8, NAN, NAN),
    )
    bid = appraiser().appraise(rich, np.array([0])).bid(0)
    assert bid.shape is Shape.SATURATING
    assert bid.value(NOW) == pytest.approx(4.0, rel=0.02)  # at twice its interval


# -- signals


def test_a_page_whose_site_says_that_it_changed_comes_sooner_and_a_silent_one_later() -> None:
    plain, off, on = (studied_snapshot(hint_s=hint) for hint in (None, 3 * DAY_S, 3600.0))
    row = np.array([0])
    values = [appraiser().appraise(snapshot, row).bid(0).value(NOW) for snapshot in (off, plain, on)]
    assert values == sorted(values)
    assert values[0] < 0.3 * values[1]
    assert values[2] > 1.0 > values[1]
    assert appraiser().appraise(on, row).terms["signal"].tolist() == ["on"]
    assert appraiser().appraise(off, row).terms["signal"].tolist() == ["off"]


def test_a_date_to_come_says_nothing_yet() -> None:
    future, plain = studied_snapshot(hint_s=-7200.0), studied_snapshot()
    row = np.array([0])
    assert appraiser().appraise(future, row).terms["signal"].tolist() == ["none"]
    assert appraiser().appraise(future, row).bid(0) == appraiser().appraise(plain, row).bid(0)
    with pytest.raises(LookupError):
        find(appraiser().explain(future, 0), "effective_age_s")
    come = replace(future, now=NOW + 7200.0)
    assert appraiser().appraise(come, row).terms["signal"].tolist() == ["on"]


def test_methods_that_do_not_listen_go_by_age_alone() -> None:
    deaf = studied_snapshot(hint_s=3600.0, recall=f32(), false_rate_per_s=f32())
    plain = studied_snapshot()
    rows = np.arange(7)
    mine, other = appraiser().appraise(deaf, rows), appraiser().appraise(plain, rows)
    assert mine.since.tolist() == other.since.tolist()
    assert mine.rate.tolist() == other.rate.tolist()
    assert set(mine.terms["signal"].tolist()) == {"none"}


@settings(max_examples=60, deadline=None)
@given(age_days=st.floats(0.1, 30.0), recall=st.floats(0.0, 0.99), changes_per_day=st.floats(0.01, 20.0))
def test_in_silence_the_bid_reaches_one_at_the_time_it_says(
    age_days: float, recall: float, changes_per_day: float
) -> None:
    """The effective age falls behind the clock; the bid of now, left alone, is right again when it is due."""
    rate = changes_per_day / DAY_S
    if rate * DUE_S > 10:
        return  # its amplitude is 1 nearly to the last digit: such pages bid linearly
    columns = {
        "amplitude": f32(1.0 / saturating_gain(rate * DUE_S), 1.0, NAN, NAN),
        "rate_per_s": f32(rate, 1e-7, NAN, NAN),
        "changes_per_s": f32(rate, 1e-8, NAN, NAN),
        "recall": f32(recall, 0.5),
    }

    def bid(at_days: float) -> Bid:
        snapshot = studied_snapshot(hint_s=(at_days + 1) * DAY_S, age_s=at_days * DAY_S, **columns)
        return appraiser().appraise(snapshot, np.array([0])).bid(0)

    now = bid(age_days)
    due = now.reaches(1.0, NOW)
    assert due is not None
    if due > NOW:
        then = bid(age_days + (due - NOW) / DAY_S)
        assert then.value(NOW) == pytest.approx(1.0, rel=0.02)
        assert bid(age_days + 0.5 * (due - NOW) / DAY_S).value(NOW) < 1.001
    else:
        assert now.value(NOW) >= 1.0


@settings(max_examples=200, deadline=None)
@given(
    due_days=st.floats(0.01, 140.0),
    bounded=st.booleans(),
    age_days=st.floats(0.001, 1000.0),
    recall=st.floats(0.0, 1.0),
    changes_per_day=st.floats(0.0, 20.0),
    hint=st.floats(-0.5, 2.0),
)
def test_no_page_waits_longer_than_the_longest_interval_whatever_its_site_says(
    due_days: float, bounded: bool, age_days: float, recall: float, changes_per_day: float, hint: float
) -> None:
    due_s, rate = due_days * DAY_S, changes_per_day / DAY_S
    if not 1e-3 < rate * due_s < 10.0:
        bounded = True  # as the clearing does: its bid tells no time
    columns = {
        "shape": np.array([Shape.LINEAR if bounded else Shape.SATURATING, *[Shape.LINEAR] * 3], dtype=np.uint8),
        "amplitude": f32(1.0 if bounded else 1.0 / saturating_gain(rate * due_s), 1.0, NAN, NAN),
        "rate_per_s": f32(1.0 / due_s if bounded else rate, 1e-7, NAN, NAN),
        "interval_s": f32(due_s, 1e7, NAN, NAN),
        "changes_per_s": f32(rate, 1e-8, NAN, NAN),
        "recall": f32(recall, 0.5),
    }
    snapshot = studied_snapshot(hint_s=hint * age_days * DAY_S, age_s=age_days * DAY_S, **columns)
    bid = appraiser().appraise(snapshot, np.array([0])).bid(0)
    due = bid.reaches(1.0, NOW)
    assert due is not None
    assert due - NOW <= max(LONGEST_S * (1 + 1e-4) - age_days * DAY_S, 0.0)
    if age_days * DAY_S >= LONGEST_S:
        assert bid.value(NOW) >= 1.0 - 1e-5
    elif due > NOW and hint > 1.0:  # in silence: left alone, and read again, it is due when it said
        then = replace(snapshot, now=due + 1e-4 * LONGEST_S)
        assert appraiser().appraise(then, np.array([0])).bid(0).value(then.now) >= 1.0 - 1e-3


def test_a_page_left_for_last_is_due_at_the_longest_interval_though_its_site_is_silent() -> None:
    columns = {
        "shape": np.full(4, Shape.LINEAR, dtype=np.uint8),
        "amplitude": f32(1.0, 1.0, NAN, NAN),
        "rate_per_s": f32(1 / LONGEST_S, 1e-7, NAN, NAN),
        "interval_s": f32(LONGEST_S, 1e7, NAN, NAN),
        "changes_per_s": f32(1 / (365 * DAY_S), 1e-8, NAN, NAN),
        "recall": f32(0.95, 0.5),
    }
    silent = studied_snapshot(hint_s=400 * DAY_S, age_s=139 * DAY_S, **columns)
    tree = appraiser().explain(silent, 0)
    assert tree.name == "age/interval"
    assert find(tree, "due").note == "in 24.0 hours"
    assert "no page waits longer than 140.0 days" in find(tree, "effective_age_s").note
    late = appraiser().explain(studied_snapshot(hint_s=400 * DAY_S, age_s=141 * DAY_S, **columns), 0)
    assert find(late, "due").note == "now"
    assert float(late.value) == pytest.approx(141 / 140)


@settings(deadline=None)  # compiled by the first
@given(
    rate=st.floats(1e-12, 1e-2),
    age=st.floats(0.0, 1e9),
    recall=st.floats(0.0, 1.0),
    false_rate=st.floats(0.0, 1e-3),
    on=st.booleans(),
)
def test_the_compiled_formulas_are_those_of_the_signals(
    rate: float, age: float, recall: float, false_rate: float, on: bool
) -> None:
    ages = np.array([age])
    evidence = signal_evidence(ages, np.array([ON if on else OFF], dtype=np.int8), recall, false_rate)
    mine = weigh_signal(on, age, recall, false_rate)
    assert mine == pytest.approx(float(evidence[0]), rel=1e-9, abs=1e-12)
    expected = float(effective_age_s(np.array([rate]), ages, evidence)[0])
    assert effective_age(rate, age, mine) == pytest.approx(expected, rel=1e-6)


def test_a_page_just_fetched_waits_for_the_shortest_interval_whatever_its_site_says() -> None:
    fresh = studied_snapshot(hint_s=1.0, age_s=10.0)
    impatient = StudiedRefresh("user-centric", AdaptiveInterval(min_s=1.0))
    row = np.array([0])
    assert appraiser().appraise(fresh, row).bid(0).value(NOW) < 1e-3  # min_s is 60 there
    assert impatient.appraise(fresh, row).bid(0).value(NOW) > 0.5


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32), listens=st.booleans())
def test_any_study_gives_bids_that_can_be_used(seed: int, listens: bool) -> None:
    snapshot = random_snapshot(seed, 60, (UrlState.FETCHED, UrlState.GONE), (UrlKind.PAGE,))
    rng = np.random.default_rng(seed)
    snapshot = replace(snapshot, refresh_study=random_refresh_study(rng, snapshot, listens=listens))
    bids = appraiser().appraise(snapshot, np.arange(60))
    for row in range(60):
        value = bids.bid(row).value(NOW)
        assert math.isfinite(value)
        assert value >= 0.0
        due = bids.bid(row).reaches(1.0, NOW)
        assert due is None or due >= NOW
        tree = appraiser().explain(snapshot, row)
        assert tree.value == pytest.approx(value, rel=1e-6)


# -- why


def test_the_explanation_tells_age_changes_loss_price_and_the_next_due_time() -> None:
    tree = appraiser().explain(studied_snapshot(), 0)
    assert tree.name == "gain of a refresh/price"
    assert find(tree, "age_s").value == DAY_S
    assert find(tree, "changes_per_day").value == pytest.approx(0.5)
    assert "4 visits after the first found 2 changes" in find(tree, "changes_per_day").note
    assert "as sure as 3 changes" in find(tree, "changes_per_day").note
    assert find(tree, "loss while stale").value == pytest.approx(0.01)
    assert find(tree, "gain_per_day").value == pytest.approx(1e-8 * DAY_S)
    assert find(tree, "stake").value == pytest.approx(0.2)
    assert find(tree, "interval_s").value == DUE_S
    assert find(tree, "clearing price of the study").value == 2e-4
    assert "refreshes a day of 2 pages" in find(tree, "clearing price of the study").note
    due = find(tree, "due")
    assert datetime.fromisoformat(str(due.value)).timestamp() == pytest.approx(NOW + 3 * DAY_S, abs=10)
    assert due.note == "in 3.0 days"
    assert find(tree, "study_age_s").value == 120.0
    with pytest.raises(LookupError):
        find(tree, "effective_age_s")
    overdue = appraiser().explain(studied_snapshot(age_s=5 * DAY_S), 0)
    assert find(overdue, "due").value == datetime.fromtimestamp(NOW, UTC).isoformat(timespec="seconds")
    assert find(overdue, "due").note == "now"


def test_the_explanation_tells_what_its_site_says() -> None:
    tree = appraiser().explain(studied_snapshot(hint_s=3600.0), 0)
    age = find(tree, "effective_age_s")
    assert float(age.value) > DAY_S
    assert datetime.fromtimestamp(NOW - 3600.0, UTC).isoformat(timespec="seconds") in age.note
    assert "after that" in age.note
    assert find(age, "recall").value == pytest.approx(0.8)
    assert find(age, "false_per_day").value == pytest.approx(1e-7 * DAY_S)
    silent = find(appraiser().explain(studied_snapshot(hint_s=3 * DAY_S), 0), "effective_age_s")
    assert float(silent.value) < DAY_S
    assert "before that" in silent.note


def test_pages_that_gain_little_and_pages_fetched_since_are_explained_too() -> None:
    settled = appraiser().explain(studied_snapshot(), 1)
    assert settled.name == "age/interval"
    assert settled.value == pytest.approx(DAY_S / 1e7)
    by_price = studied_snapshot(amplitude=f32(1.0, 2.0, NAN, NAN), rate_per_s=f32(CHANGES, 5e-8, NAN, NAN))
    assert appraiser().explain(by_price, 1).name == "gain of a refresh/price"
    assert "none is left alone for ever" in find(settled, "interval_s").note
    later = appraiser().explain(studied_snapshot(), 4)
    assert "mean of its host" in find(later, "interval_s").note
    assert "mean of all" in find(appraiser().explain(studied_snapshot(), 5), "interval_s").note
    assert find(later, "due").note == "in 2.0 days"
    gone = appraiser().explain(studied_snapshot(), 6)
    assert gone.name == "age/interval"
    plain = appraiser().explain(studied_snapshot(details=None), 0)
    assert find(plain, "changes_per_day").value == pytest.approx(0.5)
    with pytest.raises(LookupError):
        find(plain, "loss while stale")


def test_the_policy_hands_its_settings_on() -> None:
    policy = make_policy("rw-eg+user-centric", RefreshSettings(interval_s=500.0, min_interval_s=7.0))
    refresh = policy.refresh
    assert isinstance(refresh, StudiedRefresh)
    assert (refresh.fallback.interval_s, refresh.fallback.min_s) == (500.0, 7.0)
    assert refresh.next_interval_s(100.0, changed=True) == refresh.next_interval_s(100.0, changed=False) == 100.0
