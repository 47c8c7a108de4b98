"""Ranking a table of links and clicks: what `bowerbird rank` does with files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from bowerbird.appraise.frontier.inputs import MethodOptions
from bowerbird.appraise.frontier.methods import QUERY_METHODS
from bowerbird.appraise.frontier.ranking import (
    choose_best,
    has_answers,
    prepare_ranking,
    relate_pages,
    study_graph,
)
from bowerbird.appraise.policy import did_you_mean
from bowerbird.library.arrow_names import load_arrow
from bowerbird.library.column_names import CLICKS, PAGES, SOURCES, TARGETS
from bowerbird.library.plain_names import join_columns
from bowerbird.library.ranking_methods import ASKING, METHODS, OTHER_NAMES, RANK_TOLERANCE
from bowerbird.library.tables import Table, open_names, open_table
from bowerbird.library.workloads import workload_of
from bowerbird.model.errors import ConfigError, TableError
from bowerbird.model.study import CalibrationNote
from bowerbird.model.workload import Workload


@dataclass(frozen=True, slots=True)
class Ranking:
    """Pages of the frontier, best first, as columns; equal ones by name."""

    page: npt.NDArray[np.object_]
    score: npt.NDArray[np.float64]  # as the method gives it
    expected_clicks: npt.NDArray[np.float64]
    in_links: npt.NDArray[np.int64]  # crawled pages that link there
    method: str
    calibration: CalibrationNote  # how scores became clicks
    notes: tuple[str, ...] = ()  # what was not looked at

    def __len__(self) -> int:
        return len(self.page)

    def columns(self) -> dict[str, npt.NDArray[Any]]:
        """The columns by name: what a data frame is made of."""
        names = ("page", "score", "expected_clicks", "in_links")
        return {name: getattr(self, name) for name in names}

    def to_arrow(self) -> Any:
        """A pyarrow.Table."""
        pa = load_arrow()
        texts = pa.array(self.page.tolist(), pa.string())
        return pa.table({**self.columns(), "page": texts})

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """So that Polars, pandas and others take it for a table."""
        stream: object = self.to_arrow().__arrow_c_stream__(requested_schema)
        return stream


def rank(
    links: Table,
    clicks: Table,
    *,
    crawled: Table | Sequence[str] | None = None,
    queries: Table | Workload | None = None,
    method: str = "rw-eg",
    real_share: float = 0.5,
    n: int | None = None,
    seed: int = 0,
) -> Ranking:
    """Rank the pages of a link graph that are not crawled yet, best first: the first `n`, or all.

    `links` has the columns source and target, `clicks` page and clicks, `queries` query and frequency. Crawled are the
    sources of links and the pages in `clicks`, unless `crawled` names others; all other pages are the frontier.

    >>> links = {"source": ["a", "a", "b"], "target": ["b", "new", "new"]}
    >>> rank(links, {"page": ["a", "b"], "clicks": [3, 1]}).page.tolist()
    ['new']
    """
    chosen = _choose(method, real_share, n, seed)
    if chosen in ASKING and queries is None:
        raise ConfigError(f"method {method!r}: needs queries to look for. Pass a table of them as queries=.")
    notes: list[str] = []
    workload = None
    if queries is not None and chosen not in QUERY_METHODS:
        notes.append(f"queries not read, for {chosen} does not look at queries")
    elif queries is not None:
        workload = queries if isinstance(queries, Workload) else workload_of(queries)
    linking, clicked = open_table("links", links), open_table("clicks", clicks)
    columns = [linking.names(SOURCES), linking.names(TARGETS), clicked.names(PAGES)]
    if crawled is not None:
        columns.append(open_names("crawled", crawled, PAGES))
    if not linking.count:
        raise TableError("links: holds no rows. Give a row for each link.")
    amounts = clicked.numbers(CLICKS)
    joined = join_columns(columns)
    graph = relate_pages(joined.columns, amounts, joined.host, joined.names_of)
    options = MethodOptions(real_share=real_share, tolerance=RANK_TOLERANCE)
    inputs = prepare_ranking(graph, chosen, np.random.default_rng(seed), workload, options)
    if not len(inputs.graph.frontier):
        raise TableError(
            "links: links to no page that is not crawled: there is nothing to rank. "
            "Pass crawled= to say which pages are crawled, if those with links and clicks are not."
        )
    if graph.ignored_clicks:
        notes.append(f"{graph.ignored_clicks:,} pages with clicks not crawled: not looked at")
    study = study_graph(inputs, chosen)
    if chosen in ASKING and not has_answers(inputs):
        notes.append("no query has words of a page on the frontier: no page is told from another by queries")
    best = choose_best(inputs, study, joined.names_of, n or 0)
    page = np.array(best.names, dtype=object)
    return Ranking(page, best.score, best.expected_clicks, best.in_links, chosen, study.calibration, tuple(notes))


def _choose(method: str, real_share: float, n: int | None, seed: int) -> str:
    chosen = OTHER_NAMES.get(method, method)
    if chosen not in METHODS:
        meant = did_you_mean(chosen, METHODS)
        raise ConfigError(f"method {method!r} is not known{meant or '.'} There are {', '.join(METHODS)}.")
    if not 0 <= real_share <= 1:
        raise ConfigError(f"real_share {real_share}: must be a number from 0 to 1.")
    if n is not None and n < 1:
        raise ConfigError(f"n {n}: must be 1 or more, or None for all.")
    if seed < 0:
        raise ConfigError(f"seed {seed}: must be 0 or more.")
    return chosen
