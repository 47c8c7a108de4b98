"""Logs as frequencies that fade, by the local engine; tests/cluster has Spark beside it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.conftest import Command
from tests.cli.test_rank import write

from bowerbird.demand.events import QueryAsked
from bowerbird.demand.log import DemandLog
from bowerbird.demand.records import parse_time

DAY_S = 86_400.0
LOG = [
    ("Red  Car", "2026-01-01", 4),
    ("red car", "2026-01-31", 1),
    ("bike", "2026-01-31T12:00:00Z", 2),
    ("rare", 1769817600, 1),
    ("bad", "yesterday", 3),
]


def rows_of(command: Command, *words: object) -> list[dict[str, object]]:
    ran = command("queries", "fade", *words, "--json")
    assert ran.code == 0, ran.err
    return json.loads(ran.out)["rows"]  # type: ignore[no-any-return]


def test_counts_halve_with_every_half_life(tmp_path: Path, command: Command) -> None:
    log = write(tmp_path / "log.tsv", LOG, "query\ttime\tcount")
    ran = command("queries", "fade", log, "--at", "2026-01-31", "--half-life", "30d", "--json")
    assert "1 of 5 times" in ran.err
    found = {row["query"]: (row["frequency"], row["count"]) for row in json.loads(ran.out)["rows"]}
    assert found == {"red car": (3.0, 5.0), "bike": (pytest.approx(2 * 2 ** (0.5 / 30)), 2.0)}


def test_it_is_what_a_crawl_s_own_log_says(tmp_path: Path, command: Command) -> None:
    log = write(tmp_path / "log.tsv", LOG[:4], "query\ttime\tcount")
    now = parse_time("2026-03-01")
    with DemandLog.open(tmp_path / "demand.db", write=True, half_life_s=20 * DAY_S) as kept:
        kept.record(QueryAsked(text, parse_time(at), count) for text, at, count in LOG[:4])
        want = {query.text: query.weight for query in kept.queries(now)}
    found = {
        row["query"]: row["frequency"] for row in rows_of(command, log, "--at", "2026-03-01", "--half-life", "20d")
    }
    assert found == pytest.approx(want, rel=1e-9)
    assert len(rows_of(command, log, "--min-count", 1)) == len(want) + 1


def test_clicks_are_by_page_and_ready_for_rank(tmp_path: Path, command: Command) -> None:
    log = write(tmp_path / "log.csv", [("a", "2026-01-01", 8), ("a", "2026-01-31", 1)], "page,time,clicks", ",")
    out = tmp_path / "clicks.tsv"
    ran = command("queries", "fade", log, "--clicks", "--at", "2026-01-31", "--out", out)
    assert ran.code == 0, ran.err
    assert out.read_text(encoding="utf-8") == "page\tclicks\tcount\na\t5.0\t9.0\n"


def test_times_that_are_none_are_refused(tmp_path: Path, command: Command) -> None:
    log = write(tmp_path / "log.tsv", [("a", "never", 1), ("b", "soon", 1)], "query\ttime\tcount")
    ran = command("queries", "fade", log)
    assert ran.code == 2
    assert "2 of 2 times are neither numbers nor dates" in ran.err
    ran = command("queries", "fade", log, "--at", "noon")
    assert ran.code == 2
    assert "--at" in ran.err
