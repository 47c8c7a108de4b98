"""[ECHO13] The paper's policies: three of its own, and the three it compares them with.

Where the paper leaves things open, the reading is the one that fits reference levels best, of some dozens tried on the
scored days themselves; it is said here, in the classes, and in `echo_estimates`.

- All visit hubs in an order drawn by the seed where nothing else decides, and fetch each page once.
- All but `fixed-quota` and `echo-schedule` fetch all new pages of a hub, top first, before the next visit.
- lam is measured over the last 7 visits, with half a link added; that of a hub not visited yet is N/hubs.
- P of a hub is the default before anything is known, and never below it.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np

from bowerbird.appraise.hubs.intervals import solve_intervals
from bowerbird.lab.echo_estimates import ClickHistory, VisitHistory
from bowerbird.lab.echo_replay import HUB, PAGE, Choice, EchoPolicy, MakePolicy, Setting
from bowerbird.lab.echo_world import DAY_S, F64, I64


@dataclass(frozen=True, slots=True)
class PaperOptions:
    """Settings of the paper's policies."""

    visits: int = 7  # T: how many of a hub's last visits say how often it has new links
    added: float = 0.5  # links added to what these found, so that no hub is given up
    default_profit: float = 5.0  # clicks
    default_decay_per_s: float = 1.0 / DAY_S
    solve_each_s: float = 1800.0
    quota: float = 0.5  # fixed-quota: the share of fetches that visit hubs


class HubsInTurn:
    """[ECHO13] BFS: hubs in turn, each followed by all its new pages."""

    def __init__(self, setting: Setting, rng: np.random.Generator, options: PaperOptions) -> None:
        self.setting = setting
        self.options = options
        self.order = rng.permutation(setting.hub_count)
        self.new: deque[int] = deque()
        self._turn = -1

    def choose(self, now_s: float) -> Choice | None:
        """A new page while there is one."""
        return (PAGE, self.new.popleft()) if self.new else (HUB, self.next_hub(now_s))

    def next_hub(self, now_s: float) -> int:
        """The hub to visit."""
        self._turn = (self._turn + 1) % len(self.order)
        return int(self.order[self._turn])

    def saw(self, now_s: float, hub: int, links: I64, fresh: I64, places: I64) -> None:
        """New pages wait to be fetched."""
        self.new.extend(fresh.tolist())

    def fetched(self, now_s: float, page: int) -> None:
        """Nothing is learnt from it."""

    def pushed(self, now_s: float, page: I64, bin_from_s: F64, clicks: F64) -> None:
        """Clicks are not looked at."""


class FixedQuota(HubsInTurn):
    """[ECHO13] Fixed-quota: half of the fetches visit hubs in turn, half are for the new pages of the hub just visited.

    A hub with fewer new pages than there are fetches for them leaves these to the hubs after it; one with more loses
    the rest. A hub's new pages are taken in random order.
    """

    def __init__(self, setting: Setting, rng: np.random.Generator, options: PaperOptions) -> None:
        super().__init__(setting, rng, options)
        self._rng = rng
        self._saved = 0.0

    def choose(self, now_s: float) -> Choice | None:
        """New pages of the last hub while there are fetches for them."""
        if self._saved >= 1.0 and self.new:
            self._saved -= 1.0
            return PAGE, self.new.popleft()
        self._saved += (1.0 - self.options.quota) / self.options.quota
        self.new.clear()
        return HUB, self.next_hub(now_s)

    def saw(self, now_s: float, hub: int, links: I64, fresh: I64, places: I64) -> None:
        """New pages wait to be fetched."""
        self.new.extend(self._rng.permutation(fresh).tolist())


class Frequency(HubsInTurn):
    """[ECHO13] Frequency: visits in proportion to lam, so the hub with the largest lam·tau; no clicks are looked at."""

    def __init__(self, setting: Setting, rng: np.random.Generator, options: PaperOptions) -> None:
        super().__init__(setting, rng, options)
        self.visits = VisitHistory(setting, options.visits, options.added)
        self.tie = 1.0 + 1e-9 * rng.random(setting.hub_count)

    def next_hub(self, now_s: float) -> int:
        """The one with the most new links to be expected."""
        return int(np.argmax(self.tie * self.visits.rate_per_s * (now_s - self.visits.last_s)))

    def saw(self, now_s: float, hub: int, links: I64, fresh: I64, places: I64) -> None:
        """The hub's rate is measured."""
        super().saw(now_s, hub, links, fresh, places)
        self.visits.visit(now_s, hub, len(fresh))


class EchoGreedy(Frequency):
    """[ECHO13] ECHO-greedy: the hub with the largest lam·P·tau, then all its new pages."""

    def __init__(self, setting: Setting, rng: np.random.Generator, options: PaperOptions) -> None:
        super().__init__(setting, rng, options)
        self.clicks = ClickHistory(setting, options.default_profit, options.default_decay_per_s)
        self._solve_at = setting.begin_s

    def choose(self, now_s: float) -> Choice | None:
        """As BFS; every so often what was learnt is put to use."""
        if now_s >= self._solve_at:
            self._solve_at += self.options.solve_each_s
            self.solve()
        return super().choose(now_s)

    def solve(self) -> None:
        """Fit P and mu."""
        self.clicks.fit()

    def next_hub(self, now_s: float) -> int:
        """The one with the most profit to be expected."""
        expected = self.visits.rate_per_s * self.clicks.profit * (now_s - self.visits.last_s)
        return int(np.argmax(self.tie * expected))

    def saw(self, now_s: float, hub: int, links: I64, fresh: I64, places: I64) -> None:
        """The pages' clicks will be the hub's."""
        super().saw(now_s, hub, links, fresh, places)
        self.clicks.found(hub, fresh)

    def fetched(self, now_s: float, page: int) -> None:
        """Its clicks will be told from now on."""
        self.clicks.fetched(now_s, page)

    def pushed(self, now_s: float, page: I64, bin_from_s: F64, clicks: F64) -> None:
        """Learn from them."""
        self.clicks.pushed(now_s, page, bin_from_s, clicks)


class EchoNewpages(EchoGreedy):
    """[ECHO13] ECHO-newpages: new pages first, then the hub most behind its interval of Algorithm 1: max tau/I."""

    def __init__(self, setting: Setting, rng: np.random.Generator, options: PaperOptions) -> None:
        super().__init__(setting, rng, options)
        self.interval_s = np.full(setting.hub_count, 1.0)

    def solve(self) -> None:
        """Fit, and solve for the intervals."""
        super().solve()
        clicks = self.clicks
        self.interval_s = solve_intervals(
            clicks.profit, clicks.decay_per_s, self.visits.rate_per_s, self.setting.fetches_per_s
        ).interval_s

    def next_hub(self, now_s: float) -> int:
        """The one most behind."""
        return int(np.argmax(self.tie * (now_s - self.visits.last_s) / self.interval_s))


class EchoSchedule(EchoNewpages):
    """[ECHO13] ECHO-schedule: hubs on time, the newest pages with what is left; the hub most behind where none is."""

    def choose(self, now_s: float) -> Choice | None:
        """A hub that is due, else the page found last, top first."""
        if now_s >= self._solve_at:
            self._solve_at += self.options.solve_each_s
            self.solve()
        hub = self.next_hub(now_s)
        if not self.new or now_s - self.visits.last_s[hub] >= self.interval_s[hub]:
            return HUB, hub
        return PAGE, self.new.pop()

    def saw(self, now_s: float, hub: int, links: I64, fresh: I64, places: I64) -> None:
        """The top of the list is taken first."""
        super().saw(now_s, hub, links, fresh[::-1], places)


_POLICIES: dict[str, type[HubsInTurn]] = {
    "bfs": HubsInTurn,
    "fixed-quota": FixedQuota,
    "frequency": Frequency,
    "echo-greedy": EchoGreedy,
    "echo-schedule": EchoSchedule,
    "echo-newpages": EchoNewpages,
}
PAPER_POLICIES = tuple(_POLICIES)


def paper_policy(name: str, **changes: float) -> MakePolicy:
    """What makes a policy of the paper by name, with these settings of `PaperOptions` changed."""
    chosen = PaperOptions(**changes)  # type: ignore[arg-type]  # settings by name
    kind = _POLICIES[name]

    def make(setting: Setting, rng: np.random.Generator) -> EchoPolicy:
        return kind(setting, rng, chosen)

    return make
