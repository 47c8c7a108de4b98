"""Imports: every format, each line once, whatever happens in between."""

from __future__ import annotations

import gzip
import hashlib
import io
import itertools
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import textwrap
import time
from collections import Counter
from pathlib import Path

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from bowerbird.demand.columns import describe_columns
from bowerbird.demand.events import normalise_query
from bowerbird.demand.importing import ImportOptions, ImportReport, import_log
from bowerbird.demand.log import DemandLog
from bowerbird.demand.records import BadLine, parse_time
from bowerbird.demand.sniffing import sniff
from bowerbird.demand.sources import Source
from bowerbird.model.errors import BowerbirdError, ConfigError, FolderError, InputFileError

NOW = 1_760_000_000.0
T = 1_750_000_000


def give(
    folder: Path, content: str | bytes, name: str = "log", block_bytes: int = 1 << 20, **options: object
) -> ImportReport:
    """Write a file and import it."""
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    with log_of(folder) as log, Source.open(str(path)) as source:
        chosen = ImportOptions(**options)  # type: ignore[arg-type]  # fields of many types
        return import_log(log, source, chosen, now=NOW, block_bytes=block_bytes)


def log_of(folder: Path, *, write: bool = True) -> DemandLog:
    return DemandLog.open(folder / "demand.db", write=write, min_occurrences=1)


def counts_of(folder: Path) -> dict[str, int]:
    with log_of(folder, write=False) as log:
        return {query.text: query.count for query in log.queries(NOW) if query.count}


def clicks_of(folder: Path) -> dict[str, float]:
    with log_of(folder, write=False) as log:
        return {url: round(weight, 6) for url, weight in log.page_clicks(NOW)}


# Tables


@pytest.mark.parametrize(
    ("content", "form", "expected"),
    [
        ("red car\nblue\nRed  CAR\n", "tsv", {"red car": 2, "blue": 1}),
        ("query\nred car\nblue", "tsv", {"red car": 1, "blue": 1}),
        ("red car\t3\nblue\t2\nred car\t4\n", "tsv", {"red car": 7, "blue": 2}),
        ("query\tfrequency\nred car\t3\n", "tsv", {"red car": 3}),
        ("Frequency\tQuery\n3\tred car\n", "tsv", {"red car": 3}),
        ("3\tred car\n4\tblue\n", "tsv", {"red car": 3, "blue": 4}),
        (f"red car\t3\t{T}\nred car\t1\t{T + 5}\n", "tsv", {"red car": 4}),
        ("red car\t2025-06-01T10:00:00Z\nblue\t2025-06-01 11:00\n", "tsv", {"red car": 1, "blue": 1}),
        ("query,count\nred car,3\n", "csv", {"red car": 3}),
        ('"red, blue",3\n"say ""hi""",4\nplain,5\n', "csv", {"red, blue": 3, 'say "hi"': 4, "plain": 5}),
        ("red, green, blue\nhello, world\nplain\n", "tsv", {"red, green, blue": 1, "hello, world": 1, "plain": 1}),
        ("\ufeffquery\tcount\r\nred car\t3\r\n", "tsv", {"red car": 3}),
        ("\ufeffred car\r\n\r\nblue\r\n", "tsv", {"red car": 1, "blue": 1}),
        ("Željezo\t2\nželjezo\t3\n", "tsv", {"željezo": 5}),
        ("AnonID\tQuery\tQueryTime\n17\tred car\t2006-03-01 10:00:00\n", "tsv", {"red car": 1}),
    ],
)
def test_tables(tmp_path: Path, content: str, form: str, expected: dict[str, int]) -> None:
    report = give(tmp_path, content)
    assert report.format == form
    assert (report.bad, report.unused) == (0, {})
    assert counts_of(tmp_path) == expected
    assert report.asked == sum(expected.values())


def test_times_are_used_and_absent_ones_are_given(tmp_path: Path) -> None:
    give(tmp_path, f"a\t{T}\nb\t{T * 1000}\nc\t2025-06-15T15:06:40Z\n")
    give(tmp_path, "d\ne\n", name="other", at=float(T - 100))
    with log_of(tmp_path) as log:
        assert {query.text: query.last_at for query in log.queries(NOW)} == {
            "a": T,
            "b": T,
            "c": T,
            "d": T - 100,
            "e": T - 100,
        }
        assert log.activity(0, NOW) == [(T // 1200 * 1200.0, 3, 0)]  # whose times are known


@pytest.mark.parametrize(
    ("content", "bad", "reason"),
    [
        ("query\tcount\nok\t1\nx\tmany\n", 3, "'many' is not a whole number"),
        ("query\tcount\nok\t1\nx\t0\n", 3, "count 0 is not from 1"),
        ("query\tcount\nok\t1\n\t5\n", 3, "no query"),
        ("query\tcount\nok\t1\nx\n", 3, "1 column instead of 2"),
        ("query\tcount\nok\t1\nx\t1\t2\n", 3, "3 columns instead of 2"),
        ("query\tcount\nok\t1\n" + "x" * 1001 + "\t2\n", 3, "1,001 characters"),
        (f"query\ttime\nok\t{T}\nx\tyesterday\n", 3, "neither a number nor a date"),
        (f"query\ttime\nok\t{T}\nx\t{NOW + 1e6}\n", 3, "in the future"),
        (f"query\ttime\nok\t{T}\nx\t1969-12-31T23:00:00\n", 3, "before 1970"),
        ("query\ntab\there\nok\n", 2, "2 columns instead of 1"),
        ('query,count\nok,1\n"open,1\n', 3, "not CSV"),
        ('{"query": "ok"}\n{"query": \n', 2, "not JSON"),
        ('{"query": "ok"}\n[1]\n', 2, "not a JSON object"),
        ('{"query": "ok"}\n{"query": 7}\n', 2, "not a text"),
        ('{"query": "ok"}\n{}\n', 2, "no query"),
        ('{"query": "ok"}\n{"url": "ftp://x"}\n', 2, "--url-prefix"),
        ('{"query": "ok"}\n{"query": "x", "url": "http://a.test/", "rank": 0}\n', 2, "rank 0"),
    ],
)
def test_bad_lines_are_counted_and_the_rest_imported(tmp_path: Path, content: str, bad: int, reason: str) -> None:
    report = give(tmp_path, content)
    assert report.bad == 1
    ((number, said),) = report.samples
    assert number == bad
    assert reason in said
    assert counts_of(tmp_path) == {"ok": 1}


def test_only_the_first_bad_lines_are_kept(tmp_path: Path) -> None:
    report = give(tmp_path, "query\tcount\n" + "ok\t1\nbad\tx\n" * 50)
    assert report.bad == 50
    assert [number for number, _ in report.samples] == [3, 5, 7, 9, 11]
    assert counts_of(tmp_path) == {"ok": 50}


def test_wrong_bytes_cost_only_their_line(tmp_path: Path) -> None:
    report = give(tmp_path, b"fine\t2\nbroken \xff\xfe\t3\nalso fine\t4\n")
    assert report.samples == [(2, "not UTF-8 at byte 8")]
    assert counts_of(tmp_path) == {"fine": 2, "also fine": 4}


QUERY = st.text(st.characters(codec="utf-8", exclude_characters="\0\r\n\t"), min_size=1, max_size=12)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(QUERY, st.integers(1, 99)), min_size=1, max_size=30), st.sampled_from(["count", "time", "both"])
)
def test_the_quick_ways_count_as_the_slow_way(rows: list[tuple[str, int]], kind: str) -> None:
    expected: Counter[str] = Counter()
    lines = []
    for text, number in rows:
        if kind == "count":
            lines.append(f"{text}\t{number}")
        elif kind == "time":
            lines.append(f"{text}\t{T + number}")
        else:
            lines.append(f"{text}\t{number}\t{T + number}")
        if normalise_query(text):
            expected[normalise_query(text)] += 1 if kind == "time" else number
    header = {"count": "query\tcount", "time": "query\ttime", "both": "query\tcount\ttime"}[kind]
    for order in (lines, ["in the way\t1\t1\t1\t1", *lines]):  # a bad line takes the block to the slow way
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            if not expected and len(order) > 0:
                with pytest.raises(InputFileError):
                    give(folder, "\n".join([header, *order]) + "\n", format="tsv")
                continue
            report = give(folder, "\n".join([header, *order]) + "\n", format="tsv")
            assert counts_of(folder) == dict(expected)
            assert report.lines == len(order) + 1


def test_results_in_a_table(tmp_path: Path) -> None:
    content = (
        "user\tquery\turl\trank\tclicked\n"
        "u1\tred\thttp://a.test/\t1\t0\nu2\tred\thttp://b.test/\t2\t1\nu1\tred\thttp://a.test/\t1\t1\n"
    )
    report = give(tmp_path, content)
    assert (report.asked, report.shown, report.clicks) == (0, 3, 2)
    assert clicks_of(tmp_path) == {"http://a.test/": 1, "http://b.test/": 1}


AOL = (
    "AnonID\tQuery\tQueryTime\tItemRank\tClickURL\n"
    "7\tred car\t2006-03-01 10:00:00\t1\thttp://a.test/\n"
    "7\tred car\t2006-03-01 10:00:00\t3\thttp://b.test/\n"
    "7\tred car\t2006-03-01 11:00:00\t1\thttp://a.test/\n"
    "8\tblue\t2006-03-01 12:00:00\t\t\n"
    "8\tblue\t2006-03-01 12:00:00\t2\thttp://c.test/\n"
    "9\tgreen\t2006-03-01 13:00:00\t2\thttp://c.test/\n"
    "9\tgreen\t2006-03-01 13:00:00\t\t\n"
)


@pytest.mark.parametrize("block_bytes", [60, 1 << 20])
def test_rows_of_one_query_and_time_are_one_asking(tmp_path: Path, block_bytes: int) -> None:
    report = give(tmp_path, AOL, block_bytes=block_bytes)
    assert (report.asked, report.clicks, report.bad) == (4, 5, 0)
    with log_of(tmp_path) as log:
        found = {query.text: (query.count, query.clicks) for query in log.queries(NOW)}
    assert found == {"red car": (2, 3), "blue": (1, 1), "green": (1, 1)}


def test_askings_in_rows_of_results(tmp_path: Path) -> None:
    results = f"query\ttime\turl\nred\t{T}\thttp://a.test/\nred\t{T}\thttp://b.test/\n"
    assert give(tmp_path, results, name="a").asked == 1  # nothing else says that it was asked
    events = f"query\ttime\turl\nblue\t{T}\t\nblue\t{T + 9}\thttp://b.test/\n"
    report = give(tmp_path, events, name="b")
    assert (report.asked, report.clicks) == (1, 1)  # the time of the second row is that of the click
    untimed = "query\turl\ngreen\thttp://b.test/\n"
    report = give(tmp_path, untimed, name="c")
    assert (report.asked, report.clicks) == (0, 1)


@pytest.mark.parametrize("content", ["9" * 5000 + "\tred\n1\tblue\n", "blue\t1\nred\t" + "9" * 5000 + "\n"])
def test_a_number_of_thousands_of_digits_is_a_bad_line(tmp_path: Path, content: str) -> None:
    report = give(tmp_path, content * 3 + "1\tblue\n" * 100 if content[0] == "9" else content + "blue\t1\n" * 100)
    assert report.bad in (1, 3)
    assert set(counts_of(tmp_path)) == {"blue"}


def test_real_search_clicks(shared_data: Path, tmp_path: Path) -> None:
    path = shared_data / "hrwiki" / "search_clicks.tsv.gz"
    with log_of(tmp_path) as log, Source.open(str(path)) as source:
        options = ImportOptions(url_prefix="https://hr.wikipedia.org/wiki/")
        report = import_log(log, source, options)
        assert (report.lines, report.bad) == (73_604, 0)
        assert 11_000_000 < report.clicks < 12_000_000
        top = log.page_clicks(time.time())
        assert top[0][0] == "https://hr.wikipedia.org/wiki/Marko_Bo%C5%A1njak"
        assert top[0][1] == pytest.approx(66_527, rel=1e-3)
        assert sum(clicks for _, clicks in top) == pytest.approx(report.clicks, rel=1e-3)
        assert log.click_bins(top[0][0]) == []  # a month's sum has no time of day


# JSON lines


def test_json_lines(tmp_path: Path) -> None:
    lines = [
        {"query": "Red", "time": T, "results": 7, "shown": ["http://a.test/", "http://b.test/"], "user": "me"},
        {"query": "red", "time": T + 10, "count": 2},
        {"query": "red", "url": "http://b.test/?utm_source=x", "rank": 2, "time": T + 5},
        {"query": "red", "url": "http://a.test/", "rank": 1, "clicked": False, "time": T + 5},
        {"query": "red", "url": "http://a.test/", "rank": 1, "clicked": True, "time": T + 5},
        {"url": "http://c.test/", "count": 3, "time": T},
    ]
    report = give(tmp_path, "".join(json.dumps(line) + "\n" for line in lines))
    assert (report.format, report.bad) == ("jsonl", 0)
    assert (report.asked, report.shown, report.clicks) == (3, 4, 5)
    with log_of(tmp_path) as log:
        (found,) = log.queries(NOW)
        assert (found.text, found.count, found.impressions, found.clicks, found.results) == ("red", 3, 4, 2, 7)
        counts = log.rank_counts()
        assert sorted(zip(counts.rank.tolist(), counts.impressions.tolist(), counts.clicks.tolist(), strict=True)) == [
            (1, 3, 1),
            (2, 1, 1),
        ]
        assert log.click_bins("http://c.test/") == [(T // 1200 * 1200.0, 3)]
    assert b'"me"' not in b"".join(path.read_bytes() for path in tmp_path.glob("demand*"))


# User Behavior Insights


def ubi(action: str, query_id: str, thing: str, ordinal: int, **more: object) -> dict[str, object]:
    return {
        "application": "shop",
        "action_name": action,
        "query_id": query_id,
        "client_id": "client-4711",
        "session_id": "session-0815",
        "user_id": "user-1234",
        "timestamp": "2025-06-15T15:06:40.000Z",
        "message_type": None,
        "message": None,
        "event_attributes": {
            "session_id": "session-0815",
            "object": {"object_id": thing, "object_id_field": "url"},
            "position": {"ordinal": ordinal},
        },
        **more,
    }


def ubi_query(query_id: str, text: str, hits: int) -> dict[str, object]:
    return {
        "timestamp": T * 1000,
        "query_id": query_id,
        "client_id": "client-4711",
        "user_query": text,
        "query_response_id": "r1",
        "query_response_hit_ids": [f"http://a.test/{number}" for number in range(hits)],
        "query_attributes": {},
    }


def as_lines(documents: list[dict[str, object]], form: str) -> str:
    out = []
    for document in documents:
        if form == "bulk":
            out.append('{"index": {"_index": "ubi_events", "_id": "7"}}')
        out.append(json.dumps({"_index": "ubi", "_id": "x", "_source": document} if form == "source" else document))
    return "\n".join(out) + "\n"


@pytest.mark.parametrize("form", ["plain", "source", "bulk"])
def test_ubi_queries_then_events(tmp_path: Path, form: str) -> None:
    queries = [ubi_query("q-1", "Red car", 2), ubi_query("q-2", "blue", 0), ubi_query("q-3", "red  car", 2)]
    events = [
        ubi("impression", "q-1", "http://a.test/0", 1),
        ubi("impression", "q-1", "http://a.test/1", 2),
        ubi("click", "q-1", "http://a.test/1", 2),
        ubi("click", "q-unknown", "http://a.test/1", 1),
        ubi("click", "q-unknown", "http://a.test/0", 1, user_query="BLUE"),
        ubi("add_to_cart", "q-1", "http://a.test/1", 2),
    ]
    first = give(tmp_path, as_lines(queries, form), name="ubi_queries")
    assert (first.format, first.bad, first.asked, first.shown) == ("ubi", 0, 3, 0)
    second = give(tmp_path, as_lines(events, form), name="ubi_events")
    assert (second.bad, second.shown, second.clicks) == (0, 2, 3)
    assert second.unused["other actions than clicks and impressions"] == 1
    with log_of(tmp_path) as log:
        found = {
            query.text: (query.count, query.impressions, query.clicks, query.results) for query in log.queries(NOW)
        }
        assert found == {"red car": (2, 2, 1, 2), "blue": (1, 0, 1, 0)}
        assert dict(log.page_clicks(T)) == pytest.approx({"http://a.test/1": 2, "http://a.test/0": 1})
    disk = b"".join(path.read_bytes() for path in tmp_path.glob("demand*"))
    for identifier in (b"client-4711", b"session-0815", b"user-1234", b"q-1", b"q-unknown"):
        assert identifier not in disk


def test_ubi_positions_prefixes_and_hits(tmp_path: Path) -> None:
    events = as_lines([ubi("click", "q", "42", 0, user_query="x"), ubi("click", "q", "42", 1, user_query="x")], "plain")
    report = give(tmp_path, events, url_prefix="http://shop.test/p/")
    assert report.bad == 1
    assert "--first-position 0" in report.samples[0][1]
    (tmp_path / "second").mkdir()
    report = give(tmp_path / "second", events, url_prefix="http://shop.test/p/", first_position=0)
    assert report.bad == 0
    with log_of(tmp_path / "second") as log:
        assert sorted(log.rank_counts().rank.tolist()) == [1, 2]
        assert [url for url, _ in log.page_clicks(NOW)] == ["http://shop.test/p/42"]
    (tmp_path / "third").mkdir()
    report = give(tmp_path / "third", as_lines([ubi_query("q", "x", 3)], "plain"), hits_shown=True)
    assert report.shown == 3


# Clickstream


def test_clickstream(tmp_path: Path) -> None:
    content = (
        "other-search\tMain_Page\texternal\t120\nother-empty\tMain_Page\texternal\t10\n"
        "Zagreb\tSplit\tlink\t33\nother-search\tTko_je?_%\texternal\t5\nother-search\tx\texternal\tfew\n"
    )
    report = give(tmp_path, content, url_prefix="https://hr.wikipedia.org/wiki/")
    assert report.format == "clickstream"
    assert (report.clicks, report.unused, report.bad) == (125, {"not from search": 2}, 1)
    assert clicks_of(tmp_path).keys() == {
        "https://hr.wikipedia.org/wiki/Main_Page",
        "https://hr.wikipedia.org/wiki/Tko_je%3F_%25",
    }
    with pytest.raises(ConfigError, match="--url-prefix"):
        give(tmp_path, content + "\n", format="clickstream")


# Once only


LOG = "".join(f"query {number % 7}\n" for number in range(100))


@pytest.mark.parametrize("form", ["plain", "gzip", "zstd"])
def test_the_same_content_counts_once_whatever_its_wrapping(tmp_path: Path, form: str) -> None:
    assert give(tmp_path, LOG).state == "imported"
    before = counts_of(tmp_path)
    wrapped = {
        "plain": LOG.encode(),
        "gzip": gzip.compress(LOG.encode()),
        "zstd": zstandard.compress(LOG.encode()),
    }[form]
    report = give(tmp_path, wrapped, name="another name")
    assert (report.state, report.lines, report.asked) == ("known", 0, 0)
    assert counts_of(tmp_path) == before
    assert sum(before.values()) == 100


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 60), min_size=1, max_size=5), st.integers(20, 400), st.booleans())
def test_a_growing_log_counts_each_line_once(cuts: list[int], block_bytes: int, older_copies: bool) -> None:
    lines = [f"query {number % 9}\n" for number in range(60)]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        most = 0
        for cut in [cut for cut in cuts if cut == 0 or cut > 8] if older_copies else sorted(cuts):  # 64 bytes or more
            most = max(most, cut)
            give(folder, "".join(lines[:cut]), block_bytes=block_bytes)
            done = Counter(line.strip() for line in lines[:most])
            found = Counter(counts_of(folder))
            assert found == done
        give(folder, "".join(lines[:most]), block_bytes=block_bytes)
        assert Counter(counts_of(folder)) == Counter(line.strip() for line in lines[:most])


def test_an_older_copy_of_a_large_log_changes_nothing(tmp_path: Path) -> None:
    lines = [f"query {number}\n" for number in range(5000)]
    give(tmp_path, "".join(lines), block_bytes=10_000)
    for length in (4900, 3000, 1000):
        assert give(tmp_path, "".join(lines[:length]), name="old", block_bytes=10_000).state == "known"
    assert set(counts_of(tmp_path).values()) == {1}


@pytest.mark.parametrize("shared", [4102, 300, 60])
def test_a_shorter_file_that_differs_is_not_an_older_copy(tmp_path: Path, shared: int) -> None:
    lines = [f"common query number {number}\t5\n" for number in range(400)]
    give(tmp_path, "".join(lines))
    same = "".join(lines)[:shared].rpartition("\n")[0] + "\n"
    other = same + "".join(f"brand new {number}\t7\n" for number in range(100))
    assert len(other) < len("".join(lines))
    report = give(tmp_path, other, name="other")
    assert (report.state, report.lines) == ("imported", same.count("\n") + 100)
    assert counts_of(tmp_path)["brand new 99"] == 7
    assert give(tmp_path, other, name="other").state == "known"


def test_only_the_last_line_of_a_shorter_file_differs(tmp_path: Path) -> None:
    lines = [f"query {number}\n" for number in range(100)]
    give(tmp_path, "".join(lines))
    report = give(tmp_path, "".join(lines[:50]) + "another\n", name="other")
    assert report.state == "imported"
    assert counts_of(tmp_path)["another"] == 1


@pytest.mark.parametrize("block_bytes", [150, 10_000])
def test_an_older_copy_may_lack_its_last_line_end(tmp_path: Path, block_bytes: int) -> None:
    lines = [f"query {number}\n" for number in range(100)]
    give(tmp_path, "".join(lines), block_bytes=block_bytes)
    report = give(tmp_path, "".join(lines[:50]).rstrip("\n"), name="old", block_bytes=block_bytes)
    assert (report.state, report.lines, report.lines_before) == ("known", 0, 50)
    assert set(counts_of(tmp_path).values()) == {1}


def test_an_older_copy_of_a_fork_is_known(tmp_path: Path) -> None:
    lines = [f"query {number}\n" for number in range(300)]
    fork = lines[:200] + [f"other {number}\n" for number in range(150)]
    give(tmp_path, "".join(lines), block_bytes=1000)
    give(tmp_path, "".join(fork), name="fork", block_bytes=1000)
    before = counts_of(tmp_path)
    for length in (190, 215, 333):
        assert give(tmp_path, "".join(fork[:length]), name="old", block_bytes=1000).state == "known"
    assert counts_of(tmp_path) == before


def test_new_lines_that_are_all_bad_do_not_refuse_a_grown_file(tmp_path: Path) -> None:
    begun = "query\tcount\n" + "red\t1\n" * 20
    give(tmp_path, begun)
    report = give(tmp_path, begun + "red\tmany\n")
    assert (report.state, report.lines, report.bad) == ("continued", 1, 1)
    assert give(tmp_path, begun + "red\tmany\nblue\t2\n").asked == 2


def test_stored_digests_are_keyed(tmp_path: Path) -> None:
    content = b"my very own hidden illness\n"
    give(tmp_path, content)
    disk = b"".join(path.read_bytes() for path in tmp_path.glob("demand*"))
    for guess in (content, content.strip()):
        for size in (4, 8, 16, 32):
            assert size == 4 or hashlib.blake2b(guess, digest_size=size).digest() not in disk
    connection = sqlite3.connect(tmp_path / "demand.db")
    stored = connection.execute("SELECT digest FROM checkpoints UNION ALL SELECT head FROM imports").fetchall()
    connection.close()
    assert len(stored) == 2
    assert (hashlib.blake2b(content, digest_size=16).digest(),) not in stored


def test_a_file_that_goes_another_way_counts_from_there(tmp_path: Path) -> None:
    lines = [f"query {number}\n" for number in range(3000)]
    give(tmp_path, "".join(lines), block_bytes=10_000)
    report = give(tmp_path, "".join(lines[:2000]) + "other\n" * 2000, name="fork", block_bytes=10_000)
    assert report.state == "continued"
    counts = counts_of(tmp_path)
    assert counts["other"] == 2000
    assert counts["query 0"] == 1
    # what lies between the last common checkpoint and the fork is counted in both files
    assert sum(counts.values()) < 3000 + 2000 + 1000


def test_a_last_line_that_was_not_whole(tmp_path: Path) -> None:
    assert give(tmp_path, "one\ntwo\nthr").asked == 3
    report = give(tmp_path, "one\ntwo\nthree\nfour\n")
    assert (report.state, report.lines, report.asked) == ("continued", 1, 1)
    assert report.samples == [(3, "imported before it was written to its end")]
    assert (report.imported, report.given) == (1, 2)
    assert counts_of(tmp_path) == {"one": 1, "two": 1, "thr": 1, "four": 1}
    (tmp_path / "b").mkdir()
    give(tmp_path / "b", "one\ntwo")
    report = give(tmp_path / "b", "one\ntwo\nthree\n")
    assert (report.bad, counts_of(tmp_path / "b")) == (0, {"one": 1, "two": 1, "three": 1})


def test_the_header_is_known_in_the_tail(tmp_path: Path) -> None:
    give(tmp_path, "count\tquery\n3\tred\n")
    report = give(tmp_path, "count\tquery\n3\tred\n4\tblue\nx\tbad\n")
    assert (report.asked, report.lines_before) == (4, 2)
    assert report.samples[0][0] == 4


def test_a_dry_run_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text(LOG)
    with log_of(tmp_path, write=False) as log, Source.open(str(path)) as source:
        report = import_log(log, source, ImportOptions(dry_run=True), now=NOW)
    assert (report.asked, report.distinct, report.dry_run) == (100, 7, True)
    assert not (tmp_path / "demand.db").exists()
    give(tmp_path, LOG)
    with log_of(tmp_path) as log, Source.open(str(path)) as source:
        assert import_log(log, source, ImportOptions(dry_run=True), now=NOW).state == "known"


@pytest.mark.parametrize("block_bytes", [100, 1 << 20])
def test_a_file_counts_again_on_demand(tmp_path: Path, block_bytes: int) -> None:
    longer = LOG + "more\n"
    give(tmp_path, longer, block_bytes=block_bytes)
    report = give(tmp_path, LOG, name="older", block_bytes=block_bytes, again=True)
    assert (report.state, report.lines, report.lines_before) == ("imported", 100, 0)
    report = give(tmp_path, LOG, name="older", block_bytes=50, again=True)
    assert report.asked == 100
    assert sum(counts_of(tmp_path).values()) == 301
    for content in (LOG, longer):
        assert give(tmp_path, content, block_bytes=block_bytes).state == "known"


def test_an_interrupted_import_of_a_file_again_goes_on(tmp_path: Path) -> None:
    give(tmp_path, LOG, block_bytes=100)

    def show(share: float, done: int) -> None:
        if done > 50:
            raise _Killed

    with log_of(tmp_path) as log, Source.open(str(tmp_path / "log")) as source, pytest.raises(_Killed):
        import_log(log, source, ImportOptions(again=True), now=NOW, block_bytes=100, show=show)
    assert 150 <= sum(counts_of(tmp_path).values()) < 200
    assert give(tmp_path, LOG, block_bytes=100).state == "continued"
    assert sum(counts_of(tmp_path).values()) == 200


# Interruption


class _Killed(BaseException):
    pass


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 12), st.integers(0, 10**6))
def test_an_import_that_stops_at_any_block_goes_on(blocks: int, seed: int) -> None:
    rng = random.Random(seed)
    lines = [f"query {rng.randrange(40)}\t{rng.randrange(1, 9)}\n" for _ in range(200)]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = folder / "log.gz"
        path.write_bytes(gzip.compress("".join(lines).encode()))
        left = itertools.count()

        def show(share: float, done: int) -> None:
            if next(left) == blocks:
                raise _Killed

        with log_of(folder) as log, Source.open(str(path)) as source:
            try:
                import_log(log, source, now=NOW, show=show, block_bytes=150)
            except _Killed:
                pass
        with log_of(folder) as log, Source.open(str(path)) as source:
            import_log(log, source, now=NOW, block_bytes=rng.choice([100, 150, 10_000]))
        expected: Counter[str] = Counter()
        for line in lines:
            text, _, count = line.partition("\t")
            expected[text] += int(count)
        assert counts_of(folder) == dict(expected)


CHILD = """
import sys, time
from pathlib import Path
from bowerbird.demand.importing import import_log
from bowerbird.demand.log import DemandLog
from bowerbird.demand.sources import Source
folder = Path(sys.argv[1])
with DemandLog.open(folder / "demand.db", write=True, min_occurrences=1) as log, Source.open(sys.argv[2]) as source:
    print("ready", flush=True)
    import_log(log, source, block_bytes=20_000, show=lambda share, lines: time.sleep(0.002))
print("done", flush=True)
"""


@pytest.mark.parametrize("after_s", [0.0, 0.05, 0.15])
def test_a_killed_import_can_be_repeated(tmp_path: Path, after_s: float) -> None:
    path = tmp_path / "log.tsv"
    path.write_text("".join(f"query {number % 1000}\t{number % 5 + 1}\n" for number in range(100_000)))
    child = subprocess.Popen([sys.executable, "-c", textwrap.dedent(CHILD), tmp_path, path], stdout=subprocess.PIPE)
    assert child.stdout is not None
    assert child.stdout.readline() == b"ready\n"
    time.sleep(after_s)
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    child.stdout.close()
    with log_of(tmp_path) as log, Source.open(str(path)) as source:
        import_log(log, source)
        totals = log.totals()
    assert (totals.asked, totals.distinct) == (300_000, 1000)


def test_two_imports_of_one_file_at_once(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text(LOG)
    with (
        log_of(tmp_path) as one,
        log_of(tmp_path) as other,
        Source.open(str(path)) as a,
        Source.open(str(path)) as b,
    ):
        overtaken: list[ImportReport] = []

        def overtake(share: float, lines: int) -> None:
            if not overtaken:
                overtaken.append(import_log(one, a, now=NOW, block_bytes=100))

        with pytest.raises(FolderError, match="importing it now"):
            import_log(other, b, now=NOW, block_bytes=100, show=overtake)
    assert sum(counts_of(tmp_path).values()) == 100


# Sources and formats


def test_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read, write = os.pipe()
    os.write(write, gzip.compress(LOG.encode()))
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(pipe))
        with log_of(tmp_path) as log, Source.open("-") as source:
            assert import_log(log, source, now=NOW).asked == 100
    assert give(tmp_path, LOG).state == "known"


ACCESS_LOG = (
    '192.0.2.7 - - [31/Jan/2026:12:00:00 +0000] "GET /search?q=fox HTTP/1.1" 200 512 "-" "Mozilla/5.0"\n'
    '2001:db8::1 - ann [31/Jan/2026:12:00:01 +0000] "GET / HTTP/1.1" 200 512\n'
)


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        (b"\x00\x01\x02 binary", {}, "zero bytes"),
        (gzip.compress(LOG.encode(), mtime=0)[:-20], {}, "damaged gzip"),
        (b"\x1f\x8b\x08\x00broken", {}, r"damaged gzip data after 0 bytes .* Nothing of it is imported"),
        (b"\x28\xb5\x2f\xfdbroken, too", {}, "damaged zstd"),
        ('{"query": "x"}\n', {"format": "tsv"}, "looks like jsonl"),
        ("a\t1\nb\t2\n", {"format": "csv"}, "looks like tsv"),
        ("a\t1\nb\t2\n", {"format": "jsonl"}, "not one line can be read as jsonl"),
        ("a\t1\nb\t2\n", {"format": "ubi"}, "not one line can be read as ubi"),
        ('{"query": "x"}\n', {"format": "ubi"}, "not one line can be read as ubi"),
        ("a\t1\n", {"format": "clickstream", "url_prefix": "http://a.test/"}, "2 columns instead of prev"),
        ("1\t2\n3\t4\n", {}, "no column of it looks like queries"),
        ("x\n", {"format": "xml"}, "not known"),
        ("user,phrase,day\nu1,red fox,2026-01-01\n", {}, r"\(user, phrase, day\) looks like a header.*Known are query"),
        ("user,phrase,day\nu1,red,2026-01-01\nu1,a, b,2026-01-01\nu2,c,2026-01-01\n", {}, "looks like a header"),
        ("phrase\tnumber\nred fox\t3\nblue\t4\n", {}, "Rename the column that holds the queries to query"),
        ("url,time\nred,blue\n", {}, "looks like a header"),
        ("user\tphrase\nu1\tred fox\n", {}, "columns 1, 2 are texts"),
        ("u1,red fox,2026-01-01\nu2,blue,2026-01-02\n", {}, "columns 1, 2 are texts"),
        (ACCESS_LOG, {}, "access log of a web server"),
        (ACCESS_LOG, {"format": "tsv"}, "access log of a web server"),
        (ACCESS_LOG.replace("192.0", "shop.test:80 192.0"), {}, "access log of a web server"),
    ],
)
def test_what_cannot_be_imported_says_so_in_one_line(
    tmp_path: Path, content: str | bytes, options: dict[str, str], message: str
) -> None:
    with pytest.raises(BowerbirdError, match=message) as caught:
        give(tmp_path, content, **options)
    assert "\n" not in str(caught.value)
    assert counts_of(tmp_path) == {}


@pytest.mark.parametrize(
    ("content", "columns", "said"),
    [
        ("red\t3\nblue\t4\n", ["query", "count"], "column 1 is the query, column 2 the frequency"),
        ("3\tred\n4\tblue\n", ["count", "query"], "column 2 is the query, column 1 the frequency"),
        ("red\thttp://a.test/\n", ["query", None], "column 1 is the query; not read: column 2"),
        ("red\t\nblue\t\n", ["query", None], "column 1 is the query; not read: column 2"),
        ("user,day,query\nu,x,red\n", [None, None, "query"], "column 3 is the query; not read: columns 1, 2"),
        ("url\tclicks\nhttp://a.test/\t2\n", ["url", "clicked"], "column 1 is the page, column 2 the clicks"),
        ("red\n", ["query"], "each line is a query"),
    ],
)
def test_the_columns_are_told(tmp_path: Path, content: str, columns: list[str | None], said: str) -> None:
    report = give(tmp_path, content)
    assert report.columns == columns
    assert describe_columns(columns) == said


@pytest.mark.parametrize("sep", ["\n", "\r\n"])
@pytest.mark.parametrize(
    ("lines", "imported", "given"),
    [
        (["query\tcount", "red\t1", "", "blue\tx", " ", "red\t2"], 2, 3),
        (["query\ttime", f"red\t{T}", f"blue\t{T}"], 2, 2),
        (["query\ttime", f"red\t{T}", "", "blue\tsoon"], 1, 2),
        (["red", "", "blue"], 2, 2),
        (['{"query": "x"}', "", "{}"], 1, 2),
    ],
)
def test_only_lines_that_count_are_called_imported(
    tmp_path: Path, lines: list[str], imported: int, given: int, sep: str
) -> None:
    report = give(tmp_path, sep.join(lines) + sep)
    assert (report.lines, report.imported, report.given) == (len(lines), imported, given)
    assert report.as_json()["imported"] == imported


def test_files_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputFileError, match="cannot be read"):
        Source.open(str(tmp_path / "none"))
    with pytest.raises(InputFileError, match="a folder"):
        Source.open(str(tmp_path))


def test_an_empty_file_is_no_event(tmp_path: Path) -> None:
    report = give(tmp_path, "")
    assert (report.lines, report.asked, report.bad) == (0, 0, 0)


def test_a_truncated_file_goes_on_when_it_is_whole(tmp_path: Path) -> None:
    rng = random.Random(3)
    lines = [f"query {rng.randrange(10**9)}\n" for _ in range(20_000)]
    packed = gzip.compress("".join(lines).encode())
    with pytest.raises(InputFileError, match="Nothing of it is imported"):
        give(tmp_path, packed[: len(packed) // 2])  # within the first block
    assert counts_of(tmp_path) == {}
    with pytest.raises(InputFileError, match="goes on from there"):
        give(tmp_path, packed[: len(packed) // 2], block_bytes=20_000)
    partly = sum(counts_of(tmp_path).values())
    assert 0 < partly < 20_000
    report = give(tmp_path, packed, block_bytes=20_000)
    assert (report.state, report.lines_before) == ("continued", partly)
    assert Counter(counts_of(tmp_path)) == Counter(line.strip() for line in lines)


def test_plain_queries_with_commas_can_be_said_to_be_such(tmp_path: Path) -> None:
    with pytest.raises(InputFileError, match="say --format tsv"):
        give(tmp_path, "hello, world\nred, blue\n")
    assert give(tmp_path, "hello, world\nred, blue\n", format="tsv").asked == 2
    assert counts_of(tmp_path) == {"hello, world": 1, "red, blue": 1}


def test_sniffing() -> None:
    assert sniff([]) == "tsv"
    assert sniff(["other-search\tA\texternal\t9", "A\tB\tlink\t12"]) == "clickstream"
    assert sniff(['{"user_query": "x", "query_id": "1"}']) == "ubi"
    assert sniff(['{"index": {"_index": "ubi_events"}}', '{"action_name": "click"}']) == "ubi"
    assert sniff(['"a b",3']) == "csv"


def test_times() -> None:
    assert parse_time("2024-12-11T04:56:49.419Z") == pytest.approx(1733893009.419)
    assert parse_time("2024-12-11T05:56:49+01:00") == 1733893009
    assert parse_time(1733893009419) == pytest.approx(1733893009.419)
    assert parse_time(1733893009419000) == pytest.approx(1733893009.419)
    for wrong in ("soon", "", -5, "1969-12-31", "0001-01-01T00:00:00+14:00", True, None, float("nan"), "inf"):
        with pytest.raises(BadLine):
            parse_time(wrong)


def test_imports_of_the_first_format_are_known_after_its_migration(tmp_path: Path) -> None:
    give(tmp_path, LOG)
    connection = sqlite3.connect(tmp_path / "demand.db")
    plain = hashlib.blake2b(LOG.encode(), digest_size=16).digest()
    head = hashlib.blake2b(LOG.encode()[:64], digest_size=16).digest()
    connection.execute("UPDATE checkpoints SET digest = ?", (plain,))
    connection.execute("UPDATE imports SET head = ?", (head,))
    connection.executescript("DROP TABLE traces; ALTER TABLE ranks DROP COLUMN last_at; PRAGMA user_version = 1;")
    connection.close()
    assert give(tmp_path, LOG).state == "known"
    assert give(tmp_path, LOG + "more\n").lines == 1
