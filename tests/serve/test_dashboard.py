"""The dashboard and the explain page, as the application answers them."""

from __future__ import annotations

import re
import threading
import time
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pytest
from fastapi.testclient import TestClient
from tests.crawl.crawling import make_crawl
from tests.serve.conftest import wait_for
from tests.serve.filling import SEED, Page, fill

from bowerbird.crawl.measurements import Measurement, keep_measurement
from bowerbird.crawl.needs import weigh_needs
from bowerbird.demand.events import QueryAsked, ResultClicked
from bowerbird.demand.log import DemandLog, QueryStats
from bowerbird.index.tantivy_index import TantivyIndex
from bowerbird.model.outcome import Outcome
from bowerbird.model.url_state import FetchKind, UrlState
from bowerbird.serve import dashboard_data
from bowerbird.serve.dashboard_demand import DemandWatch, rank_by_need
from bowerbird.serve.dashboard_journal import Interval
from bowerbird.serve.dashboard_panels import PANELS, errors_panel
from bowerbird.serve.dashboard_survey import MOST_INSIDE, Lookout
from bowerbird.serve.service import BusyError
from bowerbird.store.folder import CrawlFolder, WriterLock
from bowerbird.store.records import FetchRecord
from bowerbird.store.repository import Repository

BIRD = "http://birds.example/kinds/bird-1"


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is remembered from one look to the next."""
    monkeypatch.setattr(dashboard_data, "GLANCE_LIFE_S", -1.0)


class Seen(HTMLParser):
    """What a page holds: tags in balance, links, and no inline style or script."""

    VOID = frozenset(["meta", "link", "input", "img", "br", "hr"])

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.links: list[str] = []
        self.inline: list[str] = []
        self.ids: list[str] = []
        self.text = ""
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if tag not in self.VOID:
            self.open.append(tag)
        if values.get("id"):
            self.ids.append(str(values["id"]))
        if values.get("href"):
            self.links.append(str(values["href"]))
        self.inline.extend(name for name in values if name == "style" or name.startswith("on"))
        if (tag == "script" and "src" not in values) or tag == "style":
            self.inline.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in self.VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open[-1] == tag, (tag, self.open)
        self.open.pop()
        if tag in ("td", "th", "span"):
            self.text += " "

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_page_has_all_panels_and_nothing_inline(client: TestClient) -> None:
    answer = client.get("/dashboard")
    assert answer.status_code == 200
    assert answer.headers["cache-control"] == "no-store"
    page = Seen(answer.text)
    assert page.inline == []
    assert {f"panel-{name}" for name in PANELS} <= set(page.ids)
    assert "not running" in page.text
    assert "bowerbird crawl crawl goes on with it" in " ".join(page.text.split())
    assert "bowerbird quality crawl" in page.text  # nothing is measured yet


def test_every_url_leads_to_its_explanation(client: TestClient) -> None:
    page = Seen(client.get("/dashboard").text)
    why = [link for link in page.links if link.startswith("/explain?url=")]
    assert f"/explain?url={quote(SEED)}" in [link.replace("%2F", "/").replace("%3A", "%3A") for link in why]
    assert not [link for link in page.links if link.startswith(("http:", "https:", "javascript:"))]
    for link in why[:5]:
        answer = client.get(link)
        assert answer.status_code in (200, 404)
        Seen(answer.text)


def test_the_live_panels_are_those_of_the_page(client: TestClient) -> None:
    live = client.get("/dashboard/live").json()
    assert set(live["panels"]) == set(PANELS)
    assert live["running"] is False
    for html in live["panels"].values():
        assert Seen(f"<section>{html}</section>").inline == []


def test_measured_quality_is_shown_and_served(client: TestClient, folder: Path) -> None:
    assert client.get("/api/quality").json() == {"latest": None, "series": []}
    now = time.time()
    for nth, value in enumerate((0.5, 0.6, 0.75)):
        causes = {"rose": 0.1, "fell": 0.02, "unfetched": 0.12, "gone": 0.01}
        made = Measurement(now - 60 * (3 - nth), value, value - 0.1, value + 0.1, 50, 9, 1.0, causes)
        keep_measurement(CrawlFolder(folder), made)
    said = client.get("/api/quality?n=2").json()
    assert [point["quality"] for point in said["series"]] == [0.6, 0.75]
    assert said["latest"] == said["series"][-1]
    assert said["latest"]["causes"]["unfetched"] == 0.12
    page = Seen(client.get("/dashboard").text)
    assert "75%" in page.text
    assert "65% to 85%" in page.text
    assert "Where it is lost: 25%" in page.text
    for name in ("more by now (rose)", "less by now (fell)", "yet (unfetched)", "still shown (gone)"):
        assert re.search(rf'<text class="name"[^>]*>[^<]*{re.escape(name)}</text>', client.get("/dashboard").text), name
    assert client.get("/api/quality?n=0").status_code == 422


def test_a_glance_reads_the_newest_measurements_only(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dashboard_data, "QUALITY_READ", 2)
    for at in (1.0, 2.0, 3.0):
        keep_measurement(CrawlFolder(folder), Measurement(at, 0.5, 0.4, 0.6, 50))
    observer = dashboard_data.Observer(folder)
    try:
        assert [one.at for one in observer.glance().quality] == [2.0, 3.0]
    finally:
        observer.close()


class SlowLine(Lookout):
    """Between reading how many are inside and writing it, others have their turn."""

    written: list[int] = []  # noqa: RUF012

    @property
    def _inside(self) -> int:
        now = self.written[-1]
        time.sleep(0.02)
        return now

    @_inside.setter
    def _inside(self, count: int) -> None:
        self.written.append(count)


def test_the_line_before_the_lookout_is_counted_right(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SlowLine, "written", [])
    lookout = SlowLine(folder)

    def look() -> None:
        with lookout.view():
            pass

    threads = [threading.Thread(target=look) for _ in range(4)]
    with lookout._lock:
        for thread in threads:
            thread.start()
        assert wait_for(lambda: len(lookout.written) == 5)
        assert lookout.written == [0, 1, 2, 3, 4]
    for thread in threads:
        thread.join()
    lookout.close()
    assert lookout.written[-1] == 0


def test_who_comes_to_a_full_line_is_told(folder: Path) -> None:
    lookout = Lookout(folder)
    lookout._inside = MOST_INSIDE
    with pytest.raises(BusyError), lookout.view():
        pass
    assert lookout._inside == MOST_INSIDE


def test_it_is_said_who_measures(client: TestClient) -> None:
    assert "bowerbird serve measures by itself" in Seen(client.get("/dashboard").text).text


def test_needs_count_a_missing_result_once(folder: Path) -> None:
    texts = ("bowerbird", "plumage", "xyzzyplugh")
    asked = [QueryStats(text, 1, 1.0, 0, 0, None, 0.0) for text in texts]
    with TantivyIndex.open(folder / "index", write=False) as index:
        answers = [index.search(text, 10) for text in texts]
    assert [answer.total for answer in answers] == [24, 3, 0]
    tops = np.array([sum(hit.score for hit in answer.hits) / 10 for answer in answers])
    expected = np.exp(-tops / tops[:2].mean())
    needs = weigh_needs(CrawlFolder(folder), asked)
    assert [need.need for need in needs] == pytest.approx(expected.tolist())
    assert [need.mean_top_score for need in needs] == pytest.approx(tops.tolist())
    shown = {one.text: one.need for one in rank_by_need(CrawlFolder(folder), asked)}
    assert [shown[text] for text in texts] == pytest.approx(expected.tolist())


def test_queries_and_clicks_show(client: TestClient, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.time()
    with DemandLog.open(folder / "demand.db", write=True, min_occurrences=1) as log:
        log.record([QueryAsked("<b>nothing found", now, 9, results=0), QueryAsked("bower", now, 9, results=5000)])
        log.record([ResultClicked("bower", BIRD, 1, now)])
    html = client.get("/dashboard").text
    assert "<b>nothing" not in html
    page = Seen(html)
    needs = page.text[page.text.index("Neediest queries") :]
    assert needs.index("<b>nothing found") < needs.index("bower")
    assert "18" in page.text[page.text.index("Queries") :][:40]


def test_errors_and_trouble_show(client: TestClient, folder: Path) -> None:
    repository = Repository(CrawlFolder(folder), write=True)
    now = time.time()
    row = int(repository.add_urls(["http://down.example/"], at=now)[0][0])
    record = FetchRecord(row, FetchKind.NEW, now, 1.0, 1.0, "{}", now, Outcome.TIMEOUT, UrlState.NEW)
    record.error = "<i>no answer</i>"
    repository.record(record)
    host = repository.table.hosts["http://down.example"]
    repository.table.hosts.columns["errors"][host] = 4
    repository.table.hosts.columns["not_before"][host] = now + 600
    repository.table.hosts.dirty.add(host)
    repository.commit()
    repository.close()
    html = client.get("/dashboard?window=day").text
    text = " ".join(Seen(html).text.split())
    assert "<i>no answer" not in html
    assert re.search(r"timeout 1 1", text)
    assert re.search(r"http://down\.example <i>no answer</i> 4 for \d+ min", text) or "for 10 min" in text


def record_outcomes(folder: Path, url: str, outcomes: list[Outcome]) -> None:
    repository = Repository(CrawlFolder(folder), write=True)
    now = time.time()
    row = int(repository.add_urls([url], at=now)[0][0])
    for outcome in outcomes:
        repository.record(FetchRecord(row, FetchKind.NEW, now, 1.0, 1.0, "{}", now, outcome, UrlState.GONE))
    repository.commit()
    repository.close()


def panel_text(client: TestClient, name: str) -> str:
    html = client.get("/dashboard/live?window=day").json()["panels"][name]
    return " ".join(Seen(f"<section>{html}</section>").text.split())


def test_what_is_not_there_or_excluded_is_no_error(client: TestClient, folder: Path) -> None:
    gone, robots, outside = Outcome.GONE, Outcome.ROBOTS, Outcome.OUT_OF_SCOPE
    record_outcomes(folder, "http://old.example/", [gone, gone, robots, robots, robots, outside])
    said = panel_text(client, "errors")
    assert "No errors." in said
    assert "not found 2 2" in said
    assert "excluded by robots.txt 3 3" in said
    assert "out of scope 1 1" in said
    assert "http://old.example 2 0" in panel_text(client, "hosts")


def test_the_share_of_errors_counts_what_went_wrong() -> None:
    new = FetchKind.NEW
    healthy = Interval(0.0, 60.0, {(new, Outcome.GONE): 3.0, (new, Outcome.ROBOTS): 9.0}, False)
    troubled = Interval(60.0, 60.0, {(new, Outcome.TIMEOUT): 1.0, (new, Outcome.GONE): 3.0}, False)
    totals = {(int(new), int(Outcome.TIMEOUT)): 1, (int(new), int(Outcome.GONE)): 6}
    glance = dashboard_data.Glance(120.0, "crawl", "all", intervals=[healthy, troubled], totals=totals)
    html = errors_panel(glance)
    assert re.findall(r"<td[^>]*>(\d+%)</td>", html) == ["25%", "0%"]  # the latest first


def test_a_running_crawl_is_said_to_run(client: TestClient, folder: Path) -> None:
    lock = WriterLock(CrawlFolder(folder))
    try:
        assert "starting or busy" in client.get("/dashboard").text
        repository = Repository(CrawlFolder(folder), write=True)
        live = f'{{"at": {time.time()}, "pages_per_s": 12.5, "in_flight": 3, "price": 1.5, "known": 99, "frontier": 7}}'
        repository.set_meta("live", live)
        repository.close()
        text = " ".join(Seen(client.get("/dashboard").text).text.split())
        assert "3 in flight, price 1.5" in text
        assert "of 99 known URLs" in text
        assert client.get("/dashboard/live").json()["running"] is True
    finally:
        lock.release()


def test_what_is_added_shows_in_the_next_look(client: TestClient, folder: Path) -> None:
    def fetches() -> str:
        found = re.search(
            r"Fetches</span>\s*<span[^>]*>([\d,]+)", client.get("/dashboard/live").json()["panels"]["status"]
        )
        assert found
        return found[1]

    before = int(fetches())
    fill(folder, [Page(f"http://more.example/{n}", "More", "More words", fetched_at=time.time()) for n in range(3)])
    assert int(fetches()) == before + 3


@pytest.mark.parametrize("window", ["10 minutes", "hour", "day", "week", "all", "nonsense", "<script>"])
def test_windows(client: TestClient, window: str) -> None:
    answer = client.get("/dashboard", params={"window": window})
    assert answer.status_code == 200
    assert "<script>" not in answer.text
    assert len(re.findall('aria-current="true"', answer.text)) == 1


def test_a_folder_that_cannot_be_read_is_said(client: TestClient, folder: Path) -> None:
    (folder / "bowerbird.toml").unlink()
    answer = client.get("/dashboard")
    assert answer.status_code == 503
    assert "not a crawl folder" in answer.text
    assert str(folder) not in answer.text
    assert client.get("/explain", params={"url": BIRD}).status_code == 503


# -- explain


def test_a_known_url_is_explained(client: TestClient) -> None:
    answer = client.get("/explain", params={"url": BIRD})
    assert answer.status_code == 200
    page = Seen(answer.text)
    assert page.inline == []
    text = " ".join(page.text.split())
    for part in ("fetched", "The bid", "age", "Politeness towards http://birds.example", "History", "ok 200"):
        assert part in text
    assert BIRD in page.links


def test_an_unknown_url_is_404_with_help(client: TestClient) -> None:
    answer = client.get("/explain", params={"url": "https://birds.example/kinds/bird-1?x='$(id)"})
    assert answer.status_code == 404
    page = Seen(answer.text)
    assert "Not known to this crawl" in page.text
    assert "bowerbird add crawl 'https://" in page.text
    assert f"/explain?url={quote(BIRD)}" in [link.replace("%2F", "/") for link in page.links]


@pytest.mark.parametrize("url", ["ftp://x.example/", "http://", "x" * 5000, "http://[::1", "javascript:alert(1)"])
def test_what_is_no_url_is_400(client: TestClient, url: str) -> None:
    answer = client.get("/explain", params={"url": url})
    assert answer.status_code == 400
    assert "Not a URL" in Seen(answer.text).text


def test_markup_in_the_question_is_escaped(client: TestClient) -> None:
    answer = client.get("/explain", params={"url": 'http://x.example/"><script>alert(1)</script>'})
    assert answer.status_code in (400, 404)
    assert "<script>alert" not in answer.text
    assert Seen(answer.text).inline == []


def test_without_a_url_there_is_a_box_to_ask(client: TestClient) -> None:
    answer = client.get("/explain")
    assert answer.status_code == 200
    assert 'name="url"' in answer.text


def test_the_assets_are_served(client: TestClient) -> None:
    for name in ("dashboard.css", "dashboard.js"):
        answer = client.get(f"/static/{name}")
        assert answer.status_code == 200
        assert "http://" not in answer.text and "https://" not in answer.text


def test_demand_before_the_first_look_is_told_by_the_log(tmp_path: Path) -> None:
    now = 1_000_000 * 1200.0 + 600.0
    folder = make_crawl(tmp_path / "crawl", ["http://a.example/"])
    with DemandLog.open(folder / "demand.db", write=True) as log:
        log.record(
            [QueryAsked("rose", now - 3600.0, 40), ResultClicked("rose", "http://a.example/", 1, now - 3600.0, 20)]
        )
    watch = DemandWatch(CrawlFolder(folder), clock=lambda: now)
    seen = watch.look()
    assert (seen.asked, seen.clicked) == ([2.0], [1.0])  # a minute, over the twenty minutes of the bin
    assert now - 4800 <= seen.times[0] <= now - 2400
    with DemandLog.open(folder / "demand.db", write=True) as log:
        log.record([QueryAsked("rose", now + 60.0, 6)])
    watch.clock = lambda: now + 120.0
    seen = watch.look()
    assert seen.asked == [2.0, 3.0]
    assert seen.times[1] == now + 120.0
