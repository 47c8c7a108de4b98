"""Worlds that are made: from a calm one of many old pages to one of breaking news. A seed makes each anew.

Hosts have a topic and a level of popularity. Old pages lie in directories; those of one change alike. Clicks are heavy
in the tail, and links hint at them without telling them: a page is linked to in proportion to a power of its clicks,
times chance. Most old pages are found through links only. New pages are announced by the feed, the main page or the
listings of their host, by day more than by night, and interest in them fades at a speed of their host.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bowerbird.lab.holistic_world import (
    BOOL,
    DAY_S,
    F64,
    HOUR_S,
    I64,
    NO_HUB,
    START_S,
    HolisticWorld,
)
from bowerbird.model.hub_study import HubKind
from bowerbird.model.url_state import UrlKind

LISTINGS = 2  # of each host
SHOWN = 30
DIRECTORIES = 6  # of each host
SEEDS = 120  # old pages known at the beginning
LINKED_POWER = 0.7  # of a page's clicks, that links go by
TOPICS = 8


@dataclass(frozen=True, slots=True)
class MadeSettings:
    """What tells one made world from another."""

    hosts: int = 30
    old_pages: int = 4000
    warm_days: float = 5.0
    days: float = 15.0  # measured, after the warm start
    old_clicks_per_day: float = 3500.0  # of all old pages together
    tail: float = 1.1  # clicks fall with the rank to this power
    silent: float = 0.4  # share of old pages that hardly anybody clicks
    never: float = 0.5  # share of directories whose pages do not change
    change_days: float = 8.0  # between changes of a page, median of those that change
    change_loss: float = 0.4  # of a page's clicks, mean
    new_per_day: float = 120.0
    new_clicks: float = 15.0  # of a new page over its life, mean
    half_life_hours: tuple[float, float] = (6.0, 240.0)  # from the fastest host to the slowest
    budgets: tuple[float, ...] = (2.0, 5.0, 15.0)  # % of the old pages a day


MADE = {
    "calm": MadeSettings(change_days=20.0, new_per_day=30.0, new_clicks=8.0, half_life_hours=(72.0, 720.0)),
    "mixed": MadeSettings(),
    "breaking": MadeSettings(
        change_days=8.0, new_per_day=350.0, new_clicks=15.0, half_life_hours=(2.0, 36.0), old_clicks_per_day=2500.0
    ),
}


DRAWN = "drawn"  # each seed another kind of world, to see whether what holds in the others holds at large


def draw_settings(seed: int) -> MadeSettings:
    """Settings by lot: most of them evenly by their logarithm, over ranges that the worlds above are well within."""
    rng = np.random.default_rng([seed, 31])

    def between(least: float, most: float) -> float:
        return float(least * (most / least) ** rng.random())

    fastest = between(1.0, 48.0)
    return MadeSettings(
        hosts=round(between(4.0, 120.0)),
        old_pages=round(between(1500.0, 6000.0)),
        old_clicks_per_day=between(300.0, 20_000.0),
        tail=float(rng.uniform(0.7, 1.5)),
        silent=float(rng.uniform(0.1, 0.7)),
        never=float(rng.uniform(0.0, 0.9)),
        change_days=between(1.0, 60.0),
        change_loss=float(rng.uniform(0.1, 0.8)),
        new_per_day=between(5.0, 800.0),
        new_clicks=between(2.0, 60.0),
        half_life_hours=(fastest, fastest * between(1.5, 40.0)),
        budgets=(1.0, 4.0, 20.0),
    )


def make_world(name: str, settings: MadeSettings, seed: int) -> HolisticWorld:
    """One world: the same settings and seed make the same."""
    rng = np.random.default_rng([seed, len(name), settings.old_pages])
    hosts, old = settings.hosts, settings.old_pages
    level = rng.lognormal(0.0, 0.8, hosts)
    topic = rng.integers(0, TOPICS, hosts)
    size = rng.lognormal(0.0, 0.7, hosts)
    # pages: hubs of each host (main page, feed, listings), then old pages, then new ones
    per_host = 2 + LISTINGS
    hubs = hosts * per_host
    hub_host = np.repeat(np.arange(hosts), per_host)
    hub_kind = np.tile(np.array([HubKind.MAIN_PAGE, HubKind.FEED] + [HubKind.LISTING] * LISTINGS, np.uint8), hosts)
    old_host = np.sort(rng.choice(hosts, old, p=size / size.sum()))
    old_group = old_host * DIRECTORIES + rng.integers(0, DIRECTORIES, old)
    clicks = _draw_clicks(rng, settings, old_host, old_group, level)
    new = _draw_new(rng, settings, level)
    count = hubs + old + len(new.host)
    everyone = np.concatenate([hub_host, old_host, new.host])
    rate, loss = _draw_changes(rng, settings, old_group, hosts)
    change_rate, change_loss = np.zeros(count), np.zeros(count)
    change_rate[hubs : hubs + old], change_loss[hubs : hubs + old] = rate, loss
    end_s = START_S + (settings.warm_days + settings.days) * DAY_S
    events = _draw_events(rng, change_rate, change_loss, end_s)
    starts, targets = _draw_links(rng, everyone, topic, hubs, old, clicks, new.born_s, per_host)
    shows_starts, shows_page = _announce(rng, new, hubs + old, count, hosts, per_host)
    born = np.full(count, -np.inf)
    born[hubs + old :] = new.born_s
    base, profit, decay = np.zeros(count), np.zeros(count), np.zeros(count)
    base[hubs : hubs + old] = clicks / DAY_S
    profit[hubs + old :], decay[hubs + old :] = new.profit, new.decay_per_s
    kind = np.full(count, int(UrlKind.PAGE), np.uint8)
    kind[:hubs][hub_kind == HubKind.FEED] = int(UrlKind.FEED)
    dated = np.zeros(count, np.bool_)
    dated[hubs + old :] = True
    seeds = hubs + rng.choice(old, min(SEEDS, old), replace=False)
    group = np.full(count, hosts * DIRECTORIES, np.int64) + everyone  # hubs, and new pages below
    group[hubs : hubs + old] = old_group
    group[hubs + old :] += hosts
    return HolisticWorld(
        name=name,
        step_s=HOUR_S,
        measured_from_s=START_S + settings.warm_days * DAY_S,
        end_s=end_s,
        host=everyone,
        group=group,
        kind=kind,
        hub_kind=np.concatenate([hub_kind, np.full(count - hubs, NO_HUB, np.uint8)]).astype(np.uint8),
        dated=dated,
        born_s=born,
        base_per_s=base,
        profit=profit,
        decay_per_s=decay,
        change_rate_per_s=change_rate,
        change_loss=change_loss,
        event_at_s=events[0],
        event_page=events[1],
        event_loss=events[2],
        link_starts=starts,
        link_targets=targets,
        shows_starts=shows_starts,
        shows_page=shows_page,
        shown=SHOWN,
        known_pages=np.concatenate([np.flatnonzero(hub_kind == HubKind.MAIN_PAGE), np.sort(seeds)]),
        fetched_pages=np.zeros(0, np.int64),
        warm_per_step=0.05 * old / 24.0,
        budgets=settings.budgets,
        budget_pages=old,
    )


@dataclass(frozen=True, slots=True)
class _New:
    """New pages in the order of their birth."""

    host: I64
    born_s: F64
    profit: F64
    decay_per_s: F64


def _draw_clicks(rng: np.random.Generator, settings: MadeSettings, host: I64, group: I64, level: F64) -> F64:
    """Clicks a day by old page: Zipf-like, more of them on popular hosts and directories, many hardly any."""
    count = len(host)
    liked = level[host] * rng.lognormal(0.0, 0.5, int(group.max()) + 1)[group] * rng.lognormal(0.0, 1.0, count)
    rank = np.empty(count)
    rank[np.argsort(-liked)] = np.arange(1, count + 1)
    clicks = rank**-settings.tail
    clicks[rng.random(count) < settings.silent] *= 0.02
    return np.asarray(clicks / clicks.sum() * settings.old_clicks_per_day)


def _draw_new(rng: np.random.Generator, settings: MadeSettings, level: F64) -> _New:
    hosts = len(level)
    often = level * rng.lognormal(0.0, 0.8, hosts)
    span = settings.warm_days + settings.days
    count = int(rng.poisson(settings.new_per_day * span))
    host = rng.choice(hosts, count, p=often / often.sum())
    # by day more than by night: times are thinned by a daily wave
    day = np.floor(rng.random(count) * span)
    hour = rng.random(4 * count) * 24.0
    hour = hour[rng.random(4 * count) < 0.55 - 0.45 * np.cos((hour - 3.0) / 24.0 * 2.0 * np.pi)][:count]
    born = np.sort(START_S + np.minimum(day * DAY_S + hour * HOUR_S, span * DAY_S - 1.0))
    low, high = np.log(settings.half_life_hours)
    life = np.exp(rng.uniform(low, high, hosts)) * HOUR_S
    worth = level**0.5 * rng.lognormal(0.0, 0.5, hosts)
    profit = worth[host] * rng.lognormal(0.0, 1.0, count)
    return _New(host, born, profit / profit.mean() * settings.new_clicks, (np.log(2.0) / life)[host])


def _draw_changes(rng: np.random.Generator, settings: MadeSettings, group: I64, hosts: int) -> tuple[F64, F64]:
    """By old page changes a second and the share of its clicks that one costs."""
    groups = hosts * DIRECTORIES
    moving = rng.random(groups) >= settings.never
    usual = rng.lognormal(0.0, 1.0, groups) / (settings.change_days * DAY_S)
    rate = np.where(moving[group], usual[group] * rng.lognormal(0.0, 0.5, len(group)), 0.0)
    mean = settings.change_loss
    return np.minimum(rate, 1.0 / (6 * HOUR_S)), rng.beta(4.0 * mean, 4.0 * (1.0 - mean), len(group))


def _draw_events(rng: np.random.Generator, rate: F64, loss: F64, end_s: float) -> tuple[F64, I64, F64]:
    many = rng.poisson(rate * (end_s - START_S))
    page = np.repeat(np.arange(len(rate)), many)
    at = START_S + rng.random(len(page)) * (end_s - START_S)
    order = np.argsort(at, kind="stable")
    return at[order], page[order], loss[page[order]]


def _draw_links(
    rng: np.random.Generator,
    host: I64,
    topic: I64,
    hubs: int,
    old: int,
    clicks: F64,
    new_born: F64,
    per_host: int,
) -> tuple[I64, I64]:
    """Links by page: mostly to old pages of the same host or topic; main pages also to the hubs of their host."""
    count = len(host)
    draw = (clicks + clicks.mean() * 0.05) ** LINKED_POWER * rng.lognormal(0.0, 0.5, old)
    old_host = host[hubs : hubs + old]
    many = 3 + rng.geometric(0.14, count)
    main = np.arange(0, hubs, per_host)
    many[:hubs] = 0
    many[main] = 25
    many[hubs + old :] = 4
    source = np.repeat(np.arange(count), many)
    target = np.empty(len(source), np.int64)
    where = rng.random(len(source))
    for places, part in (
        (where < 0.7, old_host),
        ((where >= 0.7) & (where < 0.9), topic[old_host]),
        (where >= 0.9, np.zeros(old, np.int64)),
    ):
        wanted = host[source] if part is old_host else (topic[host[source]] if part.any() else np.zeros_like(source))
        for label in np.unique(part):
            mine = np.flatnonzero(places & (wanted == label))
            pool = np.flatnonzero(part == label)
            weight = np.cumsum(draw[pool])
            target[mine] = hubs + pool[np.searchsorted(weight, rng.random(len(mine)) * weight[-1], side="right")]
        # a host without old pages links to any
        lost = np.flatnonzero(places & ~np.isin(wanted, np.unique(part)))
        target[lost] = hubs + rng.integers(0, old, len(lost))
    extra_source = np.repeat(main, per_host - 1)
    extra_target = np.setdiff1d(np.arange(hubs), main)
    source, target = np.concatenate([source, extra_source]), np.concatenate([target, extra_target])
    keep = source != target
    pairs = np.unique(source[keep] * count + target[keep])
    starts = np.searchsorted(pairs // count, np.arange(count + 1)).astype(np.int64)
    return starts, (pairs % count).astype(np.int64)


def _announce(
    rng: np.random.Generator, new: _New, first: int, count: int, hosts: int, per_host: int
) -> tuple[I64, I64]:
    """What each hub announces: feeds all but some, main pages the better half, each listing a part."""
    total = len(new.host)
    page = first + np.arange(total)
    above = new.profit * rng.lognormal(0.0, 0.7, total)
    median = np.median(above) if total else 0.0
    feed_share = rng.uniform(0.5, 1.0, hosts)
    on_main: BOOL = (above > median) & (rng.random(total) < 0.9)
    on_feed: BOOL = rng.random(total) < feed_share[new.host]
    listing = rng.integers(0, per_host - 2, total)
    on_listing = (rng.random(total) < 0.6) | ~(on_main | on_feed)
    hub = np.concatenate(
        [
            new.host[on_main] * per_host,
            new.host[on_feed] * per_host + 1,
            new.host[on_listing] * per_host + 2 + listing[on_listing],
        ]
    )
    shown = np.concatenate([page[on_main], page[on_feed], page[on_listing]])
    order = np.lexsort((shown, hub))  # pages are numbered in the order of their birth
    starts = np.searchsorted(hub[order], np.arange(count + 1)).astype(np.int64)
    return starts, shown[order].astype(np.int64)
