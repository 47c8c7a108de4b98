"""The kernel of the sieve: one pass over HTML bytes by the tokeniser rules of the HTML standard.

The vocabulary comes in as tables, and all that the compiled code freezes is in this file: a cached kernel
is renewed when, and only when, its own file changes.
"""

from __future__ import annotations

import numba
import numpy as np
import numpy.typing as npt

Bytes8 = npt.NDArray[np.uint8]
Ints64 = npt.NDArray[np.int64]

# What becomes of a tag.
INLINE = 0  # dropped without trace; so is every unknown tag
BLOCK = 1  # dropped, but separates words
FRAME = 2  # kept, separates words: it shapes the page
ANCHOR = 3
IMAGE = 4  # kept inside an anchor, for its alt text
VOID = 5  # kept: it carries information in its attributes
RAW = 6  # dropped with its content
IFRAME = 7  # kept without its content
TITLE = 8
SVG = 9  # dropped with its text, but not with its links

# What an attribute is good for, other than being kept.
ALT = 2
HIDDEN = 3
ROLE = 4

# Bits of `Sieved.seen`.
SEEN_AREA = 1
SEEN_FRAME = 2
SEEN_BOILERPLATE = 4
SEEN_HIDDEN = 8
SEEN_ROLE = 16
SEEN_MAIN = 32
SEEN_ARTICLE = 64
SEEN_IMAGE = 128

# Rows of the tables: keys and values by hash; the last one has the class of each byte of text.
TAG_ROW = 0
ATTR_ROW = 1
ROLE_ROW = 2
SPACE_ROW = 3
SPACE_NAME_ROW = 4
SPACE_VALUE_ROW = 5
CLASS_ROW = 6
TABLE_SLOTS = 512

_MAX_DEPTH = 400
_MAX_TAGS = 10_000  # a page with more is never read with all its tags

# Bytes of markup.
_LT, _GT, _SLASH, _EQUALS = 60, 62, 47, 61
_BANG, _QUESTION, _HYPHEN = 33, 63, 45
_QUOTE, _APOSTROPHE = 34, 39
_AMPERSAND, _HASH, _SEMICOLON = 38, 35, 59


@numba.njit(cache=True, nogil=True, inline="always")
def _is_space(c: int) -> bool:
    return c == 32 or (9 <= c <= 13 and c != 11)


@numba.njit(cache=True, nogil=True, inline="always")
def _is_letter(c: int) -> bool:
    return 97 <= (c | 32) <= 122


@numba.njit(cache=True, nogil=True)
def _look_up(code: int, tables: Ints64, row: int) -> int:
    slot = (code ^ (code >> 13)) & (TABLE_SLOTS - 1)
    while tables[row, 0, slot] >= 0:
        if tables[row, 0, slot] == code:
            return int(tables[row, 1, slot])
        slot = (slot + 1) & (TABLE_SLOTS - 1)
    return 0


@numba.njit(cache=True, nogil=True)
def _hash_range(src: Bytes8, start: int, end: int) -> int:
    code = 0
    for i in range(start, end):
        c = int(src[i])
        if 65 <= c <= 90:
            c |= 32
        code = (code * 131 + c) & 0xFFFFFFFFFFF
    return code


@numba.njit(cache=True, nogil=True)
def _find_close(src: Bytes8, start: int, name_start: int, name_end: int) -> int:
    """Where the next `</name` begins, or the length of the page."""
    n = len(src)
    size = name_end - name_start
    i = start
    while i + size + 2 <= n:
        if src[i] == _LT and src[i + 1] == _SLASH:
            k = 0
            while k < size and (src[i + 2 + k] | 32) == (src[name_start + k] | 32):
                k += 1
            if k == size:
                after = i + 2 + size
                if after >= n or _is_space(src[after]) or src[after] == _GT or src[after] == _SLASH:
                    return i
            i += 2
        else:
            i += 1
    return n


@numba.njit(cache=True, nogil=True)
def _measure_space(src: Bytes8, i: int, tables: Ints64) -> int:
    """How many bytes at `i` write one white space other than an ASCII one; 0 if none do."""
    n = len(src)
    c = src[i]
    if c != _AMPERSAND:
        for width in (2, 3):
            if i + width <= n and _look_up(_hash_range(src, i, i + width), tables, SPACE_ROW) == width:
                return width
        return 0
    p = i + 1
    if p < n and src[p] == _HASH:
        p += 1
        base = 10
        if p < n and src[p] | 32 == 120:
            base = 16
            p += 1
        value = 0
        first = p
        while p < n and p - first < 9:
            digit = int(src[p]) - 48
            if digit > 9:  # letters only: the bytes just above "9" are punctuation
                digit = (int(src[p]) | 32) - 87 if _is_letter(src[p]) else base
            if digit < 0 or digit >= base:
                break
            value = value * base + digit
            p += 1
        if p == first or _look_up(value, tables, SPACE_VALUE_ROW) == 0:
            return 0
        return p - i + (1 if p < n and src[p] == _SEMICOLON else 0)
    if p + 3 < n and src[p] == 110 and src[p + 1] == 98 and src[p + 2] == 115 and src[p + 3] == 112:
        return 6 if p + 4 < n and src[p + 4] == _SEMICOLON else 5  # nbsp, the one that needs no semicolon
    code = 0
    while p < n and p - i < 24:
        c = src[p]
        if not (_is_letter(c) or 48 <= c <= 57):
            break
        code = (code * 131 + int(c)) & 0xFFFFFFFFFFF
        p += 1
    if p < n and src[p] == _SEMICOLON and _look_up(code, tables, SPACE_NAME_ROW) > 0:
        return p + 1 - i
    return 0


@numba.njit(cache=True, nogil=True)
def _skip_markup(src: Bytes8, start: int) -> int:
    """The position after the comment, doctype or processing instruction at `start`."""
    n = len(src)
    i = start + 2
    if start + 3 < n and src[start + 1] == _BANG and src[start + 2] == _HYPHEN and src[start + 3] == _HYPHEN:
        i = start + 4
        if i < n and src[i] == _GT:
            return i + 1
        if i + 1 < n and src[i] == _HYPHEN and src[i + 1] == _GT:
            return i + 2
        while i + 2 < n:
            if src[i] == _HYPHEN and src[i + 1] == _HYPHEN:
                if src[i + 2] == _GT:
                    return i + 3
                if src[i + 2] == _BANG and i + 3 < n and src[i + 3] == _GT:
                    return i + 4
            i += 1
        return n
    while i < n and src[i] != _GT:
        i += 1
    return min(i + 1, n)


@numba.njit(cache=True, nogil=True)
def _copy(src: Bytes8, start: int, end: int, out: Bytes8, o: int) -> int:
    for i in range(start, end):
        out[o] = src[i]
        o += 1
    return o


@numba.njit(cache=True, nogil=True)
def scan_html(src: Bytes8, out: Bytes8, tables: Ints64, keep_all: bool) -> tuple[int, int, int, bool]:
    """Write the reduced page to `out`; give its length, bytes of text, things seen, if all tags matter."""
    n = len(src)
    i = 0
    o = 0
    text_bytes = 0
    seen = 0
    spaced = True  # the last byte of text written was a space, or there is none yet
    in_anchor = False
    svg_depth = 0
    svg_close = -1  # where the next </svg> is, as far as it was searched
    wants_all = False
    depth = 0  # of kept elements that need an end tag
    tags = 0
    while i < n:
        if svg_depth > 0:
            while i < n and src[i] != _LT:
                i += 1
        else:  # white space is collapsed without a branch, which would be mispredicted at every word
            start = i
            was_space = 1 if spaced else 0
            collapsed = 0
            while i < n:
                c = src[i]
                space = tables[CLASS_ROW, 0, c]
                if space > 1:
                    if c == _LT:
                        break
                    width = _measure_space(src, i, tables)
                    space = 1 if width > 0 else 0
                    if width > 1:
                        i += width - 1
                        start += width - 1
                out[o] = 32 if space else c
                collapsed += space
                o += 1 - (space & was_space)
                was_space = space
                i += 1
            spaced = was_space == 1
            text_bytes += i - start - collapsed
        if i >= n:
            break
        following = src[i + 1] if i + 1 < n else 0
        closing = following == _SLASH
        name_start = i + 2 if closing else i + 1
        if name_start >= n or not _is_letter(src[name_start]):
            if following in (_BANG, _QUESTION) or closing:
                i = _skip_markup(src, i)
            else:  # a bare "<" is text
                if svg_depth == 0:
                    out[o] = _LT
                    o += 1
                    text_bytes += 1
                    spaced = False
                i += 1
            continue
        p = name_start
        code = 0
        while p < n:
            b = int(src[p])
            if b in (_GT, _SLASH) or _is_space(b):
                break
            if 65 <= b <= 90:
                b |= 32
            code = (code * 131 + b) & 0xFFFFFFFFFFF
            p += 1
        name_end = p
        entry = _look_up(code, tables, TAG_ROW)
        kind = entry & 255
        if svg_depth > 0 and kind not in (ANCHOR, SVG, RAW):
            kind = INLINE
            kept = False
        else:
            kept = (
                kind in (FRAME, ANCHOR, VOID, IFRAME) or (kind == IMAGE and in_anchor) or (keep_all and kind <= BLOCK)
            )
        tags += 1
        if kind == FRAME:  # parsers need quadratic time for endless nesting, and nobody has a use for it
            kept = depth <= _MAX_DEPTH if closing else depth < _MAX_DEPTH
            depth = max(depth - 1, 0) if closing else depth + 1
        before = o
        if (kind in (BLOCK, FRAME, IFRAME)) and not spaced:
            out[o] = 32
            o += 1
            spaced = True
        opened = o
        if kept:
            out[o] = _LT
            o += 1
            if closing:
                out[o] = _SLASH
                o += 1
            o = _copy(src, name_start, name_end, out, o)
        has_alt = False
        self_closing = False
        ended = False
        while p < n:
            b = src[p]
            if b == _GT:
                ended = True
                p += 1
                break
            if b == _SLASH:
                self_closing = True
                p += 1
                continue
            if _is_space(b):
                p += 1
                continue
            self_closing = False
            attr_start = p
            attr_code = 0
            while p < n:
                b2 = int(src[p])
                if b2 in (_GT, _SLASH) or _is_space(b2) or (b2 == _EQUALS and p > attr_start):
                    break
                if 65 <= b2 <= 90:
                    b2 |= 32
                attr_code = (attr_code * 131 + b2) & 0xFFFFFFFFFFF
                p += 1
            attr_end = p
            value_start = p
            value_end = p
            q = p
            while q < n and _is_space(src[q]):
                q += 1
            if q < n and src[q] == _EQUALS:
                p = q + 1
                while p < n and _is_space(src[p]):
                    p += 1
                value_start = p
                if p < n and (src[p] == _QUOTE or src[p] == _APOSTROPHE):
                    quote = src[p]
                    p += 1
                    while p < n and src[p] != quote:
                        p += 1
                    p += 1
                else:
                    while p < n and src[p] != _GT and not _is_space(src[p]):
                        p += 1
                value_end = min(p, n)
            if closing:
                continue
            attr = _look_up(attr_code, tables, ATTR_ROW)
            if attr == 0:
                continue
            if attr == HIDDEN:
                seen |= SEEN_HIDDEN
                wants_all |= not kept and kind <= BLOCK
            elif attr == ROLE:
                inset = 1 if value_end - value_start > 1 and src[value_start] in (_QUOTE, _APOSTROPHE) else 0
                role = _hash_range(src, value_start + inset, value_end - inset)
                if _look_up(role, tables, ROLE_ROW) == 0:
                    continue
                seen |= SEEN_ROLE
                wants_all |= not kept and kind <= BLOCK
            elif attr == ALT:
                has_alt = value_end - value_start > 2
            if kept:
                out[o] = 32
                o += 1
                o = _copy(src, attr_start, attr_end, out, o)
                if value_end > value_start:
                    out[o] = _EQUALS
                    o += 1
                    o = _copy(src, value_start, value_end, out, o)
        if not ended:  # the page ends inside a tag: by the standard the tag is dropped
            o = before
            break
        i = p
        if kept:
            out[o] = _GT
            o += 1
            if kind == IMAGE and not (has_alt and in_anchor):
                o = opened
        if closing:
            if kind == ANCHOR:
                in_anchor = False
            elif kind == SVG and svg_depth > 0:
                svg_depth -= 1
                if svg_depth > 0:
                    svg_close = _find_close(src, i, name_start, name_end)
                    if svg_close == n:
                        svg_depth = 0
            continue
        seen |= entry >> 8
        if kind == ANCHOR:
            in_anchor = True
        elif kind in (RAW, IFRAME) or (kind == TITLE and svg_depth == 0):
            end = _find_close(src, i, name_start, name_end)
            if kind == TITLE:
                o = _copy(src, i - 1, i, out, _copy(src, name_start - 1, name_end, out, o))
                o = _copy(src, i, end, out, o)
            i = end
            if end < n and kind != IFRAME:
                while i < n and src[i] != _GT:
                    i += 1
                i += 1
                if kind == TITLE:
                    o = _copy(src, end, end + 2 + name_end - name_start, out, o)
                    out[o] = _GT
                    o += 1
        elif kind == SVG and not self_closing:
            if svg_close < i:
                svg_close = _find_close(src, i, name_start, name_end)
            if svg_close < n:
                svg_depth += 1
    return o, text_bytes, seen, wants_all and tags <= _MAX_TAGS
