"""Texts of pages for snippets. Links are not read again, and what was shown lately is kept: it will be shown again."""

from __future__ import annotations

import threading
from collections import OrderedDict

from bowerbird.crawl.texts import read_archived
from bowerbird.page.charset import decode_bytes, sniff_charset
from bowerbird.page.html import parse_html
from bowerbird.store.committed import CommittedState
from bowerbird.store.records import Version

#: a snippet is taken from the beginning of a long page
MAX_TEXT_CHARS = 50_000
KEPT_CHARS = 2_000_000

Key = tuple[int, int | None, int | None]  # the page, and where its version lies


class PageTexts:
    """The text of each page's current version; the least recently shown are forgotten first."""

    def __init__(self, kept_chars: int = KEPT_CHARS) -> None:
        self._kept: OrderedDict[Key, str] = OrderedDict()
        self._kept_chars = kept_chars
        self._chars = 0
        self._lock = threading.Lock()

    def text(self, state: CommittedState, row: int) -> str:
        """The text of a page; empty where there is none."""
        version = state.version(row)
        if version is None:
            return ""
        key = (row, version.file, version.offset)
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        text = _read(state, version)
        with self._lock:
            if text and key not in self._kept:
                self._kept[key] = text
                self._chars += len(text)
            while self._chars > self._kept_chars:
                self._chars -= len(self._kept.popitem(last=False)[1])
        return text

    def __len__(self) -> int:
        return len(self._kept)


def _read(state: CommittedState, version: Version) -> str:
    result = read_archived(state, version, state.url(version.url))
    if result is None:
        return ""
    charset = sniff_charset(result.body, result.header("content-type"))
    if version.media == "text":
        return decode_bytes(result.body, charset)[:MAX_TEXT_CHARS]
    return parse_html(result.body, charset, max_links=0, max_text_chars=MAX_TEXT_CHARS).text
