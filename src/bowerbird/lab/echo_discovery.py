"""Discovery alone: all fetches are visits to hubs. How many new pages are seen, and how soon?"""

from __future__ import annotations

import numpy as np

from bowerbird.appraise.hubs.discovery import RateBook
from bowerbird.appraise.hubs.intervals import best_intervals
from bowerbird.lab.echo_estimates import VisitHistory
from bowerbird.lab.echo_replay import HUB, Choice, EchoPolicy, MakePolicy, Setting
from bowerbird.lab.echo_world import DAY_S, F64, HOUR_S, I64

#: a new page is worth as much less when it is seen so much later: what the intervals are best for
DECAY_PER_S = 1.0 / DAY_S


class UniformVisits:
    """Hubs in turn."""

    def __init__(self, setting: Setting, rng: np.random.Generator) -> None:
        self.setting = setting
        self.order = rng.permutation(setting.hub_count)
        self.tie = 1.0 + 1e-9 * rng.random(setting.hub_count)
        self._turn = -1

    def choose(self, now_s: float) -> Choice | None:
        """Always a hub."""
        return HUB, self.next_hub(now_s)

    def next_hub(self, now_s: float) -> int:
        """The hub to visit."""
        self._turn = (self._turn + 1) % len(self.order)
        return int(self.order[self._turn])

    def saw(self, now_s: float, hub: int, links: I64, fresh: I64, places: I64) -> None:
        """Nothing is learnt."""

    def fetched(self, now_s: float, page: int) -> None:
        """No page is fetched."""

    def pushed(self, now_s: float, page: I64, bin_from_s: F64, clicks: F64) -> None:
        """So there are no clicks."""


class RateVisits(UniformVisits):
    """As often as a hub has new links, by its last 7 visits: the largest lam·tau."""

    def __init__(self, setting: Setting, rng: np.random.Generator) -> None:
        super().__init__(setting, rng)
        self.visits = VisitHistory(setting, 7, 0.5)

    def next_hub(self, now_s: float) -> int:
        """The one with the most new links to be expected."""
        return int(np.argmax(self.tie * self.visits.rate_per_s * (now_s - self.visits.last_s)))

    def saw(self, now_s: float, hub: int, links: I64, fresh: I64, places: I64) -> None:
        """Measure the rate."""
        self.visits.visit(now_s, hub, len(fresh))


class BestVisits(UniformVisits):
    """The product's schedule: rates shrunk to their group's with a weekly pattern, the best intervals for them."""

    def __init__(self, setting: Setting, rng: np.random.Generator) -> None:
        super().__init__(setting, rng)
        self.rates = RateBook(
            setting.hub_count, setting.hub_group, prior_rate_per_s=setting.fetches_per_s / setting.hub_count
        )
        self.last_s = np.full(setting.hub_count, setting.begin_s)
        self.interval_s = np.ones(setting.hub_count)
        self._solve_at = setting.begin_s

    def choose(self, now_s: float) -> Choice | None:
        """The hub most behind its interval."""
        if now_s >= self._solve_at:
            self._solve_at += HOUR_S
            rates = self.rates.rates(now_s)
            solved = best_intervals(1.0, DECAY_PER_S, rates, self.setting.fetches_per_s, count_pages=False)
            self.interval_s = solved.interval_s
        return super().choose(now_s)

    def next_hub(self, now_s: float) -> int:
        """By tau/I; a hub left out for now still gets what is over."""
        return int(np.argmax(self.tie * (now_s - self.last_s) / np.minimum(self.interval_s, 30 * DAY_S)))

    def saw(self, now_s: float, hub: int, links: I64, fresh: I64, places: I64) -> None:
        """Measure the rate."""
        self.rates.visit(hub, now_s, now_s - self.last_s[hub], len(fresh))
        self.last_s[hub] = now_s


_VISITS: dict[str, type[UniformVisits]] = {
    "uniform": UniformVisits,
    "rate-proportional": RateVisits,
    "best-intervals": BestVisits,
}
DISCOVERIES = tuple(_VISITS)


def discovery_policy(name: str) -> MakePolicy:
    """What makes a policy of visits by name."""
    kind = _VISITS[name]

    def make(setting: Setting, rng: np.random.Generator) -> EchoPolicy:
        return kind(setting, rng)

    return make
