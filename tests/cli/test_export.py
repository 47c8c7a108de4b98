"""A crawl for other tools: each format is read back with a tool that is not ours."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pyarrow.parquet
import pytest
from tests.cli.conftest import Sample
from tests.crawl.conftest import Command
from warcio.archiveiterator import ArchiveIterator
from warcio.checker import Checker

from bowerbird.model.outcome import Outcome
from bowerbird.model.url_state import UrlState


def responses(path: Path) -> dict[str, tuple[str, bytes]]:
    """URL -> (status, body) of the responses in a WARC file; every digest is checked on the way."""
    found = {}
    with path.open("rb") as stream:
        for record in ArchiveIterator(stream, check_digests="raise"):
            if record.rec_type == "response":
                body = record.content_stream().read()
                url = record.rec_headers.get_header("WARC-Target-URI")
                found[url] = (record.http_headers.get_statuscode(), body)
            else:
                record.content_stream().read()
    return found


@pytest.mark.parametrize("name", ["folder", "one.warc.gz"])
def test_warc(sample: Sample, command: Command, tmp_path: Path, name: str) -> None:
    out = tmp_path / name
    ran = command("export", sample.root, "--format", "warc", out)
    assert ran.code == 0, ran.err
    files = sorted(out.iterdir()) if out.is_dir() else [out]
    found: dict[str, tuple[str, bytes]] = {}
    for file in files:
        found |= responses(file)
        checker = Checker(type("Options", (), {"verbose": False, "inputs": [str(file)]})())
        checker.process_all()
        assert checker.exit_value == 0
    fetched = set(sample.left.fetches(Outcome.OK, Outcome.REDIRECT, Outcome.GONE))
    assert set(found) == fetched
    for url in sample.left.fetches(Outcome.OK)[:30]:
        host, _, path = url.removeprefix("http://").partition("/")
        status, body = found[url]
        assert status == "200"
        assert body == sample.world.page(host, f"/{path}", 0.0).body


def test_cdxj_lines_lead_to_their_records(sample: Sample, command: Command, tmp_path: Path) -> None:
    out = tmp_path / "index.cdxj"
    ran = command("export", sample.root, "--format", "cdxj", out)
    assert ran.code == 0, ran.err
    lines = out.read_text().splitlines()
    assert lines == sorted(lines)
    urls = []
    for line in lines:
        key, stamp, about = line.split(" ", 2)
        entry = json.loads(about)
        assert key.startswith("127,0,0,1") or key.startswith("127.0.")
        assert len(stamp) == 14
        with (sample.root / "archive" / entry["filename"]).open("rb") as stream:
            stream.seek(int(entry["offset"]))
            record = next(iter(ArchiveIterator(stream, check_digests="raise")))
            assert record.rec_headers.get_header("WARC-Target-URI") == entry["url"]
            assert record.http_headers.get_statuscode() == entry["status"]
            assert record.rec_headers.get_header("WARC-Payload-Digest") == entry["digest"]
            record.content_stream().read()
        urls.append(entry["url"])
    assert sorted(urls) == sorted(sample.left.fetches(Outcome.OK, Outcome.REDIRECT, Outcome.GONE))


def check_rows(sample: Sample, rows: list[dict[str, object]]) -> None:
    states = sample.left.states()
    assert [row["url"] for row in rows] == list(sample.left.urls().values())
    for row in rows:
        url = str(row["url"])
        assert row["state"] == states[url].name.lower()
        assert row["fetches"] == sample.left.fetches().count(url)
        assert (row["last_fetched"] is None) == (row["fetches"] == 0)
    home = next(row for row in rows if row["url"] == sample.world.seeds()[0])
    assert home["depth"] == 0
    pages = [row for row in rows if row["state"] == "fetched" and row["kind"] == "page"]
    assert len(pages) > 40
    assert all(row["title"] and row["text"] and row["language"] == "en" for row in pages)
    new = [row for row in rows if row["state"] == UrlState.NEW.name.lower()]
    assert new
    assert all(row["title"] is None and row["text"] is None for row in new)


def test_jsonl(sample: Sample, command: Command, tmp_path: Path) -> None:
    out = tmp_path / "pages.jsonl"
    ran = command("export", sample.root, "--format", "jsonl", out)
    assert ran.code == 0, ran.err
    check_rows(sample, [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()])
    assert f"{len(sample.left.urls()):,} records" in ran.out


def test_parquet(sample: Sample, command: Command, tmp_path: Path) -> None:
    out = tmp_path / "pages.parquet"
    ran = command("export", sample.root, "--format", "parquet", out)
    assert ran.code == 0, ran.err
    check_rows(sample, pyarrow.parquet.read_table(out).to_pylist())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["pages.parquet"]


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_without_text(sample: Sample, command: Command, tmp_path: Path, form: str) -> None:
    out = tmp_path / "pages"
    assert command("export", sample.root, "--format", form, "--no-text", out).code == 0
    if form == "jsonl":
        rows = [json.loads(line) for line in out.read_text().splitlines()]
    else:
        rows = pyarrow.parquet.read_table(out).to_pylist()
    assert len(rows) == len(sample.left.urls())
    assert all(row.get("text") is None for row in rows)


def test_an_unknown_format(sample: Sample, command: Command, tmp_path: Path) -> None:
    ran = command("export", sample.root, "--format", "xml", tmp_path / "out")
    assert ran.code == 2
    assert "xml" in ran.err
    assert "jsonl" in ran.err
    assert not (tmp_path / "out").exists()


def test_an_export_of_an_empty_crawl(sample: Sample, command: Command, tmp_path: Path) -> None:
    root = tmp_path / "crawl"
    assert command("init", root, "--seed", "http://example.org/").code == 0
    for form in ("warc", "cdxj", "parquet", "jsonl"):
        assert command("export", root, "--format", form, tmp_path / f"out.{form}").code == 0
    assert len((tmp_path / "out.jsonl").read_text().splitlines()) == 1
    shutil.rmtree(root)
