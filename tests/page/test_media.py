from __future__ import annotations

import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bowerbird.page.media import Media, looks_binary, maybe_gunzip, sniff_media

URL = "http://example.org/x"
URLSET = b"<?xml version='1.0'?><!-- a --><urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'>"


@pytest.mark.parametrize(
    ("body", "content_type", "url", "expected"),
    [
        (b"<!DOCTYPE html><p>", "text/html; charset=utf-8", URL, Media.HTML),
        (b"just words", "text/html", URL, Media.HTML),
        (b"", "text/html", URL, Media.HTML),
        (b"<?xml version='1.0'?><html xmlns='x'>", "application/xhtml+xml", URL, Media.HTML),
        (b"<?xml version='1.0'?><html xmlns='x'>", "text/xml", URL, Media.HTML),
        (b"  <html>", "", URL, Media.HTML),
        (b"<p>hello", "", URL, Media.HTML),
        ("<html>é".encode("utf-16"), "text/html", URL, Media.HTML),
        (b"hello", "text/plain", URL, Media.TEXT),
        (b"# Title", "text/markdown", URL, Media.TEXT),
        (b"hello", "", URL, Media.TEXT),
        (b"a {color: red}", "text/css", URL, Media.OTHER),
        (b"{}", "application/json", URL, Media.OTHER),
        (b'{"version": "https:\\/\\/jsonfeed.org\\/version\\/1.1"}', "application/json", URL, Media.FEED),
        (b'{"version": "https://jsonfeed.org/version/1"}', "application/feed+json", URL, Media.FEED),
        (b"<rss version='2.0'>", "text/html", URL, Media.FEED),
        (
            b"\xef\xbb\xbf<?xml version='1.0'?>\n<feed xmlns='w3.org/2005/Atom'>",
            "text/xml",
            URL,
            Media.FEED,
        ),
        (b"<rdf:RDF xmlns='http://purl.org/rss/1.0/'>", "application/rdf+xml", URL, Media.FEED),
        (b"<rdf:RDF xmlns='http://xmlns.com/foaf/0.1/'>", "application/rdf+xml", URL, Media.OTHER),
        (b"<!DOCTYPE rss [<!ENTITY a 'b'>]><rss>", "text/plain", URL, Media.FEED),
        (URLSET, "application/xml", URL, Media.SITEMAP),
        (URLSET, "text/html", URL, Media.SITEMAP),
        (b"<s:sitemapindex xmlns:s='x'>", "text/plain", URL, Media.SITEMAP),
        (gzip.compress(URLSET, mtime=0), "application/x-gzip", "http://e.org/sitemap.xml.gz", Media.SITEMAP),
        (gzip.compress(b"http://e.org/1\n", mtime=0), "", "http://e.org/sitemap.txt.gz", Media.SITEMAP),
        (gzip.compress(b"a tarball", mtime=0), "application/gzip", "http://e.org/a.tgz", Media.OTHER),
        (b"http://e.org/1\nhttp://e.org/2\n", "text/plain", "http://e.org/sitemap.txt", Media.SITEMAP),
        (b"http://e.org/1\nhttp://e.org/2\n", "text/plain", "http://e.org/links.txt", Media.TEXT),
        (b"<svg xmlns='http://www.w3.org/2000/svg'>", "image/svg+xml", URL, Media.OTHER),
        (b"%PDF-1.7", "text/html", URL, Media.OTHER),
        (b"\x89PNG\r\n", "text/html", URL, Media.OTHER),
        (b"some\0text", "text/html", URL, Media.OTHER),
        (b"\x01\x02\x03\x04abc", "text/html", URL, Media.OTHER),
        (b"whatever", "video/mp4", URL, Media.OTHER),
    ],
)
def test_kinds(body: bytes, content_type: str, url: str, expected: Media) -> None:
    assert sniff_media(body, content_type, url) is expected


@given(st.binary(max_size=3000), st.sampled_from(["", "text/html", "text/plain", "text/xml", "text/json"]))
def test_any_bytes_have_a_kind(body: bytes, content_type: str) -> None:
    assert isinstance(sniff_media(body, content_type, URL), Media)


def test_hostile_prologue_is_quick() -> None:
    assert sniff_media(b"<!DOCTYPE " + b"[a]" * 600, "text/xml", URL) is Media.OTHER


@given(st.binary(max_size=5000), st.integers(1, 6000))
def test_gunzip_restores_up_to_the_limit(body: bytes, limit_bytes: int) -> None:
    assert maybe_gunzip(gzip.compress(body), limit_bytes) == body[:limit_bytes]


def test_gunzip_reads_members_and_stops_at_damage() -> None:
    assert maybe_gunzip(gzip.compress(b"a" * 10) + gzip.compress(b"b" * 10), 100) == b"a" * 10 + b"b" * 10
    assert maybe_gunzip(b"no gzip", 3) == b"no gzip"
    words = b" ".join(b"%d" % (i * i) for i in range(20_000))
    packed = gzip.compress(words)
    assert (
        maybe_gunzip(packed[: len(packed) // 2], 10**6) == words[: len(maybe_gunzip(packed[: len(packed) // 2], 10**6))]
    )
    broken = packed[:8000] + bytes(200) + packed[8200:]
    rescued = maybe_gunzip(broken, 10**6)
    assert len(rescued) > 1000
    assert rescued[:1000] == words[:1000]
    assert maybe_gunzip(b"\x1f\x8bnonsense", 100) == b""


def test_a_bomb_costs_no_more_than_the_limit() -> None:
    assert len(maybe_gunzip(gzip.compress(bytes(50_000_000)), 1000)) == 1000


def test_text_in_any_language_is_not_binary() -> None:
    assert not looks_binary("Ünïcödé, 日本語\x1b[0m and a tab\t".encode() * 10)
