"""Bids of the methods that look at the whole crawl: read off the last study, in expected clicks.

Refreshes do not bid in clicks yet: theirs reach the reserve of 1 when they are due. So clicks are counted in those of
the frontier's average page, which bids 2: as much as a refresh that is overdue by one interval.
"""

from __future__ import annotations

import math

import numpy as np

from bowerbird.appraise.appraiser import Rows
from bowerbird.appraise.frontier.in_degree import InDegree
from bowerbird.model.bid import Bids, Term
from bowerbird.model.snapshot import Snapshot
from bowerbird.model.study import FrontierStudy, Reasons, mark_queries, seal_marks

RESERVE = 1.0
BASES = np.array(["study", "mean of its host", "mean of all"])
_RESERVE_NOTE = "1 is the reserve, at which refreshes are due; clicks in those of the average page of the frontier"


class Studied:
    """Bid 1 + expected clicks/mean, by a study made with this method; before there is one, as in-degree does."""

    def __init__(self, name: str) -> None:
        self.name = name

    def appraise(self, snapshot: Snapshot, rows: Rows) -> Bids:
        """Constant bids; pages found after the study bid the mean of their host."""
        study = self._study(snapshot)
        if study is None:
            prior = InDegree().appraise(snapshot, rows)
            return Bids.build(prior.amplitude, terms={**prior.terms, "basis": np.array("in-links, before a study")})
        clicks, source = study.expected_clicks(rows, snapshot.pages.host[rows])
        terms = {"expected_clicks": clicks, "mean_clicks": np.array(_mean(study)), "basis": BASES[source]}
        return Bids.build(RESERVE + clicks / _mean(study), terms=terms)

    def explain(self, snapshot: Snapshot, row: int) -> Term:
        """1 + expected clicks/mean: how they were come by, and who passed on how much of the score."""
        study = self._study(snapshot)
        if study is None:
            tree = InDegree().explain(snapshot, row)
            note = f"there is no study by {self.name} yet: until then the pages that most pages link to come first"
            return Term(tree.name, tree.value, note, tree.children)
        expected = explain_clicks(snapshot, study, row)
        assert isinstance(expected.value, float)
        worth = expected.value
        mean = Term("mean clicks", _mean(study), "expected of the pages on the frontier")
        return Term("1 + expected clicks/mean", RESERVE + worth / _mean(study), _RESERVE_NOTE, (expected, mean))

    def _study(self, snapshot: Snapshot) -> FrontierStudy | None:
        study = snapshot.study
        return study if study is not None and study.method == self.name else None


def explain_clicks(snapshot: Snapshot, study: FrontierStudy, row: int) -> Term:
    """What is expected of one page, and how that was come by."""
    clicks, source = study.expected_clicks(np.array([row]), snapshot.pages.host[[row]])
    how = study.calibration
    children: tuple[Term, ...] = (
        Term("calibration", how.kind, how.note),
        Term("study_age_s", max(snapshot.now - study.at, 0.0), f"by {study.method}, of {study.count:,} URLs"),
    )
    if source[0] == 0:
        note = "from the page's score"
        children = (_explain_score(snapshot, study, row), *children)
    else:
        note = f"{BASES[source[0]]}: it was not on the frontier when the study was made"
    return Term("expected clicks", float(clicks[0]), note, children)


def _mean(study: FrontierStudy) -> float:
    """Expected clicks of the frontier's average page."""
    return max(study.default_worth, 1e-12)


def _explain_score(snapshot: Snapshot, study: FrontierStudy, row: int) -> Term:
    place = study.reasons.place(row) if study.reasons is not None else None
    children: tuple[Term, ...] = ()
    if study.reasons is not None and place is not None:
        children = (*_linking(study.reasons, place), *_queries(snapshot, study.reasons, place))
    said = f"as {study.method} gives it"
    if "leans on" in study.info:
        pages = float(study.info.get("learnt from", 0.0))
        said += f", learnt from {pages:,.0f} pages fetched earlier"
        note = "what told those pages apart most, of any page"
        children = (*children, Term("leans on", study.info["leans on"], note))
    if "note" in study.info:
        said += f": {study.info['note']}"
    return Term("score", float(study.score[row]), said, children)


def _linking(reasons: Reasons, place: int) -> tuple[Term, ...]:
    """The pages that pass on most to this one."""
    return tuple(
        Term("link from", amount, "passed on to the score", page=source)
        for source, amount in zip(reasons.sources[place].tolist(), reasons.passed[place].tolist(), strict=True)
        if source >= 0
    )


def _queries(snapshot: Snapshot, reasons: Reasons, place: int) -> tuple[Term, ...]:
    """The queries that it is expected to answer; those that are known no more are not named."""
    numbers = reasons.queries[place].tolist()
    if max(numbers) < 0:
        return ()
    texts: dict[int, str] = {}
    if snapshot.workload is not None:
        asked = snapshot.workload
        marks = seal_marks(mark_queries(asked.queries), asked.mark_key).tolist()
        texts = dict(zip(marks, asked.queries, strict=True))
    out = []
    for number, rank in zip(numbers, reasons.ranks[place].tolist(), strict=True):
        if number >= 0:
            text = texts.get(int(reasons.query_marks[number]))
            name = f"query '{text}'" if text is not None else "a query asked earlier"
            value = rank if math.isfinite(rank) else "beyond the first"
            out.append(Term(name, value, "the rank it is expected at"))
    return tuple(out)
