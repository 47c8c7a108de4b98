from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bowerbird.page.dates import parse_date


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2004-12-23T18:00:15+00:00", datetime(2004, 12, 23, 18, 0, 15, tzinfo=UTC)),
        ("2004-12-23T18:00:15.5Z", datetime(2004, 12, 23, 18, 0, 15, 500_000, tzinfo=UTC)),
        ("2009-11-05T19:20:30+08:00", datetime(2009, 11, 5, 11, 20, 30, tzinfo=UTC)),
        ("2009-11-05T19:20-0130", datetime(2009, 11, 5, 20, 50, tzinfo=UTC)),
        ("2005-01-01", datetime(2005, 1, 1, tzinfo=UTC)),
        ("2005-01", datetime(2005, 1, 1, tzinfo=UTC)),
        ("2005", datetime(2005, 1, 1, tzinfo=UTC)),
        ("20050102", datetime(2005, 1, 2, tzinfo=UTC)),
        (" 2005-01-02 03:04:05 ", datetime(2005, 1, 2, 3, 4, 5, tzinfo=UTC)),
        ("2005-12-31T24:00:00Z", datetime(2006, 1, 1, tzinfo=UTC)),
        ("Thu, 05 Jan 2017 13:34:51 +0100", datetime(2017, 1, 5, 12, 34, 51, tzinfo=UTC)),
        ("05 Jan 17 13:34:54 +0100", datetime(2017, 1, 5, 12, 34, 54, tzinfo=UTC)),
        ("05 Jan 17 13:34:55", datetime(2017, 1, 5, 13, 34, 55, tzinfo=UTC)),
        ("Sun, 06 Sep 2009 16:20:00 EST", datetime(2009, 9, 6, 21, 20, tzinfo=UTC)),
    ],
)
def test_reads(text: str, expected: datetime) -> None:
    assert parse_date(text) == expected.timestamp()


@pytest.mark.parametrize("text", [None, "", "soon", "2005-13-01", "2005-02-30", "99999999", "Thu, 99 Foo"])
def test_gives_up(text: str | None) -> None:
    assert parse_date(text) is None


@given(st.text(max_size=60))
def test_never_raises(text: str) -> None:
    seconds = parse_date(text)
    assert seconds is None or abs(seconds) < 3e11


@given(st.datetimes(min_value=datetime(1900, 1, 1), max_value=datetime(2200, 1, 1)))
def test_isoformat_round_trips(moment: datetime) -> None:
    moment = moment.replace(tzinfo=UTC)
    assert parse_date(moment.isoformat()) == pytest.approx(moment.timestamp(), abs=1e-5)
