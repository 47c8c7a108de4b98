"""New URLs from reports: dedupe by hash for a whole batch at once, then depth, traps, links, anchors and hints."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bowerbird.crawl.reading import unpack_lines
from bowerbird.crawl.report import Report
from bowerbird.model.url_state import UrlKind
from bowerbird.store.repository import Repository
from bowerbird.web.traps import PatternBudget, url_pattern

I64 = npt.NDArray[np.int64]


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

    def take(self, findings: Sequence[Finding]) -> tuple[I64, I64]:
        """Store the links of these pages; the rows added, and all rows that got another in-link."""
        if not findings:
            return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        hashes = np.frombuffer(b"".join(finding.report.links.hashes for finding in findings), dtype=np.uint64)
        rows = self.repository.table.find(hashes)
        added = self._add_unknown(findings, hashes, rows)
        start = 0
        for finding in findings:
            end = start + finding.report.links.count
            self._keep_links(finding, rows[start:end])
            start = end
        marks = np.frombuffer(b"".join(finding.report.links.marks for finding in findings), dtype=np.uint16)
        self.repository.record_anchors(rows, marks, _AnchorTexts(findings))
        return added, np.unique(rows[rows >= 0])

    def _add_unknown(self, findings: Sequence[Finding], hashes: npt.NDArray[np.uint64], rows: I64) -> I64:
        unknown = np.flatnonzero(rows < 0)
        if not len(unknown):
            return unknown
        ends = np.cumsum([finding.report.links.count for finding in findings])
        urls: list[str] = []
        places: list[int] = []
        kinds: list[int] = []
        depths: list[int] = []
        sources: list[int] = []
        seen: dict[int, bool] = {}
        lines: Sequence[str] = ()
        current = -1
        for place, owner in zip(unknown.tolist(), np.searchsorted(ends, unknown, side="right").tolist(), strict=True):
            finding = findings[owner]
            links = finding.report.links
            if owner != current:
                lines = unpack_lines(links.urls, links.count)
                current = owner
            key = int(hashes[place])
            offset = place - (int(ends[owner]) - links.count)
            admitted = seen.get(key)
            if admitted is None:
                kind = links.kinds[offset] if links.kinds else UrlKind.PAGE
                # the host itself vouches for the pages of its sitemaps; sitemaps in sitemaps are bounded as links are
                listed = kind == UrlKind.PAGE and finding.report.media == "sitemap"
                admitted = listed or self._admits(lines[offset], finding.depth + 1, kind)
                seen[key] = admitted
                if not admitted:
                    self.refused += 1
            if admitted:
                urls.append(lines[offset])
                places.append(place)
                kinds.append(links.kinds[offset] if links.kinds else 0)
                depths.append(finding.depth + 1)
                sources.append(finding.row)
        if not places:
            return unknown[:0]
        at = findings[0].report.fetched_at
        got, added = self.repository.add_urls(
            urls, at=at, hashes=hashes[places], kind=kinds, depth=depths, source=sources
        )
        rows[places] = got
        return added

    def _admits(self, url: str, depth: int, kind: int) -> bool:
        if depth > self.max_depth:
            return False
        if kind != UrlKind.PAGE:
            return True
        pattern = url_pattern(url)
        return pattern is None or self.patterns.admit(pattern)

    def _keep_links(self, finding: Finding, rows: I64) -> None:
        """Store a page's links to known rows, and what it says of their modification times."""
        links = finding.report.links
        known = rows >= 0
        self.repository.record_links(finding.row, rows[known], finding.report.fetched_at)
        if links.modified:
            stamps = np.frombuffer(links.modified, dtype=np.float64)
            for place in np.flatnonzero(known & (stamps > 0)).tolist():
                self.repository.record_hint(int(rows[place]), float(stamps[place]))


class _AnchorTexts(Sequence[str]):
    """The anchor texts of a batch, decoded only when asked for: most pages bring no new ones."""

    def __init__(self, findings: Sequence[Finding]) -> None:
        self._findings = findings
        self._ends = np.cumsum([finding.report.links.count for finding in findings]).tolist()
        self._lines: dict[int, Sequence[str]] = {}

    def __len__(self) -> int:
        return int(self._ends[-1])

    def __getitem__(self, place):  # type: ignore[no-untyped-def]  # only ever asked for one place
        owner = bisect_right(self._ends, place)
        links = self._findings[owner].report.links
        if owner not in self._lines:
            self._lines[owner] = unpack_lines(links.anchors, links.count)
        return self._lines[owner][place - (self._ends[owner] - links.count)]
