"""New URLs from reports: dedupe by hash for a whole batch at once, then depth, traps, links, anchors and hints."""

from __future__ import annotations

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
        findings = [finding for finding in findings if finding.report.links.count]
        if not findings:
            return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        hashes = np.frombuffer(b"".join(finding.report.links.hashes for finding in findings), dtype=np.uint64)
        rows = self.repository.table.find(hashes)
        added = self._add_unknown(findings, hashes, rows)
        start = 0
        for finding in findings:
            count = finding.report.links.count
            part = rows[start : start + count]
            start += count
            self._keep_links(finding, part)
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
                listed = finding.report.media == "sitemap"  # the host itself vouches for these
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
        links = finding.report.links
        known = rows >= 0
        targets = rows[known]
        at = finding.report.fetched_at
        # a page's own URLs are distinct, but two hashes can lead to one row only through a collision
        self.repository.record_links(finding.row, np.unique(targets), at)
        marks = np.frombuffer(links.marks, dtype=np.uint16)
        if marks.any():
            self.repository.record_anchors(rows, marks, _LazyLines(links.anchors, links.count))
        if links.modified:
            stamps = np.frombuffer(links.modified, dtype=np.float64)
            for place in np.flatnonzero(known & (stamps > 0)).tolist():
                self.repository.record_hint(int(rows[place]), float(stamps[place]))


class _LazyLines(Sequence[str]):
    """Anchor texts, decoded only when one of them is asked for: on most pages none is new."""

    def __init__(self, blob: bytes, count: int) -> None:
        self._blob = blob
        self._count = count
        self._lines: Sequence[str] | None = None

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, place):  # type: ignore[no-untyped-def]  # int and slice alike, as lists do
        if self._lines is None:
            self._lines = unpack_lines(self._blob, self._count)
        return self._lines[place]
