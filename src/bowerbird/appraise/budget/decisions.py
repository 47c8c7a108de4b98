"""Fetches that were decided in clicks, with what was expected of them: as a journal keeps them, live or in the lab.

What came of them is known to whom crawls; here it becomes columns that can be compared.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum

import numpy as np

from bowerbird.appraise.budget.correction import F64, I64, Compared, Mask
from bowerbird.appraise.budget.watch import QUOTA, as_learnt, expected_by, spread_evenly
from bowerbird.appraise.hubs.studied import linked_from
from bowerbird.model.snapshot import Snapshot
from bowerbird.model.url_state import FetchKind

HUBS = "echo"


class Group(IntEnum):
    """Kinds of fetches by what was expected of them; each has a quota, so that none crowds out another."""

    NEW = 0
    ANNOUNCED = 1
    REFRESH = 2
    HUB = 3

    @property
    def label(self) -> str:
        """As factors are named."""
        return self.name.lower()

    @property
    def unit(self) -> str:
        """What its gains are counted in."""
        return ("clicks", "clicks", "share of Q", "new pages")[self]

    @property
    def is_slow(self) -> bool:
        """Do its gains take time? Then they are told from a sample over the time that gains count for."""
        return self <= Group.ANNOUNCED


@dataclass(frozen=True, slots=True)
class Decision:
    """One fetch that was decided in clicks."""

    row: int
    kind: int
    bid: float
    price: float
    fetched_at: float
    terms: dict[str, float | str | None]
    changed: bool = False

    def number(self, name: str) -> float:
        """A term; NaN where there is none."""
        value = self.terms.get(name)
        return float(value) if isinstance(value, int | float) else math.nan

    @property
    def prices(self) -> float:
        """What it bid, in prices of the time; of what gains in two ways, the part that is compared."""
        part = self.number("part")
        return self.bid * (1.0 if math.isnan(part) else part) / max(self.price, 1e-300)

    @property
    def group(self) -> Group | None:
        """What was expected of it; None where nothing was that could be compared."""
        return group_of(self.kind, self.terms)

    @property
    def appraiser(self) -> str:
        """Who expected it, and from what."""
        by, basis = str(self.terms.get("by", "?")), self.terms.get("basis")
        if "announced" in self.terms:
            return f"{by}: announced by a hub"
        return f"{by}: {basis}" if basis else by


def group_of(kind: int, terms: Mapping[str, object]) -> Group | None:
    """What was expected of a fetch with these terms; None where nothing was that could be compared."""
    if terms.get("by") == HUBS:
        return None if terms.get("expected_found") is None else Group.HUB
    if kind == FetchKind.REFRESH:
        return None if terms.get("expected_gain") is None or terms.get("expected_chance") is None else Group.REFRESH
    if kind != FetchKind.NEW or terms.get("basis") is None:
        return None
    return Group.ANNOUNCED if "announced" in terms else Group.NEW


def sort_decisions(decisions: Sequence[Decision]) -> dict[Group, list[Decision]]:
    """By what was expected of them, in their order; of several tries of a new page the last."""
    groups: dict[Group, list[Decision]] = {group: [] for group in Group}
    last = {one.row: one for one in decisions if one.group is not None and one.group.is_slow}
    for one in decisions:
        if one.group is not None and (not one.group.is_slow or last[one.row] is one):
            groups[one.group].append(one)
    return groups


def take_quota(group: Group, count: int, most: int = QUOTA) -> I64:
    """Places of those that are looked at of `count` in the order of time: of slow ones a sample, of others the last."""
    return spread_evenly(count, most) if group.is_slow else np.arange(max(count - most, 0), count)


def column(decisions: Sequence[Decision], name: str) -> F64:
    """A term of each; NaN where there is none."""
    return np.array([one.number(name) for one in decisions], dtype=np.float64)


def rows_of(decisions: Sequence[Decision]) -> I64:
    """Their rows."""
    return np.array([one.row for one in decisions], dtype=np.int64)


def times_of(decisions: Sequence[Decision]) -> F64:
    """When they were carried out."""
    return np.array([one.fetched_at for one in decisions], dtype=np.float64)


def horizons_of(decisions: Sequence[Decision], default_s: float) -> F64:
    """As far ahead as was counted then."""
    told = column(decisions, "horizon_s")
    return np.where(told > 0, told, default_s)


def clicks_of_hubs(snapshot: Snapshot, rows: I64) -> F64:
    """What pages get of the hub that announced each of these, as the last study has it; NaN where it has none."""
    study = snapshot.hub_study
    if study is None or not study.by_clicks or not len(study.hubs):
        return np.full(len(rows), np.nan)
    place = study.place(linked_from(snapshot, rows))
    return np.where(place >= 0, study.hubs.profit[place].astype(np.float64), np.nan)


def compare_new(
    decisions: Sequence[Decision], snapshot: Snapshot, clicked: F64, heard_until: float, horizon_s: F64
) -> Compared:
    """Clicks: those expected by now, without the factor that they had then, and those made.

    What was expected of announced pages is as if hubs' pages had been known to get as much as they are known to now.
    """
    announced = np.array(["announced" in one.terms for one in decisions], dtype=np.bool_)
    factor = np.where(announced, column(decisions, "factor_announced"), column(decisions, "factor_new"))
    # a page that gains less than a unit bids 1 all the same: what was expected is beside it, but in the oldest journals
    units = np.array([one.number("units") if "units" in one.terms else one.bid for one in decisions], dtype=np.float64)
    clicks = np.nan_to_num(units) * column(decisions, "unit") / np.where(np.isnan(factor), 1.0, factor)
    half_life = column(decisions, "half_life_s")
    decay = np.where(announced & (half_life > 0), math.log(2.0) / np.maximum(half_life, 1e-9), 0.0)
    at = times_of(decisions)
    waited = heard_until - at
    expected = expected_by(clicks, decay, waited, horizon_s)
    expected *= as_learnt(column(decisions, "hub_clicks"), clicks_of_hubs(snapshot, rows_of(decisions)), at)
    return _join(decisions, expected, np.where(waited > 0, clicked, np.nan), expected, in_clicks=True)


def compare_refreshes(decisions: Sequence[Decision], changed: Mask, found: F64) -> Compared:
    """Shares of Q: those expected, and those found (NaN where a change was not measured: the others stand for it).

    Where none of the changes was measured nothing can be said, also not of pages without a change.
    """
    expected, chance = column(decisions, "expected_gain"), column(decisions, "expected_chance")
    told = changed & ~np.isnan(found)
    if_changed = np.divide(expected, chance, out=np.zeros(len(expected)), where=chance > 0)
    gained = np.where(told, found, 0.0 if told.any() or not changed.any() else np.nan)
    compared = _join(decisions, expected, gained, chance, in_clicks=False)
    return replace(
        compared,
        measured=np.where(told, if_changed, 0.0),
        unmeasured=np.where(changed & ~told, if_changed, 0.0),
    )


def compare_visits(decisions: Sequence[Decision], found: F64) -> Compared:
    """New pages that visits to hubs were expected to find, and those they found first (NaN where that is not known)."""
    expected = column(decisions, "expected_found")
    return _join(decisions, expected, found, expected, in_clicks=False)


def _join(decisions: Sequence[Decision], expected: F64, realised: F64, events: F64, *, in_clicks: bool) -> Compared:
    prices = np.array([one.prices for one in decisions], dtype=np.float64)
    bound = np.array([bool(one.terms.get("bound")) for one in decisions], dtype=np.bool_)
    told = np.array([one.number(f"factor_{one.group.label}") if one.group else np.nan for one in decisions])
    return Compared(expected, realised, events, prices, bound, np.where(told > 0, told, 1.0), in_clicks)
