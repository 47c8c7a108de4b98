"""The experiment `echo`: which hub is visited, and which of its new pages fetched, before interest in them is gone?

The protocol of [ECHO13].
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import ClassVar

import numpy as np

from bowerbird.appraise.hubs.cover import Cover, greedy_cover
from bowerbird.lab.echo_data import read_echo_world
from bowerbird.lab.echo_discovery import DISCOVERIES, discovery_policy
from bowerbird.lab.echo_findings import conclude_echo
from bowerbird.lab.echo_interest import cluster_interest, interest_curve
from bowerbird.lab.echo_measures import (
    ALL_PAGES,
    BOUND,
    CLUSTER,
    COVER,
    COVER_SHARES,
    DELAY,
    DISCOVERED,
    DISCOVERY_DELAY,
    EPHEMERAL,
    FETCHED,
    FITTED,
    FOUND,
    GREEDY_COVER,
    HALF_LIFE,
    HISTORIES,
    HISTORY,
    INTEREST,
    MISSED,
    OURS,
    PROFIT,
    PUSH_HOURS,
    PUSHES,
    SHOWN_HOURS,
    UNITS,
    VISIT_SHARES,
    name_dynamic,
)
from bowerbird.lab.echo_one_price import one_price
from bowerbird.lab.echo_paper import PAPER_POLICIES, paper_policy
from bowerbird.lab.echo_plots import draw_echo
from bowerbird.lab.echo_replay import MakePolicy, run
from bowerbird.lab.echo_world import DAY_S, HOUR_S, EchoWorld
from bowerbird.lab.experiment import Finding, LabData, Sample, SplitResult, Summary
from bowerbird.lab.measuring_cost import measured
from bowerbird.lab.plots import Plot

#: what does not depend on the seed is measured on this split, and holds for all
FIXED_SPLIT = 0
#: sensitivities and discovery are measured on the splits before this one
SOME_SPLITS = 5
LEARNERS = ("echo-greedy", "echo-newpages", OURS)
RATE_LEARNERS = ("frequency", "echo-greedy", "echo-newpages")
WINDOWS = 28  # of the dynamic profit, at most, over the replay


class EchoFamily:
    """The replay of [ECHO13] on a world of which every link, and what people make of each page, is known."""

    name = "echo"
    title = "Where does news break, and is it fetched in time?"
    paper = "ECHO13"
    known = ("frontpages", "globo", "hackernews")
    policies = (*PAPER_POLICIES, OURS, *DISCOVERIES)
    default_seeds = 5
    headline = PROFIT
    reference = OURS
    method = (
        "One fetch each 1/N seconds, of a hub or of a page, N = x · (rate of new pages). At the beginning all hubs are "
        "known and have just been visited; what they link to then is old. A visit shows the links that are there at "
        "that time, in order and without dates. Once an hour a policy is told the clicks that pages got since their "
        "fetch, of those that it has fetched, in whole bins of 20 minutes. Profit is what pages that appear in the "
        "scored days make after their fetch, as a share of all that they make.\n\n"
        "`bfs` takes hubs in turn, each followed by all its new pages; `fixed-quota` gives half of the fetches to hubs "
        "in turn, half to new pages of the hub visited last; `frequency` takes the hub with the largest lam·tau. "
        "`echo-greedy` takes the largest lam·P·tau, `echo-newpages` the hub most behind the interval of Algorithm 1, "
        "each followed by its new pages; `echo-schedule` keeps to the intervals and fetches the newest pages with what "
        "is left. lam is measured over the last 7 visits, P and mu by least squares to the mean cumulative clicks of a "
        "hub's pages, solved every 30 minutes, P not below 5. `one-price` is the product's: hubs and pages bid what a "
        "fetch of them gains. Where the paper leaves its own policies open, the reading is the one closest to "
        "reference levels, which are of these same data and days: they are no forecast of how well it does elsewhere. "
        "The seed draws the order of hubs where nothing else decides, and what a policy tries.\n\n"
        "`uniform`, `rate-proportional` and `best-intervals` only visit hubs: how many new pages are seen, how soon."
    )
    units: ClassVar[dict[str, str]] = UNITS

    def load(self, name: str, folder: Path) -> EchoWorld:
        """Read and check the data."""
        return read_echo_world(name, folder)

    def run_split(self, data: LabData, split: int, policies: Sequence[str]) -> SplitResult:
        """Replay each policy with every budget; sensitivities and discovery on the first splits."""
        assert isinstance(data, EchoWorld)
        result = SplitResult(split)
        for policy in policies:
            with measured(policy) as meter:
                if policy in DISCOVERIES:
                    found = list(_discover(data, policy, split))
                else:
                    found = list(_replay(data, policy, split))
            if found:
                result.samples.extend(found)
                result.costs.append(meter.cost)
        if split < SOME_SPLITS:
            result.samples.extend(_vary(data, policies, split))
        if split == FIXED_SPLIT:
            result.samples.extend(_describe_world(data))
        return result

    def complete(self, results: Sequence[SplitResult]) -> list[SplitResult]:
        """What holds for all splits is put into each of them."""
        first = next((result for result in results if result.split == FIXED_SPLIT), None)
        for result in results:
            if first is not None and result is not first:
                result.samples.extend(sample for sample in first.samples if self.certain(sample.policy))
        return list(results)

    def certain(self, policy: str) -> bool:
        """Whether no seed moves it."""
        return policy.startswith("(")

    def conclude(self, data: LabData, summaries: Sequence[Summary]) -> list[Finding]:
        """Which of the paper's claims hold."""
        assert isinstance(data, EchoWorld)
        return conclude_echo(summaries, data)

    def draw(self, data: LabData, summaries: Sequence[Summary]) -> list[Plot]:
        """Profit by budget and by time, sensitivities, discovery, cover and interest."""
        assert isinstance(data, EchoWorld)
        return draw_echo(summaries, data.name)

    def files(self, data: LabData) -> dict[str, bytes]:
        """Kinds of pages, day by day, and the greedy cover."""
        assert isinstance(data, EchoWorld)
        clusters, cover = cluster_interest(data), _cover(data)
        kinds: list[Sequence[object]] = [("kind", "pages_share", "ephemeral", "day", "profit_share")]
        for kind, (share, brief) in enumerate(zip(clusters.share, clusters.ephemeral, strict=True)):
            for day, part in enumerate(clusters.centres[kind], 1):
                kinds.append((kind + 1, f"{share:.4f}", int(brief), day, f"{part:.5f}"))
        hubs: list[Sequence[object]] = [("rank", "hub", "covered")]
        for rank, (hub, covered) in enumerate(zip(cover.order.tolist(), cover.covered, strict=True), 1):
            hubs.append((rank, data.hub_names[hub], f"{covered:.5f}"))
        return {"clusters.csv": _as_csv(kinds), "cover.csv": _as_csv(hubs)}


def make_policy(name: str, **changes: float) -> MakePolicy:
    """What makes a policy of this family by name; changes are settings of the paper's."""
    return one_price() if name == OURS else paper_policy(name, **changes)


def _replay(world: EchoWorld, policy: str, split: int) -> Iterator[Sample]:
    window = _window(world)
    for x in world.budgets:
        done = run(world, make_policy(policy), x, split)
        delays = done.fetch_delay_s
        scored = max(int(world.scored.sum()), 1)
        for measure, value in (
            (PROFIT, 100.0 * done.share),
            (FETCHED, 100.0 * done.fetched_share),
            (FOUND, 100.0 * done.found),
            (MISSED, 100.0 * float(done.missed.sum()) / scored),
            (DELAY, float(np.median(delays)) / HOUR_S if len(delays) else float("nan")),
        ):
            yield Sample(policy, measure, x, value)
        for end, made in zip(*done.profit_curve(window), strict=True):
            yield Sample(policy, name_dynamic(x), round(float(end) / DAY_S, 3), HOUR_S * float(made))
        if split == FIXED_SPLIT and policy == PAPER_POLICIES[0]:
            ends, _ = done.profit_curve(window)
            for end, made in zip(ends, done.bound_curve(window), strict=True):
                yield Sample(BOUND, name_dynamic(x), round(float(end) / DAY_S, 3), HOUR_S * float(made))


def _window(world: EchoWorld) -> float:
    """Whole days, so that there are not too many."""
    return DAY_S * max(1, math.ceil((world.end_s - world.begin_s) / DAY_S / WINDOWS))


def _vary(world: EchoWorld, policies: Sequence[str], split: int) -> Iterator[Sample]:
    """At the middle budget: clicks told later, and lam measured over other histories."""
    x = world.budgets[len(world.budgets) // 2]
    for policy in policies:
        for hours in PUSH_HOURS if policy in LEARNERS else ():
            done = run(world, make_policy(policy), x, split, push_s=hours * HOUR_S)
            yield Sample(policy, PUSHES, hours, 100.0 * done.share)
        for visits in HISTORIES if policy in RATE_LEARNERS else ():
            done = run(world, make_policy(policy, visits=int(visits)), x, split)
            yield Sample(policy, HISTORY, visits, 100.0 * done.share)


def _discover(world: EchoWorld, policy: str, split: int) -> Iterator[Sample]:
    if split >= SOME_SPLITS:
        return
    for share in VISIT_SHARES:
        rate = share * world.budgets[-1] * world.new_rate_per_s
        done = run(world, discovery_policy(policy), share, split, fetches_per_s=rate)
        at = round(rate * HOUR_S, 3)
        delays = done.found_delay_s
        yield Sample(policy, DISCOVERED, at, 100.0 * done.found)
        median = float(np.median(delays)) / HOUR_S if len(delays) else float("nan")
        yield Sample(policy, DISCOVERY_DELAY, at, median)


def _describe_world(world: EchoWorld) -> Iterator[Sample]:
    cover = _cover(world)
    for share in COVER_SHARES:
        hubs = min(int(np.floor(share * world.hub_count + 1e-9)), len(cover.order))
        yield Sample(GREEDY_COVER, COVER, share, 100.0 * float(cover.covered[hubs - 1]) if hubs else 0.0)
    curve = interest_curve(world)
    whole = float(curve.profit[-1]) if len(curve.profit) else 0.0
    if whole > 0:
        fit = curve.fit
        yield Sample(FITTED, HALF_LIFE, None, math.log(2) / fit.decay_per_s / HOUR_S)
        for age, made in zip(curve.age_s.tolist(), curve.profit.tolist(), strict=True):
            if round(age / HOUR_S) not in SHOWN_HOURS:
                continue
            yield Sample(ALL_PAGES, INTEREST, age / HOUR_S, 100.0 * made / whole)
            by_fit = fit.profit * -math.expm1(-fit.decay_per_s * age)
            yield Sample(FITTED, INTEREST, age / HOUR_S, 100.0 * by_fit / whole)
    clusters = cluster_interest(world)
    if len(clusters.share):
        yield Sample(EPHEMERAL, CLUSTER, None, 100.0 * clusters.ephemeral_share)
        for kind, share in enumerate(clusters.share.tolist(), 1):
            yield Sample(f"(kind {kind})", CLUSTER, None, 100.0 * share)


def _cover(world: EchoWorld) -> Cover:
    new = ~world.old[world.link_page]
    return greedy_cover(world.link_hub[new], world.link_page[new], world.hub_count, world.page_count, share=1.0)


def _as_csv(rows: Sequence[Sequence[object]]) -> bytes:
    out = io.StringIO(newline="")
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue().encode("utf-8")


FAMILY = EchoFamily()
