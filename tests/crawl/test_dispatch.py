"""What is sent along with a fetch that was drawn by lot, and which lots there are for hubs and their news."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import orjson
import pytest
from tests.appraise.hub_studies import hub_columns, hub_study
from tests.appraise.snapshots import NOW, snapshot_of
from tests.crawl.dispatching import Desk, Told
from tests.crawl.hub_past import Past, make_past, urls

from bowerbird.appraise.hubs.studied import fresh_pages
from bowerbird.crawl.dispatch import LOT_REST
from bowerbird.model.url_state import FetchKind, UrlKind, UrlState
from bowerbird.model.validators import Validators
from bowerbird.schedule.lottery import ANNOUNCED, HUBS, Lottery, Ticket
from bowerbird.store.records import Version

DAY_S = 86400.0
URL = "http://a.example/drawn"
ETAG, DATE = '"1"', "Mon, 16 Nov 2026 08:00:00 GMT"


def make_desk(root: Path, kind: UrlKind, *, fetched: bool = True) -> tuple[Desk, int]:
    """A crawl with one URL to fetch, and its row; where it was fetched, that was long ago, with validators."""
    past = Past(root)
    then = past.now - 300 * DAY_S
    past.visit(past.add("http://seed.example/", past.now), past.now)
    row = past.add(URL, then, kind=kind)
    if fetched:
        past.visit(row, then)
        past.repository.record_version(Version(row, ETAG, DATE, None, then, "html", False, None, None, None, None))
    return Desk(past), row


@pytest.mark.parametrize(
    ("kind", "stratum", "asked"),
    [
        (UrlKind.FEED, HUBS, True),
        (UrlKind.SITEMAP, HUBS, True),
        (UrlKind.PAGE, HUBS, False),
        (UrlKind.PAGE, "fetched", False),
        (UrlKind.PAGE, "shown", False),
    ],
)
def test_a_feed_drawn_by_lot_is_asked_for_with_its_validators_and_a_page_without(
    tmp_path: Path, kind: UrlKind, stratum: str, asked: bool
) -> None:
    """And its answer is taken for what it is: one that would have come anyway, or one that came on condition."""
    desk, row = make_desk(tmp_path / "crawl", kind)
    desk.dispatcher.only_drawn = True
    desk.dispatcher.lottery.waiting[row] = Ticket(row, stratum, 1, 1.0, desk.now)
    ((job, lease),) = desk.dispatch()
    assert (job.url, job.etag, job.last_modified) == (URL, ETAG if asked else "", DATE if asked else "")
    assert (lease.kind, orjson.loads(lease.terms)["stratum"]) == (FetchKind.PROBE, stratum)
    assert not desk.dispatcher.lottery.waiting
    _, validators, _ = desk.answer(job, 7, ETAG)
    assert validators == Validators.ETAG_SAME | (0 if asked else Validators.UNASKED)
    desk.past.repository.close()


@pytest.mark.parametrize("stratum", ["fetched", HUBS])
def test_a_page_drawn_while_it_is_asked_for_on_condition_is_fetched_once_more(tmp_path: Path, stratum: str) -> None:
    desk, row = make_desk(tmp_path / "crawl", UrlKind.PAGE)
    ((job, lease),) = desk.dispatch()
    assert (job.etag, lease.kind) == (ETAG, FetchKind.REFRESH)
    why = lease.terms
    desk.dispatcher.lottery = Told(ticket := Ticket(row, stratum, 1, 1.0, desk.now))
    assert desk.dispatch() == []
    assert (lease.kind, lease.terms) == (FetchKind.REFRESH, why)
    assert desk.dispatcher.lottery.waiting == {row: ticket}
    assert desk.answer(job, 7, ETAG) == (FetchKind.REFRESH, Validators.ETAG_SAME, why)
    ((again, probe),) = desk.dispatch()
    assert (again.url, again.etag, again.last_modified) == (URL, "", "")
    assert not desk.dispatcher.lottery.waiting
    assert probe.terms == ticket.terms()
    assert desk.answer(again, 8, ETAG)[:2] == (FetchKind.PROBE, Validators.ETAG_SAME | Validators.UNASKED)
    desk.past.repository.close()


@pytest.mark.parametrize(
    ("kind", "fetched", "stratum"),
    [
        (UrlKind.PAGE, False, "frontier"),
        (UrlKind.PAGE, False, ANNOUNCED),
        (UrlKind.FEED, True, HUBS),
    ],
)
def test_a_new_page_or_a_feed_drawn_while_it_is_under_way_is_the_one_that_was_drawn(
    tmp_path: Path, kind: UrlKind, fetched: bool, stratum: str
) -> None:
    desk, row = make_desk(tmp_path / "crawl", kind, fetched=fetched)
    ((job, lease),) = desk.dispatch()
    assert lease.kind is not FetchKind.PROBE
    desk.dispatcher.lottery = Told(ticket := Ticket(row, stratum, 1, 1.0, desk.now))
    assert desk.dispatch() == []
    assert not desk.dispatcher.lottery.waiting
    assert desk.answer(job, 7, ETAG) == (FetchKind.PROBE, Validators.ETAG_SAME if fetched else 0, ticket.terms())
    desk.past.repository.close()


def test_what_is_under_way_is_not_sent_again_where_the_clock_is_set_back(tmp_path: Path) -> None:
    desk, row = make_desk(tmp_path / "crawl", UrlKind.PAGE)
    ((_, lease),) = desk.dispatch()
    until = lease.expires_at
    desk.now -= 3600.0
    desk.market.open(desk.now)
    desk.dispatcher.set_back(3600.0)
    desk.gate.columns["in_flight"][:] = 0  # though its host might be asked
    assert desk.dispatch() == []
    assert desk.market.auction.bids["not_before"][row] == lease.expires_at == until - 3600.0
    desk.past.repository.close()


def test_a_page_that_is_visited_as_a_hub_is_journalled_as_one(tmp_path: Path) -> None:
    """With the validators of a page, and told apart from refreshes by who bid for it."""
    past = make_past(tmp_path / "crawl")
    past.repository.hub_study = past.study()
    main = past.repository.table.find_url("http://a.example/")
    assert main is not None
    past.repository.record_version(Version(main, ETAG, DATE, None, past.now, "html", False, None, None, None, None))
    plain = past.repository.table.find_url(urls("news-1", 1)[0])
    desk = Desk(past, "echo")
    desk.now += 0.5 * DAY_S
    rows = np.arange(past.repository.table.columns.count)
    for wanted, kind in ((main, FetchKind.HUB), (plain, FetchKind.REFRESH)):
        desk.now += 60 * DAY_S * (wanted == plain)
        past.repository.table.hosts.columns["robots_at"][:] = desk.now
        desk.market.bid(rows, desk.now, offer=True)
        desk.market.auction.hold(rows, np.where(rows == wanted, 0.0, np.inf))
        ((job, lease),) = desk.dispatch()
        assert (lease.row, lease.kind, job.etag) == (wanted, kind, ETAG if wanted == main else "")
        assert desk.answer(job, 7, ETAG)[:2] == (kind, Validators.ETAG_SAME if wanted == main else 0)
    past.repository.close()


# -- lots for hubs and what they announced


def test_what_is_fresh_is_announced_by_a_hub_and_has_an_eighth_of_its_interest_left() -> None:
    """Hubs 0 and 1, whose pages have half-lives of a day and of ten; 2 redirects to where hub 0 leads."""
    half_lives = np.array([DAY_S, 10 * DAY_S])
    hubs = hub_columns(2, row=[0, 1], decay_per_s=np.log(2.0) / half_lives)
    study = hub_study(hubs, 7, page_row=np.array([3, 4, 5]), page_hub=np.array([0, 0, 1]))
    days = [50.0, 50.0, 50.0, 2.9, 3.1, 29.0, 0.1, 0.1, 3.1, 29.0, 0.1, 2.9]
    new = UrlState.NEW
    snapshot = snapshot_of(
        state=[UrlState.FETCHED, UrlState.FETCHED, UrlState.REDIRECT, *[new] * 9],
        first_seen=[NOW - day * DAY_S for day in days],
        source=[-1, -1, 0, 0, 0, 1, 0, 0, 0, 1, 3, 2],
    )
    snapshot = replace(snapshot, hub_study=study)
    rows = np.arange(3, 12)
    # 4 and 8 are too old, 6 was there when the hub was first visited, and 10 was found on another page
    assert fresh_pages(snapshot, rows).tolist() == [3, 5, 7, 9, 11]
    assert fresh_pages(snapshot, np.array([9, 4, 3])).tolist() == [9, 3]
    assert fresh_pages(replace(snapshot, hub_study=None), rows).tolist() == []
    assert fresh_pages(replace(snapshot, hub_study=hub_study(hub_columns(0), 7)), rows).tolist() == []


class Followed(Lottery):
    """Keeps what it was told."""

    def __init__(self) -> None:
        super().__init__(1.0, np.random.default_rng(3))
        self.told: list[tuple[list[int], list[int]]] = []

    def follow(self, hub_pages: npt.NDArray[np.int64], announced: npt.NDArray[np.int64]) -> None:
        self.told.append((hub_pages.tolist(), announced.tolist()))
        super().follow(hub_pages, announced)


def test_after_a_study_lots_go_to_its_hubs_and_to_their_fresh_news(tmp_path: Path) -> None:
    past = make_past(tmp_path / "crawl", {"hubs": {"half_life_days": 1 / 3}})  # an eighth is left after a day
    study = past.study()
    desk = Desk(past)
    desk.dispatcher.lottery = lottery = Followed()
    desk.dispatcher.follow_hubs(desk.now)
    assert lottery.told == []  # there is none yet
    past.repository.hub_study = study
    desk.dispatcher.follow_hubs(desk.now)
    table = past.repository.table
    main = table.find_url("http://a.example/")
    found = [table.find_url(url) for nth in range(1, 9) for url in urls(f"news-{nth}", 6)[5:]]
    last = [table.find_url(url) for url in urls("last", 6)]
    late = {row for row in found if table.columns["first_seen"][row] > desk.now - DAY_S}
    assert 0 < len(late) < len(found)
    ((hubs, news),) = lottery.told
    assert main in hubs
    assert hubs == study.hubs.row.tolist()
    assert {row for row in news if row in found} == late
    assert set(last) < set(news) < set(study.page_row.tolist())
    drawn: dict[str, set[int]] = {HUBS: set(), ANNOUNCED: set()}
    for _ in range(2000):
        lottery.owe(1)
        for ticket in lottery.draw(table.columns["state"], table.columns["kind"], desk.now):
            drawn.setdefault(ticket.stratum, set()).add(ticket.row)
        lottery.waiting.clear()
    assert drawn[HUBS] == set(hubs)
    assert drawn[ANNOUNCED] == set(news)
    past.repository.close()


def test_a_study_is_followed_once(tmp_path: Path) -> None:
    past = make_past(tmp_path / "crawl")
    desk = Desk(past)
    past.repository.hub_study = study = past.study()
    desk.dispatcher.lottery = lottery = Followed()
    for later_s in (0.0, 1.0, 3 * DAY_S):
        desk.dispatcher.follow_hubs(desk.now + later_s)
        assert len(lottery.told) == 1
    past.repository.hub_study = replace(study, page_row=study.page_row[:4], page_hub=study.page_hub[:4])
    desk.dispatcher.follow_hubs(desk.now)
    assert [len(news) for _, news in lottery.told[1:]] == [4]
    past.repository.close()


def test_a_host_is_left_alone_by_lots_for_news_for_most_of_its_turns(tmp_path: Path) -> None:
    past = Past(tmp_path / "crawl")
    one, other = (past.add(f"http://{host}.example/feed", past.now, kind=UrlKind.FEED) for host in "ab")
    same = past.add("http://a.example/news", past.now)
    desk = Desk(past)
    hosts = past.repository.table.columns["host"]
    desk.gate.set_delay(int(hosts[one]), 2.0)
    desk.gate.set_delay(int(hosts[other]), 4.0)
    lots, now = desk.dispatcher._lot_turns, desk.now

    def admits(row: int, now: float) -> bool:
        free = bool(lots.free(np.array([row]), now)[0])
        if free:
            lots.take(row, now)
        return free

    assert admits(one, now)
    assert admits(other, now)
    for turns in (0.0, 1.0, LOT_REST - 1.0):
        assert not admits(one, now + turns * 2.0)
        assert not admits(same, now + turns * 2.0)  # it is the host that counts
    assert admits(same, now + LOT_REST * 2.0)
    assert not admits(one, now + LOT_REST * 2.0)
    assert not admits(other, now + LOT_REST * 2.0)
    assert admits(other, now + LOT_REST * 4.0)
    desk.gate.set_delay(int(hosts[one]), 0.0)
    assert all(admits(row, now + LOT_REST * 4.0) for row in (one, same, one))  # no host is waited for
    past.repository.close()


def test_lots_for_hubs_log_the_chance_that_each_had(tmp_path: Path) -> None:
    """19 feeds of one host and 1 of another: of four draws two find a host, and the others are owed."""
    past = Past(tmp_path / "crawl")
    feeds = [past.add(f"http://a.example/feed-{nth}", past.now, kind=UrlKind.FEED) for nth in range(19)]
    feeds.append(past.add("http://b.example/feed", past.now, kind=UrlKind.FEED))
    for row in feeds:
        past.visit(row, past.now)
    desk = Desk(past, delay_s=2.0)
    lottery = desk.dispatcher.lottery = Lottery(1.0, np.random.default_rng(11))
    first: Counter[int] = Counter()
    runs = 2000
    for _ in range(runs):
        desk.now += 1000.0
        lottery._owed_aside[HUBS] = 4
        desk.dispatcher._take_drawn(desk.now, 0)
        one, other = lottery.waiting.values()
        assert (one.propensity, one.population) == (1 / 20, 20)
        alone = 1 if other.row == feeds[-1] else 19  # that were left
        assert (other.propensity, other.population) == (1 / alone, alone)
        assert lottery._owed_aside[HUBS] == 2
        first[one.row] += 1
        lottery.waiting.clear()
    past.repository.close()
    assert all(abs(first[row] - runs / 20) < 4 * (runs / 20) ** 0.5 for row in feeds)


@pytest.mark.parametrize("delay_s", [2.0, 0.0])
def test_side_lots_take_one_in_twenty_turns_of_a_host_with_a_delay_and_their_share_without(
    tmp_path: Path, delay_s: float
) -> None:
    past = Past(tmp_path / "crawl")
    feeds = [past.add(url, past.now, kind=UrlKind.FEED) for url in urls("feed", 30)]
    known = [past.add(url, past.now) for url in urls("known", 30)]
    news = [past.add(url, past.now) for url in urls("news", 30)]
    for row in (*feeds, *known):
        past.visit(row, past.now)
    desk = Desk(past, delay_s=delay_s)
    desk.dispatcher.only_drawn = True
    desk.dispatcher.lottery = Lottery(1.0, np.random.default_rng(2))
    desk.dispatcher.lottery.follow(np.array(known[:3]), np.array(news))
    desk.dispatcher.lottery.order(4)
    drawn: Counter[str] = Counter()
    turns = 10 * int(LOT_REST)
    for _ in range(turns):
        for job, lease in desk.dispatch():
            if job.url.startswith("http://a.example/"):
                drawn[orjson.loads(lease.terms)["stratum"]] += 1
            desk.end(job)
        desk.now += delay_s or 0.1
    past.repository.close()
    side = drawn[HUBS] + drawn[ANNOUNCED]
    if delay_s:
        assert drawn.total() == pytest.approx(turns, abs=4)  # now and then a lot is for the seed
        assert 0.5 * turns / LOT_REST < side <= turns / LOT_REST
    else:
        assert side > 2 * drawn.total() / LOT_REST > 2 * turns / LOT_REST
