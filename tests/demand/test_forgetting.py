"""What is forgotten is gone: from the sums, from the ledger of imports, from the disk."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from bowerbird.demand.events import QueryAsked, ResultClicked, ResultShown
from bowerbird.demand.forgetting import forget_all, forget_queries
from bowerbird.demand.log import DemandLog
from bowerbird.demand.schema import TABLES

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
