"""Studies of known pages: what they are made of, how a crawl refreshes by them, what `explain` tells, what survives."""

from __future__ import annotations

import re
import shutil
import sqlite3
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.crawl.conftest import Command
from tests.crawl.crawling import Left, make_crawl, run_command, running_crawl, wait_for

from bowerbird.appraise.budget.costs import DEAREST
from bowerbird.appraise.policy import REFRESH_STUDIED
from bowerbird.appraise.refresh.studied import STUDY_PRICE
from bowerbird.appraise.refresh.study import KnownPages
from bowerbird.crawl.demand_log import open_demand
from bowerbird.crawl.refresh_study import (
    PageVisits,
    _read_between,
    arrange_visits,
    expect_cost,
    gather_inputs,
    hear_signals,
    make_refresh_study,
    match_gains,
)
from bowerbird.crawl.settings import Settings, load_settings
from bowerbird.crawl.studying import Studies
from bowerbird.crawl.view import CrawlView
from bowerbird.demand.events import QueryAsked
from bowerbird.lab.world import World, WorldServer, WorldSpec
from bowerbird.model.clock import ScaledClock
from bowerbird.model.outcome import Outcome
from bowerbird.model.url_state import FetchKind, UrlKind, UrlState
from bowerbird.serve.models import Explanation
from bowerbird.store.folder import CrawlFolder
from bowerbird.store.gains import GainColumns, read_gains
from bowerbird.store.refresh_study_file import read_refresh_study
from bowerbird.store.repository import Repository
from bowerbird.store.visits import Visits

POLICY = "breadth-first+user-centric"
INTERVAL_S = 4.0  # the line is made up anew every 2 s: nothing can come more often
SPEED = 7200.0  # two hours pass in a second
SPEC = WorldSpec(
    seed=8,
    hosts=4,
    pages=100,
    change_mix=((0.4, 0.0), (0.6, 8.0)),
    significant_share=0.8,
    articles_per_day=2.0,
    crawl_delay_share=0.0,
    disallow_share=0.0,
    trap_share=0.0,
    validator_share=0.7,
)
SECTIONS: dict[str, dict[str, object]] = {
    "refresh": {
        "interval_s": INTERVAL_S,
        "min_interval_s": 2.0,
        "hub_interval_s": 2.0,
        "study_every_s": 1.0,
    },
    "frontier": {"study_every_s": 1.0},
    "quality": {"every_s": 1.0},
}


@dataclass(frozen=True, slots=True)
class Living:
    """A living world, crawled for a while by a study of its known pages."""

    root: Path
    folder: CrawlFolder
    settings: Settings
    left: Left
    server: WorldServer
    nouns: tuple[str, ...]
    ended_at: float

    def repository(self) -> Repository:
        return Repository(self.folder, write=False, default_interval_s=INTERVAL_S)


@pytest.fixture(scope="module")
def living(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Living]:
    root = tmp_path_factory.mktemp("refresh") / "crawl"
    with WorldServer(World(SPEC), ScaledClock(SPEED, SPEC.start_s)) as server:
        make_crawl(root, server.world.seeds(), SECTIONS)
        settings, nouns = load_settings(root / "bowerbird.toml"), server.world.words.topic(0).nouns[:15]
        with open_demand(CrawlFolder(root), settings.demand, write=True) as log:
            now = time.time()
            log.record(QueryAsked(noun, now, 20 - place) for place, noun in enumerate(nouns))
        ran = run_command("crawl", root, "--for", "16s", "--policy", POLICY)
        assert ran.code == 0, ran.err
        yield Living(root, CrawlFolder(root), settings, Left(root), server, tuple(nouns), time.time())


@pytest.fixture
def copy(living: Living, tmp_path: Path) -> Living:
    """The same crawl, to be changed."""
    root = tmp_path / "crawl"
    shutil.copytree(living.root, root)
    return Living(root, CrawlFolder(root), living.settings, Left(root), living.server, living.nouns, living.ended_at)


def nodes(tree: dict[str, Any]) -> list[dict[str, Any]]:
    return [tree, *(node for child in tree.get("children", ()) for node in nodes(child))]


def named(tree: dict[str, Any], name: str) -> list[dict[str, Any]]:
    return [node for node in nodes(tree) if node["name"] == name]


# -- while a crawl runs


def test_a_crawl_has_its_pages_studied_and_refreshes_by_it(living: Living) -> None:
    assert living.folder.study("user-centric").is_file()
    by = Counter(
        str(basis)
        for (basis,) in living.left.rows(
            "SELECT json_extract(terms, '$.basis') FROM fetches WHERE kind = ?", int(FetchKind.REFRESH)
        )
    )
    assert by["study"] > 60
    assert set(by) <= {
        "study",
        "own interval",
        "own interval, before a study",
        "mean of its host",
        "mean of all",
    }


def test_it_makes_about_as_many_refreshes_as_the_fixed_interval_would(living: Living) -> None:
    last_s = 8.0
    end = float(living.left.one("SELECT max(fetched_at) FROM fetches"))
    made = int(
        living.left.one(
            "SELECT count(*) FROM fetches WHERE kind = ? AND fetched_at > ?", int(FetchKind.REFRESH), end - last_s
        )
    )
    pages = sum(state is UrlState.FETCHED for state in living.left.states().values())
    assert 0.3 < made / (pages * last_s / INTERVAL_S) < 1.6  # the line adds up to 2 s to each interval


def test_refreshes_go_where_they_gain(copy: Living) -> None:
    """Of the pages that change, those that searchers see come round sooner than the others."""
    study = make_refresh_study(copy.folder, copy.settings, "user-centric", time.time())
    assert study.details is not None
    stake, changes = study.details.stake, study.changes_per_s
    moving = changes > np.nanmedian(changes)
    seen, unseen = moving & (stake > np.nanmean(stake)), moving & (stake < 0.2 * np.nanmean(stake))
    assert seen.sum() >= 3
    assert unseen.sum() >= 10
    # how much sooner hangs on how many pages the crawl had time for: none is fetched within 2 s of its last fetch
    assert np.median(study.interval_s[seen]) < 0.9 * np.median(study.interval_s[unseen])


def test_explain_shows_the_gains_the_queries_they_came_from_and_the_next_due_time(
    living: Living, command: Command
) -> None:
    best = living.left.rows("SELECT page, max(gain) FROM gains WHERE gain > 0 GROUP BY page ORDER BY 2 DESC LIMIT 1")
    assert best, "no refresh gained anything"
    url = living.left.urls()[best[0][0]]
    view = CrawlView(living.root, POLICY)
    try:
        story = view.explain(url)
    finally:
        view.close()
    tree = story["bid"]["tree"]
    gains = [node for node in nodes(tree) if node["name"].startswith("gain measured")]
    assert 1 <= len(gains) <= 3
    for gain in gains:
        datetime.fromisoformat(gain["name"].removeprefix("gain measured "))
        assert gain["value"] >= 0
    everything = str(tree)
    assert any(f"query '{noun}'" in everything for noun in living.nouns)
    (due,) = named(tree, "due")
    datetime.fromisoformat(due["value"])
    assert due["note"] == "now" or due["note"].startswith("in ")
    for name in ("age_s", "changes_per_day", "loss while stale", "interval_s", STUDY_PRICE, "study_age_s"):
        assert len(named(tree, name)) == 1, name
    Explanation.model_validate(story)  # what the web page and the API show
    said = command("explain", living.root, url, "--policy", "user-centric").out
    assert "gain measured 20" in said
    assert re.search(r"due = 20\d\d-", said)


def test_forgotten_queries_are_not_named(copy: Living) -> None:
    best = copy.left.rows("SELECT page FROM gains WHERE gain > 0 ORDER BY gain DESC LIMIT 1")
    (copy.root / "demand.db").unlink()
    view = CrawlView(copy.root, POLICY)
    try:
        tree = view.explain(copy.left.urls()[best[0][0]])["bid"]["tree"]
    finally:
        view.close()
    assert "a query asked earlier" in str(tree)
    assert not any(f"'{noun}'" in str(tree) for noun in copy.nouns)


def test_next_shows_what_is_due_and_when(living: Living, command: Command) -> None:
    rows = command("next", living.root, "--policy", "user-centric", "-n", 30, "--json").json()
    refreshes = [row for row in rows if row["kind"] == "refresh"]
    assert refreshes
    assert {row["terms"]["by"] for row in refreshes} == {"user-centric"}
    assert all(row["terms"]["interval_s"] > 0 for row in refreshes)
    assert all(row["when"] == "now" or datetime.fromisoformat(row["when"]) for row in refreshes)


def test_a_study_survives_kill_and_the_next_crawl_goes_on_with_it(copy: Living) -> None:
    path = copy.folder.study("user-centric")
    path.unlink()
    with running_crawl(copy.root, "--policy", POLICY) as process:
        assert wait_for(path.exists, 40), process.poll()
        process.kill()  # -9
    view = CrawlView(copy.root, POLICY)
    try:
        assert view.repository.refresh_study is not None
        assert view.refresh_note == ""
    finally:
        view.close()
    last = int(copy.left.one("SELECT max(id) FROM fetches"))
    with running_crawl(copy.root, "--policy", POLICY):
        question = "SELECT terms FROM fetches WHERE id > ? AND kind = ? ORDER BY id LIMIT 5"
        assert wait_for(lambda: len(copy.left.rows(question, last, int(FetchKind.REFRESH))) > 4, 40)
    first = str(copy.left.rows(question, last, int(FetchKind.REFRESH)))
    assert '"by":"user-centric"' in first
    assert "before a study" not in first  # from the first fetch on: it was there
    assert [entry.name for entry in copy.folder.studies.iterdir() if "partial" not in entry.name] == [path.name]


def test_a_damaged_study_is_ignored_with_a_note_and_made_anew(copy: Living) -> None:
    path = copy.folder.study("user-centric")
    path.write_bytes(path.read_bytes()[:2000])
    view = CrawlView(copy.root, POLICY)
    try:
        url = next(row["url"] for row in view.next(50) if row["kind"] == "refresh")
        story = view.explain(url)
    finally:
        view.close()
    assert "damaged and ignored" in story["bid"]["tree"]["note"]
    assert "until then it bids as adaptive does" in str(story["bid"]["tree"])
    with running_crawl(copy.root, "--policy", POLICY) as process:
        assert wait_for(lambda: path.stat().st_size > 2000, 40)
        assert process.poll() is None


def test_two_studies_are_made_one_at_a_time(copy: Living) -> None:
    shutil.rmtree(copy.folder.studies)
    repository = copy.repository()
    studies = Studies(repository, ("pagerank", "user-centric"), copy.settings)
    assert studies.tell() == ("none yet + none yet", 0.0)
    for part in studies.parts:
        part._due_at = 0.0
    most = 0

    def both() -> bool:
        nonlocal most
        studies.keep_up()
        most = max(most, sum(part.is_busy for part in studies.parts))
        return repository.study is not None and repository.refresh_study is not None

    try:
        assert wait_for(both, 60)
    finally:
        studies.close()
    assert most == 1
    basis, age_s = studies.tell()
    assert basis.endswith(" + user-centric")
    assert 0 <= age_s < 60
    assert repository.refresh_study is not None
    assert repository.refresh_study.details is None  # who bids needs none
    repository.close()


# -- making one


@pytest.mark.parametrize("method", REFRESH_STUDIED)
def test_a_study_covers_the_fetched_pages_and_is_kept(copy: Living, method: str) -> None:
    study = make_refresh_study(copy.folder, copy.settings, method, time.time())
    repository = copy.repository()
    columns = repository.table.columns
    fetched = (columns["state"] == UrlState.FETCHED) & (columns["kind"] == UrlKind.PAGE)
    assert np.array_equal(~np.isnan(study.amplitude), fetched)
    assert fetched.sum() > 80
    assert study.info["visits"] > 150
    assert study.info["changes"] > 50
    assert study.info["measured"] > 10
    assert study.budget_per_s == pytest.approx(fetched.sum() / INTERVAL_S)
    often = float((1.0 / study.interval_s[fetched]).sum())
    assert 0.5 < often / study.budget_per_s < 1.7  # 304s cost less, so there may be more of them
    kept = read_refresh_study(copy.folder.study(method), repository.table.seed, columns["hash"], details=True)
    assert kept.study is not None
    np.testing.assert_array_equal(kept.study.interval_s, study.interval_s)
    repository.close()


def test_before_anybody_searched_all_pages_weigh_the_same_and_it_says_so(copy: Living, command: Command) -> None:
    (copy.root / "demand.db").unlink()
    with open_database(copy) as connection:
        connection.execute("DELETE FROM gains")
    ran = command("study", copy.root, "--policy", "user-centric")
    assert ran.code == 0, ran.err
    assert "all pages weigh the same" in ran.out
    repository = copy.repository()
    study = read_refresh_study(
        copy.folder.study("user-centric"), repository.table.seed, repository.table.columns["hash"]
    ).study
    repository.close()
    assert study is not None
    assert len(np.unique(study.interval_s[~np.isnan(study.interval_s)])) > 5  # by how often they change


def test_the_command_studies_what_was_asked_for(copy: Living, command: Command) -> None:
    shutil.rmtree(copy.folder.studies)
    one = command("study", copy.root, "--policy", "user-centric", "--json").json()
    assert one["method"] == "user-centric"
    assert one["info"]["pages"] == one["fetched"]
    assert len(one["often"]) == 10
    assert [row["interval_s"] for row in one["often"]] == sorted(row["interval_s"] for row in one["often"])
    both = command("study", copy.root, "--policy", "rw-eg+sbr", "--json").json()
    assert [study["method"] for study in both] == ["rw-eg", "sbr"]
    assert {path.stem for path in copy.folder.studies.iterdir()} == {"user-centric", "rw-eg", "sbr"}
    plain = command("study", copy.root)  # that of the last crawl
    assert plain.out.startswith("user-centric: ")
    assert "refreshes a day clear at" in plain.out
    assert "gained most so far" in plain.out
    assert "last study" in command("status", copy.root).out
    wrong = command("study", copy.root, "--policy", "user-centred")
    assert wrong.code == 2
    assert "user-centric" in wrong.err


# -- what it is made of


def test_what_is_known_of_pages_is_what_the_journal_says(living: Living) -> None:
    repository = living.repository()
    snapshot = repository.snapshot(time.time())
    inputs, pages, visits, trust = gather_inputs(repository, living.settings, snapshot)
    assert inputs.count == len(pages.rows) == len(inputs.starts) - 1
    for place in range(0, inputs.count, 9):
        journal = living.left.rows(
            "SELECT fetched_at, changed FROM fetches WHERE url = ? AND outcome IN (?, ?) ORDER BY fetched_at",
            int(pages.rows[place]),
            int(Outcome.OK),
            int(Outcome.NOT_MODIFIED),
        )
        mine = slice(int(inputs.starts[place]), int(inputs.starts[place + 1]))
        times = [at for at, _ in journal]
        believed = np.where(visits.not_modified[mine], trust.not_modified[pages.hosts[place]], 1.0)
        assert inputs.interval_s[mine] == pytest.approx(np.diff(times) * believed)
        assert inputs.changed[mine].tolist() == [bool(changed) for _, changed in journal[1:]]
    assert (inputs.gain[~inputs.changed] == 0).all()
    measured = {(page, at): gain for page, at, gain in living.left.rows("SELECT page, at, gain FROM gains")}
    matched = 0
    for visit in np.flatnonzero(inputs.changed).tolist():
        key = (int(pages.rows[visits.page[visit]]), float(visits.at[visit]))
        expected = measured.get(key)
        if expected is None:
            assert np.isnan(inputs.gain[visit])
        else:
            assert inputs.gain[visit] == expected
            matched += 1
    assert matched > 10
    assert (inputs.stake >= 0).all()
    assert (inputs.stake[inputs.views > 0.01] > 0).all()  # who is seen has something to lose
    assert inputs.views.sum() == pytest.approx(1.0, abs=0.01)
    assert ((inputs.cost > 1 / 3) & (inputs.cost <= DEAREST)).all()
    assert inputs.cost.min() < 0.95  # most hosts of this world answer 304 in few bytes; how long they take is chance
    assert len(read_gains(repository.connection)) == len(measured)
    repository.close()


def test_the_first_fetch_is_no_visit() -> None:
    nan = np.nan
    visits = Visits(
        np.array([1, 1, 1, 4, 6, 6]),
        np.array([10.0, 20.0, 50.0, 5.0, 1.0, 2.0]),
        np.array([False, True, False, False, False, True]),
        np.array([nan, 0.25, nan, nan, nan, nan]),
        np.array([False, False, True, False, False, False]),
        np.arange(6.0),
        np.array([4.0, 15.0, nan, nan, 3.0, nan]),
        np.array([0, 8, 0, 0, 0, 4]),
        np.ones(6),
    )
    found = arrange_visits(visits, np.array([1, 3, 6]))
    assert found.starts.tolist() == [0, 2, 2, 3]
    assert found.page.tolist() == [0, 0, 2]
    assert found.since.tolist() == [10.0, 20.0, 1.0]
    assert found.at.tolist() == [20.0, 50.0, 2.0]
    assert found.shift.tolist() == [0.75, 0.0, 1.0]  # nobody knows how alike the last is: it changed
    assert found.not_modified.tolist() == [False, True, False]
    assert found.modified[0] == 15.0
    assert found.validators.tolist() == [8, 0, 4]
    assert found.quiet_s[0] == 6.0  # modified at 4, fetched at 10
    assert np.isnan(found.quiet_s[1])  # never fetched
    assert found.quiet_s[2] == 0.0  # its date lies ahead
    empty = arrange_visits(visits, np.zeros(0, dtype=np.int64))
    assert empty.starts.tolist() == [0]


def some_visits(**columns: np.ndarray) -> PageVisits:
    count = len(next(iter(columns.values())))
    whole = {
        "starts": np.array([0, count]),
        "page": np.zeros(count, dtype=np.int64),
        "at": np.zeros(count),
        "since": np.zeros(count),
        "changed": np.zeros(count, dtype=np.bool_),
        "shift": np.zeros(count),
        "not_modified": np.zeros(count, dtype=np.bool_),
        "wire_bytes": np.zeros(count),
        "modified": np.full(count, np.nan),
        "validators": np.zeros(count, dtype=np.int64),
        "elapsed_s": np.ones(count),
        "quiet_s": np.full(1, np.nan),
    }
    return PageVisits(**{**whole, **columns})


def test_gains_belong_to_the_visits_that_made_them() -> None:
    visits = some_visits(
        page=np.array([0, 0, 1, 1]),
        at=np.array([10.0, 20.0, 10.0, 30.0]),
        changed=np.array([True, True, True, False]),
    )
    gains = GainColumns(
        np.array([5, 5, 7, 7, 9]), np.array([20.0, 25.0, 10.0, 30.0, 10.0]), np.zeros(5), np.arange(1.0, 6.0)
    )
    found = match_gains(visits, np.array([5, 7]), gains)
    assert np.isnan(found[0])
    assert found[1:].tolist() == [1.0, 3.0, 0.0]


def test_a_host_that_answers_in_few_bytes_is_cheap_to_ask() -> None:
    """Two hosts of 500 pages each, five visits to each page; the first host answers every other one in few bytes."""
    page = np.repeat(np.arange(1000), 5)
    short = (page < 500) & (np.arange(5000) % 2 == 1)
    visits = Visits(
        page,
        np.tile(np.arange(5.0), 1000),
        np.zeros(5000, np.bool_),
        np.full(5000, np.nan),
        short,
        np.where(short & (np.arange(5000) % 5 > 0), 100.0, 10_000.0),
        np.full(5000, np.nan),
        np.zeros(5000, np.int64),
        np.ones(5000),
    )
    rows = np.arange(1000)
    pages = KnownPages(rows, rows // 500, 1000, 2)
    cost = expect_cost(arrange_visits(visits, rows), visits, pages)
    assert cost[0] == pytest.approx(1 - 0.5 * 0.99 / 3, abs=0.01)  # half of its answers in 1% of the bytes
    assert cost[-1] == pytest.approx(1.0, abs=0.01)
    none = KnownPages(rows[:0], rows[:0], 1000, 2)
    assert expect_cost(arrange_visits(visits, rows[:0]), visits, none).tolist() == []


@pytest.mark.parametrize(("recall", "false_share"), [(0.9, 0.0), (0.4, 0.0), (0.8, 0.1)])
def test_what_sites_say_is_judged_by_what_visits_find(recall: float, false_share: float) -> None:
    """Of each page the last date alone is known, as in a crawl; recall and false rate come out all the same."""
    rng = np.random.default_rng(4)
    count, times, apart_s = 3000, 12, 1e6
    page = np.repeat(np.arange(count), times)
    at = np.tile(np.arange(2, times + 2) * apart_s, count)
    changed = rng.random(count * times) < 0.5
    dated = rng.random(len(page)) < np.where(changed, recall, false_share)
    date = np.where(dated, at - rng.uniform(0.1, 0.9, len(page)) * apart_s, 1.0)  # else an old one
    hint = np.zeros(count)
    np.maximum.at(hint, page, date)
    visits = some_visits(page=page, at=at, since=at - apart_s, changed=changed)
    pages = KnownPages(np.arange(count), np.zeros(count, dtype=np.int64), count, 1)
    often = np.arange(0.0, (times + 2) * apart_s, 0.05 * apart_s)
    found = hear_signals(visits, hint, pages, np.zeros(len(often), dtype=np.int64), often)
    false = 1 - np.exp(-found.false_rate_per_s[0] * apart_s)
    assert false == pytest.approx(false_share, abs=0.01)
    assert 1 - (1 - found.recall[0]) * (1 - false) == pytest.approx(recall, abs=0.02)
    deaf = hear_signals(visits, hint, pages, np.zeros(0, dtype=np.int64), np.zeros(0))
    assert deaf.recall[0] < 0.05  # no sitemap was ever read: nothing was known in time


def test_a_date_counts_where_a_sitemap_was_read_in_time() -> None:
    hub_host, hub_at = np.array([1, 1, 3]), np.array([100.0, 200.0, 150.0])
    asked = np.array([1, 1, 1, 3, 3, 2, 0])
    first = np.array([90.0, 110.0, 210.0, 140.0, 151.0, 0.0, 0.0])
    last = np.array([105.0, 190.0, 300.0, 150.0, 400.0, 999.0, 999.0])
    assert _read_between(hub_host, hub_at, asked, first, last).tolist() == [
        True,
        False,
        False,
        True,
        False,
        False,
        False,
    ]
    none = np.zeros(0)
    assert not _read_between(none.astype(np.int64), none, asked, first, last).any()


def open_database(copy: Living) -> closing[sqlite3.Connection]:
    return closing(sqlite3.connect(copy.folder.database, isolation_level=None))
