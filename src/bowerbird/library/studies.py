"""Studies of a snapshot without a crawl behind it: what the methods that look at all pages bid by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from bowerbird.appraise.frontier.graph import graph_of_links
from bowerbird.appraise.frontier.inputs import Inputs
from bowerbird.appraise.frontier.methods import INFORMED, QUERY_METHODS, inform
from bowerbird.appraise.frontier.ranking import add_words, study_graph
from bowerbird.appraise.frontier.studied import Studied
from bowerbird.appraise.hubs.studied import StudiedHubs
from bowerbird.appraise.policy import Policy, make_policy
from bowerbird.appraise.refresh.inputs import RefreshInputs
from bowerbird.appraise.refresh.priors import page_levels
from bowerbird.appraise.refresh.studied import StudiedRefresh
from bowerbird.appraise.refresh.study import KnownPages, RefreshPlan, study_refreshes
from bowerbird.library.arrow_names import Names
from bowerbird.library.column_names import PAGES
from bowerbird.library.plain_names import list_names
from bowerbird.library.ranking_methods import ASKING
from bowerbird.library.snapshots import find_rows
from bowerbird.library.tables import Table, open_names, open_table
from bowerbird.model.errors import ConfigError, PolicyError, TableError
from bowerbird.model.refresh_study import RefreshStudy
from bowerbird.model.snapshot import PageColumns, Snapshot
from bowerbird.model.study import FrontierStudy
from bowerbird.model.url_state import UrlKind, UrlState

F64 = npt.NDArray[np.float64]
TIMES = ("time", "at", "fetched_at", "timestamp", "date")


def study(
    snapshot: Snapshot,
    policy: str | Policy,
    *,
    pages: Table | Sequence[str] | None = None,
    visits: Table | None = None,
    seed: int = 0,
) -> Snapshot:
    """The snapshot with the studies that a policy bids by; those that it has already stay.

    Methods that read words or directories of page names need `pages`, as the snapshot was made of. Methods for known
    pages need it and `visits` (page, time, changed, perhaps shift: the share of a page that changed), one row a fetch.
    """
    policy = make_policy(policy) if isinstance(policy, str) else policy
    if isinstance(policy.hubs, StudiedHubs) and snapshot.hub_study is None:
        raise PolicyError(
            f"policy {policy.name!r}: bids by studies of hubs, which are made of a crawl's journal. Without a crawl, "
            "name a method for new pages and one for known pages, as in 'rw-eg+user-centric'."
        )
    names = None if pages is None else open_names("pages", pages, PAGES)
    if names is not None and len(list_names(names)) != len(snapshot.pages):
        raise TableError(
            f"pages: has {len(list_names(names)):,} rows, but the snapshot has {len(snapshot.pages):,}. "
            "Pass the table that the snapshot was made of."
        )
    frontier, refresh = policy.frontier, policy.refresh
    if isinstance(frontier, Studied) and (snapshot.study is None or snapshot.study.method != frontier.name):
        listed = None if names is None else list_names(names)
        snapshot = replace(snapshot, study=_study_new(snapshot, frontier.name, listed, seed))
    known = snapshot.refresh_study
    if isinstance(refresh, StudiedRefresh) and (known is None or known.method != refresh.name):
        if names is None or visits is None:
            raise ConfigError(
                f"policy {policy.name!r}: {refresh.name} learns from visits. Pass pages= and visits= (page, time, "
                "changed), or take 'adaptive' or 'fixed' for known pages."
            )
        found, seen = _study_known(snapshot, policy, names, visits)
        snapshot = replace(snapshot, refresh_study=found, pages=seen)
    return snapshot


def _study_new(snapshot: Snapshot, method: str, names: list[str] | None, seed: int) -> FrontierStudy:
    """What new pages are worth, learnt from the clicks on all that were fetched."""
    if snapshot.links is None:
        raise ConfigError(f"policy {method!r}: looks at links, of which the snapshot has none. Pass links= to it.")
    columns = snapshot.pages
    is_page = columns.kind == UrlKind.PAGE
    crawled = is_page & np.isin(columns.state, (UrlState.FETCHED, UrlState.REDIRECT))
    clicks = np.zeros(len(columns)) if snapshot.clicks is None else snapshot.clicks
    inputs = Inputs(
        now=snapshot.now,
        graph=graph_of_links(snapshot.links, crawled),
        clicks=np.where(crawled, clicks, 0.0),
        host=columns.host,
        first_seen=columns.first_seen.astype(np.float64),
        rng=np.random.default_rng(seed),
        frontier=np.flatnonzero(is_page & (columns.state == UrlState.NEW)),
    )
    by = inform(inputs, snapshot.workload) if method == INFORMED else method
    if by in ASKING and snapshot.workload is None:
        raise ConfigError(f"policy {method!r}: needs queries to look for. Pass queries= to the snapshot.")
    if by in QUERY_METHODS:
        if names is None:
            raise ConfigError(f"policy {method!r}: reads the words of page names ({by}). Pass pages= to it.")
        inputs = add_words(inputs, names, snapshot.workload, directories=by == "learned")
    return study_graph(inputs, method)


def _study_known(
    snapshot: Snapshot, policy: Policy, names: Names | list[str], visits: Table
) -> tuple[RefreshStudy, PageColumns]:
    """When known pages are due, and the pages with their fetches and changes counted.

    A page's stake is its share of clicks: there is no index to ask for its answers.
    """
    columns = snapshot.pages
    table = open_table("visits", visits)
    (_, page), _ = find_rows([names, table.names(PAGES)], ("pages", "visits"))
    at, changed = table.times(TIMES), table.flags(("changed",))
    empty = np.flatnonzero(np.isnan(at) | (at > snapshot.now))
    if len(empty):
        raise TableError(f"visits: row {empty[0]}: its time is empty, or lies after now. Mend it, or leave it out.")
    shift = table.numbers(("shift",), most=1.0) if table.has("shift") else changed.astype(np.float64)
    here = np.flatnonzero((columns.kind == UrlKind.PAGE) & (columns.state == UrlState.FETCHED))
    place = np.full(len(columns), -1, dtype=np.int64)
    place[here] = np.arange(len(here))
    mine = np.flatnonzero(place[page] >= 0)
    mine = mine[np.lexsort((at[mine], place[page[mine]]))]
    again = np.flatnonzero(np.diff(place[page[mine]], prepend=-1) == 0)  # a first visit has nothing to compare with
    kept = mine[again]  # in `visits`
    starts = np.zeros(len(here) + 1, dtype=np.int64)
    np.cumsum(np.bincount(place[page[kept]], minlength=len(here)), out=starts[1:])
    clicks = np.zeros(len(here)) if snapshot.clicks is None else snapshot.clicks[here]
    share = clicks / max(float(clicks.sum()), 1e-300)
    hint = columns.hint_modified[here].astype(np.float64)
    hosts = columns.host[here].astype(np.int64)
    listed = list_names(names)
    settings = policy.settings
    found = study_refreshes(
        RefreshInputs(
            now_s=snapshot.now,
            starts=starts,
            interval_s=at[kept] - at[mine[again - 1]],
            changed=changed[kept],
            shift=np.where(changed[kept], shift[kept], 0.0),
            gain=np.where(changed[kept], np.nan, 0.0),
            stake=share,
            views=share,
            levels=page_levels([listed[row] for row in here.tolist()], hosts),
            hint_age_s=np.where(hint > 0, snapshot.now - hint, np.nan),
            cost=np.ones(len(here)),
        ),
        policy.refresh.name,
        KnownPages(here, hosts, len(columns), len(snapshot.hosts)),
        RefreshPlan(
            settings.interval_s,
            settings.min_interval_s,
            settings.max_interval_s,
            settings.explore,
            settings.threshold,
        ),
    )
    return found, replace(
        columns,
        fetches=_count_up(columns.fetches, page),
        changes=_count_up(columns.changes, page[kept[changed[kept]]]),
    )


def _count_up(known: npt.NDArray[np.uint16], page: npt.NDArray[np.int64]) -> npt.NDArray[np.uint16]:
    """How often pages come up, where that is more than was known."""
    counted = np.minimum(np.bincount(page, minlength=len(known)), np.iinfo(np.uint16).max)
    out = np.maximum(known, counted).astype(np.uint16)
    out.flags.writeable = False
    return out
