"""What is known of pages that hubs announced before they are fetched: place, hubs, kind of URL, words asked for."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from bowerbird.appraise.hubs.announced import SIZES, Feature
from bowerbird.appraise.hubs.page_worth import halve_places
from bowerbird.index.analysis import tokenize
from bowerbird.model.page_types import type_pages
from bowerbird.model.workload import Workload
from bowerbird.store.connection import Connection
from bowerbird.web.url import split_words

I64 = npt.NDArray[np.int64]
_AT_ONCE = 500  # rows a query


def describe_pages(
    connection: Connection,
    workload: Workload,
    page: I64,
    visit: I64,
    shown: I64,
    link: I64 | None = None,
) -> I64:
    """Levels by page and Feature. `page` are rows; `visit` found each, by `link` where that led to it by a redirect;
    `shown` has a row a link.
    """
    link = page if link is None else link
    level = np.zeros((len(page), len(SIZES)), dtype=np.int64)
    level[:, Feature.PLACE] = halve_places(_place_within(visit, link), SIZES[Feature.PLACE])
    shown = np.sort(shown)
    times = np.searchsorted(shown, link, side="right") - np.searchsorted(shown, link)
    level[:, Feature.SHOWN] = np.minimum(times, SIZES[Feature.SHOWN] - 1)
    urls = [""] * len(page)
    asked = np.zeros(len(page))
    frequency = _shares(workload)
    place = {row: number for number, row in enumerate(page.tolist())}
    for row, url in _read(connection, "SELECT id, url FROM urls WHERE id IN", page):
        urls[place[row]] = url
        asked[place[row]] = _most(frequency, split_words(url))
    place = {row: number for number, row in enumerate(link.tolist())}
    for row, text in _read(connection, "SELECT target, text FROM anchors WHERE target IN", link):
        asked[place[row]] = max(asked[place[row]], _most(frequency, text))
    level[:, Feature.TYPE] = type_pages(urls, [""] * len(urls))
    level[:, Feature.ASKED] = _grade(asked, SIZES[Feature.ASKED])
    return level


def _place_within(visit: I64, link: I64) -> I64:
    """Links are numbered as they stand on a hub: their places among those of the same visit."""
    order = np.lexsort((link, visit))
    first = np.flatnonzero(np.diff(visit[order], prepend=-1) != 0)
    counts = np.diff(np.append(first, len(visit)))
    out = np.empty(len(visit), dtype=np.int64)
    out[order] = np.arange(len(visit)) - np.repeat(first, counts)
    return out


def _shares(workload: Workload) -> dict[str, float]:
    """By word, its share of what is asked."""
    frequency = workload.term_frequency()
    total = float(frequency.sum())
    return dict(zip(workload.terms, (frequency / total).tolist(), strict=True)) if total > 0 else {}


def _most(frequency: dict[str, float], text: str) -> float:
    return max((frequency.get(word, 0.0) for word in tokenize(text)), default=0.0)


def _grade(asked: npt.NDArray[np.float64], size: int) -> I64:
    """0 where no word is asked for, then in steps of ten from one in a hundred thousand on."""
    with np.errstate(divide="ignore"):
        steps = np.floor(np.log10(asked) + 6.0)
    return np.where(asked > 0, np.clip(steps, 1, size - 1), 0).astype(np.int64)


def _read(connection: Connection, select: str, page: I64) -> Iterator[tuple[int, str]]:
    rows = page.tolist()
    for first in range(0, len(rows), _AT_ONCE):
        some = rows[first : first + _AT_ONCE]
        yield from connection.execute(f"{select} ({','.join('?' * len(some))})", some)
