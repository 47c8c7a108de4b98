"""`rank --engine spark`: graphs that do not fit one machine."""

from __future__ import annotations

import time
from collections.abc import Sequence

from bowerbird.cli.engine import Engine, say
from bowerbird.cli.table_files import give_result
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
    words: Sequence[str],
) -> None:
    """Rank and show, as the local engine does; scores are not made into clicks."""
    if method not in SPARK_METHODS:
        raise ConfigError(f"--method {method}: --engine spark has {', '.join(SPARK_METHODS)}.")
    began = time.perf_counter()
    with engine.session(("--out", out)) as (spark, root):
        from bowerbird.cluster.ranking import RankInputs, rank_pages
        from bowerbird.cluster.walks import WalkOptions

        options = WalkOptions(method, real_share=real_share, tolerance=tolerance)
        found = rank_pages(spark, RankInputs(*paths), options, root, engine.choice().partitions, say)
        for note in found.notes:
            say(note)
        columns = found.take(count, out)
    say(f"{method}: {found.iterations} steps, {time.perf_counter() - began:.1f} s.")
    facts = {
        "method": method,
        "engine": engine.name,
        "pages": found.pages,
        "links": found.links,
        "frontier": found.frontier,
        "iterations": found.iterations,
        "residual": found.residual,
    }
    give_result(facts, columns, out, as_json, words)
