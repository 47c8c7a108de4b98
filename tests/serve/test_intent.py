"""What another site makes a browser ask, or a browser asks ahead, is answered and leaves no trace."""

from __future__ import annotations

from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from tests.serve.conftest import BASE, demand_totals, read_demand, wait_for

HOST = BASE.partition("://")[2]
NAVIGATE = {"sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
PERSON = {**NAVIGATE, "sec-fetch-user": "?1"}
IMAGE = {"sec-fetch-mode": "no-cors", "sec-fetch-dest": "image"}

NOT_ASKED = [
    {"sec-fetch-site": "cross-site", **IMAGE},
    {"sec-fetch-site": "cross-site", **NAVIGATE},
    {"sec-fetch-site": "cross-site", **PERSON},
    {"sec-fetch-site": "same-site", **IMAGE},
    {"sec-fetch-site": "same-site", **NAVIGATE},
    {"sec-fetch-site": "something-new", **PERSON},
    {"sec-fetch-site": "none", **PERSON, "sec-purpose": "prefetch;prerender"},
    {"sec-purpose": "Prefetch"},
    {"purpose": "prefetch"},
    {"x-moz": "prefetch"},
    {"referer": "https://evil.example/"},
    {"referer": f"http://evil.example/{HOST}"},
    {"referer": "http://[bad"},
    {"origin": "null"},
]
ASKED = [
    {},
    {"sec-fetch-site": "none", **PERSON},
    {"sec-fetch-site": "same-origin", **NAVIGATE},
    {"sec-fetch-site": "same-origin", "sec-fetch-mode": "cors"},
    {"sec-fetch-site": "same-site", **PERSON},
    {"referer": f"{BASE}/search?q=before"},
]


@pytest.mark.parametrize("path", ["/search", "/api/search"])
@pytest.mark.parametrize("headers", NOT_ASKED)
def test_what_nobody_asked_here_is_not_recorded(
    client: TestClient, folder: Path, path: str, headers: dict[str, str]
) -> None:
    answer = client.get(path, params={"q": "plumage"}, headers=headers)
    assert answer.status_code == 200
    assert "Plumage guide" in answer.text
    client.get(path, params={"q": "bowerbird"})
    assert wait_for(lambda: demand_totals(folder).asked >= 1)
    with read_demand(folder) as log:
        assert [query.text for query in log.queries(2e9)] == ["bowerbird"]
        assert log.totals().impressions == 10


@pytest.mark.parametrize("path", ["/search", "/api/search"])
@pytest.mark.parametrize("headers", ASKED)
def test_what_a_person_or_a_program_asked_is_recorded(
    client: TestClient, folder: Path, path: str, headers: dict[str, str]
) -> None:
    client.get(path, params={"q": "plumage"}, headers=headers)
    assert wait_for(lambda: demand_totals(folder).asked == 1)


def test_clicks_count_only_for_what_was_recorded(client: TestClient, folder: Path) -> None:
    def click(headers: dict[str, str]) -> int:
        results = client.get("/api/search", params={"q": "bowerbird"}, headers=headers).json()["results"]
        return client.get("/click", params={"t": results[0]["click"]}).status_code

    assert click(NOT_ASKED[0]) == 302
    assert click({}) == 302
    assert wait_for(lambda: demand_totals(folder).clicks >= 1)
    assert demand_totals(folder).clicks == 1
