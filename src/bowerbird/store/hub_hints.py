"""What feeds and sitemaps say of themselves: how often they are updated, and who would tell of updates (WebSub)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from bowerbird.store.connection import Connection, upsert


@dataclass(frozen=True, slots=True)
class HubHint:
    """The last that a feed or sitemap said; 0 and nothing where it does not."""

    url: int
    period_s: float = 0.0
    websub: str = ""


def write_hub_hints(connection: Connection, hints: Iterable[HubHint]) -> None:
    """Keep them; inside the caller's transaction. One that says nothing any more is removed."""
    for hint in hints:
        if hint.period_s or hint.websub:
            row = (hint.url, hint.period_s, hint.websub)
            connection.execute(upsert("hub_hints", "url, period_s, websub", "url"), row)
        else:
            connection.execute("DELETE FROM hub_hints WHERE url = ?", (hint.url,))


def read_hub_hints(connection: Connection, count: int) -> dict[int, HubHint]:
    """Of the first `count` URLs, by row."""
    rows = connection.execute("SELECT url, period_s, websub FROM hub_hints WHERE url < ?", (count,))
    return {int(url): HubHint(int(url), float(period_s), str(websub)) for url, period_s, websub in rows}
