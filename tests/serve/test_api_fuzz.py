"""The API against its own description: whatever is asked, the answer is one that was promised."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any
from urllib.parse import quote

import httpx
import pytest
import requests.exceptions
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis.specs.openapi.checks import positive_data_acceptance
from tests.serve.conftest import served
from tests.serve.filling import fill, make_folder, sample_pages

from bowerbird.serve.app import create_app

EXAMPLES = 150
LONG_URL = 60_000  # characters: servers read no more of a request line than that
#: a token must be signed, a URL must parse: a description cannot say that, so text that fits it may be refused
UNSAID = {"/api/click": [positive_data_acceptance], "/api/explain": [positive_data_acceptance]}
CALLS = {
    ("get", "/api/search"),
    ("post", "/api/click"),
    ("get", "/api/status"),
    ("get", "/api/explain"),
    ("get", "/api/quality"),
}


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    root = make_folder(tmp_path_factory.mktemp("fuzzed") / "crawl")
    fill(root, sample_pages())
    with served(create_app(root, rate_per_s=0)) as address:
        yield address


@pytest.fixture(scope="module")
def api(address: str) -> Any:
    return schemathesis.openapi.from_url(f"{address}/openapi.json")


@pytest.mark.parametrize("mode", ["positive", "negative"])
@pytest.mark.parametrize(("verb", "path"), sorted(CALLS))
def test_every_answer_is_as_described(api: Any, verb: str, path: str, mode: str) -> None:
    operation = api[path][verb]
    try:
        cases = operation.as_strategy(generation_mode=schemathesis.GenerationMode(mode))
    except Unsatisfiable:
        return
    seen = 0

    @settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
    @given(cases)
    def check(case: Any) -> None:
        nonlocal seen
        seen += 1
        try:
            case.call_and_validate(timeout=10, excluded_checks=UNSAID.get(path, []))
        except (requests.exceptions.ChunkedEncodingError, requests.exceptions.ConnectionError):
            if len(quote(str(case.query))) < LONG_URL:  # beyond, the server hangs up while the rest is still sent
                raise

    with suppress(Unsatisfiable):  # a call without parameters cannot be called wrongly
        check()
    assert seen or (mode == "negative" and path == "/api/status")


def test_the_document_names_every_call_and_its_errors(address: str) -> None:
    paths = httpx.get(f"{address}/openapi.json").json()["paths"]
    named = {(verb, path): call["responses"] for path, verbs in paths.items() for verb, call in verbs.items()}
    assert set(named) == CALLS
    for (verb, path), responses in named.items():
        assert {"400", "429", "503"} <= set(responses)
        assert ("422" in responses) == (path != "/api/status")
        assert ("204" if verb == "post" else "200") in responses
    assert "404" in named["get", "/api/explain"]
