"""What the policies of the refresh experiment share: the answers of each workload under each scoring, read once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bowerbird.appraise.refresh.priors import page_levels
from bowerbird.lab.refresh_data import FloatArray, RefreshData
from bowerbird.lab.refresh_gains import curve_gains_by_update, exact_gains_by_update
from bowerbird.lab.refresh_local_gains import local_gains_by_update
from bowerbird.lab.refresh_policies import Forecast, in_sample, refresh_none
from bowerbird.lab.refresh_replay import Policy, Ranking, Truth, replay
from bowerbird.lab.refresh_scores import SCORINGS, ScoredVersions, score_versions
from bowerbird.lab.refresh_stakes import find_stakes
from bowerbird.lab.refresh_terms import I64
from bowerbird.lab.refresh_visits import ShiftTable


@dataclass(frozen=True)
class Combination:
    """One workload under one scoring."""

    data: RefreshData
    workload: str
    scoring: str

    @property
    def name(self) -> str:
        """As it is called in measures."""
        return f"{self.workload} {self.scoring}"

    @cached_property
    def scored(self) -> ScoredVersions:
        """The answers of all versions."""
        return score_versions(self.data, self.data.workloads[self.workload], self.scoring)

    @cached_property
    def truth(self) -> Truth:
        """What is the same for all policies."""
        return Truth(self.scored)

    @cached_property
    def curve_gains(self) -> FloatArray:
        """The gain of each update by the curves of [UC05]."""
        return curve_gains_by_update(self.data, self.scored, self.scoring)

    @cached_property
    def exact_gains(self) -> FloatArray:
        """The exact gain of each update in the week in which it appears."""
        return exact_gains_by_update(self.truth)

    @cached_property
    def local_gains(self) -> FloatArray:
        """The gain of each update by real queries and the scores of the repository."""
        return local_gains_by_update(self.truth)

    @cached_property
    def unrefreshed_bp(self) -> float:
        """What is lost without any refresh."""
        return self.loss_bp(refresh_none, 0.0)

    @cached_property
    def curve_forecast(self) -> Forecast:
        """In sample, from the gains by curves."""
        return in_sample(self.data, self.curve_gains)

    @cached_property
    def exact_forecast(self) -> Forecast:
        """In sample, from the exact gains."""
        return in_sample(self.data, self.exact_gains)

    @cached_property
    def local_forecast(self) -> Forecast:
        """In sample, from the gains by local scores."""
        return in_sample(self.data, self.local_gains)

    @cached_property
    def views(self) -> FloatArray:
        """By page, the share of what searchers see at week 0: sum_q f·I(rank), 1 in total."""
        scored, ranking = self.scored, Ranking(self.scored)
        query = scored.slot_query[ranking.order]
        rank = np.arange(len(query)) - scored.query_starts[query]
        shown = ranking.scores[ranking.order] > 0
        seen = scored.queries.frequency[query] * scored.views[rank] * shown
        found = np.bincount(scored.slot_page[ranking.order], seen, self.data.count).astype(np.float64)
        total = float(found.sum())
        return found / total if total > 0 else found

    @cached_property
    def stakes(self) -> FloatArray:
        """By page, the share of Q that its whole exchange would move, by what is known at week 0."""
        moved = find_stakes(self.scored, self.scoring)
        best = float(self.truth.best[0])
        return moved / best if best > 0 else moved

    def loss_bp(self, policy: Policy, share: float) -> float:
        """What a policy loses, on average over the weeks."""
        return replay(self.truth, policy, share).loss_bp


@dataclass(frozen=True)
class RefreshScenes:
    """A site with all combinations; what they share is worked out once."""

    data: RefreshData

    @property
    def name(self) -> str:
        """As the user called it."""
        return self.data.name

    def describe(self) -> dict[str, str | int | float]:
        """Sizes and sources."""
        return self.data.describe()

    @cached_property
    def combinations(self) -> tuple[Combination, ...]:
        """Workloads that ask for anything that a page answers, under each scoring."""
        found = (
            Combination(self.data, workload, scoring)
            for workload, queries in self.data.workloads.items()
            if len(queries)
            for scoring in SCORINGS
        )
        return tuple(each for each in found if len(each.scored.queries))

    @cached_property
    def shifts(self) -> ShiftTable:
        """How much texts changed between fetches."""
        return ShiftTable(self.data)

    @cached_property
    def levels(self) -> tuple[I64, ...]:
        """Groupings of the pages by their paths, for priors."""
        return page_levels(self.data.pages, np.zeros(self.data.count, dtype=np.int64))
