from __future__ import annotations

import gzip
import time

from hypothesis import given
from hypothesis import strategies as st

from bowerbird.page import sitemaps
from bowerbird.page.sitemaps import Sitemap, SitemapEntry, parse_sitemap

URL = "http://a.example/sitemap.xml"


def read(body: bytes) -> Sitemap:
    found = parse_sitemap(body, URL)
    assert found is not None
    return found


def test_urlset() -> None:
    body = b"""<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"
    xmlns:image="http://www.google.com/schemas/sitemap-image/1.1">
    <url><loc>http://a.example/?a=1&amp;b=2</loc><lastmod>2005-01-01</lastmod><changefreq>Monthly</changefreq>
    <priority>0.8</priority><image:image><image:loc>http://a.example/i.png</image:loc></image:image></url>
    <url><image:loc>http://a.example/i.png</image:loc><loc>
      http://a.example/2 </loc><changefreq>sometimes</changefreq><priority>7</priority><lastmod>never</lastmod></url>
    <url><lastmod>2005-01-01</lastmod></url></urlset>"""
    assert read(body) == Sitemap(
        [
            SitemapEntry("http://a.example/?a=1&b=2", 1104537600.0, "monthly", 0.8),
            SitemapEntry("http://a.example/2", None, "", None),
        ]
    )
    assert read(gzip.compress(body)) == read(body)


def test_index() -> None:
    found = read(b"<sitemapindex><sitemap><loc>http://a/1.xml</loc><lastmod>2005</lastmod></sitemap></sitemapindex>")
    assert found.pages == []
    assert found.children == [SitemapEntry("http://a/1.xml", 1104537600.0, "", None)]


def test_namespaces_right_wrong_or_absent() -> None:
    for opening in ("<urlset>", '<urlset xmlns="http://wrong/">', '<URLSET xmlns="sitemaps.org">'):
        closing = "</" + opening[1:7] + ">"
        found = read(f"{opening}<url><loc>http://a/1</loc></url>{closing}".encode())
        assert [entry.href for entry in found.pages] == ["http://a/1"]


def test_news_date_stands_in_for_lastmod() -> None:
    found = read(
        b"""<urlset xmlns:news="http://www.google.com/schemas/sitemap-news/0.9"><url><loc>http://a/1</loc>
        <news:news><news:publication_date>2008-12-23</news:publication_date></news:news></url></urlset>"""
    )
    assert found.pages[0].lastmod_s == 1229990400.0


def test_text_lists() -> None:
    assert [entry.href for entry in read(b"\xef\xbb\xbfhttp://a/1\r\n\r\n  https://a/2 \nftp://a/3\n").pages] == [
        "http://a/1",
        "https://a/2",
    ]
    assert parse_sitemap(b"some words\nand more\nhttp://a/1\n", URL) is None


def test_feeds_serve_as_sitemaps() -> None:
    found = read(
        b"""<rss><channel><image><url>http://a/logo.png</url></image>
        <item><link>http://a/1</link><pubDate>Thu, 05 Jan 2017 12:34:51 GMT</pubDate></item></channel></rss>"""
    )
    assert found.pages == [SitemapEntry("http://a/1", 1483619691.0, "", None)]


def test_damage_keeps_what_came_before() -> None:
    body = b"<urlset>" + b"".join(b"<url><loc>http://a/%d?x=1&y=2</loc></url>" % i for i in range(100))
    assert len(read(body[:-20]).pages) >= 99
    assert read(body).pages[0].href == "http://a/0?x=1&y=2"
    assert len(read(gzip.compress(body)[:-20]).pages) > 10


def test_the_limit() -> None:
    body = b"<urlset>" + b"<url><loc>http://a/</loc></url>" * 50_100 + b"</urlset>"
    start_s = time.process_time()
    found = read(body)
    assert (len(found.pages), found.cut) == (50_000, 100)
    assert time.process_time() - start_s < 10
    assert read(b"http://a/\n" * 50_007).cut == 7


def test_a_bomb_is_bounded() -> None:
    limit = sitemaps.MAX_UNPACKED_BYTES
    start_s = time.process_time()
    assert parse_sitemap(gzip.compress(bytes(limit + 10_000_000), 1), URL) is None
    assert time.process_time() - start_s < 10


def test_what_is_no_sitemap() -> None:
    for body in (b"", b"<html><body>no", b"words", b"\x89PNG\0", b"<", b"{}", b"\x1f\x8b"):
        assert parse_sitemap(body, URL) is None


@given(st.binary(max_size=300))
def test_any_bytes(body: bytes) -> None:
    for prefix in (b"", b"<urlset><url><loc>http://a/", b"http://a/"):
        found = parse_sitemap(prefix + body, URL)
        assert found is None or found.cut == 0


def test_a_sitemap_says_how_often_its_pages_change() -> None:
    def period(*said: str) -> float | None:
        urls = "".join(
            f"<url><loc>http://a.example/{n}</loc><changefreq>{one}</changefreq></url>" for n, one in enumerate(said)
        )
        sitemap = parse_sitemap(f"<urlset>{urls}</urlset>".encode(), "")
        assert sitemap is not None
        return sitemap.period_s

    assert period("daily", "daily", "yearly") == 86_400.0
    assert period("always") == 3600.0
    assert period("never", "often") is None
    feed = b"<rss><channel><ttl>60</ttl><item><link>http://a.example/1</link></item></channel></rss>"
    as_map = parse_sitemap(feed, "")
    assert as_map is not None
    assert as_map.period_s == 3600.0
