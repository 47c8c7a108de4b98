"""Looking back at what was expected of fetches: from the journal, clicks, gains and discoveries of a crawl."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import orjson
import pytest
from tests.appraise.hub_studies import hub_columns, hub_study
from tests.crawl.auto_past import make_auto_past
from tests.crawl.dispatching import Desk
from tests.crawl.hub_past import Past, urls

from bowerbird.appraise.budget.decisions import Group, clicks_of_hubs
from bowerbird.appraise.policy import AUTO
from bowerbird.crawl.attached_studies import attach_studies, open_studies
from bowerbird.crawl.demand_log import open_demand
from bowerbird.crawl.hub_study import make_hub_study
from bowerbird.crawl.refresh_study import make_refresh_study
from bowerbird.crawl.study import make_study
from bowerbird.crawl.watch_study import look_back, make_watch, read_costs, read_decisions
from bowerbird.demand.events import ResultClicked
from bowerbird.demand.tally import BIN_S
from bowerbird.model.factors import Factors
from bowerbird.model.outcome import Outcome
from bowerbird.model.url_state import FetchKind, UrlKind, UrlState
from bowerbird.model.watch import Watch
from bowerbird.store.gains import MeasuredGain
from bowerbird.store.hub_study_file import write_hub_study
from bowerbird.store.records import FetchRecord
from bowerbird.store.repository import Repository
from bowerbird.store.watch_file import read_watch, write_watch

DAY_S = 86400.0
HORIZON: dict[str, dict[str, object]] = {"budget": {"horizon_days": 10.0}}


class Journal(Past):
    """A past with what was expected of its fetches."""

    def decide(
        self, row: int, kind: FetchKind, at: float, bid: float, terms: dict[str, object], **more: object
    ) -> None:
        outcome = more.pop("outcome", Outcome.OK)
        self.repository.record(
            FetchRecord(
                row,
                kind,
                at,
                bid,
                1.0,
                orjson.dumps({"unit": 0.5, **terms}).decode(),
                at,
                outcome,  # type: ignore[arg-type]  # by name
                UrlState.FETCHED,
                content_hash=int(at),
                **more,  # type: ignore[arg-type]  # by name
            )
        )

    def click(self, url: str, at: float, many: int) -> None:
        self.clicked = [*getattr(self, "clicked", []), *[(url, at)] * many]

    def watch(self) -> Watch:
        self.repository.commit()
        with open_demand(self.folder, self.settings.demand, write=True) as log:
            log.record([ResultClicked("words", url, 1, at) for url, at in getattr(self, "clicked", [])])
        return make_watch(self.folder, self.settings, self.now)


def new_pages(
    journal: Journal, count: int, clicks: int, terms: dict[str, object], bid: float = 8.0, source: int = -1
) -> None:
    """Pages fetched five days ago, each clicked so often since."""
    at = journal.now - 5 * DAY_S
    for nth, url in enumerate(urls("page", count)):
        row = journal.add(url, at - 60, source)
        journal.decide(row, FetchKind.NEW, at + nth, bid, {"by": "informed", "basis": "study", "units": bid, **terms})
        journal.click(url, journal.now - DAY_S, clicks)
    journal.click("http://elsewhere.example/", journal.now, 1)  # heard until now


def kind(watch: Watch, name: str) -> tuple[int, float, float]:
    (found,) = [one for one in watch.kinds if one.name == name]
    return found.fetches, found.expected, found.realised


def test_new_pages_are_expected_to_be_clicked_evenly_over_the_horizon(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "crawl", HORIZON)
    new_pages(journal, 100, 2, {})
    watch = journal.watch()
    fetches, expected, realised = kind(watch, "new")
    assert (fetches, realised) == (100, 200.0)
    assert expected == pytest.approx(100 * 8.0 * 0.5 / 2, rel=0.01)  # half of ten days
    assert watch.factors.new == pytest.approx(1.0, abs=0.01)
    assert [one.name for one in watch.appraisers] == ["informed: study"]


def test_each_decision_is_held_to_the_horizon_it_was_made_with(tmp_path: Path) -> None:
    """Pages of 8·0.5 clicks within ten days, five of which have passed, though the settings say six days now."""
    journal = Journal(tmp_path / "crawl", {"budget": {"horizon_days": 6.0}})
    new_pages(journal, 100, 2, {"horizon_s": 10 * DAY_S})
    assert kind(journal.watch(), "new")[1:] == pytest.approx((200.0, 200.0), rel=0.01)
    short = Journal(tmp_path / "short", HORIZON)
    new_pages(short, 100, 2, {"horizon_s": DAY_S})  # clicked four days later: that was not expected of them
    assert kind(short.watch(), "new")[1:] == pytest.approx((400.0, 0.0), rel=0.01)


@pytest.mark.parametrize("run_s", [600.0, 1200.0, 3600.0])
def test_clicks_after_a_horizon_shorter_than_their_spans_are_not_counted(tmp_path: Path, run_s: float) -> None:
    """Clicks are kept by spans of 20 minutes; pages that get one every 20 seconds get three within a minute."""
    journal = Journal(tmp_path / "crawl", HORIZON)
    begin = float(np.ceil(journal.now / BIN_S - 10) * BIN_S)
    terms: dict[str, object] = {"by": "informed", "basis": "study", "units": 6.0, "horizon_s": 60.0}
    for nth, url in enumerate(urls("page", 40)):
        at = begin + nth * run_s / 80
        journal.decide(journal.add(url, at - 60, -1), FetchKind.NEW, at, 6.0, terms)
        for when in np.arange(at + 20, begin + run_s, 20.0):
            journal.click(url, float(when), 1)
    expected, realised = kind(journal.watch(), "new")[1:]
    assert expected == pytest.approx(40 * 3.0)
    assert realised == pytest.approx(expected, rel=0.1)


def test_what_an_earlier_factor_did_is_taken_back(tmp_path: Path) -> None:
    """The factor is of the bare expectation: else one that is right would be taken for none needed."""
    journal = Journal(tmp_path / "crawl", HORIZON)
    new_pages(journal, 400, 2, {"factor_new": 0.25, "factor_announced": 1.0})
    watch = journal.watch()
    assert kind(watch, "new")[1] == pytest.approx(4 * 400 * 2.0, rel=0.01)
    assert watch.factors.new == pytest.approx(0.25, rel=0.3)


def test_announced_pages_are_clicked_early_and_watched_apart(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "crawl", HORIZON)
    new_pages(journal, 60, 1, {"announced": 8.0, "half_life_s": DAY_S})
    watch = journal.watch()
    assert kind(watch, "new")[0] == 0
    fetches, expected, realised = kind(watch, "announced")
    assert (fetches, realised) == (60, 60.0)
    assert expected == pytest.approx(60 * 4.0 * (1 - 0.5**5), rel=0.01)
    assert watch.factors.announced < 0.6


def keep_hub_study(journal: Journal, rows: list[int], profit: list[float], *, by_clicks: bool = True) -> None:
    """These hubs, and the clicks that a page of each is known to get now."""
    journal.repository.commit()
    table = journal.repository.table
    hubs = hub_columns(len(rows), row=rows, profit=profit)
    study = hub_study(hubs, table.columns.count, at=journal.now, by_clicks=by_clicks)
    write_hub_study(journal.folder.study("echo"), study, table.seed, table.columns["hash"])


NEWS: dict[str, object] = {"announced": 8.0, "half_life_s": DAY_S}


@pytest.mark.parametrize(
    ("known", "terms", "times"),
    [
        ([2.0], {"hub_clicks": 4.0}, 0.5),
        ([8.0], {"hub_clicks": 4.0}, 2.0),
        ([2.0], {}, 1.0),  # nobody knew then
        ([2.0], {"hub_clicks": 0.0}, 1.0),
        ([0.0], {"hub_clicks": 4.0}, 1.0),
        ([], {"hub_clicks": 4.0}, 1.0),  # nobody knows now
    ],
)
def test_announced_pages_are_held_to_what_their_hub_is_known_to_get_since(
    tmp_path: Path, known: list[float], terms: dict[str, object], times: float
) -> None:
    journal = Journal(tmp_path / "crawl", HORIZON)
    feed = journal.add("http://a.example/feed", journal.now - 20 * DAY_S, kind=UrlKind.FEED)
    new_pages(journal, 60, 1, {**NEWS, **terms}, source=feed)
    keep_hub_study(journal, [feed] * len(known), known)
    fetches, expected, realised = kind(journal.watch(), "announced")
    assert (fetches, realised) == (60, 60.0)
    assert expected == pytest.approx(times * 60 * 4.0 * (1 - 0.5**5), rel=0.01)


def test_until_clicks_tell_of_hubs_announced_pages_are_held_to_what_was_expected_then(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "crawl", HORIZON)
    feed = journal.add("http://a.example/feed", journal.now - 20 * DAY_S, kind=UrlKind.FEED)
    new_pages(journal, 60, 1, {**NEWS, "hub_clicks": 4.0}, source=feed)
    keep_hub_study(journal, [feed], [2.0], by_clicks=False)
    assert kind(journal.watch(), "announced")[1] == pytest.approx(60 * 4.0 * (1 - 0.5**5), rel=0.01)


def test_only_decisions_by_a_hub_that_is_known_then_and_now_follow_what_was_learnt(tmp_path: Path) -> None:
    """Of four kinds: by a hub, by that through a redirect, with no word of it, and by one that is none any more."""
    journal = Journal(tmp_path / "crawl", HORIZON)
    at = journal.now - 5 * DAY_S
    feed, past = (journal.add(f"http://{host}.example/feed", at - 60, kind=UrlKind.FEED) for host in "ab")
    moved = journal.add("http://a.example/moved", at - 60, feed)
    journal.repository.record(
        FetchRecord(moved, FetchKind.NEW, at, 1.0, 1.0, "{}", at, Outcome.REDIRECT, UrlState.REDIRECT)
    )
    told = {"by": "informed", "basis": "study", "units": 8.0, **NEWS}
    pages = []
    for nth, (source, more) in enumerate(
        ((feed, {"hub_clicks": 4.0}), (moved, {"hub_clicks": 4.0}), (feed, {}), (past, {"hub_clicks": 4.0}))
    ):
        pages.append(journal.add(f"http://a.example/{nth}", at - 60, source))
        journal.decide(pages[-1], FetchKind.NEW, at + nth / 1000, 8.0, {**told, **more})
    plain = journal.add("http://a.example/plain", at - 60)
    journal.decide(plain, FetchKind.NEW, at + 1, 8.0, {"by": "informed", "basis": "study", "units": 8.0})
    journal.click("http://elsewhere.example/", journal.now, 1)
    keep_hub_study(journal, [feed], [2.0])
    journal.watch()
    attach_studies(journal.repository, open_studies(journal.folder, ("echo",)))
    decisions = read_decisions(journal.repository.connection, 0.0)
    compared = look_back(journal.repository, journal.settings, Group.ANNOUNCED, decisions, journal.now)
    by_row = dict(zip([one.row for one in decisions], compared.expected.tolist(), strict=True))
    full = 4.0 * (1 - 0.5**5)
    assert [by_row[row] for row in pages] == pytest.approx([full / 2, full / 2, full, full], rel=0.01)
    assert by_row[plain] == pytest.approx(4.0 / 2, rel=0.01)


@pytest.mark.parametrize("factor", [1.0, 0.25])
def test_what_a_hub_was_known_to_get_is_in_the_journal_of_what_it_announced(tmp_path: Path, factor: float) -> None:
    """As the study had it, whatever a unit is and however news was corrected: by the same study nothing is learnt."""
    past = make_auto_past(tmp_path / "crawl", studies=False)
    with open_demand(past.folder, past.settings.demand, write=True) as log:
        log.record([ResultClicked("words", url, 1, past.now - 3600.0, 3) for url in urls("news-8", 5)])
        log.record([ResultClicked("words", "http://elsewhere.example/", 1, past.now)])
    make_study(past.folder, past.settings, "informed", past.now)
    make_refresh_study(past.folder, past.settings, "user-centric", past.now)
    make_hub_study(past.folder, past.settings, "echo", past.now)
    attach_studies(past.repository, open_studies(past.folder, ("informed", "user-centric", "echo")))
    past.repository.watch = Watch(past.now, (), (), Factors(announced=factor))
    study = past.repository.hub_study
    assert study is not None
    assert study.by_clicks
    desk = Desk(past, AUTO)
    assert desk.market.unit != 1.0
    while sent := desk.dispatch():
        for job, _ in sent:
            desk.answer(job, 7)
        desk.now += 0.1
    made = {one.row: one for one in read_decisions(past.repository.connection, past.now - 1.0)}
    find = past.repository.table.find_url
    last, old = (np.array([find(url) for url in urls(name, 3)]) for name in ("last", "old"))
    busy = study.place(np.array([find("http://a.example/feed")]))
    profit = float(study.hubs.profit[busy[0]])
    assert profit not in (0.0, 1.0)
    for row in last.tolist():
        assert made[row].kind == FetchKind.NEW
        assert made[row].number("hub_clicks") == pytest.approx(profit, rel=1e-5)
        assert made[row].number("factor_announced") == factor
    assert clicks_of_hubs(past.repository.snapshot(desk.now), last).tolist() == pytest.approx([profit] * 3)
    assert not any("hub_clicks" in made[row].terms for row in old.tolist())
    past.repository.close()


@pytest.mark.parametrize(("units", "expected"), [(0.05, 0.05), (None, 1.0008)])
def test_announced_pages_that_bid_the_floor_count_as_expected(
    tmp_path: Path, units: float | None, expected: float
) -> None:
    """By their units; where a journal has none, by the bid."""
    journal = Journal(tmp_path / "crawl", HORIZON)
    at = journal.now - 5 * DAY_S
    terms = {"by": "informed", "basis": "study", "announced": 1.6, "half_life_s": DAY_S, "factor_announced": 0.5}
    for nth, url in enumerate(urls("page", 400)):
        told = terms if units is None else {**terms, "units": units}
        journal.decide(journal.add(url, at - 60), FetchKind.NEW, at + nth / 1000, 1.0008, told)
        if nth % 20 == 0:
            journal.click(url, journal.now - DAY_S, 1)
    journal.click("http://elsewhere.example/", journal.now, 1)
    watch = journal.watch()
    assert kind(watch, "new")[0] == 0
    fetches, by_now, realised = kind(watch, "announced")
    assert (fetches, realised) == (400, 20.0)
    assert by_now == pytest.approx(400 * expected * 0.5 / 0.5 * (1 - 0.5**5), rel=0.01)
    assert watch.factors.announced == pytest.approx(1.0, abs=0.1) if units else watch.factors.announced < 0.2


def test_no_kind_crowds_out_another_and_new_pages_are_sampled_over_their_time(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "crawl", HORIZON)
    start = journal.now - 20 * DAY_S
    row = journal.add("http://a.example/", start)
    new: dict[str, object] = {"by": "informed", "basis": "study", "units": 2.0}
    visit: dict[str, object] = {"by": "echo", "basis": "study", "expected_found": 6.0}
    refresh: dict[str, object] = {"by": "user-centric", "expected_gain": 0.1, "expected_chance": 0.2}
    for nth in range(7):
        journal.decide(row, FetchKind.HUB, start + nth, 2.0, visit)
    for nth in range(200):
        if nth == 110:
            for late in range(7):
                journal.decide(row, FetchKind.NEW, start + 11 * DAY_S - 7 + late, 2.0, {**new, "announced": 2.0})
        journal.decide(row, FetchKind.NEW, start + nth * 0.1 * DAY_S, 2.0, new)
        journal.decide(row, FetchKind.PROBE, start + (nth + 0.5) * 0.1 * DAY_S, 2.0, new)  # drawn by lot
    for nth in range(300):
        known = {"expected_gain": None} if nth >= 200 else {}  # of the last nothing was expected
        journal.decide(row, FetchKind.REFRESH, journal.now - 300 + nth, 2.0, {**refresh, **known})
    journal.repository.commit()
    connection, since = journal.repository.connection, journal.now - 10 * DAY_S
    found = read_decisions(connection, since, 20)
    parts = [[one.fetched_at for one in found if one.terms["by"] == by] for by in ("echo", "user-centric")]
    assert parts[0] == [start + nth for nth in range(7)]
    assert parts[1] == [journal.now - 300 + nth for nth in range(180, 200)]
    assert sum("announced" in one.terms for one in found) == 7
    at = np.array([one.fetched_at for one in found if one.terms["by"] == "informed" and "announced" not in one.terms])
    assert np.diff(at) == pytest.approx(0.5 * DAY_S)  # every fifth of the hundred of the last ten days
    assert (at[0] - since, len(at)) == (pytest.approx(0.4 * DAY_S, abs=1.0), 20)
    assert len(read_decisions(connection, since)) == 7 + 7 + 100 + 200
    few = read_decisions(connection, since, last=101, runs=2, rows=1)  # the first since then, and the last
    assert [one.fetched_at for one in few if one.kind == FetchKind.REFRESH] == parts[1][-1:]


def test_a_long_journal_is_read_in_runs_over_all_of_the_horizon(tmp_path: Path) -> None:
    """Ten days at one fetch in 50 seconds: 17,280 rows, of which 3,000 are looked at; refreshes are rare, and early."""
    journal = Journal(tmp_path / "crawl", HORIZON)
    row = journal.add("http://a.example/", journal.now - 30 * DAY_S)
    new: dict[str, object] = {"by": "informed", "basis": "study", "units": 2.0}
    journal.decide(row, FetchKind.NEW, journal.now - 20 * DAY_S, 2.0, new)
    journal.repository.commit()
    connection, since = journal.repository.connection, journal.now - 10 * DAY_S
    columns = [name for _, name, *_ in connection.execute("PRAGMA table_info(fetches)") if name != "id"]
    ((*like,),) = connection.execute(f"SELECT {','.join(columns)} FROM fetches")
    refresh = orjson.dumps({"by": "user-centric", "unit": 0.5, "expected_gain": 0.1, "expected_chance": 0.2}).decode()
    rows = []
    for nth in range(17_280 + 8640):
        told = dict(zip(columns, like, strict=True)) | {"fetched_at": since + (nth - 8640) * 50.0}  # also before that
        if nth % 30 == 0 and nth < 18_000:
            told |= {"kind": int(FetchKind.REFRESH), "terms": refresh}
        rows.append(tuple(told.values()))
    connection.execute("BEGIN")
    connection.executemany(f"INSERT INTO fetches ({','.join(columns)}) VALUES ({','.join('?' * len(columns))})", rows)
    connection.execute("COMMIT")
    found = read_decisions(connection, since, 1000, last=500, runs=50, rows=50)
    at = np.array([one.fetched_at for one in found if one.kind == FetchKind.NEW])
    assert len(at) == 1000
    days = np.bincount(((at - since) / DAY_S).astype(np.int64), minlength=10)
    assert days.min() >= 75
    assert days.max() <= 125
    old = [one.fetched_at for one in found if one.kind == FetchKind.REFRESH]
    assert len(old) >= 20  # none of the last 500 is one: those of the runs
    assert min(old) < since + DAY_S
    assert max(old) < since + 6 * DAY_S


def test_refreshes_gain_what_was_measured(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "crawl", HORIZON)
    at = journal.now - DAY_S
    gains = []
    for nth, url in enumerate(urls("page", 200)):
        row = journal.add(url, at - DAY_S)
        journal.visit(row, at - DAY_S)
        changed = nth % 2 == 0
        terms: dict[str, object] = {
            "by": "user-centric",
            "basis": "study",
            "expected_gain": 0.001 if nth < 190 else None,
            "expected_chance": 0.2,
        }
        journal.decide(row, FetchKind.REFRESH, at + nth, 2.0, terms, changed=changed)
        if changed and nth < 180:  # that of the others was not measured
            gains.append(
                MeasuredGain(row, at + nth, at - DAY_S, 0.006, 3, np.zeros(0, np.uint64), np.zeros(0, np.float32))
            )
    journal.repository.record_gains(gains)
    watch = journal.watch()
    fetches, expected, realised = kind(watch, "refresh")
    assert fetches == 190
    assert expected == pytest.approx(0.19)
    assert realised == pytest.approx(95 * 0.006)  # those that were measured stand for the other five
    assert 2.0 < watch.factors.refresh < 3.0


def test_without_any_measured_gain_nothing_is_said_of_refreshes(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "crawl", HORIZON)
    at = journal.now - DAY_S
    for nth, url in enumerate(urls("page", 300)):
        row = journal.add(url, at - DAY_S)
        terms = {"by": "user-centric", "basis": "study", "expected_gain": 0.001, "expected_chance": 0.5}
        journal.decide(row, FetchKind.REFRESH, at + nth, 2.0, terms, changed=nth % 2 == 0)
    watch = journal.watch()
    assert kind(watch, "refresh")[0] == 0
    assert watch.factors.refresh == 1.0


def test_pages_that_bid_more_than_they_gain_and_tries_that_failed_count_as_expected(tmp_path: Path) -> None:
    """400 pages worth 0.05 units bid 1 each, and were tried twice in vain before."""
    journal = Journal(tmp_path / "crawl", HORIZON)
    at = journal.now - 5 * DAY_S
    terms = {"by": "informed", "basis": "study", "units": 0.05}
    for nth, url in enumerate(urls("page", 400)):
        row = journal.add(url, at - 60)
        for tried, outcome in ((-20, Outcome.TIMEOUT), (-10, Outcome.CONNECT), (0, Outcome.OK)):
            journal.decide(row, FetchKind.NEW, at + tried + nth / 1000, 1.00005, terms, outcome=outcome)
        if nth % 80 == 79:
            journal.click(url, journal.now - DAY_S, 1)
    journal.click("http://elsewhere.example/", journal.now, 1)
    watch = journal.watch()
    fetches, expected, realised = kind(watch, "new")
    assert (fetches, realised) == (400, 5.0)
    assert expected == pytest.approx(400 * 0.05 * 0.5 / 2, rel=0.01)
    assert watch.factors.new == pytest.approx(1.0, abs=0.1)


def test_hubs_find_what_they_find_first(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "crawl", HORIZON)
    start = journal.now - 20 * DAY_S
    feed = journal.add("http://a.example/feed", start, kind=UrlKind.FEED)
    journal.visit(feed, start, urls("old", 3))
    for nth in range(1, 60):
        at = start + nth * 3600.0
        journal.decide(feed, FetchKind.HUB, at, 2.0, {"by": "echo", "basis": "study", "expected_found": 6.0})
        for url in urls(f"news-{nth}", 2):
            journal.add(url, at, feed)
    watch = journal.watch()
    fetches, expected, realised = kind(watch, "hub")
    assert (fetches, expected, realised) == (59, 354.0, 118.0)
    assert 0.3 < watch.factors.hub < 0.6


def test_what_was_not_fetched_or_not_decided_in_clicks_is_left_out(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "crawl", HORIZON)
    at = journal.now - DAY_S
    one, two = (journal.add(url, at) for url in urls("page", 2))
    journal.visit(one, at)
    journal.decide(two, FetchKind.NEW, at, 3.0, {"by": "informed", "basis": "study"}, outcome=Outcome.ROBOTS)
    journal.repository.commit()
    assert read_decisions(journal.repository.connection, 0.0) == []
    watch = journal.watch()
    assert [found.fetches for found in watch.kinds] == [0, 0, 0, 0]


def test_a_visit_costs_its_bytes_and_its_time_beside_new_pages(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "crawl", HORIZON)
    at = journal.now - DAY_S
    assert journal.watch().factors.feed_cost == 1.0
    for nth, url in enumerate(urls("page", 200)):
        took: dict[str, object] = {"wire_bytes": 40_000, "elapsed_s": 0.5}
        journal.decide(journal.add(url, at), FetchKind.NEW, at + nth, 1.0, {"by": "informed"}, **took)
    feed = journal.add("http://a.example/feed", at, kind=UrlKind.FEED)
    for nth in range(200):
        short = Outcome.NOT_MODIFIED if nth % 2 else Outcome.OK
        took = {"wire_bytes": 0 if nth % 2 else 8_000, "elapsed_s": 0.25, "outcome": short}
        journal.decide(feed, FetchKind.HUB, at + 300.0 + nth, 1.0, {"by": "echo"}, **took)
    assert journal.watch().factors.feed_cost == pytest.approx((1 + 0.1 + 0.5) / 3, abs=0.05)
    assert journal.watch().factors.sitemap_cost == 1.0


def test_what_a_running_crawl_finds_and_fetches_meanwhile_is_left_for_the_next_time(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "crawl", HORIZON)
    at = journal.now - DAY_S
    took: dict[str, object] = {"wire_bytes": 40_000, "elapsed_s": 0.5}
    journal.decide(journal.add("http://a.example/first", at), FetchKind.NEW, at, 1.0, {"by": "informed"}, **took)
    journal.repository.commit()
    reader = Repository(journal.folder, write=False)
    later = journal.add("http://a.example/later", at)
    journal.decide(later, FetchKind.NEW, at + 1.0, 1.0, {"by": "informed"}, **took)
    journal.repository.commit()
    assert later >= len(reader.table.columns["kind"])
    assert read_costs(reader) == {"feed_cost": 1.0, "sitemap_cost": 1.0}
    reader.close()


def test_corrections_can_be_turned_off(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "crawl", {"budget": {"horizon_days": 10.0, "correct": False}})
    new_pages(journal, 400, 20, {})
    watch = journal.watch()
    assert watch.kinds[0].drifts
    assert watch.factors.new == 1.0


def test_it_is_kept_and_a_damaged_file_is_ignored(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "crawl", HORIZON)
    new_pages(journal, 100, 2, {})
    made = journal.watch()
    table, path = journal.repository.table, journal.folder.study("watch")
    hashes = table.columns["hash"]
    read = read_watch(path, table.seed, hashes)
    assert read.study == made
    assert read.note == ""
    assert read_watch(path, table.seed + 1, hashes).study is None
    write_watch(path, made, table.seed, hashes)
    path.write_bytes(path.read_bytes()[:-40])
    damaged = read_watch(path, table.seed, hashes)
    assert damaged.study is None
    assert "watch" in damaged.note
    path.unlink()
    assert read_watch(path, table.seed, hashes).note == ""
