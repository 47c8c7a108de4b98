"""The embedded index, by Tantivy. One process writes; any number read the same folder meanwhile.

Guarantees: a commit is all or nothing and survives the loss of the process at any moment; a reader sees the
last commit at each search; the writer's lock belongs to the process (flock) and goes with it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import orjson
import tantivy
from numpy.typing import NDArray

from bowerbird.index.analysis import prepare, restore
from bowerbird.index.protocol import Document, Hit, SearchAnswer
from bowerbird.index.query import Clause, ParsedQuery, parse_query, primary_language, site_names
from bowerbird.index.snippet import Highlighter, make_snippet
from bowerbird.index.tantivy_folder import fail, open_existing, open_for_writing, state_mark
from bowerbird.index.tantivy_query import FIELD_WEIGHTS, drop_surrogates, every_clause, some_clause
from bowerbird.model.errors import FolderError

#: With fewer pages than this that have every word, pages with some of the words follow them.
FEW_HITS = 10
#: How deep one can page into an answer.
MAX_DEPTH = 10_000
DEFAULT_HEAP_BYTES = 96 << 20
WORDS_TRIED = 50

#: Commits, or changes seen by a reader, after which the engine is opened anew: it keeps something of every file that
#: it ever mapped (quickwit-oss/tantivy#500 is about the same cache), a few to twenty kilobytes a commit.
RENEW_AFTER = 32
#: Times what opening anew took last is left between two: it waits for merges under way.
RENEW_PAUSE = 50.0

#: Gives the texts of pages, by page number, for snippets.
TextSource = Callable[[Sequence[int]], Sequence[str]]


class TantivyIndex:
    """A `SearchIndex` in a folder. Make one with `open`."""

    def __init__(
        self,
        folder: Path,
        index: tantivy.Index | None,
        writer: tantivy.IndexWriter | None,
        texts: TextSource | None = None,
        reload_every_s: float = 0.0,
    ) -> None:
        self.folder = folder
        self._reload_every_s = reload_every_s
        self._reloaded_at = float("-inf")
        self._texts = texts
        self._index = index
        self._writer = writer
        self._closed = False
        self._heap = (DEFAULT_HEAP_BYTES, 1)  # bytes, threads of a writer
        self._seen: object = None  # of a reader, the commit that it answers from
        self._uses = 0  # commits, or changes seen, since it was opened
        self._renewed_at = time.monotonic()
        self._renewing_s = 0.0

    @classmethod
    def open(
        cls,
        folder: Path,
        *,
        write: bool,
        heap_bytes: int = DEFAULT_HEAP_BYTES,
        threads: int = 1,
        texts: TextSource | None = None,
        reload_every_s: float = 0.0,
    ) -> TantivyIndex:
        """Open an index; for writing it is made where there is none, for reading it is then simply empty.

        Where `texts` can give a page's text again (an archive can), the index made here does not keep it: that
        saves a third of the work of indexing and half of the disk, and costs a search the reading of its hits.
        `reload_every_s`: a reader looks for a new commit at most so often, and may answer from the one before.
        """
        if not write:
            return cls(folder, open_existing(folder), None, texts, reload_every_s)
        made = cls(folder, None, None, texts)
        made._heap = (heap_bytes, threads)
        made._open_writer()
        return made

    def add(self, document: Document, *, replace: bool = False) -> None:
        """Add a page; with `replace`, take its earlier version out first."""
        writer = self._writing()
        values = {
            "page": document.page,
            "title": prepare(document.title),
            "anchors": prepare(document.anchors),
            "url_words": prepare(document.url_words),
            "text": prepare(document.text),
            "site": site_names(drop_surrogates(document.host)),
            "language": primary_language(drop_surrogates(document.language)),
            "card": orjson.dumps(
                (
                    drop_surrogates(document.url),
                    document.fetched_at,
                    drop_surrogates(document.language),
                    document.duplicate_of,
                    drop_surrogates(document.description),
                )
            ),
        }
        try:
            if replace:
                writer.delete_documents_by_term("page", document.page)
            writer.add_document(tantivy.Document.from_dict(values, self._schema))
        except (ValueError, OSError) as error:
            fail(self.folder, error)

    def remove(self, page: int) -> None:
        """Take a page out; nothing happens if it is not there."""
        writer = self._writing()
        try:
            writer.delete_documents_by_term("page", page)
        except (ValueError, OSError) as error:
            fail(self.folder, error)

    def commit(self) -> None:
        """Make everything since the last commit durable and visible. Releases the GIL while it works."""
        writer = self._writing()
        try:
            writer.commit()
        except (ValueError, OSError) as error:
            fail(self.folder, error)
        self._uses += 1
        rested = time.monotonic() - self._renewed_at >= RENEW_PAUSE * self._renewing_s
        if self._uses >= RENEW_AFTER and rested:
            self._renew_writer()

    def search(self, query: str, limit: int = 10, offset: int = 0, *, snippets: bool = True) -> SearchAnswer:
        """Pages with every word, best first; where they are few, pages with some of the words follow.

        Without `snippets`, which cost most, a hit has its page's description in place of one.
        """
        began_s = time.perf_counter()
        parsed = parse_query(query)
        searcher = self._searcher()
        offset = min(max(0, offset), MAX_DEPTH)
        limit = min(max(0, limit), MAX_DEPTH - offset)
        if searcher is None or parsed.is_empty:
            return SearchAnswer([], 0, time.perf_counter() - began_s, query)
        schema = self._schema
        strict = every_clause(schema, parsed)
        found, total = _top(searcher, strict, limit, offset)
        loose = parsed.loose
        if total < FEW_HITS and len(loose) > 1:
            some = some_clause(schema, parsed, loose, strict)
            more, more_total = _top(searcher, some, limit - len(found), max(0, offset - total))
            found += more
            total += more_total
        documents = [searcher.doc(address).to_dict() for _, address in found]
        hits = [_hit(document, score) for (score, _), document in zip(found, documents, strict=True)]
        if snippets:
            hits = _with_snippets(hits, self._texts_of(documents), parsed)
        return SearchAnswer(hits, total, time.perf_counter() - began_s, query)

    def add_snippets(self, query: str, hits: Sequence[Hit]) -> list[Hit]:
        """The hits of a search without snippets, with them: only those that are shown need any."""
        if self._texts is None:
            return list(hits)
        texts = [prepare(text) for text in self._texts([hit.page for hit in hits])]
        return _with_snippets(hits, texts, parse_query(query))

    def _texts_of(self, documents: list[dict[str, list[Any]]]) -> Sequence[str]:
        if self._texts is None or any("text" in document for document in documents):
            return [document.get("text", [""])[0] for document in documents]
        return [prepare(text) for text in self._texts([document["page"][0] for document in documents])]

    def top_scores(self, words: Sequence[str], limit: int) -> tuple[NDArray[np.int64], NDArray[np.float64], int]:
        """The pages with all these words, best first: their numbers and scores, and how many there are in all."""
        searcher = self._searcher()
        if searcher is None or not words:
            return np.zeros(0, dtype=np.int64), np.zeros(0), 0
        wanted = ParsedQuery(tuple(Clause((word,)) for word in words))
        found, total = _top(searcher, every_clause(self._schema, wanted), limit, 0)
        pages = searcher.fast_field_values("page", [address for _, address in found]) if found else []
        return np.array(pages, dtype=np.int64), np.array([score for score, _ in found]), total

    def document_frequency(self, field: str, word: str) -> int:
        """Documents that have the word in this field."""
        searcher = self._searcher()
        return 0 if searcher is None else int(searcher.doc_freq(field, word))

    def document_count(self) -> int:
        """Documents as the scores count them: replaced ones too, until their segment is merged."""
        return max(int(self._explained(field).get("N", 0)) for field in FIELD_WEIGHTS)

    def average_length(self, field: str) -> float:
        """Words in this field, on average."""
        return self._explained(field).get("avgdl", 0.0)

    def _explained(self, field: str) -> dict[str, float]:
        """The statistics behind the score of some word of this field: the engine tells them in no other way."""
        searcher = self._searcher()
        if searcher is None:
            return {}
        # any word will do that a document still has; all words are walked through only where no common one does
        for prefix in ("html", "the", "a", ""):
            for word, _ in searcher.terms_with_prefix(field, prefix, limit=WORDS_TRIED):
                query = tantivy.Query.term_query(self._schema, field, word, "freq")
                hits = searcher.search(query, limit=1, count=False).hits
                if hits:
                    return _leaves(orjson.loads(query.explain(searcher, hits[0][1]).to_json()))
        return {}

    def pages(self) -> NDArray[np.int64]:
        """The page numbers in the index, ascending, one for each document."""
        searcher = self._searcher()
        if searcher is None or not searcher.num_docs:
            return np.zeros(0, dtype=np.int64)
        found = searcher.search(
            tantivy.Query.all_query(),
            limit=searcher.num_docs,
            count=False,
            order_by_field="page",
            order=tantivy.Order.Asc,
        )
        return np.fromiter((page for page, _ in found.hits), dtype=np.int64, count=len(found.hits))

    def count(self) -> int:
        """How many documents are committed."""
        searcher = self._searcher()
        return 0 if searcher is None else int(searcher.num_docs)

    def close(self) -> None:
        """Wait for merges under way and let go of the lock. What was not committed is dropped."""
        self._closed = True
        self._close_writer()

    def __enter__(self) -> TantivyIndex:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        mode = "closed" if self._closed else "write" if self._writer is not None else "read"
        return f"TantivyIndex({str(self.folder)!r}, {mode})"

    @property
    def _schema(self) -> tantivy.Schema:
        assert self._index is not None
        return self._index.schema

    def _writing(self) -> tantivy.IndexWriter:
        if self._writer is None:
            raise FolderError(f"index {self.folder}: it is not open for writing; open it with write=True")
        return self._writer

    def _open_writer(self) -> None:
        self._index, self._writer = open_for_writing(self.folder, self._texts is None, *self._heap)
        self._uses = 0

    def _close_writer(self) -> None:
        writer, self._writer, self._index = self._writer, None, None
        if writer is not None:
            try:
                writer.wait_merging_threads()
            except (ValueError, OSError) as error:
                fail(self.folder, error)

    def _renew_writer(self) -> None:
        """Close and open it, so that it forgets the files of old."""
        began = time.monotonic()
        self._close_writer()
        self._open_writer()
        self._renewed_at = time.monotonic()
        self._renewing_s = self._renewed_at - began

    def _searcher(self) -> tantivy.Searcher | None:
        if self._closed:
            raise FolderError(f"index {self.folder}: it is closed; open it again")
        if self._index is None:
            self._index = open_existing(self.folder)
            if self._index is None:
                return None
        try:
            now = time.monotonic()
            if now - self._reloaded_at >= self._reload_every_s:
                self._reloaded_at = now
                self._reload()
            return self._index.searcher()
        except (ValueError, OSError) as error:
            fail(self.folder, error)

    def _reload(self) -> None:
        """See the last commit. Several threads may come here at once: what one opens in vain is dropped."""
        mark = state_mark(self.folder)
        if mark == self._seen:
            return
        index = self._index
        self._uses += 1
        if self._writer is None and self._uses >= RENEW_AFTER:
            index = open_existing(self.folder)
            self._uses = 0
        if index is not None:
            index.reload()
            self._index = index
        self._seen = mark


def _top(
    searcher: tantivy.Searcher, query: tantivy.Query, limit: int, offset: int
) -> tuple[list[tuple[float, tantivy.DocAddress]], int]:
    result = searcher.search(query, limit=max(1, limit), offset=offset, count=True)
    return result.hits[: max(0, limit)], result.count  # type: ignore[attr-defined]  # the stubs lack count


def _leaves(tree: dict[str, Any]) -> dict[str, float]:
    """The named values of an explanation: `N`, `avgdl` and the like."""
    out = {str(tree["description"]).partition(",")[0]: float(tree["value"])}
    for part in tree.get("details", ()):
        out.update(_leaves(part))
    return out


def _hit(values: dict[str, list[Any]], score: float) -> Hit:
    url, fetched_at, language, duplicate_of, description = orjson.loads(values["card"][0])
    page, title = values["page"][0], restore(values["title"][0])
    return Hit(page, url, title, description, (), score, fetched_at, language, duplicate_of)


def _with_snippets(hits: Sequence[Hit], texts: Sequence[str], parsed: ParsedQuery) -> list[Hit]:
    highlighter = Highlighter.of(parsed.words)
    made = (make_snippet(text, highlighter, otherwise=hit.snippet) for hit, text in zip(hits, texts, strict=True))
    return [
        replace(hit, snippet=snippet, highlights=highlights)
        for hit, (snippet, highlights) in zip(hits, made, strict=True)
    ]
