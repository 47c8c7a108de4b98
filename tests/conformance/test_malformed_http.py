"""Raw HTTP/1 responses of the web-platform-tests, served byte for byte: each ends, none does harm.

The expectations beside them are tentative and meant for browsers. We hold to those that call a response
valid; where a response should be a network error, libcurl is more lenient in the cases listed here.
"""

from __future__ import annotations

import dataclasses
import re
import time
from pathlib import Path

import pytest
from tests.web.hostile_server import HostileServer, answer, send_and_close

from bowerbird.model.outcome import Outcome
from bowerbird.web.address import AddressPolicy
from bowerbird.web.fetcher import Fetcher, FetchLimits, FetchRequest, FetchResult

LIMITS = FetchLimits(connect_s=1, first_byte_s=1, total_s=2, max_connections=32)
LOOPBACK = AddressPolicy(allow=("127.0.0.0/8",))

LENIENT = {
    # a colon is a visible character: RFC 9112 allows it in reasons and values
    *(f"COLON_{place}" for place in ("before-reason", "after-reason", "after-colon", "in-value", "after-value")),
    # read as a header of another name, or of none
    *("COLON_after-num", "COLON_leading", "COLON_in-name", "COLON_before-colon"),
    *("HTAB_after-num", "HTAB_leading", "HTAB_in-name", "HTAB_before-colon"),
    *("SP_after-num", "SP_leading", "SP_in-name", "SP_before-colon"),
    # read as the end of the headers: the rest becomes the body
    *("LF_after-reason", "LF_leading", "LF_after-value", "CR_leading"),
}


@pytest.fixture(scope="module")
def folder(shared_data: Path) -> Path:
    found = shared_data / "conformance" / "http" / "h1-parsing"
    if not found.is_dir():
        pytest.skip(f"no raw responses at {found}")
    return found


@pytest.fixture(scope="module")
def responses(folder: Path) -> dict[str, bytes]:
    return {path.stem.removeprefix("parsing_"): path.read_bytes() for path in sorted(folder.glob("*.asis"))}


@pytest.fixture(scope="module")
def valid(folder: Path) -> dict[str, bool]:
    """Whether each response should be read, by name."""
    expected = {}
    character = ""
    for line in (folder / "h1-parsing.tentative.html").read_text("utf-8").splitlines():
        if opened := re.match(r"\s*'([A-Z]+)': \{", line):
            character = opened[1]
        elif place := re.match(r"\s*'([a-z-]+)': \['(Valid|Network Error)'", line):
            expected[f"{character}_{place[1]}"] = place[2] == "Valid"
    return expected


@pytest.fixture(scope="module")
def results(responses: dict[str, bytes]) -> dict[str, FetchResult]:
    """Every response fetched, all at once, each beside a good request."""
    names = list(responses)
    found: dict[str, FetchResult] = {}
    with HostileServer() as server, Fetcher("bowerbird-test/1", LIMITS, LOOPBACK) as fetcher:
        server.routes["/good"] = answer()
        for token, name in enumerate(names):
            server.routes[f"/{name}"] = send_and_close(responses[name])
            fetcher.submit(FetchRequest(token, server.url(f"/{name}")))
            fetcher.submit(FetchRequest(-1 - token, server.url("/good")))
        end = time.monotonic() + 10
        while fetcher.in_flight and time.monotonic() < end:
            for result in fetcher.poll(0.2):
                found[names[result.token] if result.token >= 0 else f"good {result.token}"] = result
    return found


def test_every_response_ends_quickly(responses, results):
    assert len(responses) == 103
    assert len(results) == 2 * len(responses)
    assert max(result.elapsed_s for result in results.values()) < 1


def test_every_response_ends_in_an_expected_outcome(responses, results):
    outcomes = {results[name].outcome for name in responses}
    assert outcomes == {Outcome.OK, Outcome.PROTOCOL}


def test_what_should_be_read_is_read(valid, results):
    assert len(valid) == 102 and sum(valid.values()) == 10
    for name, is_valid in valid.items():
        if is_valid:
            assert (results[name].outcome, results[name].body) == (Outcome.OK, b"Test."), name


def test_what_should_fail_fails_but_for_the_known_lenient_cases(valid, results):
    accepted = {name for name, is_valid in valid.items() if not is_valid and results[name].outcome is Outcome.OK}
    assert accepted <= LENIENT


def test_a_refused_response_says_why_and_leaves_no_body(responses, results):
    refused = [results[name] for name in responses if results[name].outcome is Outcome.PROTOCOL]
    assert len(refused) > 60
    assert all(result.error and not result.body and not result.raw_body for result in refused)


def test_good_requests_in_between_are_unharmed(results):
    good = [result for name, result in results.items() if name.startswith("good")]
    assert good and all(result.outcome is Outcome.OK and result.body for result in good)


def test_bytes_left_over_on_a_connection_do_not_reach_the_next_request(responses):
    limits = dataclasses.replace(LIMITS, total_s=0.25)
    with HostileServer() as server, Fetcher("bowerbird-test/1", limits, LOOPBACK) as fetcher:
        server.routes["/good"] = answer()
        for name, raw in responses.items():
            server.routes["/raw"] = raw  # and the connection stays open
            for path in ("/raw", "/good"):
                fetcher.submit(FetchRequest(0, server.url(path)))
                ended: list[FetchResult] = []
                while fetcher.in_flight:
                    ended += fetcher.poll(3)
            assert [(result.outcome, result.body) for result in ended] == [(Outcome.OK, b"<p>bower</p>")], name
