"""Studies of hubs: what they are made of, how a crawl visits hubs by them, what `explain` tells, what survives."""

from __future__ import annotations

import json
import shutil
import sqlite3
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import numpy as np
import pytest
from tests.crawl.conftest import Command
from tests.crawl.crawling import Left, make_crawl, run_command, running_crawl, wait_for
from tests.crawl.hub_past import Past

from bowerbird.appraise.policy import make_policy
from bowerbird.appraise.refresh.studied import STUDY_PRICE
from bowerbird.crawl.hub_study import make_hub_study
from bowerbird.crawl.intake import Intake
from bowerbird.crawl.reading import Reader, find_websub
from bowerbird.crawl.scope import Scope, ScopeRules
from bowerbird.crawl.settings import Settings, load_settings
from bowerbird.crawl.studying import Studies
from bowerbird.crawl.view import CrawlView
from bowerbird.lab.world import World, WorldServer, WorldSpec
from bowerbird.model.bid import Shape
from bowerbird.model.clock import ScaledClock
from bowerbird.model.errors import FolderError
from bowerbird.model.outcome import Outcome
from bowerbird.model.url_state import FetchKind, UrlKind
from bowerbird.schedule.leases import Lease
from bowerbird.serve.models import Explanation
from bowerbird.store.folder import CrawlFolder
from bowerbird.store.hub_hints import HubHint, read_hub_hints
from bowerbird.store.hub_study_file import read_hub_study
from bowerbird.store.repository import Repository
from bowerbird.store.schema import MIGRATIONS, VERSION
from bowerbird.web.response import FetchResult
from bowerbird.web.url import Canonicaliser

DAY_S = 86400.0
POLICY = "breadth-first+fixed+echo"
SPEED = 7200.0  # two hours pass in a second
HUB_INTERVAL_S, INTERVAL_S = 3.0, 20.0
SECTIONS: dict[str, dict[str, object]] = {
    "refresh": {"interval_s": INTERVAL_S, "min_interval_s": 0.5, "hub_interval_s": HUB_INTERVAL_S},
    "hubs": {"study_every_s": 1.0, "page_age_days": 1.0, "half_life_days": 10.0 / DAY_S},
}


@dataclass(frozen=True, slots=True)
class Living:
    """A living world, crawled for a while, studied, and crawled by that."""

    root: Path
    folder: CrawlFolder
    settings: Settings
    left: Left
    server: WorldServer
    echo_from: float  # when the crawl by the study began

    def repository(self) -> Repository:
        return Repository(self.folder, write=False, default_interval_s=INTERVAL_S)


@pytest.fixture(scope="module")
def living(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Living]:
    root = tmp_path_factory.mktemp("hubs") / "crawl"
    spec = WorldSpec(
        seed=2,  # two hosts publish most, two hardly anything
        start_s=float(int(time.time())),  # dates in its feeds are of today
        hosts=6,
        pages=120,
        articles_per_day=150.0,
        crawl_delay_share=0.0,
        disallow_share=0.0,
        trap_share=0.0,
    )
    with WorldServer(World(spec), ScaledClock(SPEED, spec.start_s)) as server:
        make_crawl(root, server.world.seeds(), SECTIONS)
        ran = run_command("crawl", root, "--for", "6s", "--policy", "breadth-first+fixed")
        assert ran.code == 0, ran.err
        assert run_command("study", root, "--policy", "echo").code == 0
        echo_from = time.time()
        ran = run_command("crawl", root, "--for", "10s", "--policy", POLICY)
        assert ran.code == 0, ran.err
        yield Living(root, CrawlFolder(root), load_settings(root / "bowerbird.toml"), Left(root), server, echo_from)


@pytest.fixture
def copy(living: Living, tmp_path: Path) -> Living:
    """The same crawl, to be changed."""
    root = tmp_path / "crawl"
    shutil.copytree(living.root, root)
    return Living(root, CrawlFolder(root), living.settings, Left(root), living.server, living.echo_from)


# -- while a crawl runs


def test_hubs_are_visited_at_intervals_that_follow_their_rates(living: Living) -> None:
    """Main pages, feeds and sitemaps of hosts that publish much are visited more often than those of the others."""
    world = living.server.world
    published = np.bincount([one.host for one in world.articles(0.0, living.server.clock.now())], minlength=6)
    order = np.argsort(-published)
    assert published[order[1]] > 5 * published[order[-2]]
    visits = dict(
        living.left.rows(
            "SELECT urls.url, count(*) FROM fetches JOIN urls ON urls.id = fetches.url WHERE fetched_at > ?"
            " AND outcome IN (?, ?) GROUP BY urls.url",
            living.echo_from,
            int(Outcome.OK),
            int(Outcome.NOT_MODIFIED),
        )
    )

    def often(hosts: list[int]) -> float:
        urls = (f"http://{world.hosts[host]}/{name}" for host in hosts for name in ("", "feed.xml", "sitemap.xml"))
        return float(np.mean([visits[url] for url in urls if url in visits]))

    assert often(order[:2].tolist()) > 1.4 * often(order[-2:].tolist())
    hubs = make_hub_study(living.folder, living.settings, "echo", time.time()).hubs
    priced = hubs.shape == Shape.SATURATING
    assert priced.sum() >= 8
    order = np.argsort(-hubs.drawn_per_s[priced], kind="stable")
    assert (np.diff(hubs.interval_s[priced][order]) >= -1e-3).all()  # the more a hub announces, the sooner


def test_its_visits_are_journalled_as_its_own(living: Living) -> None:
    terms = [
        json.loads(text)
        for (text,) in living.left.rows("SELECT terms FROM fetches WHERE fetched_at > ?", living.echo_from)
    ]
    by_echo = [one for one in terms if one.get("by") == "echo"]
    assert {one["basis"] for one in by_echo} >= {"study"}
    assert sum(one["basis"] == "study" for one in by_echo) >= 8
    announced = [one for one in terms if one.get("by") == "breadth-first" and "announced" in one]
    assert len(announced) >= 5
    # no clicks are known: all hubs are alike, and only how long pages may have been there tells them apart
    assert all(1.0 < one["announced"] <= 2.0 for one in announced)
    as_hubs = living.left.one(
        "SELECT count(*) FROM fetches JOIN urls ON urls.id = fetches.url WHERE fetches.kind = ? AND urls.kind = ?",
        int(FetchKind.HUB),
        int(UrlKind.PAGE),
    )
    assert as_hubs >= 2  # pages that are hubs too
    by_others = f'kind = {int(FetchKind.REFRESH)} AND terms LIKE \'{{"by":"echo"%\''
    assert living.left.one(f"SELECT count(*) FROM fetches WHERE {by_others}") == 0


def test_what_was_announced_is_fetched_soon(living: Living) -> None:
    """Pages found by the crawl with the study wait less than a second for their fetch, by the median."""
    waits = living.left.rows(
        "SELECT min(fetches.fetched_at) - urls.first_seen FROM urls JOIN fetches ON fetches.url = urls.id"
        " WHERE urls.first_seen > ? AND urls.source >= 0 AND fetches.outcome = ? GROUP BY urls.id",
        living.echo_from,
        int(Outcome.OK),
    )
    assert len(waits) >= 5
    assert np.median([wait for (wait,) in waits]) < 1.0


def test_explain_tells_of_a_hub_and_of_what_it_announced(living: Living, command: Command) -> None:
    report = command("hubs", living.root, "--json").json()
    page = next(row for row in report["table"] if row["kind"] in ("main page", "listing"))
    view = CrawlView(living.root, POLICY)
    try:
        stories = [
            view.explain(page["url"]),
            view.explain(next(r for r in report["table"] if r["kind"] == "feed")["url"]),
        ]
    finally:
        view.close()
    for story in stories:
        Explanation.model_validate(story)  # what the web page and the API show
        said = str(story["bid"]["tree"])
        for name in ("new_pages_per_day", "clicks_per_new_page", "decay_per_day", "interval_s", "due", STUDY_PRICE):
            assert f"'{name}'" in said, name
        assert "no click on a page that a hub announced is known yet" in said
    out = command("explain", living.root, page["url"], "--policy", "echo").out
    assert "new_pages_per_day = " in out
    assert "due = 20" in out


def test_a_study_survives_kill_and_the_next_crawl_goes_on_with_it(copy: Living) -> None:
    path = copy.folder.study("echo")
    path.unlink()
    with running_crawl(copy.root, "--policy", POLICY) as process:
        assert wait_for(path.exists, 40), process.poll()
        process.kill()  # -9
    view = CrawlView(copy.root, POLICY)
    try:
        assert view.repository.hub_study is not None
        assert view.hub_note == ""
    finally:
        view.close()
    last = int(copy.left.one("SELECT max(id) FROM fetches"))
    question = "SELECT terms FROM fetches WHERE id > ? AND terms LIKE '%\"echo\"%' ORDER BY id LIMIT 4"
    with running_crawl(copy.root, "--policy", POLICY):
        assert wait_for(lambda: len(copy.left.rows(question, last)) > 3, 40)
    assert '"basis":"study"' in str(copy.left.rows(question, last))
    copy.left.check_columns(copy.root.parent / "scratch")


@pytest.mark.parametrize("harm", ["damaged", "renamed", "missing"])
def test_a_study_that_cannot_be_used_is_ignored_and_made_anew(copy: Living, harm: str, command: Command) -> None:
    path = copy.folder.study("echo")
    if harm == "damaged":
        path.write_bytes(path.read_bytes()[:2000])
    elif harm == "renamed":
        assert run_command("study", copy.root, "--policy", "uniform").code == 0
        copy.folder.study("uniform").replace(path)
    else:
        path.unlink()
    feed = copy.left.one("SELECT url FROM urls WHERE kind = ? LIMIT 1", int(UrlKind.FEED))
    view = CrawlView(copy.root, POLICY)
    try:
        story = view.explain(feed)
        assert view.next(20)
    finally:
        view.close()
    said = str(story["bid"]["tree"])
    assert "until then it bids as hub-interval does" in said
    assert ("damaged and ignored" in said) == (harm == "damaged")
    assert ("no study of hubs and ignored" in said) == (harm == "renamed")
    shown = command("hubs", copy.root)
    assert shown.code == 0
    assert ("ignored" in shown.err) == (harm != "missing")
    repository = copy.repository()
    read = read_hub_study(path, repository.table.seed, repository.table.columns["hash"])
    repository.close()
    assert read.study is not None  # `hubs` made it anew


def test_all_three_studies_take_turns(copy: Living) -> None:
    shutil.rmtree(copy.folder.studies)
    repository = copy.repository()
    studies = Studies(repository, ("pagerank", "uniform", "echo"), copy.settings)
    for part in studies.parts:
        part._due_at = 0.0
    most = 0

    def all_made() -> bool:
        nonlocal most
        studies.keep_up()
        most = max(most, sum(part.is_busy for part in studies.parts))
        return None not in (repository.study, repository.refresh_study, repository.hub_study)

    try:
        assert wait_for(all_made, 60)
    finally:
        studies.close()
        repository.close()
    assert most == 1
    assert studies.tell()[0].endswith(" + echo")


# -- making one


def test_the_command_studies_hubs_beside_pages(copy: Living, command: Command) -> None:
    both = command("study", copy.root, "--policy", "uniform+echo", "--json").json()
    assert [study["method"] for study in both] == ["uniform", "echo"]
    out = command("study", copy.root, "--policy", "echo").out
    assert "new pages" in out
    assert out.count("\n  feed ") >= 1


def test_what_feeds_and_sitemaps_say_of_themselves_is_stored(tmp_path: Path) -> None:
    past = Past(tmp_path / "crawl")
    feed, sitemap = "http://a.example/feed", "http://a.example/sitemap.xml"
    rows = [past.add(feed, past.now, kind=UrlKind.FEED), past.add(sitemap, past.now, kind=UrlKind.SITEMAP)]
    reader = Reader(Canonicaliser(), Scope(ScopeRules("anywhere")), agent="x", hash_seed=past.repository.table.seed)
    rss = b"<rss><channel><ttl>15</ttl><item><link>http://a.example/1</link></item></channel></rss>"
    xml = b"<urlset><url><loc>http://a.example/2</loc><changefreq>daily</changefreq></url></urlset>"
    link = {"link": ['<http://a.example/feed>; rel="self"', "<http://hub.example/>; x=y; rel=hub"]}
    intake = Intake(past.repository, make_policy("echo"), past.settings)
    for row, url, body, headers in ((rows[0], feed, rss, link), (rows[1], sitemap, xml, {})):
        report = reader.read(FetchResult(1, url, Outcome.OK, 200, headers=headers, body=body, started_at=past.now))
        assert report.outcome is Outcome.OK, report.error
        lease = Lease(row, 0, 0, FetchKind.HUB, past.now, past.now + 1, 1.0, 1.0, "{}")
        assert len(intake.take([(lease, report)], past.now).added) == 1
    past.repository.commit()
    assert read_hub_hints(past.repository.connection, 10) == {
        rows[0]: HubHint(rows[0], 900.0, "http://hub.example/"),
        rows[1]: HubHint(rows[1], 86_400.0),
    }
    assert past.repository.table.columns["source"][-2:].tolist() == rows
    past.repository.close()


@pytest.mark.parametrize(
    ("rel", "found"),
    [
        ('"hub"', True),
        ("hub", True),
        ("HUB; x=y", True),
        ("'self hub'", True),
        ('"self hub"', True),
        ('"hub self"', True),
        ('"self"', False),
        ("hub-x", False),
        ('"hub-x"', False),
        ('"x-hub"', False),
        ('"hubs self"', False),
    ],
)
def test_a_websub_hub_is_one_among_the_relations_of_a_header(rel: str, found: bool) -> None:
    other = '<http://a.example/feed>; rel="self"'
    assert find_websub([f"{other}, <http://hub.example/>; rel={rel}"]) == ("http://hub.example/" if found else "")


@pytest.mark.parametrize("part", ["; ", ";", " ", '; rel="', '; rel="hubs ', "<a>; rel=hub-"])
def test_long_headers_are_read_in_no_time(part: str) -> None:
    began = time.perf_counter()
    assert find_websub(["<http://a.example/>" + part * (60_000 // len(part))]) == ""
    assert time.perf_counter() - began < 1.0


def test_a_crawl_without_hubs_can_be_asked(tmp_path: Path, command: Command) -> None:
    root = make_crawl(tmp_path / "crawl", ["http://seed.example/"])
    ran = command("hubs", root)
    assert ran.code == 0, ran.err
    assert ran.out.startswith("0 hubs (none yet)")
    assert "no hub has announced a new page yet" in ran.out
    due = command("hubs", root, "--json").json()["table"]
    assert due == []


def test_due_times_are_told(living: Living, command: Command) -> None:
    report = command("hubs", living.root, "--json", "--top", 5).json()
    assert len(report["table"]) == 5
    assert [row["found"] for row in report["table"]] == sorted((row["found"] for row in report["table"]), reverse=True)
    assert all(datetime.fromisoformat(row["due"]) for row in report["table"])
    assert report["cover"]["share"] >= 0.8
    assert 0 < report["cover"]["hubs"] < report["hubs"]


# -- folders of earlier versions


def test_a_folder_of_version_2_is_brought_up_to_date_crawled_and_studied_and_loses_nothing(copy: Living) -> None:
    make_older(copy.folder.database, 2)
    shutil.rmtree(copy.folder.studies)
    before = {name: keep(copy, name) for name in ("fetches", "urls", "seeds", "hints")}
    assert len(before["fetches"]) > 100
    with pytest.raises(FolderError, match="format 2, older"):
        copy.repository()
    ran = run_command("crawl", copy.root, "--for", "4s", "--policy", POLICY)
    assert ran.code == 0, ran.err
    assert copy.left.one("PRAGMA user_version") == VERSION > 2
    for name, rows in before.items():
        assert keep(copy, name, rows) == rows, name
    assert copy.left.one("SELECT count(*) FROM fetches") > len(before["fetches"]) + 5
    assert copy.left.one("SELECT count(*) FROM fetches WHERE modified IS NOT NULL OR validators") > 0
    study = make_hub_study(copy.folder, copy.settings, "echo", time.time())
    old = np.unique([row["url"] for row in before["fetches"]])
    feeds = [row["id"] for row in before["urls"] if row["kind"] == UrlKind.FEED and row["id"] in old]
    assert set(feeds) <= set(study.hubs.row.tolist())
    assert study.info["found"] > 10
    copy.left.check_columns(copy.root.parent / "scratch")


def make_older(path: Path, version: int) -> None:
    """The same database as an earlier version had it: what that did not know is left out."""
    older = path.with_name("older.db")
    connection = sqlite3.connect(older)
    connection.executescript("".join(MIGRATIONS[:version]) + f"PRAGMA user_version = {version};")
    connection.execute("ATTACH ? AS present", (str(path),))
    for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
        columns = ", ".join(row[1] for row in connection.execute(f"PRAGMA table_info({name})"))
        connection.execute(f"INSERT INTO {name} ({columns}) SELECT {columns} FROM present.{name}")
    connection.commit()
    connection.close()
    for extra in ("-wal", "-shm"):
        path.with_name(path.name + extra).unlink(missing_ok=True)
    older.replace(path)


def keep(copy: Living, table: str, like: list[dict[str, object]] | None = None) -> list[dict[str, object]]:
    """The rows of a table; or as many of them, and such columns, as there were."""
    connection = sqlite3.connect(copy.folder.database)
    connection.row_factory = sqlite3.Row
    limit = "" if like is None else f" LIMIT {len(like)}"
    rows = [dict(row) for row in connection.execute(f"SELECT * FROM {table} ORDER BY 1{limit}")]
    connection.close()
    return rows if like is None else [{name: row[name] for name in like[0]} for row in rows]
