"""The command that studies the frontier: `study`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click
import numpy as np

from bowerbird.appraise.policy import STUDIED
from bowerbird.cli.values import FOLDER, count_text, echo_json
from bowerbird.crawl.settings import load_settings
from bowerbird.crawl.studying import end_with_parent
from bowerbird.crawl.view import CrawlView, clock_text
from bowerbird.model.errors import PolicyError
from bowerbird.model.study import FrontierStudy
from bowerbird.store.folder import CrawlFolder

SHOWN = 10
COUNTS = (
    "links",
    "pages",
    "frontier",
    "iterations",
    "learnt from",
    "features",
)  # of what methods tell, the whole numbers


@click.command("study")
@click.argument("folder", metavar="DIR", type=FOLDER)
@click.option(
    "--policy",
    default=None,
    help="Study by this one [default: that of the crawl that runs, of bowerbird.toml, or of the last crawl].",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--parent", type=int, default=None, hidden=True, help="End when the process of this number is gone.")
def study_command(folder: Path, policy: str | None, as_json: bool, parent: int | None) -> None:
    """Work out what each new page is worth, from the whole crawl: links, clicks, queries.

    A running crawl with such a policy (pagerank, query-driven, hybrid, boosted, rw, rw-eg, learned) has this done
    every so often, and bids by it. The last study by each of them is kept in the crawl folder, as DIR/study/METHOD.npz;
    one does not take another's place. `next` and `explain` show what came of that of their policy.
    """
    if parent is not None:
        end_with_parent(parent)
    from bowerbird.appraise.frontier.methods import METHODS
    from bowerbird.crawl.study import make_study

    place = CrawlFolder(folder)
    place.check()
    settings = load_settings(place.config)
    method, hint = _choose(folder, policy)
    if method not in METHODS:
        raise PolicyError(f"{method}: this version cannot study by it. It knows {', '.join(METHODS)}.")
    study = make_study(place, settings, method, time.time())
    best = _best(folder, study)
    if as_json:
        echo_json(as_data(study, best))
        return
    if hint:
        click.echo(hint, err=True)
    _show(study, best)


def _choose(folder: Path, policy: str | None) -> tuple[str, str]:
    """The method to study by; and a hint for those who may have expected another."""
    view = CrawlView(folder, policy)
    view.close()
    choice, chosen = view.choice, view.choice.to_study()
    if choice.policy is chosen:
        hint = choice.hint("studies by it", new_pages_only=True)
    else:
        hint = f"{choice.tell_apart()}: studied by {chosen.studied}" if choice.last is not None else ""
    if chosen.studied is None:
        raise PolicyError(
            f"policy {chosen.name!r} bids without a study. Name one that needs it: --policy {'|'.join(STUDIED)}."
        )
    return chosen.studied, hint


def _best(folder: Path, study: FrontierStudy) -> list[tuple[str, float]]:
    """The pages of the frontier that are worth most, with their expected clicks."""
    worth = np.where(np.isnan(study.worth), -1.0, study.worth)
    rows = np.argsort(-worth, kind="stable")[: min(SHOWN, int(np.count_nonzero(worth >= 0)))].tolist()
    view = CrawlView(folder)
    try:
        return list(zip(view.state.urls(rows), worth[rows].tolist(), strict=True))
    finally:
        view.close()


def as_data(study: FrontierStudy, best: list[tuple[str, float]]) -> dict[str, Any]:
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
        "best": [{"url": url, "expected_clicks": clicks} for url, clicks in best],
        "info": {name.replace(" ", "_"): int(value) if name in COUNTS else value for name, value in study.info.items()},
    }


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
