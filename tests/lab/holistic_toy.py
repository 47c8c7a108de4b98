"""Small worlds for the holistic experiments: one made by hand, one by settings."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bowerbird.lab.holistic_made import MadeSettings, make_world
from bowerbird.lab.holistic_world import DAY_S, HOUR_S, NO_HUB, START_S, HolisticWorld
from bowerbird.model.hub_study import HubKind
from bowerbird.model.url_state import UrlKind

SMALL = MadeSettings(
    hosts=5,
    old_pages=250,
    warm_days=2.0,
    days=2.0,
    old_clicks_per_day=800.0,
    new_per_day=40.0,
    budgets=(10.0, 40.0),
)
#: pages of the hand-made world
MAIN, LINKED, DEEP, SEED, FRESH, LATER = range(6)


def small_world(seed: int = 0) -> HolisticWorld:
    """A made world that takes no time."""
    return make_world("small", SMALL, seed)


def hand_made(events: Sequence[tuple[float, int, float]] = (), shown: int = 30) -> HolisticWorld:
    """A main page that links to LINKED and announces FRESH (2 h) and LATER (5 h); LINKED links to DEEP; SEED is known.

    Clicks an hour: LINKED 3.6, DEEP 7.2, SEED 1.8; FRESH has 100 that fade by half in 4 hours, LATER 50. `events` are
    changes: hours after the beginning, page, loss.
    """
    count = 6
    born = np.full(count, -np.inf)
    born[[FRESH, LATER]] = START_S + np.array([2.0, 5.0]) * HOUR_S
    hub_kind = np.full(count, NO_HUB, np.uint8)
    hub_kind[MAIN] = int(HubKind.MAIN_PAGE)
    rate = np.array([0.0, 3.6, 7.2, 1.8, 0.0, 0.0]) / HOUR_S
    profit = np.array([0.0, 0.0, 0.0, 0.0, 100.0, 50.0])
    at, page, loss = (np.array(column) for column in zip(*sorted(events), strict=True)) if events else ([], [], [])
    return HolisticWorld(
        name="hand",
        step_s=HOUR_S,
        measured_from_s=START_S,
        end_s=START_S + 2 * DAY_S,
        host=np.zeros(count, np.int64),
        group=np.zeros(count, np.int64),
        kind=np.full(count, int(UrlKind.PAGE), np.uint8),
        hub_kind=hub_kind,
        dated=np.zeros(count, np.bool_),
        born_s=born,
        base_per_s=rate,
        profit=profit,
        decay_per_s=np.where(profit > 0, np.log(2.0) / (4 * HOUR_S), 0.0),
        change_rate_per_s=np.full(count, 1.0 / DAY_S),
        change_loss=np.full(count, 0.5),
        event_at_s=START_S + np.asarray(at, np.float64) * HOUR_S,
        event_page=np.asarray(page, np.int64),
        event_loss=np.asarray(loss, np.float64),
        link_starts=np.array([0, 1, 2, 2, 2, 2, 2]),
        link_targets=np.array([LINKED, DEEP]),
        shows_starts=np.array([0, 2, 2, 2, 2, 2, 2]),
        shows_page=np.array([FRESH, LATER]),
        shown=shown,
        known_pages=np.array([MAIN, SEED]),
        fetched_pages=np.zeros(0, np.int64),
        warm_per_step=1.0,
        budgets=(10.0,),
        budget_pages=100,
    )
