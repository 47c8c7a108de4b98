"""The command that studies the frontier: `study`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click
import numpy as np

from bowerbird.appraise.policy import STUDIED, make_policy
from bowerbird.cli.values import FOLDER, count_text, echo_json
from bowerbird.crawl.settings import load_settings
from bowerbird.crawl.studying import end_with_parent
from bowerbird.crawl.view import CrawlView, clock_text
from bowerbird.model.errors import PolicyError
from bowerbird.model.study import FrontierStudy
from bowerbird.store.folder import CrawlFolder

SHOWN = 10


@click.command("study")
@click.argument("folder", metavar="DIR", type=FOLDER)
@click.option("--policy", default=None, help="Study by another policy than that of bowerbird.toml or of the crawl.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--parent", type=int, default=None, hidden=True, help="End when the process of this number is gone.")
def study_command(folder: Path, policy: str | None, as_json: bool, parent: int | None) -> None:
    """Work out what each new page is worth, from the whole crawl: links, clicks, queries.

    A running crawl with such a policy (pagerank, query-driven, hybrid, rw, rw-eg, learned) has this done every so
    often, and bids by it. The study is kept in the crawl folder; `next` and `explain` show what came of it.
    """
    if parent is not None:
        end_with_parent(parent)
    from bowerbird.appraise.frontier.methods import METHODS
    from bowerbird.crawl.study import make_study

    place = CrawlFolder(folder)
    place.check()
    settings = load_settings(place.config)
    method = _choose(folder, policy)
    if method not in METHODS:
        raise PolicyError(f"{method}: this version cannot study by it. It knows {', '.join(METHODS)}.")
    study = make_study(place, settings, method, time.time())
    if as_json:
        echo_json(as_data(study))
        return
    _show(folder, study)


def _choose(folder: Path, policy: str | None) -> str:
    if policy is None:
        view = CrawlView(folder)
        try:
            chosen = view.policy
        finally:
            view.close()
    else:
        chosen = make_policy(policy)
    if chosen.studied is None:
        raise PolicyError(
            f"policy {chosen.name!r} bids without a study. Name one that needs it: --policy {'|'.join(STUDIED)}."
        )
    return chosen.studied


def as_data(study: FrontierStudy) -> dict[str, Any]:
    """A study for programs."""
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
        "info": study.info,
    }


def _show(folder: Path, study: FrontierStudy) -> None:
    worth = np.where(np.isnan(study.worth), -1.0, study.worth)
    frontier = int(np.count_nonzero(worth >= 0))
    click.echo(
        f"{study.method}: {count_text(frontier, 'new page')} of {study.count:,} known URLs studied "
        f"in {float(study.info.get('seconds', 0.0)):.1f} s; by {int(study.info['links']):,} links of "
        f"{int(study.info['pages']):,} fetched pages."
    )
    if "note" in study.info:
        click.echo(f"  {study.info['note']}")
    click.echo(f"  {study.calibration.kind}: {study.calibration.note}")
    best = np.argsort(-worth, kind="stable")[: min(SHOWN, frontier)]
    if not len(best):
        return
    view = CrawlView(folder)
    try:
        urls = view.state.urls(best.tolist())
    finally:
        view.close()
    click.echo("  expected clicks")
    for row, url in zip(best.tolist(), urls, strict=True):
        click.echo(f"  {worth[row]:10.4g}  {url}")
