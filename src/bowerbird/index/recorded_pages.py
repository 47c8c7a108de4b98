"""The forward records of a whole index, read beside its writer: what each page scores for the words it has."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bowerbird.index.forward import FORMAT
from bowerbird.index.forward_kernels import F64, FIELDS, HEAD_BYTES, NEVER, U32, fill_marks, score_both
from bowerbird.index.measuring import WordScoring
from bowerbird.index.word_kernels import I32, I64, U8

PAGES_AT_ONCE = 20_000


@dataclass(frozen=True, slots=True)
class RecordedPages:
    """Some pages: page `pages[i]` has `words[starts[i]:starts[i + 1]]` with these scores, and so long a text."""

    pages: I64
    starts: I64
    words: I32
    scores: F64
    text_length: F64


def read_recorded(
    path: Path, marks: U32, scoring: WordScoring, at_once: int = PAGES_AT_ONCE
) -> Iterator[RecordedPages]:
    """The pages with a record, some at a time; none where there is no file or it cannot be read.

    Records from before most of the words were asked for are left out: they would say that pages lack them.
    """
    if not path.exists():
        return
    opened = f"{path.absolute().as_uri()}?mode=rw"  # a reader writes to the log's index
    with suppress(sqlite3.Error), closing(sqlite3.connect(opened, uri=True, timeout=5)) as connection:
        if int(connection.execute("PRAGMA user_version").fetchone()[0]) != FORMAT:
            return
        connection.execute("BEGIN")  # one state of the file
        state = connection.execute("SELECT marks, since FROM state").fetchone() or (b"", b"")
        since = _known_since(marks, np.frombuffer(state[0], dtype="<u4"), np.frombuffer(state[1], dtype="<i8"))
        table = np.full(1 << max(2 * len(marks), 16).bit_length(), -1, dtype=np.int64)
        fill_marks(marks, since, table)
        oldest = int(np.sort(since)[len(since) // 2]) if len(since) else 0  # that knows half of the words
        rows = connection.execute(
            "SELECT page, generation, data FROM records WHERE generation >= ? ORDER BY page", (oldest,)
        )
        while part := rows.fetchmany(at_once):
            yield _score(part, table, since, scoring)


def _known_since(marks: U32, kept: U32, since: I64) -> I64:
    """The generation from which on records tell of each word."""
    if not len(kept) or len(kept) != len(since):
        return np.full(len(marks), NEVER, dtype=np.int64)
    place = np.minimum(np.searchsorted(kept, marks), len(kept) - 1)
    return np.where(kept[place] == marks, since[place], NEVER).astype(np.int64)


def _score(part: list[tuple[int, int, bytes]], table: I64, since: I64, scoring: WordScoring) -> RecordedPages:
    whole = [row for row in part if len(row[2]) >= HEAD_BYTES]
    pages = np.array([row[0] for row in whole], dtype=np.int64)
    generations = np.array([row[1] for row in whole], dtype=np.int64)
    data: U8 = np.frombuffer(b"".join(row[2] for row in whole), dtype=np.uint8)
    ends = np.zeros(len(whole) + 1, dtype=np.int64)
    np.cumsum([len(row[2]) for row in whole], out=ends[1:])
    texts = FIELDS * len(whole)
    static = scoring.static
    starts, words, scores, _ = score_both(
        np.zeros(texts + 1, dtype=np.int64), np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.int32),
        np.zeros(texts, dtype=np.int64), np.zeros(len(whole), dtype=np.bool_), data, ends, generations, table, since,
        scoring.kind, scoring.weights, scoring.inverse, scoring.average, static[pages] if len(static) else static,
    )  # fmt: skip
    kept = scores > 0  # not NaN either: a word that the record is too old for
    places = np.concatenate([[0], np.cumsum(kept)])
    heads = ends[:-1, None] + np.arange(HEAD_BYTES - 4, HEAD_BYTES)
    length = data[heads].astype(np.int64) @ (1 << 8 * np.arange(4)) if whole else np.zeros(0)
    return RecordedPages(pages, places[starts].astype(np.int64), words[kept], scores[kept], length.astype(np.float64))
