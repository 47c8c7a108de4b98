"""The true quality of a crawl of a world: every known page is looked up in the world, none is left to chance."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urlsplit

import numpy as np
from scipy import sparse

from bowerbird.crawl.demand_log import choose_visibility, open_demand
from bowerbird.crawl.measure import NotMeasurableError, score_queries
from bowerbird.crawl.probe_reader import FieldReader, Fields
from bowerbird.crawl.settings import Settings
from bowerbird.demand.workload import build_workload
from bowerbird.index.scoring import PageScorer
from bowerbird.index.tantivy_index import TantivyIndex
from bowerbird.index.tantivy_query import FIELD_WEIGHTS
from bowerbird.lab.world import World
from bowerbird.model.outcome import Outcome
from bowerbird.model.url_state import UrlKind, UrlState
from bowerbird.quality.exact import repository_quality
from bowerbird.store.folder import CrawlFolder
from bowerbird.store.repository import Repository
from bowerbird.web.response import FetchResult


def true_quality(
    folder: CrawlFolder,
    settings: Settings,
    world: World,
    t: float,
    now: float,
    *,
    also: Iterable[str] = (),
    asked_in: CrawlFolder | None = None,
) -> float:
    """Q of the repository for its workload at `now`, with all pages that are known as the world has them at `t`.

    `also` are URLs that somebody else knows: what is asked for there is missing here. `asked_in` has the workload.
    """
    log = open_demand(asked_in or folder, settings.demand, write=False)
    try:
        workload = build_workload(log, now, settings.quality.max_queries)
        visibility = choose_visibility(settings.demand, log)
    finally:
        log.close()
    if not workload.queries:
        raise NotMeasurableError(f"{folder.root}: no queries to measure by.")
    index = TantivyIndex.open(folder.index, write=False)
    repository = Repository(folder, write=False, default_interval_s=settings.refresh.interval_s)
    try:
        scorer = PageScorer(index, workload.terms, FIELD_WEIGHTS)
        reader = FieldReader(repository, settings)
        columns = repository.table.columns
        state = columns["state"]
        known = (columns["kind"] == UrlKind.PAGE) & np.isin(state, (UrlState.FETCHED, UrlState.NEW))
        rows = np.flatnonzero(known)
        local, live = [], []
        for row, url in zip(rows.tolist(), repository.urls(rows.tolist()), strict=True):
            held: Fields | None = None
            version = repository.version(row) if state[row] == UrlState.FETCHED else None
            if version is not None:
                held = reader.archived(row, version.file, version.offset, version.length)
            local.append(sparse.csr_matrix(score_queries(scorer, workload, held)))
            answer = _ask(world, url, t)
            there = reader.answered(row, answer) if answer is not None else None
            live.append(sparse.csr_matrix(score_queries(scorer, workload, there)))
        for url in also:
            if repository.table.find_url(url) is None and (answer := _ask(world, url, t)) is not None:
                local.append(sparse.csr_matrix(score_queries(scorer, workload, None)))
                live.append(sparse.csr_matrix(score_queries(scorer, workload, reader.answered(-1, answer))))
    finally:
        repository.close()
        index.close()
    return repository_quality(
        workload.frequency, sparse.vstack(local).T.tocsr(), sparse.vstack(live).T.tocsr(), visibility
    )


def _ask(world: World, url: str, t: float) -> FetchResult | None:
    """What a fetch of the URL would bring; None where it brings no page."""
    parts = urlsplit(url)
    if parts.netloc not in world.hosts:
        return None
    answer = world.page(parts.netloc, parts.path + (f"?{parts.query}" if parts.query else ""), t)
    if answer.status != 200:
        return None
    headers = {"content-type": [answer.content_type]}
    return FetchResult(0, url, Outcome.OK, 200, headers=headers, raw_body=answer.body, body=answer.body, started_at=t)
