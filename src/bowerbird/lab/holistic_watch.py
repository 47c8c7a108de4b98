"""The calibration watch of a holistic crawl: what fetches were expected to gain beside what the crawl saw them gain.

Decisions are kept as a journal keeps them, and compared as a live crawl compares its own; only what came of them is
looked up here: clicks of new pages, measured gains of refreshes, new pages found by visits to hubs.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import orjson

from bowerbird.appraise.budget.correction import Compared, correct_kind
from bowerbird.appraise.budget.decisions import (
    Decision,
    Group,
    compare_new,
    compare_refreshes,
    compare_visits,
    horizons_of,
    rows_of,
    take_quota,
)
from bowerbird.appraise.one_budget import OneBudget
from bowerbird.lab.holistic_crawl import HolisticCrawl, Kind
from bowerbird.lab.holistic_studies import Studies, take_snapshot
from bowerbird.lab.holistic_world import F64, I64
from bowerbird.model.factors import Factors
from bowerbird.model.snapshot import Snapshot

UNMEASURED = 0.1  # of the changes: a live crawl cannot measure all of them


class Watcher:
    """Remembers what was expected, by kind."""

    def __init__(self) -> None:
        self.decisions: dict[Group, list[Decision]] = {group: [] for group in Group}
        self.factors = Factors()

    def note(self, policy: OneBudget, snapshot: Snapshot, rows: I64, kinds: I64, units: F64) -> None:
        """Fetches that were decided now, with their bids in units; the price is the least of them.

        Hubs have no readers here: their first visits are no new pages that could be clicked.
        """
        price, state, url_kind = float(units.min()), snapshot.pages.state, snapshot.pages.kind
        told = policy.terms(snapshot, rows)
        for row, kind, bid, terms in zip(rows.tolist(), kinds.tolist(), units.tolist(), told, strict=True):
            of = int(policy.fetch_kind(int(state[row]), int(url_kind[row]), terms))
            one = Decision(row, of, bid, price, snapshot.now, orjson.loads(terms))
            if one.group is not None and not (one.group.is_slow and kind == Kind.HUB):
                self.decisions[one.group].append(one)

    def look(self, crawl: HolisticCrawl, studies: Studies) -> Factors:
        """What came of them, and the factors that follow for what these studies expect."""
        factors = {}
        for group, made in self.decisions.items():
            some = [made[place] for place in take_quota(group, len(made))]
            compared = look_back(crawl, studies, group, some)
            factors[group.label] = correct_kind(compared.of(compared.known))
        self.factors = Factors(**factors)
        return self.factors


def look_back(crawl: HolisticCrawl, studies: Studies, group: Group, decisions: Sequence[Decision]) -> Compared:
    """What was expected of decisions of one group, and what came of them."""
    if group.is_slow:
        snapshot, horizon_s = take_snapshot(crawl, studies), horizons_of(decisions, np.inf)
        return compare_new(decisions, snapshot, crawl.clicks[rows_of(decisions)], crawl.heard_until_s, horizon_s)
    visited = [(one.row, one.fetched_at) for one in decisions]
    if group is Group.HUB:
        log = crawl.hub_visits
        many = dict(zip(zip(log.row, log.at_s, strict=True), log.found, strict=True))
        return compare_visits(decisions, np.array([many.get(key, np.nan) for key in visited], dtype=np.float64))
    seen = crawl.visits
    gains = dict(zip(zip(seen.row, seen.at_s, strict=True), seen.gain, strict=True))
    found = np.array([gains.get(key, np.nan) for key in visited], dtype=np.float64)
    changed = found > 0
    found[np.random.default_rng(len(found)).random(len(found)) < UNMEASURED] = np.nan
    return compare_refreshes(decisions, changed, found)
