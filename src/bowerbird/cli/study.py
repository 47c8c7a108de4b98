"""The command that studies new and known pages: `study`."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy as np

from bowerbird.appraise.policy import HUB_STUDIED, REFRESH_STUDIED, STUDIED, did_you_mean, split_name
from bowerbird.cli.values import FOLDER, count_text, echo_json, time_text
from bowerbird.crawl.moments import clock_text
from bowerbird.crawl.seed_report import change_text
from bowerbird.crawl.settings import Settings, load_settings
from bowerbird.crawl.study_kinds import APART, FEWEST_SEEDED, kind_of
from bowerbird.crawl.studying import end_with_parent
from bowerbird.crawl.view import CrawlView
from bowerbird.model.errors import FolderError, PolicyError
from bowerbird.model.outcome import GOOD
from bowerbird.model.refresh_study import RefreshStudy
from bowerbird.model.seed_study import SeedStudy
from bowerbird.model.study import FrontierStudy
from bowerbird.store.folder import CrawlFolder
from bowerbird.store.gains import read_gains
from bowerbird.store.schema import open_state, read_now

SHOWN = 10
DAY_S = 86400.0
COUNTS = (
    "links",
    "pages",
    "frontier",
    "iterations",
    "learnt from",
    "features",
    "visits",
    "changes",
    "measured",
    "explored",
    "dated",
)  # of what methods tell, the whole numbers


@click.command("study")
@click.argument("folder", metavar="DIR", type=FOLDER)
@click.option(
    "--policy",
    default=None,
    help="Study by this one [default: that of the crawl that runs, of bowerbird.toml, or of the last crawl].",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON; a list where the policy needs several studies.")
@click.option("--parent", type=int, default=None, hidden=True, help="End when the process of this number is gone.")
def study_command(folder: Path, policy: str | None, as_json: bool, parent: int | None) -> None:
    """Work out what each new page, a refresh of each known page, or a visit to each hub is worth, from the whole crawl.

    A running crawl with such a policy has this done every so often, and bids by it. New pages, by links, clicks and
    queries: pagerank, query-driven, hybrid, boosted, rw, rw-eg, learned. Known pages, by past visits, what their
    changes meant to searchers, and what their sites say: user-centric, user-centric-linear, user-centric-saturating,
    sbr, ebr, click-ebr, lambda-crawl, azar, uniform, proportional. Hubs, by what their visits found and how long
    searchers stay interested in it: echo (`hubs` shows them). One of each, as in rw-eg+user-centric+echo, is three
    studies. Whatever the policy, a crawl also chooses its seeds anew (see [seeds] in bowerbird.toml); --policy seeds
    does so by hand. With auto it also looks back at what was expected of fetches (--policy watch).
    The last study by each of them is kept in the crawl folder, as DIR/study/METHOD.npz; one does not take another's
    place. `next` and `explain` show what came of those of their policy.
    """
    if parent is not None:
        end_with_parent(parent)
    place = CrawlFolder(folder)
    place.check()
    settings = load_settings(place.config)
    methods, hint = _choose(folder, policy)
    told = [_choose_study(method, named=policy is not None) for method in methods]
    _check_fetched(place)
    if hint and not as_json:
        click.echo(hint, err=True)
    data = [study(place, settings, method, not as_json) for study, method in zip(told, methods, strict=True)]
    if as_json:
        echo_json(data[0] if len(data) == 1 else data)


def _check_fetched(place: CrawlFolder) -> None:
    """A study of nothing would count as one: until there is something to learn from there is none."""
    with closing(open_state(place, write=False)) as connection:
        many = connection.execute(
            f"SELECT count(*) FROM totals WHERE fetches > 0 AND outcome IN ({','.join('?' * len(GOOD))})",
            [int(outcome) for outcome in GOOD],
        ).fetchone()[0]
    if not many:
        raise FolderError(f"{place.root}: nothing was fetched, so there is nothing to study yet. Crawl first.")


def _choose(folder: Path, policy: str | None) -> tuple[tuple[str, ...], str]:
    """The methods to study by; and a hint for those who may have expected others."""
    named = () if policy is None else policy.split("+")
    apart = tuple(method for method in APART if method in named)  # no part of a policy: every crawl has seeds
    if policy is not None and apart:
        policy = "+".join(method for method in named if method not in apart)
        if not policy:
            return apart, ""
    try:
        methods, hint = _choose_by_policy(folder, policy)
    except PolicyError as error:
        for name in named:
            meant = "" if name in STUDIED else did_you_mean(name, APART)
            if meant:
                raise PolicyError(f"policy {policy!r}: {name!r} is not known{meant}") from error
        raise
    return (*methods, *apart), hint


def _choose_by_policy(folder: Path, policy: str | None) -> tuple[tuple[str, ...], str]:
    view = CrawlView(folder, policy)
    view.close()
    choice, chosen = view.choice, view.choice.to_study()
    if choice.policy is chosen:
        hint = choice.hint("studies by it", studied_only=True)
    else:
        by = " and ".join(chosen.studied)
        hint = f"{choice.tell_apart()}: studied by {by}" if choice.last is not None else ""
    if not chosen.studied:
        known = "|".join((*STUDIED, *REFRESH_STUDIED, *HUB_STUDIED, *APART))
        raise PolicyError(f"policy {chosen.name!r} bids without a study. Name one that needs it: --policy {known}.")
    asked = () if policy is None else tuple(method for method in chosen.studied if method in split_name(policy))
    return asked or chosen.studied, hint


def _choose_study(method: str, *, named: bool) -> Callable[[CrawlFolder, Settings, str, bool], dict[str, Any]]:
    by_kind: dict[str, Callable[[CrawlFolder, Settings, str, bool], dict[str, Any]]] = {
        "frontier": _study_frontier,
        "refresh": _study_pages,
        "hubs": partial(_study_hubs, named=named),
        "seeds": _study_seeds,
        "budget": _study_watch,
    }
    return by_kind[kind_of(method).name]


def _study_watch(place: CrawlFolder, settings: Settings, method: str, show: bool) -> dict[str, Any]:
    from bowerbird.cli.watch import show_watch
    from bowerbird.crawl.watch_report import report_watch
    from bowerbird.crawl.watch_study import make_watch

    report = {"method": method, **report_watch(make_watch(place, settings, read_now(place)))}
    if show:
        show_watch(report)
    return report


def _study_seeds(place: CrawlFolder, settings: Settings, method: str, show: bool) -> dict[str, Any]:
    from bowerbird.crawl.seed_report import report_seeds
    from bowerbird.crawl.seed_study import make_seed_study

    study = make_seed_study(place, settings, read_now(place))
    view = CrawlView(place.root)
    try:
        report = {"method": study.method, **report_seeds(study, read_now(place), view.state.urls)}
    finally:
        view.close()
    if show:
        _show_seeds(study, report)
        if not settings.seeds.study_every_s:
            click.echo("  no crawl goes by it: seeds.study_every_s = 0 in bowerbird.toml", err=True)
        elif study.all_pages < FEWEST_SEEDED:
            click.echo(f"  a crawl itself chooses none before {FEWEST_SEEDED} pages are fetched", err=True)
    return report


def _study_hubs(place: CrawlFolder, settings: Settings, method: str, show: bool, *, named: bool) -> dict[str, Any]:
    """As the crawl would visit them; as the method that was named would."""
    from bowerbird.cli.hubs import show_report
    from bowerbird.crawl.hub_report import report_hubs
    from bowerbird.crawl.hub_study import make_hub_study

    study = make_hub_study(place, settings, method, read_now(place))
    view = CrawlView(place.root, method if named else None)
    try:
        report = report_hubs(view, study, SHOWN)
    finally:
        view.close()
    if show:
        show_report(report)
    return report


def _study_frontier(place: CrawlFolder, settings: Settings, method: str, show: bool) -> dict[str, Any]:
    from bowerbird.appraise.frontier.methods import METHODS
    from bowerbird.crawl.study import make_study

    if method not in METHODS:
        raise PolicyError(f"{method}: this version cannot study by it. It knows {', '.join(METHODS)}.")
    study = make_study(place, settings, method, read_now(place))
    worth = np.where(np.isnan(study.worth), -1.0, study.worth)
    best = _name_best(place, worth, np.argsort(-worth, kind="stable"), int(np.count_nonzero(worth >= 0)))
    if show:
        _show(study, best)
    return as_data(study, best)


def _study_pages(place: CrawlFolder, settings: Settings, method: str, show: bool) -> dict[str, Any]:
    from bowerbird.crawl.refresh_study import make_refresh_study

    study = make_refresh_study(place, settings, method, read_now(place))
    interval = np.where(np.isnan(study.interval_s), np.inf, study.interval_s)
    order = np.argsort(interval, kind="stable")
    soonest = _name_best(place, interval, order, int(np.count_nonzero(np.isfinite(interval))))
    gained = _name_gains(place, study.count)
    if show:
        _show_pages(study, soonest, gained)
    return {**pages_as_data(study, soonest), "gained_most": [{"url": url, "gain": gain} for url, gain in gained]}


def _name_gains(place: CrawlFolder, count: int) -> list[tuple[str, float]]:
    """The pages whose refreshes gained most so far, as shares of quality."""
    view = CrawlView(place.root)
    try:
        gains = read_gains(view.state.connection)
    finally:
        view.close()
    known = gains.page < count
    total = np.bincount(gains.page[known], gains.gain[known], count)
    return _name_best(place, total, np.argsort(-total, kind="stable"), int(np.count_nonzero(total > 0)))


def _name_best(
    place: CrawlFolder, values: np.ndarray[Any, Any], order: np.ndarray[Any, Any], most: int
) -> list[tuple[str, float]]:
    """The first few pages of an order, with their values."""
    rows = order[: min(SHOWN, most)].tolist()
    view = CrawlView(place.root)
    try:
        return list(zip(view.state.urls(rows), values[rows].tolist(), strict=True))
    finally:
        view.close()


def as_data(study: FrontierStudy, best: list[tuple[str, float]]) -> dict[str, Any]:
    """A study of new pages for programs."""
    worth = study.worth[~np.isnan(study.worth)]
    return {
        "at": clock_text(study.at),
        "method": study.method,
        "known": study.count,
        "frontier": len(worth),
        "expected_clicks": {
            "sum": float(worth.sum()),
            "mean": float(worth.mean()) if len(worth) else 0.0,
            "most": float(worth.max(initial=0.0)),
        },
        "calibration": {
            "kind": study.calibration.kind,
            "pages": study.calibration.pages,
            "clicks": study.calibration.clicks,
            "note": study.calibration.note,
        },
        "best": [{"url": url, "expected_clicks": clicks} for url, clicks in best],
        "info": _plain_info(study.info),
    }


def pages_as_data(study: RefreshStudy, soonest: list[tuple[str, float]]) -> dict[str, Any]:
    """A study of known pages for programs."""
    interval = study.interval_s[~np.isnan(study.interval_s)]
    return {
        "at": clock_text(study.at),
        "method": study.method,
        "known": study.count,
        "fetched": len(interval),
        "price": study.price,
        "refreshes_per_day": study.budget_per_s * DAY_S,
        "interval_s": {
            "shortest": float(interval.min()) if len(interval) else None,
            "median": float(np.median(interval)) if len(interval) else None,
            "longest": float(interval.max()) if len(interval) else None,
        },
        "often": [{"url": url, "interval_s": seconds} for url, seconds in soonest],
        "info": _plain_info(study.info),
    }


def _plain_info(info: dict[str, str | float]) -> dict[str, Any]:
    return {name.replace(" ", "_"): int(value) if name in COUNTS else value for name, value in info.items()}


def _show(study: FrontierStudy, best: list[tuple[str, float]]) -> None:
    frontier = int(np.count_nonzero(~np.isnan(study.worth)))
    click.echo(
        f"{study.method}: {count_text(frontier, 'new page')} of {study.count:,} known URLs studied "
        f"in {float(study.info.get('seconds', 0.0)):.1f} s; by {int(study.info['links']):,} links of "
        f"{int(study.info['pages']):,} fetched pages."
    )
    if "note" in study.info:
        click.echo(f"  {study.info['note']}")
    click.echo(f"  {study.calibration.kind}: {study.calibration.note}")
    if best:
        click.echo("  expected clicks")
    for url, clicks in best:
        click.echo(f"  {clicks:10.4g}  {url}")


def _show_pages(study: RefreshStudy, soonest: list[tuple[str, float]], gained: list[tuple[str, float]]) -> None:
    info = {name: value for name, value in study.info.items() if isinstance(value, float)}
    click.echo(
        f"{study.method}: {count_text(int(info['pages']), 'fetched page')} of {study.count:,} known URLs studied "
        f"in {info.get('seconds', 0.0):.1f} s; by {count_text(int(info['visits']), 'visit')} that found "
        f"{count_text(int(info['changes']), 'change')}, the gain of {int(info['measured']):,} measured."
    )
    if "note" in study.info:
        click.echo(f"  {study.info['note']}")
    click.echo(
        f"  {study.budget_per_s * DAY_S:,.4g} refreshes a day clear at {study.price:.4g}; "
        f"{count_text(int(info['explored']), 'page')} at the longest interval, {int(info['dated']):,} dated by sites"
    )
    if soonest:
        click.echo("  due after")
    for url, seconds in soonest:
        click.echo(f"  {time_text(seconds):>10}  {url}")
    if gained:
        click.echo("  gained most so far, share of quality")
    for url, gain in gained:
        click.echo(f"  {gain:10.3g}  {url}")


def _show_seeds(study: SeedStudy, report: dict[str, Any]) -> None:
    by = f" by {count_text(report['samples'], 'sample')}" if report["samples"] else ""
    click.echo(
        f"{change_text(study)}. {count_text(report['pages'], 'fetched page')} of {study.count:,} known URLs, "
        f"{int(float(study.info['links'])):,} links studied{by} in {report['seconds']:.1f} s."
    )
    click.echo(f"  {report['note']}")
    click.echo(
        f"  value {report['covered_value']:,.6g} of {report['value']:,.6g} ({report['unit']}), "
        f"{report['given_value']:,.6g} by those that were given; {report['covered_pages']:,} pages"
    )
    if study.bound is not None and study.all_value > 0:
        value, sure = study.bound
        most = f"{value / study.all_value:.1%}{'' if sure >= 1 else f', with {sure:.0%} confidence'}"
        click.echo(f"  no choice of {study.k} beside the given covers more than {most}")
    if report["seeds"]:
        click.echo("  adds pages       value")
    for seed in report["seeds"]:
        mark = "  (new)" if seed["url"] in report["added"] else ""
        click.echo(f"  {seed['pages']:>10,}  {seed['value']:>10.4g}  {seed['url']}{mark}")
    for url in report["dropped"][:SHOWN]:
        click.echo(f"  {'dropped':>10}  {'':>10}  {url}")
    if len(report["dropped"]) > SHOWN:
        click.echo(f"  … and {len(report['dropped']) - SHOWN:,} more dropped: --json shows them")
