"""`rank --engine spark`: graphs that do not fit one machine."""

from __future__ import annotations

import time
from typing import Any

import click

import bowerbird
from bowerbird.cli.engine import Engine, say
from bowerbird.cli.table_files import check_table_path, give_table, is_uri
from bowerbird.cli.values import echo_json
from bowerbird.library.ranking_methods import SPARK_METHODS
from bowerbird.model.errors import ConfigError


def rank_by_spark(
    engine: Engine,
    paths: tuple[str, str, str | None],
    method: str,
    real_share: float,
    tolerance: float,
    count: int,
    out: str | None,
    as_json: bool,
    command: str,
) -> None:
    """Rank and show, as the local engine does; scores are not made into clicks."""
    if method not in SPARK_METHODS:
        raise ConfigError(f"--method {method}: --engine spark has {', '.join(SPARK_METHODS)}.")
    if out is not None and not is_uri(out):
        check_table_path(out)
    began = time.perf_counter()
    with engine.session() as (spark, root):
        from bowerbird.cluster.ranking import RankInputs, rank_pages
        from bowerbird.cluster.walks import WalkOptions

        options = WalkOptions(method, real_share=real_share, tolerance=tolerance)
        found = rank_pages(spark, RankInputs(*paths), options, root, engine.choice().partitions, say)
        for note in found.notes:
            say(note)
        columns = found.take(count, out)
    say(f"{method}: {found.iterations} steps, {time.perf_counter() - began:.1f} s.")
    if as_json:
        echo_json(
            {
                "method": method,
                "engine": engine.name,
                "pages": found.pages,
                "links": found.links,
                "frontier": found.frontier,
                "iterations": found.iterations,
                "residual": found.residual,
                "rows": _rows(columns),
                "command": command,
                "version": bowerbird.__version__,
            }
        )
    if columns and (out is not None or not as_json):
        give_table(columns, out)
    if out is not None:
        click.echo(f"{out}: written.", err=True)


def _rows(columns: dict[str, list[Any]]) -> list[dict[str, Any]]:
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
