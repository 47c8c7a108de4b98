"""Commands for what searchers ask: queries import, queries forget, queries top, queries visibility."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import numpy as np

from bowerbird.cli.fading import fade_command
from bowerbird.cli.values import FOLDER, echo_json, plain_text, time_text
from bowerbird.crawl.demand_log import open_demand
from bowerbird.crawl.settings import Settings, load_settings
from bowerbird.demand.columns import describe_columns
from bowerbird.demand.events import normalise_query
from bowerbird.demand.forgetting import forget_all, forget_queries
from bowerbird.demand.importing import ImportOptions, ImportReport, Show, import_log
from bowerbird.demand.log import DemandLog, QueryStats
from bowerbird.demand.records import BadLine, parse_time
from bowerbird.demand.sniffing import AUTO, FORMATS
from bowerbird.demand.sources import Source
from bowerbird.demand.visibility import VisibilityFit, fit_position_bias, power_law_visibility
from bowerbird.model.errors import ConfigError
from bowerbird.store.folder import CrawlFolder
from bowerbird.store.study_file import remove_studies
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
@click.option("--again", is_flag=True, help="Count every line of FILE, though it was imported before.")
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
    again: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Import a log of queries or clicks; FILE may be gzip or Zstandard, or - for standard input.

    What was imported before is not counted again: the same file changes nothing, of one that has grown only the
    new lines count, and an import that was interrupted can be given again. `queries forget` takes things back.
    """
    at = _parse_at(at_text)
    options = ImportOptions(form, at, _check_prefix(url_prefix), first_position, hits_shown, dry_run, again)
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
        click.echo(f"{name}: imported before ({_number(report.lines_before, 'line')}); nothing new.")
        return
    if not report.given:
        content = "nothing but a header or blank lines" if report.lines else "empty"
        click.echo(
            f"{name}: {content}; nothing to import. A log has one query a line, or columns and a header that names "
            "them (query, count, time)."
        )
        return
    unused = sum(report.unused.values())
    left_out = [f", {count:,} {what}" for count, what in ((report.bad, "bad"), (unused, "not used")) if count]
    share = f"{report.imported:,} of " if left_out else ""
    verb = "would be imported" if report.dry_run else "imported"
    earlier = f", after {report.lines_before:,} imported before" if report.lines_before else ""
    speed = f", in {time_text(report.seconds)}" if report.seconds >= 1 else ""
    lines = _number(report.given, "line")
    click.echo(f"{name}: {report.format}; {share}{lines} {verb}{''.join(left_out)}{earlier}{speed}.")
    if report.columns:
        click.echo(f"  {describe_columns(report.columns)}")
    if report.asked:
        click.echo(f"  {_number(report.asked, 'query', 'queries')} asked")
    if report.shown:
        click.echo(f"  {_number(report.shown, 'result')} shown")
    if report.clicks:
        click.echo(f"  {_number(report.clicks, 'click')}")
    for reason, count in report.unused.items():
        click.echo(f"  {_number(count, 'line')} not used: {reason}")
    if report.bad:
        click.echo(f"  {_number(report.bad, 'bad line')}", err=True)
        for number, reason in report.samples:
            click.echo(f"    line {number:,}: {plain_text(reason)}", err=True)
        if report.bad > len(report.samples):
            click.echo("    …", err=True)


def _number(count: int, one: str, many: str = "") -> str:
    return f"{count:,} {one if count == 1 else many or one + 's'}"


# -- forget


@queries_command.command("forget")
@click.argument("folder", metavar="DIR", type=FOLDER)
@click.option("--query", "texts", multiple=True, metavar="TEXT", help="A query to forget; can be given repeatedly.")
@click.option("--all", "everything", is_flag=True, help="Empty the log; files can then be imported again.")
@click.option("--yes", is_flag=True, help="Do not ask whether --all is meant.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def forget_command(folder: Path, texts: tuple[str, ...], everything: bool, yes: bool, as_json: bool) -> None:
    """Forget queries, or the whole log, and erase them on the disk.

    Of a query its text, counts and ranks go; clicks by page and activity by time stay, as they do not say what was
    asked. The files that it came from remain known as imported. The studies of the crawl go, too: they are made
    anew without what was forgotten. Only its choice of seeds stays, which has nothing of queries.
    """
    if everything == bool(texts):
        raise click.UsageError("Say what to forget: --query TEXT (or several), or --all.")
    log, _ = open_log(folder, write=False)
    with log:
        before, exists = log.totals(), log.connection is not None
    if exists and everything and not yes:
        click.confirm(
            f"Forget {_number(before.distinct, 'query', 'queries')}, {_number(before.clicks, 'click')} and what was "
            "imported? There is no way back.",
            abort=True,
            err=True,
        )
    asked = {normalise_query(text): text for text in texts}  # the same one twice is one
    unknown, erased = list(asked.values()), True
    if exists:
        log, _ = open_log(folder, write=True)
        with log:
            unknown, erased = forget_all(log) if everything else forget_queries(log, asked.values())
    studied = remove_studies(CrawlFolder(folder).studies)  # last: one that was begun before has marks without a key
    forgotten = before.distinct if everything else len(asked) - len(unknown)
    if as_json:
        echo_json({"forgotten": forgotten, "unknown": unknown, "erased": erased})
        return
    click.echo(f"{_number(forgotten, 'query', 'queries')} forgotten.")
    for text in unknown:
        click.echo(f"  not in the log: {plain_text(text)}", err=True)
    if studied:
        what, verb = ("study", "was") if studied == 1 else (f"{studied} studies", "were")
        click.echo(f"  the {what} of the crawl {verb} removed with them; a crawl, or `bowerbird study`, makes another.")
    if not erased:
        click.echo(
            "  another process reads the log: traces of it on the disk are erased when the log is next written to.",
            err=True,
        )


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
    asked = _number(totals.asked, "query", "queries")
    click.echo(f"{asked} asked, {totals.distinct:,} distinct{rest}; {_number(totals.clicks, 'click')}")
    names = ["frequency", "asked", "results", "clicks", "clicks/asked", *(["neediness"] if needy else [])]
    click.echo("  ".join(f"{name:>9}" for name in names) + "  query")
    for row in rows:
        results, rate = row["results"], row["clicks_per_asking"]
        cells = [
            f"{row['frequency']:,.2f}",
            f"{row['count']:,}",
            "-" if results is None else f"{results:,}",
            f"{row['clicks']:,}",
            "-" if rate is None else f"{rate:.2f}",
            *([f"{row['neediness']:.4g}"] if needy else []),
        ]
        click.echo(
            "  ".join(f"{cell:>{max(9, len(name))}}" for name, cell in zip(names, cells, strict=True))
            + f"  {plain_text(row['query'])}"
        )


def _row(query: QueryStats) -> dict[str, Any]:
    return {
        "query": query.text,
        "frequency": query.weight,
        "count": query.count,
        "results": query.results,
        "impressions": query.impressions,
        "clicks": query.clicks,
        "clicks_per_asking": query.clicks / query.count if query.count else None,
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
    click.echo("CTR: clicks per impression, that is, for each time a result was shown at the rank")
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


queries_command.add_command(fade_command)
