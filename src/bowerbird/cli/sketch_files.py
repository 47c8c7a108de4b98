"""What sketches are made of: files of links, scores, anchors and crawled pages."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import numpy.typing as npt

from bowerbird.appraise.frontier.graph import make_graph
from bowerbird.cli.graph_columns import read_rows
from bowerbird.index.page_words import gather_words
from bowerbird.library.arrow_names import join_names
from bowerbird.library.column_names import ANCHORS, LINKED, PAGES, SCORES, SOURCES, TARGETS
from bowerbird.model.page_words import PageWords


@dataclass(frozen=True, slots=True)
class SketchFiles:
    """Columns by page; pages are in the order of their names, so that the lower of equal ones is the first by name."""

    names: list[str]
    words: PageWords
    score: npt.NDArray[np.float64]
    crawled: npt.NDArray[np.bool_]
    notes: tuple[str, ...]


def read_sketch_files(
    links: Path, scores: Path | None = None, anchors: Path | None = None, crawled: Path | None = None
) -> SketchFiles:
    """Pages of all files; without scores a page scores 1 and 1 for each crawled page that links to it."""
    read = [read_rows(links, (SOURCES, TARGETS))]
    wanted = ((scores, (PAGES, SCORES)), (anchors, (LINKED, ANCHORS)), (crawled, (PAGES,)))
    more = [None if path is None else read_rows(path, columns) for path, columns in wanted]
    scored, texts, known = more
    columns = [*read[0].names, *(each.names[0] for each in more if each is not None)]
    joined = join_names(columns)
    count = len(joined.host)
    found = joined.names_of(np.arange(count))
    order = np.array(sorted(range(count), key=found.__getitem__), dtype=np.int64)
    place = np.empty(count, dtype=np.int64)
    place[order] = np.arange(count)
    numbers = iter(place[column] for column in joined.columns)
    sources, targets = next(numbers), next(numbers)
    score_rows = next(numbers) if scored is not None else None
    anchor_rows = next(numbers) if texts is not None else None
    mask = np.zeros(count, dtype=np.bool_)
    mask[next(numbers) if known is not None else sources] = True
    names = [found[row] for row in order.tolist()]
    score: npt.NDArray[np.float64] = make_graph(sources, targets, count, mask).in_degree.astype(np.float64) + 1.0
    if scored is not None and score_rows is not None:
        score = np.zeros(count)
        np.maximum.at(score, score_rows, scored.amounts)
    told: list[tuple[int, str]] = []
    if texts is not None and anchor_rows is not None:
        said = texts.names[1].dictionary.to_pylist()
        pairs = sorted(set(zip(anchor_rows.tolist(), texts.names[1].rows.tolist(), strict=True)))
        told = [(row, said[text]) for row, text in pairs]
    words = gather_words((), [*enumerate(map(unquote, names)), *told], count)
    notes = tuple(note for each in (*read, *more) if each is not None for note in each.notes)
    return SketchFiles(names, words, score, mask, notes)
