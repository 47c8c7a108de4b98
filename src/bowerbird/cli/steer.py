"""Commands that change a crawl: init, crawl, add, forget."""

from __future__ import annotations

import getpass
import os
import socket
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bowerbird.cli.progress import make_display
from bowerbird.cli.stopping import stopping_cleanly
from bowerbird.cli.values import DURATION, FOLDER, NEW_FOLDER, count_text, size_text, time_text
from bowerbird.crawl.coordinator import RunLimits
from bowerbird.crawl.guest_owner import NAMES, owner_of
from bowerbird.crawl.guest_owner import take_over as make_own
from bowerbird.crawl.heap import settle_heap
from bowerbird.crawl.session import CrawlSession, apply_requests, create_crawl
from bowerbird.crawl.settings import load_settings
from bowerbird.crawl.statistics import Tally, read_totals
from bowerbird.model.clock import Clock
from bowerbird.model.errors import ConfigError, InputFileError
from bowerbird.model.outcome import Outcome
from bowerbird.store.folder import CrawlFolder, WriterLock, is_store_url
from bowerbird.web.url import Canonicaliser, parse_input

if TYPE_CHECKING:
    from bowerbird.crawl.candidate import Led
    from bowerbird.crawl.fleet import Elected

#: the settings that options of `init` are: it has no file yet whose line a message could name
INIT_OPTIONS = {
    "crawl.contact": "--contact",
    "crawl.policy": "--policy",
    "politeness.delay_s": "--delay",
    "network.allow_addresses": "--allow-addresses",
}


@click.command("init")
@click.argument("folder", metavar="DIR", type=NEW_FOLDER)
@click.option("--seed", "seeds", multiple=True, metavar="URL", help="A URL to start from; may be given many times.")
@click.option("--seeds-file", type=click.Path(path_type=Path), help="A file with one URL a line; # begins a comment.")
@click.option("--contact", default=None, help="Where a webmaster reaches you; sent with every request.")
@click.option("--scope", type=click.Choice(["host", "domain", "anywhere"]), default=None, help="Which links to follow.")
@click.option(
    "--policy",
    default=None,
    help="What to fetch next by: auto (all in expected clicks, one price) [default], or new pages + refresh + hubs, "
    "as in rw-eg+user-centric+echo; parts may be left out.",
)
@click.option("--delay", "delay_s", type=float, default=None, help="Seconds between two fetches of a host.")
@click.option(
    "--store",
    default=None,
    metavar="URL",
    help="Keep the crawl's state in PostgreSQL, postgresql://…; DIR must be seen by all its machines.",
)
@click.option(
    "--allow-addresses",
    multiple=True,
    metavar="NET",
    help="Allow a private network: loopback, private or CIDR.",
)
def init_command(
    folder: Path,
    seeds: tuple[str, ...],
    seeds_file: Path | None,
    contact: str | None,
    scope: str | None,
    policy: str | None,
    delay_s: float | None,
    store: str | None,
    allow_addresses: tuple[str, ...],
) -> None:
    """Make a crawl folder DIR with seeds and a commented bowerbird.toml."""
    given = list(seeds)
    if seeds_file is not None:
        given += _read_seeds(seeds_file)
    values: dict[str, dict[str, object]] = {
        "crawl": {"contact": contact or f"{getpass.getuser()}@{socket.gethostname()}"},
        "politeness": {"delay_s": 1.0 if delay_s is None else delay_s},
    }
    if scope is not None:
        values["crawl"]["scope"] = scope
    if policy is not None:
        values["crawl"]["policy"] = policy
    if allow_addresses:
        values["network"] = {"allow_addresses": list(allow_addresses)}
    if store is not None and not is_store_url(store):
        raise ConfigError(
            "--store: not the URL of a PostgreSQL database, which reads postgresql://user@host:port/database"
        )
    try:
        urls = create_crawl(folder, given, values, store)
    except ConfigError as error:
        raise _name_option(error) from error
    click.echo(f"{folder}: a crawl with {count_text(len(urls), 'seed')}.")
    if contact is None:
        click.echo(
            f"No --contact given: {values['crawl']['contact']} is sent with every request. "
            f"Set crawl.contact in {folder / 'bowerbird.toml'} to an address that webmasters can reach."
        )
    click.echo(f"Next: bowerbird crawl {folder}")


def _name_option(error: ConfigError) -> ConfigError:
    for key, option in INIT_OPTIONS.items():
        _, found, problem = str(error).partition(f": {key}: ")
        if found:
            return ConfigError(f"{option}: {problem}")
    return error


def _read_seeds(path: Path) -> list[str]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputFileError(f"{path}: the seeds file cannot be read ({error}).") from error
    seeds = [line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")]
    if not seeds:
        raise InputFileError(f"{path}: the seeds file names no URL. Put one URL on each line.")
    return seeds


@click.command("crawl")
@click.argument("folder", metavar="DIR", type=FOLDER)
@click.option(
    "--pages",
    type=click.IntRange(min=1),
    default=None,
    help="End after so many fetches (waits for them: add --once or --for).",
)
@click.option("--for", "seconds", type=DURATION, default=None, help="End after this time: 90s, 10m, 2h.")
@click.option("--rate", type=click.FloatRange(min=0), default=None, help="Fetches a second in all; 0 = no limit.")
@click.option("--policy", default=None, help="For this run; a part not named is that of bowerbird.toml.")
@click.option(
    "--workers",
    type=click.IntRange(min=0, max=64),
    default=None,
    help="Worker processes; 0 in PostgreSQL: others fetch (`bowerbird work`).",
)
@click.option("--once", is_flag=True, help="End when nothing unfetched is left.")
@click.option(
    "--take-over",
    is_flag=True,
    help="Fetch for a crawl that another program fetched for; what was kept for that one goes.",
)
@click.option("--quiet", is_flag=True, help="No progress, only the summary.")
def crawl_command(
    folder: Path,
    pages: int | None,
    seconds: float | None,
    rate: float | None,
    policy: str | None,
    workers: int | None,
    once: bool,
    take_over: bool,
    quiet: bool,
) -> None:
    """Crawl, and go on refreshing what is known, until Ctrl-C or a limit. Resumes where it was."""
    settle_heap()
    place = CrawlFolder(folder)
    place.check()
    os.nice(load_settings(place.config).crawl.nice)  # its workers inherit it
    limits = RunLimits(pages, seconds, once)
    if take_over and owner_of(place) is not None:
        make_own(folder)
    if place.store_url is not None:
        led = _stand(folder, limits, policy, rate, workers, quiet=quiet)
        if led is None:
            click.echo("Stopped while another process coordinated the crawl.")
            return
        tally, elapsed, frontier = led.tally, led.elapsed_s, led.frontier
    else:
        tally, elapsed, frontier = _crawl(folder, limits, policy, rate, workers, quiet=quiet)
    kinds = ", ".join(f"{count} {kind}" for kind, count in tally.by_kind.items()) or "none"
    unreachable = tally.by_outcome[Outcome.HOST_UNREACHABLE.label]
    if unreachable:
        click.echo(
            f"{count_text(unreachable, 'time')} a host could not be reached for its robots.txt, "
            "so nothing of it was fetched: "
            f"`bowerbird explain {folder} URL` says why.",
            err=True,
        )
    click.echo(
        f"{count_text(tally.fetched, 'fetch')} in {time_text(elapsed)} ({tally.fetched / max(elapsed, 1e-9):.1f}/s, "
        f"{size_text(tally.wire_bytes)}): {kinds}; "
        f"{tally.by_outcome[Outcome.GONE.label]} not found; {count_text(tally.errors(), 'error')}; "
        f"{count_text(frontier, 'URL')} in the frontier."
    )


def _crawl(
    folder: Path, limits: RunLimits, policy: str | None, rate: float | None, workers: int | None, *, quiet: bool
) -> tuple[Tally, float, int]:
    if workers == 0:
        raise ConfigError(
            "--workers 0: nothing would be fetched. Only a crawl in PostgreSQL may have workers elsewhere."
        )
    with stopping_cleanly() as stopping:
        session = CrawlSession(
            folder, policy=policy, rate_per_s=rate, workers=workers, say=lambda text: click.echo(text, err=True)
        )
        stopping.watch(session)
        if not quiet:
            click.echo(session.policy_text(), err=True)
        with session, make_display(quiet=quiet, terminal=sys.stderr.isatty()) as display:
            tally = session.run(limits, display.show)
            return tally, session.clock.now() - tally.started_at, session.coordinator.frontier


def _stand(
    folder: Path, limits: RunLimits, policy: str | None, rate: float | None, workers: int | None, *, quiet: bool
) -> Led | None:
    """A crawl in PostgreSQL: coordinate it, or stand by until whoever does is gone."""
    from bowerbird.crawl.candidate import Candidate

    def say(text: str) -> None:
        click.echo(text, err=True)

    def open_session(clock: Clock, elected: Elected) -> CrawlSession:
        session = CrawlSession(folder, policy=policy, rate_per_s=rate, clock=clock, say=say, elected=elected)
        if not quiet:
            say(session.policy_text())
            before = sum(read_totals(session.repository.connection).by_kind.values())
            if before:
                say(f"{count_text(before, 'fetch')} before this election; from here on it is counted anew")
        return session

    with stopping_cleanly() as stopping, make_display(quiet=quiet, terminal=sys.stderr.isatty()) as display:
        candidate = Candidate(folder, open_session, workers=workers, say=say)
        stopping.watch(candidate)
        return candidate.run(limits, display.show)


@click.command("work")
@click.argument("folder", metavar="DIR", type=FOLDER)
@click.option("--workers", type=click.IntRange(min=1, max=64), default=None, help="Worker processes.")
def work_command(folder: Path, workers: int | None) -> None:
    """Fetch for a crawl in PostgreSQL that another machine may coordinate, until Ctrl-C. See docs/postgres.md."""
    place = CrawlFolder(folder)
    place.check()
    settings = load_settings(place.config)
    if place.store_url is None:
        raise ConfigError(f"{folder}: its database is in the folder: `bowerbird crawl {folder}` has its own workers.")
    from bowerbird.crawl.crew import Crew
    from bowerbird.store.postgres_schema import open_postgres

    open_postgres(place.store_url, write=True).close()  # what is wrong with it is said at once
    os.nice(settings.crawl.nice)
    ending = threading.Event()
    count = settings.worker_count if workers is None else workers
    with stopping_cleanly() as stopping:
        crew = Crew(folder, count)
        click.echo(
            f"{count_text(count, 'worker')} for {folder}: whoever crawls gives the orders. Ctrl-C ends it.", err=True
        )
        stopping.watch(_Ending(ending))
        try:
            while not ending.wait(0.5):
                crew.keep_up()
        finally:
            crew.close()
    click.echo(f"{count_text(crew.handed_in, 'fetch')} handed in, those of robots.txt with them.")


class _Ending:
    """Ends the loop of `work`."""

    def __init__(self, event: threading.Event) -> None:
        self.stop = event.set


def _canonical(folder: Path, urls: tuple[str, ...]) -> list[str]:
    place = CrawlFolder(folder)
    place.check()
    canonicaliser = Canonicaliser(load_settings(place.config).urls)
    return [parse_input(url, canonicaliser) for url in urls]


@click.command("add")
@click.argument("folder", metavar="DIR", type=FOLDER)
@click.argument("urls", nargs=-1, required=True, metavar="URL...")
def add_command(folder: Path, urls: tuple[str, ...]) -> None:
    """Put URLs in line, also such as were forgotten; their hosts join the scope."""
    canonical = _canonical(folder, urls)
    applied = apply_requests(folder, "add", canonical)
    later = " to the running crawl's inbox."
    click.echo(f"{len(canonical)} added{'.' if applied else _tell_later(folder, later)}")


@click.command("forget")
@click.argument("folder", metavar="DIR", type=FOLDER)
@click.argument("urls", nargs=-1, required=True, metavar="URL...")
def forget_command(folder: Path, urls: tuple[str, ...]) -> None:
    """Remove URLs from the index and never fetch them again."""
    canonical = _canonical(folder, urls)

    def tell_unknown(url: str) -> None:
        click.echo(f"{url}: not known to this crawl so far. Noted all the same: it will never be fetched.", err=True)

    applied = apply_requests(folder, "forget", canonical, tell_unknown=tell_unknown)
    later = ": the running crawl drops them in a second."
    click.echo(f"{len(canonical)} forgotten{'.' if applied else _tell_later(folder, later)}")


def _tell_later(folder: Path, running: str) -> str:
    """Who takes requests up: a crawl that runs, or another program when it next does."""
    place = CrawlFolder(folder)
    owner = owner_of(place)
    if owner is None or WriterLock.is_held(place):
        return running
    return f": {NAMES[owner]} takes that up when it next runs."
