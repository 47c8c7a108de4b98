"""What servers say of their versions: kept with each fetch, believed as far as visits bear it out."""

from __future__ import annotations

from dataclasses import dataclass, field
from email.utils import formatdate
from pathlib import Path

import numpy as np
import pytest
from tests.crawl.crawling import Left, make_crawl
from tests.crawl.test_refresh_study import some_visits

from bowerbird.appraise.policy import make_policy
from bowerbird.appraise.refresh.study import KnownPages
from bowerbird.crawl.intake import Intake, read_date
from bowerbird.crawl.refresh_study import (
    date_changes,
    gather_inputs,
    make_refresh_study,
    trust_dates,
    trust_validators,
)
from bowerbird.crawl.report import Report
from bowerbird.crawl.settings import load_settings
from bowerbird.crawl.view import CrawlView
from bowerbird.model.outcome import Outcome
from bowerbird.model.refresh_study import RefreshStudy
from bowerbird.model.url_state import FetchKind, UrlKind
from bowerbird.model.validators import Validators
from bowerbird.schedule.leases import Lease
from bowerbird.store import recovery
from bowerbird.store.folder import CrawlFolder
from bowerbird.store.repository import Repository

DAY = 86400.0
START = 1_750_000_000.0


@dataclass
class Crawl:
    """A crawl without a network: answers are made up and taken in as a coordinator does."""

    root: Path
    repository: Repository = field(init=False)

    def __post_init__(self) -> None:
        make_crawl(self.root, ["https://honest.example/"])
        self.settings = load_settings(self.root / "bowerbird.toml")
        self.open()

    def open(self) -> None:
        self.repository = Repository(CrawlFolder(self.root), write=True)
        self.intake = Intake(self.repository, make_policy("breadth-first"), self.settings)

    def answer(
        self,
        url: str,
        at: float,
        content: int,
        outcome: Outcome = Outcome.OK,
        *,
        etag: str = "",
        modified: float = 0.0,
        kind: FetchKind = FetchKind.REFRESH,
    ) -> int:
        rows, _ = self.repository.add_urls([url], at=at)
        row = int(rows[0])
        lease = Lease(row, int(self.repository.table.columns["host"][row]), 0, kind, at, at, 1, 1, "{}")
        date = formatdate(modified, usegmt=True) if modified else ""
        report = Report(0, url, outcome, at, 0.1, 200, 1000, etag=etag, last_modified=date, media="html")
        report.content_hash = content
        self.intake.take([(lease, report)], at)
        return row

    def study(self, now: float, method: str = "user-centric-saturating") -> RefreshStudy:
        self.repository.commit()
        return make_refresh_study(self.repository.folder, self.settings, method, now)


@pytest.fixture
def crawl(tmp_path: Path) -> Crawl:
    return Crawl(tmp_path / "crawl")


def journal(crawl: Crawl, row: int) -> list[tuple[object, ...]]:
    return Left(crawl.root).rows("SELECT modified, validators FROM fetches WHERE url = ? ORDER BY id", row)


def test_each_fetch_is_kept_with_what_its_validators_did(crawl: Crawl) -> None:
    url = "https://honest.example/a"
    row = crawl.answer(url, START, 5, etag='"1"', modified=START - 100)
    crawl.answer(url, START + 10, 5, Outcome.NOT_MODIFIED, etag='"1"')
    crawl.answer(url, START + 20, 6, etag='"1"', modified=START + 15)  # the ETag missed it
    crawl.answer(url, START + 30, 6, etag='"2"', modified=START + 15)
    crawl.answer(url, START + 40, 0, Outcome.GONE)
    crawl.answer(url, START + 50, 6, etag='"2"')  # nobody sends validators for a page that was gone
    crawl.answer(url, START + 60, 7, etag='"2"', kind=FetchKind.PROBE)  # nor for one drawn by lot
    crawl.repository.commit()
    assert journal(crawl, row) == [
        (START - 100, 0),
        (None, 0),
        (START + 15, Validators.ETAG_SAME | Validators.DATE_MOVED),
        (START + 15, Validators.ETAG_MOVED | Validators.DATE_SAME),
        (None, 0),
        (None, Validators.ETAG_SAME | Validators.UNASKED),
        (None, Validators.ETAG_SAME | Validators.UNASKED),
    ]


def test_a_feed_drawn_by_lot_is_asked_for_with_its_validators(crawl: Crawl) -> None:
    url = "https://honest.example/feed"
    crawl.repository.add_urls([url], at=START, kind=UrlKind.FEED)
    row = crawl.answer(url, START, 5, etag='"1"')
    crawl.answer(url, START + 10, 6, etag='"1"', kind=FetchKind.PROBE)
    crawl.repository.commit()
    assert journal(crawl, row) == [(None, 0), (None, Validators.ETAG_SAME)]


def test_what_a_commit_does_not_take_is_not_there(crawl: Crawl, monkeypatch: pytest.MonkeyPatch) -> None:
    """Validators are part of the row of their fetch: both are there after a crash, or neither."""
    url = "https://honest.example/a"
    row = crawl.answer(url, START, 5, modified=START - 100)
    crawl.repository.commit()
    crawl.answer(url, START + 20, 6, modified=START + 15)

    def fail(*_: object) -> None:
        raise RuntimeError("the machine stops here")

    with monkeypatch.context() as patched:
        patched.setattr(recovery, "store_hosts", fail)
        with pytest.raises(RuntimeError, match="stops here"):
            crawl.repository.commit()
    assert journal(crawl, row) == [(START - 100, 0)]
    crawl.repository.connection.close()
    crawl.open()
    crawl.answer(url, START + 30, 6, modified=START + 15)  # fetched again: compared with what was committed
    crawl.repository.commit()
    assert journal(crawl, row) == [(START - 100, 0), (START + 15, Validators.DATE_MOVED)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (formatdate(START, usegmt=True), int(START)),
        (formatdate(START + 3600, usegmt=True), int(START) + 3600),  # clocks differ
        (formatdate(START + 10 * DAY, usegmt=True), None),
        ("Thu, 01 Jan 1970 00:00:00 GMT", None),
        ("yesterday", None),
        ("", None),
    ],
)
def test_dates_that_cannot_be_are_none(text: str, found: int | None) -> None:
    assert read_date(text, START) == found


HOSTS = ("honest", "frozen", "now")
QUIET_S = 300 * DAY


def live(crawl: Crawl, *, pages: int = 30, times: int = 8, apart_s: float = 5 * DAY) -> float:
    """Three hosts whose pages change alike and whose dates tell the truth, never move, or say "now"; the end of it.

    A third of the pages of each do not change; the others do every four days, and p1 only since it was found. A page
    each is found at the end: `late`, its date as old as can be.
    """
    rng = np.random.default_rng(2)
    events = []
    for host in HOSTS:
        for page in range(pages):
            changes = np.cumsum(rng.exponential(4 * DAY, 90)) + START - (0.0 if page == 1 else 100 * DAY)
            changes = changes if page % 3 else changes[:0]
            for visit in range(times):
                at = START + visit * apart_s
                seen = changes[changes <= at]
                true = float(seen[-1]) if len(seen) else START - QUIET_S
                date = {"honest": true, "frozen": START - QUIET_S, "now": at}[host]
                events.append((at, f"https://{host}.example/p{page}", 7 + len(seen), date))
    end = START + times * apart_s
    for host in HOSTS:
        events.append((end, f"https://{host}.example/late", 7, end if host == "now" else end - QUIET_S))
    for at, url, content, date in sorted(events):
        crawl.answer(url, at, content, modified=date)
    return end + DAY


def test_dates_are_believed_where_visits_bear_them_out(crawl: Crawl) -> None:
    now = live(crawl)
    study = crawl.study(now)
    host = dict(zip(crawl.repository.table.hosts.origins, range(9), strict=False))
    honest, frozen, always = (host[f"https://{name}.example"] for name in HOSTS)
    trust = study.trust
    assert trust is not None
    assert trust.date_recall[honest] > 0.95
    assert trust.date_recall[frozen] < 0.05
    false = trust.date_false_per_s * 5 * DAY  # between two visits
    assert false[honest] < 0.1
    assert false[frozen] < 0.1
    assert false[always] > 1.5

    def rate(name: str) -> float:
        row = crawl.repository.table.find_url(f"https://{name}.example/late")
        return float(study.changes_per_s[row]) * DAY

    for name in HOSTS:
        rows = [crawl.repository.table.find_url(f"https://{name}.example/p{page}") for page in range(30)]
        found = study.changes_per_s[rows] * DAY
        assert found[1] > 0.08, name  # it was left alone for 300 days before, and is no longer
        changing, still = np.arange(30) % 3 > 0, np.arange(30) % 3 == 0
        assert found[changing].mean() == pytest.approx(0.25, rel=0.4), name
        assert found[still].max() < (0.005 if name == "honest" else 0.05), name

    # the same date, 300 days ago: the honest host is believed, the one whose dates never move is not
    assert rate("honest") < 0.3 * rate("frozen")
    assert rate("now") > 0.5 * rate("frozen")


def test_known_times_of_changes_sharpen_the_rates_of_an_honest_host_alone(crawl: Crawl) -> None:
    """Pages that have always changed when one looks: only dates tell how often."""
    rng = np.random.default_rng(4)
    for host, dates in (("honest", True), ("frozen", False)):
        for page in range(40):
            apart = DAY * (0.5 if page < 20 else 4.0)  # between changes
            for visit in range(5):
                at = START + visit * 20 * DAY
                date = at - rng.exponential(apart) if dates else START - DAY
                crawl.answer(f"https://{host}.example/p{page}", at, 7 + visit, modified=date)
        for page in range(40):  # they do not change: so it shows that there are no false dates
            for visit in range(5):
                crawl.answer(f"https://{host}.example/s{page}", START + visit * 20 * DAY, 7, modified=START - DAY)
    study = crawl.study(START + 101 * DAY)

    def rates(host: str, pages: range) -> float:
        rows = [crawl.repository.table.find_url(f"https://{host}.example/p{page}") for page in pages]
        return float(np.mean(study.changes_per_s[rows])) * DAY

    assert 1.2 < rates("honest", range(20)) < 2.4  # 2, shrunk to the mean
    assert rates("honest", range(20, 40)) == pytest.approx(0.25, rel=0.3)
    assert rates("frozen", range(20)) == pytest.approx(rates("frozen", range(20, 40)), rel=0.01)


def test_explain_says_what_is_believed_of_a_host(crawl: Crawl) -> None:
    now = live(crawl, pages=6)
    study = crawl.study(now, "user-centric")
    crawl.repository.close()
    view = CrawlView(crawl.root, "breadth-first+user-centric")
    try:
        tree = view.explain("https://frozen.example/p1")["bid"]["tree"]
    finally:
        view.close()
    nodes = [tree]
    for node in nodes:
        nodes += node.get("children", [])
    found = {node["name"]: node["value"] for node in nodes}
    assert study.trust is not None
    assert found["304 believed"] == pytest.approx(study.trust.not_modified[1], rel=1e-4)
    assert found["Last-Modified recall"] == pytest.approx(study.trust.date_recall[1], rel=1e-4)
    assert found["Last-Modified false_per_day"] < 0.1


# -- not modified


def test_validators_are_judged_by_answers_that_would_have_come_anyway() -> None:
    """Host 0 sends every page whole; host 1 says "not modified"; host 2 never showed anything."""
    same, moved, unasked = Validators.ETAG_SAME, Validators.ETAG_MOVED, Validators.UNASKED
    kinds = [
        *[(0, True, same)] * 30,
        *[(0, True, moved)] * 10,
        *[(0, False, moved)] * 50,  # false alarms cost bytes, and no belief
        *[(1, True, moved)] * 200,  # asked on condition: it came because they moved
        *[(1, True, moved | unasked)] * 5,
        *[(1, True, same | unasked)] * 15,
    ]
    host, changed, bits = (np.array(column) for column in zip(*kinds, strict=True))
    visits = some_visits(
        page=np.append(host, 1),
        changed=np.append(changed, False),
        validators=np.append(bits.astype(np.int64), 0),
        not_modified=np.append(np.zeros(len(host), dtype=np.bool_), True),
    )
    pages = KnownPages(np.arange(3), np.arange(3), 3, 3)
    found = trust_validators(visits, pages)
    assert found[0] == pytest.approx(0.25, abs=0.15)
    assert found[1] == pytest.approx(0.25, abs=0.2)
    assert max(found[0], found[1]) < found[2] < 0.95  # most hosts lie, so this may too
    untold = trust_validators(some_visits(page=np.zeros(4, dtype=np.int64)), pages)
    assert untold.tolist() == pytest.approx([0.95] * 3)


def test_a_date_goes_where_there_is_no_etag() -> None:
    bits = np.array([Validators.DATE_SAME, Validators.DATE_SAME | Validators.ETAG_MOVED] * 40, dtype=np.int64)
    visits = some_visits(page=np.tile([0, 1], 40), changed=np.ones(80, dtype=np.bool_), validators=bits)
    found = trust_validators(visits, KnownPages(np.arange(2), np.arange(2), 2, 2))
    assert found[0] < 0.3
    assert found[1] > 0.8


def test_not_modified_counts_for_as_much_as_it_is_believed(crawl: Crawl) -> None:
    for page in range(20):
        url = f"https://liar.example/p{page}"
        for visit in range(6):
            crawl.answer(url, START + visit * DAY, 7 + visit, etag='"1"')  # sent whole, changed, with the same ETag
    for visit in range(6):
        outcome = Outcome.NOT_MODIFIED if visit else Outcome.OK
        crawl.answer("https://liar.example/still", START + visit * DAY, 7, outcome, etag='"1"')
        crawl.answer("https://other.example/still", START + visit * DAY, 7, outcome, etag='"1"')
    crawl.repository.commit()
    inputs, pages, visits, trust = gather_inputs(
        crawl.repository, crawl.settings, crawl.repository.snapshot(START + 6 * DAY)
    )
    still = np.flatnonzero(visits.not_modified)
    believed = trust.not_modified[pages.hosts[visits.page[still]]]
    assert inputs.interval_s[still] == pytest.approx(believed * DAY)
    whole = ~visits.not_modified
    assert inputs.interval_s[whole] == pytest.approx(np.full(int(whole.sum()), DAY))
    assert len(still) == 10


def test_a_date_older_than_the_visit_before_is_not_that_of_the_change() -> None:
    moved = int(Validators.DATE_MOVED)
    visits = some_visits(
        page=np.zeros(4, dtype=np.int64),
        at=np.array([20.0, 30.0, 40.0, 50.0]),
        since=np.array([10.0, 20.0, 30.0, 40.0]),
        changed=np.array([True, True, False, True]),
        modified=np.array([15.0, 12.0, 38.0, 55.0]),
        validators=np.array([moved, moved, moved, moved]),
    )
    told = date_changes(visits)
    assert told[0] == 5.0
    assert np.isnan(told[1:3]).all()
    assert told[3] == 0.0  # its clock is ahead


def test_not_modified_is_a_date_that_did_not_move() -> None:
    count = 60
    visits = some_visits(
        page=np.zeros(count, dtype=np.int64),
        at=np.arange(1, count + 1) * DAY,
        since=np.arange(count) * DAY,
        not_modified=np.arange(count) % 3 > 0,
        modified=np.where(np.arange(count) % 3 == 0, (np.arange(count) + 0.9) * DAY, np.nan),
        validators=np.where(np.arange(count) % 3 == 0, int(Validators.DATE_MOVED), 0),
    )
    found = trust_dates(visits, KnownPages(np.arange(1), np.zeros(1, dtype=np.int64), 1, 1))
    assert 1 - np.exp(-found.false_rate_per_s[0] * DAY) == pytest.approx(1 / 3, abs=0.08)
