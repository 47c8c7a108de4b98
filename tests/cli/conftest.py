"""A small crawl for the commands that look at one."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.crawl.conftest import Command, command
from tests.crawl.crawling import Left, Ran, make_crawl, run_command

from bowerbird.lab.world import World, WorldServer, WorldSpec

__all__ = ["Command", "command"]


@dataclass(frozen=True, slots=True)
class Sample:
    """A crawl that ended with work left to do, so that there is something to explain."""

    root: Path
    world: World
    ran: Ran
    left: Left


@pytest.fixture(scope="session")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Sample:
    spec = WorldSpec(seed=12, frozen=True, hosts=4, pages=150, crawl_delay_share=0.5, crawl_delay_s=0.2)
    root = tmp_path_factory.mktemp("sample") / "crawl"
    with WorldServer(World(spec)) as server:
        make_crawl(root, server.world.seeds())
        ran = run_command("crawl", root, "--pages", 90)
        return Sample(root, server.world, ran, Left(root))
