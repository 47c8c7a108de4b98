"""What pages have at stake, by an index and its forward records."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bowerbird.crawl.stakes import Standing, weigh_answers
from bowerbird.index.analysis import tokenize
from bowerbird.index.forward import ForwardRecords
from bowerbird.index.measuring import PageRecorder, WordScoring
from bowerbird.index.protocol import Document
from bowerbird.index.tantivy_index import TantivyIndex
from bowerbird.index.word_counts import Vocabulary
from bowerbird.model.workload import EMPTY, Workload, make_workload
from bowerbird.store.folder import CrawlFolder

#: by row; the last has neither word, the one before all but one of the words of a query
TEXTS = ("red car", "red car red car", "green car", "lilac boat on a lake", "a lake")


def visibility(ranks: np.ndarray) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.asarray(ranks, dtype=np.float64) ** -1.5


def make_folder(root: Path, workload: Workload, *, recorded: bool = True) -> CrawlFolder:
    folder = CrawlFolder(root)
    documents = [
        Document(page, f"http://a.example/{page}", "", text, "", "", "a.example", "en", 0.0)
        for page, text in enumerate(TEXTS)
    ]
    with TantivyIndex.open(folder.index, write=True) as index:
        for document in documents:
            index.add(document)
        index.commit()
        scoring = WordScoring.bm25(index, workload.terms)
    if recorded:
        vocabulary = Vocabulary(workload.terms)
        recorder = PageRecorder(
            vocabulary, scoring, ForwardRecords(folder.forward), vocabulary.marks(workload.mark_key)
        )
        recorder.take(list(range(len(TEXTS))), documents, [False] * len(TEXTS))
        recorder.records.commit()
        recorder.records.close()
    return folder


def weigh(root: Path, *, recorded: bool = True) -> Standing:
    workload = make_workload(["red car", "lilac boat race"], [3.0, 1.0], tokenize)
    return weigh_answers(make_folder(root, workload, recorded=recorded), workload, visibility, len(TEXTS))


def test_who_is_in_answers_has_places_to_lose_and_who_lacks_one_word_has_one_to_gain(tmp_path: Path) -> None:
    found = weigh(tmp_path)
    assert found.views.sum() == pytest.approx(1.0)
    assert found.views[2:].tolist() == [0.0, 0.0, 0.0]
    best, other = (0, 1) if found.views[0] > found.views[1] else (1, 0)
    assert found.stake[best] > found.stake[other] >= 0.0
    assert found.stake[2] > 0.0  # "green car" lacks "red"
    assert found.stake[4] == 0.0


def test_without_records_only_places_count(tmp_path: Path) -> None:
    found = weigh(tmp_path, recorded=False)
    assert found.stake.max() > 0.0
    assert found.stake[2:].tolist() == [0.0, 0.0, 0.0]


def test_without_searchers_nobody_has_a_stake(tmp_path: Path) -> None:
    found = weigh_answers(CrawlFolder(tmp_path), EMPTY, visibility, 4)
    assert found.stake.tolist() == found.views.tolist() == [0.0] * 4
