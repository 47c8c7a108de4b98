"""A crawl for other tools: each format is read back with a tool that is not ours."""

from __future__ import annotations

import json
import os
import pty
import shutil
import subprocess
from pathlib import Path

import pyarrow.parquet
import pytest
from tests.cli.conftest import Sample
from tests.crawl.conftest import Command
from tests.crawl.crawling import command_line
from warcio.archiveiterator import ArchiveIterator
from warcio.checker import Checker

from bowerbird.crawl import export
from bowerbird.crawl.session import create_crawl
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


# To standard output


@pytest.mark.parametrize("form", export.FORMATS)
def test_a_dash_is_standard_output(sample: Sample, command: Command, tmp_path: Path, form: str) -> None:
    out = tmp_path / "out.warc.gz"
    assert command("export", sample.root, "--format", form, out).code == 0
    done = subprocess.run(
        command_line("export", sample.root, "--format", form, "-"), capture_output=True, cwd=tmp_path, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == out.read_bytes()
    assert done.stderr.startswith(b"-: ")
    assert list(tmp_path.iterdir()) == [out]


@pytest.mark.parametrize("form", export.FORMATS)
def test_a_terminal_gets_no_binary(sample: Sample, tmp_path: Path, form: str) -> None:
    root = tmp_path / "crawl"
    create_crawl(root, ["http://example.org/"], {"crawl": {"contact": "me@example.org"}})
    main, follower = pty.openpty()
    try:
        done = subprocess.run(
            command_line("export", root, "--format", form, "-"),
            stdout=follower,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    finally:
        os.close(follower)
        os.close(main)
    assert done.returncode == (2 if form in ("warc", "parquet") else 0), done.stderr
    assert ("is a terminal" in done.stderr) == (form in ("warc", "parquet"))


def test_a_reader_that_leaves_early_is_no_error(sample: Sample) -> None:
    """`bowerbird export DIR - --format jsonl | head -1`."""
    with subprocess.Popen(
        command_line("export", sample.root, "--format", "jsonl", "-"), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""


# What an export must not do


def _copy(sample: Sample, tmp_path: Path) -> Path:
    root = tmp_path / "crawl"
    shutil.copytree(sample.root, root)
    return root


def _contents(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    ("form", "place"),
    [
        ("warc", "archive"),
        ("warc", "."),
        ("warc", "archive/one.warc.gz"),
        ("jsonl", "state.db"),
        ("cdxj", "bowerbird.toml"),
        ("parquet", "index/../new"),
    ],
)
def test_nothing_is_written_into_a_crawl_folder(
    sample: Sample, command: Command, tmp_path: Path, form: str, place: str
) -> None:
    root = _copy(sample, tmp_path)
    (tmp_path / "link").symlink_to(root)
    before = _contents(root)
    for crawl, out in ((root, root / place), (root, tmp_path / "link" / place), (sample.root, root / place)):
        ran = command("export", crawl, "--format", form, out)
        assert ran.code == 2
        assert "inside the crawl folder" in ran.err
        assert str(out) in ran.err
    after = _contents(root)
    assert {name: after[name] for name in before} == before
    assert {name for name in after if not name.startswith("state.db-")} <= set(before)


@pytest.mark.parametrize("form", ["cdxj", "parquet", "jsonl", "warc"])
def test_an_export_that_fails_leaves_what_was_there(
    sample: Sample, command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    def fail(*given: object, **named: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(export, {"cdxj": "write_cdxj", "warc": "_copy_start"}.get(form, "_content"), fail)
    out = tmp_path / "out.warc.gz"
    out.write_text("the last export")
    ran = command("export", sample.root, "--format", form, out)
    assert ran.code == 2
    assert "No space left" in ran.err
    assert out.read_text() == "the last export"
    assert list(tmp_path.iterdir()) == [out]


@pytest.mark.parametrize("form", ["warc", "cdxj"])
def test_a_missing_archive_file_is_said_so(sample: Sample, command: Command, tmp_path: Path, form: str) -> None:
    root = _copy(sample, tmp_path)
    file = min((root / "archive").glob("*.warc.gz"))
    file.unlink()
    ran = command("export", root, "--format", form, tmp_path / "out")
    assert ran.code == 2
    assert f"archive file {file} is missing" in ran.err
    assert "cannot be written" not in ran.err
    assert not (tmp_path / "out").exists()


def test_a_folder_in_place_of_a_file(sample: Sample, command: Command, tmp_path: Path) -> None:
    ran = command("export", sample.root, "--format", "jsonl", tmp_path)
    assert ran.code == 2
    assert f"{tmp_path}: is a folder" in ran.err


def test_the_text_of_a_forgotten_page_is_not_exported(sample: Sample, command: Command, tmp_path: Path) -> None:
    root = _copy(sample, tmp_path)
    url = sample.world.seeds()[0]
    assert command("forget", root, url).code == 0
    assert command("export", root, "--format", "jsonl", tmp_path / "out").code == 0
    rows = {row["url"]: row for row in map(json.loads, (tmp_path / "out").read_text().splitlines())}
    assert rows[url]["state"] == "forgotten"
    assert rows[url]["title"] is None
    assert rows[url]["text"] is None
    assert any(row["text"] for row in rows.values())


def test_cdxj_ends_where_the_archive_is_acknowledged(sample: Sample, command: Command, tmp_path: Path) -> None:
    root = _copy(sample, tmp_path)
    assert command("export", root, "--format", "cdxj", tmp_path / "before").code == 0
    file = min((root / "archive").glob("*.warc.gz"))
    file.write_bytes(file.read_bytes() * 2)  # records that a running crawl has not committed yet
    shutil.copy(file, file.with_name("unknown.warc.gz"))
    assert command("export", root, "--format", "cdxj", tmp_path / "after").code == 0
    assert (tmp_path / "after").read_text() == (tmp_path / "before").read_text()
