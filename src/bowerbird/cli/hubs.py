"""The command that shows where new pages are announced: `hubs`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from bowerbird.appraise.policy import HUB_STUDIED
from bowerbird.cli.values import FOLDER, count_text, echo_json, time_text
from bowerbird.crawl.hub_report import cover_text, report_hubs
from bowerbird.crawl.study_kinds import kind_of
from bowerbird.crawl.view import CrawlView
from bowerbird.model.hub_study import HubStudy
from bowerbird.store.hub_study_file import read_hub_study

METHOD = HUB_STUDIED[0]
FEWEST_AGES = 3  # bins of age with clicks, before they say how interest fades
CURVE_AGES_S = (3600.0, 6 * 3600.0, 86400.0, 3 * 86400.0, 7 * 86400.0)


@click.command("hubs")
@click.argument("folder", metavar="DIR", type=FOLDER)
@click.option("-n", "--top", type=click.IntRange(min=1), default=20, show_default=True, help="So many hubs, at most.")
@click.option("--fresh", is_flag=True, help="Study them now, also where there is a study.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def hubs_command(folder: Path, top: int, fresh: bool, as_json: bool) -> None:
    """Where new pages are announced: feeds, sitemaps, main pages, and others that keep leading to new pages.

    By the last study of hubs, which a crawl with a policy such as breadth-first+adaptive+echo has made every so often;
    where there is none, one is made now and kept as DIR/study/echo.npz.

    For each hub, of the last 60 days: its visits; the new pages first found there on visits after the first; new
    pages a day (lam); clicks that a new page of it gets (P); in how long interest in them halves (mu); the interval
    at which echo visits it (where the crawl goes by auto, which has one price and no intervals: what it bids now); when
    it is due, `-` where its bid never reaches that price; and an estimate of the pages missed, which came and went
    between two visits. Above, how few of the hubs show 80% of all new pages, found there first or not.
    """
    view = CrawlView(folder)
    try:
        report = report_hubs(view, _find_study(view, fresh), top)
    finally:
        view.close()
    if as_json:
        echo_json(report)
    else:
        show_report(report)


def _find_study(view: CrawlView, fresh: bool) -> HubStudy:
    """The last one that can be used, or a new one."""
    from bowerbird.crawl.hub_study import make_hub_study

    path, table = view.folder.study(METHOD), view.repository.table
    read = read_hub_study(path, table.seed, table.columns["hash"])
    if read.note:
        click.echo(read.note, err=True)
    if not fresh and read.study is not None and read.study.method == METHOD:
        return read.study
    study = make_hub_study(view.folder, view.settings, METHOD, view.now)
    kind_of(METHOD).put(view.repository, study)  # bids go by it
    return study


def show_report(report: dict[str, Any]) -> None:
    """For people."""
    kinds = ", ".join(f"{number:,} {_plural(kind, number)}" for kind, number in report["kinds"].items() if number)
    click.echo(
        f"{count_text(report['hubs'], 'hub')} ({kinds or 'none yet'}), studied {time_text(report['age_s'])} ago; "
        f"{count_text(report['visits'], 'visit')} found {count_text(report['found'], 'new page')}."
    )
    click.echo(f"  {cover_text(report['cover'])}")
    auto = report["auto"]
    if auto is None:
        said = f"{report['visits_per_day']:,.4g} visits a day clear at a price of {report['price']:.3g} mean new pages"
    else:
        price = f"{auto['price']:.3g} {auto['unit']}".rstrip()
        said = f"by auto: a hub is due when it bids the price of all fetches, {price}"
    click.echo(f"  {said}")
    if report["turned"]:
        click.echo(
            f"  {count_text(report['turned'], 'visit')} found nothing left of the one before: "
            f"about {report['missed']:,.0f} pages were missed"
        )
    click.echo(f"  {_tell_interest(report)}")
    if report["table"]:
        click.echo(
            f"  {'kind':<9} {'visits':>6} {'found':>6} {'a day':>8} {'clicks':>7} {'half-life':>9} "
            f"{'interval' if auto is None else 'bid':>9} {'due in':>9} {'missed':>6}  URL"
        )
    for row in report["table"]:
        clicks = "-" if row["clicks_per_new_page"] is None else f"{row['clicks_per_new_page']:.3g}"
        due = "-" if row["due_in_s"] is None else "now" if row["due_in_s"] <= 0 else time_text(row["due_in_s"])
        often = time_text(row["interval_s"]) if row["bid"] is None else f"{row['bid']:.3g}"
        missed = f"{row['missed']:,.0f}" if row["turned"] else "-"
        said = _tell_said(row)
        click.echo(
            f"  {row['kind']:<9} {row['visits']:>6,} {row['found']:>6,} {row['rate_per_day']:>8.3g} {clicks:>7} "
            f"{time_text(row['half_life_s']):>9} {often:>9} {due:>9} {missed:>6}  "
            f"{row['url']}{said}"
        )
    left = report["hubs"] - len(report["table"])
    if left > 0:
        click.echo(f"  … and {left:,} more: --top {report['hubs']} shows them")


def _tell_interest(report: dict[str, Any]) -> str:
    interest = report["interest"]
    half_life = f"half of the interest in a new page is gone after {time_text(interest['half_life_s'])}"
    if not report["by_clicks"]:
        return f"{half_life} (hubs.half_life_days); {report['note']}"
    curve = list(zip(interest["age_s"], interest["mean_clicks"], strict=True))
    if len(curve) < FEWEST_AGES:
        half_life += " (hubs.half_life_days: no page has been watched for long enough to tell)"
    shown = [
        f"{clicks:.3g} after {time_text(age)}"
        for wanted in CURVE_AGES_S
        if (found := next(((age, clicks) for age, clicks in curve if age >= wanted), None)) is not None
        for age, clicks in (found,)
    ]
    seen = f"; clicks by age: {', '.join(shown)}" if shown else ""
    return f"{interest['clicks_per_new_page']:.3g} clicks a new page, {half_life}{seen}"


def _tell_said(row: dict[str, Any]) -> str:
    parts = []
    if row["said_period_s"]:
        parts.append(f"says every {time_text(row['said_period_s'])}")
    if row["websub"]:
        parts.append("WebSub")
    return f"  ({', '.join(parts)})" if parts else ""


def _plural(kind: str, number: int) -> str:
    return kind if number == 1 else f"{kind}s"
