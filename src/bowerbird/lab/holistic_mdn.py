"""The holistic world of a real site: weekly versions of its pages, new pages as they appeared, and its page views.

What the data tells: which pages changed in which week and by how much of their text, which pages were added, who links
to whom, views of the pages that were there at the beginning. What is assumed: a new page is listed by the page of the
directory above it (on MDN index pages list their children) and viewed like one of its siblings, drawn by the seed; a
missed change costs the share of a page's views that is the share of its text that changed; interest does not fade.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bowerbird.lab.data_files import Column, find_file, read_columns
from bowerbird.lab.holistic_world import F64, I64, NO_HUB, START_S, WEEK_S, HolisticWorld
from bowerbird.lab.refresh_data import RefreshData, read_added_pages, read_refresh_data
from bowerbird.model.errors import InputFileError
from bowerbird.model.hub_study import HubKind
from bowerbird.model.url_state import UrlKind

WARM_WEEKS = 8
CLICKS_A_WEEK = 20_000.0  # of all pages at the beginning: views are known as shares only
BUDGETS = (0.5, 1.0, 5.0)
WARM_SHARE = 0.05  # of the pages, a week
SHOWN = 1 << 30  # an index page lists all
_PATH, _SLUG = Column(("path", "page"), 0), Column(("slug",), 1)
_VIEWS = Column(("views_2024", "views"), 5, number=True)
_SOURCE = Column(("source", "src", "src_slug", "from"), 0)
_TARGET = Column(("target", "dst", "dst_slug", "to"), 1)


@dataclass(frozen=True)
class SiteHistory:
    """What was read."""

    name: str
    site: RefreshData
    views: F64  # by page of the site, shares of their sum
    source: I64  # links between those pages
    target: I64
    added: tuple[str, ...]  # pages that appear later, ascending by week
    added_week: I64
    notes: tuple[str, ...]


def read_history(name: str, folder: Path) -> SiteHistory:
    """Read base.jsonl, weeks.jsonl, pages.tsv and links.tsv; an InputFileError names what is wrong."""
    site = read_refresh_data(name, folder)
    number = {path: place for place, path in enumerate(site.pages)}
    path = find_file(folder, "pages")
    if path is None:
        raise InputFileError(f"{folder}: no pages.tsv(.gz) with views. docs/lab-data.md has the format.")
    table = read_columns(path, (_PATH, _SLUG, _VIEWS))
    views = np.zeros(site.count)
    slugs: dict[str, int] = {}
    rows = zip(table.texts["path"], table.texts["slug"], table.numbers["views_2024"].tolist(), strict=True)
    for one, slug, seen in rows:
        if one in number:
            views[number[one]] = seen
            slugs[slug] = number[one]
    if not views.sum() > 0:
        raise InputFileError(f"{path}: no page of the site has views. docs/lab-data.md has the format.")
    source, target = _read_links(folder, {**number, **slugs})
    added = read_added_pages(folder, set(site.pages), site.weeks)
    order = sorted(added, key=lambda one: (added[one], one))
    return SiteHistory(
        name,
        site,
        views / views.sum(),
        source,
        target,
        tuple(order),
        np.array([added[one] for one in order], dtype=np.int64),
        site.notes,
    )


def _read_links(folder: Path, number: Mapping[str, int]) -> tuple[I64, I64]:
    path = find_file(folder, "links")
    if path is None:
        raise InputFileError(f"{folder}: no links.tsv(.gz) (source, target). docs/lab-data.md has the format.")
    table = read_columns(path, (_SOURCE, _TARGET))
    pairs = [
        (number[one], number[other])
        for one, other in zip(table.texts["source"], table.texts["target"], strict=True)
        if one in number and other in number and number[one] != number[other]
    ]
    found = np.unique(np.array(pairs, dtype=np.int64).reshape(-1, 2), axis=0)
    return found[:, 0], found[:, 1]


def parent_of(path: str) -> str:
    """The index page of the directory above; of a page that is no index, that of its own directory.

    >>> parent_of("files/en-us/web/api/url/index.md"), parent_of("docs/web/url.md")
    ('files/en-us/web/api/index.md', 'docs/web/index.md')
    """
    folder, name = posixpath.split(path)
    stem, ending = posixpath.splitext(name)
    if stem == "index":
        return posixpath.join(posixpath.dirname(folder), name)
    return posixpath.join(folder, f"index{ending}")


def world_of_site(history: SiteHistory, seed: int) -> HolisticWorld:
    """The world; the seed draws which sibling a new page is viewed like."""
    rng = np.random.default_rng([seed, 0x51BE])
    site = history.site
    names = (*site.pages, *history.added)
    number = {name: place for place, name in enumerate(names)}
    count, old = len(names), site.count
    parent = np.array([number.get(parent_of(name), -1) for name in names], dtype=np.int64)
    has_children = np.zeros(count, np.bool_)
    has_children[parent[parent >= 0]] = True
    views = np.concatenate([history.views, np.zeros(count - old)])
    _view_like_siblings(rng, views, parent, old)
    weeks = site.weeks
    born = np.full(count, -np.inf)
    born[old:] = START_S + history.added_week * WEEK_S
    later = np.flatnonzero(site.week > 0)
    at = START_S + site.week[later].astype(np.float64) * WEEK_S
    order = np.argsort(at, kind="stable")
    changed = site.page[later].astype(np.int64)
    loss = site.changed_share[later]
    many = np.bincount(changed, minlength=count).astype(np.float64)
    listed = np.flatnonzero(parent[old:] >= 0) + old
    by_parent = np.lexsort((born[listed], parent[listed]))
    starts = np.searchsorted(parent[listed][by_parent], np.arange(count + 1)).astype(np.int64)
    link_order = np.argsort(history.source, kind="stable")
    section = [parent_of(name) for name in names]
    unlisted = count - old - len(listed)
    return HolisticWorld(
        name=history.name,
        step_s=WEEK_S,
        measured_from_s=START_S + min(WARM_WEEKS, weeks - 2) * WEEK_S,
        end_s=START_S + weeks * WEEK_S,
        host=_number([_section_of(name) for name in names]),
        group=_number(section),
        kind=np.full(count, int(UrlKind.PAGE), np.uint8),
        hub_kind=np.where(has_children, int(HubKind.LISTING), NO_HUB).astype(np.uint8),
        dated=np.zeros(count, np.bool_),
        born_s=born,
        base_per_s=views * CLICKS_A_WEEK / WEEK_S,
        profit=np.zeros(count),
        decay_per_s=np.zeros(count),
        change_rate_per_s=many / (weeks * WEEK_S),
        change_loss=np.bincount(changed, loss, count) / np.maximum(many, 1.0),
        event_at_s=at[order],
        event_page=changed[order],
        event_loss=loss[order],
        link_starts=np.searchsorted(history.source[link_order], np.arange(count + 1)).astype(np.int64),
        link_targets=history.target[link_order],
        shows_starts=starts,
        shows_page=listed[by_parent],
        shown=SHOWN,
        known_pages=np.arange(old),
        fetched_pages=np.arange(old),
        warm_per_step=WARM_SHARE * old,
        budgets=BUDGETS,
        budget_pages=old,
        budget_s=WEEK_S,
        study_steps=4,
        exposed_s=4 * WEEK_S,
        half_life_s=26 * WEEK_S,
        stake_half_life_s=8 * WEEK_S,
        notes=(
            *history.notes,
            *((f"{unlisted} new pages have no page above them, and stay unknown.",) * (unlisted > 0)),
        ),
        facts={"new pages": count - old},
    )


def _section_of(name: str) -> str:
    """The part of the site: the first directories of the path."""
    return "/".join(name.split("/")[:4])


def _number(texts: list[str]) -> I64:
    return np.unique(np.array(texts), return_inverse=True)[1].astype(np.int64)


def _view_like_siblings(rng: np.random.Generator, views: F64, parent: I64, old: int) -> None:
    """New pages get the views of an old page of the same directory; where there is none, of any."""
    order = np.argsort(parent[:old], kind="stable")
    sorted_parents = parent[:old][order]
    for page in range(old, len(views)):
        low, high = np.searchsorted(sorted_parents, [parent[page], parent[page] + 1])
        like = order[rng.integers(low, high)] if high > low else rng.integers(old)
        views[page] = views[like]
