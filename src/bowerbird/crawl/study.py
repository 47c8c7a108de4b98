"""A study of a live crawl: what its folder holds is put together for a method, and what that finds is kept.

It reads only, beside a running crawl or without one; the study file is all that it writes.
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from bowerbird.appraise.budget.scales import EXPOSED
from bowerbird.appraise.frontier.calibration import (
    PRIOR,
    PRIOR_MEAN,
    expose,
    full_exposure_s,
    time_heard,
    weigh_draws,
)
from bowerbird.appraise.frontier.graph import graph_of_links
from bowerbird.appraise.frontier.improvement import learn_answers, model_of
from bowerbird.appraise.frontier.inputs import Inputs, MethodOptions
from bowerbird.appraise.frontier.methods import INFORMED, QUERY_METHODS, inform
from bowerbird.appraise.frontier.sketches import CrawledScores
from bowerbird.appraise.frontier.study import Feedback, set_news_apart, study_frontier
from bowerbird.crawl.answered import ask_index
from bowerbird.crawl.demand_log import open_demand
from bowerbird.crawl.page_words import read_page_words, read_urls
from bowerbird.crawl.settings import FrontierSettings, Settings
from bowerbird.demand.log import DAY_S
from bowerbird.demand.workload import attach_clicks, build_workload, find_last_heard
from bowerbird.index.tantivy_index import TantivyIndex
from bowerbird.model.snapshot import PageColumns, Snapshot
from bowerbird.model.study import FrontierStudy
from bowerbird.model.url_paths import group_paths
from bowerbird.model.url_state import UrlKind, UrlState
from bowerbird.model.workload import Workload
from bowerbird.store.folder import CrawlFolder
from bowerbird.store.journal import read_first_fetches
from bowerbird.store.recovery import load_graph
from bowerbird.store.repository import Repository
from bowerbird.store.study_file import read_study, write_study

RESULTS = 50  # of each query, that expected scores are learnt from
F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]


def make_study(folder: CrawlFolder, settings: Settings, method: str, now: float, seed: int = 0) -> FrontierStudy:
    """Study the frontier of a crawl by a method of `METHODS`, and keep what was found in its folder."""
    began = time.perf_counter()
    repository = Repository(folder, write=False, default_interval_s=settings.refresh.interval_s)
    try:
        path, seed_of_hashes, hashes = folder.study(method), repository.table.seed, repository.table.columns["hash"]
        before = read_study(path, seed_of_hashes, hashes, kept=True).study
        snapshot = take_snapshot(repository, settings, now)
        inputs = prepare_inputs(repository, snapshot, settings.frontier, method, np.random.default_rng(seed))
        if before is not None and before.method == method:
            inputs = replace(inputs, start=before.score.astype(np.float64), kept=before.kept)
        answers = None if before is None else before.answers
        if inputs.workload is not None and inputs.crawled_top is not None:
            pages = int(np.count_nonzero(inputs.graph.crawled))
            answers = learn_answers(answers, inputs.workload, inputs.crawled_top, pages)
            inputs = replace(inputs, improvable=model_of(answers))
        with open_demand(folder, settings.demand, write=False) as log:
            heard_until = find_last_heard(log)
        half_life_s = settings.demand.half_life_days * DAY_S
        # `auto` learns of what hubs announce in its study of hubs
        feedback = gather_feedback(repository, snapshot, half_life_s, heard_until, news_apart=method == INFORMED)
        assert inputs.frontier is not None
        study = study_frontier(inputs, method, inputs.frontier, feedback)
        exposed_s = time_clicks(study, inputs.clicks, feedback, half_life_s)
        info = {**study.info, EXPOSED: exposed_s, "seconds": time.perf_counter() - began}
        reasons = study.reasons
        if reasons is not None and inputs.workload is not None:
            reasons = reasons.seal(inputs.workload.mark_key)
        study = replace(study, reasons=reasons, answers=answers, info=info)
        write_study(path, study, seed_of_hashes, hashes)
    finally:
        repository.close()
    return study


def take_snapshot(repository: Repository, settings: Settings, now: float) -> Snapshot:
    """Everything that is known: also the links, the workload, and the clicks of all pages."""
    with open_demand(repository.folder, settings.demand, write=False) as log:
        workload = build_workload(log, now, settings.frontier.max_queries)
        clicks = log.page_clicks(now)
    table = repository.table
    return replace(
        repository.snapshot(now),
        links=load_graph(repository.connection, table.columns.count),
        workload=workload,
        clicks=attach_clicks(clicks, table.find_url, table.columns.count),
    )


def prepare_inputs(
    repository: Repository, snapshot: Snapshot, settings: FrontierSettings, method: str, rng: np.random.Generator
) -> Inputs:
    """What the method may look at; words and search results only where it reads them, for they take longest."""
    pages = snapshot.pages
    is_page = pages.kind == UrlKind.PAGE  # sitemaps and feeds link to everything: they say nothing of a page's worth
    crawled = is_page & np.isin(pages.state, (UrlState.FETCHED, UrlState.REDIRECT))
    assert snapshot.links is not None
    assert snapshot.clicks is not None
    inputs = Inputs(
        now=snapshot.now,
        graph=graph_of_links(snapshot.links, crawled),
        clicks=snapshot.clicks,
        host=pages.host,
        first_seen=pages.first_seen.astype(np.float64),
        rng=rng,
        frontier=np.flatnonzero(is_page & (pages.state == UrlState.NEW)),
        options=MethodOptions(settings.damping, settings.real_share, settings.query_share),
    )
    if method == INFORMED:
        method = inform(inputs, snapshot.workload)
    if method == "learned":  # reads words without queries too, and does not ask the index
        urls = list(read_urls(repository.connection, len(pages)))
        words = read_page_words(repository.connection, len(pages), urls)
        inputs = replace(inputs, words=words, workload=snapshot.workload, groups=group_paths(urls))
    elif method in QUERY_METHODS and snapshot.workload is not None and len(snapshot.workload):
        top = find_crawled_top(repository.folder, snapshot.workload, crawled)
        words = read_page_words(repository.connection, len(pages))
        inputs = replace(inputs, words=words, workload=snapshot.workload, crawled_top=top)
    return inputs


def find_crawled_top(folder: CrawlFolder, workload: Workload, crawled: npt.NDArray[np.bool_]) -> CrawledScores:
    """What the index answers to each query now, of the crawled pages."""
    lists: list[tuple[I64, F64]] = []
    complete = np.zeros(len(workload), dtype=np.bool_)
    with TantivyIndex.open(folder.index, write=False) as index:
        for query, (pages, scores, total) in enumerate(ask_index(index, workload, RESULTS)):
            known = pages < len(crawled)  # the index may be ahead of the columns
            known[known] = crawled[pages[known]]
            lists.append((pages[known], scores[known]))
            complete[query] = total <= RESULTS
    return CrawledScores.from_lists(lists, complete)


def gather_feedback(
    repository: Repository, snapshot: Snapshot, half_life_s: float, heard_until: float, *, news_apart: bool = False
) -> Feedback:
    """Which pages to learn from, how long each could be clicked, and how likely each was to be fetched.

    A page fetched after the last that was heard of searchers has no clicks yet, and is left out. One that was never
    there when it was asked for is a lesson: it will have none. With `news_apart`, pages that appeared on others after
    a first visit are left out where that leaves enough.
    """
    pages = snapshot.pages
    first = read_first_fetches(repository.connection, len(pages))
    is_page = pages.kind == UrlKind.PAGE
    usable = is_page & (pages.state == UrlState.FETCHED) & (first.at > 0) & (first.at < heard_until)
    if news_apart:
        usable = set_news_apart(usable, find_later_finds(pages, first.at))
    gone = is_page & (pages.state == UrlState.GONE) & (first.at == 0) & (pages.last_fetched > 0)
    age_s = min(snapshot.now, heard_until) - first.at[usable]
    full_s = full_exposure_s(age_s, half_life_s)
    exposure, heard = np.ones(len(pages)), np.full(len(pages), np.nan)
    exposure[usable] = expose(age_s, full_s)
    if full_s > 0:
        there = is_page & (pages.state == UrlState.FETCHED) & (first.at > 0)
        heard[there] = time_heard(min(snapshot.now, heard_until) - first.at[there], half_life_s) / full_s
    asked_at = np.where(first.at > 0, first.at, np.where(gone, pages.last_fetched, snapshot.now))
    return Feedback(usable | gone, exposure, weigh_draws(first.propensity), asked_at, full_s, heard)


def find_later_finds(pages: PageColumns, first_fetched: F64) -> npt.NDArray[np.bool_]:
    """By row, whether it appeared where it was found after a first visit there: times of finds are whole seconds."""
    source = pages.source.astype(np.int64)
    first = np.floor(np.where(source >= 0, first_fetched[source], 0.0))
    return (first > 0) & (pages.first_seen > first + 1.0)


def time_clicks(study: FrontierStudy, clicks: F64, feedback: Feedback, half_life_s: float) -> float:
    """The time in which a page gets the clicks that the study expects of it.

    Where they are no more than in proportion to the score, it is that in which the average page got as many.
    """
    if study.calibration.kind != PRIOR:
        return feedback.full_s
    exposure_s = float(feedback.exposure[feedback.pages].sum()) * feedback.full_s
    per_s = max(float(clicks[feedback.pages].sum()) / max(exposure_s, 1.0), PRIOR_MEAN / half_life_s)
    return max(study.default_worth, 1e-12) / per_s


def measure_clicks(repository: Repository, settings: Settings, snapshot: Snapshot) -> float:
    """Clicks a second that searchers make on fetched pages; 0 without any.

    Clicks fade: the log holds those of H/ln 2·(1 - 2^(-span/H)) seconds of the span it has listened, H the half-life.
    """
    with open_demand(repository.folder, settings.demand, write=False) as log:
        heard_until = find_last_heard(log)
        clicked = log.page_clicks(heard_until)
        heard = log.activity(0.0, heard_until)
    if not clicked:
        return 0.0
    table, pages = repository.table, snapshot.pages
    fetched = (pages.kind == UrlKind.PAGE) & (pages.state == UrlState.FETCHED)
    clicks = attach_clicks(clicked, table.find_url, table.columns.count)[: len(pages)][fetched].sum()
    since = max(heard[0][0] if heard else 0.0, float(pages.first_seen.min(initial=2**32 - 1)))
    half_life_s = settings.demand.half_life_days * DAY_S
    span_s = max(heard_until - since, 1.0)
    return float(clicks) / float(time_heard(span_s, half_life_s))
