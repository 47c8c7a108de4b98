"""What each page has at stake at week 0 of a replay: all that a crawler knows before its first refresh."""

from __future__ import annotations

import numpy as np

from bowerbird.lab.refresh_data import FloatArray
from bowerbird.lab.refresh_replay import Ranking
from bowerbird.lab.refresh_scores import ScoredVersions, count_words, query_norms, term_weight
from bowerbird.lab.refresh_terms import I64
from bowerbird.quality.stakes import AnswerLists, PageWordScores, QueryWords, entry_gains, removal_gains


def find_stakes(scored: ScoredVersions, scoring: str) -> FloatArray:
    """By page, what its whole exchange would gain answers; not yet divided by their worth."""
    data, queries = scored.data, scored.queries
    base = data.first[:-1]
    words = count_words(data, queries)
    starts, terms, counts = words.of_versions(base)
    page_of = np.repeat(np.arange(data.count), np.diff(starts))
    length = np.diff(data.starts)[base].astype(np.float64)
    idf = term_weight(words.seen_in(terms), data.count)
    rooted = 1.0 / np.sqrt(np.maximum(length, 1.0))
    pages = PageWordScores(
        starts=starts,
        words=terms,
        scores=np.sqrt(counts) * rooted[page_of] * idf[terms] ** 2,
        fresh_word=idf**2,
        fresh_page=rooted,
        length=length,
        chance=np.bincount(terms, counts, words.size) / max(float(length.sum()), 1.0),
        static=data.in_links.astype(np.float64) if scoring == "in-link" else np.zeros(0),
    )
    lists = list_answers(scored)
    asked = QueryWords(queries.starts, words.members, queries.frequency, query_norms(queries, words.members, idf))
    gone = removal_gains(lists, queries.frequency, scored.views, data.count)
    return gone + entry_gains(lists, asked, pages, scored.views)


def list_answers(scored: ScoredVersions) -> AnswerLists:
    """The answers at week 0."""
    ranking = Ranking(scored)
    scores = ranking.scores[ranking.order]
    kept = scores > 0
    query = scored.slot_query[ranking.order][kept]
    starts: I64 = np.searchsorted(query, np.arange(len(scored.queries) + 1)).astype(np.int64)
    return AnswerLists(starts, scored.slot_page[ranking.order][kept].astype(np.int64), scores[kept])
