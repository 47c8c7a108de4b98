"""[SI08]'s policies in the frontier experiment: what the crawled pages answer to a query log, as a search engine."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from bowerbird.appraise.frontier.graph import FrontierGraph
from bowerbird.appraise.frontier.query_impact import query_impact
from bowerbird.appraise.frontier.walk import pagerank
from bowerbird.lab.bm25 import TermCounts, count_terms, make_engine
from bowerbird.lab.data_files import find_file
from bowerbird.lab.frontier_data import FrontierData
from bowerbird.lab.sketches_data import keep_answered, number_terms, read_queries, split_query, split_words
from bowerbird.model.errors import InputFileError
from bowerbird.model.page_words import PageWords
from bowerbird.model.workload import Workload

FloatArray = npt.NDArray[np.float64]
_TAG = re.compile(r"(?s)<(script|style)\b.*?</\1>|<[^>]*>")


@dataclass(frozen=True, slots=True)
class AskedPages:
    """Texts of all pages (the engine holds the crawled ones) and the queries that some page answers."""

    counts: TermCounts
    workload: Workload

    def appraise(self, graph: FrontierGraph, words: PageWords, policy: str, seed: int) -> FloatArray:
        """Query-driven or hybrid impact of every page."""
        engine = make_engine(self.counts, graph.crawled)
        terms = number_terms(self.workload, self.counts)
        found = query_impact(
            words,
            self.workload,
            graph.crawled,
            engine.search(self.workload.starts, terms),
            pagerank(graph).values,
            graph.in_degree,
            np.zeros(graph.count, dtype=np.int64),
            words_of=split_query,
            rng=np.random.default_rng(seed),
        )
        return found.hybrid if policy == "hybrid" else found.query_driven


def read_asked(data: FrontierData, folder: Path) -> AskedPages | None:
    """None where there is no text, no query log in the folder or beside it, or no query that a page answers."""
    if data.texts is None:
        return None
    try:
        queries = read_queries(folder, [])
    except InputFileError:
        if find_file(folder, "queries") is not None:  # there, but wrong
            raise
        return None
    counts = count_terms(split_words(_TAG.sub(" ", text)) for text in data.texts())
    try:
        return AskedPages(counts, keep_answered(queries, counts))
    except InputFileError:  # these policies alone need them
        return None
