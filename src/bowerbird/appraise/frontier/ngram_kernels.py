"""Numba kernels of the n-gram index: hashing, merging, matching, overlap. They know words by number only."""

from __future__ import annotations

import numba
import numpy as np
import numpy.typing as npt

from bowerbird.model.page_words import BREAK

I64 = npt.NDArray[np.int64]
U32 = npt.NDArray[np.uint32]
U64 = npt.NDArray[np.uint64]
F32 = npt.NDArray[np.float32]
F64 = npt.NDArray[np.float64]
B1 = npt.NDArray[np.bool_]

_BREAK = np.uint32(BREAK)


@numba.njit(cache=True, nogil=True, inline="always")
def _mix(value: np.uint64) -> np.uint64:
    """Spread the bits of a 64-bit number."""
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


@numba.njit(cache=True, nogil=True)
def hash_grams(starts: I64, words: U32, hashes: U64, rows: I64, shortest: I64, longest: int) -> tuple[U64, U32, I64]:
    """The n-grams of the rows, `shortest[i]` <= n <= `longest`, each with its row, and where those of each row begin.

    A gram may come twice in a row.
    """
    total = 0
    for row in rows:
        total += starts[row + 1] - starts[row]
    grams = np.empty(total * longest, np.uint64)
    owners = np.empty(len(grams), np.uint32)
    begins = np.zeros(len(rows) + 1, np.int64)
    at = 0
    for i in range(len(rows)):
        row = rows[i]
        for first in range(starts[row], starts[row + 1]):
            gram = np.uint64(0)
            for length in range(1, longest + 1):
                place = first + length - 1
                if place >= starts[row + 1] or words[place] == _BREAK:
                    break
                gram = _mix(gram * np.uint64(3) + hashes[words[place]])
                if length >= shortest[i]:
                    grams[at] = gram
                    owners[at] = row
                    at += 1
        begins[i + 1] = at
    return grams[:at], owners[:at], begins


@numba.njit(cache=True, nogil=True)
def sort_postings(grams: U64, pages: U32) -> tuple[U64, U32]:
    """Sorted by gram, each pair once; pages must come ascending, and stay so within a gram.

    First into buckets by the leading bits, which are even as grams are hashes, then within each.
    """
    bits = 0
    while (len(grams) >> bits) > 64 and bits < 20:
        bits += 1
    shift = np.uint64(64 - bits)
    bounds = np.zeros((1 << bits) + 1, np.int64)
    if bits:
        for gram in grams:
            bounds[np.int64(gram >> shift) + 1] += 1
    else:
        bounds[1] = len(grams)
    for bucket in range(1 << bits):
        bounds[bucket + 1] += bounds[bucket]
    cursor = bounds[:-1].copy()
    sorted_grams = np.empty_like(grams)
    sorted_pages = np.empty_like(pages)
    for i in range(len(grams)):
        place = np.int64(grams[i] >> shift) if bits else np.int64(0)
        sorted_grams[cursor[place]] = grams[i]
        sorted_pages[cursor[place]] = pages[i]
        cursor[place] += 1
    kept = 0
    for bucket in range(1 << bits):
        some, owners = (
            sorted_grams[bounds[bucket] : bounds[bucket + 1]],
            sorted_pages[bounds[bucket] : bounds[bucket + 1]],
        )
        order = np.argsort(some, kind="mergesort")
        some, owners = some[order], owners[order]
        for i in range(len(some)):
            if i and some[i] == some[i - 1] and owners[i] == owners[i - 1]:
                continue
            sorted_grams[kept] = some[i]
            sorted_pages[kept] = owners[i]
            kept += 1
    return sorted_grams[:kept].copy(), sorted_pages[:kept].copy()


@numba.njit(cache=True, nogil=True)
def merge_postings(grams: U64, pages: U32, other_grams: U64, other_pages: U32) -> tuple[U64, U32]:
    """Two posting lists, each sorted by (gram, page), as one, each pair once."""
    size, other_size = len(grams), len(other_grams)
    merged = np.empty(size + other_size, np.uint64)
    owners = np.empty(size + other_size, np.uint32)
    i = j = at = 0
    while i < size or j < other_size:
        if j >= other_size:
            mine = True
        elif i >= size:
            mine = False
        else:
            mine = grams[i] < other_grams[j] or (grams[i] == other_grams[j] and pages[i] <= other_pages[j])
        gram, page = (grams[i], pages[i]) if mine else (other_grams[j], other_pages[j])
        if mine:
            i += 1
        else:
            j += 1
        if at and merged[at - 1] == gram and owners[at - 1] == page:
            continue
        merged[at] = gram
        owners[at] = page
        at += 1
    return merged[:at], owners[:at]


@numba.njit(cache=True, nogil=True, inline="always")
def _holds(pages: U32, low: int, high: int, page: np.uint32) -> bool:
    while low < high:
        middle = (low + high) // 2
        if pages[middle] < page:
            low = middle + 1
        elif pages[middle] > page:
            high = middle
        else:
            return True
    return False


@numba.njit(cache=True, nogil=True)
def match_queries(
    begins: I64, need: I64, low: I64, high: I64, pages: U32, new_low: I64, new_high: I64, new_pages: U32, open_: B1
) -> tuple[I64, U32]:
    """Per query the pages that have at least `need` of its grams, each page once, where `open_`.

    Gram g of the queries is in `pages[low[g]:high[g]]` and in `new_pages[new_low[g]:new_high[g]]`. A page with
    `need` of m grams has one of the m - need + 1 rarest: only their pages are looked at.
    """
    out_starts = np.zeros(len(need) + 1, np.int64)
    out = np.empty(1024, np.uint32)
    at = 0
    for query in range(len(need)):
        first, last = begins[query], begins[query + 1]
        wanted = need[query]
        size = high[first:last] - low[first:last] + new_high[first:last] - new_low[first:last]
        order = np.argsort(size)
        probes = last - first - wanted + 1
        began = at
        for place in range(probes):
            gram = first + order[place]
            length = size[order[place]]
            if at + length > len(out):
                grown = np.empty(max(2 * len(out), at + length), np.uint32)
                grown[:at] = out[:at]
                out = grown
            old = high[gram] - low[gram]
            for i in range(length):
                page = pages[low[gram] + i] if i < old else new_pages[new_low[gram] + i - old]
                if not open_[page]:
                    continue
                found = 1
                for later in range(place + 1, last - first):
                    if found >= wanted or found + (last - first - later) < wanted:
                        break
                    other = first + order[later]
                    if _holds(pages, low[other], high[other], page) or _holds(
                        new_pages, new_low[other], new_high[other], page
                    ):
                        found += 1
                if found >= wanted:
                    out[at] = page
                    at += 1
        if at - began > 1:
            mine = out[began:at]
            mine.sort()
            kept = began
            for i in range(began, at):
                if i == began or out[i] != out[i - 1]:
                    out[kept] = out[i]
                    kept += 1
            at = kept
        out_starts[query + 1] = at
    return out_starts, out[:at].copy()


@numba.njit(cache=True, nogil=True)
def measure_overlap(
    pair_queries: I64, pair_pages: U32, query_starts: I64, query_words: I64, starts: I64, words: U32, most: int
) -> F32:
    """Pairs × 4: share of the query's words in the URL, share of the URL's words in the query, texts that are the
    query exactly, share of the texts that have all of its words. Reads at most `most` words of a page.

    `query_words` are word numbers of the pages' vocabulary, in reading order; -1 for a word no page has.
    """
    out = np.zeros((len(pair_pages), 4), np.float32)
    for pair in range(len(pair_pages)):
        query, page = pair_queries[pair], np.int64(pair_pages[pair])
        asked = query_words[query_starts[query] : query_starts[query + 1]]
        size = len(asked)
        seen = np.zeros(size, np.bool_)
        end = min(starts[page + 1], starts[page] + most)
        text = length = common = exact = full = 0
        same = True
        for place in range(starts[page], end + 1):
            if place < end and words[place] != _BREAK:
                word = np.int64(words[place])
                same = same and length < size and asked[length] == word
                hit = False
                for i in range(size):
                    if asked[i] == word:
                        seen[i] = True
                        hit = True
                common += hit
                length += 1
                continue
            has = 0
            for i in range(size):
                has += seen[i]
            if text == 0:
                out[pair, 0] = has / max(size, 1)
                out[pair, 1] = common / max(length, 1)
            exact += same and length == size and size > 0
            full += has == size
            text += 1
            length = common = 0
            same = True
            seen[:] = False
        out[pair, 2] = exact
        out[pair, 3] = full / max(text, 1)
    return out
