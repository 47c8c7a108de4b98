"""Texts as numbers of their terms, fast enough for every version of every page: `[a-z0-9]+` of the lower-cased text.

A term is known by a 64-bit hash of its letters; among a million terms the chance that two share one is below 1e-7.
"""

from __future__ import annotations

from collections.abc import Sequence

import numba
import numpy as np
import numpy.typing as npt

from bowerbird.lab.sketches_data import STOP_WORDS

U8 = npt.NDArray[np.uint8]
I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]
U64 = npt.NDArray[np.uint64]

#: texts are handed to the kernel in pieces of about this size
PIECE_BYTES = 1 << 22
SHINGLE_TOKENS = 5


class TermNumbers:
    """Numbers of terms, from 0 in the order in which they were first met; stop words have none."""

    def __init__(self) -> None:
        self._hashes: U64 = np.zeros(1 << 12, dtype=np.uint64)
        self._numbers: I32 = np.full(1 << 12, -1, dtype=np.int32)
        self._met = 0
        self.read(sorted(STOP_WORDS))

    def __len__(self) -> int:
        return self._met - len(STOP_WORDS)

    def read(self, texts: Sequence[str]) -> tuple[I64, I32]:
        """The terms of the texts in their order: text i has `terms[starts[i]:starts[i + 1]]`."""
        starts, parts = [np.zeros(1, dtype=np.int64)], [np.zeros(0, dtype=np.int32)]
        first, done = 0, 0
        while first < len(texts):
            piece: list[bytes] = []
            size = 0
            while first < len(texts) and (not piece or size < PIECE_BYTES):
                piece.append(texts[first].lower().encode("utf-8"))
                size += len(piece[-1])
                first += 1
            ends, terms = self._read_piece(piece)
            starts.append(ends + done)
            parts.append(terms)
            done += len(terms)
        return np.concatenate(starts), np.concatenate(parts)

    def _read_piece(self, piece: Sequence[bytes]) -> tuple[I64, I32]:
        data = np.frombuffer(b"\n".join(piece) + b"\n", dtype=np.uint8)
        bounds = np.cumsum(np.fromiter((len(text) + 1 for text in piece), dtype=np.int64, count=len(piece)))
        most = len(data) // 2 + 1
        room = len(self._hashes)
        while room < 2 * (self._met + most):
            room *= 2
        if room > len(self._hashes):
            hashes, numbers = np.zeros(room, dtype=np.uint64), np.full(room, -1, dtype=np.int32)
            _move_terms(self._hashes, self._numbers, hashes, numbers)
            self._hashes, self._numbers = hashes, numbers
        out = np.empty(most, dtype=np.int32)
        ends = np.empty(len(piece), dtype=np.int64)
        stops = len(STOP_WORDS) if self._met else 0
        count, self._met = _number_terms(data, bounds, self._hashes, self._numbers, self._met, stops, out, ends)
        return ends, out[:count].copy()


@numba.njit(cache=True, nogil=True)
def _number_terms(
    data: U8, bounds: I64, hashes: U64, numbers: I32, met: int, stops: int, out: I32, ends: I64
) -> tuple[int, int]:
    """Numbers of all terms into `out`, stop words left out; a text ends at its bound, with a line end."""
    mask = np.uint64(len(hashes) - 1)
    count = 0
    at = 0
    for text in range(len(bounds)):
        inside = False
        code = np.uint64(0)
        while at < bounds[text]:
            letter = data[at]
            at += 1
            if (letter >= 97 and letter <= 122) or (letter >= 48 and letter <= 57):
                if not inside:
                    code = np.uint64(14695981039346656037)
                    inside = True
                code = (code ^ np.uint64(letter)) * np.uint64(1099511628211)
                continue
            if not inside:
                continue
            inside = False
            code ^= code >> np.uint64(32)
            code *= np.uint64(0x9E3779B97F4A7C15)
            code ^= code >> np.uint64(29)
            place = code & mask
            while numbers[place] >= 0 and hashes[place] != code:
                place = (place + np.uint64(1)) & mask
            if numbers[place] < 0:
                hashes[place] = code
                numbers[place] = met
                met += 1
            if numbers[place] >= stops:
                out[count] = numbers[place] - stops
                count += 1
        ends[text] = count
    return count, met


@numba.njit(cache=True, nogil=True)
def _move_terms(hashes: U64, numbers: I32, wider_hashes: U64, wider_numbers: I32) -> None:
    mask = np.uint64(len(wider_hashes) - 1)
    for old in range(len(hashes)):
        if numbers[old] < 0:
            continue
        place = hashes[old] & mask
        while wider_numbers[place] >= 0:
            place = (place + np.uint64(1)) & mask
        wider_hashes[place] = hashes[old]
        wider_numbers[place] = numbers[old]


@numba.njit(cache=True, nogil=True)
def _shingles(tokens: I32, size: int) -> U64:
    """Distinct runs of `size` tokens, as ascending hashes; a shorter text is one run."""
    count = max(len(tokens) - size + 1, 1)
    found = np.empty(count, dtype=np.uint64)
    for first in range(count):
        code = np.uint64(14695981039346656037)
        for place in range(first, min(first + size, len(tokens))):
            code = (code ^ np.uint64(tokens[place] + 1)) * np.uint64(0x9E3779B97F4A7C15)
            code ^= code >> np.uint64(31)
        found[first] = code
    return np.unique(found)


@numba.njit(cache=True, nogil=True)
def changed_shares(starts: I64, tokens: I32, pages: I32, size: int) -> npt.NDArray[np.float64]:
    """By version, the share of shingles of it and of the page's version before that only one of them has; first: 0."""
    shares = np.zeros(len(pages))
    before = _shingles(tokens[:0], size)
    for version in range(len(pages)):
        now = _shingles(tokens[starts[version] : starts[version + 1]], size)
        if version and pages[version] == pages[version - 1]:
            shares[version] = _apart(before, now)
        before = now
    return shares


@numba.njit(cache=True, nogil=True)
def shares_between(starts: I64, tokens: I32, old: I64, new: I64, size: int) -> npt.NDArray[np.float64]:
    """By pair of versions, the share of shingles that only one of them has."""
    shares = np.zeros(len(old))
    for i in range(len(old)):
        before = _shingles(tokens[starts[old[i]] : starts[old[i] + 1]], size)
        shares[i] = _apart(before, _shingles(tokens[starts[new[i]] : starts[new[i] + 1]], size))
    return shares


@numba.njit(cache=True, nogil=True)
def _apart(before: U64, now: U64) -> float:
    """1 - the resemblance of two ascending sets."""
    both, i, j = 0, 0, 0
    while i < len(before) and j < len(now):
        if before[i] == now[j]:
            both, i, j = both + 1, i + 1, j + 1
        elif before[i] < now[j]:
            i += 1
        else:
            j += 1
    return 1.0 - both / (len(before) + len(now) - both)
