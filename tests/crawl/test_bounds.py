"""What keeps a crawl within bounds: pipes that fill up, scopes that change, hosts that announce too much."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.crawl.crawling import Left, make_crawl, run_command
from tests.web.hostile_server import HostileServer, answer


def links(paths: list[str]) -> bytes:
    return ("<title>t</title>" + "".join(f"<a href='{path}'>{path}</a> " for path in paths)).encode()


def test_refusals_by_the_hundred_thousand_do_not_stop_the_crawl(tmp_path: Path) -> None:
    with HostileServer() as server:
        pages = [f"/p{n}" for n in range(60)]
        server.routes["/"] = answer(links(pages))
        for page in pages:
            server.routes[page] = answer(links([f"{page}/{'x' * 80}/{n}" for n in range(4000)]))
        root = make_crawl(
            tmp_path / "crawl",
            [server.url("/")],
            {"crawl": {"max_depth": 1}, "politeness": {"delay_s": 0.0, "connections_per_host": 64}},
        )
        ran = run_command("crawl", root, "--once", "--workers", 2, timeout_s=60)
    assert ran.code == 0, ran.err
    left = Left(root)
    assert {url.rpartition("/")[2] for url in left.fetches() if "/p" in url} == {page[1:] for page in pages}


def test_sitemaps_of_other_hosts_are_not_asked_for_and_hubs_are_bounded(tmp_path: Path) -> None:
    with HostileServer() as server, HostileServer() as other:
        feeds = "".join(
            f"<link rel=alternate type=application/rss+xml href='/feed/{chr(97 + n // 26)}{chr(97 + n % 26)}'>"
            for n in range(60)
        )
        robots = f"Sitemap: {other.url('/foreign.xml')}\nSitemap: /own.xml\n"
        server.routes["/robots.txt"] = answer(robots.encode(), headers=("Content-Type: text/plain",))
        server.routes["/"] = answer(feeds.encode() + links(["/a", "/b"]))
        for page in ("/a", "/b"):
            server.routes[page] = answer(feeds.replace("/feed/", f"/feed{page}/").encode())
        # the two servers differ in their ports only, so the scope must go by more than the host's name
        root = make_crawl(
            tmp_path / "crawl", [server.url("/")], {"crawl": {"include": [server.url("/").rstrip("/") + "/"]}}
        )
        ran = run_command("crawl", root, "--once", "--workers", 1, timeout_s=60)
        assert ran.code == 0, ran.err
        assert other.connections == 0
        asked = Left(root).fetches()
    assert server.url("/own.xml") in asked
    assert sum("/feed" in url for url in asked) == 50


@pytest.mark.parametrize("section", ["include", "exclude"])
def test_a_changed_scope_reaches_what_was_found_before(tmp_path: Path, section: str) -> None:
    with HostileServer() as server:
        server.routes["/"] = answer(links(["/keep/1", "/drop/1"]))
        for page in ("/keep/1", "/drop/1"):
            server.routes[page] = answer(links([f"{page}/more"]))
        root = make_crawl(tmp_path / "crawl", [server.url("/")])
        assert run_command("crawl", root, "--pages", 2, "--workers", 1).code == 0
        config = root / "bowerbird.toml"
        before = config.read_text()
        rule = {"exclude": '["/drop/"]', "include": '["/keep/", "/$", "sitemap"]'}[section]
        config.write_text(before.replace(f"# {section} = []", f"{section} = {rule}"))
        assert run_command("crawl", root, "--once", "--workers", 1).code == 0
        asked = [url for url in Left(root).fetches() if "/drop/" in url]
        assert asked == []
        assert run_command("status", root, "--json").json()["errors"]["out-of-scope"] == 1
        config.write_text(before)
        assert run_command("crawl", root, "--once", "--workers", 1).code == 0
        assert server.url("/drop/1") in Left(root).fetches()


def test_feeds_are_tried_at_well_known_places_where_one_asks_for_it(tmp_path: Path) -> None:
    feed = b"<rss version='2.0'><channel><title>f</title><item><link>/announced</link></item></channel></rss>"
    for paths, found in (([], 0), (["/feed"], 1)):
        with HostileServer() as server:
            server.routes["/"] = answer(b"<title>no link to a feed</title>")
            server.routes["/feed"] = answer(feed, headers=("Content-Type: application/rss+xml",))
            server.routes["/announced"] = answer(b"<title>only in the feed</title>")
            root = make_crawl(tmp_path / str(found), [server.url("/")], {"crawl": {"well_known_feeds": paths}})
            assert run_command("crawl", root, "--once", timeout_s=60).code == 0
            assert sum(url.endswith("/announced") for url in Left(root).fetches()) == found
