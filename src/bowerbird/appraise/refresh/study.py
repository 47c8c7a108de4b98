"""Making a study of known pages: a method bids, a price is found that uses the budget, and due times follow. Pure."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bowerbird.appraise.refresh.bids import RefreshOptions
from bowerbird.appraise.refresh.clearing import clear_price
from bowerbird.appraise.refresh.forecast import forecast_pages, weigh_stakes
from bowerbird.appraise.refresh.inputs import RefreshInputs
from bowerbird.appraise.refresh.methods import METHODS
from bowerbird.appraise.refresh.refresh_gain import most_changes
from bowerbird.appraise.refresh.signals import SignalQuality
from bowerbird.model.bid import Shape
from bowerbird.model.refresh_study import F32, RefreshDetails, RefreshStudy

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]

FOREVER_S = 1000 * 365 * 86400.0  # where there is no bound: what is written down has to be finite


@dataclass(frozen=True, slots=True)
class RefreshPlan:
    """What refreshes there may be: as many as if every page came round after `interval_s`."""

    interval_s: float
    shortest_s: float = 60.0
    longest_s: float = 365 * 86400.0
    explore: float = 0.05  # of the budget, evenly over all pages
    threshold: float = 0.1

    @property
    def explored_s(self) -> float:
        """No page waits longer."""
        return min(self.interval_s / self.explore, self.longest_s) if self.explore > 0 else self.longest_s


@dataclass(frozen=True, slots=True)
class KnownPages:
    """Which rows of the crawl the inputs are of (ascending), their hosts, and how many rows and hosts there are."""

    rows: I64
    hosts: I64
    count: int
    host_count: int


def study_refreshes(
    inputs: RefreshInputs,
    method: str,
    pages: KnownPages,
    plan: RefreshPlan,
    signals: SignalQuality | None = None,
) -> RefreshStudy:
    """When each fetched page is due, by a method of `METHODS`; `signals` are by host, 0 … host_count - 1."""
    forecast = forecast_pages(inputs)
    budget = inputs.count / plan.interval_s
    bids = METHODS[method](inputs, forecast, RefreshOptions(budget, plan.threshold))
    hears = bids.listens and signals is not None
    recall = false_rate = np.zeros(0)
    if hears:
        assert signals is not None
        recall, false_rate = signals.recall, signals.false_rate_per_s
    offered = inputs.hint_age_s >= 0  # neither NaN nor a date to come
    longest_s = min(max(plan.explored_s, plan.shortest_s), FOREVER_S)
    cleared = clear_price(
        bids,
        budget * (float(inputs.cost.mean()) if inputs.count else 1.0),
        shortest_s=plan.shortest_s,
        longest_s=longest_s,
        cost=inputs.cost,
        recall=np.where(offered, recall[pages.hosts], 0.0) if hears else None,
        false_rate_per_s=false_rate[pages.hosts] if hears else None,
    )
    often = np.bincount(pages.hosts, 1.0 / cleared.interval_s, pages.host_count)
    with np.errstate(invalid="ignore", divide="ignore"):
        by_host = np.bincount(pages.hosts, minlength=pages.host_count) / often

    known = np.bincount(pages.hosts, minlength=pages.host_count)
    cost = np.bincount(pages.hosts, inputs.cost, pages.host_count) / np.maximum(known, 1)

    def by_row(values: F64) -> F32:
        out = np.full(pages.count, np.nan, dtype=np.float32)
        out[pages.rows] = values
        return out

    shape = np.full(pages.count, int(Shape.LINEAR), dtype=np.uint8)
    shape[pages.rows] = cleared.shape
    info: dict[str, str | float] = {
        "pages": float(inputs.count),
        "visits": float(len(inputs.changed)),
        "changes": float(np.count_nonzero(inputs.changed)),
        "measured": float(np.count_nonzero(inputs.gain[inputs.changed] >= 0)),
        "explored": float(np.count_nonzero(cleared.interval_s >= longest_s)),
        "dated": float(np.count_nonzero(offered)),
        "spent": cleared.spent_per_s,
    }
    notes = [bids.note] if bids.note else []
    if plan.interval_s < plan.shortest_s:
        notes.append(
            f"refresh.interval_s ({plan.interval_s:g}) is below refresh.min_interval_s ({plan.shortest_s:g}): so many "
            "refreshes cannot be made, and all pages come round alike. Lower both."
        )
    if notes:
        info["note"] = "; ".join(notes)
    return RefreshStudy(
        at=inputs.now_s,
        method=method,
        count=pages.count,
        amplitude=by_row(cleared.amplitude),
        rate_per_s=by_row(cleared.rate_per_s),
        shape=shape,
        interval_s=by_row(cleared.interval_s),
        changes_per_s=by_row(forecast.changes_per_s),
        host_interval_s=by_host.astype(np.float32),
        default_interval_s=inputs.count / float(often.sum()) if inputs.count else plan.interval_s,
        longest_s=longest_s,
        recall=recall.astype(np.float32),
        false_rate_per_s=false_rate.astype(np.float32),
        price=cleared.price,
        budget_per_s=budget,
        details=RefreshDetails(
            by_row(forecast.loss), by_row(forecast.growth_per_s), by_row(forecast.certainty), by_row(inputs.stake)
        ),
        gain=by_row(bids.amplitude / _in_all(inputs)) if bids.shape is Shape.AREA else None,
        stale_loss=by_row(forecast.loss / _in_all(inputs)),
        most_changes=by_row(most_changes(weigh_stakes(inputs.stake), forecast.loss)),
        host_cost=np.where(known > 0, cost, 1.0).astype(np.float32),
        clicks_per_s=inputs.clicks_per_s,
        info=info,
    )


def _in_all(inputs: RefreshInputs) -> float:
    """Stakes are shares of all; where nobody has any, each page weighs 1 and is one of so many."""
    return 1.0 if inputs.stake.max(initial=0.0) > 0.0 else float(max(inputs.count, 1))
