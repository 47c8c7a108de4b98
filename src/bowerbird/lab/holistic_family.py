"""The experiment `holistic`: one budget for new pages, refreshes and hub visits. Does one price share it out best?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import ClassVar

import numpy as np

from bowerbird.lab.experiment import Cost, Finding, LabData, Sample, SplitResult, Summary
from bowerbird.lab.holistic_bound import bound_clicks
from bowerbird.lab.holistic_crawl import KINDS
from bowerbird.lab.holistic_findings import conclude_holistic
from bowerbird.lab.holistic_made import DRAWN, MADE, MadeSettings, draw_settings, make_world
from bowerbird.lab.holistic_mdn import SiteHistory, read_history, world_of_site
from bowerbird.lab.holistic_measures import (
    CALIBRATION,
    CURVE,
    GAIN,
    MARGIN_BID,
    MARGIN_GAINED,
    MARGINAL,
    OF_QUOTA,
    QUALITY,
    SHARE,
    SPENT,
    TIMES_BFS,
    UNEQUAL,
    UNITS,
    by_kind,
    over_time,
)
from bowerbird.lab.holistic_plots import draw_holistic
from bowerbird.lab.holistic_policies import (
    AUTO,
    BOUND,
    BREADTH_FIRST,
    CLAIRVOYANT,
    NOTHING,
    NUTCH,
    UNWATCHED,
    quota_names,
)
from bowerbird.lab.holistic_replay import Replay, replay, warm_up
from bowerbird.lab.holistic_world import DAY_S, HolisticWorld
from bowerbird.lab.measuring_cost import measured
from bowerbird.lab.plots import Plot

PLAIN = (AUTO, UNWATCHED, BREADTH_FIRST, NUTCH, CLAIRVOYANT)
WINDOWS = 20  # of a curve over time, at most
FEWEST = 20  # fetches at the margin, for a kind to be compared


@dataclass(frozen=True)
class HolisticData:
    """A world to be made, by settings or by lot, or a site that was read; a seed makes a world of it."""

    name: str
    settings: MadeSettings | None = None
    site: SiteHistory | None = None

    def world(self, seed: int) -> HolisticWorld:
        """The world of a split."""
        if self.site is not None:
            return world_of_site(self.site, seed)
        settings = draw_settings(seed) if self.settings is None else self.settings
        return make_world(self.name, settings, seed)

    @cached_property
    def first(self) -> HolisticWorld:
        """That of the first split, which is described."""
        return self.world(0)

    def describe(self) -> dict[str, str | int | float]:
        """Sizes of the first split's world."""
        return self.first.describe()


class HolisticFamily:
    """Policies on one budget, in worlds of which everything is known."""

    name = "holistic"
    title = "One budget for new pages, refreshes and hubs: who shares it out best?"
    paper = "BEYOND"
    known = ("mdn",)
    generated: ClassVar[tuple[str, ...]] = (*MADE, DRAWN)
    policies = (*PLAIN, BOUND, *quota_names())
    default_seeds = 5
    headline = GAIN
    reference = AUTO
    method = (
        "A world of hosts with old pages that change, hubs that announce new pages, and searchers who click; steps of "
        "an hour (mdn: a week). In `drawn` each seed has settings of its own, by lot. "
        "A page is hidden until something fetched links to it or announces it; a hub shows its "
        "last 30 announcements. A missed change costs a share of a page's clicks until the next fetch; interest in new "
        "pages fades. Searchers' clicks on fetched pages are Poisson draws that a policy is told of a step later; a "
        "refresh tells what share of all clicks a change had cost, give or take 3%. After a warm start that all share "
        "(a third each of new pages by lot, refreshes and hubs by age) each policy has the same fetches a step. "
        "Clicks gained are those of the truth until the end, over those of a crawl that fetches nothing more.\n\n"
        "`auto` is the product's: its three studies, made anew twice a day (mdn: every 4 weeks) from what this crawl "
        "has seen, bid in expected clicks until the end of the run, and the best bids are taken whatever they are for. "
        "A kind whose fetches near the price gain other than they bid is corrected, from what the crawl sees itself; "
        "`auto-unwatched` does without that. "
        "`quota-n-r-h` gives fixed shares, in %, to new pages, refreshes and hubs, and is `auto` in all else: the same "
        "studies, bids and corrections. As `auto` has one price, each share of it has one, the least bid that it took: "
        "hubs bid net of that of new pages (0 where all are taken), and fetches near that of their share correct "
        "their kind. A page that is a hub takes from the share of hubs, whatever it is fetched for. What a kind cannot "
        "use, for it has nothing that gains, goes to the others (quota-100-0-0 is new pages first, quota-0-100-0 "
        "refreshes first). All these spend 3% by lot: on new pages, on those that hubs "
        "announced of late, and on hubs. `breadth-first` gives half to new pages by "
        "depth, half to known URLs, hubs "
        "among them, the oldest first. `nutch` takes what is due, most linked first; intervals of 30 days, 0.4 longer "
        "or 0.2 shorter after a visit. `clairvoyant` takes the best by the truth: it knows what is stale, what hubs "
        "have to show and what each page will be clicked, but plans nothing: a reference, no bound. `bound` is one: "
        "the best that somebody could do with this budget who knows all changes and clicks to come, and all pages "
        "without looking for them; no policy can gain more.\n\n"
        "The gain at the margin of a fetch is what its kind's index is the forecast of: of a new page the clicks left, "
        "of a refresh the loss of each missed change times how long after the last fetch it came, of a hub what its "
        "new pages are worth now, net of the price, beyond what they would be had each waited as long as the hub; a "
        "page counts as those of its hub do on average, for nobody can tell beforehand which is worth a fetch. "
        "Fetches that bid at most 1.5 times the least of their step are at the margin, and their gains are divided by "
        "what they bid: some kinds come in larger steps, and bid more when they are taken. Where all of a kind that is "
        "known is taken, none is at the margin: more of it would gain, but there is none. Those of the second half of "
        "the measured time count, when the crawl has had time to learn. The error of their mean is the larger of two, "
        "by leaving out one seed, or one of 20 parts of the world (by directory): seeds of a site share its history. "
        "An index page is a page and a hub; a fetch of it is of the kind that bids more."
    )
    units: ClassVar[dict[str, str]] = UNITS
    unshown: ClassVar[frozenset[str]] = frozenset({MARGIN_GAINED, MARGIN_BID})

    def load(self, name: str, folder: Path) -> HolisticData:
        """Make ready what is generated; read a site's history."""
        if name in (*MADE, DRAWN):
            return HolisticData(name, settings=MADE.get(name))
        return HolisticData(name, site=read_history(name, folder))

    def run_split(self, data: LabData, split: int, policies: Sequence[str]) -> SplitResult:
        """One world, one warm start, every policy with every budget."""
        assert isinstance(data, HolisticData)
        result = SplitResult(split)
        world = data.first if split == 0 else data.world(split)
        warm = warm_up(world, split)
        idle = float(replay(warm, NOTHING, world.budgets[0], split).clicks.sum())
        gains: dict[tuple[str, float], float] = {}
        for policy in policies:
            with measured(policy) as meter:
                for budget in world.budgets:
                    if policy == BOUND:
                        gains[policy, budget] = bound_clicks(warm, budget) - idle
                    else:
                        done = replay(warm, policy, budget, split)
                        gains[policy, budget] = float(done.clicks.sum()) - idle
                        result.samples.extend(_measure(policy, budget, done))
                    # who leaves some of the budget unused gains less
                    offered = world.fetches_per_step(budget) * (world.steps - world.warm_steps)
                    result.samples.append(Sample(policy, GAIN, budget, gains[policy, budget] / offered))
            result.costs.append(Cost(policy, meter.seconds / len(world.budgets), meter.peak_mb))
        result.samples.extend(_compare(gains, world.budgets))
        return result

    def conclude(self, data: LabData, summaries: Sequence[Summary]) -> list[Finding]:
        """Does one price do as well as the best split, and are gains at the margin alike?"""
        assert isinstance(data, HolisticData)
        return conclude_holistic(summaries, data.first.budgets)

    def draw(self, data: LabData, summaries: Sequence[Summary]) -> list[Plot]:
        """Q over time, clicks gained by split, fetches by kind over time."""
        assert isinstance(data, HolisticData)
        return draw_holistic(summaries, data.name, data.first.budgets)


def _measure(policy: str, budget: float, done: Replay) -> Iterator[Sample]:
    yield Sample(policy, QUALITY, budget, 100.0 * float(done.quality.mean()))
    for kind in KINDS:
        yield Sample(policy, by_kind(SHARE, kind), budget, 100.0 * float(done.spent[:, kind].sum()) / done.fetches)
    if done.bid.sum() > 0:
        for kind in KINDS:
            if done.bid[kind] > 0:
                value = float(done.realised[kind] / done.bid[kind])
                yield Sample(policy, by_kind(CALIBRATION, kind), budget, value)
    if policy in (AUTO, UNWATCHED, CLAIRVOYANT):
        yield from _margins(policy, budget, done)
    if policy in PLAIN:
        yield from _curves(policy, budget, done)


def _margins(policy: str, budget: float, done: Replay) -> Iterator[Sample]:
    enough = done.marginal_count >= FEWEST
    at_margin = np.where(enough, done.marginal_realised / np.maximum(done.marginal_bid, 1e-300), np.nan)
    for kind in KINDS:
        if enough[kind]:
            yield Sample(policy, by_kind(MARGINAL, kind), budget, float(at_margin[kind]))
        for measure, parts in zip((MARGIN_GAINED, MARGIN_BID), done.margin_parts[:, kind], strict=True):
            for part in np.flatnonzero(parts).tolist():
                yield Sample(policy, over_time(by_kind(measure, kind), budget), part, float(parts[part]))
    if enough.sum() > 1:
        mean = float(np.nanmean(at_margin))
        yield Sample(policy, UNEQUAL, budget, 100.0 * float(np.nanmax(np.abs(at_margin / mean - 1.0))))


def _curves(policy: str, budget: float, done: Replay) -> Iterator[Sample]:
    world = done.world
    days = (world.end_s - world.measured_from_s) / DAY_S
    parts = np.array_split(np.arange(len(done.clicks)), min(WINDOWS, len(done.clicks)))
    ideal = world.ideal[world.warm_steps :]
    for nth, part in enumerate(parts, 1):
        day = round(days * nth / len(parts), 2)
        quality = float(done.clicks[part].sum() / max(ideal[part].sum(), 1e-300))
        yield Sample(policy, over_time(CURVE, budget), day, 100.0 * quality)
        spent = done.spent[part].sum(axis=0)
        if policy == AUTO and spent.sum() > 0:
            for kind in KINDS:
                share = 100.0 * float(spent[kind] / spent.sum())
                yield Sample(f"{AUTO}: {kind.label}", over_time(SPENT, budget), day, share)


def _compare(gains: dict[tuple[str, float], float], budgets: Sequence[float]) -> Iterator[Sample]:
    quotas = set(quota_names())
    for budget in budgets:
        rivals = [gain for (policy, at), gain in gains.items() if at == budget and policy in quotas]
        plain = gains.get((BREADTH_FIRST, budget), 0.0)
        for (policy, at), gain in gains.items():
            if at == budget and plain > 0:
                yield Sample(policy, TIMES_BFS, budget, gain / plain)
            if at == budget and rivals and max(rivals) > 0:
                yield Sample(policy, OF_QUOTA, budget, 100.0 * gain / max(rivals))


FAMILY = HolisticFamily()
