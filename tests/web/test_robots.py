from __future__ import annotations

import doctest
import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import bowerbird.web.robots as robots_module
from bowerbird.model.outcome import Outcome
from bowerbird.web.robots import MAX_BODY_BYTES, RobotsRules, RobotsVerdict, rules_for_response

SITE = "https://example.com"


def allows(text: str, path: str, agent: str = "bowerbird") -> bool:
    return RobotsRules.parse(text.encode(), agent).allows(SITE + path)


def matches(pattern: str, path: str) -> bool:
    """Does a pattern match, decided by trying all ways: slow and plain, to compare with."""
    if not pattern:
        return True
    if pattern == "$":
        return not path
    if pattern[0] == "*":
        return any(matches(pattern[1:], path[i:]) for i in range(len(path) + 1))
    return bool(path) and path[0] == pattern[0] and matches(pattern[1:], path[1:])


def test_group_of_our_own_replaces_the_general_one() -> None:
    text = "User-agent: *\nDisallow: /\n\nUser-agent: Bowerbird/1.0 extra\nDisallow: /x\n"
    assert allows(text, "/a")
    assert not allows(text, "/x")
    assert not allows(text, "/a", agent="other")
    assert allows(text, "/a", agent="BOWERBIRD/2.0")


def test_groups_of_one_agent_are_merged() -> None:
    ours = "User-agent: bowerbird\nDisallow: "
    text = f"{ours}/a\nUser-agent: b\nDisallow: /\n{ours}/c\n"
    assert not allows(text, "/a")
    assert not allows(text, "/c")
    assert allows(text, "/d")


def test_empty_group_of_our_own_allows_all() -> None:
    assert allows("User-agent: *\nDisallow: /\nUser-agent: bowerbird\n", "/x")
    assert allows("User-agent: *\nDisallow:\n", "/x")


def test_longest_rule_wins_and_allow_wins_a_tie() -> None:
    text = "User-agent: *\nDisallow: /a\nAllow: /a/b\nDisallow: /a/b/c*\nAllow: /p\nDisallow: /p\n"
    assert not allows(text, "/a/x")
    assert allows(text, "/a/b/x")
    assert not allows(text, "/a/b/cd")
    assert allows(text, "/p")


def test_percent_encoding_is_compared_by_meaning() -> None:
    text = "User-agent: *\nDisallow: /%7ejoe\nDisallow: /b%C3%BCcher\nDisallow: /käse\nDisallow: /a%2fb\n"
    for path in ("/~joe", "/%7Ejoe", "/b%c3%bccher", "/k%C3%A4se", "/a%2Fb"):
        assert not allows(text, path), path
    assert allows(text, "/a/b")


def test_encoded_wildcards_are_literal() -> None:
    text = "User-agent: *\nDisallow: /file-with-a-%2A.html\nDisallow: /foo-%24\n"
    assert not allows(text, "/file-with-a-*.html")
    assert allows(text, "/file-with-a-x.html")
    assert not allows(text, "/foo-$bar")


def test_index_page_stands_for_its_folder() -> None:
    text = "User-agent: *\nDisallow: /\nAllow: /a/index.html\n"
    assert allows(text, "/a/")
    assert allows(text, "/a/index.html")
    assert not allows(text, "/a/b")


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("https://example.com", "/"),
        ("https://example.com?a/b", "/?a/b"),
        ("https://example.com#a/b", "/"),
        ("https://example.com/a?b=/c#d", "/a?b=/c"),
        ("", "/"),
    ],
)
def test_path_and_query_are_what_is_matched(url: str, path: str) -> None:
    rules = RobotsRules.parse(f"User-agent: *\nDisallow: {path}$\n".encode(), "bowerbird")
    assert not rules.allows(url)
    assert rules.allows(SITE + "/elsewhere")


def test_verdict_names_the_rule() -> None:
    rules = RobotsRules.parse(b"User-agent: *\nDisallow: /a\nAllow: /a/*.pdf$\n", "bowerbird")
    assert rules.explain(SITE + "/a/x") == RobotsVerdict(False, "Disallow: /a")
    assert rules.explain(SITE + "/a/x.pdf") == RobotsVerdict(True, "Allow: /a/*.pdf$")
    assert rules.explain(SITE + "/b") == RobotsVerdict(True, None)
    assert repr(rules) == "RobotsRules(2 rules, crawl_delay_s=None, 0 sitemaps)"


@pytest.mark.parametrize(
    ("text", "delay_s"),
    [
        ("User-agent: *\nCrawl-delay: 2.5\n", 2.5),
        ("User-agent: *\nCrawl-Delay: 3 # seconds\n", 3.0),
        ("User-agent: *\nCrawldelay: 4\n", 4.0),
        ("User-agent: *\nCrawl-delay: 5\nUser-agent: bowerbird\nDisallow: /\n", None),
        ("User-agent: *\nCrawl-delay: 5\nUser-agent: bowerbird\nCrawl-delay: 1\n", 1.0),
        ("User-agent: bowerbird\nCrawl-delay: 1\nUser-agent: slow\nCrawl-delay: 60\n", 1.0),
        ("User-agent: slow\nUser-agent: bowerbird\nDisallow: /x\nCrawl-delay: 7\n", 7.0),
        ("User-agent: bowerbird\nCrawl-delay: 1\nCrawl-delay: 2\n", 2.0),
        ("User-agent: *\nCrawl-delay: soon\n", None),
        ("User-agent: *\nCrawl-delay: -1\n", None),
        ("User-agent: *\nCrawl-delay: inf\n", None),
        ("User-agent: *\nCrawl-delay: nan\n", None),
        ("User-agent: *\nCrawl-delay:\n", None),
        ("Crawl-delay: 9\nUser-agent: *\nDisallow: /x\n", None),
    ],
)
def test_crawl_delay(text: str, delay_s: float | None) -> None:
    assert RobotsRules.parse(text.encode(), "bowerbird").crawl_delay_s == delay_s


def test_crawl_delay_does_not_end_a_group() -> None:
    assert not allows("User-agent: bowerbird\nCrawl-delay: 1\nUser-agent: b\nDisallow: /x\n", "/x")


def test_sitemaps_are_for_all_and_listed_once() -> None:
    text = b"Sitemap: /s.xml\nUser-agent: b\nDisallow: /\nsite-map: https://e.com/T\nSitemap: /s.xml\nSitemap:\n"
    assert RobotsRules.parse(text, "bowerbird").sitemaps == ("/s.xml", "https://e.com/T")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<!DOCTYPE html>\nUser-agent: *\nDisallow: /\n",
        b"\xef\xbb\xbf  <html><pre>\nUser-agent: *\nDisallow: /\n",
        b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\nUser-agent: *\nDisallow: /\n",
        b"nonsense\nDisallow\nUser-agent\n:\n::\nDisallow: /\n",
    ],
)
def test_what_is_no_robots_file_has_no_rules(body: bytes) -> None:
    rules = RobotsRules.parse(body, "bowerbird")
    assert rules.allows(SITE + "/x")
    assert rules.sitemaps == ()


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-8"])
@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_encodings_and_line_ends(encoding: str, line_end: str) -> None:
    body = line_end.join(["User-agent: *", "Disallow: /x", ""]).encode(encoding)
    assert not RobotsRules.parse(body, "bowerbird").allows(SITE + "/x")


def test_file_is_read_up_to_the_limit_and_no_rule_is_cut() -> None:
    head = b"User-agent: *\nDisallow: /early\n"
    filler = b"#" * (MAX_BODY_BYTES - len(head) - len(b"\nDisallow: /"))
    rules = RobotsRules.parse(head + filler + b"\nDisallow: /late\n", "bowerbird")
    assert not rules.allows(SITE + "/early")
    assert rules.allows(SITE + "/late")
    assert rules.allows(SITE + "/other")


def test_constants() -> None:
    assert RobotsRules.ALLOW_ALL.allows(SITE + "/")
    assert not RobotsRules.DENY_ALL.allows(SITE + "/")
    assert not RobotsRules.DENY_ALL.allows(SITE)


@given(
    st.text(alphabet="ab/*$", min_size=1, max_size=8),
    st.text(alphabet="ab/$", max_size=8),
)
@example("/*ab*b$", "xxab")
@example("/*ab*b$", "xxabb")
@example("/a*$", "ab")
@settings(max_examples=500)
def test_pattern_matching(pattern: str, path: str) -> None:
    literal = path.replace("$", "%24")
    inner = pattern[:-1].replace("$", "%24") + pattern[-1]
    rules = RobotsRules.parse(f"User-agent: *\nDisallow: {pattern}\n".encode(), "bowerbird")
    assert rules.allows(f"{SITE}/{path}") is not matches(inner, "/" + literal)


@given(
    st.lists(st.tuples(st.booleans(), st.text(alphabet="ab*", max_size=4).map("/".__add__)), max_size=8),
    st.text(alphabet="ab/", max_size=6),
)
@settings(max_examples=500)
def test_precedence(rules: list[tuple[bool, str]], path: str) -> None:
    lines = [f"{'Allow' if allow else 'Disallow'}: {pattern}" for allow, pattern in rules]
    ranked = [(len(pattern), allow) for allow, pattern in rules if matches(pattern, "/" + path)]
    expected = max(ranked)[1] if ranked else True
    assert allows("\n".join(["User-agent: *", *lines]), "/" + path) is expected


@given(st.binary(max_size=300), st.text(max_size=20))
@settings(max_examples=300)
def test_any_bytes_and_any_url_are_survived(body: bytes, url: str) -> None:
    rules = RobotsRules.parse(b"User-agent: *\nDisallow: " + body, "bowerbird")
    assert rules.allows(url) in (True, False)
    assert isinstance(RobotsRules.parse(body, url), RobotsRules)


def test_hostile_patterns_take_linear_time() -> None:
    text = "User-agent: *\n" + "".join(f"Disallow: /{'*a' * n}b\n" for n in range(1, 300))
    rules = RobotsRules.parse(text.encode(), "bowerbird")
    started = time.perf_counter()
    assert rules.allows(SITE + "/" + "a" * 1900)
    assert time.perf_counter() - started < 1.0


def test_many_plain_rules_are_decided_quickly() -> None:
    text = "User-agent: *\n" + "".join(f"Disallow: /folder/{n}/\n" for n in range(20_000))
    rules = RobotsRules.parse(text.encode(), "bowerbird")
    started = time.perf_counter()
    assert not any(rules.allows(f"{SITE}/folder/{n}/x") for n in range(1000))
    assert time.perf_counter() - started < 0.5  # a scan of all rules would take several seconds


@pytest.mark.parametrize(
    ("outcome", "status", "expected"),
    [
        (Outcome.OK, 200, False),
        (Outcome.TOO_LARGE, 200, False),
        (Outcome.WRONG_TYPE, 200, False),
        (Outcome.GONE, 404, True),
        (Outcome.GONE, 410, True),
        (Outcome.CLIENT_ERROR, 401, True),
        (Outcome.CLIENT_ERROR, 403, True),
        (Outcome.WRONG_TYPE, 404, True),
        (Outcome.REDIRECT_LIMIT, 302, True),
        (Outcome.REDIRECT, 301, True),
        (Outcome.THROTTLED, 429, None),
        (Outcome.CLIENT_ERROR, 429, None),
        (Outcome.THROTTLED, 503, None),
        (Outcome.SERVER_ERROR, 500, None),
        (Outcome.TIMEOUT, 0, None),
        (Outcome.DNS, 0, None),
        (Outcome.CONNECT, 0, None),
        (Outcome.TLS, 0, None),
        (Outcome.BAD_ENCODING, 200, None),
        (Outcome.ADDRESS_REFUSED, 0, None),
    ],
)
def test_rules_for_response(outcome: Outcome, status: int, expected: bool | None) -> None:
    rules = rules_for_response(outcome, status, b"User-agent: *\nDisallow: /\n", "bowerbird")
    assert (None if rules is None else rules.allows(SITE + "/x")) is expected


def test_a_body_that_was_thrown_away_is_no_permission() -> None:
    assert rules_for_response(Outcome.TOO_LARGE, 200, b"", "bowerbird") is None
    assert rules_for_response(Outcome.OK, 200, b"", "bowerbird") is not None  # an empty file has no rules


def test_examples_in_docstrings() -> None:
    results = doctest.testmod(robots_module)
    assert results.attempted >= 2
    assert results.failed == 0
