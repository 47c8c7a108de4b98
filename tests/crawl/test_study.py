"""Studies of a live crawl: what they are made of, how a crawl goes by them, and that they outlive it."""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from tests.crawl.crawling import Left, make_crawl, run_command, running_crawl, wait_for

from bowerbird.appraise.frontier.methods import METHODS
from bowerbird.appraise.policy import STUDIED
from bowerbird.crawl.demand_log import open_demand
from bowerbird.crawl.page_words import gather_words, read_page_words, words_of
from bowerbird.crawl.settings import Settings, load_settings
from bowerbird.crawl.study import gather_feedback, make_study, read_first_fetches, read_links, take_snapshot
from bowerbird.crawl.studying import Studying
from bowerbird.crawl.view import CrawlView
from bowerbird.demand.events import QueryAsked, ResultClicked
from bowerbird.index.analysis import tokenize
from bowerbird.lab.world import World, WorldServer, WorldSpec
from bowerbird.model.outcome import Outcome
from bowerbird.model.page_words import make_page_words
from bowerbird.model.url_state import UrlKind, UrlState
from bowerbird.store.folder import CrawlFolder
from bowerbird.store.links import OutLinks
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
def begun(tmp_path_factory: pytest.TempPathFactory):  # type: ignore[no-untyped-def]
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
    graph = read_links(repository.connection, count)
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
    assert read_links(repository.connection, 1000).out_links(source).tolist() == [2, 3, 4]
    assert read_links(repository.connection, source + 1).out_links(source).tolist() == [2, 3, 4]
    few = read_links(repository.connection, 4)
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
    feedback = gather_feedback(repository, take_snapshot(repository, begun.settings, time.time()), 1e6)
    columns = repository.table.columns
    assert (columns["kind"][feedback.pages] == UrlKind.PAGE).all()
    assert (feedback.weight[drawn] > 1).all()
    assert ((feedback.exposure > 0) & (feedback.exposure <= 1)).all()
    repository.close()


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


@pytest.mark.parametrize(
    "text", ["", "An e-mail, twice", "x" * 81 + " y" * 3, "z" * 80, "Crème brûlée", "東京 Tokyo", "a_b.c\x01d"]
)
def test_the_quick_way_to_words_gives_the_same(text: str) -> None:
    assert words_of(text) == tokenize(text)


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
    kept = read_study(copy.folder.study, repository.table.seed, columns["hash"], reasons=True)
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
    assert story["bid"]["value"] == pytest.approx(1.0 + study.worth[row], rel=1e-6)
    (expected,) = story["bid"]["tree"]["children"][0]["children"]
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
    assert not any(noun.encode() in copy.folder.study.read_bytes() for noun in nouns if len(noun) > 4)


def test_a_damaged_study_is_ignored_with_a_note(copy: Begun) -> None:
    make_study(copy.folder, copy.settings, "rw", time.time())
    copy.folder.study.write_bytes(copy.folder.study.read_bytes()[:5000])
    view = CrawlView(copy.root, "rw")
    try:
        entry = view.next(1)[0]
        tree = view.explain(entry["url"])["bid"]["tree"]
    finally:
        view.close()
    assert entry["terms"]["basis"] == "in-links, before a study"
    assert "damaged and ignored" in tree["note"]
    with running_crawl(copy.root, "--policy", "rw", "--rate", 5) as process:
        assert wait_for(lambda: copy.folder.study.stat().st_size > 5000, 30)  # the crawl has it made anew
        assert process.poll() is None


# -- while a crawl runs


@pytest.mark.parametrize("method", ["rw-eg"])
def test_a_crawl_has_itself_studied_and_bids_by_it(copy: Begun, method: str) -> None:
    assert not copy.folder.study.exists()
    with running_crawl(copy.root, "--policy", method, "--rate", 15) as process:
        assert wait_for(copy.folder.study.exists, 40), process.poll()

        def bids() -> list[str]:
            return [str(terms) for (terms,) in copy.left.rows("SELECT terms FROM fetches WHERE id > 260")]

        assert wait_for(lambda: any('"basis":"study"' in terms for terms in bids()), 30), process.poll()
        assert process.poll() is None
        process.kill()  # -9
    view = CrawlView(copy.root, method)
    try:
        assert view.repository.study is not None
        assert view.study_note == ""
        assert view.next(1)[0]["terms"]["basis"] == "study"
    finally:
        view.close()
    made = copy.folder.study.stat().st_mtime_ns
    last = int(copy.left.one("SELECT max(id) FROM fetches"))
    with running_crawl(copy.root, "--policy", method, "--rate", 15, "--for", 8) as process:
        assert wait_for(lambda: int(copy.left.one("SELECT max(id) FROM fetches")) > last, 20)
    first = copy.left.rows("SELECT terms FROM fetches WHERE id > ? AND kind = 0 ORDER BY id LIMIT 1", last)
    assert '"basis":"study"' in str(first)  # from the first fetch on: it was there
    assert copy.folder.study.stat().st_mtime_ns >= made


def test_a_policy_without_studies_starts_none(copy: Begun) -> None:
    repository = copy.repository()
    studying = Studying(repository, None, copy.settings)
    studying._due_at = 0.0
    studying.keep_up()
    studying.close()
    assert not copy.folder.study.parent.exists()
    assert repository.study is None
    repository.close()


def test_a_study_that_fails_is_noted_and_the_crawl_goes_on(copy: Begun) -> None:
    repository = copy.repository()
    copy.folder.study.parent.mkdir()
    copy.folder.study.mkdir()  # cannot be replaced by a file
    studying = Studying(repository, "rw", copy.settings)
    studying._due_at = 0.0
    try:
        studying.keep_up()
        assert wait_for(lambda: (studying.keep_up(), "failed" in studying.said)[1], 30)
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
        assert wait_for(lambda: (studying.keep_up(), repository.study is not None)[1], 30)
        took_s = time.monotonic() - began
        assert wait_for(lambda: (studying.keep_up(), studying._process is None)[1], 10)
        assert studying._due_at >= began + max(copy.settings.frontier.study_every_s, 5 * took_s) - 1.0
        studying._due_at = 0.0
        studying.keep_up()
        assert studying._process is None  # nothing was fetched since: there is no news
    finally:
        studying.close()
    repository.close()
