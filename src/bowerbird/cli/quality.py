"""The command that measures the repository: `quality`."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import click
import orjson
from rich.console import Console
from rich.table import Table

from bowerbird.cli.progress import make_display
from bowerbird.cli.stopping import stopping_cleanly
from bowerbird.cli.values import DURATION, FOLDER
from bowerbird.crawl.coordinator import RunLimits
from bowerbird.crawl.demand_log import open_demand
from bowerbird.crawl.measure import Measured, measure_quality, read_queries
from bowerbird.crawl.measurements import keep_measurement
from bowerbird.crawl.moments import clock_text
from bowerbird.crawl.session import CrawlSession
from bowerbird.crawl.settings import load_settings
from bowerbird.store.folder import CrawlFolder
from bowerbird.store.schema import read_now

MEANING = {
    "rose": "pages that answer better than the index knows",
    "fell": "pages that answer less well than the index says",
    "unfetched": "known pages that were never fetched",
    "gone": "pages that are no longer there",
}


@click.command("quality")
@click.argument("folder", metavar="DIR", type=FOLDER)
@click.option(
    "--sample",
    type=click.IntRange(min=20),
    default=None,
    help="Use so many of the latest probes; not kept for the chart.",
)
@click.option(
    "--probe",
    type=click.IntRange(min=1),
    default=None,
    help="First fetch so many pages drawn by lot (no crawl may run).",
)
@click.option("--for", "seconds", type=DURATION, default=300.0, help="Wait for them at most so long.  [default: 5m]")
@click.option("--json", "as_json", is_flag=True, help="For programs.")
def quality_command(folder: Path, sample: int | None, probe: int | None, seconds: float, as_json: bool) -> None:
    """How good the repository is for its searchers: measured Q, its interval, and where it is lost.

    Each measurement is kept, and shown by the dashboard; one with a --sample of its own is not.
    """
    place = CrawlFolder(folder)
    place.check()
    settings = load_settings(place.config)
    if probe is not None:
        _probe(folder, probe, seconds, quiet=as_json)
    wanted = sample or max(probe or 0, settings.quality.sample)
    measured = measure_quality(place, settings, read_now(place), sample=wanted)
    if sample is None:
        keep_measurement(place, measured.to_keep())
    if as_json:
        click.echo(orjson.dumps(as_data(measured), option=orjson.OPT_INDENT_2).decode())
    else:
        _show(measured)


def _probe(folder: Path, count: int, seconds: float, *, quiet: bool) -> None:
    """Fetch pages drawn by lot, until they are there, the time is up, or Ctrl-C."""
    with (
        stopping_cleanly() as stopping,
        CrawlSession(folder, say=lambda text: click.echo(text, err=True)) as session,
        make_display(quiet=quiet, terminal=sys.stderr.isatty()) as display,
    ):
        with open_demand(session.folder, session.settings.demand, write=False) as log:
            read_queries(session.folder, session.settings, log, session.clock.now())  # before a fetch is spent on it
        stopping.watch(session)
        tally = session.run(RunLimits(seconds=seconds, probes=count), display.show)
    answered = tally.fetched - tally.errors()
    if answered < count:
        why = "stopped" if stopping.asked else "time up, or too few pages"
        trouble = f"{tally.errors()} errors" if tally.errors() else why
        click.echo(f"{answered} of {count} pages drawn by lot answered ({trouble}).", err=True)
    if stopping.asked:
        raise KeyboardInterrupt


def as_data(measured: Measured) -> dict[str, Any]:
    """A measurement for programs."""
    found = measured.estimate
    return {
        "at": clock_text(measured.at),
        "quality": found.quality,
        "low": found.low,
        "high": found.high,
        "causes": {
            name: {"lost": value, "low": low, "high": high} for name, (value, low, high) in found.causes.items()
        },
        "probes": found.probes,
        "probes_since": clock_text(measured.from_s),
        "probes_unanswered": measured.unanswered,
        "strata": {name: {"probes": count, "pages": pages} for name, (count, pages) in measured.strata.items()},
        "curves": {"mean_log_rank_error": measured.curves.mean, "largest": measured.curves.largest},
        "queries": measured.queries,
        "demand_share": measured.demand_share,
    }


def _show(measured: Measured) -> None:
    found = measured.estimate
    click.echo(f"Quality {found.quality:.3f} (95%: {found.low:.3f} to {found.high:.3f}) of what the known pages allow.")
    drawn = ", ".join(f"{count} of {pages} {name} pages" for name, (count, pages) in measured.strata.items())
    click.echo(
        f"From {found.probes} pages drawn by lot since {clock_text(measured.from_s)} ({drawn}), "
        f"for {measured.queries} queries ({measured.demand_share:.0%} of the demand)."
    )
    if measured.unanswered:
        click.echo(f"{measured.unanswered} more pages that were drawn gave no answer; they are left out.")
    table = Table(box=None, pad_edge=False, title_justify="left", title="Where it is lost", title_style="")
    table.add_column("cause")
    table.add_column("lost", justify="right")
    table.add_column("95%", justify="right")
    table.add_column("what it is")
    for name, (value, low, high) in found.causes.items():
        table.add_row(name, f"{value:.3f}", f"{low:.3f} to {high:.3f}", MEANING[name])
    Console().print(table)
    click.echo(f"Score-rank curves of these queries: ranks off by {math.expm1(measured.curves.mean):.0%} on average.")
