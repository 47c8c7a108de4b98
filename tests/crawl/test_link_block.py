from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bowerbird.crawl import link_block
from bowerbird.crawl.link_block import LinkBlock, LinkMemory
from bowerbird.crawl.reading import RESOLVED_KEPT, Reader, unpack_lines
from bowerbird.crawl.report import Links
from bowerbird.crawl.scope import Scope, ScopeRules
from bowerbird.model.url_state import UrlKind
from bowerbird.store.url_table import anchor_mark, hash_urls
from bowerbird.web.url import Canonicaliser

SEED = 5


def admit(url: str) -> int:
    return -1 if "/secret" in url else int(hash_urls([url], SEED)[0])


def memory() -> LinkMemory:
    return LinkMemory(Canonicaliser(), admit)


bases = st.sampled_from(
    [
        "http://a.example/",
        "http://a.example/dir/page.html",
        "http://a.example/dir/page.html?q=/x/y",
        "http://a.example/dir/",
        "https://b.example:8080/deep/er/",
        "http://a.example//b.example/",
        "http://a.example/a:b/",
    ]
)
hrefs = st.one_of(
    st.sampled_from(["", "#x", "?a=1", "/", "//b.example/z", "http://a.example/secret/1", "httpd.html", "mailto:x@y"]),
    st.from_regex(r"(\.\./|\./|/)?[a-z]{1,3}(/[a-z]{1,3}){0,2}(\?[a-z]=[0-9])?(#[a-z])?", fullmatch=True),
    st.from_regex(r"https?://[ab]\.example(:8080)?/[a-z]{0,3}(\?[a-z]=[0-9])?", fullmatch=True),
    st.from_regex(r"(https?:|//)?[/ab.:\\#? \tx%]{0,6}", fullmatch=True),
    st.from_regex(r"https?://[ab]\.example[/\\?#:.]{0,3}[ab]?", fullmatch=True),
)


@given(st.lists(st.tuples(bases, st.lists(hrefs, max_size=12)), max_size=8))
def test_what_is_remembered_is_what_would_be_found_anew(pages: list[tuple[str, list[str]]]) -> None:
    remembering = memory()
    for base, links in pages:
        expected = [
            () if url is None or admit(url) < 0 else (url, admit(url)) for url in Canonicaliser().resolve(base, links)
        ]
        assert remembering.resolve(base, links) == expected


def test_a_url_is_remembered_once_however_it_is_written() -> None:
    remembering = memory()
    for number in range(100):
        folder = f"http://a.example/folder-{number}/"
        written = ["/a/x", "http://a.example/a/x", "/a/x#top", f"http://a.example/a/x#{number}", "", f"#{number}"]
        assert {target[:1] for target in remembering.resolve(folder, written)} == {("http://a.example/a/x",), ()}
        assert remembering.resolve("http://a.example/a/", ["x", "x#2"])[1][:1] == ("http://a.example/a/x",)
    assert remembering._stored == 2  # the host and the URL


def test_folders_are_not_remembered_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link_block, "REMEMBERED", 1000)
    remembering = memory()
    tracemalloc.start()
    try:
        for number in range(20_000):  # each page is alone in its folder, and names a link that is long known
            remembering.resolve(f"http://a.example/{number}/", ["http://a.example/start"])
            remembering.resolve(f"http://{number}.example/", ["http://a.example/start"])
        assert tracemalloc.get_traced_memory()[0] < 2_000_000
    finally:
        tracemalloc.stop()


def test_a_reader_keeps_a_link_once() -> None:
    """Beneath a memory of links the canonicaliser need not remember them, too."""
    reader = Reader(Canonicaliser(cache_size=RESOLVED_KEPT), Scope(ScopeRules("anywhere")), agent="x", hash_seed=SEED)
    twice = Reader(Canonicaliser(), Scope(ScopeRules("anywhere")), agent="x", hash_seed=SEED)
    sizes = []
    for one in (reader, twice):
        tracemalloc.start()
        for first in range(0, 30_000, 100):
            base = f"http://host-{first % 30}.example/{first}/"
            one.memory.resolve(
                base, [f"http://host-{n % 30}.example/some/path/of-{n}" for n in range(first, first + 100)]
            )
        sizes.append(tracemalloc.get_traced_memory()[0])
        tracemalloc.stop()
    assert sizes[0] < 0.9 * sizes[1]


def names(links: Links) -> list[str]:
    return list(unpack_lines(links.urls, len(links.named) // 4))


def block(remembering: LinkMemory, *links: tuple[str, str]) -> Links:
    gathered = LinkBlock(remembering)
    targets = remembering.resolve("http://a.example/", [href for href, _ in links])
    gathered.add(targets, [(href, anchor, False) for href, anchor in links], nofollow_too=False)
    return gathered.pack("http://a.example/")


def test_a_url_is_spelt_out_once_and_again_when_it_was_refused() -> None:
    remembering = memory()
    first = block(remembering, ("/x", "one"), ("/y", "two"), ("/x", "three"))
    assert names(first) == ["http://a.example/x", "http://a.example/y"]
    assert first.count == 2
    again = block(remembering, ("/y", "two"), ("/z", ""))
    assert names(again) == ["http://a.example/z"]
    assert np.frombuffer(again.named, np.uint32).tolist() == [1]
    assert again.count == 2
    remembering.untell([admit("http://a.example/y")])
    assert names(block(remembering, ("/y", ""), ("/x", ""))) == ["http://a.example/y"]


def test_an_anchor_is_told_once_for_each_target() -> None:
    remembering = memory()
    first = block(remembering, ("/x", "same"), ("/y", "same"), ("/z", "with\nbreak"))
    assert np.frombuffer(first.marks, np.uint16).tolist() == [
        anchor_mark("same"),
        anchor_mark("same"),
        anchor_mark("with\nbreak"),
    ]
    assert first.anchors.decode().split("\n") == ["same", "same", "with break"]
    again = block(remembering, ("/x", "same"), ("/y", "other"), ("/z", ""))
    assert np.frombuffer(again.marks, np.uint16).tolist() == [0, anchor_mark("other"), 0]
    assert again.anchors == b"other"


def test_a_page_does_not_link_to_itself_and_the_rest_keeps_its_kind() -> None:
    remembering = memory()
    gathered = LinkBlock(remembering)
    own, feed, page = (
        remembering.resolve("http://a.example/", [href])[0] for href in ("http://a.example/", "/feed.xml", "/page")
    )
    gathered.add_source(own, "", UrlKind.PAGE, 7.0)
    gathered.add_source(feed, "", UrlKind.FEED, 0.0)
    gathered.add_source(page, "", UrlKind.PAGE, 9.0)
    packed = gathered.pack("http://a.example/")
    assert names(packed) == ["http://a.example/feed.xml", "http://a.example/page"]
    assert list(packed.kinds) == [UrlKind.FEED, UrlKind.PAGE]
    assert np.frombuffer(packed.modified, np.float64).tolist() == [0.0, 9.0]


def test_links_marked_nofollow_are_left_out_unless_wanted() -> None:
    remembering = memory()
    targets = remembering.resolve("http://a.example/", ["/x", "/y"])
    links = [("/x", "", True), ("/y", "", False)]
    for wanted, count in ((False, 1), (True, 2)):
        gathered = LinkBlock(remembering)
        gathered.add(targets, links, nofollow_too=wanted)
        assert gathered.pack("http://a.example/").count == count
