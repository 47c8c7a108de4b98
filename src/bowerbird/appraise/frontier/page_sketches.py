"""What would searchers see of the pages of any graph? Sketches ([SI08]) by one score a page, without an index. Pure."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bowerbird.appraise.frontier.ngrams import NgramIndex, order_words, post, query_grams
from bowerbird.appraise.frontier.sketches import TOP, Sketches
from bowerbird.model.page_words import PageWords
from bowerbird.model.workload import Workload

BoolArray = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class SketchedPages:
    """Columns by page, and the sketches themselves."""

    impact: FloatArray  # 0 for crawled pages
    matched: IntArray  # queries that a page matches
    sketches: Sketches  # of the queries of the workload


def sketch_pages(
    words: PageWords, workload: Workload, score: FloatArray, crawled: BoolArray, *, top: int = TOP, rho: float = 1.0
) -> SketchedPages:
    """[SI08] I(p) = sum of f(q)·[p in the top K of q], over crawled and unseen pages that match q, by `score`.

    Pages that score 0 are nobody's candidates; of equal ones the lower number comes first.

    >>> from bowerbird.model.page_words import make_page_words
    >>> from bowerbird.model.workload import make_workload
    >>> words = make_page_words([[["red", "car"]], [["car"]], [["red", "car"]]])
    >>> asked = make_workload(["red car", "car"], [3.0, 2.0], str.split)
    >>> sketch_pages(words, asked, np.array([1.0, 2.0, 1.0]), np.array([False, False, True]), top=1).impact.tolist()
    [3.0, 2.0, 0.0]
    """
    index = NgramIndex(post(words))
    matches = index.match(query_grams(order_words(workload), rho=rho), score > 0)
    sketches = Sketches(workload.frequency, top=top)
    sketches.put(matches.queries(), matches.pages, score[matches.pages])
    impact = np.where(crawled, 0.0, sketches.impact(len(words)))
    return SketchedPages(impact, np.bincount(matches.pages, minlength=len(words)), sketches)
