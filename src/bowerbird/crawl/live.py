"""What a running crawl leaves for those who look from outside, about once a second."""

from __future__ import annotations

from typing import Any

import orjson

from bowerbird.crawl.settings import Settings
from bowerbird.store.committed import CommittedState


def read_live(state: CommittedState) -> dict[str, Any]:
    """What a crawl told last; empty where none has run."""
    text = state.meta("live")
    told: dict[str, Any] = orjson.loads(str(text)) if text else {}
    return told


def read_speed(state: CommittedState) -> float | None:
    """Fetches a second of the last run that fetched, as it told last where it was killed.

    0 where no run fetched anything, None before there was one.
    """
    speed: float | None = None
    runs = state.connection.execute("SELECT started_at, ended_at, fetched FROM runs ORDER BY id DESC")
    live = read_live(state)
    for nth, (began, ended, fetched) in enumerate(runs):
        if ended is not None and fetched:
            return float(fetched) / max(float(ended) - float(began), 1e-9)
        if nth == 0 and ended is None and float(live.get("at", 0.0)) >= began and live.get("fetched"):
            return float(live["fetched"]) / max(float(live.get("elapsed_s", 0.0)), 1e-9)
        speed = 0.0
    return speed


def price_in_clicks(live: dict[str, Any]) -> float:
    """What a fetch had to gain; 0 where bids were not in clicks."""
    return float(live.get("price", 0.0)) * float(live.get("unit", 0.0))


def tell_rates(settings: Settings, of_settings: float | None = None) -> dict[str, float]:
    """The budget of a run, 0 where there is none, beside the one that bowerbird.toml had when it began."""
    rate = settings.crawl.rate_per_s
    return {"rate_per_s": rate, "rate_of_settings": rate if of_settings is None else of_settings}


def read_rate(live: dict[str, Any], of_settings: float, *, running: bool) -> float | None:
    """The budget of the crawl that runs, else of its last run; that of the settings where they changed since.

    None where there is none.

    >>> live = {"rate_per_s": 6.0, "rate_of_settings": 0.0}
    >>> read_rate(live, 0.0, running=False), read_rate(live, 2.0, running=False), read_rate(live, 2.0, running=True)
    (6.0, 2.0, 6.0)
    """
    told = live.get("rate_per_s")
    if told is None or (not running and live.get("rate_of_settings") != of_settings):
        return of_settings or None
    return float(told) or None
