from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bowerbird.index.query import MAX_WORDS, Clause, ParsedQuery, parse_query, site_names


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        ("", ParsedQuery()),
        ('- " :', ParsedQuery()),
        ("Red car", ParsedQuery((Clause(("red",)), Clause(("car",))))),
        ("red red", ParsedQuery((Clause(("red",)),))),
        ('"small red" car', ParsedQuery((Clause(("small", "red"), True), Clause(("car",))))),
        ("“small red”", ParsedQuery((Clause(("small", "red"), True),))),
        ('"not closed', ParsedQuery((Clause(("not", "closed"), True),))),
        (
            'car -used -"new red"',
            ParsedQuery((Clause(("car",)),), (Clause(("used",)), Clause(("new", "red"), True))),
        ),
        ("e-mail", ParsedQuery((Clause(("e", "mail")),))),
        ("foo:bar", ParsedQuery((Clause(("foo", "bar")),))),
        ("site:", ParsedQuery((Clause(("site",)),))),
        ("x site:https://Example.org/path", ParsedQuery((Clause(("x",)),), sites=("example.org",))),
        (
            "x HOST:a.org -site:b.org",
            ParsedQuery((Clause(("x",)),), sites=("a.org",), unwanted_sites=("b.org",)),
        ),
        ("x lang:en-GB", ParsedQuery((Clause(("x",)),), languages=("en",))),
        ("東京", ParsedQuery((Clause(("東", "京")),))),
    ],
)
def test_what_people_type(text: str, parsed: ParsedQuery) -> None:
    assert parse_query(text) == parsed


def test_loose_breaks_words_but_keeps_quoted_phrases() -> None:
    assert parse_query('e-mail "red car"').loose == (
        Clause(("e",)),
        Clause(("mail",)),
        Clause(("red", "car"), True),
    )


@given(st.text() | st.text(alphabet='-":ab site lang host ', max_size=40))
def test_any_text_is_a_query(text: str) -> None:
    parsed = parse_query(text)
    assert sum(len(clause.words) for clause in parsed.wanted + parsed.unwanted) <= MAX_WORDS
    assert all(clause.words for clause in parsed.wanted + parsed.unwanted)


@pytest.mark.parametrize(
    ("host", "names"),
    [
        ("A.b.org.", ["a.b.org", "b.org", "org"]),
        ("localhost", ["localhost"]),
        ("127.0.0.1", ["127.0.0.1"]),
        ("[::1]", ["[::1]"]),
        ("", []),
    ],
)
def test_site_names(host: str, names: list[str]) -> None:
    assert site_names(host) == names
