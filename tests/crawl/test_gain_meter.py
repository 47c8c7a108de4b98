"""What refreshes gain is measured while they are indexed, and never in the way of that."""

from __future__ import annotations

import shutil
import sqlite3
import time
from pathlib import Path

import numpy as np
import pytest
from tests.crawl.conftest import Crawled
from tests.crawl.crawling import Left, interrupt, make_crawl, running_crawl, wait_for
from tests.web.hostile_server import HostileServer, answer

from bowerbird.crawl import gain_meter
from bowerbird.crawl.coordinator import RunLimits
from bowerbird.crawl.demand_log import open_demand
from bowerbird.crawl.earlier_pages import EarlierPages
from bowerbird.crawl.gain_meter import GainMeter
from bowerbird.crawl.hearing import listen
from bowerbird.crawl.indexing import IndexThread
from bowerbird.crawl.intake import IndexChange
from bowerbird.crawl.probe_reader import FieldReader, Fields
from bowerbird.crawl.reindex import catch_up
from bowerbird.crawl.session import CrawlSession
from bowerbird.crawl.settings import load_settings
from bowerbird.crawl.texts import ArchiveTexts
from bowerbird.demand.events import QueryAsked
from bowerbird.demand.visibility import PowerLaw
from bowerbird.index.forward import ForwardRecords
from bowerbird.index.measuring import WordScoring
from bowerbird.index.protocol import Document
from bowerbird.index.scoring import PageScorer
from bowerbird.index.tantivy_index import TantivyIndex
from bowerbird.index.tantivy_query import FIELD_WEIGHTS
from bowerbird.model.outcome import Outcome
from bowerbird.model.study import mark_queries, seal_marks
from bowerbird.model.workload import make_workload
from bowerbird.quality.answers import LocalAnswers
from bowerbird.quality.gain import refresh_gain
from bowerbird.quality.measured_gains import GainBasis, make_basis
from bowerbird.store.folder import CrawlFolder
from bowerbird.store.gains import MeasuredGain, read_gains, read_gains_of
from bowerbird.store.repository import Repository

WAIT_S = 60.0  # a busy machine may take as long


def document(page: int, text: str) -> Document:
    return Document(page, f"http://a.example/{page}", "", text, "", "", "a.example", "en", float(page))


def refresh(page: int, text: str | None, at: float = 20.0) -> IndexChange:
    return IndexChange(page, None if text is None else document(page, text), True, at, at - 5)


def basis_of(texts: list[str], queries: dict[str, float] | None = None) -> GainBasis:
    """Every page is worth 1 where it has the words of a query."""
    asked = make_workload(list(queries or {"ape": 1.0}), (queries or {"ape": 1.0}).values(), str.split)
    holding = [sum(set(query.split()) <= set(text.split()) for text in texts) for query in asked.queries]
    answers = LocalAnswers.from_lists([[1.0] * count for count in holding])
    scoring = WordScoring.of_pages(np.ones(100))
    return make_basis(asked, answers, PowerLaw(), scoring, np.ones(len(asked.terms)))


def take_all(thread: IndexThread) -> list[MeasuredGain]:
    thread.close()
    return thread.take_gains()


def test_gains_are_measured_with_each_batch_and_records_follow_the_commits(tmp_path: Path) -> None:
    folder = tmp_path / "index"
    thread = IndexThread(TantivyIndex.open(folder, write=True), 0.1, 0, GainMeter(folder / "forward.db"))
    thread.use_basis(basis_of(["ape"] * 5))
    thread.put([IndexChange(page, document(page, "ape")) for page in range(5)], 1)
    thread.put([refresh(0, "bear"), refresh(1, "ape again"), IndexChange(2, document(2, "bear"), replace=True)], 2)
    thread.put([refresh(0, "ape", 30.0), refresh(3, None, 30.0), refresh(2, "cat", 30.0), refresh(9, "ape", 30.0)], 3)
    gains = take_all(thread)
    assert [(gain.page, gain.at, gain.since, gain.words) for gain in gains] == [
        (0, 20.0, 15.0, 1), (1, 20.0, 15.0, 0), (0, 30.0, 25.0, 1), (3, 30.0, 25.0, 1), (2, 30.0, 25.0, 0),
    ]  # fmt: skip
    assert gains[0].gain > 0
    assert gains[0].marks.tolist() == mark_queries(["ape"]).tolist()
    assert gains[0].shares.tolist() == [1.0]
    assert (gains[1].gain, len(gains[1].marks)) == (0.0, 0)
    assert thread.take_gains() == []
    # the next process goes on from the records
    thread = IndexThread(TantivyIndex.open(folder, write=True), 0.1, 3, GainMeter(folder / "forward.db"))
    thread.use_basis(basis_of(["ape"] * 5))
    thread.put([refresh(1, "nothing", 40.0), refresh(3, "ape", 40.0)], 4)
    assert [(gain.page, gain.words) for gain in take_all(thread)] == [(1, 1)]


def test_a_page_that_comes_twice_in_a_batch_is_held_against_the_first(tmp_path: Path) -> None:
    meter = GainMeter(tmp_path / "forward.db")
    meter.use(basis_of(["ape"] * 3))
    meter.see([IndexChange(1, document(1, "ape")), refresh(1, "bear", 20.0), refresh(1, "bear cat", 30.0)])
    assert [(gain.at, gain.words) for gain in meter.take_gains()] == [(20.0, 1), (30.0, 0)]
    meter.close()


def test_without_demand_there_is_no_file(tmp_path: Path) -> None:
    folder = tmp_path / "index"
    thread = IndexThread(TantivyIndex.open(folder, write=True), 0.1, 0, GainMeter(folder / "forward.db"))
    thread.put([IndexChange(1, document(1, "ape"))], 1)
    thread.put([refresh(1, "bear")], 2)
    assert take_all(thread) == []
    assert not list(folder.glob("forward*"))


def test_what_changes_while_nobody_is_heard_is_not_measured_later(tmp_path: Path) -> None:
    path = tmp_path / "forward.db"
    meter = GainMeter(path)
    meter.use(basis_of(["ape"] * 3))
    meter.see([IndexChange(1, document(1, "ape")), IndexChange(2, document(2, "ape"))])
    meter.commit()
    meter.close()
    meter = GainMeter(path)  # a new run, that has not heard of any demand yet
    meter.see([refresh(1, "bear")])
    meter.commit()
    meter.use(basis_of(["ape"] * 3))
    meter.see([refresh(1, "cat", 30.0), refresh(2, "cat", 30.0)])
    assert [gain.page for gain in meter.take_gains()] == [2]
    meter.close()


def test_a_record_that_knows_little_of_the_demand_is_no_measure(tmp_path: Path) -> None:
    meter = GainMeter(tmp_path / "forward.db")
    meter.use(basis_of(["ape bear"] * 4, {"bear": 1.0}))
    meter.see([IndexChange(1, document(1, "ape bear")), IndexChange(2, document(2, "ape bear"))])
    meter.use(basis_of(["ape bear"] * 4, {"ape": 3.0, "bear": 1.0}))
    meter.see([refresh(1, "cat")])
    assert meter.take_gains() == []
    meter.use(basis_of(["ape bear"] * 4, {"ape": 1.0, "bear": 3.0}))
    meter.see([refresh(2, "cat"), refresh(1, "bear", 30.0)])
    known, whole = meter.take_gains()
    assert (known.page, known.words) == (2, 1)
    assert known.marks.tolist() == mark_queries(["bear"]).tolist()
    assert whole.page == 1
    full = GainMeter(tmp_path / "other.db")
    full.use(basis_of(["ape bear"] * 4, {"ape": 1.0, "bear": 3.0}))
    full.see([IndexChange(2, document(2, "ape bear")), refresh(2, "cat")])
    (both,) = full.take_gains()
    assert known.gain == pytest.approx(both.gain)  # three quarters of the demand are known, the rest is taken alike
    for each in (meter, full):
        each.close()


def test_a_failure_does_not_stop_the_index_and_is_said_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("on purpose")

    folder = tmp_path / "index"
    meter = GainMeter(folder / "forward.db")
    good = basis_of(["ape"] * 3)
    thread = IndexThread(TantivyIndex.open(folder, write=True), 0.1, 0, meter)
    thread.use_basis(good)
    thread.put([IndexChange(page, document(page, "ape")) for page in range(3)], 1)
    assert wait_for(lambda: thread.indexed_through == 1)
    with monkeypatch.context() as broken:
        broken.setattr(gain_meter, "measure_gains", fail)
        thread.put([refresh(1, "bear")], 2)
        assert wait_for(lambda: thread.indexed_through == 2)
    with monkeypatch.context() as broken:
        broken.setattr(good.vocabulary, "count", fail)
        thread.put([refresh(1, "cat")], 3)
        assert wait_for(lambda: thread.indexed_through == 3)
    thread.put([refresh(1, "ape", 50.0), refresh(2, "bear", 50.0)], 4)
    gains = take_all(thread)
    assert meter.failures == 2
    assert len([record for record in caplog.records if "measured" in record.getMessage()]) == 1
    assert [gain.page for gain in gains] == [2]  # of page 1 nobody knows what it was
    with TantivyIndex.open(folder, write=False) as index:
        assert index.top_scores(["ape"], 10)[0].tolist() in ([0, 1], [1, 0])


def page_of(word: str, links: str = "") -> bytes:
    return answer(f"<title>{word}</title><p>{word} {word} stands on a page {links}</p>".encode())


def test_a_crawl_measures_what_its_refreshes_gain(tmp_path: Path) -> None:
    """A page that comes to answer a query, and one that goes: as eq. 5 has it, with the index's own scores."""
    with HostileServer() as server:
        links = " ".join(f'<a href="/{number}">{number}</a>' for number in range(12))
        server.routes["/"] = page_of("home", links)
        for number in range(12):
            server.routes[f"/{number}"] = page_of("parrot" if number % 2 else "kestrel", "straw " * (6 * number))
        refreshing = {"interval_s": 0.5, "min_interval_s": 0.3, "max_interval_s": 1.0}
        sections = {"refresh": refreshing, "quality": {"every_s": 1.0}, "crawl": {"policy": "breadth-first+fixed"}}
        root = make_crawl(tmp_path / "crawl", [server.url("/")], sections)
        folder, settings = CrawlFolder(root), load_settings(root / "bowerbird.toml")
        with CrawlSession(root) as session:
            session.run(RunLimits(once=True))
        assert not folder.forward.exists()
        with open_demand(folder, settings.demand, write=True) as log:
            log.record([QueryAsked("parrot", time.time(), 9), QueryAsked("kestrel", time.time(), 3)])
        heard = listen(folder, settings, time.time())
        assert heard.basis is not None
        with TantivyIndex.open(folder.index, write=False) as index:
            scorer = PageScorer(index, heard.workload.terms, FIELD_WEIGHTS)
            before, scores, _ = index.top_scores(["parrot"], 100)
            kestrels, levels, _ = index.top_scores(["kestrel"], 100)
        left = Left(root)
        row, gone = (left.one("SELECT id FROM urls WHERE url = ?", server.url(path)) for path in ("/2", "/7"))
        straw = "straw " * 12
        old = scorer.score({"title": "kestrel", "text": f"kestrel kestrel stands on a page {straw}", "anchors": "2"})

        def fetched_again() -> bool:
            count = "SELECT count(*) FROM fetches WHERE url = ?"
            before = left.one(count, row)
            return wait_for(lambda: left.one(count, row) > before, WAIT_S)

        def measured(page: int) -> bool:
            return wait_for(lambda: left.one("SELECT count(*) FROM gains WHERE page = ?", page) > 0, WAIT_S)

        with running_crawl(root) as process:
            assert wait_for(folder.forward.exists, WAIT_S)  # the demand was heard of
            assert fetched_again()
            assert left.one("SELECT count(*) FROM gains") == 0  # nothing changed
            server.routes["/2"] = page_of("parrot", straw)
            assert measured(row)  # before the answers change by anything else
            server.routes["/7"] = answer(b"gone", "410 Gone")
            assert measured(gone)
            assert fetched_again()
            assert interrupt(process).code == 0
        repository = Repository(folder, write=False)
        try:
            (gain,) = read_gains_of(repository.connection, row)
            (lost,) = read_gains_of(repository.connection, gone)
            assert len(read_gains(repository.connection)) == 2
        finally:
            repository.close()
    # by brute force: the exact gain in each query's answer, with the index's scores of the other pages
    text = {"title": "parrot", "text": f"parrot parrot stands on a page {straw}", "anchors": "2", "url_words": ""}
    new = scorer.score(text)
    parrot, kestrel = heard.workload.terms.index("parrot"), heard.workload.terms.index("kestrel")
    frequency = dict(zip(heard.workload.queries, heard.workload.frequency.tolist(), strict=True))
    new_score = float(new.scores[new.words == parrot][0])
    old_score = float(old.scores[old.words == kestrel][0])
    power = PowerLaw()
    exact = frequency["parrot"] * float(refresh_gain(0.0, new_score, np.sort(scores)[::-1], power))
    others = np.sort(levels[kestrels != row])[::-1]
    exact += frequency["kestrel"] * float(refresh_gain(old_score, 0.0, others, power))
    exact /= heard.basis.asked.best
    assert gain.words == 2
    assert gain.gain == pytest.approx(exact, rel=0.05)
    assert gain.since < gain.at
    assert set(gain.marks.tolist()) <= set(
        seal_marks(mark_queries(["parrot", "kestrel"]), heard.workload.mark_key).tolist()
    )
    mine = float(scores[before == gone][0])
    rest = np.sort(scores[before != gone])[::-1]
    exact = frequency["parrot"] * float(refresh_gain(mine, 0.0, rest, power)) / heard.basis.asked.best
    assert exact / 3 < lost.gain < 3 * exact  # its rank by the curve is rounded down: one place is half of it
    assert folder.forward.exists()
    assert left.one("SELECT max(changed) FROM fetches WHERE url = ?", row) == 1


def test_pages_that_are_indexed_again_after_a_crash_lose_their_records(crawled: Crawled, tmp_path: Path) -> None:
    folder = CrawlFolder(tmp_path / "crawl")
    shutil.copytree(crawled.root, folder.root)
    records = ForwardRecords(folder.forward)
    records.enter(np.array([1], dtype=np.uint32))
    rows = crawled.left.indexed()
    records.put(rows, b"x" * len(rows), np.arange(len(rows) + 1))
    records.commit()
    records.close()
    repository = Repository(folder, write=True)
    behind = repository.last_fetch_id - 10
    repository.set_meta("indexed_through", behind)
    again = {row for (row,) in repository.connection.execute("SELECT url FROM fetches WHERE id > ?", (behind,))}
    with TantivyIndex.open(folder.index, write=True, texts=ArchiveTexts(repository)) as index:
        assert catch_up(repository, index, load_settings(folder.config)) > 0
    repository.close()
    _, _, generations = ForwardRecords(folder.forward).read(rows)
    lost = {row for row, generation in zip(rows, generations.tolist(), strict=True) if generation < 0}
    assert lost == again & set(rows) != set()


class SlowArchive(EarlierPages):
    """Every page was about apes; to read that takes a second."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.asked: list[int] = []

    def __call__(self, page: int, at: float) -> Document | None:
        self.now_s += 1.0
        self.asked.append(page)
        return document(page, "ape")

    def close(self) -> None:
        pass


def test_pages_are_read_again_in_a_small_share_of_the_time(tmp_path: Path) -> None:
    archive = SlowArchive()
    meter = GainMeter(tmp_path / "forward.db", archive, lambda: archive.now_s)
    meter.use(basis_of(["ape"] * 5))
    archive.now_s = 100.0
    meter.see([refresh(page, "bear") for page in range(20)])
    assert archive.asked == [0, 1, 2, 3, 4]
    meter.see([refresh(page, "bear") for page in range(20, 40)])
    assert archive.asked[5:] == [20]  # one a batch
    archive.now_s += 60.0
    meter.see([refresh(page, "bear") for page in range(40, 60)])
    assert archive.asked[6:] == [40, 41, 42]
    assert [gain.page for gain in meter.take_gains()] == archive.asked
    meter.see([refresh(59, "ape", 30.0)])  # there is a record of it now
    assert [(gain.page, gain.words) for gain in meter.take_gains()] == [(59, 1)]
    assert len(archive.asked) == 9
    meter.close()


def test_the_version_before_is_told_by_the_journal_and_not_by_the_clock(
    crawled: Crawled, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = CrawlFolder(tmp_path / "crawl")
    shutil.copytree(crawled.root, folder.root)
    page = crawled.left.indexed()[0]
    with sqlite3.connect(folder.database) as connection:
        names = [str(column[1]) for column in connection.execute("PRAGMA table_info(fetches)")]
        found = connection.execute("SELECT * FROM fetches WHERE url = ? AND outcome = ?", (page, int(Outcome.OK)))
        first = dict(zip(names, found.fetchone(), strict=True))
        (last,) = connection.execute("SELECT max(id) FROM fetches").fetchone()
        connection.execute("DELETE FROM fetches WHERE url = ?", (page,))
        times = [(1000.0, 1, Outcome.OK), (500.0, 2, Outcome.OK), (600.0, 3, Outcome.NOT_MODIFIED)]
        times += [(400.0, 4, Outcome.OK), (2000.0, 5, Outcome.OK)]  # the clock was set back twice
        for at, version, outcome in times:
            row = {**first, "id": last + version, "fetched_at": at, "offset": version, "outcome": int(outcome)}
            marks = ",".join("?" * len(names))
            connection.execute(f"INSERT INTO fetches VALUES ({marks})", [row[name] for name in names])
    connection.close()

    def archived(self: FieldReader, row: int, file: int | None, offset: int | None, length: int | None) -> Fields:
        return {"title": "", "text": f"version {offset}", "anchors": "", "url_words": ""}

    monkeypatch.setattr(FieldReader, "archived", archived)
    earlier = EarlierPages(folder, load_settings(folder.config))
    assert earlier(page, 1000.0) is None
    told = [earlier(page, at) for at in (500.0, 400.0, 2000.0, 1234.5)]
    assert [one and one.text for one in told] == ["version 1", "version 2", "version 4", "version 4"]
    earlier.close()
