"""The experiment `refresh`: what is another look at a known page worth? The protocol of [UC05]."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import ClassVar

import numpy as np

from bowerbird.lab.experiment import Finding, LabData, Sample, SplitResult, Summary
from bowerbird.lab.measuring_cost import measured
from bowerbird.lab.plots import Plot
from bowerbird.lab.refresh_baselines import IN_SAMPLE, given_up, run_best
from bowerbird.lab.refresh_budgets import budget_to_reach
from bowerbird.lab.refresh_data import read_refresh_data
from bowerbird.lab.refresh_findings import conclude_refresh
from bowerbird.lab.refresh_halves import compare_halves
from bowerbird.lab.refresh_learners import ONLINE
from bowerbird.lab.refresh_local_gains import gains_when_stale, rank_correlation
from bowerbird.lab.refresh_measures import (
    BOTH_HALVES,
    BUDGETS,
    CORRELATION,
    CURVE_GAIN,
    FIRST_HALF,
    GIVEN_UP,
    HEADLINE,
    LEFT,
    LOCAL_GAIN,
    LOSS,
    LOSS_AT,
    OURS,
    SIGNALS,
    STALE_GAIN,
    TARGETS,
    UNITS,
)
from bowerbird.lab.refresh_plots import draw_refresh
from bowerbird.lab.refresh_policies import uniform
from bowerbird.lab.refresh_scenes import Combination, RefreshScenes
from bowerbird.lab.refresh_signals import measure_signals

#: what does not depend on the seed is measured on this split, and holds for all
FIXED_SPLIT = 0


class RefreshFamily:
    """The weekly replay of [UC05] on a site of which every version is known."""

    name = "refresh"
    title = "What is another look at a known page worth?"
    paper = "UC05"
    known = ("k8s", "mdn")
    policies = ("uniform", *IN_SAMPLE, *ONLINE, SIGNALS)
    default_seeds = 5
    headline = LEFT
    reference = OURS
    beyond: ClassVar[dict[str, str]] = {f"budget_of_{target}": f"> {BUDGETS[-1]:.0%}" for target in TARGETS}
    method = (
        "The repository is synchronised at week 0. In each week (as many as the data has, 48 at most) the live "
        "site becomes that of the week, the policy refreshes B = round(share · pages) pages, and the quality Q is "
        "measured exactly: the value of the answers of all queries, ranked by local scores and worth live ones, "
        "I(r) = r^-1.5 over the whole list, divided by that of a repository that is fresh. Figures are the loss "
        "1 - Q in basis points, the mean of the weeks. There are two workloads (web: public lists of web queries, or "
        "the data's own; site: titles of pages, as often as they are viewed, or 1 + in-links where views are not "
        "known) and two scorings of pages that have all words (Lucene's classic TF-IDF; the number of pages that link "
        "to them).\n\n"
        "In sample, as in the paper, all parameters are those of the replay itself: `proportional`, `sbr`, `ebr`, "
        "`click-ebr` (EBR with Wolf's whole weight, times what searchers see at week 0), `lambda-crawl`, `azar` (both "
        "weighed so too) and `uc-…` (user-centric). SBR and EBR follow Wolf's transportation schedule; of the "
        "thresholds of shingles from 0.1 to 1.0 the one that loses least is kept, for each budget anew. "
        "`uc-saturating-local` takes gains from real queries and local scores in place of curves, "
        "`uc-saturating-exact` the exact gains. `none` and `oracle` are the bounds.\n\n"
        "Online (`…-online`) a policy knows what its own refreshes found so far, and where pages stand in answers at "
        "week 0; 5% of B goes to random pages. `uniform` takes all pages in turn, in random order. The seed of a split "
        "moves only what is random; what is not is measured once and holds for every split.\n\n"
        "`signals`: each update is announced with the probability `recall` in its week, before the policy chooses, and "
        "each page is announced falsely with some probability a week. `uc-area-online`, the user-centric policy of the "
        "crawl, learns from its own visits how far to believe them."
    )
    units: ClassVar[dict[str, str]] = UNITS

    def load(self, name: str, folder: Path) -> RefreshScenes:
        """Read and check the data."""
        return RefreshScenes(read_refresh_data(name, folder))

    def run_split(self, data: LabData, split: int, policies: Sequence[str]) -> SplitResult:
        """Replay each policy with every budget; those that no seed moves on the first split only."""
        assert isinstance(data, RefreshScenes)
        result = SplitResult(split)
        for scene in data.combinations:  # what policies share is not the first one's cost
            _ = (scene.truth, scene.views, scene.unrefreshed_bp)
        for policy in policies:
            if policy in IN_SAMPLE and split != FIXED_SPLIT:
                continue
            with measured(policy) as meter:
                samples = list(self._replay(data, split, policy, result.notes))
            if samples:
                result.costs.append(meter.cost)
                result.samples.extend(samples)
        if split == FIXED_SPLIT:
            result.samples.extend(_compare_gains(data))
        return result

    def complete(self, results: Sequence[SplitResult]) -> list[SplitResult]:
        """What holds for all splits is put into each of them, and budgets for equal quality are worked out."""
        first = next((result for result in results if result.split == FIXED_SPLIT), None)
        for result in results:
            if first is not None and result is not first:
                result.samples.extend(sample for sample in first.samples if is_fixed(sample.policy))
        for result in results:
            result.samples.extend(_match_budgets(result.samples))
        return list(results)

    def certain(self, policy: str) -> bool:
        """Whether no seed moves a policy, so that it has no error."""
        return is_fixed(policy)

    def conclude(self, data: LabData, summaries: Sequence[Summary]) -> list[Finding]:
        """Which of the paper's claims hold."""
        assert isinstance(data, RefreshScenes)
        return conclude_refresh(summaries, data.data.count)

    def draw(self, data: LabData, summaries: Sequence[Summary]) -> list[Plot]:
        """Quality by budget, loss by signals, and gains of the first half against those of the second."""
        assert isinstance(data, RefreshScenes)
        return draw_refresh(data, summaries)

    def files(self, data: LabData) -> dict[str, bytes]:
        """The points of the scatter plots."""
        assert isinstance(data, RefreshScenes)
        out = io.StringIO(newline="")
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(("on", "page", "first_half", "second_half"))
        for scene in data.combinations:
            halves = compare_halves(data.data, scene.curve_gains)
            for page, first, second in zip(halves.page.tolist(), halves.first, halves.second, strict=True):
                writer.writerow((scene.name, data.data.pages[page], f"{first:.6g}", f"{second:.6g}"))
        return {"gains.csv": out.getvalue().encode("utf-8")}

    def _replay(self, data: RefreshScenes, split: int, policy: str, notes: list[str]) -> Iterator[Sample]:
        if policy == SIGNALS:
            yield from measure_signals(data, split)
            return
        shares = []
        for scene in data.combinations:
            for budget in BUDGETS:
                loss, setting = _run_policy(data, scene, policy, budget, split)
                yield Sample(policy, f"{LOSS} {scene.name}", budget, loss)
                if budget == HEADLINE:
                    yield Sample(policy, f"{LOSS_AT} {scene.name}", None, loss)
                    shares.append(100.0 * loss / scene.unrefreshed_bp if scene.unrefreshed_bp > 0 else float("nan"))
                    if setting:
                        notes.append(f"{policy} at {budget:.0%}, {scene.name}: {setting}.")
        if shares:
            yield Sample(policy, LEFT, None, float(np.mean(shares)))


def is_fixed(policy: str) -> bool:
    """Whether no seed moves it."""
    return policy in IN_SAMPLE or policy.startswith("(")


def is_online(policy: str) -> bool:
    """Whether its parameters are from the past only."""
    return policy.endswith("-online")


def _run_policy(data: RefreshScenes, scene: Combination, policy: str, budget: float, split: int) -> tuple[float, str]:
    if policy in IN_SAMPLE:
        return run_best(scene, IN_SAMPLE[policy], budget)
    rng = np.random.default_rng(split)
    if policy == "uniform":
        return scene.loss_bp(uniform(data.data.count, rng), budget), ""
    return scene.loss_bp(ONLINE[policy](data, scene, rng), budget), ""


def _compare_gains(data: RefreshScenes) -> Iterator[Sample]:
    """How well gains are forecast, and how well measures of them agree."""
    later = np.flatnonzero(data.data.week > 0)
    for scene in data.combinations:
        exact = scene.exact_gains[later]
        policy = uniform(data.data.count, np.random.default_rng(0))
        stale = gains_when_stale(scene.truth, policy, HEADLINE)
        halves = compare_halves(data.data, scene.curve_gains)
        for name, value in (
            (FIRST_HALF, halves.correlation),
            (BOTH_HALVES, halves.positive.correlation),
            (CURVE_GAIN, rank_correlation(scene.curve_gains[later], exact)),
            (LOCAL_GAIN, rank_correlation(scene.local_gains[later], exact)),
            (STALE_GAIN, rank_correlation(stale.local, stale.exact)),
        ):
            yield Sample(name, f"{CORRELATION} {scene.name}", None, value)
    for budget in BUDGETS:
        yield Sample("(sbr, every change counts)", GIVEN_UP, budget, given_up(data.data, budget))


def _match_budgets(samples: Sequence[Sample]) -> Iterator[Sample]:
    """By policy, the budget in % of pages a week with which it is as good as user-centric with 1%."""
    losses: dict[tuple[str, str], dict[float, float]] = {}
    for sample in samples:
        kind, _, on = sample.measure.partition(" ")
        if kind == LOSS and sample.at is not None:
            losses.setdefault((on, sample.policy), {})[sample.at] = sample.value
    for target in TARGETS:
        for (on, policy), found in losses.items():
            aim = losses.get((on, target), {}).get(HEADLINE)
            alike = policy == "uniform" or is_online(policy) == is_online(target)
            if aim is None or policy in ("none", "oracle", target) or not alike:
                continue
            yield Sample(policy, f"budget_of_{target} {on}", None, 100.0 * budget_to_reach(found, aim))


FAMILY = RefreshFamily()
