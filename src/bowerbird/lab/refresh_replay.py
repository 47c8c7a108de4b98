"""The weekly replay of [UC05]: a site changes, a policy refreshes B pages, and the quality Q is measured exactly.

Of each query the order of its slots by local score is kept. In a week only queries that a changed or refreshed page
answers are looked at again, and what changed is merged into what did not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numba
import numpy as np
import numpy.typing as npt

from bowerbird.lab.refresh_data import FloatArray, RefreshData
from bowerbird.lab.refresh_measures import pages_a_week
from bowerbird.lab.refresh_scores import ScoredVersions
from bowerbird.lab.refresh_terms import I64

U8 = npt.NDArray[np.uint8]
BASIS_POINTS = 1e4


class Ranking:
    """Scores by slot, and of each query the slots in the order of their scores; equal ones by path."""

    def __init__(self, scored: ScoredVersions) -> None:
        self._scored = scored
        self.scores = scored.at_start()
        self.order = np.lexsort((-self.scores, scored.slot_query)).astype(np.int64)
        self._touched: U8 = np.zeros(len(self.scores), dtype=np.uint8)

    def change(self, versions: I64) -> I64:
        """These versions are now those of their pages; returns the queries whose scores changed, ascending."""
        scored = self._scored
        rows = (scored.of, scored.slots, scored.at, scored.scores)
        dirty = np.zeros(len(scored.queries), dtype=np.bool_)
        pages = scored.data.page[versions]
        _change_scores(versions, pages, *rows, scored.slot_query, self.scores, self._touched, dirty)
        queries = np.flatnonzero(dirty)
        _merge_orders(queries, scored.query_starts, self.scores, self._touched, self.order)
        return queries


class Truth:
    """What is the same for all policies: live scores, and the best value of each week."""

    def __init__(self, scored: ScoredVersions) -> None:
        self.scored = scored
        data = scored.data
        self.updates = tuple(data.updated_in(week) for week in range(1, data.weeks + 1))
        self.best = self._best_values()

    def _best_values(self) -> FloatArray:
        """The denominator of Q by week, from week 0."""
        scored, live = self.scored, Ranking(self.scored)
        values = np.zeros(len(scored.queries))
        best = np.empty(len(self.updates) + 1)
        queries = np.arange(len(scored.queries))
        for week in range(len(best)):
            if week:
                queries = live.change(self.updates[week - 1])
            _value_queries(queries, scored.query_starts, live.order, live.scores, live.scores, scored.views, values)
            best[week] = float(scored.queries.frequency @ values)
        return best


class Replay:
    """The state in one run: which version of each page is live and which is local, and the quality."""

    def __init__(self, truth: Truth) -> None:
        self.truth = truth
        self.scored = truth.scored
        self.week = 0
        self.live_version: I64 = self.data.first[:-1].copy()
        self.local_version: I64 = self.live_version.copy()
        self.refreshed: I64 = np.zeros(self.data.count, dtype=np.int64)  # the week of each page's last refresh
        self.local = Ranking(self.scored)
        self.live: FloatArray = self.local.scores.copy()
        self._values = np.zeros(len(self.scored.queries))
        self._revalue(np.arange(len(self.scored.queries)))

    @property
    def data(self) -> RefreshData:
        """The site."""
        return self.scored.data

    @property
    def quality(self) -> float:
        """[UC05] Q, exactly."""
        best = float(self.truth.best[self.week])
        return float(self.scored.queries.frequency @ self._values) / best if best > 0 else 1.0

    @property
    def stale(self) -> I64:
        """Pages whose local version is not the live one."""
        return np.flatnonzero(self.local_version != self.live_version)

    def begin_week(self) -> None:
        """The live site becomes that of the next week."""
        updates = self.truth.updates[self.week]
        self.week += 1
        self.live_version[self.data.page[updates]] = updates
        dirty = np.zeros(len(self.scored.queries), dtype=np.bool_)
        scored = self.scored
        rows = (scored.of, scored.slots, scored.at, scored.scores)
        touched = np.zeros(0, dtype=np.uint8)
        _change_scores(updates, self.data.page[updates], *rows, scored.slot_query, self.live, touched, dirty)
        self._revalue(np.flatnonzero(dirty))

    def refresh(self, pages: npt.NDArray[np.integer]) -> None:
        """Fetch these pages: their local version becomes the live one."""
        chosen = np.asarray(pages, dtype=np.int64)
        self.refreshed[chosen] = self.week
        changed = chosen[self.local_version[chosen] != self.live_version[chosen]]
        versions = self.live_version[changed]
        self.local_version[changed] = versions
        self._revalue(self.local.change(versions))

    def gains(self, pages: npt.NDArray[np.integer] | None = None, *, by_local: bool = False) -> FloatArray:
        """[UC05] eq. 5, exactly: by page, what Q would gain if it alone were refreshed now; below 0 it would lose.

        Of these pages only, if given. With `by_local` the scores of all other pages are those of the repository,
        which is all that a crawler knows.
        """
        scored = self.scored
        gains = np.zeros(self.data.count)
        stale = np.zeros(self.data.count, dtype=np.bool_)
        stale[self.stale] = True
        if pages is not None:
            asked = np.zeros(self.data.count, dtype=np.bool_)
            asked[pages] = True
            stale &= asked
        _gain_pages(
            scored.query_starts, scored.slot_page, stale, self.local.order, self.local.scores, self.live,
            self.local.scores if by_local else self.live, scored.queries.frequency, scored.views, gains,
        )  # fmt: skip
        best = float(self.truth.best[self.week])
        return gains / best if best > 0 else gains

    def _revalue(self, queries: I64) -> None:
        scored = self.scored
        _value_queries(
            queries, scored.query_starts, self.local.order, self.local.scores, self.live, scored.views, self._values
        )


#: called each week with the replay and the budget; returns the pages to refresh, no more than the budget
Policy = Callable[[Replay, int], npt.NDArray[np.integer]]


@dataclass(frozen=True, slots=True)
class Run:
    """What one policy reached."""

    budget: int  # pages a week
    quality: FloatArray  # by week, from week 1

    @property
    def loss_bp(self) -> float:
        """Mean loss of quality over the weeks, in basis points."""
        return BASIS_POINTS * float(1.0 - self.quality.mean())


def replay(truth: Truth, policy: Policy, share: float) -> Run:
    """Run a policy over all weeks with B = round(share·N) pages a week."""
    state = Replay(truth)
    budget = pages_a_week(share, state.data.count)
    quality = np.empty(state.data.weeks)
    for week in range(state.data.weeks):
        state.begin_week()
        chosen = np.unique(policy(state, budget))
        if len(chosen) > budget:
            raise ValueError(f"a policy chose {len(chosen)} pages where {budget} may be refreshed")
        state.refresh(chosen)
        quality[week] = state.quality
    return Run(budget, quality)


@numba.njit(cache=True, nogil=True)
def _change_scores(
    versions: I64, pages: npt.NDArray[np.int32], of: I64, slots: I64, at: I64, scores: FloatArray,
    slot_query: npt.NDArray[np.int32], values: FloatArray, touched: U8, dirty: npt.NDArray[np.bool_],
) -> None:  # fmt: skip
    """Write the scores of versions into their slots; mark the queries where one changed, and in `touched` the slot."""
    for i in range(len(versions)):
        page = pages[i]
        for k in range(of[page + 1] - of[page]):
            slot = slots[of[page] + k]
            value = scores[at[versions[i]] + k]
            if value != values[slot]:
                values[slot] = value
                dirty[slot_query[slot]] = True
                if len(touched):
                    touched[slot] = 1


@numba.njit(cache=True, nogil=True)
def _merge_orders(queries: I64, query_starts: I64, scores: FloatArray, touched: U8, order: I64) -> None:
    """Put touched slots where they now belong, and unmark them."""
    for query in queries:
        first, last = query_starts[query], query_starts[query + 1]
        moved = np.empty(last - first, dtype=np.int64)
        keys = np.empty(last - first)
        kept = np.empty(last - first, dtype=np.int64)
        moving, staying = 0, 0
        for slot in range(first, last):
            if touched[slot]:
                moved[moving] = slot
                keys[moving] = -scores[slot]
                moving += 1
        for place in range(first, last):
            if not touched[order[place]]:
                kept[staying] = order[place]
                staying += 1
        by_score = np.argsort(keys[:moving], kind="mergesort")  # stable: equal scores stay by slot
        i, j = 0, 0
        for place in range(first, last):
            if j == moving:
                order[place] = kept[i]
                i += 1
                continue
            other = moved[by_score[j]]
            if i < staying and (
                scores[kept[i]] > scores[other] or (scores[kept[i]] == scores[other] and kept[i] < other)
            ):
                order[place] = kept[i]
                i += 1
            else:
                order[place] = other
                j += 1
        for j in range(moving):
            touched[moved[j]] = 0


@numba.njit(cache=True, nogil=True)
def _value_queries(
    queries: I64, query_starts: I64, order: I64, local: FloatArray, live: FloatArray, views: FloatArray,
    values: FloatArray,
) -> None:  # fmt: skip
    """sum_p I(rank of p by local score)·S(live p, q) of these queries."""
    for query in queries:
        first = query_starts[query]
        value = 0.0
        for place in range(first, query_starts[query + 1]):
            slot = order[place]
            if local[slot] <= 0.0:
                break
            value += views[place - first] * live[slot]
        values[query] = value


@numba.njit(cache=True, nogil=True)
def _gain_pages(
    query_starts: I64, slot_page: npt.NDArray[np.int32], stale: npt.NDArray[np.bool_], order: I64, local: FloatArray,
    live: FloatArray, others: FloatArray, frequency: FloatArray, views: FloatArray, gains: FloatArray,
) -> None:  # fmt: skip
    """Add to each stale page what its answers would gain by its refresh alone, the other pages worth `others`."""
    for query in range(len(query_starts) - 1):
        first, last = query_starts[query], query_starts[query + 1]
        some = False
        for slot in range(first, last):
            if local[slot] != live[slot] and stale[slot_page[slot]]:
                some = True
                break
        if not some:
            continue
        results = 0
        while first + results < last and local[order[first + results]] > 0.0:
            results += 1
        # lost[k]: what the best k lose if each goes one place down; raised[k]: what they gain if each but the first
        # goes one place up
        lost = np.zeros(results + 1)
        raised = np.zeros(results + 1)
        for place in range(results):
            value = others[order[first + place]]
            lost[place + 1] = lost[place] + value * (views[place] - views[place + 1])
            raised[place + 1] = raised[place]
            if place:
                raised[place + 1] += value * (views[place - 1] - views[place])
        for slot in range(first, last):
            now = live[slot]
            if local[slot] == now or not stale[slot_page[slot]]:
                continue
            before = results
            if local[slot] > 0.0:
                before = _place(order, first, results, local, local[slot], slot)
            after = results
            if now > 0.0:
                after = _place(order, first, results, local, now, slot)
            gain = 0.0
            if local[slot] > 0.0:
                gain -= views[before] * now
                if now <= 0.0:
                    gain += raised[results] - raised[before + 1]
                elif after > before:
                    after -= 1  # it was among those that are better than it will be
                    gain += raised[after + 1] - raised[before + 1]
                else:
                    gain += lost[after] - lost[before]
            elif now > 0.0:
                gain += lost[after] - lost[results]
            if now > 0.0:
                gain += views[after] * now
            gains[slot_page[slot]] += frequency[query] * gain


@numba.njit(cache=True, nogil=True)
def _place(order: I64, first: int, results: int, local: FloatArray, score: float, slot: int) -> int:
    """How many slots come before one with this score."""
    low, high = 0, results
    while low < high:
        middle = (low + high) // 2
        other = order[first + middle]
        if local[other] > score or (local[other] == score and other < slot):
            low = middle + 1
        else:
            high = middle
    return low
