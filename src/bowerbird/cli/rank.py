"""The brain alone, for people with a crawler and a graph of their own: `rank`."""

from __future__ import annotations

import os
import shlex
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

import bowerbird
from bowerbird.cli.values import count_text, echo_json, plain_text
from bowerbird.library.ranking_methods import ASKING, METHODS, OTHER_NAMES
from bowerbird.model.errors import ConfigError

if TYPE_CHECKING:
    from bowerbird.appraise.frontier.inputs import Inputs
    from bowerbird.appraise.frontier.ranking import NamedGraph
    from bowerbird.model.study import FrontierStudy
    from bowerbird.model.workload import Workload

COLUMNS = ("page", "score", "expected_clicks", "in_links")
FILE = click.Path(path_type=Path)


@click.command("rank")
@click.option(
    "--links", "links", type=FILE, required=True, help="Links: source, target. TSV, CSV (.gz, .zst) or Parquet."
)
@click.option("--clicks", "clicks", type=FILE, required=True, help="Clicks on crawled pages: page, clicks.")
@click.option("--crawled", "crawled", type=FILE, default=None, help="Crawled pages, one a line, if they are others.")
@click.option("--queries", "queries", type=FILE, default=None, help="For query methods: query, frequency.")
@click.option(
    "--method",
    type=click.Choice((*METHODS, *OTHER_NAMES)),
    default="rw-eg",
    show_default=True,
    metavar="NAME",
    help=f"One of {', '.join(METHODS)}.",
)
@click.option(
    "--real-share",
    type=click.FloatRange(0, 1),
    default=0.5,
    show_default=True,
    help="rw-eg: weight of links, against that of being linked together.",
)
@click.option("-n", "count", type=click.IntRange(min=0), default=1000, show_default=True, help="How many; 0 = all.")
@click.option(
    "--out", "out", type=FILE, default=None, help="Write a .parquet, .csv (.gz) or .tsv (.gz) file, not the screen."
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="For what is drawn by lot.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, for programs.")
def rank_command(
    links: Path,
    clicks: Path,
    crawled: Path | None,
    queries: Path | None,
    method: str,
    real_share: float,
    count: int,
    out: Path | None,
    seed: int,
    as_json: bool,
) -> None:
    """Rank the pages of your own link graph that are not crawled yet, best first.

    Crawled are the sources of links and the pages in the clicks file, unless --crawled names others; all other pages
    are the frontier. Pages are known by any name, such as a URL. A header line is optional; lines before it that begin
    with # are skipped. Bad lines are left out and told; a file of which most lines are bad is refused. The columns of
    the result are page, score, expected_clicks, in_links.

    Query methods look for the words of queries in page names; there is no index to ask, so crawled pages are taken to
    answer a query the better the higher their PageRank is.
    """
    from bowerbird.appraise.frontier.inputs import MethodOptions
    from bowerbird.appraise.frontier.methods import METHODS as KNOWN
    from bowerbird.appraise.frontier.methods import QUERY_METHODS
    from bowerbird.appraise.frontier.ranking import choose_best, has_answers, prepare_ranking, study_graph
    from bowerbird.cli.graph_files import read_graph

    chosen = OTHER_NAMES.get(method, method)
    if chosen not in KNOWN:
        raise ConfigError(f"--method {method}: this version does not have it. It has {', '.join(KNOWN)}.")
    if chosen in ASKING and queries is None:
        raise ConfigError(f"--method {method}: needs queries to look for. Name a file of them with --queries.")
    if not 0 <= real_share <= 1:  # NaN is within every range
        raise ConfigError(f"--real-share {real_share}: must be a number from 0 to 1.")
    if out is not None:
        _check_out(out)
    words = ["bowerbird", "rank", "--links", str(links), "--clicks", str(clicks)]
    words += ["--crawled", str(crawled)] if crawled is not None else []
    words += ["--queries", str(queries)] if queries is not None else []
    words += ["--method", chosen, *(["--real-share", f"{real_share:g}"] if chosen == "rw-eg" else [])]
    words += ["-n", str(count), "--seed", str(seed)]
    if queries is not None and chosen not in QUERY_METHODS:
        click.echo(f"--queries {queries}: not read, for {chosen} does not look at queries.", err=True)
        queries = None
    began = time.perf_counter()
    named, notes = read_graph(links, clicks, crawled)
    workload = None if queries is None else _read_workload(queries)
    rng = np.random.default_rng(seed)
    inputs = prepare_ranking(named, chosen, rng, workload, MethodOptions(real_share=real_share))
    _tell(named, notes, inputs, time.perf_counter() - began)
    if not len(inputs.graph.frontier):
        raise ConfigError(
            f"{links}: links to no page that is not crawled: there is nothing to rank. "
            "--crawled FILE says which pages are crawled, if those with links and clicks are not."
        )
    study = study_graph(inputs, chosen)
    if chosen in ASKING and not has_answers(inputs):
        click.echo("No query has words of a page on the frontier: no page is told from another by queries.", err=True)
    click.echo(f"{chosen}, {study.calibration.kind}: {study.calibration.note}.", err=True)
    best = choose_best(inputs, study, named.names_of, count)
    columns = dict(zip(COLUMNS, (best.names, best.score, best.expected_clicks, best.in_links), strict=True))
    if as_json:
        echo_json(_as_data(inputs, study, columns, shlex.join(words)))
    if out is not None or not as_json:
        _give(columns, out)


def _check_out(out: Path) -> None:
    """Before the work, and not after it."""
    from bowerbird.cli.graph_files import ENDINGS

    if not out.name.endswith(ENDINGS):
        raise ConfigError(f"--out {out}: must end in {', '.join(ENDINGS)}.")
    if out.is_dir():
        raise ConfigError(f"--out {out}: is a folder. Name a file.")
    if not out.parent.is_dir():
        raise ConfigError(f"--out {out}: there is no folder {out.parent}. Make it, or name another place.")
    if not os.access(out if out.exists() else out.parent, os.W_OK):
        raise ConfigError(f"--out {out}: may not be written. Name another place.")


def _read_workload(path: Path) -> Workload:
    """The queries of a file."""
    from bowerbird.cli.graph_files import read_queries
    from bowerbird.demand.workload import words_of
    from bowerbird.model.workload import make_workload

    texts, frequency, notes = read_queries(path)
    for note in notes:
        click.echo(plain_text(note), err=True)
    workload = make_workload(texts, frequency, words_of)
    if not len(workload):
        raise ConfigError(f"{path}: none of the queries has a word to look for.")
    return workload


def _tell(named: NamedGraph, notes: tuple[str, ...], inputs: Inputs, took_s: float) -> None:
    graph = inputs.graph
    click.echo(
        f"{count_text(graph.count, 'page')}, {count_text(graph.edges, 'distinct link')}, "
        f"{int(np.count_nonzero(graph.crawled)):,} crawled, {len(graph.frontier):,} on the frontier "
        f"(read in {took_s:.1f} s).",
        err=True,
    )
    for note in notes:
        click.echo(plain_text(note), err=True)
    if named.ignored_clicks:
        click.echo(f"{count_text(named.ignored_clicks, 'page')} with clicks not crawled: not looked at.", err=True)
    if named.unlinked_clicks:
        click.echo(f"{count_text(named.unlinked_clicks, 'page')} with clicks that no link names.", err=True)


def _as_data(inputs: Inputs, study: FrontierStudy, columns: dict[str, Any], command: str) -> dict[str, Any]:
    """The one object for programs."""
    told = study.calibration
    values = zip(*(np.asarray(column, dtype=object).tolist() for column in columns.values()), strict=True)
    return {
        "method": study.method,
        "pages": inputs.graph.count,
        "frontier": len(inputs.graph.frontier),
        "calibration": {"kind": told.kind, "pages": told.pages, "clicks": told.clicks, "note": told.note},
        "rows": [dict(zip(columns, row, strict=True)) for row in values],
        "command": command,
        "version": bowerbird.__version__,
    }


def _give(columns: dict[str, Any], out: Path | None) -> None:
    from bowerbird.cli.graph_files import write_table

    if out is not None:
        write_table(out, columns)
        click.echo(f"{out}: {count_text(len(columns['page']), 'page')}.", err=True)
        return
    lines = ["\t".join(columns)]
    for page, score, clicks, links in zip(*columns.values(), strict=True):
        lines.append(f"{plain_text(page)}\t{score:.6g}\t{clicks:.6g}\t{links}")
    click.echo("\n".join(lines))
