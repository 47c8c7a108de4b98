"""What protects the service and the people who use it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from hypothesis import given
from hypothesis import strategies as st
from starlette.responses import PlainTextResponse
from tests.serve.conftest import make_client

from bowerbird.serve.app import create_app
from bowerbird.serve.security import Guard, RateLimiter, client_key, host_name, is_loopback
from bowerbird.serve.service import BusyError, Desk

PATHS = [
    *("/", "/search?q=bowerbird", "/search?q=", "/api/search?q=bowerbird", "/api/search", "/api/status", "/metrics"),
    *("/openapi.json", "/static/style.css", "/static/nothing", "/nothing", "/click?t=x", "/api/explain?url=x:"),
    *("/dashboard", "/explain?url=http://birds.example/kinds/bird-1", "/api/quality"),
]


@pytest.mark.parametrize("path", PATHS)
def test_every_answer_carries_the_policy(client: TestClient, path: str) -> None:
    headers = client.get(path).headers
    rules = dict(rule.split(" ", 1) for rule in headers["content-security-policy"].split("; "))
    assert rules["default-src"] == rules["base-uri"] == rules["frame-ancestors"] == "'none'"
    assert rules["script-src"] == rules["style-src"] == rules["connect-src"] == rules["form-action"] == "'self'"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert "set-cookie" not in headers
    assert "access-control-allow-origin" not in headers
    assert "server" not in headers


def test_a_mistake_of_ours_is_an_answer_with_the_policy_too(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app = create_app(folder)

    def fail(*given: object) -> None:
        raise ZeroDivisionError("a secret of the program")

    monkeypatch.setattr(app.state.parts.service, "search", fail)
    with make_client(app, raise_server_exceptions=False) as client:
        for path in ("/search?q=bowerbird", "/api/search?q=bowerbird"):
            answer = client.get(path)
            assert answer.status_code == 500
            assert "default-src 'none'" in answer.headers["content-security-policy"]
            assert "secret" not in answer.text


def test_an_index_that_cannot_be_read_is_said_without_its_place(folder: Path) -> None:
    mark = folder / "index" / "bowerbird-index.json"
    kept = mark.read_bytes()
    mark.write_bytes(b"{}")
    with make_client(create_app(folder)) as client:
        answer = client.get("/api/search", params={"q": "bowerbird"})
        assert answer.status_code == 503
        assert "retry-after" in answer.headers
        assert str(folder) not in answer.text
        mark.write_bytes(kept)
        assert client.get("/api/search", params={"q": "bowerbird"}).json()["total"] == 24


def test_the_place_of_the_folder_is_not_told(client: TestClient, folder: Path) -> None:
    for path in PATHS:
        assert str(folder) not in client.get(path).text
    assert client.get("/api/status").json()["folder"] == folder.name


@pytest.mark.parametrize(
    ("host", "fine"),
    [
        ("localhost", True),
        ("LOCALHOST:8080", True),
        ("127.0.0.1:8080", True),
        ("127.9.9.9", True),
        ("[::1]:8080", True),
        ("search.example", True),
        ("evil.example", False),
        ("localhost.evil.example", False),
        ("127.0.0.1.evil.example:8080", False),
        ("10.0.0.1", False),
        ("", False),
    ],
)
def test_only_known_hosts_are_answered(folder: Path, host: str, fine: bool) -> None:
    with make_client(create_app(folder, hosts=["search.example"])) as client:
        answer = client.get("/", headers={"host": host})
        assert answer.status_code == (200 if fine else 400)
        assert "content-security-policy" in answer.headers


def test_any_host_where_that_is_wanted(folder: Path) -> None:
    with make_client(create_app(folder, hosts=None)) as client:
        assert client.get("/", headers={"host": "anything.example"}).status_code == 200


@pytest.mark.parametrize(
    ("host", "fine"),
    [("10.0.0.1:8080", True), ("[2001:db8::1]:80", True), ("evil.example", False), ("10.0.0.1.evil.example", False)],
)
def test_addresses_are_answered_where_that_is_wanted(folder: Path, host: str, fine: bool) -> None:
    with make_client(create_app(folder, addresses=True)) as client:
        assert client.get("/", headers={"host": host}).status_code == (200 if fine else 400)


def test_names_and_addresses() -> None:
    assert [is_loopback(name) for name in ("::1", "127.0.0.1", "localhost.", "0.0.0.0", "example.org")] == [
        *(True, True, True, False, False)
    ]
    assert host_name("[::1]:80") == "::1"
    assert client_key("2001:db8::1") == client_key("2001:db8::ffff:1") != client_key("2001:db8:0:1::1")
    assert client_key("::ffff:192.0.2.1") == client_key("192.0.2.1")


def test_too_many_requests_are_told_when_to_come_again(folder: Path) -> None:
    with make_client(create_app(folder, rate_per_s=2)) as client:
        codes = [client.get("/api/search", params={"q": "bowerbird"}).status_code for _ in range(12)]
        assert codes[:4] == [200] * 4
        assert 429 in codes
        refused = client.get("/")
        assert refused.status_code == 429
        assert int(refused.headers["retry-after"]) >= 1
        assert "Too many requests" in refused.text
        assert client.get("/static/style.css").status_code == 200


@given(st.floats(0.1, 100), st.lists(st.floats(0, 2), max_size=200))
def test_nobody_gets_more_than_the_rate_and_one_burst(rate: float, pauses: list[float]) -> None:
    clock = [0.0]
    limiter = RateLimiter(rate, clock=lambda: clock[0])
    served = 0
    for pause in pauses:
        clock[0] += pause
        wait = limiter.wait_s("192.0.2.1")
        served += wait == 0
        assert wait <= 1 / rate + 1e-9
    assert served <= limiter.burst + rate * clock[0] + 1e-6


def test_waiting_as_long_as_told_is_enough_and_others_are_not_held_up() -> None:
    clock = [0.0]
    limiter = RateLimiter(5, clock=lambda: clock[0], max_clients=3)
    while not (wait := limiter.wait_s("a")):
        pass
    assert limiter.wait_s("b") == 0
    clock[0] += wait
    assert limiter.wait_s("a") == 0
    for number in range(10):
        limiter.wait_s(f"client {number}")
    assert len(limiter) == 3


def test_a_large_body_is_refused(client: TestClient) -> None:
    assert client.post("/api/click", json={"click": "a" * 70_000}).status_code == 413
    parts = (b'{"click": "', *([b"a" * 1000] * 100), b'"}')
    chunked = client.post("/api/click", content=iter(parts), headers={"content-type": "application/json"})
    assert chunked.status_code == 413
    assert client.post("/api/click", json={"click": "a" * 20_000}).status_code == 400


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b'{"click": null}', b'{"click": NaN}', b'{"click": 1e999}', b'{"other": "\\ud800"}']
)
def test_a_body_that_makes_no_sense_is_refused(client: TestClient, body: bytes) -> None:
    answer = client.post("/api/click", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == 422
    assert answer.json()["detail"]


def test_a_token_that_is_no_text_is_refused(client: TestClient) -> None:
    body = b'{"click": "\\ud800"}'
    answer = client.post("/api/click", content=body, headers={"content-type": "application/json"})
    assert answer.status_code in {400, 422}


def test_a_slow_body_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bowerbird.serve.security.BODY_WAIT_S", 0.05)
    guard = Guard(PlainTextResponse("never"), limiter=RateLimiter(0), hosts=None)
    sent: list[Any] = []

    async def receive() -> Any:
        await asyncio.sleep(5)

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "path": "/api/click", "headers": [(b"content-length", b"5")], "client": None}
    asyncio.run(guard(scope, receive, send))
    assert sent[0]["status"] == 408


def test_a_full_desk_says_so_at_once() -> None:
    async def crowd() -> list[object]:
        import threading

        gate = threading.Event()
        desk = Desk(1, "test", max_waiting=2)
        asking = [asyncio.create_task(desk.ask(lambda: gate.wait(5))) for _ in range(5)]
        await asyncio.sleep(0.05)
        gate.set()
        answers = await asyncio.gather(*asking, return_exceptions=True)
        desk.close()
        return list(answers)

    answers = asyncio.run(crowd())
    assert [isinstance(answer, BusyError) for answer in answers] == [False, False, False, True, True]


def test_busy_is_an_answer(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app = create_app(folder)
    with make_client(app) as client:

        async def busy(*given: object) -> None:
            raise BusyError

        monkeypatch.setattr(app.state.parts.service, "ask", busy)
        answer = client.get("/api/search", params={"q": "bowerbird"})
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
