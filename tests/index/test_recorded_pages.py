"""All forward records of an index read at once: scores as the index has them, whatever file is there."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.index.test_measuring import WORDS, document, make_recorder, scores_of

from bowerbird.index.analysis import tokenize
from bowerbird.index.measuring import WordScoring
from bowerbird.index.recorded_pages import RecordedPages, read_recorded
from bowerbird.index.scoring import PageScorer
from bowerbird.index.tantivy_index import TantivyIndex
from bowerbird.index.tantivy_query import FIELD_WEIGHTS

TEXTS = ["ape bear bear cat", "mole", "", "été eel fox fox " * 30]


def make_records(folder: Path) -> tuple[WordScoring, PageScorer]:
    """Four pages in an index, numbers 0, 3, 6, 9, with their records."""
    with TantivyIndex.open(folder, write=True) as index:
        documents = [document(3 * place, text, "Ape" if place else "") for place, text in enumerate(TEXTS)]
        for each in documents:
            index.add(each)
        index.commit()
        words = sorted({word for text in WORDS for word in tokenize(text)})
        scoring = WordScoring.bm25(index, words)
        scorer = PageScorer(index, words, FIELD_WEIGHTS)
    recorder = make_recorder(folder, scoring)
    recorder.take([each.page for each in documents], documents, [False] * len(documents))
    recorder.records.commit()
    recorder.records.close()
    return scoring, scorer


@pytest.mark.parametrize("at_once", [1, 3, 100])
def test_scores_and_lengths_are_those_of_the_index(tmp_path: Path, at_once: int) -> None:
    scoring, scorer = make_records(tmp_path)
    vocabulary = make_recorder(tmp_path, scoring).vocabulary
    parts = list(read_recorded(tmp_path / "forward.db", vocabulary.marks(b"key"), scoring, at_once))
    assert [page for part in parts for page in part.pages.tolist()] == [0, 3, 6, 9]
    assert [length for part in parts for length in part.text_length.tolist()] == [4.0, 1.0, 0.0, 120.0]
    scores = np.concatenate([by_word(part, len(vocabulary)) for part in parts])
    for place, text in enumerate(TEXTS):
        each = document(3 * place, text, "Ape" if place else "")
        assert scores[place] == pytest.approx(scores_of(scorer, vocabulary, each), rel=1e-6)


def by_word(part: RecordedPages, words: int) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    out = np.zeros((len(part.pages), words))
    for page in range(len(part.pages)):
        here = slice(part.starts[page], part.starts[page + 1])
        out[page, part.words[here]] = part.scores[here]
    return out


def test_records_of_another_key_are_not_there(tmp_path: Path) -> None:
    scoring, _ = make_records(tmp_path)
    vocabulary = make_recorder(tmp_path, scoring).vocabulary
    assert list(read_recorded(tmp_path / "forward.db", vocabulary.marks(b"another"), scoring)) == []


def test_records_from_before_most_words_were_asked_for_are_left_out(tmp_path: Path) -> None:
    scoring, _ = make_records(tmp_path)
    more = [*WORDS, *(f"word{number}" for number in range(20))]
    recorder = make_recorder(tmp_path, scoring, more)  # the words enter a later generation
    words = recorder.vocabulary.words
    with TantivyIndex.open(tmp_path, write=False) as index:
        wider = WordScoring.bm25(index, words)
    recorder.records.close()
    marks = recorder.vocabulary.marks(b"key")
    assert list(read_recorded(tmp_path / "forward.db", marks, wider)) == []
    recorder = make_recorder(tmp_path, wider, more)
    recorder.take([3], [document(3, "ape word7")], [False])
    recorder.records.commit()
    recorder.records.close()
    (part,) = read_recorded(tmp_path / "forward.db", marks, wider)
    assert part.pages.tolist() == [3]
    assert {words[word] for word in part.words.tolist()} == {"ape", "word7", "fox"}


def test_no_file_or_another_is_no_pages(tmp_path: Path) -> None:
    scoring, _ = make_records(tmp_path)
    marks = np.zeros(1, dtype=np.uint32)
    assert list(read_recorded(tmp_path / "none.db", marks, scoring)) == []
    (tmp_path / "text.db").write_text("no database " * 1000)
    assert list(read_recorded(tmp_path / "text.db", marks, scoring)) == []
