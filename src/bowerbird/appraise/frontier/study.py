"""Making a study: a method scores the frontier, and its scores become expected clicks. Pure, for any crawl or graph."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from numba import njit

from bowerbird.appraise.frontier.calibration import EVEN_HOST, Calibration, calibrate, has_too_little
from bowerbird.appraise.frontier.graph import BoolArray, IntArray
from bowerbird.appraise.frontier.inputs import FloatArray, Inputs, QueryReasons, Scores
from bowerbird.appraise.frontier.methods import METHODS, QUERY_METHODS, keep_most
from bowerbird.model.study import REASONS, FrontierStudy, Reasons, mark_queries

FOLDS = 5
FEW_FOLDS = 2  # for methods that take long
SMALL = 2000  # labelled pages; below, every one of them is hidden once, above half of them
MOST_EXPLAINED = 1_000_000  # pages, the best
FOUND_LAST = 1000  # URLs, fetched or not, that later ones are expected to be like
ENOUGH_WATCHED = 50.0  # full exposures, and clicks to be expected, that fetched ones are told by
BESIDE = 10.0  # clicks of pages of all times that weigh beside theirs
FEWEST_OTHERS = 50  # pages that no hub announced, to learn from them alone


@dataclass(frozen=True, slots=True)
class Feedback:
    """What is known of the pages fetched earlier. Columns are by page."""

    pages: BoolArray  # those to learn from: fetched, and found by searchers if they look for them
    exposure: FloatArray  # share of its time that a page had to be clicked
    weight: FloatArray  # inverse propensity
    asked_at: FloatArray | None = None  # when it was first fetched; now for pages that never were
    full_s: float = 0.0  # an exposure of 1; 0 = not known
    heard: FloatArray | None = None  # the time that a page's clicks are of, in full exposures; None = alike for all


def set_news_apart(pages: BoolArray, announced: BoolArray) -> BoolArray:
    """Of the pages to learn from, those that no hub announced, where there are enough.

    Interest in what hubs announce is high at first and fades: taken for that of all pages, it promises too much of the
    others. What is announced is learnt about apart.
    """
    others = pages & ~announced
    return others if np.count_nonzero(others) >= FEWEST_OTHERS else pages


def study_frontier(inputs: Inputs, method: str, frontier: IntArray, feedback: Feedback) -> FrontierStudy:
    """What each page of `frontier` (ascending) is worth, by a method of `METHODS`."""
    inputs = replace(
        inputs,
        labelled=feedback.pages,
        exposure=feedback.exposure,
        heard=feedback.heard,
        weight=feedback.weight,
        asked_at=feedback.asked_at,
    )
    found = METHODS[method](inputs)
    curve = learn_curve(inputs, method, found, feedback)
    count = inputs.graph.count
    worth = np.full(count, np.nan, dtype=np.float32)
    worth[frontier] = curve.expect(found.values[frontier])
    later, usual = expect_later(
        inputs, feedback, frontier, worth[frontier].astype(np.float64), by_clicks=len(curve.scores) > 0
    )
    return FrontierStudy(
        at=inputs.now,
        method=method,
        count=count,
        worth=worth,
        score=found.values.astype(np.float32),
        host_worth=later.astype(np.float32),
        default_worth=float(worth[frontier].mean()) if len(frontier) else curve.mean,
        calibration=curve.note,
        reasons=find_reasons(inputs, found, frontier),
        info={
            **found.info,
            "pages": float(np.count_nonzero(inputs.graph.crawled)),
            "frontier": float(len(frontier)),
            "links": float(inputs.graph.edges),
        },
        kept=found.kept,
        later_worth=usual,
    )


def expect_later(
    inputs: Inputs, feedback: Feedback, frontier: IntArray, worth: FloatArray, *, by_clicks: bool
) -> tuple[FloatArray, float | None]:
    """[BEYOND] By host, (n·c + sum w + k·m)/(n + r + k): what URLs found later are worth; and m, that of all hosts.

    As much as those found last, of which n were fetched and r were not: the frontier alone is what a crawl has left
    over, and of one that takes all but the worst it is the worst. Those on it count for what is expected of them, w;
    those that were fetched, of which the newest have had no time to be clicked, for c clicks, see `rate_found`. NaN
    where a host has none. Without clicks to go by it is the mean of its frontier, and nothing is said of other hosts.
    """
    fetched = np.flatnonzero(feedback.pages) if by_clicks else frontier[:0]
    rows = np.concatenate([frontier, fetched])
    late, seen = np.ones(len(rows), np.bool_), inputs.first_seen[rows]
    if by_clicks and len(rows) > FOUND_LAST:
        late = seen >= np.partition(seen, -FOUND_LAST)[-FOUND_LAST]
    hosts = int(inputs.host.max(initial=0)) + 1 if len(rows) else 0
    of_host = inputs.host[rows].astype(np.int64)
    if not by_clicks:
        total, many = np.bincount(of_host, worth, hosts), np.bincount(of_host, minlength=hosts)
        return np.divide(total, many, out=np.full(hosts, np.nan), where=many > 0), None
    value = np.concatenate([worth, rate_found(inputs, feedback, fetched, hosts)[inputs.host[fetched]]])
    if not len(rows):
        return np.zeros(0), None
    mean = float(value[late].mean())
    total, many = (np.bincount(of_host[late], weight, hosts) for weight in (value[late], np.ones(int(late.sum()))))
    known = np.bincount(of_host, minlength=hosts) > 0
    return np.where(known, (total + EVEN_HOST * mean) / (many + EVEN_HOST), np.nan), mean


def rate_found(inputs: Inputs, feedback: Feedback, fetched: IntArray, hosts: int) -> FloatArray:
    """[BEYOND] By host, (sum y + k·c)/(sum h + k) clicks a full exposure of the pages found last; c is that of all.

    Of fetched pages so many, the newest first, that they have been watched for E full exposures, in which pages of all
    times get E clicks: what was found in the last minutes tells nothing yet. How often they were clicked themselves
    must not decide how many they are: one that is clicked much would end it, and count for too much. So that it does
    not by chance either, c = (sum y + K)/(sum h + K/C), K clicks beside theirs as pages of all times have them, C.
    """
    watched = feedback.exposure[fetched]
    if feedback.heard is not None:
        watched = np.where(np.isnan(feedback.heard[fetched]), watched, feedback.heard[fetched])
    clicks = inputs.clicks[fetched]
    of_any = float(clicks.sum() / max(watched.sum(), 1e-300)) if len(fetched) else 0.0
    beside = BESIDE if of_any > 0.0 else 0.0
    newest = np.argsort(-inputs.first_seen[fetched], kind="stable")
    enough = ENOUGH_WATCHED / max(min(of_any, 1.0), 1e-300)
    some = newest[: int(np.searchsorted(np.cumsum(watched[newest]), enough)) + 1]
    seen_in_all = float(watched[some].sum()) + beside / max(of_any, 1e-300)
    of_all = (float(clicks[some].sum()) + beside) / max(seen_in_all, 1e-300)
    of_host = inputs.host[fetched[some]].astype(np.int64)
    got, seen = (np.bincount(of_host, column[some], hosts) for column in (clicks, watched))
    return np.asarray((got + EVEN_HOST * of_all) / (seen + EVEN_HOST))


def learn_curve(inputs: Inputs, method: str, whole: Scores, feedback: Feedback) -> Calibration:
    """Calibrate out of sample: fetched pages are hidden a fold at a time, and scored as if on the frontier."""
    labelled = np.flatnonzero(feedback.pages)
    clicks, nothing = inputs.clicks, np.zeros(0)
    if has_too_little(clicks[labelled]):
        return calibrate(nothing, clicks[labelled], feedback.exposure[labelled], nothing)
    if whole.held_out is not None:
        rows, held_out = whole.held_out
        mine = feedback.pages[rows]
        rows = rows[mine]
        if not len(rows):
            return calibrate(nothing, clicks[labelled], feedback.exposure[labelled], nothing)
        return calibrate(held_out[mine], clicks[rows], feedback.exposure[rows], feedback.weight[rows])
    order = inputs.rng.permutation(labelled)
    size = -(-len(order) // FOLDS) if len(order) < SMALL else len(order) // (2 * FOLDS)
    scores, pages = [], []
    for fold in range(FEW_FOLDS if method in QUERY_METHODS else FOLDS):
        hidden = np.zeros(inputs.graph.count, dtype=np.bool_)
        hidden[order[fold * size : (fold + 1) * size]] = True
        partial = replace(inputs.without(hidden), start=whole.values)
        # a page that nothing else links to would not be known
        rows = partial.graph.frontier[hidden[partial.graph.frontier]]
        if len(rows):
            scores.append(METHODS[method](partial).values[rows])
            pages.append(rows)
    if not pages:
        return calibrate(nothing, clicks[labelled], feedback.exposure[labelled], nothing)
    rows = np.concatenate(pages)
    return calibrate(np.concatenate(scores), clicks[rows], feedback.exposure[rows], feedback.weight[rows])


def find_reasons(inputs: Inputs, found: Scores, frontier: IntArray) -> Reasons | None:
    """For the best pages of the frontier: who links to them and passes on most, which queries they answer."""
    if found.passed is None and found.queries is None:
        return None
    rows = frontier
    if len(rows) > MOST_EXPLAINED:
        best = np.argpartition(-found.values[rows], MOST_EXPLAINED)[:MOST_EXPLAINED]
        rows = np.sort(rows[best])
    sources = np.full((len(rows), REASONS), -1, dtype=np.int32)
    passed = np.zeros((len(rows), REASONS), dtype=np.float32)
    if found.passed is not None:
        in_starts, in_sources = inputs.graph.into
        keep_best(in_starts, in_sources, np.ascontiguousarray(found.passed, np.float64), rows, sources, passed)
    queries, ranks, marks = _query_reasons(inputs, found.queries, rows)
    return Reasons(rows, sources, passed, queries, ranks, marks)


def _query_reasons(
    inputs: Inputs, found: QueryReasons | None, rows: IntArray
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float32], npt.NDArray[np.uint64]]:
    queries = np.full((len(rows), REASONS), -1, dtype=np.int32)
    ranks = np.full((len(rows), REASONS), np.nan, dtype=np.float32)
    if found is None or inputs.workload is None or not len(found.pages) or not len(rows):
        return queries, ranks, np.zeros(0, dtype=np.uint64)
    place = np.minimum(np.searchsorted(rows, found.pages), len(rows) - 1)
    mine = np.flatnonzero((rows[place] == found.pages) & (found.impact > 0))
    mine = mine[keep_most(place[mine], found.impact[mine], REASONS)]
    first = np.flatnonzero(np.diff(place[mine], prepend=-1))
    nth = np.arange(len(mine)) - np.repeat(first, np.diff(first, append=len(mine)))
    used, number = np.unique(found.queries[mine], return_inverse=True)
    queries[place[mine], nth] = number
    ranks[place[mine], nth] = found.ranks[mine]
    return queries, ranks, mark_queries(inputs.workload.queries[query] for query in used.tolist())


@njit(cache=True, nogil=True)
def keep_best(
    in_starts: IntArray,
    in_sources: npt.NDArray[np.uint32],
    passed: FloatArray,
    rows: IntArray,
    sources: npt.NDArray[np.int32],
    amounts: npt.NDArray[np.float32],
) -> None:
    """For each row the in-linkers that pass on most, best first, into `sources` and `amounts`."""
    width = sources.shape[1]
    for place in range(len(rows)):
        row = rows[place]
        kept = 0
        for link in range(in_starts[row], in_starts[row + 1]):
            source = in_sources[link]
            amount = passed[source]
            at = kept
            while at > 0 and amounts[place, at - 1] < amount:
                at -= 1
            if at >= width:
                continue
            kept = min(kept + 1, width)
            for move in range(kept - 1, at, -1):
                sources[place, move] = sources[place, move - 1]
                amounts[place, move] = amounts[place, move - 1]
            sources[place, at] = source
            amounts[place, at] = amount
