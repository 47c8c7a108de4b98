"""The search service: the folder opened once, asked by several threads, while a crawl writes to it or not."""

from __future__ import annotations

import asyncio
import logging
import queue
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TypeVar

from bowerbird.index.tantivy_index import MAX_DEPTH, TantivyIndex
from bowerbird.model.errors import FolderError
from bowerbird.serve.clicks import is_web_url
from bowerbird.serve.folding import Result, fold
from bowerbird.serve.texts import PageTexts
from bowerbird.store.committed import CommittedState
from bowerbird.store.folder import CrawlFolder

log = logging.getLogger(__name__)

SEARCH_THREADS = 4
MAX_WAITING = 64
RELOAD_EVERY_S = 0.5
#: hits looked at for each result wanted, so that copies further down are folded too
LOOK_AHEAD = 2
LEAST_LOOKED_AT = 30
#: hits looked at when copies fill the first ones: some 8 µs each
MOST_LOOKED_AT = 1000
WARMING_QUERY = "the home page"

T = TypeVar("T")


class BusyError(Exception):
    """More questions wait than can be answered soon."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One page of results, and how many pages match in all."""

    query: str
    results: tuple[Result, ...]
    total: int
    seconds: float
    has_more: bool


class Desk:
    """A few threads and a short line before them: who comes when it is full is told so at once."""

    def __init__(self, threads: int, name: str, max_waiting: int = MAX_WAITING) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix=name)
        self._max = max_waiting + threads
        self._inside = 0

    async def ask(self, work: Callable[[], T]) -> T:
        """Do it on one of the threads."""
        if self._inside >= self._max:
            raise BusyError
        self._inside += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._pool, work)
        finally:
            self._inside -= 1

    def start(self, work: Callable[[], object]) -> None:
        """Do it on one of the threads, and wait for nothing."""
        self._pool.submit(work)

    def close(self) -> None:
        """Wait for what is under way; drop what waits."""
        self._pool.shutdown(cancel_futures=True)


class SearchService:
    """Answers queries from the folder's index, with snippets from its archive."""

    def __init__(self, folder: CrawlFolder, *, threads: int = SEARCH_THREADS) -> None:
        self.folder = folder
        self._threads = threads
        self._states: queue.SimpleQueue[CommittedState] = queue.SimpleQueue()
        self._opened: list[CommittedState] = []
        self._page_texts = PageTexts()
        self._index: TantivyIndex | None = None
        self._desk: Desk | None = None
        self._counted = 0

    def open(self) -> None:
        """Open the database and the index; the index may still be empty, or not there at all."""
        for _ in range(self._threads):
            state = CommittedState(self.folder)
            self._opened.append(state)
            self._states.put(state)
        self._desk = Desk(self._threads, "search")
        self._desk.start(self._warm)

    def close(self) -> None:
        """Let go of the folder."""
        if self._desk is not None:
            self._desk.close()
        for state in self._opened:
            state.close()
        if self._index is not None:
            self._index.close()
        self._desk, self._index, self._opened = None, None, []

    async def ask(self, query: str, page: int, size: int) -> Answer:
        """One page of the results of a query, from page 1."""
        assert self._desk is not None
        return await self._desk.ask(lambda: self.search(query, page, size))

    def search(self, query: str, page: int, size: int) -> Answer:
        """As `ask`, in the calling thread."""
        began_s = time.perf_counter()
        try:
            answer = self._search(query, page, size)
        except FolderError:
            self._index = None  # it may have been made anew: the next search opens it again
            raise
        return replace(answer, seconds=time.perf_counter() - began_s)

    async def ask_count(self) -> int:
        """Pages that can be found; when too many wait, as counted last."""
        assert self._desk is not None
        try:
            self._counted = await self._desk.ask(self.count)
        except BusyError:
            pass
        return self._counted

    def count(self) -> int:
        """Pages that can be found."""
        return self._reader().count()

    def _search(self, query: str, page: int, size: int) -> Answer:
        index = self._reader()
        last = page * size
        look = max(LOOK_AHEAD * last, LEAST_LOOKED_AT)
        most = min(max(MOST_LOOKED_AT, LOOK_AHEAD * look), MAX_DEPTH)
        while True:
            found = index.search(query, look, snippets=False)
            results = fold(hit for hit in found.hits if is_web_url(hit.url))
            seen_all = len(found.hits) >= min(found.total, most)
            if len(results) > last or seen_all:
                break
            look = min(2 * look, most)
        shown = results[last - size : last]
        hits = index.add_snippets(query, [result.hit for result in shown])
        shown = [replace(result, hit=hit) for result, hit in zip(shown, hits, strict=True)]
        return Answer(query, tuple(shown), found.total, 0.0, len(results) > last)

    def _warm(self) -> None:
        """What the first searcher would wait for: files to open, code to load."""
        try:
            self._search(WARMING_QUERY, 1, 3)
        except Exception as error:
            log.warning("the first look at the crawl failed: %s", error)

    def _reader(self) -> TantivyIndex:
        index = self._index
        if index is None:
            index = TantivyIndex.open(self.folder.index, write=False, texts=self._texts, reload_every_s=RELOAD_EVERY_S)
            self._index = index
        return index

    def _texts(self, rows: Sequence[int]) -> list[str]:
        state = self._states.get()
        try:
            return [self._page_texts.text(state, row) for row in rows]
        finally:
            self._states.put(state)
