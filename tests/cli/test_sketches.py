"""Sketches of other people's graphs, by the local engine; tests/cluster has Spark beside it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.conftest import Command
from tests.cli.test_rank import write

LINKS = [
    ("home", "red car"),
    ("home", "blue%20car"),
    ("home", "old red car"),
    ("news", "red car"),
    ("news", "x1"),
    ("old red car", "x1"),
]
QUERIES = [("red car", 5), ("car", 3), ("bike", 2), ("unknown words", 9), ("!!", 1)]
ANCHORS = [("x1", "my new bike"), ("x1", "bike")]


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    return {
        "--links": write(tmp_path / "links.tsv", LINKS, "source\ttarget"),
        "--queries": write(tmp_path / "queries.tsv", QUERIES, "query\tfrequency"),
        "--anchors": write(tmp_path / "anchors.tsv", ANCHORS, "target\tanchor"),
    }


def run(command: Command, files: dict[str, Path], *more: object) -> dict[str, dict[str, float]]:
    ran = command("sketches", *(word for pair in files.items() for word in pair), "--json", *more)
    assert ran.code == 0, ran.err
    return {row.pop("page"): row for row in json.loads(ran.out)["rows"]}


def test_impact_is_the_frequency_of_queries_that_a_page_is_seen_for(files: dict[str, Path], command: Command) -> None:
    found = run(command, files, "--top", 1)
    # by in-links: red car has two, each other one one; "old red car" is crawled, as it links
    assert found == {
        "red car": {"impact": 8.0, "queries": 2, "score": 3.0},
        "x1": {"impact": 2.0, "queries": 1, "score": 3.0},
        "blue%20car": {"impact": 0.0, "queries": 1, "score": 2.0},
    }
    assert run(command, files, "--top", 3)["blue%20car"]["impact"] == 3.0


def test_crawled_pages_compete_and_scores_decide(files: dict[str, Path], command: Command, tmp_path: Path) -> None:
    scores = write(tmp_path / "scores.tsv", [("old red car", 9), ("red car", 1), ("blue%20car", 2)], "page\tscore")
    found = run(command, files | {"--scores": scores}, "--top", 1)
    assert {page: row["impact"] for page, row in found.items()} == {"red car": 0.0, "blue%20car": 0.0}
    crawled = write(tmp_path / "crawled.tsv", [("home",), ("news",)], "page")
    found = run(command, files | {"--scores": scores, "--crawled": crawled}, "--top", 1)
    assert found["old red car"]["impact"] == 8.0


def test_part_of_the_words_will_do_with_rho(files: dict[str, Path], command: Command) -> None:
    assert run(command, files, "--rho", 0.3)["blue%20car"]["queries"] == 2
    ran = command("sketches", *(word for pair in files.items() for word in pair), "--rho", "0")
    assert ran.code == 2


def test_lists_are_the_top_of_every_query(files: dict[str, Path], command: Command, tmp_path: Path) -> None:
    lists, out = tmp_path / "lists.tsv", tmp_path / "impact.tsv"
    ran = command(
        "sketches", *(word for pair in files.items() for word in pair), "--lists", lists, "--out", out, "-n", 1
    )
    assert ran.code == 0, ran.err
    rows = [line.split("\t") for line in lists.read_text(encoding="utf-8").splitlines()]
    assert rows[0] == ["query", "rank", "page", "score", "crawled"]
    assert rows[1:3] == [["red car", "1", "red car", "3.0", "False"], ["red car", "2", "old red car", "2.0", "True"]]
    assert [row[0] for row in rows[3:]] == ["car"] * 3 + ["bike"]
    assert len(out.read_text(encoding="utf-8").splitlines()) == 2


def test_queries_without_words_are_refused(files: dict[str, Path], command: Command, tmp_path: Path) -> None:
    signs = write(tmp_path / "signs.tsv", [("!!", 1), ("--", 2)], "query\tfrequency")
    ran = command("sketches", "--links", files["--links"], "--queries", signs)
    assert ran.code == 2
    assert "none of the queries has a word" in ran.err
