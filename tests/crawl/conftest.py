"""Crawls of a made-up web, each made once for all the tests that look at it."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.crawl.crawling import Left, Ran, make_crawl, run_command

from bowerbird.cli.main import main
from bowerbird.lab.world import Access, World, WorldServer, WorldSpec

Command = Callable[..., Ran]


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Iterator[Command]:
    """`bowerbird …` in this process: quicker than a new one, with the same way out."""
    kept = [(number, signal.getsignal(number)) for number in (signal.SIGINT, signal.SIGTERM)]

    def run(*arguments: object) -> Ran:
        monkeypatch.setattr(sys, "argv", ["bowerbird", *map(str, arguments)])
        capfd.readouterr()
        began, code = time.monotonic(), 0
        try:
            main()
        except SystemExit as end:
            code = int(end.code or 0)
        said = capfd.readouterr()
        return Ran(code, said.out, said.err, time.monotonic() - began)

    yield run
    for number, handler in kept:
        signal.signal(number, handler)


@dataclass(frozen=True, slots=True)
class Crawled:
    """A world that was crawled once to its end, and what both sides say about it."""

    root: Path
    world: World
    log: list[Access]
    ran: Ran
    left: Left

    @property
    def pages(self) -> set[tuple[str, str]]:
        """(host, path) of every page that a crawler as ours must find."""
        return self.world.reachable(self.world.spec.start_s, sitemaps=True)


@pytest.fixture(scope="session")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Crawled:
    """A web that stands still, with traps, redirects, robots rules, copies and dead links, crawled with `--once`."""
    spec = WorldSpec(seed=3, frozen=True, hosts=12, pages=600, crawl_delay_share=0.0, redirect_share=0.04)
    root = tmp_path_factory.mktemp("crawled") / "crawl"
    with WorldServer(World(spec)) as server:
        make_crawl(root, server.world.seeds())
        ran = run_command("crawl", root, "--once")
        return Crawled(root, server.world, server.log(), ran, Left(root))
