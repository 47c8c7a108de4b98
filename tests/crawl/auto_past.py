"""A crawl folder that ran with `auto`: a past of hubs, the three studies, decisions in clicks, and a watch."""

from __future__ import annotations

from pathlib import Path

import orjson
from tests.crawl.hub_past import Past, make_past, urls

from bowerbird.appraise.policy import AUTO
from bowerbird.crawl.hub_study import make_hub_study
from bowerbird.crawl.refresh_study import make_refresh_study
from bowerbird.crawl.study import make_study
from bowerbird.crawl.watch_study import make_watch
from bowerbird.model.outcome import Outcome
from bowerbird.model.url_state import FetchKind, UrlState
from bowerbird.store.records import FetchRecord

UNIT = 0.5
PRICE = 4.0


def make_auto_past(root: Path, *, rate_per_s: float = 0.0, studies: bool = True) -> Past:
    """The policy is that of the settings; its journal ends with 40 decisions in clicks of each kind."""
    past = make_past(root, {"crawl": {"policy": AUTO, "rate_per_s": rate_per_s}})
    assert past.settings.crawl.policy == AUTO
    assert past.settings.crawl.rate_per_s == rate_per_s
    for nth, url in enumerate(urls("topic/late", 40)):
        row = past.add(url, past.now - 900)
        decide(past, row, FetchKind.NEW, nth, {"by": "informed", "units": 5.0, "basis": "study"})
        decide(past, row, FetchKind.REFRESH, nth, {"by": "user-centric", "basis": "study", "expected_gain": 0.001})
        feed = past.add("http://a.example/feed", past.now)
        decide(past, feed, FetchKind.HUB, nth, {"by": "echo", "basis": "study", "expected_found": 6.0})
    past.repository.commit()
    if studies:
        make_study(past.folder, past.settings, "informed", past.now)
        make_refresh_study(past.folder, past.settings, "user-centric", past.now)
        make_hub_study(past.folder, past.settings, "echo", past.now)
        make_watch(past.folder, past.settings, past.now)
    return past


def decide(past: Past, row: int, kind: FetchKind, nth: int, terms: dict[str, object]) -> None:
    """A decision of the last ten minutes: every other one bids little more than the price."""
    at = past.now - 600 + nth * 10.0
    bid = PRICE * (1.25 if nth % 2 else 10.0)
    told = orjson.dumps({**terms, "unit": UNIT, "by_clicks": False}).decode()  # no click is known
    record = FetchRecord(row, kind, at, bid, PRICE, told, at, Outcome.OK, UrlState.FETCHED, content_hash=int(at))
    past.repository.record(record)
