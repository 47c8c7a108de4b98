"""Commands around the small living web: `world` serves it, `demo` crawls it."""

from __future__ import annotations

import shutil
import signal
import sys
from pathlib import Path
from types import FrameType

import click

from bowerbird.cli.look import next_command, search_command, status_command
from bowerbird.cli.progress import make_display
from bowerbird.cli.values import DURATION, FOLDER
from bowerbird.crawl.coordinator import RunLimits
from bowerbird.crawl.session import CrawlSession, create_crawl
from bowerbird.crawl.view import CrawlView
from bowerbird.lab.world import World, WorldServer, WorldSpec
from bowerbird.lab.world.__main__ import main as serve_world
from bowerbird.model.clock import ScaledClock
from bowerbird.model.errors import FolderError
from bowerbird.store.folder import CrawlFolder, WriterLock

world_command = click.Command("world", params=serve_world.params, callback=serve_world.callback, help=serve_world.help)

#: a file of this name says that the demo made the folder
DEMO_MARK = "demo"
DEMO_SETTINGS: dict[str, dict[str, object]] = {
    "crawl": {"contact": "demo@localhost", "scope": "anywhere", "retry_base_s": 2.0},
    "politeness": {"delay_s": 0.1, "max_crawl_delay_s": 0.5},
    "network": {"allow_addresses": ["loopback"]},
    "refresh": {"interval_s": 20.0, "min_interval_s": 2.0, "max_interval_s": 120.0, "hub_interval_s": 5.0},
}


@click.command("demo")
@click.option("--dir", "folder", type=FOLDER, default=Path("demo-crawl"), show_default=True, help="The crawl folder.")
@click.option("--for", "seconds", type=DURATION, default=75.0, help="How long to crawl.  [default: 75s]")
@click.option("--hosts", default=30, show_default=True, help="Hosts of the world.")
@click.option("--pages", default=3000, show_default=True, help="Pages of the world at the start.")
@click.option("--seed", default=7, show_default=True, help="Equal seeds give equal worlds.")
@click.option("--stay", is_flag=True, help="Go on until Ctrl-C.")
def demo_command(folder: Path, seconds: float, hosts: int, pages: int, seed: int, stay: bool) -> None:
    """Serve a small living web on loopback, crawl it, search it, sum up. Ends by itself."""
    _make_room(folder)
    speed = 86_400 / 150
    spec = WorldSpec(seed=seed, hosts=hosts, pages=pages, seed_hosts=5, articles_per_day=400)
    click.echo(
        f"A small living web: {pages} pages on {hosts} loopback hosts; they change, new articles appear, "
        f"some lead nowhere or into traps.\nIts day lasts {86_400 / speed:.0f} seconds."
    )
    with WorldServer(World(spec), ScaledClock(speed, spec.start_s), keep_log=False) as server:
        seeds = create_crawl(folder, server.world.seeds(), DEMO_SETTINGS)
        click.echo(f"Crawling into {folder} from {len(seeds)} seeds: {', '.join(seeds)}\n")
        with CrawlSession(folder, say=lambda text: click.echo(text, err=True)) as session:

            def on_signal(number: int, frame: FrameType | None) -> None:
                session.coordinator.stop()

            before = signal.signal(signal.SIGINT, on_signal)
            with make_display(quiet=False, terminal=sys.stderr.isatty()) as display:
                session.run(RunLimits(seconds=None if stay else seconds), display.show)
            signal.signal(signal.SIGINT, before)
        _sum_up(folder, server.world)


def _make_room(folder: Path) -> None:
    """An empty folder with the demo's mark. Only what an earlier demo made, and nobody writes, is deleted for it."""
    try:
        if folder.is_dir() and any(folder.iterdir()):
            if not (folder / DEMO_MARK).is_file():
                raise FolderError(
                    f"{folder}: was not made by the demo, so it will not be replaced. Say --dir ELSEWHERE."
                )
            lock = WriterLock(CrawlFolder(folder), wait_s=0.5)
            try:
                shutil.rmtree(folder)
            finally:
                lock.release()
        folder.mkdir(parents=True, exist_ok=True)
        (folder / DEMO_MARK).touch()
    except OSError as error:
        raise FolderError(f"{folder}: cannot be used ({error.strerror}). Say --dir ELSEWHERE.") from error


def _sum_up(folder: Path, world: World) -> None:
    context = click.get_current_context()
    click.echo()
    context.invoke(status_command, folder=folder, as_json=False)
    query = " ".join(world.topic_name(0).split()[:1]) or "news"
    click.echo(f"\n$ bowerbird search {folder} {query!r} -n 3")
    context.invoke(search_command, folder=folder, query=query, count=3, offset=0, as_json=False)
    click.echo(f"\n$ bowerbird next {folder} -n 3")
    context.invoke(next_command, folder=folder, count=3, policy=None, as_json=False)
    view = CrawlView(folder)
    try:
        coming = view.next(1)
    finally:
        view.close()
    if coming:
        click.echo(f"\nAsk why: bowerbird explain {folder} {coming[0]['url']}")
    click.echo(f"Look around (after `. .venv/bin/activate`): bowerbird status|next|search|export {folder}")
    click.echo("Again, without end: make demo STAY=1")
