"""What is forgotten is gone: from the sums, from the ledger of imports, from the disk."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from bowerbird.demand.events import QueryAsked, ResultClicked, ResultShown
from bowerbird.demand.forgetting import forget_all, forget_queries
from bowerbird.demand.log import MARK_KEY, DemandLog
from bowerbird.demand.schema import TABLES
from bowerbird.demand.workload import build_workload

NOW = 1_760_000_000.0
URL = "http://example.test/"


def fill(path: Path) -> DemandLog:
    log = DemandLog.open(path / "demand.db", write=True)
    for text in ("my hidden illness", "red fox", "rare"):
        times = 1 if text == "rare" else 3
        log.record(
            [QueryAsked(text, NOW, times), ResultShown(text, URL, 1, NOW), ResultClicked(text, URL, 1, NOW)],
        )
    return log


def disk_of(path: Path) -> bytes:
    return b"".join(file.read_bytes() for file in path.glob("demand.db*"))


def test_a_query_goes_and_the_others_stay(tmp_path: Path) -> None:
    with fill(tmp_path) as log:
        assert b"hidden illness" in disk_of(tmp_path)
        assert forget_queries(log, [" My hidden ILLNESS", "unheard of"]) == (["unheard of"], True)
        assert [query.text for query in log.queries(NOW)] == ["red fox"]
        assert len(log.rank_counts().query) == 2
        assert (log.totals().asked, log.totals().distinct, log.totals().clicks) == (4, 2, 3)
        assert b"hidden illness" not in disk_of(tmp_path)
        assert b"red fox" in disk_of(tmp_path)
        assert forget_queries(log, ["my hidden illness"]) == (["my hidden illness"], True)


def test_a_query_too_rare_to_be_kept_by_text_goes_too(tmp_path: Path) -> None:
    with fill(tmp_path) as log:
        assert forget_queries(log, ["rare"]) == ([], True)
        assert log.totals().distinct == 2
        log.record([QueryAsked("rare", NOW)])
        assert "rare" not in [query.text for query in log.queries(NOW)]  # its count begins anew


def test_everything_goes(tmp_path: Path) -> None:
    with fill(tmp_path) as log:
        assert forget_all(log) == ([], True)
        assert (log.totals().asked, log.totals().distinct, log.totals().clicks) == (0, 0, 0)
        assert log.connection is not None
        for table in TABLES - {"meta"}:
            assert log.connection.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,), table
        assert b"hidden illness" not in disk_of(tmp_path)
        assert URL.encode() not in disk_of(tmp_path)
        log.record([QueryAsked("red fox", NOW, 2)])
        assert [query.count for query in log.queries(NOW)] == [2]


def test_a_reader_delays_the_erasing_and_it_is_said(tmp_path: Path) -> None:
    with fill(tmp_path) as log:
        reader = sqlite3.connect(tmp_path / "demand.db", isolation_level=None)
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM queries").fetchone()
        assert forget_queries(log, ["my hidden illness"]) == ([], False)
        assert [query.text for query in log.queries(NOW)] == ["red fox"]
        reader.close()
    DemandLog.open(tmp_path / "demand.db", write=True).close()
    assert b"hidden illness" not in disk_of(tmp_path)


def test_with_what_is_forgotten_goes_the_key_of_marks_kept_elsewhere(tmp_path: Path) -> None:
    with fill(tmp_path) as log:
        keys = [log.mark_key]
        assert log.mark_key == keys[0]
        assert build_workload(log, NOW).mark_key == keys[0]
        with DemandLog.open(tmp_path / "demand.db", write=False) as reader:
            assert reader.mark_key == keys[0]
            for forget in (lambda: forget_queries(log, ["red fox"]), lambda: forget_all(log)):
                forget()
                assert log.mark_key == reader.mark_key  # of a log that is open, too
                keys.append(log.mark_key)
    assert len(set(keys)) == 3
    assert {len(key) for key in keys} == {32}
    assert not any(key in disk_of(tmp_path) for key in keys[:-1])
    assert keys[-1] in disk_of(tmp_path)


def test_a_higher_threshold_is_a_forgetting(tmp_path: Path) -> None:
    with fill(tmp_path) as log:
        key = log.mark_key
    with DemandLog.open(tmp_path / "demand.db", write=True, min_occurrences=2) as log:
        assert log.mark_key == key
    with DemandLog.open(tmp_path / "demand.db", write=True, min_occurrences=5) as log:
        assert log.mark_key != key


def test_a_log_without_a_key_for_marks_gets_one_when_it_is_written_to(tmp_path: Path) -> None:
    with fill(tmp_path) as log:
        assert log.connection is not None
        log.connection.execute("DELETE FROM meta WHERE key = ?", (MARK_KEY,))
    with DemandLog.open(tmp_path / "demand.db", write=False) as log:
        derived = log.mark_key
        assert derived == log.mark_key
        assert len(derived) == 32
    with DemandLog.open(tmp_path / "demand.db", write=True) as log:
        assert log.mark_key != derived
