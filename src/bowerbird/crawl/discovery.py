"""New URLs from reports: dedupe by hash for a whole batch at once, then depth, traps, links, anchors and hints."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bowerbird.crawl.reading import unpack_lines
from bowerbird.crawl.report import Report
from bowerbird.model.url_state import UrlKind, UrlState
from bowerbird.store.links import OutLinks
from bowerbird.store.repository import Repository
from bowerbird.web.traps import PatternBudget, url_pattern

I64 = npt.NDArray[np.int64]

HUBS_PER_HOST = {int(UrlKind.FEED): 50, int(UrlKind.SITEMAP): 1000}


@dataclass(slots=True)
class Finding:
    """A report with links, and the row it came from."""

    row: int
    depth: int
    report: Report


class Discovery:
    """Adds what pages link to, within the bounds on traps."""

    def __init__(self, repository: Repository, patterns: PatternBudget, *, max_depth: int) -> None:
        self.repository = repository
        self.patterns = patterns
        self.max_depth = max_depth
        self.refused = 0  # URLs not taken because a bound was reached
        columns, origins = repository.table.columns, repository.table.hosts.origins
        self._hubs = Counter(
            (origins[columns["host"][row]], int(columns["kind"][row]))
            for row in np.flatnonzero(columns["kind"] != UrlKind.PAGE).tolist()
        )
        self.late_anchors: list[int] = []  # pages fetched before that got a new anchor text
        self._refused_hashes: list[int] = []

    def take(self, findings: Sequence[Finding], *, late: bool = False) -> tuple[I64, I64]:
        """Store the links of these pages; the rows added, and all rows that are linked (some more than once).

        Pages that come late may have been stored before: their links stand beside those that are known.
        """
        nothing = np.zeros(0, dtype=np.int64)
        if not findings:
            return nothing, nothing
        hashes = np.frombuffer(b"".join(finding.report.links.hashes for finding in findings), dtype=np.uint64)
        rows = self.repository.table.find(hashes)
        unknown = np.flatnonzero(rows < 0)
        added = nothing
        if len(unknown):
            added = self._add_named(findings, hashes, rows)
            rows[unknown] = self.repository.table.find(hashes[unknown])
        start = 0
        known = self.repository.all_links([finding.row for finding in findings])
        for finding in findings:
            end = start + finding.report.links.count
            self._keep_links(finding, rows[start:end], known.get(finding.row), late=late)
            start = end
        self._keep_anchors(findings, rows)
        return added, rows[rows >= 0]

    def take_refused(self) -> list[int]:
        """Hashes of URLs not taken since the last call: workers offer them again when they meet them again."""
        refused, self._refused_hashes = self._refused_hashes, []
        return refused

    def _add_named(self, findings: Sequence[Finding], hashes: npt.NDArray[np.uint64], rows: I64) -> I64:
        """Add the unknown URLs that are spelt out and pass the bounds."""
        urls: list[str] = []
        keys: list[int] = []
        kinds: list[int] = []
        depths: list[int] = []
        sources: list[int] = []
        times: list[float] = []
        seen: set[int] = set()
        start = 0
        for finding in findings:
            links = finding.report.links
            if links.named:
                places = np.frombuffer(links.named, dtype=np.uint32)
                lines = unpack_lines(links.urls, len(places))
                fresh = np.flatnonzero(rows[start + places] < 0)
                for nth, key in zip(fresh.tolist(), hashes[start + places[fresh]].tolist(), strict=True):
                    if key in seen:
                        continue
                    kind = links.kinds[places[nth]] if links.kinds else int(UrlKind.PAGE)
                    # the host itself vouches for the pages of its sitemaps; sitemaps in them are bounded as links are
                    listed = kind == UrlKind.PAGE and finding.report.media == "sitemap"
                    if not (listed or self._admits(lines[nth], finding.depth + 1, kind)):
                        self.refused += 1
                        self._refused_hashes.append(key)
                        continue
                    seen.add(key)
                    urls.append(lines[nth])
                    keys.append(key)
                    kinds.append(kind)
                    depths.append(finding.depth + 1)
                    sources.append(finding.row)
                    times.append(finding.report.fetched_at)  # by which the visit is known that led here
            start += links.count
        if not urls:
            return np.zeros(0, dtype=np.int64)
        _, added = self.repository.add_urls(
            urls,
            at=times,
            hashes=np.array(keys, dtype=np.uint64),
            kind=kinds,
            depth=depths,
            source=sources,
        )
        return added

    def _admits(self, url: str, depth: int, kind: int) -> bool:
        if depth > self.max_depth:
            return False
        if kind != UrlKind.PAGE:
            key = (url[: url.index("/", 8)], kind)
            self._hubs[key] += 1
            return self._hubs[key] <= HUBS_PER_HOST[kind]
        pattern = url_pattern(url)
        return pattern is None or self.patterns.admit(pattern)

    def _keep_links(self, finding: Finding, rows: I64, before: OutLinks | None, *, late: bool) -> None:
        """Store a page's links to known rows, and what it says of their modification times."""
        links = finding.report.links
        known = rows >= 0
        at = finding.report.fetched_at
        self.repository.record_links(finding.row, rows[known], at, more=late, before=before)
        if links.modified:
            stamps = np.frombuffer(links.modified, dtype=np.float64)
            for place in np.flatnonzero(known & (stamps > 0)).tolist():
                self.repository.record_hint(int(rows[place]), float(stamps[place]), at)

    def _keep_anchors(self, findings: Sequence[Finding], rows: I64) -> None:
        """Store the anchor texts that are news."""
        marks = np.frombuffer(b"".join(finding.report.links.marks for finding in findings), dtype=np.uint16)
        marked = np.flatnonzero(marks)
        if len(marked):
            blobs = [finding.report.links.anchors for finding in findings if any(finding.report.links.marks)]
            texts = unpack_lines(b"\n".join(blobs), len(marked))
            named = self.repository.record_anchors(rows[marked], marks[marked], texts)
            indexed = self.repository.table.columns["state"][named] == UrlState.FETCHED
            self.late_anchors.extend(named[indexed].tolist())
