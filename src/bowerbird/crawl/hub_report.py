"""The hubs of a crawl as people and programs read them: a table by hub, the curve of interest, and the cover."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from bowerbird.appraise.one_budget import OneBudget
from bowerbird.crawl.moments import clock_text
from bowerbird.crawl.standing import find_dues
from bowerbird.crawl.view import CrawlView
from bowerbird.model.hub_study import HubKind, HubStudy
from bowerbird.model.url_state import UrlState
from bowerbird.model.worth import count_in
from bowerbird.store.hub_hints import read_hub_hints

DAY_S = 86400.0


def report_hubs(view: CrawlView, study: HubStudy, top: int | None = None) -> dict[str, Any]:
    """All that the study says, the hubs first that most new pages were found on; at most `top` of them."""
    hubs = study.hubs
    order = np.lexsort((hubs.row, -hubs.rate_per_s, -hubs.found))
    rows = order[: len(order) if top is None else top].tolist()
    urls = view.state.urls(hubs.row[rows].tolist())
    hints = read_hub_hints(view.state.connection, study.count)
    kinds = {kind.label: int(np.count_nonzero(hubs.kind == kind)) for kind in HubKind}
    auto = _by_one_price(view, hubs.row[rows].astype(np.int64))
    table = [
        _row(view, study, place, url, getattr(hints.get(int(hubs.row[place])), "websub", ""))
        for place, url in zip(rows, urls, strict=True)
    ]
    return {
        "at": clock_text(study.at),
        "age_s": max(view.now - study.at, 0.0),
        "method": study.method,
        "hubs": len(hubs),
        "kinds": kinds,
        "visits": int(hubs.visits.sum()),
        "found": int(hubs.found.sum()),
        "missed": float(hubs.missed.sum()),
        "turned": int(hubs.turned.sum()),
        "visits_per_day": study.budget_per_s * DAY_S,
        "price": study.price,
        "by_clicks": study.by_clicks,
        "note": str(study.info.get("note", "")),
        "seconds": float(study.info.get("seconds", 0.0)),
        "interest": {
            "clicks_per_new_page": study.curve.profit if study.by_clicks else None,
            "half_life_s": _half_life_s(study.curve.decay_per_s),
            "age_s": study.curve.age_s.tolist(),
            "mean_clicks": study.curve.clicks.tolist(),
        },
        "cover": _cover(view, study),
        "auto": None if auto is None else auto.price,
        "table": table if auto is None else [row | bid for row, bid in zip(table, auto.rows, strict=True)],
    }


@dataclass(frozen=True, slots=True)
class OnePrice:
    """What `auto` would do, which has no intervals and no budget for hubs alone: the price, by hub bid and due time."""

    price: dict[str, Any]
    rows: list[dict[str, Any]]


def _by_one_price(view: CrawlView, rows: npt.NDArray[np.int64]) -> OnePrice | None:
    """None for other policies."""
    policy, now = view.policy, view.now
    if not isinstance(policy, OneBudget):
        return None
    snapshot = view.repository.snapshot(now)
    price, made = view.price(), policy.appraise(snapshot, rows)
    bids = [made.bid(nth) for nth in range(len(rows))]
    times, noun = count_in(policy.unit(snapshot), policy.by_clicks(snapshot))
    return OnePrice(
        {"price": price * times, "unit": noun},
        [
            {
                "bid": bid.value(now) * times,
                "interval_s": None,
                "due": clock_text(due),
                "due_in_s": None if due is None else max(due - now, 0.0),
            }
            for bid, due in zip(bids, find_dues(policy, snapshot, bids, rows, price), strict=True)
        ],
    )


def _row(view: CrawlView, study: HubStudy, place: int, url: str, websub: str) -> dict[str, Any]:
    hubs, row = study.hubs, int(study.hubs.row[place])
    columns = view.repository.table.columns
    due_at = float(columns["last_fetched"][row]) + float(hubs.interval_s[place])
    here = columns["state"][row] == UrlState.FETCHED
    return {
        "url": url,
        "kind": HubKind(int(hubs.kind[place])).label,
        "visits": int(hubs.visits[place]),
        "found": int(hubs.found[place]),
        "rate_per_day": float(hubs.rate_per_s[place]) * DAY_S,
        "clicks_per_new_page": float(hubs.profit[place]) if study.by_clicks else None,
        "half_life_s": _half_life_s(float(hubs.decay_per_s[place])),
        "interval_s": float(hubs.interval_s[place]),
        "bid": None,
        "due": clock_text(due_at) if here else None,
        "due_in_s": max(due_at - view.now, 0.0) if here else None,
        "turned": int(hubs.turned[place]),
        "missed": float(hubs.missed[place]),
        "said_period_s": float(hubs.period_s[place]) or None,
        "websub": websub or None,
    }


def _half_life_s(decay_per_s: float) -> float:
    return math.log(2.0) / max(decay_per_s, 1e-300)


def _cover(view: CrawlView, study: HubStudy) -> dict[str, Any]:
    """How few hubs announce most of the new pages, and which they are."""
    chosen = study.cover_hub[:10].tolist()
    urls = view.state.urls(study.hubs.row[chosen].tolist())
    return {
        "pages": int(float(study.info.get("announced", 0.0))),
        "hubs": len(study.cover_hub),
        "of_hubs": len(study.hubs),
        "share": float(study.cover_share[-1]) if len(study.cover_share) else 0.0,
        "first": [
            {"url": url, "share": share}
            for url, share in zip(urls, study.cover_share[: len(chosen)].tolist(), strict=True)
        ],
    }


def cover_text(cover: dict[str, Any]) -> str:
    """The cover in one sentence.

    >>> cover_text({"pages": 200, "hubs": 3, "of_hubs": 100, "share": 0.81})
    '3 hubs (3.0%) show 81% of the 200 new pages'
    """
    if not cover["pages"]:
        return "no hub has announced a new page yet"
    hubs = f"1 hub ({1 / cover['of_hubs']:.1%}) shows" if cover["hubs"] == 1 else ""
    hubs = hubs or f"{cover['hubs']:,} hubs ({cover['hubs'] / cover['of_hubs']:.1%}) show"
    return f"{hubs} {cover['share']:.0%} of the {cover['pages']:,} new page{'' if cover['pages'] == 1 else 's'}"
