"""Studies of hubs to bid by, made up."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from tests.appraise.snapshots import NOW, random_snapshot

from bowerbird.model.bid import Shape
from bowerbird.model.hub_study import HubColumns, HubKind, HubStudy, InterestCurve
from bowerbird.model.snapshot import Snapshot
from bowerbird.model.url_state import UrlKind, UrlState

DAY_S = 86400.0


def hub_columns(count: int, **columns: object) -> HubColumns:
    """Hubs from the columns that matter; the others are those of a hub that announces ten pages a day."""
    given: dict[str, object] = {
        "row": np.arange(count),
        "kind": HubKind.FEED,
        "visits": 5,
        "found": 10,
        "turned": 0,
        "missed": 0.0,
        "period_s": 0.0,
        "rate_per_s": 10 / DAY_S,
        "drawn_per_s": 10 / DAY_S,
        "profit": 1.0,
        "decay_per_s": 1 / DAY_S,
        "left": 1.0,
        "amplitude": 20.0,
        "bid_rate_per_s": 1 / DAY_S,
        "shape": Shape.SATURATING,
        "interval_s": 0.35 * DAY_S,
        **columns,
    }
    kinds = {"row": "i8", "visits": "i8", "found": "i8", "turned": "i8", "kind": "u1", "shape": "u1"}
    made = {
        name: np.array(np.broadcast_to(np.asarray(value), count), dtype=kinds.get(name, "f4"))
        for name, value in given.items()
    }
    return HubColumns(**made)


def hub_study(hubs: HubColumns, count: int, **values: object) -> HubStudy:
    """A study of these hubs among `count` URLs."""
    nothing = np.zeros(0, dtype=np.int64)
    empty = np.zeros(0, dtype=np.float32)
    given: dict[str, object] = {
        "at": NOW - 30.0,
        "method": "echo",
        "count": count,
        "hubs": hubs,
        "page_row": nothing,
        "page_hub": nothing,
        "curve": InterestCurve(empty, empty, 1.0, 1 / DAY_S),
        "by_clicks": False,
        "mean_profit": 1.0,
        "price": 0.5,
        "budget_per_s": 4 * len(hubs) / DAY_S,
        "longest_s": 20 * DAY_S,
        "cover_hub": nothing,
        "cover_share": empty,
        **values,
    }
    given.setdefault("page_factor", np.ones(len(given["page_row"]), np.float32))
    return HubStudy(**given)  # type: ignore[arg-type]  # values by name


def snapshot_with_hubs(seed: int, count: int, states: tuple[UrlState, ...], kinds: tuple[UrlKind, ...]) -> Snapshot:
    """Any URLs, about half of them studied, with hubs and announced pages among these."""
    snapshot = random_snapshot(seed, count, states, kinds)
    rng = np.random.default_rng(seed + 1)
    known = count // 2
    rows = np.flatnonzero((rng.random(known) < 0.5) & (snapshot.pages.state[:known] == UrlState.FETCHED))
    hubs = len(rows)
    shape = rng.choice([int(Shape.LINEAR), int(Shape.SATURATING)], hubs)
    interval = rng.choice([60.0, 3600.0, 1e5], hubs)
    columns = hub_columns(
        hubs,
        row=rows,
        kind=rng.integers(0, len(HubKind), hubs),
        turned=rng.integers(0, 2, hubs),
        period_s=rng.choice([0.0, 3600.0], hubs),
        drawn_per_s=rng.choice([10 / DAY_S, 20 / DAY_S], hubs),
        profit=rng.exponential(1.0, hubs),
        shape=shape,
        interval_s=interval,
        amplitude=np.where(shape == Shape.LINEAR, 1.0, 1.0 / 0.264241117657),  # 1/g(1)
        bid_rate_per_s=1.0 / interval,
    )
    new = np.flatnonzero(snapshot.pages.state[:known] == UrlState.NEW)
    page_row = new[: len(new) // 2] if hubs else new[:0]
    source = rng.choice([-1, *rows.tolist()], count).astype(np.int32)
    source.flags.writeable = False
    study = hub_study(columns, known, page_row=page_row, page_hub=rng.integers(0, max(hubs, 1), len(page_row)))
    return replace(snapshot, hub_study=study, pages=replace(snapshot.pages, source=source))
