"""What a report means for a URL: its next state, when to look again, what the index must do."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from bowerbird.appraise.policy import Policy
from bowerbird.crawl.discovery import Discovery, Finding
from bowerbird.crawl.report import Report
from bowerbird.crawl.settings import Settings
from bowerbird.index.protocol import Document
from bowerbird.model.outcome import Outcome
from bowerbird.model.url_state import FetchKind, UrlKind, UrlState
from bowerbird.model.validators import compare_validators
from bowerbird.page.dates import parse_date
from bowerbird.page.media import Media
from bowerbird.page.shingles import NearDuplicates, resemblance
from bowerbird.schedule.leases import Lease
from bowerbird.store.hub_hints import HubHint
from bowerbird.store.records import FetchRecord, Version
from bowerbird.store.repository import MOST_AHEAD_S, Repository
from bowerbird.web.retry import LONGEST_S, backoff_s
from bowerbird.web.traps import PatternBudget, url_pattern
from bowerbird.web.url import host_of, split_words

I64 = npt.NDArray[np.int64]
FIRST_DATE_S = 631_152_000.0  # 1990
SPREAD = 4.0  # times its wait, at most, that a page waits whose worker was lost
LONGEST_WAIT_S = SPREAD * LONGEST_S
SOURCES = (Media.FEED.value, Media.SITEMAP.value)


@dataclass(slots=True)
class IndexChange:
    """One thing the index must do: add (or replace) a page, or remove it."""

    page: int
    document: Document | None
    replace: bool = False
    at: float = math.nan  # of a refresh that found the page changed or gone: when it was
    since: float = math.nan  # and when the fetch before was

    @property
    def refreshed(self) -> bool:
        """Is it what a refresh brought? Else its gain is not measured."""
        return not math.isnan(self.since)


@dataclass(slots=True)
class Taken:
    """What a batch of reports changed."""

    fetched: list[int] = field(default_factory=list)
    added: I64 = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    touched: I64 = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    index: list[IndexChange] = field(default_factory=list)


class Intake:
    """Applies reports to the repository."""

    def __init__(self, repository: Repository, policy: Policy, settings: Settings) -> None:
        self.repository = repository
        self.policy = policy
        self.settings = settings
        traps = settings.traps
        self.patterns = PatternBudget(traps.urls_per_pattern, traps.growth_per_novel_page)
        self.patterns.restore(repository.connection.execute("SELECT id, found, novel, duplicate FROM patterns"))
        self.duplicates = NearDuplicates(threshold=traps.near_duplicate_at)
        self.discovery = Discovery(repository, self.patterns, max_depth=settings.crawl.max_depth)
        self.rng = random.Random(repository.table.seed)
        self._redirect_rows: list[int] = []
        self._remember_sketches()

    def _remember_sketches(self) -> None:
        """Near-duplicates of pages fetched before this run are found too (the most recent ones)."""
        recent = self.repository.connection.execute(
            "SELECT url, sketch FROM versions WHERE sketch IS NOT NULL AND duplicate_of IS NULL"
            " ORDER BY url DESC LIMIT 60000"
        ).fetchall()
        for url, sketch in reversed(recent):
            self.duplicates.find(bytes(sketch), int(url))

    def take(self, answers: Sequence[tuple[Lease, Report]], now: float) -> Taken:
        """Apply a batch of answers."""
        taken = Taken()
        findings: list[Finding] = []
        columns = self.repository.table.columns
        for lease, report in answers:
            # a person may have removed it while it was being fetched
            forgotten = columns["state"][lease.row] == UrlState.FORGOTTEN
            if report.links.count and (forgotten or report.outcome is not Outcome.OK):
                # the page is not taken, but its worker counts its links as told
                findings.append(Finding(lease.row, int(columns["depth"][lease.row]), report))
            if forgotten:
                continue
            record = self._record(lease, report, now, taken, findings)
            self.repository.record(record)
            taken.fetched.append(lease.row)
        added, touched = self.discovery.take(findings)
        taken.added = np.union1d(added, np.array(self._redirect_rows, dtype=np.int64))
        self._redirect_rows.clear()
        taken.touched = touched
        changed = self.patterns.changed()
        if changed:
            self.repository.record_patterns(changed)
        return taken

    def _record(self, lease: Lease, report: Report, now: float, taken: Taken, findings: list[Finding]) -> FetchRecord:
        columns = self.repository.table.columns
        row = lease.row
        state = UrlState(int(columns["state"][row]))
        record = FetchRecord(
            row,
            lease.kind,
            lease.decided_at,
            lease.bid,
            lease.price,
            lease.terms,
            report.fetched_at,
            report.outcome,
            state,
            report.elapsed_s,
            report.status,
            report.wire_bytes,
            interval_s=float(columns["interval_s"][row]),
            error=report.error or None,
        )
        if report.place is not None:
            record.file = self.repository.archive_file(report.place.file)
            record.offset, record.length = report.place.offset, report.place.length
            self.repository.note_archive_end(record.file, report.place.end)
        if report.outcome is Outcome.OK:
            self._page(record, report, taken, findings)
        elif report.outcome is Outcome.NOT_MODIFIED:
            record.state = UrlState.FETCHED
            record.interval_s = self.policy.refresh.next_interval_s(record.interval_s, changed=False)
        elif report.outcome is Outcome.REDIRECT:
            self._redirect(record, report, taken)
        elif report.outcome.transient:
            self._try_again(record, report, now, state)
        else:
            record.state = UrlState.GONE if report.outcome is Outcome.GONE else UrlState.FAILED
            self._drop(record, state, taken)
        return record

    def _page(self, record: FetchRecord, report: Report, taken: Taken, findings: list[Finding]) -> None:
        repository = self.repository
        columns = repository.table.columns
        row = record.url
        first = int(columns["content_hash"][row]) == 0
        before = None if first else repository.version(row)
        # a page that was gone, forgotten or barred and is back as it was has to be put into the index again
        was_indexed = record.state is UrlState.FETCHED and before is not None and not before.noindex
        since = float(columns["last_fetched"][row]) if was_indexed else math.nan
        record.modified = read_date(report.last_modified, report.fetched_at)
        if before is not None:
            # then nobody sends validators along
            drawn = record.kind is FetchKind.PROBE and columns["kind"][row] == UrlKind.PAGE
            unasked = record.state is not UrlState.FETCHED or drawn
            old, new = (before.etag, before.last_modified), (report.etag, report.last_modified)
            record.validators = int(compare_validators(old, new, unasked=unasked))
        record.state = UrlState.FETCHED
        record.content_hash = report.content_hash
        record.changed = not first and report.content_hash != int(columns["content_hash"][row])
        if not first:
            record.interval_s = self.policy.refresh.next_interval_s(record.interval_s, record.changed)
        if record.changed and report.sketch is not None and before is not None and before.sketch is not None:
            record.resemblance = resemblance(before.sketch, report.sketch)
        duplicate_of = self._find_duplicate(row, report, first=first)
        repository.record_version(
            Version(
                row,
                report.etag,
                report.last_modified,
                report.sketch,
                report.fetched_at,
                report.media,
                report.noindex,
                duplicate_of,
                record.file,
                record.offset,
                record.length,
            )
        )
        if report.media in SOURCES:
            repository.record_hub_hint(HubHint(row, report.period_s, report.websub))
        if report.links.count or not first:
            findings.append(Finding(row, int(columns["depth"][row]), report))
        if report.noindex:
            if not first:
                taken.index.append(IndexChange(row, None, at=record.fetched_at, since=since))
        elif record.changed or not was_indexed:
            document = make_document(row, report, duplicate_of)
            taken.index.append(IndexChange(row, document, not first, record.fetched_at, since))

    def _find_duplicate(self, row: int, report: Report, *, first: bool) -> int | None:
        """A page whose text another page already has; it costs its host and its URL pattern."""
        if report.sketch is None or report.media != "html":
            return None
        found = self.duplicates.find(report.sketch, row)
        hosts = self.repository.table.hosts
        host = int(self.repository.table.columns["host"][row])
        if first:
            hosts.columns["pages"][host] += 1
            hosts.columns["duplicates"][host] += found is not None
            hosts.dirty.add(host)
            pattern = url_pattern(report.url)
            if pattern is not None:
                self.patterns.credit(pattern, novel=found is None)
        if report.canonical is not None:
            canonical = self.repository.table.find_url(report.canonical)
            if canonical is not None and canonical != row:
                return canonical
        return found

    def _redirect(self, record: FetchRecord, report: Report, taken: Taken) -> None:
        row = record.url
        columns = self.repository.table.columns
        before = UrlState(int(columns["state"][row]))
        record.state = UrlState.REDIRECT
        self._drop(record, before, taken)
        if report.location is None:
            record.error = record.error or "the target is outside this crawl"
            return
        hops = int(columns["hops"][row]) + 1
        known = self.repository.table.find_url(report.location)
        if known is None and hops > self.settings.crawl.max_redirects:
            record.outcome = Outcome.REDIRECT_LIMIT
            record.state = UrlState.FAILED
            record.error = f"more than {self.settings.crawl.max_redirects} redirects in a row"
            return
        rows, added = self.repository.add_urls(
            [report.location],
            at=report.fetched_at,
            depth=int(columns["depth"][row]),
            hops=hops,
            kind=UrlKind(int(columns["kind"][row])),
            source=row,
        )
        record.target = int(rows[0])
        self._redirect_rows.extend(added.tolist())

    def _try_again(self, record: FetchRecord, report: Report, now: float, state: UrlState) -> None:
        """An error that may pass: wait longer each time; give up a page never seen after some tries."""
        errors = int(self.repository.table.columns["errors"][record.url]) + 1
        record.errors = errors
        crawl = self.settings.crawl
        if errors > crawl.max_errors:
            record.errors = 0
            record.state = UrlState.FAILED if state is UrlState.NEW else state
            return
        record.state = state
        wait_s = backoff_s(errors, crawl.retry_base_s, retry_after_s=report.retry_after_s)
        if report.outcome is Outcome.ABANDONED:
            # one page can bring a worker down with all that it holds: they come back at different times
            wait_s *= self.rng.uniform(0.1, SPREAD)
        record.not_before = now + wait_s

    def _drop(self, record: FetchRecord, state: UrlState, taken: Taken) -> None:
        if state is UrlState.FETCHED:
            since = float(self.repository.table.columns["last_fetched"][record.url])
            taken.index.append(IndexChange(record.url, None, at=record.fetched_at, since=since))


def read_date(last_modified: str, at: float) -> int | None:
    """A Last-Modified in seconds; None where there is none, or one that cannot be: before the web, or days ahead."""
    stamp = parse_date(last_modified) if last_modified else None
    return int(stamp) if stamp is not None and FIRST_DATE_S <= stamp <= at + MOST_AHEAD_S else None


def make_document(row: int, report: Report, duplicate_of: int | None) -> Document:
    """The page as it is searched; anchors come from the store at the time of indexing."""
    return Document(
        page=row,
        url=report.url,
        title=report.title,
        text=report.text,
        anchors="",
        url_words=split_words(report.url),
        host=host_of(report.url),
        language=report.language,
        fetched_at=report.fetched_at,
        duplicate_of=duplicate_of,
        description=report.description,
    )
