from __future__ import annotations

import io
import random
import tarfile
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from bowerbird.page.html import MAX_ANCHOR_CHARS, parse_html
from bowerbird.page.parsed import ParsedPage, RawLink
from bowerbird.web.directives import Directives


def parse(html: str) -> ParsedPage:
    return parse_html(html.encode(), "utf-8")


def hrefs(html: str) -> list[str]:
    return [link.href for link in parse(html).links]


def test_reads_the_head() -> None:
    page = parse(
        """<!doctype html><html lang="EN-gb"><head><title> A &amp;
        B </title><meta name=Description content=" About  it "><base href=/b/><base href=/c/>
        <link rel="Canonical" href=" /canon "><link rel=stylesheet href=x.css>
        <link rel="alternate" type="application/rss+xml" href=/rss>
        <link rel="alternate" type="application/atom+xml; charset=utf-8" href=/atom>
        <link rel="alternate" type="application/feed+json" href=/feed.json>
        <link rel="alternate" type="application/json" href=/wp-json/posts/1>
        <link rel="alternate" hreflang=de href=/de></head><body>x"""
    )
    assert (page.title, page.description, page.language) == ("A & B", "About it", "en")
    assert (page.base, page.canonical) == ("/b/", "/canon")
    assert page.feeds == ["/rss", "/atom", "/feed.json"]


def test_head_elements_are_found_where_a_broken_head_left_them() -> None:
    page = parse("<head><noscript><img src=p></noscript><title>T</title><link rel=canonical href=/c>")
    assert (page.title, page.canonical) == ("T", "/c")


def test_title_of_a_drawing_is_not_the_title() -> None:
    page = parse("<body><svg><title>Icon</title><text>no</text></svg><title>Page</title><p>yes")
    assert (page.title, page.text) == ("Page", "yes")


@pytest.mark.parametrize(
    ("html", "language"),
    [
        ("<html lang=de-CH>", "de"),
        ('<html xml:lang="fr">', "fr"),
        ('<meta http-equiv=Content-Language content="pt-BR, en">', "pt"),
        ("<html lang=''>", ""),
        ("<html lang=english>", ""),
        ("<p lang=de>", ""),
    ],
)
def test_language(html: str, language: str) -> None:
    assert parse(html).language == language


@pytest.mark.parametrize(
    ("content", "target"),
    [
        ("0; url=/x", "/x"),
        ("0;URL='/x y'", "/x y"),
        ("5, /x", "/x"),
        ("3.5; url = &quot;/x&quot; ", "/x"),
        ("; url=/x", "/x"),
        ("31; url=/x", None),
        ("5", None),
        ("0; url=", None),
    ],
)
def test_refresh(content: str, target: str | None) -> None:
    assert parse(f'<meta http-equiv="Refresh" content="{content}">').refresh == target


def test_directives_of_all_meta_elements_add_up() -> None:
    page = parse("<meta name=ROBOTS content=noindex><meta name=bowerbird content=nofollow><meta name=a content=none>")
    assert (page.directives.noindex, page.directives.nofollow, page.directives.noarchive) == (
        True,
        True,
        False,
    )
    assert not parse("<p>").directives.noindex


def test_links_are_deduplicated_with_the_first_anchor_that_says_something() -> None:
    page = parse(
        """<a href=" /a
        "></a><a href=/a>First <b>w</b>ord</a><a href=/a>second</a>
        <a href=/img><img alt=" A  picture "></a><a href=/none><img></a>
        <map><area href=/area alt=Region></map><a name=here>no</a>
        <iframe src=/frame>ignored <a href=/no>no</a></iframe>
        <a HREF='/q?a=1&amp;b=2'>é&nbsp;x</a>"""
    )
    assert sorted(page.links) == [
        RawLink("/a", "First word", False),
        RawLink("/area", "Region", False),
        RawLink("/frame", "", False),
        RawLink("/img", "A picture", False),
        RawLink("/none", "", False),
        RawLink("/q?a=1&b=2", "é x", False),
    ]


def test_frames() -> None:
    assert hrefs("<frameset><frame src=/1><frame src=/2></frameset>") == ["/1", "/2"]


def test_what_leads_nowhere_is_left_out() -> None:
    assert hrefs("<a href='#x'></a><a href=' '></a><a href=JavaScript:f()></a><a href=mailto:a@b></a><a href=x>") == [
        "x"
    ]


def test_a_link_is_nofollow_when_all_its_mentions_are() -> None:
    page = parse(
        """<a href=1 rel="noopener NoFollow">a</a><a href=2 rel=nofollow>a</a><a href=2>b</a>
        <a href=3 rel=nofollower>a</a>"""
    )
    assert {link.href: link.nofollow for link in page.links} == {"1": True, "2": False, "3": False}


def test_links_in_boilerplate_count_and_in_scripts_templates_and_comments_do_not() -> None:
    html = """<nav><a href=nav>n</a></nav><div hidden><a href=hidden>h</a></div>
    <noscript><a href=nos>s</a></noscript>
    <svg><a href=svg><path d=""/></a></svg><script>"<a href=js>"</script><template><a href=tpl></a></template>
    <!-- <a href=comment> --><textarea><a href=area></textarea><style><a href=css></style>"""
    assert hrefs(html) == ["nav", "hidden", "nos", "svg"]


def test_cap_on_links_and_anchors() -> None:
    body = b"".join(b"<a href=/%d>%s</a>" % (i, b"x " * 500) for i in range(30))
    page = parse_html(body, None, max_links=10)
    assert len(page.links) == 10
    assert page.links_cut == 20
    assert max(len(link.anchor) for link in page.links) <= MAX_ANCHOR_CHARS


def test_cap_on_text() -> None:
    assert len(parse_html(b"word " * 1000, None, max_text_chars=100).text) == 100


def test_charset_is_used_and_sniffed() -> None:
    assert parse_html("<p>日本語".encode("cp932"), "shift_jis").text == "日本語"
    assert parse_html("<meta charset=windows-1251><p>Привет".encode("cp1251"), None).text == "Привет"
    assert parse_html("\ufeff<title>é</title>".encode("utf-16-le"), None).title == "é"
    assert parse_html(b"\xef\xbb\xbf<title>x</title>", None).title == "x"
    assert "\ufffd" in parse_html(b"a\xff\xfeb c", "utf-8").text


def test_binary_is_an_empty_page() -> None:
    for body in (
        b"\x89PNG\r\n\x1a\n" + bytes(100),
        b"%PDF-1.4 <a href=x>",
        b"",
        random.Random(1).randbytes(5000),
    ):
        assert parse_html(body, "utf-8") == ParsedPage()


@settings(deadline=None)
@given(st.binary(max_size=600))
def test_any_bytes_give_a_page(body: bytes) -> None:
    page = parse_html(body, None)
    assert page.text == " ".join(page.text.split(" "))


SNIPPETS = [
    *("<div>", "</div>", "<p>", "</p>", "<span class='a b'>", "</span>", "<b>", "</b>", "<br>", "<br/>"),
    *("<a href=/1>", "<a class=x href='/2'>", '<A HREF="/3" id=z>', "</a>", "<a>", "<a href=/4 ", "<li>"),
    *("<!-- c -->", "<!-->", "<!x>", "</ >", "<>", "< a", "&nbsp;", "&amp;", "&lt;", "&#32;", "&emsp;"),
    *(" ", "\n", "word", "two words", "\u00a0", "\u3000", "é", "<script>'<a href=/s>'</script>", "&#x3000;"),
    *("<section>", "</section>", "<title>T</title>", "'", '"', "=", ">", "/", "<h1>", "</h1>", "<em>"),
    *("<style>p{}</style>", "</em>", "<img alt=pic>"),
]


@settings(deadline=None, max_examples=300)
@given(st.lists(st.sampled_from(SNIPPETS), max_size=25))
def test_tag_soup_reads_as_the_standard_parser_reads_it(pieces: list[str]) -> None:
    html = "<html><body>" + "".join(pieces)
    page = parse(html)
    tree = LexborHTMLParser(html)
    for node in tree.css("script,style,title"):
        node.decompose()
    expected = dict.fromkeys((node.attributes["href"] or "").strip() for node in tree.css("a[href]"))
    assert [link.href for link in page.links] == [href for href in expected if href]
    assert tree.body is not None
    assert "".join(page.text.split()) == "".join(tree.body.text().split())
    assert page.text == " ".join(page.text.split())


def read_articles(shared_data: Path, count: int) -> list[bytes]:
    articles: list[bytes] = []
    with tarfile.open(shared_data / "wikispeedia" / "html.tar.xz", "r|xz") as archive:
        for member in archive:
            if member.name.endswith(".htm"):
                file = archive.extractfile(member)
                articles.append(file.read() if isinstance(file, io.BufferedIOBase) else b"")
                if len(articles) == count:
                    break
    return articles


def test_real_articles_lose_nothing_in_the_sieve(shared_data: Path) -> None:
    articles = read_articles(shared_data, 150)
    assert len(articles) == 150
    for body in articles:
        page = parse_html(body, "utf-8")
        tree = LexborHTMLParser(body)
        anchors: dict[str, str] = {}
        for node in tree.css("a[href],area[href]"):
            href = (node.attributes["href"] or "").strip()
            if href and href[0] != "#" and not href.startswith(("mailto:", "javascript:")):
                anchors[href] = anchors.get(href) or " ".join(node.text().split())[:MAX_ANCHOR_CHARS].rstrip()
        assert {link.href for link in page.links} == set(anchors)
        assert all(link.anchor == anchors[link.href] for link in page.links if anchors[link.href])
        for node in tree.css("script,style"):
            node.decompose()
        assert tree.body is not None
        assert "".join(page.text.split()) == "".join(tree.body.text().split())
        assert page.title


@pytest.mark.parametrize(
    "body",
    [
        b"".join(b"<a href=/x%d>t%d</a> " % (i, i) for i in range(100_000)),
        b"<div>" * 200_000 + b"x",
        b"<nav><header>" * 50_000 + b"x",
        b"<a href=x><div>" * 20_000 + b"x",
        b"<p hidden></p>" + b"<font><ul><li>" * 3000 + b"x",
        b"<svg>" * 100_000 + b"</svg>" * 50_000,
        b"<!--" * 300_000,
        b"<a " + b"x=y " * 300_000 + b"href=z>",
        b'<a href="' * 200_000,
        b"<title>" * 200_000,
        b"<" * 1_000_000,
        b"&" * 1_000_000,
    ],
    ids=lambda body: body[:16].decode(),
)
def test_hostile_pages_are_bounded(body: bytes) -> None:
    parse_html(b"<p>", None)
    start_s = time.process_time()
    page = parse_html(body, None)
    assert time.process_time() - start_s < 5.0
    assert len(page.links) <= 5000


def test_a_meta_element_may_address_us_by_name() -> None:
    body = b"<meta name=MyBot content=noindex><meta name=bowerbird content=nofollow>"
    assert parse_html(body, None).directives == Directives(nofollow=True)
    assert parse_html(body, None, agent="mYbOT").directives == Directives(noindex=True)
