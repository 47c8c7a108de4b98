"""The clairvoyant bound of a holistic world: no policy with the same budget can gain more.

Somebody who knows all changes and clicks to come, and all pages without looking for them, would still have to choose
when to fetch what. Give each fetch a price that hangs on the time only: then every page has its own best plan, worked
out alone. Its clicks net of prices, summed up over pages, and the budget at these prices are together at least what any
policy gets (weak duality), whatever the prices are. The lowest of these bounds is sought.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bowerbird.lab.holistic_bound_kernels import plan_pages
from bowerbird.lab.holistic_crawl import HolisticCrawl
from bowerbird.lab.holistic_world import F64, I64, HolisticWorld
from bowerbird.model.url_state import UrlState

WINDOWS = 40  # of time, each with a price of its own
ROUNDS = 150
PATIENCE = 40  # rounds without a lower bound
FIRST_STEP, LAST_STEP = 0.5, 0.03  # of the logarithm of a price


@dataclass(frozen=True, slots=True)
class Moments:
    """When fetches can be worth their price: where a page appears or has changed, and where a window begins."""

    starts: I64
    window: I64
    kept_by: F64
    left: F64
    kept_first: F64


def bound_clicks(warm: HolisticCrawl, budget: float) -> float:
    """[BEYOND] min over prices of sum_i max_plan (clicks_i - sum price) + sum price·budget: at least any policy's."""
    world = warm.world
    steps = world.steps - world.warm_steps
    windows = min(WINDOWS, steps)
    begins = np.arange(windows) * steps // windows
    moments = list_moments(warm, begins)
    per_window = world.fetches_per_step(budget) * np.diff(np.append(begins, steps))
    lowest, since = np.inf, 0
    price = np.full(windows, _constant_price(moments, per_window))
    for turn in range(ROUNDS):
        fetches = np.zeros(windows)
        saved = float(np.maximum(np.diff(price), 0.0).sum())  # a part of a fetch goes over into the next window
        bound = plan_all(moments, price, fetches) + float(price @ per_window) + saved
        since = 0 if bound < lowest * (1.0 - 1e-5) else since + 1
        lowest = min(lowest, bound)
        if since >= PATIENCE:
            break
        step = FIRST_STEP * (LAST_STEP / FIRST_STEP) ** (turn / ROUNDS)
        excess = (fetches - per_window) / (fetches + per_window)
        price *= np.exp(step * excess)
    return float(lowest)


def plan_all(moments: Moments, price: F64, fetches: F64) -> float:
    """Clicks of all pages less the prices of their fetches, which are added to `fetches` by window."""
    return float(
        plan_pages(
            moments.starts,
            moments.window,
            moments.kept_by,
            moments.left,
            moments.kept_first,
            price,
            fetches,
        )
    )


def _constant_price(moments: Moments, per_window: F64) -> float:
    """One price for all windows, at which about the whole budget is spent."""
    low, high = 1e-9, float(moments.left.max(initial=1e-6)) + 1.0
    for _ in range(30):
        middle = float(np.sqrt(low * high))
        fetches = np.zeros(len(per_window))
        plan_all(moments, np.full(len(per_window), middle), fetches)
        low, high = (middle, high) if fetches.sum() > per_window.sum() else (low, middle)
    return high


def list_moments(warm: HolisticCrawl, begins: I64) -> Moments:
    """By page, ascending in time. A window's price does not move: within it the earliest moment is the best."""
    world = warm.world
    steps = world.steps - world.warm_steps
    count = world.count
    rows = warm.row_of
    fetched = rows >= 0
    fetched[fetched] = warm.columns.state[rows[fetched]] == UrlState.FETCHED
    kept_first = np.where(fetched, warm.kept[np.maximum(rows, 0)], 0.0)
    born = np.maximum(step_of(world, world.born_s), 0)
    later = world.event_at_s > warm.now
    event_page, event_step = world.event_page[later], step_of(world, world.event_at_s[later])
    page = np.concatenate([np.repeat(np.arange(count), len(begins)), np.arange(count), event_page])
    step = np.concatenate([np.tile(begins, count), born, event_step])
    log_kept = np.concatenate([np.zeros(count * (len(begins) + 1)), np.log1p(-world.event_loss[later].clip(0, 1))])
    use = (step >= born[page]) & (step < steps)
    page, step, log_kept = page[use], step[use], log_kept[use]
    key, inverse = np.unique(page * steps + step, return_inverse=True)
    kept_by = np.exp(np.bincount(inverse, log_kept, len(key)))
    page, step = key // steps, key % steps
    return Moments(
        starts=np.searchsorted(page, np.arange(count + 1)).astype(np.int64),
        window=(np.searchsorted(begins, step, side="right") - 1).astype(np.int64),
        kept_by=kept_by,
        left=world.clicks_left(page, warm.now + step * world.step_s),
        kept_first=kept_first,
    )


def step_of(world: HolisticWorld, at_s: F64) -> I64:
    """The measured step from whose beginning on something at this time shows; below 0: before the first."""
    since = (np.maximum(at_s, world.measured_from_s - 1.0) - world.measured_from_s) / world.step_s
    return np.asarray(np.ceil(since - 1e-9), np.int64)
