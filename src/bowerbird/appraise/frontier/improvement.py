"""How much new pages better the answers: learnt from one study to a later one, and kept in the study between them."""

from __future__ import annotations

import numpy as np

from bowerbird.appraise.frontier.sketches import TOP, CrawledScores
from bowerbird.model.study import QueryAnswers, mark_queries, seal_marks
from bowerbird.model.workload import Workload
from bowerbird.quality.neediness import ImprovabilityModel, fit_improvability, mean_of_top

FEWEST_PAGES = 200  # a cycle is long enough to learn from with so many new pages,
FEWEST_SHARE = 0.05  # and so many for each that there was
FEWEST_QUERIES = 50


def learn_answers(before: QueryAnswers | None, workload: Workload, top: CrawledScores, pages: int) -> QueryAnswers:
    """What the answers are like now, with what their change since `before` teaches; `before` until it is time."""
    if before is not None and pages - before.pages < max(FEWEST_PAGES, FEWEST_SHARE * before.pages):
        return before
    now = QueryAnswers(
        pages,
        seal_marks(mark_queries(workload.queries), workload.mark_key),
        top.mean_top().astype(np.float32),
        np.diff(top.starts).astype(np.int32),
        before.model if before is not None else None,
    )
    if before is None:
        return now
    _, old, new = np.intersect1d(before.marks, now.marks, return_indices=True)
    if len(old) < FEWEST_QUERIES:
        return now
    mean, results = before.mean_top[old].astype(np.float64), before.results[old].astype(np.int64)
    later = mean_of_top(now.mean_top[new].astype(np.float64), now.results[new].astype(np.int64))
    gained = np.maximum(later - mean_of_top(mean, results), 0.0)  # scores also fall, as words become more common
    if not (gained > 0).any():
        return now
    model = fit_improvability(mean, results, gained)
    return QueryAnswers(now.pages, now.marks, now.mean_top, now.results, (model.intercept, model.slope))


def model_of(answers: QueryAnswers | None) -> ImprovabilityModel | None:
    """The model that was learnt, if any."""
    if answers is None or answers.model is None:
        return None
    return ImprovabilityModel(*answers.model, top=TOP)
