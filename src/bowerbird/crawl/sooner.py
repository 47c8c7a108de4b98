"""The decision about one URL as one tree: its bid, the price, its host, its place, and what would bring it forward."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bowerbird.appraise.refresh.studied import span_text
from bowerbird.crawl.standing import Standing
from bowerbird.model.worth import count_in, worth_text

Node = dict[str, Any]
HOPELESS = 1000.0  # times: nobody expects a page to gain so much more


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What a decision depends on besides the bids."""

    kind: str  # of fetch
    unit: float  # clicks for a bid of 1; 0 where bids are not in clicks
    reserve: float
    rate_per_s: float | None  # the budget; None where there is none
    running: bool
    knows_robots: bool
    last_bid: float | None = None  # of the last fetch, in the unit of now
    #: by how much the budget would have to grow for the price to fall so far; None where that is not known
    grow: Callable[[float], float | None] = lambda _: None
    expected: float | None = None  # what the fetch gains by its cost, in the unit of bids; None: as much as it bids
    cost: float = 1.0  # of the fetch, in usual ones
    by_clicks: bool = True  # the scales between kinds rest on clicks: before any is known bids are told in units

    def worth(self, value: float) -> str:
        """A bid as people read it."""
        return worth_text(value, self.unit, self.by_clicks)

    def gain(self, standing: Standing) -> float:
        """What the fetch gains by its cost: not its bid where that goes by age, or stands at the floor."""
        return standing.value if self.expected is None else self.expected

    @property
    def noun(self) -> str:
        """What bids are."""
        if self.unit <= 0:
            return "bid"
        return "expected clicks" if self.by_clicks else "expected gain"


def tell_decision(bid: Node, standing: Standing, here: Circumstances, expected: dict[str, Any]) -> Node:
    """The tree of the bid, and beside it price, host, rank in line, and what would have to change."""
    sooner = tell_sooner(standing, here) if standing.value > 0 or expected["at"] else []
    what = f"{_count(len(sooner), 'thing')} to change" if sooner else "nothing would help"
    if expected["at"] and not sooner:
        what = "nothing to change: it is next"
    when = "no time" if standing.value > 0 else "never"
    if expected["at"]:
        when = f"in {span_text(expected['in_s'])}" if expected["in_s"] > 0 else "now"
    nodes = [
        bid,
        _tell_price(standing, here),
        _tell_host(standing, here),
        _tell_rank(standing),
        _node("to be fetched sooner", what, expected["why"] if not sooner else "", sooner),
    ]
    return _node(f"fetch ({here.kind})", when, expected["why"], nodes)


def tell_standing(standing: Standing, here: Circumstances) -> Node:
    """The same numbers for programs, in `unit`: as people read them."""
    times, noun = count_in(here.unit, here.by_clicks)
    now = standing.now
    return {
        "kind": here.kind,
        "unit_clicks": here.unit if here.unit > 0 else None,
        "by_clicks": here.unit > 0 and here.by_clicks,
        "unit": noun,
        "bid": standing.value * times,
        "gain": here.gain(standing) * here.cost * times,
        "cost": here.cost,
        "price": standing.price * times,
        "due_in_s": None if standing.due_at is None else max(standing.due_at - now, 0.0),
        "in_line": standing.ready,
        "place": standing.place if standing.is_ready else None,
        "better_bids": standing.place - 1,
        "hosts_in_line": standing.hosts_ready,
        "host_free_in_s": max(standing.host_free_at - now, 0.0),
        "before_it_on_host": standing.before_on_host,
        "host_price": standing.host_price * times,
        "sooner": [
            {"what": one["name"].removesuffix("_s"), "value": one["value"], "text": one["note"]}
            for one in (tell_sooner(standing, here) if standing.value > 0 or standing.due_at is not None else [])
        ],
    }


def tell_sooner(standing: Standing, here: Circumstances) -> list[Node]:
    """What keeps the URL from being fetched now, each with how much it is."""
    found: list[Node] = []
    if not here.running:
        found.append(_node("crawl", "not running", "no crawl runs: `bowerbird crawl` goes on with it"))
    if standing.value < standing.price:
        found += _tell_short(standing, here)
    if standing.held_until > standing.now:
        wait = standing.held_until - standing.now
        found.append(_node("wait_s", wait, f"after an error it is left alone for {span_text(wait)}"))
    if not here.knows_robots:
        found.append(_node("robots.txt", "not known", "the robots.txt of its host is fetched first"))
    if standing.host_free_at > standing.now:
        wait = standing.host_free_at - standing.now
        found.append(_node("host_s", wait, f"its host is busy for {span_text(wait)}"))
    if standing.value >= standing.price:
        found += _tell_line(standing, here)
    return found


def _tell_short(standing: Standing, here: Circumstances) -> list[Node]:
    """A bid below the price: more time, more gain, or a lower price."""
    found = []
    if standing.due_at is None:
        found.append(_node("time", "no help", "its bid does not reach this price by waiting"))
    else:
        wait = standing.due_at - standing.now
        found.append(_node("time_s", wait, f"{standing.due_why} in {span_text(wait)}"))
    gain = here.gain(standing)
    if 0 < gain < standing.price:  # else it gains enough, and its time has not come
        times, more = standing.price / gain, (standing.price - gain) * here.cost
        note = f"it would need {times:.3g} times the {here.noun} ({here.worth(more)} more)"
        if times > HOPELESS:
            note = f"no gain would do at this price: it is more than {HOPELESS:,.0f} times the {here.noun}"
        found.append(_node("gain", times, note))
    if here.rate_per_s is not None and here.reserve <= standing.value:
        grow = here.grow(standing.value)
        if grow is not None and grow > 1.0:
            note = f"the budget would have to be {grow:.3g} times as large: so much more is bid above it"
            found.append(_node("budget", grow, note))
    return found


def _tell_line(standing: Standing, here: Circumstances) -> list[Node]:
    """A bid that is good enough: those before it, at its host and in all."""
    found = []
    if standing.before_on_host:
        many = standing.before_on_host
        wait = many * standing.delay_s
        turn = f", one every {span_text(standing.delay_s)}: {span_text(wait)}" if standing.delay_s > 0 else ""
        note = f"{_count(many, 'better bid')} of its host first{turn}"
        gain = here.gain(standing)
        times = standing.host_price / gain if gain > 0 else HOPELESS
        if standing.host_price > standing.value and 1.0 < times < HOPELESS:
            note += f"; with {times:.3g} times the {here.noun} it would be the next there"
        found.append(_node("line of its host", many, note))
    elsewhere = standing.place - 1 - standing.before_on_host
    if elsewhere > 0 and here.rate_per_s is not None:
        wait = (standing.place - 1) / here.rate_per_s
        note = f"{_count(standing.place - 1, 'better bid')} first: {span_text(wait)}"
        found.append(_node("line", standing.place - 1, f"{note} at {here.rate_per_s:g} fetches a second"))
    if standing.place_unweighted < standing.place:
        note = f"its host's pages repeat others; if they did not, its place would be {standing.place_unweighted:,}"
        found.append(_node("weight of its host", standing.weight, note))
    return found


def _tell_price(standing: Standing, here: Circumstances) -> Node:
    note = "what a fetch must bid"
    if here.last_bid is not None:
        note += f"; the last one bid {here.worth(here.last_bid)}"
    if here.rate_per_s is None:
        note += "; there is no budget: it stays at the reserve"
    elif not here.running:
        note += "; no crawl runs: as it was last" if standing.price > here.reserve else "; no crawl runs: the reserve"
    elif standing.price <= here.reserve:
        note += "; the budget is not used up: it is the reserve"
    if here.unit <= 0:
        return _node("price", standing.price, note)
    if not here.by_clicks:
        return _node("price in units", standing.price, f"{note}; no click is known yet")
    return _node("price in clicks", standing.price * here.unit, note)


def _tell_host(standing: Standing, here: Circumstances) -> Node:
    wait = standing.host_free_at - standing.now
    value = "free" if wait <= 0 else f"busy for {span_text(wait)}"
    before = standing.before_on_host
    note = f"{_count(before, 'better bid')} of it first" if before else "no better bid of it"
    note += f"; its next turn costs {here.worth(standing.host_price)}"
    return _node("host", value, note)


def _tell_rank(standing: Standing) -> Node:
    of = f"{standing.ready:,} that have bid the price, of {_count(standing.hosts_ready, 'host')}"
    if standing.is_ready:
        return _node("rank in line", standing.place, f"among {of}")
    better = "each of them bids more" if standing.place > standing.ready else f"{standing.place - 1:,} of them bid more"
    return _node("rank in line", "not in line", f"before it are {of}{f'; {better}' if standing.ready else ''}")


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _node(name: str, value: float | str, note: str = "", children: list[Node] | None = None) -> Node:
    node: dict[str, Any] = {"name": name, "value": value}
    if note:
        node["note"] = note
    if children:
        node["children"] = children
    return node
