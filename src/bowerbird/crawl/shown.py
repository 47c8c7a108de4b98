"""Which pages do searchers see most of? They are drawn by lot more often, for quality is won and lost there."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from bowerbird.crawl.demand_log import choose_visibility, open_demand
from bowerbird.crawl.settings import Settings
from bowerbird.demand.workload import build_workload
from bowerbird.index.tantivy_index import TantivyIndex
from bowerbird.model.errors import BowerbirdError
from bowerbird.store.folder import CrawlFolder

I64 = NDArray[np.int64]
QUERIES = 500
DEPTH = 50
SEEN_SHARE = 0.5  # of all that is seen, on the fewest pages
MOST = 0.25  # of the indexed pages
FIRST_AFTER_S = 10.0


def find_shown(folder: CrawlFolder, settings: Settings, now: float) -> I64:
    """The fewest pages that hold half of what searchers see, by the most frequent queries; best first."""
    with open_demand(folder, settings.demand, write=False) as log:
        workload = build_workload(log, now, QUERIES)
        visibility = choose_visibility(settings.demand, log)
    seen: dict[int, float] = {}
    with TantivyIndex.open(folder.index, write=False) as index:
        for query, frequency in enumerate(workload.frequency.tolist()):
            pages, _, _ = index.top_scores([workload.terms[term] for term in workload.terms_of(query)], DEPTH)
            views = visibility(np.arange(1, len(pages) + 1))
            for page, view in zip(pages.tolist(), views.tolist(), strict=True):
                seen[page] = seen.get(page, 0.0) + frequency * view
        most = int(index.count() * MOST)
    pages = np.array(sorted(seen, key=lambda page: -seen[page]), dtype=np.int64)
    share = np.cumsum([seen[page] for page in pages.tolist()])
    if not len(pages) or share[-1] <= 0:
        return pages[:0]
    return pages[: min(int(np.searchsorted(share, SEEN_SHARE * share[-1])) + 1, most)]


class ShownWatch:
    """Finds them anew every so often, in a thread of its own, while a crawl runs."""

    def __init__(self, folder: CrawlFolder, settings: Settings, tell: Callable[[I64], None]) -> None:
        self.folder = folder
        self.settings = settings
        self.tell = tell
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="shown", daemon=True)

    def look(self) -> None:
        """Find them once. A log or an index that cannot be read is no trouble: there will be another time."""
        try:
            self.tell(find_shown(self.folder, self.settings, time.time()))
        except (BowerbirdError, OSError, ValueError):
            return

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def close(self) -> None:
        """End."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(5.0)

    def _run(self) -> None:
        every_s = self.settings.quality.every_s
        wait_s = min(FIRST_AFTER_S, every_s)
        while not self._stop.wait(wait_s):
            self.look()
            wait_s = every_s
