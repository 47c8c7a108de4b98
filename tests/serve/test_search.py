"""The search page and the search call."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from fastapi.testclient import TestClient
from tests.serve.conftest import demand_totals, make_client, read_demand, wait_for
from tests.serve.filling import AT, HOSTILE_TITLE, Page, fill, make_folder

from bowerbird.crawl.texts import ArchiveTexts
from bowerbird.index.protocol import Hit
from bowerbird.index.tantivy_index import TantivyIndex
from bowerbird.serve import service
from bowerbird.serve.app import create_app
from bowerbird.serve.folding import fold
from bowerbird.serve.pages import ago_text
from bowerbird.serve.search import crumbs
from bowerbird.serve.texts import PageTexts
from bowerbird.store.committed import CommittedState
from bowerbird.store.folder import CrawlFolder


class Elements(HTMLParser):
    """All elements of a page with their attributes, and the text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.found if name == tag]


def search_page(client: TestClient, query: str, page: int = 1) -> Elements:
    answer = client.get("/search", params={"q": query, "page": page})
    assert answer.status_code == 200
    return Elements(answer.text)


def test_an_answer_has_every_promised_field(client: TestClient) -> None:
    answer = client.get("/api/search", params={"q": "bowerbird twigs", "n": 3}).json()
    assert list(answer) == ["query", "total", "seconds", "page", "results"]
    assert (answer["query"], answer["total"], answer["page"]) == ("bowerbird twigs", 24, 1)
    assert 0 < answer["seconds"] < 5
    assert [result["rank"] for result in answer["results"]] == [1, 2, 3]
    first = answer["results"][0]
    assert set(first) == {
        *("rank", "url", "title", "snippet", "highlights", "score", "fetched_at", "language", "folded", "click")
    }
    assert first["url"].startswith("http://birds.example/kinds/bird-")
    assert first["language"] == "en"
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", first["fetched_at"])
    marked = {first["snippet"][start:end].lower() for start, end in first["highlights"]}
    assert marked == {"bowerbird", "twigs"}


def test_pages_follow_each_other_without_gap_or_repetition(client: TestClient) -> None:
    seen: list[str] = []
    for page in (1, 2, 3, 4):
        results = client.get("/api/search", params={"q": "bowerbird", "page": page, "n": 10}).json()["results"]
        assert [result["rank"] for result in results] == list(range(len(seen) + 1, len(seen) + len(results) + 1))
        seen += [result["url"] for result in results]
    assert len(seen) == len(set(seen)) == 24


def test_copies_are_folded_under_the_best_of_them(client: TestClient) -> None:
    answer = client.get("/api/search", params={"q": "plumage satin"}).json()
    assert answer["total"] == 3
    assert [(result["folded"]) for result in answer["results"]] == [2]
    page = search_page(client, "plumage satin")
    assert "2 similar pages" in page.text
    assert len(page.all("details")) == 1
    assert len([link for link in page.all("a") if "/click?" in str(link["href"])]) == 3


def hit(page: int, duplicate_of: int | None = None) -> Hit:
    return Hit(page, f"http://h.example/{page}", "", "", (), 1.0, 0.0, "", duplicate_of)


def test_a_group_is_found_whether_or_not_its_first_page_is() -> None:
    results = fold([hit(5, 1), hit(2), hit(6, 1), hit(1), hit(7, 2)])
    assert [(result.rank, result.hit.page, [each.page for each in result.folded]) for result in results] == [
        (1, 5, [6, 1]),
        (2, 2, [7]),
    ]


def test_a_flood_of_copies_does_not_hide_what_comes_after(tmp_path: Path) -> None:
    root = make_folder(tmp_path / "crawl")
    original = "http://a.example/0"
    copies = [Page(f"http://a.example/{n}", "Flood", "flood flood flood", original if n else None) for n in range(90)]
    others = [Page(f"http://b.example/{n}", f"Other {n}", f"one flood among the other words {n}") for n in range(12)]
    fill(root, [*copies, *others])
    with make_client(create_app(root, rate_per_s=0)) as client:
        first = client.get("/api/search", params={"q": "flood"}).json()
        assert [len(first["results"]), first["results"][0]["folded"]] == [10, 89]
        second = client.get("/api/search", params={"q": "flood", "page": 2}).json()
        assert len(second["results"]) == 3


def test_of_many_copies_a_few_are_linked_and_the_rest_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = make_folder(tmp_path / "crawl")
    original = "http://a.example/0"
    fill(root, [Page(f"http://a.example/{n}", "Flood", "flood", original if n else None) for n in range(150)])
    looks: list[int] = []
    search = TantivyIndex.search

    def noted(index: TantivyIndex, query: str, limit: int = 10, *given: Any, **options: Any) -> Any:
        looks.append(limit)
        return search(index, query, limit, *given, **options)

    with make_client(create_app(root, rate_per_s=0)) as client:
        page = search_page(client, "flood")
        assert "149 similar pages" in page.text
        assert "and 139 more" in page.text
        assert len([link for link in page.all("a") if "/click?" in str(link["href"])]) == 11
        monkeypatch.setattr(TantivyIndex, "search", noted)
        monkeypatch.setattr(service, "MOST_LOOKED_AT", 100)
        answer = client.get("/api/search", params={"q": "flood"}).json()
    assert looks == [30, 60, 100]
    assert (answer["total"], len(answer["results"]), answer["results"][0]["folded"]) == (150, 1, 99)


def test_the_page_shows_results_as_people_read_them(folder: Path) -> None:
    with make_client(create_app(folder, now=lambda: AT + 200)) as client:
        page, last = search_page(client, "bowerbird twigs"), search_page(client, "bowerbird twigs", 3)
    assert "24 pages in" in page.text
    assert "3 minutes ago" in page.text
    assert len(page.all("mark")) >= 10
    assert [item["data-rank"] for item in page.all("li") if "data-rank" in item] == [str(n) for n in range(1, 11)]
    times = page.all("time")
    assert all("UTC" in str(time["title"]) for time in times)
    assert "birds.example" in page.text
    assert [link["value"] for link in page.all("input")] == ["bowerbird twigs"]
    assert any(link.get("rel") == "next" for link in page.all("a"))
    assert [link.get("rel") for link in last.all("a")].count("prev") == 1
    assert "next" not in [link.get("rel") for link in last.all("a")]


def test_pages_need_no_script_and_nothing_from_elsewhere(client: TestClient) -> None:
    for path in ("/", "/search?q=bowerbird", "/search?q=nosuchword"):
        page = Elements(client.get(path).text)
        for tag, name in (("script", "src"), ("link", "href"), ("img", "src")):
            for attributes in page.all(tag):
                address = str(attributes[name])
                assert address.startswith("/static/")
                assert client.get(address).status_code == 200
        assert not [attributes for _, attributes in page.found if "style" in attributes or "onclick" in attributes]
        assert page.all("form")[0]["action"] == "/search"


@pytest.mark.parametrize("page", ["0", "-3", "x", "", "99999999999999999999", "²"])
def test_an_odd_page_number_is_put_right(client: TestClient, page: str) -> None:
    assert client.get("/search", params={"q": "bowerbird", "page": page}).status_code == 200


def test_nothing_found_is_said(client: TestClient) -> None:
    assert "Nothing found" in search_page(client, "xyzzyplugh").text
    assert "No more results" in search_page(client, "bowerbird", 50).text
    assert client.get("/api/search", params={"q": "xyzzyplugh"}).json()["results"] == []


def test_an_empty_query_is_no_query(client: TestClient, folder: Path) -> None:
    assert "What are you looking for?" in client.get("/search", params={"q": "  "}).text
    assert client.get("/api/search", params={"q": " "}).json()["results"] == []
    client.get("/api/search", params={"q": "bowerbird"})
    assert wait_for(lambda: demand_totals(folder).asked == 1)


def test_a_query_to_the_first_page_leads_to_its_answer(client: TestClient) -> None:
    answer = client.get("/", params={"q": "blue & bower\r\nx: y"})
    assert answer.status_code == 302
    assert answer.headers["location"] == "/search?q=blue+%26+bower%0D%0Ax%3A+y"
    assert client.get("/", params={"q": "  "}).status_code == 200


def test_html_of_the_web_and_of_people_is_text(client: TestClient) -> None:
    html = client.get("/search", params={"q": "hostile"}).text
    page = Elements(html)
    assert HOSTILE_TITLE in page.text
    assert "<img src=x" not in html
    assert "alert(" not in re.sub(r"&lt;.*?&gt;", "", html).replace("alert(&#39;title&#39;)", "").replace(
        "alert(2)", ""
    )
    assert all(str(script["src"]).startswith("/static/") for script in page.all("script"))
    query = "\"><script>alert('q')</script>"
    html = client.get("/search", params={"q": query}).text
    assert "<script>alert" not in html
    assert Elements(html).all("input")[0]["value"] == query


def test_addresses_of_other_schemes_are_never_linked(client: TestClient) -> None:
    answer = client.get("/api/search", params={"q": "scriptword"}).json()
    assert answer["results"] == []
    assert "javascript:" not in client.get("/search", params={"q": "scriptword"}).text


def test_a_long_query_is_refused_with_a_reason(client: TestClient) -> None:
    for path in ("/search", "/api/search"):
        refused = client.get(path, params={"q": "a" * 501})
        assert refused.status_code == 400
        assert "501 characters" in refused.text
        assert "500" in refused.text
    assert client.get("/api/search", params={"q": "a" * 500}).status_code == 200


@pytest.mark.parametrize("values", [{"page": 0}, {"page": 101}, {"n": 0}, {"n": 51}, {"n": "x"}])
def test_numbers_out_of_range_are_refused(client: TestClient, values: dict[str, object]) -> None:
    assert client.get("/api/search", params={"q": "bowerbird", **values}).status_code == 422


def test_a_folder_before_its_first_page_and_after(tmp_path: Path) -> None:
    root = make_folder(tmp_path / "crawl")
    with make_client(create_app(root, rate_per_s=0)) as client:
        assert "No page can be found yet" in client.get("/").text
        assert client.get("/api/search", params={"q": "bowerbird"}).json()["total"] == 0
        assert client.get("/api/status").json()["fetched"] == 0
        fill(root, [Page("http://late.example/", "Late", "The bowerbird came late.")])

        def found() -> bool:
            return bool(client.get("/api/search", params={"q": "bowerbird late"}).json()["total"])

        assert wait_for(found, 5)
        assert "Search 1 page" in client.get("/").text
        fill(root, [Page("http://late.example/2", "Later", "Another bowerbird came later still.")])
        assert wait_for(lambda: client.get("/api/search", params={"q": "bowerbird"}).json()["total"] == 2, 5)


def test_an_archive_that_is_gone_costs_the_snippets_only(folder: Path) -> None:
    for path in (folder / "archive").iterdir():
        path.unlink()
    with make_client(create_app(folder)) as client:
        results = client.get("/api/search", params={"q": "bowerbird"}).json()["results"]
    assert len(results) == 10
    assert {result["snippet"] for result in results} == {""}


def test_a_page_that_was_fetched_again_is_shown_as_it_is_now(client: TestClient, folder: Path) -> None:
    def snippet() -> str:
        return str(client.get("/api/search", params={"q": "plumage satin"}).json()["results"][0]["snippet"])

    assert "glossy and dark" in snippet()
    text = "Plumage of the satin kind is blue in truth."
    fill(folder, [Page("https://copies.example/original", "Plumage guide", text)])
    assert wait_for(lambda: "blue in truth" in snippet(), 5)


def test_kept_texts_are_those_of_the_archive_and_bounded(folder: Path) -> None:
    state = CommittedState(CrawlFolder(folder))
    try:
        texts = PageTexts(kept_chars=200)
        rows = [row for (row,) in state.connection.execute("SELECT url FROM versions")]
        from_archive = ArchiveTexts(state)(rows)
        for _ in range(2):
            assert [texts.text(state, row) for row in rows] == from_archive
        assert 0 < len(texts) < 6
        assert texts.text(state, 10**6) == ""
    finally:
        state.close()


def test_crumbs() -> None:
    assert crumbs("https://a.example/") == ("a.example",)
    assert crumbs("http://a.example:81/b%20c/%E2%80%AEd?e=f") == ("http://a.example:81", "b c", "\ufffdd?e=f")
    assert crumbs("http://[bad/") == ("http://[bad/",)


@pytest.mark.parametrize(
    ("past_s", "text"),
    [
        (-5, "just now"),
        (30, "30 seconds ago"),
        (60, "1 minute ago"),
        (7200, "2 hours ago"),
        (86400 * 29, "29 days ago"),
        (86400 * 360, "12 months ago"),
        (86400 * 800, "2 years ago"),
    ],
)
def test_times_as_people_say_them(past_s: float, text: str) -> None:
    assert ago_text(AT, AT + past_s) == text


def test_what_was_asked_and_shown_is_recorded(client: TestClient, folder: Path) -> None:
    client.get("/search?" + urlencode({"q": "Bowerbird  twigs"}))
    client.get("/search?" + urlencode({"q": "Bowerbird  twigs", "page": 3}))
    assert wait_for(lambda: demand_totals(folder).impressions == 14)
    with read_demand(folder) as log:
        (query,) = log.queries(AT + 200)
        ranks = log.rank_counts().rank.tolist()
    assert (query.text, query.count, query.results) == ("bowerbird twigs", 1, 24)
    assert sorted(ranks) == [*range(1, 11), *range(21, 25)]
