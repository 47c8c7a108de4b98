"""By what to multiply what is expected of a kind of fetches: from columns of what was expected and what came of it.

A live crawl reads these columns from its journal, the lab from its replay; what they are compared by is here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from bowerbird.appraise.budget.watch import FARTHEST, clump_size, watch_kind
from bowerbird.model.watch import KindWatch

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

SURE_EVENTS = 10.0  # clumps as expected, before a kind is corrected
NEAR = 2.0  # prices
FEWEST_EVENTS = 20.0  # that fetches have to count for, where they can
LEVELS = 256  # that a large gain is cut off at, to see which tells most


@dataclass(frozen=True, slots=True)
class Compared:
    """Fetches of a kind by column, in the order of time."""

    expected: F64
    realised: F64  # NaN where nothing can be said yet
    events: F64  # that were expected: clicks, pages found, changes
    prices: F64  # that were bid
    bound: Mask  # whether a bound has set the bid, not what was expected
    factors: F64  # that were in the bids
    in_clicks: bool  # is what was expected in the unit of bids?
    measured: F64 | None = None  # of what happened and was measured, what was expected had it happened; None: all was
    unmeasured: F64 | None = None  # of what happened and was not: nothing of it is in `realised`

    def __len__(self) -> int:
        return len(self.expected)

    @property
    def known(self) -> Mask:
        """Of which something can be said."""
        return np.asarray(~np.isnan(self.realised))

    def of(self, mine: Mask | I64) -> Compared:
        """Some of them."""
        columns: dict[str, Any] = {one.name: getattr(self, one.name) for one in fields(self) if one.name != "in_clicks"}
        return replace(self, **{name: column[mine] for name, column in columns.items() if column is not None})

    def weighed(self, weight: F64) -> tuple[F64, F64]:
        """What was expected and what came of it, times these; nothing at all where nothing can be said."""
        if self.measured is None or self.unmeasured is None:
            return weight * self.expected, weight * self.realised
        times = stand_for_unmeasured(weight * self.measured, weight * self.unmeasured)
        known = float(not math.isnan(times))
        return known * weight * self.expected, known * weight * self.realised * np.nan_to_num(times)

    def watch(self, name: str, unit: str) -> KindWatch:
        """What was expected in all, and what came of it."""
        return watch_kind(name, *self.weighed(np.ones(len(self))), unit, float(self.events.sum()))


def stand_for_unmeasured(measured: F64, unmeasured: F64) -> float:
    """[BEYOND] W = 1 + sum e/c of changes that nobody measured/sum e/c of those measured: what these stand for.

    e/c is what was expected of a page if it had changed. So what nobody measured counts by what was expected of it, and
    a few that stand for many tell no more than a few. NaN where there is none to stand for the others.

    >>> stand_for_unmeasured(np.array([0.1, 0.0, 0.0]), np.array([0.0, 0.2, 0.0]))
    3.0
    """
    told, rest = float(measured.sum()), float(unmeasured.sum())
    if told <= 0.0:
        return 1.0 if rest <= 0.0 else math.nan
    return 1.0 + rest / told


def count_events(weighed: F64, noise: F64) -> F64:
    """As how many events count that weigh so much in all, and vary by so much."""
    return np.divide(weighed**2, noise, out=np.zeros_like(noise), where=noise > 0)


def weigh_bids(bids: F64, expected: F64, events: F64) -> tuple[F64, float]:
    """[BEYOND] w = min(b/e, W), by which y and e are multiplied; and as how many events sum w·e counts.

    Fetches count by what they bid, b: a refresh is expected to regain a share of Q, and a visit to find some pages, but
    what these gain goes by how long they would have been missed. Of two that bid alike, the one that waited longer was
    expected to regain less; counted by that, it would hardly count. But where next to nothing was expected, b·y/e is
    any number: so W is the highest with which the fetches still count for FEWEST_EVENTS events, else for the most.

    m = (sum w·e)²/sum w²·c·s², with c events expected, each as large as was expected there, or on average (s).

    >>> weight, events = weigh_bids(np.full(100, 2.0), np.full(100, 0.5), np.full(100, 0.5))
    >>> weight[:2].tolist(), events
    ([4.0, 4.0], 50.0)
    """
    told = (expected > 0) & (events > 0) & (bids > 0)
    if not told.any():
        return np.zeros(len(bids)), 0.0
    by = np.zeros(len(bids))
    by[told] = bids[told] / expected[told]
    size = np.maximum(expected[told] / events[told], expected[told].sum() / events[told].sum())
    order = np.argsort(by[told])
    steps, gain, noise = by[told][order], expected[told][order], (events[told] * size**2)[order]
    below, above = np.cumsum(steps * gain), gain.sum() - np.cumsum(gain)
    noise_below, noise_above = np.cumsum(steps**2 * noise), noise.sum() - np.cumsum(noise)
    many = count_events(below + steps * above.clip(0.0), noise_below + steps**2 * noise_above.clip(0.0))
    enough = np.flatnonzero(many >= FEWEST_EVENTS)
    place = int(enough[-1] if len(enough) else np.argmax(many))
    return np.minimum(by, steps[place]), float(many[place])


def factor_of(expected: F64, realised: F64, events: float) -> float:
    """[BEYOND] (k + n/c)/(k + m/c): n events where m were expected, in clumps of c = sum y²/sum y; within bounds.

    Events of one clump come together, so they tell as much as one: a kind of which little is known stays as it is. But
    one that gains much more than others must not hide that they, too, gained more than expected. So where more came
    than was expected, no fetch counts for more than some y, the one with which the factor is highest. Where less came,
    it may be the largest that did not come this time: one more as large as the largest counts, up to a factor of 1.
    """
    total = float(expected.sum())
    if not (total > 0.0 and events > 0.0):
        return 1.0
    size = total / events
    gains = np.sort(realised[realised > 0]) / size
    if not len(gains):
        return float(np.clip(SURE_EVENTS / (SURE_EVENTS + events), 1.0 / FARTHEST, FARTHEST))
    most = np.union1d(gains, np.geomspace(gains[0], gains[-1], LEVELS))  # that a fetch counts for
    below = np.searchsorted(gains, most, side="right")
    sums, squares = (np.concatenate([[0.0], np.cumsum(gains**power)])[below] for power in (1, 2))
    got = sums + (len(gains) - below) * most
    clump = np.maximum((squares + (len(gains) - below) * most**2) / np.maximum(got, 1e-300), 1.0)
    ratios = (SURE_EVENTS + got / clump) / (SURE_EVENTS + events / clump)
    if ratios[-1] > 1.0:
        ratio = float(ratios.max())
    else:
        many = clump_size(gains, 1.0)
        ratio = min((SURE_EVENTS + (got[-1] + gains[-1]) / many) / (SURE_EVENTS + events / many), 1.0)
    return float(np.clip(ratio, 1.0 / FARTHEST, FARTHEST))


def take_near(compared: Compared) -> Compared:
    """The fetches that were nearly not made: those whose bids were from 1/NEAR to NEAR prices of their time.

    Of these the newer half: studies learn from the same fetches, and what was wrong with the older ones only has been
    learnt since. Bids that a bound has set say nothing of what was expected, and are left out.
    """
    near = np.flatnonzero(~compared.bound & (compared.prices >= 1.0 / NEAR) & (compared.prices <= NEAR))
    return compared.of(near[len(near) // 2 :])


def count_by_bid(compared: Compared) -> tuple[F64, F64, float]:
    """What was expected and what came of it, as fetches count by what they bid, and as how many events."""
    weight, events = np.ones(len(compared)), float(compared.events.sum())
    if not compared.in_clicks:
        weight, events = weigh_bids(compared.prices, compared.expected, compared.events)
    return *compared.weighed(weight), events


def take_telling(compared: Compared) -> tuple[Compared, bool]:
    """The fetches that a factor goes by, and whether these are those near the price: else too few are to tell.

    A kind whose last fetches gain less than the price should make fewer of them, however much its first ones gain.
    Where they are too few, it is the newer half of all that no bound has set.
    """
    some = take_near(compared)
    if some.events.sum() >= FEWEST_EVENTS:
        return some, True
    free = np.flatnonzero(~compared.bound)
    return compared.of(free[len(free) // 2 :]), False


def correct_kind(compared: Compared) -> float:
    """By what to multiply what is expected of a kind from now on."""
    return factor_of(*count_by_bid(take_telling(compared)[0]))


def watch_margin(compared: Compared, name: str) -> KindWatch:
    """What the fetches near the price were to gain, as corrected when they bid, and what they did gain."""
    some = take_near(compared)
    expected, realised, events = count_by_bid(some)
    as_bid = expected * some.factors
    times = float(as_bid.sum()) / max(float(expected.sum()), 1e-300)
    return watch_kind(name, as_bid, realised, "clicks" if some.in_clicks else "prices", events * times)
