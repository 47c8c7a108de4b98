from __future__ import annotations

import errno
import gzip
import io
import os
import zlib
from collections import Counter
from pathlib import Path

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bowerbird.model.clock import ManualClock
from bowerbird.model.errors import ArchiveError, DiskFullError
from bowerbird.store import archive
from bowerbird.store.archive import (
    ArchivePlace,
    ArchiveWriter,
    readable_header_block,
    warc_date,
)
from bowerbird.store.archive_reader import Exchange, iterate_exchanges, iterate_records, read_exchange
from bowerbird.store.archive_recovery import UNACKNOWLEDGED, set_aside_unknown, truncate_archive
from bowerbird.store.cdxj import surt, write_cdxj

HEADERS = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nTransfer-Encoding: chunked\r\n\r\n"
REQUEST = b"GET / HTTP/1.1\r\nHost: example.org\r\n\r\n"


def _open(folder: Path, **more: object) -> ArchiveWriter:
    clock = ManualClock(1_700_000_000.0)
    return ArchiveWriter(
        folder,
        "w0",
        software="bowerbird/1",
        user_agent="bird",
        clock=clock,
        **more,  # type: ignore[arg-type]  # options of many types
    )


def _write(writer: ArchiveWriter, number: int, body: bytes = b"<p>hello</p>") -> ArchivePlace:
    return writer.write_exchange(
        url=f"https://example.org/{number}",
        fetched_at=1_700_000_000.25 + number,
        remote_ip="192.0.2.1",
        request_block=REQUEST,
        header_block=HEADERS,
        raw_body=body,
        metadata={"outcome": "ok", "number": str(number)},
    )


def test_an_exchange_is_read_back_from_its_place(tmp_path: Path) -> None:
    with _open(tmp_path) as writer:
        places = [_write(writer, number, b"body %d" % number * 1000) for number in range(5)]
        assert writer.end == (places[-1].file, places[-1].offset + places[-1].length)
    for number in (3, 0, 4, 1, 2):
        exchange = read_exchange(tmp_path, places[number], url=f"https://example.org/{number}")
        assert exchange == Exchange(
            url=f"https://example.org/{number}",
            fetched_at=1_700_000_000.25 + number,
            status=200,
            header_block=b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n"
            b"X-Archive-Orig-Transfer-Encoding: chunked\r\nContent-Length: 6000\r\n\r\n",
            raw_body=b"body %d" % number * 1000,
            metadata={"outcome": "ok", "number": str(number)},
        )
    assert [exchange.url[-1] for exchange in iterate_exchanges(tmp_path)] == list("01234")


@settings(max_examples=50, deadline=None)
@given(
    bodies=st.lists(st.binary(max_size=300), min_size=1, max_size=4),
    headers=st.binary(max_size=80),
    metadata=st.dictionaries(st.text(alphabet="abc", min_size=1), st.text()),
)
def test_any_bytes_are_read_back(
    tmp_path_factory: pytest.TempPathFactory, bodies: list[bytes], headers: bytes, metadata: dict[str, str]
) -> None:
    folder = tmp_path_factory.mktemp("archive")
    with _open(folder) as writer:
        places = [
            writer.write_exchange(
                url="http://h/",
                fetched_at=1.0,
                remote_ip="",
                request_block=b"",
                header_block=b"HTTP/1.1 200 OK\r\n" + headers + b"\r\n\r\n",
                raw_body=body,
                metadata=metadata,
            )
            for body in bodies
        ]
    damage: Counter[str] = Counter()
    read = [read_exchange(folder, place) for place in places]
    assert [exchange.raw_body for exchange in read] == bodies
    assert all(exchange.metadata.keys() == metadata.keys() for exchange in read)
    assert list(iterate_exchanges(folder, damage)) == read and not damage


def test_a_revisit_has_headers_and_no_body(tmp_path: Path) -> None:
    with _open(tmp_path) as writer:
        place = writer.write_revisit(
            url="https://example.org/",
            fetched_at=2.0,
            remote_ip="192.0.2.1",
            request_block=REQUEST,
            header_block=b"HTTP/2 304\r\nETag: x\r\n\r\n",
            metadata={"outcome": "not-modified"},
            refers_to_at=1.0,
        )
    exchange = read_exchange(tmp_path, place)
    assert exchange.is_revisit and exchange.status == 304 and exchange.raw_body == b""
    assert exchange.header_block == b"HTTP/1.1 304 Not Modified\r\nETag: x\r\n\r\n"
    text = gzip.decompress((tmp_path / place.file).read_bytes())
    assert b"WARC-Refers-To-Date: 1970-01-01T00:00:01.000000Z\r\n" in text
    assert b"WARC-Profile: http://netpreserve.org/warc/1.1/revisit/server-not-modified\r\n" in text


@pytest.mark.parametrize(
    ("block", "stored"),
    [
        (
            b"HTTP/1.0 404 Gone Fishing\r\nContent-Length: 5\r\n\r\n",
            b"HTTP/1.0 404 Gone Fishing\r\nContent-Length: 5\r\n\r\n",
        ),
        (b"HTTP/3 404 \r\n\r\n", b"HTTP/1.1 404 Not Found\r\nContent-Length: 5\r\n\r\n"),
        (b"HTTP/1.1 200 OK\nA: b\n\n", b"HTTP/1.1 200 OK\r\nA: b\r\nContent-Length: 5\r\n\r\n"),
        (
            b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nX-Archive-Orig-content-length: 99\r\nContent-Length: 5\r\n\r\n",
        ),
        (b"", b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"),
        (
            b"HTTP/1.1 200 OK\r\nContent-Encoding: br\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nContent-Encoding: br\r\nContent-Length: 5\r\n\r\n",
        ),
    ],
)
def test_header_blocks_are_true_of_a_body_of_five_bytes(block: bytes, stored: bytes) -> None:
    assert readable_header_block(block, 5) == stored


def test_a_new_file_past_the_size_limit(tmp_path: Path) -> None:
    with _open(tmp_path, max_file_bytes=4000) as writer:
        places = [_write(writer, number, os.urandom(1500)) for number in range(5)]
    names = sorted({place.file for place in places})
    assert names == [f"w0-20231114221320-0000{serial}.warc.gz" for serial in range(len(names))]
    assert len(names) > 1
    assert all(path.stat().st_size <= 4000 for path in tmp_path.iterdir())
    assert all(gzip.decompress(path.read_bytes()).count(b"WARC-Type: warcinfo") == 1 for path in tmp_path.iterdir())
    assert len(list(iterate_exchanges(tmp_path))) == 5


def test_no_file_is_opened_before_it_is_needed_and_none_is_overwritten(tmp_path: Path) -> None:
    _open(tmp_path / "a").close()
    assert not (tmp_path / "a").exists()
    with _open(tmp_path) as first, _open(tmp_path) as second:
        assert _write(first, 1).file != _write(second, 2).file
    assert len(list(iterate_exchanges(tmp_path))) == 2


def test_hostile_urls_and_metadata_cannot_add_headers(tmp_path: Path) -> None:
    with _open(tmp_path) as writer:
        place = writer.write_exchange(
            url="http://h/\r\nWARC-Type: evil",
            fetched_at=1.0,
            remote_ip="",
            request_block=b"",
            header_block=HEADERS,
            raw_body=b"",
            metadata={"a\r\nb": "c\r\n\r\nd: e"},
        )
    exchange = read_exchange(tmp_path, place)
    assert exchange.url == "http://h/ WARC-Type: evil"
    assert exchange.metadata == {"a b": "c d: e"}


def test_read_exchange_says_what_is_wrong(tmp_path: Path) -> None:
    with _open(tmp_path) as writer:
        place, other = _write(writer, 1), _write(writer, 2)
    with pytest.raises(ArchiveError, match=r"has https://example\.org/1, not https://example\.org/9"):
        read_exchange(tmp_path, place, url="https://example.org/9")
    for wrong in (
        ArchivePlace("missing.warc.gz", 0, 10),
        ArchivePlace(place.file, place.offset + 1, place.length),
        ArchivePlace(place.file, place.offset, place.length - 1),
        ArchivePlace(place.file, other.offset, other.length + 1),
        ArchivePlace(place.file, -5, 10),
        ArchivePlace(place.file, 0, place.offset),  # the warcinfo record
    ):
        with pytest.raises(ArchiveError):
            read_exchange(tmp_path, wrong)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_a_damaged_byte_costs_at_most_its_own_record(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("archive")
    with _open(folder) as writer:
        places = [_write(writer, number) for number in range(4)]
    path = folder / places[0].file
    content = bytearray(path.read_bytes())
    first = places[0].offset  # record numbers are random, so lengths differ from run to run
    at = first + int(data.draw(st.floats(0, 1, exclude_max=True)) * (len(content) - first))
    content[at] ^= data.draw(st.integers(1, 255))
    path.write_bytes(content)
    damage: Counter[str] = Counter()
    numbers = {int(exchange.url[-1]) for exchange in iterate_exchanges(folder, damage)}
    hit = next(n for n, place in enumerate(places) if place.offset <= at < place.offset + place.length)
    assert numbers >= {0, 1, 2, 3} - {hit}


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_after_a_crash_each_file_ends_where_it_was_acknowledged(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("archive")
    with _open(folder, max_file_bytes=3000) as writer:
        places = [_write(writer, number, os.urandom(300)) for number in range(6)]
    known = data.draw(st.integers(0, 6))
    last = folder / places[-1].file
    torn = int(data.draw(st.floats(0, 1, exclude_max=True)) * places[-1].length) if known < 6 else 0
    os.truncate(last, last.stat().st_size - torn)
    ends = {place.file: place.offset + place.length for place in places[:known]}
    before = {path.name: path.stat().st_size for path in folder.iterdir()}
    moved = set_aside_unknown(folder, ends)
    cut = truncate_archive(folder, ends)
    damage: Counter[str] = Counter()
    assert [int(exchange.url[-1]) for exchange in iterate_exchanges(folder, damage)] == list(range(known))
    assert not damage
    assert {path.name: path.stat().st_size for path in folder.glob("*.warc.gz")} == ends
    assert cut == sum(size - ends[name] for name, size in before.items() if name in ends)
    aside = {path.name: path.stat().st_size for path in (folder / UNACKNOWLEDGED).glob("*")}
    assert aside == {name: before[name] for name in moved} == {n: s for n, s in before.items() if n not in ends}
    assert truncate_archive(folder, ends) == 0
    assert set_aside_unknown(folder, ends) == []
    with _open(folder) as writer:
        place = _write(writer, 9)
    assert read_exchange(folder, place).url == "https://example.org/9"


def test_truncating_refuses_a_file_that_lost_acknowledged_bytes(tmp_path: Path) -> None:
    with _open(tmp_path) as writer:
        place = _write(writer, 1)
    with pytest.raises(ArchiveError, match="were acknowledged"):
        truncate_archive(tmp_path, {place.file: place.offset + place.length + 1})
    assert truncate_archive(tmp_path, {place.file: place.offset + place.length, "moved.warc.gz": 5}) == 0
    assert truncate_archive(tmp_path / "absent", {}) == 0
    assert set_aside_unknown(tmp_path / "absent", {}) == []


def test_a_file_set_aside_never_replaces_another(tmp_path: Path) -> None:
    for content in (b"first", b"second", b"third"):
        (tmp_path / "a.warc.gz").write_bytes(content)
        assert truncate_archive(tmp_path, {}) == 0  # it deletes nothing itself
        assert set_aside_unknown(tmp_path, {}) == ["a.warc.gz"]
    kept = sorted(path.read_bytes() for path in (tmp_path / UNACKNOWLEDGED).iterdir())
    assert kept == [b"first", b"second", b"third"]
    assert [path.name for path in tmp_path.iterdir()] == [UNACKNOWLEDGED]


def test_the_name_of_a_new_file_is_on_the_disk_before_anything_points_into_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[list[str]] = []
    monkeypatch.setattr(archive, "sync_folder", lambda folder: synced.append([p.name for p in folder.iterdir()]))
    with _open(tmp_path) as writer:
        place = _write(writer, 1)
        _write(writer, 2)
        assert synced == [[place.file]]  # without a sync by the writer: another process may do that


def test_a_full_disk_leaves_whole_records_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real_write, room = os.write, [10_000]

    def write(descriptor: int, data: memoryview) -> int:
        if not room[0]:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written = real_write(descriptor, data[: room[0]])
        room[0] -= written
        return written

    with _open(tmp_path) as writer:
        monkeypatch.setattr(os, "write", write)
        places = []
        with pytest.raises(DiskFullError, match="free some space"):
            for number in range(20):
                places.append(_write(writer, number, os.urandom(1500)))
        assert places
        assert (tmp_path / places[0].file).stat().st_size == writer.end[1]
        room[0] = 1 << 20
        places.append(_write(writer, 50))
    damage: Counter[str] = Counter()
    assert len(list(iterate_exchanges(tmp_path, damage))) == len(places) and not damage


def test_a_full_disk_at_the_first_record_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def write(descriptor: int, data: memoryview) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    writer = _open(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", write)
        with pytest.raises(DiskFullError):
            _write(writer, 1)
    assert list(tmp_path.iterdir()) == []
    _write(writer, 2)
    writer.close()
    assert len(list(iterate_exchanges(tmp_path))) == 1


def test_a_decompression_bomb_is_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bowerbird.store.archive_reader.MAX_MEMBER_BYTES", 100_000)
    with _open(tmp_path) as writer:
        place = _write(writer, 1)
    path = tmp_path / place.file
    path.write_bytes(gzip.compress(b"WARC/1.1\r\n" + bytes(5_000_000)) + path.read_bytes())
    damage: Counter[str] = Counter()
    assert [exchange.url for exchange in iterate_exchanges(tmp_path, damage)] == ["https://example.org/1"]
    assert damage == {place.file: 1}


def test_cdxj_lines_lead_to_the_response_records(tmp_path: Path) -> None:
    with _open(tmp_path) as writer:
        for number in (2, 1):
            _write(writer, number)
    out = io.StringIO()
    assert write_cdxj(tmp_path, out) == 2
    lines = out.getvalue().splitlines()
    assert [line.split(" ")[:2] for line in lines] == [
        ["org,example)/1", "20231114221321"],
        ["org,example)/2", "20231114221322"],
    ]
    for line in lines:
        about = orjson.loads(line.split(" ", 2)[2])
        offset, length = int(about["offset"]), int(about["length"])
        member = (tmp_path / about["filename"]).read_bytes()[offset : offset + length]
        inflater = zlib.decompressobj(31)
        record = inflater.decompress(member)
        assert inflater.eof and not inflater.unused_data
        assert b"WARC-Type: response" in record and f"WARC-Payload-Digest: {about['digest']}".encode() in record
        assert (about["mime"], about["status"]) == ("text/html", "200")


@pytest.mark.parametrize(
    ("url", "key"),
    [
        ("http://example.org", "org,example)/"),
        ("http://example.org/", "org,example)/"),
        ("https://www2.Example.org:8443/A/", "org,example:8443)/a"),
        ("http://www.com/", "com)/"),
        ("http://user@sub.example.co.uk:80/x?b=2&a=1#f", "uk,co,example,sub)/x?a=1&b=2"),
        ("http://192.0.2.1/x", "192.0.2.1)/x"),
        ("http://[2001:db8::1]:8080/x", "[2001:db8::1]:8080)/x"),
        ("https://example.org/a b", "org,example)/a%20b"),
        ("dns:example.org", "dns:example.org"),
    ],
)
def test_surt(url: str, key: str) -> None:
    assert surt(url) == key


@given(st.floats(0, 4e9))
def test_dates_keep_microseconds(at_s: float) -> None:
    text = warc_date(at_s)
    assert len(text) == len("1970-01-01T00:00:00.000000Z") and text.endswith("Z")


def test_records_of_a_file_that_is_empty_or_nonsense(tmp_path: Path) -> None:
    (tmp_path / "empty.warc.gz").write_bytes(b"")
    (tmp_path / "nonsense.warc.gz").write_bytes(b"\x1f\x8b\x08" * 1000)
    (tmp_path / "plain.warc").write_bytes(b"hello")
    damage: Counter[str] = Counter()
    assert list(iterate_records(tmp_path, damage)) == []
    assert damage == {"nonsense.warc.gz": 1, "plain.warc": 1}
