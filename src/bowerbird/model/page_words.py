"""What is known of a page's words without fetching it: those of its URL, and of the links to it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

#: stands between two texts of a page, so that no n-gram reaches from one into the next
BREAK = 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class PageWords:
    """Word numbers by page, in reading order: first the words of the URL, then of each anchor text, with breaks.

    >>> words = make_page_words([[["red", "car"], ["my", "car"]], []])
    >>> [[words.vocabulary[w] for w in text] for text in words.texts(0)], list(words.texts(1))
    ([['red', 'car'], ['my', 'car']], [])
    """

    vocabulary: tuple[str, ...]
    starts: npt.NDArray[np.int64]
    words: npt.NDArray[np.uint32]

    def __len__(self) -> int:
        return len(self.starts) - 1

    def of_page(self, page: int) -> npt.NDArray[np.uint32]:
        """The words of a page, with breaks."""
        return self.words[self.starts[page] : self.starts[page + 1]]

    def texts(self, page: int) -> Iterator[npt.NDArray[np.uint32]]:
        """The texts of a page, each as word numbers."""
        words = self.of_page(page)
        if len(words):
            for text in np.split(words, np.flatnonzero(words == BREAK)):
                yield text[text != BREAK]


def make_page_words(pages: Iterable[Sequence[Sequence[str]]]) -> PageWords:
    """From the texts of each page (its URL's words first), each a sequence of words as the index has them."""
    numbers: dict[str, int] = {}
    starts, words = [0], list[int]()
    for texts in pages:
        for place, text in enumerate(texts):
            if place:
                words.append(BREAK)
            words.extend([numbers.setdefault(word, len(numbers)) for word in text])
        starts.append(len(words))
    return PageWords(tuple(numbers), np.array(starts, dtype=np.int64), np.array(words, dtype=np.uint32))
