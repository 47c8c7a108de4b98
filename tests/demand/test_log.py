"""The demand log: sums that do not depend on order, fading with time, and texts kept only when often enough asked."""

from __future__ import annotations

import math
import random
import sqlite3
import tempfile
import threading
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bowerbird.demand.events import Event, QueryAsked, ResultClicked, ResultShown, normalise_query
from bowerbird.demand.log import DemandLog
from bowerbird.demand.pruning import KEEP_S, sweep
from bowerbird.demand.tally import BIN_S, add_sums, decay
from bowerbird.model.errors import FolderError

HALF_LIFE_S = 1000.0
NOW = 1_700_000_000.0

TEXTS = st.sampled_from(["red car", "Red  Car", "blue", "café", "a b c", "rare thing", ""])
URLS = st.sampled_from(["http://a.test/", "http://a.test/x", "http://b.test/"])
TIMES = st.floats(NOW - 50 * HALF_LIFE_S, NOW, allow_nan=False)
EVENTS = st.one_of(
    st.builds(QueryAsked, TEXTS, TIMES, st.integers(1, 5), st.none() | st.integers(0, 9)),
    st.builds(ResultShown, TEXTS, URLS, st.integers(1, 4), TIMES),
    st.builds(ResultClicked, st.none() | TEXTS, URLS, st.none() | st.integers(1, 4), TIMES, st.integers(1, 3)),
)


def open_log(folder: Path, **options: int) -> DemandLog:
    return DemandLog.open(folder / "demand.db", write=True, half_life_s=HALF_LIFE_S, **options)


def contents(log: DemandLog) -> tuple[object, ...]:
    """Everything a log says, in a form that can be compared; weights rounded."""
    queries = {
        q.text: (q.count, q.impressions, q.clicks, q.results, q.last_at, _short(q.weight)) for q in log.queries(NOW)
    }
    ranks = log.rank_counts()
    rows = sorted(zip(ranks.rank.tolist(), ranks.impressions.tolist(), ranks.clicks.tolist(), strict=True))
    bins = {url: log.click_bins(url) for url in ("http://a.test/", "http://a.test/x", "http://b.test/")}
    clicks = {url: _short(weight) for url, weight in log.page_clicks(NOW)}
    return queries, rows, bins, clicks, log.totals(), log.activity(0, NOW)


def _short(value: float) -> float:
    return float(f"{value:.9g}")


@settings(max_examples=40, deadline=None)
@given(st.lists(EVENTS, max_size=25), st.randoms(use_true_random=False), st.integers(1, 4))
def test_order_and_batches_change_nothing(events: list[Event], rng: random.Random, parts: int) -> None:
    shuffled = events[:]
    rng.shuffle(shuffled)
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        with open_log(Path(one), min_occurrences=1) as log:
            log.record(events)
            whole = contents(log)
        with open_log(Path(other), min_occurrences=1) as log:
            for part in range(parts):
                log.record(shuffled[part::parts])
            assert contents(log) == whole


@settings(max_examples=40, deadline=None)
@given(st.lists(EVENTS, max_size=25), st.integers(1, 4))
def test_counts_are_conserved(events: list[Event], least: int) -> None:
    asked: Counter[str] = Counter()
    for event in events:
        if isinstance(event, QueryAsked) and event.text:
            asked[normalise_query(event.text)] += event.count
    shown = sum(isinstance(event, ResultShown) and bool(event.query) for event in events)
    clicks = sum(event.count for event in events if isinstance(event, ResultClicked))
    with tempfile.TemporaryDirectory() as folder, open_log(Path(folder), min_occurrences=least) as log:
        log.record(events)
        totals = log.totals()
        assert (totals.asked, totals.impressions, totals.clicks) == (asked.total(), shown, clicks)
        known = {query.text: query.count for query in log.queries(NOW)}
        assert known == {text: count for text, count in asked.items() if count >= least}
        assert sum(
            n for url in ("http://a.test/", "http://a.test/x", "http://b.test/") for _, n in log.click_bins(url)
        ) == (clicks)
        assert sum(bin_[1] for bin_ in log.activity(0, NOW)) == asked.total()


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(TIMES, st.integers(1, 9)), min_size=1, max_size=20), st.floats(0, 10 * HALF_LIFE_S))
def test_weights_are_the_sum_of_what_is_left(times: list[tuple[float, int]], later_s: float) -> None:
    with tempfile.TemporaryDirectory() as folder, open_log(Path(folder), min_occurrences=1) as log:
        for at, count in times:
            log.record([QueryAsked("q", at, count)])
        expected = math.fsum(count * 2.0 ** (-(NOW - at) / HALF_LIFE_S) for at, count in times)
        (found,) = log.queries(NOW)
        assert found.weight == pytest.approx(expected, rel=1e-9)
        # looking later only scales: the order of queries cannot change by waiting
        (later,) = log.queries(NOW + later_s)
        assert later.weight == pytest.approx(expected * 2.0 ** (-later_s / HALF_LIFE_S), rel=1e-9)
        (halved,) = log.queries(NOW + HALF_LIFE_S)
        assert halved.weight == pytest.approx(found.weight / 2, rel=1e-12)


@given(st.tuples(st.integers(0, 9), st.floats(0, 9), TIMES), st.tuples(st.integers(0, 9), st.floats(0, 9), TIMES))
def test_sums_commute(one: tuple[int, float, float], other: tuple[int, float, float]) -> None:
    assert add_sums(one, other, HALF_LIFE_S) == pytest.approx(add_sums(other, one, HALF_LIFE_S))


def test_decay_has_no_overflow() -> None:
    assert decay(-1e12, 1.0) == math.inf
    assert decay(1e12, 1.0) == 0.0


@settings(max_examples=200)
@given(st.text(max_size=40))
def test_normalising_twice_is_normalising_once(text: str) -> None:
    once = normalise_query(text)
    assert normalise_query(once) == once
    assert "\n" not in once
    assert once == once.strip()


def files_of(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.iterdir())


def test_a_rare_query_is_nowhere_on_the_disk(tmp_path: Path) -> None:
    rare, often = "my very own hidden illness", "weather tomorrow"
    with open_log(tmp_path, min_occurrences=2) as log:
        log.record([QueryAsked(rare, NOW, results=3), QueryAsked(often, NOW), QueryAsked(often, NOW)])
        log.record([ResultShown(rare, "http://a.test/", 1, NOW), ResultClicked(rare, "http://a.test/", 1, NOW)])
        assert often.encode() in files_of(tmp_path)  # the log beside the database included
        for word in rare.split():
            assert len(word) < 5 or word.encode() not in files_of(tmp_path)
        log.flush()
        assert rare.encode() not in files_of(tmp_path)
        assert log.totals().asked == 3
        assert [query.text for query in log.queries(NOW)] == [often]
        log.record([QueryAsked(rare.upper(), NOW + 1)])
        assert rare.encode() in files_of(tmp_path)
        (found,) = [query for query in log.queries(NOW + 1) if query.text == rare]
        assert (found.count, found.impressions, found.clicks, found.results) == (2, 1, 1, 3)
    assert rare.encode() in files_of(tmp_path)


def test_a_raised_threshold_forgets_texts(tmp_path: Path) -> None:
    with open_log(tmp_path, min_occurrences=2) as log:
        log.record([QueryAsked("asked only twice", NOW, 2), QueryAsked("asked five times", NOW, 5)])
    with open_log(tmp_path, min_occurrences=3) as log:
        assert [query.text for query in log.queries(NOW)] == ["asked five times"]
    assert b"asked only twice" not in files_of(tmp_path)
    assert b"asked five times" in files_of(tmp_path)


def test_hashes_differ_between_databases(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    with open_log(tmp_path / "a") as one, open_log(tmp_path / "b") as other:
        assert one.key_of("cat") != other.key_of("cat")
        assert one.signing_key("clicks") != one.signing_key("other")
        kept = one.key_of("cat"), one.signing_key("clicks")
    with open_log(tmp_path / "a") as again:
        assert (again.key_of("cat"), again.signing_key("clicks")) == kept
        assert again.key_of.many(["cat", "dog"]) == [again.key_of("cat"), again.key_of("dog")]


def test_a_missing_log_reads_as_empty(tmp_path: Path) -> None:
    with DemandLog.open(tmp_path / "demand.db", write=False) as log:
        assert log.queries(NOW) == []
        assert log.page_clicks(NOW) == []
        assert log.click_bins("http://a.test/") == []
        assert len(log.rank_counts().rank) == 0
        assert log.totals().asked == 0
        with pytest.raises(FolderError, match="not open for writing"):
            log.record([QueryAsked("x", NOW)])
    assert list(tmp_path.iterdir()) == []


def test_open_refuses_what_is_not_a_log(tmp_path: Path) -> None:
    with pytest.raises(FolderError, match="no such folder"):
        DemandLog.open(tmp_path / "none" / "demand.db", write=True)
    path = tmp_path / "demand.db"
    path.write_bytes(b"not a database, but long enough to be looked at as if it were one" * 20)
    with pytest.raises(FolderError, match="cannot be used"):
        DemandLog.open(path, write=False)
    path.unlink()
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    for write in (False, True):
        with pytest.raises(FolderError, match="newer Bowerbird"):
            DemandLog.open(path, write=write)


def test_a_failed_batch_leaves_nothing(tmp_path: Path) -> None:
    with open_log(tmp_path, min_occurrences=1) as log:
        tally = log.tally()
        tally.add(QueryAsked("x", NOW))

        def fail(connection: sqlite3.Connection) -> None:
            raise RuntimeError("killed")

        with pytest.raises(RuntimeError):
            log.apply(tally, fail)
        assert log.totals().asked == 0
        log.apply(tally)
        assert log.totals().asked == 1


def test_several_writers(tmp_path: Path) -> None:
    def write(number: int) -> None:
        with open_log(tmp_path) as log:
            for step in range(20):
                log.record([QueryAsked("same", NOW + step), QueryAsked(f"own {number}", NOW, 2)])

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with DemandLog.open(tmp_path / "demand.db", write=False) as log:
        assert {query.text: query.count for query in log.queries(NOW)} == {
            "same": 80,
            **{f"own {number}": 40 for number in range(4)},
        }


def test_bins_are_of_twenty_minutes(tmp_path: Path) -> None:
    url, start = "http://a.test/", (NOW // BIN_S) * BIN_S
    with open_log(tmp_path) as log:
        log.record([ResultClicked("q", url, 1, start + second) for second in (0, 1199.9, 1200)])
        assert log.click_bins(url) == [(start, 2), (start + 1200, 1)]
        assert log.activity(start, start + 1200) == [(start, 0, 2), (start + 1200, 0, 1)]


def test_queries_are_sorted_and_limited(tmp_path: Path) -> None:
    with open_log(tmp_path) as log:
        log.record([QueryAsked(text, NOW, 3) for text in ("c", "a", "b")])
        log.record([QueryAsked("old", NOW - 10 * HALF_LIFE_S, 100), QueryAsked("new", NOW, 4)])
        assert [query.text for query in log.queries(NOW)] == ["new", "a", "b", "c", "old"]
        assert [query.text for query in log.queries(NOW, 2)] == ["new", "a"]


@settings(max_examples=60, deadline=None)
@given(
    st.dictionaries(
        st.text("abžé東", min_size=1, max_size=3),
        st.tuples(st.integers(1, 4), st.integers(0, 3) | st.floats(0, 60)),
        max_size=25,
    ),
    st.integers(-1, 30),
)
def test_a_limit_takes_the_first_of_all(asked: dict[str, tuple[int, float]], limit: int) -> None:
    with tempfile.TemporaryDirectory() as folder, open_log(Path(folder), min_occurrences=1) as log:
        # powers of two at whole half-lives: weights that are equal though their parts are not
        log.record([QueryAsked(text, NOW - lives * HALF_LIFE_S, 2**power) for text, (power, lives) in asked.items()])
        whole = log.queries(NOW)
        assert [query.text for query in whole] == [
            query.text for query in sorted(whole, key=lambda query: (-query.weight, query.text))
        ]
        assert log.queries(NOW, limit) == whole[: max(0, limit)]
        texts, weights = log.query_columns(NOW, limit)
        assert set(texts) == {query.text for query in whole[: max(0, limit)]}
        assert len(weights) == len(texts)


def test_a_limit_makes_no_object_for_every_query(tmp_path: Path) -> None:
    with open_log(tmp_path) as log:
        log.record([QueryAsked(f"query {number}", NOW - number, 3) for number in range(20_000)])
        calls: list[float] = []

        def counted(age_s: float) -> float:
            calls.append(age_s)
            return decay(age_s, HALF_LIFE_S)

        connection = log.connection
        assert connection is not None
        connection.create_function("decay", 1, counted)
        assert [query.text for query in log.queries(NOW, 3)] == ["query 0", "query 1", "query 2"]
        assert len(calls) < 100


def old_and_new(log: DemandLog) -> None:
    old = NOW - KEEP_S - 86_400
    log.record(
        [
            event
            for at, name in ((old, "old"), (NOW, "new"))
            for event in (
                QueryAsked(name, at, 3),
                ResultShown(name, f"http://{name}.test/", 1, at),
                ResultShown("new", f"http://{name}.test/", 2, at),
                ResultClicked(name, f"http://{name}.test/", 1, at),
            )
        ]
    )


def sizes(log: DemandLog) -> dict[str, int]:
    connection = log.connection
    assert connection is not None
    tables = ("queries", "pages", "ranks", "click_bins", "activity")
    return {table: connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in tables}


def test_what_is_two_years_old_is_forgotten(tmp_path: Path) -> None:
    with open_log(tmp_path) as log:
        old_and_new(log)  # the first batch after opening sweeps
        assert sizes(log) == {"queries": 1, "pages": 1, "ranks": 2, "click_bins": 1, "activity": 1}
        assert [query.text for query in log.queries(NOW)] == ["new"]
        assert [url for url, _ in log.page_clicks(NOW)] == ["http://new.test/"]


def test_what_still_counts_is_kept_however_old(tmp_path: Path) -> None:
    with DemandLog.open(tmp_path / "demand.db", write=True, half_life_s=KEEP_S) as log:
        old_and_new(log)
        assert {query.text for query in log.queries(NOW)} == {"old", "new"}
        assert sizes(log)["ranks"] == 2  # which have no weight


def test_an_old_log_alone_is_whole(tmp_path: Path) -> None:
    with open_log(tmp_path) as log:
        log.record([QueryAsked("long ago", 1_000_000.0, 3), ResultShown("long ago", "http://a.test/", 1, 1_000_000.0)])
        assert sizes(log)["ranks"] == 1
        assert [query.text for query in log.queries(NOW)] == ["long ago"]


@pytest.mark.parametrize("rows", [1, 3, 7, 1000])
def test_a_sweep_is_bounded_and_goes_on(tmp_path: Path, rows: int) -> None:
    with open_log(tmp_path) as log:
        log.record([QueryAsked("now", NOW)])  # this one has swept
        log.record(
            [
                ResultShown(
                    f"q{number % 5}", f"http://a.test/{number}", number % 3 + 1, NOW - (number % 2) * 2 * KEEP_S
                )
                for number in range(40)
            ]
        )
        connection = log.connection
        assert connection is not None
        assert sizes(log)["ranks"] == 40
        for _ in range(2 * 41 // rows + 2):
            before = sizes(log)
            sweep(connection, rows)
            assert all(before[table] - count <= rows for table, count in sizes(log).items())
        assert sizes(log)["ranks"] == 20
        kept = connection.execute("SELECT min(last_at) FROM ranks").fetchone()
        assert kept == (NOW,)


def test_erased_texts_leave_the_write_ahead_log_as_soon_as_no_reader_holds_it(tmp_path: Path) -> None:
    with open_log(tmp_path) as log:
        log.record([QueryAsked("asked only twice", NOW, 2)])
        reader = sqlite3.connect(tmp_path / "demand.db", isolation_level=None)
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM queries").fetchone()
        with open_log(tmp_path, min_occurrences=3) as raised:
            assert raised.queries(NOW) == []
            assert b"asked only twice" in files_of(tmp_path)  # the reader may still want it
            reader.execute("COMMIT")
            raised.flush()
            assert b"asked only twice" not in files_of(tmp_path)
        reader.close()


def downgrade(path: Path, *drop: str) -> None:
    """To the first format, as it was."""
    connection = sqlite3.connect(path)
    connection.executescript(
        "DROP TABLE traces; ALTER TABLE ranks DROP COLUMN last_at; PRAGMA user_version = 1;"
        "CREATE TABLE marks (import INTEGER, position INTEGER, digest BLOB);"
        + "".join(f"DROP TABLE {table};" for table in drop)
    )
    connection.close()


@pytest.mark.parametrize("drop", [(), ("activity",)])
def test_the_first_format_is_brought_up_to_date(tmp_path: Path, drop: tuple[str, ...]) -> None:
    with open_log(tmp_path) as log:
        log.record([QueryAsked("red", NOW, 3), ResultShown("red", "http://a.test/", 1, NOW)])
    downgrade(tmp_path / "demand.db", *drop)
    with pytest.raises(FolderError, match="brings it up to date"):
        DemandLog.open(tmp_path / "demand.db", write=False)
    with open_log(tmp_path) as log:
        log.record([QueryAsked("blue", NOW, 3), ResultShown("red", "http://a.test/", 1, NOW)])
        assert {query.text for query in log.queries(NOW)} == {"red", "blue"}
        assert log.rank_counts().impressions.tolist() == [2]
        connection = log.connection
        assert connection is not None
        assert connection.execute("SELECT last_at FROM ranks").fetchall() == [(NOW,)]


def test_a_database_without_a_table_is_refused(tmp_path: Path) -> None:
    with open_log(tmp_path):
        pass
    connection = sqlite3.connect(tmp_path / "demand.db")
    connection.execute("DROP TABLE pages")
    connection.close()
    for write in (False, True):
        with pytest.raises(FolderError, match="no table 'pages'"):
            DemandLog.open(tmp_path / "demand.db", write=write)
