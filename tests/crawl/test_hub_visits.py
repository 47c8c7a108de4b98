"""What studies of hubs are made of: which URLs are hubs, what their visits found, what was clicked."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from tests.crawl.hub_past import Past, urls

from bowerbird.appraise.hubs.announced import MEMORY_S
from bowerbird.crawl.demand_log import open_demand
from bowerbird.crawl.hub_study import gather_hubs, price_pages, read_refresh_rates
from bowerbird.crawl.hub_visits import find_turns
from bowerbird.crawl.refresh_study import make_refresh_study
from bowerbird.demand.events import ResultClicked
from bowerbird.model.hub_study import HubKind
from bowerbird.model.outcome import Outcome
from bowerbird.model.url_state import FetchKind, UrlKind, UrlState
from bowerbird.store.hub_hints import HubHint
from bowerbird.store.records import FetchRecord

DAY_S = 86400.0
HOUR_S = 3600.0


def redirect(past: Past, row: int, at: float, url: str) -> int:
    """A fetch that is redirected to another URL; the row of that."""
    columns = past.repository.table.columns
    target, _ = past.repository.add_urls([url], at=at, source=row, hops=int(columns["hops"][row]) + 1)
    record = FetchRecord(row, FetchKind.NEW, at, 1.0, 1.0, "{}", at, Outcome.REDIRECT, UrlState.REDIRECT)
    record.target = int(target[0])
    past.repository.record(record)
    return record.target


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


def test_a_second_visit_in_the_same_second_found_nothing(tmp_path: Path) -> None:
    """As a page drawn by lot right after its first fetch: what the first visit showed is not news."""
    past = Past(tmp_path / "crawl")
    t = float(int(past.now) - 36000)
    feed = past.add("http://a.example/feed", t, kind=UrlKind.FEED)
    past.visit(feed, t + 0.4, urls("first", 5))
    past.visit(feed, t + 0.6)
    past.visit(feed, t + 3600.0, urls("second", 2))
    study = past.study()
    assert study.hubs.found.tolist() == [2]
    assert float(study.hubs.rate_per_s[0]) < 10 / 3600.0
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
    inputs = gather_hubs(past.repository, past.settings, snapshot)
    chosen = {row: HubKind(kind) for row, kind in zip(inputs.row.tolist(), inputs.kind.tolist(), strict=True)}
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
    assert expected > 10
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


def test_the_price_of_pages_is_that_of_the_running_crawl(tmp_path: Path) -> None:
    past = Past(tmp_path / "crawl")
    for at, price, expected in ((past.now, 1.0, 0.0), (past.now, 3.5, 2.5), (past.now - 3600, 3.5, 0.0)):
        past.repository.set_meta("live", json.dumps({"at": at, "price": price}))
        assert price_pages(past.repository, past.now) == expected
    # in clicks, of another policy: 2,300 units are no 2,300 pages
    past.repository.set_meta("live", json.dumps({"at": past.now, "price": 2300.0, "unit": 0.0003}))
    assert price_pages(past.repository, past.now) == 0.0
    past.repository.close()


# -- redirects


@pytest.mark.parametrize("root", ["http://a.example/", "https://a.example/"])
def test_a_root_that_redirects_stands_for_the_page_it_leads_to(tmp_path: Path, root: str) -> None:
    past = Past(tmp_path / "crawl", {"hubs": {"page_age_days": 3.0}})
    t = past.now - 10 * DAY_S
    first, away = past.add(root, t), past.add("http://b.example/", t)
    second = redirect(past, first, t, "http://a.example/start")
    main = redirect(past, second, t + 1, "http://a.example/en/")
    (near,) = past.visit(main, t + 2, urls("section", 1))
    past.visit(near, t + 3)
    past.visit(redirect(past, away, t, "http://c.example/elsewhere"), t + 1)
    study = past.study()
    kinds = {row: HubKind(kind) for row, kind in zip(study.hubs.row.tolist(), study.hubs.kind.tolist(), strict=True)}
    assert kinds == {main: HubKind.MAIN_PAGE, near: HubKind.LISTING}
    past.repository.close()


def test_a_link_that_redirects_stands_for_the_page_it_leads_to(tmp_path: Path) -> None:
    past = Past(tmp_path / "crawl")
    t = past.now - 5 * DAY_S
    feed = past.add("http://a.example/feed", t, kind=UrlKind.FEED)
    past.visit(feed, t, urls("old", 2))
    known = past.add("http://a.example/known", t)
    past.visit(known, t)
    links = past.visit(feed, t + HOUR_S, tuple(f"http://t.example/{n}" for n in range(5)))
    middle = redirect(past, links[0], t + 2 * HOUR_S, "http://a.example/story")
    story = redirect(past, middle, t + 2 * HOUR_S + 1, "https://a.example/story")
    past.visit(story, t + 2 * HOUR_S + 2)
    waiting = redirect(past, links[1], t + 2 * HOUR_S, "https://a.example/waiting")
    redirect(past, links[2], t + 2 * HOUR_S, "http://a.example/known")  # announces nothing new
    past.visit(links[3], t + 2 * HOUR_S)
    redirect(past, links[3], t + 3 * DAY_S, "http://a.example/known")  # it was a page, and is gone by now
    with open_demand(past.folder, past.settings.demand, write=True) as log:
        clicks = [ResultClicked(None, past.repository.url(story), None, t + 3 * HOUR_S + n) for n in range(7)]
        log.record(clicks)
    study = past.study()
    assert study.hubs.found.tolist() == [4]
    assert study.page_row.tolist() == [links[4], waiting]
    assert study.by_clicks
    assert study.info["clicks"] == 7
    pages = gather_hubs(past.repository, past.settings, past.repository.snapshot(past.now)).announced
    assert pages.row.tolist() == sorted([story, waiting, links[3], links[4]])
    assert pages.found_s.tolist() == [math.floor(t + HOUR_S)] * 4  # when the link was
    assert pages.fetched_s[pages.row == story].tolist() == [t + 2 * HOUR_S + 2]
    past.repository.close()


# -- sitemaps of sitemaps


def test_what_a_new_sitemap_shows_its_index_announced(tmp_path: Path) -> None:
    past = Past(tmp_path / "crawl")
    t = past.now - 5 * DAY_S
    index = past.add("http://a.example/sitemaps.xml", t, kind=UrlKind.SITEMAP)
    past.visit(index, t)
    (old,) = past.repository.add_urls(["http://a.example/1.xml"], at=t, source=index, kind=UrlKind.SITEMAP)[0].tolist()
    past.visit(old, t + 60, urls("old", 3))  # there was no visit before
    past.visit(index, t + DAY_S)
    new = past.repository.add_urls(["http://a.example/2.xml"], at=t + DAY_S, source=index, kind=UrlKind.SITEMAP)[0]
    dated = past.visit(int(new[0]), t + DAY_S + 60, urls("new", 4))
    past.repository.record_hint(dated[0], t - DAY_S, t + DAY_S)
    past.repository.record_hint(dated[1], past.now - HOUR_S, t + DAY_S + 4 * DAY_S)
    past.visit(int(new[0]), t + 2 * DAY_S, urls("newer", 2))
    study = past.study()
    found = dict(zip(study.hubs.row.tolist(), study.hubs.found.tolist(), strict=True))
    assert found == {index: 3, old: 0, int(new[0]): 2}
    past.repository.close()


# -- how far back


def test_only_what_was_found_of_late_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    past = Past(tmp_path / "crawl")
    t = past.now - 2 * MEMORY_S
    feed, blog = past.add("http://a.example/feed", t, kind=UrlKind.FEED), past.add("http://b.example/blog", t)
    faded = past.add("http://c.example/faded", t)
    last = past.now - MEMORY_S - 5 * DAY_S  # of the visits before what is looked at
    for nth in range(20):
        past.visit(feed, t + nth * DAY_S, urls(f"old-{nth}", 2))
    for nth in range(4):
        past.visit(faded, t + nth * DAY_S, urls(f"faded-{nth}", 2, "c.example"))
    past.visit(blog, t, urls("blog-old", 1, "b.example"))
    past.visit(feed, last)
    past.visit(blog, last)
    at = [past.now - 20 * DAY_S, past.now - 10 * DAY_S]
    new = [past.visit(feed, when, urls(f"new-{when}", 3)) for when in at]
    for when in at:
        past.visit(blog, when, urls(f"blog-{when}", 1, "b.example"))
        past.visit(faded, when)
    past.repository.commit()
    inputs = gather_hubs(past.repository, past.settings, past.repository.snapshot(past.now))
    assert inputs.row.tolist() == [feed, blog]  # what yields no more is no hub
    visits = inputs.visits
    assert visits.count.tolist() == [20 + 1 + 2, 2 + 2]
    mine = visits.hub == 0
    assert visits.at_s[mine].tolist() == at
    assert visits.gap_s[mine].tolist() == pytest.approx([at[0] - last, at[1] - at[0]])
    assert visits.found[mine].tolist() == [3.0, 3.0]
    # so few pages: what those before were clicked tells, too, but they are not in the cover
    announced = inputs.announced.row[inputs.announced.hub == 0].tolist()
    assert announced[-6:] == sorted(new[0] + new[1])
    assert len(announced) == 6 + 19 * 2
    assert len(np.unique(inputs.link_page)) == 6 + 2
    monkeypatch.setattr("bowerbird.crawl.hub_study.ENOUGH", 0)
    inputs = gather_hubs(past.repository, past.settings, past.repository.snapshot(past.now))
    assert inputs.announced.row[inputs.announced.hub == 0].tolist() == announced[-6:]
    hubs = past.study().hubs
    assert hubs.visits.tolist() == [3, 3]  # as far back as finds are counted
    past.repository.close()


def test_visits_are_read_by_the_index_and_not_the_whole_journal(tmp_path: Path) -> None:
    past = Past(tmp_path / "crawl")
    feed = past.add("http://a.example/feed", past.now - DAY_S, kind=UrlKind.FEED)
    for nth in range(3):
        past.visit(feed, past.now - DAY_S + nth * HOUR_S, urls(f"new-{nth}", 2))
    past.repository.commit()
    asked: list[str] = []
    past.repository.connection.set_trace_callback(asked.append)
    snapshot = past.repository.snapshot(past.now)
    assert gather_hubs(past.repository, past.settings, snapshot).visits.found.tolist() == [2.0, 2.0]
    past.repository.connection.set_trace_callback(None)
    plans = [
        row[3]
        for query in asked
        if "fetches" in query
        for row in past.repository.connection.execute(f"EXPLAIN QUERY PLAN {query}")
    ]
    assert sum("fetches_of_url" in plan for plan in plans) >= 3
    # all but the last number: through the index of URLs, or one row by its number
    assert [plan for plan in plans if plan.startswith("SCAN fetches")] == []
    past.repository.close()


# -- draws and refreshes


def test_a_study_draws_the_same_until_the_hub_is_visited_again(tmp_path: Path) -> None:
    past = Past(tmp_path / "crawl")
    t = past.now - DAY_S
    feeds = [past.add(f"http://{name}.example/feed", t, kind=UrlKind.FEED) for name in "abcdef"]
    for nth in range(3):
        for feed, name in zip(feeds, "abcdef", strict=True):
            past.visit(feed, t + nth * HOUR_S, urls(f"new-{nth}", 3, f"{name}.example"))
    first = past.study().hubs
    page = past.add("http://z.example/page", t)
    past.visit(page, t)
    again = past.study().hubs
    assert again.drawn_per_s.tolist() == first.drawn_per_s.tolist() != first.rate_per_s.tolist()
    for feed, name in zip(feeds, "abcdef", strict=True):
        past.visit(feed, t + 3 * HOUR_S, urls("new-3", 3, f"{name}.example"))
    visited = past.study().hubs
    assert np.abs(visited.drawn_per_s / first.drawn_per_s - 1).max() > 0.1  # as believed as before, but drawn anew
    past.repository.close()


def test_refreshes_that_are_made_anyway_go_by_the_study_of_them(tmp_path: Path) -> None:
    past = Past(tmp_path / "crawl")
    t = past.now - 10 * DAY_S
    rows = [past.add(f"http://{name}.example/", t) for name in "ab"]
    for row in rows:
        past.visit(row, t)
        past.visit(row, t + DAY_S)
    repository, both = past.repository, np.array([*rows, 10_000])
    repository.commit()
    assert read_refresh_rates(repository, both, 0.5).tolist() == [0.5] * 3
    found = make_refresh_study(past.folder, past.settings, "proportional", past.now)
    assert read_refresh_rates(repository, both, 0.5).tolist() == [0.5] * 3  # no crawl goes by it
    repository.connection.execute("INSERT INTO runs (started_at, policy) VALUES (0, 'rw+proportional+echo')")
    expected = [*(1.0 / found.interval_s[rows].astype(float)).tolist(), 0.5]
    assert read_refresh_rates(repository, both, 0.5).tolist() == pytest.approx(expected)
    repository.close()
