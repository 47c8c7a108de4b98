"""What is known of one URL besides its bid: its record, how its host is treated, and its last fetches."""

from __future__ import annotations

from typing import Any

import orjson

from bowerbird.crawl.hosts import WELL_KNOWN_SITEMAP, HostKeeper
from bowerbird.crawl.moments import clock_text
from bowerbird.crawl.seed_report import tell_seed
from bowerbird.crawl.settings import Settings
from bowerbird.model.outcome import Outcome
from bowerbird.model.url_state import FetchKind, UrlKind, UrlState
from bowerbird.model.worth import COUNTED_IN, UNITS, count_in
from bowerbird.schedule.politeness import HostGate
from bowerbird.store.repository import Repository

HISTORY_ROWS = 12
_COMMON = {*COUNTED_IN, "horizon_s"}
_FOR_THE_WATCH = {"gain", "part"}  # in units, by the cost; bids are told in clicks


def tell_host(
    repository: Repository, settings: Settings, gate: HostGate, host: int, url: str, now: float
) -> dict[str, Any]:
    """A host's manners and record, and whether it lets this URL be fetched."""
    hosts = repository.table.hosts
    rules = HostKeeper(repository, gate, settings).robots.rules(host, now)
    return {
        "origin": hosts.origins[host],
        "delay_s": gate.delay(host),
        "robots": "not fetched yet" if rules is None else ("allowed" if rules.allows(url) else "disallowed"),
        "robots_fetched": clock_text(float(hosts.columns["robots_at"][host])),
        "last_fetch": clock_text(float(hosts.columns["last_fetch"][host])),
        "ready_at": clock_text(max(float(gate.columns["ready_at"][host]), now)),
        "errors_in_a_row": int(hosts.columns["errors"][host]),
        "known": int(hosts.columns["known"][host]),
        "pages": int(hosts.columns["pages"][host]),
        "trap_score": round(float(hosts.trap_score()[host]), 3),
    }


def names_sitemap(repository: Repository, settings: Settings, host: int, url: str) -> bool:
    """Whether the robots.txt of the host that was read last names this sitemap."""
    hosts = repository.table.hosts
    keeper = HostKeeper(repository, HostGate(), settings)
    rules = keeper.robots.rules(host, float(hosts.columns["robots_at"][host]))
    return rules is not None and url in keeper.canonicaliser.resolve(hosts.origins[host] + "/", rules.sitemaps)


def tell_found(repository: Repository, settings: Settings, row: int, url: str, source: int, depth: int) -> str:
    """What led to a URL, in words; `source` and `depth` are as they were when it was found."""
    columns, hosts = repository.table.columns, repository.table.hosts
    if source >= 0:
        return f"on {repository.url(source)}"
    if columns["kind"][row] == UrlKind.PAGE or depth == 0:
        return "given by a person"
    host = int(columns["host"][row])
    well_known = url == hosts.origins[host] + WELL_KNOWN_SITEMAP
    if columns["kind"][row] == UrlKind.FEED or (well_known and not names_sitemap(repository, settings, host, url)):
        return "looked for at a well-known place"
    return "named in robots.txt"


def own_terms(terms: dict[str, Any]) -> dict[str, Any]:
    """What one decision rests on: without what all of its time have, what programs compare, and what says nothing.

    >>> own_terms({"by": "echo", "expected_found": 0.2, "bound": False, "unit": 0.5, "factor_hub": 1.1})
    {'by': 'echo', 'expected_found': 0.2}
    """
    return {
        name: value
        for name, value in terms.items()
        if value is not None
        and value is not False
        and name not in _COMMON | _FOR_THE_WATCH
        and not name.startswith("factor_")
    }


def tell_worth(bid: float, price: float, unit: float | None, by_clicks: bool) -> dict[str, Any]:
    """Bid and price as people count them, and what they are counted in."""
    times, noun = count_in(unit, by_clicks)
    return {"bid": bid * times, "price": price * times, "unit": noun}


def tell_past_worth(bid: float, price: float, terms: dict[str, Any], now: tuple[float, bool]) -> dict[str, Any]:
    """The same of an earlier decision, to be compared with others and with what is bid `now`, in that unit.

    What was decided before any click was known is in units of now, as long as none is; from then on in those of its
    time, which nothing can be compared with.

    >>> tell_past_worth(8.0, 2.0, {"unit": 0.5}, (0.1, True))
    {'bid': 4.0, 'price': 1.0, 'unit': 'clicks'}
    >>> tell_past_worth(8.0, 2.0, {"unit": 0.5, "by_clicks": False}, (0.25, False))
    {'bid': 16.0, 'price': 4.0, 'unit': 'units'}
    """
    then, (unit, by_clicks) = terms.get("unit"), now
    told = tell_worth(bid, price, then, terms.get("by_clicks", True))
    if not then or told["unit"] != UNITS:
        return told
    if unit > 0 and not by_clicks:
        return tell_worth(bid * then / unit, price * then / unit, unit, False)
    return {**told, "unit": f"{UNITS} of then"}


def tell_history(repository: Repository, row: int, unit: tuple[float, bool] = (0.0, False)) -> list[dict[str, Any]]:
    """The last decisions about a URL, newest first; `unit` is what is bid in now, and whether by clicks."""
    rows = repository.connection.execute(
        "SELECT fetched_at, kind, outcome, status, bid, price, terms, changed, resemblance, elapsed_s, wire_bytes,"
        " target, error FROM fetches WHERE url = ? ORDER BY id DESC LIMIT ?",
        (row, HISTORY_ROWS),
    ).fetchall()
    return [
        {
            "at": clock_text(at),
            "kind": FetchKind(kind).label,
            "outcome": Outcome(outcome).label,
            "status": status,
            "bid": bid,
            "price": price,
            "terms": orjson.loads(terms),
            "worth": tell_past_worth(bid, price, orjson.loads(terms), unit),
            "changed": bool(changed),
            "resemblance": resemblance,
            "elapsed_s": elapsed,
            "wire_bytes": wire,
            "redirects_to": repository.url(target) if target is not None else None,
            "error": error,
        }
        for at, kind, outcome, status, bid, price, terms, changed, resemblance, elapsed, wire, target, error in rows
    ]


def tell_record(repository: Repository, row: int, source: int) -> dict[str, Any]:
    """What is written down of a URL; `source` is what led to it."""
    columns, version = repository.table.columns, repository.version(row)
    original = None if version is None else version.duplicate_of
    return {
        "state": UrlState(int(columns["state"][row])).name.lower(),
        "kind": UrlKind(int(columns["kind"][row])).name.lower(),
        "depth": int(columns["depth"][row]),
        "near_depth": int(repository.table.near_depth[row]),
        "found_on": repository.url(source) if source >= 0 else None,
        "first_seen": clock_text(float(columns["first_seen"][row])),
        "last_fetched": clock_text(float(columns["last_fetched"][row])),
        "last_changed": clock_text(float(columns["last_changed"][row])),
        "fetches": int(columns["fetches"][row]),
        "changes": int(columns["changes"][row]),
        "in_links": int(columns["in_degree"][row]),
        "anchors": repository.anchors(row),
        "seed": tell_seed(repository.seed_study, row),
        "duplicate_of": None if original is None else repository.url(original),
    }
