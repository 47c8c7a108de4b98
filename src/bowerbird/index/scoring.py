"""What the index would answer for a page it does not hold (any more): its own scores, worked out from a text.

The engine scores a word by BM25 in each field, with a field's length kept in one byte, and adds the fields up by
weight. The same arithmetic here, with the index's own statistics, gives the score of any version of a page.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from bowerbird.index.word_counts import Vocabulary

K1 = 1.2
B = 0.75
F64 = NDArray[np.float64]


class Statistics(Protocol):
    """What an index knows of its words."""

    def document_count(self) -> int:
        """Documents, as the engine counts them for its scores."""

    def document_frequency(self, field: str, word: str) -> int:
        """Documents that have the word in this field."""

    def average_length(self, field: str) -> float:
        """Words in this field, on average."""


def length_steps() -> NDArray[np.int64]:
    """The 256 lengths that one byte can stand for: exact up to 40, then in steps of an eighth.

    >>> length_steps()[[0, 39, 40, 41, 56]].tolist()
    [0, 39, 40, 42, 88]
    """
    steps = np.arange(256, dtype=np.int64)
    coarse = steps[40:] - 24
    steps[40:] = 24 + (((coarse & 7) | 8) << ((coarse >> 3) - 1))
    return steps


_STEPS = length_steps()


def stored_length(words: int) -> int:
    """The length as one byte keeps it: the next step below."""
    return int(_STEPS[np.searchsorted(_STEPS, words, side="right") - 1])


def inverse_frequency(documents: int, holding: F64) -> F64:
    """How telling a word is: ln(1 + (N - n + 0.5) / (n + 0.5))."""
    return np.log1p((documents - holding + 0.5) / (holding + 0.5))


def saturate(frequency: F64, length: float, average: float) -> F64:
    """BM25's weight of a word that occurs so often in a field of this length."""
    return frequency * (K1 + 1) / (frequency + K1 * (1 - B + B * length / average))


@dataclass(frozen=True, slots=True)
class PageScores:
    """The words of a vocabulary that a page has, by number, and its score for each."""

    words: NDArray[np.int64]
    scores: F64


def field_frequencies(statistics: Statistics, words: Sequence[str], fields: Iterable[str]) -> F64:
    """Documents that have each word, by field and word."""
    return np.array(
        [[statistics.document_frequency(name, word) for word in words] for name in fields], dtype=np.float64
    )


class PageScorer:
    """Scores pages for the words of a vocabulary, as an index with these statistics does."""

    def __init__(self, statistics: Statistics, vocabulary: Sequence[str], weights: Mapping[str, float]) -> None:
        self.weights = dict(weights)
        self._vocabulary = Vocabulary(vocabulary)
        documents = statistics.document_count()
        self._average = [statistics.average_length(field) for field in weights]
        holding = np.minimum(field_frequencies(statistics, vocabulary, weights), documents)
        self._inverse = inverse_frequency(documents, holding)

    def score(self, fields: Mapping[str, str]) -> PageScores:
        """The scores of a page with these texts in its fields."""
        total = np.zeros(len(self._vocabulary))
        counted = self._vocabulary.count([fields.get(field, "") for field in self.weights])
        for place, (weight, average) in enumerate(zip(self.weights.values(), self._average, strict=True)):
            part = slice(counted.starts[place], counted.starts[place + 1])
            words = counted.words[part]
            if average and len(words):
                length = stored_length(int(counted.lengths[place]))
                share = saturate(counted.counts[part].astype(np.float64), length, average)
                total[words] += weight * self._inverse[place, words] * share
        words_of_page = np.flatnonzero(total)
        return PageScores(words_of_page, total[words_of_page])
