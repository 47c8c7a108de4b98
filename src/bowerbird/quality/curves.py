"""Score-rank curves F_q: which rank a score gets in the answer of a query, in 20 bytes a query ([UC05]).

On log-log scale a curve has three straight pieces, equally long in log rank from 1 to the number of results. It is kept
as five float32: that number, and the log score at the four ends of the pieces. It falls strictly, so it has an inverse.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bowerbird.quality.answers import FloatArray, IntArray, LocalAnswers, rank_grid

PIECES = 3
NUMBERS = PIECES + 2
LEAST_FALL = 1e-3  # of the log score over one piece: enough to be seen in float32
FITS = 3
LEAST_SLOPE = 0.02
LONE_SLOPE = 0.5  # of a list too short to have one
SMALLEST, LARGEST = 1e-30, 1e30

CurveRows = npt.NDArray[np.float32]


def sample_ranks(total: int) -> IntArray:
    """The ranks at which a list is looked at: 1, 2, 3, 5, 8, 13, …, total."""
    ranks, following = [1], 2
    while following < total:
        ranks, following = [*ranks, following], following + ranks[-1]
    return np.array([*ranks, total] if total > 1 else ranks[:total], dtype=np.int64)


def fit_row(ranks: npt.ArrayLike, scores: npt.ArrayLike, total: int) -> CurveRows:
    """The five numbers of one curve, by least squares on log-log scale; ranks ascending, scores not rising."""
    row = np.zeros(NUMBERS, dtype=np.float32)
    at, level = np.asarray(ranks, dtype=np.float64), np.asarray(scores, dtype=np.float64)
    if total < 1 or not len(at):
        return row
    y = np.log(np.clip(level, SMALLEST, LARGEST))
    if len(at) > 4 * NUMBERS:
        # A whole list has most of its ranks at the end; the curve is for all scales alike.
        kept = np.unique(np.searchsorted(at, rank_grid(int(at[-1]))).clip(max=len(at) - 1))
        at, y = at[kept], y[kept]
    length = _length(np.array(float(total)))
    place = np.clip(np.log(at) / length * PIECES, 0, PIECES)
    hats = np.maximum(1 - np.abs(place[:, None] - np.arange(PIECES + 1)), 0)
    if len(at) == 1:
        ends = y[0] - LONE_SLOPE * (np.arange(PIECES + 1) / PIECES - place[0] / PIECES) * length
    else:
        # Ends that no sample speaks of lie on the straight line through their neighbours.
        bend = np.zeros((PIECES - 1, PIECES + 1))
        for piece in range(PIECES - 1):
            bend[piece, piece : piece + 3] = (1, -2, 1)
        weight = np.ones(len(at))
        for _ in range(FITS):
            rows = np.vstack([hats * weight[:, None], 1e-4 * bend])
            ends = np.linalg.lstsq(rows, np.append(y * weight, np.zeros(PIECES - 1)), rcond=None)[0]
            # What counts is the error in log rank: an error in log score divided by the slope of the piece.
            slope = np.maximum(-np.diff(ends) / (length / PIECES), LEAST_SLOPE)
            weight = 1 / slope[np.minimum(place.astype(np.int64), PIECES - 1)]
    fall = LEAST_FALL * np.arange(PIECES + 1)
    row[0] = total
    row[1:] = _not_rising(np.clip(ends + fall, -80, 80)) - fall
    return row


def _length(total: FloatArray) -> FloatArray:
    """Of the curve in log rank; one result alone has the curve of two."""
    return np.log(np.maximum(total, 2))


def _not_rising(values: FloatArray) -> FloatArray:
    """The nearest sequence that does not rise: neighbours that do are put at their mean."""
    blocks: list[tuple[float, int]] = []
    for value in values:
        mean, size = float(value), 1
        while blocks and blocks[-1][0] < mean:
            previous, count = blocks.pop()
            mean, size = (mean * size + previous * count) / (size + count), size + count
        blocks.append((mean, size))
    return np.concatenate([np.full(size, mean) for mean, size in blocks])


def curve_scores(rows: CurveRows, ranks: npt.ArrayLike) -> FloatArray:
    """F⁻¹: the score at a rank; the outer pieces go on as they are. 0 where there are no results."""
    wide = rows.astype(np.float64)
    total, ends = wide[..., 0], wide[..., 1:]
    place = np.log(np.maximum(np.asarray(ranks, dtype=np.float64), 1e-9)) / _length(total) * PIECES
    piece = np.clip(np.floor(place), 0, PIECES - 1).astype(np.int64)
    ends = np.broadcast_to(ends, (*piece.shape, PIECES + 1))
    left = np.take_along_axis(ends, piece[..., None], -1)[..., 0]
    right = np.take_along_axis(ends, piece[..., None] + 1, -1)[..., 0]
    return np.where(total > 0, np.exp(left + (right - left) * (place - piece)), 0.0)


def curve_ranks(rows: CurveRows, scores: npt.ArrayLike) -> FloatArray:
    """[UC05] F_q: the rank of a score, not rounded, from 1 to one after the last result."""
    wide = rows.astype(np.float64)
    total, ends = wide[..., 0], wide[..., 1:]
    level = np.asarray(scores, dtype=np.float64)
    y = np.log(np.clip(level, SMALLEST * SMALLEST, None))
    piece = np.clip((ends[..., 1:PIECES] >= y[..., None]).sum(axis=-1), 0, PIECES - 1)
    ends = np.broadcast_to(ends, (*piece.shape, PIECES + 1))
    left = np.take_along_axis(ends, piece[..., None], -1)[..., 0]
    right = np.take_along_axis(ends, piece[..., None] + 1, -1)[..., 0]
    steps = np.where(total > 0, right - left, -1.0)
    place = piece + (y - left) / steps
    limit = np.log(total + 1)
    return np.where(total > 0, np.exp(np.clip(place / PIECES * _length(total), 0.0, limit)), 1.0)


@dataclass(frozen=True, slots=True)
class ScoreRankCurve:
    """F_q of one query."""

    row: CurveRows

    @classmethod
    def fit(cls, ranks: npt.ArrayLike, scores: npt.ArrayLike, total: int | None = None) -> ScoreRankCurve:
        """From samples of the answer list, best first; `total` results, the last rank given unless told."""
        at = np.asarray(ranks, dtype=np.int64)
        return cls(fit_row(at, scores, int(at[-1]) if total is None and len(at) else total or 0))

    @property
    def total(self) -> int:
        """Results of the query."""
        return int(self.row[0])

    def rank(self, score: npt.ArrayLike) -> FloatArray:
        """The rank, not rounded, from 1 to one after the last result."""
        return curve_ranks(self.row, score)

    def score(self, rank: npt.ArrayLike) -> FloatArray:
        """The score at a rank."""
        return curve_scores(self.row, rank)

    def piece_ends(self) -> FloatArray:
        """Ranks at which two pieces meet, and the last."""
        return np.exp(_length(np.array(float(self.total))) * np.arange(1, PIECES + 1) / PIECES)


@dataclass(frozen=True, slots=True)
class CurveTable:
    """The curves of many queries: queries × 5 float32."""

    rows: CurveRows

    @classmethod
    def fit(cls, samples: Sequence[tuple[npt.ArrayLike, npt.ArrayLike]], totals: npt.ArrayLike) -> CurveTable:
        """From (ranks, scores) of each query, and how many results each has."""
        counts = np.asarray(totals, dtype=np.int64).tolist()
        rows = [fit_row(ranks, scores, total) for (ranks, scores), total in zip(samples, counts, strict=True)]
        return cls(np.stack(rows) if rows else np.zeros((0, NUMBERS), dtype=np.float32))

    @classmethod
    def from_answers(cls, answers: LocalAnswers) -> CurveTable:
        """From what the repository answers."""
        return cls.fit([answers.points(query) for query in range(len(answers))], answers.totals)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, query: int) -> ScoreRankCurve:
        return ScoreRankCurve(self.rows[query])

    def rank(self, queries: npt.ArrayLike, scores: npt.ArrayLike) -> FloatArray:
        """Ranks of scores, element by element."""
        return curve_ranks(self.rows[np.asarray(queries)], scores)

    def score(self, queries: npt.ArrayLike, ranks: npt.ArrayLike) -> FloatArray:
        """Scores at ranks, element by element."""
        return curve_scores(self.rows[np.asarray(queries)], ranks)


@dataclass(frozen=True, slots=True)
class CurveError:
    """How far curves are from true ranks: |log(rank by the curve / true rank)|."""

    mean: float
    largest: float
    points: int


def curve_error(table: CurveTable, queries: npt.ArrayLike, scores: npt.ArrayLike, ranks: npt.ArrayLike) -> CurveError:
    """Hold curves against true (query, score, rank) triples; for equal scores give the middle rank."""
    off = np.abs(np.log(table.rank(queries, scores)) - np.log(np.asarray(ranks, dtype=np.float64)))
    return CurveError(float(off.mean()), float(off.max()), len(off)) if len(off) else CurveError(0.0, 0.0, 0)
