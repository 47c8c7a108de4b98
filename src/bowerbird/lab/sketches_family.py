"""The experiment `sketches`: which unseen pages would enter searchers' results? The protocol of [SI08]."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from bowerbird.appraise.frontier.sketches import CrawledScores, top_impact
from bowerbird.lab.bm25 import make_engine
from bowerbird.lab.experiment import Finding, LabData, Sample, SplitResult, Summary
from bowerbird.lab.measuring_cost import measured
from bowerbird.lab.sketches_data import SketchesData, number_terms, read_sketches_data, split_query
from bowerbird.lab.sketches_findings import conclude_sketches
from bowerbird.lab.sketches_scene import Scene, split_scenes
from bowerbird.model.workload import Workload, make_workload

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

SHARES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5)
#: the part of a query's n-grams that `-half` asks for; to be checked on tuning splits (docs/lab.md)
HALF = 0.5
IMPACT, IMPACT_2, TEST = "impact_pct", "impact_pct_dataset2", "impact_pct_test_queries"
CORRELATION = "importance_impact_correlation"
NEEDY = {
    "hybrid-0.07%": (0.0007, False),
    "hybrid-1%": (0.01, False),
    "hybrid-10%": (0.1, False),
    "matched-1%": (0.01, True),
    "hybrid": (1.0, False),
}


def fetched_impact(score: FloatArray, impact: FloatArray, share: float) -> float:
    """% of all impact that the best-scored share of the pages has; equal scores take their expected value."""
    count = min(len(score), max(1, round(share * len(score))))
    bound = np.partition(score, len(score) - count)[len(score) - count]
    above, tied = score > bound, score == bound
    got = impact[above].sum() + impact[tied].mean() * (count - np.count_nonzero(above))
    return float(100.0 * got / (impact.sum() or 1.0))


def select_queries(workload: Workload, rows: IntArray) -> Workload:
    """Some queries of a workload, as a workload."""
    texts = [workload.queries[row] for row in rows.tolist()]
    return make_workload(texts, workload.frequency[rows].tolist(), split_query)


class SketchesFamily:
    """The protocol of [SI08] on pages with text, links and a query log."""

    name = "sketches"
    title = "Which unseen pages would enter searchers' results?"
    paper = "SI08"
    known = ("wikispeedia",)
    policies = (
        "random",
        "pagerank",
        "indegree",
        "query-driven",
        "hybrid",
        "expected",
        "query-driven-half",
        "hybrid-half",
        "hybrid-0.07%",
        "hybrid-1%",
        "hybrid-10%",
        "matched-1%",
        "best",
        "ideal",
    )
    default_seeds = 5
    headline = IMPACT
    reference = "pagerank"
    method = (
        "A fifth of the pages is held back at random (split s: default_rng(2000+s)); a policy orders them by what "
        "the crawled pages tell: URLs, links and anchors on crawled pages, and what an index of the crawled pages "
        "answers (BM25, AND over the words that are no stop words, statistics of the crawled pages). The impact of a "
        "page is the sum of f(q) over the queries that have it in their top 10 when all pages are indexed; figures "
        "are the % of the held-back pages' impact that the first x% of them bring, equal scores at their expected "
        "value. In Dataset 2 the fifth of the held-back pages with the highest PageRank is crawled too. query-driven, "
        "hybrid and expected match as the paper has it (rho = 1); -half ask for half of a query's n-grams."
        "\n\n"
        "Needy rows: the queries are halved (default_rng(3000+s)); improvability is learnt on one half, from a past "
        "cycle in which a random fifth of the crawled pages is taken as new; sketches are kept for the neediest share "
        "of the other half, on which the impact is measured. matched-1% takes the neediest of those queries that "
        "match an unseen page. best is gradient boosting over pre-fetch features, taught by the impact of crawled "
        "pages only."
        "\n\n"
        "Settings of -half and best are checked on tuning splits: from number 1000 on, a split holds back as many "
        "pages, but only such as none of the splits 0 to 4 holds back (lab/sketches_scene.py: tuning_pages), so that "
        "what is chosen there was chosen by none of the pages that those five score. Splits from 5 on hold back tuning "
        "pages too. docs/lab.md says what has been checked."
    )
    units: ClassVar[dict[str, str]] = {
        IMPACT: "% of the unseen pages' impact",
        IMPACT_2: "% of the unseen pages' impact, Dataset 2",
        TEST: "% of the unseen pages' impact on the test half of the queries",
        "at": "share of the unseen pages fetched",
        CORRELATION: "correlation of PageRank and impact over the unseen pages",
    }

    def load(self, name: str, folder: Path) -> SketchesData:
        """Read and check the data."""
        return read_sketches_data(name, folder)

    def run_split(self, data: LabData, split: int, policies: Sequence[str]) -> SplitResult:
        """Measure these policies on one split."""
        if not isinstance(data, SketchesData):
            raise TypeError(f"the data of `sketches` is a SketchesData, not a {type(data).__name__}")
        result = SplitResult(split)
        results = _search_everything(data, data.workload)
        impact = top_impact(results, data.workload.frequency, data.count)
        scenes = split_scenes(data, split)
        rng = np.random.default_rng(4000 + split)
        asked = [scene.answers(data.workload) if _needs_answers(policies) else None for scene in scenes]
        for policy in policies:
            with measured(policy) as meter:
                for scene, answers, measure in zip(scenes, asked, (IMPACT, IMPACT_2), strict=True):
                    score = self._score(policy, scene, data.workload, answers, impact, rng)
                    if score is not None:
                        _sample(result, policy, measure, score, impact, scene.unseen)
            if policy not in NEEDY or policy == "hybrid":
                result.costs.append(meter.cost)
        if "pagerank" in policies:
            unseen = scenes[0].unseen
            relation = float(np.corrcoef(scenes[0].importance[unseen], impact[unseen])[0, 1])
            result.samples.append(Sample("pagerank", CORRELATION, None, relation))
        self._run_needy(result, scenes[0], data, split, policies)
        result.notes.append(
            "Making the index of crawled pages, its answers and the words of URLs and anchors is in no policy's time."
        )
        return result

    def conclude(self, data: LabData, summaries: Sequence[Summary]) -> list[Finding]:
        """Which claims of the paper hold here."""
        return conclude_sketches(summaries)

    def _score(
        self,
        policy: str,
        scene: Scene,
        workload: Workload,
        answers: CrawledScores | None,
        impact: FloatArray,
        rng: np.random.Generator,
    ) -> FloatArray | None:
        count = scene.data.count
        simple: dict[str, Callable[[], FloatArray]] = {
            "random": lambda: rng.random(count),
            "pagerank": lambda: scene.importance,
            "indegree": lambda: scene.graph.in_degree.astype(np.float64),
            "ideal": lambda: impact,
        }
        if policy in simple:
            return simple[policy]()
        if answers is None:
            return None
        if policy == "best":
            return scene.boost(workload, answers)
        kind = policy.removesuffix("-half")
        column = {"query-driven": "query_driven", "hybrid": "hybrid", "expected": "expected"}.get(kind)
        if column is None:
            return None
        rho = HALF if policy.endswith("-half") else 1.0
        score: FloatArray = getattr(scene.appraise(workload, answers, rho=rho), column)
        return score

    def _run_needy(
        self, result: SplitResult, scene: Scene, data: SketchesData, split: int, policies: Sequence[str]
    ) -> None:
        """Sketches of the neediest queries, on the test half."""
        wanted = [policy for policy in policies if policy in NEEDY]
        if not wanted:
            return
        order = np.random.default_rng(3000 + split).permutation(len(data.workload))
        middle = len(order) // 2
        training = select_queries(data.workload, np.sort(order[:middle]).astype(np.int64))
        test = select_queries(data.workload, np.sort(order[middle:]).astype(np.int64))
        improvable = scene.learn_improvability(training)
        answers = scene.answers(test)
        impact = top_impact(_search_everything(data, test), test.frequency, data.count)
        for policy in wanted:
            share, matched_only = NEEDY[policy]
            with measured(policy) as meter:
                found = scene.appraise(test, answers, share=share, matched_only=matched_only, improvable=improvable)
                _sample(result, policy, TEST, found.hybrid, impact, scene.unseen)
            if policy != "hybrid":
                result.costs.append(meter.cost)


def _needs_answers(policies: Sequence[str]) -> bool:
    return any(policy not in ("random", "pagerank", "indegree", "ideal") for policy in policies)


def _search_everything(data: SketchesData, workload: Workload) -> CrawledScores:
    """The results were all pages indexed."""
    engine = make_engine(data.counts, np.ones(data.count, dtype=np.bool_))
    return engine.search(workload.starts, number_terms(workload, data.counts))


def _sample(
    result: SplitResult, policy: str, measure: str, score: FloatArray, impact: FloatArray, unseen: IntArray
) -> None:
    for share in SHARES:
        value = fetched_impact(score[unseen], impact[unseen], share)
        result.samples.append(Sample(policy, measure, share, value))


FAMILY = SketchesFamily()
