"""The command that measures the repository: `quality`."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import click
import orjson
from rich.console import Console
from rich.table import Table

from bowerbird.cli.progress import make_display
from bowerbird.cli.values import DURATION, FOLDER
from bowerbird.crawl.coordinator import RunLimits
from bowerbird.crawl.measure import Measured, measure_quality
from bowerbird.crawl.measurements import keep_measurement
from bowerbird.crawl.session import CrawlSession
from bowerbird.crawl.settings import load_settings
from bowerbird.crawl.view import clock_text
from bowerbird.store.folder import CrawlFolder

MEANING = {
    "rose": "pages that answer better than the index knows",
    "fell": "pages that answer less well than the index says",
    "unfetched": "known pages that were never fetched",
    "gone": "pages that are no longer there",
}


@click.command("quality")
@click.argument("folder", metavar="DIR", type=FOLDER)
@click.option("--sample", type=click.IntRange(min=20), default=None, help="Use so many of the latest probes.")
@click.option(
    "--probe",
    type=click.IntRange(min=1),
    default=None,
    help="First fetch so many pages drawn by lot (no crawl may run).",
)
@click.option("--for", "seconds", type=DURATION, default=300.0, help="Wait for them at most so long.  [default: 5m]")
@click.option("--json", "as_json", is_flag=True, help="For programs.")
def quality_command(folder: Path, sample: int | None, probe: int | None, seconds: float, as_json: bool) -> None:
    """How good the repository is for its searchers: measured Q, its interval, and where it is lost."""
    place = CrawlFolder(folder)
    place.check()
    if probe is not None:
        with (
            CrawlSession(folder, say=lambda text: click.echo(text, err=True)) as session,
            make_display(quiet=as_json, terminal=sys.stderr.isatty()) as display,
        ):
            session.run(RunLimits(seconds=seconds, probes=probe), display.show)
        sample = max(sample or 0, probe) if sample else sample
    measured = measure_quality(place, load_settings(place.config), time.time(), sample=sample)
    keep_measurement(place, measured.to_keep())
    if as_json:
        click.echo(orjson.dumps(as_data(measured), option=orjson.OPT_INDENT_2).decode())
    else:
        _show(measured)


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
    table = Table(box=None, pad_edge=False, title_justify="left", title="Where it is lost", title_style="")
    table.add_column("cause")
    table.add_column("lost", justify="right")
    table.add_column("95%", justify="right")
    table.add_column("what it is")
    for name, (value, low, high) in found.causes.items():
        table.add_row(name, f"{value:.3f}", f"{low:.3f} to {high:.3f}", MEANING[name])
    Console().print(table)
