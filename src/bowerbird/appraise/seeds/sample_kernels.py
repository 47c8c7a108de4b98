"""Numba kernels of reverse reachability: which drawn targets lie within so many links of each page, as bits.

A word holds 64 targets. Many at once, all pages are gone through and take over the bits of the pages they link to, once
a hop; where few pages reach a target, it is searched backwards from the targets instead.
"""

from __future__ import annotations

import numba
import numpy as np

from bowerbird.appraise.seeds.reach_kernels import F64, I64, U8, U32, U64

WORDS = 8  # of one block: a line of memory
_FULL = np.uint64(0xFFFFFFFFFFFFFFFF)


@numba.njit(cache=True, nogil=True)
def pull_bits(
    starts: I64, targets: U32, bits: U64, any_bit: U8, new_bits: U64, new_any: U8, low: int, high: int
) -> int:
    """For pages low…high-1: what they had, and what the pages that they link to had. Returns how many pages changed.

    `any_bit` is by page whether any of its bits is set: it spares a look at most lines of memory in early rounds.
    """
    changed = 0
    mine = np.empty(WORDS, np.uint64)
    for page in range(low, high):
        for j in range(WORDS):
            mine[j] = bits[page, j]
        any_here = any_bit[page]
        for k in range(starts[page], starts[page + 1]):
            target = targets[k]
            if any_bit[target]:
                every = _FULL
                for j in range(WORDS):
                    mine[j] |= bits[target, j]
                    every &= mine[j]
                any_here = 1
                if every == _FULL:
                    break
        differs = np.uint64(0)
        for j in range(WORDS):
            differs |= mine[j] ^ bits[page, j]
            new_bits[page, j] = mine[j]
        new_any[page] = any_here
        changed += differs != 0
    return changed


@numba.njit(cache=True, nogil=True)
def search_back(into_starts: I64, into_sources: U32, drawn: I64, hops: int, marks: U64, lines: U32) -> int:
    """Pages that reach any of up to 64 drawn targets within `hops` links: how many, in the third row of `lines`.

    The first row of `marks` then says which targets; the caller clears it. The other two are zero before and after.
    """
    seen, now, later = marks[0], marks[1], marks[2]
    line, coming, found = lines[0], lines[1], lines[2]
    known = 0
    for i in range(len(drawn)):
        page = drawn[i]
        if seen[page] == 0:
            found[known] = page
            line[known] = page
            known += 1
        seen[page] |= np.uint64(1) << np.uint64(i)
        now[page] = seen[page]
    inside = known
    for _ in range(hops):
        arrived = 0
        for place in range(inside):
            page = line[place]
            mine = now[page]
            now[page] = 0
            for k in range(into_starts[page], into_starts[page + 1]):
                source = into_sources[k]
                new = mine & ~seen[source]
                if new == 0:
                    continue
                if seen[source] == 0:
                    found[known] = source
                    known += 1
                if later[source] == 0:
                    coming[arrived] = source
                    arrived += 1
                seen[source] |= new
                later[source] |= new
        line, coming = coming, line
        now, later = later, now
        inside = arrived
        if inside == 0:
            break
    for place in range(inside):
        now[line[place]] = 0
    return known


@numba.njit(cache=True, nogil=True)
def take_words(seen: U64, found: U32, words: U64) -> None:
    """The words of the pages found, which are cleared."""
    for place in range(len(found)):
        words[place] = seen[found[place]]
        seen[found[place]] = 0


@numba.njit(cache=True, nogil=True)
def count_words(pages: U32, lengths: I64) -> None:
    """How many words each page has."""
    for place in range(len(pages)):
        lengths[pages[place]] += 1


@numba.njit(cache=True, nogil=True)
def place_words(pages: U32, words: U64, block: int, cursor: I64, out_words: U64, out_blocks: U32) -> None:
    """Put the words of one block behind the earlier ones of their pages."""
    for place in range(len(pages)):
        at = cursor[pages[place]]
        out_words[at] = words[place]
        out_blocks[at] = block
        cursor[pages[place]] = at + 1


@numba.njit(cache=True, nogil=True)
def _ones(word: np.uint64) -> np.int64:
    """The bits of a word that are set."""
    word -= (word >> np.uint64(1)) & np.uint64(0x5555555555555555)
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((word * np.uint64(0x0101010101010101)) >> np.uint64(56))


@numba.njit(cache=True, nogil=True)
def weigh_rows(bits: U64, pages: I64, open_above: U64, open_below: U64, value: F64, below: F64) -> None:
    """Targets that are not covered yet in each page's row of bits: those above zero less those below; those below."""
    for i in range(len(pages)):
        page = pages[i]
        plus, minus = np.int64(0), np.int64(0)
        for j in range(bits.shape[1]):
            plus += _ones(bits[page, j] & open_above[j])
            minus += _ones(bits[page, j] & open_below[j])
        value[i] = plus - minus
        below[i] = minus


@numba.njit(cache=True, nogil=True)
def weigh_words(
    starts: I64, words: U64, blocks: U32, pages: I64, open_above: U64, open_below: U64, value: F64, below: F64
) -> None:
    """The same where a page has words of some blocks only."""
    for i in range(len(pages)):
        page = pages[i]
        plus, minus = np.int64(0), np.int64(0)
        for k in range(starts[page], starts[page + 1]):
            plus += _ones(words[k] & open_above[blocks[k]])
            minus += _ones(words[k] & open_below[blocks[k]])
        value[i] = plus - minus
        below[i] = minus


@numba.njit(cache=True, nogil=True)
def sum_bytes(column: F64, tables: F64) -> None:
    """For each block of 64 targets and each byte of a word: the sum of the column over the bits of all 256 values."""
    for block in range(tables.shape[0]):
        for byte in range(8):
            for pattern in range(1, 256):
                low = 0
                while not (pattern >> low) & 1:
                    low += 1
                place = block * 64 + byte * 8 + low
                amount = column[place] if place < len(column) else 0.0
                tables[block, byte, pattern] = tables[block, byte, pattern & (pattern - 1)] + amount


@numba.njit(cache=True, nogil=True)
def sum_rows(bits: U64, tables: F64, low: int, high: int, out: F64) -> None:
    """The sum over each page's bits, by the tables of `sum_bytes`."""
    for page in range(low, high):
        total = 0.0
        for j in range(bits.shape[1]):
            word = bits[page, j]
            byte = 0
            while word != 0:
                total += tables[j, byte, word & np.uint64(255)]
                word >>= np.uint64(8)
                byte += 1
        out[page] = total


@numba.njit(cache=True, nogil=True)
def sum_words(starts: I64, words: U64, blocks: U32, tables: F64, low: int, high: int, out: F64) -> None:
    """The same where a page has words of some blocks only."""
    for page in range(low, high):
        total = 0.0
        for k in range(starts[page], starts[page + 1]):
            word = words[k]
            byte = 0
            while word != 0:
                total += tables[blocks[k], byte, word & np.uint64(255)]
                word >>= np.uint64(8)
                byte += 1
        out[page] = total
