"""A web that moves: refreshes find what changed, use 304, drop what is gone; runs end when and as they were told to."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest
from tests.crawl.crawling import Left, Ran, interrupt, make_crawl, run_command, running_crawl, wait_for
from tests.web.hostile_server import HostileServer, answer

from bowerbird.lab.world import Access, Faults, World, WorldServer, WorldSpec
from bowerbird.lab.world.web import Kind
from bowerbird.model.clock import ScaledClock
from bowerbird.model.outcome import Outcome
from bowerbird.model.url_state import FetchKind, UrlState

SPEED = 7_200.0  # two hours pass in a second
REFRESH = {"interval_s": 1.0, "min_interval_s": 0.5, "max_interval_s": 4.0, "hub_interval_s": 1.0}


@dataclass(frozen=True, slots=True)
class Life:
    """A living world that was crawled for a while under each refresh policy."""

    world: World
    clock: ScaledClock
    left: Left
    log: list[Access]
    ran: Ran
    ended_at: float


@pytest.fixture(scope="module", params=["fixed", "adaptive"])
def life(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Life:
    spec = WorldSpec(
        seed=8,
        hosts=4,
        pages=70,
        change_mix=((0.4, 0.0), (0.6, 8.0)),
        significant_share=0.6,
        gone_share=0.5,
        gone_after_days=0.6,
        articles_per_day=18.0,
        listed_days=1.0,
        crawl_delay_share=0.0,
        disallow_share=0.0,
        trap_share=0.0,
        validator_share=0.7,
    )
    clock = ScaledClock(SPEED, spec.start_s)
    root = tmp_path_factory.mktemp("life") / "crawl"
    with WorldServer(World(spec), clock) as server:
        make_crawl(root, server.world.seeds(), {"refresh": REFRESH, "traps": {"urls_per_pattern": 5}})
        ran = run_command("crawl", root, "--for", "11s", "--policy", f"breadth-first+{request.param}")
        ended_at = time.time()
        return Life(server.world, clock, Left(root), server.log(), ran, ended_at)


def virtual(life: Life, real_s: float) -> float:
    """What the world's clock said at a real time."""
    return life.world.spec.start_s + (real_s - life.clock._zero_s) * life.clock.speed


def page_of(life: Life, url: str) -> int | None:
    host, _, path = url.removeprefix("http://").partition("/")
    if host not in life.world.hosts or life.world.is_trap(host, f"/{path}"):
        return None
    return life.world.find(host, f"/{path}", virtual(life, life.ended_at))


def test_the_budget_goes_to_new_pages_refreshes_and_hubs(life: Life) -> None:
    assert life.ran.code == 0, life.ran.err
    kinds = dict(life.left.rows("SELECT kind, sum(fetches) FROM totals WHERE outcome < 16 GROUP BY kind"))
    assert kinds[FetchKind.NEW] > 40
    assert kinds[FetchKind.REFRESH] > 60
    assert kinds[FetchKind.HUB] > 8


def test_what_has_not_changed_is_answered_with_304(life: Life) -> None:
    by_server = sum(access.status == 304 for access in life.log)
    assert by_server > 20
    assert len(life.left.fetches(Outcome.NOT_MODIFIED)) == by_server


def test_changes_are_found_where_and_only_where_there_were_any(life: Life) -> None:
    """Between two visits: text that changed is seen to have changed; a page without any change is not."""
    urls = life.left.urls()
    visits: dict[int, list[tuple[float, float, bool]]] = {}
    for row, at, elapsed, changed in life.left.rows(
        "SELECT url, fetched_at, elapsed_s, changed FROM fetches WHERE outcome IN (?, ?) ORDER BY id",
        int(Outcome.OK),
        int(Outcome.NOT_MODIFIED),
    ):
        visits.setdefault(row, []).append((at, at + elapsed + 0.02, bool(changed)))
    seen = Counter[str]()
    wrong: list[tuple[str, str]] = []
    for row, times in visits.items():
        page = page_of(life, urls[row])
        if page is None or page >= life.world.web.size or life.world.web.kind[page] != Kind.LEAF:
            continue
        for (began, ended, _), (next_began, next_ended, changed) in pairwise(times):
            surely = life.world.versions(page, virtual(life, ended), virtual(life, next_began))
            perhaps = life.world.versions(page, virtual(life, began), virtual(life, next_ended))
            if not perhaps:
                seen["still"] += 1
                if changed:
                    wrong.append((urls[row], "changed without a change"))
            elif any(change.significant for change in surely):
                seen["moved"] += 1
                if not changed:
                    wrong.append((urls[row], "a change was not seen"))
    assert wrong == []
    assert seen["still"] > 30
    assert seen["moved"] > 15


def test_pages_that_vanished_leave_the_index(life: Life, tmp_path: Path) -> None:
    life.left.check_agreement(tmp_path / "copy")
    urls = life.left.urls()
    indexed = {urls[row] for row in life.left.indexed()}
    states = life.left.states()
    had = {
        urls[row] for (row,) in life.left.rows("SELECT DISTINCT url FROM fetches WHERE outcome = ?", int(Outcome.OK))
    }
    gone = {url for url in had if states[url] is UrlState.GONE}
    assert len(gone) >= 2
    assert gone & indexed == set()
    for url in gone:
        page = page_of(life, url)
        assert page is not None
        assert life.world.gone_s(page) < virtual(life, life.ended_at)


def test_new_articles_are_found(life: Life) -> None:
    published = life.world.articles(life.world.spec.start_s, virtual(life, life.ended_at - 4.0))
    fetched = set(life.left.fetches(Outcome.OK))
    found = [article for article in published if life.world.url(article.page) in fetched]
    assert len(published) >= 6
    assert len(found) >= 0.7 * len(published)


def test_the_interval_follows_the_policy(life: Life) -> None:
    """Fixed: always the same. Adaptive: shorter after a change than after none."""
    if "fixed" in life.left.one("SELECT policy FROM runs"):
        intervals = life.left.rows("SELECT DISTINCT interval_s FROM fetches WHERE kind = 1 AND state = 1")
        assert intervals == [(REFRESH["interval_s"],)]
        return
    means = dict(
        life.left.rows("SELECT changed, avg(interval_s) FROM fetches WHERE kind = 1 AND state = 1 GROUP BY changed")
    )
    assert means[1] < means[0]


# How runs end


@pytest.fixture(scope="module")
def still() -> WorldServer:
    spec = WorldSpec(seed=9, frozen=True, hosts=6, pages=400, crawl_delay_share=0.0, trap_share=0.0)
    with WorldServer(World(spec), faults=Faults(latency_ms=2)) as server:
        yield server


def page_requests(server: WorldServer, since_s: float = 0.0) -> list[Access]:
    return [a for a in server.log() if a.path != "/robots.txt" and a.began_s >= since_s]


def test_pages_means_exactly_so_many_and_the_next_run_goes_on(still: WorldServer, tmp_path: Path) -> None:
    root = make_crawl(tmp_path / "crawl", still.world.seeds())
    left = Left(root)
    fetched = 0
    for wanted in (1, 37, 60):
        began = time.time()
        ran = run_command("crawl", root, "--pages", wanted)
        fetched += wanted
        assert ran.code == 0, ran.err
        assert ran.out.startswith(f"{wanted} fetch{'es' if wanted > 1 else ''} in ")
        assert len(page_requests(still, began)) == wanted
        assert len(left.fetches()) == fetched
    assert max(Counter(left.fetches()).values()) == 1


def test_for_ends_in_time(still: WorldServer, tmp_path: Path) -> None:
    root = make_crawl(tmp_path / "crawl", still.world.seeds())
    ran = run_command("crawl", root, "--for", "3s")
    assert ran.code == 0, ran.err
    ((started, ended),) = Left(root).rows("SELECT started_at, ended_at FROM runs")
    assert 2.9 <= ended - started <= 6.0
    assert len(Left(root).fetches()) > 20


def test_a_rate_is_kept(still: WorldServer, tmp_path: Path) -> None:
    root = make_crawl(tmp_path / "crawl", still.world.seeds())
    began = time.time()
    ran = run_command("crawl", root, "--rate", "20", "--for", "9s")
    assert ran.code == 0, ran.err
    times = sorted(access.began_s for access in page_requests(still, began))
    # at the start there is little to fetch, and the allowance of a second waits
    steady = [at for at in times if at >= times[0] + 2.0]
    assert len(steady) > 40
    assert 0.85 * 20 <= (len(steady) - 1) / (steady[-1] - steady[0]) <= 1.15 * 20
    most_in_a_second = max(sum(at <= other < at + 1.0 for other in times) for at in times)
    assert most_in_a_second <= 2.5 * 20


def test_interrupt_stops_soon_and_the_next_run_resumes(still: WorldServer, tmp_path: Path) -> None:
    """Also while a host hangs: what it holds is simply fetched later."""
    with HostileServer() as hostile:
        hostile.routes["/robots.txt"] = answer(b"", "404 Not Found")
        hostile.routes["/"] = lambda connection: hostile.pause(60) and None
        root = make_crawl(tmp_path / "crawl", [*still.world.seeds(), hostile.url("/")])
        left = Left(root)
        with running_crawl(root, "--rate", "60") as process:
            assert wait_for(lambda: len(left.fetches()) > 30 and b"GET / " in b"".join(hostile.requests))
            status = run_command("status", root, "--json").json()
            ran = interrupt(process)
        assert status["running"] is True
        assert status["in_flight"] >= 1
        assert status["pages_per_s"] > 0
        assert status["fetches"] > 30
        assert ran.code == 0, ran.err
        assert ran.took_s < 30.0
        assert " fetches in " in ran.out
        assert "Traceback" not in ran.err
        first = left.fetches()
        assert hostile.url("/") not in first
        left.check_agreement(tmp_path / "copy")
        assert left.one("SELECT ended_at FROM runs") is not None
        hostile.routes["/"] = answer()
        again = run_command("crawl", root, "--pages", 40)
        assert again.code == 0, again.err
        assert "recovered" not in again.err
        assert len(left.fetches()) == len(first) + 40
        assert hostile.url("/") in left.fetches()
        assert max(Counter(left.fetches()).values()) == 1


def test_termination_is_a_clean_stop_too(still: WorldServer, tmp_path: Path) -> None:
    root = make_crawl(tmp_path / "crawl", still.world.seeds())
    with running_crawl(root, "--rate", "40") as process:
        assert wait_for(lambda: len(Left(root).fetches()) > 10)
        process.terminate()
        out, err = process.communicate(timeout=6)
    assert process.returncode == 0, err
    assert " fetches in " in out
    Left(root).check_agreement(tmp_path / "copy")


def test_an_interrupt_while_it_starts(still: WorldServer, tmp_path: Path) -> None:
    root = make_crawl(tmp_path / "crawl", still.world.seeds())
    assert run_command("crawl", root, "--pages", 20).code == 0
    with running_crawl(root) as process:
        pid = str(process.pid)
        assert wait_for(lambda: (root / "lock").read_text() == pid, every_s=0.001)
        ran = interrupt(process)
    assert ran.code in (0, 130)
    assert ran.took_s < 30.0
    assert "Traceback" not in ran.err
    Left(root).check_agreement(tmp_path / "copy")
