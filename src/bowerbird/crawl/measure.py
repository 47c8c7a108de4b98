"""The quality of a crawl's repository now, as its own searchers would see it: from probes, index and workload.

The pages drawn by lot are scored as they were and as they turned out to be, for the most frequent queries. They stand
for the pages that were not drawn: what a drawn page had lost is repaired by its own fetch, as long as that is recent.
Queries are taken as sets of words that a page must have, as the engine scores them; phrases, filters and the folding of
near-duplicates are not measured.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bowerbird.crawl.answered import ask_index
from bowerbird.crawl.demand_log import choose_visibility, open_demand
from bowerbird.crawl.measurements import Measurement
from bowerbird.crawl.probe_reader import Probe, ProbeReader
from bowerbird.crawl.settings import Settings
from bowerbird.demand.log import DAY_S, DemandLog
from bowerbird.demand.visibility import Visibility
from bowerbird.demand.workload import build_workload
from bowerbird.index.scoring import PageScorer
from bowerbird.index.tantivy_index import TantivyIndex
from bowerbird.index.tantivy_query import FIELD_WEIGHTS
from bowerbird.model.errors import BowerbirdError
from bowerbird.model.url_state import UrlKind
from bowerbird.model.workload import Workload
from bowerbird.quality.answers import LocalAnswers, view_table
from bowerbird.quality.curves import CurveError, CurveTable, curve_error
from bowerbird.quality.estimate import ProbeTable, QualityEstimate, estimate_quality
from bowerbird.schedule.lottery import STRATA
from bowerbird.store.folder import CrawlFolder
from bowerbird.store.repository import Repository

LIST_LENGTH = 300
FEWEST_PROBES = 10  # of each group that has pages
GROUPS = ("fetched", "frontier")
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
    curves: CurveError  # of the score-rank curves of these queries, against the index's own ranks
    strata: dict[str, tuple[int, int]]  # stratum -> (probes, pages)

    def to_keep(self) -> Measurement:
        """As it is kept over time."""
        found = self.estimate
        causes = {name: value[0] for name, value in found.causes.items()}
        return Measurement(
            self.at, found.quality, found.low, found.high, found.probes, self.queries, self.demand_share, causes
        )


def _ordinal(number: int) -> str:
    """In words up to ten.

    >>> _ordinal(1), _ordinal(2), _ordinal(11)
    ('first', 'second', '11th')
    """
    words = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
    if number <= len(words):
        return words[number - 1]
    ending = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th") if number % 100 not in (11, 12, 13) else "th"
    return f"{number:,}{ending}"


def read_queries(folder: CrawlFolder, settings: Settings, log: DemandLog, now: float) -> Workload:
    """The queries to measure by; raises NotMeasurableError where there are none."""
    workload = build_workload(log, now, settings.quality.max_queries)
    if not workload.queries or not workload.frequency.sum() > 0:
        raise NotMeasurableError(
            f"{folder.root}: no queries to measure by. `bowerbird queries import {folder.root} FILE` takes in a log, "
            f"`bowerbird serve {folder.root}` records searches (a query counts from its "
            f"{_ordinal(settings.demand.min_occurrences)} occurrence on)."
        )
    return workload


def measure_quality(
    folder: CrawlFolder, settings: Settings, now: float, *, sample: int | None = None, seed: int = 0
) -> Measured:
    """Measure with the latest probes; raises NotMeasurableError where there is too little to go by."""
    log = open_demand(folder, settings.demand, write=False)
    try:
        workload = read_queries(folder, settings, log, now)
        demand_share = _covered(workload, log, now)
        visibility = choose_visibility(settings.demand, log)
    finally:
        log.close()
    repository = Repository(folder, write=False, default_interval_s=settings.refresh.interval_s)
    try:
        reader = ProbeReader(repository, settings)
        since = now - settings.quality.max_age_days * DAY_S
        probes = reader.latest(sample or settings.quality.sample, since)
        pages = count_pages(repository, probes)
    finally:
        repository.close()
    strata = _check(folder, probes, pages)
    index = TantivyIndex.open(folder.index, write=False)
    try:
        table = _score(probes, strata, workload, PageScorer(index, workload.terms, FIELD_WEIGHTS))
        answers = _answers(index, workload, probes, table)
    finally:
        index.close()
    if not len(table.query) and not answers.now.totals.any():
        raise NotMeasurableError(
            f"{folder.root}: no known page has the words of any of the {len(workload.queries)} queries: "
            "there is nothing to measure. Are they queries for this site?"
        )
    estimate = estimate_quality(
        workload.frequency,
        answers.before,
        table,
        visibility,
        rng=np.random.default_rng(seed),
        repaired=answers.repaired(workload.frequency, table, visibility, still_fresh(probes, now)),
    )
    from_s = min(probe.at for probe in probes)
    return Measured(
        estimate,
        now,
        len(workload.queries),
        demand_share,
        from_s,
        reader.unanswered,
        hold_curves(answers.now),
        strata,
    )


def count_pages(repository: Repository, probes: list[Probe]) -> dict[str, int]:
    """Known pages that can be drawn, fetched or on the frontier, as if the probes had not been fetched."""
    columns = repository.table.columns
    state = columns["state"].copy()
    for probe in probes:
        state[probe.row] = STRATA[probe.stratum]
    page = columns["kind"] == UrlKind.PAGE
    return {name: int(np.count_nonzero((state == STRATA[name]) & page)) for name in GROUPS}


def still_fresh(probes: list[Probe], now: float) -> float:
    """How much of what the probes of fetched pages brought still holds.

    A page is taken to grow as stale as it was in the time that it had been left alone for.
    """
    left_alone = np.array([probe.age_s for probe in probes if probe.stratum != "frontier"])
    since = now - np.array([probe.at for probe in probes if probe.stratum != "frontier"])
    held = np.clip(1.0 - since / np.maximum(left_alone, 1e-9), 0.0, 1.0)
    return float(held.mean()) if len(held) else 0.0


def hold_curves(answers: LocalAnswers) -> CurveError:
    """Fit F_q to each answer, and hold it against the ranks that the index gives."""
    table = CurveTable.from_answers(answers)
    queries = np.repeat(np.arange(len(answers)), np.diff(answers.starts))
    return curve_error(table, queries, answers.scores, answers.ranks)


def _covered(workload: Workload, log: DemandLog, now: float) -> float:
    """The share of the demand whose queries are looked at."""
    whole = float(log.query_columns(now).weights.sum())
    return min(float(workload.frequency.sum()) / whole, 1.0) if whole > 0 else 0.0


def _check(folder: CrawlFolder, probes: list[Probe], pages: dict[str, int]) -> dict[str, tuple[int, int]]:
    drawn = Counter("frontier" if probe.stratum == "frontier" else "fetched" for probe in probes)
    strata = {name: (drawn[name], count) for name, count in pages.items()}
    if not probes or any(count < min(FEWEST_PROBES, there) for count, there in strata.values()):
        said = ", ".join(f"{count} of {there} {name} pages" for name, (count, there) in strata.items())
        raise NotMeasurableError(
            f"{folder.root}: too few pages drawn by lot of late ({said}; needed are {FEWEST_PROBES} of each). "
            f"A crawl draws some as it goes; `bowerbird quality {folder.root} --probe 200` fetches some now."
        )
    return strata


def _score(
    probes: list[Probe], strata: dict[str, tuple[int, int]], workload: Workload, scorer: PageScorer
) -> ProbeTable:
    """Every probe's scores before and after, for every query that finds or found it."""
    inverse = np.array([1.0 / probe.propensity for probe in probes])
    fetched = np.array([probe.stratum != "frontier" for probe in probes])
    weight = np.zeros(len(probes))
    for mine, name in ((fetched, "fetched"), (~fetched, "frontier")):
        if mine.any():  # the chances of earlier draws, brought to the pages there are now
            weight[mine] = np.maximum(inverse[mine] * strata[name][1] / inverse[mine].sum(), 1.0)
    parts: list[tuple[I64, I64, F64, F64]] = []
    for place, probe in enumerate(probes):
        old = score_queries(scorer, workload, probe.before)
        new = old if not probe.changed else score_queries(scorer, workload, probe.after)
        touched = np.flatnonzero((old > 0) | (new > 0))
        parts.append((np.full(len(touched), place), touched, old[touched], new[touched]))
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    names = list(STRATA)
    return ProbeTable(
        weight=weight,
        stratum=np.array([names.index(probe.stratum) for probe in probes], dtype=np.int64),
        fetched=fetched,
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


@dataclass(frozen=True, slots=True)
class _Answers:
    """What the index answers: as it would without the probes, with those of the frontier, with all of them."""

    before: LocalAnswers
    frontier_in: LocalAnswers
    now: LocalAnswers

    def repaired(self, frequency: F64, table: ProbeTable, visibility: Visibility, fresh: float) -> float:
        """By how much the probes have raised what the answers are worth; a page fetched anew grows stale again."""
        longest = max(int(answers.totals.max(initial=0)) for answers in (self.before, self.frontier_in, self.now))
        views = view_table(visibility, longest + 1)
        before, frontier_in, now = (
            float(frequency @ answers.values(views)) for answers in (self.before, self.frontier_in, self.now)
        )
        seen = frequency[table.query] * self.before.views(table.query, table.old, views)
        known_worth = before + float(seen @ (table.new - table.old))
        gained = now - (frontier_in - before) - known_worth
        return frontier_in - before + fresh * gained


def _answers(index: TantivyIndex, workload: Workload, probes: list[Probe], table: ProbeTable) -> _Answers:
    """What the index answers to each query, with the probes' fetches and without."""
    order = np.argsort(table.query, kind="stable")
    bounds = np.searchsorted(table.query[order], np.arange(len(workload.queries) + 1))
    rows = np.array([probe.row for probe in probes], dtype=np.int64)
    kinds: list[tuple[list[F64], list[int]]] = [([], []), ([], []), ([], [])]
    for query, (pages, scores, total) in enumerate(ask_index(index, workload, LIST_LENGTH)):
        mine = order[bounds[query] : bounds[query + 1]]
        mine = mine[table.old[mine] != table.new[mine]]
        again = mine[table.fetched[table.probe[mine]]]
        for (lists, totals), undone in zip(kinds, (mine, again, mine[:0]), strict=True):
            cut = scores[-1] if total > len(scores) else 0.0
            back = table.old[undone][table.old[undone] > cut]
            kept = scores[~np.isin(pages, rows[table.probe[undone]])]
            lists.append(-np.sort(-np.concatenate([kept, back])))
            gone = int(np.count_nonzero(table.old[undone])) - int(np.count_nonzero(table.new[undone]))
            totals.append(max(total + gone, len(lists[-1])))
    made = [LocalAnswers.from_lists(lists, np.array(totals, dtype=np.int64)) for lists, totals in kinds]
    return _Answers(*made)
