from __future__ import annotations

import doctest

import pytest
from hypothesis import given
from hypothesis import strategies as st

import bowerbird.web.directives as directives_module
from bowerbird.web.directives import Directives, parse_robots_meta, parse_robots_tag

NOW_S = 1_700_000_000.0  # November 2023
FLAGS = st.builds(Directives, st.booleans(), st.booleans(), st.booleans())


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([], Directives()),
        ([""], Directives()),
        (["all"], Directives()),
        (["index, follow"], Directives()),
        (["noindex"], Directives(noindex=True)),
        (["NoIndex,NOFOLLOW"], Directives(True, True)),
        (["none"], Directives(True, True)),
        (["noarchive"], Directives(noarchive=True)),
        (["nocache"], Directives(noarchive=True)),
        (["noindex", "nofollow"], Directives(True, True)),
        (["noindex nofollow"], Directives(True, True)),
        (["otherbot: noindex"], Directives()),
        (["bowerbird: noindex"], Directives(noindex=True)),
        (["BowerBird : none"], Directives(True, True)),
        (["*: noindex"], Directives(noindex=True)),
        (["otherbot: noindex, bowerbird: nofollow, noarchive"], Directives(False, True, True)),
        (["bowerbird: nofollow, otherbot: noindex, noarchive"], Directives(nofollow=True)),
        (["otherbot: noindex", "nofollow"], Directives(nofollow=True)),
        (["max-snippet:-1, max-image-preview: large, noindex"], Directives(noindex=True)),
        (["otherbot: max-snippet: 5, noindex"], Directives()),
        (["unavailable_after: 25 Jun 2010 15:00:00 GMT"], Directives(noindex=True)),
        (["unavailable_after: Friday, 25-Jun-10 15:00:00 UTC, nofollow"], Directives(True, True)),
        (["unavailable_after: 2010-06-25T15:00:00Z"], Directives(noindex=True)),
        (["unavailable_after: 2010-06-25"], Directives(noindex=True)),
        (["unavailable_after: Wed, 25 Jun 2099 15:00:00 GMT, noarchive"], Directives(noarchive=True)),
        (["otherbot: unavailable_after: 2010-06-25"], Directives()),
        (["bowerbird: unavailable_after: 2010-06-25"], Directives(noindex=True)),
        (["unavailable_after: some day"], Directives()),
        (["unavailable_after:"], Directives()),
    ],
)
def test_robots_tag(values: list[str], expected: Directives) -> None:
    assert parse_robots_tag(values, "bowerbird", NOW_S) == expected
    assert parse_robots_tag(values, "Bowerbird/1.0", NOW_S) == expected


def test_unavailable_after_needs_a_clock() -> None:
    assert parse_robots_tag(["unavailable_after: 2010-06-25"], "bowerbird") == Directives()


def test_a_value_is_read_to_its_limit() -> None:
    assert parse_robots_tag(["a" * 4000 + ", noindex"], "bowerbird") == Directives(noindex=True)
    assert parse_robots_tag(["a" * 4096 + ", noindex"], "bowerbird") == Directives()
    assert parse_robots_tag(["a:" * 1000 + "bowerbird: noindex"], "bowerbird") == Directives(noindex=True)


def test_robots_meta() -> None:
    assert parse_robots_meta("noindex,noarchive") == Directives(noindex=True, noarchive=True)
    assert parse_robots_meta("None") == Directives(True, True)
    assert parse_robots_meta("max-snippet:20; nofollow") == Directives()  # the semicolon belongs to the value
    assert parse_robots_meta("noindex; nofollow") == Directives(True, True)


@given(st.lists(st.text(max_size=30), max_size=4), st.text(max_size=5))
def test_any_header_can_be_read(values: list[str], agent: str) -> None:
    assert isinstance(parse_robots_tag(values, agent, NOW_S), Directives)


@given(st.text(alphabet="unavilbe_ftr:, 0123456789JnGMTZ-+", max_size=40))
def test_any_date_can_be_read(text: str) -> None:
    assert not parse_robots_tag(["unavailable_after: " + text], "bowerbird", NOW_S).nofollow


@given(FLAGS, FLAGS, FLAGS)
def test_combining_keeps_the_stricter(a: Directives, b: Directives, c: Directives) -> None:
    assert a | b == b | a
    assert (a | b) | c == a | (b | c)
    assert a | a == a
    assert (a | b).noindex == (a.noindex or b.noindex)


def test_examples_in_docstrings() -> None:
    results = doctest.testmod(directives_module)
    assert results.attempted >= 3
    assert results.failed == 0
