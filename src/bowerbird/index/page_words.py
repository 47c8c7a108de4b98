"""The words of pages, from their URLs and the texts of links to them, for appraisers: as the index has words."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable

import numpy as np
import numpy.typing as npt

from bowerbird.index.analysis import tokenize
from bowerbird.model.page_words import BREAK, PageWords
from bowerbird.web.url import split_words


def gather_words(urls: Iterable[tuple[int, str]], anchors: Iterable[tuple[int, str]], count: int) -> PageWords:
    """Of pages 0…count-1, from the URL of each and the anchor texts of some, both as (page, text)."""
    numbers: dict[str, int] = {}
    pages, lengths, words = array("q"), array("q"), array("I")

    def take(texts: Iterable[tuple[int, str]], split: Callable[[str], list[str]]) -> None:
        known, number = numbers.get, numbers.setdefault
        for page, text in texts:
            found = split(text)
            pages.append(page)
            lengths.append(len(found))
            for word in found:
                place = known(word)
                words.append(number(word, len(numbers)) if place is None else place)

    take(urls, lambda url: tokenize(split_words(url)))
    take(anchors, tokenize)
    return _join(tuple(numbers), _column(pages, np.int64), _column(lengths, np.int64), _column(words, np.uint32), count)


def _column(values: array[int], kind: type[np.int64] | type[np.uint32]) -> npt.NDArray[np.int64]:
    return np.frombuffer(values, dtype=kind) if len(values) else np.zeros(0, dtype=kind)


def _join(
    vocabulary: tuple[str, ...],
    pages: npt.NDArray[np.int64],
    lengths: npt.NDArray[np.int64],
    words: npt.NDArray[np.int64],
    count: int,
) -> PageWords:
    """Texts of pages in any order to pages in order, with a break between two texts of a page."""
    order = np.argsort(pages, kind="stable")
    begins = np.cumsum(lengths) - lengths
    pages, lengths, begins = pages[order], lengths[order], begins[order]
    later = np.diff(pages, prepend=-1) == 0  # a text that is not the first of its page follows a break
    room = lengths + later
    ends = np.cumsum(room)
    out = np.full(int(ends[-1]) if len(ends) else 0, BREAK, dtype=np.uint32)
    places = np.repeat(ends - lengths, lengths) + _count_up(lengths)
    out[places] = words[np.repeat(begins, lengths) + _count_up(lengths)]
    starts = np.zeros(count + 1, dtype=np.int64)
    np.cumsum(np.bincount(pages, weights=room, minlength=count).astype(np.int64), out=starts[1:])
    return PageWords(vocabulary, starts, out)


def _count_up(lengths: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """0, 1, … for each length, one after the other."""
    total = int(lengths.sum())
    return np.arange(total) - np.repeat(np.cumsum(lengths) - lengths, lengths)
