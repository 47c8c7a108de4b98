"""Our archive read by other tools, and other tools' archives, good and broken, read by us."""

from __future__ import annotations

import gzip
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from fastwarc.warc import ArchiveIterator as FastArchiveIterator
from warcio.archiveiterator import ArchiveIterator

from bowerbird.store.archive import ArchiveWriter
from bowerbird.store.archive_reader import iterate_exchanges, iterate_file, iterate_records
from bowerbird.store.cdxj import cdxj_line

HTML = b"<!doctype html><title>caf\xc3\xa9</title><p>" + b"hello world " * 500


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    about = {"software": "bowerbird", "user_agent": "bird"}
    answers = [
        (b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n", HTML),
        (b"HTTP/2 200\r\ncontent-type: text/html\r\ncontent-encoding: gzip\r\n\r\n", gzip.compress(HTML)),
        (b"HTTP/1.1 404 Not Found\r\nContent-Length: 10\r\n\r\n", b""),
    ]
    with ArchiveWriter(tmp_path, "w0", **about) as writer:
        for number, (headers, body) in enumerate(answers):
            writer.write_exchange(
                url=f"http://example.org/{number}",
                fetched_at=1_700_000_000.125,
                remote_ip="192.0.2.1",
                request_block=b"GET / HTTP/1.1\r\nHost: example.org\r\n\r\n",
                header_block=headers,
                raw_body=body,
                metadata={"outcome": "ok", "title": "café"},
                truncated="length" if number == 0 else "",
            )
        writer.write_revisit(
            url="http://example.org/0",
            fetched_at=1_700_000_100.0,
            remote_ip="",
            request_block=b"GET / HTTP/1.1\r\nHost: example.org\r\n\r\n",
            header_block=b"HTTP/1.1 304 Not Modified\r\nETag: a\r\n\r\n",
            metadata={},
            refers_to_at=1_700_000_000.125,
        )
    return tmp_path


def test_warcio_reads_what_we_write_and_verifies_the_digests(archive: Path) -> None:
    (path,) = archive.iterdir()
    seen = []
    bodies = []
    with path.open("rb") as stream:
        for record in ArchiveIterator(stream, check_digests="raise"):
            body = record.content_stream().read()
            assert record.rec_type == "revisit" or record.digest_checker.passed is not False
            seen.append((record.rec_type, record.rec_headers.get_header("WARC-Target-URI")))
            if record.rec_type == "response":
                bodies.append(body)
                assert record.digest_checker.passed
    page = [("response", 0), ("request", 0), ("metadata", 0)]
    expected = [(kind, f"http://example.org/{number}") for number in range(3) for kind, _ in page]
    revisit = [(kind, "http://example.org/0") for kind in ("revisit", "request", "metadata")]
    assert seen == [("warcinfo", None), *expected, *revisit]
    assert bodies == [HTML, HTML, b""]


def test_every_record_has_the_fields_the_standard_asks_for(archive: Path) -> None:
    (path,) = archive.iterdir()
    ids = set()
    with path.open("rb") as stream:
        for record in ArchiveIterator(stream):
            headers = record.rec_headers
            assert headers.protocol == "WARC/1.1"
            digest = "WARC-Payload-Digest" if record.rec_type == "response" else "WARC-Block-Digest"
            for name in ("WARC-Record-ID", "WARC-Date", "WARC-Type", "Content-Length", digest):
                assert headers.get_header(name)
            ids.add(headers.get_header("WARC-Record-ID"))
            if record.rec_type in {"request", "metadata"}:
                assert headers.get_header("WARC-Concurrent-To") in ids
            if record.rec_type == "response":
                assert record.http_headers.get_header("Transfer-Encoding") is None
    assert len(ids) == 13


def verify(record: Any) -> bool:
    """A response is sealed by its payload digest, every other record by its block digest."""
    if record.headers.get("WARC-Payload-Digest") is None:
        return bool(record.verify_block_digest())
    record.parse_http()
    return bool(record.verify_payload_digest())


def test_fastwarc_reads_what_we_write_and_verifies_the_digests(archive: Path) -> None:
    (path,) = archive.iterdir()
    offsets = {record.offset for record in iterate_records(archive)}
    with path.open("rb") as stream:
        records = [
            (str(record.record_type), record.stream_pos, verify(record))
            for record in FastArchiveIterator(stream, parse_http=False)
        ]
    assert len(records) == 13
    assert all(valid for _, _, valid in records)
    assert {position for kind, position, _ in records if kind in {"response", "revisit"}} == offsets


EXPECTED = {
    # file: (responses and revisits that are whole, places where something had to be skipped)
    "example.warc": (2, 0),
    "example.warc.gz": (2, 0),
    "example-bad-non-chunked.warc.gz": (2, 0),  # one gzip member for all records
    "example-bad.warc.gz.bad": (3, 0),  # the same
    "example-digest.warc": (0, 0),  # digests in base 32, 64 and its variant for URLs
    "example-iana.org-chunked.warc": (1, 0),
    "example-resource.warc.gz": (0, 0),
    "example-space-in-target-uri.warc.gz": (0, 0),
    "example-trunc.warc": (0, 2),  # Content-Length is two too small: wrong digest, then two stray bytes
    "example-wget-bad-target-uri.warc.gz": (1, 0),
    "example-wrong-chunks.warc.gz": (0, 2),  # a record broken over two gzip members
    "post-test.warc.gz": (3, 0),
    "bad.arc": (0, 1),
    "example.arc": (0, 1),
    "example.arc.gz": (0, 2),
    "example-space-in-url.arc": (0, 1),
    "LICENSE": (0, 1),
}


@pytest.mark.parametrize("name", EXPECTED)
def test_archives_of_others(shared_data: Path, name: str) -> None:
    damage: Counter[str] = Counter()
    records = list(iterate_file(shared_data / "conformance" / "warc" / name, damage))
    whole, damaged = EXPECTED[name]
    assert len(records) == whole
    assert damage[name] == damaged
    assert all(cdxj_line(record).endswith("}\n") for record in records)


def test_every_truncation_of_a_good_archive_is_read_without_error(shared_data: Path, tmp_path: Path) -> None:
    content = (shared_data / "conformance" / "warc" / "example.warc.gz").read_bytes()
    path = tmp_path / "cut.warc.gz"
    counts = []
    for end in range(0, len(content), 13):
        path.write_bytes(content[:end])
        counts.append(len(list(iterate_exchanges(tmp_path))))
    assert counts == sorted(counts) and counts[0] == 0 and counts[-1] == 2


def test_a_folder_of_everything(shared_data: Path, tmp_path: Path) -> None:
    for path in (shared_data / "conformance" / "warc").iterdir():
        shutil.copy(path, tmp_path / path.name)
    damage: Counter[str] = Counter()
    exchanges = list(iterate_exchanges(tmp_path, damage))
    assert len(exchanges) == sum(whole for name, (whole, _) in EXPECTED.items() if name.endswith((".warc", ".gz")))
    assert all(exchange.url.startswith(("http://", "https://")) for exchange in exchanges)
    assert damage["example-trunc.warc"] == EXPECTED["example-trunc.warc"][1]
