"""Click tokens, the redirect, and the thread that records."""

from __future__ import annotations

import threading
import time
import tracemalloc
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from hypothesis import given
from hypothesis import strategies as st
from tests.serve.conftest import demand_totals, make_client, read_demand, wait_for

from bowerbird.demand.events import Event, QueryAsked, ResultClicked
from bowerbird.serve.app import create_app
from bowerbird.serve.clicks import CLICK_COUNTS_FOR_S, ClickOnce, Recorder, Shown, TokenSigner
from bowerbird.serve.redirects import header_url

SIGNER = TokenSigner(b"secret")
TEXT = st.text(st.characters(codec="utf-8"), max_size=50)


def token_of(client: TestClient, query: str = "bowerbird") -> tuple[str, str]:
    first = client.get("/api/search", params={"q": query}).json()["results"][0]
    return first["click"], first["url"]


@given(TEXT, TEXT, st.none() | st.integers(1, 10_000), st.floats(0, 4e9))
def test_a_token_says_what_was_signed(query: str, path: str, rank: int | None, at: float) -> None:
    shown = Shown(query, "http://a.example/" + path, rank, round(at, 3))
    assert SIGNER.read(SIGNER.sign(shown)) == shown


@given(st.integers(0, 500), st.integers(1, 255))
def test_a_changed_token_is_refused(place: int, change: int) -> None:
    token = SIGNER.sign(Shown("q", "https://a.example/page", 1, 1000.0))
    data = bytearray(urlsafe_b64decode(token + "=" * (-len(token) % 4)))
    data[place % len(data)] ^= change
    assert SIGNER.read(urlsafe_b64encode(bytes(data)).decode().rstrip("=")) is None


@given(st.text(max_size=100))
def test_anything_else_is_refused(text: str) -> None:
    assert SIGNER.read(text) is None


def test_another_secret_and_another_scheme_are_refused() -> None:
    shown = Shown("q", "https://a.example/", 1, 1000.0)
    assert TokenSigner(b"other").read(SIGNER.sign(shown)) is None
    assert SIGNER.read(SIGNER.sign(Shown("q", "javascript:alert(1)", 1, 1000.0))) is None
    assert SIGNER.read("A" * 20_000) is None


def test_a_click_is_recorded_and_leads_to_the_result(client: TestClient, folder: Path) -> None:
    token, url = token_of(client)
    answer = client.get("/click", params={"t": token})
    assert (answer.status_code, answer.headers["location"]) == (302, url)
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert wait_for(lambda: demand_totals(folder).clicks == 1)
    with read_demand(folder) as log:
        assert [page for page, _ in log.page_clicks(time.time())] == [url]
        counts = log.rank_counts()
    assert counts.clicks[counts.rank == 1].tolist() == [1]


def test_the_call_records_too_and_a_result_counts_once(client: TestClient, folder: Path) -> None:
    token, _ = token_of(client)
    for _ in range(3):
        assert client.post("/api/click", json={"click": token}).status_code == 204
        assert client.get("/click", params={"t": token}).status_code == 302
    other, _ = token_of(client, "plumage")
    assert client.post("/api/click", json={"click": other}).status_code == 204
    assert wait_for(lambda: demand_totals(folder).clicks == 2)


def test_looking_ahead_is_no_click(client: TestClient, folder: Path) -> None:
    token, url = token_of(client)
    ahead = client.get("/click", params={"t": token}, headers={"sec-purpose": "prefetch;prerender"})
    assert ahead.headers["location"] == url
    assert wait_for(lambda: demand_totals(folder).asked == 1)
    assert demand_totals(folder).clicks == 0


@pytest.mark.parametrize(
    "query",
    [
        {},
        {"t": ""},
        {"t": "https://evil.example/"},
        {"t": "//evil.example"},
        {"t": "aHR0cHM6Ly9ldmlsLmV4YW1wbGUv"},
        {"t": "x", "url": "https://evil.example/"},
        {"url": "https://evil.example/", "u": "https://evil.example/", "next": "//evil.example"},
    ],
)
def test_nothing_but_a_token_redirects(client: TestClient, query: dict[str, str]) -> None:
    answer = client.get("/click", params=query)
    assert answer.status_code == 400
    assert "location" not in answer.headers
    assert "leads nowhere" in answer.text


def test_a_token_of_another_crawl_is_refused(client: TestClient) -> None:
    forged = TokenSigner.with_random_secret().sign(Shown("q", "https://evil.example/", 1, time.time()))
    assert client.get("/click", params={"t": forged}).status_code == 400
    assert client.post("/api/click", json={"click": forged}).status_code == 400


def test_tokens_outlive_a_restart(folder: Path) -> None:
    with make_client(create_app(folder)) as first:
        token, url = token_of(first)
    with make_client(create_app(folder)) as second:
        assert second.get("/click", params={"t": token}).headers["location"] == url
    assert demand_totals(folder).clicks == 1  # written when the second one ended


def test_an_old_result_still_leads_on_but_counts_no_more(folder: Path) -> None:
    clock = [time.time()]
    with make_client(create_app(folder, now=lambda: clock[0])) as client:
        token, url = token_of(client)
        clock[0] += CLICK_COUNTS_FOR_S + 1
        assert client.get("/click", params={"t": token}).headers["location"] == url
    totals = demand_totals(folder)
    assert (totals.asked, totals.clicks) == (1, 0)


def test_remembered_clicks_are_bounded() -> None:
    once = ClickOnce(capacity=2)
    shown = [Shown("q", f"http://a.example/{n}", 1, 1000.0) for n in range(3)]
    assert [once.counts(each, 1000.0) for each in (shown[0], shown[0], shown[1], shown[2])] == [True, False, True, True]
    assert once.counts(shown[0], 1000.0)


def test_remembering_clicks_takes_no_more_room_than_at_the_start() -> None:
    once = ClickOnce(capacity=5000)
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for number in range(5000):
            assert once.counts(Shown(f"query {number}", f"http://a.example/{number}", 1, 1000.0), 1000.0)
        assert tracemalloc.get_traced_memory()[0] - before < 5000  # a byte a click, of what lies about in between
    finally:
        tracemalloc.stop()
    assert not once.counts(Shown("query 7", "http://a.example/7", 1, 1000.0), 1000.0)


def test_header_url() -> None:
    assert header_url("http://a.example/b?c=%20") == "http://a.example/b?c=%20"
    assert header_url("http://a.example/é\r\nX: y") == "http://a.example/%C3%A9%0D%0AX:%20y"


class Kept:
    """A log in memory that can be made to wait or fail."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.batches = 0
        self.failing = False
        self.go_on = threading.Event()
        self.go_on.set()
        self.closed = 0

    def record(self, events: Sequence[Event]) -> None:
        self.go_on.wait(10)
        if self.failing:
            raise OSError("the disk is full")
        self.batches += 1
        self.events += events

    def close(self) -> None:
        self.closed += 1


def some(count: int) -> list[Event]:
    return [QueryAsked(f"q{n}", float(n)) for n in range(count)]


def test_events_are_written_in_batches_and_at_the_end() -> None:
    kept = Kept()
    recorder = Recorder(lambda: kept, every_s=0.1)
    recorder.start()
    for event in some(50):
        recorder.put([event])
    assert wait_for(lambda: recorder.written == 50)
    assert kept.batches <= 5
    recorder.put([ResultClicked("q", "http://a.example/", 1, 1.0)])
    recorder.close()
    assert [len(kept.events), kept.closed, recorder.waiting, recorder.dropped] == [51, 1, 0, 0]


def test_what_does_not_fit_is_dropped_and_counted_at_once() -> None:
    kept = Kept()
    kept.go_on.clear()
    dropped: list[int] = []
    recorder = Recorder(lambda: kept, capacity=10, every_s=0.01, on_dropped=dropped.append)
    recorder.start()
    recorder.put(some(1))
    assert wait_for(lambda: recorder.waiting == 0)
    began = time.perf_counter()
    recorder.put(some(25))
    assert time.perf_counter() - began < 0.1
    assert (recorder.waiting, recorder.dropped, dropped) == (10, 15, [15])
    kept.go_on.set()
    recorder.close()
    assert len(kept.events) == 11


def test_a_log_that_fails_costs_events_and_nothing_else() -> None:
    kept = Kept()
    kept.failing = True
    recorder = Recorder(lambda: kept, every_s=0.01)
    recorder.start()
    recorder.put(some(3))
    assert wait_for(lambda: recorder.dropped == 3)
    kept.failing = False
    recorder.put(some(2))
    recorder.close()
    assert (recorder.written, recorder.dropped, kept.closed) == (2, 3, 2)
    recorder.put(some(1))
    assert recorder.dropped == 4


def test_a_search_goes_on_when_the_log_cannot_be_written(folder: Path) -> None:
    (folder / "demand.db").mkdir()
    with make_client(create_app(folder, record_every_s=0.02)) as client:
        token, url = token_of(client)
        assert client.get("/click", params={"t": token}).headers["location"] == url
        assert wait_for(lambda: "bowerbird_events_dropped_total 0.0" not in client.get("/metrics").text)
