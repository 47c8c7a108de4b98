"""The fetcher against a server that does what servers do, and worse."""

from __future__ import annotations

import gzip
import os
import shutil
import socket
import ssl
import subprocess
import threading
import time
import zlib
from email.utils import formatdate
from pathlib import Path

import brotli
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from tests.web.hostile_server import HostileServer, answer, reset, send_and_close, wait_until

from bowerbird.model.clock import ManualClock
from bowerbird.model.errors import ConfigError
from bowerbird.model.outcome import Outcome
from bowerbird.web.address import AddressPolicy
from bowerbird.web.fetcher import Fetcher, FetchLimits, FetchRequest, FetchResult
from bowerbird.web.response import final_block, parse_headers, parse_retry_after
from bowerbird.web.retry import backoff_s

LOOPBACK = AddressPolicy(allow=("127.0.0.0/8", "::1/128"))
QUICK = FetchLimits(connect_s=2, first_byte_s=2, total_s=4)
PAGE = b"<p>blue feathers</p>" * 500


@pytest.fixture
def server():
    with HostileServer() as running:
        yield running


@pytest.fixture
def fetcher():
    with Fetcher("bowerbird-test/1", QUICK, LOOPBACK) as running:
        yield running


def gather(fetcher: Fetcher, within_s: float = 10.0) -> list[FetchResult]:
    results: list[FetchResult] = []
    end = time.monotonic() + within_s
    while fetcher.in_flight:
        assert time.monotonic() < end, f"{fetcher!r} did not finish"
        results += fetcher.poll(0.5)
    return results


def fetch(fetcher: Fetcher, url: str, **fields: object) -> FetchResult:
    fetcher.submit(FetchRequest(7, url, **fields))  # type: ignore[arg-type]  # fields of many types
    (result,) = gather(fetcher)
    assert result.token == 7 and result.url == url
    return result


def test_a_page(server, fetcher):
    server.routes["/a?b=c"] = answer(PAGE, headers=("Content-Type: text/html", "X-A: 1", "x-a: 2"))
    result = fetch(fetcher, server.url("/a?b=c#part"))
    assert result.outcome is Outcome.OK
    assert (result.status, result.reason, result.http_version) == (200, "OK", "1.1")
    assert result.body == result.raw_body == PAGE
    assert result.header("CONTENT-TYPE") == "text/html" and result.header("absent") == ""
    assert result.header_list("X-a") == ["1", "2"] and result.header_list("absent") == []
    assert result.header_block + PAGE == server.routes["/a?b=c"]
    assert result.remote_ip == "127.0.0.1"
    assert result.error == "" and not result.truncated and result.retry_after_s is None
    assert 0 < result.first_byte_s <= result.elapsed_s < 2
    assert abs(result.started_at - time.time()) < 5


def test_the_request_block_is_what_was_sent(server):
    server.routes["/x"] = answer()
    server.routes["/?q"] = answer()
    with Fetcher("bird/2 (+https://bower.example/)", QUICK, LOOPBACK, accept_language="en, hr") as fetcher:
        first = fetch(fetcher, server.url("/x"))
        second = fetch(fetcher, server.url("?q"), etag='"v1"', last_modified="Thu, 01 Jan 1970 00:00:00 GMT")
        third = fetch(fetcher, server.url("/x"))
    assert server.requests == [first.request_block, second.request_block, third.request_block]
    lines = first.request_block.decode().split("\r\n")
    assert lines[0] == "GET /x HTTP/1.1"
    assert "User-Agent: bird/2 (+https://bower.example/)" in lines
    assert "Accept-Encoding: gzip, br, zstd, deflate" in lines
    assert "Accept-Language: en, hr" in lines
    assert b'\r\nIf-None-Match: "v1"\r\nIf-Modified-Since: Thu, 01 Jan 1970' in second.request_block
    assert third.request_block == first.request_block


def test_not_modified_only_when_asked(server, fetcher):
    server.routes["/"] = b"HTTP/1.1 304 Not Modified\r\nETag: x\r\n\r\n"
    assert fetch(fetcher, server.url("/"), etag='"a"').outcome is Outcome.NOT_MODIFIED
    assert fetch(fetcher, server.url("/"), last_modified="x").outcome is Outcome.NOT_MODIFIED
    assert fetch(fetcher, server.url("/")).outcome is Outcome.PROTOCOL


def test_validators_cannot_smuggle_headers(server, fetcher):
    server.routes["/"] = answer()
    result = fetch(fetcher, server.url("/"), etag='"a"\r\nX-Evil: 1', last_modified="a\0b")
    assert result.outcome is Outcome.OK
    assert b"Evil" not in server.requests[0] and b"If-" not in server.requests[0]


def test_user_agent_must_fit_a_header():
    with pytest.raises(ConfigError):
        Fetcher("bird\r\nX-Evil: 1")


@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        ("200 OK", Outcome.OK),
        ("203 Non-Authoritative", Outcome.OK),
        ("204 No Content", Outcome.OK),
        ("300 Multiple Choices", Outcome.PROTOCOL),
        ("301 Moved", Outcome.REDIRECT),
        ("302 Found", Outcome.REDIRECT),
        ("303 See Other", Outcome.REDIRECT),
        ("307 Temporary", Outcome.REDIRECT),
        ("308 Permanent", Outcome.REDIRECT),
        ("400 Bad Request", Outcome.CLIENT_ERROR),
        ("401 Unauthorized", Outcome.CLIENT_ERROR),
        ("403 Forbidden", Outcome.CLIENT_ERROR),
        ("404 Not Found", Outcome.GONE),
        ("410 Gone", Outcome.GONE),
        ("429 Too Many", Outcome.THROTTLED),
        ("500 Oops", Outcome.SERVER_ERROR),
        ("503 Busy", Outcome.THROTTLED),
        ("599 Odd", Outcome.SERVER_ERROR),
        ("600 Odder", Outcome.PROTOCOL),
        ("999 Denied", Outcome.PROTOCOL),
    ],
)
def test_every_status_has_an_outcome(server, fetcher, status, outcome):
    server.routes["/"] = answer(b"" if status.startswith("204") else b"page", status, ["Location: /elsewhere"])
    result = fetch(fetcher, server.url("/"))
    assert result.outcome is outcome
    assert result.status == int(status[:3])
    assert result.location == "/elsewhere"
    assert len(server.requests) == 1
    assert bool(result.error) is (outcome is Outcome.PROTOCOL)


def test_a_redirect_needs_a_location(server, fetcher):
    server.routes["/none"] = answer(b"", "301 Moved", [])
    server.routes["/empty"] = answer(b"", "301 Moved", ["Location: "])
    server.routes["/utf8"] = answer(b"", "301 Moved", ["Location: /\xc4\x8d"])
    assert fetch(fetcher, server.url("/none")).outcome is Outcome.PROTOCOL
    assert fetch(fetcher, server.url("/empty")).outcome is Outcome.PROTOCOL
    assert fetch(fetcher, server.url("/utf8")).location == "/č"


@pytest.mark.parametrize(
    ("coding", "encode"),
    [
        ("gzip", gzip.compress),
        ("deflate", zlib.compress),
        ("br", brotli.compress),
        ("zstd", zstandard.compress),
    ],
)
def test_compressed_bodies_are_kept_raw_and_decoded(server, fetcher, coding, encode):
    server.routes["/"] = answer(encode(PAGE), headers=[f"Content-Encoding: {coding}"])
    result = fetch(fetcher, server.url("/"))
    assert result.outcome is Outcome.OK
    assert result.raw_body == encode(PAGE)
    assert result.body == PAGE


def test_stacked_codings_in_two_headers(server, fetcher):
    stacked = brotli.compress(gzip.compress(PAGE))
    server.routes["/"] = answer(stacked, headers=["Content-Encoding: gzip", "Content-Encoding: br"])
    assert fetch(fetcher, server.url("/")).body == PAGE


def test_damaged_and_truncated_encodings(server, fetcher):
    server.routes["/bad"] = answer(b"plain text", headers=["Content-Encoding: gzip"])
    server.routes["/short"] = answer(gzip.compress(PAGE)[:-6], headers=["Content-Encoding: gzip"])
    server.routes["/gone"] = answer(b"plain text", "404 Not Found", ["Content-Encoding: gzip"])
    bad = fetch(fetcher, server.url("/bad"))
    assert bad.outcome is Outcome.BAD_ENCODING and bad.body == b"" and "gzip" in bad.error
    short = fetch(fetcher, server.url("/short"))
    assert short.outcome is Outcome.OK and short.truncated and short.body == PAGE
    assert fetch(fetcher, server.url("/gone")).outcome is Outcome.GONE


def test_a_decompression_bomb(server, fetcher):
    server.routes["/"] = answer(gzip.compress(bytes(100 << 20), 1), headers=["Content-Encoding: gzip"])
    result = fetch(fetcher, server.url("/"))
    assert result.outcome is Outcome.BAD_ENCODING
    assert result.body == b"" and "larger than" in result.error


def test_chunked_bodies_and_their_trailers(server, fetcher):
    server.routes["/"] = (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-T\r\n\r\n"
        b"5;ext=1\r\nblue \r\n3\r\njay\r\n0\r\nX-T: late\r\nLocation: /x\r\n\r\n"
    )
    result = fetch(fetcher, server.url("/"))
    assert result.outcome is Outcome.OK
    assert result.body == b"blue jay"
    assert result.header("x-t") == "" and result.location == ""
    assert result.header_block.endswith(b"Trailer: X-T\r\n\r\n")


def test_interim_responses_are_skipped(server, fetcher):
    interim = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </s.css>\r\n\r\n"
    server.routes["/"] = interim + answer(PAGE)
    server.routes["/empty"] = interim + answer(b"", "404 Not Found")
    result = fetch(fetcher, server.url("/"))
    assert result.outcome is Outcome.OK and result.body == PAGE
    assert result.header_block.startswith(b"HTTP/1.1 200 OK\r\n") and result.header("link") == ""
    assert fetch(fetcher, server.url("/empty")).header_block.startswith(b"HTTP/1.1 404")


def test_connections_are_reused(server, fetcher):
    server.routes["/"] = answer(PAGE)
    for _ in range(20):
        assert fetch(fetcher, server.url("/")).outcome is Outcome.OK
    assert server.connections == 1


def test_a_kept_connection_that_died_is_replaced(server, fetcher):
    server.routes["/"] = send_and_close(answer(PAGE))  # promises keep-alive, closes all the same
    for _ in range(5):
        assert fetch(fetcher, server.url("/")).outcome is Outcome.OK
    assert server.connections == 5


def test_no_more_connections_than_allowed(server):
    def slow(connection: socket.socket) -> None:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        server.pause(0.02)
        with lock:
            now -= 1
        connection.sendall(answer(headers=["Connection: close"]))

    now = most = 0
    lock = threading.Lock()
    server.routes["/"] = slow
    limits = FetchLimits(max_connections=4, total_s=10)
    with Fetcher("bird", limits, LOOPBACK) as fetcher:
        for token in range(30):
            fetcher.submit(FetchRequest(token, server.url("/")))
        assert fetcher.in_flight == 30
        results = gather(fetcher)
    assert sorted(result.token for result in results) == list(range(30))
    assert {result.outcome for result in results} == {Outcome.OK}
    assert 2 <= most <= 4


def test_idle_connections_make_room_for_other_hosts():
    limits = FetchLimits(max_connections=2, first_byte_s=2, total_s=4)
    with HostileServer() as one, HostileServer() as two, HostileServer() as three:
        servers = [one, two, three]
        for server in servers:
            server.routes["/"] = answer(PAGE)
        with Fetcher("bird", limits, LOOPBACK) as fetcher:
            for token in range(60):
                fetcher.submit(FetchRequest(token, servers[token % 3].url("/")))
            results = gather(fetcher)
    assert len(results) == 60
    assert {result.outcome for result in results} == {Outcome.OK}


@pytest.mark.parametrize(
    ("content_type", "outcome"),
    [
        ("image/png", Outcome.WRONG_TYPE),
        ("video/mp4", Outcome.WRONG_TYPE),
        ("application/octet-stream", Outcome.WRONG_TYPE),
        ("TEXT/HTML ;charset=x", Outcome.OK),
        ("application/rss+xml", Outcome.OK),
        ("", Outcome.OK),
        (None, Outcome.OK),
    ],
)
def test_content_types(server, fetcher, content_type, outcome):
    headers = [] if content_type is None else [f"Content-Type: {content_type}"]
    server.routes["/"] = answer(PAGE, headers=headers)
    server.routes["/empty"] = answer(b"", headers=headers)
    result = fetch(fetcher, server.url("/"))
    assert result.outcome is outcome
    assert result.body == (PAGE if outcome is Outcome.OK else b"")
    assert result.status == 200 and result.header("content-type") == (content_type or "")
    assert fetch(fetcher, server.url("/empty")).outcome is outcome
    assert fetch(fetcher, server.url("/"), any_type=True).body == PAGE
    server.routes["/gone"] = answer(PAGE, "404 Not Found", headers)
    assert fetch(fetcher, server.url("/gone")).outcome is Outcome.GONE


def test_a_wrong_type_is_not_downloaded(server, fetcher):
    sent = 0

    def film(connection: socket.socket) -> None:
        nonlocal sent
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: video/mp4\r\nContent-Length: 9000000\r\n\r\n")
        while sent < 9_000_000:
            sent += connection.send(bytes(65536))

    server.routes["/"] = film
    assert fetch(fetcher, server.url("/")).outcome is Outcome.WRONG_TYPE
    assert sent < 9_000_000


def test_a_body_too_large_by_its_own_account(server, fetcher):
    server.routes["/"] = b"HTTP/1.1 200 OK\r\nContent-Length: 10000000000\r\n\r\n"
    started = time.monotonic()
    result = fetch(fetcher, server.url("/"))
    assert result.outcome is Outcome.TOO_LARGE and "larger than" in result.error
    assert time.monotonic() - started < 1
    assert result.status == 200 and result.body == b""


@pytest.mark.parametrize("framing", [b"", b"Transfer-Encoding: chunked\r\n"])
def test_an_endless_body_is_cut(server, framing):
    sent = 0

    def endless(connection: socket.socket) -> None:
        nonlocal sent
        connection.sendall(b"HTTP/1.1 200 OK\r\n" + framing + b"\r\n")
        piece = bytes(0x8000)
        while server.pause(0):
            sent += connection.send(b"8000\r\n" + piece + b"\r\n" if framing else piece)

    server.routes["/"] = endless
    server.routes["/missing"] = lambda connection: (
        connection.sendall(b"HTTP/1.1 404 Not Found\r\n\r\n"),
        endless(connection),
    )
    limits = FetchLimits(max_body_bytes=1 << 20, total_s=5)
    with Fetcher("bird", limits, LOOPBACK) as fetcher:
        assert fetch(fetcher, server.url("/")).outcome is Outcome.TOO_LARGE
        missing = fetch(fetcher, server.url("/missing"))
    assert missing.outcome is Outcome.GONE and missing.truncated and missing.body == b""
    assert sent < 64 << 20


@pytest.mark.parametrize("framing", ["length", "close"])
def test_a_part_of_a_large_body_is_kept_on_request(server, fetcher, framing):
    whole = answer(PAGE) if framing == "length" else b"HTTP/1.1 200 OK\r\n\r\n" + PAGE
    server.routes["/"] = send_and_close(whole)
    for limit_bytes in (1, 999, len(PAGE) - 1):
        part = fetch(fetcher, server.url("/"), max_body_bytes=limit_bytes, keep_partial=True)
        assert part.outcome is Outcome.TOO_LARGE and part.truncated and "larger than" in part.error
        assert part.status == 200 and part.body == part.raw_body == PAGE[:limit_bytes]
    whole_page = fetch(fetcher, server.url("/"), max_body_bytes=len(PAGE), keep_partial=True)
    assert whole_page.outcome is Outcome.OK and whole_page.body == PAGE and not whole_page.truncated
    again = fetch(fetcher, server.url("/"), max_body_bytes=999)
    assert again.outcome is Outcome.TOO_LARGE and again.body == b""


@pytest.mark.parametrize("coding", ["gzip", "br", "zstd"])
def test_a_part_of_a_large_body_is_decoded_as_far_as_it_goes(server, fetcher, coding):
    text = b"".join(b"Disallow: /%d\n" % (number * number) for number in range(300_000))
    encode = {"gzip": gzip.compress, "br": lambda data: brotli.compress(data, quality=1), "zstd": zstandard.compress}
    packed = encode[coding](text)
    assert len(packed) > 300_000
    server.routes["/"] = answer(packed, headers=(f"Content-Encoding: {coding}",))
    part = fetch(fetcher, server.url("/"), max_body_bytes=300_000, keep_partial=True)
    assert part.outcome is Outcome.TOO_LARGE and part.raw_body == packed[:300_000]
    assert len(part.body) > 300_000 and text.startswith(part.body)


def test_an_error_page_without_end_stays_that_error(server, fetcher):
    server.routes["/"] = answer(PAGE, status="404 Not Found")
    missing = fetch(fetcher, server.url("/"), max_body_bytes=999, keep_partial=True)
    assert missing.outcome is Outcome.GONE and missing.truncated


@pytest.mark.parametrize("framing", ["length", "close"])
def test_the_body_limit_is_exact_and_per_request(server, fetcher, framing):
    def serve(size: int) -> None:
        if framing == "length":
            server.routes["/"] = answer(bytes(size))
        else:
            server.routes["/"] = send_and_close(b"HTTP/1.1 200 OK\r\n\r\n" + bytes(size))

    serve(1000)
    assert fetch(fetcher, server.url("/"), max_body_bytes=1000).outcome is Outcome.OK
    assert fetch(fetcher, server.url("/"), max_body_bytes=999).outcome is Outcome.TOO_LARGE
    assert fetch(fetcher, server.url("/")).outcome is Outcome.OK
    serve(1)
    assert fetch(fetcher, server.url("/"), max_body_bytes=0).outcome is Outcome.TOO_LARGE


@pytest.mark.parametrize(
    "headers",
    [
        b"HTTP/1.1 200 OK\r\n" + b"X-Filler: abcdefgh\r\n" * 10_000 + b"\r\nbody",
        b"HTTP/1.1 200 OK\r\nX-Filler: " + b"a" * 90_000 + b"\r\n\r\nbody",
        b"HTTP/1.1 200 OK\r\nX-Filler: " + b"a" * 900_000 + b"\r\n\r\nbody",
        b"HTTP/1.1 100 Continue\r\n\r\n" * 10_000,
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n" + b"T: u\r\n" * 50_000 + b"\r\n",
    ],
)
def test_endless_headers_are_cut(server, fetcher, headers):
    server.routes["/"] = send_and_close(headers)
    result = fetch(fetcher, server.url("/"))
    assert result.outcome in {Outcome.PROTOCOL, Outcome.CONNECT}
    assert result.error and result.body == b""


def test_a_host_that_never_answers(server):
    server.routes["/"] = lambda connection: server.pause(30) and None
    server.routes["/good"] = answer(PAGE)
    with Fetcher("bird", FetchLimits(first_byte_s=0.3, total_s=10), LOOPBACK) as fetcher:
        fresh = fetch(fetcher, server.url("/"))
        assert fetch(fetcher, server.url("/good")).outcome is Outcome.OK
        reused = fetch(fetcher, server.url("/"))
    for result in (fresh, reused):
        assert result.outcome is Outcome.TIMEOUT
        assert 0.29 < result.elapsed_s < 2
        assert "0.3 s" in result.error


def test_a_slow_drip_ends_at_the_total(server):
    def drip(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n")
        while server.pause(0.02):
            connection.sendall(b"a")

    def drip_headers(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\n")
        while server.pause(0.02):
            connection.sendall(b"X: y\r\n")

    server.routes["/"] = drip
    server.routes["/headers"] = drip_headers
    with Fetcher("bird", FetchLimits(first_byte_s=0.3, total_s=0.6), LOOPBACK) as fetcher:
        for path in ("/", "/headers"):
            result = fetch(fetcher, server.url(path))
            assert result.outcome is Outcome.TIMEOUT
            assert 0.55 < result.elapsed_s < 2
            assert result.body == b"" and result.error


def test_a_handshake_that_never_comes_ends_at_the_connect_limit():
    with (
        socket.create_server(("127.0.0.1", 0)) as silent,
        Fetcher("bird", FetchLimits(connect_s=0.3), LOOPBACK) as fetcher,
    ):
        result = fetch(fetcher, f"https://127.0.0.1:{silent.getsockname()[1]}/")
    assert result.outcome is Outcome.TIMEOUT
    assert 0.25 < result.elapsed_s < 2


def test_many_silent_hosts_expire_together(server):
    server.routes["/"] = lambda connection: server.pause(30) and None
    server.routes["/good"] = answer(PAGE)
    with Fetcher("bird", FetchLimits(first_byte_s=0.4, total_s=10), LOOPBACK) as fetcher:
        started = time.monotonic()
        for token in range(40):
            fetcher.submit(FetchRequest(token, server.url("/good" if token % 4 == 0 else "/")))
        results = gather(fetcher)
        took_s = time.monotonic() - started
    outcomes = [result.outcome for result in sorted(results, key=lambda result: result.token)]
    assert outcomes == [Outcome.OK, Outcome.TIMEOUT, Outcome.TIMEOUT, Outcome.TIMEOUT] * 10
    assert took_s < 3


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nblue ",
    ],
)
@pytest.mark.parametrize("end", ["close", "reset"])
def test_connections_that_end_too_soon(server, fetcher, sent, end):
    def cut(connection: socket.socket) -> None:
        connection.sendall(sent)
        if end == "reset":
            server.pause(0.05)
            reset(connection)

    server.routes["/"] = cut
    result = fetch(fetcher, server.url("/"))
    assert result.outcome is Outcome.CONNECT
    assert result.error and result.body == b"" and result.raw_body == b""


def test_a_body_without_length_ends_with_the_connection(server, fetcher):
    server.routes["/"] = send_and_close(b"HTTP/1.0 200 OK\r\n\r\n" + PAGE)
    result = fetch(fetcher, server.url("/"))
    assert result.outcome is Outcome.OK and result.body == PAGE and result.http_version == "1.0"


@pytest.mark.parametrize(
    "garbage",
    [
        b"\x00\x01\x02\x03" * 100,
        b"<html>hello</html>",
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"220 mail.example ESMTP\r\n",
        b"HTTP/9.9 200 OK\r\n\r\n",
        b"HTTP/1.1 OK\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nhello\r\n0\r\n\r\n",
    ],
)
def test_what_is_not_http(server, fetcher, garbage):
    server.routes["/"] = send_and_close(garbage)
    result = fetch(fetcher, server.url("/"))
    assert result.outcome in {Outcome.PROTOCOL, Outcome.CONNECT}, result.outcome
    assert result.error and result.body == b""


def test_an_unasked_transfer_coding(server, fetcher):
    server.routes["/"] = send_and_close(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nabc")
    assert fetch(fetcher, server.url("/")).outcome is Outcome.BAD_ENCODING


def test_nobody_listens(fetcher):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    result = fetch(fetcher, f"http://127.0.0.1:{port}/")
    assert result.outcome is Outcome.CONNECT and result.error


def test_a_name_that_does_not_exist(fetcher):
    assert fetch(fetcher, "http://bowerbird.invalid/").outcome is Outcome.DNS


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "localhost", "0x7f.1", "2130706433", "0177.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "0"],
)
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_private_addresses_are_refused_after_resolution(server, scheme, host):
    server.routes["/"] = answer()
    with Fetcher("bird", QUICK, AddressPolicy()) as fetcher:
        result = fetch(fetcher, f"{scheme}://{host}:{server.port}/")
    assert result.outcome is Outcome.ADDRESS_REFUSED
    assert "may not be fetched" in result.error
    assert server.connections == 0


@pytest.mark.parametrize(
    "url",
    [
        "ftp://127.0.0.1/",
        "file:///etc/passwd",
        "gopher://127.0.0.1/",
        "http://user:secret@127.0.0.1/",
        "http://",
        "http:///x",
        "",
        "http://127.0.0.1/a b",
        "http://127.0.0.1/\r\nX-Evil: 1",
        "http://127.0.0.1/\0",
        "http://127.0.0.1/č",
        "http://127.0.0.1:99999/",
        "http://[::1/",
    ],
)
def test_urls_that_cannot_be_fetched(fetcher, url):
    result = fetch(fetcher, url)
    assert result.outcome is Outcome.PROTOCOL and result.error


def test_proxies_of_the_environment_are_ignored(server, monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9/")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9/")
    server.routes["/"] = answer(PAGE)
    with Fetcher("bird", QUICK, LOOPBACK) as fetcher:
        assert fetch(fetcher, server.url("/")).body == PAGE


def test_cookies_are_not_kept(server, fetcher):
    server.routes["/"] = answer(headers=["Set-Cookie: a=b; Path=/"])
    fetch(fetcher, server.url("/"))
    fetch(fetcher, server.url("/"))
    assert b"cookie" not in server.requests[1].lower()


def test_retry_after(server):
    clock = ManualClock(1_000_000.0)
    server.routes["/s"] = answer(b"", "429 Slow", ["Retry-After: 120"])
    server.routes["/d"] = answer(b"", "503 Busy", [f"Retry-After: {formatdate(1_000_090, usegmt=True)}"])
    server.routes["/x"] = answer(b"", "503 Busy", ["Retry-After: soon"])
    with Fetcher("bird", QUICK, LOOPBACK, clock) as fetcher:
        results = [fetch(fetcher, server.url(path)) for path in ("/s", "/d", "/x")]
    assert [result.retry_after_s for result in results] == [120.0, 90.0, None]
    assert {result.outcome for result in results} == {Outcome.THROTTLED}
    assert results[0].started_at == 1_000_000.0


@given(st.text(max_size=40))
def test_any_retry_after_is_bounded(value):
    wait_s = parse_retry_after(value, 0.0)
    assert wait_s is None or 0 <= wait_s <= 86_400


@given(st.binary(max_size=300))
def test_any_header_bytes_parse(block):
    headers = parse_headers(final_block(block))
    assert all(name == name.lower() and values for name, values in headers.items())


@given(st.integers(-5, 10_000), st.none() | st.floats(0, 1e6))
def test_backoff_grows_and_is_capped(errors, retry_after_s):
    wait_s = backoff_s(errors, retry_after_s=retry_after_s)
    assert 0 <= wait_s <= 86_400
    assert wait_s <= backoff_s(errors + 1, retry_after_s=retry_after_s)
    assert wait_s >= min(retry_after_s or 0, 86_400)


def test_poll_returns_in_time_and_wakes_for_a_watched_descriptor(server, fetcher):
    started = time.monotonic()
    assert fetcher.poll(0) == []
    assert fetcher.poll(0.1) == []
    assert 0.09 < time.monotonic() - started < 1
    reading, writing = os.pipe()
    try:
        fetcher.watch(reading)
        server.routes["/"] = lambda connection: server.pause(30) and None
        fetcher.submit(FetchRequest(1, server.url("/")))
        threading.Timer(0.1, os.write, (writing, b"x")).start()
        started = time.monotonic()
        assert fetcher.poll(1.5) == []
        assert time.monotonic() - started < 1
        assert fetcher.in_flight == 1
    finally:
        os.close(reading)
        os.close(writing)


def test_close_ends_everything_and_leaks_nothing(server):
    server.routes["/"] = lambda connection: server.pause(30) and None
    server.routes["/good"] = answer(PAGE)
    before = len(list(Path("/proc/self/fd").iterdir()))
    fetcher = Fetcher("bird", FetchLimits(max_connections=8), LOOPBACK)
    fetcher.submit(FetchRequest(0, server.url("/good")))
    gather(fetcher)
    for token in range(20):
        fetcher.submit(FetchRequest(token, server.url("/")))
    fetcher.poll(0.1)
    assert fetcher.in_flight == 20
    fetcher.close()
    fetcher.close()
    assert fetcher.in_flight == 0
    server.close()
    assert wait_until(lambda: len(list(Path("/proc/self/fd").iterdir())) <= before)


def test_good_requests_survive_bad_neighbours(server, fetcher):
    server.routes["/good"] = answer(PAGE)
    server.routes["/garbage"] = send_and_close(b"\x00" * 50)
    server.routes["/reset"] = reset
    server.routes["/huge"] = b"HTTP/1.1 200 OK\r\nContent-Length: 10000000000\r\n\r\n"
    paths = ["/good", "/garbage", "/reset", "/huge"] * 25
    for token, path in enumerate(paths):
        fetcher.submit(FetchRequest(token, server.url(path)))
    results = {result.token: result for result in gather(fetcher)}
    assert len(results) == 100
    for token, path in enumerate(paths):
        assert (results[token].outcome is Outcome.OK) is (path == "/good")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    if shutil.which("openssl") is None:
        pytest.skip("no openssl command to make a certificate with")
    folder = tmp_path_factory.mktemp("tls")
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2"
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    files = ["-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem")]
    subprocess.run([*command.split(), *names, *files], check=True, capture_output=True)
    return folder


@pytest.fixture
def tls_port(certificate):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate / "cert.pem", certificate / "key.pem")
    context.set_alpn_protocols(["http/1.1"])
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                plain, _ = listener.accept()
            except OSError:
                return
            try:
                with context.wrap_socket(plain, server_side=True) as connection:
                    connection.recv(65536)
                    connection.sendall(answer(PAGE, headers=["Connection: close"]))
            except OSError:
                pass

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield listener.getsockname()[1]
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()
    thread.join(5)


def test_tls_is_verified(certificate, tls_port, monkeypatch):
    with Fetcher("bird", QUICK, LOOPBACK) as fetcher:
        assert fetch(fetcher, f"https://localhost:{tls_port}/").outcome is Outcome.TLS
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate / "cert.pem"))
    with Fetcher("bird", QUICK, LOOPBACK) as fetcher:
        assert fetch(fetcher, f"https://localhost:{tls_port}/").body == PAGE
        wrong_name = fetch(fetcher, f"https://127.0.0.1:{tls_port}/")
    assert wrong_name.outcome is Outcome.TLS and wrong_name.error


def test_plain_http_where_tls_is_expected(server, fetcher):
    server.greeting = answer()
    result = fetch(fetcher, server.url("/").replace("http:", "https:"))
    assert result.outcome is Outcome.TLS and result.error


@pytest.fixture
def nginx_port(certificate, tmp_path):
    if shutil.which("nginx") is None:
        pytest.skip("no nginx to speak HTTP/2 with")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    folders = " ".join(
        f"{name}_temp_path {tmp_path}/{name};" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    (tmp_path / "nginx.conf").write_text(
        f"""daemon off; worker_processes 1; pid {tmp_path}/pid; error_log {tmp_path}/error.log; events {{}}
        http {{ access_log off; default_type text/html; {folders}
        server {{ listen 127.0.0.1:{port} ssl http2; location / {{ return 200 "blue feathers"; }}
        ssl_certificate {certificate}/cert.pem; ssl_certificate_key {certificate}/key.pem; }} }}"""
    )
    command = ["nginx", "-p", str(tmp_path), "-c", str(tmp_path / "nginx.conf")]
    running = subprocess.Popen(command, stderr=subprocess.DEVNULL)

    def is_listening() -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    try:
        assert wait_until(is_listening), "nginx did not start"
        yield port
    finally:
        running.terminate()
        running.wait(10)


def test_http2_and_no_waiting_between_requests(certificate, nginx_port, monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate / "cert.pem"))
    with Fetcher("bird", QUICK, LOOPBACK) as fetcher:
        url = f"https://localhost:{nginx_port}/page.html"
        first = fetch(fetcher, url)
        started = time.monotonic()
        later = [fetch(fetcher, url) for _ in range(10)]
        took_s = time.monotonic() - started
    assert first.http_version == "2" and first.status == 200
    assert first.header_block.startswith(b"HTTP/2 200") and first.request_block.startswith(b"GET /page.html HTTP/2")
    assert [result.body for result in later] == [b"blue feathers"] * 10
    # a response that is there before the first wait must not wait for the poll to time out
    assert took_s < 1
