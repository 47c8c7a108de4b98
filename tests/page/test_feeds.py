from __future__ import annotations

import time

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bowerbird.page.feeds import MAX_ENTRIES, FeedEntry, parse_feed

RSS = b"""<?xml version="1.0" encoding="utf-8"?>
<rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom" xmlns:sy="http://purl.org/rss/1.0/modules/syndication/"
 xmlns:media="http://search.yahoo.com/mrss/" xmlns:dc="http://purl.org/dc/elements/1.1/">
<channel><title>News &amp; views</title><link>http://a.example/</link>
<atom:link rel="self" href="http://a.example/rss"/><atom:link rel="hub" href="http://hub.example/"/>
<ttl>30</ttl><sy:updatePeriod>hourly</sy:updatePeriod><sy:updateFrequency>2</sy:updateFrequency>
<item><media:title>Photo</media:title><title><![CDATA[One < two]]></title><link> http://a.example/1 </link>
<pubDate>Thu, 05 Jan 2017 13:34:51 +0100</pubDate></item>
<item><title>Two</title><atom:link href="http://a.example/self" rel="self"/>
<guid>http://a.example/2</guid><dc:date>2017-01-05T12:34:51Z</dc:date></item>
<item><title>Nowhere</title><guid isPermaLink="false">tag:1</guid></item>
</channel></rss>"""


def test_rss_2() -> None:
    feed = parse_feed(RSS)
    assert feed is not None
    assert (feed.title, feed.hub, feed.ttl_s, feed.update_period_s) == (
        "News & views",
        "http://hub.example/",
        1800,
        1800,
    )
    assert feed.entries == [
        FeedEntry("http://a.example/1", "One < two", 1483619691.0),
        FeedEntry("http://a.example/2", "Two", 1483619691.0),
    ]


def test_rss_1_has_its_items_beside_the_channel() -> None:
    feed = parse_feed(
        b"""<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/">
        <channel rdf:about="http://a.example/"><title>T</title></channel>
        <item rdf:about="http://a.example/1"><title>One</title></item>
        <item rdf:about="x"><title>Two</title><link>http://a.example/2</link></item></rdf:RDF>"""
    )
    assert feed is not None
    assert [entry.href for entry in feed.entries] == ["http://a.example/1", "http://a.example/2"]


def test_atom_links_and_base() -> None:
    feed = parse_feed(
        b"""<feed xmlns="http://www.w3.org/2005/Atom" xml:base="http://a.example/blog/"><title>T</title>
        <link rel="hub" href="http://hub.example/"/>
        <entry><link rel="edit" href="e"/><link rel="alternate" type="application/json" href="j"/>
        <link rel="alternate" type="text/html" href="one"/><updated>2003-12-13T18:30:02Z</updated></entry>
        <entry xml:base="../other/"><link href="two"/><published>2003-12-13</published>
        <updated>2005-12-13</updated></entry>
        <entry><id>http://a.example/three</id></entry></feed>"""
    )
    assert feed is not None
    assert feed.hub == "http://hub.example/"
    assert [entry.href for entry in feed.entries] == [
        "http://a.example/blog/one",
        "http://a.example/other/two",
        "http://a.example/three",
    ]
    assert [entry.published_s for entry in feed.entries] == [1071340202.0, 1071273600.0, None]


def test_json_feed() -> None:
    data = {
        "version": "https://jsonfeed.org/version/1.1",
        "title": "J",
        "hubs": [{"type": "WebSub", "url": "http://hub.example/"}],
        "items": [{"id": "1", "url": "http://a.example/1", "date_published": "2020-01-01T00:00:00Z"}, {"id": 2}, 3],
    }
    feed = parse_feed(b"\xef\xbb\xbf" + orjson.dumps(data))
    assert feed is not None
    assert (feed.title, feed.hub) == ("J", "http://hub.example/")
    assert feed.entries == [FeedEntry("http://a.example/1", "", 1577836800.0)]
    assert parse_feed(b'{"version": 1}') is None
    assert parse_feed(b"{broken") is None


@pytest.mark.parametrize(
    ("body", "href"),
    [
        (b"\n junk <?xml version='1.0'?><rss><channel><item><link>http://a/?x=1&y=2</link>", "http://a/?x=1&y=2"),
        (b"<rss><channel><item><title>a&nbsp;b &bogus; & c</title><link>http://a/1</link></item>", "http://a/1"),
        (b"<rss><channel><item><title><b>x</title><link>http://a/1</link></item></channel></rss>", "http://a/1"),
        (b"<rss><channel><item><title>\x00\x0b</title><link>http://a/1</link></item></channel></rss>", "http://a/1"),
        ("<rss><channel><item><link>http://a/é</link></item></channel></rss>".encode("latin-1"), "http://a/é"),
        (
            "<?xml version='1.0' encoding='utf-8'?><rss><item><link>http://a/1</link></item></rss>".encode("utf-16"),
            "http://a/1",
        ),
        (b"<?xml version='1.0' encoding='bogus'?><rss><item><link>http://a/1</link></item></rss>", "http://a/1"),
    ],
)
def test_ill_formed_feeds_are_read(body: bytes, href: str) -> None:
    feed = parse_feed(body)
    assert feed is not None
    assert [entry.href for entry in feed.entries] == [href]


def test_header_charset_wins() -> None:
    body = "<?xml version='1.0' encoding='utf-8'?><rss><channel><title>Привет</title></channel></rss>".encode("koi8-r")
    feed = parse_feed(body, "application/rss+xml; charset=koi8-r")
    assert feed is not None
    assert feed.title == "Привет"


def test_entities_are_neither_expanded_nor_fetched() -> None:
    lol = "".join(f'<!ENTITY l{i} "{f"&l{i - 1};" * 10}">' for i in range(1, 10))
    body = f"""<!DOCTYPE rss [<!ENTITY l0 "lol">{lol}<!ENTITY file SYSTEM "file:///etc/hostname">]>
    <rss><channel><title>&l9;&file;</title><item><link>http://a/1</link></item></channel></rss>""".encode()
    start_s = time.process_time()
    feed = parse_feed(body)
    assert time.process_time() - start_s < 1.0
    assert feed is not None
    assert len(feed.title) < 100
    assert "lol" not in feed.title
    assert [entry.href for entry in feed.entries] == ["http://a/1"]


def test_what_is_no_feed() -> None:
    for body in (b"", b"   ", b"<html><body>x", b"<urlset/>", b"plain", b"\x89PNG\0\0", b"<", b"<!-- -->"):
        assert parse_feed(body) is None


def test_endless_feeds_are_cut() -> None:
    body = b"<rss><channel>" + b"<item><link>http://a/1</link></item>" * (MAX_ENTRIES + 10)
    feed = parse_feed(body)
    assert feed is not None
    assert len(feed.entries) == MAX_ENTRIES


def test_deep_nesting_is_survived() -> None:
    assert parse_feed(b"<rss>" * 100_000) is not None


@given(st.binary(max_size=300))
def test_any_bytes(body: bytes) -> None:
    for prefix in (b"", b"<rss><channel><item><link>", b"<feed><entry>", b"{"):
        feed = parse_feed(prefix + body)
        assert feed is None or len(feed.entries) <= 5


def test_a_feed_says_how_often_it_is_updated() -> None:
    def period(inside: str) -> float | None:
        feed = parse_feed(
            f"<rss xmlns:sy='http://purl.org/rss/1.0/modules/syndication/'><channel>{inside}</channel></rss>".encode()
        )
        assert feed is not None
        return feed.period_s

    assert period("<ttl>30</ttl>") == 1800.0
    assert (
        period("<ttl>30</ttl><sy:updatePeriod>daily</sy:updatePeriod>") == 86_400.0
    )  # it says more than how long to keep it
    assert period("<sy:updatePeriod>daily</sy:updatePeriod><sy:updateFrequency>4</sy:updateFrequency>") == 21_600.0
    assert period("<ttl>soon</ttl><sy:updatePeriod>now and then</sy:updatePeriod>") is None


@pytest.mark.parametrize(("rel", "found"), [("hub", True), ("self hub", True), ("HUB", True), ("hub-x", False)])
def test_a_websub_hub_is_one_among_the_relations_of_a_link(rel: str, found: bool) -> None:
    body = f'<feed xmlns="http://www.w3.org/2005/Atom"><link rel="{rel}" href="http://hub.example/"/></feed>'
    feed = parse_feed(body.encode())
    assert feed is not None
    assert (feed.hub == "http://hub.example/") is found
