"""What each page of a crawl has at stake in the answers that its searchers get now, and what they see of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bowerbird.crawl.answered import ask_index
from bowerbird.demand.visibility import Visibility
from bowerbird.index.measuring import WordScoring
from bowerbird.index.recorded_pages import read_recorded
from bowerbird.index.scoring import K1, B, field_frequencies
from bowerbird.index.tantivy_index import TantivyIndex
from bowerbird.index.tantivy_query import FIELD_WEIGHTS
from bowerbird.index.word_counts import Vocabulary
from bowerbird.model.workload import Workload
from bowerbird.quality.answers import view_table
from bowerbird.quality.stakes import AnswerLists, PageWordScores, QueryWords, entry_gains, removal_gains
from bowerbird.store.folder import CrawlFolder

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]

DEPTH = 50  # results of a query
TEXT = list(FIELD_WEIGHTS).index("text")


@dataclass(frozen=True, slots=True)
class Standing:
    """By row: the share of quality that a change of the whole page could move, and its share of what is seen."""

    stake: F64
    views: F64


def weigh_answers(folder: CrawlFolder, workload: Workload, visibility: Visibility, count: int) -> Standing:
    """Ask the index what searchers get now; all 0 before there are any."""
    if not len(workload) or not float(workload.frequency.sum()) > 0:
        return Standing(np.zeros(count), np.zeros(count))
    views = view_table(visibility, DEPTH + 2)
    with TantivyIndex.open(folder.index, write=False) as index:
        lists = list_answers(index, workload, count)
        scoring = WordScoring.bm25(index, workload.terms)
        holding = field_frequencies(index, workload.terms, ["text"])[0]
        words = max(float(index.document_count()) * index.average_length("text"), 1.0)
    seen = _weigh_places(lists, workload.frequency, views)
    worth = float(seen @ lists.scores)
    if not worth > 0:
        return Standing(np.zeros(count), np.zeros(count))
    moved = removal_gains(lists, workload.frequency, views, count)
    moved += could_enter(folder, workload, lists, scoring, holding / words, views, count)
    shown = np.bincount(lists.pages, seen, count).astype(np.float64)
    return Standing(moved / worth, shown / float(shown.sum()))


def list_answers(index: TantivyIndex, workload: Workload, count: int) -> AnswerLists:
    """The first results of every query, of pages that have a row."""
    pages: list[I64] = [np.zeros(0, dtype=np.int64)]
    scores: list[F64] = [np.zeros(0)]
    for found, values, _ in ask_index(index, workload, DEPTH):
        known = (found < count) & (values > 0)  # the index may be ahead of the columns
        pages.append(found[known])
        scores.append(values[known])
    starts = np.cumsum([len(found) for found in pages]).astype(np.int64)
    return AnswerLists(starts, np.concatenate(pages), np.concatenate(scores))


def could_enter(
    folder: CrawlFolder, workload: Workload, lists: AnswerLists, scoring: WordScoring, chance: F64, views: F64,
    count: int,
) -> F64:  # fmt: skip
    """What pages would gain answers by the words they lack; 0 for those whose words are not on record."""
    gains = np.zeros(count)
    asked = QueryWords(workload.starts, workload.members.astype(np.int32), workload.frequency, np.ones(len(workload)))
    fresh = scoring.weights[TEXT] * scoring.inverse[TEXT]
    average = max(float(scoring.average[TEXT]), 1.0)
    marks = Vocabulary(workload.terms).marks(workload.mark_key)
    for part in read_recorded(folder.forward, marks, scoring):
        saturated = (K1 + 1) / (1 + K1 * (1 - B + B * part.text_length / average))
        pages = PageWordScores(part.starts, part.words, part.scores, fresh, saturated, part.text_length, chance)
        found = entry_gains(lists, asked, pages, views)
        known = part.pages < count
        gains[part.pages[known]] = found[known]
    return gains


def _weigh_places(lists: AnswerLists, frequency: F64, views: F64) -> F64:
    """By place in the lists, f·I(rank)."""
    sizes = np.diff(lists.starts)
    rank = np.arange(len(lists.scores)) - np.repeat(lists.starts[:-1], sizes)
    seen: F64 = np.repeat(frequency, sizes) * views[rank]
    return seen
