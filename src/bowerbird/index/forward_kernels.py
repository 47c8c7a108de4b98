"""Compiled: forward records written and read, and the scores of two versions of a page for every word of either."""

from __future__ import annotations

import numba
import numpy as np
import numpy.typing as npt

from bowerbird.index.scoring import K1, B
from bowerbird.index.word_kernels import I32, I64, U8

F64 = npt.NDArray[np.float64]
U32 = npt.NDArray[np.uint32]

FIELDS = 4
ANCHORS = 1  # title, anchors, url_words, text
HEAD_BYTES = 4 * FIELDS
ENTRY_BYTES = 6
MOST_COUNTED = 255
WORD_BITS = 24
WORD_MASK = (1 << WORD_BITS) - 1
NEVER = 1 << 62  # the generation of a word that is not kept

BM25, TF_IDF, STATIC = 0, 1, 2


@numba.njit(cache=True, nogil=True, inline="always")
def _write_u32(data: U8, at: int, value: int) -> None:
    for shift in range(4):
        data[at + shift] = (value >> (8 * shift)) & 0xFF


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _read_u32(data: U8, at: int) -> int:
    value = 0
    for shift in range(4):
        value |= int(data[at + shift]) << (8 * shift)
    return value


@numba.njit(cache=True, nogil=True, error_model="numpy")
def write_records(starts: I64, words: I32, counts: I32, lengths: I64, marks: U32, since: I64, data: U8) -> I64:
    """Counts of texts, FIELDS of each page, as records; page i has `data[ends[i]:ends[i + 1]]`."""
    pages = len(lengths) // FIELDS
    ends = np.zeros(pages + 1, dtype=np.int64)
    at = 0
    for page in range(pages):
        for field in range(FIELDS):
            _write_u32(data, at, lengths[FIELDS * page + field])
            at += 4
        for field in range(FIELDS):
            text = FIELDS * page + field
            for place in range(starts[text], starts[text + 1]):
                if since[words[place]] < NEVER:
                    _write_u32(data, at, marks[words[place]])
                    data[at + 4] = field
                    data[at + 5] = min(counts[place], MOST_COUNTED)
                    at += ENTRY_BYTES
        ends[page + 1] = at
    return ends


@numba.njit(cache=True, nogil=True, error_model="numpy")
def fill_marks(marks: U32, since: I64, table: I64) -> None:
    """An open-addressing table of marks with their words, without those that are not kept; -1 is an empty place."""
    mask = len(table) - 1
    for word in range(len(marks)):
        if since[word] < NEVER:
            place = int(marks[word]) & mask
            while table[place] >= 0:
                place = (place + 1) & mask
            table[place] = (int(marks[word]) << WORD_BITS) | word


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _weigh(
    kind: int, count: int, field: int, word: int, length: float, weights: F64, inverse: F64, average: F64
) -> float:
    """What a word's occurrences in one field add: to its score, or for other scorings to their number."""
    if kind != BM25:
        return float(count)
    if average[field] <= 0:
        return 0.0
    share = count * (K1 + 1) / (count + K1 * (1 - B + B * length / average[field]))
    return float(weights[field] * inverse[field, word] * share)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _finish(kind: int, value: float, word: int, length: float, inverse: F64, static: float) -> float:
    if value <= 0 or kind == BM25:
        return value
    return static if kind == STATIC else float(np.sqrt(value / max(length, 1.0)) * inverse[0, word] ** 2)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def keep_length(length: int) -> float:
    """The length as one byte keeps it (`scoring.stored_length`): exact up to 40, then by four leading bits above 24."""
    rest, shift = length - 24, 0
    if rest < 16:
        return float(length)
    while rest >> shift >= 16:
        shift += 1
    return float(24 + ((rest >> shift) << shift))


@numba.njit(cache=True, nogil=True, error_model="numpy")
def score_both(
    starts: I64, words: I32, counts: I32, lengths: I64, present: npt.NDArray[np.bool_], data: U8, ends: I64,
    generations: I64, table: I64, since: I64, kind: int, weights: F64, inverse: F64, average: F64,
    static: F64,
) -> tuple[I64, I32, F64, F64]:  # fmt: skip
    """By page, the words that its record (old) or its texts (new) have, with both scores.

    A page without a record (generation below 0) has no words. The old score is NaN where the record is from before
    the word was kept.
    """
    pages = len(present)
    most = len(words) + len(data) // ENTRY_BYTES + 1
    out_starts = np.zeros(pages + 1, dtype=np.int64)
    out_words = np.empty(most, dtype=np.int32)
    old, new = np.zeros(most), np.zeros(most)
    last = np.full(len(since), -1, dtype=np.int64)
    where = np.zeros(len(since), dtype=np.int64)
    mask = len(table) - 1
    made = 0
    for page in range(pages):
        begin = made
        total_old, total_new = 0, 0
        if generations[page] >= 0 and ends[page + 1] - ends[page] >= HEAD_BYTES:
            head = ends[page]
            at = head + HEAD_BYTES
            for field in range(FIELDS):
                # what others write about a page is not changed by fetching it: both versions have today's anchors
                shared = field == ANCHORS and present[page]
                text = FIELDS * page + field
                size_old = lengths[text] if shared else _read_u32(data, head + 4 * field)
                size_new = lengths[text] if present[page] else 0
                total_old += size_old
                total_new += size_new
                length = keep_length(size_old)
                while at + ENTRY_BYTES <= ends[page + 1] and data[at + 4] <= field:
                    mark, count = _read_u32(data, at), int(data[at + 5])
                    at += ENTRY_BYTES
                    slot = mark & mask
                    while table[slot] >= 0 and table[slot] >> WORD_BITS != mark:
                        slot = (slot + 1) & mask
                    if table[slot] < 0 or shared:
                        continue
                    word = table[slot] & WORD_MASK
                    if last[word] != page:
                        last[word], where[word] = page, made
                        out_words[made] = word
                        made += 1
                    old[where[word]] += _weigh(kind, count, field, word, length, weights, inverse, average)
                length = keep_length(size_new)
                for place in range(starts[text], starts[text + 1]):
                    word = words[place]
                    if since[word] >= NEVER:
                        continue
                    if last[word] != page:
                        last[word], where[word] = page, made
                        out_words[made] = word
                        made += 1
                    count = min(counts[place], MOST_COUNTED)
                    value = _weigh(kind, count, field, word, length, weights, inverse, average)
                    new[where[word]] += value
                    if shared:
                        old[where[word]] += value
            for place in range(begin, made):
                word = out_words[place]
                worth = static[page] if kind == STATIC else 0.0
                old[place] = _finish(kind, old[place], word, total_old, inverse, worth)
                new[place] = _finish(kind, new[place], word, total_new, inverse, worth)
                if since[word] > generations[page]:
                    old[place] = np.nan
        out_starts[page + 1] = made
    return out_starts, out_words[:made].copy(), old[:made].copy(), new[:made].copy()
