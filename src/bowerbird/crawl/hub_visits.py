"""What visits to hubs found, put together from what the crawl keeps of URLs, fetches and links.

A URL's source and first-seen time tell which visit of which URL led there first. What the very first visit of a URL
shows was there before: it is old. So is a page that a feed or sitemap dates before the visit before, where its host
dates pages at all honestly.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bowerbird.model.hub_study import HubKind
from bowerbird.model.snapshot import PageColumns, Snapshot
from bowerbird.model.url_state import UrlKind, UrlState
from bowerbird.store.repository import Repository
from bowerbird.store.visits import Visits

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]
BOOL = npt.NDArray[np.bool_]

SECOND_BITS = 33  # a URL and a second in one whole number
DATED_WITHIN_S = 7 * 86400.0  # a host whose latest date is older than this has another clock, or only old pages
FEWEST_YIELDS = 2  # visits that led to new pages, by which any page becomes a hub


@dataclass(frozen=True, slots=True)
class Discoveries:
    """New pages first found on a later visit of a URL: that visit's place among all visits, and the page's row."""

    visit: I64
    page: I64


@dataclass(frozen=True, slots=True)
class HubLinks:
    """Of the links of hubs: which visits found nothing left of the one before, and who announces which new page."""

    turned: BOOL  # by visit
    hub: I64  # place of a hub
    page: I64  # row of a new page that it links to, or did


def find_discoveries(pages: PageColumns, hops: npt.NDArray[np.uint8], visits: Visits, now: float) -> Discoveries:
    """The new pages that later visits led to first; pages that redirects led to are not counted twice."""
    found = np.flatnonzero((pages.kind == UrlKind.PAGE) & (pages.source >= 0) & (hops == 0))
    nothing = np.zeros(0, dtype=np.int64)
    if not len(found) or not len(visits.page):
        return Discoveries(nothing, nothing)
    source, seen = pages.source[found].astype(np.int64), pages.first_seen[found].astype(np.int64)
    visit = _match_visits(visits, source, seen)
    later = (visit > 0) & (visits.page[visit] == source)
    later[later] = visits.page[visit[later] - 1] == source[later]
    found, visit = found[later], visit[later]
    date = pages.hint_modified[found].astype(np.int64)
    old = (date > 0) & (date < np.floor(visits.at[visit - 1])) & _dates_well(pages, now)[pages.host[found]]
    return Discoveries(visit[~old], found[~old])


def _match_visits(visits: Visits, source: I64, seen: I64) -> I64:
    """The visit of each source that is nearest to a time; of another URL where there is none."""
    keys = (visits.page << SECOND_BITS) + np.floor(visits.at).astype(np.int64)
    wanted = (source << SECOND_BITS) + seen
    after = np.minimum(np.searchsorted(keys, wanted, side="right"), len(keys) - 1)
    before = np.maximum(np.searchsorted(keys, wanted, side="right") - 1, 0)
    return np.where(np.abs(keys[after] - wanted) < np.abs(keys[before] - wanted), after, before)


def _dates_well(pages: PageColumns, now: float) -> BOOL:
    """By host: whether any date that its feeds and sitemaps give is recent."""
    latest = np.zeros(int(pages.host.max(initial=0)) + 1, dtype=np.int64)
    np.maximum.at(latest, pages.host.astype(np.int64), pages.hint_modified.astype(np.int64))
    return latest >= now - DATED_WITHIN_S


def choose_hubs(
    repository: Repository, snapshot: Snapshot, visits: Visits, discoveries: Discoveries, page_age_s: float
) -> tuple[I64, npt.NDArray[np.uint8]]:
    """Rows of all hubs, ascending, with their kinds: feeds, sitemaps, main pages, older pages that these link to, and
    any page that led to new pages on more than one later visit.
    """
    pages, table = snapshot.pages, repository.table
    here = pages.state == UrlState.FETCHED
    kind = np.full(len(pages), 255, dtype=np.uint8)
    yields = np.bincount(visits.page[np.unique(discoveries.visit)], minlength=len(pages))
    kind[here & (yields >= FEWEST_YIELDS)] = HubKind.LISTING
    main = [row for origin in table.hosts.origins if (row := table.find_url(f"{origin}/")) is not None]
    main = [row for row in main if row < len(pages) and here[row] and pages.kind[row] == UrlKind.PAGE]
    for row in main:
        links = repository.links(row)
        if links is not None:
            near = links.current().astype(np.int64)
            near = near[near < len(pages)]
            old = pages.first_seen[near] <= snapshot.now - page_age_s
            kind[near[here[near] & old & (pages.host[near] == pages.host[row])]] = HubKind.LISTING
    kind[main] = HubKind.MAIN_PAGE
    kind[here & (pages.kind == UrlKind.FEED)] = HubKind.FEED
    kind[here & (pages.kind == UrlKind.SITEMAP)] = HubKind.SITEMAP
    rows = np.flatnonzero(kind != 255)
    return rows, kind[rows]


def read_hub_links(
    repository: Repository, rows: I64, kinds: npt.NDArray[np.uint8], visits: Visits, new_pages: BOOL
) -> HubLinks:
    """Look through the links of these hubs; `new_pages` by row are those that any later visit found first."""
    turned = np.zeros(len(visits.page), dtype=np.bool_)
    hub: list[I64] = [np.zeros(0, dtype=np.int64)]
    page: list[I64] = [np.zeros(0, dtype=np.int64)]
    first, last = np.searchsorted(visits.page, rows), np.searchsorted(visits.page, rows, side="right")
    for place, row in enumerate(rows.tolist()):
        links = repository.links(row)
        if links is None:
            continue
        targets = links.targets.astype(np.int64)
        fresh = targets[targets < len(new_pages)]
        fresh = fresh[new_pages[fresh]]
        hub.append(np.full(len(fresh), place, dtype=np.int64))
        page.append(fresh)
        looks = np.arange(first[place], last[place])
        looks = looks[~visits.not_modified[looks]]
        watched = kinds[place] not in (HubKind.FEED, HubKind.SITEMAP)
        turns = find_turns(visits.at[looks], links.first_seen, links.last_seen, watched_only=watched)
        turned[looks[turns]] = True
    return HubLinks(turned, np.concatenate(hub), np.concatenate(page))


def find_turns(at: F64, first_seen: F64, last_seen: F64, *, watched_only: bool) -> I64:
    """Places of the visits at which there were new links, and none of those there at the visit before.

    With `watched_only`, links of the first visit are left aside: on pages, most of them lead around the site and stay.

    >>> find_turns(np.array([10.0, 20.0, 30.0]), np.array([10.0, 20.0, 30.0]), np.array([20.0, 20.0, 30.0]),
    ...            watched_only=False).tolist()
    [2]
    """
    times, place = np.unique(np.floor(at), return_index=True)
    if len(times) < 2:
        return np.zeros(0, dtype=np.int64)
    begin = np.searchsorted(times, np.floor(first_seen))
    end = np.searchsorted(times, np.floor(last_seen), side="right") - 1
    counted = (end >= begin) & ((begin >= 1) | (not watched_only))
    starts = np.bincount(begin[counted], minlength=len(times) + 1)[: len(times)]
    ends = np.bincount(end[counted], minlength=len(times) + 1)[: len(times)]
    there = np.cumsum(starts) - np.concatenate([[0], np.cumsum(ends)[:-1]])
    left = there[:-1] - ends[:-1]
    turns = 1 + np.flatnonzero((there[:-1] > 0) & (left == 0) & (starts[1:] > 0))
    return np.asarray(place[turns], dtype=np.int64)
