"""What searchers would see of pages not fetched yet: `sketches`, of a graph of your own."""

from __future__ import annotations

from typing import Any

import click
import numpy as np

from bowerbird.cli.engine import Engine, engine_options, local_path, say
from bowerbird.cli.table_files import give_result, give_table, table_options
from bowerbird.cli.values import count_text
from bowerbird.model.errors import ConfigError

COLUMNS = ("page", "impact", "queries", "score")
LISTS = ("query", "rank", "page", "score", "crawled")


@click.command("sketches")
@click.option("--links", required=True, metavar="FILE", help="Links: source, target. TSV, CSV (.gz, .zst) or Parquet.")
@click.option("--queries", required=True, metavar="FILE", help="What searchers ask: query, frequency.")
@click.option("--scores", default=None, metavar="FILE", help="page, score, as `rank` gives; others are no candidates.")
@click.option("--anchors", default=None, metavar="FILE", help="Texts of links: page (or target), anchor.")
@click.option("--crawled", default=None, metavar="FILE", help="Crawled pages, one a line, if not the sources of links.")
@click.option("--top", type=click.IntRange(1, 1000), default=10, show_default=True, help="Results that searchers see.")
@click.option(
    "--rho",
    type=click.FloatRange(0, 1, min_open=True),
    default=1.0,
    show_default=True,
    help="Share of a query's n-grams that a page must have.",
)
@click.option("--lists", default=None, metavar="FILE", help="Write the top of every query, too: a file as of --out.")
@table_options(1000)
@engine_options
def sketches_command(
    links: str,
    queries: str,
    scores: str | None,
    anchors: str | None,
    crawled: str | None,
    top: int,
    rho: float,
    count: int,
    out: str | None,
    lists: str | None,
    as_json: bool,
    engine: Engine,
) -> None:
    """How often would searchers see the pages of your own link graph that are not crawled yet?

    A page matches a query when its name (such as a URL) and the texts of links to it have the query's words, in runs of
    up to three as they stand in the query. Of all pages that match, crawled ones too, the best by score are what
    searchers see: the sketch of the query. The impact of a page is the frequency of the queries that it is seen for.

    Crawled are the sources of links, unless --crawled names others. Without --scores a page scores by the crawled pages
    that link to it. The columns of the result are page, impact, queries (that it matches), score; of --lists query,
    rank, page, score, crawled.
    """
    if not 0 < rho <= 1:  # NaN is within every range
        raise ConfigError(f"--rho {rho}: must be a number above 0, up to 1.")
    engine.check_tables(("--out", out), ("--lists", lists))
    words = ["bowerbird", "sketches", "--links", links, "--queries", queries]
    for option, path in (("--scores", scores), ("--anchors", anchors), ("--crawled", crawled)):
        words += [option, path] if path is not None else []
    words += ["--top", str(top), "--rho", f"{rho:g}", "-n", str(count), *engine.words()]
    paths = (links, queries, scores, anchors, crawled)
    if engine.is_spark:
        facts, columns, listed = _by_spark(engine, paths, top, rho, count, out, lists)
    else:
        facts, columns, listed = _by_hand(paths, top, rho, count, lists is not None)
    click.echo(
        f"{count_text(facts['pages'], 'page')}, {facts['frontier']:,} not crawled; {facts['queries']:,} queries with "
        f"words; {count_text(facts['matches'], 'match')}.",
        err=True,
    )
    give_result(facts, columns, out, as_json, words)
    if lists is not None:
        if listed:
            give_table(listed, lists)
        say(f"{lists}: written.")


Paths = tuple[str, str, str | None, str | None, str | None]
Result = tuple[dict[str, Any], dict[str, list[Any]], dict[str, list[Any]]]


def _by_hand(paths: Paths, top: int, rho: float, count: int, listed: bool) -> Result:
    from bowerbird.appraise.frontier.page_sketches import sketch_pages
    from bowerbird.cli.graph_files import read_workload
    from bowerbird.cli.sketch_files import read_sketch_files

    options = ("--links", "--queries", "--scores", "--anchors", "--crawled")
    links, queries, scores, anchors, crawled = (
        local_path(path, option) for path, option in zip(paths, options, strict=True)
    )
    assert links is not None
    assert queries is not None
    files = read_sketch_files(links, scores, anchors, crawled)
    workload, notes = read_workload(queries)
    for note in (*files.notes, *notes):
        say(note)
    found = sketch_pages(files.words, workload, files.score, files.crawled, top=top, rho=rho)
    rows = np.flatnonzero(~files.crawled & (found.matched > 0))
    order = rows[np.lexsort((rows, -files.score[rows], -found.impact[rows]))][: count or None]
    values = ([files.names[row] for row in order], found.impact[order], found.matched[order], files.score[order])
    columns = {name: np.asarray(each, dtype=object).tolist() for name, each in zip(COLUMNS, values, strict=True)}
    facts = {
        "pages": len(files.names),
        "frontier": int(np.count_nonzero(~files.crawled)),
        "queries": len(workload),
        "matches": int(found.matched.sum()),
    }
    table: dict[str, list[Any]] = {name: [] for name in LISTS}
    if listed:
        for query, text in enumerate(workload.queries):
            size = min(int(found.sketches.sizes[query]), top)
            pages, scored = found.sketches.pages[query, :size], found.sketches.scores[query, :size]
            for rank, place in enumerate(np.lexsort((pages, -scored)).tolist(), 1):
                page = int(pages[place])
                row = (text, rank, files.names[page], float(scored[place]), bool(files.crawled[page]))
                for name, cell in zip(LISTS, row, strict=True):
                    table[name].append(cell)
    return facts, columns, table


def _by_spark(
    engine: Engine,
    paths: Paths,
    top: int,
    rho: float,
    count: int,
    out: str | None,
    lists: str | None,
) -> Result:
    """Tables at URIs are written by Spark; then nothing of them comes back."""
    with engine.session(("--out", out), ("--lists", lists)) as (spark, root):
        from bowerbird.cluster.results import take_rows
        from bowerbird.cluster.sketches import SketchPaths, sketch_graph

        found = sketch_graph(spark, SketchPaths(*paths), root, engine.choice().partitions, say, top=top, rho=rho)
        for note in found.notes:
            say(note)
        ordered = found.impact.select(*COLUMNS)
        columns = take_rows(ordered, (("impact", True), ("score", True), ("page", False)), count, out)
        table: dict[str, list[Any]] = {}
        if lists is not None:
            table = take_rows(found.lists.select(*LISTS), (("query", False), ("rank", False)), 0, lists)
        facts = {
            "pages": found.pages,
            "frontier": found.frontier,
            "queries": found.queries,
            "matches": found.matches,
        }
    return facts, columns, table
