"""What the paper's policies learn of hubs: the rate of new links by the last visits, profit and decay by clicks."""

from __future__ import annotations

import numba
import numpy as np

from bowerbird.appraise.hubs.interest import age_bins, fit_interests, fit_profit
from bowerbird.lab.echo_replay import Setting
from bowerbird.lab.echo_world import DAY_S, F64, I64

#: clicks later than this after a fetch are not learnt from
LONGEST_S = 3 * DAY_S
#: interest fades no slower than this: a few days do not tell how long it lasts, nor then how large P is
SLOWEST_PER_S = 1.0 / (2 * DAY_S)
#: a hub with fewer pages that were watched has the defaults
LEAST_PAGES = 3
#: a hub is fitted again when it was watched by so much more
_WORTH_A_FIT = 1.05


class VisitHistory:
    """[ECHO13] lam by hub: links first discovered on it in its last T visits, by the time these cover.

    Half a link is added to what was found, so that no hub is given up; one not visited yet has N/hubs.
    """

    def __init__(self, setting: Setting, visits: int, added: float) -> None:
        count = setting.hub_count
        self.added = added
        self.last_s = np.full(count, setting.begin_s)
        self.rate_per_s = np.full(count, setting.fetches_per_s / count)
        self._gap_s = np.zeros((count, visits))
        self._found = np.zeros((count, visits))
        self._place = np.zeros(count, dtype=np.int64)

    def visit(self, now_s: float, hub: int, found: int) -> None:
        """A visit found so many pages that no hub had shown before."""
        place = self._place[hub]
        self._gap_s[hub, place] = now_s - self.last_s[hub]
        self._found[hub, place] = found
        self._place[hub] = (place + 1) % self._gap_s.shape[1]
        self.last_s[hub] = now_s
        self.rate_per_s[hub] = (self._found[hub].sum() + self.added) / self._gap_s[hub].sum()


class ClickHistory:
    """[ECHO13] P and mu by hub: least squares to the mean cumulative clicks of its fetched pages since their fetch.

    Mean clicks by age are clicks divided by the pages watched at that age, so that young pages do no harm.
    """

    def __init__(self, setting: Setting, default: float, decay_per_s: float) -> None:
        count = setting.hub_count
        self.bin_s = setting.bin_s
        self.default = default
        self.profit = np.full(count, default)
        self.decay_per_s = np.full(count, decay_per_s)
        self.edges = np.round(age_bins(LONGEST_S, bin_s=setting.bin_s) / setting.bin_s).astype(np.int64)
        self.clicks = np.zeros((count, len(self.edges) - 1))
        self.exposed = np.zeros((count, len(self.edges) - 1))
        self._bin_of_age = np.repeat(np.arange(len(self.edges) - 1), np.diff(self.edges))
        self._fitted = np.zeros(count)
        self._told = int(np.ceil(setting.begin_s / setting.bin_s))
        self._hub = np.full(1024, -1, dtype=np.int64)  # by page
        self._first = np.zeros(1024, dtype=np.int64)  # by page: the first whole bin after its fetch
        self._watched = np.zeros(1024, dtype=np.int64)  # pages young enough to be learnt from
        self._watching = 0

    def found(self, hub: int, pages: I64) -> None:
        """These pages were first seen on a hub."""
        if len(pages):
            self._reach(int(pages.max()))
            self._hub[pages] = hub

    def fetched(self, now_s: float, page: int) -> None:
        """From now on its clicks are told."""
        self._first[page] = int(np.ceil(now_s / self.bin_s))
        if self._watching == len(self._watched):
            self._watched = np.concatenate([self._watched, np.zeros_like(self._watched)])
        self._watched[self._watching] = page
        self._watching += 1

    def pushed(self, now_s: float, page: I64, bin_from_s: F64, clicks: F64) -> None:
        """Enter a push."""
        upto = int(now_s / self.bin_s)
        self._watching = _watch(
            self._told, upto, self._watched, self._watching, self._hub, self._first, self._bin_of_age, self.exposed
        )
        self._told = upto
        _count(page, bin_from_s, clicks, self.bin_s, self._hub, self._first, self._bin_of_age, self.clicks)

    def fit(self) -> None:
        """Fit hubs that were watched by more than when they were last fitted."""
        watched = self.exposed.sum(axis=1)
        again = np.flatnonzero((watched > _WORTH_A_FIT * self._fitted) & (self.exposed[:, 0] >= LEAST_PAGES))
        if not len(again):
            return
        self._fitted[again] = watched[again]
        exposed = self.exposed[again]
        width = np.diff(self.edges)
        mean = np.divide(self.clicks[again], exposed, out=np.zeros_like(exposed), where=exposed > 0) * width
        ages = self.edges[1:] * self.bin_s
        grown = np.cumsum(mean, axis=1)
        found = fit_interests(ages, grown, exposed)  # an age at which no page was watched has no weight
        profit = found.profit.copy()
        for place in np.flatnonzero(found.decay_per_s < SLOWEST_PER_S).tolist():
            profit[place] = fit_profit(grown[place], ages, SLOWEST_PER_S, exposed[place])
        self.profit[again] = np.maximum(profit, self.default)
        self.decay_per_s[again] = np.maximum(found.decay_per_s, SLOWEST_PER_S)

    def _reach(self, page: int) -> None:
        if page >= len(self._hub):
            more = max(page + 1, 2 * len(self._hub)) - len(self._hub)
            self._hub = np.concatenate([self._hub, np.full(more, -1, dtype=np.int64)])
            self._first = np.concatenate([self._first, np.zeros(more, dtype=np.int64)])


@numba.njit(cache=True, nogil=True)
def _watch(
    told: int, upto: int, watched: I64, watching: int, hub: I64, first: I64, bin_of_age: I64, exposed: F64
) -> int:
    """Enter that these pages were watched in the bins told..upto-1; those that are too old are dropped."""
    kept = 0
    for nth in range(watching):
        page = watched[nth]
        for now in range(max(told, first[page]), upto):
            age = now - first[page]
            if age < len(bin_of_age):
                exposed[hub[page], bin_of_age[age]] += 1.0
        if upto - first[page] < len(bin_of_age):
            watched[kept] = page
            kept += 1
    return kept


@numba.njit(cache=True, nogil=True)
def _count(
    page: I64, bin_from_s: F64, clicks: F64, bin_s: float, hub: I64, first: I64, bin_of_age: I64, sums: F64
) -> None:
    for row in range(len(page)):
        age = np.int64(np.round(bin_from_s[row] / bin_s)) - first[page[row]]
        if 0 <= age < len(bin_of_age):
            sums[hub[page[row]], bin_of_age[age]] += clicks[row]
