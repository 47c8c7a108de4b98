"""The demo: the whole circle by itself on a small living web. Crawler, search page, searchers, measured quality."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import click
import numpy as np

from bowerbird.appraise.policy import AUTO, PLAIN
from bowerbird.cli.look import next_command, search_command, status_command
from bowerbird.cli.progress import make_display
from bowerbird.cli.stopping import stopping_cleanly
from bowerbird.cli.values import DURATION, NEW_FOLDER, count_text
from bowerbird.crawl.coordinator import RunLimits
from bowerbird.crawl.demand_log import open_demand
from bowerbird.crawl.measure import NotMeasurableError
from bowerbird.crawl.measurements import read_quality
from bowerbird.crawl.session import CrawlSession, create_crawl
from bowerbird.crawl.settings import QualitySettings, load_settings
from bowerbird.crawl.view import CrawlView
from bowerbird.demand.events import QueryAsked
from bowerbird.lab.compiling import compile_studies, kernels_mark
from bowerbird.lab.crowd import Crowd
from bowerbird.lab.searchers import Habits, Searchers
from bowerbird.lab.truth import true_quality
from bowerbird.lab.world import World, WorldServer, WorldSpec
from bowerbird.model.clock import ScaledClock
from bowerbird.model.errors import BowerbirdError, FolderError
from bowerbird.model.url_state import UrlKind, UrlState
from bowerbird.quality.gain_kernels import gain_pages
from bowerbird.store.folder import CrawlFolder, WriterLock
from bowerbird.store.repository import Repository

#: a file of this name says that the demo made the folder
DEMO_MARK = "demo"
DAY_LASTS_S = 150.0
SEARCHES_PER_S = 10.0
BIN_S = 15.0
STOP_S = 10.0
RATE_PER_S = 10.0
REHEARSAL_S = 40.0
PROBE_SHARE = 0.1
ALIKE = 0.05  # fetches of the two crawls that differ by a smaller share are called the same budget
DEMO_SETTINGS: dict[str, dict[str, object]] = {
    "crawl": {"contact": "demo@localhost", "scope": "anywhere", "retry_base_s": 2.0},
    "politeness": {"delay_s": 0.1, "max_crawl_delay_s": 0.5},
    "network": {"allow_addresses": ["loopback"]},
    "refresh": {
        "interval_s": 60.0,
        "min_interval_s": 5.0,
        "max_interval_s": 300.0,
        "hub_interval_s": 10.0,
        "study_every_s": 5.0,
    },
    "frontier": {"study_every_s": 5.0},
    "hubs": {"study_every_s": 5.0, "half_life_days": 30.0 / 86_400},
    "demand": {"half_life_days": 0.001},  # the clicks of the first seconds, on few pages, must fade within the demo
    "budget": {"horizon_days": 60.0 / 86_400, "study_every_s": 10.0},
    "quality": {"probe_share": PROBE_SHARE, "sample": 300, "every_s": 10.0},
}


@click.command("demo")
@click.option(
    "--dir", "folder", type=NEW_FOLDER, default=Path("demo-crawl"), show_default=True, help="The crawl folder."
)
@click.option("--for", "seconds", type=DURATION, default=90.0, help="How long to crawl.  [default: 90s]")
@click.option("--hosts", default=30, show_default=True, help="Hosts of the world.")
@click.option("--pages", default=3000, show_default=True, help="Pages of the world at the start.")
@click.option(
    "--rate",
    type=click.FloatRange(min=0.1, max=1000),
    default=RATE_PER_S,
    show_default=True,
    help="Fetches a second of each crawl.",
)
@click.option("--seed", type=click.IntRange(min=0), default=7, show_default=True, help="Equal seeds give equal worlds.")
@click.option("--stay", is_flag=True, help="Go on until Ctrl-C.")
def demo_command(folder: Path, seconds: float, hosts: int, pages: int, rate: float, seed: int, stay: bool) -> None:
    """A small living web on loopback, crawled twice on the same budget: by expected clicks, and breadth-first.

    Simulated searchers ask both for what they want; what they find is compared. Ends by itself. The second crawl is in
    a folder beside the first, with -plain after its name.
    """
    spec = WorldSpec(seed=seed, hosts=hosts, pages=pages, seed_hosts=5, articles_per_day=400)
    world = World(spec)  # first: nothing is deleted for a world that cannot be
    folder, plain = _two_folders(folder)
    for place in (folder, plain):
        _make_room(place)
    click.echo(
        f"A small living web: {pages} pages on {hosts} loopback hosts; they change, new articles appear, "
        f"some lead nowhere or into traps.\nIts day lasts {DAY_LASTS_S:.0f} seconds."
    )
    clock = ScaledClock(86_400 / DAY_LASTS_S, spec.start_s)
    with WorldServer(world, clock, keep_log=False) as server:
        if not _was_compiled():
            click.echo(f"A rehearsal of {REHEARSAL_S:.0f} seconds first, once on a machine: it compiles.")
            compile_studies()
            _rehearse(server.world)
            _note_compiled()
        for place, policy in ((folder, AUTO), (plain, PLAIN)):
            chosen = DEMO_SETTINGS | {"crawl": DEMO_SETTINGS["crawl"] | {"policy": policy, "rate_per_s": rate}}
            seeds = create_crawl(place, server.world.seeds(), chosen)
        click.echo(
            f"Crawled twice from {len(seeds)} seeds, {rate:g} fetches a second each: "
            f"{folder} by expected clicks (auto), {plain} by {PLAIN}.\n{tell_probes()}"
        )
        with (
            stopping_cleanly() as stopping,
            CrawlSession(folder, say=lambda text: click.echo(text, err=True)) as session,
            _serving(folder) as port,
            _serving(plain) as plain_port,
            _crawling(plain, None if stay else seconds),
        ):
            stopping.watch(session)
            click.echo(
                f"Search page http://127.0.0.1:{port}/ and dashboard http://127.0.0.1:{port}/dashboard: open them now."
                f"\nSimulated searchers ask at both, {SEARCHES_PER_S:.0f} times a second.\n"
            )
            began = time.time()
            crowds = [
                Crowd(
                    Searchers(server.world, np.random.default_rng(seed), Habits(queries=150)),
                    "127.0.0.1",
                    one,
                    clock,
                    SEARCHES_PER_S,
                ).start()
                for one in (port, plain_port)
            ]
            try:
                with make_display(quiet=False, terminal=sys.stderr.isatty()) as display:
                    session.run(RunLimits(seconds=None if stay else seconds), display.show)
            finally:
                for crowd in crowds:
                    crowd.stop()
        t = clock.now()
        _sum_up(folder, server.world)
        _sum_up_quality(folder, server.world, t, began, crowds[0])
        compare(folder, plain, server.world, t, began, crowds)
    click.echo(f"\nLook around (after `. .venv/bin/activate`): bowerbird serve|status|next|search|quality {folder}")
    click.echo(
        "Its web has ended with the demo: results of a search lead nowhere now, and nothing more can be fetched.\n"
        "Again, with a web that stays until Ctrl-C: make demo STAY=1"
    )


def tell_probes() -> str:
    """How much of the budget goes to pages drawn by lot, here and usually."""
    here, usual = (1.0 / share for share in (PROBE_SHARE, QualitySettings().probe_share))
    return (
        f"One fetch in {here:.0f} is a probe here, drawn by lot to measure quality; usually it is one in {usual:.0f}."
    )


def _rehearse(world: World) -> None:
    """A short crawl with some queries, forgotten afterwards: neither crawl shall wait for what first use compiles."""
    with TemporaryDirectory(prefix="bowerbird-demo-") as scratch:
        folder = Path(scratch) / "rehearsal"
        create_crawl(folder, world.seeds(), DEMO_SETTINGS)
        settings, now = load_settings(folder / "bowerbird.toml"), time.time()
        with open_demand(CrawlFolder(folder), settings.demand, write=True) as log:
            log.record(QueryAsked(noun, now, 5) for noun in world.words.topic(0).nouns[:20])
        with CrawlSession(folder) as session:
            session.run(RunLimits(seconds=REHEARSAL_S))


def _was_compiled() -> bool:
    """Was there a rehearsal on this machine, with the kernels as they are?"""
    try:
        return _compiled_mark().read_text(encoding="ascii") == kernels_mark()
    except OSError:
        return False


def _note_compiled() -> None:
    with suppress(OSError):  # where nothing can be kept, there is another rehearsal next time
        _compiled_mark().write_text(kernels_mark(), encoding="ascii")


def _compiled_mark() -> Path:
    """Beside what was compiled."""
    return Path(str(gain_pages.stats.cache_path)) / "bowerbird-rehearsed"


@contextmanager
def _crawling(folder: Path, seconds: float | None) -> Iterator[None]:
    """A crawl in a process of its own."""
    command = [sys.executable, "-m", "bowerbird", "crawl", str(folder), "--quiet"]
    command += [] if seconds is None else ["--for", f"{seconds:.3f}s"]
    # what it did is told with the comparison
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, start_new_session=True) as process:
        try:
            yield
        finally:
            process.terminate()  # it ends cleanly, also when it has already
            try:
                process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()
    if process.returncode != 0:
        raise BowerbirdError(
            f"demo: the crawl of {folder} ended with {process.returncode}; there is nothing to compare."
        )


@contextmanager
def _serving(folder: Path) -> Iterator[int]:
    """The search service of the crawl in a process of its own; its port."""
    command = [sys.executable, "-m", "bowerbird", "serve", str(folder), "--port", "0", "--rate", "0"]
    # in a session of its own: Ctrl-C is for us, and we end it
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            port = line.strip().rstrip("/").rpartition(":")[2]
            if not port.isdigit():
                raise BowerbirdError("demo: the search service did not start; the lines above say why.")
            yield int(port)
        finally:
            process.terminate()
            try:
                process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()


def _two_folders(folder: Path) -> tuple[Path, Path]:
    """That of the crawl by `auto` and that of the other beside it; neither has anything in it but an earlier demo."""
    if folder.name in ("", ".."):
        folder = folder.resolve()
        if not folder.name:
            raise FolderError(f"{folder}: has no place beside it for the second crawl. Say --dir ELSEWHERE.")
    plain = folder.with_name(f"{folder.name}-plain")
    for place in (folder, plain):
        if place.is_dir() and any(place.iterdir()) and not (place / DEMO_MARK).is_file():
            raise FolderError(f"{place}: was not made by the demo, so it will not be replaced. Say --dir ELSEWHERE.")
    return folder, plain


def _make_room(folder: Path) -> None:
    """An empty folder with the demo's mark. Only what an earlier demo made, and nobody writes, is deleted for it."""
    try:
        if folder.is_dir() and any(folder.iterdir()):
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


def _sum_up_quality(folder: Path, world: World, t: float, began: float, crowd: Crowd) -> None:
    """What the searchers did, and how good the repository was for them as time went on."""
    counts = crowd.counts
    click.echo(
        f"\n{count_text(counts['searches'], 'search')}, {counts['without results']:,} of them without results; "
        f"{count_text(counts['clicks'], 'click')} on results that answered the query."
    )
    place = CrawlFolder(folder)
    measured = read_quality(place)
    truth: float | None = None
    problem = ""
    try:
        truth = true_quality(place, load_settings(place.config), world, t, time.time())
    except NotMeasurableError as error:
        problem = str(error)
    if measured or truth is not None:
        how = "measured from few pages, drawn by lot" if measured else "ended before it was measured for the first time"
        click.echo(f"Quality for these searchers, of what the known pages allow; {how}:")
    for made in measured:
        click.echo(
            f"  after {made.at - began:4.0f} s  {made.quality:.3f}  (95%: {made.low:.3f} to {made.high:.3f}; "
            f"{made.probes} probes, {made.queries} queries)"
        )
    if truth is None:
        click.echo(f"Quality could not be measured: {problem}")
    else:
        click.echo(f"  at the end    {truth:.3f}  (the truth then: every known page looked up in the world)")


def compare(folder: Path, plain: Path, world: World, t: float, began: float, crowds: list[Crowd]) -> None:
    """Both crawls side by side: what searchers clicked as time went on, and how good both are at the end."""
    click.echo(f"\nClicks for each search, by expected clicks (auto) and by {PLAIN}, on the same budget:")
    for line in tabulate_clicks([crowd.clicked for crowd in crowds], began):
        click.echo(line)
    clicks = [sum(many for _, many in crowd.clicked) / max(len(crowd.clicked), 1) for crowd in crowds]
    fetched = [_count_fetches(place) for place in (folder, plain)]
    places = [CrawlFolder(place) for place in (folder, plain)]
    known = [_known_urls(place) for place in places]
    settings = load_settings(places[0].config)
    said = ""
    try:
        quality = [
            true_quality(place, settings, world, t, time.time(), also=others, asked_in=places[0])
            for place, others in zip(places, reversed(known), strict=True)
        ]
        said = (
            f"\nQuality at the end, of what the pages known to either allow: {quality[0]:.3f} and {quality[1]:.3f}"
            f" ({quality[0] / max(quality[1], 1e-9):.2f} times)."
        )
    except NotMeasurableError as error:
        said = f"\nQuality could not be compared: {error}"
    if abs(fetched[0] - fetched[1]) > ALIKE * max(fetched):
        more, less = (AUTO, PLAIN) if fetched[0] > fetched[1] else (PLAIN, AUTO)
        share = max(fetched) / max(min(fetched), 1) - 1.0
        said += f"\nNot quite the same budget: {more} fetched {share:.0%} more than {less}."
    click.echo(
        f"In all {clicks[0]:.3f} clicks a search with {fetched[0]:,} fetches, and {clicks[1]:.3f} with {fetched[1]:,}: "
        f"auto has {clicks[0] / max(clicks[1], 1e-9):.2f} times the clicks.{said}"
    )


def tabulate_clicks(crowds: list[list[tuple[float, int]]], began: float) -> list[str]:
    """Lines of a table: clicks a search in spans of time, one column a crowd, with a bar for each."""
    ends = [at for clicked in crowds for at, _ in clicked]
    lines = []
    for span in range(int((max(ends, default=began) - began) // BIN_S) + 1):
        first = began + span * BIN_S
        means = []
        for clicked in crowds:
            mine = [many for at, many in clicked if first <= at < first + BIN_S]
            means.append(sum(mine) / len(mine) if mine else 0.0)
        bars = "  ".join(f"{mean:.2f} {'#' * round(20 * min(mean, 1.5)):30}" for mean in means)
        lines.append(f"  from {span * BIN_S:4.0f} s  {bars.rstrip()}")
    return lines


def _count_fetches(folder: Path) -> int:
    view = CrawlView(folder)
    try:
        return int(sum(view.status()["budget"].values()))
    finally:
        view.close()


def _known_urls(place: CrawlFolder) -> list[str]:
    """Pages that a crawl knows of, fetched or not."""
    settings = load_settings(place.config)
    repository = Repository(place, write=False, default_interval_s=settings.refresh.interval_s)
    try:
        columns = repository.table.columns
        here = np.isin(columns["state"], (UrlState.FETCHED, UrlState.NEW)) & (columns["kind"] == UrlKind.PAGE)
        return list(repository.urls(np.flatnonzero(here).tolist()))
    finally:
        repository.close()
