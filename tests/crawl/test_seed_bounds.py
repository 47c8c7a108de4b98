"""Chosen seeds within bounds: they let no trap grow, and choosing them takes little memory."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.crawl.hub_past import Past
from tests.crawl.seed_past import GIVEN, Site

from bowerbird.appraise.frontier.graph import make_graph
from bowerbird.appraise.policy import make_policy
from bowerbird.crawl import free_memory as memory
from bowerbird.crawl import seed_study
from bowerbird.crawl.demand_log import open_demand
from bowerbird.crawl.intake import Intake
from bowerbird.crawl.reading import Reader
from bowerbird.crawl.scope import Scope, ScopeRules
from bowerbird.crawl.study_kinds import kind_of
from bowerbird.demand.events import ResultClicked
from bowerbird.model.errors import ConfigError
from bowerbird.model.outcome import Outcome
from bowerbird.model.snapshot import LinkGraph
from bowerbird.model.url_state import FetchKind, UrlState
from bowerbird.schedule.leases import Lease
from bowerbird.store.repository import Repository
from bowerbird.web.fetcher import FetchResult
from bowerbird.web.url import Canonicaliser

DEEPEST = 5


class Calendar(Past):
    """Every page links to the next day, and every third day redirects to the one after."""

    def __init__(self, root: Path) -> None:
        super().__init__(root, {"crawl": {"max_depth": DEEPEST}, "seeds": {"k": 3, "hops": 2}})
        self.intake = Intake(self.repository, make_policy("breadth-first"), self.settings)
        self.add(GIVEN, self.now)

    def click(self, row: int) -> None:
        """Somebody wants this page."""
        with open_demand(self.folder, self.settings.demand, write=True) as log:
            log.record([ResultClicked("day", self.repository.url(row), 1, self.now)])

    def fetch_all(self) -> None:
        """Everything once more, and whatever that leads to."""
        row = 0
        while row < len(self.repository.table):
            url = self.repository.url(row)
            day = int(url.partition("day=")[2] or 0)
            follow = f"http://seed.example/calendar?day={day + 1}"
            if day % 3 == 2:
                answer = FetchResult(1, url, Outcome.REDIRECT, 302, location=follow, started_at=self.now)
            else:
                body = f"<html><title>{day}</title><a href='{follow}'>next</a> words {day}</html>".encode()
                html = {"content-type": ["text/html"]}
                answer = FetchResult(1, url, Outcome.OK, 200, headers=html, body=body, started_at=self.now)
            seed = self.repository.table.seed
            report = Reader(Canonicaliser(), Scope(ScopeRules("anywhere")), agent="x", hash_seed=seed).read(answer)
            lease = Lease(row, 0, 0, FetchKind.NEW, self.now, self.now + 1, 1.0, 1.0, "{}")
            self.intake.take([(lease, report)], self.now)
            row += 1
        self.repository.commit()


def test_pages_that_only_their_own_series_leads_to_are_no_reason_for_a_seed(tmp_path: Path) -> None:
    """Each day of a calendar has words of its own, so no copies give it away; but nobody else refers to its days."""
    past = Calendar(tmp_path / "crawl")
    past.fetch_all()
    assert len(past.repository.table) > 4
    study = seed_study.make_seed_study(past.folder, past.settings, past.now)
    assert not len(study.row)
    assert study.all_value == 2.0  # the page that was given, and the first day, which that one links to
    last = len(past.repository.table) - 1
    listed = past.repository.url(last).replace("day=", "talk-")
    for nth, row in enumerate(range(2, last + 1)):  # what a day leads to counts, and is reached by way of the days
        past.visit(row, past.now, (past.repository.url(row), f"{listed}-{nth}"))
    past.repository.commit()
    crawled = seed_study.gather_crawled(past.repository, past.settings, past.now)
    assert crawled.uncrawled.sum() == last - 1
    assert any("as calendars do" in note for note in crawled.notes)
    past.repository.close()


def test_a_chosen_seed_inside_a_trap_does_not_let_it_grow(tmp_path: Path) -> None:
    past = Calendar(tmp_path / "crawl")
    past.fetch_all()
    table = past.repository.table
    known = len(table)
    assert table.columns["depth"].max() == DEEPEST
    assert (table.columns["state"] == UrlState.REDIRECT).any()
    past.click(known - 2)
    for hour in range(3):
        study = seed_study.make_seed_study(past.folder, past.settings, past.now + hour)
        kind_of("seeds").put(past.repository, study)
        assert table.near_depth[known - 1] < DEEPEST  # seeds were chosen among the days: one of them was clicked
        past.fetch_all()
        assert len(table) == known
    stored = past.repository.connection.execute("SELECT depth FROM urls ORDER BY id").fetchall()
    assert [depth for (depth,) in stored] == table.columns["depth"].tolist()
    past.repository.close()


def test_what_is_stored_does_not_depend_on_a_choice(tmp_path: Path) -> None:
    """New pages of a chosen seed come soon, but the database has them as far as they are from those given."""
    site = Site(tmp_path / "crawl")
    kind_of("seeds").put(site.repository, site.choose())
    fresh = site.visit(site.far[0], site.now, ("http://a.example/fresh",))[0]
    moved = int(site.repository.add_urls(["http://a.example/moved"], at=1.0, depth=3, hops=1, source=fresh)[0][0])
    assert site.repository.snapshot(1.0).pages.depth[[site.far[0], fresh, moved]].tolist() == [1, 2, 2]
    assert site.repository.table.columns["depth"][[site.far[0], fresh, moved]].tolist() == [2, 3, 3]
    site.repository.commit()
    site.repository.write_checkpoint()
    site.repository.close()
    site.folder.study("seeds").rename(tmp_path / "away.npz")
    with closing(Repository(site.folder, write=False)) as repository:
        assert repository.replayed == 0
        assert repository.snapshot(1.0).pages.depth[[site.far[0], fresh, moved]].tolist() == [2, 3, 3]


def test_what_was_near_stays_so_also_what_came_between_two_choices(tmp_path: Path) -> None:
    site = Site(tmp_path / "crawl")
    first = site.choose()
    fresh = site.visit(site.far[0], site.now, ("http://a.example/fresh",))[0]
    assert fresh >= first.count
    site.visit(site.far[0], site.now + 1.0)  # it links there no more
    site.settle(site.hall, UrlState.GONE, Outcome.GONE)
    study = site.choose()
    assert site.hall not in study.row
    assert study.depth[fresh] == 2
    site.repository.close()


# -- memory


def peak_of(work: Callable[[], object]) -> int:
    """Bytes that were taken at most, beside what was there."""
    work()  # kernels are compiled
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def draw_links(count: int, edges: int, seed: int) -> LinkGraph:
    rng = np.random.default_rng(seed)
    starts = np.concatenate([[0], np.cumsum(np.bincount(rng.integers(0, count, edges), minlength=count))])
    return LinkGraph(starts, rng.integers(0, count, edges).astype(np.uint32))


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 2**32), count=st.integers(1, 30), chunk=st.sampled_from([1, 3, 1000]))
def test_links_are_looked_through_in_pieces(seed: int, count: int, chunk: int) -> None:
    rng = np.random.default_rng(seed)
    links = draw_links(count, 3 * count, seed)
    state = rng.integers(0, 4, count)
    state[rng.integers(0, count)] = 0
    ends = np.where(state == 3, rng.integers(0, count, count), np.arange(count))
    crawled = np.flatnonzero(state == 0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(seed_study, "CHUNK_LINKS", chunk)
        graph, uncrawled = seed_study._only_crawled(links, ends, crawled, state == 1)
    pairs = [(page, int(ends[target])) for page in crawled for target in links.out_links(page).tolist()]
    place = {int(row): number for number, row in enumerate(crawled)}
    inner = [(place[source], place[target]) for source, target in pairs if target in place]
    plain = make_graph([one for one, _ in inner], [other for _, other in inner], len(crawled))
    assert graph.starts.tolist() == plain.starts.tolist()
    assert graph.targets.tolist() == plain.targets.tolist()
    new = {pair for pair in pairs if state[pair[1]] == 1}
    assert uncrawled.tolist() == [sum(source == row for source, _ in new) for row in crawled.tolist()]


def test_a_link_takes_few_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    edges, count = 400_000, 2000
    links = draw_links(count, edges, 1)
    monkeypatch.setattr(seed_study, "CHUNK_LINKS", 20_000)
    is_new, ends = np.zeros(count, np.bool_), np.arange(count)
    peak = peak_of(lambda: seed_study._only_crawled(links, ends, np.arange(count), is_new))
    assert peak < (seed_study.LINK_BYTES - 4) * edges  # the links themselves were there before


def test_seeds_are_not_chosen_where_memory_is_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = Site(tmp_path / "crawl")
    site.repository.commit()
    least = seed_study.LEAST_SAMPLE_BYTES
    for free, room in ((2 * least, 0), (2 * least + 20_000, least), (10**12, seed_study.MEMORY_BYTES)):
        monkeypatch.setattr(seed_study, "free_memory", lambda free=free: free)
        if room:
            assert least <= seed_study._find_room(site.repository) <= room + 10_000
            continue
        with pytest.raises(ConfigError, match=r"11 links take about 50 MB, and half of the free memory is 50 MB"):
            site.choose()
    assert not site.folder.study("seeds").exists()
    site.choose()
    assert site.folder.study("seeds").exists()
    site.repository.close()


def test_free_memory_is_what_the_system_and_its_limit_leave(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "MEMORY", tmp_path / "meminfo")
    monkeypatch.setattr(memory, "GROUP", tmp_path)
    assert memory.free_memory() == 1 << 62  # nobody tells
    (tmp_path / "meminfo").write_text("MemTotal: 90 kB\nMemAvailable: 70 kB\n")
    (tmp_path / "memory.current").write_text("1000\n")
    for limit, free in (("max\n", 70 * 1024), ("5000\n", 4000), ("500\n", 0)):
        (tmp_path / "memory.max").write_text(limit)
        assert memory.free_memory() == free
