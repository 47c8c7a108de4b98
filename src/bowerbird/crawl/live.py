"""What a running crawl leaves for those who look from outside, about once a second."""

from __future__ import annotations

from typing import Any

import orjson

from bowerbird.store.committed import CommittedState


def read_live(state: CommittedState) -> dict[str, Any]:
    """What a crawl told last; empty where none has run."""
    text = state.meta("live")
    told: dict[str, Any] = orjson.loads(str(text)) if text else {}
    return told


def price_in_clicks(live: dict[str, Any]) -> float:
    """What a fetch had to gain; 0 where bids were not in clicks."""
    return float(live.get("price", 0.0)) * float(live.get("unit", 0.0))
