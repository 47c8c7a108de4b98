"""`bowerbird queries`: import, top, visibility, for people and for programs."""

from __future__ import annotations

import gzip
import math
import os
import pty
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import orjson
import pytest
from click.testing import CliRunner, Result
from tests.cli.conftest import Sample
from tests.crawl.crawling import make_crawl

from bowerbird.cli.queries import queries_command
from bowerbird.demand.events import QueryAsked, ResultClicked, ResultShown
from bowerbird.demand.log import DemandLog
from bowerbird.index.tantivy_index import TantivyIndex
from bowerbird.model.errors import BowerbirdError, ConfigError, FolderError, InputFileError


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_crawl(tmp_path / "crawl", ["http://example.test/"])


def run(*arguments: object) -> Result:
    """A command that succeeds."""
    result = CliRunner().invoke(queries_command, [str(argument) for argument in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result


def run_json(*arguments: object) -> Any:
    return orjson.loads(run(*arguments, "--json").stdout)


def test_every_part_has_help() -> None:
    for name, command in queries_command.commands.items():
        assert command.help
        assert run(name, "--help").stdout.startswith("Usage:")
        for parameter in command.params:
            if isinstance(parameter, click.Option):
                assert parameter.help, f"{name} {parameter.opts}"


def test_import_then_top(root: Path, tmp_path: Path) -> None:
    path = tmp_path / "q.tsv.gz"
    path.write_bytes(gzip.compress(b"query\tfrequency\nred car\t30\nblue\t7\nonce\t1\nbad\tx\n"))
    dry = run("import", root, path, "--dry-run")
    assert "3 of 4 lines would be imported, 1 bad." in dry.stdout
    assert "column 1 is the query, column 2 the frequency" in dry.stdout
    assert not (root / "demand.db").exists()
    done = run("import", root, path)
    assert "3 of 4 lines imported, 1 bad." in done.stdout
    assert "column 1 is the query, column 2 the frequency" in done.stdout
    assert "38 queries asked" in done.stdout
    assert "  1 bad line\n" in done.stderr
    assert "line 5: count 'x' is not a whole number" in done.stderr
    again = run("import", root, path)
    assert "imported before (5 lines); nothing new" in again.stdout
    top = run_json("top", root)
    assert (top["asked"], top["distinct"], top["known"]) == (38, 3, 2)
    assert [(row["query"], row["count"]) for row in top["queries"]] == [("red car", 30), ("blue", 7)]
    assert top["queries"][0]["frequency"] == pytest.approx(30, rel=1e-3)
    shown = run("top", root, "-n", 1).stdout
    assert "red car" in shown
    assert "blue" not in shown
    assert "1 too rare" in shown


def test_import_as_json(root: Path, tmp_path: Path) -> None:
    path = tmp_path / "q.tsv"
    path.write_text("a\nb\n")
    report = run_json("import", root, path, "--at", "2025-01-31T12:00:00Z")
    assert (report["format"], report["state"], report["lines"], report["asked"]) == ("tsv", "imported", 2, 2)
    with path.open("a") as file:
        file.write("c\n")
    assert (grown := run_json("import", root, path))["state"] == "continued"
    assert (grown["lines"], grown["lines_before"]) == (1, 2)


def test_top_counts_clicks(root: Path) -> None:
    now = time.time()
    with DemandLog.open(root / "demand.db", write=True) as log:
        log.record([QueryAsked("red", now, 4, results=12), ResultClicked("red", "http://example.test/", 1, now)])
    (row,) = run_json("top", root)["queries"]
    assert (row["results"], row["clicks"], row["clicks_per_asking"]) == (12, 1, 0.25)
    head, names, cells = run("top", root).stdout.splitlines()
    assert head == "4 queries asked, 1 distinct; 1 click"
    assert names.split() == ["frequency", "asked", "results", "clicks", "clicks/asked", "query"]
    assert cells.split()[1:] == ["4", "12", "1", "0.25", "red"]
    assert names.index("clicks/asked") + len("clicks/asked") == cells.index("0.25") + len("0.25")


@pytest.mark.parametrize(
    ("content", "said"), [("", "empty; nothing to import"), ("query\tcount\n\n", "nothing but a header or blank lines")]
)
def test_an_empty_file_gets_a_hint(root: Path, tmp_path: Path, content: str, said: str) -> None:
    path = tmp_path / "q.tsv"
    path.write_text(content)
    assert said in (text := run("import", root, path).stdout)
    assert "one query a line" in text


def test_one_is_not_many(root: Path, tmp_path: Path) -> None:
    path = tmp_path / "q.tsv"
    path.write_text("red fox\n")
    first = run("import", root, path).stdout
    assert "; 1 line imported." in first
    assert "  1 query asked\n" in first
    assert "each line is a query" in first
    assert "(1 line); nothing new" in run("import", root, path).stdout


def test_a_file_is_imported_again_on_demand(root: Path, tmp_path: Path) -> None:
    path = tmp_path / "q.tsv"
    path.write_text("red fox\t3\n")
    run("import", root, path)
    assert run_json("import", root, path, "--again", "--dry-run")["asked"] == 3
    assert run_json("import", root, path, "--again")["state"] == "imported"
    assert run_json("import", root, path)["state"] == "known"
    assert run_json("top", root)["asked"] == 6


def test_queries_are_forgotten(root: Path, tmp_path: Path) -> None:
    path = tmp_path / "q.tsv"
    path.write_text("red fox\t3\nblue\t4\ngreen\t5\n")
    run("import", root, path)
    result = run("forget", root, "--query", "Red  FOX", "--query", "red fox", "--query", "blue", "--query", "purple")
    assert result.stdout == "2 queries forgotten.\n"
    assert result.stderr == "  not in the log: purple\n"
    assert [row["query"] for row in run_json("top", root)["queries"]] == ["green"]
    assert b"red fox" not in b"".join(file.read_bytes() for file in root.glob("demand.db*"))
    assert run_json("import", root, path)["state"] == "known"
    assert run_json("forget", root, "--query", "green") == {"forgotten": 1, "unknown": [], "erased": True}


def test_everything_is_forgotten_only_on_confirmation(root: Path, tmp_path: Path) -> None:
    path = tmp_path / "q.tsv"
    path.write_text("red fox\t3\nblue\t4\n")
    run("import", root, path)
    refused = CliRunner().invoke(queries_command, ["forget", str(root), "--all"], input="n\n")
    assert refused.exit_code == 1
    assert "Forget 2 queries, 0 clicks" in refused.stderr
    assert run_json("top", root)["asked"] == 7
    agreed = CliRunner().invoke(queries_command, ["forget", str(root), "--all"], input="y\n")
    assert (agreed.exit_code, agreed.stdout) == (0, "2 queries forgotten.\n")
    assert run_json("top", root)["asked"] == 0
    assert run_json("import", root, path)["state"] == "imported"
    assert run_json("forget", root, "--all", "--yes")["forgotten"] == 2


@pytest.mark.parametrize("arguments", [(), ("--all", "--query", "x")])
def test_what_to_forget_must_be_said(root: Path, arguments: tuple[str, ...]) -> None:
    result = CliRunner().invoke(queries_command, ["forget", str(root), *arguments])
    assert result.exit_code == 2
    assert "--query TEXT (or several), or --all" in result.stderr


def test_there_may_be_nothing_to_forget(root: Path) -> None:
    assert run("forget", root, "--all").stdout == "0 queries forgotten.\n"
    assert run_json("forget", root, "--query", "x")["unknown"] == ["x"]
    assert not (root / "demand.db").exists()


def test_an_empty_log_says_what_to_do(root: Path) -> None:
    assert "queries import" in run("top", root).stdout
    assert run_json("top", root)["queries"] == []
    assert "nothing to fit" in run("visibility", root).stdout
    assert run_json("visibility", root)["fit"] is None
    assert not (root / "demand.db").exists()


def test_needy_queries_come_first(sample: Sample, tmp_path: Path) -> None:
    pytest.importorskip("bowerbird.quality.neediness")
    root = tmp_path / "crawl"
    shutil.copytree(sample.root, root)
    with TantivyIndex.open(root / "index", write=False) as index:
        words = ("the", "news", "page", "about")
        hits = {word: index.search(word, 1).total for word in words}
    known = max(hits, key=lambda word: hits[word])
    with DemandLog.open(root / "demand.db", write=True) as log:
        log.record([QueryAsked("zzqx yyvw", time.time(), 50), QueryAsked(known, time.time(), 50)])
    rows = run_json("top", root, "--needy")["queries"]
    assert len(rows) == 2
    assert rows[0]["neediness"] >= rows[1]["neediness"] >= 0
    found = {row["query"]: row for row in rows}
    assert found["zzqx yyvw"]["results"] == 0
    assert found["zzqx yyvw"]["mean_top_score"] == 0
    assert found[known]["results"] == hits[known]
    assert "neediness" in run("top", root, "--needy").stdout


def test_a_missing_result_is_counted_once(sample: Sample, tmp_path: Path) -> None:
    root = tmp_path / "crawl"
    shutil.copytree(sample.root, root)
    with TantivyIndex.open(root / "index", write=False) as index:
        pages = index.search("the", 50, snippets=False).hits
        words = {word for hit in pages for word in hit.title.lower().split() if word.isalpha()}
        answers = {word: index.search(word, 10) for word in ("the", *sorted(words))}
    few = next(word for word, answer in answers.items() if 0 < answer.total < 10)
    tops = {word: sum(hit.score for hit in answers[word].hits) / 10 for word in ("the", few)}
    with DemandLog.open(root / "demand.db", write=True) as log:
        log.record([QueryAsked(word, time.time(), 50) for word in tops])
    rows = run_json("top", root, "--needy")["queries"]
    typical = sum(tops.values()) / 2
    for row in rows:
        assert row["mean_top_score"] == pytest.approx(tops[row["query"]])
        assert row["neediness"] / row["frequency"] == pytest.approx(math.exp(-tops[row["query"]] / typical))


def test_visibility_shows_the_fit(root: Path) -> None:
    now = time.time()
    with DemandLog.open(root / "demand.db", write=True) as log:
        for turn in range(30):
            pages = [f"http://example.test/{(turn + place) % 3}" for place in range(3)]
            log.record([ResultShown("q", url, rank, now) for rank, url in enumerate(pages, 1)])
            log.record([ResultClicked("q", pages[0], 1, now)] if turn % 2 else [])
            log.record([ResultClicked("q", pages[1], 2, now)] if turn % 5 == 0 else [])
    fit = run_json("visibility", root)["fit"]
    assert [row["rank"] for row in fit["ranks"]] == [1, 2, 3]
    assert [row["impressions"] for row in fit["ranks"]] == [30, 30, 30]
    values = [row["visibility"] for row in fit["ranks"]]
    assert values[0] == 1
    assert values == sorted(values, reverse=True)
    text = run("visibility", root).stdout
    assert "100% of them of results that were seen at more than one rank" in text
    assert "beyond rank 3" in text
    assert "CTR: clicks per impression" in text


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        (("import", "{root}", "{root}/none.tsv"), InputFileError, "cannot be read"),
        (("import", "{root}", "{root}"), InputFileError, "a folder"),
        (("import", "{root}/none", "{file}"), FolderError, "no such folder"),
        (("import", "{root}", "{file}", "--format", "jsonl"), InputFileError, "not one line can be read as jsonl"),
        (("import", "{root}", "{file}", "--at", "soon"), ConfigError, "--at"),
        (("import", "{root}", "{file}", "--url-prefix", "wiki/"), ConfigError, "--url-prefix"),
        (("import", "{root}", "{file}", "--format", "clickstream"), ConfigError, "--url-prefix"),
        (("top", "{root}/none"), FolderError, "no such folder"),
        (("visibility", "{root}/none"), FolderError, "no such folder"),
    ],
)
def test_errors_are_one_line(
    root: Path, tmp_path: Path, arguments: tuple[str, ...], kind: type[BowerbirdError], message: str
) -> None:
    file = tmp_path / "q.tsv"
    file.write_text("a\t1\n")
    result = CliRunner().invoke(queries_command, [part.format(root=root, file=file) for part in arguments])
    assert isinstance(result.exception, kind)
    assert message in str(result.exception)
    assert "\n" not in str(result.exception)


def test_progress_is_shown_in_a_terminal(root: Path, tmp_path: Path) -> None:
    path = tmp_path / "q.tsv"
    path.write_text("red car\n" * 1000)
    program = "from bowerbird.cli.queries import queries_command as c; c()"
    leader, follower = pty.openpty()
    try:
        process = subprocess.Popen(
            [sys.executable, "-c", program, "import", str(root), str(path)],
            stdout=subprocess.PIPE,
            stderr=follower,
            env={**os.environ, "TERM": "xterm", "COLUMNS": "100"},
        )
        os.close(follower)
        said = b"".join(_read(leader))
        out, _ = process.communicate(timeout=30)
    finally:
        os.close(leader)
    assert process.returncode == 0
    assert b"q.tsv" in said
    assert b"1,000 lines" in said
    assert b"1,000 lines imported" in out


def _read(leader: int) -> Iterator[bytes]:
    while select.select([leader], [], [], 30)[0]:
        try:
            part = os.read(leader, 4096)
        except OSError:
            return
        if not part:
            return
        yield part
