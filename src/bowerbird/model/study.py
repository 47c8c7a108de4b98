"""A study of the frontier: what each page not yet fetched is worth, worked out for the whole crawl at once.

Methods that look at the whole link graph or at every query take seconds to minutes, so they are not asked for each bid.
A study is made now and then; the bids are read off it until the next one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import xxhash

F32 = npt.NDArray[np.float32]
I64 = npt.NDArray[np.int64]
REASONS = 3  # linking pages, and queries, that are remembered for a page


@dataclass(frozen=True, slots=True)
class CalibrationNote:
    """How scores became expected clicks: by what pages fetched earlier got, or by a prior while that is too little."""

    kind: str  # "calibrated" or "prior"
    pages: int  # fetched pages it rests on
    clicks: float  # that they got
    note: str


@dataclass(frozen=True, slots=True)
class Reasons:
    """Why pages score what they do: for `rows` (ascending) the best few of each kind; -1 stands for none."""

    rows: I64
    sources: npt.NDArray[np.int32]  # pages that link to it, [len(rows), REASONS]
    passed: F32  # what each of them passes on to it
    queries: npt.NDArray[np.int32]  # places in `query_marks`, [len(rows), REASONS]
    ranks: F32  # at which it is expected to answer each of them
    query_marks: npt.NDArray[np.uint64]  # of the queries' texts: a text that is forgotten must not stay here

    def seal(self, key: bytes) -> Reasons:
        """The same, fit to be written: its marks tell nothing to those who lack the key."""
        return replace(self, query_marks=seal_marks(self.query_marks, key))

    def place(self, row: int) -> int | None:
        """Where a page's reasons are."""
        place = int(np.searchsorted(self.rows, row))
        return place if place < len(self.rows) and self.rows[place] == row else None


@dataclass(frozen=True, slots=True)
class QueryAnswers:
    """What the index answered to each query at some time, to see later by how much new pages have bettered that."""

    pages: int  # that were fetched
    marks: npt.NDArray[np.uint64]  # sealed
    mean_top: F32  # mean score of the first results there were
    results: npt.NDArray[np.int32]
    model: tuple[float, float] | None  # log(improvement) = intercept + slope·(mean score), once it was learnt


@dataclass(frozen=True, slots=True)
class FrontierStudy:
    """What a method found out about the first `count` rows."""

    at: float
    method: str
    count: int
    worth: F32  # expected clicks, faded as those of the demand log are; NaN where the row was not on the frontier
    score: F32  # as the method gives it
    host_worth: F32  # by host, of URLs found later: as much as those found last; NaN where a host had none
    default_worth: float  # of the frontier's average page
    calibration: CalibrationNote
    reasons: Reasons | None = None
    answers: QueryAnswers | None = None
    info: dict[str, str | float] = field(default_factory=dict)
    kept: dict[str, npt.NDArray[Any]] = field(default_factory=dict)  # what the method wants to remember
    later_worth: float | None = None  # for hosts found later; None = as the frontier's average page

    def expected_clicks(self, rows: I64, hosts: npt.NDArray[np.uint32]) -> tuple[npt.NDArray[np.float64], I64]:
        """Of pages of the frontier; and where each figure is from: 0 the page itself, 1 its host, 2 all pages."""
        clicks = np.full(len(rows), np.nan)
        known = rows < self.count
        clicks[known] = self.worth[rows[known]]
        source = np.zeros(len(rows), dtype=np.int64)
        missing = np.flatnonzero(np.isnan(clicks))
        if len(missing):
            host = hosts[missing].astype(np.int64)
            inside = host < len(self.host_worth)
            clicks[missing[inside]] = self.host_worth[host[inside]]
            source[missing] = 1
            missing = missing[np.isnan(clicks[missing])]
            later = self.default_worth if self.later_worth is None else self.later_worth
            clicks[missing], source[missing] = later, 2
        return clicks, source


def mark_queries(texts: Iterable[str]) -> npt.NDArray[np.uint64]:
    """64-bit marks by which queries are known again; who has them can test guesses, so they are sealed on disk."""
    return np.array([xxhash.xxh3_64_intdigest(text.encode("utf-8", "replace")) for text in texts], dtype=np.uint64)


def seal_marks(marks: npt.NDArray[np.uint64], key: bytes) -> npt.NDArray[np.uint64]:
    """The marks keyed by a secret; as they are where there is none."""
    if not key:
        return marks
    mac = hashlib.blake2b(key=key, digest_size=8)
    sealed = bytearray()
    for mark in marks.astype("<u8").tolist():
        one = mac.copy()
        one.update(mark.to_bytes(8, "little"))
        sealed += one.digest()
    return np.frombuffer(bytes(sealed), dtype="<u8").astype(np.uint64)
