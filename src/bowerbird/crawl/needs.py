"""The queries that better pages would help most, told from how well the index answers them now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bowerbird.demand.log import QueryStats
from bowerbird.index.tantivy_index import TantivyIndex
from bowerbird.quality.neediness import TOP, improvability, mean_of_top, neediness
from bowerbird.store.folder import CrawlFolder


@dataclass(frozen=True, slots=True)
class Need:
    """How a query is answered now, and how much it needs better pages, in the unit of its frequency."""

    results: int
    mean_top_score: float  # over TOP places; a missing result scores 0
    need: float


def weigh_needs(folder: CrawlFolder, queries: Sequence[QueryStats]) -> list[Need]:
    """Ask the index each query; the needs in the order of the queries."""
    means = np.zeros(len(queries), dtype=np.float64)
    found = np.zeros(len(queries), dtype=np.int64)
    totals: list[int] = []
    with TantivyIndex.open(folder.index, write=False) as index:
        for place, query in enumerate(queries):
            answer = index.search(query.text, TOP, snippets=False)
            totals.append(answer.total)
            found[place] = len(answer.hits)
            # over the results there are: `improvability` itself counts the missing ones
            means[place] = sum(hit.score for hit in answer.hits) / max(len(answer.hits), 1)
    frequency = np.array([query.weight for query in queries], dtype=np.float64)
    needs = neediness(frequency, improvability(means, found)).tolist()
    scores = mean_of_top(means, found).tolist()
    return [Need(total, score, need) for total, score, need in zip(totals, scores, needs, strict=True)]
