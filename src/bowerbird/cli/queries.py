"""Commands for what searchers ask: queries import, queries top, queries visibility."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import numpy as np

from bowerbird.cli.values import FOLDER, echo_json, plain_text, time_text
from bowerbird.crawl.demand_log import open_demand
from bowerbird.crawl.settings import Settings, load_settings
from bowerbird.demand.importing import ImportOptions, ImportReport, Show, import_log
from bowerbird.demand.log import DemandLog, QueryStats
from bowerbird.demand.records import BadLine, parse_time
from bowerbird.demand.sniffing import AUTO, FORMATS
from bowerbird.demand.sources import Source
from bowerbird.demand.visibility import VisibilityFit, fit_position_bias, power_law_visibility
from bowerbird.model.errors import ConfigError
from bowerbird.store.folder import CrawlFolder
from bowerbird.web.url import Canonicaliser

#: `top --needy` ranks so many times more queries than it shows; the rest are too rare to need much.
NEEDY_POOL = 20


@click.group("queries", context_settings={"help_option_names": ["-h", "--help"]})
def queries_command() -> None:
    """What searchers ask: import logs, see the most frequent and the neediest queries, fit the visibility of ranks."""


def open_log(root: Path, *, write: bool) -> tuple[DemandLog, Settings]:
    """The demand log of a crawl folder, by its settings."""
    folder = CrawlFolder(root)
    folder.check()
    settings = load_settings(folder.config)
    return open_demand(folder, settings.demand, write=write), settings


# -- import


@queries_command.command("import")
@click.argument("folder", metavar="DIR", type=FOLDER)
@click.argument("file", metavar="FILE")
@click.option(
    "--format",
    "form",
    type=click.Choice([AUTO, *FORMATS]),
    default=AUTO,
    show_default=True,
    help="How FILE is written.",
)
@click.option("--url-prefix", default="", metavar="URL", help="Put before page names that are no URLs.")
@click.option("--at", "at_text", default=None, metavar="TIME", help="Time of lines that have none [default: now].")
@click.option(
    "--first-position",
    type=click.IntRange(0, 1),
    default=1,
    show_default=True,
    help="The position of the first result (ubi).",
)
@click.option(
    "--hits-shown", is_flag=True, help="Count a query's hits as shown, where no impressions are logged (ubi)."
)
@click.option("--dry-run", is_flag=True, help="Read everything, change nothing, say what would be imported.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def import_command(
    folder: Path,
    file: str,
    form: str,
    url_prefix: str,
    at_text: str | None,
    first_position: int,
    hits_shown: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Import a log of queries or clicks; FILE may be gzip or Zstandard, or - for standard input.

    What was imported before is not counted again: the same file changes nothing, of one that has grown only the
    new lines count, and an import that was interrupted can be given again.
    """
    at = _parse_at(at_text)
    options = ImportOptions(form, at, _check_prefix(url_prefix), first_position, hits_shown, dry_run)
    log, settings = open_log(folder, write=not dry_run)
    with log, Source.open(file) as source, _progress(source.name) as show:
        report = import_log(log, source, options, canonicaliser=Canonicaliser(settings.urls), show=show)
    if as_json:
        echo_json(report.as_json())
    else:
        _echo_report(report)


def _parse_at(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        return parse_time(text)
    except BadLine as error:
        raise ConfigError(f"--at: {error}. Write 2026-01-31, 2026-01-31T12:00:00Z or Unix seconds.") from None


def _check_prefix(prefix: str) -> str:
    if prefix and Canonicaliser().canonical(prefix) is None:
        raise ConfigError(f"--url-prefix {prefix}: not a URL. Write it whole: https://hr.wikipedia.org/wiki/.")
    return prefix


@contextmanager
def _progress(name: str) -> Iterator[Show | None]:
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, TextColumn("{task.fields[lines]:,} lines"), console=Console(stderr=True)) as bar:
        task = bar.add_task(plain_text(Path(name).name)[:40].replace("[", "("), total=1.0, lines=0)
        yield lambda share, lines: bar.update(task, completed=share, lines=lines)


def _echo_report(report: ImportReport) -> None:
    name = plain_text(report.name)
    if report.state == "known":
        click.echo(f"{name}: imported before ({report.lines_before:,} lines); nothing new.")
        return
    verb = "would import" if report.dry_run else "imported"
    earlier = f" after {report.lines_before:,} imported before" if report.lines_before else ""
    speed = f" in {time_text(report.seconds)}" if report.seconds >= 1 else ""
    click.echo(f"{name}: {report.format}; {verb} {report.lines:,} lines{earlier}{speed}.")
    for count, what in (
        (report.asked, "queries asked"),
        (report.shown, "results shown"),
        (report.clicks, "clicks"),
    ):
        if count:
            click.echo(f"  {count:,} {what}")
    for reason, count in report.unused.items():
        click.echo(f"  {count:,} lines not used: {reason}")
    if report.bad:
        click.echo(f"  {report.bad:,} bad lines", err=True)
        for number, reason in report.samples:
            click.echo(f"    line {number:,}: {plain_text(reason)}", err=True)
        if report.bad > len(report.samples):
            click.echo("    …", err=True)


# -- top


@queries_command.command("top")
@click.argument("folder", metavar="DIR", type=FOLDER)
@click.option("-n", "count", type=click.IntRange(min=1, max=100_000), default=50, show_default=True, help="How many.")
@click.option("--needy", is_flag=True, help="The queries that better pages would help most, by neediness.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def top_command(folder: Path, count: int, needy: bool, as_json: bool) -> None:
    """The queries asked most: frequency (fading with time), times asked, results, clicks, clicks per asking."""
    now = time.time()
    log, settings = open_log(folder, write=False)
    with log:
        totals = log.totals()
        stats = log.queries(now, max(1000, NEEDY_POOL * count) if needy else count)
    rows = _rank_by_need(CrawlFolder(folder), stats)[:count] if needy else [_row(query) for query in stats]
    if as_json:
        echo_json({"asked": totals.asked, "distinct": totals.distinct, "known": totals.known, "queries": rows})
        return
    if not rows:
        least = settings.demand.min_occurrences
        click.echo(
            f"No query was asked {least} times yet. `bowerbird queries import {folder} FILE` reads a log, "
            f"`bowerbird serve {folder}` makes one."
        )
        return
    rest = (
        "" if totals.known == totals.distinct else f", {totals.distinct - totals.known:,} too rare to be kept by text"
    )
    click.echo(f"{totals.asked:,} queries asked, {totals.distinct:,} distinct{rest}; {totals.clicks:,} clicks")
    names = ["frequency", "asked", "results", "clicks", "CTR", *(["neediness"] if needy else [])]
    click.echo("  ".join(f"{name:>9}" for name in names) + "  query")
    for row in rows:
        results, rate = row["results"], row["ctr"]
        cells = [
            f"{row['frequency']:,.2f}",
            f"{row['count']:,}",
            "-" if results is None else f"{results:,}",
            f"{row['clicks']:,}",
            "-" if rate is None else f"{rate:.1%}",
            *([f"{row['neediness']:.4g}"] if needy else []),
        ]
        click.echo("  ".join(f"{cell:>9}" for cell in cells) + f"  {plain_text(row['query'])}")


def _row(query: QueryStats) -> dict[str, Any]:
    return {
        "query": query.text,
        "frequency": query.weight,
        "count": query.count,
        "results": query.results,
        "impressions": query.impressions,
        "clicks": query.clicks,
        "ctr": query.clicks / query.count if query.count else None,
        "last_at": query.last_at,
    }


def _rank_by_need(folder: CrawlFolder, queries: list[QueryStats]) -> list[dict[str, Any]]:
    """Ask the index each query and put those first that gain most by better answers."""
    from bowerbird.crawl.needs import weigh_needs

    rows = [
        {**_row(query), "results": need.results, "mean_top_score": need.mean_top_score, "neediness": need.need}
        for query, need in zip(queries, weigh_needs(folder, queries), strict=True)
    ]
    return sorted(rows, key=lambda row: (-row["neediness"], row["query"]))


# -- visibility


@queries_command.command("visibility")
@click.argument("folder", metavar="DIR", type=FOLDER)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def visibility_command(folder: Path, as_json: bool) -> None:
    """How likely each rank is viewed, fitted to the clicks, beside the power law that is the default."""
    log, settings = open_log(folder, write=False)
    with log:
        counts = log.rank_counts()
    fit = fit_position_bias(counts) if len(counts.rank) else None
    if as_json:
        echo_json({"used": settings.demand.visibility, "fit": None if fit is None else _fit_json(fit)})
        return
    click.echo(f"in use: {settings.demand.visibility} ([demand] visibility in bowerbird.toml)")
    if fit is None:
        click.echo("No clicks with ranks yet: there is nothing to fit.")
        return
    click.echo(
        f"fitted to {int(fit.clicks.sum()):,} clicks in {int(fit.impressions.sum()):,} impressions, "
        f"{fit.compared_share:.0%} of them of results that were seen at more than one rank"
        f"{'' if fit.converged else '; not converged'}"
    )
    click.echo(f"{'rank':>5}  {'shown':>9}  {'clicks':>8}  {'CTR':>6}  {'estimate':>16}  {'I(r)':>6}  {'r^-1.5':>6}")
    for row in _fit_json(fit)["ranks"]:
        estimate = "-" if row["estimate"] is None else f"{row['estimate']:.3f} ± {row['standard_error'] or 0:.3f}"
        rate = "-" if row["ctr"] is None else f"{row['ctr']:.1%}"
        bar = "▆" * round(20 * row["visibility"])
        click.echo(
            f"{row['rank']:>5}  {row['impressions']:>9,}  {row['clicks']:>8,}  {rate:>6}  {estimate:>16}  "
            f"{row['visibility']:>6.3f}  {row['power_law']:>6.3f}  {bar}"
        )
    click.echo(f"beyond rank {len(fit)}: falls as r^-{fit.visibility.exponent:.2f}")


def _fit_json(fit: VisibilityFit) -> dict[str, Any]:
    numbers = np.arange(1, len(fit) + 1)
    values, power = fit.visibility(numbers), power_law_visibility(numbers)
    return {
        "exponent_beyond": fit.visibility.exponent,
        "compared_share": fit.compared_share,
        "iterations": fit.iterations,
        "converged": fit.converged,
        "log_likelihood": fit.log_likelihood,
        "ranks": [
            {
                "rank": rank,
                "impressions": shown,
                "clicks": clicks,
                "ctr": clicks / shown if shown else None,
                "estimate": _finite(fit.estimate[rank - 1]),
                "standard_error": _finite(fit.standard_error[rank - 1]),
                "visibility": float(values[rank - 1]),
                "power_law": float(power[rank - 1]),
            }
            for rank, shown, clicks in zip(numbers.tolist(), fit.impressions.tolist(), fit.clicks.tolist(), strict=True)
        ],
    }


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
