from __future__ import annotations

import doctest

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import bowerbird.web.url as url_module
from bowerbird.model.errors import UrlError
from bowerbird.web.url import (
    Canonicaliser,
    UrlRules,
    host_of,
    normalise_percent,
    origin_of,
    parse_input,
    split_words,
)

SHARED = Canonicaliser()

PIECES = st.sampled_from(
    [
        *(
            "a",
            "B",
            "wiki",
            "x.html",
            "..",
            ".",
            "...",
            "/",
            "//",
            "\\",
            "?",
            "#",
            ":",
            "&",
            "=",
            ";",
            "@",
            "[",
            "]",
        ),
        *(
            "%",
            "%7e",
            "%7E",
            "%2e",
            "%2E",
            "%2F",
            "%c3%a9",
            "%C3%A9",
            "%41",
            "%3",
            "7e",
            "%25",
            "%00",
            "é",
            "日本",
        ),
        *(
            "http:",
            "https:",
            "HTTP:",
            "http://",
            "https://",
            "mailto:",
            "javascript:",
            "data:",
            "ftp://",
            "file:",
        ),
        *(
            "example.com",
            "Example.COM",
            "127.0.0.1",
            "[::1]",
            ":80",
            ":443",
            ":8080",
            ":x",
            "xn--bcher-kva.de",
            "0x7f",
        ),
        *(
            "utm_source=1",
            "utm%5Fsource=1",
            ";jsessionid=1A",
            "sid=0123456789abcdef",
            "sid=7",
            "q=a+b",
            "PHPSESSID=2",
        ),
        *(
            " ",
            "\t",
            "\n",
            "\x00",
            "\x1f",
            "'",
            '"',
            "<",
            ">",
            "^",
            "`",
            "{",
            "|",
            "~",
            "$",
            "*",
            "!",
            "\ud800",
        ),
    ]
)
HREFS = st.lists(PIECES, max_size=9).map("".join)
BASES = st.sampled_from(
    [
        "http://example.com/",
        "https://example.com",
        "https://example.com:8443/a/b/c.html?q=1#frag",
        "http://user:pw@example.com/a%7e/b",
        "http://example.com/a;jsessionid=9/b;jsessionid=3",
        "http://example.com/x/..;jsessionid=1",
        "http://example.com/a//b/../c/./d",
        "HTTP://EXAMPLE.com:80/UP/down",
        "http://[::1]:8080/d/",
        "http://127.1/é/",
    ]
)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("HTTP://Example.COM:80/A/b", "http://example.com/A/b"),
        ("https://example.com:443", "https://example.com/"),
        ("https://example.com:8443/", "https://example.com:8443/"),
        ("http://user:secret@example.com/a", "http://example.com/a"),
        ("http://example.com/a#part", "http://example.com/a"),
        ("http://example.com/?", "http://example.com/"),
        ("http://example.com/a/./b/../c", "http://example.com/a/c"),
        ("http://example.com/%7Ejoe/%e2%82%ac/%2f", "http://example.com/~joe/%E2%82%AC/%2F"),
        ("http://example.com/a?utm_source=x&q=1&gclid=2", "http://example.com/a?q=1"),
        ("http://example.com/a?UTM_Medium=x", "http://example.com/a"),
        ("http://example.com/a?utm%5Fsource=x", "http://example.com/a"),
        ("http://example.com/a;jsessionid=0A1B?q=1", "http://example.com/a?q=1"),
        ("http://example.com/a;JSESSIONID=0A1B/b;v=1", "http://example.com/a/b;v=1"),
        ("http://example.com/a/..;jsessionid=1/b", "http://example.com/b"),
        ("http://example.com/a?PHPSESSID=1&b=2", "http://example.com/a?b=2"),
        ("http://example.com/a?ASPSESSIONIDQQ=1", "http://example.com/a"),
        ("http://example.com/a?sid=1234", "http://example.com/a?sid=1234"),
        ("http://example.com/a?sid=0123456789abcdef0123456789abcdef", "http://example.com/a"),
        ("http://example.com/a?b=2&a=1", "http://example.com/a?b=2&a=1"),
        ("http://example.com/a?b&&c=", "http://example.com/a?b&&c="),
        ("  http://example.com/a b ", "http://example.com/a%20b"),
        ("http://bücher.de/é", "http://xn--bcher-kva.de/%C3%A9"),
        ("http://0x7f.1/", "http://127.0.0.1/"),
        ("ftp://example.com/", None),
        ("mailto:me@example.com", None),
        ("/relative", None),
        ("//example.com/", None),
        ("http://", None),
        ("http://a b/", None),
        ("http://example.com:99999/", None),
        ("http://example.com/\ud800", None),
        ("", None),
        ("http://example.com/" + "a" * 2000, None),
    ],
)
def test_canonical_form(url: str, expected: str | None) -> None:
    assert Canonicaliser().canonical(url) == expected
    assert SHARED.canonical(url) == expected
    assert SHARED.canonical(url) == expected  # from the table


@pytest.mark.parametrize(
    ("href", "expected"),
    [
        ("c.html", "https://example.com/a/c.html"),
        ("./c.html", "https://example.com/a/c.html"),
        ("../c.html", "https://example.com/c.html"),
        ("../../../c.html", "https://example.com/c.html"),
        ("..", "https://example.com/"),
        (".", "https://example.com/a/"),
        ("?p=2", "https://example.com/a/b?p=2"),
        ("?", "https://example.com/a/b"),
        ("/c#x", "https://example.com/c"),
        ("//other.org", "https://other.org/"),
        ("http://other.org/x", "http://other.org/x"),
        ("https:c", "https://example.com/a/c"),
        ("https:?z", "https://example.com/a/b?z"),
        ("\\\\other.org\\x", "https://other.org/x"),
        (" c d ", "https://example.com/a/c%20d"),
        ("c:d", None),
        ("1:d", "https://example.com/a/1:d"),
        ("#top", None),
        ("", None),
        (" \n", None),
        ("javascript:void(0)", None),
        ("JavaScript:void(0)", None),
        ("java\nscript:void(0)", None),
        ("data:text/html,x", None),
        ("tel:+123", None),
    ],
)
def test_resolves_like_a_browser(href: str, expected: str | None) -> None:
    canonicaliser = Canonicaliser()
    base = "https://example.com/a/b?q=1"
    assert canonicaliser.resolve(base, [href, href]) == [expected, expected]
    assert canonicaliser.resolve(base, [href]) == [expected]
    assert canonicaliser.resolve_slowly(base, href) == expected


def test_tables_do_not_leak_between_pages() -> None:
    canonicaliser = Canonicaliser()
    hrefs = ["?x=1", "http:?y", "c", "/d", "//e.org/", " ?z"]
    for base in (
        "http://a.org/p/1",
        "http://a.org/p/2",
        "http://a.org/q/1",
        "https://a.org/p/1",
        "http://b.org/p/1",
    ):
        expected = [canonicaliser.resolve_slowly(base, href) for href in hrefs]
        assert canonicaliser.resolve(base, hrefs) == expected


def test_base_that_is_no_web_address_leaves_absolute_links() -> None:
    assert SHARED.resolve("about:blank", ["a", "http://example.com"]) == [None, "http://example.com/"]


@given(BASES, st.lists(HREFS, max_size=6))
@example("http://example.com/", ["%%37e", "%7%65", "a%2%45"])
@settings(max_examples=600, deadline=None)
def test_quick_ways_equal_the_parser(base: str, hrefs: list[str]) -> None:
    expected = [SHARED.resolve_slowly(base, href) for href in hrefs]
    assert Canonicaliser().resolve(base, hrefs) == expected
    assert SHARED.resolve(base, hrefs) == expected
    assert SHARED.resolve(base, hrefs) == expected


@given(BASES, st.text(max_size=20))
@settings(max_examples=300, deadline=None)
def test_quick_ways_equal_the_parser_on_any_text(base: str, href: str) -> None:
    assert Canonicaliser().resolve(base, [href]) == [SHARED.resolve_slowly(base, href)]


@given(HREFS, st.booleans())
@example("/..;jsessionid=1", False)
@example("/%%37e?&utm_a=1&", False)
@example("/;%6Asessionid=1", True)
@settings(max_examples=600, deadline=None)
def test_canonical_form_is_idempotent(tail: str, sort_query: bool) -> None:
    canonicaliser = Canonicaliser(UrlRules(sort_query=sort_query))
    for url in (tail, "http://example.com/" + tail, "https://example.com?" + tail):
        once = canonicaliser.canonical(url)
        if once is not None:
            assert canonicaliser.canonical(once) == once
            assert Canonicaliser(canonicaliser.rules).resolve("http://other.org/", [once]) == [once]
            assert once.startswith(("http://", "https://"))
            assert "#" not in once
            assert not once.endswith("?") or once.count("?") > 1


@given(st.lists(st.sampled_from(["%", "4", "1", "7", "e", "E", "%41", "%7e", "%2f", "/"]), max_size=12).map("".join))
def test_percent_normalisation_is_idempotent(text: str) -> None:
    once = normalise_percent(text)
    assert normalise_percent(once) == once


def test_rules_are_configurable() -> None:
    rules = UrlRules(drop_params=("ref*",), session_params=(), token_params=(), sort_query=True, max_length=40)
    canonicaliser = Canonicaliser(rules)
    assert canonicaliser.canonical("http://a.org/x;jsessionid=1?b=1&a=2&REFERRER=3") == (
        "http://a.org/x;jsessionid=1?a=2&b=1"
    )
    assert canonicaliser.canonical("http://a.org/" + "x" * 40) is None


def test_cache_is_bounded() -> None:
    canonicaliser = Canonicaliser(cache_size=100)
    for i in range(1000):
        assert canonicaliser.resolve(f"http://a.org/{i % 7}/", [f"p{i}", f"/r{i}"]) == [
            f"http://a.org/{i % 7}/p{i}",
            f"http://a.org/r{i}",
        ]
    tables = [canonicaliser._absolute, *canonicaliser._rooted.values(), *canonicaliser._folders.values()]
    assert sum(map(len, tables)) <= 110


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "empty"),
        ("example.com/a", "did you mean https://example.com/a"),
        ("localhost:8080/x", "did you mean https://localhost:8080/x"),
        ("//example.com", "did you mean https://example.com/"),
        ("ftp://example.com", "'ftp': only http and https"),
        ("http://", "no host"),
        ("https:///", "no host"),
        ("http://exa mple.com/", "not valid"),
        ("http://example.com:banana/", "not valid"),
        ("http://example.com/" + "a" * 3000, "at most 2000"),
    ],
)
def test_input_errors_name_the_value_and_the_remedy(text: str, words: str) -> None:
    with pytest.raises(UrlError) as caught:
        parse_input(text, SHARED)
    assert words in str(caught.value)
    assert text[:30] in str(caught.value)


def test_input_is_canonicalised() -> None:
    assert parse_input("  HTTP://Example.com#x \n", SHARED) == "http://example.com/"


@given(BASES, HREFS)
@settings(max_examples=200, deadline=None)
def test_parts_of_canonical_urls(base: str, href: str) -> None:
    for url in SHARED.resolve(base, [href]):
        if url is not None:
            origin = origin_of(url)
            assert url.startswith(origin + "/")
            assert host_of(url) in origin
            assert SHARED.canonical(origin) == origin + "/"
            words = split_words(url)
            assert words == " ".join(words.lower().split())


def test_host_of_address_with_port() -> None:
    assert host_of("http://[2001:db8::1]:8080/x") == "2001:db8::1"
    assert host_of("http://127.0.0.1:8080/x") == "127.0.0.1"


def test_split_words_decodes_international_names() -> None:
    assert split_words("https://xn--bcher-kva.de/%C3%9Cber-uns?kategorieId=5") == "bücher de über uns kategorie id 5"


def test_examples_in_docstrings() -> None:
    results = doctest.testmod(url_module)
    assert results.attempted >= 5
    assert results.failed == 0
