"""Times that lie in the future: a clock was ahead in an earlier run, and what it wrote must not hold up the crawl."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from bowerbird.store.columns import Columns
from bowerbird.store.url_table import UrlTable

SLACK_S = 60.0  # what is ahead by less passes by itself: a crawl may go on while somebody begins to look
MOMENT_S = 1.0  # ago: what is of this very moment bids nothing, and `next` would show an empty line
_PAGE_TIMES = ("first_seen", "last_fetched", "last_changed")
_HOST_TIMES = ("last_fetch", "robots_at")


def bring_back(table: UrlTable, now: float, host_wait_s: float, page_wait_s: float) -> int:
    """What lies in the future counts as now, and no wait lasts longer than the longest that is ever set.

    Returns how many URLs and hosts that was. The journal stays as it was written.
    """
    pages, hosts = table.columns, table.hosts
    late_pages = _lower(pages, dict.fromkeys(_PAGE_TIMES, now - MOMENT_S) | {"not_before": now + page_wait_s})
    late_hosts = _lower(hosts.columns, dict.fromkeys(_HOST_TIMES, now - MOMENT_S) | {"not_before": now + host_wait_s})
    hosts.dirty.update(late_hosts.tolist())
    return len(late_pages) + len(late_hosts)


def set_back_waits(table: UrlTable, was: float, by_s: float) -> None:
    """The clock was set back from `was`: what is left alone is so for as long as was meant, and no wait begins anew."""
    for columns in (table.columns, table.hosts.columns):
        waits = columns["not_before"]
        late = np.flatnonzero(waits > was - by_s)
        waits[late] = np.maximum(waits[late], was) - by_s  # whole seconds, of pages
        if columns is table.hosts.columns:
            table.hosts.dirty.update(late.tolist())


def _lower(columns: Columns, most: Mapping[str, float]) -> npt.NDArray[np.int64]:
    """Have no column anything beyond its most; the rows where one had."""
    beyond = np.zeros(columns.count, dtype=np.bool_)
    for name, time in most.items():
        late = columns[name] > time + SLACK_S
        columns[name][late] = time
        beyond |= late
    return np.flatnonzero(beyond)
