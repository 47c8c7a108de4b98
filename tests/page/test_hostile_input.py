"""What a stranger may send must not cost more than its length: no pattern may try all ways to read it."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from bowerbird.page.charset import read_header_charset, sniff_charset
from bowerbird.page.dates import parse_date
from bowerbird.page.html import parse_html
from bowerbird.page.media import Media, sniff_media
from bowerbird.page.xmltree import mend_xml
from bowerbird.web.directives import parse_robots_meta, parse_robots_tag

MOST_S = 0.05
URL = "http://example.org/sitemap.xml"
UNITS = (
    *("<!---->", "<!-- -->", "<!--", "-->", "<!-- a --> ", "<?a?>", "<?a?> ", "<?", "?>", "<?xml "),
    *("<!DOCTYPE ", "<!DOCTYPE a>", "<!DOCTYPE a [b]>", "[a]", "<![CDATA[", "]]>", "<a:", "http://a", "&a"),
    *("<meta ", "<meta charset", '<meta "', "<meta '", "charset=", "charset = ", "encoding=", "a='", 'a="', "a:"),
    *("a: ", "unavailable_after:", "a,", "*:", "noindex ", "2004-", "12:", "1 ", "1\t", "T ", "Mon, ", "+0"),
    *" \t\n\r\f\0<>!-?/=:;,.*&%#\"'[](){}+_aT1\u00a0é",
)
STARTS = (
    *("", "<!--", "<?xml", "<!DOCTYPE ", "<!DOCTYPE [", "<meta ", "<meta charset", "<meta content=", "encoding"),
    *("charset=", "<?xml encoding", "2004", "2004-12-23T18:00:15", "Thu, 05 Jan ", "a", "unavailable_after: "),
)
ENDS = ("", "x", ";", ">", "&")
READERS: dict[str, Callable[[str], object]] = {
    "sniff_media": lambda text: [sniff_media(text.encode(), kind, URL) for kind in ("", "text/html", "text/xml")],
    "sniff_charset": lambda text: sniff_charset(text.encode()),
    "read_header_charset": read_header_charset.__wrapped__,  # without its memory
    "mend_xml": lambda text: mend_xml(text.encode(), None),
    "parse_robots_meta": lambda text: parse_robots_meta(text, 1.7e9),
    "parse_robots_tag": lambda text: parse_robots_tag([text], "bowerbird", 1.7e9),
    "parse_date": parse_date,
    "refresh": lambda text: parse_html(f"<meta http-equiv=refresh content='{text}'>".encode(), "utf-8"),
}


def seconds_of(read: Callable[[str], object], text: str) -> float:
    """Processor time, so that others on the machine do not count; of two runs where the first is slow."""
    for _ in range(2):
        started = time.process_time()
        read(text)
        taken_s = time.process_time() - started
        if taken_s < MOST_S:
            break
    return taken_s


@pytest.mark.parametrize("name", READERS)
def test_time_does_not_explode(name: str) -> None:
    READERS[name]("a first call loads what is needed")
    for start in STARTS:
        for unit in UNITS:
            for end, size in zip(ENDS, (20_000, 2_000, 20_000, 2_000, 5_000), strict=True):
                text = start + unit * (size // len(unit)) + end
                assert seconds_of(READERS[name], text) < MOST_S, (start, unit, end, size)


@pytest.mark.parametrize("gap", ["", " ", "\n\n"])
def test_html_after_many_comments(gap: str) -> None:
    comments = gap.join(["<!---->"] * 200).encode()
    assert sniff_media(comments + b"<p>hello", "", "http://example.org/") is Media.HTML
    assert sniff_media(comments + b"hello", "", "http://example.org/") is Media.TEXT


def test_an_open_comment_hides_the_html_behind_it() -> None:
    assert sniff_media(b"<!-- <p>hello", "", "http://example.org/") is Media.TEXT
