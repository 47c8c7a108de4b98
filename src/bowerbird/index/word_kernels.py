"""Compiled loops over texts as UTF-8 bytes: counting the words of a vocabulary, and adding two counts up."""

from __future__ import annotations

import numba
import numpy as np
import numpy.typing as npt

U8 = npt.NDArray[np.uint8]
I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]
U64 = npt.NDArray[np.uint64]
BoolArray = npt.NDArray[np.bool_]

#: classes of bytes: what separates words, and the bytes of letters beyond ASCII; all others stand for a letter
SEPARATES, BEYOND = 0, 1
#: code points from here on are not looked up
FIRST_UNSURE = 0x3000

#: a place of a table of words holds a number and the other bits of a hash
NUMBER_BITS = np.uint64((1 << 24) - 1)
HASH_BITS = ~NUMBER_BITS
#: a sieve is of 64-bit words; a hash's first bits say which one, the next six which bit
SIEVE_WORDS = 1 << 13
SIEVE_WORD = np.uint64(64 - 13)
SIEVE_BIT = np.uint64(64 - 19)

_BASIS = np.uint64(14695981039346656037)
_PRIME = np.uint64(1099511628211)


@numba.njit(cache=True, nogil=True)
def _mix(code: np.uint64) -> np.uint64:
    code ^= code >> np.uint64(32)
    code *= np.uint64(0x9E3779B97F4A7C15)
    return code ^ (code >> np.uint64(29))


@numba.njit(cache=True, nogil=True)
def hash_lines(data: U8, out: U64) -> None:
    """The hash of each line of `data`; never 0, which stands for an empty place in a table."""
    at = 0
    for line in range(len(out)):
        code = _BASIS
        while data[at] != 10:
            code = (code ^ np.uint64(data[at])) * _PRIME
            at += 1
        at += 1
        code = _mix(code)
        out[line] = code if code else np.uint64(1)


@numba.njit(cache=True, nogil=True)
def fill_table(hashes: U64, table: U64, sieve: U64) -> None:
    """Put hashes into an open-addressing table, their numbers in place of the lowest bits; 0 is an empty place.

    `sieve` has a bit for the first bits of each: small enough for a processor to have it at hand.
    """
    mask = np.uint64(len(table) - 1)
    for number in range(len(hashes)):
        place = hashes[number] & mask
        while table[place]:
            place = (place + np.uint64(1)) & mask
        table[place] = (hashes[number] & HASH_BITS) | np.uint64(number)
        sieve[hashes[number] >> SIEVE_WORD] |= np.uint64(1) << ((hashes[number] >> SIEVE_BIT) & np.uint64(63))


@numba.njit(cache=True, nogil=True)
def count_words(
    data: U8, bounds: U64, classes: U8, separators: BoolArray, normalised: BoolArray, most_bytes: int, table: U64,
    sieve: U64, vocabulary: int, words: I32, counts: I32, starts: I64, lengths: I64, spans: I64,
) -> int:  # fmt: skip
    """Count the words of a vocabulary in texts. Text i ends at `bounds[i]`, its last byte separates.

    `spans` gets (text, start, end) of each run of letters that has one beyond ASCII and none that surely separates
    (`separators`, by code point); their number is returned. A text with a byte of `normalised` has to be normalised
    as a whole first: it has no words here, and one span that begins at -1.
    """
    one = np.uint64(1)  # an unsigned place needs no check for being negative
    mask = np.uint64(len(table) - 1)
    longest = np.uint64(most_bytes)
    where = np.full(vocabulary, -1, dtype=np.int32)
    made, found = 0, 0
    at = np.uint64(0)
    for text in range(len(bounds)):
        first, first_span = made, found
        starts[text] = first
        length = 0
        end = bounds[text]
        while at < end:
            letter = classes[data[at]]
            if letter == SEPARATES:
                at += one
                continue
            begin = at
            code = _BASIS
            while letter > BEYOND:
                code = (code ^ np.uint64(letter)) * _PRIME
                at += one
                letter = classes[data[at]]
            if letter == BEYOND:
                if normalised[data[at]]:
                    for place in range(first, made):
                        where[words[place]] = -1
                    made, found, length = first, first_span + 1, 0
                    spans[first_span, 0], spans[first_span, 1] = text, -1
                    at = end
                    continue
                size, separates = _look(data, at, separators)
                if at == begin and separates:
                    at += size
                    continue
                if not separates:
                    at, barred = _skip_run(data, at, classes, separators, normalised)
                    if not barred:  # else the next byte tells
                        spans[found, 0], spans[found, 1], spans[found, 2] = text, begin, at
                        found += 1
                    continue
            if at - begin <= longest:
                length += 1
                code = _mix(code)
                if not (sieve[code >> SIEVE_WORD] >> ((code >> SIEVE_BIT) & np.uint64(63))) & one:
                    continue
                slot = code & mask
                held = table[slot]
                while held and (held ^ code) & HASH_BITS:
                    slot = (slot + one) & mask
                    held = table[slot]
                if held:
                    word = np.int64(held & NUMBER_BITS)
                    if where[word] < first:
                        where[word] = made
                        words[made] = word
                        counts[made] = 1
                        made += 1
                    else:
                        counts[where[word]] += 1
        lengths[text] = length
    starts[len(bounds)] = made
    return found


@numba.njit(cache=True, nogil=True)
def _look(data: U8, at: np.uint64, separators: BoolArray) -> tuple[np.uint64, bool]:
    """The bytes of a letter beyond ASCII, and whether it surely separates words."""
    lead = int(data[at])
    second, third = int(data[at + np.uint64(1)]) & 0x3F, 0
    if lead < 0xE0:
        return np.uint64(2), separators[((lead & 0x1F) << 6) | second]
    if lead >= 0xF0:
        return np.uint64(4), False
    third = int(data[at + np.uint64(2)]) & 0x3F
    point = ((lead & 0x0F) << 12) | (second << 6) | third
    return np.uint64(3), point < FIRST_UNSURE and separators[point]


@numba.njit(cache=True, nogil=True)
def _skip_run(
    data: U8, at: np.uint64, classes: U8, separators: BoolArray, normalised: BoolArray
) -> tuple[np.uint64, bool]:
    """The end of a run of letters; and whether it ends at a letter for which the text must be normalised."""
    letter = classes[data[at]]
    while letter != SEPARATES:
        if letter == BEYOND:
            if normalised[data[at]]:
                return at, True
            size, separates = _look(data, at, separators)
            if separates:
                break
            at += size
        else:
            at += np.uint64(1)
        letter = classes[data[at]]
    return at, False


@numba.njit(cache=True, nogil=True)
def add_counts(
    starts: I64, words: I32, counts: I32, texts: I64, more_starts: I64, more_words: I32, more_counts: I32
) -> tuple[I64, I32, I32]:
    """Counts of texts with those of some of them (`texts`, ascending) added."""
    size = len(words) + len(more_words)
    out_starts = np.zeros(len(starts), dtype=np.int64)
    out_words = np.empty(size, dtype=np.int32)
    out_counts = np.empty(size, dtype=np.int32)
    made = 0
    more = 0
    for text in range(len(starts) - 1):
        begin = made
        for place in range(starts[text], starts[text + 1]):
            out_words[made] = words[place]
            out_counts[made] = counts[place]
            made += 1
        if more < len(texts) and texts[more] == text:
            until = made
            for place in range(more_starts[more], more_starts[more + 1]):
                known = begin
                while known < until and out_words[known] != more_words[place]:
                    known += 1
                if known < until:
                    out_counts[known] += more_counts[place]
                else:
                    out_words[made] = more_words[place]
                    out_counts[made] = more_counts[place]
                    made += 1
            more += 1
        out_starts[text + 1] = made
    return out_starts, out_words[:made].copy(), out_counts[:made].copy()
