"""Studies of a live crawl: what they are made of, how a crawl goes by them, and that they outlive it."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import psutil
import pytest
from tests.appraise.snapshots import snapshot_of
from tests.crawl.crawling import Left, command_line, make_crawl, run_command, running_crawl, wait_for
from tests.crawl.hub_past import Past, urls

from bowerbird.appraise.frontier.methods import METHODS
from bowerbird.appraise.frontier.study import FEWEST_OTHERS, set_news_apart
from bowerbird.appraise.policy import STUDIED, make_policy
from bowerbird.crawl import studying as studying_module
from bowerbird.crawl.demand_log import open_demand
from bowerbird.crawl.page_words import read_page_words, read_urls
from bowerbird.crawl.settings import Settings, load_settings
from bowerbird.crawl.study import find_later_finds, gather_feedback, make_study, prepare_inputs, take_snapshot
from bowerbird.crawl.studying import NICE, SAID_MOST, Studies, Studying
from bowerbird.crawl.view import CrawlView
from bowerbird.demand.events import QueryAsked, ResultClicked
from bowerbird.demand.log import DAY_S
from bowerbird.index.analysis import tokenize
from bowerbird.index.page_words import gather_words
from bowerbird.lab.world import World, WorldServer, WorldSpec
from bowerbird.model.outcome import Outcome
from bowerbird.model.page_words import make_page_words
from bowerbird.model.study import mark_queries
from bowerbird.model.url_state import FetchKind, UrlKind, UrlState
from bowerbird.store.connection import EmbeddedConnection
from bowerbird.store.folder import CrawlFolder
from bowerbird.store.journal import read_first_fetches
from bowerbird.store.links import OutLinks
from bowerbird.store.records import FetchRecord
from bowerbird.store.recovery import load_graph
from bowerbird.store.repository import Repository
from bowerbird.store.study_file import read_study
from bowerbird.web.url import split_words

SPEC = WorldSpec(
    seed=6, frozen=True, hosts=6, pages=700, crawl_delay_share=0.0, trap_share=0.0, disallow_share=0.0, page_bytes=2000
)
LIVE = [name for name in STUDIED if name in METHODS]


@dataclass(frozen=True, slots=True)
class Begun:
    """A crawl that has fetched some pages, with a log of what its searchers asked and clicked."""

    root: Path
    folder: CrawlFolder
    settings: Settings
    left: Left
    server: WorldServer
    clicked: dict[str, float]

    def repository(self) -> Repository:
        return Repository(self.folder, write=False, default_interval_s=self.settings.refresh.interval_s)


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Begun]:
    root = tmp_path_factory.mktemp("study") / "crawl"
    with WorldServer(World(SPEC)) as server:
        sections = {"frontier": {"study_every_s": 1.0}, "quality": {"probe_share": 0.1}}
        make_crawl(root, server.world.seeds(), sections)
        assert run_command("crawl", root, "--pages", 250).code == 0
        left, settings = Left(root), load_settings(root / "bowerbird.toml")
        now = time.time()
        pages = [url for url in left.fetches(Outcome.OK) if not url.endswith((".xml", "/feed", ".rss", ".atom"))]
        clicked = {url: float(1 + place % 5) for place, url in enumerate(dict.fromkeys(pages[::2]))}
        nouns = server.world.words.topic(0).nouns
        with open_demand(CrawlFolder(root), settings.demand, write=True) as log:
            log.record(QueryAsked(noun, now, 20 - place) for place, noun in enumerate(nouns[:15]))
            log.record(ResultClicked(nouns[0], url, 1, now, int(count)) for url, count in clicked.items())
        yield Begun(root, CrawlFolder(root), settings, left, server, clicked)


@pytest.fixture
def copy(begun: Begun, tmp_path: Path) -> Begun:
    """The same crawl, to be changed."""
    root = tmp_path / "crawl"
    shutil.copytree(begun.root, root)
    shutil.rmtree(root / "study", ignore_errors=True)
    return Begun(root, CrawlFolder(root), begun.settings, Left(root), begun.server, begun.clicked)


# -- what a study is made of


def test_the_links_are_those_of_the_database_as_last_seen(begun: Begun) -> None:
    repository = begun.repository()
    count = repository.table.columns.count
    graph = load_graph(repository.connection, count)
    assert len(graph.starts) == count + 1
    met = 0
    for source in range(count):
        known = repository.links(source)
        expected = known.current().tolist() if known is not None else []
        assert graph.out_links(source).tolist() == expected
        met += len(expected)
    assert met > 1000
    repository.close()


def test_links_that_are_gone_and_urls_that_came_later_are_left_out(copy: Begun) -> None:
    repository = Repository(copy.folder, write=True)
    source = int(copy.left.one("SELECT max(source) FROM links"))
    first = OutLinks.fresh(source, np.array([1, 2, 3], dtype=np.uint32), 1000.0)
    again, _ = first.seen_again(np.array([2, 3, 4], dtype=np.uint32), 2000.0)
    repository.connection.execute("INSERT OR REPLACE INTO links VALUES (?,?,?,?,?)", again.encode())
    assert load_graph(repository.connection, 1000).out_links(source).tolist() == [2, 3, 4]
    assert load_graph(repository.connection, source + 1).out_links(source).tolist() == [2, 3, 4]
    few = load_graph(repository.connection, 4)
    assert len(few.starts) == 5
    assert (few.targets < 4).all()
    repository.close()


def test_first_fetches_are_told_with_the_chance_of_those_drawn_by_lot(begun: Begun) -> None:
    repository = begun.repository()
    first = read_first_fetches(repository.connection, repository.table.columns.count)
    fetched = {row for (row,) in begun.left.rows("SELECT DISTINCT url FROM fetches WHERE outcome = ?", int(Outcome.OK))}
    assert set(np.flatnonzero(first.at > 0).tolist()) == fetched
    drawn = np.flatnonzero(~np.isnan(first.propensity))
    assert len(drawn) > 3
    assert ((first.propensity[drawn] > 0) & (first.propensity[drawn] < 1)).all()
    assert set(drawn.tolist()) <= fetched
    snapshot = take_snapshot(repository, begun.settings, time.time())
    feedback = gather_feedback(repository, snapshot, 1e6, time.time())
    columns = repository.table.columns
    assert (columns["kind"][feedback.pages] == UrlKind.PAGE).all()
    assert (feedback.weight[drawn] > 1).all()
    assert ((feedback.exposure > 0) & (feedback.exposure <= 1)).all()
    gone = np.flatnonzero((snapshot.pages.state == UrlState.GONE) & (snapshot.pages.kind == UrlKind.PAGE))
    assert feedback.pages[gone].all()  # they will never have clicks: that is a lesson
    middle = float(np.median(first.at[first.at > 0]))
    early = gather_feedback(repository, snapshot, 1e6, middle)
    later = np.flatnonzero(first.at >= middle)
    assert len(later)
    assert not early.pages[later].any()  # nothing was heard of searchers since
    assert early.pages.sum() > 0
    repository.close()


def test_clicks_are_of_the_time_that_the_log_has_heard_of_a_page(tmp_path: Path) -> None:
    """In full exposures, since its first fetch: of an old page more than one, of what has no clicks of its own none."""
    past = Past(tmp_path / "crawl")
    heard_until, half_life_s = past.now - 3600.0, 10 * DAY_S
    days = (1.0, 2.0, 4.0, 30.0)
    pages = [past.add(url, past.now - 40 * DAY_S) for url in urls("page", len(days))]
    for row, age in zip(pages, days, strict=True):
        past.visit(row, heard_until - age * DAY_S)
        past.visit(row, past.now - 60.0)
    late, moved, gone, new = (past.add(f"http://a.example/{name}", past.now - DAY_S) for name in ("l", "m", "g", "n"))
    feed = past.add("http://a.example/feed", past.now - DAY_S, kind=UrlKind.FEED)
    past.visit(late, heard_until + 60.0)
    for row in (moved, gone, feed):  # they were there once
        past.visit(row, heard_until - 3 * DAY_S)
    for row, outcome, state in (
        (moved, Outcome.REDIRECT, UrlState.REDIRECT),
        (gone, Outcome.GONE, UrlState.GONE),
    ):
        past.repository.record(FetchRecord(row, FetchKind.REFRESH, past.now, 1.0, 1.0, "{}", past.now, outcome, state))
    past.repository.commit()
    feedback = gather_feedback(past.repository, past.repository.snapshot(past.now), half_life_s, heard_until)
    past.repository.close()
    assert feedback.full_s == pytest.approx(3 * DAY_S)  # their median age
    heard = [10.0 / np.log(2.0) * (1.0 - 0.5 ** (age / 10.0)) / 3.0 for age in days]
    assert heard[0] < 1.0 < heard[-1]
    assert feedback.heard is not None
    assert feedback.heard[pages].tolist() == pytest.approx(heard, rel=1e-6)
    assert feedback.heard[late] == 0.0
    assert np.isnan(feedback.heard[[moved, gone, new, feed]]).all()


def test_what_appeared_on_a_page_after_its_first_visit_is_learnt_about_apart() -> None:
    at = 1_000_000
    pages = snapshot_of(first_seen=[at, at + 1, at + 500, at + 900], source=[-1, 0, 0, 2]).pages
    # the first was fetched when it was found, and again; the third never was
    assert find_later_finds(pages, np.array([at + 0.5, at + 2.0, 0.0, 0.0])).tolist() == [False, False, True, False]
    everyone = np.ones(300, np.bool_)
    announced = np.arange(300) >= FEWEST_OTHERS
    assert set_news_apart(everyone, announced).tolist() == (~announced).tolist()
    announced[0] = True  # too few others are left: all are learnt from
    assert set_news_apart(everyone, announced).all()


def test_page_words_are_those_of_url_and_anchors(begun: Begun) -> None:
    repository = begun.repository()
    count = repository.table.columns.count
    words = read_page_words(repository.connection, count)
    texts = [
        [tokenize(split_words(url)), *map(tokenize, repository.anchors(row))]
        for row, url in enumerate(repository.urls(range(count)))
    ]
    expected = make_page_words(texts)
    assert words.starts.tolist() == expected.starts.tolist()
    for row in range(0, count, 7):
        mine = [[words.vocabulary[word] for word in text] for text in words.texts(row)]
        assert mine == [[expected.vocabulary[word] for word in text] for text in expected.texts(row)]
    assert sum(len(text) > 1 for text in texts) > 100
    repository.close()


def test_words_of_no_pages() -> None:
    assert len(gather_words([], [], 3)) == 3
    assert gather_words([], [(2, "red")], 3).of_page(2).tolist() == [0]


# -- making one


@pytest.mark.parametrize("method", LIVE)
def test_a_study_covers_the_frontier_and_is_kept(copy: Begun, method: str) -> None:
    study = make_study(copy.folder, copy.settings, method, time.time())
    repository = copy.repository()
    columns = repository.table.columns
    frontier = (columns["state"] == UrlState.NEW) & (columns["kind"] == UrlKind.PAGE)
    assert np.array_equal(~np.isnan(study.worth), frontier)
    assert frontier.sum() > 100
    assert study.calibration.kind == "calibrated"
    kept = read_study(copy.folder.study(method), repository.table.seed, columns["hash"], reasons=True)
    assert kept.study is not None
    assert kept.study.method == method
    np.testing.assert_array_equal(kept.study.worth, study.worth)
    repository.close()


def test_explain_shows_the_pages_that_link_and_how_much_they_pass(copy: Begun) -> None:
    study = make_study(copy.folder, copy.settings, "rw-eg", time.time())
    view = CrawlView(copy.root, "rw-eg")
    try:
        row = int(np.nanargmax(study.worth))
        url = view.repository.url(row)
        story = view.explain(url)
        best = view.next(5)
    finally:
        view.close()
    bid = story["bid"]["tree"]
    assert bid["value"] == pytest.approx(1.0 + study.worth[row] / study.default_worth, rel=1e-6)
    expected, mean = bid["children"][0]["children"]
    assert mean["value"] == pytest.approx(study.default_worth)
    score = expected["children"][0]
    links = [child for child in score["children"] if "url" in child]
    assert links
    for link in links:
        assert link["name"] == f"link from {link['url']}"
        assert link["value"] > 0
        source = int(copy.left.one("SELECT id FROM urls WHERE url = ?", link["url"]))
        repository = copy.repository()
        known = repository.links(source)
        repository.close()
        assert known is not None
        assert row in known.current()
    assert sum(link["value"] for link in links) <= score["value"] * 1.001
    assert all(entry["terms"]["basis"] == "study" for entry in best)
    assert [entry["bid"] for entry in best] == sorted((entry["bid"] for entry in best), reverse=True)


def test_explain_names_the_queries_and_forgets_them_with_the_log(copy: Begun) -> None:
    study = make_study(copy.folder, copy.settings, "query-driven", time.time())
    assert study.reasons is not None
    place = int(np.argmax((study.reasons.queries >= 0).sum(axis=1)))
    row = int(study.reasons.rows[place])

    def names() -> list[str]:
        view = CrawlView(copy.root, "query-driven")
        try:
            tree = view.explain(view.repository.url(row))["bid"]["tree"]
        finally:
            view.close()
        score = tree["children"][0]["children"][0]["children"][0]
        return [child["name"] for child in score["children"]]

    nouns = copy.server.world.words.topic(0).nouns
    assert any(name in {f"query '{noun}'" for noun in nouns} for name in names())
    (copy.root / "demand.db").unlink()
    assert set(names()) == {"a query asked earlier"}
    assert not any(noun.encode() in copy.folder.study("query-driven").read_bytes() for noun in nouns if len(noun) > 4)


def test_marks_of_queries_are_sealed_and_forgotten_with_them(copy: Begun) -> None:
    make_study(copy.folder, copy.settings, "query-driven", time.time())
    nouns = copy.server.world.words.topic(0).nouns[:15]
    with np.load(copy.folder.study("query-driven")) as stored:
        kept = {*stored["reasons_query_marks"].tolist(), *stored["answers_marks"].tolist()}
    assert len(kept) >= 5
    assert not kept & set(mark_queries(nouns).tolist())  # who has the file alone cannot test guesses
    ran = run_command("queries", "forget", copy.root, "--query", nouns[0])
    assert ran.code == 0, ran.err
    assert "the study of the crawl was removed" in ran.out
    assert not copy.folder.study("query-driven").exists()
    again = make_study(copy.folder, copy.settings, "query-driven", time.time())
    assert again.answers is not None
    assert not kept & set(again.answers.marks.tolist())
    assert len(again.answers.marks) == 14


def test_the_learned_method_is_told_words_and_directories_and_says_what_it_leans_on(copy: Begun) -> None:
    repository = copy.repository()
    snapshot = take_snapshot(repository, copy.settings, time.time())
    inputs = prepare_inputs(repository, snapshot, copy.settings.frontier, "learned", np.random.default_rng(0))
    urls = list(repository.urls(range(inputs.graph.count)))
    repository.close()
    assert inputs.words is not None
    assert inputs.workload is not None
    assert inputs.crawled_top is None  # nobody reads it: the index need not be asked
    directories = inputs.groups[-1]
    by_name = [url.split("?")[0].rsplit("/", 1)[0] for url in urls]
    assert len(set(by_name)) > 10
    assert len(set(zip(directories.tolist(), by_name, strict=True))) == len(set(by_name)) == directories.max() + 1
    study = make_study(copy.folder, copy.settings, "learned", time.time())
    view = CrawlView(copy.root, "learned")
    try:
        row = int(np.nanargmax(study.worth))
        story = view.explain(view.repository.url(row))
    finally:
        view.close()
    expected = story["bid"]["tree"]["children"][0]["children"][0]
    score = expected["children"][0]
    assert (score["name"], "learnt from" in score["note"]) == ("score", True)
    (leans,) = score["children"]
    assert leans["name"] == "leans on"
    assert len(leans["value"].split(", ")) == 5


def test_before_there_is_feedback_the_learned_method_says_so(copy: Begun) -> None:
    (copy.root / "demand.db").unlink()
    ran = run_command("study", copy.root, "--policy", "learned")
    assert ran.code == 0, ran.err
    assert "prior: too little feedback" in ran.out
    assert "too few clicks to learn from" in ran.out
    view = CrawlView(copy.root, "learned")
    try:
        url = next(entry["url"] for entry in view.next(5) if entry["kind"] == "new")
        story = str(view.explain(url))
    finally:
        view.close()
    assert "too few clicks to learn from" in story


def test_a_study_by_the_learned_method_can_be_asked_for(copy: Begun) -> None:
    ran = run_command("study", copy.root, "--policy", "learned")
    assert ran.code == 0, ran.err
    assert ran.out.startswith("learned: ")
    assert "calibrated: by " in ran.out


def test_urls_are_read_in_order_and_gaps_are_empty() -> None:
    connection = sqlite3.connect(":memory:", factory=EmbeddedConnection)
    connection.execute("CREATE TABLE urls (id INTEGER PRIMARY KEY, url TEXT)")
    connection.executemany("INSERT INTO urls VALUES (?, ?)", [(4, "e"), (1, "b"), (2, "c")])
    assert list(read_urls(connection, 6)) == ["", "b", "c", "", "e", ""]
    assert list(read_urls(connection, 2)) == ["", "b"]


def test_a_damaged_study_is_ignored_with_a_note(copy: Begun) -> None:
    make_study(copy.folder, copy.settings, "rw", time.time())
    copy.folder.study("rw").write_bytes(copy.folder.study("rw").read_bytes()[:5000])
    view = CrawlView(copy.root, "rw")
    try:
        entry = view.next(1)[0]
        tree = view.explain(entry["url"])["bid"]["tree"]
    finally:
        view.close()
    assert entry["terms"]["basis"] == "in-links, before a study"
    assert "damaged and ignored" in tree["note"]
    with running_crawl(copy.root, "--policy", "rw", "--rate", 5) as process:
        assert wait_for(lambda: copy.folder.study("rw").stat().st_size > 5000, 30)  # the crawl has it made anew
        assert process.poll() is None


# -- while a crawl runs


@pytest.mark.parametrize("method", ["rw-eg"])
def test_a_crawl_has_itself_studied_and_bids_by_it(copy: Begun, method: str) -> None:
    assert not copy.folder.study(method).exists()
    with running_crawl(copy.root, "--policy", method, "--rate", 15) as process:
        assert wait_for(copy.folder.study(method).exists, 40), process.poll()

        def bids() -> list[str]:
            return [str(terms) for (terms,) in copy.left.rows("SELECT terms FROM fetches WHERE id > 260")]

        assert wait_for(lambda: any('"basis":"study"' in terms for terms in bids()), 30), process.poll()
        assert process.poll() is None
        process.kill()  # -9
    view = CrawlView(copy.root, method)
    try:
        assert view.repository.study is not None
        assert view.study_note == ""
        assert any(one["terms"]["basis"] == "study" for one in view.next(50))  # others were found since
    finally:
        view.close()
    made = copy.folder.study(method).stat().st_mtime_ns
    last = int(copy.left.one("SELECT max(id) FROM fetches"))

    def later() -> list[str]:
        return [str(terms) for (terms,) in copy.left.rows("SELECT terms FROM fetches WHERE id > ? AND kind = 0", last)]

    with running_crawl(copy.root, "--policy", method, "--rate", 15) as process:
        assert wait_for(lambda: bool(later()), 30), process.poll()  # revisits may come first
    # from the first new page on it was there; what was found since goes by what it says of such URLs
    assert any(f'"basis":"{basis}"' in later()[0] for basis in ("study", "mean of its host"))
    assert copy.folder.study(method).stat().st_mtime_ns >= made


def test_a_policy_without_studies_starts_none(copy: Begun) -> None:
    repository = copy.repository()
    studies = Studies(repository, make_policy("random").studied, copy.settings)
    studies.take_up()
    studies.keep_up()
    studies.close()
    assert studies.tell() == ("", 0.0)
    assert not copy.folder.studies.exists()
    assert repository.study is None
    repository.close()


def test_a_study_that_fails_is_noted_and_the_crawl_goes_on(copy: Begun) -> None:
    repository = copy.repository()
    copy.folder.studies.mkdir()
    copy.folder.study("rw").mkdir()  # cannot be replaced by a file
    studying = Studying(repository, "rw", copy.settings)
    studying._due_at = 0.0
    try:
        studying.keep_up()
        assert wait_for(lambda: (studying.keep_up(), "failed" in studying.said)[1], 30)
        assert "is a folder" in studying.said
        assert "Traceback" not in studying.said
    finally:
        studying.close()
    assert repository.study is None
    repository.close()


def test_studies_are_far_enough_apart(copy: Begun) -> None:
    repository = copy.repository()
    studying = Studying(repository, "pagerank", copy.settings)
    studying._due_at = 0.0
    try:
        studying.keep_up()
        began = time.monotonic()
        assert studying.tell() == ("none yet", 0.0)
        assert wait_for(lambda: (studying.keep_up(), repository.study is not None)[1], 30)
        took_s = time.monotonic() - began
        basis, age_s = studying.tell()
        assert basis == "calibrated"
        assert 0 <= age_s < 60
        assert wait_for(lambda: (studying.keep_up(), studying._process is None)[1], 10)
        assert studying._due_at >= began + max(copy.settings.frontier.study_every_s, 5 * took_s) - 1.0
        studying._due_at = 0.0
        studying.keep_up()
        assert studying._process is None  # nothing was fetched since: there is no news
    finally:
        studying.close()
    repository.close()


def test_a_study_that_hangs_is_ended_and_another_made_later(copy: Begun, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(studying_module, "LONGEST_S", 1.0)
    repository = copy.repository()
    studying = Studying(repository, "rw", copy.settings)
    studying._due_at = 0.0
    try:
        studying.keep_up()
        process = studying._process
        assert process is not None
        assert psutil.Process(process.pid).nice() >= NICE
        os.kill(process.pid, signal.SIGSTOP)
        assert wait_for(lambda: (studying.keep_up(), studying._process is None)[1], 20)
        assert process.returncode == -signal.SIGKILL
        assert "it took more than 1 s" in studying.said
        assert studying._due_at >= time.monotonic() + copy.settings.frontier.study_every_s - 0.5
        assert not copy.folder.study("rw").exists()
        monkeypatch.setattr(studying_module, "LONGEST_S", 60.0)
        studying._due_at, studying._began_with = 0.0, 0
        studying.keep_up()
        assert wait_for(lambda: (studying.keep_up(), repository.study is not None)[1], 30)
        studying._took_s = 4.0
        assert studying._longest_s() == 80.0
    finally:
        studying.close()
    repository.close()


ORPHAN = """
import os, subprocess, sys, time
child = [sys.executable, "-c", sys.argv[1], str(os.getpid())]
print(subprocess.Popen(child, stdout=subprocess.PIPE).stdout.readline().decode().strip(), flush=True)
time.sleep(60)
"""
CHILD = """
import os, sys, time
from bowerbird.crawl import studying
from bowerbird.store.connection import EmbeddedConnection
if {deaf}:
    studying.ctypes = None
studying.end_with_parent(int(sys.argv[1]))
print(os.getpid(), flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize("deaf", [False, True], ids=["by the kernel", "by itself"])
def test_a_study_ends_when_the_crawl_is_killed(deaf: bool) -> None:
    command = [sys.executable, "-c", ORPHAN, CHILD.format(deaf=deaf)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = psutil.Process(int(parent.stdout.readline()))
        assert child.ppid() == parent.pid
        if not deaf:
            child.suspend()  # only the kernel can end it then
        parent.kill()
    try:
        assert wait_for(lambda: not child.is_running() or child.status() == psutil.STATUS_ZOMBIE, 10)
    finally:
        if child.is_running():
            child.kill()


def test_a_study_whose_crawl_is_gone_is_not_begun(copy: Begun) -> None:
    ran = run_command("study", copy.root, "--policy", "rw", "--parent", 2**30)
    assert (ran.code, ran.out) == (1, "")
    assert not copy.folder.study("rw").exists()
    assert "--parent" not in run_command("study", "--help").out


def test_of_a_long_complaint_the_end_is_kept(copy: Begun) -> None:
    repository = copy.repository()
    studying = Studying(repository, "rw", copy.settings)
    studying._errors = tempfile.TemporaryFile()  # noqa: SIM115 - it closes it
    studying._errors.write(b"Traceback\n" * 1000 + b"ValueError: the reason\n")
    said = studying._take_errors()
    assert said.endswith("ValueError: the reason")
    assert SAID_MOST - 10 < len(said) <= SAID_MOST
    assert studying._take_errors() == ""
    repository.close()


def test_two_studies_at_once_do_no_harm_and_no_writer_waits_for_them(copy: Begun) -> None:
    command = command_line("study", copy.root, "--policy", "rw-eg", "--json")
    both = [subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) for _ in range(2)]
    writer = sqlite3.connect(copy.folder.database, isolation_level=None, timeout=0)
    commits = 0
    while any(process.poll() is None for process in both):
        writer.execute("BEGIN IMMEDIATE")  # would raise at once if it had to wait
        writer.execute("INSERT INTO inbox (verb, url, at) VALUES ('add', 'http://x.test/', 0)")
        writer.execute("COMMIT")
        commits += 1
        time.sleep(0.01)
    writer.close()
    assert [process.communicate()[1] for process in both] == [b"", b""]
    assert [process.returncode for process in both] == [0, 0]
    assert commits > 20
    repository = copy.repository()
    read = read_study(copy.folder.study("rw-eg"), repository.table.seed, repository.table.columns["hash"], reasons=True)
    repository.close()
    assert read.study is not None
    assert [entry.name for entry in copy.folder.studies.iterdir()] == ["rw-eg.npz"]
