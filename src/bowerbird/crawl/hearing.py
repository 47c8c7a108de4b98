"""What a running crawl hears of its searchers: their queries, their clicks, and the pages that they see most of.

Workload and clicks are columns of the Snapshot that every policy bids by. The pages seen most are drawn by lot more
often, for quality is won and lost there. With the answers to the queries, what a refresh gains can be measured.
"""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bowerbird.crawl.answered import ask_index
from bowerbird.crawl.demand_log import choose_visibility, open_demand
from bowerbird.crawl.settings import Settings
from bowerbird.demand.visibility import Visibility
from bowerbird.demand.workload import build_workload
from bowerbird.index.measuring import WordScoring
from bowerbird.index.scoring import field_frequencies
from bowerbird.index.tantivy_index import TantivyIndex
from bowerbird.model.errors import BowerbirdError
from bowerbird.model.workload import Workload
from bowerbird.quality.answers import LocalAnswers
from bowerbird.quality.measured_gains import GainBasis, make_basis
from bowerbird.store.folder import CrawlFolder

log = logging.getLogger(__name__)

I64 = NDArray[np.int64]
QUERIES = 500  # that tell which pages are seen most of
SEEN_DEPTH = 50
DEPTH = 300  # of an answer; the rest of it is taken to go on as it does there
AS_IT_IS_S = 3600.0  # one listening sees one state of the index
SEEN_SHARE = 0.5  # of all that is seen, on the fewest pages
MOST = 0.25  # of the indexed pages
MOST_CLICKED = 50_000  # pages whose clicks are heard of
FIRST_AFTER_S = 10.0


@dataclass(frozen=True, slots=True)
class Heard:
    """Demand at a time."""

    workload: Workload
    clicks: list[tuple[str, float]]  # by URL, decayed
    shown: I64  # rows of the pages seen most of
    basis: GainBasis | None  # by which gains of refreshes are measured; None without any demand


def listen(folder: CrawlFolder, settings: Settings, now: float) -> Heard:
    """Read the demand log, and ask the index what its most frequent queries bring up."""
    with open_demand(folder, settings.demand, write=False) as demand:
        workload = build_workload(demand, now, settings.quality.max_queries)
        visibility = choose_visibility(settings.demand, demand)
        clicks = sorted(demand.page_clicks(now), key=lambda page: -page[1])[:MOST_CLICKED]
    if not len(workload) or not workload.frequency.sum() > 0:
        return Heard(workload, clicks, np.zeros(0, dtype=np.int64), None)
    with TantivyIndex.open(folder.index, write=False, reload_every_s=AS_IT_IS_S) as index:
        pages, answers = hear_answers(index, workload)
        shown = find_shown(pages, workload.frequency, visibility, int(index.count() * MOST))
        scoring = WordScoring.bm25(index, workload.terms)
        holding = field_frequencies(index, workload.terms, ["text"])[0]
    return Heard(workload, clicks, shown, make_basis(workload, answers, visibility, scoring, holding))


def hear_answers(index: TantivyIndex, workload: Workload) -> tuple[list[I64], LocalAnswers]:
    """The first pages that the most frequent queries bring up, and the scores of every query's answer."""
    pages, scores, totals = [], [], []
    for query, (found, levels, total) in enumerate(ask_index(index, workload, DEPTH)):
        if query < QUERIES:
            pages.append(found[:SEEN_DEPTH].copy())
        scores.append(levels)
        totals.append(total)
    return pages, LocalAnswers.from_lists(scores, np.array(totals, dtype=np.int64))


def find_shown(answers: list[I64], frequency: NDArray[np.float64], visibility: Visibility, most: int) -> I64:
    """The fewest pages that hold half of what searchers see, best first; at most so many."""
    seen: dict[int, float] = {}
    for pages, often in zip(answers[:QUERIES], frequency.tolist(), strict=False):
        views = visibility(np.arange(1, min(len(pages), SEEN_DEPTH) + 1))
        for page, view in zip(pages.tolist(), views.tolist(), strict=False):
            seen[page] = seen.get(page, 0.0) + often * view
    pages = np.array(sorted(seen, key=lambda page: -seen[page]), dtype=np.int64)
    share = np.cumsum([seen[page] for page in pages.tolist()])
    if not len(pages) or share[-1] <= 0:
        return pages[:0]
    return pages[: min(int(np.searchsorted(share, SEEN_SHARE * share[-1])) + 1, most)]


class Hearing:
    """Listens anew every so often, in a thread of its own; the coordinator takes what was heard when it has time."""

    def __init__(self, folder: CrawlFolder, settings: Settings) -> None:
        self.folder = folder
        self.settings = settings
        self.failures = 0
        self._heard: Heard | None = None
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="hearing", daemon=True)

    def take(self) -> Heard | None:
        """What was heard since the last call, if anything."""
        with self._lock:
            heard, self._heard = self._heard, None
        return heard

    def look(self) -> None:
        """Listen once. A log or an index that cannot be read is no trouble: there will be another time."""
        try:
            heard = listen(self.folder, self.settings, time.time())
        except (BowerbirdError, OSError, ValueError):
            return
        except Exception as error:  # of whatever kind: a thread that ends here would never listen again
            self.failures += 1
            if self.failures == 1:
                log.warning("what searchers ask cannot be heard: %s: %s", type(error).__name__, error)
            return
        with self._lock:
            self._heard = heard

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
