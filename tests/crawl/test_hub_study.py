"""Studies of hubs: what they are made of, how a crawl visits hubs by them, what `explain` tells, what survives."""

from __future__ import annotations

import json
import math
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import numpy as np
import pytest
from tests.crawl.conftest import Command
from tests.crawl.crawling import Left, make_crawl, run_command, running_crawl, wait_for
from tests.crawl.hub_past import Past, urls

from bowerbird.appraise.policy import make_policy
from bowerbird.crawl.demand_log import open_demand
from bowerbird.crawl.hub_study import gather_hubs, make_hub_study, price_pages
from bowerbird.crawl.hub_visits import choose_hubs, find_discoveries, find_turns
from bowerbird.crawl.intake import Intake
from bowerbird.crawl.reading import Reader
from bowerbird.crawl.scope import Scope, ScopeRules
from bowerbird.crawl.settings import Settings, load_settings
from bowerbird.crawl.studying import Studies
from bowerbird.crawl.view import CrawlView
from bowerbird.demand.events import ResultClicked
from bowerbird.lab.world import World, WorldServer, WorldSpec
from bowerbird.model.bid import Shape
from bowerbird.model.clock import ScaledClock
from bowerbird.model.hub_study import HubKind
from bowerbird.model.outcome import Outcome
from bowerbird.model.url_state import FetchKind, UrlKind
from bowerbird.schedule.leases import Lease
from bowerbird.serve.models import Explanation
from bowerbird.store.folder import CrawlFolder
from bowerbird.store.hub_hints import HubHint, read_hub_hints
from bowerbird.store.hub_study_file import read_hub_study
from bowerbird.store.repository import Repository
from bowerbird.store.visits import read_visits
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
    assert all(one["announced"] == 2.0 for one in announced)  # no clicks are known: all hubs are alike
    as_hubs = living.left.one(
        "SELECT count(*) FROM fetches WHERE kind = ? AND terms LIKE '%\"echo\"%'", int(FetchKind.REFRESH)
    )
    assert as_hubs >= 2  # pages that are hubs too


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
        for name in ("new_pages_per_day", "clicks_per_new_page", "decay_per_day", "interval_s", "due", "price"):
            assert f"'{name}'" in said, name
        assert "no clicks are known yet" in said
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
    with running_crawl(copy.root, "--policy", POLICY, "--for", 6):
        assert wait_for(lambda: len(copy.left.rows(question, last)) > 3, 20)
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


def test_what_the_first_visit_shows_is_old_and_so_is_what_is_dated_before_the_last(tmp_path: Path) -> None:
    past = Past(tmp_path / "crawl")
    t = past.now - 10 * 3600.0
    feed = past.add("http://a.example/feed", t, kind=UrlKind.FEED)
    past.visit(feed, t, urls("first", 5))
    second = past.visit(feed, t + 3600, urls("second", 3))
    third = past.visit(feed, t + 7200, urls("third", 4))
    for row, date in zip(third, (t + 5000, t + 3000, t - 9e6, t + 7000), strict=True):
        past.repository.record_hint(row, date, t + 7200)
    study = past.study()
    assert study.hubs.row.tolist() == [feed]
    assert study.hubs.visits.tolist() == [3]
    assert study.hubs.found.tolist() == [3 + 2]
    assert study.page_row.tolist() == sorted([*second, third[0], third[3]])
    assert HubKind(int(study.hubs.kind[0])) is HubKind.FEED
    past.repository.close()


def test_a_host_with_another_clock_is_not_believed(tmp_path: Path) -> None:
    past = Past(tmp_path / "crawl")
    t = past.now - 10 * 3600.0
    feed = past.add("http://a.example/feed", t, kind=UrlKind.FEED)
    past.visit(feed, t, urls("first", 2))
    for row in past.visit(feed, t + 3600, urls("second", 3)):
        past.repository.record_hint(row, t - 300 * DAY_S, t + 3600)  # all its dates are months old
    assert past.study().hubs.found.tolist() == [3]
    past.repository.close()


def test_a_page_counts_for_the_hub_that_led_to_it_first(tmp_path: Path) -> None:
    past = Past(tmp_path / "crawl")
    t = past.now - 10 * 3600.0
    feeds = [past.add(f"http://a.example/feed-{n}", t, kind=UrlKind.FEED) for n in range(2)]
    for feed in feeds:
        past.visit(feed, t, urls("old", 2))
    new = past.visit(feeds[0], t + 3600, urls("new", 4))
    past.visit(feeds[1], t + 3601, still=tuple(new))
    study = past.study()
    assert study.hubs.found.tolist() == [4, 0]
    assert study.info["announced"] == 4  # but both announce them
    assert len(study.cover_hub) == 1
    past.repository.close()


def test_which_urls_are_hubs(tmp_path: Path) -> None:
    past = Past(tmp_path / "crawl", {"hubs": {"page_age_days": 3.0}})
    t = past.now - 10 * DAY_S
    main = past.add("http://a.example/", t)
    near = past.visit(main, t, (*urls("old", 2), *urls("elsewhere", 1, "b.example")))
    young = past.visit(main, past.now - 2 * DAY_S, urls("young", 1), tuple(near))
    for row in (*near, *young):
        past.visit(row, past.now - DAY_S)
    steady, once = past.add("http://b.example/blog", t), past.add("http://b.example/about", t)
    for nth in range(3):
        past.visit(steady, t + nth * DAY_S, urls(f"post-{nth}", 2, "b.example"))
        past.visit(once, t + nth * DAY_S, urls(f"news-{nth}", 5, "c.example") if nth == 1 else ())
    feed = past.add("http://b.example/feed", t, kind=UrlKind.FEED)
    sitemap = past.add("http://b.example/sitemap.xml", t, kind=UrlKind.SITEMAP)
    unread = past.add("http://b.example/never", t, kind=UrlKind.FEED)
    past.visit(feed, t)
    past.visit(sitemap, t)
    past.repository.commit()
    snapshot = past.repository.snapshot(past.now)
    visits = read_visits(past.repository.connection, len(snapshot.pages))
    found = find_discoveries(snapshot.pages, past.repository.table.columns["hops"], visits, past.now)
    rows, kinds = choose_hubs(past.repository, snapshot, visits, found, 3 * DAY_S)
    chosen = {row: HubKind(kind) for row, kind in zip(rows.tolist(), kinds.tolist(), strict=True)}
    assert chosen == {
        main: HubKind.MAIN_PAGE,
        near[0]: HubKind.LISTING,  # one hop from the main page, of its host, and old enough
        near[1]: HubKind.LISTING,
        steady: HubKind.LISTING,  # two later visits led to new pages
        feed: HubKind.FEED,
        sitemap: HubKind.SITEMAP,
    }
    assert unread not in chosen
    past.repository.close()


def test_a_hub_that_turned_over_has_lost_pages(tmp_path: Path) -> None:
    past = Past(tmp_path / "crawl")
    t = past.now - 30 * 3600.0
    feed = past.add("http://a.example/feed", t, kind=UrlKind.FEED)
    rows = past.visit(feed, t, urls("v0", 5))
    for nth in range(1, 9):
        rows = past.visit(feed, t + nth * 3600, urls(f"v{nth}", 4), (rows[0],))
    past.visit(feed, t + 20 * 3600, urls("late", 5))  # after twelve hours nothing is left
    study = past.study()
    assert study.hubs.turned.tolist() == [1]
    expected = float(study.hubs.rate_per_s[0]) * 12 * 3600 - 5
    assert study.hubs.missed[0] == pytest.approx(expected, rel=1e-3)
    assert expected > 20
    past.repository.close()


def test_turns_of_pages_leave_aside_what_leads_around_the_site() -> None:
    at = np.array([10.0, 20.0, 30.0, 40.0])
    first = np.array([10.0, 10.0, 20.0, 30.0, 40.0])
    last = np.array([40.0, 40.0, 20.0, 30.0, 40.0])
    assert find_turns(at, first, last, watched_only=True).tolist() == [2, 3]
    assert find_turns(at, first, last, watched_only=False).tolist() == []  # two links stay for ever
    # what leaves by age, with nothing new, was not missed
    assert find_turns(at, np.array([20.0]), np.array([30.0]), watched_only=True).tolist() == []
    assert find_turns(at[:1], first[:2], last[:2], watched_only=False).tolist() == []


def test_hints_and_clicks_reach_the_study(tmp_path: Path) -> None:
    past = Past(tmp_path / "crawl")
    t = past.now - 5 * DAY_S
    feed = past.add("http://a.example/feed", t, kind=UrlKind.FEED)
    past.repository.record_hub_hint(HubHint(feed, 900.0, "http://hub.example/"))
    past.visit(feed, t)
    new: list[int] = []
    for nth in range(1, 5):
        new += past.visit(feed, t + nth * 3600, urls(f"p{nth}", 10), tuple(new))
    for row in new:
        past.visit(row, t + 5 * 3600)
    with open_demand(past.folder, past.settings.demand, write=True) as log:
        rng = np.random.default_rng(3)
        for row in new[::2]:
            ages = rng.exponential(12 * 3600 / math.log(2.0), 8)
            found = float(past.repository.table.columns["first_seen"][row])
            times = [found + age for age in ages if t + 5 * 3600 < found + age < past.now]
            log.record(ResultClicked(None, past.repository.url(row), None, at) for at in times)
        log.record([ResultClicked(None, "http://elsewhere.example/", None, past.now)])
    study = past.study()
    assert study.by_clicks
    assert study.hubs.period_s.tolist() == [900.0]
    assert study.hubs.profit[0] == pytest.approx(4.0, rel=0.35)
    assert math.log(2.0) / study.hubs.decay_per_s[0] == pytest.approx(12 * 3600, rel=0.5)
    assert study.info["clicks"] > 50
    inputs = gather_hubs(past.repository, past.settings, past.repository.snapshot(past.now))
    assert inputs.page_price == 0.0
    assert len(inputs.announced.row) == 40
    past.repository.close()


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


def test_the_price_of_pages_is_that_of_the_running_crawl(tmp_path: Path) -> None:
    past = Past(tmp_path / "crawl")
    for at, price, expected in ((past.now, 1.0, 0.0), (past.now, 3.5, 2.5), (past.now - 3600, 3.5, 0.0)):
        past.repository.set_meta("live", json.dumps({"at": at, "price": price}))
        assert price_pages(past.repository, past.now) == expected
    past.repository.close()


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
