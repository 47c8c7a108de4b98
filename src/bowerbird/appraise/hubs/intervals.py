"""How often is each hub visited? The best intervals under a budget of fetches: visits, and the pages they bring.

A visit after I finds the pages that appeared since the last one. If the k-th last is worth P·exp(-mu·age), a visit
gains V(I) = p·(1 - exp(-mu·I)), and visits every I gain V(I)/I per second. The amplitude p depends on how pages appear:

- evenly, one each 1/lam, the last one just before the visit ([ECHO13]; a geometric sum): p = P/(1 - exp(-mu/lam));
- by chance at rate lam (Poisson; the integral of lam·P·exp(-mu·a)): p = lam·P/mu.

Both have the same best intervals for given p: dV/d(1/I) is p·g(mu·I), equal to the price omega for all hubs visited.
They differ in p alone, by the factor z/(1 - exp(-z)), z = mu/lam: 1 + z/2 for busy hubs, and without bound for hubs
whose pages fade faster than new ones come. The first counts a whole fresh page for a visit that likely finds none: it
favours slow hubs.

A hub that is visited costs its visits and its pages: 1/I + lam. [ECHO13] leaves a hub out when p <= omega, that is
when no visit is worth its own fetch. Its pages cost too, whatever the interval, so that rule keeps hubs at a loss, and
with a budget below the sum of lam (all of the paper's budgets) it ends with all fetches spent on pages of few hubs
hardly ever visited. The optimum leaves a hub out when it gains less than omega·(1/I + lam): for Poisson pages when
the oldest page of a visit is worth less than a fetch, P·exp(-mu·I) < omega. That is the same as saying that its value
net of its pages (`net_value`) never reaches the price.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bowerbird.appraise.hubs.gains import cut_columns
from bowerbird.appraise.hubs.interval_kernels import ask, limit_prices, settle
from bowerbird.appraise.threads import share

F64 = npt.NDArray[np.float64]

SLOWEST_PER_S = 1e-12  # interest that never fades fades so: in 30,000 years
CLOSE = 1e-13  # of the visits
_NARROW = 1e-15  # of the price
_STEPS = 400  # never met: a bracket has 64 bits
_LEAST = 1e-300
_JUST_BELOW = 1.0 - 4e-16


@dataclass(frozen=True, slots=True)
class Schedule:
    """Intervals by hub (inf = not visited) and the price of a fetch.

    Leaving out a hub sets its pages free in a jump, so there may be a marginal hub that the budget has room for in
    part. Its best interval is `share` times the one given here: it is visited at that share of its best frequency, and
    of what it announces only pages younger than its best interval are fetched, so its pages count by that share too.
    """

    interval_s: F64
    price: float
    marginal: int  # -1: none
    share: float
    spent_per_s: float

    def best_interval_s(self) -> F64:
        """The intervals at which amplitude·g(mu·I) is the price: the marginal hub's too."""
        best = self.interval_s.copy()
        if self.marginal >= 0:
            best[self.marginal] *= self.share
        return best


def hub_amplitude(profit: npt.ArrayLike, decay_per_s: npt.ArrayLike, rate_per_s: npt.ArrayLike) -> F64:
    """[ECHO13] p = P/(1 - exp(-mu/lam)): what a visit after a very long time finds, if pages appear evenly.

    A hub that announces nothing has 0, though the formula's limit is P: there is no page to gain.
    """
    worth, decay, rate = _columns(profit, decay_per_s, rate_per_s)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = worth / -np.expm1(-decay / rate)
    return np.where((worth > 0) & (rate > 0), found, 0.0)


def poisson_amplitude(profit: npt.ArrayLike, decay_per_s: npt.ArrayLike, rate_per_s: npt.ArrayLike) -> F64:
    """[BEYOND] p = lam·P/mu: what a visit after a very long time finds, if pages appear by chance at rate lam."""
    worth, decay, rate = _columns(profit, decay_per_s, rate_per_s)
    return np.where((worth > 0) & (rate > 0), rate * worth / decay, 0.0)


def profit_rate(amplitude: npt.ArrayLike, decay_per_s: npt.ArrayLike, interval_s: npt.ArrayLike) -> F64:
    """[ECHO13] p·(1 - exp(-mu·I))/I by hub: profit per second of visits every I, new pages fetched at once.

    With p = lam·P/mu it is lam·P·(1 - exp(-mu·I))/(mu·I).
    """
    most, decay, interval = _columns(amplitude, decay_per_s, interval_s)
    with np.errstate(divide="ignore", invalid="ignore"):
        each = most * -np.expm1(-decay * interval) / interval
    return np.where(interval > 0, np.where(np.isinf(interval), 0.0, each), most * decay)


def schedule_profit(schedule: Schedule, amplitude: npt.ArrayLike, decay_per_s: npt.ArrayLike) -> float:
    """Profit per second of a schedule; the marginal hub gains its share of what its best interval would."""
    each = profit_rate(amplitude, decay_per_s, schedule.best_interval_s())
    if schedule.marginal >= 0:
        each[schedule.marginal] *= schedule.share
    return math.fsum(each)


def solve_intervals(
    profit: npt.ArrayLike,
    decay_per_s: npt.ArrayLike,
    rate_per_s: npt.ArrayLike,
    budget_per_s: float,
    *,
    count_pages: bool = True,
    floor_s: float = 0.0,
) -> Schedule:
    """[ECHO13] Algorithm 1: p_i·g(mu_i·I_i) = omega, the sum over active hubs of 1/I_i + lam_i = N; p_i <= omega: none.

    As published: the best of all schedules that visit the same hubs, and of all where pages cost nothing
    (`count_pages` off). For the best of all see `best_intervals`.
    """
    _, decay, rate = _columns(profit, decay_per_s, rate_per_s)
    pages = rate if count_pages else np.zeros(len(rate))
    return share_budget(hub_amplitude(profit, decay, rate), decay, pages, budget_per_s, floor_s=floor_s)


def best_intervals(
    profit: npt.ArrayLike,
    decay_per_s: npt.ArrayLike,
    rate_per_s: npt.ArrayLike,
    budget_per_s: float,
    *,
    count_pages: bool = True,
    floor_s: float = 0.0,
) -> Schedule:
    """[BEYOND] The optimum: lam·P/mu·g(mu·I) = omega where P·exp(-mu·I) > omega, sum of 1/I + lam over these = N.

    No schedule within the budget gains more, whichever hubs it leaves out.
    """
    _, decay, rate = _columns(profit, decay_per_s, rate_per_s)
    pages = rate if count_pages else np.zeros(len(rate))
    amplitude = poisson_amplitude(profit, decay, rate)
    return share_budget(amplitude, decay, pages, budget_per_s, floor_s=floor_s, drop_losses=True)


def share_budget(
    amplitude: npt.ArrayLike,
    decay_per_s: npt.ArrayLike,
    pages_per_s: npt.ArrayLike,
    budget_per_s: float,
    *,
    floor_s: float = 0.0,
    drop_losses: bool = False,
) -> Schedule:
    """Intervals for any amplitudes, where a hub that is visited costs `pages_per_s` fetches besides its visits.

    No interval is below `floor_s`: if all hubs are there and budget is left, the price is 0. With `drop_losses` a hub
    is left out that gains less than all its fetches cost; without it, one whose visits do.
    """
    most, decay, pages = _columns(amplitude, decay_per_s, pages_per_s)
    most = np.where(np.isfinite(most) & (most > 0), most, 0.0)
    pages = np.where(pages > 0, pages, 0.0)
    count, floor = len(most), max(float(floor_s), 0.0)
    limit = np.empty(count)
    share(lambda i, j: limit_prices(most, decay, pages, floor, drop_losses, limit, i, j), cut_columns(count))
    hubs = np.argsort(-limit, kind="stable")
    hubs = hubs[: int(np.count_nonzero(limit > 0))]
    if not (budget_per_s > 0 and len(hubs)):
        return Schedule(np.full(count, np.inf), float(limit.max(initial=0.0)), -1, 0.0, 0.0)
    found = _Market(most[hubs], decay[hubs], pages[hubs], limit[hubs], floor).clear(float(budget_per_s))
    interval = np.full(count, np.inf)
    with np.errstate(divide="ignore"):
        interval[hubs[: len(found.interval_s)]] = 1.0 / found.interval_s
    marginal = int(hubs[found.marginal]) if found.marginal >= 0 else -1
    return Schedule(interval, found.price, marginal, found.share, found.spent_per_s)


@dataclass(frozen=True, slots=True)
class _Market:
    """Hubs in the order in which a falling price takes them in: those visited are always the first ones."""

    amplitude: F64
    decay: F64
    pages: F64
    limit: F64
    floor_s: float

    def visits(self, price: float, count: int) -> tuple[float, float]:
        """Visits per second that the first so many hubs ask for, and the slope by log(price)."""
        parts = share(lambda i, j: ask(price, self.amplitude, self.decay, self.floor_s, i, j), cut_columns(count))
        return math.fsum(part[0] for part in parts), math.fsum(part[1] for part in parts)

    def frequencies(self, price: float, count: int) -> F64:
        """Visits per second of the first so many hubs."""
        out = np.empty(count)
        share(lambda i, j: settle(price, self.amplitude, self.decay, self.floor_s, out, i, j), cut_columns(count))
        return out

    def entry_price(self, hub: int) -> float:
        """Just below the price at which this hub is left out."""
        return float(self.limit[hub]) * _JUST_BELOW

    def clear(self, budget: float) -> Schedule:
        """The schedule that spends the budget, with frequencies in the place of intervals, of the hubs visited."""
        count = len(self.limit)
        pages = np.concatenate([[0.0], np.cumsum(self.pages)])  # of the first so many hubs
        few, many = -1, count  # hubs whose entry is within the budget, and beyond it
        middle = count - 1  # often there is room for all
        while many - few > 1:
            room = budget - float(pages[middle + 1])
            if room < 0.0 or self.visits(self.entry_price(middle), middle + 1)[0] > room:
                many = middle
            else:
                few = middle
            middle = (few + many) // 2
        if many == count:
            return self._between(budget, 0.0, self.entry_price(count - 1), count, float(pages[count]))
        price = self.entry_price(many)
        spent = self.visits(price, many)[0] + float(pages[many])
        if spent > budget:
            return self._between(budget, price, self.entry_price(many - 1), many, float(pages[many]))
        often = self.frequencies(price, many + 1)
        part = (budget - spent) / (float(often[many]) + float(self.pages[many]))
        if part <= 0.0:
            return Schedule(often[:many], price, -1, 0.0, spent)
        often[many] *= part
        return Schedule(often, price, many, part, budget)

    def _between(self, budget: float, low: float, high: float, count: int, pages: float) -> Schedule:
        """The first so many hubs, whatever the price in this range: there demand does not jump."""
        most = self.visits(low, count)[0]
        if most + pages <= budget:  # all as often as may be
            return Schedule(self.frequencies(low, count), low, -1, 0.0, most + pages)
        low, high = _narrow(lambda price: self.visits(price, count), budget - pages, low, high)
        often, spent = self.frequencies(low, count), self.visits(low, count)[0]
        if high > low:
            # neighbouring prices, and no digits between them for hubs that are visited hardly ever
            fewer, least = self.frequencies(high, count), self.visits(high, count)[0]
            part = (budget - pages - least) / (spent - least) if spent > least else 0.0
            often, spent = fewer + part * (often - fewer), least + part * (spent - least)
        return Schedule(often, low, -1, 0.0, spent + pages)


def _columns(first: npt.ArrayLike, second: npt.ArrayLike, third: npt.ArrayLike) -> tuple[F64, F64, F64]:
    """Columns of one length; the second is a decay."""
    a, b, c = np.broadcast_arrays(np.atleast_1d(first), np.atleast_1d(second), np.atleast_1d(third))
    decay = np.fmax(np.ascontiguousarray(b, np.float64), SLOWEST_PER_S)
    return np.ascontiguousarray(a, np.float64), decay, np.ascontiguousarray(c, np.float64)


def _narrow(
    visits: Callable[[float], tuple[float, float]], wanted: float, low: float, high: float
) -> tuple[float, float]:
    """The price that makes so many visits, twice; or two neighbouring ones, at which there are more and fewer.

    Newton's method on logarithms, where visits fall about as a power of the price; kept in a bracket that is halved
    where that does not help. So it always ends.
    """
    at = 0.1 * high if low <= 0.0 else 0.5 * (low + high)
    for _ in range(_STEPS):
        asked, slope = visits(at)
        if abs(asked - wanted) <= CLOSE * wanted:
            return at, at
        if asked > wanted:
            low = at
        else:
            high = at
        if low > 0.0 and math.log(high / low) <= _NARROW:
            break
        step = math.log(wanted / asked) * asked / slope if slope < 0.0 < wanted and 0.0 < asked < math.inf else math.inf
        guess = at * math.exp(min(max(step, -20.0), 20.0))
        middle = math.sqrt(low) * math.sqrt(high) if low > 0.0 else 1e-3 * high
        inside = low < guess < high and (low <= 0.0 or abs(math.log(guess / at)) < 0.5 * math.log(high / low))
        at = guess if inside else middle
        if not low < at < high:
            break
    return max(low, _LEAST), high
