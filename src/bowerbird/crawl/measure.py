"""The quality of a crawl's repository now, as its own searchers would see it: from probes, index and workload.

The pages drawn by lot are scored as they were and as they are, for the most frequent queries. What the index answers
is known; what the probes found is undone in it, so that it stands as it stood before they were fetched.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bowerbird.crawl.demand_log import choose_visibility, open_demand
from bowerbird.crawl.measurements import Measurement
from bowerbird.crawl.probe_reader import Probe, ProbeReader
from bowerbird.crawl.settings import Settings
from bowerbird.demand.log import DemandLog
from bowerbird.demand.workload import build_workload
from bowerbird.index.scoring import PageScorer
from bowerbird.index.tantivy_index import TantivyIndex
from bowerbird.index.tantivy_query import FIELD_WEIGHTS
from bowerbird.model.errors import BowerbirdError
from bowerbird.model.url_state import UrlKind
from bowerbird.model.workload import Workload
from bowerbird.quality.answers import LocalAnswers
from bowerbird.quality.estimate import ProbeTable, QualityEstimate, estimate_quality
from bowerbird.schedule.lottery import STRATA
from bowerbird.store.folder import CrawlFolder
from bowerbird.store.repository import Repository

LIST_LENGTH = 300
FEWEST_PROBES = 10  # of each stratum that has pages
I64 = NDArray[np.int64]
F64 = NDArray[np.float64]


class NotMeasurableError(BowerbirdError):
    """There is too little to measure with; the message says what is missing."""


@dataclass(frozen=True, slots=True)
class Measured:
    """A measurement with what it rests on."""

    estimate: QualityEstimate
    at: float
    queries: int
    demand_share: float
    from_s: float  # the time of the oldest probe
    unanswered: int
    strata: dict[str, tuple[int, int]]  # stratum -> (probes, pages)

    def to_keep(self) -> Measurement:
        """As it is kept over time."""
        found = self.estimate
        causes = {name: value[0] for name, value in found.causes.items()}
        return Measurement(
            self.at, found.quality, found.low, found.high, found.probes, self.queries, self.demand_share, causes
        )


def measure_quality(
    folder: CrawlFolder, settings: Settings, now: float, *, sample: int | None = None, seed: int = 0
) -> Measured:
    """Measure with the latest probes; raises NotMeasurableError where there is too little to go by."""
    log = open_demand(folder, settings.demand, write=False)
    try:
        workload = build_workload(log, now, settings.quality.max_queries)
        demand_share = _covered(workload, log, now)
        visibility = choose_visibility(settings.demand, log)
    finally:
        log.close()
    if not workload.queries:
        raise NotMeasurableError(
            f"{folder.root}: no queries to measure by. `bowerbird queries import {folder.root} FILE` takes in a log, "
            f"`bowerbird serve {folder.root}` records searches (a query counts from its "
            f"{settings.demand.min_occurrences}. occurrence on)."
        )
    repository = Repository(folder, write=False, default_interval_s=settings.refresh.interval_s)
    try:
        reader = ProbeReader(repository, settings)
        probes = _usable(reader.latest(sample or settings.quality.sample))
        populations = count_strata(repository, probes)
    finally:
        repository.close()
    strata = _check(folder, probes, populations)
    index = TantivyIndex.open(folder.index, write=False)
    try:
        table = _score(probes, strata, workload, PageScorer(index, workload.terms, FIELD_WEIGHTS))
        local = _answers(index, workload, probes, table)
    finally:
        index.close()
    estimate = estimate_quality(workload.frequency, local, table, visibility, rng=np.random.default_rng(seed))
    from_s = min(probe.at for probe in probes)
    return Measured(estimate, now, len(workload.queries), demand_share, from_s, reader.unanswered, strata)


def _usable(probes: list[Probe]) -> list[Probe]:
    """Without the pages that searchers see most of, while too few of them were drawn to stand for themselves."""
    shown = sum(probe.stratum == "shown" for probe in probes)
    fewest = min((probe.population for probe in probes if probe.stratum == "shown"), default=0)
    return probes if shown >= min(FEWEST_PROBES, fewest) else [probe for probe in probes if probe.stratum != "shown"]


def count_strata(repository: Repository, probes: list[Probe]) -> dict[str, int]:
    """Known pages that can be drawn, by stratum, as if the probes had not been fetched."""
    columns = repository.table.columns
    state = columns["state"].copy()
    for probe in probes:
        state[probe.row] = STRATA[probe.stratum]
    page = columns["kind"] == UrlKind.PAGE
    counts = {name: int(np.count_nonzero((state == which) & page)) for name, which in STRATA.items()}
    # which pages are seen most of changes from time to time: so many they were at the last draw
    last = next((probe.population for probe in reversed(probes) if probe.stratum == "shown"), 0)
    counts["shown"] = min(last, counts["fetched"])
    counts["fetched"] -= counts["shown"]
    return counts


def _covered(workload: Workload, log: DemandLog, now: float) -> float:
    """The share of the demand whose queries are looked at."""
    whole = float(log.query_columns(now).weights.sum())
    return min(float(workload.frequency.sum()) / whole, 1.0) if whole > 0 else 0.0


def _check(folder: CrawlFolder, probes: list[Probe], populations: dict[str, int]) -> dict[str, tuple[int, int]]:
    drawn = Counter(probe.stratum for probe in probes)
    strata = {name: (drawn[name], population) for name, population in populations.items()}
    if any(count < min(FEWEST_PROBES, population) for count, population in strata.values()):
        said = ", ".join(f"{count} of {population} {name} pages" for name, (count, population) in strata.items())
        raise NotMeasurableError(
            f"{folder.root}: too few pages drawn by lot so far ({said}; needed are {FEWEST_PROBES} of each). "
            f"A crawl draws some as it goes; `bowerbird quality {folder.root} --probe 200` fetches some now."
        )
    return strata


def _score(
    probes: list[Probe], strata: dict[str, tuple[int, int]], workload: Workload, scorer: PageScorer
) -> ProbeTable:
    """Every probe's scores before and after, for every query that finds or found it."""
    inverse = np.array([1.0 / probe.propensity for probe in probes])
    names = list(strata)
    stratum = np.array([names.index(probe.stratum) for probe in probes], dtype=np.int64)
    weight = np.zeros(len(probes))
    for number, name in enumerate(names):  # the chances of earlier draws, brought to the pages there are now
        mine = stratum == number
        if mine.any():
            weight[mine] = inverse[mine] * strata[name][1] / inverse[mine].sum()
    parts: list[tuple[I64, I64, F64, F64]] = []
    for place, probe in enumerate(probes):
        old = score_queries(scorer, workload, probe.before)
        new = old if not probe.changed else score_queries(scorer, workload, probe.after)
        touched = np.flatnonzero((old > 0) | (new > 0))
        parts.append((np.full(len(touched), place), touched, old[touched], new[touched]))
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    return ProbeTable(
        weight=weight,
        stratum=stratum,
        fetched=np.array([probe.stratum != "frontier" for probe in probes]),
        gone=np.array([probe.after is None for probe in probes]),
        probe=columns[0].astype(np.int64),
        query=columns[1].astype(np.int64),
        old=columns[2],
        new=columns[3],
    )


def score_queries(scorer: PageScorer, workload: Workload, fields: dict[str, str] | None) -> F64:
    """A page's score for each query: the sum over its words, 0 where one is missing."""
    if fields is None:
        return np.zeros(len(workload.queries))
    found = scorer.score(fields)
    by_word = np.zeros(len(workload.terms))
    by_word[found.words] = found.scores
    of_queries = by_word[workload.members]
    first = workload.starts[:-1]
    complete = np.minimum.reduceat(of_queries, first) > 0
    return np.where(complete, np.add.reduceat(of_queries, first), 0.0)


def _answers(index: TantivyIndex, workload: Workload, probes: list[Probe], table: ProbeTable) -> LocalAnswers:
    """What the index answers to each query, with the probes' fetches undone."""
    order = np.argsort(table.query, kind="stable")
    bounds = np.searchsorted(table.query[order], np.arange(len(workload.queries) + 1))
    rows = np.array([probe.row for probe in probes], dtype=np.int64)
    lists, totals = [], []
    for query in range(len(workload.queries)):
        members = workload.members[workload.starts[query] : workload.starts[query + 1]]
        pages, scores, total = index.top_scores([workload.terms[term] for term in members], LIST_LENGTH)
        mine = order[bounds[query] : bounds[query + 1]]
        mine = mine[table.old[mine] != table.new[mine]]
        if len(mine):
            cut = scores[-1] if total > len(scores) else 0.0
            back = table.old[mine][table.old[mine] > cut]
            kept = scores[~np.isin(pages, rows[table.probe[mine]])]
            scores = -np.sort(-np.concatenate([kept, back]))
            total += int(np.count_nonzero(table.old[mine])) - int(np.count_nonzero(table.new[mine]))
        lists.append(scores)
        totals.append(max(total, len(scores)))
    return LocalAnswers.from_lists(lists, np.array(totals, dtype=np.int64))
