"""Numbers for Prometheus. The names are documented in docs/metrics.md, and a test keeps that page complete."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from bowerbird.crawl.live import read_live
from bowerbird.crawl.measurements import read_quality
from bowerbird.model.outcome import Outcome
from bowerbird.model.url_state import FetchKind
from bowerbird.store.committed import CommittedState
from bowerbird.store.folder import CrawlFolder, WriterLock

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
CACHE_S = 5.0
LIVE_FOR_S = 10.0
QUALITY_WINDOW_S = 30 * 86400.0
disable_created_metrics()  # type: ignore[no-untyped-call]  # one more line a counter, which nobody reads

BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)


class Metrics:
    """What the service counts itself, and what it reads from the crawl when asked."""

    def __init__(self, folder: CrawlFolder, indexed: Callable[[], int]) -> None:
        self.registry = registry = CollectorRegistry()
        self.searches = Counter(
            "bowerbird_searches_total", "Searches answered, by where they came from", ["surface"], registry=registry
        )
        self.empty = Counter("bowerbird_searches_empty_total", "Searches that found nothing", registry=registry)
        self.seconds = Histogram(
            "bowerbird_search_seconds",
            "Time from a query's arrival to its answer, waiting included",
            buckets=BUCKETS_S,
            registry=registry,
        )
        self.impressions = Counter("bowerbird_impressions_total", "Results shown", registry=registry)
        self.clicks = Counter("bowerbird_clicks_total", "Results opened, each shown result once", registry=registry)
        self.written = Counter("bowerbird_events_written_total", "Events written to demand.db", registry=registry)
        self.dropped = Counter(
            "bowerbird_events_dropped_total", "Events lost: the queue was full, or demand.db refused", registry=registry
        )
        self.waiting = Gauge("bowerbird_events_waiting", "Events not yet written to demand.db", registry=registry)
        self.limited = Counter("bowerbird_rate_limited_total", "Requests refused by the rate limit", registry=registry)
        self.busy = Counter("bowerbird_busy_total", "Requests refused because too many waited", registry=registry)
        for surface in ("page", "api"):
            self.searches.labels(surface)
        registry.register(CrawlCollector(folder, indexed))

    def text(self) -> bytes:
        """The exposition."""
        return generate_latest(self.registry)


class CrawlCollector(Collector):
    """The crawl's counters by a few small queries, at most every few seconds; no column is loaded."""

    def __init__(self, folder: CrawlFolder, indexed: Callable[[], int], cache_s: float = CACHE_S) -> None:
        self.folder = folder
        self.indexed = indexed
        self.cache_s = cache_s
        self._lock = threading.Lock()
        self._read_at = float("-inf")
        self._families: list[Metric] = []

    def describe(self) -> Iterable[Metric]:
        """Nothing is read at registration."""
        return []

    def collect(self) -> Iterable[Metric]:
        """The families, from the last few seconds."""
        with self._lock:
            if time.monotonic() - self._read_at >= self.cache_s:
                self._families = self._read()
                self._read_at = time.monotonic()
            return self._families

    def _read(self) -> list[Metric]:
        state = CommittedState(self.folder)
        try:
            ask = state.connection.execute
            totals = ask("SELECT kind, outcome, fetches, wire_bytes FROM totals").fetchall()
            (urls,) = ask("SELECT max(id) FROM urls").fetchone()
            (hosts,) = ask("SELECT max(id) FROM hosts").fetchone()
            (last_fetch,) = ask("SELECT max(id) FROM fetches").fetchone()
            archive_bytes = sum(state.archive_ends().values())
            indexed_through = int(str(state.meta("indexed_through") or 0))
            live = read_live(state)
            now = state.connection.now()
        finally:
            state.close()
        frontier = live.get("frontier")  # nobody but a crawl changes it much: what the last one said still holds
        running = WriterLock.is_held(self.folder)
        if not running or now - float(live.get("at", 0)) > LIVE_FOR_S:
            live = {}
        fetches = CounterMetricFamily(
            "bowerbird_crawl_fetches", "Decisions of the crawl by kind of fetch and outcome", labels=("kind", "outcome")
        )
        wire = CounterMetricFamily(
            "bowerbird_crawl_wire_bytes", "Bytes that came over the network, by kind of fetch", labels=("kind",)
        )
        by_kind = dict.fromkeys(FetchKind, 0)
        for kind, outcome, count, size in totals:
            fetches.add_metric((FetchKind(kind).label, Outcome(outcome).label), count)
            by_kind[FetchKind(kind)] += size
        for kind, size in by_kind.items():
            wire.add_metric((kind.label,), size)
        return [
            fetches,
            wire,
            _gauge("crawl_running", "1 while a crawl writes to the folder", float(running)),
            _gauge("crawl_urls", "URLs known", 0 if urls is None else urls + 1),
            _gauge("crawl_hosts", "Hosts known", 0 if hosts is None else hosts + 1),
            _gauge("crawl_archive_bytes", "Bytes acknowledged in the archive", archive_bytes),
            _gauge("crawl_frontier_urls", "URLs known and never fetched, as a crawl last said", frontier),
            _gauge("crawl_pages_per_second", "Speed now; 0 when no crawl runs", live.get("pages_per_s", 0)),
            _gauge("crawl_in_flight", "Fetches under way", live.get("in_flight", 0)),
            _gauge("crawl_price", "What a fetch must be worth to be made now, while a crawl runs", live.get("price")),
            _gauge("index_documents", "Pages that can be found", self.indexed()),
            _gauge("index_behind", "Fetches not yet in the index", max(0, (last_fetch or 0) - indexed_through)),
            *self._quality(),
        ]

    def _quality(self) -> list[Metric]:
        measured = read_quality(self.folder, time.time() - QUALITY_WINDOW_S, limit=1)
        names = (
            ("quality", "Share of what searchers want that the repository gives, as last measured", "quality"),
            ("quality_low", "Lower end of its 95% interval", "low"),
            ("quality_high", "Upper end of its 95% interval", "high"),
        )
        families: list[Metric] = []
        for name, text, field in names:
            family = GaugeMetricFamily(f"bowerbird_{name}", text)
            for measurement in measured:
                family.add_metric((), getattr(measurement, field))
            families.append(family)
        return families


def _gauge(name: str, text: str, value: float | None) -> GaugeMetricFamily:
    """A gauge; without a value it is named, but absent: 0 would be a claim."""
    return GaugeMetricFamily(f"bowerbird_{name}", text, value=value)
