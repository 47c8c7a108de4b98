"""The brain alone, for people with a crawler and a graph of their own: `rank`."""

from __future__ import annotations

import shlex
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

import bowerbird
from bowerbird.cli.engine import Engine, engine_options, local_path
from bowerbird.cli.table_files import give_table, table_options
from bowerbird.cli.values import count_text, echo_json, plain_text
from bowerbird.library.ranking_methods import ASKING, METHODS, OTHER_NAMES, RANK_TOLERANCE, WALKS
from bowerbird.model.errors import ConfigError

if TYPE_CHECKING:
    from bowerbird.appraise.frontier.inputs import Inputs
    from bowerbird.appraise.frontier.ranking import NamedGraph
    from bowerbird.model.study import FrontierStudy

COLUMNS = ("page", "score", "expected_clicks", "in_links")
FILE = click.Path(path_type=Path)


@click.command("rank")
@click.option("--links", required=True, metavar="FILE", help="Links: source, target. TSV, CSV (.gz, .zst) or Parquet.")
@click.option("--clicks", required=True, metavar="FILE", help="Clicks on crawled pages: page, clicks.")
@click.option("--crawled", default=None, metavar="FILE", help="Crawled pages, one a line, if they are others.")
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
@click.option(
    "--tolerance",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=RANK_TOLERANCE,
    show_default=True,
    help="pagerank, rw, rw-eg: a walk ends when a step changes no more of all.",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="For what is drawn by lot.")
@table_options(1000)
@engine_options
def rank_command(
    links: str,
    clicks: str,
    crawled: str | None,
    queries: Path | None,
    method: str,
    real_share: float,
    tolerance: float,
    count: int,
    out: str | None,
    seed: int,
    as_json: bool,
    engine: Engine,
) -> None:
    """Rank the pages of your own link graph that are not crawled yet, best first.

    Crawled are the sources of links and the pages in the clicks file, unless --crawled names others; all other pages
    are the frontier. Pages are known by any name, such as a URL. Bad lines are left out and told; a file of which most
    lines are bad is refused. The columns of the result are page, score, expected_clicks, in_links.

    Columns are found by their names (source or from, target or to…), in Parquet by these alone. In text a header line
    is optional; lines before it that begin with # are skipped. Without a header columns go in order; an unknown header
    is refused where there are more columns than needed, otherwise it is told what was taken for what.

    Query methods look for the words of queries in page names; there is no index to ask, so crawled pages are taken to
    answer a query the better the higher their PageRank is.

    --engine spark has indegree, pagerank, rw and rw-eg, for graphs of any size (docs/scale.md); scores equal those of
    the local engine, and it does not make clicks of them: the columns are page, score, in_links.
    """
    from bowerbird.appraise.frontier.inputs import MethodOptions
    from bowerbird.appraise.frontier.methods import METHODS as KNOWN
    from bowerbird.appraise.frontier.methods import QUERY_METHODS
    from bowerbird.appraise.frontier.ranking import choose_best, has_answers, prepare_ranking, study_graph
    from bowerbird.cli.graph_files import read_graph, read_workload

    chosen = OTHER_NAMES.get(method, method)
    if chosen not in KNOWN:
        raise ConfigError(f"--method {method}: this version does not have it. It has {', '.join(KNOWN)}.")
    if chosen in ASKING and queries is None:
        raise ConfigError(f"--method {method}: needs queries to look for. Name a file of them with --queries.")
    if not 0 <= real_share <= 1:  # NaN is within every range
        raise ConfigError(f"--real-share {real_share}: must be a number from 0 to 1.")
    if not 0 < tolerance < 1:
        raise ConfigError(f"--tolerance {tolerance}: must be a number above 0 and below 1.")
    engine.check_tables(("--out", out))
    words = ["bowerbird", "rank", "--links", str(links), "--clicks", str(clicks)]
    words += ["--crawled", str(crawled)] if crawled is not None else []
    words += ["--queries", str(queries)] if queries is not None else []
    words += ["--method", chosen, *(["--real-share", f"{real_share:g}"] if chosen == "rw-eg" else [])]
    words += ["--tolerance", f"{tolerance:g}"] if chosen in WALKS else []
    words += ["-n", str(count), "--seed", str(seed), *engine.words()]
    if engine.is_spark:
        from bowerbird.cli.spark_rank import rank_by_spark

        if queries is not None:
            raise ConfigError("--queries: --engine spark has no method that looks at queries. Leave it out.")
        paths = (links, clicks, crawled)
        rank_by_spark(engine, paths, chosen, real_share, tolerance, count, out, as_json, words)
        return
    if queries is not None and chosen not in QUERY_METHODS:
        click.echo(f"--queries {queries}: not read, for {chosen} does not look at queries.", err=True)
        queries = None
    began = time.perf_counter()
    files = (local_path(links, "--links"), local_path(clicks, "--clicks"), local_path(crawled, "--crawled"))
    assert files[0] is not None
    assert files[1] is not None
    named, notes = read_graph(files[0], files[1], files[2])
    workload = None
    if queries is not None:
        workload, told = read_workload(queries)
        for note in told:
            click.echo(plain_text(note), err=True)
    rng = np.random.default_rng(seed)
    inputs = prepare_ranking(named, chosen, rng, workload, MethodOptions(real_share=real_share, tolerance=tolerance))
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
        give_table(columns, out)
        if out is not None:
            click.echo(f"{out}: {count_text(len(best.names), 'page')}.", err=True)


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
