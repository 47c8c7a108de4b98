"""What visits to hubs found, put together from what the crawl keeps of URLs, fetches and links.

A URL's source and first-seen time tell which visit of which URL led there first. What the very first visit of a URL
shows was there before: it is old; but what a new sitemap shows, its index announced. Old is also a page that a feed or
sitemap dates before the visit before, where its host dates pages at all honestly. A link that only redirects stands for
the page it leads to. All this goes back for `MEMORY_S`, and so does what is read.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bowerbird.model.hub_study import HubKind
from bowerbird.model.snapshot import PageColumns, Snapshot
from bowerbird.model.url_state import UrlKind, UrlState
from bowerbird.store.repository import Repository
from bowerbird.store.url_table import hash_urls
from bowerbird.store.visits import Visits, read_first_visits, read_target
from bowerbird.web.url import host_of

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]
U8 = npt.NDArray[np.uint8]
BOOL = npt.NDArray[np.bool_]

SECOND_BITS = 33  # a URL and a second in one whole number
DATED_WITHIN_S = 7 * 86400.0  # a host whose latest date is older than this has another clock, or only old pages
FEWEST_YIELDS = 2  # visits that led to new pages, by which any page becomes a hub
NO_HUB = 255
MOST_REDIRECTS = 10  # in a row


@dataclass(frozen=True, slots=True)
class Discoveries:
    """New pages first found on a later visit of a URL."""

    visit: I64  # its place among all visits
    link: I64  # row of the URL that was found
    page: I64  # and of the page that it led to: the same, if it was no redirect


@dataclass(frozen=True, slots=True)
class HubLinks:
    """Of the links of hubs: which visits found nothing left of the one before, and who announces which new page."""

    turned: BOOL  # by visit
    hub: I64  # place of a hub
    page: I64  # row of a new page that it links to, or did


def find_discoverers(repository: Repository, pages: PageColumns, since: float) -> I64:
    """Rows of the URLs that led to a page not known before on a later visit since then."""
    found = np.flatnonzero((pages.kind == UrlKind.PAGE) & (pages.source >= 0) & (pages.first_seen >= since))
    source = pages.source[found].astype(np.int64)
    again = pages.fetches[source] > 1
    found, source = found[again], source[again]
    rows, place = np.unique(source, return_inverse=True)
    first = read_first_visits(repository.connection, rows)
    later = pages.first_seen[found] > np.floor(first[place])
    return np.unique(source[later])


def find_discoveries(
    pages: PageColumns, hops: U8, had_page: BOOL, visits: Visits, since: float, now: float
) -> Discoveries:
    """The new pages that later visits led to first; `had_page` by row, whether there ever was one.

    Of a link that only ever redirected, the page where it ends counts; none, if that was known before or is not ours.
    """
    young = (pages.source >= 0) & (pages.first_seen >= since)
    found = np.flatnonzero((pages.kind == UrlKind.PAGE) & (hops == 0) & young)
    nothing = np.zeros(0, dtype=np.int64)
    if not len(found) or not len(visits.page):
        return Discoveries(nothing, nothing, nothing)
    visit, later, first = _find_visits(pages, visits, found)
    # what the first visit of a sitemap shows is new where the sitemap itself is
    maps = np.flatnonzero((pages.kind == UrlKind.SITEMAP) & young)
    maps = maps[pages.kind[pages.source[maps]] == UrlKind.SITEMAP]
    told, is_told, _ = _find_visits(pages, visits, maps)
    announced = np.full(len(pages), -1, dtype=np.int64)
    announced[maps[is_told]] = told[is_told]
    by_index = np.where(first, announced[pages.source[found]], -1)
    visit = np.where(by_index >= 0, by_index, visit)
    later |= by_index >= 0
    found, visit = found[later], visit[later]
    date = pages.hint_modified[found].astype(np.int64)
    old = (date > 0) & (date < np.floor(visits.at[visit - 1])) & _dates_well(pages, now)[pages.host[found]]
    found, visit = found[~old], visit[~old]
    page = _follow_redirects(pages, hops, had_page, young)[found]
    led = had_page[page] | (pages.state[page] != UrlState.REDIRECT)
    return Discoveries(visit[led], found[led], page[led])


def _find_visits(pages: PageColumns, visits: Visits, rows: I64) -> tuple[I64, BOOL, BOOL]:
    """The visits that found these rows, which of them are not the first of their URLs, and which are."""
    source = pages.source[rows].astype(np.int64)
    visit = _match_visits(visits, source, pages.first_seen[rows].astype(np.int64))
    known = visits.page[visit] == source
    again = known & (visit > 0)
    again[again] = visits.page[visit[again] - 1] == source[again]
    return visit, again, known & ~again


def _follow_redirects(pages: PageColumns, hops: U8, had_page: BOOL, young: BOOL) -> I64:
    """By row, the last URL that redirects from it led to first; itself where there is none, or it was a page."""
    out = np.arange(len(pages))
    ends = np.flatnonzero((hops > 0) & (pages.kind == UrlKind.PAGE) & young)
    link = pages.source[ends].astype(np.int64)
    for _ in range(int(hops.max(initial=0))):
        link = np.where(hops[link] > 0, pages.source[link], link)
    out[link] = ends  # the last of a chain has the highest row
    return np.where(had_page, np.arange(len(pages)), out)


def _match_visits(visits: Visits, source: I64, seen: I64) -> I64:
    """The visit of each source that is nearest to a time; of another URL where there is none.

    Times of finds are known to the second: of two visits in one, the earlier found what was there.
    """
    keys = (visits.page << SECOND_BITS) + np.floor(visits.at).astype(np.int64)
    wanted = (source << SECOND_BITS) + seen
    after = np.minimum(np.searchsorted(keys, wanted, side="left"), len(keys) - 1)
    before = np.maximum(np.searchsorted(keys, wanted, side="right") - 1, 0)
    return np.where(np.abs(keys[after] - wanted) <= np.abs(keys[before] - wanted), after, before)


def _dates_well(pages: PageColumns, now: float) -> BOOL:
    """By host: whether any date that its feeds and sitemaps give is recent."""
    latest = np.zeros(int(pages.host.max(initial=0)) + 1, dtype=np.int64)
    np.maximum.at(latest, pages.host.astype(np.int64), pages.hint_modified.astype(np.int64))
    return latest >= now - DATED_WITHIN_S


def find_main_pages(repository: Repository, pages: PageColumns) -> I64:
    """Rows of the main pages of hosts: their roots, or where these redirect to on the same host."""
    table = repository.table
    origins = table.hosts.origins
    rows = table.find(hash_urls([f"{origin}/" for origin in origins], table.seed))
    rows = rows[(rows >= 0) & (rows < len(pages))]
    for place in np.flatnonzero(pages.state[rows] == UrlState.REDIRECT).tolist():
        host, row = host_of(f"{origins[pages.host[rows[place]]]}/"), int(rows[place])
        for _ in range(MOST_REDIRECTS):
            target = read_target(repository.connection, row)
            if target is None or target >= len(pages) or host_of(f"{origins[pages.host[target]]}/") != host:
                break
            rows[place] = row = target
            if pages.state[row] != UrlState.REDIRECT:
                break
    is_page = (pages.state[rows] == UrlState.FETCHED) & (pages.kind[rows] == UrlKind.PAGE)
    return np.unique(rows[is_page])


def name_hubs(repository: Repository, snapshot: Snapshot, page_age_s: float) -> U8:
    """Kinds by row of what is a hub whatever it found: feeds, sitemaps, main pages, older pages that these link to,

    and the seeds that the crawl chose.
    """
    pages = snapshot.pages
    here = pages.state == UrlState.FETCHED
    kind = np.full(len(pages), NO_HUB, dtype=np.uint8)
    main = find_main_pages(repository, pages)
    for row in main.tolist():
        links = repository.links(row)
        if links is not None:
            near = links.current().astype(np.int64)
            near = near[near < len(pages)]
            old = pages.first_seen[near] <= snapshot.now - page_age_s
            kind[near[here[near] & old & (pages.host[near] == pages.host[row])]] = HubKind.LISTING
    if snapshot.seed_study is not None:
        seeds = snapshot.seed_study.row
        kind[seeds[here[seeds] & (pages.kind[seeds] == UrlKind.PAGE) & (kind[seeds] == NO_HUB)]] = HubKind.SEED
    kind[main] = HubKind.MAIN_PAGE
    kind[here & (pages.kind == UrlKind.FEED)] = HubKind.FEED
    kind[here & (pages.kind == UrlKind.SITEMAP)] = HubKind.SITEMAP
    return kind


def choose_hubs(pages: PageColumns, named: U8, visits: Visits, discoveries: Discoveries) -> tuple[I64, U8]:
    """Rows of all hubs, ascending, with their kinds: those named, and what led to new pages on several later visits."""
    yields = np.bincount(visits.page[np.unique(discoveries.visit)], minlength=len(pages))
    listing = (named == NO_HUB) & (pages.state == UrlState.FETCHED) & (yields >= FEWEST_YIELDS)
    kind = np.where(listing, int(HubKind.LISTING), named).astype(np.uint8)
    rows = np.flatnonzero(kind != NO_HUB)
    return rows, kind[rows]


def read_hub_links(repository: Repository, rows: I64, kinds: U8, visits: Visits, new_pages: BOOL) -> HubLinks:
    """Look through the links of these hubs; `new_pages` by row are links to those that later visits found first."""
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
