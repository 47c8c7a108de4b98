"""Postings that change when a page is replaced: both versions' scores, by each scoring."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bowerbird.index.analysis import tokenize
from bowerbird.index.forward import ForwardRecords
from bowerbird.index.forward_kernels import MOST_COUNTED, keep_length
from bowerbird.index.measuring import PageRecorder, PostingChanges, WordScoring
from bowerbird.index.protocol import Document
from bowerbird.index.scoring import PageScorer, stored_length
from bowerbird.index.tantivy_index import TantivyIndex
from bowerbird.index.tantivy_query import FIELD_WEIGHTS
from bowerbird.index.word_counts import Vocabulary

WORDS = ["ape", "bear", "cat", "été", "eel", "fox"]
OTHERS = ["kite", "lynx", "mole", "Cat", "ÉTÉ!"]
texts = st.lists(st.sampled_from(WORDS + OTHERS), max_size=80).map(" ".join)
versions = st.tuples(texts, texts.map(lambda text: text[:30]))


def document(page: int, text: str, title: str = "", anchors: str = "fox") -> Document:
    return Document(page, f"http://a.example/{page}", title, text, anchors, f"a {page}", "a.example", "en", 0.0)


def make_recorder(folder: Path, scoring: WordScoring, words: list[str] | None = None) -> PageRecorder:
    vocabulary = Vocabulary(sorted({word for text in (words or WORDS) for word in tokenize(text)}))
    return PageRecorder(vocabulary, scoring, ForwardRecords(folder / "forward.db"), vocabulary.marks(b"key"))


def scores_of(
    scorer: PageScorer, vocabulary: Vocabulary, each: Document
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    fields = {"title": each.title, "text": each.text, "anchors": each.anchors, "url_words": each.url_words}
    out = np.zeros(len(vocabulary))
    found = scorer.score(fields)
    out[found.words] = found.scores
    return out


def moved_of(changes: PostingChanges) -> tuple[np.ndarray[tuple[int], np.dtype[np.generic]], ...]:
    """The postings that changed: page, word, old and new score of each."""
    changed = (changes.old != changes.new) & ~np.isnan(changes.old)
    page = np.repeat(changes.pages, np.diff(changes.starts))
    return page[changed], changes.words[changed], changes.old[changed], changes.new[changed]


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(versions, versions), min_size=1, max_size=6))
def test_both_versions_score_as_the_index_scores_them(
    tmp_path_factory: pytest.TempPathFactory, pages: list[tuple[tuple[str, str], tuple[str, str]]]
) -> None:
    folder = tmp_path_factory.mktemp("index")
    index = TantivyIndex.open(folder, write=True)
    old = [document(page, *before) for page, (before, _) in enumerate(pages)]
    new = [document(page, *after) for page, (_, after) in enumerate(pages)]
    for each in old:
        index.add(each)
    index.commit()
    vocabulary = Vocabulary(sorted({word for text in WORDS for word in tokenize(text)}))
    recorder = make_recorder(folder, WordScoring.bm25(index, vocabulary.words))
    scorer = PageScorer(index, vocabulary.words, FIELD_WEIGHTS)
    index.close()
    numbers = list(range(len(pages)))
    first = recorder.take(numbers, old, [False] * len(pages))
    assert len(first.pages) == 0
    recorder.records.commit()
    changes = recorder.take(numbers, new, [True] * len(pages))
    assert changes.pages.tolist() == numbers
    found = {"old": np.zeros((len(pages), len(vocabulary))), "new": np.zeros((len(pages), len(vocabulary)))}
    for page in numbers:
        part = slice(changes.starts[page], changes.starts[page + 1])
        assert len(set(changes.words[part].tolist())) == len(changes.words[part])
        found["old"][page, changes.words[part]] = changes.old[part]
        found["new"][page, changes.words[part]] = changes.new[part]
    for page in numbers:
        assert found["old"][page] == pytest.approx(scores_of(scorer, vocabulary, old[page]), rel=1e-9)
        assert found["new"][page] == pytest.approx(scores_of(scorer, vocabulary, new[page]), rel=1e-9)
    page, word, before, after = moved_of(changes)
    assert (before != after).all()
    counts = [Counter([*tokenize(one.text), "|", *tokenize(one.title)]) for one in (*old, *new)]
    for number in numbers:
        if counts[number] == counts[len(pages) + number] and old[number].title == new[number].title:
            assert number not in page  # nothing moved, not even by rounding
    assert changes.count_moved().tolist() == [int((page == number).sum()) for number in numbers]
    assert len(word) == len(page)
    recorder.records.close()


def test_a_page_that_goes_loses_all_its_words_and_its_record(tmp_path: Path) -> None:
    recorder = make_recorder(tmp_path, WordScoring.of_pages([0.0, 7.0, 9.0]))
    words = recorder.vocabulary.words
    recorder.take([1, 2], [document(1, "ape cat cat"), document(2, "bear", anchors="")], [False, False])
    changes = recorder.take([1, 2], [None, document(2, "bear bear eel", anchors="")], [True, True])
    moved = {(int(page), words[word]): (a, b) for page, word, a, b in zip(*moved_of(changes), strict=True)}
    assert moved == {(1, "ape"): (7.0, 0.0), (1, "cat"): (7.0, 0.0), (1, "fox"): (7.0, 0.0), (2, "eel"): (0.0, 9.0)}
    recorder.records.commit()
    again = recorder.take([1], [document(1, "ape")], [True])
    assert again.generations.tolist() == [-1]
    assert len(again.words) == 0
    recorder.records.close()


def test_tf_idf_is_lucenes(tmp_path: Path) -> None:
    words = sorted(tokenize(word)[0] for word in WORDS)
    holding = np.arange(len(words))
    recorder = make_recorder(tmp_path, WordScoring.tf_idf(holding, 10))
    recorder.take([3], [document(3, "ape ape mole", anchors="")], [False])
    changes = recorder.take([3], [document(3, "ape ape ape ape bear mole kite lynx lynx", anchors="")], [True])
    moved = {words[word]: (a, b) for _, word, a, b in zip(*moved_of(changes), strict=True)}
    idf = 1 + np.log(10 / (holding + 1))
    length = (3 + 2, 9 + 2)  # with "a 3" of the URL
    assert moved == {
        "ape": pytest.approx((math.sqrt(2 / length[0]) * idf[0] ** 2, math.sqrt(4 / length[1]) * idf[0] ** 2)),
        "bear": pytest.approx((0.0, math.sqrt(1 / length[1]) * idf[1] ** 2)),
    }
    recorder.records.close()


def test_anchors_that_came_meanwhile_are_no_change_of_the_page(tmp_path: Path) -> None:
    recorder = make_recorder(tmp_path, WordScoring.of_pages(np.ones(5)))
    recorder.take([1], [document(1, "ape", anchors="fox")], [False])
    changes = recorder.take([1], [document(1, "ape bear", anchors="fox cat eel")], [True])
    page, word, old, new = moved_of(changes)
    assert [recorder.vocabulary.words[number] for number in word] == ["bear"]
    assert (page.tolist(), old.tolist(), new.tolist()) == ([1], [0.0], [1.0])
    recorder.records.close()


def test_a_word_that_is_new_in_the_vocabulary_is_not_known_of_older_records(tmp_path: Path) -> None:
    scoring = WordScoring.of_pages(np.ones(5))
    recorder = make_recorder(tmp_path, scoring, ["ape", "bear"])
    recorder.take([1], [document(1, "ape eel")], [False])
    recorder.records.commit()
    recorder.records.close()
    recorder = make_recorder(tmp_path, scoring, ["ape", "bear", "eel"])
    changes = recorder.take([1], [document(1, "eel bear")], [True])
    by_word = dict(zip([recorder.vocabulary.words[word] for word in changes.words], changes.old.tolist(), strict=True))
    assert math.isnan(by_word.pop("eel"))
    assert by_word == {"ape": 1.0, "bear": 0.0}
    assert changes.count_moved().tolist() == [2]
    again = recorder.take([1], [document(1, "ape")], [True])
    assert again.count_moved().tolist() == [3]  # by now all three are known
    recorder.records.close()


def test_counts_beyond_what_a_record_holds_are_taken_as_equal(tmp_path: Path) -> None:
    recorder = make_recorder(tmp_path, WordScoring.tf_idf(np.zeros(6), 10))
    many = " ".join(["ape"] * (MOST_COUNTED + 10)) + " mole" * 90
    recorder.take([1], [document(1, many + " mole" * 20)], [False])
    changes = recorder.take([1], [document(1, many + " ape" * 20)], [True])
    assert changes.count_moved().tolist() == [0]
    recorder.records.close()


def test_damaged_records_do_no_harm(tmp_path: Path) -> None:
    recorder = make_recorder(tmp_path, WordScoring.tf_idf(np.zeros(6), 10))
    rng = np.random.default_rng(3)
    for _ in range(200):
        data = rng.integers(0, 256, int(rng.integers(0, 60)), dtype=np.uint8).tobytes()
        recorder.records.put([1], data, np.array([0, len(data)]))
        changes = recorder.take([1], [document(1, "ape")], [True])
        assert not np.isnan(changes.new).any()
    recorder.records.close()


@given(st.integers(0, 5_000_000))
def test_lengths_are_kept_as_the_engine_keeps_them(words: int) -> None:
    assert keep_length(words) == stored_length(words)
