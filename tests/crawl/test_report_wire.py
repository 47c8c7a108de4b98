"""Reports in a database: what was put in comes out, and whatever else lies there runs no code and stops nobody."""

from __future__ import annotations

import pickle
from array import array

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bowerbird.crawl.report import Links, Place, Report, Untell, Widen
from bowerbird.crawl.report_wire import WireError, pack_notice, pack_reports, unpack_notice, unpack_reports
from bowerbird.model.outcome import Outcome

texts = st.text(max_size=20) | st.sampled_from(["", "\0", "\ud800 alone", "ü" * 50])
numbers = st.floats(allow_nan=False, allow_infinity=False)


@st.composite
def link_blocks(draw: st.DrawFn) -> Links:
    count = draw(st.integers(0, 5))
    keys = draw(st.lists(st.integers(0, 2**64 - 1), min_size=count, max_size=count))
    some = st.binary(max_size=30)
    return Links(
        array("Q", keys).tobytes(), draw(some), draw(some), draw(some), draw(some), draw(some), draw(some), count
    )


reports = st.builds(
    Report,
    token=st.integers(0, 2**62),
    url=texts,
    outcome=st.sampled_from(Outcome),
    fetched_at=numbers,
    elapsed_s=numbers,
    status=st.integers(0, 999),
    wire_bytes=st.integers(0, 2**40),
    error=texts,
    retry_after_s=st.none() | numbers,
    location=st.none() | texts,
    title=texts,
    text=texts,
    canonical=st.none() | texts,
    content_hash=st.integers(-(2**63), 2**63 - 1),
    sketch=st.none() | st.binary(max_size=40),
    noindex=st.booleans(),
    websub=texts,
    links=link_blocks(),
    body=st.binary(max_size=40),
    place=st.none() | st.builds(Place, st.just("a.warc.gz"), *(st.integers(0, 2**40) for _ in range(3))),
)


@settings(max_examples=100, deadline=None)
@given(st.lists(reports, max_size=5))
def test_reports_come_out_as_they_were(batch: list[Report]) -> None:
    assert unpack_reports(pack_reports(batch)) == batch


@settings(max_examples=200, deadline=None)
@given(st.lists(reports, min_size=1, max_size=2), st.data())
def test_damaged_reports_are_refused_or_read_but_nothing_else(batch: list[Report], data: st.DataObject) -> None:
    packed = bytearray(pack_reports(batch))
    at = data.draw(st.integers(0, len(packed) - 1))
    packed[at] ^= data.draw(st.integers(1, 255))
    for damaged in (bytes(packed), bytes(packed[:at])):
        try:
            unpack_reports(damaged)
        except WireError:
            pass


class Evil:
    """Would run code where it is unpickled."""

    def __reduce__(self) -> tuple[object, ...]:
        return (pytest.fail, ("code from the database was run",))


def test_what_is_no_report_is_refused() -> None:
    for data in (b"", b"nothing", pickle.dumps(Evil()), pack_notice(Widen(("a",)))):
        with pytest.raises(WireError):
            unpack_reports(data)


@pytest.mark.parametrize(
    "notice", [Widen(("http://a.example/", "http://ü.example/")), Untell((1, 2**64 - 1)), Untell(())]
)
def test_notices_come_out_as_they_were(notice: Widen | Untell) -> None:
    assert unpack_notice(pack_notice(notice)) == notice


def test_what_is_no_notice_is_refused() -> None:
    for data in (b"", b"x" * 9, pack_reports([]), pickle.dumps(Evil())):
        with pytest.raises(WireError):
            unpack_notice(data)
