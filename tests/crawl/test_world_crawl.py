"""A whole web crawled once: everything that can be reached is fetched once and found, and nothing else is asked for."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import pairwise
from pathlib import Path

import pytest
from tests.crawl.conftest import Crawled
from tests.crawl.crawling import CONTACT, Left, Ran, make_crawl, run_command

from bowerbird.lab.world import Access, Faults, TrapKind, World, WorldServer, WorldSpec
from bowerbird.model.outcome import Outcome
from bowerbird.model.url_state import UrlState
from bowerbird.store.archive_reader import iterate_exchanges

LATENCY_S = 0.015
TRAP_URLS_AT_MOST = 60  # of some hundred thousand that a calendar has


def url_of(place: tuple[str, str]) -> str:
    return "http://{}{}".format(*place)


def test_it_ends_by_itself_with_a_summary(crawled: Crawled) -> None:
    assert crawled.ran.code == 0
    assert " fetches in " in crawled.ran.out
    assert "0 URLs in the frontier" in crawled.ran.out


def test_every_reachable_page_is_fetched_exactly_once(crawled: Crawled) -> None:
    asked = Counter((access.host, access.path) for access in crawled.log)
    assert len(crawled.pages) > 400
    assert crawled.pages - set(asked) == set()
    assert {place: times for place, times in asked.items() if times > 1} == {}


def test_the_journal_has_each_request_and_no_other(crawled: Crawled) -> None:
    asked = Counter(url_of((access.host, access.path)) for access in crawled.log if access.path != "/robots.txt")
    assert Counter(crawled.left.fetches()) == asked


def test_everything_fetched_is_searchable_and_archived(crawled: Crawled, tmp_path: Path) -> None:
    left = crawled.left
    left.check_agreement(tmp_path / "copy")
    urls = left.urls()
    indexed = {urls[row] for row in left.indexed()}
    assert {url_of(place) for place in crawled.pages} <= indexed
    archived = Counter(exchange.url for exchange in iterate_exchanges(left.folder.archive) if exchange.status == 200)
    assert {url for url, times in archived.items() if times != 1} == set()
    assert indexed <= set(archived)


def test_titles_find_their_pages(crawled: Crawled) -> None:
    world = crawled.world
    now = world.spec.start_s
    leaves = [page for page in world.reachable_pages(now, sitemaps=True).tolist() if page % 50 == 7]
    assert len(leaves) >= 6
    for page in leaves:
        host, path = world.location(page)
        body = world.page(host, path, now).body.decode()
        title = body.partition("<title>")[2].partition("</title>")[0]
        host_name = host.partition(":")[0]
        assert world.url(page) in crawled.left.search(f'"{title}" site:{host_name}'), title


def test_no_disallowed_path_was_asked_for(crawled: Crawled) -> None:
    rules = {host: crawled.world.disallowed(host) for host in crawled.world.hosts}
    assert sum(map(bool, rules.values())) >= 3
    broken = [
        (access.host, access.path)
        for access in crawled.log
        if any(access.path.startswith(prefix) for prefix in rules[access.host])
    ]
    assert broken == []
    excluded = [url for url, state in crawled.left.states().items() if state is UrlState.EXCLUDED]
    assert len(excluded) > 20
    for url in excluded:
        host, _, path = url.removeprefix("http://").partition("/")
        assert any(f"/{path}".startswith(prefix) for prefix in rules[host])
        assert crawled.left.outcomes(url) == [Outcome.ROBOTS]


def test_robots_comes_before_anything_else_of_a_host(crawled: Crawled) -> None:
    by_host: defaultdict[str, list[Access]] = defaultdict(list)
    for access in sorted(crawled.log, key=lambda access: access.began_s):
        by_host[access.host].append(access)
    assert set(by_host) == set(crawled.world.hosts)
    for accesses in by_host.values():
        assert accesses[0].path == "/robots.txt"
        assert [access.path for access in accesses].count("/robots.txt") == 1
        assert all(access.began_s >= accesses[0].ended_s for access in accesses[1:])


def test_traps_are_left_soon(crawled: Crawled) -> None:
    world = crawled.world
    assert {trap.kind for trap in world.traps()} == set(TrapKind)
    kinds = {trap.host: trap.kind for trap in world.traps()}
    trapped = [access for access in crawled.log if world.is_trap(access.host, access.path)]
    by_kind = Counter(kinds[access.host] for access in trapped)
    assert by_kind[TrapKind.CALENDAR] > 0
    assert max(by_kind.values()) <= TRAP_URLS_AT_MOST
    assert by_kind[TrapKind.SESSIONS] == 0  # a session is no part of an address
    assert by_kind[TrapKind.FOLDERS] <= 3
    assert by_kind[TrapKind.REDIRECTS] <= 11


def test_redirects_are_recorded_with_their_targets(crawled: Crawled) -> None:
    world, left, now = crawled.world, crawled.left, crawled.world.spec.start_s
    urls = left.urls()
    moved = left.rows("SELECT url, target, status FROM fetches WHERE outcome = ?", int(Outcome.REDIRECT))
    checked = 0
    for row, target, status in moved:
        host, _, path = urls[row].removeprefix("http://").partition("/")
        answer = world.page(host, f"/{path}", now)
        assert answer.status == status
        assert answer.location is not None
        there = answer.location if "//" in answer.location else url_of((host, answer.location))
        assert urls[target] == there
        assert left.states()[urls[row]] is UrlState.REDIRECT
        checked += not world.is_trap(host, f"/{path}")
    assert checked >= 10


def test_dead_links_are_gone(crawled: Crawled) -> None:
    missing = {url_of((access.host, access.path)) for access in crawled.log if access.status == 404}
    missing = {url for url in missing if not url.endswith("/robots.txt")}
    states = crawled.left.states()
    assert len(missing) > 20
    assert {url for url, state in states.items() if state is UrlState.GONE} == missing


def test_copies_are_marked(crawled: Crawled) -> None:
    world, left = crawled.world, crawled.left
    urls = left.urls()
    numbers = {url: row for row, url in urls.items()}
    marked = dict(left.rows("SELECT url, duplicate_of FROM versions WHERE duplicate_of IS NOT NULL"))
    pages = world.reachable_pages(world.spec.start_s, sitemaps=True).tolist()
    reached = {world.url(page) for page in pages}
    copies = [page for page in pages if world.original(page) is not None]
    pairs = [(world.url(copy), world.url(world.original(copy) or 0)) for copy in copies]
    pairs = [(copy, original) for copy, original in pairs if original in reached]
    assert len(pairs) >= 5
    linked = sum(numbers[copy] in marked or numbers[original] in marked for copy, original in pairs)
    assert linked >= 0.8 * len(pairs)
    host_pages = [row for row in marked if not world.is_trap(*split(urls[row]))]
    strangers = [
        urls[row]
        for row in host_pages
        if world.original(world.find(*split(urls[row]), world.spec.start_s) or 0) is None
        and (urls[marked[row]], urls[row]) not in pairs
    ]
    assert strangers == []


def split(url: str) -> tuple[str, str]:
    host, _, path = url.removeprefix("http://").partition("/")
    return host, f"/{path}"


def test_anchor_texts_and_in_links_are_kept(crawled: Crawled) -> None:
    left = crawled.left
    anchors = left.rows("SELECT target, text FROM anchors")
    assert len(anchors) > 400
    assert all(text.strip() == text and text for _, text in anchors)
    assert len(set(anchors)) == len(anchors)


# Politeness, seen from the other side


@pytest.fixture(scope="module")
def polite(tmp_path_factory: pytest.TempPathFactory) -> tuple[WorldServer, Ran, list[Access], Left]:
    spec = WorldSpec(
        seed=5, frozen=True, hosts=6, pages=42, mean_links=6, crawl_delay_share=0.4, crawl_delay_s=0.3, trap_share=0.0
    )
    root = tmp_path_factory.mktemp("polite") / "crawl"
    with WorldServer(World(spec), faults=Faults(latency_ms=1000 * LATENCY_S)) as server:
        politeness = {"delay_s": 0.15, "connections_per_host": 4}
        make_crawl(root, server.world.seeds(), {"politeness": politeness, "traps": {"urls_per_pattern": 12}})
        ran = run_command("crawl", root, "--once", "--workers", 2)
        return server, ran, server.log(), Left(root)


def test_one_request_at_a_time_and_a_pause_between_them(
    polite: tuple[WorldServer, Ran, list[Access], Left],
) -> None:
    server, ran, log, _ = polite
    world = server.world
    assert ran.code == 0
    assert {access.host for access in log} == set(world.hosts)
    slow = [host for host in world.hosts if world.crawl_delay_s(host)]
    assert slow
    assert set(world.hosts) - set(slow)
    for host in world.hosts:
        mine = sorted((access for access in log if access.host == host), key=lambda access: access.began_s)
        assert len(mine) > 3
        assert max(access.in_flight for access in mine) == 1
        assert max(access.connections for access in mine) == 1
        delay_s = max(0.15, world.crawl_delay_s(host) or 0.0)
        # from the answer on; when it was sent is known by when it was due, not by when the server wrote its log
        pauses = [later.began_s - earlier.began_s - LATENCY_S for earlier, later in pairwise(mine)]
        assert min(pauses) >= delay_s - 0.002, host


def test_hosts_do_not_wait_for_each_other(polite: tuple[WorldServer, Ran, list[Access], Left]) -> None:
    server, _, log, _ = polite
    begin, end = min(access.began_s for access in log), max(access.ended_s for access in log)
    asked = Counter(access.host for access in log)
    pauses_s = {host: times * max(0.15, server.world.crawl_delay_s(host) or 0.0) for host, times in asked.items()}
    assert end - begin < 0.85 * sum(pauses_s.values())


def test_the_archived_requests_have_an_honest_name(polite: tuple[WorldServer, Ran, list[Access], Left]) -> None:
    import gzip

    _, _, _, left = polite
    files = list(left.folder.archive.glob("*.warc.gz"))
    assert files
    text = b"".join(gzip.decompress(path.read_bytes()) for path in files)
    agents = {line for line in text.split(b"\r\n") if line.lower().startswith(b"user-agent:")}
    assert len(agents) == 1
    agent = agents.pop().decode()
    assert agent.startswith("User-Agent: Bowerbird/")
    assert f"(+{CONTACT})" in agent


# Hosts in trouble


def test_a_flaky_web_is_crawled_to_the_end_and_left_alone_when_it_asks(tmp_path: Path) -> None:
    """503 with Retry-After, and connections that are reset: also for robots.txt."""
    spec = WorldSpec(seed=7, frozen=True, hosts=4, pages=80, mean_links=8, crawl_delay_share=0.0, trap_share=0.0)
    faults = Faults(error_share=0.06, drop_share=0.04, retry_after_s=1.0, seed=5)
    with WorldServer(World(spec), faults=faults) as server:
        root = make_crawl(
            tmp_path / "crawl",
            server.world.seeds(),
            {"crawl": {"retry_base_s": 0.2, "max_errors": 6}, "politeness": {"connections_per_host": 1}},
        )
        ran = run_command("crawl", root, "--once", "--workers", 2)
        log = server.log()
    left = Left(root)
    assert ran.code == 0, ran.err
    busy = [access for access in log if access.status == 503]
    reset = [access for access in log if access.status == 0]
    assert len(busy) > 3
    assert len(reset) > 2
    for access in busy:
        later = [other.began_s for other in log if other.host == access.host and other.began_s > access.began_s]
        assert not later or min(later) >= access.began_s + 1.0 - 0.002
    wanted = {url_of(place) for place in server.world.reachable(spec.start_s, sitemaps=True)}
    assert wanted <= set(left.fetches(Outcome.OK))
    throttled = [access for access in busy if access.path != "/robots.txt"]
    assert len(left.fetches(Outcome.THROTTLED)) == len(throttled)
    left.check_agreement(tmp_path / "copy")
