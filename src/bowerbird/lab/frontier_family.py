"""The experiment `frontier`: which of the unseen pages first? The protocol of [RW15]."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import ClassVar
from urllib.parse import unquote

import numpy as np
import numpy.typing as npt

from bowerbird.appraise.frontier.graph import FrontierGraph, make_graph
from bowerbird.appraise.frontier.inputs import Inputs, Scores
from bowerbird.appraise.frontier.learned import score_learned, score_tree
from bowerbird.appraise.frontier.walk import enriched_walk, pagerank, random_walk
from bowerbird.index.analysis import tokenize
from bowerbird.lab.experiment import Finding, LabData, Sample, SplitResult, Summary
from bowerbird.lab.frontier_data import FrontierData, read_frontier_data
from bowerbird.lab.frontier_findings import conclude_frontier
from bowerbird.lab.frontier_queries import AskedPages, read_asked
from bowerbird.lab.frontier_split import CUTS, FrontierSplit, choose_setting, collect_impact, rate_ranking, split_pages
from bowerbird.lab.measuring_cost import measured
from bowerbird.model.page_words import PageWords, make_page_words
from bowerbird.model.url_paths import group_paths

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

IMPACT, AVERAGE, IMPORTANCE = "impact_pct", "avg_impact_pct", "mean_pagerank"
RATIO, CLICKED = "linked_mean_impact", "linked_share_clicked"
REAL_SHARES = tuple(step / 10 for step in range(1, 10))  # w; at 1 it would be RW
QUERY_POLICIES = ("query-driven", "hybrid")
TOLERANCE = 1e-9


@dataclass(frozen=True)
class FrontierScenes:
    """Data that was read, with what all splits share."""

    data: FrontierData
    folder: Path

    @property
    def name(self) -> str:
        """As the user called it."""
        return self.data.name

    def describe(self) -> dict[str, str | int | float]:
        """Sizes and sources."""
        return self.data.describe()

    @cached_property
    def words(self) -> PageWords:
        """The words of page names, which are URLs or parts of them."""
        return make_page_words([tokenize(unquote(page).replace("_", " "))] for page in self.data.pages)

    @cached_property
    def groups(self) -> tuple[IntArray, ...]:
        """Directories of page names."""
        return group_paths(self.data.pages)

    @cached_property
    def asked(self) -> AskedPages | None:
        """Texts and queries, where the data has both and they fit."""
        return read_asked(self.data, self.folder)

    @cached_property
    def importance(self) -> FloatArray:
        """PageRank of every page over all links, 1 on average: what the crawler would know in the end."""
        graph = make_graph(self.data.sources, self.data.targets, self.data.count)
        return pagerank(graph).values * self.data.count


@dataclass(frozen=True)
class Scene:
    """One split as a crawler sees it."""

    data: FrontierScenes
    split: FrontierSplit
    notes: list[str] = field(default_factory=list)

    @cached_property
    def graph(self) -> FrontierGraph:
        """The links of crawled pages."""
        return make_graph(self.data.data.sources, self.data.data.targets, self.data.data.count, self.split.crawled)

    @cached_property
    def clicks(self) -> FloatArray:
        """Of crawled pages only."""
        return np.where(self.split.crawled, self.data.data.clicks, 0.0)

    def prepare(self, policies: Sequence[str]) -> None:
        """Make what policies share, so that its time is not counted as the first one's."""
        _ = (self.graph, self.data.words, self.data.groups)
        if any(policy in QUERY_POLICIES for policy in policies):
            _ = self.data.asked

    def inputs(self, *, with_training: bool) -> Inputs:
        """What a method may look at: labels of crawled pages, and of the frontier's training part if asked for."""
        labelled = self.split.crawled.copy()
        if with_training:
            labelled[self.split.training] = True
        return Inputs(
            now=0.0,
            graph=self.graph,
            clicks=np.where(labelled, self.data.data.clicks, 0.0),
            host=np.zeros(self.data.data.count, dtype=np.uint32),
            first_seen=np.zeros(self.data.data.count),
            rng=np.random.default_rng(self.split.number),
            words=self.data.words,
            frontier=np.sort(self.split.test),
            labelled=labelled,
            groups=self.data.groups,
        )

    def walk_enriched(self) -> FloatArray:
        """RW-EG with w chosen on the training part."""
        training = self.split.training
        walks = {
            share: enriched_walk(self.graph, self.clicks, real_share=share, tolerance=TOLERANCE).values
            for share in REAL_SHARES
        }
        chosen = choose_setting(
            {share: values[training] for share, values in walks.items()},
            self.data.data.clicks[training],
            np.random.default_rng(self.split.number),
        )
        self.notes.append(f"rw-eg, split {self.split.number}: w = {chosen:g} chosen on the training part.")
        return walks[chosen]

    def learn(self, *, with_training: bool) -> FloatArray:
        """The learned score."""
        found = score_learned(self.inputs(with_training=with_training), hold_out=False)
        return self._note("learned" if with_training else "learned-crawled", found)

    def learn_tree(self) -> FloatArray:
        """One tree over the scores."""
        return self._note("tree", score_tree(self.inputs(with_training=True)))

    def _note(self, policy: str, found: Scores) -> FloatArray:
        if "note" in found.info:
            self.notes.append(f"{policy}, split {self.split.number}: {found.info['note']}, all pages count as equal.")
        return found.values

    def ask(self, policy: str) -> FloatArray | None:
        """Query-driven or hybrid impact; None where the data has no text or no queries."""
        asked = self.data.asked
        if asked is None:
            self.notes.append(f"{policy}: not run, the data has no text, or no queries that its pages answer.")
            return None
        return asked.appraise(self.graph, self.data.words, policy, self.split.number)


def _draw(scene: Scene) -> FloatArray:
    return np.zeros(scene.graph.count)  # all equal: each page counts with the mean


POLICIES: dict[str, Callable[[Scene], FloatArray | None]] = {
    "random": _draw,
    "indegree": lambda scene: scene.graph.in_degree.astype(np.float64),
    "pagerank": lambda scene: pagerank(scene.graph, tolerance=TOLERANCE).values,
    "query-driven": lambda scene: scene.ask("query-driven"),
    "hybrid": lambda scene: scene.ask("hybrid"),
    "rw": lambda scene: random_walk(scene.graph, scene.clicks, tolerance=TOLERANCE).values,
    "rw-eg": lambda scene: scene.walk_enriched(),
    "tree": lambda scene: scene.learn_tree(),
    "learned-crawled": lambda scene: scene.learn(with_training=False),
    "learned": lambda scene: scene.learn(with_training=True),
}


class FrontierFamily:
    """The protocol of [RW15] on pages with links and clicks."""

    name = "frontier"
    title = "Which of the unseen pages first?"
    paper = "RW15"
    known = ("hrwiki", "mdn", "wikispeedia")
    policies = tuple(POLICIES)
    default_seeds = 10
    headline = AVERAGE
    reference = "rw-eg"
    method = (
        "Pages are sorted by name; split s draws 70% of them with default_rng(1000+s) as crawled. The frontier is "
        "every other page that a crawled page links to; it is permuted with the same generator, 65% of it is the "
        "training part, the rest is scored. Links and clicks of uncrawled pages are hidden. A policy's ranking of "
        "the test part is cut at 1, 2, 5, 10, 20 and 30%; the score is the clicks of the pages above the cut as a "
        "percentage of the ideal ranking's, and pages of equal score count with the mean of their group. `rw-eg` "
        "chooses w in steps of 0.1 by the 0.632+ bootstrap on the training part. `tree` is one regression tree "
        "over the scores, as in the paper. `learned` is what `bowerbird crawl --policy learned` runs, with the "
        "training part's labels as well as the crawled pages'; `learned-crawled` is the same with labels of "
        "crawled pages only, as in a live crawl. `query-driven` and `hybrid` are [SI08]'s, where the data has "
        "text and there are queries."
    )
    units: ClassVar[dict[str, str]] = {
        IMPACT: "clicks of the selected pages, % of the ideal ranking's",
        AVERAGE: "mean of the six cuts, % of the ideal ranking's",
        IMPORTANCE: "mean PageRank of the best 10%, over all links; 1 is the average page",
        RATIO: "mean clicks of frontier pages that clicked (unclicked) crawled pages link to",
        CLICKED: "share of those frontier pages that have clicks",
        "at": "share of the frontier fetched",
    }

    def load(self, name: str, folder: Path) -> FrontierScenes:
        """Read and check the data."""
        return FrontierScenes(read_frontier_data(name, folder), folder)

    def run_split(self, data: LabData, split: int, policies: Sequence[str]) -> SplitResult:
        """Rank the test part by each policy."""
        assert isinstance(data, FrontierScenes)
        scene = Scene(data, split_pages(data.data, split))
        result = SplitResult(split, notes=scene.notes)
        test = scene.split.test
        impact = data.data.clicks[test]
        if split == 0:
            scene.notes.extend(say_equal_cuts(len(test)))
        scene.prepare(policies)
        for policy in policies:
            with measured(policy) as meter:
                score = POLICIES[policy](scene)
            if score is None:
                continue
            rated = rate_ranking(score[test], impact)
            result.costs.append(meter.cost)
            result.samples.append(Sample(policy, AVERAGE, None, float(rated.mean())))
            result.samples.extend(
                Sample(policy, IMPACT, cut, float(value)) for cut, value in zip(CUTS, rated, strict=True)
            )
            best = max(1, round(0.1 * len(test)))
            importance = float(collect_impact(score[test], data.importance[test])[best - 1]) / best
            result.samples.append(Sample(policy, IMPORTANCE, None, importance))
        result.samples.extend(compare_linked(scene))
        return result

    def conclude(self, data: LabData, summaries: Sequence[Summary]) -> list[Finding]:
        """Which of the paper's claims hold."""
        return conclude_frontier(data.name, summaries)


def say_equal_cuts(count: int) -> list[str]:
    """A note where several cuts of so few pages select the same pages.

    >>> say_equal_cuts(36), say_equal_cuts(4000)
    (["The frontier's test part has 36 pages (split 0): cuts at 1%, 2% select the same 1 page."], [])
    """
    cuts: dict[int, list[str]] = {}
    for cut in CUTS:
        cuts.setdefault(math.ceil(cut * count - 1e-9), []).append(f"{cut:.0%}")
    same = [
        f"cuts at {', '.join(names)} select the same {pages} page{'s' if pages > 1 else ''}"
        for pages, names in cuts.items()
        if len(names) > 1
    ]
    return [f"The frontier's test part has {count} pages (split 0): {'; '.join(same)}."] if same else []


def compare_linked(scene: Scene) -> list[Sample]:
    """[RW15] r(X -> F): frontier pages linked from clicked crawled pages, and those linked from none."""
    frontier = np.concatenate([scene.split.training, scene.split.test])
    in_starts, in_sources = scene.graph.into
    clicked = np.concatenate([[0], np.cumsum(scene.clicks[in_sources] > 0)])
    linked = (clicked[in_starts[1:]] - clicked[in_starts[:-1]])[frontier] > 0
    impact = scene.data.data.clicks[frontier]
    samples = []
    for name, mine in (("(linked from clicked pages)", linked), ("(linked from unclicked pages)", ~linked)):
        if mine.any():
            samples.append(Sample(name, RATIO, None, float(impact[mine].mean())))
            samples.append(Sample(name, CLICKED, None, float((impact[mine] > 0).mean())))
    return samples


FAMILY = FrontierFamily()
