"""URL handling against the WHATWG cases and the normaliser pairs of crawler-commons."""

from __future__ import annotations

import csv
import json
from collections import Counter
from pathlib import Path
from typing import Any

import ada_url
import pytest

from bowerbird.web.url import Canonicaliser, UrlRules

PARTS = ("protocol", "username", "password", "host", "hostname", "port", "pathname", "search", "hash")
WHATWG_FILES = {"url/urltestdata.json": 891, "crawler-commons/url-utils/wpt-urltestdata.json": 888}


def read_cases(file: Path) -> list[dict[str, Any]]:
    return [case for case in json.loads(file.read_text(encoding="utf-8")) if isinstance(case, dict)]


def read_rows(file: Path) -> list[list[str]]:
    lines = file.read_text(encoding="utf-8").split("\n")
    kept = [line for line in lines if line.strip() and not line.startswith("#")]
    return [next(csv.reader([line], skipinitialspace=True)) for line in kept]


def parse(text: str, base: str | None) -> str | None:
    """The calls that `Canonicaliser` makes."""
    try:
        return ada_url.join_url(base, text) if base else ada_url.normalize_url(text)
    except ValueError:
        return None


@pytest.fixture(scope="module")
def conformance(shared_data: Path) -> Path:
    return shared_data / "conformance"


@pytest.mark.parametrize(("name", "count"), WHATWG_FILES.items())
def test_whatwg_cases(conformance: Path, name: str, count: int) -> None:
    cases = read_cases(conformance / name)
    assert len(cases) == count
    failures = []
    for case in cases:
        href = parse(case["input"], case.get("base"))
        if case.get("failure"):
            agrees = href is None
        else:
            agrees = href == case["href"]
            if agrees:
                parsed = ada_url.URL(case["input"], case.get("base") or None)
                agrees = all(getattr(parsed, part) == case[part] for part in PARTS)
        if not agrees:
            failures.append((case["input"], case.get("base"), href))
    assert failures == []


@pytest.mark.parametrize("name", WHATWG_FILES)
def test_canonical_form_of_whatwg_cases(conformance: Path, name: str) -> None:
    """What we make of a valid web URL is what a browser would request, and is stable."""
    canonicaliser = Canonicaliser()
    checked = 0
    for case in read_cases(conformance / name):
        base = case.get("base")
        target = canonicaliser.resolve(base, [case["input"]])[0] if base else canonicaliser.canonical(case["input"])
        if case.get("failure") or case["protocol"] not in ("http:", "https:"):
            assert target is None, case["input"]
        elif target is not None:
            parsed = ada_url.URL(target)
            assert (parsed.protocol, parsed.host) == (case["protocol"], case["host"])
            assert parsed.username == parsed.password == parsed.hash == ""
            assert canonicaliser.canonical(target) == target
            checked += 1
        else:
            assert case["input"].strip()[:1] in ("#", "")
    assert checked >= 235


@pytest.mark.parametrize("name", WHATWG_FILES)
def test_quick_ways_equal_the_parser_on_whatwg_cases(conformance: Path, name: str) -> None:
    canonicaliser = Canonicaliser()
    inputs = [case["input"] for case in read_cases(conformance / name)]
    for base in (
        "http://example.org/foo/bar?q",
        "https://u:p@[::1]:81/a%7e/;x/",
        "http://h/a/b/c/../d;jsessionid=1/e",
    ):
        expected = [canonicaliser.resolve_slowly(base, text) for text in inputs]
        assert canonicaliser.resolve(base, inputs) == expected
        assert canonicaliser.resolve(base, inputs) == expected


def test_international_host_names(conformance: Path) -> None:
    cases = read_cases(conformance / "url" / "toascii.json")
    assert len(cases) == 87
    canonicaliser = Canonicaliser()
    for case in cases:
        expected = case["output"] and f"https://{case['output']}/x"
        assert canonicaliser.canonical(f"https://{case['input']}/x") == expected, case["input"]


def test_resolve_cases(conformance: Path) -> None:
    rows = read_rows(conformance / "crawler-commons" / "url-utils" / "url-resolve.csv")
    assert len(rows) == 22
    canonicaliser = Canonicaliser()
    for text, base, expected in rows:
        assert parse(text, base) == expected
        if expected.startswith("http") and not text.startswith("#"):
            assert canonicaliser.resolve(base, [text]) == [canonicaliser.canonical(expected)]


def departure(weird: str, ours: str | None) -> str:
    """Why our canonical form of a URL is not that of crawler-commons."""
    if not weird.startswith("http:") and not weird.startswith("https:"):
        return "not a web address"
    if ours is None:
        return "no host"
    path, _, query = ours[8:].partition("?")
    if "//" in path:
        return "empty path segments name another page on some servers"
    if "%" in weird:
        return "a stray % is sent as it is, as browsers do"
    if any(char in query for char in "[]^`|"):
        return "browsers do not encode this in a query"
    if "./" in path:
        return "a host name that ends in a dot is another name"
    return "an empty parameter, name or value is kept"


def test_crawler_commons_normaliser(conformance: Path) -> None:
    rows = read_rows(conformance / "crawler-commons" / "normalizer" / "weirdToNormalizedUrls.csv")
    sorting = Canonicaliser(UrlRules(sort_query=True))
    departures = Counter(
        departure(weird, sorting.canonical(weird))
        for weird, normal in rows
        if sorting.canonical(weird) != normal.strip()
    )
    assert len(rows) == 112
    assert departures == {
        "not a web address": 7,
        "no host": 2,
        "empty path segments name another page on some servers": 6,
        "a stray % is sent as it is, as browsers do": 5,
        "browsers do not encode this in a query": 4,
        "a host name that ends in a dot is another name": 1,
        "an empty parameter, name or value is kept": 6,
    }
    plain = Canonicaliser()
    assert sum(plain.canonical(weird) == normal.strip() for weird, normal in rows) == 76


def test_crawler_commons_invalid_urls(conformance: Path) -> None:
    rows = read_rows(conformance / "crawler-commons" / "normalizer" / "invalidUrls.csv")
    assert len(rows) == 2
    assert [Canonicaliser().canonical(row[0]) for row in rows] == [None, None]
